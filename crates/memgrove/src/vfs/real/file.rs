//! An open file of the machine's own disk.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt;
#[cfg(target_os = "linux")]
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::fs;

#[cfg(target_os = "linux")]
use super::bell::Bell;
use super::stat_of;
use crate::vfs::{Stat, VfsFile};

/// How long a waiting thread sleeps before it asks for the lock again. Without a bell the pause grows from
/// the first to the second; with one the second is the limit, in case a wake-up was missed.
const PAUSE_MIN: Duration = Duration::from_micros(100);
const PAUSE_MAX: Duration = Duration::from_millis(1);

/// Which signal the system sends about a file; `libc` lacks it.
#[cfg(target_os = "linux")]
const F_SETSIG: libc::c_int = 10;

pub(super) struct RealFile {
    file: File,
    /// Its description when it was opened.
    opened: Stat,
    /// The futex on which those who wait for its lock sleep.
    #[cfg(target_os = "linux")]
    bell: OnceLock<Option<Bell>>,
}

impl RealFile {
    /// Sleeps until whoever has the lock releases it, or for a moment.
    fn rest(&self, attempt: u32) {
        #[cfg(target_os = "linux")]
        if self.bell().is_some_and(|bell| bell.wait(&self.file, PAUSE_MAX).is_ok()) {
            return;
        }
        std::thread::sleep(PAUSE_MIN.saturating_mul(1 << attempt.min(16)).min(PAUSE_MAX));
    }

    #[cfg(target_os = "linux")]
    fn bell(&self) -> Option<&Bell> {
        self.bell.get_or_init(|| Bell::of(&self.file).ok()).as_ref()
    }

    /// Wakes up to `most` of those who wait for the lock.
    #[cfg(target_os = "linux")]
    fn wake(&self, most: u32) {
        self.bell().inspect(|bell| bell.ring(most));
    }

    #[cfg(not(target_os = "linux"))]
    #[allow(clippy::unused_self)]
    fn wake(&self, _most: u32) {}

    /// Wraps an open file with its description when it was opened.
    pub(super) fn new(file: File, opened: Stat) -> Self {
        RealFile {
            file,
            opened,
            #[cfg(target_os = "linux")]
            bell: OnceLock::new(),
        }
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

    /// Asks for the link count alone: asking for times would make the next write record them anew.
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
        read_whole(self.opened.size, |bytes, offset| self.file.read_at(bytes, offset))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let flags = fs::fcntl_getfl(&self.file)?;
        fs::fcntl_setfl(&self.file, flags | fs::OFlags::APPEND)?;
        let written = (&self.file).write_all(bytes);
        // On Linux a write anywhere else would go to the end too.
        fs::fcntl_setfl(&self.file, flags)?;
        written
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn lock_unless(&self, wait: Duration, needless: &dyn Fn() -> bool) -> io::Result<bool> {
        let start = Instant::now();
        for attempt in 0.. {
            match self.file.try_lock() {
                Ok(()) => return Ok(true),
                Err(TryLockError::WouldBlock) if needless() => return Ok(false),
                Err(TryLockError::WouldBlock) if start.elapsed() < wait => self.rest(attempt),
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // Asked first: most who wake up are done by now, and should not hold up others.
            if needless() {
                return Ok(false);
            }
        }
        unreachable!("the loop has no end of its own")
    }

    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    fn start_sync(&self, offset: u64, len: u64) {
        use std::os::fd::AsRawFd;
        let (Ok(offset), Ok(len)) = (offset.try_into(), len.try_into()) else { return };
        // SAFETY: the descriptor is open as long as `self` is, and the call touches no memory of ours.
        unsafe { libc::sync_file_range(self.file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
    }

    #[cfg(not(target_os = "linux"))]
    fn start_sync(&self, _offset: u64, _len: u64) {}

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()?;
        self.wake(1);
        Ok(())
    }

    fn ring(&self, most: u32) {
        self.wake(most);
    }

    /// Asks for a read lease, which the system refuses while the file is open for writing. No crate offers
    /// the call without `unsafe`.
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    fn has_writers(&self) -> Option<bool> {
        use std::os::fd::AsRawFd;
        // SAFETY: the descriptor is open as long as `self` is, and the call touches no memory of ours.
        let call =
            |call: libc::c_int, with: libc::c_int| unsafe { libc::fcntl(self.file.as_raw_fd(), call, with) };
        // If the file is opened at this moment, the system sends a signal: this one is ignored by default,
        // while the usual one would end the process. Set each time, because giving back the lease resets it.
        if call(F_SETSIG, libc::SIGURG) != 0 {
            return None;
        }
        if call(libc::F_SETLEASE, libc::F_RDLCK) == 0 {
            // If giving the lease back fails, closing the handle does it.
            call(libc::F_SETLEASE, libc::F_UNLCK);
            return Some(false);
        }
        (io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock).then_some(true)
    }

    #[cfg(not(target_os = "linux"))]
    fn has_writers(&self) -> Option<bool> {
        None
    }
}

/// Reads to the end of a file that had this size when it was opened. A short read does not mark the end: the
/// system stops before a bad block, and after 2 GiB.
fn read_whole(size: u64, mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>) -> io::Result<Vec<u8>> {
    let size = usize::try_from(size).map_err(io::Error::other)?;
    // One byte more than its size, so that a single read shows that it has not grown.
    let mut bytes = vec![0; size + 1];
    let mut filled = 0;
    loop {
        match read(&mut bytes[filled..], filled as u64) {
            Ok(count) if count == 0 || (filled + count == size && count < bytes.len()) => {
                bytes.truncate(filled + count);
                return Ok(bytes);
            }
            Ok(count) => {
                filled += count;
                if filled == bytes.len() {
                    bytes.resize(filled + 64 * 1024, 0);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a file that returns at most so many bytes at a time, and none from a bad block on.
    fn read(has: &[u8], told: u64, at_most: usize, bad: Option<usize>) -> io::Result<Vec<u8>> {
        read_whole(told, |bytes, offset| {
            let rest = &has[usize::try_from(offset).unwrap()..bad.unwrap_or(has.len())];
            if rest.is_empty() && bad.is_some() {
                return Err(io::Error::other("a bad block"));
            }
            let count = rest.len().min(bytes.len()).min(at_most);
            bytes[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        })
    }

    #[test]
    fn a_short_read_is_no_end() {
        let has: Vec<u8> = (0..200).collect();
        for told in [0, 100, 200, 300] {
            for at_most in [1, 7, 100, 200, 300] {
                // A file that has grown since it was opened may be read as it was.
                let found = read(&has, told, at_most, None).unwrap();
                assert!(found == has || found == has[..100] && told == 100, "{told}, {at_most}: {found:?}");
            }
            let found = read(&has, told, 300, Some(120));
            assert!(found.is_err() || told == 100, "{told}: {found:?}");
        }
    }
}
