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

#[test]
fn the_history_names_a_record_whatever_of_it_changed() {
    let sandbox = Sandbox::new();
    let told = sandbox.run(&["--json", "remember", "the lamp is green"]).json();
    let address = told["address"].as_str().expect("an address").to_owned();
    let id = address.trim_start_matches("record:");
    for change in [["--category", "home"], ["--importance", "high"], ["--tag", "light"]] {
        sandbox.run(&[&["record", "update", id][..], &change[..]].concat()).ok();
        let told = sandbox.run(&["history", &address, "--limit", "1"]).ok();
        assert!(told.contains(&format!("    write {address}  the lamp is green\n")), "{change:?}: {told}");
    }
}

/// Whether a text stands in any file of a home: in the store, its journal, or the index.
fn stands_anywhere(sandbox: &Sandbox, text: &str) -> String {
    let home = sandbox.home().display().to_string();
    let found = sandbox.command("grep").args(["-rla", text, &home]).output().expect("there is grep");
    String::from_utf8_lossy(&found.stdout).into_owned()
}

#[test]
fn what_is_redacted_is_nowhere() {
    let sandbox = Sandbox::new();
    let kept = sandbox.run(&["--json", "remember", "the kettle whistles"]).json();
    let told = sandbox.run(&["--json", "record", "add", "the code is hunter2", "--key", "k"]).json();
    let id = told["records"][0]["id"].as_str().expect("an id");
    let secret = format!("record:{id}");
    sandbox.run(&["remember", "the lamp is green"]).ok();
    sandbox.run(&["record", "update", id, "--content", "the code was hunter2"]).ok();
    sandbox.run(&["recall", "code"]).ok();
    assert!(sandbox.run(&["redact", &secret]).fails(2).contains("--dry-run"));
    for told in ["--dry-run", "--yes"] {
        assert!(sandbox.run(&["redact", &secret, told]).fails(5).contains("forget"), "{told}");
    }
    sandbox.run(&["forget", &secret]).ok();
    assert_eq!(
        sandbox.run(&["redact", &secret, "--dry-run"]).ok(),
        format!("would redact {secret} in changes 5, 4, 2\n")
    );
    assert_ne!(stands_anywhere(&sandbox, "hunter2"), "", "the test can fail");
    let done = sandbox.run(&["--json", "redact", &secret, "--yes", "--reason", "a password"]).json();
    assert_eq!(done["changes"], json!(["5", "4", "2"]), "{done}");
    assert_eq!(stands_anywhere(&sandbox, "hunter2"), "");
    // The others are what they were, and go on.
    let address = kept["address"].as_str().expect("an address");
    assert!(sandbox.run(&["read", address]).ok().contains("the kettle whistles"));
    assert!(sandbox.run(&["recall", "lamp"]).ok().contains("the lamp is green"));
    assert!(sandbox.run(&["history"]).ok().contains("redact by user cli: a password"));
    sandbox.run(&["history", address]).ok();
    sandbox.run(&["remember", "the door is red"]).ok();
    assert!(sandbox.run(&["undo"]).ok().contains("record:"));
    assert!(sandbox.run(&["doctor"]).ok().ends_with("all is well\n"));
}

#[test]
fn past_versions_of_files_and_entities_are_redacted() {
    let sandbox = Sandbox::new();
    sandbox.run(&["file", "create", "a.md", "--text", "hunter2\n"]).ok();
    sandbox.run(&["file", "rename", "a.md", "b.md"]).ok();
    sandbox.run(&["file", "replace", "b.md", "--old", "hunter2", "--new", "safe"]).ok();
    sandbox.run(&["remember", "sings hunter2", "--about", "Ada"]).ok();
    sandbox.run(&["remember", "plays chess", "--about", "Ada"]).ok();
    sandbox.run(&["forget", "entity:general/Ada#1"]).ok();
    sandbox.run(&["recall", "hunter2"]).ok();
    sandbox.run(&["redact", "entity:general/Ada#1", "--yes"]).fails(2);
    assert!(sandbox.run(&["redact", "node:mem_person_001", "--yes"]).fails(3).contains("there is no node"));
    let told = sandbox.run(&["redact", "b.md", "--yes"]).ok();
    assert!(
        told.starts_with("redacted file:/memories/b.md in change")
            && told.contains("the current version stays"),
        "{told}"
    );
    sandbox.run(&["redact", "entity:general/Ada", "--yes"]).ok();
    assert_eq!(stands_anywhere(&sandbox, "hunter2"), "");
    assert_eq!(sandbox.run(&["read", "b.md"]).ok(), "safe\n");
    assert!(sandbox.run(&["read", "entity:general/Ada"]).ok().contains("plays chess"));
    assert!(sandbox.run(&["redact", "b.md", "--yes"]).ok().starts_with("nothing is left to redact"));
}

#[test]
fn the_version_that_is_named_is_redacted_and_no_other() {
    let sandbox = Sandbox::new();
    sandbox.run(&["file", "create", "a.md", "--text", "one"]).ok();
    sandbox.run(&["file", "replace", "a.md", "--old", "one", "--new", "two"]).ok();
    sandbox.run(&["file", "create", "b.md", "--text", "another"]).ok();
    sandbox.run(&["file", "replace", "a.md", "--old", "two", "--new", "three"]).ok();
    sandbox.run(&["forget", "a.md"]).ok();
    let planned = sandbox.run(&["redact", "a.md", "--dry-run"]).ok();
    assert_eq!(planned, "would redact file:/memories/a.md in changes 4, 2, 1\n");
    // After change 3, which was about another file, it was still what change 2 had left.
    for change in ["4", "3"] {
        let done = sandbox.run(&["--json", "redact", "a.md", "--change", change, "--yes"]).json();
        assert_eq!(done["changes"], json!([if change == "4" { "4" } else { "2" }]), "{done}");
    }
    for gone in ["4", "2"] {
        assert!(sandbox.run(&["read", "a.md", "--at", gone]).fails(3).contains("redacted"), "{gone}");
    }
    assert_eq!(sandbox.run(&["read", "a.md", "--at", "1"]).ok(), "one");
    let again = sandbox.run(&["redact", "a.md", "--change", "2", "--yes"]).ok();
    assert!(again.starts_with("nothing is left to redact"), "{again}");
    let told = sandbox.run(&["history"]).ok();
    assert!(told.contains("redact by user cli: file:/memories/a.md in change 4"), "{told}");
    // What was never there is no success.
    let mistyped = sandbox.run(&["redact", "aa.md", "--yes"]).fails(3);
    assert!(mistyped.contains("`file:/memories/aa.md` is not in the history"), "{mistyped}");
    assert!(sandbox.run(&["redact", "record:none", "--yes"]).fails(3).contains("there is no record `none`"));
    let unknown = sandbox.run(&["redact", "a.md", "--change", "99", "--yes"]).fails(3);
    assert!(unknown.contains("does not hold a change `99`"), "{unknown}");
}

#[test]
fn nodes_and_connections_are_redacted_with_what_the_registry_knew() {
    let sandbox = Sandbox::new();
    let create = ["node", "create", "safe", "-p", "code=hunter2", "--content", "opens with hunter2\n"];
    sandbox.run(&[&create[..], &["--key", "k"]].concat()).ok();
    sandbox.run(&create).ok();
    sandbox.run(&["node", "create", "house", "-p", "title=Mill"]).ok();
    let connect = ["connection", "create", "mem_safe_002", "stands_in", "mem_house_001", "-p", "key=hunter2"];
    sandbox.run(&[&connect[..], &["--content", "says hunter2"]].concat()).ok();
    // Of what is there, what it was; of what is not, all of it.
    let node = "node:mem_safe_002";
    sandbox.run(&["node", "update", "mem_safe_002", "-p", "code=none"]).ok();
    sandbox.run(&["node", "edit", "mem_safe_002", "write", "--content", "opens with a key\n"]).ok();
    sandbox.run(&["forget", "node:mem_safe_001"]).ok();
    sandbox.run(&["forget", "connection:conn_001"]).ok();
    sandbox.run(&["recall", "hunter2"]).ok();
    let planned = sandbox.run(&["redact", node, "--dry-run"]).ok();
    assert!(planned.starts_with("would redact node:mem_safe_002 in changes "), "{planned}");
    assert_ne!(stands_anywhere(&sandbox, "hunter2"), "", "the test can fail");
    let told = sandbox.run(&["redact", node, "--yes", "--reason", "a password"]).ok();
    assert!(told.contains("the current version stays"), "{told}");
    for gone in ["node:mem_safe_001", "connection:conn_001"] {
        let told = sandbox.run(&["redact", gone, "--yes"]).ok();
        assert!(told.starts_with(&format!("redacted {gone} in change")) && !told.contains("stays"), "{told}");
    }
    assert_eq!(stands_anywhere(&sandbox, "hunter2"), "");
    // The others are what they were, and go on.
    assert!(sandbox.run(&["read", node]).ok().contains("opens with a key"));
    assert!(sandbox.run(&["recall", "mill"]).ok().contains("node:mem_house_001"));
    assert!(sandbox.run(&["history"]).ok().contains("redact by user cli: a password"));
    sandbox.run(&["history", node]).ok();
    sandbox.run(&["node", "update", "mem_house_001", "-p", "title=Barn"]).ok();
    sandbox.run(&["undo"]).ok();
    assert!(sandbox.run(&["read", "node:mem_house_001"]).ok().contains("Mill"));
    assert!(sandbox.run(&["doctor"]).ok().ends_with("all is well\n"));
    assert!(sandbox.run(&["redact", node, "--yes"]).ok().starts_with("nothing is left to redact"));
}

#[test]
fn a_long_history_is_pruned_from_its_beginning() {
    let sandbox = Sandbox::new();
    let half = "x".repeat(600_000);
    for name in ["a", "b", "c", "d", "e", "f"] {
        sandbox.feed(&["file", "create", name], &half).ok();
    }
    sandbox.run(&["file", "replace", "a", "--old", &half[..100_000], "--new", "y"]).fails(2);
    sandbox.run(&["file", "delete", "a"]).ok();
    sandbox.run(&["history", "prune"]).fails(2);
    sandbox.run(&["history", "prune", "--keep", "1"]).fails(2);
    assert!(
        sandbox.run(&["history", "prune", "--before", "soon", "--dry-run"]).fails(2).contains("2026-01-31")
    );
    let all = sandbox.run(&["--json", "history"]).json()["changes"].as_array().map_or(0, Vec::len);
    let planned = sandbox.run(&["--json", "history", "prune", "--keep", "2", "--dry-run"]).json();
    assert_eq!(sandbox.run(&["--json", "history"]).json()["changes"].as_array().map_or(0, Vec::len), all);
    let done = sandbox.run(&["--json", "history", "prune", "--keep", "2", "--yes"]).json();
    assert_eq!((&planned["planned"], &done["planned"]), (&json!(true), &json!(false)));
    let left = sandbox.run(&["--json", "history"]).json();
    let left = left["changes"].as_array().expect("changes");
    // At least two are kept, and it is told that the others were not.
    let went = usize::try_from(done["changes"].as_u64().expect("a count")).expect("a small one");
    assert!(went > 0 && all - went >= 2 && left.len() == all - went + 1, "{done} {left:?}");
    assert_eq!(left[0]["verb"], "history_prune");
    // What is there is as it was, and the newest change can be taken back.
    assert_eq!(sandbox.run(&["read", "f"]).ok(), half);
    sandbox.run(&["undo", "7"]).ok();
    assert_eq!(sandbox.run(&["read", "a"]).ok(), half);
    let none = sandbox.run(&["--json", "history", "prune", "--before", "2001-01-01", "--yes"]).json();
    assert_eq!(none["changes"], 0);
    sandbox.run(&["history", "prune", "--keep", "0", "--yes"]).ok();
    sandbox.run(&["file", "create", "g", "--text", "after all"]).ok();
    assert_eq!(sandbox.run(&["--json", "history"]).json()["changes"].as_array().map_or(0, Vec::len), 2);
    assert!(sandbox.run(&["doctor"]).ok().ends_with("all is well\n"));
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
fn an_undo_that_is_sent_again_tells_the_same() {
    let sandbox = Sandbox::new();
    sandbox.run(&["remember", "the tea is in the tin"]).ok();
    sandbox.run(&["entity", "store", "Ada", "--type", "person", "--observation", "likes tea"]).ok();
    let undo = |key: &str| sandbox.run(&["--json", "undo", "--source", "cli", "--key", key]).json();
    let (first, again) = (undo("k"), undo("k"));
    assert!(first["touched"].to_string().contains("record:"), "{first}");
    assert_eq!((&again["touched"], &again["replayed"]), (&first["touched"], &json!(true)), "{again}");
}

#[test]
fn the_demo_runs_on_a_bare_machine() {
    let sandbox = Sandbox::empty();
    let told = sandbox.run(&["demo"]).ok();
    let answer = told.split("memgrove recall").nth(1).and_then(|rest| rest.split("\n$ ").next());
    assert!(answer.is_some_and(|answer| answer.contains("deploys on Tuesdays")), "{answer:?}");
    for wanted in ["+- built from `release`, tagged", "undid change 6", "all is well"] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    assert!(!sandbox.home().join(".memgrove").exists());
    let store = told.lines().find_map(|line| line.strip_prefix("The store is ")).expect("it says where");
    assert!(std::path::Path::new(store).join("files/projects/silica.md").is_file());
}

#[test]
fn an_import_is_undone_whole() {
    let sandbox = Sandbox::new();
    let undo = || sandbox.run(&["undo", "--json"]).json();
    sandbox.run(&["file", "create", "a.md", "--text", "one"]).ok();
    let graph = r#"{"nodes": [{"id": "tea", "type": "drink"}, {"id": "pot", "type": "thing"}],
        "connections": [{"type": "made_in", "from": "tea", "to": "pot"}]}"#;
    sandbox.feed(&["graph", "import"], graph).ok();
    let server = sandbox.home().join("memory.jsonl");
    let lines = r#"{"type":"entity","name":"Ann","entityType":"person","observations":["likes tea"]}
{"type":"entity","name":"Bo","entityType":"person","observations":[]}
{"type":"relation","from":"Ann","to":"Bo","relationType":"knows"}
"#;
    std::fs::write(&server, lines).expect("a file");
    sandbox.run(&["import", "mcp-memory", server.to_str().expect("text")]).ok();
    assert_eq!(undo()["undone"], json!(["5", "4"]));
    sandbox.run(&["read", "entity:person/Ann"]).fails(3);
    sandbox.run(&["read", "node:tea"]).ok();
    let undone = undo();
    assert_eq!(undone["undone"], json!(["3", "2"]));
    sandbox.run(&["read", "node:tea"]).fails(3);
    // One change of it alone is taken back by its name.
    sandbox.run(&["undo", undone["change"].as_str().expect("a name")]).ok();
    assert_eq!(sandbox.run(&["undo", "3", "--json"]).json()["undone"], json!(["3"]));
    sandbox.run(&["read", "node:tea"]).ok();
    // And what is left of it without a name.
    assert_eq!(undo()["undone"], json!(["2"]));
    sandbox.run(&["read", "node:tea"]).fails(3);
    assert_eq!(sandbox.run(&["read", "file:/memories/a.md"]).ok(), "one");
}
