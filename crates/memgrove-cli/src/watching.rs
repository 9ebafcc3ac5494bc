//! How a server notices that files of this machine have changed: the kernel tells it.
//!
//! When a writer learns that its write is done, the event is queued already: the kernel queues it before it
//! answers. Network folders are not watched, because other machines' kernels tell us nothing.

use std::collections::{HashMap, HashSet};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use memgrove::Locator;
use memgrove::index::{Noticed, Watch};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// Everything that can change what a listing shows.
const EVENTS: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW);
/// File systems that only this machine writes to: ext, xfs, btrfs, f2fs, zfs, bcachefs, tmpfs, overlay.
const LOCAL_SYSTEMS: [u64; 8] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x2fc1_2fc1, 0xca45_1a4e, 0x0102_1994, 0x794c_7630];
/// Room for a few hundred events at a time.
const BUFFER_BYTES: usize = 16 * 1024;

/// Watches the folders beneath one folder.
pub(crate) struct Folders {
    root: PathBuf,
    watched: Mutex<Watched>,
}

struct Watched {
    queue: OwnedFd,
    /// The folders by the numbers that the kernel gave them.
    numbers: HashMap<i32, Locator>,
    folders: HashSet<Locator>,
    /// Whether something cannot be watched, so that listings are needed from now on.
    blind: bool,
}

impl Folders {
    /// Watches nothing yet; `None` where the system has no events to give.
    pub(crate) fn new(root: &Path) -> Option<Self> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let watched = Watched { queue, numbers: HashMap::new(), folders: HashSet::new(), blind: false };
        Some(Folders { root: root.to_owned(), watched: Mutex::new(watched) })
    }
}

impl Watched {
    /// Watches a folder. If the kernel has no room for more, we are blind.
    fn watch(&mut self, root: &Path, folder: &Locator) {
        let path = root.join(folder.key());
        let local =
            rustix::fs::statfs(&path).is_ok_and(|found| LOCAL_SYSTEMS.contains(&(found.f_type as u64)));
        match inotify::add_watch(&self.queue, &path, EVENTS) {
            Ok(number) if local => {
                self.numbers.insert(number, folder.clone());
                self.folders.insert(folder.clone());
            }
            // It was removed after it was listed, and its parent has an event for that.
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            _ => self.blind = true,
        }
    }

    /// Takes every queued event. Returns the files that they name, or `None` if more than files changed.
    fn take(&mut self, root: &Path) -> Result<Option<Vec<Locator>>, Errno> {
        let (mut files, mut made, mut more) = (HashSet::new(), Vec::new(), false);
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut events = inotify::Reader::new(&self.queue, &mut buffer);
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::WOULDBLOCK) => break,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            };
            let (number, events) = (event.wd(), event.events());
            let folder = self.numbers.get(&number);
            let name = event.file_name().and_then(|name| name.to_str().ok());
            let named = folder.zip(name).and_then(|(folder, name)| folder.child(name).ok());
            match named {
                Some(file) if !events.contains(ReadFlags::ISDIR) => drop(files.insert(file)),
                Some(folder) if events.contains(ReadFlags::CREATE) => made.push(folder),
                // The folder was empty by then: its files had events of their own.
                Some(_) if events.contains(ReadFlags::DELETE) => {}
                None if events.contains(ReadFlags::DELETE_SELF) => {}
                None if events.contains(ReadFlags::IGNORED) && folder.is_none() => {}
                _ => more = true,
            }
            // The root folder was replaced or removed.
            let left = ReadFlags::MOVE_SELF | ReadFlags::DELETE_SELF | ReadFlags::UNMOUNT;
            if folder.is_some_and(Locator::is_root) && events.intersects(left) {
                self.blind = true;
            }
            if events.contains(ReadFlags::DELETE_SELF)
                && let Some(gone) = self.numbers.remove(&number)
            {
                self.folders.remove(&gone);
            }
        }
        more |= !made.into_iter().all(|folder| self.enter(root, &folder, &mut files));
        if more {
            // Folders came, went or moved, so their names must be learnt again.
            self.folders.clear();
        }
        Ok((!more).then(|| files.into_iter().collect()))
    }

    /// Watches a new folder and everything beneath it. Collects the files that came before the watch; later
    /// ones have events. Returns `false` if it cannot be read.
    fn enter(&mut self, root: &Path, folder: &Locator, files: &mut HashSet<Locator>) -> bool {
        self.watch(root, folder);
        let entries = match std::fs::read_dir(root.join(folder.key())) {
            Ok(entries) => entries,
            Err(error) => return error.kind() == io::ErrorKind::NotFound,
        };
        for entry in entries {
            let Ok(entry) = entry else { return false };
            let name = entry.file_name();
            let Some(at) = name.to_str().and_then(|name| folder.child(name).ok()) else { continue };
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_folder {
                files.insert(at);
            } else if !self.enter(root, &at, files) {
                return false;
            }
        }
        true
    }
}

impl Watch for Folders {
    fn noticed(&self) -> Noticed {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        match watched.take(&self.root) {
            _ if watched.blind => Noticed::Anything,
            Ok(Some(files)) if files.is_empty() => Noticed::Nothing,
            Ok(Some(files)) => Noticed::Files(files),
            Ok(None) | Err(_) => Noticed::Anything,
        }
    }

    fn attend(&self, folders: &[Locator]) -> bool {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<&Locator> = folders.iter().filter(|folder| !watched.folders.contains(*folder)).collect();
        for folder in &new {
            if !watched.blind {
                watched.watch(&self.root, folder);
            }
        }
        new.is_empty() && !watched.blind
    }
}

// These tests edit files behind the program's back.
#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests {
    use super::*;

    fn at(key: &str) -> Locator {
        Locator::new(key).expect("a valid key")
    }

    #[test]
    fn what_happens_is_noticed_once() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("a")).expect("a folder");
        let watch = Folders::new(root.path()).expect("this system has events");
        let folders = [Locator::root(), at("a")];
        assert!(!watch.attend(&folders), "they are new");
        assert!(watch.attend(&folders));
        assert_eq!(watch.noticed(), Noticed::Nothing);
        std::fs::write(root.path().join("a/x.md"), "one").expect("written");
        assert_eq!(watch.noticed(), Noticed::Files(vec![at("a/x.md")]));
        assert_eq!(watch.noticed(), Noticed::Nothing);
        std::fs::rename(root.path().join("a/x.md"), root.path().join("x.md")).expect("moved");
        let Noticed::Files(mut moved) = watch.noticed() else { panic!("files were moved") };
        moved.sort();
        assert_eq!(moved, [at("a/x.md"), at("x.md")]);
    }

    #[test]
    fn folders_that_come_and_go_are_entered_and_left() {
        let root = tempfile::tempdir().expect("a folder");
        let watch = Folders::new(root.path()).expect("this system has events");
        watch.attend(&[Locator::root()]);
        std::fs::create_dir_all(root.path().join("a/b")).expect("folders");
        std::fs::write(root.path().join("a/b/early.md"), "one").expect("written");
        let noticed = || match watch.noticed() {
            Noticed::Files(mut files) => {
                files.sort();
                files
            }
            Noticed::Nothing => Vec::new(),
            Noticed::Anything => panic!("only folders were made"),
        };
        assert_eq!(noticed(), [at("a/b/early.md")], "made before it was watched");
        std::fs::write(root.path().join("a/b/late.md"), "one").expect("written");
        assert_eq!(noticed(), [at("a/b/late.md")]);
        assert!(watch.attend(&[Locator::root(), at("a"), at("a/b")]), "they are watched");
        std::fs::remove_dir_all(root.path().join("a")).expect("removed");
        assert_eq!(noticed(), [at("a/b/early.md"), at("a/b/late.md")]);
        std::fs::create_dir_all(root.path().join("a")).expect("a folder");
        std::fs::write(root.path().join("a/again.md"), "one").expect("written");
        assert_eq!(noticed(), [at("a/again.md")]);
        std::fs::write(root.path().join("a/later.md"), "one").expect("written");
        assert_eq!(noticed(), [at("a/later.md")]);
    }

    #[test]
    fn folders_that_change_are_learnt_again() {
        let root = tempfile::tempdir().expect("a folder");
        for name in ["a", "b"] {
            std::fs::create_dir(root.path().join(name)).expect("a folder");
        }
        let watch = Folders::new(root.path()).expect("this system has events");
        let folders = [Locator::root(), at("a"), at("b")];
        watch.attend(&folders);
        std::fs::rename(root.path().join("a"), root.path().join("c")).expect("moved");
        std::fs::rename(root.path().join("b"), root.path().join("a")).expect("moved");
        assert_eq!(watch.noticed(), Noticed::Anything);
        let folders = [Locator::root(), at("a"), at("c")];
        assert!(!watch.attend(&folders));
        watch.noticed();
        assert!(watch.attend(&folders));
        std::fs::write(root.path().join("a/x.md"), "one").expect("written");
        assert_eq!(watch.noticed(), Noticed::Files(vec![at("a/x.md")]));
        std::fs::remove_dir_all(root.path()).expect("removed");
        assert_eq!(watch.noticed(), Noticed::Anything);
        watch.attend(&[Locator::root()]);
        assert_eq!(watch.noticed(), Noticed::Anything, "what we called the root is gone");
    }
}
