//! Making placed files durable in their places, in the background and at close, so that the
//! journal need not be replayed.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::mark::{Mark, Place};
use super::record::{Entry, Header, Record};
use super::scan::scan_headers;
use super::{Bug, Core, Inner};
use crate::backend::Edit;
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::vfs::Open;

/// How long after a change a checkpoint is made. A power cut within this time may leave a file torn until the
/// store is next opened.
const DELAY: Duration = Duration::from_secs(1);
/// How many times in a row a process skips its checkpoint because another has just made one. It must make one
/// itself now and then, for the files that it alone watches.
const LEFT_TO_OTHERS_MAX: u32 = 3;
/// A segment that has grown to this many times its usual size ends even if writers never pause.
const OVERDUE_SEGMENTS: u64 = 4;
/// With more changed files than this, one sync of the whole file system is cheaper than one per file.
const SINGLE_SYNCS_MAX: usize = 16;

/// The files and folders that were changed and may not be durable in their places yet.
#[derive(Default)]
pub(super) struct Dirty {
    files: BTreeSet<Locator>,
    folders: BTreeSet<Locator>,
}

impl Dirty {
    pub(super) fn of<'a>(headers: impl Iterator<Item = &'a Header>) -> Self {
        let mut dirty = Dirty::default();
        headers.flat_map(|header| &header.edits).for_each(|entry| dirty.add(entry));
        dirty
    }

    /// What to sync after a record was taken back: the files that it had deleted are there again.
    pub(super) fn of_undone(record: &Record) -> Self {
        let mut dirty = Dirty::of(std::iter::once(&record.header));
        dirty.files.extend(record.header.edits.iter().map(|entry| entry.at().clone()));
        dirty
    }

    /// What is to be moved, as it lies there.
    pub(super) fn of_moved(edits: &[Edit]) -> Self {
        let mut dirty = Dirty::default();
        for edit in edits {
            if let Edit::Rename { from, .. } = edit {
                dirty.files.insert(from.clone());
                dirty.folders.extend(from.parent());
            }
        }
        dirty
    }

    /// Adds what derived changes touched. They move nothing, so a plain union is enough.
    pub(super) fn merge(&mut self, other: Dirty) {
        self.files.extend(other.files);
        self.folders.extend(other.folders);
    }

    pub(super) fn add(&mut self, entry: &Entry) {
        for at in [Some(entry.at()), entry.to()].into_iter().flatten() {
            self.folders.extend(at.ancestors());
            self.folders.insert(Locator::root());
        }
        match entry {
            Entry::Write { at, .. } | Entry::Append { at, .. } => drop(self.files.insert(at.clone())),
            Entry::Rename { at, to, .. } => {
                for places in [&mut self.files, &mut self.folders] {
                    let moved =
                        places.iter().filter_map(|place| Some((place.clone(), place.rebased(at, to)?)));
                    for (from, to) in moved.collect::<Vec<_>>() {
                        places.remove(&from);
                        places.insert(to);
                    }
                }
            }
            Entry::Delete { .. } => {}
        }
    }
}

impl Core {
    /// Syncs what has been placed since the last checkpoint, then moves the mark.
    pub(super) fn checkpoint(&self) -> Result<()> {
        self.check_healthy()?;
        self.forget_record();
        self.close_old_displaced();
        let mut locked = self.lock_recovered()?;
        let in_journal = |error| Error::from_io(error, "the journal");
        self.settle_old_displaced(&mut locked.inner);
        self.sweep_temps(&mut locked.inner);
        self.check_healthy()?;
        let journal = locked.inner.journal.as_ref().expect("the journal is open under the lock");
        let (from, upto) = (journal.mark.checkpoint, journal.mark.here());
        if from == upto.offset && from < self.segment_bytes {
            return Ok(());
        }
        let found = scan_headers(&*journal.file, from..upto.offset).map_err(in_journal)?;
        let dirty = Dirty::of(found.records.iter().map(|(_, header)| &**header));
        drop(locked);

        // Without the lock: whatever is placed meanwhile belongs to records after `upto`.
        self.sync_dirty(&dirty).map_err(|error| self.fail(error, "a placed file"))?;

        let mut locked = self.lock()?;
        self.ready(&mut locked.inner)?;
        let Inner { journal: Some(journal), .. } = &mut *locked.inner else { return Ok(()) };
        if journal.mark.segment != upto.segment || journal.mark.checkpoint > upto.offset {
            return Ok(());
        }
        journal.mark.checkpoint = upto.offset;
        let moved = journal.mark_file.write(&journal.mark).and_then(|()| journal.mark_file.sync());
        moved.map_err(|error| self.fail(error, super::mark::NAME))?;
        if upto.offset >= self.segment_bytes.saturating_mul(OVERDUE_SEGMENTS) {
            // The other writers never pause on their own, so they have to wait here once.
            self.settle(&mut locked.inner)?;
            let journal = locked.inner.journal.as_mut().expect("it was just there");
            self.fence(journal)?;
        }
        let journal = locked.inner.journal.as_mut().expect("it was just there");
        if upto.offset >= self.segment_bytes && journal.mark.checkpoint == journal.mark.end {
            journal.rotate().map_err(in_journal)?;
        }
        Ok(())
    }

    pub(super) fn sync_dirty(&self, dirty: &Dirty) -> io::Result<()> {
        let (files, folders) = (!self.seeded.has(Bug::NoFileSync), !self.seeded.has(Bug::NoFolderSync));
        if dirty.files.len() > SINGLE_SYNCS_MAX && files && folders {
            return self.tree.sync_tree();
        }
        // What is gone by now has been deleted by a later record, or by someone else.
        let unless_gone = |result: io::Result<()>| match result {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(())
            }
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory) =>
            {
                Ok(())
            }
            other => other,
        };
        let sync_file = |at| self.tree.open(&self.spelled(at), Open::Read)?.sync_data();
        let synced_files = dirty.files.iter().filter(|_| files).map(sync_file);
        let sync_folder = |at| self.tree.sync_dir(&self.spelled(at));
        let synced_folders = dirty.folders.iter().filter(|_| folders).map(sync_folder);
        for synced in synced_files.chain(synced_folders) {
            match synced {
                // Its permissions keep us out, so it is synced together with everything else.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return self.tree.sync_tree();
                }
                synced => unless_gone(synced)?,
            }
        }
        Ok(())
    }

    /// Where the journal ends now, if a checkpoint is still to be made up to there, as far as can be told
    /// without the store's lock.
    fn uncheckpointed(&self) -> Option<Place> {
        self.last_mark().filter(|mark| mark.checkpoint < mark.end).map(|mark| mark.here())
    }

    /// Whether a checkpoint has been made of everything up to a place.
    fn is_checkpointed(&self, place: Place) -> bool {
        let is_behind = |mark: Mark| mark.segment != place.segment || mark.checkpoint >= place.offset;
        self.last_mark().is_some_and(is_behind)
    }

    fn last_mark(&self) -> Option<Mark> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.journal.as_ref()?.mark_file.read().ok().flatten()
    }

    /// Whether this process has begun to change the store, or to see to what another left behind.
    pub(super) fn is_in_use(&self) -> bool {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).journal.is_some()
    }

    /// The last checkpoint of a process.
    fn close(&self) {
        if !self.is_in_use() {
            return;
        }
        self.await_editors();
        if let Ok(mut locked) = self.lock_recovered() {
            self.settle_all_displaced(&mut locked.inner);
        }
        let _ = self.checkpoint();
    }
}

/// The thread that makes checkpoints, started by the first change.
pub(super) struct Background {
    core: Arc<Core>,
    wanted: bool,
    shared: Arc<(Mutex<Signal>, Condvar)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Signal {
    changed: bool,
    crowded: bool,
    closing: bool,
}

impl Background {
    pub(super) fn new(core: &Arc<Core>, wanted: bool) -> Self {
        Background { core: Arc::clone(core), wanted, shared: Arc::default(), thread: Mutex::default() }
    }

    /// Wakes the thread, because there is something to make durable.
    pub(super) fn wake(&self) {
        if !self.wanted {
            return;
        }
        let crowded = self.core.crowded.swap(false, Ordering::Relaxed);
        let mut signal = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        if signal.changed && !crowded {
            return;
        }
        signal.changed = true;
        signal.crowded |= crowded;
        drop(signal);
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let (core, shared) = (Arc::clone(&self.core), Arc::clone(&self.shared));
            let made =
                std::thread::Builder::new().name("checkpoint".into()).spawn(move || run(&core, &shared));
            // Without a thread, close makes the checkpoint.
            *thread = made.ok();
        }
        self.shared.1.notify_one();
    }
}

fn run(core: &Core, (signal, woken): &(Mutex<Signal>, Condvar)) {
    let mut left_to_others = 0;
    let mut state = signal.lock().unwrap_or_else(PoisonError::into_inner);
    while !state.closing {
        if !state.changed {
            state = woken.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        drop(state);
        let since = core.uncheckpointed();
        if !wait_until_due(core, signal, woken) {
            return;
        }
        // If another process has made one meanwhile, what was changed after it is not due yet.
        let is_left =
            left_to_others < LEFT_TO_OTHERS_MAX && since.is_some_and(|since| core.is_checkpointed(since));
        left_to_others = if is_left { left_to_others + 1 } else { 0 };
        let again = is_left
            || match core.checkpoint() {
                Ok(()) => core.has_displaced(),
                // Another process has the lock. Any other failure is remembered in the backend, which then
                // refuses further changes.
                Err(error) => error.kind() == Kind::Busy,
            };
        state = signal.lock().unwrap_or_else(PoisonError::into_inner);
        state.changed |= again;
    }
}

/// Waits until a checkpoint is due, and meanwhile thins out the watched files when there are too many.
/// Returns `false` if the store is closed first.
fn wait_until_due(core: &Core, signal: &Mutex<Signal>, woken: &Condvar) -> bool {
    let start_ms = core.clock.now().as_millisecond();
    let mut left = DELAY;
    loop {
        let state = signal.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut state, wait) = woken
            .wait_timeout_while(state, left, |state| !state.closing && !state.crowded)
            .unwrap_or_else(PoisonError::into_inner);
        if state.closing {
            return false;
        }
        if wait.timed_out() {
            state.changed = false;
            return true;
        }
        state.crowded = false;
        drop(state);
        core.thin_displaced();
        let passed_ms = core.clock.now().as_millisecond().saturating_sub(start_ms);
        left = DELAY.saturating_sub(Duration::from_millis(u64::try_from(passed_ms).unwrap_or(0)));
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if !self.wanted {
            return;
        }
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).closing = true;
        self.shared.1.notify_one();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
        self.core.close();
    }
}
