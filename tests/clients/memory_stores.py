"""Anthropic's official Python SDK against `memgrove serve`: memory stores, memories, versions, redaction.

usage: memory_stores.py MEMGROVE CLIENTS
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile

import anthropic

from serving import serving

checks, failures = 0, []
SECRET = "sk-ant-the-secret-of-this-test"


def check(what, holds, details=""):
    global checks
    checks += 1
    if not holds:
        failures.append(what)
        print(f"FAILED {what}: {details}")


def refused(what, status, kind, call):
    """The call fails with this status and this type of error."""
    try:
        call()
    except anthropic.APIStatusError as error:
        found = error.body.get("error", {}).get("type") if isinstance(error.body, dict) else error.body
        check(what, (error.status_code, found) == (status, kind), (error.status_code, error.body))
    else:
        check(what, False, "it was not refused")


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def check_stores(stores):
    made = stores.create(name="Team Notes", description="what the team knows", metadata={"user": "u1"})
    check("a store is made", made.id.startswith("memstore_") and made.type == "memory_store" and made.archived_at is None, made)
    check("a store is found", stores.retrieve(made.id) == made)
    changed = stores.update(made.id, name="Notes", metadata={"user": None, "team": "x"})
    check("a store is changed", (changed.name, changed.metadata, changed.description) == ("Notes", {"team": "x"}, made.description), changed)
    others = [stores.create(name="Team Notes").id for _ in range(4)]
    listed = [store.id for store in stores.list(limit=2)]
    check("stores are listed in pages", sorted(listed) == sorted([made.id, *others]), listed)
    first = stores.list(limit=2)
    check("a page has its size and a next one", len(first.data) == 2 and first.next_page, first)
    archived = stores.archive(others[0])
    check("a store is archived", archived.archived_at is not None, archived)
    check("archived stores are left out", others[0] not in [store.id for store in stores.list()])
    check("unless they are asked for", others[0] in [store.id for store in stores.list(include_archived=True)])
    refused("an archived store takes no memory", 400, "invalid_request_error",
            lambda: stores.memories.create(others[0], path="/a.md", content="x"))
    gone = stores.delete(others[1])
    check("a store is deleted", (gone.type, gone.id) == ("memory_store_deleted", others[1]), gone)
    refused("a deleted store is gone", 404, "not_found_error", lambda: stores.retrieve(others[1]))
    refused("an unknown store is not found", 404, "not_found_error", lambda: stores.retrieve("memstore_../x"))
    refused("a name is needed", 400, "invalid_request_error", lambda: stores.create(name=""))
    refused("metadata has limits", 400, "invalid_request_error",
            lambda: stores.create(name="x", metadata={str(key): "" for key in range(17)}))
    return made.id


def check_memories(memories, store):
    made = memories.create(store, path="/a.md", content="héllo\n")
    check("a memory is made", made.type == "memory" and made.id.startswith("mem_") and made.path == "/a.md", made)
    check("basic leaves content out", made.content is None)
    check("hash and size are those of the bytes", (made.content_sha256, made.content_size_bytes) == (sha256("héllo\n"), 7), made)
    full = memories.retrieve(made.id, memory_store_id=store)
    check("a memory is read whole", (full.content, full.memory_version_id) == ("héllo\n", made.memory_version_id), full)
    check("or without content", memories.retrieve(made.id, memory_store_id=store, view="basic").content is None)
    refused("a path is taken once", 409, "memory_path_conflict_error", lambda: memories.create(store, path="/a.md", content=""))
    refused("a file is no folder", 409, "memory_path_conflict_error", lambda: memories.create(store, path="/a.md/b.md", content=""))
    old = made.content_sha256
    update = lambda **given: memories.update(made.id, memory_store_id=store, **given)
    changed = update(content="two\n", precondition={"type": "content_sha256", "content_sha256": old}, view="full")
    check("a memory is changed", changed.content == "two\n" and changed.id == made.id and changed.memory_version_id != made.memory_version_id, changed)
    check("times go on", changed.created_at == made.created_at and changed.updated_at > made.updated_at, changed)
    refused("a precondition that does not hold", 409, "memory_precondition_failed_error",
            lambda: update(content="three\n", precondition={"type": "content_sha256", "content_sha256": old}))
    moved = update(path="/deep/er/b.md")
    check("a memory is renamed and keeps its id", (moved.id, moved.path, moved.content_sha256) == (made.id, "/deep/er/b.md", sha256("two\n")), moved)
    both = update(path="/deep/c.md", content="four\n")
    check("renamed and changed at once", (both.path, both.content_sha256) == ("/deep/c.md", sha256("four\n")), both)
    refused("deleting something else than expected", 409, "memory_precondition_failed_error",
            lambda: memories.delete(made.id, memory_store_id=store, expected_content_sha256=old))
    gone = memories.delete(made.id, memory_store_id=store, expected_content_sha256=both.content_sha256)
    check("a memory is deleted", (gone.type, gone.id) == ("memory_deleted", made.id), gone)
    refused("a deleted memory is gone", 404, "not_found_error", lambda: memories.retrieve(made.id, memory_store_id=store))
    again = memories.create(store, path="/deep/c.md", content="")
    check("a new memory at an old place is another one", again.id != made.id and again.content_size_bytes == 0, again)
    memories.delete(again.id, memory_store_id=store)
    check_limits(memories, store)
    return made.id


def check_limits(memories, store):
    most = memories.create(store, path="/most.md", content="x" * 102_400)
    check("the largest content", most.content_size_bytes == 102_400, most)
    refused("a content that is too large", 400, "invalid_request_error",
            lambda: memories.create(store, path="/more.md", content="x" * 102_401))
    bad = ["a.md", "/", "/a//b", "/a/./b", "/a/../b", "/a\nb", "/a\u2028b", "/a\u200bb", "/e\u0301.md",
           "/" + "/".join("a" * 21), "/" + "x" * 1_024, "/../../elsewhere/canary",
           *[f"/a{sign}b" for sign in "\u0600\u070f\u2066\ufff9\U000110bd\U0001d173\U000e0001"]]
    for path in bad:
        refused(f"the path {path[:30]!r}", 400, "invalid_request_error", lambda: memories.create(store, path=path, content=""))
    memories.delete(most.id, memory_store_id=store)


def check_lists(memories, store):
    paths = ["/notes/a.md", "/notes/b/c.md", "/notes/b/d/e.md", "/notes-archive/f.md", *[f"/many/{number:02}.md" for number in range(25)]]
    for path in paths:
        memories.create(store, path=path, content=path)
    listed = [item.path for item in memories.list(store, limit=10)]
    check("every memory is listed once, in pages", listed == sorted(paths), listed)
    listed = [item.path for item in memories.list(store, path_prefix="/notes/")]
    check("a prefix takes whole segments", listed == sorted(path for path in paths if path.startswith("/notes/")), listed)
    shallow = [(item.type, item.path) for item in memories.list(store, depth=1)]
    wanted = [("memory_prefix", "/many/"), ("memory_prefix", "/notes-archive/"), ("memory_prefix", "/notes/")]
    check("depth groups what is deeper", sorted(shallow) == wanted, shallow)
    shallow = [(item.type, item.path) for item in memories.list(store, path_prefix="/notes/", depth=1)]
    check("depth beneath a prefix", shallow == [("memory", "/notes/a.md"), ("memory_prefix", "/notes/b/")], shallow)
    full = memories.list(store, view="full", limit=100)
    check("full pages are small and hold content", len(full.data) == 20 and all(item.content == item.path for item in full.data), full)
    first = memories.list(store, limit=10)
    memories.delete(first.data[-1].id, memory_store_id=store)
    rest = memories.list(store, limit=100, page=first.next_page)
    listed = [item.path for item in first.data + rest.data]
    check("a page that ended with what is gone is followed by the next", listed == sorted(paths), listed)
    refused("a limit out of range", 400, "invalid_request_error", lambda: memories.list(store, limit=101))
    refused("a prefix without its slash", 400, "invalid_request_error", lambda: memories.list(store, path_prefix="/notes"))


def check_versions(versions, store, memory):
    all_of = list(versions.list(store, memory_id=memory, limit=2))
    check("every change is a version, newest first", [version.operation for version in all_of] ==
          ["deleted", "modified", "modified", "modified", "created"], all_of)
    check("who made it is told", all(version.created_by.type == "api_actor" for version in all_of), all_of)
    first = versions.retrieve(all_of[-1].id, memory_store_id=store)
    check("what a version held", (first.content, first.path, first.content_sha256) == ("héllo\n", "/a.md", sha256("héllo\n")), first)
    gone = all_of[0]
    check("a deletion holds nothing", (gone.content_sha256, gone.path) == (None, "/deep/c.md"), gone)
    only = [version.operation for version in versions.list(store, memory_id=memory, operation="created")]
    check("operations can be chosen", only == ["created"], only)
    late = list(versions.list(store, memory_id=memory, created_at_gte=all_of[1].created_at))
    check("times can be chosen", [version.id for version in late] == [version.id for version in all_of[:2]], late)


def holders(home):
    """The files that hold the secret."""
    found = []
    for folder, _, names in os.walk(home):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                if SECRET.encode() in file.read():
                    found.append(os.path.join(folder, name))
    return found


def check_redaction(client, store, home):
    memories, versions = client.beta.memory_stores.memories, client.beta.memory_stores.memory_versions
    made = memories.create(store, path="/secret.md", content=f"before {SECRET} after\n")
    refused("what a memory holds now is not redacted", 409, "conflict_error",
            lambda: versions.redact(made.memory_version_id, memory_store_id=store))
    memories.update(made.id, memory_store_id=store, content="clean\n")
    check("the secret is in the journal", holders(home) != [], "this test can fail")
    redacted = versions.redact(made.memory_version_id, memory_store_id=store)
    nothing = (redacted.content, redacted.path, redacted.content_sha256, redacted.content_size_bytes)
    check("a redacted version holds nothing", redacted.redacted_at is not None and nothing == (None,) * 4, redacted)
    check("who redacted it is told", redacted.redacted_by is not None and redacted.redacted_by.type == "api_actor", redacted)
    check("no file of this machine holds the secret", holders(home) == [], holders(home))
    again = versions.retrieve(made.memory_version_id, memory_store_id=store)
    check("a redacted version can be retrieved", again.redacted_at == redacted.redacted_at and again.operation == "created", again)
    check("redacting again is no error", versions.redact(made.memory_version_id, memory_store_id=store) == redacted)
    check("the memory is as it was", memories.retrieve(made.id, memory_store_id=store).content == "clean\n")


def check_redaction_by_hand(stores, store, home):
    """What somebody wrote into a file by hand is in the journal once the memory is changed: a version like the others."""
    memories, versions = stores.memories, stores.memory_versions
    made = memories.create(store, path="/hand.md", content="first\n")
    [file] = [os.path.join(folder, "hand.md") for folder, _, names in os.walk(home) if "hand.md" in names]
    with open(file, "w") as out:
        out.write(f"by hand {SECRET}\n")
    memories.update(made.id, memory_store_id=store, content="clean\n")
    found = list(versions.list(store, memory_id=made.id, view="full"))
    held = [version.content for version in found]
    check("an edit by hand is a version", held == ["clean\n", f"by hand {SECRET}\n", "first\n"], held)
    check("and has no author", found[1].created_by is None and found[0].created_by is not None, found)
    check("it is in the journal", holders(home) != [], "this test can fail")
    redacted = versions.redact(found[1].id, memory_store_id=store)
    check("it can be redacted", redacted.redacted_at is not None and holders(home) == [], holders(home))


def check_same_name(stores, home):
    """A memory store that takes the name of a deleted one, and what is left of the deleted one."""
    memories, versions = stores.memories, stores.memory_versions
    old = stores.create(name="twice").id
    made = memories.create(old, path="/old.md", content=f"old {SECRET}\n")
    key = {"Idempotency-Key": "delete it once"}
    gone = memories.delete(made.id, memory_store_id=old, extra_headers=key)
    check("a deletion that is sent again is answered again", memories.delete(made.id, memory_store_id=old, extra_headers=key) == gone)
    stores.delete(old)
    new = stores.create(name="twice").id
    memories.create(new, path="/new.md", content="new\n")
    seen = [version.path for version in versions.list(new)]
    check("a new memory store does not inherit the past of another", seen == ["/new.md"], seen)
    left = [version.path for version in versions.list(old)]
    check("a deleted one keeps its own", left == ["/old.md", "/old.md"], left)
    change = made.memory_version_id.removeprefix("memver_").split("x")[0]
    taken = {"Idempotency-Key": f"redaction of {change} files/twice/old.md"}
    memories.create(new, path="/keyed.md", content="x", extra_headers=taken)
    redacted = versions.redact(made.memory_version_id, memory_store_id=old)
    check("its versions can be redacted, whatever keys are taken", redacted.redacted_at is not None and holders(home) == [], redacted)


def check_backend(memgrove, served, stores):
    """A memory store as the storage of another memgrove, and what the SDK sees of it."""
    store = stores.create(name="as a backend").id
    memories = stores.memories
    with tempfile.TemporaryDirectory(prefix="memgrove-client-") as home:
        environment = {"HOME": home, "PATH": os.environ["PATH"], "MEMGROVE_STORE": f"anthropic://{store}",
                       "ANTHROPIC_API_KEY": served.token, "ANTHROPIC_BASE_URL": served.base}

        def run(*arguments, code=0, text="", **variables):
            ran = subprocess.run([memgrove, *arguments], env={**environment, **variables}, cwd=home, capture_output=True,
                                 input=text, encoding="utf-8")
            check(f"memgrove {' '.join(arguments)[:60]} ends with {code}", ran.returncode == code, ran)
            return ran.stdout + ran.stderr

        def held(path):
            found = [memory for memory in memories.list(store, limit=100) if memory.path == path]
            return memories.retrieve(found[0].id, memory_store_id=store) if found else None

        run("file", "create", "/memories/plan.md", text="# Plan\n")
        check("the SDK sees what the backend wrote", held("/files/plan.md").content == "# Plan\n", held("/files/plan.md"))
        made = memories.create(store, path="/files/deep/sdk.md", content="made by the SDK\n")
        check("the backend sees what the SDK made", "made by the SDK" in run("read", "/memories/deep/sdk.md"))
        check("and lists it", "sdk.md" in run("file", "view", "/memories/deep"))
        memories.update(made.id, memory_store_id=store, content="changed by the SDK\n")
        check("and what it changed", "changed by the SDK" in run("read", "/memories/deep/sdk.md"))
        check("the history has both", run("history", "/memories/deep/sdk.md").count("file_edit") == 2)
        plan = held("/files/plan.md")
        memories.update(plan.id, memory_store_id=store, content="another plan\n")
        memories.update(plan.id, memory_store_id=store, content="# Plan\n")
        check("what the SDK put back stays", "# Plan" in run("read", "/memories/plan.md"))
        memories.delete(made.id, memory_store_id=store)
        run("read", "/memories/deep/sdk.md", code=3)
        check("what the SDK deleted stays away", held("/files/deep/sdk.md") is None)
        run("record", "add", "two views of one store")
        records = [held(memory.path).content for memory in memories.list(store, limit=100, path_prefix="/records/")]
        check("records are plain memories", any("two views of one store" in content for content in records), records)
        own = [memory.path for memory in memories.list(store, limit=100, path_prefix="/.memgrove/")]
        check("few memories are the backend's own", own == ["/.memgrove/log/head"], own)
        check("a memory has its limit", "at most 102400" in run("file", "create", "/memories/large.md", code=6, text="x" * 102_401))
        check("and holds text alone", held("/files/large.md") is None)
        check("the status tells", f"store anthropic://{store}" in run("status"))
        check("and so do the backends", "anthropic" in run("backends"))
        run("copy", "--to", os.path.join(home, "copied"))
        check("a copy comes out", "# Plan" in run("--store", os.path.join(home, "copied"), "read", "/memories/plan.md"))
        other = stores.create(name="a copy").id
        run("copy", "--from", os.path.join(home, "copied"), "--to", f"anthropic://{other}/team")
        check("a copy goes in", any(memory.path == "/team/files/plan.md" for memory in memories.list(other, limit=100)))
        check("a wrong key is told", "ANTHROPIC_API_KEY" in run("file", "view", code=10, ANTHROPIC_API_KEY="wrong"))
        check("an absent store is told", "does not exist" in run("--store", "anthropic://memstore_nowhere", "file", "view", code=3))
        check("a silent service is told", "cannot be reached" in run("file", "view", code=8, ANTHROPIC_BASE_URL="http://127.0.0.1:9"))


def main():
    memgrove, clients = map(os.path.abspath, sys.argv[1:3])
    with serving(memgrove) as served:
        client = anthropic.Anthropic(api_key=served.token, base_url=served.base, max_retries=0)
        stores = client.beta.memory_stores
        store = check_stores(stores)
        memory = check_memories(stores.memories, store)
        check_versions(stores.memory_versions, store, memory)
        check_redaction(client, store, served.home)
        check_redaction_by_hand(stores, store, served.home)
        check_same_name(stores, served.home)
        listed = stores.create(name="lists").id
        check_lists(stores.memories, listed)
        check_backend(memgrove, served, stores)
        wrong = anthropic.Anthropic(api_key="wrong", base_url=served.base, max_retries=0)
        refused("a wrong key", 401, "authentication_error", lambda: wrong.beta.memory_stores.list())
        found = served.post("/api/find", {"text": "/notes/b/d/e.md"})
        check("the verbs see the same memories", found["hits"][0]["address"] == "file:/memories/lists/notes/b/d/e.md", found)
        here = os.path.dirname(os.path.abspath(__file__))
        node = [os.path.join(clients, "node_modules/node/bin/node"), os.path.join(here, "memory_stores.mjs")]
        done = subprocess.run([*node, clients, served.base, served.token], capture_output=True, text=True, timeout=60)
        check("the TypeScript SDK agrees", done.returncode == 0, done.stdout + done.stderr)
        print(done.stdout, end="")
    with serving(memgrove, "--read-only") as served:
        client = anthropic.Anthropic(api_key=served.token, base_url=served.base, max_retries=0)
        check("a read-only server lists", list(client.beta.memory_stores.list()) == [])
        refused("and changes nothing", 403, "permission_error", lambda: client.beta.memory_stores.create(name="x"))
    print(f"memory stores: {checks} checks, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
