//! A simulated disk that is as forgetful as a disk may be, and tells what a power cut would leave.
//!
//! The model is weaker than any one file system:
//!
//! - a file's bytes and size are safe after [`VfsFile::sync_data`]; before that any of its
//!   512-byte sectors may or may not have been written, and its size may have grown without them;
//! - a name is safe after [`Vfs::sync_dir`] of a folder that the call touched; before that any of
//!   the calls that changed names may or may not have reached the platter, each whole, in any
//!   order that does not lose what nobody removed;
//! - a sync that failed has forgotten the bytes, although programs still see them.
//!
//! Everything is deterministic: one seed tells a whole power cut.

mod cut;
mod disk;
mod file;
mod handle;
mod names;
mod rng;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use self::disk::{Disk, Inode, Node, ROOT};
use self::handle::SimFile;
use super::{Fault, Open, Rename, Stat, Vfs, VfsFile};
use crate::backend::FileKind;

/// A handle on a simulated disk, or on one folder of it. Clones see the same disk.
#[derive(Debug, Clone)]
pub struct SimFs {
    machine: Arc<Machine>,
    root: Inode,
}

/// The disk and what only a running machine knows.
#[derive(Debug)]
struct Machine {
    state: Mutex<State>,
    unlocked: Condvar,
}

#[derive(Debug)]
struct State {
    disk: Disk,
    recorded: Option<Vec<Disk>>,
    /// The handle that holds the lock on a file.
    locks: HashMap<Inode, u64>,
    /// How many handles a file has, and how many of them can write.
    handles: HashMap<Inode, (u64, u64)>,
    next_handle: u64,
    /// How many files may be open at once.
    open_max: u64,
    /// How many syncs of files still succeed before one fails.
    syncs_left: Option<u64>,
}

impl Default for SimFs {
    fn default() -> Self {
        SimFs::new()
    }
}

impl SimFs {
    /// An empty disk.
    pub fn new() -> Self {
        SimFs::boot(Disk::new(), ROOT)
    }

    /// An empty disk that holds so many bytes of files, then is full.
    pub fn with_capacity(bytes: u64) -> Self {
        SimFs::boot(Disk { capacity_bytes: Some(bytes), ..Disk::new() }, ROOT)
    }

    /// An empty disk whose file system can neither exchange two names nor tell who writes.
    pub fn without_exchange() -> Self {
        SimFs::boot(Disk { can_exchange: false, ..Disk::new() }, ROOT)
    }

    fn boot(disk: Disk, root: Inode) -> Self {
        let state = State {
            disk,
            recorded: None,
            locks: HashMap::new(),
            handles: HashMap::new(),
            next_handle: 0,
            open_max: u64::MAX,
            syncs_left: None,
        };
        let machine = Machine { state: Mutex::new(state), unlocked: Condvar::new() };
        SimFs { machine: Arc::new(machine), root }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.machine.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A folder of this disk as a tree of its own, made durably if it is not there: a power cut
    /// hits both at the same instant.
    ///
    /// # Errors
    /// As [`Vfs::mkdir`] and [`Vfs::sync_dir`].
    pub fn subtree(&self, name: &str) -> io::Result<SimFs> {
        match self.mkdir(name) {
            Ok(()) => self.sync_dir(super::split(name).0)?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let root = self.state().disk.resolve(self.root, name)?;
        Ok(SimFs { machine: Arc::clone(&self.machine), root })
    }

    /// How many calls have changed the disk or made something durable.
    pub fn ops(&self) -> u64 {
        self.state().disk.ops
    }

    /// The disk's present time, in nanoseconds since the epoch.
    pub fn now_ns(&self) -> i128 {
        since_start_ns(self.state().disk.time_us())
    }

    /// Lets time pass.
    pub fn idle_ms(&self, ms: u64) {
        self.state().disk.idle_us += ms * 1_000;
    }

    /// How many bytes the files hold.
    pub fn used_bytes(&self) -> u64 {
        self.state().disk.used_bytes()
    }

    /// Sets how many bytes of files the disk holds.
    pub fn set_capacity(&self, bytes: u64) {
        self.state().disk.capacity_bytes = Some(bytes);
    }

    /// Sets how many files may be open at once.
    pub fn set_open_max(&self, open_max: u64) {
        self.state().open_max = open_max;
    }

    /// Lets the sync of a file fail with an input/output error after `count` more have succeeded,
    /// once. The bytes are still seen but will never be durable, whatever is synced later.
    pub fn fail_sync_after(&self, count: u64) {
        self.state().syncs_left = Some(count);
    }

    /// How many syncs of files will succeed before the one that was told to fail; `None` if it has
    /// failed, or none was told to.
    pub fn syncs_left(&self) -> Option<u64> {
        self.state().syncs_left
    }

    /// A new machine with the disk as a power cut at this instant leaves it. The seed chooses
    /// among all that may have survived.
    pub fn power_cut(&self, seed: u64) -> SimFs {
        SimFs::boot(self.state().disk.after_cut(seed), self.root)
    }

    /// Begins to remember the disk after every call that changes it.
    pub fn record(&self) {
        let state = &mut *self.state();
        state.recorded = Some(vec![state.disk.clone()]);
    }

    /// Ends [`SimFs::record`] and gives what was remembered.
    pub fn recording(&self) -> Recording {
        Recording { disks: self.state().recorded.take().unwrap_or_default(), root: self.root }
    }
}

/// A disk at every instant of a stretch of time, so that each can be the instant of a power cut.
#[derive(Debug, Clone)]
pub struct Recording {
    disks: Vec<Disk>,
    root: Inode,
}

impl Recording {
    /// How many calls changed the disk: power can be cut after 0, 1, … up to this many.
    pub fn ops(&self) -> usize {
        self.disks.len().saturating_sub(1)
    }

    /// The same machine as it was after so many calls, its programs killed: nothing is lost, but
    /// whatever they were about to do is not done.
    pub fn kill(&self, after_ops: usize) -> SimFs {
        SimFs::boot(self.disks[after_ops].clone(), self.root)
    }

    /// What [`SimFs::power_cut`] after so many calls would have left.
    pub fn power_cut(&self, after_ops: usize, seed: u64) -> SimFs {
        SimFs::boot(self.disks[after_ops].after_cut(seed), self.root)
    }
}

/// The simulated time starts with 2026.
fn since_start_ns(time_us: u64) -> i128 {
    1_767_225_600_000_000_000 + i128::from(time_us) * 1_000
}

impl State {
    /// Counts a call that changed something.
    fn changed(&mut self) {
        self.disk.ops += 1;
        if let Some(recorded) = &mut self.recorded {
            recorded.push(self.disk.clone());
        }
    }

    fn stat(&self, inode: Inode) -> Stat {
        let (kind, size, mtime, links, mode) = match self.disk.node(inode) {
            Node::File(file) => {
                (FileKind::File, file.bytes().len() as u64, file.mtime, file.links, file.mode)
            }
            Node::Folder(folder) => (FileKind::Folder, 0, folder.mtime, 2, folder.mode),
        };
        let mtime_ns = since_start_ns(mtime);
        Stat { kind, size, mtime_ns, ctime_ns: mtime_ns, inode: inode as u64 + 2, links, mode }
    }

    fn sync_file(&mut self, inode: Inode) -> io::Result<()> {
        let fails = self.syncs_left == Some(0);
        self.syncs_left = self.syncs_left.and_then(|left| left.checked_sub(1));
        let file = self.disk.file_mut(inode);
        if fails {
            file.fail_sync();
            return Err(io::Error::other("simulated input/output error"));
        }
        file.sync();
        Ok(())
    }
}

impl Vfs for SimFs {
    fn stat(&self, name: &str) -> io::Result<Stat> {
        let state = self.state();
        let inode = state.disk.resolve(self.root, name)?;
        Ok(state.stat(inode))
    }

    fn open(&self, name: &str, how: Open) -> io::Result<Box<dyn VfsFile>> {
        let state = &mut *self.state();
        if name.is_empty() {
            return Err(ErrorKind::IsADirectory.into());
        }
        if state.handles.values().map(|(count, _)| count).sum::<u64>() >= state.open_max {
            return Err(Fault::Emfile.error());
        }
        let place = state.disk.place(self.root, name)?;
        let inode = match (place.there, how) {
            (Some(_), Open::CreateNew) => return Err(ErrorKind::AlreadyExists.into()),
            (Some(inode), _) => inode,
            (None, Open::Read | Open::Write) => return Err(ErrorKind::NotFound.into()),
            (None, Open::WriteOrCreate | Open::CreateNew) => {
                let inode = state.disk.create(&place)?;
                state.changed();
                inode
            }
        };
        let writable = how != Open::Read;
        match state.disk.node(inode) {
            Node::Folder(_) => return Err(ErrorKind::IsADirectory.into()),
            Node::File(file) if writable && file.mode & 0o200 == 0 => {
                return Err(ErrorKind::PermissionDenied.into());
            }
            Node::File(_) => {}
        }
        state.next_handle += 1;
        let (handles, writers) = state.handles.entry(inode).or_default();
        (*handles, *writers) = (*handles + 1, *writers + u64::from(writable));
        let (machine, handle) = (Arc::clone(&self.machine), state.next_handle);
        Ok(Box::new(SimFile { machine, inode, handle, writable }))
    }

    fn read_dir(&self, name: &str) -> io::Result<Vec<(Result<String, String>, Stat)>> {
        let state = self.state();
        match state.disk.node(state.disk.resolve(self.root, name)?) {
            Node::File(_) => Err(ErrorKind::NotADirectory.into()),
            Node::Folder(folder) => {
                let entry = |(name, inode): &(Arc<str>, Inode)| (Ok(name.to_string()), state.stat(*inode));
                Ok(folder.now.iter().map(entry).collect())
            }
        }
    }

    fn names(&self, name: &str, max: usize) -> io::Result<Vec<String>> {
        let entries = self.read_dir(name)?;
        Ok(entries.into_iter().filter_map(|(name, _)| name.ok()).take(max).collect())
    }

    fn mkdir(&self, name: &str) -> io::Result<()> {
        let state = &mut *self.state();
        if name.is_empty() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let place = state.disk.place(self.root, name)?;
        state.disk.mkdir(&place)?;
        state.changed();
        Ok(())
    }

    fn remove_file(&self, name: &str) -> io::Result<()> {
        let state = &mut *self.state();
        let place = state.disk.place(self.root, name)?;
        state.disk.remove_file(&place)?;
        state.changed();
        Ok(())
    }

    fn remove_dir(&self, name: &str) -> io::Result<()> {
        let state = &mut *self.state();
        let place = state.disk.place(self.root, name)?;
        state.disk.remove_dir(&place)?;
        state.changed();
        Ok(())
    }

    fn rename(&self, from: &str, to: &str, how: Rename) -> io::Result<()> {
        let state = &mut *self.state();
        let (from, to) = (state.disk.place(self.root, from)?, state.disk.place(self.root, to)?);
        if state.disk.rename(&from, &to, how)? {
            state.changed();
        }
        Ok(())
    }

    fn sync_dir(&self, name: &str) -> io::Result<()> {
        let state = &mut *self.state();
        let inode = state.disk.resolve(self.root, name)?;
        if let Node::File(_) = state.disk.node(inode) {
            return Err(ErrorKind::NotADirectory.into());
        }
        state.disk.sync_names(|folder| folder == inode);
        state.changed();
        Ok(())
    }

    fn sync_tree(&self) -> io::Result<()> {
        let state = &mut *self.state();
        state.disk.sync_beneath(self.root);
        state.disk.collect(|inode| state.handles.contains_key(&inode));
        state.changed();
        Ok(())
    }

    /// The bits are durable at once: nothing rests on them after a power cut.
    fn set_mode(&self, name: &str, mode: u32) -> io::Result<()> {
        let state = &mut *self.state();
        let inode = state.disk.resolve(self.root, name)?;
        match state.disk.node(inode) {
            Node::File(_) => state.disk.file_mut(inode).mode = mode,
            Node::Folder(_) => state.disk.folder_mut(inode).mode = mode,
        }
        state.changed();
        Ok(())
    }

    fn boot_id(&self) -> Option<String> {
        Some(format!("simulated-{}", self.state().disk.boot))
    }
}
