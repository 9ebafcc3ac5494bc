//! Notes under many real processes: every fact is in, also while notes are split.

use std::thread;

use serde_json::json;

use super::mcp::Connection;
use super::sandbox::Sandbox;

/// All notes of a store as one text.
fn all(sandbox: &Sandbox) -> String {
    let listed = sandbox.run(&["--json", "note", "list"]).json();
    let files = listed["files"].as_array().expect("files");
    files
        .iter()
        .map(|file| sandbox.run(&["note", "read", file["path"].as_str().expect("text")]).ok())
        .collect()
}

#[test]
fn two_agents_update_one_note_at_once_and_both_facts_are_in() {
    let sandbox = Sandbox::new();
    for round in 0..10 {
        thread::scope(|scope| {
            for agent in ["Ada", "Bob"] {
                let sandbox = &sandbox;
                scope.spawn(move || {
                    let fact = format!("{agent} was here in round {round} and liked it");
                    sandbox.run(&["note", "write", &fact]).ok();
                });
            }
        });
    }
    let all = all(&sandbox);
    for round in 0..10 {
        for agent in ["Ada", "Bob"] {
            assert_eq!(all.matches(&format!("{agent} was here in round {round} and")).count(), 1, "{all}");
        }
    }
}

#[test]
fn servers_that_write_and_split_together_lose_nothing() {
    const WRITES: usize = 60;
    let sandbox = Sandbox::new();
    let names = ["Silica", "Garden", "Piano", "Lisbon"];
    thread::scope(|scope| {
        for (agent, name) in names.iter().enumerate() {
            let sandbox = &sandbox;
            scope.spawn(move || {
                let mut mcp = Connection::new(sandbox, &["--tools", "notes"]);
                for write in 0..WRITES {
                    let about = names[(agent + write) % names.len()];
                    let content = format!(
                        "{about} came up again, as {name} number {write} says in a sentence of some length"
                    );
                    let done = mcp.call("write_memory", json!({"content": content}));
                    assert_eq!(done["isError"], false, "{done}");
                }
                assert_eq!(mcp.close(), 0);
            });
        }
    });
    let all = all(&sandbox);
    for name in names {
        for write in 0..WRITES {
            assert_eq!(
                all.matches(&format!("as {name} number {write} says")).count(),
                1,
                "{name} {write}\n{all}"
            );
        }
    }
    let listed = sandbox.run(&["--json", "note", "list"]).json();
    let files = listed["files"].as_array().expect("files");
    assert!(files.len() > 1, "it was split");
    assert!(files.iter().all(|file| file["size_bytes"].as_u64().expect("a number") <= 10_240), "{listed}");
    assert!(sandbox.run(&["doctor"]).ok().ends_with("all is well\n"));
}

#[test]
fn what_is_forgotten_of_a_note_leaves_its_metadata_true() {
    let sandbox = Sandbox::new();
    let text = "# Memory\n\n## Tea\n\n- green\n\n## Soup\n\n- hot\n";
    sandbox.feed(&["note", "write", "--mode", "replace"], text).ok();
    sandbox.run(&["forget", "note:memory#tea"]).ok();
    let text = std::fs::read_to_string(sandbox.store().join("notes/memory.md")).expect("a note");
    assert!(text.starts_with("# Memory\n\n## Soup\n\n- hot\n\n## Metadata\n"), "{text}");
    assert!(text.contains(&format!("size_bytes: {}\n", text.len())), "{text}");
    assert!(sandbox.run(&["doctor"]).ok().ends_with("all is well\n"));
}

#[test]
fn the_seeds_own_names_and_fields() {
    let sandbox = Sandbox::new();
    let mut mcp = Connection::new(&sandbox, &["--tools", "notes"]);
    let written =
        mcp.call("write_memory", json!({"content": "Silica uses pytest", "path": "projects/silica"}));
    let result = &written["structuredContent"];
    assert_eq!(result["success"], true);
    assert_eq!((&result["path"], &result["split_triggered"]), (&json!("projects/silica"), &json!(false)));
    assert!(result["size_bytes"].as_u64() > Some(20) && result["new_files"] == json!([]), "{result}");
    let read = mcp.call("read_memory", json!({"path": "projects/silica"}));
    assert!(
        read["content"][0]["text"].as_str().expect("text").starts_with("# Silica\n\n- Silica uses pytest")
    );
    let missing = mcp.call("read_memory", json!({"path": "nowhere"}));
    assert_eq!(missing["isError"], true);
    let listed = mcp.call("list_memory_files", json!({}))["structuredContent"].clone();
    assert_eq!(listed["files"][0]["links_to"], json!(["projects/silica"]));
    assert_eq!(listed["files"][1]["linked_from"], json!(["memory"]));
    let graph = mcp.call("get_memory_graph", json!({}))["structuredContent"].clone();
    assert_eq!(graph["nodes"][1]["label"], "Silica");
    assert_eq!(
        (&graph["edges"][0]["from"], &graph["edges"][0]["to"]),
        (&json!("memory"), &json!("projects/silica"))
    );
    assert_eq!(mcp.close(), 0);
    let found = sandbox.run(&["--json", "note", "search", "What does Silica use for testing?"]).json();
    let best = &found["results"][0];
    assert_eq!(
        (&best["path"], &best["context"]),
        (&json!("projects/silica"), &json!("memory > projects/silica"))
    );
    assert!(best["relevance_score"].as_f64().is_some_and(|score| (0.0..=1.0).contains(&score)), "{best}");
    let settings = sandbox.store().join("memgrove.toml");
    let text = std::fs::read_to_string(&settings).expect("settings") + "\n[notes]\nbytes_max = 400\n";
    std::fs::write(&settings, text).expect("a person may write");
    let done = (0..8)
        .map(|n| format!("- Lisbon trip {n} costs money\n- Berlin trip {n} costs time\n"))
        .collect::<String>();
    let split = sandbox.feed(&["--json", "note", "write", "--mode", "append"], done).json();
    assert_eq!(split["split_triggered"], true, "{split}");
    for picture in ["--svg", "--dot", "--mermaid"] {
        assert!(sandbox.run(&["note", "graph", picture]).ok().contains("Silica"), "{picture}");
    }
}
