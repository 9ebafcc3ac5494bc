//! What a power cut left undone, done: every file is brought to what the last record says of it,
//! except where someone else has changed it since.

use std::io;
use std::sync::Arc;

use super::checkpoint::Dirty;
use super::displaced::Displaced;
use super::journal::{Journal, fits, segments};
use super::mark::MarkFile;
use super::outcome::Outcome;
use super::pending::Pending;
use super::place::is_changed_by_others;
use super::record::{Entry, Record};
use super::restore::Redoing;
use super::{Bug, Core, Inner};
use crate::error::{Error, Kind, Result};
use crate::vfs::Open;

/// After the mark has been silent for this long, the process that owed a checkpoint must be gone.
const CHECKPOINT_OVERDUE_NS: i128 = 3_000_000_000;

impl Core {
    /// Recovers if the machine may have stopped since the journal was last in order.
    pub(super) fn recover_if_needed(&self) -> Result<()> {
        let in_journal = |error| Error::from_io(error, "the journal");
        let mark = match MarkFile::open(&*self.state, Open::Read) {
            Ok(file) => {
                file.read().and_then(|mark| Ok(mark.zip(Some(file.time_ns()?)))).map_err(in_journal)?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(in_journal(error)),
        };
        if let Some((mark, time_ns)) =
            mark.filter(|(mark, _)| !self.boot.is_empty() && mark.boot == self.boot)
        {
            let left = mark.checkpoint < mark.end
                && self.clock.now().as_nanosecond() - time_ns >= CHECKPOINT_OVERDUE_NS;
            if mark.placed < mark.end || left || !fits(&*self.state, &mark).map_err(in_journal)? {
                // A process was killed, or is at work, or the store is a copy. Its change must not be seen
                // half done, and its checkpoint is made when this closes. If this fails, the next change
                // retries.
                let _ = self.lock_recovered();
            }
            return Ok(());
        }
        if segments(&*self.state).map_err(in_journal)?.is_empty() {
            return Ok(());
        }
        let recovered = self.lock().and_then(|mut locked| match self.boot.is_empty() {
            true => self.recover(&mut locked.inner),
            // Unless another process has done it while the lock was waited for.
            false => self.ready(&mut locked.inner),
        });
        match recovered {
            // Another process is at it; the next change sees to what is left.
            Err(error) if error.kind() == Kind::Busy && !self.boot.is_empty() => Ok(()),
            // A store that cannot be written can still be read; the check reports it.
            Err(error)
                if matches!(
                    error.kind(),
                    Kind::Denied | Kind::Full | Kind::Busy | Kind::Invalid | Kind::Exists
                ) =>
            {
                let _ = self
                    .failed
                    .set(format!("it could not be recovered after a stop of the machine ({error})"));
                Ok(())
            }
            other => other,
        }
    }

    /// Brings every file to what the records since the last checkpoint say. With the lock in hand.
    pub(super) fn recover(&self, inner: &mut Inner) -> Result<()> {
        let in_journal = |error| Error::from_io(error, "the journal");
        inner.journal = None;
        let drop_bad = self.seeded.has(Bug::DropBadRecords);
        let mut journal = Journal::rebuild(&self.state, &self.boot, drop_bad).map_err(in_journal)?;
        let read = |pending: Pending| Some((pending.end, pending.record()?));
        let records: Vec<_> = journal.pending.drain(..).filter_map(read).collect();
        // The journal must be durable before files are changed to match it.
        journal.file.sync_data().map_err(in_journal)?;
        self.fence(&mut journal)?;
        // Records that move things stand alone, between two fences, as when they were placed.
        for alike in records.chunk_by(|(_, a), (_, b)| !a.is_fenced() && !b.is_fenced()) {
            let redone: Vec<_> = alike.iter().map(|(_, record)| Arc::clone(record)).collect();
            self.redo(&mut journal, &mut inner.displaced, &redone)?;
            journal.mark.placed = alike.last().map_or(journal.mark.placed, |(end, _)| *end);
            self.sync_dirty(&Dirty::of(redone.iter().map(|record| &record.header))).map_err(in_journal)?;
            journal.mark.checkpoint = journal.mark.placed;
            let file = &journal.mark_file;
            file.write(&journal.mark).and_then(|()| file.sync()).map_err(in_journal)?;
        }
        journal.mark.placed = journal.mark.end;
        journal.mark.checkpoint = journal.mark.end;
        journal.mark.boot.clone_from(&self.boot);
        let file = &journal.mark_file;
        let words = file.set_appends(0).and_then(|()| file.set_begun(0));
        let moved = words.and_then(|()| file.write(&journal.mark));
        moved.and_then(|()| file.sync()).map_err(in_journal)?;
        let redone: Vec<_> = records.into_iter().map(|(_, record)| record).collect();
        self.clear_spent(&mut journal);
        self.clear_redone(&mut journal, &redone).map_err(in_journal)?;
        inner.journal = Some(journal);
        self.sweep_temps(inner);
        Ok(())
    }

    /// Removes the temporary files of records that are now placed. A file may hold torn content of these
    /// records; anything else was written by someone into a file that they displaced, and is kept.
    fn clear_redone(&self, journal: &mut Journal, redone: &[Arc<Record>]) -> io::Result<()> {
        let outcome = Outcome::of(redone);
        for record in redone {
            for (index, entry) in record.header.edits.iter().enumerate() {
                let name = journal.temps.name(record.header.seq, index);
                let Ok(file) = self.tree.open(&name, Open::Read) else { continue };
                // A file that an editor still has open is left for a later sweep.
                if file.has_writers() != Some(true) {
                    let bytes = file.read_all()?;
                    let is_known = outcome.explains(entry.at(), &bytes);
                    self.clear_temp(journal, &name, entry.at(), (bytes, is_known))?;
                }
            }
        }
        Ok(())
    }

    /// Completes records, whatever part of them was done before: either one that is fenced, or any number
    /// that are not.
    pub(super) fn redo(
        &self,
        journal: &mut Journal,
        displaced: &mut Vec<Displaced>,
        records: &[Arc<Record>],
    ) -> Result<()> {
        let outcome = Outcome::of(records);
        let mut redoing = Redoing { journal, displaced, outcome: &outcome };
        for record in records.iter().filter(|record| record.is_fenced()) {
            for index in 0..record.header.edits.len() {
                self.redo_names(&mut redoing, record, index)
                    .map_err(|error| Error::from_io(error, record.header.edits[index].at()))?;
            }
        }
        for (at, wanted) in &outcome.finals {
            self.restore(&mut redoing, at, wanted).map_err(|error| Error::from_io(error, at))?;
        }
        Ok(())
    }

    /// Redoes what an edit does to names, unless it has been done. Called in the order of the edits.
    fn redo_names(&self, redoing: &mut Redoing<'_>, record: &Record, index: usize) -> io::Result<()> {
        use io::ErrorKind as E;
        let edit = &record.header.edits[index];
        let name = self.spelled(edit.at());
        let there = match self.tree.stat(&name) {
            Err(error) if is_changed_by_others(&error) => return Ok(()),
            found => found?,
        };
        // Something that another edit of this change moved here arrived after this edit was done.
        let moved = record.header.edits.iter().enumerate().any(|(other, edit)| {
            matches!(edit, Entry::Rename { inode: Some(inode), .. } if *inode == there.inode && other != index)
        });
        let own = matches!(edit, Entry::Rename { inode, .. } if *inode == Some(there.inode));
        if moved && !own {
            return Ok(());
        }
        let later = record.header.edits[index + 1..].iter().filter(|later| later.at() == edit.at());
        for version in later.filter_map(Entry::new_version) {
            if self.holds(edit.at(), version)? {
                return Ok(());
            }
        }
        match edit {
            Entry::Rename { at, to, inode: Some(_), .. } => match self.place_rename(at, to) {
                // Someone has put something at the target, or in place of its folder: both stay.
                Err(error) if error.kind() == E::DirectoryNotEmpty || is_changed_by_others(&error) => Ok(()),
                other => other,
            },
            Entry::Delete { at, old: Some(_), .. } => match self.tree.open(&name, Open::Read) {
                Ok(file) => self.take_away(redoing, at, &*file),
                Err(_) => Ok(()),
            },
            // A folder that is no longer empty belongs to someone else now.
            Entry::Delete { old: None, .. } => self.tree.remove_dir(&name).or(Ok(())),
            _ => Ok(()),
        }
    }
}
