//! An open file of the machine's own disk.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rustix::fs;

use super::stat_of;
use crate::vfs::{Stat, VfsFile};

/// How often a busy lock is asked for again at once before the thread sleeps in between.
const LOCK_YIELDS_MAX: u32 = 100;
/// How long the thread sleeps in between, at first and in the end.
const PAUSE_MIN: Duration = Duration::from_micros(100);
const PAUSE_MAX: Duration = Duration::from_millis(1);

pub(super) struct RealFile {
    file: File,
    /// What it was when it was opened.
    opened: Stat,
}

impl RealFile {
    /// Asks for the lock again and again, with pauses that grow.
    fn poll(&self, wait: Duration, yields_max: u32, needless: &dyn Fn() -> bool) -> io::Result<bool> {
        let start = Instant::now();
        let mut pause = PAUSE_MIN;
        for attempt in 0u32.. {
            match self.file.try_lock() {
                Ok(()) => return Ok(true),
                Err(TryLockError::WouldBlock) if needless() => return Ok(false),
                Err(TryLockError::WouldBlock) if start.elapsed() >= wait => {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Err(TryLockError::WouldBlock) if attempt < yields_max => std::thread::yield_now(),
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        unreachable!("the loop has no end of its own")
    }

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

    fn mode(&self) -> io::Result<u32> {
        Ok(self.opened.mode)
    }

    /// Asks for nothing else: a system that was asked for times makes the next write keep them anew.
    #[cfg(target_os = "linux")]
    fn links(&self) -> io::Result<u64> {
        use rustix::fs::{AtFlags, StatxFlags};
        match fs::statx(&self.file, c"", AtFlags::EMPTY_PATH, StatxFlags::NLINK) {
            Ok(stat) => Ok(stat.stx_nlink.into()),
            Err(_) => Ok(self.stat()?.links),
        }
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

    /// It is held for microseconds: most waits end before a sleep would.
    fn lock(&self, wait: Duration) -> io::Result<()> {
        self.poll(wait, LOCK_YIELDS_MAX, &|| false).map(drop)
    }

    /// Whoever has it does something longer, and needs the processor for it: no wait is without sleep.
    fn lock_unless(&self, wait: Duration, needless: &dyn Fn() -> bool) -> io::Result<bool> {
        self.poll(wait, 0, needless)
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
