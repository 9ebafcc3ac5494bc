//! What can be made again from other files: it takes its place at once, and leaves no record.

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
        // Not before the lock is free: who syncs them holds up whoever adds some.
        self.derived.lock().unwrap_or_else(PoisonError::into_inner).merge(derived);
        applied
    }

    /// The lock is held throughout; a hand edit that slips in between is kept as beside any other change.
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
        // It has no number in the journal, and its temporary files must not be taken for another's.
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
                    // Its name has no number: a process that died may have left one.
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

    /// Makes durable what was derived here, so that a change may rest on it. Without the store's lock: others need
    /// not wait for it.
    pub(super) fn sync_derived(&self) -> Result<()> {
        // Held to the end: another change may rest on the same.
        let mut derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_sure()?;
        let dirty = std::mem::take(&mut *derived);
        if self.seeded.has(Bug::NoDerivedSync) {
            return Ok(());
        }
        self.sync_dirty(&dirty).map_err(|error| self.fail(error, "a derived file"))
    }
}
