//! Records in a mounted folder are named as the store names them, whoever asks.

use serde_json::json;

use super::mcp::Connection;
use super::records::mounted;
use super::sandbox::Sandbox;

#[test]
fn a_mounted_record_is_read_and_heard_of_by_the_names_of_the_store() {
    let sandbox = Sandbox::new();
    mounted(&sandbox);
    let added = sandbox.run(&["record", "add", "Plants need water", "--json"]).json();
    let id = added["records"][0]["id"].as_str().expect("an id");
    let (address, change) = (format!("record:{id}"), added["change"].as_str().expect("a change"));
    sandbox.run(&["record", "update", id, "--content", "Plants need light"]).ok();

    let got = sandbox.run(&["record", "get", id, "--json"]).json();
    assert_eq!(got["file"], "records/learnings.jsonl");
    let then = sandbox.run(&["read", &address, "--at", change]).ok();
    assert!(then.contains("Plants need water"), "{then}");
    let file = sandbox.run(&["read", "records/learnings.jsonl"]).ok();
    assert!(file.contains("Plants need light"), "{file}");
    let then = sandbox.run(&["read", "records/learnings.jsonl", "--at", change]).ok();
    assert!(then.contains("Plants need water"), "{then}");
    let told = sandbox.run(&["read", &address, "--at", "1"]).fails(3);
    assert!(told.contains("records:"), "{told}");

    let mut server = Connection::new(&sandbox, &[]);
    let file = "memgrove://file/memories/last.md";
    for uri in [&format!("memgrove://record/{id}"), file] {
        server.ask("resources/subscribe", json!({"uri": uri}));
    }
    sandbox.run(&["record", "update", id, "--content", "Plants need both"]).ok();
    sandbox.run(&["file", "create", "last.md", "--text", "the last change"]).ok();
    let mut heard = Vec::new();
    while heard.last().is_none_or(|uri| uri != file) {
        heard.push(server.receive()["params"]["uri"].as_str().unwrap_or_default().to_owned());
    }
    assert!(heard.iter().any(|uri| uri.ends_with(id)), "the change of the record was heard: {heard:?}");
}
