//! Processes that are killed at any moment.

use std::path::Path;
use std::thread;
use std::time::Duration;

use memgrove::backend::{Change, Depth, Edit, Expect, Note};
use memgrove::{Kind, Locator, Result, Store};

use super::child::{Child, Task};
use super::{at, in_memory, open};

/// How many children write at once, each in a folder of its own.
const SLOTS: usize = 2;

/// A small generator: the moments of killing vary, the same way in every run.
fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

/// Kills children over and over; gives back how many changes they had been told are done.
fn cycles(root: &Path, count: u64, mut seed: u64) -> Result<u64, String> {
    let mut acked = 0;
    for cycle in 0..count {
        let mut running: Vec<Child> =
            (0..SLOTS).map(|slot| Child::start(root, None, &Task::Endless { slot })).collect();
        running.iter_mut().for_each(Child::wait_until_ready);
        let mut last = Vec::new();
        for child in running {
            thread::sleep(Duration::from_micros(random(&mut seed) % 15_000));
            last.push(child.kill());
        }
        let store = open(root, None).map_err(|error| format!("cycle {cycle}: opening: {error}"))?;
        for (slot, last) in last.into_iter().enumerate() {
            check(&store, slot, last).map_err(|why| format!("cycle {cycle}, slot {slot}: {why}"))?;
            acked += last.map_or(0, |last| last + 1);
        }
        clear(&store).map_err(|error| format!("cycle {cycle}: clearing: {error}"))?;
    }
    Ok(acked)
}

/// Whether a slot holds every change up to the last one that was answered, or one more, and
/// every change whole.
fn check(store: &Store, slot: usize, last: Option<u64>) -> Result<(), String> {
    let read = |name: &str| match store.read(&at(&format!("{slot}/{name}"))) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == Kind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    };
    let log = read("log.md")?.unwrap_or_default();
    let done = log.lines().count() as u64;
    let counted: String = (0..done).map(|i| format!("{i}\n")).collect();
    if log != counted {
        return Err(format!("the log is damaged: {log:?}"));
    }
    let answered = last.map_or(0, |last| last + 1);
    if done != answered && done != answered + 1 {
        return Err(format!("{answered} changes were answered, {done} are there"));
    }
    // The other files of the same changes: all of a change, or nothing of it.
    let text = |i: u64| Some(format!("{i}\n"));
    let (mut there, mut moved) = (None, None);
    match done % 3 {
        1 => there = text(done - 1),
        2 => moved = text(done - 2),
        _ => {}
    }
    let wanted = [("last.md", done.checked_sub(1).and_then(text)), ("a.md", there), ("b.md", moved)];
    for (name, wanted) in wanted {
        let found = read(name)?;
        if found != wanted {
            return Err(format!("after {done} changes `{name}` is {found:?}, not {wanted:?}"));
        }
    }
    let stray = store.list(&Locator::root()).map_err(|error| error.to_string())?;
    let known = |at: &Locator| at.key().parse::<usize>().is_ok_and(|slot| slot < SLOTS);
    if stray.iter().all(known) { Ok(()) } else { Err(format!("stray files: {stray:?}")) }
}

/// Empties the store, for the next cycle.
fn clear(store: &Store) -> Result<()> {
    let mut all = store.backend().list(&Locator::root(), Depth::All)?;
    all.reverse();
    let edits = all.into_iter().map(|info| Edit::Delete { at: info.locator, expect: Expect::Any }).collect();
    store.apply(&Change { edits, note: Note::default() }).map(drop)
}

/// Runs cycles in several stores at once.
fn lanes(lanes: u64, count: u64) -> u64 {
    thread::scope(|scope| {
        let lane = |lane: u64| {
            let root = in_memory();
            cycles(root.path(), count, 0x9e37_79b9_7f4a_7c15 ^ (lane + 1)).expect("nothing is lost")
        };
        let running: Vec<_> = (0..lanes).map(|number| scope.spawn(move || lane(number))).collect();
        running.into_iter().map(|lane| lane.join().expect("no lane panics")).sum()
    })
}

/// A thousand times two processes are killed, and what they leave is checked.
#[test]
fn killed_processes_lose_nothing_that_was_answered() {
    let acked = lanes(3, 334);
    println!("{acked} changes were answered");
    assert!(acked >= 5_000, "only {acked} changes were answered, so little was tried");
}

#[test]
#[ignore = "takes half an hour"]
fn torture_killing() {
    let acked = lanes(4, 12_500);
    println!("{acked} changes were answered");
}
