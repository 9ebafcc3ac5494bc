//! An open file of the machine's own disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rustix::fs;

use super::stat_of;
use crate::vfs::{Stat, VfsFile};

/// How often a busy lock is asked for again at once before the thread sleeps in between.
const LOCK_YIELDS_MAX: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_micros(100);

pub(super) struct RealFile {
    file: File,
    /// What it was when it was opened.
    opened: Stat,
}

impl RealFile {
    /// An open file, and what it was when it was opened.
    pub(super) fn new(file: File, opened: Stat) -> Self {
        RealFile { file, opened }
    }
}

impl VfsFile for RealFile {
    fn stat(&self) -> io::Result<Stat> {
        Ok(stat_of(&fs::fstat(&self.file)?))
    }

    fn inode(&self) -> io::Result<u64> {
        Ok(self.opened.inode)
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    fn read_all(&self) -> io::Result<Vec<u8>> {
        // One byte more than it had, so that a short read shows the end; if it has grown, more follows.
        let size = usize::try_from(self.opened.size).map_err(io::Error::other)?;
        let mut bytes = vec![0; size + 1];
        let mut filled = 0;
        loop {
            match self.file.read_at(&mut bytes[filled..], filled as u64) {
                Ok(count) if count < bytes.len() - filled => {
                    bytes.truncate(filled + count);
                    return Ok(bytes);
                }
                Ok(count) => {
                    filled += count;
                    bytes.resize(filled + 64 * 1024, 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn lock(&self, wait: Duration) -> io::Result<()> {
        let start = Instant::now();
        for attempt in 0u32.. {
            match self.file.try_lock() {
                Ok(()) => return Ok(()),
                Err(std::fs::TryLockError::WouldBlock) if start.elapsed() < wait => {
                    // It is held for microseconds: most waits end before a sleep would.
                    if attempt < LOCK_YIELDS_MAX {
                        std::thread::yield_now();
                    } else {
                        std::thread::sleep(LOCK_PAUSE);
                    }
                }
                Err(std::fs::TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(std::fs::TryLockError::Error(error)) => return Err(error),
            }
        }
        unreachable!("the loop has no end of its own")
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    /// The system refuses a lease to read while the file is open to write. No crate offers the call
    /// without `unsafe`.
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    fn has_writers(&self) -> Option<bool> {
        use std::os::fd::AsRawFd;
        // SAFETY: the descriptor is open as long as `self` is, and the call touches no memory of ours.
        let lease = |kind: libc::c_int| unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_SETLEASE, kind) };
        if lease(libc::F_RDLCK) == 0 {
            // If it cannot be given back, closing the handle does.
            lease(libc::F_UNLCK);
            return Some(false);
        }
        (io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock).then_some(true)
    }

    #[cfg(not(target_os = "linux"))]
    fn has_writers(&self) -> Option<bool> {
        None
    }
}
