//! `memgrove memory-tool`: one answer for every line, whatever the line is.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use serde_json::Value;

use super::sandbox::{Sandbox, spawn};

fn answers(text: &str) -> Vec<(String, bool)> {
    text.lines()
        .map(|line| {
            let answer: Value = serde_json::from_str(line).expect("a line of JSON");
            let content = answer["content"].as_str().expect("text").to_owned();
            (content, answer["is_error"].as_bool().expect("a truth"))
        })
        .collect()
}

#[test]
fn bad_lines_are_answered_and_do_not_stop_it() {
    let sandbox = Sandbox::new();
    let mut input = Vec::new();
    input.extend_from_slice(b"not json\n\n[1]\n{\"command\":\"dance\"}\n");
    input.extend_from_slice(b"{\"command\":\"create\",\"path\":\"/memories/\xff\",\"file_text\":\"x\"}\n");
    input.extend_from_slice(b"{\"command\":\"create\",\"path\":\"/memories/big\",\"file_text\":\"");
    input.resize(input.len() + 9 * 1024 * 1024, b'x');
    input.extend_from_slice(b"\"}\n");
    input.extend_from_slice(
        b"{\"command\":\"str_replace\",\"path\":\"/memories/big\",\"old_str\":\"\\ud83d\"}\n",
    );
    input.extend_from_slice(b"{\"command\":\"create\",\"path\":\"/memories/a.md\",\"file_text\":\"x\"}\n");
    input.extend_from_slice(b"{\"command\":\"view\",\"path\":\"/memories/a.md\"}");
    let got = answers(&sandbox.feed(&["memory-tool"], &input).ok());
    let errors: Vec<bool> = got.iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(errors, [true, true, true, true, false, true, false, false], "{got:?}");
    assert!(got[5].0.contains("hex escape"), "half a character is none: {}", got[5].0);
    assert_eq!(got[7].0, "Here's the content of /memories/a.md with line numbers:\n     1\tx");
}

#[test]
fn a_block_of_the_api_is_answered_with_a_block() {
    let sandbox = Sandbox::new();
    let call = r#"{"type":"tool_use","id":"toolu_1","name":"memory","input":{"command":"view","path":"/memories/x"}}"#;
    let told: Value = serde_json::from_str(&sandbox.feed(&["memory-tool"], call).ok()).expect("JSON");
    assert_eq!((&told["type"], &told["tool_use_id"]), (&"tool_result".into(), &"toolu_1".into()), "{told}");
    assert!(
        told["is_error"] == true && told["content"].as_str().is_some_and(|text| text.contains("/memories/x"))
    );
    let without = r#"{"type":"tool_use","id":"toolu_2","name":"memory"}"#;
    assert!(answers(&sandbox.feed(&["memory-tool"], without).ok())[0].1);
    // Also one that cannot be read.
    let broken = r#"{"id" : "toolu_3","type" : "tool_use","input":{"command":"view","path":"\ud83d"}}"#;
    let told: Value = serde_json::from_str(&sandbox.feed(&["memory-tool"], broken).ok()).expect("JSON");
    assert_eq!((&told["type"], &told["tool_use_id"]), (&"tool_result".into(), &"toolu_3".into()), "{told}");
    assert_eq!(told["is_error"], true);
}

#[test]
fn a_folder_used_in_place_holds_memories_and_nothing_else() {
    let sandbox = Sandbox::empty();
    let folder = sandbox.path().join("memories");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("old.md"), "before\n").expect("a file");
    let input = "{\"command\":\"view\",\"path\":\"/memories/old.md\"}\n\
        {\"command\":\"create\",\"path\":\"/memories/sub/new.md\",\"file_text\":\"x\"}\n\
        {\"command\":\"str_replace\",\"path\":\"/memories/old.md\",\"old_str\":\"before\",\"new_str\":\"after\"}\n";
    let got = answers(&sandbox.feed(&["memory-tool", "--memories", "../../memories"], input).ok());
    assert!(got.iter().all(|(_, is_error)| !is_error), "{got:?}");
    let names_in = |folder: &Path| {
        let entries = std::fs::read_dir(folder).expect("the folder");
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<_> = entries.map(|entry| name(entry).into_string().expect("text")).collect();
        names.sort();
        names
    };
    assert_eq!(names_in(&folder), ["old.md", "sub"]);
    assert_eq!(std::fs::read_to_string(folder.join("old.md")).expect("the file"), "after\n");
    assert!(!sandbox.home().join(".memgrove").exists());
    // What a killed process left is removed.
    let states = sandbox.home().join(".local/state/memgrove");
    let journals = names_in(&states).into_iter().map(|name| states.join(name).join(".journal/id"));
    let id = journals.filter_map(|id| std::fs::read_to_string(id).ok()).next().expect("a journal");
    std::fs::write(folder.join(format!(".mtmp-{id}-2-0")), "half a wri").expect("a file");
    let delete = r#"{"command":"delete","path":"/memories/sub"}"#;
    assert!(!answers(&sandbox.feed(&["memory-tool", "--memories", "../../memories"], delete).ok())[0].1);
    assert_eq!(names_in(&folder), ["old.md"]);
}

/// What happened in such a folder can be looked up and taken back, as in a store.
#[test]
fn a_folder_used_in_place_has_a_past() {
    let sandbox = Sandbox::empty();
    let input = "{\"command\":\"create\",\"path\":\"/memories/sub/new.md\",\"file_text\":\"x\"}\n\
        {\"command\":\"delete\",\"path\":\"/memories/sub\"}\n";
    assert!(
        answers(&sandbox.feed(&["memory-tool", "--memories", "m"], input).ok()).iter().all(|(_, bad)| !bad)
    );
    let of = |words: &[&str]| sandbox.run(&[words, &["--memories", "m"]].concat());
    assert!(of(&["history"]).ok().contains("memory_delete"));
    of(&["undo"]).ok();
    assert_eq!(of(&["read", "/memories/sub/new.md"]).ok(), "x");
    let told = of(&["--json", "history"]).ok();
    assert!(told.contains("undo of 2") && !told.contains(".memgrove-undo"), "{told}");
    of(&["diff", "/memories/sub/new.md", "1"]).ok();
    assert!(of(&["doctor"]).ok().ends_with("all is well\n"));
    sandbox.run(&["history", "--memories", "elsewhere"]).fails(3);
    assert!(!sandbox.project().join("elsewhere").exists());
}

/// A folder of a store has a journal: another one beside it would not see what that one does.
#[test]
fn the_files_of_a_store_are_used_by_way_of_the_store() {
    let sandbox = Sandbox::new();
    sandbox.run(&["init", "s"]).ok();
    let create = r#"{"command":"create","path":"/memories/a.md","file_text":"x"}"#;
    assert!(!answers(&sandbox.feed(&["memory-tool", "--memories", "s/files"], create).ok())[0].1);
    let told = sandbox.run(&["--store", "s", "history"]).ok();
    assert!(told.contains("memory_create"), "the store knows of it: {told}");
    for folder in ["s", "s/records", "s/files/sub", "s/.journal"] {
        let failed = sandbox.feed(&["memory-tool", "--memories", folder], create).fails(2);
        assert!(failed.contains("--store"), "{folder}: {failed}");
    }
    let both = sandbox.feed(&["--store", "s", "memory-tool", "--memories", "elsewhere"], create).fails(2);
    assert!(both.contains("`--memories` or `--store`"), "{both}");
    assert!(!sandbox.run(&["--store", "s", "file", "view"]).ok().contains("sub"), "nothing was made");
}

/// What an agent writes is a memory, whatever its name: the folder stays what it is.
#[test]
fn no_memory_makes_a_folder_used_in_place_a_store() {
    let sandbox = Sandbox::empty();
    let create = r#"{"command":"create","path":"/memories/memgrove.toml","file_text":"format = 1\n"}"#;
    let view = r#"{"command":"view","path":"/memories/memgrove.toml"}"#;
    for command in [create, view] {
        let got = answers(&sandbox.feed(&["memory-tool", "--memories", "m"], command).ok());
        assert!(!got[0].1, "{got:?}");
    }
    let of = |words: &[&str]| sandbox.run(&[words, &["--memories", "m"]].concat());
    assert_eq!(of(&["read", "memgrove.toml"]).ok(), "format = 1\n");
    assert!(of(&["doctor"]).ok().ends_with("all is well\n"));
    let mut within = sandbox.memgrove(&["--json", "status"]);
    let within = within.current_dir(sandbox.project().join("m")).output().expect("it runs");
    let told: Value = serde_json::from_slice(&within.stdout).expect("JSON");
    assert_eq!(told["store"], sandbox.home().join(".memgrove").display().to_string(), "{told}");
    let refused = sandbox.run(&["init", "m"]).fails(2);
    assert!(refused.contains("is used in place") && refused.contains("--memories"), "{refused}");
    of(&["undo"]).ok();
    assert!(!sandbox.project().join("m/memgrove.toml").exists());
}

#[test]
fn no_memory_makes_the_files_of_a_store_another_store() {
    let sandbox = Sandbox::new();
    sandbox.run(&["init", "s"]).ok();
    let on = |words: &[&str]| sandbox.run(&[&["--store", "s"], words].concat());
    on(&["file", "create", "memgrove.toml", "--text", "format = 1\n"]).ok();
    on(&["file", "create", "sub/memgrove.toml", "--text", "format = 1\n"]).ok();
    on(&["file", "create", "sub/.memgrove/a.md", "--text", "x"]).ok();
    let view = r#"{"command":"view","path":"/memories/memgrove.toml"}"#;
    assert!(!answers(&sandbox.feed(&["memory-tool", "--memories", "s/files"], view).ok())[0].1);
    let refused = sandbox.feed(&["memory-tool", "--memories", "s/files/sub"], view).fails(2);
    assert!(refused.contains("project/s`, which has a journal"), "{refused}");
    let refused = sandbox.run(&["init", "s/files/sub/new"]).fails(2);
    assert!(refused.contains("project/s\n"), "{refused}");
    for folder in ["s/files", "s/files/sub", "s/files/sub/.memgrove"] {
        let mut within = sandbox.memgrove(&["read", "sub/.memgrove/a.md"]);
        let within = within.current_dir(sandbox.project().join(folder)).output().expect("it runs");
        assert_eq!(within.stdout, b"x", "{folder}: {within:?}");
    }
}

/// Whoever starts it learns where the history should go; an agent is told of no place on the machine.
#[test]
fn without_a_place_for_the_history_it_does_not_start() {
    let sandbox = Sandbox::empty();
    let file = sandbox.path().join("state");
    std::fs::write(&file, "").expect("a file");
    let mut command = sandbox.memgrove(&["memory-tool", "--memories", "m"]);
    let output = command.env("XDG_STATE_HOME", &file).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(told.contains("cannot be kept") && told.contains("set XDG_STATE_HOME"), "{told}");
}

#[test]
fn the_store_remembers_which_command_it_was() {
    let sandbox = Sandbox::new();
    let input = "{\"command\":\"create\",\"path\":\"/memories/a.md\",\"file_text\":\"x\"}\n";
    sandbox.feed(&["memory-tool"], input).ok();
    let past = sandbox.run(&["--json", "history"]).json();
    assert_eq!(past["changes"][0]["verb"], "memory_create");
    assert_eq!(sandbox.run(&["read", "file:/memories/a.md"]).ok(), "x");
}

#[test]
fn an_answer_is_one_line_whatever_a_reader_takes_for_its_end() {
    let sandbox = Sandbox::new();
    let text = "one\u{85}two\u{2028}three\u{2029}four";
    let input = format!(
        "{{\"command\":\"create\",\"path\":\"/memories/a.md\",\"file_text\":\"{text}\"}}\n\
         {{\"command\":\"view\",\"path\":\"/memories/a.md\"}}\n"
    );
    let out = sandbox.feed(&["memory-tool"], input).ok();
    assert!(!out.contains(['\u{85}', '\u{2028}', '\u{2029}']), "{out:?}");
    assert!(answers(&out)[1].0.contains(text), "{out:?}");
}

/// Told to end, a program that serves closes its store: nothing of its work is left for others to do.
#[test]
fn a_signal_ends_it_with_everything_in_its_place() {
    let sandbox = Sandbox::new();
    let mut child = spawn(sandbox.memgrove(&["memory-tool"]));
    let mut input = child.stdin.take().expect("it is piped");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    writeln!(input, r#"{{"command":"create","path":"/memories/a.md","file_text":"x"}}"#).expect("it listens");
    output.read_line(&mut line).expect("it answers");
    assert!(line.contains("\"is_error\":false"), "{line}");
    let told = std::process::Command::new("kill").arg(child.id().to_string()).status();
    assert!(told.expect("kill is there").success());
    assert!(child.wait().expect("it ends").success());
    let mark = std::fs::read(sandbox.store().join(".journal/mark")).expect("a mark");
    let mark = String::from_utf8_lossy(&mark);
    let fields: Vec<&str> = mark.split_ascii_whitespace().collect();
    assert_eq!(fields[4], fields[6], "the checkpoint is at the end: {mark}");
}
