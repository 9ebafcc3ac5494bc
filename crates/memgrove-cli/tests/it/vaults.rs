//! Vaults: whose history it is, and which backend a store is opened with.

use std::path::{Path, PathBuf};
use std::process::Command;

use memgrove::backend::Version;

use super::sandbox::{Ran, Sandbox};

/// Runs the program on the store in a folder of the project.
fn on(sandbox: &Sandbox, store: &str, arguments: &[&str]) -> Ran {
    sandbox.run(&[&["--store", store], arguments].concat())
}

fn changes(sandbox: &Sandbox, store: &str) -> usize {
    on(sandbox, store, &["--json", "history"]).json()["changes"].as_array().expect("a list").len()
}

fn states(sandbox: &Sandbox) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(sandbox.home().join(".local/state/memgrove")).expect("a folder");
    folder.map(|entry| entry.expect("an entry").path()).collect()
}

fn copied(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-r").args([from, to]).status().expect("cp is there").success());
}

#[test]
fn a_vault_has_its_own_history_wherever_it_lies() {
    let sandbox = Sandbox::empty();
    let (project, root) = (sandbox.project(), sandbox.project().join("v/s"));
    let make = || sandbox.run(&["--backend", "vault", "init", "v/s"]).ok();
    let add = |store: &str| on(&sandbox, store, &["record", "add", "one", "--key", "k1"]).ok();
    make();
    add("v/s");
    std::fs::remove_dir_all(&root).expect("it was there");
    make();
    // Another store in the same place knows nothing of the one before it.
    assert_eq!(changes(&sandbox, "v/s"), 0);
    add("v/s");
    assert_eq!(
        on(&sandbox, "v/s", &["--json", "record", "list"]).json()["records"].as_array().map(Vec::len),
        Some(1)
    );
    // One store, however it is named.
    std::os::unix::fs::symlink(&root, project.join("link")).expect("a link");
    let whole = root.display().to_string();
    for name in ["v/s", "v/../v/./s", "link", &whole] {
        assert_eq!(changes(&sandbox, name), 1, "{name}");
    }
    // Moved, it takes its history along.
    std::fs::rename(&root, project.join("moved")).expect("it is free");
    assert_eq!(changes(&sandbox, "moved"), 1);
    // A copy has one of its own, and doctor says so.
    copied(&project.join("moved"), &project.join("copy"));
    assert_eq!((changes(&sandbox, "copy"), changes(&sandbox, "moved")), (0, 1));
    let doctor = on(&sandbox, "copy", &["doctor"]).out;
    assert!(doctor.contains("project/moved: it is a copy of this store"), "{doctor}");
    on(&sandbox, "moved", &["undo"]).ok();
    assert_eq!((changes(&sandbox, "copy"), changes(&sandbox, "moved")), (0, 2));
}

#[test]
fn a_history_that_was_named_after_a_path_is_taken_over() {
    let sandbox = Sandbox::empty();
    sandbox.run(&["--backend", "vault", "init", "v"]).ok();
    on(&sandbox, "v", &["file", "create", "a.md", "--text", "a"]).ok();
    let [state] = &states(&sandbox)[..] else { panic!("one state: {:?}", states(&sandbox)) };
    let path = sandbox.project().join("v").display().to_string();
    let former = state.with_file_name(Version::of(path.as_bytes()).as_str());
    std::fs::rename(state, &former).expect("it is free");
    std::fs::remove_file(former.join("place")).expect("it was told");
    assert_eq!(changes(&sandbox, "v"), 1);
    assert_eq!(states(&sandbox), std::slice::from_ref(state));
}

#[test]
fn a_store_is_opened_as_what_it_is() {
    let sandbox = Sandbox::new();
    sandbox.run(&["record", "add", "one"]).ok();
    let refused = sandbox.run(&["--backend", "vault", "undo"]).fails(2);
    assert!(refused.contains("the store uses the backend `device-local`: as `vault` (named by --backend)"));
    assert!(refused.contains("memgrove copy --to vault:FOLDER"), "{refused}");
    let mut named = sandbox.memgrove(&["record", "list"]);
    let output = named.env("MEMGROVE_BACKEND", "vault").output().expect("it runs");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("(named by MEMGROVE_BACKEND) it would get a second")
    );
    sandbox.run(&["--backend", "device-local", "record", "list"]).ok();
    // What cannot be used is said before a store is looked for or made.
    let elsewhere = Sandbox::empty();
    for verb in [&["remember", "x"][..], &["status"], &["file", "view"]] {
        let refused = elsewhere.run(&[&["--backend", "floppy"], verb].concat());
        assert!(refused.err.contains("there is no backend named `floppy`"), "{verb:?}: {refused:?}");
    }
    assert!(!elsewhere.home().join(".memgrove").exists(), "nothing was made");
    elsewhere.run(&["--backend", "vault", "remember", "x"]).ok();
    assert!(elsewhere.run(&["backends"]).out.contains("uses vault (named by the store's memgrove.toml)"));
}

#[test]
fn a_copy_takes_memories_along_and_nothing_that_is_made_of_them() {
    let sandbox = Sandbox::new();
    let remember = |store: &str, name: &str, kind: &str| {
        on(&sandbox, store, &["record", "add", name, "--type", kind]).ok();
        on(&sandbox, store, &["entity", "store", name, "--type", "thing", "-o", name]).ok();
    };
    sandbox.run(&["init", "far"]).ok();
    remember(".memgrove", "tasks", "task");
    remember("far", "decisions", "core");
    sandbox.run(&["copy", "--to", "far"]).ok();
    for name in ["tasks", "decisions"] {
        assert!(on(&sandbox, "far", &["read", &format!("entity:thing/{name}")]).ok().contains(name));
        assert!(on(&sandbox, "far", &["record", "list"]).ok().contains(name));
    }
    assert_eq!(on(&sandbox, "far", &["doctor"]).code, 0);
    // What is a file here and a folder there is told, and the rest is copied.
    sandbox.run(&["init", "odd"]).ok();
    for (store, name) in [("odd", "b.md"), ("odd", "c.md"), ("far", "a/x.md"), ("far", "d.md")] {
        on(&sandbox, store, &["file", "create", name, "--text", "x"]).ok();
    }
    std::fs::rename(sandbox.project().join("odd/files/b.md"), sandbox.project().join("odd/files/a"))
        .expect("free");
    std::fs::create_dir(sandbox.project().join("odd/files/d.md")).expect("free");
    let ran = sandbox.run(&["copy", "--from", "odd", "--to", "far", "--replace"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.out.contains("`files/a` is not a file in the target"), "{ran:?}");
    assert!(ran.out.contains("`files/d.md` is not a folder in the target"), "{ran:?}");
    assert!(sandbox.project().join("far/files/c.md").exists());
    // A conflict copy is no memory, but it is somebody's: it is told.
    sandbox.run(&["--backend", "vault", "init", "vault"]).ok();
    on(&sandbox, "vault", &["file", "create", "a.md", "--text", "a"]).ok();
    let name = "a (Ada's conflicted copy 2026-01-31).md";
    std::fs::write(sandbox.project().join("vault/files").join(name), "b").expect("a file");
    let ran = sandbox.run(&["copy", "--from", "vault", "--to", "out"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.out.contains(&format!("not copied: `files/{name}` is a conflict copy: merge it first")),
        "{ran:?}"
    );
    assert!(sandbox.project().join("out/files/a.md").exists());
}

#[test]
fn what_icloud_keeps_elsewhere_is_neither_missed_nor_written_beside() {
    let sandbox = Sandbox::empty();
    sandbox.run(&["--backend", "vault", "init", "v"]).ok();
    on(&sandbox, "v", &["record", "add", "one"]).ok();
    on(&sandbox, "v", &["file", "create", "a.md", "--text", "alpha"]).ok();
    on(&sandbox, "v", &["file", "create", "b.md", "--text", "beta"]).ok();
    let root = sandbox.project().join("v");
    for (folder, name) in [("records", "learnings.jsonl"), ("files", "b.md")] {
        std::fs::remove_file(root.join(folder).join(name)).expect("it was there");
        std::fs::write(root.join(folder).join(format!(".{name}.icloud")), "stub").expect("a file");
    }
    let refused: [&[&str]; 5] = [
        &["record", "list"],
        &["record", "add", "two"],
        &["file", "view", "b.md"],
        &["file", "create", "b.md", "--text", "new"],
        &["file", "delete", "b.md"],
    ];
    for arguments in refused {
        let ran = on(&sandbox, "v", arguments);
        assert!(ran.code != 0 && ran.err.contains("is not on this machine"), "{arguments:?}: {ran:?}");
    }
    assert!(!root.join("records/learnings.jsonl").exists() && !root.join("files/b.md").exists());
    // The rest is found, and what is missing is told.
    let found = on(&sandbox, "v", &["recall", "alpha"]);
    assert!(
        found.out.contains("a.md") && (found.out + &found.err).contains("b.md"),
        "what is missing is told"
    );
    let ran = on(&sandbox, "v", &["copy", "--to", "out"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    for file in ["files/b.md", "records/learnings.jsonl"] {
        let told = format!("not copied: `{file}` is not on this machine: download it first");
        assert!(ran.out.contains(&told), "{ran:?}");
    }
    let out = sandbox.project().join("out/files");
    assert!(out.join("a.md").exists() && !out.join(".b.md.icloud").exists());
}
