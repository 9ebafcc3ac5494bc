//! How a process that waits for a lock is woken by the one that releases it: both use a word of a shared file
//! as a futex. Whoever misses the wake-up wakes by itself a moment later.

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

/// The first word of a file, mapped as a futex. It is never read or written through this mapping: in a file
/// that was cut short that would kill the process.
pub(super) struct Bell(NonNull<AtomicU32>);

// SAFETY: it is an address for system calls, which any thread may make.
#[allow(unsafe_code)]
unsafe impl Send for Bell {}
#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl Sync for Bell {}

impl Bell {
    /// Maps the word for reading only: otherwise the system would count each use as a change of the file.
    #[allow(unsafe_code)]
    pub(super) fn of(file: &File) -> io::Result<Self> {
        // SAFETY: the system chooses where, and nothing is read or written there but by system calls.
        let mapped =
            unsafe { mmap(std::ptr::null_mut(), WORD_BYTES, ProtFlags::READ, MapFlags::SHARED, file, 0) };
        NonNull::new(mapped?.cast()).map(Bell).ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Sleeps until the bell is rung, at most for `wait`, which is below a second. Fails if the file has no
    /// first word.
    pub(super) fn wait(&self, file: &File, wait: Duration) -> io::Result<()> {
        let mut word = [0; WORD_BYTES];
        file.read_exact_at(&mut word, 0)?;
        let timeout = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
        match futex::wait(self.word(), Flags::empty(), u32::from_ne_bytes(word), Some(&timeout)) {
            Ok(()) | Err(Errno::TIMEDOUT | Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Wakes up to `most` sleepers.
    pub(super) fn ring(&self, most: u32) {
        // An error needs no handling: all sleepers wake up by themselves.
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
