//! The machine's own disk. Every name is resolved beneath the root by descriptor, so neither a
//! symbolic link nor a race can lead outside.

#[cfg(target_os = "linux")]
mod bell;
mod file;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{self, AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::process::geteuid;

use self::file::RealFile;
use super::{Open, Rename, Stat, Vfs, VfsFile, split};
use crate::backend::FileKind;

/// How many times an open is tried that the system asks to repeat: first at once, then after a pause each.
const OPEN_TRIES: u32 = 80;
const OPEN_TRIES_AT_ONCE: u32 = 30;
const OPEN_PAUSE: Duration = Duration::from_millis(10);
const FILE_MODE: Mode = Mode::from_raw_mode(0o600);
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o700);

/// A tree of real files beneath one folder.
pub struct RealFs {
    root: OwnedFd,
    /// The owner of the tree, if this process is root's and the tree is not: they get what it makes, which
    /// they could not read otherwise.
    owner: Option<(Uid, Gid)>,
}

impl RealFs {
    /// The tree beneath an existing folder. The folder itself may be reached through links.
    ///
    /// # Errors
    /// As the system says.
    pub fn open_root(root: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = fs::open(root, flags, Mode::empty())?;
        let stat = fs::fstat(&root)?;
        let (user, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
        let is_lent = geteuid().is_root() && !user.is_root();
        Ok(RealFs { root, owner: is_lent.then_some((user, group)) })
    }

    /// The tree beneath a folder that is made, with its parents and mode 0700, where it is missing.
    ///
    /// # Errors
    /// As the system says.
    pub fn create_root(root: &Path) -> io::Result<Self> {
        make_folders(root)?;
        Self::open_root(root)
    }

    /// A descriptor of a folder in the tree.
    fn folder(&self, name: &str) -> io::Result<Folder<'_>> {
        if name.is_empty() {
            return Ok(Folder::Root(self.root.as_fd()));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        open_beneath(self.root.as_fd(), name, flags, Mode::empty()).map(Folder::Inner)
    }

    /// The folder that holds a name, and the name's last segment.
    fn holder<'a, 'n>(&'a self, name: &'n str) -> io::Result<(Folder<'a>, &'n str)> {
        let (parent, last) = split(name);
        Ok((self.folder(parent)?, last))
    }
}

/// Makes a folder with its parents, each where it is missing.
fn make_folders(folder: &Path) -> io::Result<()> {
    let made = match (make_folder(fs::CWD, folder), folder.parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            make_folders(parent)?;
            make_folder(fs::CWD, folder)
        }
        (made, _) => made,
    };
    // It is there, or someone else was faster.
    made.or_else(|error| match error.kind() {
        _ if folder.is_dir() => Ok(()),
        io::ErrorKind::AlreadyExists => Err(io::ErrorKind::NotADirectory.into()),
        _ => Err(error),
    })
}

/// Makes one folder with the full mode, whatever the umask.
fn make_folder(beneath: impl AsFd, name: impl rustix::path::Arg + Copy) -> io::Result<()> {
    fs::mkdirat(&beneath, name, FOLDER_MODE)?;
    let made = stat_of(&fs::statat(&beneath, name, AtFlags::SYMLINK_NOFOLLOW)?);
    match lacking(&made, FOLDER_MODE) {
        Some(whole) => Ok(fs::chmodat(&beneath, name, whole, AtFlags::empty())?),
        None => Ok(()),
    }
}

/// Returns the mode that a new file or folder should have, if the umask took away bits that we need.
fn lacking(made: &Stat, asked: Mode) -> Option<Mode> {
    let there = Mode::from_bits_truncate(made.mode as _);
    (!there.contains(asked)).then_some(there | asked)
}

enum Folder<'a> {
    Root(BorrowedFd<'a>),
    Inner(OwnedFd),
}

impl AsFd for Folder<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Folder::Root(fd) => *fd,
            Folder::Inner(fd) => fd.as_fd(),
        }
    }
}

/// Opens a name beneath a folder without following any link on the way.
#[cfg(target_os = "linux")]
fn open_beneath(root: BorrowedFd<'_>, name: &str, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    use rustix::fs::ResolveFlags;
    use rustix::io::Errno;

    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    for tries in 0.. {
        match fs::openat2(root, name, flags, mode, resolve) {
            Ok(fd) => return Ok(fd),
            // The kernel met a rename on the way and asks to try again; or another program has a lease on the file
            // and is asked to give it up.
            Err(Errno::AGAIN) if tries < OPEN_TRIES => {
                if tries >= OPEN_TRIES_AT_ONCE {
                    std::thread::sleep(OPEN_PAUSE);
                }
            }
            Err(Errno::NOSYS | Errno::PERM) => return open_stepwise(root, name, flags, mode),
            Err(errno) => return Err(named(errno)),
        }
    }
    unreachable!("the attempts have a bound")
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(root: BorrowedFd<'_>, name: &str, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    open_stepwise(root, name, flags, mode)
}

/// Opens a name segment by segment, each without following a link.
fn open_stepwise(root: BorrowedFd<'_>, name: &str, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (parents, last) = split(name);
    let mut folder: Option<OwnedFd> = None;
    for part in parents.split('/').filter(|part| !part.is_empty()) {
        let at = folder.as_ref().map_or(root, |fd| fd.as_fd());
        folder = Some(fs::openat(at, part, step, Mode::empty()).map_err(named)?);
    }
    let at = folder.as_ref().map_or(root, |fd| fd.as_fd());
    fs::openat(at, last, flags | OFlags::NOFOLLOW, mode).map_err(named)
}

/// A system error, with links and special files told apart from the rest.
fn named(errno: rustix::io::Errno) -> io::Error {
    use rustix::io::Errno;
    match errno {
        Errno::LOOP | Errno::XDEV | Errno::MLINK => io::Error::new(
            io::ErrorKind::InvalidInput,
            "a symbolic link is in the way, and links are not followed",
        ),
        Errno::NXIO | Errno::NODEV => io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"),
        other => other.into(),
    }
}

fn stat_of(stat: &fs::Stat) -> Stat {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Folder,
        _ => FileKind::Other,
    };
    Stat {
        kind,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mtime_ns: i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec),
        ctime_ns: i128::from(stat.st_ctime) * 1_000_000_000 + i128::from(stat.st_ctime_nsec),
        inode: stat.st_ino,
        links: link_count(stat),
        mode: stat.st_mode & 0o7777,
    }
}

#[allow(clippy::unnecessary_cast)] // Its width differs between systems.
fn link_count(stat: &fs::Stat) -> u64 {
    stat.st_nlink as u64
}

impl Vfs for RealFs {
    fn stat(&self, name: &str) -> io::Result<Stat> {
        if name.is_empty() {
            return Ok(stat_of(&fs::fstat(&self.root)?));
        }
        let (folder, last) = self.holder(name)?;
        Ok(stat_of(&fs::statat(&folder, last, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    fn open(&self, name: &str, how: Open) -> io::Result<Box<dyn VfsFile>> {
        let (how, mode) = match how {
            Open::Read => (OFlags::RDONLY, Mode::empty()),
            Open::Write => (OFlags::RDWR, Mode::empty()),
            Open::WriteOrCreate => (OFlags::RDWR | OFlags::CREATE, FILE_MODE),
            Open::CreateNew => (OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, FILE_MODE),
        };
        // Without NONBLOCK the opening of a pipe would wait for its other end.
        let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(open_beneath(self.root.as_fd(), name, flags, mode)?);
        let mut stat = stat_of(&fs::fstat(&file)?);
        if flags.contains(OFlags::CREATE) && stat.kind == FileKind::File && stat.size == 0 {
            if let Some((user, group)) = self.owner {
                fs::fchown(&file, Some(user), Some(group))?;
            }
            if let Some(whole) = lacking(&stat, FILE_MODE) {
                fs::fchmod(&file, whole)?;
                stat = stat_of(&fs::fstat(&file)?);
            }
        }
        match stat.kind {
            FileKind::File => Ok(Box::new(RealFile::new(file, stat))),
            FileKind::Folder => Err(io::ErrorKind::IsADirectory.into()),
            FileKind::Other => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        }
    }

    fn read_dir(&self, name: &str) -> io::Result<Vec<(Result<String, String>, Stat)>> {
        let folder = self.folder(name)?;
        let mut found = Vec::new();
        for entry in fs::Dir::read_from(&folder)? {
            let entry = entry?;
            let raw = entry.file_name();
            if raw == c"." || raw == c".." {
                continue;
            }
            let stat = match fs::statat(&folder, raw, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat_of(&stat),
                // It was removed while we read the folder.
                Err(rustix::io::Errno::NOENT) => continue,
                Err(errno) => return Err(errno.into()),
            };
            let name = match raw.to_str() {
                Ok(name) => Ok(name.to_owned()),
                Err(_) => Err(raw.to_bytes().escape_ascii().to_string()),
            };
            found.push((name, stat));
        }
        Ok(found)
    }

    fn names(&self, name: &str, max: usize) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        let folder = match self.folder(name)? {
            Folder::Root(root) => fs::Dir::read_from(root)?,
            // It is read through this very descriptor, which is nobody else's.
            Folder::Inner(folder) => fs::Dir::new(folder)?,
        };
        for entry in folder {
            if found.len() >= max {
                break;
            }
            match entry?.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => found.push(name.to_owned()),
            }
        }
        Ok(found)
    }

    fn mkdir(&self, name: &str) -> io::Result<()> {
        let (folder, last) = self.holder(name)?;
        make_folder(&folder, last)?;
        match self.owner {
            Some((user, group)) => {
                Ok(fs::chownat(&folder, last, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?)
            }
            None => Ok(()),
        }
    }

    fn remove_file(&self, name: &str) -> io::Result<()> {
        let (folder, last) = self.holder(name)?;
        Ok(fs::unlinkat(&folder, last, AtFlags::empty())?)
    }

    fn remove_dir(&self, name: &str) -> io::Result<()> {
        let (folder, last) = self.holder(name)?;
        Ok(fs::unlinkat(&folder, last, AtFlags::REMOVEDIR)?)
    }

    fn rename(&self, from: &str, to: &str, how: Rename) -> io::Result<()> {
        let (from_folder, from_last) = self.holder(from)?;
        let (to_folder, to_last) = self.holder(to)?;
        rename_at(&from_folder, from_last, &to_folder, to_last, how)
    }

    fn sync_dir(&self, name: &str) -> io::Result<()> {
        Ok(fs::fsync(self.folder(name)?)?)
    }

    fn sync_tree(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        fs::syncfs(&self.root)?;
        #[cfg(not(target_os = "linux"))]
        fs::sync();
        Ok(())
    }

    fn set_mode(&self, name: &str, mode: u32) -> io::Result<()> {
        let mode = Mode::from_bits_truncate(mode as _);
        if name.is_empty() {
            return Ok(fs::fchmod(&self.root, mode)?);
        }
        let (folder, last) = self.holder(name)?;
        Ok(fs::chmodat(&folder, last, mode, AtFlags::empty())?)
    }

    fn boot_id(&self) -> Option<String> {
        if cfg!(target_os = "linux") {
            let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
            return Some(id.trim().to_owned());
        }
        None
    }
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn rename_at(
    from: &Folder<'_>,
    from_last: &str,
    to: &Folder<'_>,
    to_last: &str,
    how: Rename,
) -> io::Result<()> {
    use rustix::io::Errno;
    let flags = match how {
        Rename::NoReplace => RenameFlags::NOREPLACE,
        Rename::Replace => RenameFlags::empty(),
        Rename::Exchange => RenameFlags::EXCHANGE,
    };
    match fs::renameat_with(from, from_last, to, to_last, flags) {
        Ok(()) => Ok(()),
        // Some file systems know neither flag. A free target can then only be checked, not held.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if how == Rename::NoReplace => {
            if fs::statat(to, to_last, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            Ok(fs::renameat(from, from_last, to, to_last)?)
        }
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if how == Rename::Exchange => {
            Err(io::ErrorKind::Unsupported.into())
        }
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn rename_at(
    from: &Folder<'_>,
    from_last: &str,
    to: &Folder<'_>,
    to_last: &str,
    how: Rename,
) -> io::Result<()> {
    if how == Rename::Exchange {
        return Err(io::ErrorKind::Unsupported.into());
    }
    if how == Rename::NoReplace && fs::statat(to, to_last, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    Ok(fs::renameat(from, from_last, to, to_last)?)
}
