//! How backends touch a disk: one small trait, so that the disk can be real, simulated or faulty.
//!
//! Names are slash-separated and relative to the root of the `Vfs`; callers have validated them
//! (they come from a [`Locator`](crate::Locator) or are names of the backend's own). No
//! implementation follows a symbolic link or leaves its root.

mod fault;
#[cfg(unix)]
mod real;
mod sim;

use std::io;
use std::time::Duration;

pub use fault::{Call, Fault, FaultFs, FaultPlan};
#[cfg(unix)]
pub use real::RealFs;
pub use sim::{Recording, SimFs};

use crate::backend::FileKind;

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// File, folder or something else.
    pub kind: FileKind,
    /// Bytes.
    pub size: u64,
    /// When it was last modified, in nanoseconds since the epoch.
    pub mtime_ns: i128,
    /// When anything of it last changed, in nanoseconds since the epoch: nobody can set it back.
    pub ctime_ns: i128,
    /// The identity of the file behind the name.
    pub inode: u64,
    /// How many names the file has.
    pub links: u64,
    /// The permission bits.
    pub mode: u32,
}

/// How a rename treats its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rename {
    /// The target must be free, else `AlreadyExists`.
    NoReplace,
    /// Whatever file is at the target is replaced.
    Replace,
    /// Source and target trade places, so that nothing that was there is lost.
    /// `Unsupported` where the file system cannot.
    Exchange,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// To read.
    Read,
    /// To read and write what is there.
    Write,
    /// To read and write; made, empty and mode 0600, where nothing is.
    WriteOrCreate,
    /// To read and write a file that must not exist yet (`AlreadyExists`), mode 0600.
    CreateNew,
}

/// An open regular file. It stays the same file whatever happens to its name.
pub trait VfsFile: Send + Sync {
    /// Describes it.
    ///
    /// # Errors
    /// As the system says.
    fn stat(&self) -> io::Result<Stat>;

    /// The identity of the file, which never changes.
    ///
    /// # Errors
    /// As the system says.
    fn inode(&self) -> io::Result<u64> {
        Ok(self.stat()?.inode)
    }

    /// The permission bits that it had when it was opened.
    ///
    /// # Errors
    /// As the system says.
    fn mode(&self) -> io::Result<u32> {
        Ok(self.stat()?.mode)
    }

    /// How many names the file has; none when it was deleted.
    ///
    /// # Errors
    /// As the system says.
    fn links(&self) -> io::Result<u64> {
        Ok(self.stat()?.links)
    }

    /// Reads up to `len` bytes from `offset`; fewer only at the end of the file.
    ///
    /// # Errors
    /// As the system says.
    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>>;

    /// Writes all the bytes at `offset`, growing the file as needed.
    ///
    /// # Errors
    /// As the system says; some of the bytes may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Writes all the bytes at the end of the file, wherever others have left it at that moment.
    ///
    /// # Errors
    /// As the system says; some of the bytes may have been written.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;

    /// Cuts or extends the file to `len` bytes.
    ///
    /// # Errors
    /// As the system says.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes content and size durable (`fdatasync`). Not the name: see [`Vfs::sync_dir`].
    ///
    /// # Errors
    /// As the system says. After an error the content is in an unknown state: never retry.
    fn sync_data(&self) -> io::Result<()>;

    /// Begins to write a part of the content to the disk, without waiting for it: a sync that follows is
    /// done sooner. It promises nothing.
    fn start_sync(&self, offset: u64, len: u64);

    /// Takes the advisory lock on this file for this handle alone, waiting at most `wait`.
    /// It is released by [`VfsFile::unlock`], or when the handle is dropped or its process ends.
    ///
    /// # Errors
    /// `WouldBlock` when the wait is over.
    fn lock(&self, wait: Duration) -> io::Result<()> {
        self.lock_unless(wait, &|| false).map(drop)
    }

    /// As [`VfsFile::lock`], but gives up and returns `false` when `needless` says so: whoever has the lock
    /// may meanwhile do what it was wanted for.
    ///
    /// # Errors
    /// `WouldBlock` when the wait is over.
    fn lock_unless(&self, wait: Duration, needless: &dyn Fn() -> bool) -> io::Result<bool>;

    /// Releases the lock.
    ///
    /// # Errors
    /// As the system says.
    fn unlock(&self) -> io::Result<()>;

    /// Lets up to `most` waiters in [`VfsFile::lock_unless`] ask again at once, the longest waiting first.
    fn ring(&self, most: u32);

    /// Whether someone has the file open for writing; `None` where the system does not tell. The handle must
    /// be open for reading only, and the file no longer reachable by its usual name.
    fn has_writers(&self) -> Option<bool>;

    /// Reads the whole file.
    ///
    /// # Errors
    /// As the system says.
    fn read_all(&self) -> io::Result<Vec<u8>> {
        let size = usize::try_from(self.stat()?.size).map_err(io::Error::other)?;
        let mut bytes = self.read_at(0, size)?;
        // It may have grown since; read until the end shows itself.
        loop {
            let more = self.read_at(bytes.len() as u64, 64 * 1024)?;
            if more.is_empty() {
                return Ok(bytes);
            }
            bytes.extend_from_slice(&more);
        }
    }
}

/// One tree of files.
pub trait Vfs: Send + Sync {
    /// Describes what has that name, without following a link. The empty name is the root.
    ///
    /// # Errors
    /// `NotFound`; `NotADirectory` beneath a file; as the system says.
    fn stat(&self, name: &str) -> io::Result<Stat>;

    /// Opens a regular file; never waits on a pipe.
    ///
    /// # Errors
    /// `NotFound`, `IsADirectory`, `NotADirectory`; `InvalidInput` for a link, pipe, socket or device.
    fn open(&self, name: &str, how: Open) -> io::Result<Box<dyn VfsFile>>;

    /// The names in a folder with what they are, in no particular order; names that are not
    /// UTF-8 come as `Err` with an escaped spelling.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`; as the system says.
    fn read_dir(&self, name: &str) -> io::Result<Vec<(Result<String, String>, Stat)>>;

    /// At most `max` of the names in a folder, without asking what they are.
    ///
    /// # Errors
    /// As [`Vfs::read_dir`].
    fn names(&self, name: &str, max: usize) -> io::Result<Vec<String>>;

    /// Makes one folder, mode 0700.
    ///
    /// # Errors
    /// `AlreadyExists`; `NotFound` without its parent.
    fn mkdir(&self, name: &str) -> io::Result<()>;

    /// Removes a file's name.
    ///
    /// # Errors
    /// `NotFound`; `IsADirectory`.
    fn remove_file(&self, name: &str) -> io::Result<()>;

    /// Removes an empty folder.
    ///
    /// # Errors
    /// `NotFound`; `DirectoryNotEmpty`; `NotADirectory`.
    fn remove_dir(&self, name: &str) -> io::Result<()>;

    /// Moves a name, atomically.
    ///
    /// # Errors
    /// As [`Rename`] says; `NotFound`.
    fn rename(&self, from: &str, to: &str, how: Rename) -> io::Result<()>;

    /// Makes the names in a folder durable. The empty name is the root.
    ///
    /// # Errors
    /// As the system says.
    fn sync_dir(&self, name: &str) -> io::Result<()>;

    /// Makes everything in the tree durable, content and names.
    ///
    /// # Errors
    /// As the system says.
    fn sync_tree(&self) -> io::Result<()>;

    /// Sets the permission bits of a file or folder.
    ///
    /// # Errors
    /// As the system says.
    fn set_mode(&self, name: &str, mode: u32) -> io::Result<()>;

    /// A name of the machine's present run: after a power cut it is another one. `None` where the
    /// system does not tell, so that every opening must suspect a power cut.
    fn boot_id(&self) -> Option<String>;
}

/// The parent and the final segment of a name.
fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('/').unwrap_or(("", name))
}
