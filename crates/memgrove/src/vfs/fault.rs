//! A disk on which the n-th call fails.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Open, Rename, Stat, Vfs, VfsFile};

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The device failed.
    Eio,
    /// The disk is full.
    Enospc,
    /// The user's quota is used up.
    Edquot,
    /// A signal came first.
    Eintr,
    /// The system forbids it.
    Eacces,
    /// Too many files are open.
    Emfile,
    /// Half of the bytes are written, then the disk is full. Of other calls: as `Enospc`.
    ShortWrite,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Fault; 7] = [
        Fault::Eio,
        Fault::Enospc,
        Fault::Edquot,
        Fault::Eintr,
        Fault::Eacces,
        Fault::Emfile,
        Fault::ShortWrite,
    ];

    /// The error that the system would give.
    pub fn error(self) -> io::Error {
        match self {
            Fault::Eio => io::Error::from_raw_os_error(5),
            Fault::Enospc | Fault::ShortWrite => ErrorKind::StorageFull.into(),
            Fault::Edquot => ErrorKind::QuotaExceeded.into(),
            Fault::Eintr => ErrorKind::Interrupted.into(),
            Fault::Eacces => ErrorKind::PermissionDenied.into(),
            Fault::Emfile => io::Error::from_raw_os_error(24),
        }
    }
}

/// What kind of call it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `open`.
    Open,
    /// `stat`, of a name or a file.
    Stat,
    /// `read_dir`, `names`.
    List,
    /// `read_at`.
    Read,
    /// `write_at`.
    Write,
    /// `set_len`.
    SetLen,
    /// `sync_data`, `sync_dir`, `sync_tree`.
    Sync,
    /// `rename`.
    Rename,
    /// `mkdir`.
    Mkdir,
    /// `remove_file`, `remove_dir`.
    Remove,
    /// `set_mode`.
    SetMode,
    /// `lock`; an unlock never fails.
    Lock,
}

impl Call {
    /// Every kind of call.
    pub const ALL: [Call; 12] = [
        Call::Open,
        Call::Stat,
        Call::List,
        Call::Read,
        Call::Write,
        Call::SetLen,
        Call::Sync,
        Call::Rename,
        Call::Mkdir,
        Call::Remove,
        Call::SetMode,
        Call::Lock,
    ];
}

/// Which call fails, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultPlan {
    /// Only calls of this kind count; all do if `None`.
    pub of: Option<Call>,
    /// How many such calls still succeed first.
    pub after: u64,
    /// How it fails.
    pub fault: Fault,
    /// Whether all such calls after it fail too.
    pub sticky: bool,
}

/// A disk that passes every call on to another one, except those that are planned to fail.
/// Clones share the plan.
#[derive(Clone)]
pub struct FaultFs {
    inner: Arc<dyn Vfs>,
    plan: Arc<Mutex<Progress>>,
    sync_delay: Duration,
    close_delay: Duration,
}

#[derive(Debug, Default)]
struct Progress {
    plan: Option<FaultPlan>,
    calls: u64,
    fired: u64,
    failed: Option<Call>,
}

impl FaultFs {
    /// A disk that does not fail yet.
    pub fn new(inner: Arc<dyn Vfs>) -> Self {
        FaultFs { inner, plan: Arc::default(), sync_delay: Duration::ZERO, close_delay: Duration::ZERO }
    }

    /// The same disk, with every sync taking this much longer.
    #[must_use]
    pub fn with_sync_delay(self, sync_delay: Duration) -> Self {
        FaultFs { sync_delay, ..self }
    }

    /// The same disk, where freeing a file's content takes this long once the file has no name and no other
    /// handle left.
    #[must_use]
    pub fn with_close_delay(self, close_delay: Duration) -> Self {
        FaultFs { close_delay, ..self }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans a failure, in place of any other, and starts to count from 0.
    pub fn plan(&self, plan: FaultPlan) {
        *self.progress() = Progress { plan: Some(plan), ..Progress::default() };
    }

    /// Lets all calls succeed again.
    pub fn heal(&self) {
        self.progress().plan = None;
    }

    /// How many calls there were since the failure was planned, of the kind that it counts.
    pub fn calls(&self) -> u64 {
        self.progress().calls
    }

    /// How many calls have failed since the failure was planned.
    pub fn fired(&self) -> u64 {
        self.progress().fired
    }

    /// The kind of the call that failed first since the failure was planned.
    pub fn failed(&self) -> Option<Call> {
        self.progress().failed
    }

    /// Counts a call and says whether it fails.
    fn due(&self, call: Call) -> Option<Fault> {
        let mut progress = self.progress();
        let Some(plan) = progress.plan else {
            progress.calls += 1;
            return None;
        };
        if plan.of.is_some_and(|of| of != call) {
            return None;
        }
        let number = progress.calls;
        progress.calls += 1;
        if number < plan.after || (number > plan.after && !plan.sticky) {
            return None;
        }
        progress.fired += 1;
        progress.failed.get_or_insert(call);
        Some(plan.fault)
    }

    fn pass(&self, call: Call) -> io::Result<()> {
        if call == Call::Sync && !self.sync_delay.is_zero() {
            std::thread::sleep(self.sync_delay);
        }
        self.due(call).map_or(Ok(()), |fault| Err(fault.error()))
    }
}

impl Vfs for FaultFs {
    fn stat(&self, name: &str) -> io::Result<Stat> {
        self.pass(Call::Stat)?;
        self.inner.stat(name)
    }

    fn open(&self, name: &str, how: Open) -> io::Result<Box<dyn VfsFile>> {
        self.pass(Call::Open)?;
        let file = self.inner.open(name, how)?;
        Ok(Box::new(FaultFile { inner: file, disk: self.clone() }))
    }

    fn read_dir(&self, name: &str) -> io::Result<Vec<(Result<String, String>, Stat)>> {
        self.pass(Call::List)?;
        self.inner.read_dir(name)
    }

    fn names(&self, name: &str, max: usize) -> io::Result<Vec<String>> {
        self.pass(Call::List)?;
        self.inner.names(name, max)
    }

    fn mkdir(&self, name: &str) -> io::Result<()> {
        self.pass(Call::Mkdir)?;
        self.inner.mkdir(name)
    }

    fn remove_file(&self, name: &str) -> io::Result<()> {
        self.pass(Call::Remove)?;
        self.inner.remove_file(name)
    }

    fn remove_dir(&self, name: &str) -> io::Result<()> {
        self.pass(Call::Remove)?;
        self.inner.remove_dir(name)
    }

    fn rename(&self, from: &str, to: &str, how: Rename) -> io::Result<()> {
        self.pass(Call::Rename)?;
        self.inner.rename(from, to, how)
    }

    fn sync_dir(&self, name: &str) -> io::Result<()> {
        self.pass(Call::Sync)?;
        self.inner.sync_dir(name)
    }

    fn sync_tree(&self) -> io::Result<()> {
        self.pass(Call::Sync)?;
        self.inner.sync_tree()
    }

    fn set_mode(&self, name: &str, mode: u32) -> io::Result<()> {
        self.pass(Call::SetMode)?;
        self.inner.set_mode(name, mode)
    }

    fn boot_id(&self) -> Option<String> {
        self.inner.boot_id()
    }
}

struct FaultFile {
    inner: Box<dyn VfsFile>,
    disk: FaultFs,
}

impl FaultFile {
    /// Writes, or half of it, or nothing.
    fn writing(&self, bytes: &[u8], write: &dyn Fn(&[u8]) -> io::Result<()>) -> io::Result<()> {
        match self.disk.due(Call::Write) {
            None => write(bytes),
            Some(fault) => {
                if fault == Fault::ShortWrite {
                    write(&bytes[..bytes.len() / 2])?;
                }
                Err(fault.error())
            }
        }
    }
}

impl Drop for FaultFile {
    fn drop(&mut self) {
        if !self.disk.close_delay.is_zero() && self.inner.links().is_ok_and(|links| links == 0) {
            std::thread::sleep(self.disk.close_delay);
        }
    }
}

impl VfsFile for FaultFile {
    fn stat(&self) -> io::Result<Stat> {
        self.disk.pass(Call::Stat)?;
        self.inner.stat()
    }

    fn inode(&self) -> io::Result<u64> {
        self.disk.pass(Call::Stat)?;
        self.inner.inode()
    }

    fn mode(&self) -> io::Result<u32> {
        self.disk.pass(Call::Stat)?;
        self.inner.mode()
    }

    fn links(&self) -> io::Result<u64> {
        self.disk.pass(Call::Stat)?;
        self.inner.links()
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.disk.pass(Call::Read)?;
        self.inner.read_at(offset, len)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.writing(bytes, &|bytes| self.inner.write_at(offset, bytes))
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.writing(bytes, &|bytes| self.inner.append(bytes))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.pass(Call::SetLen)?;
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.pass(Call::Sync)?;
        self.inner.sync_data()
    }

    fn lock_unless(&self, wait: Duration, needless: &dyn Fn() -> bool) -> io::Result<bool> {
        self.disk.pass(Call::Lock)?;
        self.inner.lock_unless(wait, needless)
    }

    fn unlock(&self) -> io::Result<()> {
        self.inner.unlock()
    }

    fn ring(&self, most: u32) {
        self.inner.ring(most);
    }

    fn has_writers(&self) -> Option<bool> {
        self.inner.has_writers()
    }

    fn start_sync(&self, offset: u64, len: u64) {
        self.inner.start_sync(offset, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::SimFs;

    fn plan(of: Option<Call>, after: u64, fault: Fault) -> FaultPlan {
        FaultPlan { of, after, fault, sticky: false }
    }

    #[test]
    fn the_nth_call_fails_once_and_is_counted() {
        let disk = FaultFs::new(Arc::new(SimFs::new()));
        disk.plan(plan(None, 1, Fault::Eacces));
        disk.mkdir("a").unwrap();
        assert_eq!(disk.mkdir("b").unwrap_err().kind(), ErrorKind::PermissionDenied);
        disk.mkdir("b").unwrap();
        assert_eq!((disk.calls(), disk.fired(), disk.failed()), (3, 1, Some(Call::Mkdir)));
    }

    #[test]
    fn a_sticky_fault_stays_until_the_disk_is_healed() {
        let disk = FaultFs::new(Arc::new(SimFs::new()));
        disk.plan(FaultPlan { sticky: true, ..plan(Some(Call::Mkdir), 1, Fault::Enospc) });
        disk.mkdir("a").unwrap();
        disk.stat("a").unwrap();
        assert_eq!(disk.mkdir("b").unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(disk.mkdir("b").unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!((disk.calls(), disk.fired()), (3, 2));
        disk.heal();
        disk.mkdir("b").unwrap();
    }

    #[test]
    fn a_short_write_leaves_half() {
        let disk = FaultFs::new(Arc::new(SimFs::new()));
        let file = disk.open("a", Open::CreateNew).unwrap();
        disk.plan(plan(Some(Call::Write), 0, Fault::ShortWrite));
        assert_eq!(file.write_at(0, b"whole").unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(file.read_all().unwrap(), b"wh");
        file.write_at(0, b"whole").unwrap();
        assert_eq!(file.read_all().unwrap(), b"whole");
    }
}
