//! The Memory Tool's door: every text that it answers with. What the SDK answers is compared with
//! the SDK itself by `tests/clients/memory_tool_diff.py`.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::sync::Arc;

use memgrove::backend::{Actor, Depth, HistoryQuery, Info, Note, Origin};
use memgrove::backends::Ram;
use memgrove::clock::ManualClock;
use memgrove::shapes::memory_tool::{self, Reply};
use memgrove::{Backend, Error, Kind, Locator, Memory, Result, Store};
use serde_json::{Value, json};

use crate::hooked::{Hook, Hooked};

struct Tool {
    memory: Memory,
    root: Locator,
}

impl Tool {
    /// A tool whose `/memories` is this folder of a store.
    fn at(root: &str) -> Self {
        let memory = Memory::new(Store::new(Ram::default()), Arc::new(ManualClock::default()));
        Tool { memory, root: Locator::new(root).unwrap() }
    }

    fn run(&self, command: &Value) -> Reply {
        memory_tool::run(&self.memory, &self.root, Note::default(), command)
    }

    fn ok(&self, command: Value) -> String {
        let reply = self.run(&command);
        assert!(!reply.is_error, "{command}: {}", reply.content);
        reply.content
    }

    fn fails(&self, command: Value) -> String {
        let reply = self.run(&command);
        assert!(reply.is_error, "{command}: {}", reply.content);
        reply.content
    }

    fn holding(self, files: &[(&str, &str)]) -> Self {
        for (path, text) in files {
            self.ok(create(path, text));
        }
        self
    }

    fn text(&self, path: &str) -> String {
        self.memory.store().read(&self.root.child(path).unwrap()).unwrap()
    }

    fn everything(&self) -> Vec<String> {
        let all = self.memory.store().list_all(&Locator::root()).unwrap();
        all.iter().map(|info| info.locator.key().to_owned()).collect()
    }
}

fn create(path: &str, text: &str) -> Value {
    json!({"command": "create", "path": path, "file_text": text})
}

fn view(path: &str) -> Value {
    json!({"command": "view", "path": path})
}

fn replace(path: &str, old: &str, new: &str) -> Value {
    json!({"command": "str_replace", "path": path, "old_str": old, "new_str": new})
}

fn insert(path: &str, line: i64, text: &str) -> Value {
    json!({"command": "insert", "path": path, "insert_line": line, "insert_text": text})
}

fn delete(path: &str) -> Value {
    json!({"command": "delete", "path": path})
}

fn rename(old: &str, new: &str) -> Value {
    json!({"command": "rename", "old_path": old, "new_path": new})
}

const A: &str = "/memories/a.md";
const B: &str = "/memories/b.md";

#[test]
fn a_file_is_shown_with_its_lines_numbered() {
    let check = |text: &str, range: Value, lines: &str| {
        let tool = Tool::at("files").holding(&[(A, text)]);
        let shown = tool.ok(json!({"command": "view", "path": A, "view_range": range}));
        assert_eq!(
            shown,
            format!("Here's the content of {A} with line numbers:\n{lines}"),
            "{text:?} {range}"
        );
    };
    check("one\ntwo", json!(null), "     1\tone\n     2\ttwo");
    check("one\n", json!(null), "     1\tone\n     2\t");
    check("", json!(null), "     1\t");
    check("a\r\nb", json!(null), "     1\ta\r\n     2\tb");
    let six = "1\n2\n3\n4\n5\n6";
    check(six, json!([2, 3]), "     2\t2\n     3\t3");
    check(six, json!([5, -1]), "     5\t5\n     6\t6");
    check(six, json!([-9, 1]), "     1\t1");
    check(six, json!([6, 99]), "     6\t6");
    check(six, json!([4, -2]), "     4\t4");
    check(six, json!([3, 2]), "");
    check(six, json!([9, 10]), "");
    check(six, json!([1e30, 1e31]), "");
    check(six, json!(["2", 2.0]), "     2\t2");
    check("1", json!([1]), "     1\t1");
    check("1", json!([]), "     1\t1");
}

#[test]
fn a_file_of_a_million_lines_is_too_long_to_show() {
    let tool =
        Tool::at("files").holding(&[(A, &"\n".repeat(999_998)), ("/memories/b", &"\n".repeat(999_999))]);
    assert!(tool.ok(view(A)).ends_with("\n999999\t"));
    let refusal = tool.fails(view("/memories/b"));
    assert_eq!(refusal, "File /memories/b exceeds maximum line limit of 999,999 lines.");
}

#[test]
fn a_folder_is_shown_two_levels_deep() {
    let tool = Tool::at("files").holding(&[
        ("/memories/b.md", "12345"),
        ("/memories/a/z/deep.md", "1"),
        ("/memories/a/k", &"x".repeat(1536)),
        ("/memories/.hidden/x", "1"),
        ("/memories/a/.hidden", "1"),
        ("/memories/a.md", ""),
    ]);
    let header = |path| {
        format!("Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:\n")
    };
    assert_eq!(
        tool.ok(view("/memories")),
        header("/memories")
            + "4K\t/memories\n4K\t/memories/a/\n1.5K\t/memories/a/k\n4K\t/memories/a/z/\n0B\t/memories/a.md\n5B\t/memories/b.md"
    );
    assert_eq!(
        tool.ok(view("/memories/a/")),
        header("/memories/a/")
            + "4K\t/memories/a/\n1.5K\t/memories/a//k\n4K\t/memories/a//z/\n1B\t/memories/a//z/deep.md"
    );
    assert_eq!(Tool::at("files").ok(view("/memories")), header("/memories") + "4K\t/memories");
    assert_eq!(Tool::at("").ok(view("/memories")), header("/memories") + "4K\t/memories");
}

/// A store with a folder that may not be looked into.
struct Closed(Ram);

impl Hook for Closed {
    fn inner(&self) -> &dyn Backend {
        &self.0
    }

    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>> {
        match under.name() {
            "closed" => Err(Error::new(Kind::Denied, "it is closed")),
            _ => self.0.list(under, depth),
        }
    }
}

#[test]
fn a_folder_that_may_not_be_looked_into_hides_no_other() {
    let store = Store::new(Hooked(Closed(Ram::default())));
    let memory = Memory::new(store, Arc::new(ManualClock::default()));
    let tool = Tool { memory, root: Locator::root() };
    let tool = tool.holding(&[("/memories/closed/x", "x"), ("/memories/open/y", "y")]);
    let told = tool.ok(view("/memories"));
    let names: Vec<&str> = told.lines().skip(2).filter_map(|line| line.split('\t').nth(1)).collect();
    assert_eq!(names, ["/memories/closed/", "/memories/open/", "/memories/open/y"]);
    assert!(tool.fails(view("/memories/closed")).starts_with("It is closed"));
}

#[test]
fn create_makes_a_file_once() {
    let tool = Tool::at("files");
    assert_eq!(tool.ok(create("/memories/x/y.md", "é\n")), "File created successfully at: /memories/x/y.md");
    assert_eq!(tool.text("x/y.md"), "é\n");
    for path in ["/memories/x/y.md", "/memories/x", "/memories", "/memories/", "/memories/x/../x/y.md/"] {
        assert_eq!(tool.fails(create(path, "")), format!("File {path} already exists"));
    }
}

#[test]
fn str_replace_shows_the_lines_around_the_change() {
    let head =
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n";
    let check = |text: &str, old: &str, new: &str, after: &str, lines: &str| {
        let tool = Tool::at("files").holding(&[(A, text)]);
        assert_eq!(tool.ok(replace(A, old, new)), format!("{head}{lines}"));
        assert_eq!(tool.text("a.md"), after);
    };
    check("1\n2\n3\n4\n5\n6", "4", "four", "1\n2\n3\nfour\n5\n6", {
        "     2\t2\n     3\t3\n     4\tfour\n     5\t5\n     6\t6"
    });
    check("1\n2", "1\n", "", "2", "     1\t2");
    check("a", "a", "1\n2\n3\n4", "1\n2\n3\n4", "     1\t1\n     2\t2\n     3\t3");
    check("", "", "new", "new", "     1\tnew");
    check("aaa", "aa", "b", "ba", "     1\tba");
    let tool = Tool::at("files").holding(&[(A, "one two")]);
    tool.ok(json!({"command": "str_replace", "path": A, "old_str": " two"}));
    assert_eq!(tool.text("a.md"), "one");
}

#[test]
fn str_replace_says_why_it_did_nothing() {
    let tool = Tool::at("files").holding(&[(A, "x\ny\nx"), ("/memories/d/e", "")]);
    let check = |path: &str, old: &str, text: &str| assert_eq!(tool.fails(replace(path, old, "z")), text);
    check(
        A,
        "nope",
        "No replacement was performed, old_str `nope` did not appear verbatim in /memories/a.md.",
    );
    check(A, "x", {
        "No replacement was performed. Multiple occurrences of old_str `x` in lines: 1, 3. Please ensure it is unique"
    });
    check(A, "", {
        "No replacement was performed. Multiple occurrences of old_str `` in lines: 1, 1, 2, 2, 3, 3. \
         Please ensure it is unique"
    });
    check("/memories/d", "x", "The path /memories/d is not a file.");
    check("/memories", "x", "The path /memories is not a file.");
    check("/memories/no", "x", "The path /memories/no does not exist. Please provide a valid path.");
    assert_eq!(tool.text("a.md"), "x\ny\nx");
}

#[test]
fn insert_goes_after_the_line() {
    let check = |text: &str, line: i64, new: &str, after: &str| {
        let tool = Tool::at("files").holding(&[(A, text)]);
        assert_eq!(tool.ok(insert(A, line, new)), "The file /memories/a.md has been edited.");
        assert_eq!(tool.text("a.md"), after, "{text:?} {line} {new:?}");
    };
    check("a\nb\n", 0, "x", "x\na\nb\n");
    check("a\nb\n", 2, "x\n\n", "a\nb\nx\n");
    check("a\nb", 1, "x\ny", "a\nx\ny\nb\n");
    check("", 0, "", "\n");
    check("\n", 0, "", "\n");
    check("a\r\nb\r\n", 1, "x", "a\r\nx\nb\r\n");
    let tool = Tool::at("files").holding(&[(A, "a\nb\n"), ("/memories/d/e", "")]);
    for line in [-1, 3] {
        let text = format!("Invalid `insert_line` parameter: {line}. It should be within the range [0, 2].");
        assert_eq!(tool.fails(insert(A, line, "x")), text);
    }
    assert_eq!(tool.fails(insert("/memories/d", 0, "x")), "The path /memories/d is not a file.");
    let absent = "The path /memories/no does not exist. Please provide a valid path.";
    assert_eq!(tool.fails(insert("/memories/no", 0, "x")), absent);
}

#[test]
fn delete_takes_folders_whole() {
    let tool = Tool::at("files").holding(&[(A, "a"), ("/memories/d/e/f", ""), ("/memories/d/.h", "")]);
    assert_eq!(tool.ok(delete(A)), "Successfully deleted /memories/a.md");
    assert_eq!(tool.fails(delete(A)), "The path /memories/a.md does not exist");
    assert_eq!(tool.ok(delete("/memories/d/")), "Successfully deleted /memories/d/");
    assert_eq!(tool.everything(), ["files"]);
    for path in ["/memories", "/memories/", "/memories/x/.."] {
        assert_eq!(tool.fails(delete(path)), "Cannot delete the /memories directory itself");
    }
}

#[test]
fn rename_checks_in_the_order_of_the_sdk() {
    let tool = Tool::at("files").holding(&[(A, "a"), ("/memories/d/e", "e")]);
    let check = |old, new, text: &str| assert_eq!(tool.fails(rename(old, new)), text);
    check("/memories", "/elsewhere", "Path must start with /memories, got: /elsewhere");
    check("/memories", A, "Cannot rename the /memories directory itself");
    check("/memories/no", A, "The destination /memories/a.md already exists");
    check(A, A, "The destination /memories/a.md already exists");
    check(A, "/memories", "The destination /memories already exists");
    check("/memories/no", "/memories/new/x", "The path /memories/no does not exist");
    assert_eq!(tool.everything(), ["files", "files/a.md", "files/d", "files/d/e"]);
    assert_eq!(tool.ok(rename(A, "/memories/new/b.md")), {
        "Successfully renamed /memories/a.md to /memories/new/b.md"
    });
    tool.ok(rename("/memories/d", "/memories/new/d"));
    assert_eq!(tool.text("new/d/e"), "e");
}

#[test]
fn paths_stay_inside() {
    let tool = Tool::at("files").holding(&[(A, "inside")]);
    tool.memory.store().write(&Locator::new("outside.md").unwrap(), "canary").unwrap();
    for path in ["/memories/x/../a.md", "/memories/../memories/a.md", "/memories//./a.md", "/memories/a.md/"]
    {
        assert!(tool.ok(view(path)).ends_with("\tinside"), "{path}");
    }
    let outside =
        ["/memories_backup/a.md", "/memoriesa.md", "memories/a.md", "/a.md", "", "~/memories", "//memories"];
    for path in outside {
        assert_eq!(tool.fails(view(path)), format!("Path must start with /memories, got: {path}"));
    }
    for path in [
        "/memories/..",
        "/memories/../outside.md",
        "/memories/a/../../outside.md",
        "/memories/../../memories",
    ] {
        assert_eq!(tool.fails(view(path)), format!("Path {path} would escape /memories directory"));
    }
}

/// What the SDK answers with a raw runtime error, or does and should not.
#[test]
fn what_cannot_be_done_is_said_in_sentences() {
    for root in ["", "files", "deep/er"] {
        let tool = Tool::at(root).holding(&[(A, "a"), ("/memories/d/e", "e")]);
        let before = tool.everything();
        let check = |command: Value, text: &str| assert_eq!(tool.fails(command), text, "beneath {root:?}");
        let beneath = "`/memories/a.md` is a file, so nothing can be beneath it. Choose a place that is not beneath a file.";
        check(create("/memories/a.md/x", ""), beneath);
        check(rename("/memories/d", "/memories/a.md/x"), beneath);
        check(rename("/memories/d", "/memories/d/x"), {
            "`/memories/d` cannot be moved into itself, to `/memories/d/x`."
        });
        check(create("/memories/a\0b", ""), {
            "`/memories/a\\u{0}b` has a control character in it. Use printable characters in names."
        });
        check(view(&format!("/memories/{}", "x".repeat(300))), {
            "The name `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…` is longer than 255 bytes. Use a shorter name."
        });
        check(create("/memories/A.md", ""), {
            "`/memories/A.md` cannot be told apart from `/memories/a.md` on every system. \
             Use `/memories/a.md`, or choose a name that differs in more than case."
        });
        check(create("/memories/new/con.md", ""), {
            "`/memories/new/con.md` names a device on Windows. Choose another name, such as one with `_` in front."
        });
        check(create("/memories/a?", ""), {
            "`/memories/a?` has a character in it that Windows cannot hold. \
             Leave out `<`, `>`, `:`, `\"`, `\\`, `|`, `?` and `*`."
        });
        check(create("/memories/large", &"x".repeat((64 << 20) + 1)), {
            "`/memories/large` would have 67108865 bytes, and a file has at most 67108864. \
             Split it into several files."
        });
        assert_eq!(tool.everything(), before);
    }
}

#[test]
fn bytes_that_are_no_text_are_not_shown_or_edited() {
    let tool = Tool::at("files");
    let at = Locator::new("files/doc.pdf").unwrap();
    tool.memory.store().update(&at, |_| Ok(b"ok\xff".to_vec())).unwrap();
    let text = "The file /memories/doc.pdf is not UTF-8 text (byte 2), so it cannot be shown or edited.";
    assert_eq!(tool.fails(view("/memories/doc.pdf")), text);
    assert_eq!(tool.fails(replace("/memories/doc.pdf", "ok", "")), text);
    assert_eq!(tool.fails(insert("/memories/doc.pdf", 0, "")), text);
    assert_eq!(tool.memory.store().read_bytes(&at).unwrap().bytes, b"ok\xff");
}

#[test]
fn a_bad_parameter_is_named() {
    let tool = Tool::at("files").holding(&[(A, "a")]);
    let check = |command: Value, text: &str| assert_eq!(tool.fails(command), text);
    check(json!({"command": "view"}), "Missing parameter `path` for the command view");
    check(json!({"command": "view", "path": null}), "Missing parameter `path` for the command view");
    check(json!({"command": "create", "path": B}), "Missing parameter `file_text` for the command create");
    check(json!({"command": "str_replace", "path": A}), {
        "Missing parameter `old_str` for the command str_replace"
    });
    check(json!({"command": "insert", "path": A, "insert_text": ""}), {
        "Missing parameter `insert_line` for the command insert"
    });
    check(json!({"command": "insert", "path": A, "insert_line": 0}), {
        "Missing parameter `insert_text` for the command insert"
    });
    check(json!({"command": "delete"}), "Missing parameter `path` for the command delete");
    check(json!({"command": "rename", "new_path": A}), "Missing parameter `old_path` for the command rename");
    check(json!({"command": "rename", "old_path": A}), "Missing parameter `new_path` for the command rename");
    check(json!({"path": A}), "Missing parameter `command`");
    check(json!({"command": 3}), "Invalid `command` parameter: 3. It should be a string");
    check(json!(["view"]), "A command must be a JSON object with the parameter `command`");
    check(json!({"command": "frob"}), {
        "Unknown command: frob. The commands are view, create, str_replace, insert, delete and rename"
    });
    check(json!({"command": "view", "path": {"a": "b"}}), {
        "Invalid `path` parameter: {\"a\":\"b\"}. It should be a string"
    });
    check(json!({"command": "view", "path": A, "view_range": "all"}), {
        "Invalid `view_range` parameter: \"all\". It should be a list of two line numbers"
    });
    check(json!({"command": "view", "path": A, "view_range": [1, 1.5]}), {
        "Invalid `view_range` parameter: 1.5. It should be a list of two line numbers"
    });
    check(json!({"command": "insert", "path": A, "insert_line": [1], "insert_text": ""}), {
        "Invalid `insert_line` parameter: [1]. It should be a whole number"
    });
    check(json!({"command": "create", "path": B, "file_text": vec![0; 100]}), {
        "Invalid `file_text` parameter: [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0…. It should be a string"
    });
}

/// As in the SDK, a path is looked at before the other parameters are asked for.
#[test]
fn a_path_is_looked_at_before_other_parameters() {
    let tool = Tool::at("files").holding(&[(A, "a"), ("/memories/d/x", "x")]);
    let check = |command: Value, text: &str| assert_eq!(tool.fails(command), text);
    let absent = "The path /memories/b.md does not exist. Please provide a valid path.";
    for command in ["create", "str_replace", "insert", "view"] {
        let outside = json!({"command": command, "path": "/bad", "view_range": "x"});
        check(outside, "Path must start with /memories, got: /bad");
        if command != "create" {
            check(json!({"command": command, "path": B, "view_range": "x"}), absent);
        }
    }
    check(json!({"command": "create", "path": A}), "File /memories/a.md already exists");
    check(json!({"command": "insert", "path": "/memories/d"}), "The path /memories/d is not a file.");
    check(json!({"command": "insert", "path": A, "insert_line": 1e30}), {
        "Invalid `insert_line` parameter: 1000000000000000000000000000000. It should be within the range [0, 1]."
    });
    check(json!({"command": "rename", "old_path": "/bad"}), "Path must start with /memories, got: /bad");
    assert!(tool.ok(json!({"command": "view", "path": "/memories/d", "view_range": "x"})).contains("/d/x"));
}

#[test]
fn a_range_of_nothing_is_none_and_null_is_the_end() {
    let tool = Tool::at("files").holding(&[(A, "1\n2\n3")]);
    let lines = |range: Value| {
        let told = tool.ok(json!({"command": "view", "path": A, "view_range": range}));
        told.lines().skip(1).map(|line| line.trim().chars().next().unwrap()).collect::<String>()
    };
    for nothing in [json!(0), json!(false), json!(""), json!({}), json!([]), json!(null), json!(0.0)] {
        assert_eq!(lines(nothing), "123");
    }
    assert_eq!(lines(json!([2, null])), "23");
    assert_eq!(lines(json!([true, 2])), "12");
    tool.ok(json!({"command": "insert", "path": A, "insert_line": true, "insert_text": "new"}));
    assert_eq!(tool.text("a.md"), "1\nnew\n2\n3\n");
}

#[test]
fn a_repeated_key_gives_the_first_text_and_does_nothing() {
    let tool = Tool::at("files");
    let actor = Actor { origin: Origin::Agent, client: Some("claude".into()), session: None };
    let run = |command: &Value, key: &str| {
        let note = Note { key: Some(key.into()), actor: actor.clone(), ..Note::default() };
        memory_tool::run(&tool.memory, &tool.root, note, command)
    };
    for (key, command) in [
        ("1", create(A, "one\n")),
        ("2", insert(A, 1, "two")),
        ("3", replace(A, "one", "1")),
        ("4", rename(A, "/memories/b.md")),
        ("5", delete("/memories/b.md")),
    ] {
        let first = run(&command, key);
        assert!(!first.is_error, "{}", first.content);
        assert_eq!(run(&command, key), first);
    }
    let past = tool.memory.store().backend().history(&HistoryQuery::default()).unwrap();
    let verbs: Vec<&str> = past.iter().map(|past| past.note.verb.as_str()).collect();
    assert_eq!(
        verbs,
        ["memory_delete", "memory_rename", "memory_str_replace", "memory_insert", "memory_create"]
    );
    assert!(past.iter().all(|past| past.note.actor == actor));
}

#[test]
fn a_reply_is_what_the_wire_carries() {
    let reply = Reply { content: "é".into(), is_error: true };
    assert_eq!(serde_json::to_string(&reply).unwrap(), r#"{"content":"é","is_error":true}"#);
}
