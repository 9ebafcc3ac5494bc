"""Load on `memgrove serve`: 10,000 memories, 128 clients that wait for nothing but their answers, nine reads to one
durable write; then the same beside 32 stdio servers that write to the same store.

usage: serve_load.py MEMGROVE [SECONDS]

Prints figures and ratios of one run, and exits with 1 if a request failed, a write was lost, or reads of the clients
alone were slower than 5 times /healthz in the same run or 50 ms, whichever is larger.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time

from serving import serving

MEMORIES, CLIENTS, STDIO = 10_000, 128, 32
WORDS = "garden river deploy friday coffee mountain table window letter engine harbour winter planet silver".split()


def fill(served):
    """Makes the memories, many in one change."""
    for start in range(0, MEMORIES, 500):
        edits = [
            {"type": "create", "path": f"m/{number % 100}/{number}.md",
             "content": f"# Memory {number}\n{WORDS[number % 14]} {WORDS[number // 14 % 14]} {number}\n"}
            for number in range(start, start + 500)
        ]
        served.post("/api/file_batch", {"operations": edits})


class Client(threading.Thread):
    """One client on one connection. It shares the machine with the server, so it does no more than HTTP asks for."""

    def __init__(self, served, name, number, until, read):
        super().__init__(name=name)
        self.served, self.number, self.until, self.read = served, number, until, read
        self.reads, self.healths, self.writes, self.wrong, self.written = [], [], [], [], 0

    def ask(self, connection, method, path, body, into):
        content = json.dumps(body).encode() if body else b""
        head = (f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.served.token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n")
        started = time.perf_counter()
        connection.sendall(head.encode() + content)
        answer, body = self.answer(connection)
        into.append(time.perf_counter() - started)
        if not answer.startswith(b"HTTP/1.1 200 "):
            self.wrong.append((path, answer[:40], body[:200]))

    @staticmethod
    def answer(connection):
        """The head and the body of an answer, which says how long it is."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536) or broken()
        head, body = data.split(b"\r\n\r\n", 1)
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += connection.recv(65536) or broken()
        return head, body

    def run(self):
        self.host = self.served.base.removeprefix("http://")
        name, port = self.host.rsplit(":", 1)
        connection = socket.create_connection((name, int(port)), timeout=60)
        turn = self.number
        while time.monotonic() < self.until:
            turn += 1
            if turn % 10 == 0:
                self.written += 1
                line = {"path": f"w/{self.name}-{self.written}.md", "text": "written under load\n"}
                self.ask(connection, "POST", "/api/file_create", line, self.writes)
            else:
                self.ask(connection, "POST", *self.read(turn), self.reads)
            if turn % 5 == 0:
                self.ask(connection, "GET", "/healthz", None, self.healths)
        connection.close()


def broken():
    raise SystemExit("the server closed a connection")


def stdio(memgrove, served, number, count, wrong):
    """One stdio server that writes, beside the others."""
    run = [memgrove, "mcp", "--tools", "all"]
    environment = {"HOME": served.home, "PATH": os.environ["PATH"]}
    process = subprocess.Popen(run, cwd=served.home, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}
    messages = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
                {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    for line in range(count):
        arguments = {"path": f"s/{number}-{line}.md", "text": "written beside\n"}
        messages.append({"jsonrpc": "2.0", "id": line + 1, "method": "tools/call", "params": {"name": "file_create", "arguments": arguments}})
    out, _ = process.communicate("".join(json.dumps(message) + "\n" for message in messages), timeout=300)
    good = [line for line in map(json.loads, out.splitlines()) if line.get("id") and line["result"].get("isError") is False]
    if len(good) != count:
        wrong.append(("stdio", number, len(good)))


def p(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] * 1000 if values else 0.0


def loaded(served, memgrove, read, name, stdio_count, seconds):
    """Clients for a while, beside so many stdio servers. The files that each wrote, and all that was measured."""
    until = time.monotonic() + seconds
    clients = [Client(served, f"{name}-{number}", number, until, read) for number in range(CLIENTS)]
    wrong, worked = [], served.worked()
    beside = [threading.Thread(target=stdio, args=(memgrove, served, number, 10, wrong)) for number in range(stdio_count)]
    for thread in clients + beside:
        thread.start()
    for thread in clients + beside:
        thread.join()
    wrong += [error for client in clients for error in client.wrong]
    gathered = [[took for client in clients for took in getattr(client, kind)] for kind in ("reads", "writes", "healths")]
    print(f"{MEMORIES} memories, {CLIENTS} clients, {stdio_count} stdio servers beside, {seconds:.0f} s")
    for what, values in zip(("recall", "durable write", "/healthz"), gathered):
        print(f"  {what:14} {len(values):7}  p50 {p(values, .5):8.2f} ms  p99 {p(values, .99):8.2f} ms")
    reads, _, healths = gathered
    bound = max(5 * p(healths, .99), 50)
    print(f"  p99 of recall / p99 of /healthz: {p(reads, .99) / p(healths, .99):.2f}; bound {bound:.1f} ms")
    worked = (served.worked() - worked) / sum(len(values) for values in gathered)
    print(f"  work of the server, a request: {worked:.2f} ms; errors {len(wrong)} {wrong[:3]}")
    return sum(client.written for client in clients), wrong, p(reads, .99) <= bound


def main():
    memgrove = os.path.abspath(sys.argv[1])
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20
    read = lambda turn: ("/api/recall", {"query": f"{WORDS[turn % 14]} {WORDS[turn // 14 % 14]}"})
    with serving(memgrove) as served:
        fill(served)
        served.post(*read(0))
        alone, wrong, holds = loaded(served, memgrove, read, "alone", 0, seconds)
        # Beside the others nothing may fail or be lost; how long it takes is told.
        crowded, more, _ = loaded(served, memgrove, read, "crowded", STDIO, seconds)
        files = os.path.join(served.home, ".memgrove/files")
        kept = len(os.listdir(os.path.join(files, "w"))), len(os.listdir(os.path.join(files, "s")))
        wanted = alone + crowded, STDIO * 10
        print(f"writes kept {kept} of {wanted}")
        sys.exit(0 if not wrong + more and kept == wanted and holds else 1)


if __name__ == "__main__":
    main()
