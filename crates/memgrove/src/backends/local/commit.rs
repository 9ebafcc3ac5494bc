//! One change, from the call to the answer.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::journal::{Journal, segments};
use super::mark::{MarkFile, Place};
use super::plan::{Planned, plan};
use super::record::{Entry, Header, Record, What, change_id};
use super::{Bug, Core, Inner, Locked, meant};
use crate::backend::{Applied, Change, Edit, Version};
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::vfs::{Open, VfsFile};

/// How long a process waits for another that syncs the journal, which may have been stopped there.
const SYNC_TURN_WAIT: Duration = Duration::from_secs(1);
/// How often the lock is waited for by a change that is durable and not in its place.
const PLACE_ATTEMPTS: u32 = 4;

/// What was made ready for a change.
#[derive(Default)]
pub(super) struct Prepared {
    /// The folders that were missing, and have been made.
    folders: Vec<String>,
    /// The temporary file of each edit that needs one.
    inodes: Vec<Option<u64>>,
}

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
            if let Some(applied) = self.applied_as(seq)? {
                return Ok(applied);
            }
        }
        self.sync_derived(&mut locked.inner)?;
        if change.edits.iter().any(|edit| matches!(edit, Edit::Rename { .. })) {
            // What moves is known by its inode, which must outlive a power cut.
            self.settle(&mut locked.inner)?;
            self.fence(locked.inner.journal.as_mut().expect("the journal is open under the lock"))?;
        } else if touches_pending(&locked.inner, &change.edits) {
            self.settle(&mut locked.inner)?;
        }
        let planned = match hasty {
            Some(planned) => planned,
            None => plan(self, locked.inner.journal.as_ref(), &change.edits)?,
        };
        let (place, record) = self.log(&mut locked.inner, change, planned)?;
        let (file, mark_file) = handles(&locked.inner);
        if self.seeded.has(Bug::PlaceBeforeSync) {
            self.place_pending(&mut locked.inner, place.offset)?;
        }
        drop(locked);

        self.sync_journal(&*file, &mark_file, place)?;

        // Another process that came by with the lock may have placed this change with its own.
        let placed =
            mark_file.read().ok().flatten().is_some_and(|mark| mark.aborted == 0 && mark.has_placed(place));
        if !placed {
            let mut locked = self.lock_to_place(change)?;
            self.ready_again(&mut locked.inner).map_err(|error| self.unplaced(&error))?;
            self.place_own(&mut locked.inner, place, &record)?;
        }
        Ok(Applied::now(change_id(record.header.seq), versions(&record.header), &change.note))
    }

    /// Writes the temporary files and the record: after this the change is in the journal.
    fn log(&self, inner: &mut Inner, change: &Change, planned: Planned) -> Result<(Place, Arc<Record>)> {
        let journal = inner.journal.as_mut().expect("the journal is open under the lock");
        let header = Header {
            seq: journal.mark.next_seq,
            time: self.clock.now(),
            what: What::Change,
            note: change.note.clone(),
            edits: planned.entries,
        };
        let record = Arc::new(Record::new(header, planned.bodies));
        let Prepared { folders, inodes } = self.prepare(journal, &record)?;
        if let Err(error) = journal.append(&record, self.reserve_bytes) {
            self.remove_temps(journal, &record);
            self.remove_folders(&folders);
            return Err(match journal.doubtful {
                true => self.fail(error, "the journal"),
                false => Error::from_io(error, "the journal"),
            });
        }
        journal.prepared.insert(record.header.seq, inodes);
        for entry in &record.header.edits {
            match entry {
                Entry::Write { at, new, .. } => drop(journal.known.insert(at.clone(), new.clone())),
                other => drop(journal.known.remove(other.at())),
            }
        }
        Ok((journal.mark.here(), record))
    }

    /// Writes the new content of every file beside its place, and gives back the folders made for
    /// it. A full disk shows here, before anything has happened.
    pub(super) fn prepare(&self, journal: &Journal, record: &Record) -> Result<Prepared> {
        let mut done = Prepared::default();
        // A folder that is missing now may come to be by an earlier edit: then it is made later.
        let moves = |entry: &Entry| matches!(entry, Entry::Rename { .. } | Entry::Delete { .. });
        let plain = !record.header.edits.iter().any(moves);
        for (index, entry) in record.header.edits.iter().enumerate() {
            let Entry::Write { at, old, .. } = entry else {
                done.inodes.push(None);
                continue;
            };
            let temp = journal.temps.name(record.header.seq, index);
            // Where a file was just read, there is a folder.
            let made = if plain && old.is_none() { self.make_parents(at) } else { Ok(Vec::new()) };
            let made = made.map(|made| done.folders.extend(made));
            let mut written = made.and_then(|()| self.write_temp(&temp, record.after(index)));
            if old.is_some() {
                written = written.and_then(|inode| self.keep_mode(at, &temp).map(|()| inode));
            }
            match written {
                Ok(inode) => done.inodes.push(Some(inode)),
                Err(error) => {
                    self.remove_temps(journal, record);
                    self.remove_folders(&done.folders);
                    return Err(meant(error, at));
                }
            }
        }
        Ok(done)
    }

    /// Places the change that was just synced, unless another process has done it meanwhile.
    fn place_own(&self, inner: &mut Inner, place: Place, record: &Record) -> Result<()> {
        let journal = inner.journal.as_ref().expect("the journal is open under the lock");
        let mut refused = Vec::new();
        if !journal.mark.has_placed(place) {
            // With it, whatever else is durable by now.
            let synced = journal.mark_file.synced().ok().filter(|synced| synced.segment == place.segment);
            let upto = synced.map_or(place.offset, |synced| synced.offset.max(place.offset));
            refused = self.place_pending(inner, upto)?;
        }
        let seq = record.header.seq;
        if let Some((_, error)) = refused.into_iter().find(|(refused, _)| *refused == seq) {
            return Err(Error::from_io(error, "the change").while_doing("putting files in place"));
        }
        let aborts = inner.journal.as_ref().is_some_and(|journal| journal.mark.aborted > 0);
        if aborts && self.header(seq).map_err(|error| self.unplaced(&error))?.is_none() {
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
        if let Some(journal) = &mut inner.journal
            && journal.is_current()
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

    /// As [`Core::ready`], a moment later in the same change: the files are the same, or their mark
    /// says that they are not.
    fn ready_again(&self, inner: &mut Inner) -> Result<()> {
        if let Some(journal) = &mut inner.journal
            && journal.catch_up().map_err(|error| Error::from_io(error, "the journal"))?
        {
            return Ok(());
        }
        self.ready(inner)
    }

    /// Syncs the journal and places all that is pending, with the lock in hand.
    pub(super) fn settle(&self, inner: &mut Inner) -> Result<()> {
        let Some(journal) = inner.journal.as_ref().filter(|journal| !journal.pending.is_empty()) else {
            return Ok(());
        };
        let place = journal.mark.here();
        let (file, mark_file) = handles(inner);
        self.sync_journal(&*file, &mark_file, place)?;
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

    /// The lock, for a change that is durable already: whoever is told to try again would do it twice.
    fn lock_to_place(&self, change: &Change) -> Result<Locked<'_>> {
        for _ in 1..PLACE_ATTEMPTS {
            match self.lock_for(change) {
                Err(error) if error.kind() == Kind::Busy => {}
                locked => return locked.map_err(|error| self.unplaced(&error)),
            }
        }
        self.lock_for(change).map_err(|error| match error.kind() {
            Kind::Busy => {
                Error::new(Kind::Io, format!("the change is kept, but not to be seen yet: {error}")).hint(
                    "do not repeat it: it takes its place with the next change, or when the store is opened",
                )
            }
            _ => self.unplaced(&error),
        })
    }

    /// Makes the journal durable up to a place. Whoever waits here, thread or process, shares the
    /// syncs of the others.
    fn sync_journal(&self, file: &dyn VfsFile, mark_file: &MarkFile, place: Place) -> Result<()> {
        if self.seeded.has(Bug::AckBeforeSync) {
            return Ok(());
        }
        let _turn = self.sync_turn.lock().unwrap_or_else(PoisonError::into_inner);
        let covers = |synced: Place| synced.segment == place.segment && synced.offset >= place.offset;
        if mark_file.synced().is_ok_and(covers) {
            return Ok(());
        }
        // Only to share: whoever does not get it syncs for itself.
        let _shared = mark_file.sync_turn(SYNC_TURN_WAIT);
        if mark_file.synced().is_ok_and(covers) {
            return Ok(());
        }
        let appended = mark_file.read().ok().flatten().map(|mark| mark.here());
        let upto =
            appended.filter(|here| here.segment == place.segment).map_or(place, |here| here.max(place));
        let mut result = file.sync_data();
        if result.is_err() && self.seeded.has(Bug::RetrySync) {
            result = file.sync_data();
        }
        // Never tried again: the system may have dropped the pages, and would report success.
        result.map_err(|error| self.fail(error, "the journal"))?;
        // Only a hint for others: without it they sync once more.
        let _ = mark_file.set_synced(upto);
        Ok(())
    }

    /// The idempotency keys of the whole journal and the change of each.
    fn keys<'a>(&self, inner: &'a mut Inner) -> Result<&'a HashMap<String, u64>> {
        let journal = inner.journal.as_mut().expect("the journal is open under the lock");
        let all = segments(&*self.state).map_err(|error| Error::from_io(error, "the journal"))?;
        // What was pruned is forgotten, and its key is free again.
        let first = all.first().copied().unwrap_or_default();
        journal.keys.retain(|_, seq| *seq >= first);
        for (index, segment) in all.iter().enumerate() {
            // Only what came since they were last read.
            if all.get(index + 1).is_some_and(|next| *next <= journal.keys_upto) {
                continue;
            }
            let headers = self.segment_headers(*segment);
            for header in headers.map_err(|error| Error::from_io(error, "the journal"))? {
                match (&header.what, &header.note.key) {
                    (What::Abort(seq), _) => journal.keys.retain(|_, known| known != seq),
                    (_, Some(key)) => drop(journal.keys.insert(key.clone(), header.seq)),
                    _ => {}
                }
            }
        }
        journal.keys_upto = journal.mark.next_seq;
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

/// What is needed to sync the journal without the lock.
fn handles(inner: &Inner) -> (Arc<dyn VfsFile>, Arc<MarkFile>) {
    let journal = inner.journal.as_ref().expect("the journal is open under the lock");
    (Arc::clone(&journal.file), Arc::clone(&journal.mark_file))
}

fn versions(header: &Header) -> Vec<Option<Version>> {
    header.edits.iter().map(|entry| entry.new_version().cloned()).collect()
}

/// Whether a change names something that a record not yet placed is about.
pub(super) fn touches_pending(inner: &Inner, edits: &[Edit]) -> bool {
    let Some(journal) = &inner.journal else { return false };
    if journal.pending.is_empty() {
        return false;
    }
    let related = |a: &Locator, b: &Locator| a.is_within(b) || b.is_within(a);
    let named: Vec<&Locator> = edits.iter().flat_map(Edit::places).collect();
    let pending = journal.pending.iter().flat_map(|(_, record)| &record.header.edits);
    let mut pending = pending.flat_map(|entry| [Some(entry.at()), entry.to()]).flatten();
    pending.any(|busy| named.iter().any(|at| related(at, busy)))
}
