//! Many writers on one store: nothing is lost, nothing is doubled.

use std::collections::BTreeMap;
use std::thread;

use serde_json::json;

use super::mcp::Connection;
use super::sandbox::Sandbox;

const WRITERS: usize = 8;
/// Writers meet on these files, so that most writes change what another one has just changed.
const FILES: usize = 4;

fn prepared() -> Sandbox {
    let sandbox = Sandbox::new();
    for file in 0..FILES {
        sandbox.run(&["file", "create", &format!("shared-{file}.md"), "--text", "start\n"]).ok();
    }
    sandbox
}

/// Every line of every writer is there exactly once.
fn check(sandbox: &Sandbox, writes: usize) {
    let mut seen = BTreeMap::new();
    for file in 0..FILES {
        let text = sandbox.run(&["read", &format!("shared-{file}.md")]).ok();
        for line in text.lines().filter(|line| *line != "start") {
            *seen.entry(line.to_owned()).or_insert(0) += 1;
        }
    }
    for writer in 0..WRITERS {
        for write in 0..writes {
            assert_eq!(seen.remove(&format!("{writer}-{write}")), Some(1), "writer {writer}, write {write}");
        }
    }
    assert!(seen.is_empty(), "nobody wrote {seen:?}");
    assert!(sandbox.run(&["doctor"]).ok().ends_with("all is well\n"));
}

fn through_processes(writes: usize) {
    let sandbox = prepared();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let sandbox = &sandbox;
            scope.spawn(move || {
                for write in 0..writes {
                    let file = format!("shared-{}.md", (writer + write) % FILES);
                    let line = format!("{writer}-{write}");
                    sandbox.run(&["file", "insert", &file, "1", "--text", &line]).ok();
                }
            });
        }
    });
    check(&sandbox, writes);
}

fn through_servers(writes: usize) {
    let sandbox = prepared();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let sandbox = &sandbox;
            scope.spawn(move || {
                let mut mcp = Connection::new(sandbox, &["--tools", "all"]);
                for write in 0..writes {
                    let file = format!("shared-{}.md", (writer + write) % FILES);
                    let line = format!("{writer}-{write}");
                    let done = mcp.call("file_insert", json!({"path": file, "line": 1, "text": line}));
                    assert_eq!(done["isError"], false, "{done}");
                }
                assert_eq!(mcp.close(), 0);
            });
        }
    });
    check(&sandbox, writes);
}

#[test]
fn eight_processes_lose_nothing() {
    through_processes(500);
}

#[test]
fn eight_servers_lose_nothing() {
    through_servers(500);
}

#[test]
#[ignore = "long: make torture"]
fn torture_eight_processes_2000_writes_each() {
    through_processes(2000);
}

#[test]
#[ignore = "long: make torture"]
fn torture_eight_servers_2000_writes_each() {
    through_servers(2000);
}

#[test]
fn eight_processes_make_one_store_at_home() {
    let sandbox = Sandbox::empty();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let sandbox = &sandbox;
            scope.spawn(move || {
                sandbox.run(&["file", "create", &format!("{writer}.md"), "--text", "x\n"]).ok();
            });
        }
    });
    assert_eq!(sandbox.run(&["find", "x"]).ok().lines().count(), WRITERS);
}
