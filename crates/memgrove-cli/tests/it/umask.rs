//! What the program makes is its owner's to use, and nobody else's, whatever the umask of its process is.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::sandbox::{MEMGROVE, Ran, Sandbox, spawn};

/// Runs the program under a umask, which a process has as a whole.
fn run_under(sandbox: &Sandbox, umask: &str, arguments: &[&str], input: &str) -> Ran {
    let mut command: Command = sandbox.command("/bin/sh");
    command.args(["-c", &format!("umask {umask}; exec \"$@\""), "sh", MEMGROVE]).args(arguments);
    Ran::of(spawn(command), input)
}

/// Checks the modes of all that is beneath a folder.
fn check(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let about = entry.metadata().expect("it is there");
        let wanted = if about.is_dir() { 0o700 } else { 0o600 };
        let mode = about.permissions().mode() & 0o777;
        assert_eq!(mode, wanted, "{:o} {}", mode, entry.path().display());
        if about.is_dir() {
            check(&entry.path());
        }
    }
}

#[test]
fn modes_are_the_same_under_every_umask() {
    for umask in ["0177", "0077", "0022"] {
        let sandbox = Sandbox::empty();
        let run = |arguments: &[&str], input: &str| run_under(&sandbox, umask, arguments, input).ok();
        run(&["init"], "");
        run(&["file", "create", "/memories/a/b/c.md", "--text", "x"], "");
        run(&["remember", "Deploys happen on Tuesdays"], "");
        let create = r#"{"command":"create","path":"/memories/d/e.md","file_text":"x"}"#;
        let told = run(&["memory-tool", "--memories", "../other/memories"], create);
        assert!(told.contains("\"is_error\":false"), "{told}");
        check(&sandbox.store());
        check(&sandbox.home().join("other"));
        check(&sandbox.home().join(".local"));
    }
}
