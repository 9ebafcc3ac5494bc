"""What finding costs, as ratios taken in one run, against ripgrep over the same files.

Usage: python recall_bench.py PATH_OF_MEMGROVE [largest number of memories]

Makes stores of 1,000, 10,000 and 100,000 short memories (sections of 18 words, a hundred a file, words of natural
frequency), and asks a server that is warm, through MCP over standard input. Needs `rg` on the path for its own row.
Prints a table; exits with 1 if a bound that does not depend on the machine is not held.
"""

import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

MEMGROVE = os.path.abspath(sys.argv[1])
LARGEST = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
HERE = os.path.dirname(os.path.abspath(__file__))
VOCABULARY = os.path.join(HERE, "../../crates/memgrove/assets/potion-base-4M-int8/vocab.txt")
WORDS = [word for word in open(VOCABULARY, encoding="utf-8").read().split("\n") if word.isalpha() and word.isascii() and len(word) > 2]
random.Random(7).shuffle(WORDS)
WEIGHTS = [1 / (rank + 10) for rank in range(len(WORDS))]
rows, failures = [], []


def row(what, value, bound=None, holds=True):
    rows.append((what, value, bound or ""))
    print(f"| {what} | {value} | {bound or ''} |", flush=True)
    if not holds:
        failures.append(what)


def words(dice, count):
    return " ".join(dice.choices(WORDS, WEIGHTS, k=count))


def fill(store, count):
    subprocess.run([MEMGROVE, "init", store], check=True, capture_output=True)
    dice = random.Random(count)
    folder = os.path.join(store, "files")
    os.makedirs(folder, exist_ok=True)
    for file in range(count // 100):
        sections = (f"## {words(dice, 2)}\n\n{words(dice, 18).capitalize()}.\n\n" for _ in range(100))
        with open(os.path.join(folder, f"{file:04}.md"), "w", encoding="utf-8") as out:
            out.write("".join(sections))


class Server:
    def __init__(self, store, env):
        command = [MEMGROVE, "--store", store, "mcp"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self.count = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", hello)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.count += 1
        self.send({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.count:
                return answer

    def recall(self, query):
        started = time.perf_counter()
        answer = self.ask("tools/call", {"name": "recall", "arguments": {"query": query}})
        assert not answer["result"].get("isError"), answer
        return (time.perf_counter() - started) * 1000

    def resident(self):
        status = open(f"/proc/{self.process.pid}/status", encoding="ascii").read()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def times(server, queries):
    taken = sorted(server.recall(query) for query in queries)
    return statistics.median(taken), taken[math.ceil(len(taken) * 0.99) - 1]


def cold(store, env, rounds=9):
    """The command line with the index in place, against the same program that does nothing."""
    def took(arguments):
        started = time.perf_counter()
        subprocess.run([MEMGROVE, *arguments], check=True, capture_output=True, env=env)
        return (time.perf_counter() - started) * 1000
    pairs = [(took(["--store", store, "recall", "anything at all"]), took(["--version"])) for _ in range(rounds)]
    return statistics.median(a - b for a, b in pairs)


def ripgrep(store, server, queries):
    pairs = []
    for query in queries:
        pattern = "|".join(query.split())
        started = time.perf_counter()
        subprocess.run(["rg", "-i", "-c", pattern, os.path.join(store, "files")], capture_output=True)
        pairs.append((time.perf_counter() - started) * 1000 / server.recall(query))
    return statistics.median(pairs)


def measure(folder, count, env):
    store = os.path.join(folder, str(count))
    fill(store, count)
    started = time.perf_counter()
    subprocess.run([MEMGROVE, "--store", store, "index", "rebuild"], check=True, capture_output=True, env=env)
    rate = count / (time.perf_counter() - started)
    row(f"rebuild, {count:,}: memories a second", f"{rate:,.0f}", "5,000" if count == 100_000 else None)
    server = Server(store, env)
    dice = random.Random(1)
    server.recall("warm up")
    natural = [f"what did {words(dice, 1)} say about the {words(dice, 2)} and {words(dice, 1)}?" for _ in range(100)]
    p50, p99 = times(server, natural)
    row(f"question, {count:,}: p50, p99", f"{p50:.1f} ms, {p99:.1f} ms", "10 ms, 5x" if count == 100_000 else None)
    single, _ = times(server, dice.choices(WORDS, WEIGHTS, k=100))
    row(f"single word, {count:,}: p50", f"{single:.1f} ms", "2 ms" if count == 100_000 else None)
    after = []
    for number in range(9):
        with open(os.path.join(store, "files", "0000.md"), "a", encoding="utf-8") as out:
            out.write(f"## fresh {number}\n\n{words(dice, 18)}\n\n")
        first = server.recall(natural[number])
        after.append(first - server.recall(natural[number]))
    row(f"first search after a write, {count:,}: more", f"{statistics.median(after):.1f} ms", "5 ms" if count == 100_000 else None)
    if count == 10_000:
        row("cold `memgrove recall`, 10,000: more than --version", f"{cold(store, env):.0f} ms", "60 ms")
        if shutil.which("rg"):
            ratio = ripgrep(store, server, natural[:20])
            row("ripgrep over the same files, 10,000: times slower", f"{ratio:.1f}", "50", True)
        else:
            print("ripgrep is not there: its row is missing", file=sys.stderr)
    time.sleep(1)
    row(f"server at rest, {count:,}: resident", f"{server.resident():.0f} MiB", "80 MiB" if count == 100_000 else None)
    server.close()
    return p50


def main():
    print("| figure | measured | bound |\n|---|--:|--:|")
    with tempfile.TemporaryDirectory(prefix="memgrove-bench-") as folder:
        env = {"HOME": folder, "PATH": os.environ["PATH"], "XDG_CACHE_HOME": os.path.join(folder, "cache")}
        counts = [count for count in (1_000, 10_000, 100_000) if count <= LARGEST]
        medians = [measure(folder, count, env) for count in counts]
    growth = math.log(medians[-1] / medians[0]) / math.log(counts[-1] / counts[0])
    row(f"growth of a question from {counts[0]:,} to {counts[-1]:,}: exponent", f"{growth:.2f}", "0.6", growth <= 0.6)
    if failures:
        print("not held: " + "; ".join(failures))
        sys.exit(1)


main()
