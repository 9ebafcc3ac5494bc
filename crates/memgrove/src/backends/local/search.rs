//! What a file held at a moment, looked for by walking back through the journal.

use super::record::{Entry, Record};
use crate::backend::Version;
use crate::locator::Locator;

/// What a record says of the state that is looked for.
pub(super) enum State {
    Held(Vec<u8>),
    Absent,
    /// What it held was taken out.
    Redacted,
    /// Someone else had changed the file before it was appended to.
    Unknown,
}

/// A file's state looked for by walking back.
pub(super) struct Search {
    name: Locator,
    /// The version to find, if the change that replaced it only names it: then a write of it under that name
    /// is in the same segment.
    expected: Option<Version>,
    /// What was appended after the state that is looked for, newest first.
    appended: Vec<Vec<u8>>,
    /// Where the oldest append met so far began.
    pub(super) offset: Option<u64>,
    /// The newest move that says what it moved.
    moved: Option<Moved>,
}

/// What a file held when it was moved. What is found further back must match it, because a hand edit before
/// the move may have escaped the journal.
struct Moved {
    version: Version,
    /// How many appends came after the move, and where the oldest of them began.
    appended: usize,
    offset: Option<u64>,
}

impl Search {
    pub(super) fn of(name: &Locator) -> Self {
        Search { name: name.clone(), expected: None, appended: Vec::new(), offset: None, moved: None }
    }

    /// A search for what was written under a name at a version.
    pub(super) fn for_version(name: &Locator, version: &Version) -> Self {
        Search { expected: Some(version.clone()), ..Search::of(name) }
    }

    fn meet_move(&mut self, old: Option<&Version>) {
        if let Some(version) = old.filter(|old| self.moved.is_none() && !old.is_redacted()) {
            let (appended, offset) = (self.appended.len(), self.offset);
            self.moved = Some(Moved { version: version.clone(), appended, offset });
        }
    }

    /// Whether a state found in an older record is what was moved later, if a move was met.
    pub(super) fn moved_as(&self, state: &State) -> bool {
        match (&self.moved, state) {
            (Some(moved), State::Held(base)) => {
                Version::of(&self.grown(base, moved.appended)) == moved.version
            }
            (Some(_), State::Absent) => false,
            _ => true,
        }
    }

    /// Drops what was found before the move, because it belongs to another content.
    pub(super) fn forget_before_move(&mut self) {
        if let Some(moved) = &self.moved {
            self.appended.truncate(moved.appended);
            self.offset = moved.offset;
        }
    }

    /// Whether content from a later record or the file is what was moved, with what was appended since.
    pub(super) fn could_be(&self, told: Option<&[u8]>) -> bool {
        let Some(moved) = &self.moved else { return true };
        let before = told.and_then(|bytes| bytes.get(..bytes.len().checked_sub(self.added())?));
        before.is_some_and(|bytes| Version::of(bytes) == moved.version)
    }

    /// How many bytes were appended after the state that is looked for.
    pub(super) fn added(&self) -> usize {
        self.appended.iter().map(Vec::len).sum()
    }

    /// Steps back over the edits of a record; returns the state as soon as one of them tells it.
    pub(super) fn step(&mut self, record: &Record) -> Option<State> {
        (0..record.header.edits.len()).rev().find_map(|index| self.step_edit(record, index))
    }

    fn step_edit(&mut self, record: &Record, index: usize) -> Option<State> {
        let entry = &record.header.edits[index];
        // With an expected version, only a write of it under this very name counts.
        let fits =
            |expected| matches!(entry, Entry::Write { at, new, .. } if *at == self.name && new == expected);
        if self.expected.as_ref().is_some_and(|expected| !fits(expected)) {
            return None;
        }
        match entry {
            Entry::Write { at, new, .. } if *at == self.name => {
                let bytes = record.after(index);
                let met = self.offset.is_none_or(|offset| offset == bytes.len() as u64);
                Some(match () {
                    () if new.is_redacted() => State::Redacted,
                    () if met => State::Held(bytes.to_vec()),
                    () => State::Unknown,
                })
            }
            // The next append does not begin where this one ends: someone changed the file in between.
            Entry::Append { at, offset, len, .. }
                if *at == self.name && self.offset.is_some_and(|next| next != offset + len) =>
            {
                Some(State::Unknown)
            }
            Entry::Append { at, offset, created, .. } if *at == self.name => {
                self.appended.push(record.after(index).to_vec());
                self.offset = Some(*offset);
                created.then(|| State::Held(Vec::new()))
            }
            Entry::Delete { at, old, .. }
                if *at == self.name || (old.is_none() && self.name.is_within(at)) =>
            {
                Some(State::Absent)
            }
            Entry::Rename { at, to, old, .. } => {
                if let Some(earlier) = self.name.rebased(to, at) {
                    self.meet_move(old.as_ref().filter(|_| *to == self.name));
                    self.name = earlier;
                    return None;
                }
                self.name.is_within(at).then_some(State::Absent)
            }
            _ => None,
        }
    }

    /// What the first edit of a record that concerns the file says of the state before it.
    pub(super) fn replaced_by(&mut self, record: &Record) -> Option<State> {
        for (index, entry) in record.header.edits.iter().enumerate() {
            match entry {
                Entry::Write { at, old: None, .. } if *at == self.name => return Some(State::Absent),
                Entry::Append { at, created: true, .. } if *at == self.name => return Some(State::Absent),
                Entry::Append { at, offset, .. } if *at == self.name => {
                    self.offset = Some(*offset);
                    return None;
                }
                Entry::Write { at, old, .. } | Entry::Delete { at, old: old @ Some(_), .. }
                    if *at == self.name =>
                {
                    if old.as_ref().is_some_and(Version::is_redacted) {
                        return Some(State::Redacted);
                    }
                    self.expected.clone_from(old);
                    return record.before(index).map(|bytes| State::Held(bytes.to_vec()));
                }
                Entry::Rename { to, .. } if self.name.is_within(to) => return Some(State::Absent),
                Entry::Rename { at, old, .. } if self.name.is_within(at) => {
                    self.meet_move(old.as_ref().filter(|_| *at == self.name));
                    return None;
                }
                _ => {}
            }
        }
        None
    }

    /// Returns `base` with everything that was appended to it, except the newest `without` appends.
    pub(super) fn grown(&self, base: &[u8], without: usize) -> Vec<u8> {
        let added = self.appended[without..].iter().rev();
        [base].into_iter().chain(added.map(Vec::as_slice)).collect::<Vec<_>>().concat()
    }
}
