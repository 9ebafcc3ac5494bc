//! The past of one record: its line as it was, the changes that made it so, and having it back.
//!
//! The history knows files, not lines. An append adds lines and touches no other, so among many of
//! them the one that brought a record is found by halving; every other change is looked at.

use super::rewrite::{Rewrite, kind_of_file};
use super::table::Table;
use super::{Guarded, RecordType, Records, archive, unknown};
use crate::backend::{HistoryQuery, Moment, Note, Op, Past, Version};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::memory::{Done, Plan, Point, Restored};
use crate::text::jsonl;

/// How many changes that rewrote a file are looked into for one record.
const LOOKED_AT_MAX: usize = 256;
/// Members that change whenever a record is read.
const READINGS: [(&str, Option<String>); 2] = [("access_count", None), ("accessed_at", None)];

/// The past of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPast {
    /// The changes that touched it, newest first.
    pub changes: Vec<Past>,
    /// Whether the history goes further back than was looked.
    pub cut: bool,
}

/// A record as it was.
struct Then {
    kind: RecordType,
    put_away: bool,
    line: String,
}

impl Records {
    /// The line of a record at a point in its past; `None` if there was none.
    ///
    /// # Errors
    /// As [`Memory::read_past`](crate::Memory::read_past).
    pub fn read_past(&self, id: &str, point: &Point) -> Result<Option<String>> {
        Ok(self.then(id, point)?.map(|then| then.line))
    }

    /// The changes that touched a record, at most so many; 0 is no limit. It goes back to where something of
    /// its file was redacted.
    ///
    /// # Errors
    /// `NotFound` for a record that there never was; else as
    /// [`Backend::history`](crate::Backend::history).
    pub fn history_of(&self, id: &str, limit: usize) -> Result<RecordPast> {
        let mut changes = Vec::new();
        match self.look_back(id, limit, &mut changes) {
            Err(error) if error.code_name() == Some(code::REDACTED) => Ok(RecordPast { changes, cut: true }),
            cut => Ok(RecordPast { cut: cut?, changes }),
        }
    }

    fn look_back(&self, id: &str, limit: usize, changes: &mut Vec<Past>) -> Result<bool> {
        let query = HistoryQuery { at: Some(self.root.clone()), ..HistoryQuery::default() };
        let mut all = self.memory.history(&query)?;
        all.retain(|past| past.edits.iter().any(|edit| self.holds_records(&edit.at)));
        let appends = |past: &Past| {
            past.edits.iter().all(|edit| edit.op == Op::Append || !self.holds_records(&edit.at))
        };
        let now = match self.view(id) {
            Err(error) if error.kind() == Kind::NotFound => None,
            got => Some(got?.text),
        };
        let (mut after, mut rest, mut looked) = (now.clone(), all.as_slice(), 0);
        while let Some(newest) = rest.first() {
            if (limit > 0 && changes.len() >= limit) || looked >= LOOKED_AT_MAX {
                break;
            }
            let run = rest.iter().take_while(|past| appends(past)).count();
            if run == 0 {
                let before = self.line_before(id, newest)?;
                if essence(before.as_deref()) != essence(after.as_deref()) {
                    changes.push(newest.clone());
                }
                (after, rest, looked) = (before, &rest[1..], looked + 1);
                continue;
            }
            if after.is_some() && self.line_before(id, &rest[run - 1])?.is_none() {
                changes.push(rest[self.came_with(id, &rest[..run])?].clone());
                after = None;
            }
            rest = &rest[run..];
        }
        match changes.is_empty() && now.is_none() && rest.is_empty() {
            true => Err(unknown(id)),
            false => Ok(!rest.is_empty() && looked >= LOOKED_AT_MAX),
        }
    }

    /// Makes a record what it was at a point in its past: its line as it was then, at its place now.
    ///
    /// # Errors
    /// `NotFound` for a record that there never was; `Conflict` where the expected version is not there;
    /// `Full` where a hard limit is reached.
    pub fn restore_past(&self, note: Note, which: &Guarded, point: &Point) -> Result<Done<Restored>> {
        self.change(note, |store, now| {
            let then = self.then(&which.id, point)?;
            let here = match self.find(store, &which.id) {
                Err(error) if error.kind() == Kind::NotFound => None,
                found => Some(found?),
            };
            let Some((file, table, at)) = here else {
                if let Some(expected) = &which.expect {
                    let message = format!("the record `{}` is gone, not at version {expected}", which.id);
                    return Err(Error::new(Kind::Conflict, message));
                }
                let Some(then) = then else {
                    self.history_of(&which.id, 1)?;
                    return Ok(Plan { edits: Vec::new(), outcome: Restored::Unchanged });
                };
                let edits = vec![self.brought_back(store, then.kind, &then.line)?];
                return Ok(Plan { edits, outcome: Restored::Written });
            };
            which.check(table.object(&table.rows[at]))?;
            let mut rewrite = Rewrite::new(&table);
            let put_away = file.is_within(&self.root.child(archive::FOLDER)?);
            let (outcome, again) = match then {
                None => (Restored::Deleted, None),
                Some(then) if put_away && !then.put_away => (Restored::Written, Some(then)),
                Some(then) if essence(Some(&then.line)) == essence(Some(table.object(&table.rows[at]))) => {
                    return Ok(Plan { edits: Vec::new(), outcome: Restored::Unchanged });
                }
                Some(then) => {
                    rewrite.set(at, then.line);
                    let edits = self.replaced(store, &file, &table, rewrite.bytes(), now)?;
                    return Ok(Plan { edits, outcome: Restored::Written });
                }
            };
            rewrite.remove(at);
            let mut edits = self.replaced(store, &file, &table, rewrite.bytes(), now)?;
            if let Some(then) = again {
                edits.push(self.brought_back(store, then.kind, &then.line)?);
            }
            Ok(Plan { edits, outcome })
        })
    }

    fn then(&self, id: &str, point: &Point) -> Result<Option<Then>> {
        let version = match point {
            Point::Moment(moment) => return self.at_moment(id, moment),
            Point::Version(version) => version,
        };
        let fits = |then: &Then| Version::of(then.line.as_bytes()).as_str().starts_with(version.as_str());
        for past in self.history_of(id, 0)?.changes {
            for moment in [Moment::After(past.change.clone()), Moment::Before(past.change.clone())] {
                if let Some(then) = self.at_moment(id, &moment)?.filter(fits) {
                    return Ok(Some(then));
                }
            }
        }
        Err(crate::backend::not_in_history(format!("version {version} of the record `{id}`")))
    }

    fn at_moment(&self, id: &str, moment: &Moment) -> Result<Option<Then>> {
        let store = self.memory.store();
        let active = RecordType::ALL.map(|kind| self.root.child(kind.file()));
        let active = active.into_iter().collect::<Result<Vec<Locator>>>()?;
        let archived = self.archives(store)?.into_iter().map(|(at, _)| at);
        for (at, put_away) in active.into_iter().map(|at| (at, false)).chain(archived.map(|at| (at, true))) {
            let Some(kind) = kind_of_file(at.name()) else { continue };
            let Some(bytes) = store.backend().read_past(&at, moment)? else { continue };
            if memchr::memmem::find(&bytes, id.as_bytes()).is_none() {
                continue;
            }
            let table = Table::parse(kind, bytes, None, &self.limits, self.memory.clock().now());
            if let Some(row) = table.find(id) {
                let line = table.object(&table.rows[row]).to_owned();
                return Ok(Some(Then { kind, put_away, line }));
            }
        }
        Ok(None)
    }

    fn line_before(&self, id: &str, past: &Past) -> Result<Option<String>> {
        Ok(self.at_moment(id, &Moment::Before(past.change.clone()))?.map(|then| then.line))
    }

    /// Which of some appends (newest first) brought a record that is there after all of them.
    fn came_with(&self, id: &str, appends: &[Past]) -> Result<usize> {
        let (mut there, mut not) = (0, appends.len() - 1);
        while there < not {
            let middle = there + (not - there) / 2;
            match self.line_before(id, &appends[middle])? {
                Some(_) => there = middle + 1,
                None => not = middle,
            }
        }
        Ok(not)
    }

    /// Whether a place is a file of records, not a copy or a list of them.
    fn holds_records(&self, at: &Locator) -> bool {
        let inside = at.relative_to(&self.root).unwrap_or_default();
        !inside.split('/').any(|part| part.starts_with('.')) && kind_of_file(at.name()).is_some()
    }
}

/// A line without what changes by being read.
fn essence(line: Option<&str>) -> Option<String> {
    line.map(|line| jsonl::spliced(line, &READINGS))
}
