//! The temporary files of a change: where its new content lies until the journal is durable.

use std::io;

use super::journal::Journal;
use super::place::if_there;
use super::record::{Entry, Record};
use super::{Core, meant};
use crate::backend::FileKind;
use crate::error::Result;
use crate::locator::Locator;
use crate::vfs::{Open, VfsFile};

/// The permission bits of a new file.
const OWN_MODE: u32 = 0o600;
/// How many bytes of a temporary file are compared at a time.
const PIECE_BYTES: usize = 1024 * 1024;

/// What is prepared for a change, edit by edit.
#[derive(Default)]
pub(super) struct Prepared {
    /// The files that are replaced, where they are open still.
    replaced: Vec<Option<Box<dyn VfsFile>>>,
    /// The inodes of the temporary files.
    temps: Vec<Option<u64>>,
    /// The folders that were made.
    folders: Vec<String>,
}

impl Prepared {
    /// Takes the inode of an edit's temporary file, and the file that the edit replaces, if still open.
    pub(super) fn take(&mut self, index: usize) -> (Option<u64>, Option<Box<dyn VfsFile>>) {
        let replaced = self.replaced.get_mut(index).and_then(Option::take);
        (self.temps.get(index).copied().flatten(), replaced)
    }
}

impl Core {
    /// Writes the new content of every file beside its place. A full disk shows here, before anything has
    /// happened.
    pub(super) fn prepare(
        &self,
        journal: &Journal,
        record: &Record,
        replaced: Vec<Option<Box<dyn VfsFile>>>,
    ) -> Result<Prepared> {
        let mut prepared = Prepared { replaced, ..Prepared::default() };
        // An earlier edit may yet make a missing folder: then folders are made when the edits are placed.
        let moves = |entry: &Entry| matches!(entry, Entry::Rename { .. } | Entry::Delete { .. });
        let plain = !record.header.edits.iter().any(moves);
        for (index, entry) in record.header.edits.iter().enumerate() {
            let Entry::Write { at, old, .. } = entry else {
                prepared.temps.push(None);
                continue;
            };
            let name = journal.temps.name(record.header.seq, index);
            // If there was a file before, its folder exists.
            let made = if plain && old.is_none() { self.make_parents(at) } else { Ok(Vec::new()) };
            let made = made.map(|made| prepared.folders.extend(made));
            let mut written = made.and_then(|()| self.write_temp(&name, record.after(index)));
            if old.is_some() {
                let file = prepared.replaced.get(index).and_then(Option::as_deref);
                written = written.and_then(|inode| self.keep_mode(at, file, &name).map(|()| inode));
            }
            match written {
                Ok(inode) => prepared.temps.push(Some(inode)),
                Err(error) => {
                    self.abandon(journal, record, &prepared);
                    return Err(meant(error, at));
                }
            }
        }
        Ok(prepared)
    }

    /// Takes back what was prepared for a change that does not happen.
    pub(super) fn abandon(&self, journal: &Journal, record: &Record, prepared: &Prepared) {
        self.remove_temps(journal, record);
        self.remove_folders(&prepared.folders);
    }

    /// Writes the new content of an edit to its temporary file, and returns its inode.
    pub(super) fn write_temp(&self, name: &str, bytes: &[u8]) -> io::Result<u64> {
        let file = match self.tree.open(name, Open::CreateNew) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Left by a process that died before it had a record of that number.
                self.tree.remove_file(name)?;
                self.tree.open(name, Open::CreateNew)?
            }
            other => other?,
        };
        let written =
            file.write_at(0, bytes).and_then(|()| if self.sync_files { file.sync_data() } else { Ok(()) });
        written.and_then(|()| file.inode()).inspect_err(|_| {
            let _ = self.tree.remove_file(name);
        })
    }

    /// Whether another process has made this temporary file with exactly these bytes. After the exchange it
    /// holds the content from before instead.
    pub(super) fn is_made(&self, temp: &str, bytes: &[u8]) -> io::Result<bool> {
        let Some(file) = if_there(self.tree.open(temp, Open::Read))? else { return Ok(false) };
        if file.stat()?.size != bytes.len() as u64 {
            return Ok(false);
        }
        for (index, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            if file.read_at((index * PIECE_BYTES) as u64, piece.len())? != piece {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives a temporary file the permission bits of the file whose place it is to take, which may be
    /// open already.
    pub(super) fn keep_mode(&self, at: &Locator, file: Option<&dyn VfsFile>, temp: &str) -> io::Result<()> {
        let (kind, mode) = match file {
            Some(file) => (FileKind::File, file.mode()?),
            None => match self.tree.stat(&self.spelled(at)) {
                Ok(stat) => (stat.kind, stat.mode),
                Err(_) => return Ok(()),
            },
        };
        match mode & 0o777 {
            mode if kind == FileKind::File && mode != OWN_MODE => self.tree.set_mode(temp, mode),
            _ => Ok(()),
        }
    }
}
