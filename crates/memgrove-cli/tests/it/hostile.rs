//! Hostile paths through every door: whatever a path is spelled like, nothing outside the store's
//! folder of memories is read or changed.
//!
//! The spellings aim at canaries in the test's own temporary folder and at nothing else on the
//! machine; `{root}` and `{outside}` stand for folders of the test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use super::mcp::Connection;
use super::sandbox::Sandbox;
use super::serve::Server;
use super::serve_pages::{sent, shown};

const CANARY: &str = "CANARY-7c2d";

fn spellings() -> Vec<String> {
    let text = include_str!("../../../../tests/hostile-paths.json");
    let spellings: Vec<String> = serde_json::from_str(text).expect("a list of texts");
    assert!(spellings.len() >= 400, "only {} spellings", spellings.len());
    spellings
}

/// A store with canaries around it and links to them in it.
struct Trap {
    sandbox: Sandbox,
    before: BTreeMap<String, Option<Vec<u8>>>,
}

impl Trap {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        for name in ["a.md", "notes.md", "notes/a.md", "bait.md"] {
            sandbox.run(&["file", "create", name, "--text", "inside\n"]).ok();
        }
        sandbox.run(&["note", "write", "inside"]).ok();
        let (files, notes) = (sandbox.store().join("files"), sandbox.store().join("notes"));
        let around = [
            sandbox.path().join("outside"),
            sandbox.store().join("outside"),
            sandbox.project().join("outside"),
        ];
        for folder in &around {
            fs::create_dir(folder).expect("a folder");
            fs::write(folder.join("canary.md"), CANARY).expect("a file");
        }
        fs::create_dir(sandbox.store().join("files-evil")).expect("a folder");
        fs::write(sandbox.store().join("files-evil/canary.md"), CANARY).expect("a file");
        fs::write(sandbox.store().join("canary.md"), CANARY).expect("a file");
        for (to, name) in [
            ("../outside/canary.md", "link-file"),
            ("../outside", "link-dir"),
            ("..", "link-parent"),
            ("link-self", "link-self"),
            ("../outside/new.md", "link-dangling"),
            (around[0].to_str().expect("a plain path"), "link-absolute"),
            ("../../outside", "notes/link-mid"),
        ] {
            symlink(to, files.join(name)).expect("a link");
            if !name.contains('/') {
                symlink(to, notes.join(name)).expect("a link");
            }
        }
        symlink("../outside/canary.md", notes.join("link-note.md")).expect("a link");
        let before = outside(&sandbox);
        Trap { sandbox, before }
    }

    /// A change of the history.
    fn change(&self) -> String {
        let past = self.sandbox.run(&["--json", "history", "--limit", "1"]).json();
        past["changes"][0]["change"].as_str().expect("a change").to_owned()
    }

    fn spelled(&self, spelling: &str) -> String {
        let outside = self.sandbox.path().join("outside").display().to_string();
        let root = self.sandbox.store().join("files").display().to_string();
        spelling.replace("{outside}", &outside).replace("{root}", &root)
    }

    #[track_caller]
    fn check(&self, path: &str, told: &str) {
        assert!(!told.contains(CANARY), "{path:?} reads what is outside: {told}");
    }

    #[track_caller]
    fn close(self) {
        let after = outside(&self.sandbox);
        assert_eq!(after, self.before, "something outside has changed");
    }
}

/// Where the store keeps memories, and its journal.
const MEMORIES: [&str; 7] = ["files", "notes", "records", "knowledge", "graph", "memory_stores", ".journal"];

/// Everything in the sandbox but the memories, the store's own journal, the index of it, and what a server keeps.
fn outside(sandbox: &Sandbox) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![sandbox.path().to_owned()];
    let home = ["home/.cache", "home/.local"].map(|name| sandbox.path().join(name));
    let own = MEMORIES.map(|name| sandbox.store().join(name)).into_iter().chain(home).collect::<Vec<_>>();
    while let Some(path) = waiting.pop() {
        if own.contains(&path) {
            continue;
        }
        let name = path.strip_prefix(sandbox.path()).expect("it is beneath").display().to_string();
        if path.is_dir() {
            waiting
                .extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
            found.insert(name, None);
        } else {
            found.insert(name, Some(fs::read(&path).expect("a file")));
        }
    }
    found
}

/// The spellings, and the links.
fn spelled(trap: &Trap) -> Vec<String> {
    let links = [
        "link-file",
        "link-note",
        "link-dir/canary.md",
        "link-parent/outside/canary.md",
        "link-self",
        "link-dangling",
        "link-absolute/canary.md",
        "link-dir/new.md",
        "notes/link-mid/canary.md",
    ];
    let all = spellings().into_iter().chain(links.map(str::to_owned));
    all.map(|spelling| trap.spelled(&spelling)).collect()
}

/// The same as paths that a user could give: as they are, and beneath the root.
fn paths(trap: &Trap) -> Vec<String> {
    spelled(trap).into_iter().flat_map(|path| [format!("/memories/{path}"), path]).collect()
}

/// What verbs call an argument that names a place: a path, an address, an id, or a change or version of the history.
const PLACES: [&str; 13] = [
    "path", "old_path", "new_path", "children", "address", "memory", "at", "from", "to", "before", "change",
    "id", "ids",
];

/// One argument of one verb that names a place, and what else the verb needs.
struct Door {
    verb: String,
    argument: String,
    is_list: bool,
    others: Value,
}

impl Door {
    /// The doors of a verb, as its schema says.
    fn of(verb: &str, schema: &Value, change: &str) -> Vec<Door> {
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let needed: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
        // Without these, a verb may not get as far as the place.
        let helps = |name: &str| name == "content" || name == "dry_run" && properties.contains_key("yes");
        let places = properties.iter().filter(|(name, _)| PLACES.contains(&name.as_str()));
        places
            .map(|(argument, property)| Door {
                verb: verb.to_owned(),
                argument: argument.clone(),
                is_list: property["type"].to_string().contains("array"),
                others: properties
                    .keys()
                    .filter(|name| *name != argument)
                    .filter(|name| needed.contains(&name.as_str()) || helps(name))
                    .map(|name| (name.clone(), good(name, change)))
                    .collect(),
            })
            .collect()
    }

    /// The arguments of calls that name a place by this spelling, in the ways in which such an argument can.
    fn calls(&self, path: &str) -> Vec<Value> {
        let places = match self.argument.as_str() {
            "path" | "old_path" | "new_path" => vec![format!("/memories/{path}"), path.to_owned()],
            "address" | "memory" => {
                vec![format!("file:/memories/{path}"), format!("note:{path}"), path.to_owned()]
            }
            _ => vec![path.to_owned()],
        };
        let call = |place: String| {
            let mut arguments = self.others.clone();
            arguments[&self.argument] = if self.is_list { json!([place]) } else { json!(place) };
            arguments
        };
        places.into_iter().map(call).collect()
    }
}

/// An argument that a verb can work with.
fn good(name: &str, change: &str) -> Value {
    match name {
        "path" | "old_path" => json!("/memories/bait.md"),
        "new_path" => json!("/memories/moved"),
        "address" => json!("file:/memories/bait.md"),
        "change" | "from" | "to" => json!(change),
        "old" => json!("CANARY"),
        "line" => json!(1),
        "dry_run" => json!(true),
        "type" => json!("x"),
        "operation" => json!("write"),
        "command" => json!("view"),
        "names" | "ids" => json!(["x"]),
        _ => json!("gone\n"),
    }
}

/// Brings every spelling, and links, through every door; a batch names its places deeper within.
fn through(trap: &Trap, doors: &[Door], mut call: impl FnMut(&str, &Value) -> String) {
    let verbs: BTreeSet<&str> = doors.iter().map(|door| door.verb.as_str()).collect();
    let known = ["file_replace", "file_insert", "diff", "restore", "undo", "history", "forget", "similar"];
    assert!(known.iter().all(|verb| verbs.contains(verb)), "{verbs:?}");
    for path in spelled(trap) {
        for door in doors {
            for arguments in door.calls(&path) {
                trap.check(&path, &call(&door.verb, &arguments));
            }
        }
        for at in [format!("/memories/{path}"), path.clone()] {
            let steps = [
                json!({"type": "write", "path": at, "content": "gone\n"}),
                json!({"type": "delete", "path": at}),
            ];
            trap.check(&path, &call("file_batch", &json!({"operations": steps})));
        }
        call("file_delete", &json!({"path": "/memories/moved"}));
        call("file_create", &json!({"path": "/memories/bait.md", "text": "inside\n"}));
    }
    trap.check("find", &call("find", &json!({"text": "canary"})));
}

#[test]
fn through_every_tool() {
    let trap = Trap::new();
    let mut mcp = Connection::new(&trap.sandbox, &["--tools", "all"]);
    let change = trap.change();
    let listed = mcp.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().expect("a list");
    let door = |tool: &Value| Door::of(tool["name"].as_str().expect("a name"), &tool["inputSchema"], &change);
    let doors: Vec<Door> = tools.iter().flat_map(door).collect();
    through(&trap, &doors, |tool, arguments| mcp.call(tool, arguments.clone()).to_string());
    assert_eq!(mcp.close(), 0);
    trap.close();
}

/// The verbs are the same as those of the tools; what is its own is how their arguments come.
#[test]
fn through_every_verb_over_http() {
    let trap = Trap::new();
    let server = Server::start(&trap.sandbox, &[]).listened_to();
    let change = trap.change();
    let described = server.get("/api/openapi.json", &[]).json();
    let posted = described["paths"].as_object().expect("paths").iter().filter_map(|(path, methods)| {
        let schema = &methods["post"]["requestBody"]["content"]["application/json"]["schema"];
        Some(Door::of(path.strip_prefix("/api/")?, schema, &change))
    });
    let doors: Vec<Door> = posted.flatten().collect();
    through(&trap, &doors, |verb, arguments| {
        let answer = server.post(&format!("/api/{verb}"), arguments, &[]);
        assert!(answer.status < 500 || answer.status == 501, "{verb} {arguments}: {}", answer.status);
        String::from_utf8_lossy(&answer.body).into_owned()
    });
    for path in spelled(&trap) {
        let content = format!("/api/content?address={}", coded(&format!("file:/memories/{path}")));
        trap.check(&path, &shown(&server.get(&content, &[])));
        let (name, value) = server.bearer();
        server.send("PUT", &content, &[(name, &value)], b"gone\n");
    }
    drop(server);
    trap.close();
}

/// Every byte as it may stand in any part of an address.
fn coded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn through_pages_and_their_forms() {
    let trap = Trap::new();
    let server = Server::start(&trap.sandbox, &[]).listened_to();
    let change = trap.change();
    for path in spelled(&trap) {
        for at in [path.clone(), format!("files/{path}"), format!("notes/{path}")] {
            for page in ["read", "edit", "history"] {
                trap.check(&at, &shown(&server.get(&format!("/{page}?at={}", coded(&at)), &[])));
            }
            for (form, field) in [("/edit", "at"), ("/delete", "at"), ("/restore", "address")] {
                let fields = [(field, at.as_str()), ("text", "gone\n"), ("to", &change)];
                trap.check(&at, &shown(&sent(&server, form, &fields)));
            }
        }
        let link = format!("/read?from=files/a.md&link={}", coded(&path));
        trap.check(&path, &shown(&server.get(&link, &[])));
    }
    drop(server);
    trap.close();
}

#[test]
fn through_memory_stores_and_resources() {
    let trap = Trap::new();
    let server = Server::start(&trap.sandbox, &[]).listened_to();
    let chosen = json!({"name": "all", "metadata": {"memgrove_folder": "/memories"}});
    let made = server.post("/v1/memory_stores", &chosen, &[]).json();
    let memories = format!("/v1/memory_stores/{}/memories", made["id"].as_str().expect("an id"));
    let mut mcp = Connection::new(&trap.sandbox, &["--tools", "core"]);
    for path in spelled(&trap) {
        for path in [path.clone(), format!("/{path}")] {
            let told = server.post(&memories, &json!({"path": path, "content": "gone\n"}), &[]);
            trap.check(&path, &shown(&told));
            let listed = server.get(&format!("{memories}?path_prefix={}", coded(&path)), &[]);
            trap.check(&path, &shown(&listed));
        }
        for uri in ["file/memories", "note", "entity", "node"].map(|kind| format!("memgrove://{kind}/")) {
            for path in [coded(&path), path.clone()] {
                let uri = format!("{uri}{path}");
                trap.check(&uri, &mcp.ask("resources/read", json!({"uri": uri})).to_string());
            }
        }
    }
    assert_eq!(mcp.close(), 0);
    drop(server);
    trap.close();
}

/// The commands of the Memory Tool that a path is given to.
fn commands(path: &str) -> [Value; 8] {
    [
        json!({"command": "view", "path": path}),
        json!({"command": "str_replace", "path": path, "old_str": "CANARY", "new_str": "gone"}),
        json!({"command": "insert", "path": path, "insert_line": 0, "insert_text": "gone"}),
        json!({"command": "create", "path": path, "file_text": "gone\n"}),
        json!({"command": "rename", "old_path": path, "new_path": "/memories/moved"}),
        json!({"command": "rename", "old_path": "/memories/bait.md", "new_path": path}),
        json!({"command": "delete", "path": "/memories/moved"}),
        json!({"command": "create", "path": "/memories/bait.md", "file_text": "inside\n"}),
    ]
}

#[test]
fn through_the_memory_tool_and_its_mcp_twin() {
    let (trap, twin) = (Trap::new(), Trap::new());
    let of = |trap: &Trap| paths(trap).iter().flat_map(|path| commands(path)).collect::<Vec<_>>();
    let input: String = of(&trap).iter().map(|command| format!("{command}\n")).collect();
    let told = trap.sandbox.feed(&["memory-tool"], input).ok();
    trap.check("memory-tool", &told);
    let replies: Vec<Value> =
        told.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect();
    let asked = of(&twin);
    assert_eq!(replies.len(), asked.len());
    let mut mcp = Connection::new(&twin.sandbox, &["--tools", "files"]);
    for (reply, command) in replies.iter().zip(asked) {
        let answer = mcp.call("memory", command.clone());
        twin.check("memory", &answer.to_string());
        // The twin answers the same, of a folder that is called otherwise.
        let text =
            answer["content"][0]["text"].as_str().unwrap_or_default().replace(&place(&twin), &place(&trap));
        assert_eq!((&json!(text), &answer["isError"]), (&reply["content"], &reply["is_error"]), "{command}");
    }
    assert_eq!(mcp.close(), 0);
    trap.close();
    twin.close();
}

/// Where the canaries are.
fn place(trap: &Trap) -> String {
    trap.sandbox.path().display().to_string()
}

#[test]
fn through_the_memory_tool_in_a_folder_of_its_own() {
    let trap = Trap::new();
    let folder = trap.sandbox.store().join("files");
    let input: String =
        paths(&trap).iter().flat_map(|path| commands(path)).map(|command| format!("{command}\n")).collect();
    let state = trap.sandbox.path().join("state");
    fs::create_dir(&state).expect("a folder");
    let mut command = trap.sandbox.memgrove(&["memory-tool", "--memories"]);
    command.arg(&folder).env("XDG_STATE_HOME", &state);
    let mut child = super::sandbox::spawn(command);
    let mut stdin = child.stdin.take().expect("it is piped");
    let feeder = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, input.as_bytes()));
    let output = child.wait_with_output().expect("it was started");
    feeder.join().expect("it only writes").expect("it reads everything");
    trap.check("memory-tool --memories", &String::from_utf8_lossy(&output.stdout));
    fs::remove_dir_all(&state).expect("our own folder");
    trap.close();
}

/// A process for each, so in two halves, side by side.
#[test]
fn through_the_command_line() {
    command_line(0);
}

#[test]
fn through_the_command_line_too() {
    command_line(1);
}

fn command_line(half: usize) {
    let trap = Trap::new();
    let change = trap.change();
    let spelled = spellings().into_iter().skip(half).step_by(2).map(|spelling| trap.spelled(&spelling));
    for (index, path) in spelled.enumerate() {
        if path.contains('\0') {
            continue; // No program can be given one.
        }
        let (file, batch) =
            (format!("file:{path}"), json!([{"type": "write", "path": path, "content": "gone"}]));
        let batch = batch.to_string();
        // Every process costs time, so these take turns.
        let turns: [&[&str]; 7] = [
            &["file", "replace", "--old", "CANARY", "--new", "gone", "--", &path],
            &["file", "insert", "--text", "gone", "--", &path, "1"],
            &["file", "batch", "--text", &batch],
            &["history", "--", &file],
            &["diff", "--", &file],
            &["restore", "--to", &change, "--", &file],
            &["undo", "--memory", &file],
        ];
        for arguments in [
            ["file", "view", &path].as_slice(),
            &["read", &path],
            &["file", "create", "--text", "gone\n", "--", &path],
            turns[index % turns.len()],
            &["file", "rename", "bait.md", &path],
            &["file", "delete", &path],
        ] {
            let ran = trap.sandbox.run(arguments);
            assert!((0..=10).contains(&ran.code), "{path:?}: {ran:?}");
            trap.check(&path, &format!("{}{}", ran.out, ran.err));
        }
        trap.sandbox.run(&["file", "create", "bait.md", "--text", "inside\n"]);
    }
    trap.close();
}

#[test]
fn the_trap_notices() {
    let trap = Trap::new();
    fs::write(trap.sandbox.path().join("outside/canary.md"), "changed").expect("our own file");
    assert_ne!(outside(&trap.sandbox), trap.before);
    assert!(Path::new(&trap.spelled("{outside}/canary.md")).exists());
}
