//! Which changes touched one record, found by walking back through the changes of the files it may be in.
//!
//! The history knows files, not lines. An append only adds lines, so among several appends the one that
//! added a record is found by bisection. For any other change the file is read before it, and after it
//! unless the next change shows that content. What happened to a line between two changes counts for
//! neither.

use std::collections::HashMap;

use super::{RecordType, Records};
use crate::backend::{Moment, OUTSIDE, Op, Past, Version};
use crate::error::{Kind, Result};
use crate::locator::Locator;
use crate::text::jsonl;

/// How many steps back are taken for one record.
const LOOKED_AT_MAX: usize = 256;

/// One record, followed back through the history.
pub(super) struct Trace<'a> {
    records: &'a Records,
    id: &'a str,
    kind: Option<RecordType>,
    /// Each file as the next later change found it; at first, as it is now.
    later: HashMap<Locator, Seen>,
}

/// What a file holds of the record.
#[derive(Default)]
struct Seen {
    version: Option<Version>,
    /// Its object, without the members that reading changes.
    line: Option<String>,
}

impl<'a> Trace<'a> {
    /// Begins with a record as it is now.
    pub(super) fn of(records: &'a Records, id: &'a str) -> Result<Self> {
        let store = records.memory.store();
        let (kind, mut later) = (records.kind_now(store, id)?, HashMap::new());
        for (at, table) in records.files(store)? {
            let line = table.find(id).map(|row| jsonl::beside_readings(table.object(&table.rows[row])));
            later.insert(at, Seen { version: table.version.clone(), line });
        }
        Ok(Trace { records, id, kind, later })
    }

    /// Whether the record exists now.
    pub(super) fn is_there(&self) -> bool {
        self.kind.is_some()
    }

    /// Whether a change touched a file that the record may be in.
    pub(super) fn concerns(&self, past: &Past) -> bool {
        past.edits.iter().any(|edit| self.is_file(&edit.at))
    }

    /// Returns the changes (newest first) that touched the record, at most `limit` (0 is no limit), and
    /// whether all were examined.
    pub(super) fn walk(mut self, all: &[Past], limit: usize) -> Result<(Vec<Past>, bool)> {
        let (mut changes, mut rest) = (Vec::new(), all);
        for _ in 0..LOOKED_AT_MAX {
            if rest.is_empty() || (limit > 0 && changes.len() >= limit) {
                return Ok((changes, true));
            }
            let run = rest.iter().take_while(|past| self.appends(past)).count().max(1);
            let (step, older) = rest.split_at(run);
            match self.touching(step, older) {
                Ok(touching) => changes.extend(touching.into_iter().map(|at| step[at].clone())),
                // The history no longer has what was before.
                Err(error) if error.kind() == Kind::NotFound => return Ok((changes, false)),
                Err(error) => return Err(error),
            }
            rest = older;
        }
        Ok((changes, rest.is_empty()))
    }

    /// Returns which changes of a step touched the record. A step is a run of appends, or one other
    /// change.
    fn touching(&mut self, step: &[Past], older: &[Past]) -> Result<Vec<usize>> {
        match step {
            [outside] if outside.note.verb == OUTSIDE => {
                Ok(if self.is_told_apart(outside, older)? { vec![0] } else { Vec::new() })
            }
            [change] if !self.appends(change) => {
                Ok(if self.is_touched_by(change)? { vec![0] } else { Vec::new() })
            }
            appends => self.brought_by(appends),
        }
    }

    fn is_touched_by(&mut self, past: &Past) -> Result<bool> {
        let mut touched = false;
        for at in self.files_of(past) {
            let edits = || past.edits.iter().filter(|edit| edit.at == at);
            let new = edits().next_back().and_then(|edit| edit.new.as_ref());
            let after = match self.later.remove(&at) {
                Some(seen) if new.is_some() && seen.version.as_ref() == new => seen.line,
                _ => self.line(&at, Moment::After(past.change.clone()))?,
            };
            let line = self.line(&at, Moment::Before(past.change.clone()))?;
            touched |= line != after;
            let version = edits().next().and_then(|edit| edit.old.clone());
            self.later.insert(at, Seen { version, line });
        }
        Ok(touched)
    }

    /// Returns which of several appends (newest first) added the record.
    fn brought_by(&mut self, appends: &[Past]) -> Result<Vec<usize>> {
        let mut files: Vec<Locator> = appends.iter().flat_map(|past| self.files_of(past)).collect();
        files.sort_unstable();
        files.dedup();
        let mut found = Vec::new();
        for at in files {
            let touches = |past: &Past| past.edits.iter().any(|edit| edit.at == at);
            let appends: Vec<(usize, &Past)> =
                appends.iter().enumerate().filter(|(_, past)| touches(past)).collect();
            let before = |place: usize| self.line(&at, Moment::Before(appends[place].1.change.clone()));
            let (mut there, mut not) = (0, appends.len() - 1);
            let line = before(not)?;
            if line.is_none() && self.later.get(&at).is_some_and(|seen| seen.line.is_some()) {
                while there < not {
                    let middle = there + (not - there) / 2;
                    match before(middle)? {
                        Some(_) => there = middle + 1,
                        None => not = middle,
                    }
                }
                let (place, past) = appends[not];
                // Otherwise another program wrote it before the next append.
                if self.line(&at, Moment::After(past.change.clone()))?.is_some() {
                    found.push(place);
                }
            }
            self.later.insert(at, Seen { version: None, line });
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Whether a content that another program wrote, and the next change replaced, holds the record
    /// differently from both that change and the one before it.
    fn is_told_apart(&self, outside: &Past, older: &[Past]) -> Result<bool> {
        for at in self.files_of(outside) {
            let line = self.line(&at, Moment::After(outside.change.clone()))?;
            if self.later.get(&at).is_some_and(|seen| seen.line == line) {
                continue;
            }
            let replaced = older.iter().find(|past| past.edits.iter().any(|edit| edit.at == at));
            let before = replaced.map(|past| self.line(&at, Moment::Before(past.change.clone())));
            if before.transpose()?.flatten() != line {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn appends(&self, past: &Past) -> bool {
        past.edits.iter().all(|edit| edit.op == Op::Append || !self.is_file(&edit.at))
    }

    fn is_file(&self, at: &Locator) -> bool {
        self.records.kind_held(at).is_some_and(|kind| self.kind.is_none_or(|own| own == kind))
    }

    fn files_of(&self, past: &Past) -> Vec<Locator> {
        let mut files: Vec<Locator> = Vec::new();
        for edit in past.edits.iter().filter(|edit| self.is_file(&edit.at)) {
            if !files.contains(&edit.at) {
                files.push(edit.at.clone());
            }
        }
        files
    }

    fn line(&self, at: &Locator, moment: Moment) -> Result<Option<String>> {
        let object = self.records.object_then(at, self.id, &moment)?;
        Ok(object.map(|object| jsonl::beside_readings(&object)))
    }
}
