"""The official Python client against `memgrove serve` at /mcp, with the handshake and without it: tools, profiles,
resources of every shape and their updates, prompts, completions, progress, cancellation.

usage: mcp_http.py MEMGROVE
"""

import asyncio
import fcntl
import os
import subprocess
import sys
import warnings

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import PromptReference, ResourceTemplateReference

from serving import serving

warnings.simplefilter("ignore")
checks, failures = 0, []
URI = "memgrove://file/memories/watched%20file.md"


def check(what, holds, found=None):
    global checks
    checks += 1
    if not holds:
        failures.append(what)
        print(f"FAILED: {what}: {found!r}")


def client(served, http, mode, path="/mcp", **more):
    transport = streamable_http_client(served.base + path, http_client=http)
    return Client(transport, mode=mode, read_timeout_seconds=30, **more)


def elsewhere(memgrove, served, text):
    """Another process changes the watched file."""
    run = [memgrove, "file", "create", "watched file.md", "--text", text]
    if text != "one":
        version = served.post("/api/read", {"address": "file:/memories/watched file.md"})["version"]
        run += ["--expect", version]
    subprocess.run(run, check=True, capture_output=True, cwd=served.home, env={"HOME": served.home, "PATH": "/usr/bin"})


async def heard(updates, what):
    try:
        uri = await asyncio.wait_for(updates.get(), 10)
    except TimeoutError:
        uri = None
    check(what, uri == URI, uri)


def fill(served):
    """One memory of every shape; their resources, each with a word of its content and a change to it."""
    served.post("/api/note_write", {"content": "Silica uses pytest", "path": "projects/silica"})
    served.post("/api/entity_store", {"name": "Ada Lovelace", "type": "person", "observations": ["likes tea"]})
    node = served.post("/api/node_create", {"type": "project", "content": "# Kitchen\n"})
    added = served.post("/api/record_add", {"type": "learning", "content": "set a limit on every wait"})
    record = added["records"][0]["id"]
    check("a node is made", "mem_project_001" in str(node), node)
    return {
        "memgrove://note/projects/silica": ("pytest", "text/markdown", ("note_write", {"content": "Silica needs ruff", "path": "projects/silica", "mode": "append"})),
        "memgrove://entity/person/Ada%20Lovelace": ("likes tea", "text/markdown", ("entity_store", {"name": "Ada Lovelace", "type": "person", "observations": ["sings"]})),
        "memgrove://node/mem_project_001": ("# Kitchen", "text/plain", ("node_update", {"id": "mem_project_001", "properties": {"status": "active"}})),
        f"memgrove://record/{record}": ("every wait", "application/json", ("record_update", {"id": record, "importance": "high"})),
    }


async def check_shapes(served, http, mode, shapes):
    """Every address is a resource: listed, read, completed, and subscribed to."""
    updates = asyncio.Queue()

    async def handle(message):
        if type(message).__name__ == "ResourceUpdatedNotification":
            await updates.put(str(message.params.uri))

    async with client(served, http, mode, message_handler=handle) as mcp:
        listed = [str(resource.uri) for resource in (await mcp.list_resources()).resources]
        for uri, (word, kind, _) in shapes.items():
            check(f"{mode}: {uri} is listed", uri in listed, listed)
            contents = (await mcp.read_resource(uri)).contents[0]
            check(f"{mode}: {uri} is read", word in contents.text and contents.mime_type == kind, contents)
        templates = {template.name: template.uri_template for template in (await mcp.list_resource_templates()).resource_templates}
        check(f"{mode}: every shape has a template", sorted(templates) == ["connection", "entity", "file", "node", "note", "record"], templates)
        for shape, name, begun, wanted in [
            ("note", "path", "proj", "projects/silica"), ("node", "id", "mem_", "mem_project_001"),
            ("entity", "type", "per", "person"), ("entity", "name", "Ada", "Ada Lovelace"),
        ]:
            reference = ResourceTemplateReference(type="ref/resource", uri=templates[shape])
            values = (await mcp.complete(reference, {"name": name, "value": begun})).completion.values
            check(f"{mode}: the {name} of a {shape} is completed", values == [wanted], values)
        if mode == "legacy":
            for uri, (_, _, change) in shapes.items():
                await mcp.subscribe_resource(uri)
                served.post(f"/api/{change[0]}", change[1])
                try:
                    told = await asyncio.wait_for(updates.get(), 10)
                except TimeoutError:
                    told = None
                check(f"{mode}: a change of {uri} is told", told == uri, told)
                await mcp.unsubscribe_resource(uri)


async def check_cancelled(served, http, mode):
    """A call that waits for the store's lock tells its progress, and is cancelled; the connection goes on."""
    steps = []

    async def step(progress, total, message):
        steps.append(progress)

    async with client(served, http, mode, "/mcp?tools=all") as mcp:
        with open(os.path.join(served.home, ".memgrove/.lock"), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            arguments = {"path": f"/memories/cancelled-{mode}.md", "text": "x"}
            call = asyncio.create_task(mcp.call_tool("file_create", arguments, progress_callback=step))
            await asyncio.sleep(1.4)
            call.cancel()
            await asyncio.wait([call], timeout=5)
            check(f"{mode}: a cancelled call is waited for no longer", call.cancelled(), call)
            check(f"{mode}: a call that takes long tells its progress", len(steps) >= 2, steps)
        again = await asyncio.wait_for(mcp.call_tool("file_view", {"path": "/memories"}), 20)
        check(f"{mode}: the connection goes on", not again.is_error, again)


async def check_updates(memgrove, served, http, mode):
    updates = asyncio.Queue()

    async def handle(message):
        params = getattr(message, "params", None)
        if type(message).__name__ == "ResourceUpdatedNotification":
            await updates.put(str(params.uri))

    async with client(served, http, mode, message_handler=handle) as mcp:
        if mode == "legacy":
            await mcp.subscribe_resource(URI)
            elsewhere(memgrove, served, f"from outside, {mode}")
            await heard(updates, f"{mode}: a change of another process is told")
            await mcp.unsubscribe_resource(URI)
            return
        async with mcp.listen(resource_subscriptions=[URI]) as subscription:
            elsewhere(memgrove, served, f"from outside, {mode}")
            event = await asyncio.wait_for(anext(subscription), 10)
            check(f"{mode}: a change of another process is told", str(event.uri) == URI, event)


async def check_mode(memgrove, served, mode, shapes):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {served.token}"}, timeout=30) as http:
        async with client(served, http, mode) as mcp:
            names = [tool.name for tool in (await mcp.list_tools()).tools]
            check(f"{mode}: the core tools are listed", "recall" in names and len(names) <= 14, names)
            steps = []

            async def step(progress, total, message):
                steps.append(progress)

            found = await mcp.call_tool("recall", {"query": "one"}, progress_callback=step)
            check(f"{mode}: a tool is called", found.is_error is False, found)
            check(f"{mode}: progress is told", steps and steps[0] == 0, steps)
            resources = (await mcp.list_resources()).resources
            check(f"{mode}: memories are resources", URI in [str(resource.uri) for resource in resources], resources)
            contents = (await mcp.read_resource(URI)).contents
            check(f"{mode}: a resource is read", contents[0].text and contents[0].mime_type == "text/markdown", contents)
            templates = (await mcp.list_resource_templates()).resource_templates
            file = next(template for template in templates if template.name == "file")
            reference = ResourceTemplateReference(type="ref/resource", uri=file.uri_template)
            values = (await mcp.complete(reference, {"name": "path", "value": "watch"})).completion.values
            check(f"{mode}: paths are completed", values == ["watched file.md"], values)
            nothing = (await mcp.complete(PromptReference(type="ref/prompt", name="start"), {"name": "topic", "value": ""}))
            check(f"{mode}: prompts need no completion", nothing.completion.values == [], nothing)
            prompts = [prompt.name for prompt in (await mcp.list_prompts()).prompts]
            check(f"{mode}: the prompts are listed", prompts == ["start", "remember", "tidy"], prompts)
            for name, arguments in [("start", {"topic": "one"}), ("remember", {"what": "tea"}), ("tidy", {})]:
                told = (await mcp.get_prompt(name, arguments)).messages[0].content.text
                check(f"{mode}: the prompt {name}", ("tea" if name == "remember" else "watched file.md") in told, told)
        async with client(served, http, mode, "/mcp?tools=kg") as mcp:
            tools = (await mcp.list_tools()).tools
            names = [tool.name for tool in tools]
            check(f"{mode}: the profile kg", len(names) == 9 and "create_entities" in names, names)
            execution = [tool.model_dump(by_alias=True).get("execution") for tool in tools]
            check(f"{mode}: its listing says what the server says of execution", execution == [{"taskSupport": "forbidden"}] * 9, execution)
            made = await mcp.call_tool("create_entities", {"entities": [{"name": mode, "entityType": "test", "observations": []}]})
            check(f"{mode}: the graph is written", made.structured_content["entities"][0]["name"] == mode, made)
        await check_updates(memgrove, served, http, mode)
        await check_shapes(served, http, mode, shapes)
        await check_cancelled(served, http, mode)


def main():
    memgrove = os.path.abspath(sys.argv[1])
    with serving(memgrove) as served:
        elsewhere(memgrove, served, "one")
        shapes = fill(served)
        for mode in ["legacy", "2026-07-28"]:
            asyncio.run(check_mode(memgrove, served, mode, shapes))
    print(f"mcp over http: {checks} checks, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
