//! `memgrove serve` beside people: what they edit by hand is told, and who may only read changes nothing.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::sandbox::Sandbox;
use super::serve::Server;

/// The changes that a server tells, one after the other.
fn told(server: &Server) -> impl Iterator<Item = (Option<String>, Value)> + use<> {
    let mut stream = server.connect();
    let ask = format!(
        "GET /api/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        server.address, server.token
    );
    stream.write_all(ask.as_bytes()).expect("it reads");
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("text"));
    assert!(lines.any(|line| line.contains("event: listening")));
    assert!(lines.any(|line| line.starts_with("data:")));
    let mut id = None;
    lines.filter_map(move |line| {
        if let Some(given) = line.strip_prefix("id:") {
            id = Some(given.trim().to_owned());
        }
        let data = line.strip_prefix("data:")?;
        Some((id.take(), serde_json::from_str(data.trim()).expect("JSON")))
    })
}

#[test]
fn edits_by_hand_are_told_and_no_others_twice() {
    let sandbox = Sandbox::new();
    sandbox.run(&["file", "create", "a.md", "--text", "one"]).ok();
    sandbox.run(&["note", "write", "Silica uses pytest"]).ok();
    let server = Server::start(&sandbox, &[]);
    let mut events = told(&server);
    let by_hand = |event: (Option<String>, Value)| {
        let (id, data) = event;
        assert_eq!((id, &data["by"]), (None, &json!("hand")), "{data}");
        let edits = data["edits"].as_array().expect("edits").clone();
        edits.iter().map(|edit| format!("{} {}", edit["op"], edit["at"]).replace('"', "")).collect::<Vec<_>>()
    };
    std::fs::write(sandbox.store().join("files/a.md"), "two\n").expect("a file");
    assert_eq!(by_hand(events.next().expect("it goes on")), ["write file:/memories/a.md"]);
    // A change of ours is told once, with its name, and is not taken for an edit by hand.
    sandbox.run(&["file", "create", "b.md", "--text", "by us"]).ok();
    sandbox.run(&["note", "write", "Silica uses ruff too"]).ok();
    for at in ["file:/memories/b.md", "note:memory"] {
        let (id, data) = events.next().expect("it goes on");
        assert!(id.is_some() && data["edits"].to_string().contains(at), "{data}");
    }
    // The next look at the files has seen it.
    std::fs::write(sandbox.store().join("files/a.md"), "three\n").expect("a file");
    assert_eq!(by_hand(events.next().expect("it goes on")), ["write file:/memories/a.md"]);
    std::fs::remove_file(sandbox.store().join("files/b.md")).expect("it is there");
    assert_eq!(by_hand(events.next().expect("it goes on")), ["delete file:/memories/b.md"]);
    // Someone edits what was just changed here.
    let memory = sandbox.store().join("notes/memory.md");
    sandbox.run(&["note", "write", "Silica needs Python"]).ok();
    let text = std::fs::read_to_string(&memory).expect("it is there");
    std::fs::write(&memory, format!("{text}\nby hand\n")).expect("a file");
    assert!(events.next().expect("it goes on").0.is_some());
    assert_eq!(by_hand(events.next().expect("it goes on")), ["write note:memory"]);
    assert_eq!(server.end().0, 0);
}

/// Every file of a folder with its bytes and when it was last written.
fn tree(folder: &Path) -> BTreeMap<String, (Vec<u8>, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(tree(&path)),
            false => {
                let time = path.metadata().and_then(|known| known.modified()).expect("a time");
                found.insert(path.display().to_string(), (std::fs::read(&path).expect("bytes"), time));
            }
        }
    }
    found
}

#[test]
fn a_server_that_only_reads_writes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.run(&["file", "create", "a.md", "--text", "one"]).ok();
    sandbox.run(&["note", "write", "Silica uses pytest"]).ok();
    sandbox.run(&["entity", "store", "Ada", "--type", "person", "-o", "likes tea"]).ok();
    sandbox.run(&["node", "create", "project", "--content", "# Kitchen"]).ok();
    sandbox.run(&["connection", "create", "mem_project_001", "is", "mem_project_001"]).ok();
    sandbox.run(&["note", "write", "Silica is a [[connection:conn_001]]"]).ok();
    let added =
        sandbox.run(&["--json", "record", "add", "--type", "learning", "set a limit on every wait"]).json();
    let id = added["records"][0]["id"].as_str().expect("an id").to_owned();
    // What is found out of date is left so.
    let store = sandbox.store();
    std::fs::write(store.join("notes/extra.md"), "by hand\n").expect("a file");
    let graph = store.join("graph/_content/nodes/mem_project_001.md");
    std::fs::write(graph, "# Kitchen, by hand\n").expect("a file");
    std::fs::remove_file(store.join("graph/_system/registry.json")).expect("a registry");
    let before = tree(&store);
    let server = Server::start(&sandbox, &["--read-only"]);
    let reads: [(&str, Value); 12] = [
        ("read", json!({"address": format!("record:{id}")})),
        ("record_get", json!({"id": id})),
        ("record_list", json!({})),
        ("read", json!({"address": "file:/memories/a.md"})),
        ("recall", json!({"query": "pytest"})),
        ("brief", json!({})),
        ("doctor", json!({})),
        ("note_search", json!({"query": "pytest"})),
        ("note_list", json!({})),
        ("entity_search", json!({"query": "tea"})),
        ("node_list", json!({})),
        ("history", json!({})),
    ];
    for (verb, arguments) in reads {
        for _ in 0..3 {
            let answer = server.post(&format!("/api/{verb}"), &arguments, &[]);
            assert_eq!(answer.status, 200, "{verb}: {}", String::from_utf8_lossy(&answer.body));
        }
    }
    let doctor = server.post("/api/doctor", &json!({}), &[]).json();
    assert!(!doctor["findings"].to_string().contains("only be read"), "{doctor}");
    for page in ["/", "/browse/graph", "/browse/records", "/doctor", "/graph", "/statistics", "/timeline"] {
        assert_eq!(server.get(page, &[]).status, 200, "{page}");
    }
    assert_eq!(server.post("/api/node_list", &json!({}), &[]).json()["total"], 1, "the files are read");
    // A link to a connection leads somewhere.
    assert_eq!(server.get("/read?link=connection:conn_001", &[]).status, 200);
    let drawn = server.get("/graph/data", &[]).json().to_string();
    assert!(drawn.contains("mem_project_001") && !drawn.contains("not written yet"), "{drawn}");
    let changes: [(&str, Value); 4] = [
        ("file_create", json!({"path": "b.md", "text": "x"})),
        ("doctor", json!({"fix": true})),
        ("remember", json!({"text": "x"})),
        ("note_write", json!({"content": "x"})),
    ];
    for (verb, arguments) in changes {
        let answer = server.post(&format!("/api/{verb}"), &arguments, &[]);
        assert_eq!(answer.status, 403, "{verb}: {}", String::from_utf8_lossy(&answer.body));
    }
    assert_eq!(server.end().0, 0);
    let after = tree(&store);
    let changed: Vec<&String> =
        before.keys().chain(after.keys()).filter(|name| before.get(*name) != after.get(*name)).collect();
    // The journal's mark is the processes' own.
    let changed: Vec<&String> = changed.into_iter().filter(|name| !name.contains("/.journal/")).collect();
    assert_eq!(changed, Vec::<&String>::new());
    let counted = sandbox.run(&["--json", "record", "list"]).json();
    assert_eq!(counted["records"][0]["access_count"], 0, "{counted}");
}
