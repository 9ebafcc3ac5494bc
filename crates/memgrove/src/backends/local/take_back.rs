//! How a change that is in the journal but could not be placed is undone and marked as not made.

use std::io;

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
        let mut given_back = vec![true; record.header.edits.len()];
        for index in (0..begun).rev() {
            given_back[index] = match self.take_back_edit(journal, displaced, record, index) {
                Err(error) if is_changed_by_others(&error) => false,
                taken_back => taken_back?,
            };
        }
        record.header.edits.iter().for_each(|entry| drop(journal.known.remove(entry.at())));
        self.clear_temps(journal, displaced, record, &given_back)?;
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
        // Appending the change reserved the room for this.
        self.keep_note(journal, Record::new(header, Vec::new()), 0)
    }

    /// Removes the temporary files of a record. The history keeps displaced content that could not be put
    /// back because someone has used its place since.
    fn clear_temps(
        &self,
        journal: &mut Journal,
        displaced: &mut [Displaced],
        record: &Record,
        given_back: &[bool],
    ) -> io::Result<()> {
        for (index, entry) in record.header.edits.iter().enumerate() {
            let name = journal.temps.name(record.header.seq, index);
            let file = match self.tree.open(&name, Open::Read) {
                Err(error) if is_changed_by_others(&error) => None,
                opened => Some(opened?),
            };
            let Some(file) = file else {
                // The file is gone already, but the record may hold what was there before.
                let bytes = record.before(index).filter(|_| !given_back[index]);
                if let (Some(bytes), Some(old)) = (bytes, entry.old_version())
                    && !self.holds(entry.at(), old)?
                {
                    self.journal_outside(journal, entry.at(), bytes.to_vec())?;
                }
                continue;
            };
            let (bytes, inode) = (file.read_all()?, file.inode()?);
            let version = Version::of(&bytes);
            let is_new = entry.new_version() == Some(&version);
            self.clear_temp(journal, &name, entry.at(), (bytes, is_new))?;
            displaced
                .iter_mut()
                .filter(|old| is_file(old, inode))
                .for_each(|old| old.lose_name(version.clone()));
        }
        Ok(())
    }

    /// Gives a place what it had before an edit. `false` if somebody has used it since.
    fn take_back_edit(
        &self,
        journal: &mut Journal,
        displaced: &mut Vec<Displaced>,
        record: &Record,
        index: usize,
    ) -> io::Result<bool> {
        let temp = journal.temps.name(record.header.seq, index);
        // Reads the earlier content from the history where the file is gone, as after a process that died.
        let before = |at: &Locator| {
            let moment = Moment::Before(change_id(record.header.seq));
            self.read_past(at, &moment).map_err(io::Error::other)
        };
        match &record.header.edits[index] {
            Entry::Write { at, new, .. } if self.holds(at, new)? => {
                if let Some(given_back) = self.give_back(displaced, &temp, at, new)? {
                    return Ok(given_back);
                }
                match before(at)? {
                    Some(bytes) => {
                        self.make_temp(at, &bytes, &temp)?;
                        self.swap_in(journal, displaced, &temp, (at, Some(new)), None)?;
                    }
                    None => self.place_delete(journal, displaced, at, new, &temp)?,
                }
                self.clear_spent(journal);
                Ok(true)
            }
            Entry::Append { at, offset, created, .. } => {
                let (name, bytes) = (self.spelled(at), record.after(index));
                let there = match self.tree.open(&name, Open::Read) {
                    // What cannot be opened was not appended to either.
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(true),
                    opened => opened?.read_at(*offset, bytes.len() + 1)?,
                };
                // A file made for it goes only if nothing else is in it; what others appended stays.
                if *created && *offset == 0 && (there.is_empty() || there == bytes) {
                    self.tree.remove_file(&name)?;
                } else if there == bytes {
                    self.tree.open(&name, Open::Write)?.set_len(*offset)?;
                }
                Ok(true)
            }
            Entry::Delete { at, old: Some(_), .. } => {
                if let Some(there) = if_there(self.tree.stat(&temp))? {
                    self.tree.rename(&temp, &self.spelled(at), Rename::NoReplace)?;
                    forget(displaced, there.inode);
                    return Ok(true);
                }
                if if_there(self.tree.stat(&self.spelled(at)))?.is_some() {
                    return Ok(false);
                }
                if let Some(bytes) = before(at)? {
                    self.make_temp(at, &bytes, &temp)?;
                    let placed = self.tree.rename(&temp, &self.spelled(at), Rename::NoReplace);
                    placed.inspect_err(|_| drop(self.tree.remove_file(&temp)))?;
                }
                Ok(true)
            }
            Entry::Delete { at, old: None, .. } => self.tree.mkdir(&self.spelled(at)).map(|()| true),
            Entry::Rename { at, to, .. } => {
                self.tree.rename(&self.spelled(to), &self.spelled(at), Rename::NoReplace).map(|()| true)
            }
            Entry::Write { .. } => Ok(false),
        }
    }

    /// Writes a content that is to have its place again beside it.
    fn make_temp(&self, at: &Locator, bytes: &[u8], temp: &str) -> io::Result<()> {
        self.write_temp(temp, bytes)?;
        self.keep_mode(at, None, temp)?;
        self.make_parents(at).map(drop)
    }

    /// Gives a file that was displaced its place again, with whatever someone has saved in it; not if someone has put
    /// another file there since. `None` if it has no name any more.
    fn give_back(
        &self,
        displaced: &mut Vec<Displaced>,
        temp: &str,
        at: &Locator,
        new: &Version,
    ) -> io::Result<Option<bool>> {
        let Some(there) = if_there(self.tree.stat(temp))? else { return Ok(None) };
        let exchange = || self.tree.rename(temp, &self.spelled(at), Rename::Exchange);
        match exchange() {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(None),
            exchanged => exchanged?,
        }
        let is_ours = Version::of(&self.tree.open(temp, Open::Read)?.read_all()?) == *new;
        match is_ours {
            true => forget(displaced, there.inode),
            false => exchange()?,
        }
        Ok(Some(is_ours))
    }
}

/// Stops watching a file that has its place back.
fn forget(displaced: &mut Vec<Displaced>, inode: u64) {
    displaced.retain(|old| !is_file(old, inode));
}

fn is_file(displaced: &Displaced, inode: u64) -> bool {
    displaced.file().inode().ok() == Some(inode)
}
