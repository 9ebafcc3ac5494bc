//! One change, from the call to the answer.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, PoisonError};

use super::journal::{Journal, scan, segment_name, segments};
use super::mark::Place;
use super::plan::{Planned, plan};
use super::record::{Entry, Header, Record, What, change_id};
use super::{Bug, Core, Inner, Locked, meant};
use crate::backend::{Applied, Change, Edit};
use crate::error::{Error, Result};
use crate::locator::Locator;
use crate::vfs::{Open, VfsFile};

impl Core {
    /// Applies a change; see the module's opening words for the steps.
    pub(super) fn commit(&self, change: &Change) -> Result<Applied> {
        self.check_healthy()?;
        let hasty = match self.seeded.has(Bug::CompareWithoutLock) {
            true => Some(plan(self, None, &change.edits)?),
            false => None,
        };
        let mut locked = self.lock_for(change)?;
        self.ready(&mut locked.inner)?;
        if let Some(key) = &change.note.key
            && let Some(seq) = self.keys(&mut locked.inner)?.get(key).copied()
        {
            self.settle(&mut locked.inner)?;
            drop(locked);
            return Ok(self.applied_as(seq)?.expect("the journal holds the change of a known key"));
        }
        if touches_pending(&locked.inner, &change.edits) {
            self.settle(&mut locked.inner)?;
        }
        let planned = match hasty {
            Some(planned) => planned,
            None => plan(self, locked.inner.journal.as_ref(), &change.edits)?,
        };
        let (place, file, record) = self.log(&mut locked.inner, change, planned)?;
        if self.seeded.has(Bug::PlaceBeforeSync) {
            self.place_pending(&mut locked.inner, place.offset)?;
        }
        drop(locked);

        self.sync_journal(&*file, place)?;

        let mut locked = self.lock_for(change)?;
        self.ready(&mut locked.inner)?;
        self.place_own(&mut locked.inner, place, &record)?;
        Ok(answer(&record, false))
    }

    /// Writes the temporary files and the record: after this the change is in the journal.
    fn log(
        &self,
        inner: &mut Inner,
        change: &Change,
        planned: Planned,
    ) -> Result<(Place, Arc<dyn VfsFile>, Arc<Record>)> {
        let journal = inner.journal.as_mut().expect("the journal is open under the lock");
        let header = Header {
            seq: journal.next_seq,
            time: self.clock.now(),
            what: What::Change,
            note: change.note.clone(),
            edits: planned.entries,
        };
        let record = Arc::new(Record::new(header, planned.body));
        let folders = self.prepare(&record)?;
        if let Err(error) = journal.append(&record, self.reserve_bytes) {
            self.remove_temps(&record);
            self.remove_folders(&folders);
            return Err(Error::from_io(error, "the journal"));
        }
        *self.appended.lock().unwrap_or_else(PoisonError::into_inner) = journal.here();
        Ok((journal.here(), Arc::clone(&journal.file), record))
    }

    /// Writes the new content of every file beside its place, and gives back the folders made for
    /// it. A full disk shows here, before anything has happened.
    fn prepare(&self, record: &Record) -> Result<Vec<String>> {
        let mut folders = Vec::new();
        let moves = |entry: &Entry| matches!(entry, Entry::Rename { folder: true, .. });
        if record.header.edits.iter().any(moves) {
            // The folders that the files go to may not exist yet.
            return Ok(folders);
        }
        for (index, entry) in record.header.edits.iter().enumerate() {
            let Entry::Write { at, .. } = entry else { continue };
            let made = self.make_parents(at).map(|made| folders.extend(made)).and_then(|()| {
                self.write_temp(&self.temp_name(record.header.seq, index), record.after(index))
            });
            if let Err(error) = made {
                self.remove_temps(record);
                self.remove_folders(&folders);
                return Err(meant(error, at));
            }
        }
        Ok(folders)
    }

    /// Places the change that was just synced, unless another process has done it meanwhile.
    fn place_own(&self, inner: &mut Inner, place: Place, record: &Record) -> Result<()> {
        let journal = inner.journal.as_ref().expect("the journal is open under the lock");
        let placed = journal.segment != place.segment || journal.mark.placed.offset >= place.offset;
        let mut refused = Vec::new();
        if !placed {
            refused = self.place_pending(inner, place.offset)?;
        }
        let seq = record.header.seq;
        if let Some((_, error)) = refused.into_iter().find(|(refused, _)| *refused == seq) {
            return Err(Error::from_io(error, "the change").while_doing("putting files in place"));
        }
        if inner.journal.as_ref().is_some_and(|journal| journal.aborted.contains(&seq)) {
            return Err(Error::from_io(
                io::Error::other("its files could not be put in place"),
                "the change",
            ));
        }
        Ok(())
    }

    /// Opens or starts the journal, or learns what others have appended to it.
    pub(super) fn ready(&self, inner: &mut Inner) -> Result<()> {
        let in_journal = |error| Error::from_io(error, "the journal");
        if inner.journal.as_ref().is_some_and(|journal| !journal.is_current()) {
            inner.journal = None;
        }
        match &mut inner.journal {
            Some(journal) => journal.catch_up().map_err(in_journal),
            none => {
                let opened =
                    Journal::open(&self.state, self.seeded.has(Bug::DropBadRecords)).map_err(in_journal)?;
                *none = Some(match opened {
                    Some(journal) => journal,
                    None => {
                        let boot = self.tree.boot_id().unwrap_or_default();
                        Journal::create(&self.state, boot).map_err(in_journal)?
                    }
                });
                Ok(())
            }
        }
    }

    /// Syncs the journal and places all that is pending, with the lock in hand.
    pub(super) fn settle(&self, inner: &mut Inner) -> Result<()> {
        let Some(journal) = &inner.journal else { return Ok(()) };
        if journal.pending.is_empty() {
            return Ok(());
        }
        let place = journal.here();
        let file = Arc::clone(&journal.file);
        self.sync_journal(&*file, place)?;
        self.place_pending(inner, place.offset)?;
        Ok(())
    }

    /// The lock, with everything placed that was left pending.
    pub(super) fn lock_recovered(&self) -> Result<Locked<'_>> {
        let mut locked = self.lock()?;
        self.ready(&mut locked.inner)?;
        self.settle(&mut locked.inner)?;
        Ok(locked)
    }

    fn lock_for(&self, change: &Change) -> Result<Locked<'_>> {
        if !self.seeded.has(Bug::LockOnTarget) {
            return self.lock();
        }
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let target = change.edits.first().and_then(|edit| self.tree.open(edit.at().key(), Open::Write).ok());
        if let Some(target) = &target {
            let _ = target.lock(super::LOCK_WAIT);
        }
        Ok(Locked { inner, other: target })
    }

    /// Makes the journal durable up to a place. Threads that wait here share one sync.
    fn sync_journal(&self, file: &dyn VfsFile, place: Place) -> Result<()> {
        if self.seeded.has(Bug::AckBeforeSync) {
            return Ok(());
        }
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        if *synced >= place {
            return Ok(());
        }
        let appended = *self.appended.lock().unwrap_or_else(PoisonError::into_inner);
        let mut result = file.sync_data();
        if result.is_err() && self.seeded.has(Bug::RetrySync) {
            result = file.sync_data();
        }
        // Never tried again: the system may have dropped the pages, and would report success.
        result.map_err(|error| self.fail(error, "the journal"))?;
        *synced = if appended.segment == place.segment { appended.max(place) } else { place };
        Ok(())
    }

    /// The idempotency keys of the whole journal and the change of each.
    fn keys<'a>(&self, inner: &'a mut Inner) -> Result<&'a HashMap<String, u64>> {
        let journal = inner.journal.as_mut().expect("the journal is open under the lock");
        if journal.keys.is_none() {
            let mut keys = HashMap::new();
            for segment in segments(&*self.state).map_err(|error| Error::from_io(error, "the journal"))? {
                for record in self.segment_records(segment)? {
                    match (&record.header.what, &record.header.note.key) {
                        (What::Abort(seq), _) => keys.retain(|_, known| known != seq),
                        (_, Some(key)) => drop(keys.insert(key.clone(), record.header.seq)),
                        _ => {}
                    }
                }
            }
            journal.keys = Some(keys);
        }
        Ok(journal.keys.as_ref().expect("they were just read"))
    }

    /// All records of a segment, oldest first.
    pub(super) fn segment_records(&self, segment: u64) -> Result<Vec<Arc<Record>>> {
        let read = || scan(&*self.state.open(&segment_name(segment), Open::Read)?, 0, false);
        let found = read().map_err(|error| Error::from_io(error, "the journal"))?;
        Ok(found.records.into_iter().map(|(_, record)| record).collect())
    }

    /// What came of the change with this key.
    pub(super) fn applied(&self, key: &str) -> Result<Option<Applied>> {
        if segments(&*self.state).map_err(|error| Error::from_io(error, "the journal"))?.is_empty() {
            return Ok(None);
        }
        let mut locked = self.lock_recovered()?;
        let Some(seq) = self.keys(&mut locked.inner)?.get(key).copied() else { return Ok(None) };
        drop(locked);
        self.applied_as(seq)
    }

    fn applied_as(&self, seq: u64) -> Result<Option<Applied>> {
        Ok(self.record(seq)?.map(|record| answer(&record, true)))
    }
}

fn answer(record: &Record, replayed: bool) -> Applied {
    Applied {
        change: change_id(record.header.seq),
        versions: record.header.edits.iter().map(|entry| entry.new_version().cloned()).collect(),
        replayed,
        answer: record.header.note.answer.clone().filter(|_| replayed),
    }
}

/// Whether a change names something that a record not yet placed is about.
fn touches_pending(inner: &Inner, edits: &[Edit]) -> bool {
    let Some(journal) = &inner.journal else { return false };
    if journal.pending.is_empty() {
        return false;
    }
    let related = |a: &Locator, b: &Locator| a.is_within(b) || b.is_within(a);
    let places = |edit: &Edit| match edit {
        Edit::Rename { from, to, .. } => vec![from.clone(), to.clone()],
        other => vec![other.at().clone()],
    };
    let named: Vec<Locator> = edits.iter().flat_map(places).collect();
    let pending = journal.pending.iter().flat_map(|(_, record)| &record.header.edits);
    let mut pending = pending.flat_map(|entry| [Some(entry.at()), entry.to()]).flatten();
    pending.any(|busy| named.iter().any(|at| related(at, busy)))
}
