//! Hostile paths through every door: whatever a path is spelled like, nothing outside the store's
//! folder of memories is read or changed.
//!
//! The spellings aim at canaries in the test's own temporary folder and at nothing else on the
//! machine; `{root}` and `{outside}` stand for folders of the test.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use super::mcp::Connection;
use super::sandbox::Sandbox;

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
        let files = sandbox.store().join("files");
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
        }
        let before = outside(&sandbox);
        Trap { sandbox, before }
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

/// Everything in the sandbox but the memories, the store's own journal and the index of it.
fn outside(sandbox: &Sandbox) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![sandbox.path().to_owned()];
    let cache = sandbox.path().join("home/.cache");
    let own = [sandbox.store().join("files"), sandbox.store().join(".journal"), cache];
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

/// The spellings as paths that a user could give: as they are, and beneath the root.
fn paths(trap: &Trap) -> Vec<String> {
    let links = [
        "link-file",
        "link-dir/canary.md",
        "link-parent/outside/canary.md",
        "link-self",
        "link-dangling",
        "link-absolute/canary.md",
        "link-dir/new.md",
        "notes/link-mid/canary.md",
    ];
    let spelled = spellings().into_iter().chain(links.map(str::to_owned));
    spelled
        .flat_map(|spelling| {
            let path = trap.spelled(&spelling);
            [format!("/memories/{path}"), path]
        })
        .collect()
}

#[test]
fn through_mcp() {
    let trap = Trap::new();
    let mut mcp = Connection::new(&trap.sandbox, &["--tools", "all"]);
    for path in paths(&trap) {
        let calls = [
            ("file_view", json!({"path": path})),
            ("read", json!({"address": path})),
            ("read", json!({"address": format!("file:{path}")})),
            ("file_replace", json!({"path": path, "old": "CANARY", "new": "gone"})),
            ("file_insert", json!({"path": path, "line": 1, "text": "gone"})),
            ("file_create", json!({"path": path, "text": "gone\n"})),
            ("file_rename", json!({"old_path": path, "new_path": "/memories/moved"})),
            ("file_rename", json!({"old_path": "/memories/bait.md", "new_path": path})),
            (
                "file_batch",
                json!({"operations": [{"type": "write", "path": path, "content": "gone\n"},
                {"type": "delete", "path": path}]}),
            ),
            ("history", json!({"address": path})),
            ("file_delete", json!({"path": path})),
            ("file_delete", json!({"path": "/memories/moved"})),
            ("file_create", json!({"path": "/memories/bait.md", "text": "inside\n"})),
        ];
        for (tool, arguments) in calls {
            let told = mcp.call(tool, arguments);
            trap.check(&path, &told.to_string());
        }
    }
    trap.check("find", &mcp.call("find", json!({"text": "canary"})).to_string());
    assert_eq!(mcp.close(), 0);
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
    let trap = Trap::new();
    let paths = paths(&trap);
    let input: String =
        paths.iter().flat_map(|path| commands(path)).map(|command| format!("{command}\n")).collect();
    let told = trap.sandbox.feed(&["memory-tool"], input).ok();
    assert_eq!(told.lines().count(), paths.len() * 8);
    trap.check("memory-tool", &told);
    let mut mcp = Connection::new(&trap.sandbox, &["--tools", "files"]);
    for path in paths {
        for command in commands(&path) {
            trap.check(&path, &mcp.call("memory", command).to_string());
        }
    }
    assert_eq!(mcp.close(), 0);
    trap.close();
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
    for path in spellings().into_iter().skip(half).step_by(2).map(|spelling| trap.spelled(&spelling)) {
        if path.contains('\0') {
            continue; // No program can be given one.
        }
        for arguments in [
            ["file", "view", &path].as_slice(),
            &["read", &path],
            &["file", "create", "--text", "gone\n", "--", &path],
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
