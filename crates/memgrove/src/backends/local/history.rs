//! The journal read backwards: what happened, and what a file held at any moment.

use std::sync::Arc;

use super::Core;
use super::journal::segments;
use super::record::{Entry, Record, What};
use super::redact::is_redacted;
use crate::backend::{ChangeId, HistoryQuery, Moment, Past, Version, not_in_history};
use crate::backends::trail::Trail;
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;

impl Core {
    /// Hands every record that happened to `visit`, newest first, until it says to stop.
    fn backwards(&self, mut visit: impl FnMut(&Arc<Record>) -> Result<Visit>) -> Result<()> {
        let mut aborted = Vec::new();
        for segment in
            segments(&*self.state).map_err(|error| Error::from_io(error, "the journal"))?.into_iter().rev()
        {
            for record in self.segment_records(segment)?.iter().rev() {
                if let What::Abort(seq) = record.header.what {
                    aborted.push(seq);
                } else if !aborted.contains(&record.header.seq) && visit(record)? == Visit::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The record of that number.
    pub(super) fn record(&self, seq: u64) -> Result<Option<Arc<Record>>> {
        let mut found = None;
        self.backwards(|record| {
            if record.header.seq == seq {
                found = Some(Arc::clone(record));
            }
            Ok(if record.header.seq <= seq { Visit::Stop } else { Visit::On })
        })?;
        Ok(found)
    }

    pub(super) fn history(&self, query: &HistoryQuery) -> Result<Vec<Past>> {
        let before = query.before.as_ref().map(|change| self.known(change)).transpose()?;
        let mut trail = query.at.as_ref().map(Trail::of);
        let mut found = Vec::new();
        self.backwards(|record| {
            let past = record.past();
            let touched = trail.as_mut().is_none_or(|trail| trail.touched_by(&past.edits));
            if touched && before.is_none_or(|before| record.header.seq < before) {
                found.push(past);
            }
            Ok(if query.limit > 0 && found.len() >= query.limit { Visit::Stop } else { Visit::On })
        })?;
        Ok(found)
    }

    /// The number of a change that the journal holds.
    fn known(&self, change: &ChangeId) -> Result<u64> {
        let seq = change.as_str().parse().ok();
        let held = seq.map(|seq| self.record(seq)).transpose()?.flatten();
        held.map(|record| record.header.seq).ok_or_else(|| not_in_history(format!("a change `{change}`")))
    }

    pub(super) fn read_past(&self, at: &Locator, moment: &Moment) -> Result<Option<Vec<u8>>> {
        let (change, inclusive) = match moment {
            Moment::Before(change) => (change, false),
            Moment::After(change) => (change, true),
        };
        let seq = self.known(change)?;
        let mut search =
            Search { name: at.clone(), expected: None, appended: Vec::new(), offset: None, redacted: false };
        let mut found = None;
        self.backwards(|record| {
            let wanted = record.header.seq < seq || (record.header.seq == seq && inclusive);
            if record.header.seq == seq && !inclusive {
                // What the change itself replaced, if it says so.
                found = search.replaced_by(record);
            } else if wanted {
                found = search.step(record);
            }
            Ok(if found.is_some() { Visit::Stop } else { Visit::On })
        })?;
        match found {
            _ if search.redacted => Err(redacted(at)),
            Some(state) => Ok(state.map(|base| search.grown(base))),
            None => self.told_by_later(at, seq, inclusive, &search),
        }
    }

    /// The state of a file that no earlier record holds in full, from what came after: the first
    /// later record that keeps it, or else the file itself, without what was appended since.
    fn told_by_later(
        &self,
        at: &Locator,
        seq: u64,
        inclusive: bool,
        search: &Search,
    ) -> Result<Option<Vec<u8>>> {
        let mut later = Vec::new();
        self.backwards(|record| {
            if record.header.seq > seq || (record.header.seq == seq && !inclusive) {
                later.push(Arc::clone(record));
                return Ok(Visit::On);
            }
            Ok(Visit::Stop)
        })?;
        let mut name = at.clone();
        let mut size = search
            .offset
            .map(|offset| offset + search.appended.iter().map(|added| added.len() as u64).sum::<u64>());
        for record in later.iter().rev() {
            for (index, entry) in record.header.edits.iter().enumerate() {
                match entry {
                    // A folder, which holds no bytes.
                    Entry::Delete { at, old: None, .. } if *at == name => return Ok(None),
                    Entry::Write { at, old: None, .. }
                        if *at == name && record.header.what == What::Change =>
                    {
                        return Ok(None);
                    }
                    Entry::Append { at, created: true, .. } if *at == name => return Ok(None),
                    Entry::Write { at, .. } | Entry::Delete { at, .. }
                        if *at == name && record.header.what == What::Change =>
                    {
                        let kept = record.before(index).map(<[u8]>::to_vec);
                        return kept.map(|bytes| Some(cut(bytes, size))).ok_or_else(|| too_old(&name));
                    }
                    Entry::Append { at, offset, .. } if *at == name => size = Some(size.unwrap_or(*offset)),
                    // Before something was moved here, nothing was.
                    Entry::Rename { to, .. } if name.is_within(to) => return Ok(None),
                    Entry::Rename { at, to, .. } => name = name.rebased(at, to).unwrap_or(name),
                    _ => {}
                }
            }
        }
        match self.read_file(&name) {
            Ok(bytes) if size.is_none_or(|size| size <= bytes.len() as u64) => Ok(Some(cut(bytes, size))),
            Ok(_) => Err(too_old(&name)),
            Err(error) if error.kind() == Kind::NotFound || error.code_name() == Some(code::IS_DIRECTORY) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn cut(mut bytes: Vec<u8>, size: Option<u64>) -> Vec<u8> {
    if let Some(size) = size.and_then(|size| usize::try_from(size).ok()) {
        bytes.truncate(size);
    }
    bytes
}

fn redacted(at: &Locator) -> Error {
    Error::new(Kind::NotFound, format!("what `{at}` was at that moment has been redacted"))
        .code(code::REDACTED)
        .hint("it cannot be brought back")
}

fn too_old(at: &Locator) -> Error {
    not_in_history(format!("what `{at}` was at that moment"))
}

#[derive(PartialEq, Eq)]
enum Visit {
    On,
    Stop,
}

/// A file's state looked for by walking back.
struct Search {
    name: Locator,
    /// The version that is looked for, where the change that replaced it names it.
    expected: Option<Version>,
    /// What was appended after the state that is looked for, newest first.
    appended: Vec<Vec<u8>>,
    /// Where the oldest append met so far began.
    offset: Option<u64>,
    /// Whether the content that is looked for was taken out.
    redacted: bool,
}

impl Search {
    /// Steps over a record, backwards. `Some` once the state is known: content, or absence.
    fn step(&mut self, record: &Record) -> Option<Option<Vec<u8>>> {
        (0..record.header.edits.len()).rev().find_map(|index| self.step_edit(record, index))
    }

    fn step_edit(&mut self, record: &Record, index: usize) -> Option<Option<Vec<u8>>> {
        match &record.header.edits[index] {
            Entry::Write { at, new, .. } if *at == self.name => {
                let fits = self.expected.as_ref().is_none_or(|expected| expected == new);
                self.redacted |= fits && is_redacted(new);
                fits.then(|| Some(record.after(index).to_vec()))
            }
            Entry::Append { .. } | Entry::Delete { .. } if self.expected.is_some() => None,
            Entry::Append { at, offset, created, .. } if *at == self.name => {
                self.appended.push(record.after(index).to_vec());
                self.offset = Some(*offset);
                created.then(|| Some(Vec::new()))
            }
            Entry::Delete { at, old, .. }
                if *at == self.name || (old.is_none() && self.name.is_within(at)) =>
            {
                Some(None)
            }
            Entry::Rename { at, to, .. } => {
                if let Some(earlier) = self.name.rebased(to, at) {
                    self.name = earlier;
                    return None;
                }
                (self.name.is_within(at) && self.expected.is_none()).then_some(None)
            }
            _ => None,
        }
    }

    /// What the first edit of a record that concerns the file says of the state before it.
    fn replaced_by(&mut self, record: &Record) -> Option<Option<Vec<u8>>> {
        for (index, entry) in record.header.edits.iter().enumerate() {
            match entry {
                Entry::Write { at, old: None, .. } if *at == self.name => return Some(None),
                Entry::Append { at, created: true, .. } if *at == self.name => return Some(None),
                Entry::Write { at, old, .. } | Entry::Delete { at, old: old @ Some(_), .. }
                    if *at == self.name =>
                {
                    self.expected.clone_from(old);
                    return record.before(index).map(|bytes| Some(bytes.to_vec()));
                }
                Entry::Rename { to, .. } if self.name.is_within(to) => return Some(None),
                Entry::Append { at, .. } | Entry::Rename { at, .. } if self.name.is_within(at) => {
                    return None;
                }
                _ => {}
            }
        }
        None
    }

    fn grown(&self, mut base: Vec<u8>) -> Vec<u8> {
        self.appended.iter().rev().for_each(|added| base.extend_from_slice(added));
        base
    }
}
