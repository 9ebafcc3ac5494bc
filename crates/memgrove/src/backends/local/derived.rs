//! How derived changes happen: what other files can rebuild is written at once and leaves no record.

use std::sync::PoisonError;

use super::checkpoint::Dirty;
use super::commit::last_touched;
use super::plan::plan;
use super::record::{Entry, Header, Record, What};
use super::{Bug, Core, Inner, meant};
use crate::backend::{Applied, Change, Edit, not_derivable};
use crate::error::Result;
use crate::locator::Locator;

impl Core {
    /// Writes and deletes files without the journal.
    pub(super) fn derive(&self, change: &Change) -> Result<Applied> {
        change.check_derived()?;
        let mut derived = Dirty::default();
        let applied = self.place_derived(change, &mut derived);
        // Only after the store's lock is free: a thread that is syncing derived files makes us wait here.
        self.derived.lock().unwrap_or_else(PoisonError::into_inner).merge(derived);
        applied
    }

    /// Places the edits with the lock held throughout. A hand edit that slips in is kept, as for any change.
    fn place_derived(&self, change: &Change, derived: &mut Dirty) -> Result<Applied> {
        let mut locked = self.lock()?;
        self.ready(&mut locked.inner)?;
        let places: Vec<&Locator> = change.edits.iter().flat_map(Edit::places).collect();
        if last_touched(&locked.inner, &places).is_some() {
            self.settle(&mut locked.inner)?;
        }
        let planned = plan(self, locked.inner.journal.as_ref(), &change.edits)?;
        if let Some(folder) =
            planned.entries.iter().find(|entry| matches!(entry, Entry::Delete { old: None, .. }))
        {
            return Err(not_derivable(folder.at()));
        }
        let Inner { journal: Some(journal), displaced, .. } = &mut *locked.inner else {
            unreachable!("the journal is open under the lock")
        };
        // Number 0: it is not in the journal, and its temporary files must not pass for another record's.
        let header = Header {
            seq: 0,
            time: self.clock.now(),
            what: What::Change,
            note: change.note.clone(),
            edits: planned.entries,
        };
        let record = Record::new(header, planned.bodies);
        let mut prepared = self.prepare(journal, &record, planned.replaced)?;
        for (index, entry) in record.header.edits.iter().enumerate() {
            let temp = journal.temps.name(record.header.seq, index);
            let (_, replaced) = prepared.take(index);
            let placed = match entry {
                Entry::Write { at, old, .. } => {
                    self.swap_in(journal, displaced, &temp, (at, old.as_ref()), replaced)
                }
                Entry::Delete { at, old: Some(old), .. } => {
                    // All derived changes share this name, so a process that died may have left such a file.
                    let _ = self.tree.remove_file(&temp);
                    self.place_delete(journal, displaced, at, old, &temp)
                }
                other => return Err(not_derivable(other.at())),
            };
            placed.map_err(|error| {
                self.remove_temps(journal, &record);
                meant(error, entry.at())
            })?;
            derived.add(entry);
        }
        Ok(Applied::derived(record.header.edits.iter().map(|entry| entry.new_version().cloned()).collect()))
    }

    /// Makes the derived files of this process durable, so that a change may depend on them. Needs no store
    /// lock, so others do not wait.
    pub(super) fn sync_derived(&self) -> Result<()> {
        // Held to the end, because another change may depend on the same files.
        let mut derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_sure()?;
        let dirty = std::mem::take(&mut *derived);
        if self.seeded.has(Bug::NoDerivedSync) {
            return Ok(());
        }
        self.sync_dirty(&dirty).map_err(|error| self.fail(error, "a derived file"))
    }
}
