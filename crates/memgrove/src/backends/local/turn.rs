//! How a change that is in the journal becomes durable and takes its place.
//!
//! One thread does it for all that wait: it has the turn, syncs the journal, and then places everything that
//! is durable, all in one hold of the lock. The others wait for their turn, or until they see that their
//! change has been placed, and need neither a sync nor the lock.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::mark::{Mark, MarkFile, Place};
use super::{Bug, Core, Inner, Locked};
use crate::backend::Change;
use crate::error::{Error, Kind, Result};
use crate::vfs::{Open, VfsFile};

/// How long to wait for another process that has the turn, which may be suspended.
const TURN_WAIT: Duration = Duration::from_secs(1);
/// How many times a change that is durable waits for the lock in order to be placed.
const PLACE_ATTEMPTS: u32 = 4;
/// How long to pause for others before a sync, as a fraction of the last sync's time, and how many times.
const GATHER_PAUSES_A_SYNC: u32 = 8;
const GATHER_PAUSES_MAX: u32 = 4;
/// The shortest pause worth making, and the longest, because the last sync may have been an exception.
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

    /// Whether everything up to here is placed and no change from `seq` on was taken back: as both happen in
    /// the order of numbers, the mark's last abort tells.
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
    /// Waits for the turn. Returns `None` if `needless` says that the work was done meanwhile: all who see
    /// that go on at once, rather than one after the other.
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
    /// Makes the journal durable up to `last` and places what it says, or waits until another thread or
    /// process has. Called without the lock. `seq` is the change that is to be answered, if there is one.
    pub(super) fn finish(&self, change: &Change, last: &Last, seq: Option<u64>) -> Result<()> {
        let is_placed = || last.is_placed(last.mark().as_ref(), seq);
        let Some(own_turn) = self.turn.take_unless(&is_placed) else { return Ok(()) };
        let mut turn = match last.mark_file.turn_unless(TURN_WAIT, &is_placed) {
            Ok(None) => return Ok(()),
            Ok(turn) => turn,
            // The turn only saves work: without it this thread syncs and places for itself.
            Err(_) => None,
        };
        if let Some(seq) = seq {
            self.gather(last, seq);
        }
        let mark = last.mark();
        if last.is_placed(mark.as_ref(), seq) {
            return Ok(());
        }
        // Read before the sync: what is appended during it may not be durable after it.
        let here = mark.map(|mark| mark.here()).filter(|here| here.segment == last.place.segment);
        let upto = here.map_or(last.place, |here| here.max(last.place));
        self.sync_journal(&*last.file)?;
        let mut locked = match seq {
            Some(_) => self.lock_to_place(change)?,
            None => self.lock_for(change)?,
        };
        // A thread that took a record back may have received a sync error that concerns this one too.
        self.check_sure()?;
        self.ready_again(&mut locked.inner).map_err(|error| self.unplaced(&error))?;
        let pending = |inner: &Inner| inner.journal.as_ref().map_or(0, |journal| journal.pending.len());
        let before = pending(&locked.inner);
        let placed = self.place_own(&mut locked.inner, last.place, upto.offset, seq);
        if let Some(turn) = &mut turn {
            turn.served = before.saturating_sub(pending(&locked.inner)).try_into().unwrap_or(u32::MAX);
        }
        // Those who waited see their changes placed, and the others can begin the next sync.
        drop(turn);
        drop(own_turn);
        placed
    }

    /// Waits for others before a long sync: those who shared the last one usually make their next changes at
    /// once, and would otherwise wait for this sync and then for another.
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

    /// How long to pause for others at a time; `None` where syncs are too short for that.
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
                // Only so that the next sync gathers as many.
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

    /// As [`Core::ready`], but moments later in the same change: the mark alone tells whether anything was
    /// replaced.
    fn ready_again(&self, inner: &mut Inner) -> Result<()> {
        if let Some(journal) = &mut inner.journal
            && journal.catch_up().map_err(|error| Error::from_io(error, "the journal"))?
        {
            return Ok(());
        }
        self.ready(inner)
    }

    /// Syncs the journal and places everything pending, with the lock held. Takes no turn, because whoever
    /// has the turn may be waiting for the lock.
    pub(super) fn settle(&self, inner: &mut Inner) -> Result<()> {
        let Some(journal) = &mut inner.journal else { return Ok(()) };
        if journal.pending.is_empty() {
            return self.tell_placed(journal);
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

    /// Takes the lock for a change that is durable already, patiently: a retry would make it twice.
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

    /// Makes the journal durable, one thread at a time: the system reports a sync error only once, so threads
    /// that come later must learn of it here.
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
