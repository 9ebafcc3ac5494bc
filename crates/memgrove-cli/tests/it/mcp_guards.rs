//! What guards a change that is asked for over MCP: the key it is known by, and the version it expects.

use serde_json::{Value, json};

use super::mcp::Connection;
use super::sandbox::Sandbox;

/// A client may send again what was answered into a broken stream: nothing may be done twice for it.
#[test]
fn every_tool_that_changes_something_takes_a_key_and_a_version() {
    let mut all = Connection::new(&Sandbox::new(), &["--tools", "all"]);
    let listed = all.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().expect("a list").clone();
    let changing = tools.iter().filter(|tool| tool["annotations"]["readOnlyHint"] == false);
    let (mut without_key, mut without_version) = (Vec::new(), Vec::new());
    for name in changing.map(|tool| tool["name"].as_str().expect("a name")) {
        let mut takes = |argument: &str| {
            let told = all.call(name, json!({argument: 7}))["content"][0]["text"].to_string();
            let taken = told.contains(&format!("`{argument}` of `{name}` is not of the type string"));
            assert!(taken || told.contains(&format!("takes no argument `{argument}`")), "{told}");
            taken
        };
        assert_eq!(takes("key"), takes("reason"), "{name}");
        if !takes("key") {
            without_key.push(name);
        }
        if !takes("expect") {
            without_version.push(name);
        }
    }
    // Whose repeat finds nothing left to do.
    assert_eq!(without_key, ["graph_import", "graph_check"]);
    // What makes something new, keeps one state, or names a version for each of its parts.
    let without_version: Vec<&str> =
        without_version.into_iter().filter(|name| !without_key.contains(name)).collect();
    assert_eq!(
        without_version,
        [
            "remember",
            "record_add",
            "record_add_many",
            "entity_batch",
            "entity_learn",
            "entity_role",
            "entity_pattern",
            "graph_batch",
            "graph_ontology",
            "file_batch",
            "undo"
        ]
    );
    all.close();
}

#[test]
fn a_command_of_the_memory_tool_can_be_sent_again_and_expect_a_version() {
    let sandbox = Sandbox::new();
    let mut mcp = Connection::new(&sandbox, &["--tools", "files"]);
    let path = "/memories/a.md";
    mcp.call("memory", json!({"command": "create", "path": path, "file_text": "one\n"}));
    let insert = |extra: Value| {
        let mut asked = json!({"command": "insert", "path": path, "insert_line": 1, "insert_text": "two\n"});
        asked.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        asked
    };
    let first = mcp.call("memory", insert(json!({"key": "k1", "reason": "to see"})));
    assert_eq!(first["isError"], false, "{first}");
    assert_eq!(mcp.call("memory", insert(json!({"key": "k1", "reason": "to see"}))), first);
    assert_eq!(sandbox.run(&["read", "file:/memories/a.md"]).ok(), "one\ntwo\n");
    let other = mcp.call("memory", json!({"command": "delete", "path": path, "key": "k1"}));
    assert!(other["isError"] == true && other.to_string().contains("was used for something else"), "{other}");
    assert_eq!(sandbox.run(&["--json", "history"]).json()["changes"][0]["reason"], "to see");

    let version = sandbox.run(&["--json", "read", "file:/memories/a.md"]).json()["version"].clone();
    let short = &version.as_str().expect("it has one")[..8];
    let changed = mcp.call("memory", insert(json!({"expect": short})));
    assert_eq!(changed["isError"], false, "{changed}");
    for command in [
        insert(json!({"expect": version})),
        json!({"command": "str_replace", "path": path, "old_str": "gone", "new_str": "x", "expect": version}),
        json!({"command": "delete", "path": path, "expect": version}),
        json!({"command": "rename", "old_path": path, "new_path": "/memories/b.md", "expect": version}),
        json!({"command": "create", "path": "/memories/b.md", "file_text": "x", "expect": version}),
    ] {
        let refused = mcp.call("memory", command.clone());
        let told = refused["content"][0]["text"].as_str().expect("text");
        assert!(refused["isError"] == true && told.contains("not at version"), "{command}: {told}");
    }
    assert_eq!(sandbox.run(&["read", "file:/memories/a.md"]).ok(), "one\ntwo\ntwo\n");
    mcp.close();
}
