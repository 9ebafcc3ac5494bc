//! Changes that cannot be placed, syncs that fail, and processes that die or never pause: what was there stays, and
//! nothing is answered that is not so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use memgrove::backend::{HistoryQuery, Moment};
use memgrove::backends::{Local, LocalOptions};
use memgrove::vfs::{Call, Fault, FaultFs, FaultPlan, SimFs, Vfs};
use memgrove::{Backend, Kind};

use super::at;
use super::beside::{delete, did, on, outside, until, write};
use super::between::{append, by_hand, changes, read, stopped, tree};

fn temps(disk: &SimFs) -> Vec<String> {
    disk.names("", usize::MAX).unwrap().into_iter().filter(|name| name.starts_with(".mtmp-")).collect()
}

/// A person saves a file while a change is under way, and the change fails at another file: what they saved is in its
/// place again.
#[test]
fn a_change_that_fails_gives_back_what_a_person_has_saved() {
    for first in [write("a.md", "two"), delete("a.md"), write("new.md", "two")] {
        let disk = SimFs::new();
        let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
        did(&local, [write("a.md", "one"), write("b.md", "one")]).unwrap();
        let place = first.at().key().to_owned();
        stopped(&disk, [first.clone(), write("b.md", "two")]);
        by_hand(&disk, &place, "by hand");
        disk.remove_file("b.md").and_then(|()| disk.mkdir("b.md")).unwrap();
        did(&local, [write("c.md", "three")]).expect("the store goes on");
        assert_eq!(read(&disk, &place), "by hand", "{first:?}");
        assert_eq!((changes(&local), temps(&disk)), (3, Vec::new()), "{first:?}: two, and what was saved");
        by_hand(&disk, &place, "by hand, later");
        drop(local);
        let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
        assert_eq!(read(&disk, &place), "by hand, later");
        assert_eq!(outside(&local), [(place, "by hand".to_owned())], "it is nobody's any more");
    }
}

/// From some call on no file can be opened any more: whatever is answered, a change has happened whole or not at all,
/// and the history tells which.
#[test]
fn too_many_open_files_tear_no_change() {
    let edits = || [write("a.md", "two"), delete("b.md"), write("c.md", "two"), append("d.md", "two")];
    for after in 0.. {
        let disk = SimFs::new();
        let faulty = Arc::new(FaultFs::new(Arc::new(disk.clone())));
        let local = Local::open(on(&faulty)).unwrap();
        did(&local, ["a.md", "b.md", "c.md", "d.md"].map(|key| write(key, "one"))).unwrap();
        let before = tree(&disk);
        faulty.plan(FaultPlan { of: Some(Call::Open), after, fault: Fault::Emfile, sticky: true });
        let answer = did(&local, edits());
        let fired = faulty.fired() > 0;
        faulty.heal();
        drop(local);
        let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
        let happened = changes(&local) == 2;
        assert!(happened || answer.is_err(), "after {after}");
        let found = tree(&disk);
        let pieces = ["a.md", "b.md", "c.md", "d.md"].map(|key| found.get(key).map(String::as_str));
        match happened {
            true => assert_eq!(pieces, [Some("two"), None, Some("two"), Some("onetwo")], "after {after}"),
            false => assert_eq!(found, before, "after {after}"),
        }
        if !fired {
            return assert!(after > 4);
        }
    }
}

/// A change of any number of files keeps only so many of them open.
#[test]
fn a_large_change_needs_few_open_files() {
    let disk = SimFs::new();
    disk.set_open_max(400);
    let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
    let all = |text: &str| (0..600).map(|index| write(&format!("{index}.md"), text)).collect::<Vec<_>>();
    did(&local, all("one")).unwrap();
    did(&local, all("two")).unwrap();
    did(&local, (0..600).map(|index| delete(&format!("{index}.md"))).collect::<Vec<_>>()).unwrap();
    assert_eq!(changes(&local), 3);
}

/// The system tells only one of two threads that the journal could not be synced: the other answers nothing either.
#[test]
fn an_error_that_another_thread_was_told_of_counts_for_all() {
    let disk = SimFs::new();
    let slow = Arc::new(FaultFs::new(Arc::new(disk.clone())).with_sync_delay(Duration::from_millis(400)));
    let local = Local::open(on(&slow)).unwrap();
    did(&local, [write("a.md", "one")]).unwrap();
    slow.plan(FaultPlan { of: Some(Call::Sync), after: 1, fault: Fault::Eio, sticky: false });
    thread::scope(|scope| {
        let answer = scope.spawn(|| did(&local, [write("a.md", "two")]));
        until(|| !temps(&disk).is_empty());
        // It is on its way to the disk.
        thread::sleep(Duration::from_millis(50));
        let _ = local.checkpoint();
        assert_eq!(answer.join().unwrap().unwrap_err().kind(), Kind::Io);
    });
}

/// A process dies at any call while the machine runs: what others had in its place before, and a person has changed
/// since, is left alone.
#[test]
fn a_dead_process_brings_nothing_back_in_the_same_run() {
    for after in 0.. {
        let disk = SimFs::new();
        let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
        did(&local, [write("a.md", "one")]).unwrap();
        local.checkpoint().unwrap();
        did(&local, [write("a.md", "two"), write("new.md", "two")]).unwrap();
        std::mem::forget(local);
        by_hand(&disk, "a.md", "one");
        disk.remove_file("new.md").unwrap();
        let dying = Arc::new(FaultFs::new(Arc::new(disk.clone())));
        let other = Local::open(on(&dying)).unwrap();
        dying.plan(FaultPlan { of: None, after, fault: Fault::Eio, sticky: true });
        let _ = did(&other, [write("b.md", "three")]);
        let died = dying.fired() > 0;
        std::mem::forget(other);
        let local = Local::open(on(&Arc::new(disk.clone()))).unwrap();
        did(&local, [write("c.md", "four")]).unwrap();
        assert_eq!((read(&disk, "a.md"), disk.stat("new.md").is_err()), ("one".to_owned(), true), "{after}");
        if !died {
            return assert!(after > 10);
        }
    }
}

/// Someone writes without a pause: segments end all the same, and what is redacted is gone.
#[test]
fn a_segment_ends_even_if_nobody_pauses() {
    let disk = SimFs::new();
    let slow = Arc::new(FaultFs::new(Arc::new(disk.clone())).with_sync_delay(Duration::from_millis(20)));
    let options = |disk| LocalOptions { segment_bytes: 4_096, ..on(disk) };
    let (local, busy) =
        (Local::open(options(&slow)).unwrap(), Local::open(on(&Arc::new(disk.clone()))).unwrap());
    let secret = did(&local, [write("a.md", "secret")]).unwrap().change;
    did(&local, [write("a.md", "clean")]).unwrap();
    let done = AtomicBool::new(false);
    let redacted = thread::scope(|scope| {
        scope.spawn(|| {
            for index in 0.. {
                did(&busy, [write("b.md", &format!("{index:01024}"))]).unwrap();
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for _ in 0..8 {
            thread::sleep(Duration::from_millis(20));
            local.checkpoint().unwrap();
        }
        let logs = disk.names(".journal", usize::MAX).unwrap();
        let segments = logs.iter().filter(|name| name.ends_with(".log")).count();
        let redacted = local.redact(&at("a.md"), &Moment::After(secret));
        done.store(true, Ordering::Relaxed);
        assert!(segments > 2, "{segments} segments");
        redacted
    });
    redacted.unwrap();
    assert!(local.history(&HistoryQuery::default()).unwrap().len() > 8);
}
