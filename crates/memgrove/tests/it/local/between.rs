//! What others do in the moment between a change being in the journal and its files being in place; or what a process
//! left that died there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use memgrove::backend::{Change, Edit, Expect, HistoryQuery, Keep, Moment, Note, Pruning};
use memgrove::backends::{Local, LocalOptions};
use memgrove::clock::{ManualClock, Timestamp};
use memgrove::error::code;
use memgrove::vfs::{Call, Fault, FaultFs, FaultPlan, Open, Rename, SimFs, Vfs};
use memgrove::{Backend, Kind, Locator};

use super::beside::{delete, did, on, outside, until, write};
use super::{at, open};

pub(super) fn append(key: &str, text: &str) -> Edit {
    Edit::Append { at: at(key), bytes: text.to_owned().into(), expect: Expect::Any }
}

/// A process that dies, or is stopped, when its change is durable and not in its place.
pub(super) fn stopped(disk: &SimFs, edits: impl Into<Vec<Edit>>) {
    let faulty = Arc::new(FaultFs::new(Arc::new(disk.clone())));
    let local = Local::open(on(&faulty)).unwrap();
    faulty.plan(FaultPlan { of: Some(Call::Lock), after: 1, fault: Fault::Eintr, sticky: true });
    did(&local, edits).unwrap_err();
    std::mem::forget(local);
}

pub(super) fn by_hand(disk: &SimFs, key: &str, text: &str) {
    let file = disk.open(key, Open::WriteOrCreate).unwrap();
    file.set_len(0).and_then(|()| file.write_at(0, text.as_bytes())).unwrap();
}

pub(super) fn read(disk: &SimFs, key: &str) -> String {
    String::from_utf8(disk.open(key, Open::Read).unwrap().read_all().unwrap()).unwrap()
}

fn temp_of(disk: &SimFs) -> String {
    let names = disk.names("", usize::MAX).unwrap();
    names.into_iter().find(|name| name.starts_with(".mtmp-")).expect("its content is prepared")
}

pub(super) fn changes(local: &Local) -> usize {
    local.history(&HistoryQuery::default()).unwrap().len()
}

/// A change that could not be placed, by whoever did it for all, is not answered as if it had been: not even when the
/// journal has gone on to its next segment meanwhile.
#[test]
fn what_another_took_back_is_not_answered() {
    let disk = Arc::new(SimFs::new());
    let slow = FaultFs::new(disk.clone()).with_sync_delay(Duration::from_millis(700));
    let owner = Local::open(on(&Arc::new(slow))).unwrap();
    let other = Local::open(on(&disk)).unwrap();
    did(&other, [write("d/a.md", "one")]).unwrap();
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| did(&owner, [write("d/x.md", "two")]));
        until(|| disk.names("", usize::MAX).unwrap().iter().any(|name| name.starts_with(".mtmp-")));
        disk.mkdir("d/x.md").unwrap();
        other.prune(Keep::Changes(100), Pruning::Done).unwrap();
        assert!(answer.join().unwrap().is_err());
    });
    assert_eq!(changes(&other), 1);
    did(&owner, [write("d/a.md", "three")]).expect("the store goes on");
    assert_eq!(read(&disk, "d/a.md"), "three");
}

/// Programs that append to a file of lines at the same time, one of them without a lock: every line is there, whole.
#[test]
fn nobody_overwrites_what_another_appends() {
    const LINES: usize = 400;
    let root = tempfile::tempdir().unwrap();
    let local = open(root.path());
    did(&local, [write("a.jsonl", "")]).unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let path = root.path().join("a.jsonl");
            let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
            for line in 0..LINES * 20 {
                std::io::Write::write_all(&mut file, format!("theirs {line}\n").as_bytes()).unwrap();
            }
        });
        for line in 0..LINES {
            did(&local, [append("a.jsonl", &format!("ours {line}\n"))]).unwrap();
        }
        other.join().unwrap();
    });
    let text = std::fs::read_to_string(root.path().join("a.jsonl")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let ours = (0..LINES).map(|line| format!("ours {line}"));
    let mut wanted: Vec<String> = ours.chain((0..LINES * 20).map(|line| format!("theirs {line}"))).collect();
    wanted.sort_unstable();
    assert_eq!(lines.len(), wanted.len());
    assert!(lines == wanted, "a line is torn");
}

/// A hand edit that slipped in, and for which the history has no room, stays where it is.
#[test]
fn what_cannot_be_kept_is_not_replaced() {
    let theirs = "t".repeat(12_000);
    for edit in [write("a.md", "two"), delete("a.md")] {
        let disk = SimFs::with_capacity(20_000);
        let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
        did(&local, [write("a.md", "one")]).unwrap();
        drop(local);
        stopped(&disk, [edit]);
        by_hand(&disk, "a.md", &theirs);
        let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
        let _ = did(&local, [write("b.md", "three")]);
        assert!(read(&disk, "a.md") == theirs || outside(&local) == [("a.md".to_owned(), theirs.clone())]);
    }
}

/// A process died as it began a segment: what goes on in the one before is known all the same.
#[test]
fn an_empty_segment_hides_nothing() {
    let disk = Arc::new(SimFs::new());
    let local = Local::open(on(&disk)).unwrap();
    let keyed = |key: &str| {
        let note = Note { key: Some(key.into()), ..Note::default() };
        local.apply(&Change { edits: vec![append("a.md", key)], note }).unwrap()
    };
    keyed("first");
    disk.open(".journal/0000000000000002.log", Open::CreateNew).unwrap();
    keyed("second");
    keyed("second");
    assert_eq!(read(&disk, "a.md"), "firstsecond");
    let pruned = local.prune(Keep::Since(Timestamp::UNIX_EPOCH), Pruning::Planned).unwrap();
    assert_eq!((pruned.changes, pruned.bytes), (0, 0));
}

/// What a content held is gone, also where it grew by appends and a later change kept it.
#[test]
fn what_grew_is_redacted_whole() {
    for later in [write("a.md", "clean"), delete("a.md")] {
        let root = tempfile::tempdir().unwrap();
        let local = open(root.path());
        did(&local, [write("a.md", "base ")]).unwrap();
        let grown = did(&local, [append("a.md", "secret")]).unwrap().change;
        let last = did(&local, [later]).unwrap().change;
        local.redact(&at("a.md"), &Moment::After(grown.clone())).unwrap();
        for moment in [Moment::After(grown), Moment::Before(last)] {
            let error = local.read_past(&at("a.md"), &moment).unwrap_err();
            assert_eq!(error.code_name(), Some(code::REDACTED), "{moment:?}");
        }
        let first = local.history(&HistoryQuery::default()).unwrap().pop().unwrap().change;
        assert_eq!(local.read_past(&at("a.md"), &Moment::After(first)).unwrap().unwrap(), b"base ");
        for entry in std::fs::read_dir(root.path().join(".journal")).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            assert!(!bytes.windows(6).any(|piece| piece == b"secret"));
        }
    }
}

/// A program has a file open that was replaced: what it leaves there must not bring back what was redacted.
#[test]
fn what_a_program_has_open_is_not_redacted_behind_its_back() {
    let disk = Arc::new(SimFs::new());
    let local = Local::open(on(&disk)).unwrap();
    let secret = did(&local, [write("a.md", "secret")]).unwrap().change;
    let program = disk.open("a.md", Open::Write).unwrap();
    did(&local, [write("a.md", "clean")]).unwrap();
    let redact = |local: &Local| local.redact(&at("a.md"), &Moment::After(secret.clone()));
    assert_eq!(redact(&local).unwrap_err().kind(), Kind::Busy);
    let held = local.redact_holding(&Locator::root(), &|bytes| bytes == b"secret");
    assert_eq!(held.unwrap_err().kind(), Kind::Busy);
    drop(program);
    redact(&local).unwrap();
    local.checkpoint().unwrap();
    assert_eq!(outside(&local), []);
}

/// What a program saved into a file that had been replaced is redacted before it has come into the history.
#[test]
fn what_a_program_left_in_a_replaced_file_is_redacted_too() {
    let disk = Arc::new(SimFs::new());
    let clock = Arc::new(ManualClock::default());
    let options = LocalOptions { clock: clock.clone(), ..on(&disk) };
    let local = Local::open(options).unwrap();
    did(&local, [write("a.md", "open")]).unwrap();
    let program = disk.open("a.md", Open::Write).unwrap();
    did(&local, [write("a.md", "clean")]).unwrap();
    program.write_at(4, b" secret").unwrap();
    drop(program);
    local.redact_holding(&Locator::root(), &|bytes| bytes == b"open secret").unwrap();
    clock.advance_ms(10_000);
    local.checkpoint().unwrap();
    assert_eq!(outside(&local), []);
}

/// A record that someone has damaged did not happen, and holds up nobody.
#[test]
fn a_damaged_record_holds_up_nobody() {
    let disk = SimFs::new();
    let options = || LocalOptions { segment_bytes: 1, ..on(&Arc::new(disk.clone())) };
    let other = Local::open(options()).unwrap();
    did(&other, [write("a.md", "one")]).unwrap();
    stopped(&disk, [write("a.md", "damaged")]);
    let journal = disk.open(".journal/0000000000000001.log", Open::Write).unwrap();
    let bytes = journal.read_all().unwrap();
    let body = bytes.windows(7).rposition(|piece| piece == b"damaged").unwrap();
    journal.write_at(body as u64, b"D").unwrap();
    other.checkpoint().unwrap();
    did(&other, [write("b.md", "two")]).unwrap();
    assert_eq!((read(&disk, "a.md"), read(&disk, "b.md")), ("one".to_owned(), "two".to_owned()));
    let third = Local::open(options()).unwrap();
    did(&third, [write("b.md", "three")]).unwrap();
    did(&other, [append("b.md", "!")]).unwrap();
    assert_eq!(read(&disk, "b.md"), "three!");
}

/// A folder is not made where something is about to be moved.
#[test]
fn a_new_folder_waits_for_what_is_on_its_way() {
    let disk = SimFs::new();
    let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
    did(&local, [write("a/old.md", "one")]).unwrap();
    let moved = Edit::Rename { from: at("a"), to: at("b"), expect: Expect::Any };
    stopped(&disk, [moved, write("b/new.md", "two")]);
    local.mkdir(&at("b")).unwrap();
    assert_eq!((read(&disk, "b/old.md"), read(&disk, "b/new.md")), ("one".to_owned(), "two".to_owned()));
    assert!(disk.stat("a").is_err());
}

/// A process died right after two files had traded places, and a person went on: both of their versions are kept, and
/// what they wrote last stays.
#[test]
fn what_a_dead_process_displaced_is_kept() {
    let disk = SimFs::new();
    let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
    did(&local, [write("a.md", "one")]).unwrap();
    stopped(&disk, [write("a.md", "two")]);
    by_hand(&disk, "a.md", "by hand");
    disk.rename(&temp_of(&disk), "a.md", Rename::Exchange).unwrap();
    by_hand(&disk, "a.md", "by hand, later");
    did(&local, [write("b.md", "three")]).unwrap();
    assert_eq!(read(&disk, "a.md"), "by hand, later");
    assert_eq!(outside(&local), [("a.md".to_owned(), "by hand".to_owned())]);
}

#[test]
fn what_a_dead_process_was_deleting_is_kept() {
    let disk = SimFs::new();
    let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
    did(&local, [write("a.md", "one"), write("b.md", "one")]).unwrap();
    stopped(&disk, [delete("a.md"), write("b.md", "two")]);
    by_hand(&disk, "a.md", "by hand");
    let deleted = format!("{}-0", temp_of(&disk).strip_suffix("-1").expect("it is the second edit's"));
    disk.rename("a.md", &deleted, Rename::NoReplace).unwrap();
    by_hand(&disk, "a.md", "by hand, later");
    did(&local, [write("c.md", "three")]).unwrap();
    assert_eq!((read(&disk, "a.md"), read(&disk, "b.md")), ("by hand, later".to_owned(), "two".to_owned()));
    assert_eq!(outside(&local), [("a.md".to_owned(), "by hand".to_owned())]);
}

/// A process died as it had appended: readers need not wait for the next append.
#[test]
fn a_dead_process_leaves_readers_alone() {
    const APPENDS_OFFSET: u64 = 256;
    let disk = SimFs::new();
    let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
    did(&local, [write("a.md", "one")]).unwrap();
    stopped(&disk, [append("a.md", " two")]);
    disk.open("a.md", Open::Write).unwrap().write_at(3, b" two").unwrap();
    let mark = disk.open(".journal/mark", Open::Write).unwrap();
    mark.write_at(APPENDS_OFFSET, &1u64.to_le_bytes()).unwrap();
    did(&local, [write("b.md", "three")]).unwrap();
    assert_eq!(read(&disk, "a.md"), "one two");
    assert_eq!(mark.read_at(APPENDS_OFFSET, 8).unwrap(), 2u64.to_le_bytes());
}

/// A power cut took the bytes of an answered append, and left those that another program had added behind it.
#[test]
fn what_others_added_behind_an_append_hides_no_loss() {
    let disk = SimFs::new();
    let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
    did(&local, [write("a.jsonl", "base\n")]).unwrap();
    local.checkpoint().unwrap();
    did(&local, [append("a.jsonl", "ours\n")]).unwrap();
    std::mem::forget(local);
    by_hand(&disk, "a.jsonl", "base\n\0\0\0\0\0theirs\n");
    disk.open("a.jsonl", Open::Read).unwrap().sync_data().unwrap();
    let disk = disk.power_cut(1);
    drop(Local::open(on(&Arc::new(disk.clone()))).unwrap());
    assert_eq!(read(&disk, "a.jsonl"), "base\nours\ntheirs\n");
}

/// Whatever cannot be opened when files are synced in their places, the store goes on.
#[test]
fn a_file_that_is_shut_off_stops_no_store() {
    for after in 0..8 {
        let faulty = Arc::new(FaultFs::new(Arc::new(SimFs::new())));
        let local = Local::open(on(&faulty)).unwrap();
        did(&local, [write("a.md", "one")]).unwrap();
        faulty.plan(FaultPlan { of: Some(Call::Open), after, fault: Fault::Eacces, sticky: false });
        let _ = local.checkpoint();
        faulty.heal();
        did(&local, [write("a.md", "two")]).unwrap_or_else(|error| panic!("after {after}: {error}"));
    }
}

/// A file that is closed to writers refuses an append, and nothing else.
#[test]
fn an_append_that_may_not_be_holds_up_nobody() {
    let disk = Arc::new(SimFs::new());
    let local = Local::open(on(&disk)).unwrap();
    did(&local, [write("a.md", "one"), write("b.md", "one")]).unwrap();
    disk.set_mode("a.md", 0o400).unwrap();
    let refused = did(&local, [write("b.md", "two"), append("a.md", " two")]).unwrap_err();
    assert_eq!(refused.kind(), Kind::Denied, "{refused}");
    assert_eq!((read(&disk, "a.md"), read(&disk, "b.md")), ("one".to_owned(), "one".to_owned()));
    did(&local, [append("b.md", " two")]).expect("the store goes on");
    let other = Local::open(on(&disk)).unwrap();
    did(&other, [append("b.md", " three")]).expect("and so do others");
    assert_eq!(read(&disk, "b.md"), "one two three");
}

/// Another process dies at any call while it places a change whose edits depend on each other; its owner, who lives, goes
/// on: it happens whole and once, or not at all.
#[test]
fn what_another_has_begun_to_place_is_finished_once() {
    let moved = |from: &str, to: &str| Edit::Rename { from: at(from), to: at(to), expect: Expect::Any };
    let kinds = [
        vec![moved("a.md", "t.md"), write("a.md", "new")],
        vec![delete("a.md"), moved("b.md", "a.md")],
        vec![moved("a.md", "t.md"), moved("b.md", "a.md"), moved("t.md", "b.md")],
        vec![write("x.md", "x"), delete("x.md"), write("y.md", "y")],
        vec![write("x.md", "x"), moved("x.md", "y.md")],
        vec![append("x.md", "x"), delete("x.md"), append("a.md", "!")],
        vec![append("a.md", "!"), append("a.md", "?")],
        vec![write("a.md", "two"), write("a.md", "three")],
    ];
    let mut deaths = 0;
    for edits in kinds {
        for after in 0.. {
            let disk = SimFs::new();
            let (slow, dying) = (FaultFs::new(Arc::new(disk.clone())), FaultFs::new(Arc::new(disk.clone())));
            let [owner, other] =
                [&slow, &dying].map(|disk| Local::open(on(&Arc::new(disk.clone()))).unwrap());
            did(&owner, [write("a.md", "a"), write("b.md", "b")]).unwrap();
            let before = tree(&disk);
            slow.plan(FaultPlan { of: Some(Call::Lock), after: 1, fault: Fault::Eintr, sticky: true });
            did(&owner, edits.clone()).unwrap_err();
            slow.heal();
            dying.plan(FaultPlan { of: None, after, fault: Fault::Eio, sticky: true });
            let _ = other.checkpoint();
            let died = dying.fired() > 0;
            std::mem::forget(other);
            did(&owner, [write("last.md", "")]).unwrap_or_else(|error| panic!("{edits:?}, {after}: {error}"));
            let happened = changes(&owner) == 3;
            assert!(!died || happened, "{edits:?}, {after}: nobody had a reason to take it back");
            let expected = if happened { done(&before, &edits) } else { before };
            let mut found = tree(&disk);
            found.remove("last.md");
            assert_eq!(found, expected, "{edits:?}, {after}");
            if !died {
                break;
            }
            deaths += 1;
        }
    }
    assert!(deaths > 100, "only {deaths} deaths");
}

pub(super) type Contents = BTreeMap<String, String>;

/// The files and what they hold.
pub(super) fn tree(disk: &SimFs) -> Contents {
    let names = disk.names("", usize::MAX).unwrap().into_iter().filter(|name| name.ends_with(".md"));
    names.map(|name| (name.clone(), read(disk, &name))).collect()
}

/// What a change makes of a tree.
fn done(before: &Contents, edits: &[Edit]) -> Contents {
    let mut tree = before.clone();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    for edit in edits {
        match edit {
            Edit::Write { at, bytes, .. } => drop(tree.insert(at.key().into(), text(bytes))),
            Edit::Append { at, bytes, .. } => tree.entry(at.key().into()).or_default().push_str(&text(bytes)),
            Edit::Delete { at, .. } => drop(tree.remove(at.key())),
            Edit::Rename { from, to, .. } => {
                let moved = tree.remove(from.key()).unwrap();
                tree.insert(to.key().into(), moved);
            }
        }
    }
    tree
}
