"""What finding costs, taken in one run, against ripgrep over the same files.

Usage: python recall_bench.py PATH_OF_MEMGROVE [largest number of memories]

Makes stores of 1,000, 10,000 and 100,000 short memories (sections of 18 words, a hundred a file, words of natural
frequency), and one of 10,000 with a file for each; asks a server that is warm, through MCP over standard input. A time
is taken on the clock; beside it stands what the processor worked for it (Linux), which a busy machine changes less.
Needs `rg` on the path for its rows. Prints a table; exits with 1 if a bound that does not depend on the machine is not
held.
"""

import glob
import itertools
import json
import math
import os
import random
import resource
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
WEIGHTS = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(WORDS))))
QUESTIONS = 200
failures = []


def row(what, value, work="", bound="", holds=True):
    print(f"| {what} | {value} | {work} | {bound} |", flush=True)
    if not holds:
        failures.append(what)


def words(dice, count):
    return " ".join(dice.choices(WORDS, cum_weights=WEIGHTS, k=count))


def fill(store, count, a_file):
    """Memories of 18 words, so many a file; at most 500 files in a folder."""
    subprocess.run([MEMGROVE, "init", store], check=True, capture_output=True)
    dice = random.Random(count)
    for number in range(count // a_file):
        sections = (f"## {words(dice, 2)}\n\n{words(dice, 18).capitalize()}.\n\n" for _ in range(a_file))
        folder = os.path.join(store, "files", f"{number // 500:03}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{number:05}.md"), "w", encoding="utf-8") as out:
            out.write("".join(sections))


def encoded(message):
    return json.dumps(message).encode() + b"\n"


class Server:
    def __init__(self, store, env):
        command = [MEMGROVE, "--store", store, "mcp"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self.count = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", hello)
        self.send(encoded({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def send(self, message):
        self.process.stdin.write(message)
        self.process.stdin.flush()

    def ask(self, method, params):
        """The answer, and the milliseconds until it was there; what they cost to write and to read is the client's."""
        self.count += 1
        message = encoded({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        started = time.perf_counter()
        self.send(message)
        while True:
            line = self.process.stdout.readline()
            taken = (time.perf_counter() - started) * 1000
            answer = json.loads(line)
            if answer.get("id") == self.count:
                return answer, taken

    def recall(self, query):
        """Milliseconds on the clock, and of the processor."""
        before = self.worked()
        answer, taken = self.ask("tools/call", {"name": "recall", "arguments": {"query": query}})
        assert not answer["result"].get("isError"), answer
        return taken, self.worked() - before

    def worked(self):
        paths = glob.glob(f"/proc/{self.process.pid}/task/*/schedstat")
        return sum(int(open(path, encoding="ascii").read().split()[0]) for path in paths) / 1e6

    def resident(self):
        status = open(f"/proc/{self.process.pid}/status", encoding="ascii").read()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def p99(values):
    return sorted(values)[math.ceil(len(values) * 0.99) - 1]


def asked(server, queries):
    """The medians on the clock and of the processor, and the slowest but one in a hundred."""
    pairs = [server.recall(query) for query in queries]
    taken, worked = zip(*pairs)
    return statistics.median(taken), p99(taken), statistics.median(worked), p99(worked)


def cold(store, env, rounds=15):
    """The command line with the index in place, against the same program that does nothing."""
    def took(arguments):
        before, started = os.times(), time.perf_counter()
        subprocess.run([MEMGROVE, *arguments], check=True, capture_output=True, env=env)
        taken, after = time.perf_counter() - started, os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        return taken * 1000, used * 1000
    pairs = [(took(["--store", store, "recall", "anything at all"]), took(["--version"])) for _ in range(rounds)]
    return [statistics.median(a[which] - b[which] for a, b in pairs) for which in (0, 1)]


def ripgrep(store, server, queries):
    """How many times longer ripgrep takes to find the words, side by side: on the clock, and of the processor."""
    ratios = []
    for query in queries:
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(["rg", "-i", "-c", "|".join(query.split()), os.path.join(store, "files")], capture_output=True)
        taken, after = (time.perf_counter() - started) * 1000, resource.getrusage(resource.RUSAGE_CHILDREN)
        used = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000
        clock, work = server.recall(query)
        ratios.append((taken / clock, used / work))
    return [statistics.median(ratio) for ratio in zip(*ratios)]


def after_a_write(store, server, queries, dice):
    """What the first search after a write takes more than the next."""
    file = sorted(glob.glob(os.path.join(store, "files", "*", "*.md")))[0]
    more = []
    for number, query in enumerate(queries):
        with open(file, "a", encoding="utf-8") as out:
            out.write(f"## fresh {number}\n\n{words(dice, 18)}\n\n")
        first, second = server.recall(query), server.recall(query)
        more.append([first[which] - second[which] for which in (0, 1)])
        time.sleep(0.15)
    return [statistics.median(values) for values in zip(*more)]


def measure(folder, count, env, a_file=100):
    name = f"{count:,}" if a_file == 100 else f"{count:,} files"
    store = os.path.join(folder, f"{count}-{a_file}")
    largest = count == 100_000
    fill(store, count, a_file)
    before, started = os.times(), time.perf_counter()
    subprocess.run([MEMGROVE, "--store", store, "index", "rebuild"], check=True, capture_output=True, env=env)
    taken, after = time.perf_counter() - started, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    row(f"rebuild, {name}: memories a second", f"{count / taken:,.0f}", f"{count / used:,.0f}", "5,000" if largest else "")
    server = Server(store, env)
    dice = random.Random(1)
    for _ in range(3):
        server.recall("warm up")
    questions = [f"what did {words(dice, 1)} say about the {words(dice, 2)} and {words(dice, 1)}?" for _ in range(QUESTIONS)]
    half, most, worked, worked_most = asked(server, questions)
    row(f"question, {name}: p50", f"{half:.1f} ms", f"{worked:.1f} ms", "10 ms" if largest else "")
    row(f"question, {name}: p99 to p50", f"{most / half:.1f}", f"{worked_most / worked:.1f}", "5" if largest else "")
    single_words = dice.choices(WORDS, cum_weights=WEIGHTS, k=QUESTIONS)
    single, _, single_worked, _ = asked(server, single_words)
    row(f"single word, {name}: p50", f"{single:.1f} ms", f"{single_worked:.1f} ms", "2 ms" if largest else "")
    more, more_worked = after_a_write(store, server, questions[:15], dice)
    row(f"first search after a write, {name}: more", f"{more:.1f} ms", f"{more_worked:.1f} ms", "5 ms" if largest else "")
    if count == 10_000:
        more, more_worked = cold(store, env)
        row(f"cold `memgrove recall`, {name}: more than --version", f"{more:.0f} ms", f"{more_worked:.0f} ms", "60 ms")
        if shutil.which("rg"):
            for what, asked_for in [("a question", questions[:40]), ("a single word", single_words[:40])]:
                clock, work = ripgrep(store, server, asked_for)
                row(f"ripgrep, {name}: times as long as {what}", f"{clock:.0f}", f"{work:.0f}", "50" if a_file == 1 else "")
        else:
            print("ripgrep is not there: its rows are missing", file=sys.stderr)
    time.sleep(1)
    row(f"server at rest, {name}: resident", f"{server.resident():.0f} MiB", "", "80 MiB" if largest else "")
    server.close()
    return half, worked


def main():
    print("| figure | clock | processor | bound |\n|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory(prefix="memgrove-bench-") as folder:
        env = {"HOME": folder, "PATH": os.environ["PATH"], "XDG_CACHE_HOME": os.path.join(folder, "cache")}
        counts = [count for count in (1_000, 10_000, 100_000) if count <= LARGEST]
        measured = [measure(folder, count, env) for count in counts]
        if LARGEST >= 10_000:
            measure(folder, 10_000, env, a_file=1)
    growths = [
        math.log(measured[-1][which] / measured[0][which]) / math.log(counts[-1] / counts[0]) for which in (0, 1)
    ]
    between = f"from {counts[0]:,} to {counts[-1]:,}"
    # The processor decides: others on the same machine make times of the clock longer, not work.
    row(f"growth of a question {between}: exponent", f"{growths[0]:.2f}", f"{growths[1]:.2f}", "0.6", growths[1] <= 0.6)
    if failures:
        print("not held: " + "; ".join(failures))
        sys.exit(1)


main()
