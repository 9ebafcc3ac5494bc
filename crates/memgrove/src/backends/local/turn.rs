//! How a change that is in the journal becomes durable and takes its place.
//!
//! One does it for all who wait: it has the turn, syncs the journal, and places everything that is
//! durable then, all in one hold of the lock. The others wait for their turn, or until they see that
//! their change has been placed, and need neither a sync nor the lock.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::mark::{Mark, MarkFile, Place};
use super::{Bug, Core, Inner, Locked};
use crate::backend::Change;
use crate::error::{Error, Kind, Result};
use crate::vfs::{Open, VfsFile};

/// How long a process waits for another that has the turn, which may have been stopped there.
const TURN_WAIT: Duration = Duration::from_secs(1);
/// How often the lock is waited for by a change that is durable and not in its place.
const PLACE_ATTEMPTS: u32 = 4;
/// How long others are waited for before a sync, in parts of what the last one took, and how often.
const GATHER_PAUSES_A_SYNC: u32 = 8;
const GATHER_PAUSES_MAX: u32 = 4;
/// The shortest wait that is worth it, and the longest: one sync may have been an exception.
const GATHER_PAUSE_MIN: Duration = Duration::from_micros(100);
const GATHER_PAUSE_MAX: Duration = Duration::from_millis(5);

/// The end of a record in the journal, and what is needed to sync up to there without the lock.
pub(super) struct Last {
    pub(super) file: Arc<dyn VfsFile>,
    mark_file: Arc<MarkFile>,
    pub(super) place: Place,
}

impl Last {
    /// The end of the journal as it is now.
    pub(super) fn of(inner: &Inner) -> Option<Self> {
        Last::at(inner, inner.journal.as_ref()?.mark.end)
    }

    /// The end of one of the records in the last segment.
    pub(super) fn at(inner: &Inner, offset: u64) -> Option<Self> {
        let journal = inner.journal.as_ref()?;
        let (file, mark_file) = (Arc::clone(&journal.file), Arc::clone(&journal.mark_file));
        Some(Last { file, mark_file, place: Place { segment: journal.mark.segment, offset } })
    }

    fn mark(&self) -> Option<Mark> {
        self.mark_file.read().ok().flatten()
    }

    /// Whether all of it is placed, and the change that is to be answered was not taken back: what is comes in the
    /// order of numbers, as all is placed.
    fn is_placed(&self, mark: Option<&Mark>, seq: Option<u64>) -> bool {
        mark.is_some_and(|mark| mark.has_placed(self.place) && seq.is_none_or(|seq| mark.aborted < seq))
    }
}

/// Which thread of this process has, or waits for, the turn among all processes.
#[derive(Default)]
pub(super) struct OwnTurn {
    taken: Mutex<bool>,
    given_back: Condvar,
    /// How long the last sync took.
    sync_ns: AtomicU64,
}

/// The turn of this process, until it is dropped.
struct OwnTurnTaken<'a>(&'a OwnTurn);

impl OwnTurn {
    /// Waits for the turn. `None` if whoever has it does meanwhile what it is wanted for: all who see that
    /// go on at once, and not one after the other.
    fn take_unless(&self, needless: &dyn Fn() -> bool) -> Option<OwnTurnTaken<'_>> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken {
            taken = self.given_back.wait(taken).unwrap_or_else(PoisonError::into_inner);
            if needless() {
                return None;
            }
        }
        *taken = true;
        Some(OwnTurnTaken(self))
    }
}

impl Drop for OwnTurnTaken<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.given_back.notify_all();
    }
}

impl Core {
    /// Makes the journal durable up to a place, and places what it says; or waits until another thread or
    /// process has done it. Without the lock. `seq` is the change that is to be answered, if there is one.
    pub(super) fn finish(&self, change: &Change, last: &Last, seq: Option<u64>) -> Result<()> {
        let is_placed = || last.is_placed(last.mark().as_ref(), seq);
        let Some(own_turn) = self.turn.take_unless(&is_placed) else { return Ok(()) };
        let mut turn = match last.mark_file.turn_unless(TURN_WAIT, &is_placed) {
            Ok(None) => return Ok(()),
            Ok(turn) => turn,
            // Only to share: whoever does not get it syncs and places for itself.
            Err(_) => None,
        };
        if let Some(seq) = seq {
            self.gather(last, seq);
        }
        let mark = last.mark();
        if last.is_placed(mark.as_ref(), seq) {
            return Ok(());
        }
        // Before the sync: what is appended meanwhile may not be durable after it.
        let here = mark.map(|mark| mark.here()).filter(|here| here.segment == last.place.segment);
        let upto = here.map_or(last.place, |here| here.max(last.place));
        self.sync_journal(&*last.file)?;
        let mut locked = match seq {
            Some(_) => self.lock_to_place(change)?,
            None => self.lock_for(change)?,
        };
        // Whoever took a record back meanwhile may have been told of an error that is about this one too.
        self.check_sure()?;
        self.ready_again(&mut locked.inner).map_err(|error| self.unplaced(&error))?;
        let pending = |inner: &Inner| inner.journal.as_ref().map_or(0, |journal| journal.pending.len());
        let before = pending(&locked.inner);
        let placed = self.place_own(&mut locked.inner, last.place, upto.offset, seq);
        if let Some(turn) = &mut turn {
            turn.served = before.saturating_sub(pending(&locked.inner)).try_into().unwrap_or(u32::MAX);
        }
        // Who waited sees it, and who was not in time can begin the next sync.
        drop(turn);
        drop(own_turn);
        placed
    }

    /// Waits for others, before a sync that takes long: those who shared the last one mostly go on with their
    /// next changes at once, and would have to wait for the end of this sync and then for another.
    fn gather(&self, last: &Last, seq: u64) {
        let Some(pause) = self.gather_pause() else { return };
        let crowd = last.mark_file.crowd().unwrap_or(0);
        let mut known = 0;
        for _ in 0..GATHER_PAUSES_MAX {
            let came = last.mark().map_or(0, |mark| mark.next_seq.saturating_sub(seq));
            // All of them are here, or no more come.
            if came >= crowd || came == known {
                return;
            }
            known = came;
            std::thread::sleep(pause);
        }
    }

    /// How long others are waited for at a time; `None` where a sync is too short for that.
    fn gather_pause(&self) -> Option<Duration> {
        let pause = Duration::from_nanos(self.turn.sync_ns.load(Ordering::Relaxed)) / GATHER_PAUSES_A_SYNC;
        (pause >= GATHER_PAUSE_MIN).then(|| pause.min(GATHER_PAUSE_MAX))
    }

    /// Places what was just synced, unless another process has done it meanwhile.
    fn place_own(&self, inner: &mut Inner, place: Place, upto: u64, seq: Option<u64>) -> Result<()> {
        let journal = inner.journal.as_ref().expect("the journal is open under the lock");
        let mut refused = Vec::new();
        if !journal.mark.has_placed(place) {
            if self.gather_pause().is_some() {
                let count = journal.pending.iter().filter(|pending| pending.end <= upto).count();
                // Only to gather as many again.
                let _ = journal.mark_file.set_crowd(count as u64);
            }
            refused = self.place_pending(inner, upto)?;
        }
        let Some(seq) = seq else { return Ok(()) };
        if let Some((_, error)) = refused.into_iter().find(|(refused, _)| *refused == seq) {
            return Err(error.while_doing("putting files in place"));
        }
        let may_be_aborted = inner.journal.as_ref().is_some_and(|journal| journal.mark.aborted >= seq);
        if may_be_aborted && self.header(seq).map_err(|error| self.unplaced(&error))?.is_none() {
            return Err(Error::from_io(
                io::Error::other("its files could not be put in place"),
                "the change",
            ));
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

    /// Syncs the journal and places all that is pending, with the lock in hand. Not by turns: who has the
    /// turn waits for the lock.
    pub(super) fn settle(&self, inner: &mut Inner) -> Result<()> {
        if inner.journal.as_ref().is_none_or(|journal| journal.pending.is_empty()) {
            return Ok(());
        }
        let Some(last) = Last::of(inner) else { return Ok(()) };
        self.sync_journal(&*last.file)?;
        self.place_pending(inner, last.place.offset)?;
        Ok(())
    }

    pub(super) fn lock_for(&self, change: &Change) -> Result<Locked<'_>> {
        if !self.seeded.has(Bug::LockOnTarget) {
            return self.lock();
        }
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let target = change.edits.first().and_then(|edit| self.tree.open(edit.at().key(), Open::Write).ok());
        if let Some(target) = &target {
            let _ = target.lock(super::LOCK_WAIT);
        }
        Ok(Locked { core: self, inner, other: target })
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
                Error::new(Kind::Io, format!("the change is recorded, but not visible yet: {error}"))
                    .hint("do not repeat it: the next change, or opening the store, makes it visible")
            }
            _ => self.unplaced(&error),
        })
    }

    /// Makes durable what is in the journal. One thread at a time: the system tells of an error but once, so
    /// whoever comes after the one that was told must know.
    pub(super) fn sync_journal(&self, file: &dyn VfsFile) -> Result<()> {
        if self.seeded.has(Bug::AckBeforeSync) {
            return Ok(());
        }
        let _one = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_sure()?;
        let start = self.clock.now();
        let mut result = file.sync_data();
        let took_ns = self.clock.now().as_nanosecond() - start.as_nanosecond();
        self.turn.sync_ns.store(took_ns.try_into().unwrap_or(0), Ordering::Relaxed);
        if result.is_err() && self.seeded.has(Bug::RetrySync) {
            result = file.sync_data();
        }
        // Never tried again: the system may have dropped the pages, and would report success.
        result.map_err(|error| self.fail(error, "the journal"))
    }
}
