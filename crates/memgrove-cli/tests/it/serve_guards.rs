//! What `memgrove serve` refuses, and whose name it writes down.

use serde_json::{Value, json};

use super::sandbox::Sandbox;
use super::serve::{Answer, Server};

const AT: &str = "/api/content?address=file:/memories/a.md";

#[test]
fn content_is_put_whole_and_parts_of_it_fit() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let (name, value) = server.bearer();
    let put = |more: &[(&str, &str)], bytes: &[u8]| {
        server.send("PUT", AT, &[&[(name, value.as_str())], more].concat(), bytes)
    };
    let etag = put(&[], b"abcdefgh").header("etag").expect("a version").to_owned();
    for (header, given, status) in [
        ("Content-Range", "bytes 0-2/8", 400),
        ("Content-Encoding", "gzip", 415),
        ("Content-Encoding", "identity", 200),
    ] {
        assert_eq!(put(&[(header, given)], b"abcdefgh").status, status, "{header}: {given}");
    }
    let part = |if_range: &str| {
        let answer = server.get(AT, &[("Range", "bytes=0-3"), ("If-Range", if_range)]);
        (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
    };
    assert_eq!(part(&etag), (206, "abcd".to_owned()));
    for other in ["\"other\"", &format!("W/{etag}"), "Wed, 21 Oct 2015 07:28:00 GMT"] {
        assert_eq!(part(other), (200, "abcdefgh".to_owned()), "{other}");
    }
    for path in [AT, "/api/read?address=file:/memories/a.md"] {
        assert_eq!(server.get(path, &[("If-None-Match", "*")]).status, 304, "{path}");
    }
    server.end();
}

#[test]
fn a_report_of_what_is_wrong_is_an_answer() {
    let sandbox = Sandbox::new();
    sandbox.run(&["node", "create", "doc", "--content", "one"]).ok();
    let said = sandbox.store().join("graph/_content/nodes/mem_doc_001.meta.json");
    std::fs::write(said, "{").expect("a file");
    let server = Server::start(&sandbox, &[]);
    for verb in ["doctor", "graph_check", "backends"] {
        let answer = server.post(&format!("/api/{verb}"), &json!({}), &[]);
        assert_eq!(answer.status, 200, "{verb}: {}", answer.json());
    }
    let found = server.post("/api/doctor", &json!({}), &[]).json();
    assert!(found["findings"].to_string().contains("\"error\""), "{found}");
    server.end();
}

#[test]
fn what_reads_is_offered_and_what_is_taken_is_described() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    for verb in ["status", "conflicts", "note_log", "index_status", "backends"] {
        assert_eq!(server.get(&format!("/api/{verb}"), &[]).status, 200, "{verb}");
    }
    for text in ["tea in the morning", "tea in the evening"] {
        server.post("/api/remember", &json!({"text": text}), &[]);
    }
    let found = server.get("/api/recall?query=tea&limit=1&explain=true", &[]).json();
    let hits = found["hits"].as_array().expect("hits");
    assert!(hits.len() == 1 && hits[0].get("explain").is_some(), "{found}");
    let paths = server.get("/api/openapi.json", &[]).json()["paths"].clone();
    let headers = |verb: &str| -> Vec<String> {
        let parameters = paths[format!("/api/{verb}")]["post"]["parameters"].as_array().cloned();
        parameters
            .unwrap_or_default()
            .iter()
            .map(|one| one["name"].as_str().unwrap_or_default().into())
            .collect()
    };
    let both = ["If-Match", "Idempotency-Key"];
    for (verb, taken) in [
        ("forget", &both[..]),
        ("note_split", &both[..]),
        ("note_merge", &both[..]),
        ("remember", &both[1..]),
        ("recall", &[]),
    ] {
        assert_eq!(headers(verb), taken, "{verb}");
    }
    assert_eq!(paths["/api/recall"]["get"]["parameters"].as_array().map(Vec::len), Some(5));
    server.end();
}

#[test]
fn no_token_signs_for_another() {
    let sandbox = Sandbox::new();
    let state = sandbox.home().join(".local/state/memgrove");
    std::fs::create_dir_all(&state).expect("a folder");
    let token = "w".repeat(40);
    let written = |name: &str| {
        let text = format!("[[token]]\nname = \"{name}\"\ntoken = \"{token}\"\nscope = \"write\"\n");
        std::fs::write(state.join("tokens.toml"), text).expect("a file");
    };
    for name in ["owner", "a/b", " "] {
        written(name);
        let refused = sandbox.run(&["serve", "--listen", "127.0.0.1:0"]).fails(2);
        assert!(refused.contains("cannot be the name of a token"), "{refused}");
    }
    written("worker");
    let server = Server::start(&sandbox, &[]);
    let bearer = format!("Bearer {token}");
    let ask = |path: &str, more: &[(&str, &str)], body: &Value| -> Answer {
        let own = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        server.send("POST", path, &[&own, more].concat(), body.to_string().as_bytes())
    };
    let store = ask("/v1/memory_stores", &[], &json!({"name": "s"})).json()["id"].clone();
    let memories = format!("/v1/memory_stores/{}", store.as_str().expect("an id"));
    let forged = [("X-Memgrove-Client", "owner")];
    let made = ask(&format!("{memories}/memories"), &forged, &json!({"path": "/a.md", "content": "x"}));
    assert_eq!(made.status, 200, "{}", made.json());
    let twice = ask(&format!("{memories}/memories"), &[], &json!({"path": "/a.md", "content": "x"})).json();
    assert!(twice["error"]["message"].to_string().contains("`/a.md`"), "{twice}");
    let versions = server.get(&format!("{memories}/memory_versions"), &[]).json();
    assert_eq!(versions["data"][0]["created_by"]["api_key_id"], "apikey_worker", "{versions}");
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "owner", "version": "1"}}});
    let accept = ("Accept", "application/json, text/event-stream");
    let session = ask("/mcp", &[accept], &hello).header("mcp-session-id").expect("a session").to_owned();
    let headers = [accept, ("Mcp-Session-Id", session.as_str())];
    ask("/mcp", &headers, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "remember",
        "arguments": {"text": "kept by a worker"}}});
    assert_eq!(ask("/mcp", &headers, &call).status, 200);
    server.post(
        "/api/file_create",
        &json!({"path": "b.md", "text": "x"}),
        &[("X-Memgrove-Client", "claude")],
    );
    let past = server.get("/api/history?limit=10", &[]).json();
    let by: Vec<&str> = past["changes"]
        .as_array()
        .expect("changes")
        .iter()
        .filter_map(|change| change["by"].as_str())
        .collect();
    assert_eq!(by, ["tool owner/claude", "tool worker/owner", "tool worker/owner", "tool worker"], "{past}");
    server.end();
    let undone = sandbox.run(&["undo", "--source", "claude"]).ok();
    assert!(undone.contains("b.md") && !sandbox.store().join("files/b.md").exists(), "{undone}");
}

#[test]
fn no_memory_store_lies_in_another() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let create = |name: &str, folder: Option<&str>| {
        let metadata = folder.map_or(json!({}), |folder| json!({"memgrove_folder": folder}));
        server.post("/v1/memory_stores", &json!({"name": name, "metadata": metadata}), &[])
    };
    let first = create("b", Some("/memories/b/c")).json();
    for folder in ["/memories/b/c", "/memories/b/c/", "b/c", "/memories/b", "/memories/b/c/d", "/memories"] {
        let refused = create("other", Some(folder));
        assert_eq!(refused.status, 409, "{folder}: {}", refused.json());
    }
    assert_eq!(create("b", None).status, 200, "it finds another name");
    assert_eq!(create("x", Some("/memories/b-cd")).status, 200);
    let at = format!("/v1/memory_stores/{}", first["id"].as_str().expect("an id"));
    for (folder, status) in [(json!("/memories/z"), 400), (json!(null), 400), (json!("/memories/b/c"), 200)] {
        let answer = server.post(&at, &json!({"metadata": {"memgrove_folder": folder}}), &[]);
        assert_eq!(answer.status, status, "{folder}: {}", answer.json());
    }
    server.end();
}
