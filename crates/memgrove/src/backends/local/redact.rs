//! Redaction: the one thing that rewrites the journal. What a version held is taken out of every
//! record that keeps it; that there was a change, by whom and when, stays.
//!
//! Only segments that nobody appends to are rewritten, each as a new file that takes the old one's
//! place by rename: a crash leaves every segment as it was or as it shall be.

use std::collections::BTreeSet;
use std::io;

use bytes::Bytes;

use super::journal::{FOLDER, segment_name, segments};
use super::record::{Decoded, Entry, Record, decode, encode};
use super::scan::past_damage;
use super::{Core, Inner, Locked};
use crate::backend::{Moment, Version, not_found};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::vfs::{Open, Rename, Vfs, VfsFile};

/// Where a rewritten segment is kept until it takes its place.
const TEMP: &str = ".journal/redacting";
/// How many times to try for a checkpoint that covers everything while others keep writing.
const ATTEMPTS: u32 = 100;

impl Core {
    /// Takes what `at` (its name then) held at a moment out of the journal.
    pub(super) fn redact(&self, at: &Locator, moment: &Moment) -> Result<()> {
        let (mut locked, current) = self.lock_fresh_segment()?;
        let content = self.read_past(at, moment)?.ok_or_else(|| not_found(at))?;
        let version = Version::of(&content);
        let names = self.names_of(at)?;
        for name in &names {
            if self.read_file(name).is_ok_and(|bytes| bytes == content) {
                return Err(Error::new(
                    Kind::Conflict,
                    format!("`{name}` still holds what is to be redacted"),
                )
                .code(code::VERSION_MISMATCH)
                .hint("change or delete it first"));
            }
        }
        self.forget_displaced(&mut locked.inner, &|bytes| Version::of(bytes) == version)?;
        let grown_by = self.grown_by(at, moment)?;
        let found = self.rewrite_before(current, |record| {
            without(record, &names, &version, grown_by == Some(record.header.seq))
        })?;
        self.forget_record();
        drop(locked);
        match found {
            1.. => Ok(()),
            0 => Err(Error::new(Kind::Unsupported, format!("no change keeps what `{at}` held then"))
                .hint("redact the versions before it")),
        }
    }

    /// Takes all content beneath a place for which `holds` is true out of the journal.
    pub(super) fn redact_holding(&self, under: &Locator, holds: &dyn Fn(&[u8]) -> bool) -> Result<usize> {
        let (mut locked, current) = self.lock_fresh_segment()?;
        self.forget_displaced(&mut locked.inner, holds)?;
        let found = self.rewrite_before(current, |record| without_holding(record, under, holds))?;
        self.forget_record();
        drop(locked);
        Ok(found)
    }

    /// Takes the lock and begins an empty segment, whose number it returns. Everything in earlier segments is
    /// durable in its place, so recovery does not look at them.
    pub(super) fn lock_fresh_segment(&self) -> Result<(Locked<'_>, u64)> {
        for _ in 0..ATTEMPTS {
            self.checkpoint()?;
            let mut locked = self.lock_recovered()?;
            let journal = locked.inner.journal.as_mut().expect("the journal is open under the lock");
            self.fence(journal)?;
            if journal.mark.checkpoint < journal.mark.end {
                // Something was recorded just now, such as what an editor left.
                continue;
            }
            if journal.mark.end > 0 {
                journal.rotate().map_err(|error| Error::from_io(error, "the journal"))?;
            }
            let current = journal.mark.segment;
            return Ok((locked, current));
        }
        Err(Error::new(Kind::Busy, "other processes keep changing the store").hint("try again"))
    }

    /// Forgets displaced files that hold what is redacted. Refuses while a program has one open for writing,
    /// because what it saves there would enter the history again.
    fn forget_displaced(&self, inner: &mut Inner, holds: &dyn Fn(&[u8]) -> bool) -> Result<()> {
        let Inner { journal: Some(journal), displaced, .. } = inner else { return Ok(()) };
        let is_held = |file: &dyn VfsFile| match file.read_all().is_ok_and(|bytes| holds(&bytes)) {
            true if file.has_writers() == Some(true) => {
                let message = "a program still has a file open that holds what is to be redacted";
                Err(Error::new(Kind::Busy, message).hint("close it there, then try again"))
            }
            holds => Ok(holds),
        };
        let names = self.tree.names("", usize::MAX).map_err(|error| Error::from_io(error, "the store"))?;
        for name in names.iter().filter(|name| journal.temps.numbers(name).is_some()) {
            let Ok(file) = self.tree.open(name, Open::Read) else { continue };
            if is_held(&*file)? {
                self.tree.remove_file(name).map_err(|error| Error::from_io(error, name))?;
            }
        }
        for index in (0..displaced.len()).rev() {
            if is_held(displaced[index].file())? {
                displaced.remove(index);
            }
        }
        Ok(())
    }

    /// Returns every name, earlier or later, of any file that ever had this one.
    fn names_of(&self, at: &Locator) -> Result<BTreeSet<Locator>> {
        let mut moves = Vec::new();
        for segment in segments(&*self.state).map_err(|error| Error::from_io(error, "the journal"))? {
            for record in self.segment_records(segment)? {
                let renames = record.header.edits.iter().filter_map(|entry| Some((entry.at(), entry.to()?)));
                moves.extend(renames.map(|(from, to)| (from.clone(), to.clone())));
            }
        }
        let mut names = BTreeSet::from([at.clone()]);
        loop {
            let known: Vec<Locator> = names.iter().cloned().collect();
            for (from, to) in &moves {
                let ends = |name: &Locator| [name.rebased(from, to), name.rebased(to, from)];
                names.extend(known.iter().flat_map(ends).flatten());
            }
            if names.len() == known.len() {
                return Ok(names);
            }
        }
    }

    /// Rewrites the segments before `current`; returns how many records had something to take out.
    fn rewrite_before(&self, current: u64, without: impl Fn(&Record) -> Option<Record>) -> Result<usize> {
        let in_journal = |error| Error::from_io(error, "the journal");
        let held = segments(&*self.state).map_err(in_journal)?;
        let old = held.into_iter().filter(|segment| *segment < current);
        old.map(|segment| self.rewrite(segment, &without).map_err(in_journal)).sum()
    }

    fn rewrite(&self, segment: u64, without: impl Fn(&Record) -> Option<Record>) -> io::Result<usize> {
        let name = segment_name(segment);
        let bytes = Bytes::from(self.state.open(&name, Open::Read)?.read_all()?);
        let (mut kept, mut at, mut found, mut last) = (Vec::with_capacity(bytes.len()), 0, 0, None);
        loop {
            let len = match decode(&bytes.slice(at..)) {
                Decoded::End => break,
                Decoded::Record(record, len) => {
                    last = Some(record.header.seq);
                    match without(&record) {
                        Some(redacted) => {
                            found += 1;
                            encode(&redacted).iter().for_each(|piece| kept.extend_from_slice(piece));
                        }
                        None => kept.extend_from_slice(&bytes[at..at + len]),
                    }
                    at += len;
                    continue;
                }
                // Damage is kept as it is: what it holds is not known.
                Decoded::Damaged => past_damage(&bytes.slice(at..), last).unwrap_or(bytes.len() - at),
            };
            kept.extend_from_slice(&bytes[at..at + len]);
            at += len;
        }
        if found > 0 {
            replace(&*self.state, &name, &kept)?;
        }
        Ok(found)
    }
}

/// Replaces a file atomically by a complete new one.
fn replace(state: &dyn Vfs, name: &str, bytes: &[u8]) -> io::Result<()> {
    match state.remove_file(TEMP) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = state.open(TEMP, Open::CreateNew)?;
    file.write_at(0, bytes)?;
    file.sync_data()?;
    state.rename(TEMP, name, Rename::Replace)?;
    state.sync_dir(FOLDER)
}

/// Returns the write without content that stands in for a redacted append. Earlier versions stay readable;
/// those that grew out of it do not.
fn without_append(at: &Locator, created: bool) -> Entry {
    Entry::Write {
        at: at.clone(),
        old: (!created).then(Version::redacted),
        new: Version::redacted(),
        len: 0,
        before: None,
    }
}

/// The record without a version of these files; `None` if it neither holds, names nor `grew` into it.
fn without(record: &Record, names: &BTreeSet<Locator>, version: &Version, grew: bool) -> Option<Record> {
    let (mut header, mut bodies, mut found) = (record.header.clone(), record.bodies.clone(), false);
    for (index, entry) in header.edits.iter_mut().enumerate() {
        let ours = names.contains(entry.at());
        let [after, earlier] = &mut bodies[index];
        match entry {
            Entry::Write { new, len, .. } if ours && new == version => {
                (*new, *len, *after, found) = (Version::redacted(), 0, Bytes::new(), true);
            }
            Entry::Append { at, created, .. } if ours && grew => {
                (*entry, *after, found) = (without_append(at, *created), Bytes::new(), true);
            }
            _ => {}
        }
        match entry {
            Entry::Write { old: Some(old), before, .. } | Entry::Delete { old: Some(old), before, .. }
                if ours && old == version =>
            {
                (*old, *before, *earlier, found) = (Version::redacted(), None, Bytes::new(), true);
            }
            Entry::Rename { old: Some(old), .. } if ours && old == version => {
                (*old, found) = (Version::redacted(), true)
            }
            _ => {}
        }
    }
    found.then(|| Record::new(header, bodies))
}

/// Returns the record without the content beneath a place for which `holds` is true, and without such an
/// answer to its key; `None` if it keeps no such content.
fn without_holding(record: &Record, under: &Locator, holds: &dyn Fn(&[u8]) -> bool) -> Option<Record> {
    let (mut header, mut bodies, mut found) = (record.header.clone(), record.bodies.clone(), false);
    for (entry, [after, earlier]) in header.edits.iter_mut().zip(&mut bodies) {
        if !entry.at().is_within(under) {
            continue;
        }
        if holds(after) {
            (*after, found) = (Bytes::new(), true);
            match entry {
                Entry::Write { new, len, .. } => (*new, *len) = (Version::redacted(), 0),
                Entry::Append { at, created, .. } => *entry = without_append(at, *created),
                Entry::Delete { .. } | Entry::Rename { .. } => {}
            }
        }
        match entry {
            Entry::Write { old, before, .. } | Entry::Delete { old, before, .. } if holds(earlier) => {
                (*old, *before, *earlier, found) = (Some(Version::redacted()), None, Bytes::new(), true);
            }
            _ => {}
        }
    }
    if found && header.note.answer.as_ref().is_some_and(|answer| holds(answer.as_bytes())) {
        header.note.answer = None;
    }
    found.then(|| Record::new(header, bodies))
}
