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
fn a_node_is_expected_by_the_version_that_was_told_of_it() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    for _ in 0..2 {
        server.post("/api/node_create", &json!({"type": "doc", "content": "one"}), &[]);
    }
    let read = "/api/read?address=node:mem_doc_001";
    let etag = |path: &str| server.get(path, &[]).header("etag").expect("a version").to_owned();
    let status = |verb: &str, body: Value, etag: &str| {
        server.post(&format!("/api/{verb}"), &body, &[("If-Match", etag)]).status
    };
    let update = || json!({"id": "mem_doc_001", "properties": {"title": "One"}});
    // Whoever has read the content may change what they have read, until it is another.
    let first = etag(read);
    assert_eq!(
        (status("node_update", update(), "\"0123456789\""), status("node_update", update(), &first)),
        (412, 200)
    );
    let edit = |text: &str| json!({"id": "mem_doc_001", "operation": "write", "content": text});
    assert_eq!(
        (status("node_edit", edit("two"), &first), status("node_edit", edit("three"), &first)),
        (200, 412)
    );
    assert_eq!(status("forget", json!({"address": "node:mem_doc_001"}), &first), 412);
    // What a node is connected with, and what someone typed into its file, is no part of its version.
    let whole = "/api/node_read?id=mem_doc_001";
    let seen = etag(whole);
    let connect = json!({"from": "mem_doc_002", "type": "near", "to": "mem_doc_001"});
    assert_eq!(server.post("/api/connection_create", &connect, &[]).status, 200);
    let again = server.get(whole, &[("If-None-Match", &seen)]);
    assert_eq!((again.status, again.header("etag")), (200, Some(seen.as_str())));
    assert!(again.json()["connections"].to_string().contains("near"), "{}", again.json());
    let file = sandbox.store().join("graph/_content/nodes/mem_doc_002.md");
    let seen = etag("/api/node_read?id=mem_doc_002");
    std::fs::write(file, "by hand").expect("a file");
    let again = server.get("/api/node_read?id=mem_doc_002", &[("If-None-Match", &seen)]);
    assert_eq!(again.json()["content"], "by hand", "{}", again.json());
    let body = json!({"address": "node:mem_doc_002"});
    assert_eq!(status("forget", body.clone(), &seen), 412);
    let gone = json!({"id": "mem_doc_002", "cascade": true});
    assert_eq!(status("node_delete", gone, &etag("/api/read?address=node:mem_doc_002")), 200);
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
fn what_a_request_says_is_heard_or_refused() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let create = |path: &str, more: &[(&str, &str)]| {
        server.post("/api/file_create", &json!({"path": path, "text": "x", "key": "k"}), more)
    };
    for (header, value) in [("If-None-Match", "*"), ("If-None-Match", "\"1\""), ("Idempotency-Key", "other")]
    {
        let refused = create("a.md", &[(header, value)]);
        assert_eq!(refused.status, 400, "{header}: {value}");
        assert!(refused.json()["detail"].to_string().contains(header), "{}", refused.json());
    }
    assert!(!sandbox.store().join("files/a.md").exists(), "what is refused is not done");
    assert_eq!(create("a.md", &[("Idempotency-Key", "k")]).status, 200, "the same twice is once");
    let read = "/api/read?address=file:/memories/a.md";
    assert_eq!(server.get(read, &[("If-Match", "\"1\"")]).status, 400);
    assert_eq!(server.get(read, &[("Idempotency-Key", "k")]).status, 200);
    for value in ["true", "false"] {
        let refused = server.get(&format!("/api/doctor?fix={value}"), &[]);
        assert!(refused.status == 400 && refused.json()["hint"] == "send it with POST", "{}", refused.json());
    }
    let doctor = server.get("/api/openapi.json", &[]).json()["paths"]["/api/doctor"].clone();
    assert_eq!(doctor["get"]["parameters"], json!([]), "{doctor}");
    // What cannot be brought back goes only if the request says so.
    server.post("/api/file_replace", &json!({"path": "a.md", "old": "x", "new": "y"}), &[]);
    for (verb, body) in
        [("redact", json!({"address": "file:/memories/a.md"})), ("history_prune", json!({"keep": 1}))]
    {
        let ask = |consent: &str| {
            let mut body = body.clone();
            body[consent] = json!(true);
            server.post(&format!("/api/{verb}"), &body, &[])
        };
        let refused = server.post(&format!("/api/{verb}"), &body, &[]);
        assert!(refused.status == 400 && refused.json()["hint"].to_string().contains("`yes`"), "{verb}");
        assert_eq!(
            (ask("dry_run").json()["planned"].clone(), ask("yes").json()["planned"].clone()),
            (json!(true), json!(false)),
            "{verb}"
        );
    }
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
    let twice = "[[token]]\nname = \"NAME\"\ntoken = \"SECRET\"\n".replace("SECRET", &token);
    let twice = [twice.replace("NAME", "one"), twice.replace("NAME", "two")].concat();
    std::fs::write(state.join("tokens.toml"), twice).expect("a file");
    let refused = sandbox.run(&["serve", "--listen", "127.0.0.1:0"]).fails(2);
    assert!(refused.contains("`one` and `two` have the same token"), "{refused}");
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
fn whoever_is_refused_learns_no_more_than_why() {
    let sandbox = Sandbox::new();
    let state = sandbox.home().join(".local/state/memgrove");
    std::fs::create_dir_all(&state).expect("a folder");
    let token = "w".repeat(40);
    let text = format!("[[token]]\nname = \"worker\"\ntoken = \"{token}\"\nspace = \"work\"\n");
    std::fs::write(state.join("tokens.toml"), text).expect("a file");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(state.join("tokens.toml"), open).expect("it is ours");
    sandbox.run(&["init", "work"]).ok();
    let nowhere = sandbox.run(&["serve", "--space", "work=nowhere"]).fails(3);
    assert!(nowhere.contains("named by --space"), "{nowhere}");
    let work = format!("work={}", sandbox.project().join("work").display());
    let server = Server::start(&sandbox, &["--space", &work, "--log-format", "json"]);
    let bearer = format!("Bearer {token}");
    let ask = |method: &str, path: &str, more: &[(&str, &str)]| {
        server.send(method, path, &[&[("Authorization", bearer.as_str())], more].concat(), b"")
    };
    for path in ["/api/status", "/s/default/api/status", "/s/secret/api/status"] {
        let refused = ask("GET", path, &[]);
        assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("OTHER_SPACE")), "{path}");
        assert_eq!(refused.json()["hint"], "it opens /s/work/", "{path}");
    }
    let status = ask("GET", "/s/work/api/status", &[]);
    assert_eq!((status.status, &status.json()["found"]), (200, &json!("named by --space")));
    // Anthropic's clients are refused in their own words.
    for (method, path, origin, told) in [
        ("GET", "/v1/nothing", None, (404, "not_found_error")),
        ("GET", "/s/work/v1/nothing", None, (404, "not_found_error")),
        ("PUT", "/v1/memory_stores", None, (405, "invalid_request_error")),
        ("GET", "/v1/memory_stores", Some("http://evil.example"), (403, "permission_error")),
    ] {
        let origin: Vec<(&str, &str)> = origin.into_iter().map(|origin| ("Origin", origin)).collect();
        let refused = ask(method, path, &origin);
        let kind = refused.json()["error"]["type"].clone();
        assert_eq!((refused.status, kind), (told.0, json!(told.1)), "{method} {path}");
    }
    // An address that is written out names this server, or another.
    for (host, status) in [(server.address.as_str(), 200), ("evil.example", 403)] {
        assert_eq!(ask("GET", &format!("http://{host}/s/work/api/status"), &[]).status, status, "{host}");
    }
    let (_, told) = server.end();
    for line in told.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
    assert!(told.contains("other users of this machine"), "the file of tokens is open to others: {told}");
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

/// What a tool says that is called without a handshake.
fn called(server: &Server, token: &str, tool: &str, arguments: &Value, more: &[(&str, &str)]) -> String {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": meta}});
    let bearer = format!("Bearer {token}");
    let own = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
    ];
    let answer = server.send("POST", "/mcp", &[&own[..], more].concat(), call.to_string().as_bytes());
    let told = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(answer.status, 200, "{told}");
    told
}

/// Every such request is a connection of its own.
#[test]
fn a_client_without_a_handshake_has_one_session_for_each_token() {
    let sandbox = Sandbox::new();
    let state = sandbox.home().join(".local/state/memgrove");
    std::fs::create_dir_all(&state).expect("a folder");
    let worker = "w".repeat(40);
    let text = format!("[[token]]\nname = \"worker\"\ntoken = \"{worker}\"\nscope = \"write\"\n");
    std::fs::write(state.join("tokens.toml"), text).expect("a file");
    let server = Server::start(&sandbox, &[]);
    let own = |tool: &str, arguments: Value| called(&server, &server.token, tool, &arguments, &[]);
    for fact in ["drinks tea", "lives in Oslo", "rides a bicycle"] {
        own("remember", json!({"text": fact, "about": "Ann"}));
    }
    assert!(own("recall", json!({"query": "Ann"})).contains("entity:general/Ann#3"));
    assert!(own("forget", json!({"address": "entity:general/Ann#1"})).contains("\"isError\":false"));
    let refused = own("forget", json!({"address": "entity:general/Ann#2"}));
    assert!(refused.contains("\"isError\":true") && refused.contains("rides a bicycle"), "{refused}");
    let others = called(&server, &worker, "undo", &json!({}), &[]);
    assert!(others.contains("nothing of this session is left to undo"), "{others}");
    let undone = own("undo", json!({}));
    assert!(undone.contains("undid change"), "{undone}");
    assert!(own("recall", json!({"query": "Ann"})).contains("drinks tea"));
    server.end();
}

#[test]
fn headers_name_the_client_and_the_session_over_mcp_too() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let accept = ("Accept", "application/json, text/event-stream");
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let connection = server.post("/mcp", &hello, &[accept]);
    let connection = connection.header("mcp-session-id").expect("a session").to_owned();
    let headers = [accept, ("Mcp-Session-Id", connection.as_str())];
    server.post("/mcp", &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), &headers);
    let named = |session| [("X-Memgrove-Client", "claude"), ("X-Memgrove-Session", session)];
    let by = || {
        let last = server.get("/api/history?limit=1", &[]).json()["changes"][0].clone();
        (last["by"].clone(), last["session"].clone())
    };
    let remember = |text: &str| json!({"text": text});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "remember",
        "arguments": remember("Tea at noon")}});
    server.post("/mcp", &call, &[&headers[..], &named("s1")].concat());
    assert_eq!(by(), (json!("tool owner/claude"), json!("s1")), "with the handshake");
    called(&server, &server.token, "remember", &remember("Rain at one"), &named("s2"));
    assert_eq!(by(), (json!("tool owner/claude"), json!("s2")), "without it");
    let undone = called(&server, &server.token, "undo", &json!({}), &named("s3"));
    assert!(undone.contains("nothing of this session is left to undo"), "{undone}");
    let undone = called(&server, &server.token, "undo", &json!({}), &named("s1"));
    assert!(undone.contains("undid change"), "{undone}");
    let left = called(&server, &server.token, "recall", &json!({"query": "tea rain"}), &[]);
    assert!(left.contains("Rain at one") && !left.contains("Tea at noon"), "{left}");
    server.end();
}
