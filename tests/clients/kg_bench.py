"""Measures memgrove beside the MCP memory server on the same knowledge: tokens, answers, time.

Usage: python kg_bench.py PATH_OF_MEMGROVE FOLDER_OF_NODE_MODULES [--large]

The folder is where `npm install @modelcontextprotocol/server-memory@2026.8.31 gpt-tokenizer` was run. Tokens are
counted with the o200k_base vocabulary over everything a result carries: text and structured content. Times are
medians of calls made in turns, so their ratios mean something on a busy machine. `--large` adds 100,000 entities.
Prints a table; exits with 1 if a bound is missed.
"""

import asyncio
import collections
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

from mcp import Client
from mcp.client.stdio import StdioServerParameters

FIRST = "Alice Bruno Chiara Dmitri Elena Farid Greta Hiro Ingrid Jamal Katya Liam Mei Nadia Omar Priya Quentin Rosa Sven Tariq Uma Viktor Wanda Ximena Yusuf Zoe".split()
LAST = "Abbott Berger Castillo Dubois Eriksson Fischer Gupta Haddad Ivanov Jensen Kowalski Lindqvist Moreau Nakamura Okafor Petrov Quiroga Rossi Sato Tanaka Ueda Vasquez Weber Xu Yilmaz Zhang".split()
THINGS = "billing checkout search gateway scheduler ledger mobile reporting identity inventory pricing telemetry onboarding archive notification payroll routing catalog forecast compliance".split()
SORTS = "service dashboard pipeline migration library importer worker console agent index".split()


def made_up(count, endings, seed):
    """Names of products and areas, as many as a real store has."""
    rng, words = random.Random(seed), []
    while len(words) < count:
        word = "".join(rng.choice("b c d f g h k l m n p r s t v z br dr gr kl pr st tr".split()) + rng.choice("aeiou") for _ in range(2)) + rng.choice(endings)
        if word not in words:
            words.append(word)
    return words


KNOWN = "Postgres Kafka Redis Terraform GraphQL Kubernetes Python Rust TypeScript OAuth Grafana Airflow Spark Elasticsearch Vault Nginx Prometheus Snowflake RabbitMQ WebSockets".split()
TOPICS = KNOWN + [word.capitalize() for word in made_up(380, ["x", "ly", "db", "ql", "nix", "kit"], 1)]
AREAS = THINGS + made_up(180, ["ment", "ing", "ance", "ory", "ure"], 2)
VERBS = "prefers avoids maintains reviewed rewrote documented benchmarked deprecated migrated debugged".split()
PLACES = "Oslo Lisbon Nairobi Kyoto Montreal Tallinn Porto Bogota Seoul Vienna Dublin Accra Jakarta Quito Riga Turin".split()
HABITS = ["climbing before work", "long walks with the dog", "restoring old radios", "baking rye bread", "playing the cello", "growing chillies", "night photography", "sailing on weekends", "collecting maps", "learning Portuguese"]


def sentence(rng, subject):
    """One observation, and a question that it answers, in other words."""
    n = rng.randint(2, 999)
    topic, other, thing, place = rng.choice(TOPICS), rng.choice(TOPICS), rng.choice(AREAS), rng.choice(PLACES)
    return rng.choice([
        (f"{rng.choice(VERBS)} {topic} for the {thing} work since incident {n}", f"What was done with {topic} in the {thing} area by {subject}?"),
        (f"moved the {thing} jobs from {topic} to {other} after {n} failed runs", f"Which {thing} jobs did {subject} move to {other}?"),
        (f"is based in {place} and travels there every {n % 9 + 2} weeks", f"Where is {subject} based, is it {place}?"),
        (f"said that the {thing} deadline is firm and costs {n} hours", f"What about the {thing} deadline of {subject}?"),
        (f"enjoys {rng.choice(HABITS)} when off duty, about {n} times a year", f"What does {subject} enjoy when not working?"),
        (f"keeps the {topic} runbook in folder {n} next to the {thing} notes", f"Where does {subject} keep the runbook for {topic}?"),
        (f"measured {n} ms latency on {topic} during the {thing} trial", f"How slow was {topic} in the trial of {subject}?"),
    ])


def knowledge(entities, observations, relations, seed=7):
    rng = random.Random(seed)
    names, graph, asked = set(), [], {}
    while len(graph) < entities:
        if rng.random() < 0.5:
            kind, name = "person", f"{rng.choice(FIRST)} {rng.choice(LAST)}"
        else:
            kind, name = "project", f"{rng.choice(THINGS)} {rng.choice(SORTS)}"
        if name in names:
            name = f"{name} {len(graph)}"
        names.add(name)
        graph.append({"name": name, "entityType": kind, "observations": []})
    for n in range(observations):
        entity = graph[n % entities]
        said, question = sentence(rng, entity["name"])
        entity["observations"].append(said)
        asked.setdefault(entity["name"], []).append(question)
    edges = set()
    while len(edges) < relations:
        a, b = rng.sample(graph, 2)
        edges.add((a["name"], b["name"], rng.choice(["works with", "depends on", "owns", "reports to"])))
    return graph, [{"from": a, "to": b, "relationType": c} for a, b, c in sorted(edges)], asked


def queries(graph, asked, count=50):
    """For each of `count` entities, drawn with a fixed seed, the same kinds of query, made from the graph alone: nothing
    is chosen by hand, and nothing by what either side answers. Words are ranked by how many entities have them."""
    holders = collections.Counter(word for entity in graph for word in {word for text in entity["observations"] for word in text.split()})
    rng = random.Random(3)
    for entity in rng.sample(graph, count):
        name, pick = entity["name"], rng.randrange(len(entity["observations"]))
        words = entity["observations"][pick].split()
        ranked = sorted({word: at for at, word in enumerate(words)}.items(), key=lambda item: (holders[item[0]], item[1]))
        (rarest, at), (second, _) = ranked[:2]
        start = max(0, min(at - 1, len(words) - 3))
        yield "name", name, name
        yield "first word of the name", name.split()[0], name
        yield "phrase of three words", " ".join(words[start:start + 3]), name
        yield "rarest word", rarest, name
        yield "second rarest word", second, name
        yield "type and rarest word", f"{entity['entityType']} {rarest}", name
        yield "question", asked[name][pick], name


class Counter:
    """Counts tokens, in a process of node's."""

    def __init__(self, folder):
        code = "const {countTokens}=require('gpt-tokenizer/cjs/encoding/o200k_base');require('readline').createInterface({input:process.stdin}).on('line',l=>console.log(countTokens(JSON.parse(l))))"
        self.node = subprocess.Popen(["node", "-e", code], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, result):
        parts = [block.text for block in result.content]
        if result.structured_content is not None:
            parts.append(json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":")))
        total = 0
        for part in parts:
            self.node.stdin.write(json.dumps(part) + "\n")
            self.node.stdin.flush()
            total += int(self.node.stdout.readline())
        return total


missed = []


def row(figure, measured, bound, holds):
    print(f"| {figure} | {measured} | {bound} |{'' if holds else ' MISSED'}", flush=True)
    if not holds:
        missed.append(figure)


def jsonl(graph, edges):
    lines = [json.dumps({"type": "entity", **entity}, ensure_ascii=False, separators=(",", ":")) for entity in graph]
    lines += [json.dumps({"type": "relation", **edge}, ensure_ascii=False, separators=(",", ":")) for edge in edges]
    return "\n".join(lines)


def prepared(memgrove, server, folder, graph, edges):
    """The same knowledge on both sides; what a client needs to start each."""
    file, store = os.path.join(folder, "memory.jsonl"), os.path.join(folder, "store")
    with open(file, "w") as out:
        out.write(jsonl(graph, edges))
    subprocess.run([memgrove, "init", store], check=True, capture_output=True)
    subprocess.run([memgrove, "--store", store, "import", "mcp-memory", file], check=True, capture_output=True)
    env = {"PATH": os.environ["PATH"], "HOME": folder}
    theirs = StdioServerParameters(command="node", args=[server], env=env | {"MEMORY_FILE_PATH": file})
    ours = StdioServerParameters(command=memgrove, args=["--store", store, "mcp", "--tools", "entities"], env=env)
    kg = StdioServerParameters(command=memgrove, args=["--store", store, "mcp", "--tools", "kg"], env=env)
    return theirs, ours, kg


def client(parameters):
    return Client(parameters, mode="legacy", read_timeout_seconds=300)


def wanted_in(result, name):
    """Whether an answer names an entity, and not only one whose name goes on with a number."""
    return any(re.search(re.escape(name) + r"(?! \d)", block.text) for block in result.content)


async def tokens(memgrove, server, counter, size):
    graph, edges, asked = knowledge(*size)
    label = f"{size[0]:,} entities"
    with tempfile.TemporaryDirectory(prefix="memgrove-bench-") as folder:
        theirs, ours, _ = prepared(memgrove, server, folder, graph, edges)
        async with client(theirs) as real, client(ours) as mine:
            found = {"real": {}, "mine": {}}
            spent = {"real": collections.Counter(), "mine": collections.Counter()}
            reads = []
            for kind, query, name in queries(graph, asked):
                answer = await real.call_tool("search_nodes", {"query": query})
                own = await mine.call_tool("entity_search", {"query": query})
                hits = wanted_in(answer, name), wanted_in(own, name)
                for side, hit in zip(("real", "mine"), hits):
                    found[side].setdefault(kind, []).append(hit)
                if hits[0]:
                    spent["real"][kind] += counter(answer)
                    spent["mine"][kind] += counter(own)
                    reads.append(hits[1])
            before, after = (spent[side].total() for side in ("real", "mine"))
            saved = 1 - after / before
            row(f"{label}: tokens saved by a search, where the server finds ({len(reads)} queries)", f"{saved:.1%} ({before:,} to {after:,})", "92 %", saved >= 0.92)
            row(f"{label}: wanted entity in these answers", f"{sum(reads)} of {len(reads)}", "all", all(reads))
            for kind in found["real"]:
                real_part, own_part = (statistics.mean(found[side][kind]) for side in ("real", "mine"))
                bound = "90 %" if kind == "question" else "as often"
                part = f", {1 - spent['mine'][kind] / spent['real'][kind]:.1%} saved" if spent["real"][kind] else ""
                row(f"{label}: found by {kind}", f"{own_part:.0%} (server {real_part:.0%}){part}", bound, own_part >= (0.9 if kind == "question" else real_part))
            await session(real, mine, counter, graph, asked, label)


async def session(real, mine, counter, graph, asked, label):
    """A brief at the start, 20 searches, 10 reads; the server needs its graph and the same reads."""
    rng = random.Random(5)
    names = [entity["name"] for entity in rng.sample(graph, 10)]
    theirs = counter(await real.call_tool("read_graph", {}))
    own = counter(await mine.call_tool("entity_search", {"query": ""}))
    for name in names * 2:
        own += counter(await mine.call_tool("entity_search", {"query": rng.choice(asked[name])}))
    for name in names:
        theirs += counter(await real.call_tool("open_nodes", {"names": [name]}))
        own += counter(await mine.call_tool("entity_load", {"names": [name]}))
    saved = 1 - own / theirs
    row(f"{label}: tokens saved in a session", f"{saved:.1%} ({theirs:,} to {own:,})", "92 %", saved >= 0.92)


class Wire:
    """A connection that does nothing but write a line and read the answer: what it measures is the server."""

    def __init__(self, parameters):
        command = [parameters.command, *parameters.args]
        self.server = subprocess.Popen(command, env=parameters.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.calls = 0
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message):
        self.server.stdin.write(json.dumps(message).encode() + b"\n")
        self.server.stdin.flush()

    def request(self, method, params):
        self.calls += 1
        self.write({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params})
        started = time.perf_counter()
        line = self.server.stdout.readline()
        elapsed = (time.perf_counter() - started) * 1000
        answer = json.loads(line)
        assert answer.get("id") == self.calls and not answer["result"].get("isError"), answer
        return elapsed

    def call(self, tool, arguments):
        """Calls a tool, and gives back how many milliseconds its answer took."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stdin.close()
        self.server.wait()


def speed(memgrove, server):
    """Each server has a store of its own, as the real one has; then another server writes to ours as well."""
    graph, edges, _ = knowledge(10_000, 56_000, 14_000)
    with tempfile.TemporaryDirectory(prefix="memgrove-bench-", dir=os.path.dirname(memgrove)) as folder:
        for name in ("one", "two"):
            os.mkdir(os.path.join(folder, name))
        theirs, ours, beside = prepared(memgrove, server, os.path.join(folder, "one"), graph, edges)
        kg = prepared(memgrove, server, os.path.join(folder, "two"), graph, edges)[2]
        with Wire(theirs) as real, Wire(ours) as mine, Wire(kg) as same, Wire(beside) as other:
            stores, searches, after_other = ([], [], []), ([], [], []), []
            mine.call("entity_search", {"query": "warm"})
            same.call("search_nodes", {"query": "warm"})
            for n in range(30):
                new = {"name": f"new {n}", "entityType": "person", "observations": ["likes tea"]}
                stores[0].append(real.call("create_entities", {"entities": [new]}))
                stores[1].append(mine.call("entity_store", {"name": f"own {n}", "type": "person", "observations": ["likes tea"]}))
                stores[2].append(same.call("create_entities", {"entities": [new]}))
                query = random.Random(n).choice(graph)["name"]
                searches[0].append(real.call("search_nodes", {"query": query}))
                searches[1].append(mine.call("entity_search", {"query": query}))
                searches[2].append(same.call("search_nodes", {"query": query}))
                other.call("create_entities", {"entities": [new]})
                after_other.append(mine.call("entity_search", {"query": query}))
            for what, sides in [("store", stores), ("search", searches)]:
                real_ms, own_ms, kg_ms = map(statistics.median, sides)
                row(f"10,000 entities: {what}, entity tools", f"{real_ms / own_ms:.0f}x ({real_ms:.1f} to {own_ms:.1f} ms)", "20x", real_ms / own_ms >= 20)
                row(f"10,000 entities: {what}, the server's own tools", f"{real_ms / kg_ms:.0f}x ({real_ms:.1f} to {kg_ms:.1f} ms)", "20x", real_ms / kg_ms >= 20)
            row("10,000 entities: entity search right after another server's write", f"{statistics.median(after_other):.1f} ms", "-", True)


def growth(memgrove, server, large):
    """Stores on a small and on a large store, in turns."""
    with tempfile.TemporaryDirectory(prefix="memgrove-bench-", dir=os.path.dirname(memgrove)) as one, tempfile.TemporaryDirectory(prefix="memgrove-bench-", dir=os.path.dirname(memgrove)) as two:
        small = prepared(memgrove, server, one, *knowledge(1_000, 5_600, 0)[:2])[1]
        big = prepared(memgrove, server, two, *knowledge(large, large * 3, 0)[:2])[1]
        with Wire(small) as few, Wire(big) as many:
            times = ([], [])
            for n in range(60):
                for side, mine in zip(times, (few, many)):
                    side.append(mine.call("entity_store", {"name": f"own {n}", "type": "person", "observations": ["likes tea"]}))
            few, many = map(statistics.median, times)
            row(f"store at {large:,} against 1,000 entities", f"{many / few:.2f}x ({few:.1f} to {many:.1f} ms)", "at most 1.5x", many / few <= 1.5)


async def main():
    memgrove, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    server = os.path.join(folder, "node_modules/@modelcontextprotocol/server-memory/dist/index.js")
    counter = Counter(folder)
    print("| figure | measured | bound |\n|---|--:|--:|")
    await tokens(memgrove, server, counter, (150, 850, 220))
    await tokens(memgrove, server, counter, (1_000, 5_667, 1_467))
    speed(memgrove, server)
    growth(memgrove, server, 100_000 if "--large" in sys.argv else 20_000)
    print(f"kg bench: {len(missed)} bounds missed")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    asyncio.run(main())
