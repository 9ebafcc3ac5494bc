//! How a process that waits for a lock is woken by the one that gives it back: the system lets processes sleep
//! on a word of a file that they share. Whoever misses the bell wakes up by itself a moment later.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex::{self, Flags, Timespec};

const WORD_BYTES: usize = size_of::<u32>();

/// The first word of a file, as the system knows it. It is never read or written through this: a file that was
/// cut short would end the process.
pub(super) struct Bell(NonNull<AtomicU32>);

// SAFETY: it is an address for system calls, which any thread may make.
#[allow(unsafe_code)]
unsafe impl Send for Bell {}
#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl Sync for Bell {}

impl Bell {
    /// The bell of an open file. Only to read: else the system would count each use of it as a change of the file.
    #[allow(unsafe_code)]
    pub(super) fn of(file: &File) -> io::Result<Self> {
        // SAFETY: the system chooses where, and nothing is read or written there but by system calls.
        let mapped =
            unsafe { mmap(std::ptr::null_mut(), WORD_BYTES, ProtFlags::READ, MapFlags::SHARED, file, 0) };
        NonNull::new(mapped?.cast()).map(Bell).ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Sleeps until the bell is rung, but no longer than this, which is less than a second. An error if the file
    /// has no word to listen to.
    pub(super) fn wait(&self, file: &File, wait: Duration) -> io::Result<()> {
        let mut word = [0; WORD_BYTES];
        file.read_exact_at(&mut word, 0)?;
        let timeout = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
        match futex::wait(self.word(), Flags::empty(), u32::from_ne_bytes(word), Some(&timeout)) {
            Ok(()) | Err(Errno::TIMEDOUT | Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Wakes up to that many of those who sleep.
    pub(super) fn ring(&self, most: u32) {
        // There is nobody to tell of an error: all wake up by themselves.
        let _ = futex::wake(self.word(), Flags::empty(), most);
    }

    #[allow(unsafe_code)]
    fn word(&self) -> &AtomicU32 {
        // SAFETY: it is mapped as long as `self` is there, and aligned as a page is.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Bell {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody has the address any more.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), WORD_BYTES) };
    }
}
