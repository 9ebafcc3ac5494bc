//! A handle on a simulated file: what it reads, writes, syncs and locks.

use std::io::{self, ErrorKind};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use super::disk::{Inode, Node};
use super::{Machine, State};
use crate::vfs::{Stat, VfsFile};

/// How long a handle waits for a lock before it asks whether it still needs it.
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// An open simulated file.
pub(super) struct SimFile {
    pub(super) machine: Arc<Machine>,
    pub(super) inode: Inode,
    pub(super) handle: u64,
    pub(super) writable: bool,
}

impl SimFile {
    fn state(&self) -> MutexGuard<'_, State> {
        self.machine.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_to_write(&self) -> io::Result<MutexGuard<'_, State>> {
        if self.writable { Ok(self.state()) } else { Err(io::Error::other("the file is open to read only")) }
    }
}

impl VfsFile for SimFile {
    fn stat(&self) -> io::Result<Stat> {
        Ok(self.state().stat(self.inode))
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let state = self.state();
        let Node::File(file) = state.disk.node(self.inode) else {
            unreachable!("only files are opened");
        };
        let bytes = file.bytes();
        let start = usize::try_from(offset).map_or(bytes.len(), |offset| offset.min(bytes.len()));
        let end = start.saturating_add(len).min(bytes.len());
        Ok(bytes[start..end].to_vec())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let state = &mut *self.state_to_write()?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let free = usize::try_from(state.disk.free_bytes()).unwrap_or(usize::MAX);
        let time = state.disk.time_us();
        let file = state.disk.file_mut(self.inode);
        let growth = (offset + bytes.len()).saturating_sub(file.bytes().len());
        let fits = bytes.len().saturating_sub(growth.saturating_sub(free));
        if fits > 0 || bytes.is_empty() {
            file.write(offset, &bytes[..fits], time);
            state.changed();
        }
        if fits < bytes.len() { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.write_at(self.stat()?.size, bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let state = &mut *self.state_to_write()?;
        let time = state.disk.time_us();
        let file = state.disk.file_mut(self.inode);
        file.resize(usize::try_from(len).map_err(io::Error::other)?, time);
        state.changed();
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let state = &mut *self.state();
        let synced = state.sync_file(self.inode);
        state.changed();
        synced
    }

    fn start_sync(&self, _offset: u64, _len: u64) {}

    fn lock_unless(&self, wait: Duration, needless: &dyn Fn() -> bool) -> io::Result<bool> {
        let is_taken =
            |state: &mut State| state.locks.get(&self.inode).is_some_and(|handle| *handle != self.handle);
        let mut left = wait;
        loop {
            // Waits in short steps: `needless` may look at this very disk, which must be free then.
            let pause = left.min(LOCK_PAUSE);
            let waited = self.machine.unlocked.wait_timeout_while(self.state(), pause, is_taken);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if !is_taken(&mut state) {
                state.locks.insert(self.inode, self.handle);
                return Ok(true);
            }
            drop(state);
            if needless() {
                return Ok(false);
            }
            left -= pause;
            if left.is_zero() {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
    }

    fn unlock(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.locks.get(&self.inode) == Some(&self.handle) {
            state.locks.remove(&self.inode);
            self.machine.unlocked.notify_all();
        }
        Ok(())
    }

    fn ring(&self, _most: u32) {
        self.machine.unlocked.notify_all();
    }

    fn has_writers(&self) -> Option<bool> {
        let state = self.state();
        let writers = state.handles.get(&self.inode).map_or(0, |(_, writers)| *writers);
        state.disk.can_exchange.then_some(writers > 0)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        // An unlock of a simulated file cannot fail.
        let _ = self.unlock();
        let state = &mut *self.state();
        if let Some((count, writers)) = state.handles.get_mut(&self.inode) {
            (*count, *writers) = (*count - 1, *writers - u64::from(self.writable));
            if *count == 0 {
                state.handles.remove(&self.inode);
            }
        }
    }
}
