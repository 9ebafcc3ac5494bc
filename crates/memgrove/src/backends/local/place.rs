//! How a record's edits reach the files: by temporary file and rename, one after another, and
//! again from the middle if a process died there.

use std::io;
use std::sync::Arc;

use super::checkpoint::Dirty;
use super::displaced::Displaced;
use super::journal::Journal;
use super::record::{Entry, Header, Record};
use super::scan::scan_headers;
use super::{Bug, Core, Inner, mark, meant};
use crate::backend::Version;
use crate::error::{Error, Result};
use crate::locator::Locator;
use crate::vfs::{Open, Rename, VfsFile};

impl Core {
    /// Places every record up to `end`, oldest first. To be called with the lock in hand and the
    /// journal synced up to there. A record that cannot be placed is taken back whole; its error is
    /// given back with its number.
    pub(super) fn place_pending(&self, inner: &mut Inner, end: u64) -> Result<Vec<(u64, Error)>> {
        let mut refused = Vec::new();
        let Inner { journal: Some(journal), displaced, .. } = inner else { return Ok(refused) };
        while let Some(pending) = journal.pending.front().filter(|pending| pending.end <= end) {
            let (record_end, seq) = (pending.end, pending.seq);
            let Some(record) = pending.record() else {
                // Someone has damaged the journal: an unreadable record is aborted, and its waiter is told.
                self.abort(journal, seq).map_err(|error| self.fail(error, "a refused change"))?;
                journal.pending.retain(|pending| pending.end != record_end);
                journal.mark.placed = record_end;
                continue;
            };
            let fenced = record.is_fenced();
            if fenced {
                self.fence(journal)?;
            }
            if let Err((begun, error)) = self.place_record(journal, displaced, &record) {
                self.take_back(journal, displaced, &record, begun)
                    .map_err(|error| self.fail(error, "a refused change"))?;
                refused.push((seq, error));
            }
            journal.pending.retain(|pending| pending.end != record_end);
            journal.own.remove(&seq);
            journal.mark.placed = record_end;
            if fenced {
                self.fence(journal)?;
            }
        }
        if journal.pending.is_empty() {
            journal.mark.placed = journal.mark.end;
        }
        journal.mark_file.write(&journal.mark).map_err(|error| self.fail(error, mark::NAME))?;
        Ok(refused)
    }

    /// Where nothing is pending, everything is in its place: what follows the last change is no change. Otherwise
    /// whoever opens the store would look for what is left to do.
    pub(super) fn tell_placed(&self, journal: &mut Journal) -> Result<()> {
        if journal.mark.placed >= journal.mark.end {
            return Ok(());
        }
        journal.mark.placed = journal.mark.end;
        journal.mark_file.write(&journal.mark).map_err(|error| self.fail(error, mark::NAME))
    }

    /// Places the edits of a record in order. With an error comes how many of them may have been placed.
    fn place_record(
        &self,
        journal: &mut Journal,
        displaced: &mut Vec<Displaced>,
        record: &Arc<Record>,
    ) -> Result<(), (usize, Error)> {
        let (seq, edits) = (record.header.seq, &record.header.edits);
        if record.is_entangled() {
            let in_mark = |error| (0, Error::from_io(error, mark::NAME));
            if journal.mark_file.begun().map_err(in_mark)? == seq {
                // A process that died, or failed, may have placed some of it.
                return self
                    .redo(journal, displaced, std::slice::from_ref(record))
                    .map_err(|error| (edits.len(), error));
            }
            journal.mark_file.set_begun(seq).map_err(in_mark)?;
        }
        edits.iter().enumerate().try_for_each(|(index, edit)| {
            self.place(journal, displaced, record, index)
                .map_err(|error| (index + 1, meant(error, edit.to().unwrap_or(edit.at()))))
        })
    }

    /// Makes everything that is placed durable. A record that moves things stands between two fences: after a
    /// power cut no earlier name is in doubt, and nothing later has happened.
    pub(super) fn fence(&self, journal: &mut Journal) -> Result<()> {
        // The checkpoint may be ahead: it also covers hand edits and aborts recorded after the last change.
        if journal.mark.checkpoint >= journal.mark.placed {
            return Ok(());
        }
        let mut fence = || {
            let found = scan_headers(&*journal.file, journal.mark.checkpoint..journal.mark.placed)?;
            let placed = found.records.iter().filter(|(end, _)| *end <= journal.mark.placed);
            let placed: Vec<&Header> = placed.map(|(_, header)| &**header).collect();
            // Temporary names are only needed until then, so none may be left.
            placed.iter().for_each(|header| self.sweep_all_of(journal, header));
            self.sync_dirty(&Dirty::of(placed.into_iter()))?;
            journal.mark.checkpoint = journal.mark.placed;
            journal.mark_file.write(&journal.mark)?;
            journal.mark_file.sync()
        };
        let fenced: io::Result<()> = fence();
        fenced.map_err(|error| self.fail(error, "a placed file"))
    }

    /// Places one edit of a record; no harm if it has been placed before.
    fn place(
        &self,
        journal: &mut Journal,
        displaced: &mut Vec<Displaced>,
        record: &Record,
        index: usize,
    ) -> io::Result<()> {
        match &record.header.edits[index] {
            Entry::Write { .. } => self.place_write(journal, displaced, record, index),
            // An empty append only checks that the file is there.
            Entry::Append { len: 0, created: false, .. } => Ok(()),
            Entry::Append { at, offset, .. } => self.place_append(journal, at, *offset, record.after(index)),
            Entry::Delete { at, old: Some(old), .. } => {
                let temp = journal.temps.name(record.header.seq, index);
                self.place_delete(journal, displaced, at, old, &temp)
            }
            Entry::Delete { at, old: None, .. } => match self.tree.remove_dir(&self.spelled(at)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
            Entry::Rename { at, to, .. } => self.place_rename(at, to),
        }
    }

    /// Removes what is left of a record's temporary files.
    pub(super) fn remove_temps(&self, journal: &Journal, record: &Record) {
        for index in 0..record.header.edits.len() {
            // Most never existed or have taken their places.
            let _ = self.tree.remove_file(&journal.temps.name(record.header.seq, index));
        }
    }

    fn place_write(
        &self,
        journal: &mut Journal,
        displaced: &mut Vec<Displaced>,
        record: &Record,
        index: usize,
    ) -> io::Result<()> {
        let Entry::Write { at, old, new, .. } = &record.header.edits[index] else { return Ok(()) };
        let old = old.as_ref();
        let temp = journal.temps.name(record.header.seq, index);
        if self.seeded.has(Bug::InPlaceWrite) {
            let _ = self.tree.remove_file(&temp);
            self.make_parents(at)?;
            let file = self.tree.open(&self.spelled(at), Open::WriteOrCreate)?;
            file.set_len(0)?;
            return file.write_at(0, record.after(index));
        }
        // Usually this is the file that was prepared for this edit. Any other may have been left by a process
        // that died half-way.
        let own = journal.own.get_mut(&record.header.seq);
        let (made, replaced) = own.map(|own| own.take(index)).unwrap_or_default();
        let prepared = match made {
            Some(_) => if_there(self.tree.stat(&temp))?.map(|stat| stat.inode) == made,
            None => self.is_made(&temp, record.after(index))?,
        };
        if !prepared && self.resume_write(journal, displaced, (at, old, new), &temp)? {
            return Ok(());
        }
        if !prepared {
            // Written under a spare name first: a file under the edit's own name is whole, or was exchanged.
            let spare = journal.temps.name(0, index);
            self.write_temp(&spare, record.after(index))?;
            self.keep_mode(at, None, &spare)?;
            self.tree.rename(&spare, &temp, Rename::NoReplace)?;
        }
        if record.header.edits.len() > 1 || !prepared {
            self.make_parents(at)?;
        }
        match self.swap_in(journal, displaced, &temp, (at, old), replaced) {
            // Someone has removed the folder while it was still empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound && old.is_none() => {
                self.make_parents(at)?;
                self.swap_in(journal, displaced, &temp, (at, old), None)
            }
            placed => placed,
        }
    }

    /// Finishes a write that another process placed before it died. Returns `false` if none did.
    fn resume_write(
        &self,
        journal: &mut Journal,
        displaced: &mut Vec<Displaced>,
        (at, old, new): (&Locator, Option<&Version>, &Version),
        temp: &str,
    ) -> io::Result<bool> {
        match if_there(self.tree.open(temp, Open::Read))? {
            // They were exchanged: the temporary name holds what was there. What is there now stays.
            Some(file) => {
                let kept = self.keep_displaced(journal, displaced, file, (at, old), Some(temp));
                if kept.is_err() && self.holds(at, new)? {
                    // There is no room to keep what was there: put it back.
                    self.tree.rename(temp, &self.spelled(at), Rename::Exchange)?;
                }
                kept.map(|()| true)
            }
            // Removed after the exchange, or by someone else before it; in that case the file is as it was.
            None => {
                let there = match self.tree.open(&self.spelled(at), Open::Read) {
                    Err(error) if is_changed_by_others(&error) => None,
                    opened => Some(Version::of(&opened?.read_all()?)),
                };
                Ok(there.as_ref() != old)
            }
        }
    }

    /// Whether the file there has this content already.
    pub(super) fn holds(&self, at: &Locator, version: &Version) -> io::Result<bool> {
        match self.tree.open(&self.spelled(at), Open::Read).and_then(|file| file.read_all()) {
            Err(error) if is_changed_by_others(&error) => Ok(false),
            // Its permissions keep us out.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
            read => Ok(Version::of(&read?) == *version),
        }
    }

    /// Moves a temporary file into place, and keeps what it displaced if someone else wrote that.
    pub(super) fn swap_in(
        &self,
        journal: &mut Journal,
        displaced: &mut Vec<Displaced>,
        temp: &str,
        (at, old): (&Locator, Option<&Version>),
        replaced: Option<Box<dyn VfsFile>>,
    ) -> io::Result<()> {
        let target = self.spelled(at);
        if self.seeded.has(Bug::PlainRename) {
            return self.tree.rename(temp, &target, Rename::Replace);
        }
        if old.is_none() {
            match self.tree.rename(temp, &target, Rename::NoReplace) {
                // Someone made the file since it was checked: keep what they made.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => return other,
            }
        }
        match self.tree.rename(temp, &target, Rename::Exchange) {
            Ok(()) => {
                let kept = self
                    .displaced_to(temp, replaced)
                    .and_then(|file| self.keep_displaced(journal, displaced, file, (at, old), Some(temp)));
                if kept.is_err() {
                    // A link or a folder has taken the place, or what was there cannot be kept: put it back.
                    self.tree.rename(temp, &target, Rename::Exchange)?;
                }
                kept
            }
            // Someone removed the file since it was checked, and may be about to make it anew.
            Err(error) if error.kind() == io::ErrorKind::NotFound && old.is_some() => {
                self.swap_in(journal, displaced, temp, (at, None), None)
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                let file = self.tree.open(&target, Open::Read)?;
                self.keep_displaced(journal, displaced, file, (at, old), None)?;
                self.tree.rename(temp, &target, Rename::Replace)
            }
            Err(error) => Err(error),
        }
    }

    /// The file that has been displaced to a temporary name: mostly the one that was there before.
    fn displaced_to(&self, temp: &str, replaced: Option<Box<dyn VfsFile>>) -> io::Result<Box<dyn VfsFile>> {
        match replaced {
            Some(file) if self.tree.stat(temp)?.inode == file.inode()? => Ok(file),
            _ => self.tree.open(temp, Open::Read),
        }
    }

    pub(super) fn place_delete(
        &self,
        journal: &mut Journal,
        displaced: &mut Vec<Displaced>,
        at: &Locator,
        old: &Version,
        temp: &str,
    ) -> io::Result<()> {
        // Moved to a temporary name first, so that a hand edit that slipped in can still be kept. If that
        // name is taken, a process died right after this step, and what has the place by now stays.
        match self.tree.rename(&self.spelled(at), temp, Rename::NoReplace) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists) => {}
            other => other?,
        }
        let kept = match self.tree.open(temp, Open::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => Err(error),
            Ok(file) => self.keep_displaced(journal, displaced, file, (at, Some(old)), Some(temp)),
        };
        if kept.is_err() {
            // A link or a folder has taken the place, or what was there cannot be kept: put it back.
            self.tree.rename(temp, &self.spelled(at), Rename::NoReplace)?;
        }
        kept
    }

    fn place_append(&self, journal: &Journal, at: &Locator, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.make_parents(at)?;
        let file = self.tree.open(&self.spelled(at), Open::WriteOrCreate)?;
        let size = file.stat()?.size;
        let tail = size.saturating_sub(bytes.len() as u64);
        // A process may have died right after it appended the bytes, or half-way through.
        if size > offset
            && [offset, tail]
                .iter()
                .any(|start| file.read_at(*start, bytes.len()).is_ok_and(|there| there == bytes))
        {
            let count = journal.mark_file.appends()?;
            return if count % 2 == 0 { Ok(()) } else { journal.mark_file.set_appends(count + 1) };
        }
        let half = file.read_at(offset, bytes.len())?;
        let is_begun = size > offset && bytes.starts_with(&half);
        let start = if is_begun { offset } else { size };
        // Readers take no lock: an odd count tells them to wait.
        let count = journal.mark_file.appends()? | 1;
        journal.mark_file.set_appends(count)?;
        // Others may append at this very moment, and neither may overwrite the other.
        let written = if is_begun { file.write_at(start, bytes) } else { file.append(bytes) };
        let written = written.inspect_err(|_| {
            let is_ours = |there: Vec<u8>| bytes.starts_with(&there);
            if file.read_at(start, bytes.len() + 1).is_ok_and(is_ours) {
                let _ = file.set_len(start);
            }
        });
        journal.mark_file.set_appends(count + 1)?;
        written
    }

    /// Moves something unless it has been moved already. Fails if someone has put something else at the
    /// target since it was checked.
    pub(super) fn place_rename(&self, from: &Locator, to: &Locator) -> io::Result<()> {
        use io::ErrorKind as E;
        let (source, target) = (self.spelled(from), self.spelled(to));
        match self.tree.stat(&source) {
            Err(error) if matches!(error.kind(), E::NotFound | E::NotADirectory) => return Ok(()),
            other => other?,
        };
        self.make_parents(to)?;
        self.tree.rename(&source, &target, Rename::NoReplace)
    }
}

/// Turns a `NotFound` error into `None`.
pub(super) fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Whether an error means that someone else has changed or removed what is at a place.
pub(super) fn is_changed_by_others(error: &io::Error) -> bool {
    use io::ErrorKind as E;
    matches!(
        error.kind(),
        E::NotFound | E::NotADirectory | E::IsADirectory | E::AlreadyExists | E::InvalidInput
    )
}
