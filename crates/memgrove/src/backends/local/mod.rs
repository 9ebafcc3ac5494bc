//! The default storage: plain files in a folder, committed through a journal.
//!
//! One write, from the call to the answer:
//!
//! 1. Under the store's lock: every expectation is checked, one record with all edits is appended to the
//!    journal, and while it is on its way to the disk the new content is written to temporary files.
//! 2. Without the lock: the journal is synced, by whoever has the turn. This is the only wait for the
//!    disk, and several processes share it.
//! 3. Under the lock again: the temporary files take their places by rename, for all who wait.
//!
//! So no file changes before its record is durable, a change of many files is atomic, and the
//! journal is the history. Placed files are synced later, by a checkpoint; until then a power cut
//! may tear them, and recovery restores them from the journal.

mod bug;
mod checkpoint;
mod commit;
mod derived;
mod displaced;
mod doctor;
mod history;
mod journal;
mod mark;
mod outcome;
mod pending;
mod place;
mod plan;
mod prepare;
mod prune;
mod record;
mod recover;
mod redact;
mod restore;
mod scan;
mod search;
mod take_back;
mod temps;
mod tree;
mod turn;
mod twins;
mod view;

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

pub use bug::Bug;
use bug::Seeded;
use checkpoint::{Background, Dirty};
use displaced::Displaced;
use history::Remembered;
pub use journal::FOLDER as JOURNAL;
use journal::Journal;
use mark::MarkFile;
pub use temps::PREFIX as TEMPORARY;
use tree::{absent_or, info_of, meant, not_regular};

use crate::backend::{
    Applied, Backend, Capabilities, Change, ConflictStrategy, Content, Depth, FileKind, Finding,
    HistoryQuery, Info, Keep, Moment, Past, Pruned, Pruning, Version,
};
use crate::clock::Clock;
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::registry::{DEFAULT_PROTOCOL, OpenRequest, Registration};
use crate::vfs::{Open, RealFs, Vfs, VfsFile};

/// The protocol name.
pub const PROTOCOL: &str = DEFAULT_PROTOCOL;

const CAPABILITIES: Capabilities =
    Capabilities { concurrent_writers: true, conflict_files: false, encryption: false, sync: false };

pub(crate) const REGISTRATION: Registration = Registration {
    open: open_request,
    capabilities: CAPABILITIES,
    about: "plain files in a folder of this machine, safe under many processes; the default",
};

const UNSURE: &str = "the change may or may not survive; open the store again to see";
/// The file that is locked while a store is changed.
pub const LOCK: &str = ".lock";
/// How long a change waits for the lock: another change, of ten thousand files, takes seconds.
const LOCK_WAIT: Duration = Duration::from_secs(30);
/// How often a read is repeated beside appends in place before it takes the lock.
const READ_ATTEMPTS: u32 = 50;

/// What a local backend is opened with.
pub struct LocalOptions {
    /// The tree of files.
    pub tree: Arc<dyn Vfs>,
    /// Where `.journal` and `.lock` lie; in the tree itself if `None`.
    pub state: Option<Arc<dyn Vfs>>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Whether a thread of its own makes checkpoints, about a second after a change.
    pub background: bool,
    /// How many bytes of the journal are filled ahead, so that a sync writes no metadata.
    pub reserve_bytes: u64,
    /// Whether new content is synced before it takes its place, so that nothing torn can be seen
    /// there even after a power cut: for trees that something else replicates.
    pub sync_files: bool,
    /// The size from which a checkpoint begins a new segment of the journal.
    pub segment_bytes: u64,
    /// A deliberate mistake.
    #[cfg(feature = "seeded-bugs")]
    pub bug: Option<Bug>,
}

impl LocalOptions {
    /// The usual options for a tree.
    pub fn new(tree: Arc<dyn Vfs>, clock: Arc<dyn Clock>) -> Self {
        LocalOptions {
            tree,
            state: None,
            clock,
            background: true,
            reserve_bytes: 128 * 1024,
            sync_files: false,
            segment_bytes: 1024 * 1024,
            #[cfg(feature = "seeded-bugs")]
            bug: None,
        }
    }
}

/// Plain files in a folder, committed through a journal.
pub struct Local {
    core: Arc<Core>,
    background: Background,
}

/// What the backend and its background thread share.
struct Core {
    tree: Arc<dyn Vfs>,
    state: Arc<dyn Vfs>,
    /// Whether the journal lies in the tree.
    inside: bool,
    clock: Arc<dyn Clock>,
    reserve_bytes: u64,
    sync_files: bool,
    segment_bytes: u64,
    seeded: Seeded,
    inner: Mutex<Inner>,
    /// Derived files of this process that are not synced yet.
    derived: Mutex<Dirty>,
    /// The machine's present run; empty if the system does not tell.
    boot: String,
    turn: turn::OwnTurn,
    /// Held while the journal is synced.
    syncing: Mutex<()>,
    /// The count of appends in place, for readers, who take no lock.
    appends: OnceLock<MarkFile>,
    /// The newest part of the history, as it was last read.
    remembered: Mutex<Remembered>,
    /// Whether too many displaced files are being watched.
    crowded: AtomicBool,
    /// Why nothing may be written any more.
    failed: OnceLock<String>,
}

/// What is only touched with the store's lock in hand.
#[derive(Default)]
struct Inner {
    lock: Option<Box<dyn VfsFile>>,
    journal: Option<Journal>,
    displaced: Vec<Displaced>,
}

/// The store's lock, held: against other threads and against other processes.
struct Locked<'a> {
    core: &'a Core,
    inner: MutexGuard<'a, Inner>,
    /// The handle that holds the lock, if it is not the usual one.
    other: Option<Box<dyn VfsFile>>,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if let Some(lock) = self.other.as_ref().or(self.inner.lock.as_ref()) {
            // If unlocking fails, closing the handle releases it.
            if lock.unlock().is_err() {
                self.inner.lock = None;
            }
        }
        self.core.tidy(&mut self.inner);
    }
}

impl Local {
    /// Opens a store in a tree, and recovers what a crash left undone.
    ///
    /// # Errors
    /// `Denied` or `Io` when the tree cannot be read. A recovery that cannot write leaves the store
    /// readable, and [`Backend::check`] says so.
    pub fn open(options: LocalOptions) -> Result<Self> {
        let inside = options.state.is_none();
        let core = Arc::new(Core {
            state: options.state.unwrap_or_else(|| Arc::clone(&options.tree)),
            inside,
            clock: options.clock,
            reserve_bytes: options.reserve_bytes,
            sync_files: options.sync_files,
            segment_bytes: options.segment_bytes,
            seeded: Seeded {
                #[cfg(feature = "seeded-bugs")]
                bug: options.bug,
            },
            inner: Mutex::default(),
            derived: Mutex::default(),
            boot: options.tree.boot_id().unwrap_or_default(),
            turn: turn::OwnTurn::default(),
            syncing: Mutex::default(),
            appends: OnceLock::new(),
            remembered: Mutex::default(),
            crowded: AtomicBool::new(false),
            failed: OnceLock::new(),
            tree: options.tree,
        });
        core.recover_if_needed()?;
        let local = Local { background: Background::new(&core, options.background), core };
        if local.core.is_in_use() {
            local.background.wake();
        }
        Ok(local)
    }

    /// Makes durable, in place, every file that has been changed so far.
    ///
    /// # Errors
    /// `Io` when a file cannot be synced; the journal then still holds its content.
    pub fn checkpoint(&self) -> Result<()> {
        self.core.checkpoint()
    }
}

fn open_request(request: &OpenRequest) -> Result<Arc<dyn Backend>> {
    let root = |folder: &str| {
        RealFs::create_root(folder.as_ref())
            .map(|tree| Arc::new(tree) as Arc<dyn Vfs>)
            .map_err(|error| Error::from_io(error, folder))
    };
    let mut options = LocalOptions::new(root(&request.location)?, Arc::clone(&request.clock));
    options.state = request.state.as_deref().map(root).transpose()?;
    Ok(Arc::new(Local::open(options)?))
}

impl Backend for Local {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        ConflictStrategy::None
    }

    fn read(&self, at: &Locator) -> Result<Content> {
        let bytes = self.core.read_whole(at)?;
        let version = Version::of(&bytes);
        Ok(Content { bytes, version })
    }

    fn info(&self, at: &Locator) -> Result<Info> {
        let core = &self.core;
        core.check_reserved(at)?;
        let stat = core.tree.stat(&core.spelled(at)).map_err(|error| absent_or(error, at))?;
        let mut info = info_of(at.clone(), &stat);
        if info.kind == FileKind::File {
            let bytes = core.read_whole(at)?;
            info.size = bytes.len() as u64;
            info.version = Some(Version::of(&bytes));
        }
        Ok(info)
    }

    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>> {
        let mut found = Vec::new();
        self.core.list_into(under, depth, &mut found)?;
        found.sort_unstable_by(|a, b| a.locator.cmp(&b.locator));
        Ok(found)
    }

    fn mkdir(&self, at: &Locator) -> Result<()> {
        self.core.make_folder(at)
    }

    fn apply(&self, change: &Change) -> Result<Applied> {
        if change.note.derived {
            return self.core.derive(change);
        }
        match self.core.commit(change) {
            Err(error) if error.kind() != Kind::Io => Err(error),
            // Also after an `Io` error: the change may be in the journal, and a checkpoint then places it.
            done => {
                self.background.wake();
                done
            }
        }
    }

    fn applied(&self, key: &str) -> Result<Option<Applied>> {
        self.core.applied(key)
    }

    fn history(&self, query: &HistoryQuery) -> Result<Vec<Past>> {
        self.core.history(query)
    }

    fn read_past(&self, at: &Locator, moment: &Moment) -> Result<Option<Vec<u8>>> {
        self.core.read_past(at, moment)
    }

    fn redact(&self, at: &Locator, moment: &Moment) -> Result<()> {
        self.core.redact(at, moment)
    }

    fn redact_holding(&self, under: &Locator, holds: &dyn Fn(&[u8]) -> bool) -> Result<usize> {
        self.core.redact_holding(under, holds)
    }

    fn prune(&self, keep: Keep, how: Pruning) -> Result<Pruned> {
        self.core.prune(keep, how)
    }

    fn check(&self) -> Result<Vec<Finding>> {
        self.core.check()
    }
}

impl Core {
    /// Takes the store's lock: first against other threads, then against other processes.
    fn lock(&self) -> Result<Locked<'_>> {
        let mut inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        loop {
            if inner.lock.is_none() {
                let file = self.state.open(LOCK, Open::WriteOrCreate);
                let file = file.map_err(|error| Error::from_io(error, LOCK))?;
                // Waiters sleep on the first word of the file, so it must have one.
                if file.stat().is_ok_and(|stat| stat.size == 0) {
                    let _ = file.write_at(0, b"lock");
                }
                inner.lock = Some(file);
            }
            let file = inner.lock.as_ref().expect("it was just opened");
            file.lock(LOCK_WAIT).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => {
                    let seconds = LOCK_WAIT.as_secs();
                    let held = format!("another process has held the store's lock for {seconds} seconds");
                    Error::new(Kind::Busy, held)
                        .hint(format!("try again; if this persists, check which process holds `{LOCK}`"))
                }
                _ => Error::from_io(error, LOCK),
            })?;
            // Someone may have deleted the lock file: then others lock its successor, not ours.
            let ours = file.inode().ok();
            if ours.is_some() && ours == self.state.stat(LOCK).map(|stat| stat.inode).ok() {
                return Ok(Locked { core: self, inner, other: None });
            }
            inner.lock = None;
        }
    }

    /// Refuses to write after a sync failed: what the disk holds is unknown until it is read again.
    fn check_healthy(&self) -> Result<()> {
        match self.failed.get() {
            None => Ok(()),
            Some(why) => Err(Error::new(Kind::Io, format!("the store stopped accepting changes: {why}"))
                .hint("check the disk, then open the store again: what was answered is in the journal")),
        }
    }

    /// Refuses to answer a change after a failed sync, which may have been the sync of this very change.
    fn check_sure(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |why| Err(Error::new(Kind::Io, why.clone()).hint(UNSURE)))
    }

    fn fail(&self, error: io::Error, what: &str) -> Error {
        self.fail_with(Error::from_io(error, what), what)
    }

    /// As [`Core::fail`], but returns an error that the caller already has.
    fn fail_with(&self, error: Error, what: &str) -> Error {
        let _ = self.failed.set(format!("{what} could not be synced ({error})"));
        error.hint(UNSURE)
    }

    /// Turns an error that came after a change was durable in the journal into one that stops all writing.
    fn unplaced(&self, error: &Error) -> Error {
        let what = format!("a change is in the journal but not in its place ({error})");
        let _ = self.failed.set(what.clone());
        Error::new(Kind::Io, what).hint(UNSURE)
    }
}
