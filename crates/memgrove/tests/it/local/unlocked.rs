//! What takes long on some disks is done without the store's lock, so that others can go on.

use std::time::Duration;

use memgrove::vfs::{Open, Vfs};

use super::beside::{did, on, write};
use super::*;

const DELAY: Duration = Duration::from_millis(150);
const FILES: usize = 8;

/// Checks that the store's lock is mostly free while something is done.
fn leaves_the_lock(disk: &SimFs, work: impl FnOnce() + Send) {
    let lock = disk.open(".lock", Open::WriteOrCreate).unwrap();
    let (mut free, mut held) = (0, 0);
    std::thread::scope(|scope| {
        let working = scope.spawn(work);
        while !working.is_finished() {
            match lock.lock(Duration::ZERO) {
                Ok(()) => {
                    lock.unlock().unwrap();
                    free += 1;
                }
                Err(_) => held += 1,
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        working.join().unwrap();
    });
    assert!(free > held && free > 10, "free {free} times, held {held} times");
}

fn files(round: usize) -> Vec<Edit> {
    (0..FILES).map(|file| write(&format!("{file}.md"), &format!("{round} of {file}"))).collect()
}

#[test]
fn what_was_displaced_is_closed() {
    let disk = Arc::new(SimFs::new());
    let slow = Arc::new(FaultFs::new(disk.clone()).with_close_delay(DELAY));
    let clock = Arc::new(ManualClock::default());
    let mut options = on(&slow);
    options.clock = clock.clone();
    let local = Local::open(options).unwrap();
    for round in 0..2 {
        did(&local, files(round)).unwrap();
    }
    clock.advance_ms(10_000);
    leaves_the_lock(&disk, || local.checkpoint().unwrap());
    did(&local, files(2)).unwrap();
    leaves_the_lock(&disk, || drop(local));
}

#[test]
fn what_was_derived_is_synced() {
    let disk = Arc::new(SimFs::new());
    let slow = Arc::new(FaultFs::new(disk.clone()).with_sync_delay(DELAY));
    let local = Local::open(on(&slow)).unwrap();
    did(&local, [write("a.md", "one")]).unwrap();
    let note = Note { derived: true, ..Note::default() };
    local.apply(&Change { edits: files(0), note }).unwrap();
    leaves_the_lock(&disk, || drop(did(&local, [write("a.md", "two")]).unwrap()));
}
