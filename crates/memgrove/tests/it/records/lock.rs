//! The `.lock` of a folder that other programs write to as well.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use memgrove::clock::{Clock, ManualClock, SystemClock};
use memgrove::shapes::records::FolderLock;
use memgrove::vfs::{Open, RealFs, Vfs};

const WAIT: Duration = Duration::from_secs(10);
/// Long beside what taking a free lock takes.
const MOMENT: Duration = Duration::from_millis(150);

struct Folder {
    files: Arc<RealFs>,
    clock: Arc<ManualClock>,
    _root: tempfile::TempDir,
}

impl Folder {
    /// A folder whose `.lock` was just written and is not locked.
    fn left(words: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join(".lock"), words).unwrap();
        let files = Arc::new(RealFs::open_root(root.path()).unwrap());
        Folder { files, clock: Arc::new(ManualClock::new(SystemClock.now())), _root: root }
    }

    fn lock(&self) -> FolderLock {
        FolderLock::new(self.files.clone(), self.clock.clone(), std::process::id())
    }

    fn words(&self) -> String {
        String::from_utf8(self.files.open(".lock", Open::Read).unwrap().read_all().unwrap()).unwrap()
    }
}

#[test]
fn a_living_process_is_respected_for_thirty_seconds() {
    // A program that does not use flock.
    let folder = Folder::left(&format!("{} 2026-01-01T00:00:00Z\n", std::os::unix::process::parent_id()));
    let lock = folder.lock();
    thread::scope(|scope| {
        let taken = scope.spawn(|| lock.take().map(drop));
        folder.clock.advance_ms(29_000);
        thread::sleep(MOMENT);
        assert!(!taken.is_finished(), "29 seconds are not 30");
        folder.clock.advance_ms(2_000);
        taken.join().unwrap().unwrap();
    });
    assert_eq!(folder.words(), "free\n");
}

#[test]
fn a_process_that_is_gone_is_not_waited_for() {
    let mut child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    child.wait().unwrap();
    let folder = Folder::left(&format!("{} 2026-01-01T00:00:00Z\n", child.id()));
    let held = folder.lock().take().unwrap();
    let words = folder.words();
    assert!(words.starts_with(&format!("{} 20", std::process::id())) && words.ends_with("Z\n"), "{words:?}");
    drop(held);
    assert_eq!(folder.words(), "free\n");
}

/// The format's pseudocode waits with flock and does not look whether the name is still the same
/// file. If memgrove deleted the file, such a program would go on beside the next owner.
#[test]
fn who_waits_without_checking_has_the_lock_that_counts() {
    let folder = Folder::left("free\n");
    let held = folder.lock().take().unwrap();
    thread::scope(|scope| {
        let waiting = folder.files.open(".lock", Open::WriteOrCreate).unwrap();
        let had = scope.spawn(move || {
            waiting.lock(WAIT).unwrap();
            waiting
        });
        thread::sleep(MOMENT);
        assert!(!had.is_finished(), "memgrove holds it");
        drop(held);
        let had = had.join().unwrap();
        assert_eq!(had.stat().unwrap().inode, folder.files.stat(".lock").unwrap().inode);
        let next = scope.spawn(|| folder.lock().take().map(drop));
        thread::sleep(MOMENT);
        assert!(!next.is_finished(), "and memgrove waits for it in turn");
        had.unlock().unwrap();
        next.join().unwrap().unwrap();
    });
}

#[test]
fn a_file_that_its_owner_deletes_is_not_taken_for_the_lock() {
    let folder = Folder::left("");
    let owned = folder.files.open(".lock", Open::WriteOrCreate).unwrap();
    owned.lock(WAIT).unwrap();
    let lock = folder.lock();
    thread::scope(|scope| {
        let taken = scope.spawn(|| lock.take());
        thread::sleep(MOMENT);
        // As the format's pseudocode does: let go, then delete.
        owned.unlock().unwrap();
        folder.files.remove_file(".lock").unwrap();
        let held = taken.join().unwrap().unwrap();
        assert!(folder.words().starts_with(&std::process::id().to_string()), "{:?}", folder.words());
        drop(held);
    });
}
