//! A node of 100 MiB through the program: how much memory it takes on its way in and out.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::process::{Command, Output};

use super::sandbox::{MEMGROVE, Sandbox};

const MIB: usize = 1 << 20;
const CONTENT: usize = 100 * MIB;
/// What the program may have at most: the content once, and some room beside it.
const ROOM: usize = CONTENT + 60 * MIB;

/// The program, with so much memory for data at most: the system refuses it more.
fn within(sandbox: &Sandbox, bytes: usize, arguments: &[&str]) -> Command {
    let mut command = sandbox.command("/bin/sh");
    let script = format!("ulimit -d {} && exec \"$0\" \"$@\"", bytes / 1024);
    command.args(["-c", &script, MEMGROVE]).args(arguments);
    command
}

fn run(mut command: Command) -> Vec<u8> {
    let Output { status, stdout, stderr } = command.output().expect("it can be started");
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    stdout
}

fn made(command: Command) -> String {
    let said: serde_json::Value = serde_json::from_slice(&run(command)).expect("JSON");
    said["address"].as_str().expect("an address").to_owned()
}

#[test]
fn a_node_of_100_mib_is_never_in_memory_twice() {
    let sandbox = Sandbox::in_memory();
    let content = b"\xff\0film".repeat(CONTENT / 6);
    let path = sandbox.path().join("film.mp4");
    std::fs::write(&path, &content).expect("a file");
    let from = path.to_str().expect("a name");

    let create = ["--json", "node", "create", "film", "--from"];
    let by_name = made(within(&sandbox, ROOM, &[&create[..], &[from]].concat()));
    let mut by_input = within(&sandbox, ROOM, &[&create[..], &["-", "--format", "mp4"]].concat());
    by_input.stdin(File::open(&path).expect("it was just written"));
    let by_input = made(by_input);

    for address in [&by_name, &by_input] {
        assert!(run(within(&sandbox, ROOM, &["read", address])) == content, "{address} differs");
    }
    // With JSON the bytes are base64, which is made as it is written.
    assert!(run(within(&sandbox, ROOM, &["--json", "read", &by_name])).len() > content.len() * 4 / 3);
    // The bound is one that can be broken.
    let tight = within(&sandbox, CONTENT - MIB, &["read", &by_name]).output().expect("it can be started");
    assert!(!tight.status.success(), "the content was read in less memory than it has");
}
