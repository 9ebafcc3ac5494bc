//! Who may read a store: its owner, and nobody else.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use memgrove::backend::{Finding, Level};
use memgrove::backends::local::{JOURNAL, LOCK, TEMPORARY};
use memgrove::{Error, Result};

use crate::address::FOLDERS;
use crate::settings;

/// What is in the root of a store beside the memories.
const OWN: [&str; 4] = [settings::FILE, settings::GITIGNORE_FILE, JOURNAL, LOCK];

/// What is wrong with the modes of a store's files and folders, as one finding.
///
/// # Errors
/// `Denied` or `Io` where a folder cannot be looked into.
pub(crate) fn check(root: &Path) -> Result<Option<Finding>> {
    let open = open_to_others(root)?;
    let Some(first) = open.first() else { return Ok(None) };
    let first = first.strip_prefix(root).unwrap_or(first).display().to_string();
    let at = if first.is_empty() { ".".to_owned() } else { first };
    let may = if open.iter().any(|path| others_may_write(path)) { "read or change" } else { "read" };
    let what = match open.len() {
        1 => format!("other users of this machine may {may} it"),
        count => {
            format!(
                "other users of this machine may {may} {count} files and folders, of which this is the first"
            )
        }
    };
    let hint = "`memgrove doctor --fix` fixes the permissions".to_owned();
    Ok(Some(Finding { level: Level::Warning, at, what, hint }))
}

/// Takes away what others may do, and says for how many files and folders.
///
/// # Errors
/// `Denied` or `Io` as the machine says.
pub(crate) fn mend(root: &Path) -> Result<usize> {
    let open = open_to_others(root)?;
    for path in &open {
        close_to_others(path).map_err(|error| Error::from_io(error, path.display()))?;
    }
    Ok(open.len())
}

/// Whether others have any right to a file.
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| others_may(&metadata))
}

/// Every file and folder of the store that others may access. Links are not followed, and files with other
/// names too are left alone.
fn open_to_others(root: &Path) -> Result<Vec<PathBuf>> {
    let mut open = Vec::new();
    let mut waiting = own(root)?;
    while let Some(path) = waiting.pop() {
        let wrong = |error| Error::from_io(error, path.display());
        let metadata = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            metadata => metadata.map_err(wrong)?,
        };
        if metadata.is_dir() {
            match fs::read_dir(&path) {
                // The storage's own check reports it.
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {}
                entries => {
                    for entry in entries.map_err(wrong)? {
                        waiting.push(entry.map_err(wrong)?.path());
                    }
                }
            }
        }
        if (metadata.is_dir() || is_ours(&metadata)) && others_may(&metadata) {
            open.push(path);
        }
    }
    open.sort();
    Ok(open)
}

/// Where to look: in the whole folder; or, if it holds other things too, as a project that became a store
/// does, only in what belongs to the store.
fn own(root: &Path) -> Result<Vec<PathBuf>> {
    let is_own = |name: &str| OWN.contains(&name) || FOLDERS.contains(&name) || name.starts_with(TEMPORARY);
    let wrong = |error| Error::from_io(error, root.display());
    let entries = match fs::read_dir(root) {
        // The storage's own check reports it.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Ok(vec![root.to_owned()]);
        }
        entries => entries.map_err(wrong)?,
    };
    let names: Vec<_> = entries.map(|entry| Ok(entry.map_err(wrong)?.file_name())).collect::<Result<_>>()?;
    let own: Vec<_> = names.iter().filter(|name| name.to_str().is_some_and(is_own)).collect();
    match own.len() == names.len() {
        true => Ok(vec![root.to_owned()]),
        false => Ok(own.into_iter().map(|name| root.join(name)).collect()),
    }
}

/// Whether it is a file that has no other name, perhaps outside the store.
#[cfg(unix)]
fn is_ours(metadata: &Metadata) -> bool {
    metadata.is_file() && std::os::unix::fs::MetadataExt::nlink(metadata) == 1
}

#[cfg(not(unix))]
fn is_ours(metadata: &Metadata) -> bool {
    metadata.is_file()
}

#[cfg(unix)]
fn others_may(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn others_may(_: &Metadata) -> bool {
    false
}

#[cfg(unix)]
fn others_may_write(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::symlink_metadata(path).is_ok_and(|about| about.permissions().mode() & 0o022 != 0)
}

#[cfg(not(unix))]
fn others_may_write(_: &Path) -> bool {
    false
}

/// Changes the mode through an open file, so that a link that took its place meanwhile is not
/// followed.
#[cfg(unix)]
fn close_to_others(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o700;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn close_to_others(_: &Path) -> std::io::Result<()> {
    Ok(())
}
