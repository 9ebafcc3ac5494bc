//! `memgrove mcp` on the wire. The official client drives it in `tests/clients/mcp_client.py`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command};

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
        let mut child = spawn(command);
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut connection = Connection { child, stdin, stdout, last: 0, instructions: String::new() };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test-client", "version": "1"}});
        let welcome = connection.ask("initialize", hello);
        assert_eq!(welcome["result"]["protocolVersion"], "2025-11-25", "{welcome}");
        connection.instructions = welcome["result"]["instructions"].as_str().unwrap_or_default().to_owned();
        connection.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        connection
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("it was not closed");
        writeln!(stdin, "{message}").expect("the server reads");
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
    for profile in ["core", "files", "all"] {
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
        assert!(
            seen["structuredContent"]["left_out"].as_str().is_some_and(|text| text.starts_with("lines "))
        );
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
    assert!(text(&again).starts_with(text(&first).trim()), "{first} {again}");
    assert!(text(&again).contains("done before with this key"), "{again}");
    let address = text(&first).trim().trim_start_matches("remembered ").to_owned();
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
