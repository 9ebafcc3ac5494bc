//! One change, from the call to the answer.

use std::collections::HashMap;
use std::sync::Arc;

use super::checkpoint::Dirty;
use super::journal::{Journal, segments};
use super::plan::{Planned, plan};
use super::record::{Entry, Header, Record, What, change_id};
use super::turn::Last;
use super::{Bug, Core, Inner, Locked};
use crate::backend::{Applied, Change, Edit, Version};
use crate::backends::replacing::as_asked;
use crate::error::{Error, Result};
use crate::locator::Locator;

/// How often a change waits for others to place the records it depends on, before it places them itself.
const WAITS_MAX: u32 = 4;

impl Core {
    /// Applies a change; see the module's opening words for the steps.
    pub(super) fn commit(&self, change: &Change) -> Result<Applied> {
        self.check_healthy()?;
        let hasty = match self.seeded.has(Bug::CompareWithoutLock) {
            true => Some(plan(self, None, &change.edits)?),
            false => None,
        };
        self.sync_derived()?;
        let mut locked = self.lock_cleared(change)?;
        if let Some(key) = &change.note.key
            && let Some(seq) = self.keys(&mut locked.inner)?.get(key).copied()
        {
            self.settle(&mut locked.inner)?;
            if let Some(applied) = self.applied_as(seq)? {
                return Ok(applied);
            }
        }
        if change.edits.iter().any(|edit| matches!(edit, Edit::Rename { .. })) {
            // A moved file is recognised by its inode, so everything before the move must be durable first.
            self.settle(&mut locked.inner)?;
            self.fence(locked.inner.journal.as_mut().expect("the journal is open under the lock"))?;
            // Also where others have put it there, and have not synced it.
            let moved = self.sync_dirty(&Dirty::of_moved(&change.edits));
            moved.map_err(|error| self.fail(error, "a file to be moved"))?;
        }
        let planned = match hasty {
            Some(planned) => planned,
            None => plan(self, locked.inner.journal.as_ref(), &change.edits)?,
        };
        let record = self.log(&mut locked.inner, change, planned)?;
        let last = Last::of(&locked.inner).expect("the journal is open under the lock");
        if self.seeded.has(Bug::PlaceBeforeSync) {
            self.place_pending(&mut locked.inner, last.place.offset)?;
            self.sync_journal(&*last.file)?;
        }
        drop(locked);
        self.finish(change, &last, Some(record.header.seq))?;
        let applied = Applied::now(change_id(record.header.seq), versions(&record.header), &change.note);
        Ok(as_asked(change, applied))
    }

    /// Takes the lock once no pending record touches the places of the change.
    fn lock_cleared(&self, change: &Change) -> Result<Locked<'_>> {
        let places: Vec<&Locator> = change.edits.iter().flat_map(Edit::places).collect();
        for attempt in 0.. {
            let mut locked = self.lock_for(change)?;
            self.ready(&mut locked.inner)?;
            let Some(last) = last_touched(&locked.inner, &places) else { return Ok(locked) };
            if attempt == WAITS_MAX {
                self.settle(&mut locked.inner)?;
                return Ok(locked);
            }
            // Without the lock: others may go on while the journal is synced.
            drop(locked);
            self.finish(change, &last, None)?;
        }
        unreachable!("the attempts have a bound")
    }

    /// Writes the record to the journal, and the temporary files while the record is on its way to the disk.
    /// After this the change is in the journal, though not yet durable.
    fn log(&self, inner: &mut Inner, change: &Change, planned: Planned) -> Result<Arc<Record>> {
        let journal = inner.journal.as_mut().expect("the journal is open under the lock");
        let header = Header {
            seq: journal.mark.next_seq,
            time: self.clock.now(),
            what: What::Change,
            note: change.note.clone(),
            edits: planned.entries,
        };
        let record = Arc::new(Record::new(header, planned.bodies));
        let in_journal = |error| Error::from_io(error, "the journal");
        let logged = journal.begin(&record, self.reserve_bytes).map_err(in_journal).and_then(|begun| {
            match self.prepare(journal, &record, planned.replaced) {
                Err(error) => {
                    journal.forget(begun);
                    Err(error)
                }
                Ok(prepared) => journal
                    .tell(begun)
                    .inspect_err(|_| self.abandon(journal, &record, &prepared))
                    .map_err(in_journal)
                    .map(|()| prepared),
            }
        });
        let prepared = logged.map_err(|error| match journal.doubtful {
            true => self.fail_with(error, "the journal"),
            false => error,
        })?;
        journal.own.insert(record.header.seq, prepared);
        for entry in &record.header.edits {
            match entry {
                Entry::Write { at, new, .. } => drop(journal.known.insert(at.clone(), new.clone())),
                other => drop(journal.known.remove(other.at())),
            }
        }
        Ok(record)
    }

    /// Opens or starts the journal, or learns what others have appended to it.
    pub(super) fn ready(&self, inner: &mut Inner) -> Result<()> {
        let in_journal = |error| Error::from_io(error, "the journal");
        if let Some(journal) = &mut inner.journal
            && journal.is_current(self.clock.now())
            && journal.catch_up().map_err(in_journal)?
        {
            return Ok(());
        }
        let opened = Journal::open(&self.state).map_err(in_journal)?;
        match opened.filter(|journal| journal.mark.boot == self.boot) {
            Some(journal) => inner.journal = Some(journal),
            None => self.recover(inner)?,
        }
        Ok(())
    }

    /// Takes the lock, and places every record that was left pending.
    pub(super) fn lock_recovered(&self) -> Result<Locked<'_>> {
        let mut locked = self.lock()?;
        self.ready(&mut locked.inner)?;
        self.settle(&mut locked.inner)?;
        Ok(locked)
    }

    /// Returns the idempotency keys in the whole journal, each with the number of its change.
    fn keys<'a>(&self, inner: &'a mut Inner) -> Result<&'a HashMap<String, u64>> {
        let journal = inner.journal.as_mut().expect("the journal is open under the lock");
        let all = segments(&*self.state).map_err(|error| Error::from_io(error, "the journal"))?;
        // What was pruned is forgotten, and its key is free again.
        let first = all.first().copied().unwrap_or_default();
        journal.keys.retain(|_, seq| *seq >= first);
        // Reads only the segments that may have grown since the last time.
        for segment in all.iter().filter(|segment| **segment >= journal.keys_from) {
            let headers = self.segment_headers(*segment);
            for header in headers.map_err(|error| Error::from_io(error, "the journal"))? {
                match (&header.what, &header.note.key) {
                    (What::Abort(seq), _) => journal.keys.retain(|_, known| known != seq),
                    (_, Some(key)) => drop(journal.keys.insert(key.clone(), header.seq)),
                    _ => {}
                }
            }
        }
        journal.keys_from = journal.mark.segment;
        Ok(&journal.keys)
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
        let applied =
            |header: Arc<Header>| Applied::before(change_id(header.seq), versions(&header), &header.note);
        Ok(self.header(seq)?.map(applied))
    }
}

fn versions(header: &Header) -> Vec<Option<Version>> {
    header.edits.iter().map(|entry| entry.new_version().cloned()).collect()
}

/// The last pending record that touches one of these places.
pub(super) fn last_touched(inner: &Inner, places: &[&Locator]) -> Option<Last> {
    let pending = &inner.journal.as_ref()?.pending;
    Last::at(inner, pending.iter().rev().find(|pending| pending.touches(places))?.end)
}
