//! `--json`: one object on standard output for every verb, with the fields that programs rely on.

use serde_json::{Value, json};

use super::mcp::Connection;
use super::sandbox::Sandbox;
use super::serve::Server;

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn files_in_json() {
    let sandbox = Sandbox::new();
    let run = |arguments: &[&str]| sandbox.run(&[&["--json"], arguments].concat()).json();
    let made = run(&["file", "create", "/memories/a.md", "--text", "one\ntwo\n"]);
    assert_eq!(keys(&made), ["change", "done", "path", "size", "version"]);
    assert_eq!((&made["done"], &made["path"]), (&json!("created"), &json!("/memories/a.md")));
    let version = made["version"].as_str().expect("text").to_owned();
    let edited = run(&["file", "insert", "a.md", "1", "--text", "zero", "--expect", &version[..8]]);
    assert_eq!((&edited["done"], &edited["line"]), (&json!("edited"), &json!(1)));
    let edited = run(&["file", "replace", "a.md", "--old", "one", "--new", "1"]);
    assert_eq!(edited["line"], 2);
    let seen = run(&["file", "view", "a.md"]);
    assert_eq!(keys(&seen), ["from", "lines", "path", "size", "text", "type", "version"]);
    assert_eq!((&seen["text"], &seen["lines"]), (&json!("zero\n1\ntwo"), &json!(3)));
    let seen = run(&["file", "view", "a.md", "--lines", "2:2"]);
    assert_eq!((&seen["text"], &seen["from"]), (&json!("1"), &json!(2)));
    let cut = run(&["file", "view", "a.md", "--budget", "1"]);
    assert_eq!(cut["left_out"], "lines 2 to 3 left out: view with lines \"2:\"");
    let moved = run(&["file", "rename", "a.md", "sub/b.md"]);
    assert_eq!(
        (&moved["old_path"], &moved["path"]),
        (&json!("/memories/a.md"), &json!("/memories/sub/b.md"))
    );
    let listed = run(&["file", "view"]);
    assert_eq!(listed["entries"], json!([{"name": "sub", "type": "folder", "size": 0}]));
    assert_eq!(run(&["file", "delete", "sub/b.md"])["done"], "deleted");
    let batch = json!([
        {"type": "create", "path": "/memories/x.md", "content": "x\n"},
        {"type": "rename", "old_path": "x.md", "new_path": "y.md"},
    ]);
    let done = run(&["file", "batch", "--text", &batch.to_string()]);
    assert_eq!(keys(&done), ["change", "results"]);
    assert_eq!(done["results"][1]["path"], "/memories/y.md");
}

/// At a command line, over MCP and over HTTP, alone and in a batch.
#[test]
fn bytes_of_any_kind_can_be_sent() {
    let sandbox = Sandbox::new();
    let bytes = |path: &str| sandbox.run(&["--json", "read", path]).json()["base64"].clone();
    let batch = |path: &str| {
        json!([
            {"type": "create", "path": path, "content_base64": "AJ+Slg=="},
            {"type": "write", "path": path, "content_base64": "/wA="},
        ])
    };
    sandbox.feed(&["file", "batch"], batch("cli.bin").to_string()).ok();
    assert_eq!(bytes("cli.bin"), "/wA=");
    let (mut mcp, server) = (Connection::new(&sandbox, &["--tools", "all"]), Server::start(&sandbox, &[]));
    let mut call = |door: &str, tool: &str, arguments: Value| match door {
        "mcp" => mcp.call(tool, arguments).to_string(),
        _ => {
            String::from_utf8_lossy(&server.post(&format!("/api/{tool}"), &arguments, &[]).body).into_owned()
        }
    };
    for door in ["mcp", "http"] {
        let (one, other) = (format!("{door}-1.bin"), format!("{door}-2.bin"));
        call(door, "file_create", json!({"path": one, "content_base64": "AJ+Slg=="}));
        assert_eq!(bytes(&one), "AJ+Slg==");
        call(door, "file_batch", json!({"operations": batch(&other)}));
        assert_eq!(bytes(&other), "/wA=");
        for (given, said) in [
            (json!({"text": "x", "content_base64": "eA=="}), "`text` and `content_base64` are both given"),
            (json!({"content_base64": "no base64"}), "is not base64"),
            (json!({}), "`text` is missing"),
        ] {
            let mut given = given;
            given["path"] = "none.bin".into();
            let told = call(door, "file_create", given);
            assert!(told.contains(said), "{told}");
        }
        let both = json!([{"type": "write", "path": "none.bin", "content": "x", "content_base64": "eA=="}]);
        let told = call(door, "file_batch", json!({ "operations": both }));
        assert!(told.contains("`content` and `content_base64` are both given"), "{told}");
    }
    mcp.close();
    server.end();
}

#[test]
fn the_status_in_json() {
    let sandbox = Sandbox::new();
    let run = |arguments: &[&str]| sandbox.run(&[&["--json"], arguments].concat()).json();
    assert_eq!(run(&["status"])["files"], 0, "the store's own files are no memories");
    assert_eq!(run(&["status"])["exists"], true);
    assert_eq!(Sandbox::empty().run(&["--json", "status"]).json()["exists"], false);
    run(&["file", "create", "a.md", "--text", "one\n"]);
    let told = run(&["status"]);
    assert_eq!((&told["files"], &told["bytes"]), (&json!(1), &json!(4)));
    assert!(told["history_bytes"].as_u64().is_some_and(|bytes| bytes > 4), "{told}");
    let shown = sandbox.run(&["status"]).ok();
    assert!(shown.contains("history of "), "{shown}");
}

#[test]
fn reading_and_finding_in_json() {
    let sandbox = Sandbox::new();
    let run = |arguments: &[&str]| sandbox.run(&[&["--json"], arguments].concat()).json();
    sandbox.feed(&["file", "create", "a.md"], "Alpha\nbeta\n").ok();
    sandbox.feed(&["file", "create", "b.bin"], [0u8, 159, 146, 150]).ok();
    let read = run(&["read", "file:/memories/a.md"]);
    assert_eq!(keys(&read), ["address", "text", "version"]);
    assert_eq!(run(&["read", "b.bin"])["base64"], "AJ+Slg==");
    assert_eq!(run(&["file", "view", "b.bin"])["left_out"], "not text: `memgrove read` gives the bytes");
    let found = run(&["find", "ALPHA"]);
    assert_eq!(found["hits"], json!([{"address": "file:/memories/a.md", "line": 1, "text": "Alpha"}]));
    assert_eq!(found["left_out"], "1 file is not text, or over 16 MiB");
    let none = run(&["find", "a", "--budget", "1"]);
    assert_eq!((&none["hits"], &none["total"]), (&json!([]), &json!(2)));
}

#[test]
fn the_past_and_the_store_in_json() {
    let sandbox = Sandbox::new();
    let run = |arguments: &[&str]| sandbox.run(&[&["--json"], arguments].concat()).json();
    run(&["file", "create", "a.md", "--text", "1\n", "--reason", "a start"]);
    run(&["file", "create", "b.md", "--text", "1\n"]);
    let past = run(&["history", "--limit", "1"]);
    assert_eq!(keys(&past), ["changes", "left_out", "next_before"]);
    let before = past["next_before"].as_str().expect("a change");
    assert_eq!(run(&["history", "--before", before])["changes"][0]["change"], "1");
    assert_eq!(past["changes"][0]["verb"], "file_create");
    let past = run(&["history", "file:/memories/a.md"]);
    assert_eq!(past["changes"][0]["reason"], "a start");
    assert_eq!(past["changes"][0]["edits"][0]["at"], "file:/memories/a.md");
    let again = run(&["init"]);
    assert_eq!((keys(&again), &again["made"]), (vec!["made", "store"], &json!(false)));
    let health = run(&["doctor"]);
    assert_eq!(keys(&health), ["exists", "findings", "found", "selection", "store"]);
    assert_eq!(health["findings"], json!([]));
    let backends = run(&["backends", "--requires", "concurrent_writers"]);
    assert_eq!(backends["selection"]["backend"], "device-local");
    assert_eq!(backends["backends"][0]["capabilities"]["concurrent_writers"], true);
}

#[test]
fn a_repeated_key_gives_the_first_answer() {
    let sandbox = Sandbox::new();
    let arguments = ["--json", "file", "create", "a.md", "--text", "x\n", "--key", "k1"];
    let first = sandbox.run(&arguments).json();
    let second = sandbox.run(&arguments).json();
    assert_eq!(second["replayed"], true);
    assert_eq!((&first["version"], &first["change"]), (&second["version"], &second["change"]));
    assert_eq!(sandbox.run(&["--json", "history"]).json()["changes"].as_array().expect("changes").len(), 1);
}

#[test]
fn text_from_everywhere_and_bytes_as_they_are() {
    let sandbox = Sandbox::new();
    let bytes: Vec<u8> = (0..=255).collect();
    std::fs::write(sandbox.project().join("some.bin"), &bytes).expect("a file");
    sandbox.run(&["file", "create", "from.bin", "--from", "some.bin"]).ok();
    sandbox.feed(&["file", "create", "stdin.bin"], &bytes).ok();
    for name in ["from.bin", "stdin.bin"] {
        let output = sandbox.memgrove(&["read", name]).output().expect("it can be started");
        assert_eq!(output.stdout, bytes, "{name}");
    }
    sandbox.run(&["file", "create", "lines.md", "--text", "one\nfour\n"]).ok();
    std::fs::write(sandbox.project().join("three.md"), "three\n").expect("a file");
    sandbox.feed(&["file", "insert", "lines.md", "2"], "two\n").ok();
    sandbox.run(&["file", "insert", "lines.md", "3", "--from", "three.md"]).ok();
    assert_eq!(sandbox.run(&["read", "lines.md"]).ok(), "one\ntwo\nthree\nfour\n");
    sandbox.run(&["file", "create", "x", "--from", "none.bin"]).fails(3);
    sandbox.run(&["file", "create", "x", "--from", "some.bin", "--text", "y"]).fails(2);
}
