"""Drives `memgrove mcp` with the official Python client (PyPI `mcp` 2.3).

Usage: python mcp_client.py PATH_OF_MEMGROVE

Checks the tool lists, calls every tool, and looks at errors, pipelined calls, idempotency keys, progress, cancellation
and the end of the process, with the handshake (2025-11-25) and without it (2026-07-28). Prints one summary line
and exits with 1 if a check failed.
"""

import asyncio
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time

from jsonschema import Draft202012Validator
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import Implementation

checks = 0
failures = []


def check(what, holds, found=None):
    global checks
    checks += 1
    if not holds:
        failures.append(what)
        print(f"FAILED: {what}" + (f": {found!r}" if found is not None else ""))


def server(memgrove, store, profile="all"):
    return StdioServerParameters(
        command=memgrove, args=["--store", store, "mcp", "--tools", profile], env={"HOME": store, "PATH": "/usr/bin:/bin"}
    )


def client(memgrove, store, mode, profile="all"):
    info = Implementation(name="official-client", version="1")
    return Client(server(memgrove, store, profile), mode=mode, client_info=info, read_timeout_seconds=60)


def text(result):
    return "".join(block.text for block in result.content if block.type == "text")


async def check_tools(mcp, where):
    listed = (await mcp.list_tools()).tools
    check(f"{where}: tools are listed", len(listed) > 5, len(listed))
    for tool in listed:
        name = f"{where}: {tool.name}"
        check(f"{name} has a title", bool(tool.title))
        check(f"{name} has a short description", 0 < len(tool.description or "") < 120, tool.description)
        Draft202012Validator.check_schema(tool.input_schema)
        # Some tools answer in text alone, so that nothing is sent twice.
        Draft202012Validator.check_schema(tool.output_schema or {})
        check(f"{name} takes an object", tool.input_schema["type"] == "object")
        check(f"{name} answers with an object", tool.output_schema is None or tool.output_schema["type"] == "object")
        hints = tool.annotations
        check(f"{name} says whether it only reads", hints is not None and hints.read_only_hint is not None)
        check(f"{name} says whether it removes", hints is not None and hints.destructive_hint is not None)
        check(f"{name} says whether repeats are harmless", hints is not None and hints.idempotent_hint is not None)
        check(f"{name} stays in its own world", hints is not None and hints.open_world_hint is False)
    return listed


async def check_calls(mcp, where, listed):
    """Calls every tool once, in an order that makes sense, and validates what it answers."""
    schemas = {tool.name: tool.output_schema for tool in listed}
    called = set()

    async def call(name, /, **arguments):
        called.add(name)
        result = await mcp.call_tool(name, arguments)
        check(f"{where}: {name} works", not result.is_error, text(result))
        if not result.is_error and schemas[name] is None:
            check(f"{where}: {name} answers once", bool(result.content) and result.structured_content is None, result)
        elif not result.is_error:
            errors = list(Draft202012Validator(schemas[name]).iter_errors(result.structured_content))
            check(f"{where}: {name} answers as its schema says", not errors, errors[:1])
            check(f"{where}: {name} has a text too", bool(result.content), result.content)
        return result

    made = await call("file_create", path="/memories/a.md", text="one\ntwo\n", reason="a check")
    await call("file_insert", path="/memories/a.md", line=2, text="one and a half")
    edited = await call("file_replace", path="/memories/a.md", old="two", new="three", expect=await version(mcp))
    seen = await call("file_view", path="/memories/a.md")
    check(f"{where}: view shows the file", seen.structured_content["text"] == "one\none and a half\nthree", seen.structured_content)
    check(f"{where}: versions move", made.structured_content["version"] != edited.structured_content["version"])
    await call("file_view")
    read = await call("read", address="file:/memories/a.md")
    check(f"{where}: read is exact", read.structured_content["text"] == "one\none and a half\nthree\n")
    then = await call("read", address="file:/memories/a.md", at=made.structured_content["change"])
    check(f"{where}: read reaches back", then.structured_content["text"] == "one\ntwo\n", then.structured_content)
    told = await call("remember", text="The deploy of project Heron runs every Friday at noon.", tags=["deploy"])
    fact = text(told).split()[1]
    check(f"{where}: remember gives an address", fact.startswith("record:"), text(told))
    told = await call("recall", query="when does Heron deploy?")
    check(f"{where}: recall finds what was remembered", fact in text(told), text(told))
    await call("similar", address=fact)
    told = await call("brief", budget=400)
    check(f"{where}: brief says what is there", "memories" in text(told), text(told))
    await call("forget", address=fact)
    told = await call("recall", query="when does Heron deploy?")
    check(f"{where}: recall does not find what was forgotten", fact not in text(told), text(told))
    found = await call("find", text="HALF")
    check(f"{where}: find finds", found.structured_content["hits"][0]["line"] == 2, found.structured_content)
    await call("file_rename", old_path="/memories/a.md", new_path="/memories/deep/b.md")
    await call("file_batch", operations=[
        {"type": "create", "path": "/memories/c.md", "content": "c\n"},
        {"type": "delete", "path": "/memories/deep/b.md"},
    ])
    await call("file_delete", path="/memories/c.md")
    await call("entity_store", name="Alice", type="person", observations=["likes tea"], relations=[{"type": "knows", "to": "Bob"}])
    await call("entity_batch", entities=[{"name": "Bob", "type": "person", "observations": ["sings"]}])
    hit = await call("entity_search", query="Who likes tea?")
    check(f"{where}: entities are found by a question", "entity:person/Alice" in text(hit), text(hit))
    loaded = await call("entity_load", names=["Alice", "Nobody"])
    check(f"{where}: entities are loaded", "likes tea" in text(loaded) and "unknown: Nobody" in text(loaded), text(loaded))
    walked = await call("entity_walk", name="Bob")
    check(f"{where}: relations are followed", "Alice -knows-> Bob" in text(walked), text(walked))
    read = await call("read", address="entity:person/Alice")
    check(f"{where}: an entity has an address", "# Entity: Alice" in read.structured_content["text"])
    await call("entity_learn", error_type="Timeout", lesson="set a limit")
    await call("entity_role", role="dev")
    await call("entity_pattern", type="Review", name="small", description="small changes")
    await call("entity_delete", name="Bob")
    added = await call("record_add", type="learning", content="set a limit on every wait", tags=["timeouts"])
    lesson = added.structured_content["records"][0]["id"]
    await call("record_add_many", records=[{"type": "core", "content": "a"}, {"type": "task", "content": "b"}])
    listed = await call("record_list", text="limit")
    check(f"{where}: records are found", lesson in text(listed), text(listed))
    await call("record_update", id=lesson, importance="high")
    got = await call("record_get", id=f"record:{lesson}")
    check(f"{where}: a record is changed", "high" in str(got.structured_content), got.structured_content)
    await call("record_due")
    await call("record_archive", ids=[lesson])
    await call("record_restore", id=lesson)
    await call("record_stats")
    await call("record_delete", id=lesson)
    node = text(await call("node_create", type="project", properties={"title": "Kitchen"}, content="# Kitchen\n"))
    check(f"{where}: a node has a readable id", "node:mem_project_001" in node, node)
    await call("node_create", type="task", content_base64="/wD+", format="bin")
    one = text(await call("connection_create", **{"from": "mem_task_001", "type": "part_of", "to": "mem_project_001"}))
    check(f"{where}: a connection has an id", "conn_001" in one, one)
    await call("node_update", id="mem_project_001", properties={"status": "active"})
    await call("node_edit", id="mem_project_001", operation="str_replace", old_str="Kitchen", new_str="Bath")
    node = text(await call("node_read", id="node:mem_project_001"))
    check(f"{where}: a node is read whole", "# Bath" in node and "status: active" in node and "part_of" in node, node)
    await call("connection_update", id="conn_001", properties={"weight": 1})
    await call("connection_edit", id="conn_001", operation="create", content="why")
    await call("connection_read", id="conn_001")
    await call("connection_list", type="part_of")
    await call("node_list", **{"type": "project", "where": ["status=active"]})
    near = text(await call("graph_neighbours", id="mem_project_001", depth=2))
    check(f"{where}: neighbours are found", "mem_task_001" in near, near)
    await call("graph_path", **{"from": "mem_task_001", "to": "mem_project_001"})
    await call("graph_subgraph", ids=["mem_task_001"])
    await call("graph_batch", operations=[
        {"op": "create_node", "as": "a", "type": "idea"},
        {"op": "connect", "from": "@a", "type": "about", "to": "mem_project_001"},
    ])
    picture = text(await call("graph_export", form="mermaid"))
    check(f"{where}: the graph is drawn", picture.startswith("flowchart LR"), picture)
    await call("graph_import", graph={"nodes": [{"id": "x_1", "type": "idea"}], "connections": []})
    inferred = text(await call("graph_ontology", action="infer"))
    check(f"{where}: an ontology is inferred", "node_types:" in inferred, inferred)
    await call("graph_check")
    await call("connection_delete", id="conn_001")
    await call("node_delete", id="mem_task_001")
    kept = await call("write_memory", content="Silica uses pytest", path="projects/silica")
    check(f"{where}: a note is written", kept.structured_content["success"] and kept.structured_content["new_files"] == [])
    note = await call("read_memory", path="projects/silica")
    check(f"{where}: a note is read", "- Silica uses pytest" in text(note), text(note))
    searched = await call("search_memory", query="What does Silica use?")
    check(f"{where}: notes are searched from the root", "memory > projects/silica" in text(searched), text(searched))
    files = await call("list_memory_files")
    check(f"{where}: notes are listed with links", "projects/silica" in str(files.structured_content["files"][0]["links_to"]))
    graph = await call("get_memory_graph")
    check(f"{where}: the graph has an edge", len(graph.structured_content["edges"]) == 1, graph.structured_content)
    facts = "".join(f"- Lisbon trip {n}\n- Berlin trip {n}\n" for n in range(9))
    await call("write_memory", content=facts, mode="append")
    await call("split_memory", path="memory")
    await call("merge_memory", path="memory")
    told = await call("memory", command="create", path="/memories/tool.md", file_text="kept")
    check(f"{where}: the Memory Tool answers in its own words", text(told).startswith("File created successfully"), text(told))
    past = await call("history", limit=3)
    changes = past.structured_content["changes"]
    check(f"{where}: history has the client's name", "official-client" in changes[0]["by"], changes[0])
    check(f"{where}: history names the session", bool(changes[0].get("session")), changes[0])
    if "diff" in schemas:
        difference = await call("diff", address="file:/memories/tool.md")
        check(f"{where}: diff shows the line", "+kept" in text(difference), text(difference))
    if "restore" in schemas:
        await call("restore", address="file:/memories/a.md", to=made.structured_content["change"])
        back = await call("read", address="file:/memories/a.md")
        check(f"{where}: restore brings back", back.structured_content["text"] == "one\ntwo\n", back.structured_content)
    if "undo" in schemas:
        plan = await call("undo", dry_run=True)
        check(f"{where}: a planned undo does nothing", not (await mcp.call_tool("read", {"address": "file:/memories/a.md"})).is_error)
        await call("undo")
        gone = await mcp.call_tool("read", {"address": "file:/memories/a.md"})
        check(f"{where}: undo takes back", gone.is_error, text(gone))
    check(f"{where}: every tool was called", called == set(schemas), set(schemas) - called)


async def version(mcp):
    seen = await mcp.call_tool("file_view", {"path": "/memories/a.md"})
    return seen.structured_content["version"][:8]


async def check_errors(mcp, where):
    async def refused(what, name, arguments, part):
        result = await mcp.call_tool(name, arguments)
        check(f"{where}: {what} is an error that the model can read", result.is_error and part in text(result), text(result))

    await refused("an unknown tool", "no_such_tool", {}, "no tool")
    await refused("a missing argument", "file_create", {"text": "x"}, "path")
    await refused("an unknown argument", "file_view", {"pth": "a"}, "pth")
    await refused("a wrong type", "file_insert", {"path": "a", "line": "x", "text": "y"}, "line")
    await refused("an absent file", "file_view", {"path": "/memories/none.md"}, "FILE_NOT_FOUND")
    await refused("a path outside", "file_create", {"path": "/memories/../x", "text": "y"}, "INVALID_PATH")
    await refused("a wrong version", "file_delete", {"path": "/memories/tool.md", "expect": "0" * 32}, "VERSION_MISMATCH")
    await refused("a wrong command of the Memory Tool", "memory", {"command": "view", "path": "/elsewhere"}, "/memories")


async def check_pipelining(mcp, where):
    await mcp.call_tool("file_create", {"path": "/memories/many.md", "text": "start\n"})
    calls = [mcp.call_tool("file_insert", {"path": "/memories/many.md", "line": 1, "text": f"line {n}"}) for n in range(50)]
    results = await asyncio.gather(*calls)
    check(f"{where}: pipelined calls all work", all(not result.is_error for result in results))
    seen = await mcp.call_tool("read", {"address": "file:/memories/many.md"})
    lines = seen.structured_content["text"].splitlines()
    check(f"{where}: none of 50 pipelined changes is lost", len(lines) == 51 and len(set(lines)) == 51, len(lines))


async def check_keys(mcp, where):
    arguments = {"path": "/memories/keyed.md", "text": "once\n", "key": f"key-{where}"}
    first = await mcp.call_tool("file_create", arguments)
    second = await mcp.call_tool("file_create", arguments)
    check(f"{where}: a repeated key is no error", not first.is_error and not second.is_error, text(second))
    check(f"{where}: a repeat says so", second.structured_content.get("replayed") is True, second.structured_content)
    same = [result.structured_content["version"] for result in (first, second)]
    check(f"{where}: a repeat answers as the first time", same[0] == same[1], same)


async def check_cancellation(mcp, where, store):
    """While somebody holds the store's lock one call waits and one waits behind it: that one is cancelled."""
    steps = []

    async def step(progress, total, message):
        steps.append(progress)

    with open(os.path.join(store, ".lock"), "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        first = asyncio.create_task(mcp.call_tool("file_create", {"path": "/memories/waits.md", "text": "kept"}, progress_callback=step))
        await asyncio.sleep(0.3)
        second = asyncio.create_task(mcp.call_tool("file_create", {"path": "/memories/cancelled.md", "text": "never"}))
        await asyncio.sleep(1.2)
        second.cancel()
        await asyncio.wait([second], timeout=5)
        check(f"{where}: a cancelled call is waited for no longer", second.cancelled(), second)
        # What is sent later is heard later: once this is answered, the server knows.
        await mcp.list_tools()
        check(f"{where}: a call that takes long tells its progress", len(steps) >= 2 and steps == sorted(steps), steps)
        check(f"{where}: the other call still waits", not first.done())
    done = await asyncio.wait_for(first, 20)
    check(f"{where}: the other call is done", not done.is_error, text(done))
    gone = await mcp.call_tool("read", {"address": "file:/memories/cancelled.md"})
    check(f"{where}: what was cancelled before it began has not begun", gone.is_error, text(gone))


async def check_mode(memgrove, mode):
    with tempfile.TemporaryDirectory(prefix="memgrove-client-") as folder:
        store = os.path.join(folder, "store")
        subprocess.run([memgrove, "init", store], check=True, capture_output=True)
        async with client(memgrove, store, mode) as mcp:
            expected = "2025-11-25" if mode == "legacy" else "2026-07-28"
            check(f"{mode}: the protocol is {expected}", mcp.protocol_version == expected, mcp.protocol_version)
            # Pinned to a revision, the client does not ask.
            asked = mode != "2026-07-28"
            check(f"{mode}: the server says who it is", not asked or mcp.server_info.name == "memgrove", mcp.server_info)
            check(f"{mode}: the server says how to use it", not asked or "/memories" in mcp.instructions, mcp.instructions)
            listed = await check_tools(mcp, mode)
            await check_calls(mcp, mode, listed)
            await check_errors(mcp, mode)
            await check_pipelining(mcp, mode)
            await check_keys(mcp, mode)
            await check_cancellation(mcp, mode, store)
        for profile, wanted in [("core", "recall"), ("files", "memory")]:
            async with client(memgrove, store, mode, profile) as mcp:
                names = [tool.name for tool in (await mcp.list_tools()).tools]
                check(f"{mode}: the profile {profile} offers {wanted}", wanted in names and len(names) <= 12, names)


def check_the_end(memgrove):
    """The server ends when its input does, and writes nothing but protocol."""
    with tempfile.TemporaryDirectory(prefix="memgrove-client-") as folder:
        subprocess.run([memgrove, "init", folder], check=True, capture_output=True)
        run = [memgrove, "--store", folder, "mcp"]
        process = subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        messages = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "recall", "arguments": {"query": "x" * 9_000_000}}},
            {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "remember", "arguments": {"text": "b"}}},
        ]
        sent = "".join(json.dumps(message) + "\n" for message in messages).encode() + b"not json\n"
        started = time.monotonic()
        out, _ = process.communicate(sent, timeout=30)
        took = time.monotonic() - started
        answers = {answer.get("id"): answer for answer in map(json.loads, out.splitlines())}
        check("the server ends well when its input ends", process.returncode == 0, process.returncode)
        check("the server ends soon", took < 4, took)
        check("a message that is too long is answered", "at most" in json.dumps(answers.get(2, {}).get("error", {})), answers.get(2))
        check("calls before the end are answered", answers.get(3, {}).get("result", {}).get("isError") is False, answers.get(3))
        process = subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.close()
        check("a client that says nothing leaves no process behind", process.wait(timeout=10) == 0)


def main():
    memgrove = os.path.abspath(sys.argv[1])
    for mode in ["legacy", "2026-07-28", "auto"]:
        asyncio.run(check_mode(memgrove, mode))
    check_the_end(memgrove)
    print(f"mcp client: {checks} checks, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
