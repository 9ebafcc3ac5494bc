//! Looking back, restoring and undoing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use memgrove::backend::{Actor, Change, ChangeId, Edit, Expect, HistoryQuery, Moment, Note, Origin, Version};
use memgrove::backends::{Local, LocalOptions, Ram};
use memgrove::clock::ManualClock;
use memgrove::error::code;
use memgrove::memory::{Plan, Point, Restored, UndoScope};
use memgrove::vfs::{Call, Fault, FaultFs, FaultPlan, RealFs, SimFs};
use memgrove::{Kind, Locator, Memory, Result, Store};
use proptest::prelude::*;

fn at(key: &str) -> Locator {
    Locator::new(key).expect("a valid key")
}

fn memory() -> Memory {
    Memory::new(Store::new(Ram::default()), Arc::new(ManualClock::default()))
}

/// A memory whose past is in a journal.
fn journaled() -> Memory {
    let clock = Arc::new(ManualClock::default());
    let mut options = LocalOptions::new(Arc::new(SimFs::new()), clock.clone());
    options.background = false;
    Memory::new(Store::new(Local::open(options).expect("an empty disk")), clock)
}

fn note(verb: &str) -> Note {
    Note { verb: verb.into(), ..Note::default() }
}

fn write(key: &str, text: &str) -> Edit {
    Edit::Write { at: at(key), bytes: text.to_owned().into(), expect: Expect::Any }
}

fn append(key: &str, text: &str) -> Edit {
    Edit::Append { at: at(key), bytes: text.to_owned().into(), expect: Expect::Any }
}

fn delete(key: &str) -> Edit {
    Edit::Delete { at: at(key), expect: Expect::Any }
}

fn rename(from: &str, to: &str) -> Edit {
    Edit::Rename { from: at(from), to: at(to), expect: Expect::Any }
}

fn did(memory: &Memory, edits: impl Into<Vec<Edit>>) -> ChangeId {
    did_as(memory, note("test"), edits)
}

fn did_as(memory: &Memory, note: Note, edits: impl Into<Vec<Edit>>) -> ChangeId {
    memory.store().apply(&Change { edits: edits.into(), note }).expect("the edits are possible").change
}

/// Every file with its text.
fn files(memory: &Memory) -> BTreeMap<String, String> {
    let all = memory.store().list_all(&Locator::root()).expect("it can be listed");
    let files = all.into_iter().filter(|info| !info.is_dir());
    files
        .map(|info| {
            let text = memory.store().read(&info.locator).expect("it is text");
            (info.locator.key().to_owned(), text)
        })
        .collect()
}

fn holds(memory: &Memory, wanted: &[(&str, &str)]) {
    let wanted: BTreeMap<String, String> =
        wanted.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    assert_eq!(files(memory), wanted);
}

fn undo(memory: &Memory, scope: &UndoScope) -> Vec<ChangeId> {
    memory.undo(Note::default(), scope).expect("it can be undone").outcome.changes
}

fn after(change: &ChangeId) -> Point {
    Moment::After(change.clone()).into()
}

fn before(change: &ChangeId) -> Point {
    Moment::Before(change.clone()).into()
}

/// A memory in a folder that a person can edit.
fn in_folder(root: &Path) -> Memory {
    let clock = Arc::new(ManualClock::default());
    let folder = RealFs::open_root(root).expect("a folder");
    Memory::new(Store::new(Local::open(LocalOptions::new(Arc::new(folder), clock.clone())).unwrap()), clock)
}

#[test]
fn a_key_stands_for_one_change() -> Result<()> {
    for memory in [memory(), journaled()] {
        let keyed = |verb: &str, request: Option<&str>| Note {
            key: Some("k".into()),
            request: request.map(str::to_owned),
            ..note(verb)
        };
        let apply = |note: Note, key: &str| {
            memory.apply(note, |_| Ok(Plan { edits: vec![write(key, "x")], outcome: key.to_owned() }))
        };
        let first = apply(keyed("create", Some("1")), "a.md")?;
        let again = apply(keyed("create", Some("1")), "b.md")?;
        assert_eq!((again.outcome.as_str(), again.replayed), ("a.md", true));
        assert_eq!(apply(keyed("create", None), "b.md")?.change, first.change, "nothing else is known of it");
        let used = |error: memgrove::Error| {
            assert_eq!((error.kind(), error.code_name()), (Kind::Invalid, Some(code::KEY_USED)));
            assert!(error.message().contains("create, change 1"), "{error}");
        };
        used(apply(keyed("create", Some("2")), "b.md").expect_err("another request"));
        used(apply(keyed("delete", Some("1")), "b.md").expect_err("another verb"));
        let number = memory.apply(keyed("create", Some("1")), |_| Ok(Plan { edits: Vec::new(), outcome: 7 }));
        used(number.expect_err("an answer of another kind"));
        used(memory.undo(keyed("undo", None), &UndoScope::Last).expect_err("it undid nothing"));
        holds(&memory, &[("a.md", "x")]);
    }
    Ok(())
}

#[test]
fn what_was_never_there_is_not_in_the_history() {
    let memory = memory();
    let first = did(&memory, [write("a.md", "one")]);
    for scope in ["99", "abc"] {
        let error =
            memory.undo(Note::default(), &UndoScope::Change(ChangeId::new(scope))).expect_err("unknown");
        assert_eq!(error.message(), format!("the history does not hold a change `{scope}`"));
    }
    let restored = memory.restore(Note::default(), &at("misspelt.md"), &after(&first), None);
    assert_eq!(restored.expect_err("there never was one").kind(), Kind::NotFound);
}

/// The journal hears of an edit by hand only when it meets one: a rename meets it.
#[test]
fn a_rename_tells_what_it_moved() -> Result<()> {
    let root = tempfile::tempdir().unwrap();
    let by_hand = |name: &str, text: &str| std::fs::write(root.path().join(name), text).unwrap();
    let memory = in_folder(root.path());
    let made = did(&memory, [write("a.md", "one"), append("a.md", " more")]);
    by_hand("a.md", "by hand");
    let moved = did(&memory, [rename("a.md", "b.md")]);
    let read = |key: &str, point: &Point| {
        let bytes = memory.read_past(&at(key), point);
        bytes.map(|bytes| bytes.map(|bytes| String::from_utf8(bytes).unwrap()))
    };
    let by = Some("by hand".to_owned());
    assert_eq!(read("b.md", &after(&moved))?, by, "the file tells");
    assert_eq!(read("b.md", &before(&moved))?, by);
    assert_eq!(read("b.md", &after(&made))?.as_deref(), Some("one more"));
    assert_eq!(read("b.md", &Version::of(b"by hand").into())?, by);
    let grown = did(&memory, [append("b.md", " and on")]);
    did(&memory, [write("b.md", "other")]);
    assert_eq!(read("b.md", &after(&moved))?, by, "a later record tells");
    assert_eq!(read("b.md", &after(&grown))?.as_deref(), Some("by hand and on"));
    undo(&memory, &UndoScope::Last);
    undo(&memory, &UndoScope::Last);
    assert_eq!(undo(&memory, &UndoScope::Last), [moved]);
    holds(&memory, &[("a.md", "by hand")]);
    // What was moved, then edited by hand, and kept by nobody, is unknown, not something older.
    by_hand("a.md", "second");
    let again = did(&memory, [rename("a.md", "c.md")]);
    by_hand("c.md", "third");
    assert_eq!(read("c.md", &after(&again)).expect_err("it is gone").kind(), Kind::NotFound);
    Ok(())
}

/// A change and its undo are no reason to refuse: what a person wrote is.
#[test]
fn a_conflict_names_what_is_in_the_way() {
    let root = tempfile::tempdir().unwrap();
    let memory = in_folder(root.path());
    did(&memory, [write("a.md", "zero")]);
    let first = did(&memory, [write("a.md", "one")]);
    let second = did(&memory, [write("a.md", "two")]);
    let refused = || memory.undo(Note::default(), &UndoScope::Change(first.clone())).expect_err("a conflict");
    let error = refused();
    assert!(error.message().ends_with("change 3 (test) came later"), "{error}");
    let hint = "undo change 3 first, or restore what it was before: `memgrove restore a.md --to 1`";
    assert_eq!(error.hint_text(), Some(hint));
    undo(&memory, &UndoScope::Change(second));
    std::fs::write(root.path().join("a.md"), "by hand").unwrap();
    let error = refused();
    assert!(error.message().ends_with("an edit outside memgrove came later"), "{error}");
}

#[test]
fn the_beginning_of_a_version_finds_it() -> Result<()> {
    let memory = memory();
    did(&memory, [write("a.md", "one")]);
    did(&memory, [write("a.md", "two")]);
    did(&memory, [write("b.md", "three")]);
    let one = Version::of(b"one");
    assert_eq!(memory.versions_from(&at("a.md"), &one.as_str()[..8])?, [one].into());
    assert_eq!(memory.versions_from(&at("a.md"), "")?.len(), 2);
    Ok(())
}

/// Whoever takes back a change of many files asks for each of them, and the change is read for all of them.
#[test]
fn a_change_of_many_files_is_not_read_once_for_each() {
    const FILES: usize = 40;
    let clock = Arc::new(ManualClock::default());
    let disk = FaultFs::new(Arc::new(SimFs::new()));
    let mut options = LocalOptions::new(Arc::new(disk.clone()), clock.clone());
    options.background = false;
    let memory = Memory::new(Store::new(Local::open(options).unwrap()), clock);
    let text = "x".repeat(70_000);
    did(&memory, (0..FILES).map(|file| write(&format!("many/{file}.md"), &text)).collect::<Vec<_>>());
    disk.plan(FaultPlan { of: Some(Call::Read), after: u64::MAX, fault: Fault::Eio, sticky: false });
    undo(&memory, &UndoScope::Last);
    let reads = disk.calls();
    println!("{reads} reads");
    // A few small ones for each file, of where the journal ends; one more each would be the change itself.
    assert!(reads < (FILES * 15) as u64, "{reads} reads");
}

#[test]
fn a_diff_is_unified() -> Result<()> {
    let memory = memory();
    let first = did(&memory, [write("a.md", "one\ntwo\nthree\n")]);
    did(&memory, [write("a.md", "one\n2\nthree\n")]);
    let diff = memory.diff(&at("a.md"), "a.md", &after(&first), None)?;
    assert_eq!(diff, "--- a.md\tafter change 1\n+++ a.md\tnow\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
    let made = memory.diff(&at("a.md"), "a.md", &before(&first), Some(&after(&first)))?;
    assert!(made.starts_with("--- /dev/null\n+++ a.md\tafter change 1\n@@ -0,0 +1,3 @@\n+one\n"), "{made}");
    assert_eq!(memory.diff(&at("a.md"), "a.md", &after(&first), Some(&after(&first)))?, "");
    Ok(())
}

#[test]
fn a_diff_shows_a_missing_final_newline() -> Result<()> {
    let memory = memory();
    let first = did(&memory, [write("a.md", "one")]);
    did(&memory, [write("a.md", "one\n")]);
    let diff = memory.diff(&at("a.md"), "a.md", &after(&first), None)?;
    assert!(diff.contains("-one\n\\ No newline at end of file\n+one\n"), "{diff}");
    Ok(())
}

#[test]
fn a_diff_of_bytes_says_so_in_one_line() -> Result<()> {
    let memory = memory();
    let first =
        did(&memory, [Edit::Write { at: at("a.bin"), bytes: vec![0, 255].into(), expect: Expect::Any }]);
    did(&memory, [write("a.bin", "text")]);
    assert_eq!(
        memory.diff(&at("a.bin"), "a.bin", &after(&first), None)?,
        "`a.bin` is not text: 2 bytes became 4 bytes\n"
    );
    Ok(())
}

#[test]
fn a_diff_follows_a_rename() -> Result<()> {
    let memory = memory();
    let first = did(&memory, [write("f/a.md", "one\n")]);
    did(&memory, [rename("f", "g")]);
    did(&memory, [rename("g/a.md", "b.md"), write("b.md", "two\n")]);
    let diff = memory.diff(&at("b.md"), "b.md", &after(&first), None)?;
    assert!(diff.ends_with("-one\n+two\n"), "{diff}");
    Ok(())
}

/// What had a name then is meant, whatever has come there since.
#[test]
fn the_past_of_a_name_is_that_of_what_had_it() -> Result<()> {
    for memory in [memory(), journaled()] {
        did(&memory, [write("a.md", "first\n")]);
        let then = did(&memory, [write("b.md", "second\n")]);
        did(&memory, [delete("a.md")]);
        let gone = did(&memory, [rename("b.md", "a.md")]);
        assert_eq!(memory.read_past(&at("a.md"), &after(&then))?, Some(b"first\n".into()));
        // Nothing had the name: it is that of what has it now.
        assert_eq!(memory.read_past(&at("a.md"), &before(&gone))?, Some(b"second\n".into()));
        let diff = memory.diff(&at("a.md"), "a.md", &after(&then), None)?;
        assert!(diff.ends_with("-first\n+second\n"), "{diff}");
        memory.restore(Note::default(), &at("a.md"), &after(&then), None)?;
        holds(&memory, &[("a.md", "first\n")]);
    }
    Ok(())
}

#[test]
fn a_version_names_a_point_in_the_past() -> Result<()> {
    let memory = memory();
    did(&memory, [write("a.md", "one")]);
    did(&memory, [append("a.md", " two"), write("b.md", "aside")]);
    did(&memory, [rename("a.md", "c.md")]);
    did(&memory, [write("c.md", "three")]);
    for text in ["one", "one two", "three"] {
        let point = Point::from(Version::of(text.as_bytes()));
        assert_eq!(memory.read_past(&at("c.md"), &point)?, Some(text.into()), "{text}");
    }
    let never = memory.read_past(&at("c.md"), &Version::of(b"aside").into()).expect_err("it never was");
    assert_eq!(never.kind(), Kind::NotFound);
    Ok(())
}

#[test]
fn a_folder_that_is_gone_is_not_called_unchanged() {
    for memory in [memory(), journaled()] {
        let first = did(&memory, [write("d/a.md", "one"), write("d/b.md", "two")]);
        let last = did(&memory, [delete("d/a.md"), delete("d/b.md"), delete("d")]);
        let error = memory.restore(note("restore"), &at("d"), &after(&first), None).expect_err("a folder");
        assert_eq!(error.code_name(), Some(code::IS_DIRECTORY), "{error}");
        assert!(error.hint_text().is_some_and(|hint| hint.contains(&format!("undo {last}"))), "{error}");
        memory.undo(note(""), &UndoScope::Change(last)).expect("the hint is good");
        holds(&memory, &[("d/a.md", "one"), ("d/b.md", "two")]);
    }
}

#[test]
fn restoring_writes_or_deletes_or_leaves_alone() -> Result<()> {
    let memory = memory();
    let first = did(&memory, [write("a.md", "one")]);
    did(&memory, [write("a.md", "two")]);
    let done = memory.restore(note("restore"), &at("a.md"), &after(&first), None)?;
    assert_eq!((done.outcome, done.change.is_some()), (Restored::Written, true));
    holds(&memory, &[("a.md", "one")]);
    let done = memory.restore(note("restore"), &at("a.md"), &after(&first), None)?;
    assert_eq!((done.outcome, done.change), (Restored::Unchanged, None));
    assert_eq!(
        memory.restore(note("restore"), &at("a.md"), &before(&first), None)?.outcome,
        Restored::Deleted
    );
    holds(&memory, &[]);
    assert_eq!(
        memory.restore(note("restore"), &at("a.md"), &before(&first), None)?.outcome,
        Restored::Unchanged
    );
    // What is gone can be had back, and restoring is a change like any other.
    memory.restore(note("restore"), &at("a.md"), &Version::of(b"two").into(), None)?;
    holds(&memory, &[("a.md", "two")]);
    assert_eq!(memory.history(&HistoryQuery::default())?[0].note.verb, "restore");
    Ok(())
}

#[test]
fn restoring_minds_the_expected_version() -> Result<()> {
    let memory = memory();
    let first = did(&memory, [write("a.md", "one")]);
    did(&memory, [write("a.md", "two")]);
    let stale = Version::of(b"one");
    let error =
        memory.restore(note("restore"), &at("a.md"), &after(&first), Some(&stale)).expect_err("stale");
    assert_eq!(error.kind(), Kind::Conflict);
    holds(&memory, &[("a.md", "two")]);
    memory.restore(note("restore"), &at("a.md"), &after(&first), Some(&Version::of(b"two")))?;
    holds(&memory, &[("a.md", "one")]);
    Ok(())
}

#[test]
fn undoing_again_steps_further_back() {
    let memory = memory();
    let one = did(&memory, [write("a.md", "1")]);
    let two = did(&memory, [append("a.md", "2")]);
    let three = did(&memory, [rename("a.md", "f/b.md")]);
    let four = did(&memory, [delete("f/b.md")]);
    assert_eq!(undo(&memory, &UndoScope::Last), [four]);
    holds(&memory, &[("f/b.md", "12")]);
    assert_eq!(undo(&memory, &UndoScope::Last), [three]);
    holds(&memory, &[("a.md", "12")]);
    assert_eq!(undo(&memory, &UndoScope::Last), [two]);
    holds(&memory, &[("a.md", "1")]);
    assert_eq!(undo(&memory, &UndoScope::Last), [one]);
    holds(&memory, &[]);
    let error = memory.undo(Note::default(), &UndoScope::Last).expect_err("nothing is left");
    assert_eq!((error.kind(), error.message()), (Kind::NotFound, "there is nothing to undo"));
}

#[test]
fn an_undo_says_what_it_undid_and_can_be_undone() -> Result<()> {
    let memory = memory();
    let one = did(&memory, [write("a.md", "1")]);
    did(&memory, [write("a.md", "2")]);
    let given = Note { reason: Some("a mistake".into()), ..note("ignored") };
    let undone = memory.undo(given, &UndoScope::Last)?.change.expect("there was something");
    let past = memory.history(&HistoryQuery { limit: 1, ..HistoryQuery::default() })?;
    assert_eq!(past[0].note.verb, "undo");
    assert_eq!(past[0].note.reason.as_deref(), Some("undo of 2: a mistake"));
    holds(&memory, &[("a.md", "1")]);
    // Redo, after which the change counts again.
    undo(&memory, &UndoScope::Change(undone.clone()));
    holds(&memory, &[("a.md", "2")]);
    let error = memory.undo(Note::default(), &UndoScope::Change(undone.clone())).expect_err("it was undone");
    assert_eq!(error.kind(), Kind::Invalid);
    assert_eq!(error.message(), format!("change {undone} is undone already"));
    assert_eq!(undo(&memory, &UndoScope::Last), [ChangeId::new("2")]);
    assert_eq!(undo(&memory, &UndoScope::Last), [one]);
    holds(&memory, &[]);
    Ok(())
}

#[test]
fn one_change_can_be_undone_among_others() {
    let memory = memory();
    let one = did(&memory, [write("a.md", "1"), write("b.md", "1")]);
    did(&memory, [write("c.md", "2")]);
    undo(&memory, &UndoScope::Change(one.clone()));
    holds(&memory, &[("c.md", "2")]);
    let error = memory.undo(Note::default(), &UndoScope::Change(ChangeId::new("99"))).expect_err("unknown");
    assert_eq!(error.kind(), Kind::NotFound);
}

#[test]
fn an_undo_refuses_to_lose_a_later_change() {
    let memory = memory();
    let one = did(&memory, [write("a.md", "1"), write("b.md", "1")]);
    let two = did_as(&memory, note("note_write"), [append("b.md", "2")]);
    let error = memory.undo(Note::default(), &UndoScope::Change(one.clone())).expect_err("b.md has changed");
    assert_eq!(error.kind(), Kind::Conflict);
    assert_eq!(error.message(), "`b.md` is not as change 1 left it: change 2 (note_write) came later");
    assert_eq!(error.hint_text(), Some("undo change 2 first"), "there is nothing before it");
    holds(&memory, &[("a.md", "1"), ("b.md", "12")]);
    undo(&memory, &UndoScope::Change(two));
    undo(&memory, &UndoScope::Change(one));
    holds(&memory, &[]);
}

#[test]
fn the_latest_change_of_a_memory_can_be_undone() {
    let memory = memory();
    did(&memory, [write("f/a.md", "1")]);
    let two = did(&memory, [write("f/a.md", "2")]);
    did(&memory, [write("b.md", "3")]);
    assert_eq!(undo(&memory, &UndoScope::Memory(at("f/a.md"))), [two]);
    holds(&memory, &[("b.md", "3"), ("f/a.md", "1")]);
    assert_eq!(undo(&memory, &UndoScope::Memory(at("f"))), [ChangeId::new("1")]);
    holds(&memory, &[("b.md", "3")]);
    let error = memory.undo(Note::default(), &UndoScope::Memory(at("f"))).expect_err("nothing is left");
    assert_eq!(error.kind(), Kind::NotFound);
}

fn by(client: &str, session: &str, origin: Origin) -> Note {
    let actor = Actor { origin, client: Some(client.into()), session: Some(session.into()) };
    Note { actor, ..note("test") }
}

#[test]
fn a_session_and_a_source_are_undone_as_a_whole() {
    let memory = memory();
    did_as(&memory, by("cli", "s1", Origin::User), [write("a.md", "mine")]);
    did_as(
        &memory,
        by("bot", "s2", Origin::Agent),
        [append("a.md", ", and the bot's"), write("b.md", "bot")],
    );
    did_as(&memory, by("bot", "s3", Origin::Agent), [rename("b.md", "c.md"), write("d.md", "bot")]);
    did_as(&memory, by("cli", "s1", Origin::User), [write("e.md", "mine")]);
    let done = memory.undo(Note::default(), &UndoScope::Session("s3".into())).expect("it can be undone");
    assert_eq!(done.outcome.changes, [ChangeId::new("3")]);
    holds(&memory, &[("a.md", "mine, and the bot's"), ("b.md", "bot"), ("e.md", "mine")]);
    undo(&memory, &UndoScope::Change(done.change.expect("there was something")));
    // Both sessions of the bot, in one change.
    assert_eq!(undo(&memory, &UndoScope::Source("bot".into())), [ChangeId::new("3"), ChangeId::new("2")]);
    holds(&memory, &[("a.md", "mine"), ("e.md", "mine")]);
    let error =
        memory.undo(Note::default(), &UndoScope::Source("agent".into())).expect_err("nothing is left");
    assert_eq!(error.kind(), Kind::NotFound);
    assert_eq!(undo(&memory, &UndoScope::Source("user".into())).len(), 2);
    holds(&memory, &[]);
}

#[test]
fn what_people_wrote_past_memgrove_is_not_undone() {
    let memory = memory();
    let one = did(&memory, [write("a.md", "1")]);
    let outside = Note { actor: Actor { origin: Origin::FileEdit, ..Actor::default() }, ..note("outside") };
    did_as(&memory, outside, [write("kept.md", "by hand")]);
    assert_eq!(undo(&memory, &UndoScope::Last), [one]);
    holds(&memory, &[("kept.md", "by hand")]);
}

#[test]
fn a_change_without_effect_is_undone_once() {
    let memory = memory();
    did(&memory, [write("a.md", "1")]);
    did(&memory, [write("a.md", "1")]);
    undo(&memory, &UndoScope::Last);
    holds(&memory, &[("a.md", "1")]);
    undo(&memory, &UndoScope::Last);
    holds(&memory, &[]);
}

#[test]
fn folders_come_back() -> Result<()> {
    let memory = memory();
    did(&memory, [write("f/g/a.md", "a"), write("f/b.md", "b")]);
    did(&memory, [rename("f", "x/y")]);
    undo(&memory, &UndoScope::Last);
    holds(&memory, &[("f/b.md", "b"), ("f/g/a.md", "a")]);
    memory.store().mkdir(&at("empty"))?;
    did(&memory, [delete("empty")]);
    undo(&memory, &UndoScope::Last);
    assert!(memory.store().info(&at("empty"))?.is_dir());
    // A file that had become a folder becomes a file again.
    did(&memory, [delete("f/b.md"), write("f/b.md/c.md", "c")]);
    undo(&memory, &UndoScope::Last);
    holds(&memory, &[("f/b.md", "b"), ("f/g/a.md", "a")]);
    Ok(())
}

#[test]
fn edits_that_cross_within_one_change_are_undone() {
    let memory = memory();
    did(&memory, [write("a.md", "a"), write("b.md", "b"), write("f/x.md", "x")]);
    let crossing = [
        rename("a.md", "t.md"),
        rename("b.md", "a.md"),
        rename("t.md", "b.md"),
        append("a.md", "+"),
        write("n.md", "new"),
        rename("n.md", "m.md"),
        rename("f", "g"),
        write("f/x.md", "another"),
        append("g/x.md", "+"),
        delete("m.md"),
    ];
    did(&memory, crossing);
    holds(&memory, &[("a.md", "b+"), ("b.md", "a"), ("f/x.md", "another"), ("g/x.md", "x+")]);
    let done = memory.undo(Note::default(), &UndoScope::Last).expect("it can be undone");
    holds(&memory, &[("a.md", "a"), ("b.md", "b"), ("f/x.md", "x")]);
    undo(&memory, &UndoScope::Change(done.change.expect("there was something")));
    holds(&memory, &[("a.md", "b+"), ("b.md", "a"), ("f/x.md", "another"), ("g/x.md", "x+")]);
}

#[test]
fn an_undo_with_a_key_happens_once() -> Result<()> {
    let memory = memory();
    did(&memory, [write("a.md", "1")]);
    did(&memory, [write("a.md", "2")]);
    let keyed = Note { key: Some("k".into()), ..Note::default() };
    let first = memory.undo(keyed.clone(), &UndoScope::Last)?;
    let again = memory.undo(keyed, &UndoScope::Last)?;
    assert!(again.replayed && !first.replayed);
    assert_eq!(again.outcome, first.outcome);
    holds(&memory, &[("a.md", "1")]);
    Ok(())
}

#[test]
fn an_undo_meets_a_writer_that_was_faster() {
    let memory = memory();
    did(&memory, [write("a.md", "1")]);
    let rival = memory.clone();
    let mut once = Some(());
    // The rival writes while a plan is being made: the plan is made again, on what is there now.
    let done = memory.apply(note("test"), |store| {
        let there = store.read_bytes(&at("a.md"))?;
        if once.take().is_some() {
            did(&rival, [write("a.md", "rival")]);
        }
        let text = String::from_utf8_lossy(&there.bytes).into_owned() + "+";
        let expect = Expect::At(there.version);
        Ok(Plan {
            edits: vec![Edit::Write { at: at("a.md"), bytes: text.to_owned().into(), expect }],
            outcome: (),
        })
    });
    done.expect("the second plan fits");
    holds(&memory, &[("a.md", "rival+")]);
    undo(&memory, &UndoScope::Last);
    holds(&memory, &[("a.md", "rival")]);
}

/// Names that get into each other's way: files and folders of the same name, and neighbours.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "f", "f/a", "f/b", "f/g", "f/g/a", "g", "g/a", "f-x"])
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => (name(), "[xyz]{0,3}").prop_map(|(key, text)| write(key, &text)),
        2 => (name(), "[xyz]{0,2}").prop_map(|(key, text)| append(key, &text)),
        2 => name().prop_map(delete),
        3 => (name(), name()).prop_map(|(from, to)| rename(from, to)),
    ]
}

/// Undoing one by one goes back through every earlier state, and redoing all comes back.
fn goes_back_and_forth(memory: &Memory, changes: Vec<Vec<Edit>>) -> std::result::Result<(), TestCaseError> {
    let mut states = vec![files(memory)];
    for edits in changes {
        if memory.store().apply(&Change { edits, note: note("test") }).is_ok() {
            states.push(files(memory));
        }
    }
    let last = states.last().cloned();
    let mut undos = Vec::new();
    while states.len() > 1 {
        states.pop();
        let done = memory.undo(Note::default(), &UndoScope::Last);
        let done = done.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(Some(&files(memory)), states.last());
        undos.push(done.change.expect("an undo is always a change"));
    }
    let none = memory.undo(Note::default(), &UndoScope::Last).map_err(|error| error.kind()).err();
    prop_assert_eq!(none, Some(Kind::NotFound));
    for undo in undos.iter().rev() {
        let done = memory.undo(Note::default(), &UndoScope::Change(undo.clone()));
        done.map_err(|error| TestCaseError::fail(format!("redo: {error}")))?;
    }
    prop_assert_eq!(Some(files(memory)), last);
    Ok(())
}

/// A whole session is undone in one change, whatever it did.
fn is_undone_whole(
    memory: &Memory,
    first: Vec<Edit>,
    session: Vec<Vec<Edit>>,
) -> std::result::Result<(), TestCaseError> {
    for edit in first {
        // What cannot be done is left out.
        let _ = memory.store().apply(&Change { edits: vec![edit], note: note("test") });
    }
    let before = files(memory);
    let mut count = 0;
    for edits in session {
        let note = by("bot", "s", Origin::Agent);
        count += usize::from(memory.store().apply(&Change { edits, note }).is_ok());
    }
    if count > 0 {
        let done = memory.undo(Note::default(), &UndoScope::Session("s".into()));
        let done = done.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(done.outcome.changes.len(), count);
    }
    prop_assert_eq!(files(memory), before);
    Ok(())
}

fn changes(max: usize) -> impl Strategy<Value = Vec<Vec<Edit>>> {
    prop::collection::vec(prop::collection::vec(edit(), 1..5), 1..max)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn undoing_goes_back_through_every_state(changes in changes(12)) {
        goes_back_and_forth(&memory(), changes)?;
    }

    #[test]
    fn a_session_is_undone_whatever_it_did(first in prop::collection::vec(edit(), 1..6), session in changes(8)) {
        is_undone_whole(&memory(), first, session)?;
    }

    #[test]
    fn undoing_goes_back_through_every_journaled_state(changes in changes(8)) {
        goes_back_and_forth(&journaled(), changes)?;
    }

    #[test]
    fn a_journaled_session_is_undone_whatever_it_did(
        first in prop::collection::vec(edit(), 1..6),
        session in changes(6),
    ) {
        is_undone_whole(&journaled(), first, session)?;
    }
}

/// The journal has the bytes of what is deleted, but as those of a file that had its name before.
#[test]
fn a_file_in_the_place_of_its_equal_is_brought_back() {
    let changes = vec![
        vec![write("f/g/a", "y"), append("f-x", "y")],
        vec![rename("f", "g"), rename("f-x", "f/g/a")],
        vec![delete("f/g/a")],
    ];
    goes_back_and_forth(&journaled(), changes).unwrap();
}
