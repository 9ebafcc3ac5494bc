"""Compares `memgrove mcp --tools kg` with the MCP memory server itself, through the official Python client.

Usage: python kg_diff.py PATH_OF_MEMGROVE FOLDER_OF_NODE_MODULES [SEQUENCES]

The folder is where `npm install @modelcontextprotocol/server-memory@2026.8.31` was run. The same calls, fixed and
random, go to the server, to memgrove on a store of its own, and to memgrove on the server's own kind of file; text,
structured content, errors, tools, resources and notifications must be equal. Then come the cases that the server
fails: calls sent ahead, several processes on one file, a damaged line. Prints a summary; exits with 1 on a difference.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile

from mcp import Client
from mcp.client.stdio import StdioServerParameters

checks = 0
failures = []


def check(what, holds, found=None):
    global checks
    checks += 1
    if not holds:
        failures.append(what)
        if len(failures) <= 20:
            print(f"FAILED: {what}" + (f": {found!r}" if found is not None else ""))


class Sides:
    """The server, memgrove on a store, memgrove on a file."""

    def __init__(self, memgrove, server, folder):
        self.memgrove, self.folder = memgrove, folder
        self.store = os.path.join(folder, "store")
        subprocess.run([memgrove, "init", self.store], check=True, capture_output=True)
        path = {"PATH": os.environ["PATH"], "HOME": folder}
        ours = ["--store", self.store, "mcp", "--tools", "kg"]
        self.theirs_file, self.ours_file = (os.path.join(folder, name) for name in ("theirs/m.jsonl", "ours/m.jsonl"))
        for file in (self.theirs_file, self.ours_file):
            os.makedirs(os.path.dirname(file))
        self.parameters = {
            "server": StdioServerParameters(command="node", args=[server], env=path | {"MEMORY_FILE_PATH": self.theirs_file}),
            "store": StdioServerParameters(command=memgrove, args=ours, env=path),
            "file": StdioServerParameters(command=memgrove, args=["mcp", "--tools", "kg"], env=path | {"MEMORY_FILE_PATH": self.ours_file}),
        }

    def client(self, side, **options):
        return Client(self.parameters[side], mode="legacy", read_timeout_seconds=60, **options)


def shown(result):
    """What a client gets of a result."""
    return {
        "text": [block.text for block in result.content],
        "structured": result.structured_content,
        "is_error": bool(result.is_error),
    }


def plain(listed):
    """A listing without what this client adds."""
    return [item.model_dump(by_alias=True, exclude_none=True) for item in listed]


NAMES = ["Alice", "alice", "Bob Smith", "Bob-Smith", "bob smith", "Ärger", "A\u0308rger", "", "日本語", "con", "a/b", "x\ny", "🦀", "N" * 300]
TYPES = ["person", "Person", "a/b", "", "project plan", "T"]
TEXTS = ["likes tea", "Likes TEA and cake", "", "1. one", "two\nlines\n", "**bold:** x", "- source: y", "é", "e\u0301", "ends ", "x" * 5000, "tab\tand \\ and \"", "\r\n", "&#10;", "İstanbul", "ΑΣ"]
KINDS = ["knows", "works at", "is: **a", ""]


def random_call(rng):
    some = lambda pool, most: [rng.choice(pool) for _ in range(rng.randint(0, most))]
    edges = lambda: [{"from": rng.choice(NAMES), "to": rng.choice(NAMES), "relationType": rng.choice(KINDS)} for _ in range(rng.randint(0, 3))]
    makers = [
        (4, lambda: ("create_entities", {"entities": [{"name": rng.choice(NAMES), "entityType": rng.choice(TYPES), "observations": some(TEXTS, 3)} for _ in range(rng.randint(0, 3))]})),
        (3, lambda: ("create_relations", {"relations": edges()})),
        (3, lambda: ("add_observations", {"observations": [{"entityName": rng.choice(NAMES), "contents": some(TEXTS, 3)} for _ in range(rng.randint(0, 2))]})),
        (1, lambda: ("delete_entities", {"entityNames": some(NAMES, 2)})),
        (1, lambda: ("delete_observations", {"deletions": [{"entityName": rng.choice(NAMES), "observations": some(TEXTS, 3)} for _ in range(rng.randint(0, 2))]})),
        (1, lambda: ("delete_relations", {"relations": edges()})),
        (1, lambda: ("read_graph", {})),
        (2, lambda: ("search_nodes", {"query": rng.choice(TEXTS + NAMES + ["TEA", "o", "i", "σ"])})),
        (2, lambda: ("open_nodes", {"names": some(NAMES, 3)})),
    ]
    return rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]()


FIXED = [
    ("read_graph", {}),
    ("create_entities", {"entities": [{"name": "A", "entityType": "t", "observations": ["one", "two"]}, {"name": "A", "entityType": "u", "observations": []}]}),
    ("create_entities", {"entities": [{"name": "A", "entityType": "other", "observations": ["skipped"]}, {"name": "B", "entityType": "t", "observations": [], "extra": 1}]}),
    ("create_relations", {"relations": [{"from": "A", "to": "B", "relationType": "r"}] * 2 + [{"from": "Ghost", "to": "A", "relationType": "haunts"}]}),
    ("create_relations", {"relations": [{"from": "A", "to": "B", "relationType": "r"}]}),
    ("add_observations", {"observations": [{"entityName": "A", "contents": ["two", "three", "three"]}]}),
    ("add_observations", {"observations": [{"entityName": "B", "contents": ["kept?"]}, {"entityName": "Nobody", "contents": ["x"]}]}),
    ("open_nodes", {"names": ["B", "Nobody"]}),
    ("search_nodes", {"query": ""}),
    ("search_nodes", {"query": "THREE"}),
    ("create_entities", {"entities": [{"name": "Ghost", "entityType": "g", "observations": ["boo"]}]}),
    ("delete_relations", {"relations": [{"from": "A", "to": "B", "relationType": "r"}]}),
    ("delete_observations", {"deletions": [{"entityName": "A", "observations": ["one", "nothing"]}, {"entityName": "Nobody", "observations": []}]}),
    ("delete_entities", {"entityNames": ["A", "Nobody"]}),
    ("read_graph", {}),
    ("create_entities", {}),
    ("create_entities", {"entities": 5}),
    ("create_entities", {"entities": [{"name": "x"}, 7, None, {"name": 1, "entityType": [], "observations": ["a", 2, {}]}]}),
    ("search_nodes", {"query": None}),
    ("open_nodes", {"names": "A"}),
    ("no_such_tool", {}),
]


async def compare(sides, calls, where):
    async with sides.client("server") as server, sides.client("store") as store, sides.client("file") as file:
        for number, (name, arguments) in enumerate(calls):
            expected = shown(await server.call_tool(name, arguments))
            for side, client in [("store", store), ("file", file)]:
                got = shown(await client.call_tool(name, arguments))
                check(f"{where}, call {number}, {name} on the {side}", got == expected, (arguments, got, expected))
        uri = "memory://knowledge-graph"
        expected = (await server.read_resource(uri)).contents[0].model_dump(by_alias=True, exclude_none=True)
        for side, client in [("store", store), ("file", file)]:
            got = (await client.read_resource(uri)).contents[0].model_dump(by_alias=True, exclude_none=True)
            check(f"{where}: the resource on the {side}", got == expected, (got, expected))
    read = lambda path: open(path, "rb").read() if os.path.exists(path) else b""
    check(f"{where}: the files are equal byte for byte", read(sides.theirs_file) == read(sides.ours_file))


async def compare_lists(sides):
    async with sides.client("server") as server, sides.client("store") as store, sides.client("file") as file:
        for side, client in [("store", store), ("file", file)]:
            for what, listing in [("tools", "list_tools"), ("resources", "list_resources")]:
                expected, got = [plain(getattr(await getattr(c, listing)(), what)) for c in (server, client)]
                check(f"{what} of the {side}", got == expected, (got, expected))
            capabilities = [c.server_capabilities.model_dump(exclude_none=True) for c in (server, client)]
            check(f"capabilities of the {side}", capabilities[0] == capabilities[1], capabilities)


async def compare_notifications(sides):
    told = {}
    for side in sides.parameters:
        heard = []

        async def listen(message):
            method = getattr(message, "method", None) or getattr(getattr(message, "root", None), "method", None)
            if method == "notifications/resources/updated":
                heard.append(str(message.params.uri))

        async with sides.client(side, message_handler=listen) as client:
            entity = lambda name: {"entities": [{"name": name, "entityType": "t", "observations": []}]}
            await client.call_tool("create_entities", entity("n0"))
            await client.subscribe_resource("memory://knowledge-graph")
            await client.call_tool("create_entities", entity("n1"))
            await client.call_tool("read_graph", {})
            await client.call_tool("delete_entities", {"entityNames": ["n1"]})
            await client.unsubscribe_resource("memory://knowledge-graph")
            await client.call_tool("create_entities", entity("n2"))
            await asyncio.sleep(0.2)
        told[side] = heard
    check("notifications are equal", len(told["server"]) == 2 and all(heard == told["server"] for heard in told.values()), told)


async def create(sides, side, start, count, ahead):
    async with sides.client(side) as client:
        entity = lambda n: {"entities": [{"name": f"e{n}", "entityType": "t", "observations": [f"o{n}"]}]}
        calls = [client.call_tool("create_entities", entity(n)) for n in range(start, start + count)]
        if ahead:
            results = await asyncio.gather(*calls)
        else:
            results = [await call for call in calls]
        check(f"creates on the {side} all answer", all(not result.is_error for result in results))


async def count(sides, side):
    async with sides.client(side) as client:
        return len((await client.call_tool("read_graph", {})).structured_content["entities"])


async def check_keeping(memgrove, server):
    kept = {}
    for side in ["server", "store", "file"]:
        with tempfile.TemporaryDirectory(prefix="memgrove-kg-") as folder:
            sides = Sides(memgrove, server, folder)
            await create(sides, side, 0, 20, ahead=True)
            kept[side] = [await count(sides, side)]
        with tempfile.TemporaryDirectory(prefix="memgrove-kg-") as folder:
            sides = Sides(memgrove, server, folder)
            await asyncio.gather(*[create(sides, side, 100 * n, 20, ahead=False) for n in range(8)])
            kept[side].append(await count(sides, side))
    for side in ["store", "file"]:
        check(f"20 calls ahead keep 20 on the {side}", kept[side][0] == 20, kept[side])
        check(f"8 processes x 20 keep 160 on the {side}", kept[side][1] == 160, kept[side])
    print("kept of 20 sent ahead, and of 8 processes x 20: " + ", ".join(f"{side} {a}, {b}" for side, (a, b) in kept.items()))


async def check_damage(memgrove, server):
    with tempfile.TemporaryDirectory(prefix="memgrove-kg-") as folder:
        sides = Sides(memgrove, server, folder)
        good = '{"type":"entity","name":"a","entityType":"t","observations":[]}'
        for file in (sides.theirs_file, sides.ours_file):
            with open(file, "w") as out:
                out.write(good + '\n{"type":"entity","na\n')
        async with sides.client("server") as client:
            check("the server fails on a damaged line", (await client.call_tool("read_graph", {})).is_error)
        async with sides.client("file") as client:
            result = await client.call_tool("read_graph", {})
            check("memgrove answers beside a damaged line", not result.is_error and len(result.structured_content["entities"]) == 1, shown(result))
            check("memgrove reports it", "line 2" in result.content[-1].text, shown(result))
            await client.call_tool("add_observations", {"observations": [{"entityName": "a", "contents": ["x"]}]})
        lines = open(sides.ours_file).read().split("\n")
        check("memgrove keeps it", '{"type":"entity","na' in lines, lines)
        check("nothing else is in the folder", os.listdir(os.path.dirname(sides.ours_file)) == ["m.jsonl"], os.listdir(os.path.dirname(sides.ours_file)))


async def main():
    memgrove = os.path.abspath(sys.argv[1])
    server = os.path.join(os.path.abspath(sys.argv[2]), "node_modules/@modelcontextprotocol/server-memory/dist/index.js")
    sequences = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    with tempfile.TemporaryDirectory(prefix="memgrove-kg-") as folder:
        sides = Sides(memgrove, server, folder)
        await compare_lists(sides)
        await compare(sides, FIXED, "fixed calls")
        await compare_notifications(sides)
    for seed in range(sequences):
        rng = random.Random(seed)
        with tempfile.TemporaryDirectory(prefix="memgrove-kg-") as folder:
            await compare(Sides(memgrove, server, folder), [random_call(rng) for _ in range(60)], f"seed {seed}")
    await check_keeping(memgrove, server)
    await check_damage(memgrove, server)
    print(f"kg diff: {checks} checks, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    asyncio.run(main())
