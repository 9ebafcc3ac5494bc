//! Conflicts: copies in a vault, and two branches of a git repository.

use std::path::Path;
use std::process::Command;

use super::sandbox::Sandbox;

fn record(id: &str) -> String {
    format!("{{\"id\":\"{id}\",\"content\":\"{id}\",\"updated_at\":\"2026-01-01T00:00:00Z\"}}\n")
}

fn git(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let mut command: Command = sandbox.command("git");
    let identity =
        ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"];
    let output = command.args(identity).args(arguments).output().expect("git is installed");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {said}");
    said
}

fn put(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

#[test]
fn two_branches_of_records_and_entities_unite() {
    let sandbox = Sandbox::empty();
    let root = sandbox.project();
    let entity = |lines: &str| format!("# Entity: Ada\n**Type**: person\n\n## Observations\n{lines}");
    let (tasks, ada) = ("records/tasks.jsonl", "knowledge/entities/person/ada.md");
    git(&sandbox, &["init", "."]);
    git(&sandbox, &["config", "merge.memgrove.driver", "memgrove merge-driver %O %A %B %P"]);
    put(&root, ".gitattributes", "*.jsonl merge=memgrove\nknowledge/entities/** merge=memgrove\n");
    let commit = |text: &str, observations: &str| {
        put(&root, tasks, text);
        put(&root, ada, &entity(observations));
        git(&sandbox, &["add", "."]);
        git(&sandbox, &["commit", "-m", "a state"]);
    };
    commit(&(record("a") + &record("b")), "1. likes tea\n");
    git(&sandbox, &["checkout", "-b", "topic"]);
    commit(&(record("a") + &record("c")), "1. likes tea\n2. plays chess\n");
    git(&sandbox, &["checkout", "main"]);
    commit(&(record("a") + &record("b") + &record("d")), "1. likes tea\n2. lives in Bern\n");
    git(&sandbox, &["merge", "topic"]);
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect("a file");
    // `b` was removed on the topic branch and left alone on ours.
    assert_eq!(read(tasks), record("a") + &record("d") + &record("c"));
    assert_eq!(read(ada), entity("1. likes tea\n2. lives in Bern\n3. plays chess\n"));
}

#[test]
fn a_clash_of_lines_is_left_to_git() {
    let sandbox = Sandbox::empty();
    for (name, text) in [("base", "a\n"), ("ours", "b\n"), ("theirs", "c\n")] {
        put(&sandbox.project(), name, text);
    }
    let ran = sandbox.run(&["merge-driver", "base", "ours", "theirs", "files/a.md"]);
    assert_eq!((ran.code, &*ran.out), (5, "1 places are left to you\n"));
    let merged = std::fs::read_to_string(sandbox.project().join("ours")).expect("a file");
    assert_eq!(merged, "<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n");
}

#[test]
fn a_vault_keeps_its_journal_outside_and_merges_copies() {
    let sandbox = Sandbox::empty();
    sandbox.run(&["--backend", "vault", "init"]).ok();
    sandbox.feed(&["file", "create", "/memories/a.md"], "one\n").ok();
    let store = sandbox.store();
    assert!(!store.join(".journal").exists() && !store.join(".lock").exists());
    put(&store, "files/a.sync-conflict-20260131-120000-ABCDEFG.md", "one\ntwo\n");
    let listed = sandbox.run(&["--json", "conflicts"]).json();
    assert_eq!(listed["conflicts"][0]["of"], "files/a.md");
    assert_eq!(listed["conflicts"][0]["by"], "Syncthing");
    let seen = sandbox.run(&["file", "view"]).ok();
    assert!(!seen.contains("sync-conflict"), "{seen}");
    let doctor = sandbox.run(&["doctor"]);
    assert!(doctor.out.contains("a conflict copy of `a.md` by Syncthing"), "{}", doctor.out);
    let merged = sandbox.run(&["conflicts", "merge", "--take", "theirs"]).ok();
    assert_eq!(merged, "files/a.sync-conflict-20260131-120000-ABCDEFG.md: merged by theirs\n");
    assert_eq!(std::fs::read_to_string(store.join("files/a.md")).expect("a file"), "one\ntwo\n");
    assert_eq!(sandbox.run(&["conflicts"]).ok(), "no conflicts\n");
}

#[test]
fn a_bucket_is_chosen_by_name_and_never_by_chance() {
    let sandbox = Sandbox::new();
    // Without a bucket the refusal and the two reports say the same.
    let sentence = "the backend `object` has no bucket to use";
    assert!(sandbox.run(&["--backend", "object", "file", "view"]).fails(2).contains(sentence));
    assert!(sandbox.run(&["--backend", "object", "doctor"]).out.contains(sentence));
    assert!(sandbox.run(&["--backend", "object", "backends"]).out.contains(sentence));
    let lacks = "the backend `object` does not offer `encryption`";
    assert!(
        sandbox.run(&["--backend", "object", "backends", "--requires", "encryption"]).out.contains(lacks)
    );
    let unknown = "there is no backend named `floppy`";
    let mut named = sandbox.memgrove(&["file", "view"]);
    let output = named.env("MEMGROVE_BACKEND", "floppy").output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains(unknown));
    // A repository that somebody else wrote does not choose where memories go.
    let settings = "format = 1\nbackend = \"object\"\n[object]\nlocation = \"s3://theirs/x\"\n";
    put(&sandbox.store(), "memgrove.toml", settings);
    let refused = sandbox.run(&["file", "view"]).fails(10);
    assert!(refused.contains("was merely found, and may not send memories to `s3://theirs/x`"), "{refused}");
}
