//! The tree of files as it lies there: names, reading, listing, folders. No lock is taken to read.

use std::borrow::Cow;
use std::io;

use unicode_normalization::UnicodeNormalization;

use super::commit::last_touched;
use super::journal::segments;
use super::mark::MarkFile;
use super::{Core, LOCK, READ_ATTEMPTS, journal, temps, view};
use crate::backend::{Depth, FileKind, Info, exists, is_file, is_folder, not_found};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::vfs::{Open, Stat};

pub(super) fn info_of(locator: Locator, stat: &Stat) -> Info {
    let seconds = i64::try_from(stat.mtime_ns.div_euclid(1_000_000_000)).unwrap_or(0);
    let nanoseconds = i32::try_from(stat.mtime_ns.rem_euclid(1_000_000_000)).unwrap_or(0);
    let mut hasher = blake3::Hasher::new();
    for part in [stat.size.into(), stat.mtime_ns, stat.ctime_ns, stat.inode.into()] {
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
pub(super) fn meant(error: io::Error, at: &Locator) -> Error {
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
pub(super) fn absent_or(error: io::Error, at: &Locator) -> Error {
    match error.kind() {
        io::ErrorKind::NotADirectory => not_found(at),
        _ => meant(error, at),
    }
}

pub(super) fn not_regular(at: &Locator) -> Error {
    Error::new(Kind::Invalid, format!("`{at}` is, or lies behind, a link or a special file"))
        .code(code::NOT_REGULAR)
        .hint("memgrove neither follows nor changes links, pipes and devices: use a regular file")
}

impl Core {
    /// Refuses the backend's own files.
    pub(super) fn check_reserved(&self, at: &Locator) -> Result<()> {
        let first = at.parts().next().unwrap_or("");
        if self.is_private(first) {
            return Err(Error::new(Kind::Invalid, format!("`{at}` is reserved for the store itself"))
                .code(code::INVALID_PATH)
                .hint("choose another name"));
        }
        Ok(())
    }

    /// Whether a name at the root of the tree is the backend's own.
    pub(super) fn is_private(&self, name: &str) -> bool {
        let folded = crate::locator::collision_key(name);
        folded.starts_with(temps::PREFIX) || (self.inside && (folded == journal::FOLDER || folded == LOCK))
    }

    /// The name of a place as the disk spells it: a name that someone else made may be in another
    /// Unicode form.
    pub(super) fn spelled<'a>(&self, at: &'a Locator) -> Cow<'a, str> {
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

    pub(super) fn read_file(&self, at: &Locator) -> Result<Vec<u8>> {
        let file = self.tree.open(&self.spelled(at), Open::Read).map_err(|error| absent_or(error, at))?;
        file.read_all().map_err(|error| meant(error, at))
    }

    /// Reads a file whole, even beside an append in place (promise P14).
    pub(super) fn read_whole(&self, at: &Locator) -> Result<Vec<u8>> {
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

    pub(super) fn appends_count(&self) -> Option<u64> {
        if self.appends.get().is_none() {
            let file = MarkFile::open(&*self.state, Open::Read).ok()?;
            let _ = self.appends.set(file);
        }
        self.appends.get()?.appends().ok()
    }

    pub(super) fn list_into(&self, under: &Locator, depth: Depth, found: &mut Vec<Info>) -> Result<()> {
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

    pub(super) fn make_folder(&self, at: &Locator) -> Result<()> {
        self.check_reserved(at)?;
        let mut locked = self.lock()?;
        if !segments(&*self.state).map_err(|error| Error::from_io(error, "the journal"))?.is_empty() {
            self.ready(&mut locked.inner)?;
            // Pending records for this place were planned without the folder.
            if last_touched(&locked.inner, &[at]).is_some() {
                self.settle(&mut locked.inner)?;
            }
        }
        match self.tree.stat(&self.spelled(at)) {
            Ok(stat) if stat.kind == FileKind::Folder => return Ok(()),
            Ok(_) => return Err(exists(at)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(meant(error, at)),
        }
        view::View::new(self, None).check_new(at)?;
        self.make_folders(at).map_err(|error| meant(error, at))?;
        // Folders are not in the journal: sync them now, and what they are in.
        for folder in std::iter::once(at.clone()).chain(at.ancestors()).chain([Locator::root()]) {
            self.tree.sync_dir(&self.spelled(&folder)).map_err(|error| meant(error, at))?;
        }
        Ok(())
    }

    /// Makes the missing folders above a place, and gives back which, outermost first.
    pub(super) fn make_parents(&self, at: &Locator) -> io::Result<Vec<String>> {
        at.parent().map_or(Ok(Vec::new()), |parent| self.make_folders(&parent))
    }

    /// Makes a folder and the missing ones above it, and gives back which, outermost first.
    fn make_folders(&self, at: &Locator) -> io::Result<Vec<String>> {
        if at.is_root() {
            return Ok(Vec::new());
        }
        let name = self.spelled(at);
        match self.tree.stat(&name) {
            Ok(stat) if stat.kind == FileKind::Folder => Ok(Vec::new()),
            Ok(stat) if stat.kind == FileKind::File => Err(io::ErrorKind::NotADirectory.into()),
            Ok(_) => Err(io::ErrorKind::InvalidInput.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut made = self.make_parents(at)?;
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
    pub(super) fn remove_folders(&self, made: &[String]) {
        for folder in made.iter().rev() {
            // One that is not empty any more has become someone else's.
            let _ = self.tree.remove_dir(folder);
        }
    }
}
