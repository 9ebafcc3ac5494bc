//! Every kind of error as the shell sees it: exit code, sentence, hint, and the same in JSON.

use super::sandbox::{MEMGROVE, Ran, Sandbox};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;

fn shell(sandbox: &Sandbox, script: &str) -> Ran {
    let output = sandbox.command("/bin/sh").args(["-c", script]).output().expect("there is a shell");
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn with_a_file() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(&["file", "create", "a.md", "--text", "one\n"]).ok();
    sandbox
}

#[test]
fn invalid_is_2() {
    let sandbox = with_a_file();
    let told = sandbox.run(&["file", "create", "/memories/../x", "--text", ""]).fails(2);
    assert!(told.starts_with("error: `") && told.contains("\n  hint: "), "{told}");
    let told = sandbox.run(&["file", "view", "/elsewhere"]).fails(2);
    assert!(told.contains("`/elsewhere` is not under /memories"), "{told}");
    sandbox.run(&["file", "insert", "a.md", "9", "--text", "x"]).fails(2);
    sandbox.run(&["file", "replace", "a.md", "--old", "two", "--new", "x"]).fails(2);
    sandbox.run(&["file", "delete", "a.md", "--expect", "short"]).fails(2);
    sandbox.run(&["read", "file:/memories"]).fails(2);
    sandbox.run(&["read", "dream:a"]).fails(2);
    sandbox.run(&["find", "  "]).fails(2);
    sandbox.run(&["file", "view", "a.md", "--lines", "5:1"]).fails(2);
    sandbox.feed(&["file", "batch"], "{").fails(2);
    // What is no JSON is told as such, whatever in it looks like a number.
    for words in [&["record", "add-many"][..], &["file", "batch"]] {
        let told = sandbox.feed(words, "- buy milk\n").fails(2);
        assert!(told.contains("invalid input") && !told.contains("precision"), "{words:?}: {told}");
    }
    let told = sandbox.run(&["node", "create", "t", "--properties", "[-]"]).fails(2);
    assert!(told.contains("is not a JSON object") && !told.contains("precision"), "{told}");
    let told = sandbox.feed(&["record", "add-many"], "[{\"content\": 20261116100000000001}]").fails(2);
    assert!(told.contains("would lose precision"), "{told}");
    for words in [&["file", "insert", "a.md", "1"][..], &["note", "write"], &["remember"]] {
        let told = sandbox.feed(words, [b'a', 0xff]).fails(2);
        assert!(told.contains("is not UTF-8 text (byte 1)\n  hint: convert it"), "{told}");
    }
    std::fs::write(sandbox.path().join("file"), "").expect("a file");
    let told = sandbox.run(&["memory-tool", "--memories", "../../file"]).fails(2);
    assert!(told.contains("a file lies where a folder is needed"), "{told}");
}

#[test]
fn a_store_is_made_only_where_it_can_be_used() {
    let sandbox = Sandbox::empty();
    for address in ["s3://bucket/x", "gs://bucket/x", "az://bucket/x", "anthropic://memstore_x"] {
        let told = sandbox.run(&["init", address]).fails(2);
        assert!(told.contains(&format!("hint: use it with --store {address}\n")), "{told}");
    }
    let no_text = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"b\xff");
    for words in [&["init"][..], &["memory-tool", "--memories"]] {
        let output = sandbox.memgrove(words).arg(no_text).output().expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && told.contains("is not a UTF-8 path"), "{told}");
    }
    let made = std::fs::read_dir(sandbox.project()).expect("a folder").count();
    assert_eq!(made, 0, "nothing was made");
}

#[test]
fn a_batch_takes_the_first_characters_of_a_version() {
    let sandbox = with_a_file();
    let version = memgrove::backend::Version::of(b"one\n");
    let batch = |path: &str, expect: &str| {
        let write = serde_json::json!({"type": "write", "path": path, "content": "two", "expect": expect});
        let moved = serde_json::json!({"type": "rename", "old_path": "a.md", "new_path": "b.md"});
        sandbox.run(&["file", "batch", "--text", &serde_json::json!([moved, write]).to_string()])
    };
    let told = batch("b.md", "ab").fails(2);
    assert!(told.contains("`ab` is too short") && told.contains("first 8 characters"), "{told}");
    let told = batch("b.md", "0123456789ab").fails(5);
    assert!(told.contains("operations[1] (write)"), "{told}");
    // Also of what an operation before it brought there.
    batch("b.md", &version.as_str()[..8]).ok();
    assert_eq!(sandbox.run(&["read", "b.md"]).ok(), "two");
}

#[test]
fn a_setting_that_nobody_knows_is_told_by_the_doctor_and_stops_nothing() {
    let sandbox = with_a_file();
    let settings = sandbox.store().join("memgrove.toml");
    let text = std::fs::read_to_string(&settings).expect("settings");
    let sections = ["mounts", "notes", "records", "object", "anthropic", "search"];
    let unknown: String = sections.iter().map(|section| format!("[{section}]\nzzz = 1\n")).collect();
    std::fs::write(&settings, format!("{text}{unknown}")).expect("written");
    sandbox.run(&["remember", "Tea is at four"]).ok();
    let told = sandbox.run(&["doctor"]).out;
    for section in sections {
        assert!(told.contains(&format!("the setting `{section}.zzz` is not known")), "{told}");
    }
    std::fs::write(&settings, format!("{text}[notes]\nbytes_max = \"much\"\n")).expect("written");
    sandbox.run(&["recall", "tea"]).fails(7);
}

#[test]
fn hints_name_what_there_is() {
    let sandbox = Sandbox::new();
    for arguments in [
        &["record", "add", "x", "--outcome", "y"][..],
        &["record", "add", "x", "--type", "task", "--status", "blocked"],
    ] {
        let told = sandbox.run(arguments).fails(2);
        assert!(told.contains("(`--blocker`)"), "{told}");
    }
    for _ in 0..2 {
        sandbox.run(&["node", "create", "idea"]).ok();
    }
    sandbox.run(&["connection", "create", "mem_idea_001", "needs", "mem_idea_002"]).ok();
    let told = sandbox.run(&["forget", "node:mem_idea_001"]).fails(2);
    assert!(
        told.contains("has 1 connection: ") && told.contains("node delete mem_idea_001 --cascade"),
        "{told}"
    );
    sandbox.run(&["file", "create", "b.md", "--text", "one\n"]).ok();
    std::fs::write(sandbox.store().join("files/b.md"), "by hand\n").expect("a person may write");
    let told = sandbox.run(&["undo"]).fails(5);
    let hinted = told.split('`').find(|part| part.starts_with("memgrove diff ")).expect("a command");
    let words: Vec<&str> = hinted.split(' ').skip(1).collect();
    assert!(sandbox.run(&words).ok().contains("+by hand"), "{hinted}");
    sandbox.run(&["graph", "ontology", "check"]).ok();
    let shells = sandbox.run(&["completions", "bash"]).ok();
    assert!(shells.contains("compgen -W \"core learning task\""), "closed sets are completed");
}

/// What was asked is done by the time the answer is written: that it cannot be says nothing of the store.
#[test]
fn an_answer_that_cannot_be_written_is_told_as_such() {
    let sandbox = with_a_file();
    let ran = shell(&sandbox, &format!("{MEMGROVE} file create b.md --text x > /dev/full"));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.starts_with("error: the answer could not be written: "), "{ran:?}");
    assert!(ran.err.contains("made nevertheless") && !ran.err.contains("nothing was changed"), "{ran:?}");
    assert_eq!(sandbox.run(&["read", "b.md"]).ok(), "x");
    let ran = shell(&sandbox, &format!("{MEMGROVE} history > /dev/full"));
    assert!(ran.code == 1 && !ran.err.contains("hint"), "{ran:?}");
    let ran = shell(&sandbox, &format!("{MEMGROVE} demo | head -1"));
    assert_eq!(ran.err, "", "{ran:?}");
}

#[test]
fn not_found_is_3() {
    let sandbox = with_a_file();
    let told = sandbox.run(&["file", "view", "/memories/b.md"]).fails(3);
    assert!(told.starts_with("error: `/memories/b.md`") && told.contains("a.md"), "{told}");
    sandbox.run(&["read", "file:/memories/none.md"]).fails(3);
    let told = sandbox.run(&["--store", "nowhere", "file", "view"]).fails(3);
    assert!(
        told.contains("(named by --store)") && told.contains("hint: create one with `memgrove init"),
        "{told}"
    );
    let told = sandbox.run(&["copy", "--from", "nowhere", "--to", "x"]).fails(3);
    assert!(told.contains("(named by --from)"), "the option is named that was given: {told}");
    let told = sandbox.run(&["--store", ".", "file", "view"]).fails(3);
    assert!(told.contains("hint: there is one inside: use `"), "{told}");
}

#[test]
fn exists_is_4() {
    let sandbox = with_a_file();
    sandbox.run(&["file", "create", "a.md", "--text", "two"]).fails(4);
    sandbox.run(&["file", "create", "b.md", "--text", "two"]).ok();
    sandbox.run(&["file", "rename", "a.md", "b.md"]).fails(4);
    // Only a file of this very name can be replaced.
    std::os::unix::fs::symlink("a.md", sandbox.store().join("files/l.md")).expect("a link");
    for name in ["A.md", "l.md"] {
        let told = sandbox.run(&["file", "create", name, "--text", "two"]).fails(4);
        assert!(told.ends_with("hint: choose another name\n"), "{told}");
    }
}

#[test]
fn conflict_is_5() {
    let sandbox = with_a_file();
    let wrong = "0123456789abcdef0123456789abcdef";
    for arguments in [
        ["file", "create", "a.md", "--text", "x"].as_slice(),
        &["file", "replace", "a.md", "--old", "one"],
        &["file", "insert", "a.md", "1", "--text", "x"],
        &["file", "delete", "a.md"],
        &["file", "rename", "a.md", "b.md"],
    ] {
        let told = sandbox.run(&[arguments, &["--expect", wrong]].concat()).fails(5);
        assert!(told.contains("/memories/a.md") && told.contains("hint: read it again"), "{told}");
    }
    assert_eq!(sandbox.run(&["read", "a.md"]).ok(), "one\n");
}

#[test]
fn unsupported_is_6() {
    let sandbox = with_a_file();
    let told = sandbox.run(&["--backend", "clouds", "file", "view"]).fails(6);
    assert_eq!(
        told,
        "error: there is no backend named `clouds`\n  hint: choose one of: anthropic, device-local, object, ram, vault\n"
    );
    let ran = sandbox.run(&["backends", "--requires", "encryption"]);
    assert!(ran.code == 6 && ran.out.contains("does not offer `encryption`"), "{ran:?}");
    let ran = sandbox.run(&["--backend", "clouds", "doctor"]);
    assert!(ran.code == 6 && ran.out.contains("there is no backend named `clouds`"), "{ran:?}");
    std::fs::write(sandbox.store().join("memgrove.toml"), "format = 99\n").expect("a file");
    assert!(sandbox.run(&["file", "view"]).fails(6).contains("use a newer memgrove"));
}

#[test]
fn corrupt_is_7() {
    let sandbox = with_a_file();
    std::fs::write(sandbox.store().join("memgrove.toml"), "form\u{0}at").expect("a file");
    sandbox.run(&["file", "view"]).fails(7);
    assert_eq!(sandbox.run(&["doctor"]).code, 7);
    std::fs::write(sandbox.store().join("memgrove.toml"), b"format = 1\n# \xff\n").expect("a file");
    let told = sandbox.run(&["file", "view"]).fails(7);
    assert!(told.contains("is not UTF-8 text\n  hint: fix it by hand"), "{told}");
    // Nor do memories go elsewhere because of it.
    let mut within = sandbox.memgrove(&["file", "view"]);
    let within = within.current_dir(sandbox.store()).output().expect("it runs");
    assert_eq!(within.status.code(), Some(7), "{within:?}");
}

#[test]
fn busy_is_8() {
    let sandbox = with_a_file();
    let lock = std::fs::File::open(sandbox.store().join(".lock")).expect("the store's lock");
    lock.lock().expect("nobody else has it");
    assert!(sandbox.run(&["file", "create", "b.md", "--text", "x"]).fails(8).contains("error: "));
    lock.unlock().expect("it was had");
    sandbox.run(&["file", "create", "b.md", "--text", "x"]).ok();
}

#[test]
fn full_is_9() {
    let sandbox = with_a_file();
    let script = "trap '' XFSZ; ulimit -f 64; head -c 1000000 /dev/zero | memgrove file create big.bin";
    shell(&sandbox, script).fails(9);
    sandbox.run(&["file", "view", "big.bin"]).fails(3);
    assert_eq!(sandbox.run(&["read", "a.md"]).ok(), "one\n");
    sandbox.run(&["file", "create", "small.md", "--text", "x"]).ok();
}

#[test]
fn denied_is_10() {
    let sandbox = with_a_file();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("our own file");
    };
    let program = sandbox.path().join("memgrove");
    std::fs::copy(MEMGROVE, &program).expect("the program can be copied");
    let mut command = sandbox.command(program.to_str().expect("a plain path"));
    command.args(["--json", "file", "view", "a.md"]);
    // Root may do everything, so it goes as somebody else.
    if std::fs::metadata(sandbox.path()).expect("a folder").uid() == 0 {
        for path in [sandbox.path(), &sandbox.home(), &sandbox.project()] {
            mode(path, 0o755);
        }
        command.uid(65534).gid(65534);
    } else {
        mode(&sandbox.store(), 0);
    }
    let output = command.output().expect("it can be started");
    mode(&sandbox.store(), 0o700);
    assert_eq!(output.status.code(), Some(10), "{output:?}");
    let told: serde_json::Value = serde_json::from_slice(&output.stderr).expect("JSON");
    assert_eq!(told["error"]["code"], "PERMISSION_DENIED", "{told}");
}

#[test]
fn io_is_1() {
    let sandbox = Sandbox::empty();
    let told =
        shell(&sandbox, "mkdir gone && cd gone && rmdir ../gone && memgrove --store x file view").fails(1);
    assert_eq!(told, "error: the working folder is gone\n  hint: use an absolute path\n");
}

#[test]
fn in_json_an_error_is_an_object() {
    let sandbox = with_a_file();
    let told = sandbox.run(&["--json", "file", "view", "none.md"]).fails(3);
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let error = &told["error"];
    assert_eq!(error["kind"], "not_found");
    assert_eq!(error["code"], "FILE_NOT_FOUND");
    for (address, code) in [
        (&["record", "get", "nobody"][..], "RECORD_NOT_FOUND"),
        (&["read", "record:nobody"], "RECORD_NOT_FOUND"),
        (&["read", "note:nobody"], "NOTE_NOT_FOUND"),
        (&["read", "entity:person/nobody"], "ENTITY_NOT_FOUND"),
        (&["note", "read", "nobody"], "NOTE_NOT_FOUND"),
        (&["entity", "load", "nobody"], "ENTITY_NOT_FOUND"),
        (&["entity", "delete", "nobody"], "ENTITY_NOT_FOUND"),
        (&["node", "read", "nobody"], "NODE_NOT_FOUND"),
    ] {
        let told = sandbox.run(&[&["--json"], address].concat()).fails(3);
        assert!(told.contains(&format!("\"code\":\"{code}\"")), "{address:?}: {told}");
    }
    assert!(error["message"].as_str().is_some_and(|text| text.contains("/memories/none.md")), "{told}");
}

#[test]
fn a_command_line_that_cannot_be_understood_in_json() {
    let sandbox = Sandbox::empty();
    let told = sandbox.run(&["--json", "file", "paint"]).fails(2);
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["error"]["message"], "unrecognized subcommand 'paint'");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let sandbox = with_a_file();
    let text = "line\n".repeat(100_000);
    sandbox.feed(&["file", "create", "long.md"], &text).ok();
    let ran = shell(&sandbox, "{ memgrove read long.md; echo $? >&2; } | head -n 1");
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("line\n", "0\n"));
}

#[test]
fn the_store_at_home_is_made_when_first_written_to() {
    let sandbox = Sandbox::empty();
    assert_eq!(sandbox.run(&["file", "view"]).ok(), "/memories\n(empty)\n");
    assert_eq!(sandbox.run(&["history"]).ok(), "no changes yet\n");
    sandbox.run(&["read", "a.md"]).fails(3);
    assert!(sandbox.run(&["doctor"]).ok().contains("there is no store yet"));
    assert!(!sandbox.home().join(".memgrove").exists());
    let ran = sandbox.run(&["file", "create", "a.md", "--text", "x"]);
    let home = sandbox.home().display().to_string();
    assert_eq!(ran.err, format!("memgrove: created a store at {home}/.memgrove\n"));
    assert_eq!(sandbox.run(&["file", "create", "b.md", "--text", "x"]).err, "");
    assert_eq!(sandbox.run(&["find", "x"]).ok().lines().count(), 2);
}

#[test]
fn no_store_is_made_to_look_at_it_or_to_change_what_is_not_there() {
    let sandbox = Sandbox::empty();
    std::fs::create_dir(sandbox.project().join("old")).expect("a folder");
    std::fs::write(sandbox.project().join("old/a.md"), "Tea\n").expect("a file");
    for (words, code) in [
        (&["conflicts"][..], 0),
        (&["conflicts", "merge"], 0),
        (&["conflicts", "merge", "knowledge/a.md"], 2),
        (&["note", "write", "x", "--dry-run"], 0),
        (&["note", "split", "--dry-run"], 3),
        (&["note", "merge", "--dry-run"], 3),
        (&["record", "archive", "--due"], 0),
        (&["record", "migrate"], 0),
        (&["record", "update", "none", "--content", "x"], 3),
        (&["graph", "check", "--rebuild"], 0),
        (&["node", "delete", "none"], 3),
        (&["connection", "delete", "none"], 3),
        (&["entity", "delete", "none"], 3),
        (&["file", "delete", "none.md"], 3),
        (&["redact", "node:none", "--dry-run"], 3),
        (&["restore", "node:none", "--to", "1"], 3),
        (&["import", "mcp-memory", "/dev/null"], 0),
        (&["import", "silica-v1", "old", "--dry-run"], 0),
    ] {
        let ran = sandbox.run(words);
        assert_eq!(ran.code, code, "{words:?}: {ran:?}");
        assert!(!sandbox.home().join(".memgrove").exists(), "{words:?}");
    }
}

#[test]
fn what_does_not_exist_leads_to_recall() {
    let sandbox = with_a_file();
    for (address, code) in [
        ("note:none", "NOTE_NOT_FOUND"),
        ("record:none", "RECORD_NOT_FOUND"),
        ("entity:person/none", "ENTITY_NOT_FOUND"),
        ("node:none", "NODE_NOT_FOUND"),
        ("connection:none", "CONNECTION_NOT_FOUND"),
    ] {
        for verb in ["read", "forget"] {
            let told = sandbox.run(&["--json", verb, address]).fails(3);
            let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
            let error = &told["error"];
            assert_eq!(error["hint"], "`memgrove recall` finds addresses by words", "{verb}: {told}");
            assert_eq!(error["code"], code, "{verb}: {told}");
        }
    }
    // What there was has a past.
    sandbox.run(&["note", "write", "Tea", "--path", "drinks"]).ok();
    sandbox.run(&["forget", "note:drinks"]).ok();
    let told = sandbox.run(&["read", "note:drinks"]).fails(3);
    assert!(told.contains("`memgrove history note:drinks` shows what became of it"), "{told}");
}

#[test]
fn modes_are_private_and_the_doctor_mends_them() {
    let sandbox = with_a_file();
    let mode = |path: &str| {
        std::fs::metadata(sandbox.store().join(path)).expect("it is there").permissions().mode() & 0o777
    };
    for (path, expected) in
        [("", 0o700), ("files", 0o700), (".journal", 0o700), ("files/a.md", 0o600), ("memgrove.toml", 0o600)]
    {
        assert_eq!(mode(path), expected, "{path}");
    }
    let open = sandbox.store().join("files/a.md");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).expect("our own file");
    let told = sandbox.run(&["doctor"]).ok();
    assert!(told.contains("warning: files/a.md: other users"), "{told}");
    assert!(sandbox.run(&["doctor", "--fix"]).ok().contains("fixed the permissions of 1 file"));
    assert_eq!(mode("files/a.md"), 0o600);
    assert!(sandbox.run(&["doctor"]).ok().ends_with("all is well\n"));
    // A folder that was made a store keeps what else is in it.
    let theirs = sandbox.store().join("run.sh");
    std::fs::write(&theirs, "").expect("a file");
    for (path, mode) in [(&theirs, 0o755), (&open, 0o644)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("our own file");
    }
    assert!(sandbox.run(&["doctor", "--fix"]).ok().contains("fixed the permissions of 1 file"));
    assert_eq!((mode("run.sh"), mode("files/a.md")), (0o755, 0o600));
    std::fs::remove_file(&theirs).expect("a file");
    // What has a name elsewhere too is not the store's alone.
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).expect("our own file");
    std::fs::hard_link(&open, sandbox.path().join("elsewhere.md")).expect("a second name");
    assert!(sandbox.run(&["doctor", "--fix"]).ok().ends_with("all is well\n"));
    assert_eq!(mode("files/a.md"), 0o644);
}

#[test]
fn the_doctor_reports_settings_that_nobody_knows() {
    let sandbox = with_a_file();
    let path = sandbox.store().join("memgrove.toml");
    let text = std::fs::read_to_string(&path).expect("settings");
    std::fs::write(&path, format!("{text}colour = \"blue\"\n")).expect("settings");
    assert!(sandbox.run(&["doctor"]).ok().contains("the setting `colour` is not known"));
    assert_eq!(sandbox.run(&["read", "a.md"]).ok(), "one\n");
    assert!(std::fs::read_to_string(&path).expect("settings").contains("colour"));
}
