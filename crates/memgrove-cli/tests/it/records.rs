//! Records under many writers: processes of ours, and another program on a mounted folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;

use serde_json::{Value, json};

use super::mcp::Connection;
use super::sandbox::Sandbox;

const WRITERS: usize = 8;

/// Every record of a folder's file by id, each line a whole object.
fn lines(file: &Path) -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(file).expect("a file of records");
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let id = record["id"].as_str().expect("an id").to_owned();
        assert!(found.insert(id, record).is_none(), "an id is there twice: {line}");
    }
    found
}

/// Lets the store hold more core records than the format does by default.
fn raise_limits(sandbox: &Sandbox) {
    let settings = sandbox.store().join("memgrove.toml");
    let text = std::fs::read_to_string(&settings).expect("settings");
    let limits = "[records]\ncore_records_max = 100000\ncore_bytes_max = 1000000000\n";
    std::fs::write(&settings, format!("{text}\n{limits}")).expect("settings");
}

/// Each writer adds records and changes each of them, through a server of its own.
fn through_servers(rounds: usize) {
    let sandbox = Sandbox::new();
    raise_limits(&sandbox);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let sandbox = &sandbox;
            scope.spawn(move || {
                let mut mcp = Connection::new(sandbox, &["--tools", "records"]);
                for round in 0..rounds {
                    let new = json!({"type": "core", "content": format!("{writer}-{round}")});
                    let added = mcp.call("record_add", new);
                    assert_eq!(added["isError"], false, "{added}");
                    let id = &added["structuredContent"]["records"][0]["id"];
                    let change = json!({"id": id, "tags": [format!("w{writer}")]});
                    let done = mcp.call("record_update", change);
                    assert_eq!(done["isError"], false, "{done}");
                }
                assert_eq!(mcp.close(), 0);
            });
        }
    });
    let found = lines(&sandbox.store().join("records/core_memories.jsonl"));
    assert_eq!(found.len(), WRITERS * rounds);
    let mut contents: Vec<&str> = Vec::new();
    for record in found.values() {
        let content = record["content"].as_str().expect("a content");
        contents.push(content);
        let writer = content.split('-').next().expect("a writer");
        assert_eq!(record["tags"], json!([format!("w{writer}")]), "an update is lost");
    }
    contents.sort_unstable();
    contents.dedup();
    assert_eq!(contents.len(), WRITERS * rounds);
    let backups = std::fs::read_dir(sandbox.store().join("records/.backup")).expect("backups").count();
    assert_eq!(backups, 5);
}

#[test]
fn eight_servers_lose_no_record() {
    through_servers(40);
}

#[test]
fn what_is_archived_to_make_room_is_told() {
    let sandbox = Sandbox::new();
    let settings = sandbox.store().join("memgrove.toml");
    let text = std::fs::read_to_string(&settings).expect("settings");
    std::fs::write(&settings, format!("{text}\n[records]\nlearnings_records_max = 2\n")).expect("settings");
    for fact in ["Tea is at four", "Soup is at noon"] {
        sandbox.run(&["remember", fact]).ok();
    }
    let told = sandbox.run(&["remember", "Bread is baked at five"]).ok();
    assert!(told.contains("[archived 1 fact "), "{told}");
    let told = sandbox.run(&["remember", "Milk comes on Mondays", "--json"]).json();
    assert_eq!(told["archived"], 1, "{told}");
    let told = sandbox.run(&["record", "add", "Eggs come on Tuesdays"]).ok();
    assert!(told.contains("1 records were archived"), "{told}");
}

#[test]
fn times_and_tags_are_said_as_elsewhere() {
    let sandbox = Sandbox::new();
    sandbox.run(&["record", "add", "Tea is at four", "--tag", "tea,time", "--tag", "daily"]).ok();
    let listed = |arguments: &[&str]| {
        sandbox.run(&[&["record", "list", "--json"], arguments].concat()).json()["total"].clone()
    };
    assert_eq!(listed(&["--tag", "tea", "--since", "7d"]), 1);
    assert_eq!(listed(&["--tag", "time,daily", "--until", "yesterday"]), 0);
    sandbox.run(&["record", "list", "--since", "whenever"]).fails(2);
}

#[test]
fn tags_that_several_say_of_one_fact_all_stay() {
    let sandbox = Sandbox::new();
    let fact = "The heating runs on Mondays";
    let said = sandbox.run(&["remember", fact, "--json"]).json();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let sandbox = &sandbox;
            scope.spawn(move || sandbox.run(&["remember", fact, "--tag", &format!("tag{writer}")]).ok());
        }
    });
    let got = sandbox.run(&["record", "get", said["address"].as_str().expect("an address"), "--json"]).json();
    assert_eq!(got["record"]["tags"].as_array().map(Vec::len), Some(WRITERS), "{got}");
}

#[test]
#[ignore = "long: make torture"]
fn torture_eight_servers_500_records_each() {
    through_servers(500);
}

/// A store whose records are a folder elsewhere.
pub(crate) fn mounted(sandbox: &Sandbox) -> PathBuf {
    let folder = sandbox.project().join("memories");
    std::fs::create_dir_all(&folder).expect("a folder");
    let settings = sandbox.store().join("memgrove.toml");
    let text = std::fs::read_to_string(&settings).expect("settings");
    std::fs::write(&settings, format!("{text}\n[mounts]\nrecords = \"../memories\"\n")).expect("settings");
    folder
}

fn beside_another_program(rounds: usize) {
    let sandbox = Sandbox::new();
    let folder = mounted(&sandbox);
    raise_limits(&sandbox);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/records_seed.py");
    let python = sandbox
        .command("python3")
        .arg(script)
        .args([folder.as_os_str(), rounds.to_string().as_ref()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3 is needed for these tests");
    let mut expected: BTreeMap<String, String> = BTreeMap::new();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let sandbox = &sandbox;
                scope.spawn(move || {
                    let mut kept = BTreeMap::new();
                    for round in 0..rounds / 3 {
                        let content = format!("memgrove {writer} {round}");
                        let added =
                            sandbox.run(&["record", "add", &content, "--type", "core", "--json"]).json();
                        let id = added["records"][0]["id"].as_str().expect("an id").to_owned();
                        let changed = format!("{content} updated");
                        sandbox.run(&["record", "update", &id, "--content", &changed]).ok();
                        kept.insert(id.clone(), changed);
                        if round % 7 == 6 {
                            sandbox.run(&["record", "delete", &id]).ok();
                            kept.remove(&id);
                        }
                    }
                    kept
                })
            })
            .collect();
        for writer in writers {
            expected.extend(writer.join().expect("a writer"));
        }
    });
    let output = python.wait_with_output().expect("it was started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(output.stdout).expect("text");
    expected.extend(
        told.lines().filter_map(|line| line.split_once(' ')).map(|(id, text)| (id.into(), text.into())),
    );
    let found = lines(&folder.join("core_memories.jsonl"));
    let found: BTreeMap<String, String> = found
        .into_iter()
        .map(|(id, record)| (id, record["content"].as_str().expect("a content").to_owned()))
        .collect();
    assert_eq!(found, expected);
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .collect();
    names.retain(|name| name != ".lock");
    names.sort();
    assert_eq!(names, [".backup", "core_memories.jsonl", "index.json"], "nothing but the format's files");
}

#[test]
fn another_program_and_memgrove_lose_nothing_of_each_other() {
    beside_another_program(60);
}

#[test]
#[ignore = "long: make torture"]
fn torture_beside_another_program() {
    beside_another_program(600);
}

#[test]
fn a_found_store_cannot_mount_what_lies_outside_its_project() {
    let sandbox = Sandbox::new();
    mounted(&sandbox);
    let settings = sandbox.store().join("memgrove.toml");
    let text = std::fs::read_to_string(&settings).expect("settings").replace("../memories", "~/elsewhere");
    std::fs::write(&settings, text).expect("settings");
    std::fs::create_dir_all(sandbox.home().join("elsewhere")).expect("a folder");
    let refused = sandbox.run(&["record", "list"]).fails(10);
    assert!(refused.contains("lies outside its project"), "{refused}");
    let store = sandbox.store().display().to_string();
    sandbox.run(&["--store", &store, "record", "list"]).ok();
}

#[test]
fn modes_are_mended_with_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    let folder = mounted(&sandbox);
    let file = folder.join("core_memories.jsonl");
    std::fs::write(&file, "").expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    let ran = sandbox.run(&["record", "list"]);
    assert!(ran.err.contains("other users of this machine could read"), "{ran:?}");
    assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    assert_eq!(sandbox.run(&["record", "list"]).err, "");
}

#[test]
fn the_index_is_true_when_a_command_has_ended() {
    let sandbox = Sandbox::new();
    let index = || -> Value {
        let text = std::fs::read(sandbox.store().join("records/index.json")).expect("an index");
        serde_json::from_slice(&text).expect("JSON")
    };
    let add = |content: &str| {
        let added = sandbox.run(&["record", "add", content, "--type", "core", "--tag", "t", "--json"]).json();
        added["records"][0]["id"].as_str().expect("an id").to_owned()
    };
    let (one, two) = (add("one"), add("two"));
    assert_eq!(index()["tags_index"], json!({"t": [one, two]}));
    sandbox.run(&["record", "delete", &one]).ok();
    assert_eq!(index()["tags_index"], json!({"t": [two]}));
    sandbox.run(&["record", "archive", &two]).ok();
    assert_eq!(index()["statistics"]["total_memories"], 0);
    assert_eq!(index()["statistics"]["archived_count"], 1);
}

fn names(answer: &Value, list: &str, name: &str) -> Vec<String> {
    let all = answer[list].as_array().expect("a list").iter();
    all.map(|one| one.get(name).unwrap_or(one).as_str().expect("a name").to_owned()).collect()
}

#[test]
fn changes_of_a_mounted_folder_have_names_of_their_own() {
    let sandbox = Sandbox::new();
    let folder = mounted(&sandbox);
    let run = |words: &[&str]| sandbox.run(&[words, &["--json"]].concat()).json();
    let history = |words: &[&str]| names(&run(&[&["history"], words].concat()), "changes", "change");
    let undone = |words: &[&str]| names(&run(&[&["undo"], words].concat()), "undone", "");
    run(&["file", "create", "a.md", "--text", "x"]);
    assert_eq!(run(&["record", "add", "one"])["change"], "records:1");
    run(&["file", "create", "b.md", "--text", "y"]);
    run(&["record", "add", "two"]);
    assert_eq!(history(&[]), ["records:2", "2", "records:1", "1"]);
    assert_eq!(history(&["--limit", "2"]), ["records:2", "2"]);
    assert_eq!(history(&["--before", "2"]), ["records:1", "1"]);
    assert_eq!(history(&["--before", "records:2"]), ["2", "records:1", "1"]);
    assert_eq!(undone(&["--dry-run"]), ["records:2"]);
    assert_eq!(lines(&folder.join("learnings.jsonl")).len(), 2, "it was only planned");
    let last = run(&["undo"]);
    assert_eq!(
        (names(&last, "undone", ""), &last["change"]),
        (vec!["records:2".into()], &json!("records:3"))
    );
    assert!(last["touched"][0].as_str().is_some_and(|one| one.starts_with("record:")), "{last}");
    assert_eq!(run(&["history"])["changes"][0]["reason"], "undo of records:2");
    assert_eq!(undone(&[]), ["2"]);
    assert_eq!(undone(&["records:1"]), ["records:1"]);
    assert_eq!(undone(&[]), ["1"]);
    sandbox.run(&["undo"]).fails(3);

    let in_session = |words: &[&str]| {
        let done = sandbox.memgrove(words).env("MEMGROVE_SESSION", "s").output().expect("it runs");
        assert!(done.status.success(), "{done:?}");
    };
    in_session(&["file", "create", "c.md", "--text", "x"]);
    in_session(&["record", "add", "three"]);
    assert_eq!(undone(&["--session", "s"]).len(), 2);
    assert!(!folder.join("learnings.jsonl").exists());
    assert!(!sandbox.store().join("files/c.md").exists());
}

#[test]
fn a_mounted_folder_is_counted_copied_and_checked() {
    let sandbox = Sandbox::new();
    let folder = mounted(&sandbox);
    sandbox.run(&["record", "add", "one"]).ok();
    let status = sandbox.run(&["status", "--json"]).json();
    assert!(status["records"]["files"].as_u64() >= Some(1), "{status}");
    sandbox.run(&["copy", "--to", "../copied"]).ok();
    let listed = sandbox.run(&["--store", "../copied", "record", "list", "--json"]).json();
    assert_eq!(listed["records"][0]["content"], "one");
    let file = folder.join("learnings.jsonl");
    let text = std::fs::read_to_string(&file).expect("records");
    std::fs::write(&file, format!("{text}{{\"torn\n")).expect("a file");
    let told = sandbox.run(&["doctor"]).out;
    assert!(
        told.contains(&format!("{}:2: it is cut off", file.canonicalize().expect("it is there").display())),
        "{told}"
    );
}

/// Rights of others are taken away wherever the format has files.
#[test]
fn records_are_closed_to_others_when_they_are_first_read() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    let folder = mounted(&sandbox);
    let added = sandbox.run(&["record", "add", "one", "--json"]).json();
    let id = added["records"][0]["id"].as_str().expect("an id").to_owned();
    sandbox.run(&["record", "archive", &id]).ok();
    let found = sandbox.command("find").arg(&folder).output().expect("it runs").stdout;
    let places: Vec<String> = String::from_utf8_lossy(&found).lines().map(str::to_owned).collect();
    let places: Vec<&String> = places.iter().filter(|place| !place.ends_with(".lock")).collect();
    assert!(places.len() >= 8, "{places:?}");
    for place in &places {
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    sandbox.run(&["record", "list"]).ok();
    for place in &places {
        let mode = std::fs::metadata(place).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{place} has {mode:o}");
    }
}

#[test]
fn an_addition_is_undone_behind_what_was_edited_by_hand() {
    let sandbox = Sandbox::new();
    sandbox.run(&["record", "add", "one"]).ok();
    let file = sandbox.store().join("records/learnings.jsonl");
    let edited = std::fs::read_to_string(&file).expect("records").replace("\"one\"", "\"the first\"");
    std::fs::write(&file, &edited).expect("a file");
    sandbox.run(&["record", "add", "two"]).ok();
    sandbox.run(&["undo"]).ok();
    assert_eq!(std::fs::read_to_string(&file).expect("records"), edited);
    sandbox.run(&["undo"]).fails(5);
    assert_eq!(std::fs::read_to_string(&file).expect("records"), edited, "what a person wrote stays");
}

#[test]
fn what_nobody_asked_for_is_out_of_sight() {
    let sandbox = Sandbox::new();
    let added = sandbox.run(&["record", "add", "one", "--json"]).json();
    let id = added["records"][0]["id"].as_str().expect("an id").to_owned();
    sandbox.run(&["record", "update", &id, "--tag", "x"]).ok();
    sandbox.run(&["record", "get", &id]).ok();
    let verbs = |words: &[&str]| names(&sandbox.run(words).json(), "changes", "verb");
    assert_eq!(verbs(&["history", "--json"]), ["record_update", "record_add"]);
    assert_eq!(verbs(&["history", "--limit", "1", "--json"]), ["record_update"]);
    assert_eq!(verbs(&["history", "--all", "--json"]), ["record_access", "record_update", "record_add"]);
    assert_eq!(names(&sandbox.run(&["undo", "--json"]).json(), "undone", ""), ["2"]);
}

#[test]
fn a_list_over_mcp_counts_all_that_it_sends() {
    let sandbox = Sandbox::new();
    let mut mcp = Connection::new(&sandbox, &["--tools", "records"]);
    for count in 0..20 {
        mcp.call("record_add", json!({"type": "core", "content": format!("fact number {count}")}));
    }
    let answer = mcp.call("record_list", json!({"budget": 600}));
    assert_eq!(mcp.close(), 0);
    let sent = format!("{}{}", answer["content"][0]["text"], answer["structuredContent"]);
    let shown = answer["structuredContent"]["records"].as_array().expect("records").len();
    assert!((1..20).contains(&shown), "{shown}");
    // A token is four characters of prose, and fewer of identifiers and times.
    assert!(sent.len() / 4 <= 600, "{} characters: {sent}", sent.len());
}

#[test]
fn small_things_at_the_command_line() {
    let sandbox = Sandbox::new();
    let added = sandbox.feed(&["record", "add", "--tag", "x", "--json"], "from a pipe\n").json();
    assert_eq!(added["records"][0]["content"], "from a pipe");
    let id = added["records"][0]["id"].as_str().expect("an id").to_owned();
    let updated = sandbox.run(&["record", "update", &id, "--tag", "", "--json"]).json();
    assert_eq!(updated["record"]["tags"], json!([]));
    for text in ["", "[]"] {
        let told = sandbox.run(&["record", "add-many", "--text", text]).fails(2);
        assert!(told.contains("there are no records"), "{told}");
    }
    for words in [&["record", "archive", "--due"][..], &["record", "restore-backup", "learning"]] {
        sandbox.run(&[words, &["--expect", "01234567"]].concat()).fails(2);
    }
}

#[test]
fn what_stands_in_the_way_in_a_mounted_folder_is_named_as_the_store_names_it() {
    let sandbox = Sandbox::new();
    mounted(&sandbox);
    let added = sandbox.run(&["record", "add", "one", "--json"]).json();
    let id = added["records"][0]["id"].as_str().expect("an id").to_owned();
    for text in ["two", "three"] {
        sandbox.run(&["record", "update", &id, "--content", text]).ok();
    }
    let refused = sandbox.run(&["undo", "records:2"]).fails(5);
    assert!(
        refused.contains("`records/learnings.jsonl` is not as change records:2 left it: change records:3 ("),
        "{refused}"
    );
    let hint = "undo change records:3 first, or restore what it was before: `memgrove restore records/learnings.jsonl --to records:1`";
    assert!(refused.contains(hint), "{refused}");
    sandbox.run(&["restore", "records/learnings.jsonl", "--to", "records:1"]).ok();
    for address in [format!("record:{id}"), "records/learnings.jsonl".to_owned()] {
        let told = sandbox.run(&["diff", &address, "records:2", "records:3"]).ok();
        assert!(
            told.contains("\tafter change records:2\n") && told.contains("\tafter change records:3\n"),
            "{told}"
        );
        let unknown = sandbox.run(&["diff", &address, "records:99"]).fails(3);
        assert!(unknown.contains("`records:99`"), "{unknown}");
    }
}

#[test]
fn a_long_record_hides_no_other_and_not_itself() {
    let sandbox = Sandbox::new();
    sandbox.run(&["record", "add", "short", "--tag", "x"]).ok();
    sandbox.run(&["record", "add", &"long ".repeat(900), "--tag", "x"]).ok();
    sandbox.run(&["record", "add", "newest", "--tag", "y"]).ok();
    let mut mcp = Connection::new(&sandbox, &["--tools", "records"]);
    let mut shown = |question: Value| {
        let answer = &mcp.call("record_list", question)["structuredContent"];
        let records = answer["records"].as_array().expect("records").clone();
        records.iter().map(|one| one["content"].as_str().expect("text")[..5].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(shown(json!({"text": "long"})), ["long "], "the first is always shown");
    assert_eq!(shown(json!({})), ["newes", "short"], "what does not fit is left out");
    assert_eq!(mcp.close(), 0);
}

#[test]
fn records_on_the_input_may_begin_with_a_byte_order_mark() {
    let sandbox = Sandbox::new();
    let given = "\u{feff}{\"type\":\"core\",\"content\":\"one\"}\n";
    sandbox.feed(&["record", "add-many"], given).ok();
    assert_eq!(sandbox.run(&["record", "list", "--json"]).json()["total"], 1);
}

#[test]
fn a_task_is_recalled_by_what_came_of_it() {
    let sandbox = Sandbox::new();
    let done = ["--type", "task", "--status", "completed", "--outcome", "Nine zebras crossed"];
    sandbox.run(&[&["record", "add", "Count the animals"], &done[..]].concat()).ok();
    let told = sandbox.run(&["recall", "zebras"]).ok();
    assert!(told.contains("Nine zebras crossed"), "{told}");
}

/// Whatever happens to the file itself is noticed, also behind what was added since.
#[test]
fn lost_records_are_missed_and_brought_back() {
    for loss in ["zeroed", "emptied", "removed"] {
        let sandbox = Sandbox::new();
        for text in ["one", "two", "three"] {
            sandbox.run(&["record", "add", text, "--type", "core"]).ok();
        }
        let file = sandbox.store().join("records/core_memories.jsonl");
        let size = std::fs::read(&file).expect("a file").len();
        let lost = match loss {
            "zeroed" => std::fs::write(&file, vec![0; size]),
            "emptied" => std::fs::write(&file, ""),
            _ => std::fs::remove_file(&file),
        };
        lost.expect("a file");
        if loss == "zeroed" {
            let told = sandbox.run(&["record", "list"]);
            assert!(told.err.contains("no record in `core_memories.jsonl` can be read"), "{}", told.err);
        }
        sandbox.run(&["record", "add", "four", "--type", "core"]).ok();
        let told = sandbox.run(&["doctor", "--fix"]).out;
        assert!(told.contains(": 3 records"), "{loss}: {told}");
        assert_eq!(sandbox.run(&["record", "list", "--json"]).json()["total"], 4, "{loss}");
    }
}
