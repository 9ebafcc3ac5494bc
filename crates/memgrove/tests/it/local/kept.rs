//! What people write in the worst of moments, into a file that is just replaced, taken away or brought back: it is
//! in its place or in the history.

use std::sync::Arc;

use memgrove::Backend;
use memgrove::backend::{Change, HistoryQuery, Keep, Moment, Note, OUTSIDE, Pruning};
use memgrove::backends::{Local, LocalOptions};
use memgrove::clock::ManualClock;
use memgrove::vfs::{Call, Fault, FaultFs, FaultPlan, Open, SimFs, Vfs};

use super::at;
use super::beside::{delete, did, on, outside, write};
use super::between::{append, by_hand, read, stopped};

fn kept(key: &str, text: &str) -> Vec<(String, String)> {
    vec![(key.to_owned(), text.to_owned())]
}

/// A change fails at another file when a person has used its place again: what it displaced, of which the history
/// knows by that change alone, is kept.
#[test]
fn what_a_failed_change_cannot_give_back() {
    for first in [write("a.md", "two"), delete("a.md")] {
        let disk = SimFs::new();
        by_hand(&disk, "a.md", "only here");
        let dying = Arc::new(FaultFs::new(Arc::new(disk.clone())));
        let local = Local::open(on(&dying)).unwrap();
        did(&local, [write("b.md", "one")]).unwrap();
        dying.plan(FaultPlan { of: Some(Call::Rename), after: 1, fault: Fault::Eio, sticky: true });
        did(&local, [first.clone(), write("b.md", "two")]).unwrap_err();
        std::mem::forget(local);
        by_hand(&disk, "a.md", "used again");
        disk.remove_file("b.md").and_then(|()| disk.mkdir("b.md")).unwrap();
        let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
        did(&local, [write("c.md", "three")]).unwrap();
        assert_eq!(read(&disk, "a.md"), "used again", "{first:?}");
        assert_eq!(outside(&local), kept("a.md", "only here"), "{first:?}");
        assert!(!disk.names("", usize::MAX).unwrap().iter().any(|name| name.starts_with(".mtmp-")));
    }
}

/// An editor saves, durably, into the file that it had opened before a change replaced it; then the machine stops.
#[test]
fn what_an_editor_saved_before_the_machine_stopped() {
    let disk = SimFs::new();
    let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
    did(&local, [write("a.md", "one")]).unwrap();
    local.checkpoint().unwrap();
    let editor = disk.open("a.md", Open::Write).unwrap();
    did(&local, [write("a.md", "two")]).unwrap();
    editor
        .set_len(0)
        .and_then(|()| editor.write_at(0, b"by hand"))
        .and_then(|()| editor.sync_data())
        .unwrap();
    disk.sync_tree().unwrap();
    std::mem::forget(local);
    let disk = Arc::new(disk.power_cut(1));
    let local = Local::open(on(&disk)).unwrap();
    assert_eq!(read(&disk, "a.md"), "two");
    assert_eq!(outside(&local), kept("a.md", "by hand"));
}

/// What is derived displaces files under a name that is used again: an editor that has one open is still heard.
#[test]
fn what_an_editor_saves_into_something_derived() {
    let disk = SimFs::new();
    let local = Local::open(LocalOptions { background: true, ..on(&Arc::new(disk.clone())) }).unwrap();
    let derive = |text| {
        let note = Note { derived: true, ..Note::default() };
        local.apply(&Change { edits: vec![write("list.md", text)], note }).unwrap();
    };
    did(&local, [write("a.md", "one")]).unwrap();
    derive("one");
    let editor = disk.open("list.md", Open::Write).unwrap();
    derive("two");
    derive("three");
    editor.set_len(0).and_then(|()| editor.write_at(0, b"by hand")).unwrap();
    drop(editor);
    drop(local);
    let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
    assert_eq!(outside(&local), kept("list.md", "by hand"));
}

/// A displaced file whose name cannot be removed is kept in the history once, not with every checkpoint.
#[test]
fn what_cannot_be_removed_is_kept_once() {
    let disk = SimFs::new();
    let stuck = Arc::new(FaultFs::new(Arc::new(disk.clone())));
    let clock = Arc::new(ManualClock::default());
    let local = Local::open(LocalOptions { clock: Arc::clone(&clock) as _, ..on(&stuck) }).unwrap();
    did(&local, [write("a.md", "one")]).unwrap();
    let editor = disk.open("a.md", Open::Write).unwrap();
    did(&local, [write("a.md", "two")]).unwrap();
    editor.set_len(0).and_then(|()| editor.write_at(0, b"by hand")).unwrap();
    drop(editor);
    stuck.plan(FaultPlan { of: Some(Call::Remove), after: 0, fault: Fault::Eacces, sticky: true });
    for _ in 0..5 {
        clock.advance_ms(10_000);
        local.checkpoint().unwrap();
    }
    assert_eq!(outside(&local), kept("a.md", "by hand"));
}

/// A file has taken the place of a folder when the machine stops: it stays, and the store goes on.
#[test]
fn what_has_the_place_of_a_folder() {
    let disk = SimFs::new();
    let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
    did(&local, [write("d/x.md", "one"), write("y.md", "one")]).unwrap();
    disk.remove_file("d/x.md").and_then(|()| disk.remove_dir("d")).unwrap();
    by_hand(&disk, "d", "by hand");
    disk.sync_tree().unwrap();
    std::mem::forget(local);
    let disk = Arc::new(disk.power_cut(1));
    let local = Local::open(on(&disk)).unwrap();
    did(&local, [write("y.md", "two")]).unwrap();
    assert_eq!((read(&disk, "d"), read(&disk, "y.md")), ("by hand".to_owned(), "two".to_owned()));
}

/// What someone wrote into a file as it was displaced is in the history, but never was what its place held.
#[test]
fn what_was_displaced_was_not_in_its_place() {
    let disk = SimFs::new();
    let opened = || Local::open(on(&Arc::new(disk.clone()))).unwrap();
    did(&opened(), [write("a.md", "one")]).unwrap();
    stopped(&disk, [write("a.md", "two")]);
    by_hand(&disk, "a.md", "by hand");
    let local = opened();
    did(&local, [write("b.md", "three")]).unwrap();
    did(&local, [write("c.md", "four")]).unwrap();
    assert_eq!(outside(&local), kept("a.md", "by hand"));
    let history = local.history(&HistoryQuery::default()).unwrap();
    let aside = history.iter().find(|past| past.note.verb == OUTSIDE).expect("it is in the history");
    let held =
        |moment| local.read_past(&at("a.md"), &moment).unwrap().map(String::from_utf8).unwrap().unwrap();
    assert_eq!(held(Moment::After(history[0].change.clone())), "two");
    assert_eq!(held(Moment::Before(aside.change.clone())), "two");
    assert_eq!(held(Moment::After(aside.change.clone())), "by hand");
}

/// The history is made shorter while an editor has a displaced file open: what it saves then is kept all the same.
#[test]
fn what_an_editor_saves_after_the_history_was_pruned() {
    let disk = SimFs::new();
    let opened = || Local::open(on(&Arc::new(disk.clone()))).unwrap();
    let local = opened();
    did(&local, [write("a.md", "one")]).unwrap();
    let editor = disk.open("a.md", Open::Write).unwrap();
    did(&local, [write("a.md", "two")]).unwrap();
    drop(local);
    let local = opened();
    did(&local, [write("b.md", "three")]).unwrap();
    local.prune(Keep::Changes(1), Pruning::Done).unwrap();
    editor.set_len(0).and_then(|()| editor.write_at(0, b"by hand")).unwrap();
    drop(editor);
    did(&local, [write("b.md", "four")]).unwrap();
    local.checkpoint().unwrap();
    assert_eq!(outside(&local), kept("a.md", "by hand"));
}

/// What a change only rests on is not made by it, if someone removes it before the change has its place.
#[test]
fn what_a_change_rests_on_is_not_brought_back() {
    let disk = SimFs::new();
    let opened = || Local::open(on(&Arc::new(disk.clone()))).unwrap();
    did(&opened(), [write("a.md", "one")]).unwrap();
    stopped(&disk, [append("a.md", ""), write("b.md", "two")]);
    disk.remove_file("a.md").unwrap();
    did(&opened(), [write("c.md", "three")]).unwrap();
    assert_eq!(read(&disk, "b.md"), "two");
    assert!(disk.stat("a.md").is_err(), "it was removed by hand");
}

/// What is kept of a hand edit is no change: nobody looks for its place.
#[test]
fn what_is_kept_is_nothing_left_to_do() {
    let disk = SimFs::new();
    let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
    did(&local, [write("a.md", "one")]).unwrap();
    stopped(&disk, [write("a.md", "two")]);
    by_hand(&disk, "a.md", "by hand");
    local.checkpoint().unwrap();
    assert_eq!(outside(&local), kept("a.md", "by hand"));
    let mark = read_lossy(&disk, ".journal/mark");
    let words: Vec<&str> = mark.split_whitespace().collect();
    assert_eq!(words[5], words[6], "placed, and the end: {mark}");
}

fn read_lossy(disk: &SimFs, name: &str) -> String {
    let bytes = disk.open(name, Open::Read).unwrap().read_at(0, 192).unwrap();
    String::from_utf8(bytes).unwrap()
}
