"""The official Python client against `memgrove serve` at /mcp, with the handshake and without it: tools, profiles,
resources and their updates, prompts, completions, progress.

usage: mcp_http.py MEMGROVE
"""

import asyncio
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


async def check_mode(memgrove, served, mode):
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
            names = [tool.name for tool in (await mcp.list_tools()).tools]
            check(f"{mode}: the profile kg", len(names) == 9 and "create_entities" in names, names)
            made = await mcp.call_tool("create_entities", {"entities": [{"name": mode, "entityType": "test", "observations": []}]})
            check(f"{mode}: the graph is written", made.structured_content["entities"][0]["name"] == mode, made)
        await check_updates(memgrove, served, http, mode)


def main():
    memgrove = os.path.abspath(sys.argv[1])
    with serving(memgrove) as served:
        elsewhere(memgrove, served, "one")
        for mode in ["legacy", "2026-07-28"]:
            asyncio.run(check_mode(memgrove, served, mode))
    print(f"mcp over http: {checks} checks, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
