//! How memgrove takes the `.lock` of a folder that other programs write to as well.
//!
//! The format's protocol is `flock` on `.lock`, which holds the owner's process id and the time,
//! and which the owner deletes when it is done. Two things follow from "deletes":
//!
//! - After waiting, the locked file may no longer be `.lock`. So once the lock is taken, the name is
//!   checked to still lead to the same file.
//! - A program that waits without this check would then work beside the next owner. So memgrove leaves the
//!   file in place, with the word `free` in it, and only others delete it. Because they delete it after
//!   unlocking it, a file that does not say `free` is given a moment to disappear before it is trusted.
//!
//! A process that died has released its `flock`, whatever the file says. A file that is not locked but
//! names a living process is waited for, because a program may use the file without `flock`, until it is
//! older than 30 seconds or its process is gone.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::error::{Error, Kind, Result};
use crate::vfs::{Open, Vfs, VfsFile};

/// The lock's name.
pub const LOCK: &str = ".lock";
const FREE: &[u8] = b"free\n";
/// How long to wait for a lock.
const WAIT: Duration = Duration::from_secs(10);
/// The age from which a lock file may count as left behind.
const STALE_MS: i64 = 30_000;
/// How long a file that another program has unlocked is given to disappear.
const GRACE: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_millis(2);
/// Rounds of [`PAUSE`] that make up [`WAIT`].
const ROUNDS_MAX: u32 = 5_000;

/// The lock of one folder.
pub struct FolderLock {
    folder: Arc<dyn Vfs>,
    clock: Arc<dyn Clock>,
    pid: u32,
}

/// The lock, held until dropped.
pub struct Held {
    file: Box<dyn VfsFile>,
}

impl Drop for Held {
    fn drop(&mut self) {
        // If this fails, the file names a process that has released the lock, which does no harm.
        let _ = self.file.set_len(0).and_then(|()| self.file.write_at(0, FREE));
        let _ = self.file.unlock();
    }
}

/// What the file of an unlocked lock says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// memgrove released it, or it was not written to for long: it may be taken.
    Free,
    /// Another program has just released it, and may be about to delete it.
    Recent,
    /// It names a living process.
    Claimed,
}

impl FolderLock {
    /// The lock of a folder, for a process.
    pub fn new(folder: Arc<dyn Vfs>, clock: Arc<dyn Clock>, pid: u32) -> Self {
        FolderLock { folder, clock, pid }
    }

    /// Takes the lock.
    ///
    /// # Errors
    /// `Busy` if another program holds it too long; `Denied` or `Io` as the system reports.
    pub fn take(&self) -> Result<Held> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => busy(),
            _ => Error::from_io(error, LOCK),
        };
        for _ in 0..ROUNDS_MAX {
            let file = self.folder.open(LOCK, Open::WriteOrCreate).map_err(failed)?;
            file.lock(WAIT).map_err(failed)?;
            if !self.is_still(&*file) {
                continue;
            }
            match self.left(&*file).map_err(failed)? {
                Left::Free => {}
                Left::Recent => {
                    if self.disappears(&*file) {
                        continue;
                    }
                }
                Left::Claimed => {
                    drop(file);
                    std::thread::sleep(PAUSE);
                    continue;
                }
            }
            let words = format!("{} {}\n", self.pid, super::schema::spelled(self.clock.now()));
            file.set_len(0).and_then(|()| file.write_at(0, words.as_bytes())).map_err(failed)?;
            return Ok(Held { file });
        }
        Err(busy())
    }

    /// Whether a file that was just unlocked is deleted within [`GRACE`].
    fn disappears(&self, file: &dyn VfsFile) -> bool {
        (0..GRACE.as_millis() / PAUSE.as_millis()).any(|_| {
            std::thread::sleep(PAUSE);
            !self.is_still(file)
        })
    }

    /// Whether the name still leads to this file.
    fn is_still(&self, file: &dyn VfsFile) -> bool {
        let (Ok(named), Ok(open)) = (self.folder.stat(LOCK), file.stat()) else { return false };
        named.inode == open.inode
    }

    fn left(&self, file: &dyn VfsFile) -> io::Result<Left> {
        let words = file.read_at(0, 256)?;
        if words == FREE {
            return Ok(Left::Free);
        }
        let written = i64::try_from(file.stat()?.mtime_ns / 1_000_000).unwrap_or(i64::MAX);
        let stale = self.clock.now().as_millisecond().saturating_sub(written) > STALE_MS;
        let text = String::from_utf8_lossy(&words);
        let pid = text.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty());
        match pid.and_then(|pid| pid.parse::<u32>().ok()) {
            Some(pid) if pid != self.pid && is_alive(pid) && !stale => Ok(Left::Claimed),
            _ if stale => Ok(Left::Free),
            _ => Ok(Left::Recent),
        }
    }
}

#[cfg(unix)]
fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    // The process of another user answers with "not permitted", so it is alive.
    pid.is_some_and(|pid| {
        !matches!(rustix::process::test_kill_process(pid), Err(error) if error == rustix::io::Errno::SRCH)
    })
}

#[cfg(not(unix))]
fn is_alive(_: u32) -> bool {
    true
}

fn busy() -> Error {
    Error::new(Kind::Busy, "another program holds the `.lock` of the records")
        .hint("try again when it is done")
}
