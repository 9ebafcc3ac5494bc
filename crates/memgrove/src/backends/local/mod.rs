//! The default storage: plain files in a folder, committed through a journal.
//!
//! One write, from the call to the answer:
//!
//! 1. Under the store's lock: every expectation is checked, the new content is written to
//!    temporary files, and one record with all edits is appended to the journal.
//! 2. Without the lock: the journal is synced. This is the only wait for the disk, and several
//!    processes share it.
//! 3. Under the lock again: the temporary files take their places by rename, whoever's turn it is.
//!
//! So no file changes before its record is durable, a change of many files is atomic, and the
//! journal is the history. Placed files are synced later, by a checkpoint; until then a power cut
//! may tear them, and recovery restores them from the journal.

mod bug;
mod checkpoint;
mod commit;
mod doctor;
mod history;
mod journal;
mod mark;
mod place;
mod plan;
mod record;
mod recover;

use std::borrow::Cow;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use unicode_normalization::UnicodeNormalization;

pub use bug::Bug;
use bug::Seeded;
use checkpoint::Background;
use journal::Journal;
use mark::MarkFile;
use place::Displaced;

use crate::backend::{
    Applied, Backend, Capabilities, Change, ConflictStrategy, Content, Depth, FileKind, Finding,
    HistoryQuery, Info, Moment, Past, Version, exists, is_file, is_folder, not_found,
};
use crate::clock::{Clock, Timestamp};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::registry::{OpenRequest, Registration};
use crate::vfs::{Open, RealFs, Stat, Vfs, VfsFile};

/// The protocol name.
pub const PROTOCOL: &str = "device-local";

const CAPABILITIES: Capabilities =
    Capabilities { concurrent_writers: true, conflict_files: false, encryption: false, sync: false };

pub(crate) const REGISTRATION: Registration = Registration {
    open: open_request,
    capabilities: CAPABILITIES,
    about: "plain files in a folder of this machine, safe under many processes; the default",
};

const UNSURE: &str = "the change may or may not survive; open the store again to see";
const LOCK: &str = ".lock";
/// What temporary files are called when the journal lies outside the tree.
const TEMP_PREFIX: &str = ".mtmp-";
const LOCK_WAIT: Duration = Duration::from_secs(5);
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
    segment_bytes: u64,
    seeded: Seeded,
    inner: Mutex<Inner>,
    /// The machine's present run; empty if the system does not tell.
    boot: String,
    /// One sync at a time: a thread that waits finds its record synced by the one before.
    sync_turn: Mutex<()>,
    /// The count of appends in place, for readers, who take no lock.
    appends: OnceLock<MarkFile>,
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
            segment_bytes: options.segment_bytes,
            seeded: Seeded {
                #[cfg(feature = "seeded-bugs")]
                bug: options.bug,
            },
            inner: Mutex::default(),
            boot: options.tree.boot_id().unwrap_or_default(),
            sync_turn: Mutex::default(),
            appends: OnceLock::new(),
            failed: OnceLock::new(),
            tree: options.tree,
        });
        core.recover_if_needed()?;
        Ok(Local { background: Background::new(&core, options.background), core })
    }

    /// Makes durable, in place, every file that has been changed so far.
    ///
    /// # Errors
    /// `Io` when a file cannot be synced: the journal then keeps what is not.
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
        let applied = self.core.commit(change)?;
        self.background.wake();
        Ok(applied)
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

    fn check(&self) -> Result<Vec<Finding>> {
        self.core.check()
    }
}

fn info_of(locator: Locator, stat: &Stat) -> Info {
    let seconds = i64::try_from(stat.mtime_ns.div_euclid(1_000_000_000)).unwrap_or(0);
    let nanoseconds = i32::try_from(stat.mtime_ns.rem_euclid(1_000_000_000)).unwrap_or(0);
    let mut hasher = blake3::Hasher::new();
    for part in [stat.size.into(), stat.mtime_ns, stat.inode.into()] {
        hasher.update(&part.to_le_bytes());
    }
    let stamp: [u8; 8] = hasher.finalize().as_bytes()[..8].try_into().expect("eight bytes");
    Info {
        locator,
        kind: stat.kind,
        size: if stat.kind == FileKind::File { stat.size } else { 0 },
        mtime: Timestamp::new(seconds, nanoseconds).unwrap_or(Timestamp::UNIX_EPOCH),
        stamp: u64::from_le_bytes(stamp),
        version: None,
    }
}

/// What an error of the system means for a place.
fn meant(error: io::Error, at: &Locator) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => not_found(at),
        io::ErrorKind::AlreadyExists => exists(at),
        io::ErrorKind::IsADirectory => is_folder(at),
        io::ErrorKind::NotADirectory => is_file(&at.parent().unwrap_or_default()),
        io::ErrorKind::InvalidInput => not_regular(at),
        _ => Error::from_io(error, at),
    }
}

/// As [`meant`], but beneath a file there is simply nothing.
fn absent_or(error: io::Error, at: &Locator) -> Error {
    match error.kind() {
        io::ErrorKind::NotADirectory => not_found(at),
        _ => meant(error, at),
    }
}

fn not_regular(at: &Locator) -> Error {
    Error::new(Kind::Invalid, format!("`{at}` is, or lies behind, a link or a special file"))
        .code(code::NOT_REGULAR)
        .hint("memgrove neither follows nor changes links, pipes and devices: use a regular file")
}

impl Core {
    /// Refuses the backend's own files.
    fn check_reserved(&self, at: &Locator) -> Result<()> {
        let first = at.parts().next().unwrap_or("");
        if self.is_private(first) {
            return Err(Error::new(Kind::Invalid, format!("`{at}` is reserved for the store itself"))
                .code(code::INVALID_PATH)
                .hint("choose another name"));
        }
        Ok(())
    }

    /// Whether a name at the root of the tree is the backend's own.
    fn is_private(&self, name: &str) -> bool {
        let folded = crate::locator::collision_key(name);
        folded.starts_with(TEMP_PREFIX) || (self.inside && (folded == journal::FOLDER || folded == LOCK))
    }

    /// The name of a place as the disk spells it: a name that someone else made may be in another
    /// Unicode form.
    fn spelled<'a>(&self, at: &'a Locator) -> Cow<'a, str> {
        if at.key().is_ascii() || self.tree.stat(at.key()).is_ok() {
            return Cow::Borrowed(at.key());
        }
        let mut name = String::new();
        for part in at.parts() {
            let names = self.tree.names(&name, usize::MAX).unwrap_or_default();
            let twin = names
                .iter()
                .find(|there| *there == part)
                .or_else(|| names.iter().find(|there| there.nfc().eq(part.chars())));
            if !name.is_empty() {
                name.push('/');
            }
            name.push_str(twin.map_or(part, String::as_str));
        }
        Cow::Owned(name)
    }

    fn read_file(&self, at: &Locator) -> Result<Vec<u8>> {
        let file = self.tree.open(&self.spelled(at), Open::Read).map_err(|error| absent_or(error, at))?;
        file.read_all().map_err(|error| meant(error, at))
    }

    /// Reads a file whole, even beside an append in place (promise P14).
    fn read_whole(&self, at: &Locator) -> Result<Vec<u8>> {
        self.check_reserved(at)?;
        if at.is_root() {
            return Err(is_folder(at));
        }
        for _ in 0..READ_ATTEMPTS {
            let before = self.appends_count();
            if before.is_none_or(|count| count % 2 == 0) {
                let bytes = self.read_file(at)?;
                if before == self.appends_count() {
                    return Ok(bytes);
                }
            } else {
                std::thread::yield_now();
            }
        }
        // Appends come thick and fast, or one was cut off by a crash: wait for our turn.
        let _locked = self.lock_recovered()?;
        self.read_file(at)
    }

    fn appends_count(&self) -> Option<u64> {
        if self.appends.get().is_none() {
            let file = MarkFile::open(&*self.state, Open::Read).ok()?;
            let _ = self.appends.set(file);
        }
        self.appends.get()?.appends().ok()
    }

    fn list_into(&self, under: &Locator, depth: Depth, found: &mut Vec<Info>) -> Result<()> {
        self.check_reserved(under)?;
        let entries = match self.tree.read_dir(&self.spelled(under)) {
            Ok(entries) => entries,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidInput
                ) =>
            {
                return Ok(());
            }
            Err(error) => return Err(meant(error, under)),
        };
        for (name, stat) in entries {
            // Names that no locator can spell are reported by the check, and not listed.
            let Ok(name) = name else { continue };
            if under.is_root() && self.is_private(&name) {
                continue;
            }
            let Ok(at) = under.child(&name) else { continue };
            let folder = stat.kind == FileKind::Folder;
            found.push(info_of(at.clone(), &stat));
            if folder && depth == Depth::All {
                self.list_into(&at, depth, found)?;
            }
        }
        Ok(())
    }

    fn make_folder(&self, at: &Locator) -> Result<()> {
        self.check_reserved(at)?;
        let _locked = self.lock()?;
        match self.tree.stat(&self.spelled(at)) {
            Ok(stat) if stat.kind == FileKind::Folder => return Ok(()),
            Ok(_) => return Err(exists(at)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(meant(error, at)),
        }
        plan::View::new(self, None).check_new(at)?;
        self.make_parents(&at.child("x")?).map_err(|error| meant(error, at))?;
        // Folders are not in the journal: sync them now, and what they are in.
        for folder in std::iter::once(at.clone()).chain(at.ancestors()).chain([Locator::root()]) {
            self.tree.sync_dir(folder.key()).map_err(|error| meant(error, at))?;
        }
        Ok(())
    }

    /// Makes the missing folders above a place, and gives back which, outermost first.
    fn make_parents(&self, at: &Locator) -> io::Result<Vec<String>> {
        let Some(parent) = at.parent().filter(|parent| !parent.is_root()) else { return Ok(Vec::new()) };
        let name = self.spelled(&parent);
        match self.tree.stat(&name) {
            Ok(stat) if stat.kind == FileKind::Folder => Ok(Vec::new()),
            Ok(stat) if stat.kind == FileKind::File => Err(io::ErrorKind::NotADirectory.into()),
            Ok(_) => Err(io::ErrorKind::InvalidInput.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut made = self.make_parents(&parent)?;
                match self.tree.mkdir(&name) {
                    Ok(()) => made.push(name.into_owned()),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => {
                        self.remove_folders(&made);
                        return Err(error);
                    }
                }
                Ok(made)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes back folders that were made for a change that did not happen.
    fn remove_folders(&self, made: &[String]) {
        for folder in made.iter().rev() {
            // One that is not empty any more has become someone else's.
            let _ = self.tree.remove_dir(folder);
        }
    }

    /// Takes the store's lock: first against other threads, then against other processes.
    fn lock(&self) -> Result<Locked<'_>> {
        let mut inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        loop {
            if inner.lock.is_none() {
                let file = self.state.open(LOCK, Open::WriteOrCreate);
                inner.lock = Some(file.map_err(|error| Error::from_io(error, LOCK))?);
            }
            let file = inner.lock.as_ref().expect("it was just opened");
            file.lock(LOCK_WAIT).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => {
                    Error::new(Kind::Busy, "another process has held the store's lock for five seconds")
                        .hint("try again")
                }
                _ => Error::from_io(error, LOCK),
            })?;
            // Someone may have deleted the lock file: then others lock its successor, not ours.
            let ours = file.stat().map(|stat| stat.inode).ok();
            if ours.is_some() && ours == self.state.stat(LOCK).map(|stat| stat.inode).ok() {
                return Ok(Locked { inner, other: None });
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

    fn fail(&self, error: io::Error, what: &str) -> Error {
        let _ = self.failed.set(format!("{what} could not be synced ({error})"));
        Error::from_io(error, what).hint(UNSURE)
    }

    /// What becomes of an error that comes when a change is in the journal for good.
    fn unplaced(&self, error: &Error) -> Error {
        let what = format!("a change is in the journal but not in its place ({error})");
        let _ = self.failed.set(what.clone());
        Error::new(Kind::Io, what).hint(UNSURE)
    }
}
