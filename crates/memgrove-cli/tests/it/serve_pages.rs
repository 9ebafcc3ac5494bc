//! What the pages of `memgrove serve` send and show, without a browser.

use serde_json::{Value, json};

use super::sandbox::Sandbox;
use super::serve::{Answer, Server};

/// Sends a form.
fn sent(server: &Server, path: &str, fields: &[(&str, &str)]) -> Answer {
    let coded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", coded(value))).collect();
    let (name, value) = server.bearer();
    let headers = [(name, value.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
    server.send("POST", path, &headers, body.join("&").as_bytes())
}

fn shown(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

#[test]
fn a_page_that_is_old_deletes_nothing() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    server.post("/api/node_create", &json!({"type": "doc", "content": "one"}), &[]);
    server.post("/api/node_create", &json!({"type": "doc", "content": "two"}), &[]);
    let (name, value) = server.bearer();
    let content = |id: &str| format!("/api/content?address=node:{id}");
    let version = |id: &str| {
        let etag = server.get(&content(id), &[]).header("etag").expect("a version").to_owned();
        etag.trim_matches('"').to_owned()
    };
    let delete = |id: &str, version: &str| {
        let at = format!("graph/_content/nodes/{id}.md");
        sent(&server, "/delete", &[("at", &at), ("version", version)])
    };
    let old = version("mem_doc_001");
    assert_eq!(server.send("PUT", &content("mem_doc_001"), &[(name, &value)], b"newer").status, 200);
    assert_eq!(delete("mem_doc_001", &old).status, 412);
    assert_eq!(server.get(&content("mem_doc_001"), &[]).body, b"newer");
    assert_eq!(delete("mem_doc_001", &version("mem_doc_001")).status, 303);
    assert_eq!(server.get(&content("mem_doc_001"), &[]).status, 404);
    // What was edited by hand is seen, and so may be deleted.
    std::fs::write(sandbox.store().join("graph/_content/nodes/mem_doc_002.md"), "by hand").expect("a file");
    assert_eq!(delete("mem_doc_002", &version("mem_doc_002")).status, 303);
    server.end();
}

#[test]
fn a_conflict_in_a_record_keeps_all_that_was_typed() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let record = json!({"content": "tea", "type": "core", "tags": ["old"], "category": "food"});
    let id = server.post("/api/record_add", &record, &[]).json()["records"][0]["id"].clone();
    let got = server.post("/api/record_get", &json!({"id": id}), &[]).json();
    let version = got["version"].as_str().expect("a version");
    let theirs = json!({"id": id, "content": "coffee", "tags": ["theirs"]});
    assert_eq!(server.post("/api/record_update", &theirs, &[]).status, 200);
    let id = id.as_str().expect("an id");
    let fields = [
        ("id", id),
        ("version", version),
        ("content", "green tea"),
        ("tags", "mine, also mine"),
        ("category", "drinks"),
        ("importance", "high"),
        ("act", "record_update"),
    ];
    let page = shown(&sent(&server, "/record", &fields));
    for kept in [
        "value=\"mine, also mine\"",
        "value=\"drinks\"",
        "<option value=\"high\" selected>",
        "green tea</textarea>",
        "Tags: <strong>theirs</strong>",
        "Tags: <strong>mine, also mine</strong>",
    ] {
        assert!(page.contains(kept), "{kept}: {page}");
    }
    let kept: Value = server.post("/api/record_get", &json!({"id": id}), &[]).json();
    assert_eq!(kept["record"]["content"], "coffee", "nothing is overwritten");
    server.end();
}
