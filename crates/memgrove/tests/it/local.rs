//! The device-local backend on a real disk: what lies there, how it gets there, and what happens
//! when someone tampers with it.

mod apart;
mod beside;
mod between;
mod kept;
mod meddled;
mod refused;
mod unlocked;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use memgrove::backend::{Change, Edit, Expect, HistoryQuery, Level, Moment, Note};
use memgrove::backends::local::Bug;
use memgrove::backends::{Local, LocalOptions};
use memgrove::clock::{ManualClock, SystemClock};
use memgrove::vfs::{Call, Fault, FaultFs, FaultPlan, RealFs, SimFs, Vfs};
use memgrove::{Backend, Kind, Locator, Store};

fn at(key: &str) -> Locator {
    Locator::new(key).unwrap()
}

fn options(root: &Path) -> LocalOptions {
    LocalOptions::new(Arc::new(RealFs::open_root(root).unwrap()), Arc::new(SystemClock))
}

fn open(root: &Path) -> Local {
    Local::open(options(root)).unwrap()
}

fn store(root: &Path) -> Store {
    Store::new(open(root))
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_write_is_there_after_opening_again() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    store.write(&at("files/a.md"), "one").unwrap();
    store.write(&at("files/a.md"), "two").unwrap();
    let edits =
        vec![Edit::Append { at: at("files/a.md"), bytes: b" three".as_slice().into(), expect: Expect::Any }];
    let last = store.apply(&Change { edits, note: Note::default() }).unwrap();
    assert_eq!(store.read(&at("files/a.md")).unwrap(), "two three");
    drop(store);
    let local = open(root.path());
    assert_eq!(local.read(&at("files/a.md")).unwrap().bytes, b"two three");
    let past = local.history(&HistoryQuery::default()).unwrap();
    assert_eq!(past.len(), 3);
    assert_eq!(past[0].change, last.change);
    let read = |moment: Moment| local.read_past(&at("files/a.md"), &moment).unwrap();
    assert_eq!(read(Moment::After(past[0].change.clone())).unwrap(), b"two three");
    assert_eq!(read(Moment::Before(past[0].change.clone())).unwrap(), b"two");
    assert_eq!(read(Moment::After(past[2].change.clone())).unwrap(), b"one");
    assert_eq!(read(Moment::Before(past[2].change.clone())), None);
}

#[test]
fn files_are_private_and_the_tree_holds_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    store.write(&at("a/b/c.md"), "x").unwrap();
    store.write(&at("a/b/c.md"), "y").unwrap();
    store.mkdir(&at("a/empty")).unwrap();
    drop(store);
    for (name, wanted) in
        [("a", 0o700), ("a/b", 0o700), ("a/empty", 0o700), (".journal", 0o700), ("a/b/c.md", 0o600)]
    {
        assert_eq!(mode(&root.path().join(name)), wanted, "{name}");
    }
    for entry in std::fs::read_dir(root.path().join(".journal")).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600);
        let name = entry.file_name().into_string().unwrap();
        assert!(["mark", "id"].contains(&&*name) || name.ends_with(".log"), "{name} is left over");
    }
    let mut names: Vec<_> = std::fs::read_dir(root.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [".journal", ".lock", "a"]);
}

/// Whoever may read a file may read it after a change too.
#[test]
fn the_mode_of_a_file_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.md");
    std::fs::write(&path, "one").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let store = store(root.path());
    store.write(&at("a.md"), "two").unwrap();
    assert_eq!(mode(&path), 0o644);
    store.write(&at("b.md"), "new").unwrap();
    assert_eq!(mode(&root.path().join("b.md")), 0o600);
}

#[test]
fn a_store_that_cannot_be_written_to_is_found_by_the_check() {
    let disk = Arc::new(FaultFs::new(Arc::new(SimFs::new())));
    let local = Local::open(LocalOptions::new(disk.clone(), Arc::new(ManualClock::default()))).unwrap();
    Store::new(local).write(&at("a.md"), "one").unwrap();
    let local = Local::open(LocalOptions::new(disk.clone(), Arc::new(ManualClock::default()))).unwrap();
    assert_eq!(local.check().unwrap(), []);
    disk.plan(FaultPlan { of: Some(Call::Open), after: 0, fault: Fault::Eacces, sticky: false });
    let found = local.check().unwrap();
    assert!(found.len() == 1 && found[0].what.starts_with("the store is read-only here"), "{found:?}");
    // The lock can be written to, but no file can be made: beside the memories, or beside the journal.
    for (call, fault, level, said) in [
        (Call::Open, Fault::Eacces, Level::Warning, "the store is read-only here"),
        (Call::Write, Fault::Enospc, Level::Error, "nothing can be written here"),
    ] {
        for (nth, place) in [(0, "store"), (1, ".journal")] {
            // The lock and the id of the journal are opened first.
            let after = nth + if call == Call::Open { 2 } else { 0 };
            disk.plan(FaultPlan { of: Some(call), after, fault, sticky: false });
            let found = local.check().unwrap();
            assert!(found.len() == 1 && found[0].what.starts_with(said), "{found:?}");
            assert_eq!((found[0].level, &*found[0].at), (level, place));
            assert!(!found[0].hint.is_empty());
        }
    }
    assert_eq!(local.check().unwrap(), []);
    assert_eq!(disk.names("", 10).unwrap().len(), 3, "the check leaves nothing behind");
}

/// With the journal elsewhere, the folder holds the user's files and nothing of ours.
#[test]
fn a_folder_used_in_place_stays_clean() {
    let (tree, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(tree.path().join("theirs.md"), "before").unwrap();
    let mut options = options(tree.path());
    options.state = Some(Arc::new(RealFs::open_root(state.path()).unwrap()));
    let store = Store::new(Local::open(options).unwrap());
    store.write(&at("theirs.md"), "after").unwrap();
    store.write(&at("new.md"), "").unwrap();
    drop(store);
    let mut names: Vec<_> = std::fs::read_dir(tree.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["new.md", "theirs.md"]);
    assert!(state.path().join(".journal").is_dir() && state.path().join(".lock").is_file());
}

/// The one wait for the disk: whatever a change writes, appends or deletes, and however many files.
#[test]
fn a_durable_change_costs_one_sync() {
    let disk = Arc::new(FaultFs::new(Arc::new(SimFs::new())));
    let mut options = LocalOptions::new(disk.clone(), Arc::new(ManualClock::default()));
    options.background = false;
    let local = Local::open(options).unwrap();
    let write = |key: &str, text: &str| Edit::Write {
        at: at(key),
        bytes: text.to_owned().into(),
        expect: Expect::Any,
    };
    let apply = |edits: Vec<Edit>| drop(local.apply(&Change { edits, note: Note::default() }).unwrap());
    apply(vec![write("a.md", "start")]);
    let changes = [
        vec![write("a.md", "one")],
        vec![write("deep/er/b.md", "two")],
        vec![Edit::Append { at: at("a.md"), bytes: b"three".as_slice().into(), expect: Expect::Any }],
        (0..50).map(|index| write(&format!("many/{index}.md"), "x")).collect(),
        vec![Edit::Delete { at: at("a.md"), expect: Expect::Any }],
    ];
    for edits in changes {
        // A failure that never comes, to count the calls that it waits for.
        disk.plan(FaultPlan { of: Some(Call::Sync), after: u64::MAX, fault: Fault::Eio, sticky: false });
        let shown = format!("{edits:?}");
        apply(edits);
        assert_eq!(disk.calls(), 1, "{shown}");
    }
}

#[test]
fn a_hand_edit_is_used_and_kept() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    store.write(&at("a.md"), "ours").unwrap();
    std::fs::write(root.path().join("a.md"), "by hand").unwrap();
    assert_eq!(store.read(&at("a.md")).unwrap(), "by hand");
    store.write(&at("a.md"), "ours again").unwrap();
    let newest = store.backend().history(&HistoryQuery::default()).unwrap().remove(0);
    let before = store.backend().read_past(&at("a.md"), &Moment::Before(newest.change)).unwrap();
    assert_eq!(before.as_deref(), Some(b"by hand".as_slice()), "the hand edit is in the history");
}

/// Flips a byte in the first record of the journal.
#[test]
fn a_hand_edit_before_an_append_is_in_the_history() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    store.write(&at("a.md"), "one\n").unwrap();
    std::fs::write(root.path().join("a.md"), "one, and by hand\n").unwrap();
    let append = |text: &str| {
        let edits = vec![Edit::Append { at: at("a.md"), bytes: text.to_owned().into(), expect: Expect::Any }];
        store.apply(&Change { edits, note: Note::default() }).unwrap().change
    };
    let (two, three) = (append("two\n"), append("three\n"));
    let states = || {
        let moments = [Moment::Before(two.clone()), Moment::After(two.clone()), Moment::After(three.clone())];
        moments.map(|moment| {
            String::from_utf8(store.backend().read_past(&at("a.md"), &moment).unwrap().unwrap()).unwrap()
        })
    };
    let all = ["one, and by hand\n", "one, and by hand\ntwo\n", "one, and by hand\ntwo\nthree\n"];
    assert_eq!(states(), all);
    store.write(&at("a.md"), "all new").unwrap();
    assert_eq!(states(), all, "also when the file says nothing of it any more");
}

fn damage(root: &Path) {
    let log = root.join(".journal/0000000000000001.log");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[70] ^= 0xff;
    std::fs::write(&log, bytes).unwrap();
    // As after a restart of the machine: nobody vouches for the journal any more.
    std::fs::remove_file(root.join(".journal/mark")).unwrap();
}

/// The verbs of the history after the first record was damaged and one change was added.
fn history_after_damage(bug: Option<Bug>) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    let first = store(root.path());
    for key in ["a.md", "b.md", "c.md"] {
        first.write(&at(key), key).unwrap();
    }
    drop(first);
    damage(root.path());
    let mut options = options(root.path());
    options.bug = bug;
    let local = Local::open(options).unwrap();
    let edits = vec![Edit::Write { at: at("d.md"), bytes: b"d".as_slice().into(), expect: Expect::Any }];
    local.apply(&Change { edits, note: Note::default() }).unwrap();
    drop(local);
    let local = open(root.path());
    for key in ["a.md", "b.md", "c.md"] {
        assert_eq!(local.read(&at(key)).unwrap().bytes, key.as_bytes(), "no file suffers");
    }
    if bug.is_none() {
        let findings = local.check().unwrap();
        let found =
            findings.iter().find(|finding| finding.level == Level::Error).expect("the damage is reported");
        assert!(found.at.starts_with(".journal/") && found.what.contains("damaged"), "{found:?}");
    }
    let past = local.history(&HistoryQuery::default()).unwrap();
    past.into_iter().flat_map(|past| past.edits).map(|edit| edit.at.key().to_owned()).collect()
}

#[test]
fn damage_in_the_journal_costs_only_what_it_hit() {
    assert_eq!(history_after_damage(None), ["d.md", "c.md", "b.md"]);
}

#[test]
fn dropping_good_records_after_a_bad_one_is_found() {
    assert_eq!(
        history_after_damage(Some(Bug::DropBadRecords)),
        ["d.md"],
        "the test is blind to this mistake"
    );
}

/// What has an odd name already moves with its folder; only what becomes too long does not.
#[test]
fn a_folder_is_moved_with_the_odd_names_in_it() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("un")).unwrap();
    std::fs::write(root.path().join("un/tail."), "x").unwrap();
    let store = store(root.path());
    let moved = |to: &str| {
        let edits = vec![Edit::Rename { from: at("un"), to: at(to), expect: Expect::Any }];
        store.apply(&Change { edits, note: Note::default() })
    };
    let long = ["a".repeat(250), "b".repeat(250), "c".repeat(250), "d".repeat(250), "e".repeat(18)].join("/");
    assert_eq!(moved(&long).unwrap_err().kind(), Kind::Invalid);
    moved("a-longer-name").unwrap();
    assert_eq!(store.read(&at("a-longer-name/tail.")).unwrap(), "x");
}

#[test]
fn a_deleted_journal_costs_the_history_alone() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    store.write(&at("a.md"), "one").unwrap();
    std::fs::remove_dir_all(root.path().join(".journal")).unwrap();
    store.write(&at("a.md"), "two").unwrap();
    std::fs::remove_file(root.path().join(".lock")).unwrap();
    store.write(&at("a.md"), "three").unwrap();
    drop(store);
    let local = open(root.path());
    assert_eq!(local.read(&at("a.md")).unwrap().bytes, b"three");
    assert_eq!(local.history(&HistoryQuery::default()).unwrap().len(), 2);
}

/// Segments end, and the past reaches across them; so do idempotency keys.
#[test]
fn the_history_reaches_across_segments() {
    let root = tempfile::tempdir().unwrap();
    let mut options = options(root.path());
    options.segment_bytes = 2_000;
    options.background = false;
    let local = Local::open(options).unwrap();
    for round in 0..30 {
        let edits =
            vec![Edit::Write { at: at("a.md"), bytes: format!("{round:0500}").into(), expect: Expect::Any }];
        let note = Note { key: Some(format!("key {round}")), ..Note::default() };
        local.apply(&Change { edits, note }).unwrap();
        local.checkpoint().unwrap();
    }
    let logs = std::fs::read_dir(root.path().join(".journal")).unwrap().count() - 2;
    assert!(logs > 3, "there are {logs} segments");
    drop(local);
    let local = open(root.path());
    let past = local.history(&HistoryQuery::default()).unwrap();
    assert_eq!(past.len(), 30);
    for (round, past) in past.iter().rev().enumerate() {
        let text = local.read_past(&at("a.md"), &Moment::After(past.change.clone())).unwrap().unwrap();
        assert_eq!(text, format!("{round:0500}").as_bytes());
    }
    let first = local.applied("key 0").unwrap().expect("the key is remembered");
    assert_eq!((first.change, first.replayed), (past[29].change.clone(), true));
    assert_eq!(local.applied("key 30").unwrap(), None);
}

/// Root may write anywhere, so this says something only for other users; it must work for both.
#[test]
fn a_read_only_store_can_be_read() {
    let root = tempfile::tempdir().unwrap();
    store(root.path()).write(&at("a.md"), "one").unwrap();
    let set = |mode: u32| {
        for folder in [root.path().to_owned(), root.path().join(".journal")] {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    set(0o500);
    let store = store(root.path());
    assert_eq!(store.read(&at("a.md")).unwrap(), "one");
    let written = store.write(&at("b.md"), "two");
    drop(store);
    set(0o700);
    match written {
        Ok(_) => assert!(root.path().join("b.md").exists()),
        Err(error) => {
            assert_eq!(error.kind(), Kind::Denied, "{error}");
            assert!(!root.path().join("b.md").exists());
        }
    }
}

#[test]
fn twins_are_found_in_a_folder_of_any_size() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("files");
    std::fs::create_dir_all(&folder).unwrap();
    for number in 0..3_000 {
        std::fs::write(folder.join(format!("{number}.md")), "").unwrap();
    }
    std::fs::write(folder.join("alice-smith.md"), "").unwrap();
    let store = store(root.path());
    for name in ["Alice-Smith.md", "ALICE-SMITH.md"] {
        let error = store.write(&at(&format!("files/{name}")), "x").unwrap_err();
        assert!(error.message().contains("only in case"), "{error}");
    }
    store.write(&at("files/bob.md"), "x").unwrap();
    let edits = vec![Edit::Rename {
        from: at("files/alice-smith.md"),
        to: at("files/Alice-Smith.md"),
        expect: Expect::Any,
    }];
    store.apply(&Change { edits, note: Note::default() }).expect("a name may change its own case");
}

/// Root writes into a tree of somebody else, as in a container: what it makes is theirs, who could not read it else.
#[test]
fn what_root_makes_in_a_tree_of_others_is_theirs() {
    use std::os::unix::fs::{MetadataExt, chown};
    let root = tempfile::tempdir().unwrap();
    let is_root = std::fs::metadata(root.path()).unwrap().uid() == 0;
    if is_root {
        chown(root.path(), Some(1000), Some(1000)).unwrap();
    } else {
        println!("only root can make files for others: its own files stay its own");
    }
    let owner = std::fs::metadata(root.path()).unwrap().uid();
    let local = open(root.path());
    for text in ["one", "two"] {
        let edit = Edit::Write { at: at("notes/a.md"), bytes: text.into(), expect: Expect::Any };
        local.apply(&Change { edits: vec![edit], note: Note::default() }).unwrap();
    }
    drop(local);
    for name in ["notes", "notes/a.md", ".journal", ".lock"] {
        assert_eq!(std::fs::metadata(root.path().join(name)).unwrap().uid(), owner, "{name}");
    }
}
