//! What a change replaced or removed, and what someone else had written there meanwhile.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::journal::Journal;
use super::place::if_there;
use super::record::{Entry, Header, Record, What};
use super::{Core, Inner};
use crate::backend::{Actor, Note, OUTSIDE, Origin, Version};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::locator::Locator;
use crate::vfs::{Open, VfsFile};

/// How long a file that was just replaced may still be written to by an editor that has it open.
const GRACE_MS: i64 = 2_000;
/// How long close waits for an editor that was caught in the middle of a save.
const EDITOR_PAUSE: Duration = Duration::from_millis(300);
/// How many replaced files are watched at once.
const DISPLACED_MAX: usize = 128;
/// How many more may be watched until the background thread has thinned them out.
const CROWD_MAX: usize = 128;

/// A file that a change has replaced or deleted. An editor may still have it open.
pub(super) struct Displaced {
    file: Box<dyn VfsFile>,
    /// The temporary name that it still has, by which another process can find it.
    name: Option<String>,
    at: Locator,
    version: Version,
    since: Timestamp,
}

impl Displaced {
    pub(super) fn file(&self) -> &dyn VfsFile {
        &*self.file
    }

    /// Whether an editor has it open, as far as the system tells.
    fn is_written(&self) -> bool {
        self.file.has_writers() == Some(true)
    }

    /// Whether it was replaced a while ago, and no editor has it open.
    fn is_over(&self, now: Timestamp) -> bool {
        now.as_millisecond() - self.since.as_millisecond() >= GRACE_MS && !self.is_written()
    }

    /// Notes that its name is gone and the history has `held`: only the handle leads to it now.
    pub(super) fn lose_name(&mut self, held: Version) {
        (self.name, self.version) = (None, held);
    }

    /// Whether nobody has written into it since, and no temporary name is left to remove.
    fn is_as_it_was(&self) -> bool {
        self.name.is_none() && self.file.read_all().is_ok_and(|bytes| Version::of(&bytes) == self.version)
    }
}

/// Stops watching the oldest files when there are too many. Drops only those that nobody wrote to, and those
/// that an editor still has open under a name by which another process can find them.
fn bound(displaced: &mut Vec<Displaced>) {
    let excess = displaced.len().saturating_sub(DISPLACED_MAX + CROWD_MAX);
    let is_done = |old: &mut Displaced| (old.name.is_some() && old.is_written()) || old.is_as_it_was();
    displaced.extract_if(..excess, is_done).for_each(drop);
}

impl Core {
    /// Keeps in the journal what someone else wrote into a file that was displaced from `at`, and watches the
    /// file for a while. Its temporary name is removed, unless an editor has the file open: then another
    /// process may need the name to find it.
    pub(super) fn keep_displaced(
        &self,
        journal: &mut Journal,
        displaced: &mut Vec<Displaced>,
        file: Box<dyn VfsFile>,
        (at, expected): (&Locator, Option<&Version>),
        name: Option<&str>,
    ) -> io::Result<()> {
        // A derived change has number 0, and its temporary names are reused.
        let is_single = name.and_then(|name| journal.temps.numbers(name)).is_some_and(|(seq, _)| seq > 0);
        let kept = name.filter(|_| is_single && file.has_writers() == Some(true)).map(str::to_owned);
        let bytes = file.read_all()?;
        let version = Version::of(&bytes);
        if expected != Some(&version) {
            self.journal_outside(journal, at, bytes)?;
        }
        match name.filter(|_| kept.is_none()) {
            // Removed later, when the lock is free; but at once if the name will be reused.
            Some(name) if is_single => journal.spent.push(name.to_owned()),
            Some(name) => self.tree.remove_file(name)?,
            None => {}
        }
        displaced.push(Displaced { file, name: kept, at: at.clone(), version, since: self.clock.now() });
        // One change may displace any number of files.
        bound(displaced);
        Ok(())
    }

    /// Removes temporary names that are no longer needed, and stops watching files beyond the limit. Needs no
    /// store lock; names that a crash leaves are removed by whoever finds them.
    pub(super) fn tidy(&self, inner: &mut Inner) {
        if let Some(journal) = &mut inner.journal
            && self.failed.get().is_some()
        {
            // A change may be half placed, and whoever completes it must find the files that it displaced.
            journal.spent.clear();
        }
        inner.journal.iter_mut().for_each(|journal| self.clear_spent(journal));
        bound(&mut inner.displaced);
        self.crowded.store(inner.displaced.len() > DISPLACED_MAX + CROWD_MAX / 2, Ordering::Relaxed);
    }

    /// Removes the temporary names that nobody needs any more.
    pub(super) fn clear_spent(&self, journal: &mut Journal) {
        for name in journal.spent.drain(..) {
            // What fails, the next checkpoint tries again.
            let _ = self.tree.remove_file(&name);
        }
    }

    /// Stops watching untouched files beyond the limit; called in the background.
    pub(super) fn thin_displaced(&self) {
        self.close_untouched(DISPLACED_MAX, |_| true);
    }

    /// Stops watching files that are over and untouched, except the newest `left`. Closes them outside the
    /// mutex, because closing the last handle of a nameless file takes as long as deleting it.
    fn close_untouched(&self, left: usize, is_over: impl Fn(&Displaced) -> bool) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let most = inner.displaced.len().saturating_sub(left);
        let is_done = |old: &mut Displaced| is_over(old) && old.is_as_it_was();
        let closed: Vec<_> = inner.displaced.extract_if(..most, is_done).collect();
        drop(inner);
        drop(closed);
    }

    /// Puts content that someone else wrote into the journal, durably.
    pub(super) fn journal_outside(
        &self,
        journal: &mut Journal,
        at: &Locator,
        bytes: Vec<u8>,
    ) -> io::Result<()> {
        let new = Version::of(&bytes);
        let len = bytes.len() as u64;
        let entry = Entry::Write { at: at.clone(), old: None, new, len, before: None };
        let actor = Actor { origin: Origin::FileEdit, ..Actor::default() };
        let header = Header {
            seq: journal.mark.next_seq,
            time: self.clock.now(),
            what: What::Outside,
            note: Note { verb: OUTSIDE.into(), actor, ..Note::default() },
            edits: vec![entry],
        };
        // The tree no longer has it, so its only copy must not wait.
        self.keep_note(journal, Record::new(header, vec![[bytes.into(), Bytes::new()]]), self.reserve_bytes)
    }

    /// Appends a record that is no change, durably.
    pub(super) fn keep_note(&self, journal: &mut Journal, record: Record, ahead: u64) -> io::Result<()> {
        match journal.append(&Arc::new(record), ahead) {
            Err(error) if journal.doubtful => Err(io::Error::other(self.fail(error, "the journal"))),
            appended => appended.and_then(|()| self.sync_journal(&*journal.file).map_err(io::Error::other)),
        }
    }

    fn settle_displaced(&self, journal: &mut Journal, displaced: &mut Displaced) -> io::Result<()> {
        if let Some(name) = &displaced.name
            && if_there(self.tree.stat(name))?.map(|stat| stat.inode) != Some(displaced.file.inode()?)
        {
            // Another process has seen to it.
            return Ok(());
        }
        let bytes = displaced.file.read_all()?;
        // An editor that opens a file truncates it first: empty is not what it meant to save.
        let version = Version::of(&bytes);
        if !bytes.is_empty() && version != displaced.version {
            self.journal_outside(journal, &displaced.at, bytes)?;
            // So that it is journaled only once, even if its name cannot be removed.
            displaced.version = version;
        }
        displaced.name.as_ref().map_or(Ok(()), |name| self.tree.remove_file(name))
    }

    /// Stops watching a file. If an editor has it open and it still has a name, another process will find it
    /// by that name.
    fn let_go(&self, journal: &mut Journal, displaced: &mut Displaced) -> io::Result<()> {
        match displaced.name.is_some() && displaced.is_written() {
            true => Ok(()),
            false => self.settle_displaced(journal, displaced),
        }
    }

    /// Stops watching files that were replaced a while ago, that nobody wrote to and no editor has open.
    pub(super) fn close_old_displaced(&self) {
        let now = self.clock.now();
        self.close_untouched(0, |old| old.is_over(now));
    }

    /// Keeps what was written into the others that were replaced a while ago. The caller holds the lock.
    pub(super) fn settle_old_displaced(&self, inner: &mut Inner) {
        let now = self.clock.now();
        let Inner { journal: Some(journal), displaced, .. } = inner else { return };
        // What fails, the next checkpoint tries again.
        displaced.retain_mut(|old| !old.is_over(now) || self.settle_displaced(journal, old).is_err());
    }

    /// Whether any displaced file is still being watched.
    pub(super) fn has_displaced(&self) -> bool {
        !self.inner.lock().unwrap_or_else(PoisonError::into_inner).displaced.is_empty()
    }

    /// At close: waits for editors that were caught in the middle of a save.
    pub(super) fn await_editors(&self) {
        let truncated = Version::of(b"");
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let is_wanted = inner.displaced.iter().any(|old| old.is_written() || old.version == truncated);
        drop(inner);
        if is_wanted {
            std::thread::sleep(EDITOR_PAUSE);
        }
        self.close_untouched(0, |old| !old.is_written());
    }

    /// At close: takes a last look at the files that are left, with the lock held.
    pub(super) fn settle_all_displaced(&self, inner: &mut Inner) {
        let Inner { journal: Some(journal), displaced, .. } = inner else { return };
        for mut old in displaced.drain(..) {
            // If this fails, the content is still in the tree or the journal, and the next opening goes on.
            let _ = self.let_go(journal, &mut old);
        }
    }

    /// Removes temporary files of this journal that belong to no pending record: their processes died, or
    /// left them to the editors that had them open. What those wrote is kept.
    pub(super) fn sweep_temps(&self, inner: &mut Inner) {
        self.tidy(inner);
        let Inner { journal: Some(journal), displaced, .. } = inner else { return };
        let live: BTreeSet<u64> = journal.pending.iter().map(|pending| pending.seq).collect();
        for name in self.tree.names("", usize::MAX).unwrap_or_default() {
            let watched = displaced.iter().any(|old| old.name.as_ref() == Some(&name));
            let own = journal.temps.numbers(&name);
            if let Some((seq, index)) = own.filter(|(seq, _)| !watched && !live.contains(seq)) {
                // What fails, the next checkpoint tries again.
                let _ = self.sweep(journal, &name, seq, index);
            }
        }
    }

    /// Removes what is left of a placed record's temporary files. Another process may be doing the same.
    pub(super) fn sweep_all_of(&self, journal: &mut Journal, header: &Header) {
        for index in 0..header.edits.len() {
            let name = journal.temps.name(header.seq, index);
            // Most are gone.
            let _ = self.sweep(journal, &name, header.seq, index);
        }
    }

    fn sweep(&self, journal: &mut Journal, name: &str, seq: u64, index: usize) -> Result<()> {
        let in_place = |error| Error::from_io(error, name);
        let file = self.tree.open(name, Open::Read).map_err(in_place)?;
        if file.has_writers() == Some(true) {
            return Ok(());
        }
        // A displaced file has the temporary name of the edit that displaced it.
        let header = self.header(seq)?;
        let displaced = header.as_ref().and_then(|header| match header.edits.get(index)? {
            Entry::Write { at, old, new, .. } => Some((at, [old.as_ref(), Some(new)])),
            Entry::Delete { at, old, .. } => Some((at, [old.as_ref(), None])),
            // What recovery displaced.
            Entry::Append { at, .. } => Some((at, [None, None])),
            Entry::Rename { .. } => None,
        });
        let Some((at, known)) = displaced else { return self.tree.remove_file(name).map_err(in_place) };
        let bytes = file.read_all().map_err(in_place)?;
        let version = Version::of(&bytes);
        let is_known = known.contains(&Some(&version)) || self.was_left(at, &version, seq)?;
        self.clear_temp(journal, name, at, (bytes, is_known)).map_err(in_place)
    }

    /// Removes a temporary file; its content goes into the history first, if it is not known there.
    pub(super) fn clear_temp(
        &self,
        journal: &mut Journal,
        name: &str,
        at: &Locator,
        (bytes, is_known): (Vec<u8>, bool),
    ) -> io::Result<()> {
        let is_blank = bytes.iter().all(|byte| *byte == 0);
        if !is_blank && !is_known {
            self.journal_outside(journal, at, bytes)?;
        }
        self.tree.remove_file(name)
    }
}
