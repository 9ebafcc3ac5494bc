//! Taking back, as users and agents do it.

use serde_json::json;

use super::mcp::Connection;
use super::sandbox::Sandbox;

#[test]
fn taking_back_in_json() {
    let sandbox = Sandbox::new();
    let run = |arguments: &[&str]| sandbox.run(&[&["--json"], arguments].concat()).json();
    let made = run(&["file", "create", "a.md", "--text", "one\n"]);
    run(&["file", "replace", "a.md", "--old", "one", "--new", "two"]);
    let diff = run(&["diff", "a.md"]);
    assert_eq!(diff["address"], "file:/memories/a.md");
    assert!(diff["diff"].as_str().is_some_and(|text| text.ends_with("-one\n+two\n")), "{diff}");
    let planned = run(&["undo", "--dry-run"]);
    assert_eq!((&planned["planned"], &planned["touched"]), (&json!(true), &json!(["file:/memories/a.md"])));
    assert_eq!(sandbox.run(&["read", "a.md"]).ok(), "two\n");
    let undone = run(&["undo", "--key", "u1"]);
    assert_eq!(undone["planned"], false);
    assert_eq!(sandbox.run(&["read", "a.md"]).ok(), "one\n");
    assert_eq!(run(&["undo", "--key", "u1"])["replayed"], true);
    assert_eq!(sandbox.run(&["read", "a.md"]).ok(), "one\n");
    run(&["file", "delete", "a.md"]);
    let back = run(&["restore", "a.md", "--to", made["version"].as_str().expect("a version")]);
    assert_eq!((&back["done"], &back["version"]), (&json!("restored"), &made["version"]));
}

#[test]
fn what_cannot_be_taken_back_is_told() {
    let sandbox = Sandbox::new();
    sandbox.run(&["undo"]).fails(3);
    sandbox.run(&["diff", "none.md"]).fails(3);
    sandbox.run(&["file", "create", "a.md", "--text", "one\n"]).ok();
    sandbox.run(&["undo", "1", "--session", "x"]).fails(2);
    sandbox.run(&["restore", "a.md", "--to", "77"]).fails(3);
    sandbox.run(&["restore", "a.md", "--to", "1", "--expect", "00000000"]).fails(5);
    sandbox.run(&["read", "a.md", "--at", "77"]).fails(3);
    sandbox.run(&["history", "--before", "77"]).fails(3);
    assert_eq!(sandbox.run(&["read", "a.md"]).ok(), "one\n");
}

/// With several agents on one store, the latest change of all may be somebody else's.
#[test]
fn an_agent_undoes_its_own_changes() {
    let sandbox = Sandbox::new();
    let (mut one, mut two) =
        (Connection::new(&sandbox, &["--tools", "all"]), Connection::new(&sandbox, &["--tools", "all"]));
    one.call("file_create", json!({"path": "one-a.md", "text": "x"}));
    one.call("file_create", json!({"path": "one-b.md", "text": "x"}));
    two.call("file_create", json!({"path": "two.md", "text": "x"}));
    let undone = one.call("undo", json!({}));
    assert_eq!(undone["structuredContent"]["touched"], json!(["file:/memories/one-b.md"]), "{undone}");
    let undone = one.call("undo", json!({}));
    assert_eq!(undone["structuredContent"]["touched"], json!(["file:/memories/one-a.md"]), "{undone}");
    let nothing = one.call("undo", json!({}));
    assert_eq!(nothing["isError"], true, "{nothing}");
    assert_eq!(two.call("file_view", json!({"path": "two.md"}))["isError"], false);
    let both = two.call("undo", json!({"change": "1", "source": "x"}));
    assert_eq!(both["isError"], true, "{both}");
    one.close();
    two.close();
}

#[test]
fn the_demo_runs_on_a_bare_machine() {
    let sandbox = Sandbox::empty();
    let told = sandbox.run(&["demo"]).ok();
    for wanted in ["deploys on Tuesdays", "+- built from `release`, tagged", "undid change 6", "all is well"]
    {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    assert!(!sandbox.home().join(".memgrove").exists());
    let store = told.lines().find_map(|line| line.strip_prefix("The store is ")).expect("it says where");
    assert!(std::path::Path::new(store).join("files/projects/silica.md").is_file());
}
