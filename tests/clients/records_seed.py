"""An independent program on a folder of records: append, update and delete as the format's
pseudocode says, with `fcntl.flock` on `.lock`, which it deletes when it is done.

Usage: records_seed.py FOLDER ROUNDS

Adds ROUNDS records to core_memories.jsonl, updates every second one and deletes every tenth, and
prints what must be in the folder at the end: one `id content` a line.
"""

import contextlib
import fcntl
import json
import os
import sys
import uuid
from datetime import datetime, timezone
from pathlib import Path


@contextlib.contextmanager
def file_lock(path):
    fd = open(path, "w")
    fcntl.flock(fd, fcntl.LOCK_EX)
    fd.write(f"{os.getpid()} {now()}\n")
    fd.flush()
    try:
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)
        fd.close()
        os.remove(path)


def now():
    return datetime.now(timezone.utc).isoformat()


def append_memory(memory, filepath):
    with file_lock(filepath.parent / ".lock"):
        json_line = json.dumps(memory, separators=(",", ":"))
        with open(filepath, "a", encoding="utf-8") as f:
            f.write(json_line + "\n")


def rewrite(filepath, change):
    with file_lock(filepath.parent / ".lock"):
        with open(filepath, "r", encoding="utf-8") as f:
            memories = [json.loads(line) for line in f if line.strip()]
        temp = filepath.with_suffix(".jsonl.tmp")
        with open(temp, "w", encoding="utf-8") as f:
            for memory in change(memories):
                f.write(json.dumps(memory, separators=(",", ":")) + "\n")
        os.replace(temp, filepath)


def main():
    folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
    filepath = folder / "core_memories.jsonl"
    kept = {}
    for at in range(rounds):
        memory_id = str(uuid.uuid4())
        memory = {
            "id": memory_id, "type": "core", "content": f"python {at}", "category": None,
            "created_at": now(), "updated_at": now(), "accessed_at": now(), "access_count": 0,
            "tags": ["python"], "importance": "low", "archived": False,
        }
        append_memory(memory, filepath)
        kept[memory_id] = memory["content"]
        if at % 2 == 0:
            def update(memories, memory_id=memory_id, at=at):
                for memory in memories:
                    if memory["id"] == memory_id:
                        memory["content"] = f"python {at} updated"
                return memories
            rewrite(filepath, update)
            kept[memory_id] = f"python {at} updated"
        if at % 10 == 9:
            rewrite(filepath, lambda memories, i=memory_id: [m for m in memories if m["id"] != i])
            del kept[memory_id]
    for memory_id, content in kept.items():
        print(memory_id, content)


if __name__ == "__main__":
    main()
