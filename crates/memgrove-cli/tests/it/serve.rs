//! `memgrove serve` on the wire: the API, streams, spaces, tokens, logs and the end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::sandbox::Sandbox;

/// A server of a test's own.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    link: String,
    pub(crate) token: String,
}

/// What a server answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (given, value) = line.split_once(':')?;
            given.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

impl Server {
    pub(crate) fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = sandbox.memgrove(&[&["serve", "--listen", "127.0.0.1:0"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut link = String::new();
        let out = child.stdout.as_mut().expect("it is piped");
        BufReader::new(out).read_line(&mut link).expect("it prints its address");
        let link = link.trim().strip_prefix("http://").expect("an address").to_owned();
        let (address, path) = link.split_once('/').expect("a link");
        let token = std::fs::read_to_string(sandbox.home().join(".local/state/memgrove/serve-token"));
        let token = token.expect("the token is kept").trim().to_owned();
        Server { child, address: address.to_owned(), link: format!("/{path}"), token }
    }

    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout can be set");
        stream
    }

    pub(super) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut stream = self.connect();
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        stream.write_all(&[text.as_bytes(), body].concat()).expect("it reads");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("it answers");
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a whole head");
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        Answer { status, head, body: bytes.split_off(end + 4) }
    }

    pub(super) fn bearer(&self) -> (&'static str, String) {
        ("Authorization", format!("Bearer {}", self.token))
    }

    pub(crate) fn get(&self, path: &str, more: &[(&str, &str)]) -> Answer {
        let (name, value) = self.bearer();
        self.send("GET", path, &[&[(name, value.as_str())], more].concat(), b"")
    }

    pub(crate) fn post(&self, path: &str, body: &Value, more: &[(&str, &str)]) -> Answer {
        let (name, value) = self.bearer();
        let headers = [&[(name, value.as_str()), ("Content-Type", "application/json")], more].concat();
        self.send("POST", path, &headers, body.to_string().as_bytes())
    }

    /// The same server, with a reader for what it tells: a test that asks for much would fill the pipe.
    pub(crate) fn listened_to(mut self) -> Self {
        if let Some(mut told) = self.child.stderr.take() {
            std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
        }
        self
    }

    /// The same server, with a count of the requests that it was sent.
    pub(crate) fn counted(mut self) -> (Self, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        if let Some(told) = self.child.stderr.take() {
            let count = Arc::clone(&count);
            std::thread::spawn(move || {
                let lines = BufReader::new(told).lines().map_while(Result::ok);
                for _ in lines {
                    count.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        (self, count)
    }

    /// Asks it to end, as a service manager does, and gives back its exit code and what it told.
    pub(super) fn end(mut self) -> (i32, String) {
        let told = std::process::Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(told.expect("kill is there").success());
        let code = self.child.wait().expect("it was started").code().unwrap_or(-1);
        let mut log = String::new();
        self.child.stderr.take().expect("it is piped").read_to_string(&mut log).expect("text");
        (code, log)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_fresh_machine_needs_one_command() {
    let sandbox = Sandbox::empty();
    let server = Server::start(&sandbox, &[]);
    assert!(sandbox.home().join(".memgrove/memgrove.toml").exists(), "the store at home is made");
    let door = server.send("GET", "/", &[], b"");
    assert_eq!(door.status, 401);
    let opened = server.send("GET", &server.link, &[], b"");
    assert_eq!(opened.status, 200);
    let cookie =
        opened.header("set-cookie").expect("a cookie").split(';').next().expect("its value").to_owned();
    assert_eq!(server.send("GET", "/", &[("Cookie", &cookie)], b"").status, 200);
    assert_eq!(server.send("GET", &server.link, &[], b"").status, 403, "a link works once");
    let fresh = sandbox.run(&["serve", "--link", "--listen", &server.address]).ok();
    let fresh =
        fresh.trim().strip_prefix(&format!("http://{}", server.address)).expect("the same server").to_owned();
    assert_eq!(server.send("GET", &fresh, &[], b"").status, 200);
    let nobody = sandbox.run(&["serve", "--link", "--listen", "127.0.0.1:9"]).fails(3);
    assert!(nobody.contains("you have no server running"), "{nobody}");
    let policy = door.header("content-security-policy").expect("a policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(opened.header("access-control-allow-origin"), None);
    let (code, log) = server.end();
    assert_eq!(code, 0, "{log}");
}

#[test]
fn verbs_over_http_with_versions_keys_and_problems() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let made = server.post(
        "/api/file_create",
        &json!({"path": "a.md", "text": "one\n"}),
        &[("Idempotency-Key", "k1")],
    );
    assert_eq!(made.status, 200, "{}", made.json());
    let etag = made.header("etag").expect("a version").to_owned();
    let again = server.post(
        "/api/file_create",
        &json!({"path": "a.md", "text": "one\n"}),
        &[("Idempotency-Key", "k1")],
    );
    assert_eq!(again.json()["replayed"], true);
    let read = server.get("/api/read?address=file:/memories/a.md", &[]);
    assert_eq!((read.json()["text"].as_str(), read.header("etag")), (Some("one\n"), Some(etag.as_str())));
    let same = server.get("/api/read?address=file:/memories/a.md", &[("If-None-Match", &etag)]);
    assert_eq!((same.status, same.body.len()), (304, 0));
    let edit = json!({"path": "a.md", "old": "one", "new": "two"});
    let stale =
        server.post("/api/file_replace", &edit, &[("If-Match", "\"00000000000000000000000000000000\"")]);
    assert_eq!((stale.status, stale.header("content-type")), (412, Some("application/problem+json")));
    let problem = stale.json();
    assert_eq!(
        (problem["kind"].as_str(), problem["code"].as_str()),
        (Some("conflict"), Some("VERSION_MISMATCH"))
    );
    assert!(problem["hint"].is_string() && problem["status"] == 412, "{problem}");
    assert_eq!(server.post("/api/file_replace", &edit, &[("If-Match", &etag)]).status, 200);
    let (name, value) = server.bearer();
    let form = server.send("POST", "/api/find", &[(name, &value), ("Content-Type", "text/plain")], b"{}");
    assert_eq!(form.status, 415, "a form of another site cannot ask");
    let big = format!("{{\"text\":\"{}\"}}", "x".repeat(5_000_000));
    let refused = server.send(
        "POST",
        "/api/find",
        &[(name, &value), ("Content-Type", "application/json")],
        big.as_bytes(),
    );
    assert_eq!(refused.status, 413);
    server.end();
}

#[test]
fn arguments_are_lists_as_the_description_says_and_none_is_passed_over() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    for (content, tag) in [("one", "a"), ("two", "b"), ("three", "a, b")] {
        let record = json!({"content": content, "type": "core", "tags": [tag]});
        // An empty key is none.
        assert_eq!(server.post("/api/record_add", &record, &[("Idempotency-Key", "")]).status, 200);
    }
    let found = |query: &str| server.get(&format!("/api/record_list?{query}"), &[]).json()["total"].clone();
    assert_eq!(
        (found("tags=a"), found("tags=[%22a%22]"), found("tags=a,%20b")),
        (1.into(), 1.into(), 1.into())
    );
    assert_eq!((found("tags=a&tags=b"), found("tags=a&limit=1")), (0.into(), 1.into()));
    let refused = |answer: Answer, told: &str| {
        let problem = answer.json();
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(answer.status == 400 && detail.contains(told), "{problem}");
    };
    refused(server.get("/api/record_list?limit=1&limit=2", &[]), "`limit` is given several times");
    refused(server.get("/api/record_list?tag=a", &[]), "takes no argument `tag`");
    let edit = json!({"path": "a.md", "old": "one", "new": "two", "if_match": "aaaaaaaaaaaa"});
    refused(server.post("/api/file_replace", &edit, &[]), "takes no argument `if_match`");
    refused(server.post("/api/find", &json!(["tea", 100]), &[]), "not a JSON object");
    let edit = json!({"path": "a.md", "old": "one", "new": "two"});
    refused(server.post("/api/file_replace", &edit, &[("If-Match", "*")]), "must name exactly one version");
    server.end();
}

#[test]
fn the_description_has_every_verb_and_no_path_of_the_machine() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let described = server.get("/api/openapi.json", &[]).json();
    assert_eq!(described["openapi"], "3.1.0");
    let paths = described["paths"].as_object().expect("paths");
    for verb in ["file_view", "record_add", "entity_search", "history", "undo", "doctor"] {
        assert!(paths.contains_key(&format!("/api/{verb}")), "{verb}");
    }
    for verb in ["init", "import_mcp_memory", "export_mcp_memory"] {
        assert!(!paths.contains_key(&format!("/api/{verb}")), "{verb} takes a path of the machine");
        assert_eq!(server.post(&format!("/api/{verb}"), &json!({}), &[]).status, 404);
    }
    assert!(paths["/api/find"].get("get").is_some() && paths["/api/undo"].get("get").is_none());
    server.end();
}

#[test]
fn large_content_is_streamed_and_taken_in_ranges() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let bytes: Vec<u8> = (0..6_000_000u32).map(|number| (number % 251) as u8).collect();
    let (name, value) = server.bearer();
    let at = "/api/content?address=file:/memories/big.bin";
    let put = server.send("PUT", at, &[(name, &value), ("If-None-Match", "*")], &bytes);
    assert_eq!(put.status, 200, "{}", put.json());
    assert_eq!(server.send("PUT", at, &[(name, &value), ("If-None-Match", "*")], b"x").status, 412);
    assert_eq!(server.send("PUT", at, &[(name, &value), ("If-Match", "\"0\"")], b"x").status, 412);
    let nowhere = "/api/content?address=file:/memories/absent.bin";
    assert_eq!(server.send("PUT", nowhere, &[(name, &value), ("If-Match", "*")], b"x").status, 412);
    let one_of = format!("\"0\", {}", put.header("etag").expect("a version"));
    assert_eq!(server.send("PUT", at, &[(name, &value), ("If-Match", &one_of)], b"x").status, 200);
    assert_eq!(server.send("PUT", at, &[(name, &value), ("If-Match", "*")], &bytes).status, 200);
    let got = server.get(at, &[]);
    assert_eq!((got.status, got.header("content-type")), (200, Some("application/octet-stream")));
    assert!(got.body == bytes, "every byte comes back");
    let part = server.get(at, &[("Range", "bytes=10-19")]);
    assert_eq!((part.status, part.body.as_slice()), (206, &bytes[10..20]));
    assert_eq!(part.header("content-range"), Some("bytes 10-19/6000000"));
    assert_eq!(server.get(at, &[("Range", "bytes=-5")]).body, &bytes[bytes.len() - 5..]);
    assert_eq!(server.get(at, &[("Range", "bytes=6000000-")]).status, 416);
    server.post("/api/file_create", &json!({"path": "x.html", "text": "<script>alert(1)</script>"}), &[]);
    let page = server.get("/api/content?address=file:/memories/x.html", &[]);
    assert_eq!(page.header("content-type"), Some("text/plain; charset=utf-8"), "never a page");
    assert_eq!(server.get("/api/content?address=file:/memories/../memgrove.toml", &[]).status, 400);
    server.end();
}

#[test]
fn the_content_of_a_node_is_put_by_its_versions() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let (name, value) = server.bearer();
    let made = server.post("/api/node_create", &json!({"type": "doc", "content": "one"}), &[]);
    assert_eq!(made.status, 200, "{}", made.json());
    let at = "/api/content?address=node:mem_doc_001";
    let first = server.get(at, &[]).header("etag").expect("a version").to_owned();
    let put =
        |version: &str, bytes: &[u8]| server.send("PUT", at, &[(name, &value), ("If-Match", version)], bytes);
    let second = put(&first, b"\0two");
    assert_eq!(second.status, 200, "{}", second.json());
    assert_eq!(put(&first, b"three").status, 412);
    let got = server.get(at, &[]);
    assert_eq!((got.body.as_slice(), got.header("etag")), (&b"\0two"[..], second.header("etag")));
    server.post("/api/node_create", &json!({"type": "doc", "properties": {"t": "x"}}), &[]);
    let listed = server.get("/api/node_list?where=t=x", &[]);
    assert_eq!((listed.status, &listed.json()["total"]), (200, &json!(1)), "a list of one");
    assert_eq!(server.send("PUT", "/api/content?address=record:x", &[(name, &value)], b"x").status, 400);
    let none = "/api/content?address=node:nobody";
    assert_eq!(server.send("PUT", none, &[(name, &value)], b"x").status, 404);
    server.end();
    assert!(sandbox.run(&["graph", "check"]).ok().ends_with("all is well\n"));
}

#[test]
fn changes_of_other_processes_are_told_as_they_happen() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let mut stream = server.connect();
    let ask = format!(
        "GET /api/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        server.address, server.token
    );
    stream.write_all(ask.as_bytes()).expect("it reads");
    let mut lines = BufReader::new(stream).lines();
    let mut until = |wanted: &str| loop {
        let line = lines.next().expect("it goes on").expect("text");
        if line.contains(wanted) {
            return line;
        }
    };
    until("event: listening");
    sandbox.run(&["file", "create", "seen.md", "--text", "x"]).ok();
    let told = until("file:/memories/seen.md");
    assert!(told.starts_with("data:") && told.contains("user cli"), "{told}");
    let (code, _) = server.end();
    assert_eq!(code, 0, "an open stream does not keep it from ending");
}

#[test]
fn spaces_and_tokens_have_their_own_rights() {
    let sandbox = Sandbox::new();
    let work = sandbox.path().join("work");
    sandbox.run(&["init", work.to_str().expect("text")]).ok();
    let state = sandbox.home().join(".local/state/memgrove");
    std::fs::create_dir_all(&state).expect("a folder");
    let (reader, worker) = ("r".repeat(40), "w".repeat(40));
    let tokens = format!(
        "[[token]]\nname = \"reader\"\ntoken = \"{reader}\"\n\n[[token]]\nname = \"worker\"\ntoken = \"{worker}\"\n\
         scope = \"write\"\nspace = \"work\"\n"
    );
    std::fs::write(state.join("tokens.toml"), tokens).expect("a file");
    let server = Server::start(&sandbox, &["--space", &format!("work={}", work.display())]);
    let create = |token: &str, path: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        server.send("POST", path, &headers, br#"{"path":"a.md","text":"x"}"#)
    };
    assert_eq!(create(&reader, "/api/file_create").status, 403);
    assert_eq!(create(&worker, "/api/file_create").json()["code"], "OTHER_SPACE");
    assert_eq!(create(&worker, "/s/work/api/file_create").status, 200);
    for (token, is_told) in [(&worker, false), (&reader, true)] {
        let page = server.send("GET", "/s/work/", &[("Authorization", &format!("Bearer {token}"))], b"");
        assert_eq!(
            crate::serve_pages::shown(&page).contains("/s/default/"),
            is_told,
            "only those who may open it hear of it"
        );
    }
    assert_eq!(create(&server.token, "/s/nowhere/api/file_create").status, 404);
    assert!(work.join("files/a.md").exists() && !sandbox.store().join("files/a.md").exists());
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "file_create",
        "arguments": {"path": "b.md", "text": "x"}}});
    let bearer = format!("Bearer {reader}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let welcome = server.send("POST", "/mcp?tools=all", &headers, hello.to_string().as_bytes());
    let session = welcome.header("mcp-session-id").expect("a session").to_owned();
    let headers = [&headers[..], &[("Mcp-Session-Id", session.as_str())]].concat();
    let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    server.send("POST", "/mcp?tools=all", &headers, done.as_bytes());
    let refused = server.send("POST", "/mcp?tools=all", &headers, call.to_string().as_bytes());
    let told = String::from_utf8_lossy(&refused.body).into_owned();
    assert!(told.contains("READ_ONLY"), "a token that may only read writes through MCP neither: {told}");
    assert!(!sandbox.store().join("files/b.md").exists());
    server.end();
}

#[test]
fn it_says_what_it_does_and_listens_to_this_machine_alone() {
    let sandbox = Sandbox::new();
    let refused = sandbox.run(&["serve", "--listen", "0.0.0.0:0"]).fails(10);
    assert!(refused.contains("is reachable from other machines"), "{refused}");
    for (arguments, told) in [
        (&["--listen", "0.0.0.0:0", "--unencrypted"][..], "add --host"),
        (&["--requests-max", "0"], "a number of at least 1"),
        (&["--host", "http://evil/"], "a name and perhaps a port"),
        (&["--space", "default=."], "two spaces are named `default`"),
    ] {
        let refused = sandbox.run(&[&["serve"], arguments].concat()).fails(2);
        assert!(refused.contains(told), "{arguments:?}: {refused}");
    }
    let server = Server::start(&sandbox, &["--log-format", "json", "--read-only"]);
    let taken = sandbox.run(&["serve", "--listen", &server.address]).fails(8);
    assert!(taken.contains("is already in use") && taken.contains("--link"), "{taken}");
    assert_eq!(server.send("GET", "/healthz", &[], b"").body, b"ok\n");
    assert_eq!(server.post("/api/file_create", &json!({"path": "a.md", "text": "x"}), &[]).status, 403);
    let metrics = server.get("/metrics", &[]);
    let metrics = String::from_utf8_lossy(&metrics.body);
    assert!(metrics.contains("memgrove_http_requests_total{method=\"write\",status=\"4xx\"} 1"), "{metrics}");
    let (code, log) = server.end();
    assert_eq!(code, 0);
    let events: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let healthy = events.iter().find(|event| event["path"] == "/healthz").expect("it is told");
    assert_eq!((healthy["status"].as_u64(), healthy["method"].as_str()), (Some(200), Some("GET")));
    assert!(!log.contains("Bearer") && !log.contains("link="), "no secret is told");
}
