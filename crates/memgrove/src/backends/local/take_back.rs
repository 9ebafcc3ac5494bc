//! Undoing a change that is in the journal and could not be placed: it did not happen, and the journal says so.

use std::io;
use std::sync::Arc;

use super::Core;
use super::checkpoint::Dirty;
use super::displaced::Displaced;
use super::journal::Journal;
use super::place::{if_there, is_changed_by_others};
use super::record::{Entry, Header, Record, What, change_id};
use crate::backend::{Moment, Note, Version};
use crate::locator::Locator;
use crate::vfs::{Open, Rename};

impl Core {
    /// Undoes what was placed of the first edits of a record, and says in the journal that it did not happen.
    pub(super) fn take_back(
        &self,
        journal: &mut Journal,
        displaced: &mut Vec<Displaced>,
        record: &Record,
        begun: usize,
    ) -> io::Result<()> {
        for index in (0..begun).rev() {
            match self.take_back_edit(journal, displaced, record, index) {
                Err(error) if !is_changed_by_others(&error) => return Err(error),
                _ => {}
            }
        }
        record.header.edits.iter().for_each(|entry| drop(journal.known.remove(entry.at())));
        self.remove_temps(journal, record);
        // Recovery will not look at this change again, so nothing of it may be in doubt.
        self.sync_dirty(&Dirty::of_undone(record))?;
        self.abort(journal, record.header.seq)
    }

    /// Says in the journal, durably, that a change did not happen.
    pub(super) fn abort(&self, journal: &mut Journal, seq: u64) -> io::Result<()> {
        let header = Header {
            seq: journal.mark.next_seq,
            time: self.clock.now(),
            what: What::Abort(seq),
            note: Note::default(),
            edits: Vec::new(),
        };
        // The change has kept room for this.
        journal.append(&Arc::new(Record::new(header, Vec::new())), 0)?;
        self.sync_journal(&*journal.file).map_err(io::Error::other)
    }

    fn take_back_edit(
        &self,
        journal: &Journal,
        displaced: &mut Vec<Displaced>,
        record: &Record,
        index: usize,
    ) -> io::Result<()> {
        let temp = journal.temps.name(record.header.seq, index);
        // The content before it, where the file itself is gone: another process may have placed the edit, and died.
        let before = |at: &Locator| {
            let moment = Moment::Before(change_id(record.header.seq));
            self.read_past(at, &moment).map_err(io::Error::other)
        };
        match &record.header.edits[index] {
            Entry::Write { at, new, .. } if self.holds(at, new)? => {
                if self.give_back(displaced, &temp, at, new)? {
                    return Ok(());
                }
                match before(at)? {
                    Some(bytes) => self.replace(at, &bytes, &temp),
                    None => self.tree.remove_file(&self.spelled(at)),
                }
            }
            Entry::Append { at, offset, created, .. } => {
                let (name, bytes) = (self.spelled(at), record.after(index));
                let there = match self.tree.open(&name, Open::Read) {
                    // Nobody could have written to it either.
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
                    opened => opened?.read_at(*offset, bytes.len() + 1)?,
                };
                // Of what was made for it, nothing else may be there; what others have put behind it stays.
                if *created && *offset == 0 && (there.is_empty() || there == bytes) {
                    return self.tree.remove_file(&name);
                }
                if there == bytes { self.tree.open(&name, Open::Write)?.set_len(*offset) } else { Ok(()) }
            }
            Entry::Delete { at, old: Some(_), .. } => {
                if let Some(there) = if_there(self.tree.stat(&temp))? {
                    forget(displaced, there.inode);
                }
                match self.tree.rename(&temp, &self.spelled(at), Rename::NoReplace) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    given_back => return given_back,
                }
                match if_there(self.tree.stat(&self.spelled(at)))? {
                    None => before(at)?.map_or(Ok(()), |bytes| self.replace(at, &bytes, &temp)),
                    Some(_) => Ok(()),
                }
            }
            Entry::Delete { at, old: None, .. } => self.tree.mkdir(&self.spelled(at)),
            Entry::Rename { at, to, .. } => {
                self.tree.rename(&self.spelled(to), &self.spelled(at), Rename::NoReplace)
            }
            Entry::Write { .. } => Ok(()),
        }
    }

    /// Gives a file that was displaced its place again, with whatever someone has saved in it. `false` if it has
    /// no name any more.
    fn give_back(
        &self,
        displaced: &mut Vec<Displaced>,
        temp: &str,
        at: &Locator,
        new: &Version,
    ) -> io::Result<bool> {
        let Some(there) = if_there(self.tree.stat(temp))? else { return Ok(false) };
        let exchange = || self.tree.rename(temp, &self.spelled(at), Rename::Exchange);
        match exchange() {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(false),
            exchanged => exchanged?,
        }
        forget(displaced, there.inode);
        if Version::of(&self.tree.open(temp, Open::Read)?.read_all()?) == *new {
            return Ok(true);
        }
        // Someone has saved another file there since it was looked at: that one stays.
        exchange().map(|()| true)
    }
}

/// Watches a file no longer that has its place again.
fn forget(displaced: &mut Vec<Displaced>, inode: u64) {
    displaced.retain(|old| old.file().inode().ok() != Some(inode));
}
