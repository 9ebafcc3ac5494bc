//! What is wrong with a store on disk, in sentences.

use std::io;

use super::journal::{FOLDER, segment_name, segments};
use super::scan::scan;
use super::temps::{self, Temps};
use super::{Core, LOCK};
use crate::backend::{FileKind, Finding, Level, random_id};
use crate::error::{Error, Result};
use crate::locator::{Locator, collision_key};
use crate::vfs::{Open, Vfs};

impl Core {
    pub(super) fn check(&self) -> Result<Vec<Finding>> {
        let mut found = Vec::new();
        if let Some(why) = self.failed.get() {
            found.push(finding(
                Level::Error,
                "",
                why.clone(),
                "check the disk and the permissions, then run `memgrove doctor` again",
            ));
        }
        match self.state.open(LOCK, Open::Write) {
            Err(error) if is_denied(&error) => found.push(unwritable(LOCK, error)),
            _ => self.check_writing(&mut found),
        }
        self.check_journal(&mut found)?;
        self.check_folder(&Locator::root(), &mut found)?;
        Ok(found)
    }

    /// Tries what every change does: to make a file in the tree, and where the journal lies.
    fn check_writing(&self, found: &mut Vec<Finding>) {
        // No record has number 0, so the next checkpoint removes the file if this process is killed.
        let temps = Temps::read(&*self.state).ok().flatten();
        let name = temps
            .map_or_else(|| format!("{}{}", temps::PREFIX, random_id()), |temps| temps.name(0, usize::MAX));
        let attempts = [
            Some((&self.tree, name.clone(), "store")),
            self.state.stat(FOLDER).is_ok().then(|| (&self.state, format!("{FOLDER}/{name}"), FOLDER)),
        ];
        for (disk, name, at) in attempts.into_iter().flatten() {
            if let Err(error) = attempt(&**disk, &name) {
                found.push(unwritable(at, error));
                return;
            }
        }
    }

    fn check_journal(&self, found: &mut Vec<Finding>) -> Result<()> {
        let in_journal = |error| Error::from_io(error, "the journal");
        for segment in segments(&*self.state).map_err(in_journal)? {
            let name = segment_name(segment);
            let file = self.state.open(&name, Open::Read).map_err(in_journal)?;
            for span in scan(&*file, 0..u64::MAX, false).map_err(in_journal)?.damaged {
                found.push(finding(
                    Level::Error,
                    &name,
                    format!("bytes {} to {} are damaged", span.start, span.end),
                    "the records around them are whole and in use; the bytes are kept as they are",
                ));
            }
        }
        Ok(())
    }

    fn check_folder(&self, folder: &Locator, found: &mut Vec<Finding>) -> Result<()> {
        let entries = match self.tree.read_dir(&self.spelled(folder)) {
            Ok(entries) => entries,
            Err(error) if folder.is_root() => return Err(super::meant(error, folder)),
            Err(error) => {
                found.push(unreadable(folder, &error));
                return Ok(());
            }
        };
        let mut keys = std::collections::HashMap::new();
        for (name, stat) in entries {
            let at = match name.as_ref().map(|name| folder.child(name)) {
                Ok(Ok(at)) => at,
                Ok(Err(_)) | Err(_) => {
                    // A name that is not text comes escaped already.
                    let shown = name.map_or_else(|escaped| escaped, |name| name.escape_debug().to_string());
                    found.push(finding(
                        Level::Warning,
                        &format!("{folder}/{shown}"),
                        "memgrove cannot spell this name, so the file is ignored".into(),
                        "rename it to printable UTF-8 of at most 255 bytes",
                    ));
                    continue;
                }
            };
            let name = name.unwrap_or_default();
            if folder.is_root() && self.is_private(&name) {
                if name.starts_with(temps::PREFIX) {
                    found.push(self.temporary(&name));
                }
                continue;
            }
            if let Some(twin) = keys.insert(collision_key(&name), at.clone()) {
                found.push(finding(
                    Level::Warning,
                    at.key(),
                    format!("it differs from `{twin}` only in case or accents"),
                    "rename one of them: on other systems they would be one file",
                ));
            }
            match stat.kind {
                FileKind::Folder => self.check_folder(&at, found)?,
                FileKind::File => {
                    if let Err(error) = self.tree.open(&self.spelled(&at), Open::Read) {
                        found.push(unreadable(&at, &error));
                    }
                }
                FileKind::Other => found.push(finding(
                    Level::Warning,
                    at.key(),
                    "it is a link or a special file, so it is not read".into(),
                    "replace it by a regular file if it is a memory",
                )),
            }
        }
        Ok(())
    }

    fn temporary(&self, name: &str) -> Finding {
        let ours = Temps::read(&*self.state).ok().flatten();
        let (what, hint) = match ours.is_some_and(|ours| ours.numbers(name).is_some()) {
            true => ("a temporary file of a writer", "the next checkpoint removes it if its writer died"),
            false => (
                "it is named like a temporary file, but is not one of this journal",
                "if no other state folder is used with this folder, move it or delete it by hand",
            ),
        };
        finding(Level::Info, name, what.into(), hint)
    }
}

/// Makes a file and removes it.
fn attempt(disk: &dyn Vfs, name: &str) -> io::Result<()> {
    let written = disk.open(name, Open::WriteOrCreate).and_then(|file| file.write_at(0, &[b'.'; 4096]));
    match disk.remove_file(name) {
        // Another check was faster.
        Err(error) if error.kind() != io::ErrorKind::NotFound => written.and(Err(error)),
        _ => written,
    }
}

fn is_denied(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn unwritable(at: &str, error: io::Error) -> Finding {
    if is_denied(&error) {
        let what = format!("the store is read-only here ({error})");
        let hint = "check who owns the store and its folders, and whether its disk is writable";
        return finding(Level::Warning, at, what, hint);
    }
    let what = format!("nothing can be written here ({error})");
    let error = Error::from_io(error, at);
    finding(Level::Error, at, what, error.hint_text().unwrap_or("check the disk"))
}

fn unreadable(at: &Locator, error: &io::Error) -> Finding {
    let what = format!("it cannot be read ({error}), so nothing in it is found");
    finding(Level::Error, at.key(), what, "check its owner and permissions")
}

fn finding(level: Level, at: &str, what: String, hint: &str) -> Finding {
    Finding { level, at: at.to_owned(), what, hint: hint.to_owned() }
}
