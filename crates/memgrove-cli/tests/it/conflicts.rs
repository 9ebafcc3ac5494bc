//! Conflicts: copies in a vault, and two branches of a git repository.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;

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

/// The lines for .gitattributes, as the documentation has them.
fn recipe() -> String {
    let page = include_str!("../../../../docs/backends.md");
    let lines: String = page
        .lines()
        .filter(|line| line.ends_with(" merge=memgrove"))
        .fold(String::new(), |lines, line| lines + line + "\n");
    assert!(lines.lines().count() >= 3, "{lines}");
    lines
}

/// One change of each kind of memory that many can make.
fn remember(sandbox: &Sandbox, word: &str) {
    sandbox.run(&["record", "add", &format!("record {word}")]).ok();
    sandbox.run(&["entity", "store", "Ada", "--type", "person", "-o", &format!("fact {word}")]).ok();
    sandbox.feed(&["note", "write", "--mode", "append"], format!("- note {word}\n")).ok();
}

const LEARNINGS: &str = "records/learnings.jsonl";
const ADA: &str = "knowledge/entities/person/Ada.md";
const NOTE: &str = "notes/memory.md";

/// Checks that what was remembered is there, once.
#[track_caller]
fn remembers(store: &Path, words: &[String]) {
    for (name, kind) in [(LEARNINGS, "record"), (ADA, "fact"), (NOTE, "note")] {
        let text = std::fs::read_to_string(store.join(name)).expect("a file");
        for word in words {
            let wanted = format!("{kind} {word}");
            let times = text.lines().filter(|line| {
                line.match_indices(&wanted)
                    .any(|(at, _)| !line[at + wanted.len()..].starts_with(char::is_alphanumeric))
            });
            assert_eq!(times.count(), 1, "{wanted} in {text}");
        }
    }
}

#[test]
fn two_branches_of_a_store_unite_by_the_recipe() {
    let sandbox = Sandbox::new();
    let root = sandbox.project();
    git(&sandbox, &["init", "."]);
    git(&sandbox, &["config", "merge.memgrove.driver", "memgrove merge-driver %O %A %B %P"]);
    put(&root, ".gitattributes", &recipe());
    let commit = |words: &[&str]| {
        for word in words {
            remember(&sandbox, word);
            sandbox.run(&["entity", "store", &format!("New {word}"), "--type", "thing", "-o", word]).ok();
            sandbox.run(&["note", "write", "--path", &format!("of/{word}"), word]).ok();
        }
        git(&sandbox, &["add", "."]);
        git(&sandbox, &["commit", "-m", "a state"]);
    };
    commit(&["base"]);
    git(&sandbox, &["checkout", "-b", "topic"]);
    commit(&["lake", "moor"]);
    git(&sandbox, &["checkout", "main"]);
    commit(&["hill"]);
    git(&sandbox, &["merge", "topic"]);
    let words = ["base", "lake", "moor", "hill"].map(str::to_owned);
    remembers(&sandbox.store(), &words);
    for word in &words {
        assert!(sandbox.run(&["read", &format!("entity:thing/New {word}")]).ok().contains(word.as_str()));
        assert!(sandbox.run(&["note", "read", &format!("of/{word}")]).ok().contains(word.as_str()));
    }
    assert_eq!(sandbox.run(&["--json", "record", "list"]).json()["total"], 4);
    let tracked = git(&sandbox, &["ls-files"]);
    for derived in ["index.json", "indexes/", "relations/", ".backup/", ".access", "graph.json"] {
        assert!(!tracked.contains(derived), "{derived} is in\n{tracked}");
    }
}

/// Our store with many changes since a copy was made on another machine, which changed something too.
fn apart(ours: &[String], theirs: impl Fn(&Sandbox)) -> (Sandbox, Sandbox) {
    let (here, there) = (Sandbox::new(), Sandbox::new());
    remember(&here, "base");
    for name in [LEARNINGS, ADA, NOTE] {
        put(&there.store(), name, &std::fs::read_to_string(here.store().join(name)).expect("a file"));
    }
    theirs(&there);
    ours.iter().for_each(|word| remember(&here, word));
    for name in [LEARNINGS, ADA, NOTE] {
        let (stem, extension) = name.split_once('.').expect("an extension");
        let copy = format!("{stem}.sync-conflict-20260131-120000-ABCDEFG.{extension}");
        put(&here.store(), &copy, &std::fs::read_to_string(there.store().join(name)).expect("a file"));
    }
    (here, there)
}

#[test]
fn a_merge_loses_nothing_that_the_copy_never_saw() {
    let mut words: Vec<String> = (0..24).map(|n| format!("n{n}")).collect();
    let (here, _) = apart(&words, |there| remember(there, "theirs"));
    let merged = here.run(&["conflicts", "merge"]).ok();
    for by in ["records", "entities", "notes"] {
        assert!(merged.contains(&format!("merged by {by}\n")), "{merged}");
    }
    words.extend(["base", "theirs"].map(str::to_owned));
    remembers(&here.store(), &words);
}

#[test]
fn what_the_copy_changed_is_taken_and_the_rest_stays() {
    let words = ["beta", "gamma"].map(str::to_owned);
    let (here, _) = apart(&words, |there| {
        let id = there.run(&["--json", "record", "list"]).json()["records"][0]["id"].clone();
        let id = id.as_str().expect("an id");
        there.run(&["record", "update", id, "--content", "record edited"]).ok();
    });
    here.run(&["conflicts", "merge", "records/learnings.sync-conflict-20260131-120000-ABCDEFG.jsonl"]).ok();
    let text = std::fs::read_to_string(here.store().join(LEARNINGS)).expect("a file");
    assert_eq!(text.lines().count(), 3, "{text}");
    for content in ["record edited", "record beta", "record gamma"] {
        assert!(text.contains(content), "{content} in {text}");
    }
}

#[test]
fn one_copy_that_cannot_be_merged_keeps_no_other_from_it() {
    let sandbox = Sandbox::empty();
    sandbox.run(&["--backend", "vault", "init"]).ok();
    let store = sandbox.store();
    let (ours, theirs) = (b"\x89PNG\xff1", b"\x89PNG\xff2");
    std::fs::create_dir_all(store.join("files")).expect("a folder");
    std::fs::write(store.join("files/pic.png"), ours).expect("a file");
    std::fs::write(store.join("files/pic (Ada's conflicted copy 2026-01-31).png"), theirs).expect("a file");
    let clash = "files/ReadMe (case clash from 2026-01-31 120000).md";
    put(&store, "files/readme.md", "small\n");
    put(&store, clash, "large\n");
    put(&store, "files/zoo.md", "one\n");
    put(&store, "files/zoo.sync-conflict-20260131-120000-ABCDEFG.md", "one\ntwo\n");
    let ran = sandbox.run(&["conflicts", "merge"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(
        ran.out.contains(
            "pic.png` or its copy is not text, and cannot be merged\n  hint: compare both, then take"
        )
    );
    assert!(ran.out.contains("differed from a neighbour's in case alone"), "{}", ran.out);
    assert!(ran.out.contains("ABCDEFG.md: replaced its file"), "{}", ran.out);
    let read = |name: &str| std::fs::read(store.join(name)).expect("a file");
    assert_eq!((read("files/zoo.md"), read(clash)), (b"one\ntwo\n".to_vec(), b"large\n".to_vec()));
    assert_eq!(read("files/pic.png"), ours);
    // A name that people choose too is no copy, unless they say so.
    let name = "files/Report-FINAL.md";
    put(&store, name, "final\n");
    let merge = |more: &[&str]| sandbox.run(&[&["conflicts", "merge", name], more].concat());
    let ran = merge(&["--take", "theirs"]);
    assert!(ran.code == 2 && ran.out.contains("may be a file of its own"), "{ran:?}");
    put(&store, "files/Report.md", "draft\n");
    let ran = merge(&[]);
    assert!(ran.code == 2 && ran.out.contains("may be a file of its own"), "{ran:?}");
    assert!(sandbox.run(&["conflicts"]).ok().contains(&format!("{name}: perhaps a copy of files/Report.md")));
    let doctor = sandbox.run(&["doctor"]);
    assert!(doctor.out.contains("perhaps a conflict copy of `Report.md` by OneDrive"), "{}", doctor.out);
    merge(&["--take", "theirs"]).ok();
    assert_eq!(read("files/Report.md"), b"final\n");
    assert!(!store.join(name).exists());
}

#[test]
fn a_clash_of_lines_is_left_to_git() {
    let sandbox = Sandbox::empty();
    for (name, text) in [("base", "a\n"), ("ours", "b\n"), ("theirs", "c\n")] {
        put(&sandbox.project(), name, text);
    }
    let ran = sandbox.run(&["merge-driver", "base", "ours", "theirs", "files/a.md"]);
    assert_eq!((ran.code, &*ran.out), (5, "conflicts left to resolve: 1\n"));
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
    assert_eq!(merged, "files/a.sync-conflict-20260131-120000-ABCDEFG.md: replaced its file\n");
    assert_eq!(std::fs::read_to_string(store.join("files/a.md")).expect("a file"), "one\ntwo\n");
    assert_eq!(sandbox.run(&["conflicts"]).ok(), "no conflicts\n");
}

#[test]
fn a_bucket_is_chosen_by_name_and_never_by_chance() {
    let sandbox = Sandbox::new();
    // Without a bucket the refusal and the two reports say the same.
    let sentence = "the backend `object` has no bucket to use";
    assert!(sandbox.run(&["--backend", "object", "file", "view"]).fails(2).contains(sentence));
    let doctor = sandbox.run(&["--backend", "object", "doctor"]).out;
    assert_eq!(doctor.matches(sentence).count(), 1);
    assert!(!doctor.contains("all is well"), "{doctor}");
    assert!(sandbox.run(&["--backend", "object", "backends"]).out.contains(sentence));
    let far = |place: &str| {
        let mut command = sandbox.memgrove(&["--store", place, "status"]);
        let output = command.env("ANTHROPIC_API_KEY", "k").output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{place}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for place in ["s3://bkt/a//b", "s3://bkt/../x", "S3://bkt/./x", "ANTHROPIC://memstore_1/../x"] {
        let refused = far(place);
        let (scheme, rest) = place.split_once(':').expect("a scheme");
        let said = format!("`{}:{rest}` names no place in a bucket", scheme.to_lowercase());
        assert!(refused.contains(&said), "{refused}");
    }
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
    assert!(
        refused.contains("was found, not named, so it may not send memories to `s3://theirs/x`"),
        "{refused}"
    );
}

/// Answers as a service that takes every write, whatever its condition, and keeps none.
fn answer_carelessly(mut stream: TcpStream) {
    let (mut request, mut part) = (Vec::new(), [0; 4096]);
    let text = loop {
        match stream.read(&mut part) {
            Ok(read) if read > 0 => request.extend_from_slice(&part[..read]),
            _ => return,
        }
        let text = String::from_utf8_lossy(&request).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0) {
                break head.to_owned();
            }
        }
    };
    let listing = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";
    let (status, body) = match text.split(' ').next() {
        Some("put" | "delete") => ("200 OK", ""),
        _ if text.contains("list-type=2") => ("200 OK", listing),
        _ => ("404 Not Found", ""),
    };
    let head = "etag: \"1\"\r\nconnection: close";
    let answer = format!("HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let _ = stream.write_all(answer.as_bytes());
}

#[test]
fn what_a_service_must_honour_is_asked_of_the_service() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        listener.incoming().flatten().for_each(|stream| drop(thread::spawn(|| answer_carelessly(stream))));
    });
    let sandbox = Sandbox::new();
    let run = |arguments: &[&str]| {
        let mut command = sandbox.memgrove(&[&["--store", "s3://bucket/x"], arguments].concat());
        command.env("MEMGROVE_S3_ENDPOINT", &endpoint).env("AWS_ACCESS_KEY_ID", "k");
        let output = command.env("AWS_SECRET_ACCESS_KEY", "s").output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.success(), said.into_owned())
    };
    let sentence = "ignores the conditions of writes, so machines that share it would lose changes";
    let writing: &[&str] = &["record", "add", "one"];
    for arguments in [writing, &["backends", "--requires", "concurrent_writers"]] {
        let (done, said) = run(arguments);
        assert!(!done && said.contains(sentence), "{arguments:?}: {said}");
    }
    assert!(run(&["backends"]).0, "it can be read from");
}

/// Two branches do not know which numbers the other has given.
#[test]
fn nodes_of_two_branches_have_ids_of_their_own() {
    let sandbox = Sandbox::new();
    git(&sandbox, &["init", "."]);
    let make = |name: &str| {
        let made =
            sandbox.run(&["--json", "node", "create", "project", "-p", &format!("name={name}")]).json();
        made["it"]["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    };
    // Nobody has said that branches are to be merged here.
    assert_eq!(make("alone"), "mem_project_001");
    put(&sandbox.store(), ".gitattributes", &recipe());
    let one = make("one");
    let ending = one.strip_prefix("mem_project_002_").unwrap_or_else(|| panic!("{one}"));
    assert_eq!(ending.len(), 6, "{one}");
    // What git left unresolved stays as it is; what cannot be read is put aside, and told.
    let two = make("two");
    let file = |id: &str| sandbox.store().join(format!("graph/_content/nodes/{id}.meta.json"));
    let text = std::fs::read_to_string(file(&one)).expect("a file");
    let marked = format!("<<<<<<< ours\n{text}=======\n{text}>>>>>>> theirs\n");
    std::fs::write(file(&one), &marked).expect("a file");
    std::fs::write(file(&two), "{ torn").expect("a file");
    let ran = sandbox.run(&["graph", "check", "--rebuild"]);
    assert!(ran.out.contains("1 files have git's conflict markers"), "{ran:?}");
    assert!(ran.out.contains("could not be read, and was put aside"), "{ran:?}");
    assert!(!ran.out.contains("all is well"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(file(&one)).expect("a file"), marked);
}

/// A clone has the attributes of a repository, and not its configuration.
#[test]
fn git_that_was_not_told_how_to_merge_is_found_out() {
    let sandbox = Sandbox::new();
    sandbox.run(&["remember", "the lamp is green"]).ok();
    git(&sandbox, &["init", "."]);
    let doctor = || sandbox.run(&["doctor"]);
    assert!(doctor().ok().ends_with("all is well\n"));
    put(&sandbox.store(), ".gitattributes", "*.jsonl merge=memgrove\n");
    let told = doctor().ok();
    assert!(
        told.contains("warning: .gitattributes: git is set to merge memories with memgrove here"),
        "{told}"
    );
    let hint = told.lines().find_map(|line| line.strip_prefix("  hint: git ")).expect("a hint");
    let hint = format!("git {hint}");
    let done = sandbox.command("/bin/sh").args(["-c", &hint]).status().expect("there is a shell");
    assert!(done.success(), "{hint}");
    let told = doctor().ok();
    assert!(!told.contains(".gitattributes: git is set"), "{told}");
    // What git left behind where it did not know.
    let file = sandbox.store().join("records/learnings.jsonl");
    let line = std::fs::read_to_string(&file).expect("a file");
    std::fs::write(&file, format!("<<<<<<< ours\n{line}=======\n{line}>>>>>>> theirs\n")).expect("a file");
    put(&sandbox.store(), "notes/memory.md", "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n");
    let ran = doctor();
    assert!(!ran.out.contains("not JSON"), "{}", ran.out);
    for file in ["records/learnings.jsonl", "notes/memory.md"] {
        assert!(ran.out.contains(&format!("{file}: git's conflict markers from line 1\n")), "{}", ran.out);
    }
    let told = sandbox.run(&["conflicts", "merge"]).ok();
    assert_eq!(told, "2 files with git's conflict markers: resolve them in git\n");
}
