//! Undoing a change that is in the journal and could not be placed: it did not happen, and the journal says so.

use std::io;
use std::sync::Arc;

use super::Core;
use super::checkpoint::Dirty;
use super::journal::Journal;
use super::place::is_changed_by_others;
use super::record::{Entry, Header, Record, What, change_id};
use crate::backend::{Moment, Note};
use crate::locator::Locator;
use crate::vfs::{Open, Rename};

impl Core {
    /// Undoes what was placed of the first edits of a record, and says in the journal that it did not happen.
    pub(super) fn take_back(&self, journal: &mut Journal, record: &Record, begun: usize) -> io::Result<()> {
        for index in (0..begun).rev() {
            match self.take_back_edit(journal, record, index) {
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
        self.sync_record(journal)
    }

    fn take_back_edit(&self, journal: &Journal, record: &Record, index: usize) -> io::Result<()> {
        let temp = journal.temps.name(record.header.seq, index);
        let before = |at: &Locator| {
            let moment = Moment::Before(change_id(record.header.seq));
            self.read_past(at, &moment).map_err(io::Error::other)
        };
        match &record.header.edits[index] {
            Entry::Write { at, new, .. } if self.holds(at, new) => match before(at)? {
                Some(bytes) => self.replace(at, &bytes, &temp),
                None => self.tree.remove_file(&self.spelled(at)),
            },
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
            Entry::Delete { at, old: Some(_), .. } if self.tree.stat(&self.spelled(at)).is_err() => {
                match before(at)? {
                    Some(bytes) => self.replace(at, &bytes, &temp),
                    None => Ok(()),
                }
            }
            Entry::Delete { at, old: None, .. } => self.tree.mkdir(&self.spelled(at)),
            Entry::Rename { at, to, .. } => {
                self.tree.rename(&self.spelled(to), &self.spelled(at), Rename::NoReplace)
            }
            Entry::Write { .. } | Entry::Delete { .. } => Ok(()),
        }
    }
}
