//! Many real processes on one store: nothing is lost, nothing is doubled, nothing is torn, also
//! when they are killed and when an editor takes no lock.
//!
//! A child is this very test binary, told by a variable what to do. Tests that begin with
//! `torture_` do the same for longer.

mod child;
mod editors;
mod killing;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memgrove::backends::local::{Bug, Local, LocalOptions};
use memgrove::clock::SystemClock;
use memgrove::vfs::RealFs;
use memgrove::{Locator, Result, Store};
use tempfile::TempDir;

use child::{Child, Task};

fn at(key: &str) -> Locator {
    Locator::new(key).expect("a valid key")
}

/// Opens the store in a folder.
fn open(root: &Path, bug: Option<Bug>) -> Result<Store> {
    let tree = RealFs::open_root(root).expect("the folder exists");
    let mut options = LocalOptions::new(Arc::new(tree), Arc::new(SystemClock));
    options.bug = bug;
    Ok(Store::new(Local::open(options)?))
}

/// A folder on the machine's disk.
fn on_disk() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A folder in memory where the system has one, for what would wear out a disk.
fn in_memory() -> TempDir {
    let shared = PathBuf::from("/dev/shm");
    if shared.is_dir() { TempDir::new_in(shared).expect("a temporary folder") } else { on_disk() }
}

/// Lets several processes add lines to some files, each line by a read-modify-write of its own,
/// and tells what is wrong afterwards.
fn updates(root: &Path, bug: Option<Bug>, processes: usize, each: usize, files: usize) -> Result<(), String> {
    let running: Vec<Child> =
        (0..processes).map(|id| Child::start(root, bug, &Task::Update { id, each, files })).collect();
    for child in running {
        child.finish()?;
    }
    let store = open(root, None).map_err(|error| error.to_string())?;
    for file in 0..files {
        let text = store.read(&at(&format!("{file}.md"))).map_err(|error| error.to_string())?;
        let lines: Vec<&str> = text.lines().collect();
        let found: BTreeSet<&str> = lines.iter().copied().collect();
        let wanted: BTreeSet<String> = (0..processes)
            .flat_map(|id| (0..each).map(move |i| (id, i)))
            .filter(|(_, i)| i % files == file)
            .map(|(id, i)| child::line(id, i))
            .collect();
        let lost = wanted.iter().filter(|line| !found.contains(line.as_str())).count();
        let damaged = found.iter().filter(|line| !wanted.contains(**line)).count();
        let doubled = lines.len() - found.len();
        if lost + damaged + doubled > 0 {
            let all = wanted.len();
            return Err(format!("`{file}.md`: {lost} of {all} lost, {doubled} doubled, {damaged} damaged"));
        }
    }
    let findings = store.backend().check().map_err(|error| error.to_string())?;
    let bad: Vec<_> =
        findings.iter().filter(|finding| finding.level > memgrove::backend::Level::Info).collect();
    if bad.is_empty() { Ok(()) } else { Err(format!("the check found {bad:?}")) }
}

#[test]
fn updates_of_one_file_by_many_processes_lose_nothing() {
    let root = on_disk();
    assert_eq!(updates(root.path(), None, 8, 200, 1), Ok(()));
}

#[test]
fn updates_of_many_files_by_many_processes_lose_nothing() {
    let root = on_disk();
    assert_eq!(updates(root.path(), None, 8, 200, 25), Ok(()));
}

/// Proves that a check fails with a mistake on; a race may need several attempts to show.
fn is_noticed(attempts: usize, check: impl Fn() -> Result<(), String>) {
    assert!((0..attempts).any(|_| check().is_err()), "the check does not notice the mistake");
}

#[test]
fn a_lock_on_the_replaced_file_is_noticed() {
    is_noticed(5, || updates(on_disk().path(), Some(Bug::LockOnTarget), 8, 100, 1));
}

#[test]
fn a_comparison_without_the_lock_is_noticed() {
    is_noticed(5, || updates(on_disk().path(), Some(Bug::CompareWithoutLock), 8, 100, 1));
}

/// The same key from several processes at once takes effect once.
#[test]
fn a_key_from_many_processes_takes_effect_once() {
    let root = on_disk();
    let running: Vec<Child> =
        (0..6).map(|_| Child::start(root.path(), None, &Task::Keys { each: 40 })).collect();
    for child in running {
        child.finish().expect("every child succeeds");
    }
    let text = open(root.path(), None).and_then(|store| store.read(&at("log.md"))).expect("it is there");
    let lines: Vec<&str> = text.lines().collect();
    let distinct: BTreeSet<&str> = lines.iter().copied().collect();
    assert_eq!((lines.len(), distinct.len()), (40, 40));
}

#[test]
#[ignore = "takes minutes"]
fn torture_updates() {
    for files in [1, 7, 500] {
        let root = on_disk();
        assert_eq!(updates(root.path(), None, 32, 2_000, files), Ok(()), "{files} files");
    }
}
