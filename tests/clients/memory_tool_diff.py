#!/usr/bin/env python3
"""Compares `memgrove memory-tool` with the Memory Tool of Anthropic's Python SDK, command by command.

Usage: memory_tool_diff.py PATH-TO-MEMGROVE [--sequences N] [--seed N] [--verbose]

Both get the same commands on a temporary folder of their own. Every answer must have the same text and
the same is_error, and at the end of each sequence both folders must hold the same bytes under the same
names with the same modes. Where memgrove differs on purpose, the difference has a name in DELIBERATE and
an expectation of its own; anything else is a failure.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import stat
import subprocess
import sys
import tempfile

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool

RAW = "a raw runtime error of the SDK is a sentence here"
LEFT = "what a failed command of the SDK left behind is not left here"


class Reference:
    """The SDK's tool on a folder."""

    def __init__(self, base):
        self.tool = BetaLocalFilesystemMemoryTool(base_path=str(base))
        self.root = base / "memories"

    def call(self, command):
        """The answer: text, is_error, and whether the error is one that the SDK meant to give."""
        before = set(self.root.rglob("*"))
        try:
            return self.tool.call(command), False, True
        except ToolError as error:
            answer = str(error.content), True, True
        except Exception as error:  # what the SDK lets through is part of what is compared
            answer = repr(error), True, False
        left = sorted(set(self.root.rglob("*")) - before, reverse=True)
        for path in left:
            path.rmdir() if path.is_dir() else path.unlink()
        self.left = bool(left)
        return answer


class Memgrove:
    """The program on a folder: one command per line in, one answer per line out."""

    def __init__(self, program, root, home):
        arguments = [program, "memory-tool", "--memories", str(root)]
        private = {name: str(home / name) for name in ["HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"]}
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        encoding="utf-8", env=os.environ | private)

    def call(self, command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"memgrove ended at {command}")
        answer = json.loads(line)
        return answer["content"], answer["is_error"]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.read()
        if self.process.wait(timeout=60) != 0:
            raise SystemExit(f"memgrove ended with {self.process.returncode}")


def tree(root):
    """Everything beneath a folder: mode and bytes by name."""
    found = {}
    for folder, folders, files in os.walk(root):
        here = os.path.relpath(folder, root)
        for name in folders + files:
            path = os.path.join(folder, name)
            mode = stat.S_IMODE(os.lstat(path).st_mode)
            content = None if os.path.isdir(path) else pathlib.Path(path).read_bytes()
            found[os.path.normpath(os.path.join(here, name))] = (oct(mode), content)
    return found


# ---------------------------------------------------------------------------------------------- commands

def view(path, view_range=None):
    command = {"command": "view", "path": path}
    return command if view_range is None else command | {"view_range": view_range}


def create(path, text):
    return {"command": "create", "path": path, "file_text": text}


def replace(path, old, new):
    return {"command": "str_replace", "path": path, "old_str": old, "new_str": new}


def insert(path, line, text):
    return {"command": "insert", "path": path, "insert_line": line, "insert_text": text}


def delete(path):
    return {"command": "delete", "path": path}


def rename(old, new):
    return {"command": "rename", "old_path": old, "new_path": new}


M = "/memories"
A = "/memories/a.md"


def fixed_sequences():
    """Sequences for what each command does at its edges."""
    yield [view(M), view(M + "/"), create(A, "x"), view(M), view(M + "/"), view(A), delete(A), view(M)]
    for text in ["", "\n", "x", "x\n", "x\n\n", "\n\n\n", "a\nb\nc", "a\r\nb\r\n", "a\rb", "\ufeffa\nb\n", "é\n日本\n🦀",
                 "e\u0301", "a\0b\n", "\ta\t\n", "a\u2028b\u0085c\x0bd\x0ce\n", "1\n" * 12, "x" * 900]:
        yield [create(A, text), view(A)] + [view(A, r) for r in RANGES]
        count = len(text.split("\n"))
        for line in range(-2, count + 2):
            yield [create(A, text), insert(A, line, "new"), view(A), insert(A, line, "two\nlines\n"), view(A)]
        for new in ["", "\n", "\n\n\n", "x\r\n", "\r\n\n", " ", "a\n\nb\n\n"]:
            yield [create(A, text), insert(A, 0, new), view(A), insert(A, 1, new), view(A)]
        for old, new in [("", ""), ("", "new"), ("a", "b"), ("x", ""), ("\n", "\r\n"), ("\n", ""), ("1\n1", "2"),
                         ("aa", "b"), ("é", "e"), ("nope", "x"), (text, "all"), ("b\n", "c\nd\ne\nf\n"), ("`", "'")]:
            yield [create(A, text), replace(A, old, new), view(A)]
    for text in ["aaa", "aaaa", "ababab", "x\nx\nx", "a\na\nb\na", "日日日", "aXbXc\nX\n"]:
        yield [create(A, text)] + [replace(A, old, "y") for old in ["aa", "aba", "x", "a", "日日", "日", "X", "x\nx"]]
    numbers = "\n".join(str(n) for n in range(1, 21))
    for n in range(1, 21):
        yield [create(A, numbers), replace(A, f"{n}\n" if n < 20 else "20", "new\n"), view(A),
               replace(A, "new\n", "a\nb\nc\nd\n"), view(A, [n, n + 2])]
    yield [create(A, "x"), create(A, "y"), create(M, "y"), create(M + "/", "y"), create(M + "/d/e", "z"),
           create(M + "/d", "y"), create(M + "/d/", "y"), create(M + "/d/e/", "y"), view(M + "/d/e/"), view(M)]
    yield [create(M + "/z/", "a file"), view(M + "/z"), view(M + "/z/"), rename(M + "/z/", M + "/y/"), view(M)]
    yield [create(M + "/a/b/c/d/e.md", "deep"), view(M), view(M + "/a"), view(M + "/a/b/c"), view(M + "/a/b/c/d"),
           view(M + "/a/b/"), view(M + "//a"), view(M + "/./a/./b"), view(M + "/a/b/.."), view(M + "/a/../a/b")]
    yield [create(M + "/.hidden", "x"), create(M + "/.dir/x", "x"), create(M + "/a/.b/c", "x"), view(M),
           view(M + "/.dir"), view(M + "/.hidden"), view(M + "/a"), delete(M + "/.dir"), view(M + "/.dir")]
    yield [create(M + "/node_modules/x/y", "x"), create(M + "/a/node_modules/z", "x"), view(M), view(M + "/a")]
    yield [create(M + "/" + name, name) for name in ["b", "B2", "a-b", "a.b", "a b", "ab", "a_b", "é", "日本", "z", "Z1",
                                                    "a/b.md", "0", "10", "9", "ß", "~", "-", "a..b", "..."[:2] + "x"]] \
        + [view(M), view(M + "/a b"), view(M + "/é")]
    for size in [0, 1, 1023, 1024, 1025, 1075, 1076, 1126, 1127, 1280, 1536, 2047, 2048, 10239, 10240, 1048575, 1048576,
                 1048577, 1572864]:
        yield [create(A, "x" * size), view(M)]
    for path in ["", "/", "memories", "/memorie", "/Memories/x", " /memories", "//memories/x", "\\memories", "/elsewhere/x",
                 "/memories/..", "/memories/../x", "/memories/a/../..", "/memories/../..", "/memories/a/../../b",
                 "/memories/./../x", "/memories//../x", "/memories/a.md/../../x"]:
        yield [create(A, "x"), view(path), create(path, "x"), replace(path, "x", "y"), insert(path, 0, "x"), delete(path),
               rename(path, M + "/b"), rename(A, path), view(M)]
    for path in [M, M + "/", M + "/.", M + "/d/..", M + "/../memories", M + "/../memories/d"]:
        yield [create(M + "/d/x", "x"), view(path), create(path, "x"), replace(path, "x", "y"), insert(path, 0, "x"),
               delete(path), rename(path, M + "/b"), rename(M + "/d/x", path), view(M)]
    for path in ["/nope", "/nope/deep", "/a.md/beneath", "/d/nope", "/d/../nope"]:
        yield [create(A, "x"), create(M + "/d/x", "x"), view(M + path), replace(M + path, "a", "b"),
               insert(M + path, 0, "x"), delete(M + path), view(M)]
    yield [create(A, "x"), create(M + "/d/x", "x"), replace(M + "/d", "a", "b"), insert(M + "/d", 0, "b"),
           delete(M + "/d"), view(M + "/d"), delete(M + "/d"), view(M)]
    yield [create(A, "a"), create(M + "/b", "b"), create(M + "/d/x", "x"), rename(A, M + "/b"), rename(A, A),
           rename(A, M + "/d"), rename(M + "/nope", M + "/b"), rename(M + "/nope", M + "/new/folder/c"), view(M),
           rename(A, M + "/new/folder/c"), rename(M + "/d", M + "/new/d"), view(M), rename(M + "/new", M + "/old"),
           view(M), view(M + "/old/d/x"), rename(M, M + "/x"), rename(M + "/nope", M), rename(M, "/x"), rename("/x", M)]
    yield [create(M + "/x/y/z", "1"), delete(M + "/x/y/z"), view(M), delete(M + "/x"), view(M), create(M + "/x", "2"),
           view(M)]
    yield [view(A, r) for r in RANGES] + [create(M + "/d/x", "x")] + [view(M + "/d", r) for r in RANGES]
    # Parameters that are of another type and mean the same.
    yield [create(A, "1\n2\n3"), insert(A, "1", "x"), insert(A, 2.0, "x"), view(A, ["1", "2"]), view(A, [1.0, 2.0]),
           view(A, []), view(A, [1]), view(A, [1, 2, 3]), view(A) | {"view_range": None}, view(A) | {"more": 1},
           insert(A, 10 ** 15, "x"), insert(A, -10 ** 15, "x"), view(A, [10 ** 15, 10 ** 16]), view(A, [1, -10 ** 15]),
           insert(A, 10 ** 30, "x"), insert(A, -10 ** 30, "x"), insert(A, 99.0, "x"), insert(A, " 1 ", "x"),
           insert(A, "1.0", "x"), insert(A, True, "x"), insert(A, False, "x"), view(A, [1, None]), view(A, [None, 2]),
           view(A, [True, 2]), view(A, [1, True]), view(A, [1, 10 ** 30])]
    for nothing in [0, False, "", {}, 0.0, []]:
        yield [create(A, "1\n2"), view(A) | {"view_range": nothing}]
    # A range is nothing to a folder, and a path is looked at before other parameters are.
    for odd in ["x", 3, [1, "x"], {"a": 1}]:
        yield [create(A, "x"), view(M, odd), view(M + "/nope", odd), view("/bad", odd)]
    for path in ["/bad", M, A, M + "/nope", M + "/../x"]:
        yield [create(A, "1\n2")] + [{"command": command, "path": path} | more for more in [{}, {"insert_line": 9}]
                                     for command in ["create", "str_replace", "insert"]] \
            + [{"command": "rename", "old_path": path}, {"command": "rename", "new_path": path}]


RANGES = [[1, 1], [1, 2], [2, 3], [1, -1], [2, -1], [1, -2], [2, -3], [0, 0], [0, 1], [-5, 2], [3, 2], [9, 20], [2, 100],
          [-1, -1], [1, 0], [100, -1], [1, -100], [5, 5]]


# ------------------------------------------------------------------------------------ random sequences

NAMES = ["a.md", "b.txt", "notes", "projects", "é", "日本.md", "with space", ".hidden", "node_modules", "deep", "x", "0",
         "under_score", "da-sh", "log.jsonl"]
PIECES = ["a", "b", "word", " ", "# ", "- ", "é", "日本", "🦀", "e\u0301", "\0", "\t", "\r", "`", "'", "{}", "%s", "$&", "\\n",
          "\ufeff", "1", "22"]
NEWLINES = ["\n", "\n", "\n", "\r\n", "\n\n"]


class Random:
    """Commands that mostly meet what earlier ones made."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.texts = {}

    def text(self):
        choose = self.random
        lines = ["".join(choose.choices(PIECES, k=choose.randrange(5))) for _ in range(choose.randrange(7))]
        text = "".join(line + choose.choice(NEWLINES) for line in lines)
        return text if choose.random() < 0.6 else text.rstrip("\n")

    def new_path(self):
        choose = self.random
        return "/".join([M] + choose.choices(NAMES, k=choose.choice([1, 1, 1, 2, 2, 3, 4])))

    def path(self):
        choose = self.random
        known = sorted(self.texts)
        kind = choose.random()
        if known and kind < 0.75:
            path = choose.choice(known)
            if choose.random() < 0.2:
                path = path.rsplit("/", 1)[0]
        elif kind < 0.93:
            path = self.new_path()
        else:
            path = choose.choice([M, M + "/", M + "/..", "/other", "/memories/../memories", M + "/x/../../memories"])
        if path.startswith(M) and choose.random() < 0.08:
            path = choose.choice([path + "/", path.replace("/", "//", 2)[1:], path + "/.", M + "/." + path[len(M):],
                                  path + "/x/.."])
        return path

    def line(self):
        return self.random.choice([0, 0, 1, 1, 2, 3, 4, 5, -1, 7, 100])

    def command(self):
        choose = self.random
        kind = choose.choices(["view", "create", "str_replace", "insert", "delete", "rename"], [6, 6, 6, 5, 1.5, 2.5])[0]
        path = self.path()
        if kind == "view":
            return view(path, choose.choice([None, None, choose.choice(RANGES), [self.line(), self.line()]]))
        if kind == "create":
            path = self.new_path() if choose.random() < 0.8 else path
            text = self.text()
            self.texts.setdefault(path, text)
            return create(path, text)
        if kind == "str_replace":
            there = self.texts.get(path, "")
            start = choose.randrange(len(there) + 1)
            old = there[start:start + choose.choice([1, 1, 2, 3, 5, 9])] if choose.random() < 0.85 else self.text()
            new = self.text() if choose.random() < 0.5 else choose.choice(PIECES)
            if old and there.count(old) == 1:
                self.texts[path] = there.replace(old, new)
            return replace(path, old, new)
        if kind == "insert":
            return insert(path, self.line(), self.text())
        if kind == "delete":
            self.texts = {known: text for known, text in self.texts.items() if not (known + "/").startswith(path + "/")}
            return delete(path)
        target = self.new_path() if choose.random() < 0.8 else self.path()
        if path in self.texts and target not in self.texts:
            self.texts[target] = self.texts.pop(path)
        return rename(path, target)


# ------------------------------------------------------------------------------ deliberate differences

# What the answer must be here where the SDK does something else: name, the commands before, the command,
# a pattern for the whole text, and whether it is an error.
DELIBERATE = [
    ("a sibling that begins like /memories is outside", [], create("/memories_backup/f", "x"),
     r"Path must start with /memories, got: /memories_backup/f", True),
    ("`..` leads nowhere by way of the folder that holds /memories", [],
     view("/memories/../../theirs/memories"), r"Path \S+ would escape /memories directory", True),
    ("a missing new_str deletes", [create(A, "one two")],
     {"command": "str_replace", "path": A, "old_str": " two"},
     r"The memory file has been edited\. .*\n     1\tone", False),
    ("a missing parameter is named", [], {"command": "view"}, r"Missing parameter `path` for the command view", True),
    ("a null parameter is missing", [create(A, "x")], {"command": "insert", "path": A, "insert_line": None,
     "insert_text": "x"}, r"Missing parameter `insert_line` for the command insert", True),
    ("an ill-typed parameter is named", [], {"command": "view", "path": 3},
     r"Invalid `path` parameter: 3\. It should be a string", True),
    ("an ill-typed range is named", [create(A, "x")], view(A, "x"),
     r'Invalid `view_range` parameter: "x"\. It should be a list of two line numbers', True),
    ("half of a surrogate pair is no text", [create(A, "x")], replace(A, "\ud83d", "x"),
     r"the line is not JSON: .*hex escape.*", True),
    ("an unknown command is refused with the known ones", [], {"command": "frob"},
     r"Unknown command: frob\. The commands are view, .* and rename", True),
    ("a missing command is named", [], {"path": M}, r"Missing parameter `command`", True),
    ("NUL is refused", [], create("/memories/a\0b", "x"), r"`/memories/a\\u\{0\}b` has a control character in it\. .*", True),
    ("a newline in a name is refused", [], create("/memories/a\nb", "x"), r"`/memories/a\\nb` has a control .*", True),
    ("a long name is refused", [], create("/memories/" + "a" * 256, "x"), r"The name `a+…` is longer than 255 bytes\. .*",
     True),
    ("a file is no folder", [create(A, "x")], create(A + "/b", "x"),
     r"`/memories/a\.md` is a file, so nothing can be beneath it\. .*", True),
    ("a file is no folder to move to", [create(A, "x"), create(M + "/b", "x")], rename(M + "/b", A + "/b"),
     r"`/memories/a\.md` is a file, so nothing can be beneath it\. .*", True),
    ("a folder is not moved into itself", [create(M + "/d/x", "x")], rename(M + "/d", M + "/d/e"),
     r"`/memories/d` cannot be moved into itself, to `/memories/d/e`\.", True),
    ("names that differ in case only are refused", [create(A, "x")], create("/memories/A.md", "x"),
     r"(?s).*`/memories/A\.md`.*", True),
    ("device names of other systems are refused", [], create("/memories/con.md", "x"),
     r"`/memories/con\.md` names a device on Windows\. .*", True),
    ("characters that other systems cannot hold are refused", [], create("/memories/a?b", "x"),
     r"`/memories/a\?b` has a character in it that Windows cannot hold\. .*", True),
    ("names are kept in normal form C", [create("/memories/e\u0301", "x")], view("/memories/\u00e9"),
     r"Here's the content of /memories/\u00e9 with line numbers:\n     1\tx", False),
    ("a long list of lines ends", [create(A, "x\n" * 3000)], replace(A, "x", "y"),
     r"No replacement was performed\. Multiple occurrences of old_str `x` in lines: 1, 2, .*, 1000, …\. Please .*", True),
]


class Comparison:
    def __init__(self, program, verbose):
        self.program, self.verbose = program, verbose
        self.sequences = self.commands = self.differences = 0
        self.deliberate = collections.Counter()

    def folders(self):
        base = pathlib.Path(tempfile.mkdtemp(prefix="memory-tool-"))
        ours = base / "ours" / "memories"
        ours.mkdir(mode=0o700, parents=True)
        return base, Reference(base / "theirs"), Memgrove(self.program, ours, base / "home")

    def differs(self, what, theirs, ours, done):
        self.differences += 1
        print(f"DIFFERENCE in {what:.300}\n  SDK:      {theirs!r:.600}\n  memgrove: {ours!r:.600}", file=sys.stderr)
        for command in done if self.verbose else []:
            print(f"    {json.dumps(command)}", file=sys.stderr)

    def run(self, name, commands):
        base, reference, memgrove = self.folders()
        done = []
        for command in commands:
            done.append(command)
            text, is_error, meant = reference.call(command)
            ours, ours_is_error = memgrove.call(command)
            self.commands += 1
            if is_error and reference.left:
                self.deliberate[LEFT] += 1
            if str(base) in ours:
                self.differs(f"{name}: a path of the machine", text, ours, done)
            if not meant:
                self.deliberate[RAW] += 1
                if not ours_is_error or not ours:
                    self.differs(f"{name}: {command}", text, ours, done)
            elif (text, is_error) != (ours, ours_is_error):
                self.differs(f"{name}: {command}", (text, is_error), (ours, ours_is_error), done)
        memgrove.close()
        theirs, ours = tree(reference.root), tree(base / "ours" / "memories")
        for path in sorted(theirs.keys() | ours.keys()):
            if theirs.get(path) != ours.get(path):
                self.differs(f"{name}: the file {path}", theirs.get(path), ours.get(path), done)
        self.sequences += 1
        shutil.rmtree(base)

    def run_deliberate(self, name, before, command, pattern, is_error):
        base, reference, memgrove = self.folders()
        for earlier in before:
            reference.call(earlier)
            memgrove.call(earlier)
        text, theirs_is_error, _ = reference.call(command)
        ours, ours_is_error = memgrove.call(command)
        self.commands += 1
        if not re.fullmatch(pattern, ours) or ours_is_error != is_error or str(base) in ours:
            self.differs(f"the deliberate difference, {name}", pattern, (ours, ours_is_error), before + [command])
        if (text, theirs_is_error) == (ours, ours_is_error):
            self.differs(f"{name}: no difference any more", text, ours, before + [command])
        memgrove.close()
        self.deliberate[name] += 1
        self.sequences += 1
        shutil.rmtree(base)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--sequences", type=int, default=300, help="how many random sequences")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="print the commands that led to a difference")
    arguments = parser.parse_args()
    comparison = Comparison(arguments.program, arguments.verbose)
    for n, commands in enumerate(fixed_sequences()):
        comparison.run(f"fixed sequence {n}", commands)
    for n in range(arguments.sequences):
        source = Random(f"{arguments.seed}-{n}")
        comparison.run(f"random sequence {n}", [source.command() for _ in range(25)])
    for difference in DELIBERATE:
        comparison.run_deliberate(*difference)
    for name, count in sorted(comparison.deliberate.items()):
        print(f"deliberate: {name} ({count})")
    print(f"memory-tool differential: {comparison.sequences} sequences, {comparison.commands} commands, "
          f"{comparison.differences} differences")
    return 1 if comparison.differences else 0


if __name__ == "__main__":
    sys.exit(main())
