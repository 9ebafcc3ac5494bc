//! `memgrove mcp` on the wire. The official client drives it in `tests/clients/mcp_client.py`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::sandbox::{Sandbox, spawn};
use super::serve::Server;

/// A connection with the handshake done.
pub(crate) struct Connection {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last: u64,
    instructions: String,
}

impl Connection {
    pub(crate) fn new(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        Self::over(sandbox.memgrove(&[&["mcp"], arguments].concat()))
    }

    /// A connection to what a command starts.
    pub(crate) fn over(command: Command) -> Self {
        let mut connection = Self::begun(command);
        connection.greet();
        connection
    }

    /// A connection before the handshake.
    fn begun(command: Command) -> Self {
        let mut child = spawn(command);
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        Connection { child, stdin, stdout, last: 0, instructions: String::new() }
    }

    fn greet(&mut self) {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test-client", "version": "1"}});
        let welcome = self.ask("initialize", hello);
        assert_eq!(welcome["result"]["protocolVersion"], "2025-11-25", "{welcome}");
        self.instructions = welcome["result"]["instructions"].as_str().unwrap_or_default().to_owned();
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    fn send(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes());
    }

    fn send_line(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().expect("it was not closed");
        stdin.write_all(&[line, b"\n"].concat()).expect("the server reads");
    }

    /// The error that a line is answered with, whose id and code it has. A ping behind it is answered in
    /// any case, so that nothing waits for an answer that never comes.
    fn refused(&mut self, line: &[u8], id: &Value, code: i64) -> String {
        self.send_line(line);
        self.send(&json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"}));
        let answer = self.receive();
        let shown = String::from_utf8_lossy(&line[..line.len().min(200)]);
        assert_eq!(answer.get("id"), Some(id), "{shown}: {answer}");
        assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
        assert_eq!(self.receive()["id"], "ping");
        answer["error"]["message"].as_str().expect("a message").to_owned()
    }

    /// The next message of the server.
    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("the server answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The answer to a request.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// The result of a call.
    pub(crate) fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments}))["result"].take()
    }

    /// Closes the input and waits for the end.
    pub(crate) fn close(mut self) -> i32 {
        drop(self.stdin.take());
        self.child.wait().expect("it was started").code().unwrap_or(-1)
    }
}

#[test]
fn the_instructions_name_only_tools_that_are_there() {
    for profile in ["core", "files", "records", "entities", "notes", "graph", "all"] {
        let mut mcp = Connection::new(&Sandbox::new(), &["--tools", profile]);
        let listed = mcp.ask("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().expect("a list").clone();
        let is_there = |name: &str| tools.iter().any(|tool| tool["name"] == name);
        let said = mcp.instructions.to_lowercase();
        let named = said.split(|c: char| !c.is_alphabetic());
        let verbs = ["brief", "recall", "remember", "forget", "undo", "read"];
        for verb in named.filter(|word| verbs.contains(word)) {
            assert!(is_there(verb), "{profile}: {verb} is not there");
        }
        assert!(is_there("memory") || !said.contains("files under"), "{profile}: {said}");
    }
}

#[test]
fn calls_errors_and_the_end() {
    let sandbox = Sandbox::new();
    let mut mcp = Connection::new(&sandbox, &["--tools", "all"]);
    let made = mcp.call("file_create", json!({"path": "a.md", "text": "x\n"}));
    assert_eq!(made["isError"], false, "{made}");
    assert_eq!(made["structuredContent"]["path"], "/memories/a.md");
    let refused = mcp.call("file_create", json!({"path": "a.md", "text": "x\n"}));
    assert_eq!(refused["isError"], true);
    let text = refused["content"][0]["text"].as_str().expect("text");
    assert!(text.starts_with("error exists FILE_EXISTS: `/memories/a.md`"), "{text}");
    assert_eq!(mcp.call("nothing", json!({}))["isError"], true);
    assert_eq!(mcp.close(), 0);
    let past = sandbox.run(&["--json", "history"]).json();
    assert_eq!(past["changes"][0]["by"], "tool test-client");
}

#[test]
fn the_first_write_makes_the_store_at_home_while_serving() {
    let sandbox = Sandbox::empty();
    let mut mcp = Connection::new(&sandbox, &["--tools", "files"]);
    let empty = mcp.call("memory", json!({"command": "view", "path": "/memories"}));
    assert_eq!(empty["isError"], false, "{empty}");
    assert!(!sandbox.home().join(".memgrove").exists());
    mcp.call("memory", json!({"command": "create", "path": "/memories/a.md", "file_text": "x"}));
    let seen = mcp.call("memory", json!({"command": "view", "path": "/memories/a.md"}));
    assert_eq!(seen["isError"], false, "{seen}");
    assert!(sandbox.home().join(".memgrove/files/a.md").exists());
    assert_eq!(mcp.close(), 0);
}

#[test]
fn a_large_answer_is_cut_to_its_budget_and_says_so() {
    let sandbox = Sandbox::new();
    let mut mcp = Connection::new(&sandbox, &["--tools", "all"]);
    mcp.call("file_create", json!({"path": "long.md", "text": "a line of some length\n".repeat(10_000)}));
    for (tool, arguments) in
        [("file_view", json!({"path": "long.md"})), ("read", json!({"address": "file:/memories/long.md"}))]
    {
        let seen = mcp.call(tool, arguments);
        let text = seen["content"][0]["text"].as_str().expect("text");
        assert!(text.len() < 50_000, "{tool}: {}", text.len());
        let left_out = seen["structuredContent"]["left_out"].as_str().unwrap_or_default();
        assert!(left_out.starts_with("lines "), "{left_out}");
        // Only who takes lines says so.
        assert_eq!(left_out.contains("view with lines"), tool == "file_view", "{left_out}");
    }
    mcp.close();
}

/// Of what it has made itself: a debug build maps a program many times as large as the released one,
/// whose whole size the benchmark of starts measures.
#[cfg(target_os = "linux")]
#[test]
fn an_idle_server_is_small() {
    let sandbox = Sandbox::new();
    let mut mcp = Connection::new(&sandbox, &["--tools", "all"]);
    mcp.call("file_view", json!({}));
    let status = std::fs::read_to_string(format!("/proc/{}/status", mcp.child.id())).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("RssAnon")).expect("its size");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number");
    println!("idle memgrove mcp: {kib} KiB of its own");
    assert!(kib <= 20 * 1024, "{kib} KiB");
    mcp.close();
}

/// What the schema leaves out to be short is taken all the same.
#[test]
fn keys_are_taken_by_every_tool_that_changes_something() {
    let sandbox = Sandbox::new();
    let mut core = Connection::new(&sandbox, &[]);
    let fact = json!({"text": "Deploys happen on Tuesdays", "key": "k1"});
    let (first, again) = (core.call("remember", fact.clone()), core.call("remember", fact));
    let text = |answer: &Value| answer["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let told = text(&first);
    let (told, change) = told.trim_end_matches([')', '\n']).split_once(" (").expect("the change");
    assert!(text(&again).starts_with(&format!("{told} ({change}, ")), "{first} {again}");
    assert!(text(&again).contains("done before with this key"), "{again}");
    let address = told.trim_start_matches("remembered ");
    let wrong = core.call("forget", json!({"address": address, "expect": "00000000"}));
    assert_eq!(wrong["isError"], true, "{wrong}");
    let used = core.call("forget", json!({"address": address, "key": "k1"}));
    assert!(used["isError"] == true && text(&used).contains("was used for something else"), "{used}");
    for key in [json!(7), json!(["k"])] {
        let wrong = core.call("forget", json!({"address": address, "key": key}));
        assert!(text(&wrong).contains("not of the type string"), "{wrong}");
    }
    let blank = core.call("remember", json!({"text": "One", "key": ""}));
    let other = core.call("remember", json!({"text": "Two", "key": " "}));
    assert_ne!(text(&blank), text(&other));
    assert_eq!(core.call("forget", json!({"address": address, "key": "k2"}))["isError"], false);
    core.close();
    let mut notes = Connection::new(&sandbox, &["--tools", "notes"]);
    notes.call("write_memory", json!({"content": "# A\none\n\n# B\ntwo\n"}));
    let split = json!({"dry_run": true, "key": "k3", "reason": "to see"});
    assert!(!text(&notes.call("split_memory", split)).contains("takes no argument"));
    notes.close();
}

/// Parts are counted anew when one before them is forgotten: what an agent was shown at an address is not another by now.
#[test]
fn forgetting_twice_from_one_answer_forgets_what_was_shown() {
    let sandbox = Sandbox::new();
    let mut core = Connection::new(&sandbox, &[]);
    let text = |answer: &Value| answer["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    for fact in ["drinks tea", "lives in Oslo", "rides a bicycle"] {
        core.call("remember", json!({"text": fact, "about": "Ann"}));
    }
    assert!(text(&core.call("recall", json!({"query": "Ann"}))).contains("entity:general/Ann#3"));
    assert_eq!(core.call("forget", json!({"address": "entity:general/Ann#1"}))["isError"], false);
    let second = json!({"address": "entity:general/Ann#2"});
    let refused = core.call("forget", second.clone());
    assert_eq!(refused["isError"], true, "{refused}");
    let said = text(&refused);
    assert!(said.contains("rides a bicycle") && said.contains("now `entity:general/Ann#1`"), "{said}");
    assert_eq!(core.call("forget", json!({"address": "entity:general/Ann#1"}))["isError"], false);
    let left = text(&core.call("recall", json!({"query": "Ann"})));
    assert!(left.contains("bicycle") && !left.contains("Oslo"), "{left}");
    core.call("remember", json!({"text": "likes rain", "about": "Ann"}));
    assert_eq!(core.call("forget", second)["isError"], false, "what was told once is known");
    core.close();
}

/// Every argument that schemas leave out is taken by MCP and by HTTP, and by its own type.
#[test]
fn what_schemas_leave_out_is_taken_by_its_type() {
    let sandbox = Sandbox::new();
    for text in ["tea in the morning", "tea in the evening", "the kettle is blue"] {
        sandbox.run(&["remember", text]).ok();
    }
    let mut core = Connection::new(&sandbox, &["--tools", "all"]);
    let server = Server::start(&sandbox, &[]);
    let text = |answer: &Value| answer["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    for (tool, argument, right, wrong) in [
        ("recall", "limit", json!(1), json!("1")),
        ("recall", "all", json!(true), json!("true")),
        ("recall", "explain", json!(true), json!(1)),
        ("similar", "explain", json!(true), json!("yes")),
        ("similar", "all", json!(true), json!("yes")),
        ("remember", "key", json!("k1"), json!(1)),
        ("remember", "reason", json!("to see"), json!(true)),
        ("forget", "expect", json!("0123456789"), json!(123)),
    ] {
        let asked = |value: &Value| {
            let mut asked = match tool {
                "recall" => json!({"query": "when do I drink tea"}),
                "remember" => json!({"text": "The cup is red"}),
                _ => json!({"address": "record:00000000-0000-4000-8000-000000000000"}),
            };
            asked[argument] = value.clone();
            asked
        };
        let refused = ["takes no argument", "not of the type", "do not fit"];
        let taken = text(&core.call(tool, asked(&right)));
        assert!(!refused.iter().any(|words| taken.contains(words)), "{tool} {argument}: {taken}");
        let taken = server.post(&format!("/api/{tool}"), &asked(&right), &[]).json().to_string();
        assert!(!refused.iter().any(|words| taken.contains(words)), "{tool} {argument}: {taken}");
        let told = text(&core.call(tool, asked(&wrong)));
        assert!(told.contains(&format!("`{argument}` of `{tool}` is not of the type")), "{told}");
    }
    let one = text(&core.call("recall", json!({"query": "tea", "limit": 1, "explain": true})));
    assert!(one.contains("[1 of 2 shown") && one.contains("words "), "{one}");
    core.close();
    server.end();
}

/// A request to remember a text, which is written into the line as it is given.
fn remembering(id: &str, text: &[u8]) -> Vec<u8> {
    let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"remember","#);
    [start.as_bytes(), br#""arguments":{"text":"#, text, b"}}}"].concat()
}

/// A client waits for the answer to whatever it has sent.
#[test]
fn a_line_that_cannot_be_read_is_answered() {
    let sandbox = Sandbox::new();
    let deep = [b"[".repeat(200), b"]".repeat(200)].concat();
    for set in ["core", "kg", "files"] {
        let mut mcp = Connection::new(&sandbox, &["--tools", set]);
        for (text, said) in [
            (br#""cut emoji \ud83d""#.as_slice(), "half of a surrogate pair"),
            (br#""\ude00""#, "half of a surrogate pair"),
            (b"\"\xff\"", "not in UTF-8"),
            (&deep, "nested too deeply"),
            (b"1e400", "number out of range"),
            (b"\"a\tb\"", "not JSON that can be read"),
        ] {
            let told = mcp.refused(&remembering("9", text), &json!(9), -32700);
            assert!(told.contains(said), "{told}");
        }
        mcp.refused(&remembering("\"a\"", b"1e400"), &json!("a"), -32700);
        for line in [
            b"no JSON".as_slice(),
            b"\xff",
            br#"{"jsonrpc":"2.0","method":"tools/call","params":{"id":9,"text":"\ud83d"}}"#,
            br#"{"jsonrpc":"2.0","id":9,"result":{"text":"\ud83d"}}"#,
        ] {
            mcp.refused(line, &Value::Null, -32700);
        }
        let long = [b"\"", "é".repeat(5 << 20).as_bytes(), b"\""].concat();
        let told = mcp.refused(&remembering("10", &long), &json!(10), -32600);
        assert!(told.contains("at most 8388608 bytes"), "{told}");
        assert!(mcp.refused(&long, &Value::Null, -32600).contains("at most"));
        assert!(mcp.ask("tools/list", json!({}))["result"]["tools"].is_array());
        // The last line is answered though the input ends with it.
        mcp.send_line(b"no JSON");
        drop(mcp.stdin.take());
        assert_eq!(mcp.receive()["error"]["code"], -32700);
        assert_eq!(mcp.close(), 0);
    }
    assert!(!sandbox.run(&["--json", "recall", "emoji"]).ok().contains("cut emoji"));
}

/// What is JSON and yet no request is told apart from a method that there is not.
#[test]
fn a_request_that_does_not_fit_is_told_why() {
    let mut mcp = Connection::new(&Sandbox::new(), &[]);
    for (request, code, said) in [
        (json!({"method": "tools/call", "params": []}), -32602, "`params` of `tools/call` is not an object"),
        (json!({"method": "notifications/x", "params": []}), -32602, "is not an object"),
        (json!({"method": "tools/list", "params": {"_meta": []}}), -32602, "`_meta` of `tools/list`"),
        (
            json!({"method": "tools/call", "params": {"name": "brief", "arguments": []}}),
            -32602,
            "`arguments` of `tools/call` is not an object; give the arguments by name",
        ),
        (json!({"method": "tools/call", "params": {}}), -32602, "missing field `name`"),
        (json!({"method": "tools/call"}), -32602, "missing field `name`"),
        (json!({"method": "resources/read", "params": {"uri": 3}}), -32602, "`params` of `resources/read`"),
        (json!({"method": "nothing/there", "params": {}}), -32601, "nothing/there"),
        (json!({"method": 3}), -32600, "one JSON object"),
        (json!({}), -32600, "one JSON object"),
    ] {
        let mut request = request;
        request["jsonrpc"] = json!("2.0");
        request["id"] = json!("r");
        let told = mcp.refused(request.to_string().as_bytes(), &json!("r"), code);
        assert!(told.contains(said), "{request}: {told}");
    }
    mcp.refused(b"{\"id\":4,\"method\":\"ping\"}", &json!(4), -32600);
    mcp.refused(b"[]", &Value::Null, -32600);
    mcp.refused(b"{\"foo\":\"bar\"}", &Value::Null, -32600);
    // Notifications are answered by nothing, and these lines are none at all.
    mcp.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": []}));
    mcp.send(&json!({"jsonrpc": "2.0", "method": "notifications/x", "params": []}));
    mcp.send_line(b"\r");
    mcp.send_line(b"");
    mcp.send_line(b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\r");
    assert_eq!(mcp.receive()["id"], 5);
    assert_eq!(mcp.close(), 0);
}

#[test]
fn what_comes_before_the_handshake_does_not_end_the_connection() {
    for set in ["core", "kg"] {
        let sandbox = Sandbox::new();
        let mut mcp = Connection::begun(sandbox.memgrove(&["mcp", "--tools", set]));
        mcp.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
        mcp.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        mcp.send(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        mcp.send(&json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}}));
        mcp.refused(b"no JSON", &Value::Null, -32700);
        assert!(mcp.ask("tools/list", json!({}))["error"].is_object());
        assert!(mcp.ask("initialize", json!({}))["error"].is_object());
        mcp.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        mcp.greet();
        assert!(mcp.ask("tools/list", json!({}))["result"]["tools"].is_array());
        assert_eq!(mcp.close(), 0);
    }
}

/// A connection on which that many calls were sent ahead, to a store that waits until the lock is let go.
fn ahead(sandbox: &Sandbox, calls: usize) -> (Connection, std::fs::File) {
    let mut mcp = Connection::new(sandbox, &["--tools", "all"]);
    mcp.call("file_create", json!({"path": "first.md", "text": "x"}));
    let lock = std::fs::File::open(sandbox.store().join(".lock")).expect("the store's lock");
    lock.lock().expect("nobody else keeps it");
    for id in (mcp.last + 1..).take(calls) {
        let create = json!({"name": "file_create", "arguments": {"path": format!("{id}.md"), "text": "x"}});
        mcp.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": create}));
    }
    (mcp, lock)
}

/// The protocol's crate alone would give up after five seconds.
#[test]
fn what_was_sent_ahead_is_answered_before_the_end() {
    const CALLS: usize = 2_000;
    let sandbox = Sandbox::in_memory();
    let (mut mcp, lock) = ahead(&sandbox, CALLS);
    drop(mcp.stdin.take());
    std::thread::sleep(Duration::from_secs(6));
    lock.unlock().expect("it was had");
    let answered: BTreeSet<u64> =
        (0..CALLS).map(|_| mcp.receive()).filter_map(|told| told["id"].as_u64()).collect();
    assert_eq!(answered.len(), CALLS);
    assert_eq!(mcp.close(), 0);
}

#[test]
fn what_cannot_be_answered_is_told_at_the_end() {
    let sandbox = Sandbox::new();
    let (mcp, lock) = ahead(&sandbox, 3);
    let Connection { mut child, stdin, stdout, .. } = mcp;
    drop((stdin, stdout));
    lock.unlock().expect("it was had");
    let mut told = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut told).expect("text");
    assert!(told.contains("3 requests had no answer"), "{told}");
    assert_eq!(child.wait().expect("it was started").code(), Some(1), "{told}");
}

/// A request that lasts as long as the connection is nothing to wait for.
#[test]
fn who_only_listens_is_not_waited_for() {
    let sandbox = Sandbox::new();
    let mut mcp = Connection::begun(sandbox.memgrove(&["mcp"]));
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test-client", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let listen = json!({"_meta": meta, "notifications": {"resourceSubscriptions": ["memgrove://brief"]}});
    mcp.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen}));
    let told = mcp.receive();
    assert!(told["method"].as_str().is_some_and(|method| method.contains("subscriptions")), "{told}");
    // The protocol's crate has to learn that it has told so.
    std::thread::sleep(Duration::from_millis(500));
    let begun = Instant::now();
    assert_eq!(mcp.close(), 0);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

/// A client takes a resource for the whole of it.
#[test]
fn a_resource_that_is_too_large_is_refused_and_not_cut() {
    let sandbox = Sandbox::new();
    let mut mcp = Connection::new(&sandbox, &[]);
    mcp.call("remember", json!({"text": "The kettle is blue"}));
    let files = sandbox.store().join("files");
    std::fs::create_dir_all(&files).expect("a folder");
    std::fs::write(files.join("most.md"), "a line\n".repeat(110_000)).expect("a file");
    std::fs::write(files.join("more.md"), "a line\n".repeat(120_000)).expect("a file");
    let mut read =
        |name: &str| mcp.ask("resources/read", json!({"uri": format!("memgrove://file/memories/{name}")}));
    let most = read("most.md");
    assert_eq!(most["result"]["contents"][0]["text"].as_str().map(str::len), Some(770_000), "all of it");
    let more = read("more.md");
    let told =
        more["error"]["message"].as_str().unwrap_or_else(|| panic!("it is cut: {:.200}", more.to_string()));
    assert!(told.contains("`file:/memories/more.md` is too large") && told.contains("`file_view`"), "{told}");
    mcp.close();
}

#[test]
fn resources_are_listed_and_read_as_the_same_type() {
    let sandbox = Sandbox::new();
    let mut mcp = Connection::new(&sandbox, &["--tools", "all"]);
    for name in ["pic.png", "PIC2.JPG", "some.bin", "odd.txt", "odd.md"] {
        mcp.call("file_create", json!({"path": name, "content_base64": "AJ+Slg=="}));
    }
    for name in ["a.md", "b.json", "c.txt", "d"] {
        mcp.call("file_create", json!({"path": name, "text": "[]"}));
    }
    let listed = mcp.ask("resources/list", json!({}))["result"]["resources"].take();
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), 9, "{listed:?}");
    let mut types = BTreeSet::new();
    for resource in listed {
        let read = mcp.ask("resources/read", json!({"uri": resource["uri"]}))["result"]["contents"][0].take();
        let said = read["mimeType"].as_str().expect("it is read");
        // What the name does not tell is told when it is read.
        let known = resource["mimeType"].as_str().unwrap_or(said);
        assert_eq!(known, said, "{resource}");
        types.insert((resource["name"].to_string(), known.to_owned()));
    }
    let is_listed = |name: &str, kind: &str| types.contains(&(format!("\"{name}\""), kind.to_owned()));
    assert!(is_listed("pic.png", "image/png") && is_listed("PIC2.JPG", "image/jpeg"), "{types:?}");
    assert!(is_listed("some.bin", "application/octet-stream") && is_listed("d", "text/plain"), "{types:?}");
    mcp.close();
}
