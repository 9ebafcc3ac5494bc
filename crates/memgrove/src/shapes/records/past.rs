//! What one record was before: its earlier lines, the changes that made them, and how they are restored.

use super::rewrite::{Rewrite, kind_of_file};
use super::table::folded;
use super::trace::Trace;
use super::{Guarded, RecordType, Records, archive, unknown, version_of};
use crate::backend::{HistoryQuery, Moment, Note, Past};
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::memory::{Done, Plan, Point, Restored};
use crate::store::Store;
use crate::text::jsonl;

/// The past of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPast {
    /// The changes that touched it, newest first.
    pub changes: Vec<Past>,
    /// Whether the history goes back further than was looked.
    pub cut: bool,
}

/// An earlier state of a record.
struct Then {
    kind: RecordType,
    put_away: bool,
    line: String,
}

impl Records {
    /// Returns the line of a record at a point in its past; `None` if there was none.
    ///
    /// # Errors
    /// As [`Memory::read_past`](crate::Memory::read_past).
    pub fn read_past(&self, id: &str, point: &Point) -> Result<Option<String>> {
        Ok(self.then(id, point)?.map(|then| then.line))
    }

    /// Returns the changes that touched a record, at most `limit`; 0 is no limit. It goes back to where
    /// something of its file was redacted or pruned.
    ///
    /// # Errors
    /// `NotFound` if there never was such a record; else as
    /// [`Backend::history`](crate::Backend::history).
    pub fn history_of(&self, id: &str, limit: usize) -> Result<RecordPast> {
        let query = HistoryQuery { at: Some(self.root.clone()), ..HistoryQuery::default() };
        let trace = Trace::of(self, id)?;
        let mut all = self.memory.history(&query)?;
        all.retain(|past| trace.concerns(past));
        let there = trace.is_there();
        let (mut changes, whole) = trace.walk(&all, limit)?;
        if changes.is_empty() && !there && whole {
            return Err(unknown(id));
        }
        if limit > 0 {
            changes.truncate(limit);
        }
        Ok(RecordPast { changes, cut: !whole })
    }

    /// Restores a record to a point in its past: its line as it was then, at its present place.
    ///
    /// # Errors
    /// `NotFound` if there never was such a record; `Conflict` if the expected version is not there;
    /// `Full` if a hard limit is reached.
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
                    // A shortened history cannot prove that there never was such a record, but it does not
                    // show one either.
                    if self.history_of(&which.id, 1)?.changes.is_empty() {
                        return Err(unknown(&which.id));
                    }
                    return Ok(Plan { edits: Vec::new(), outcome: Restored::Unchanged });
                };
                let edits = vec![self.brought_back(store, then.kind, &then.line)?];
                return Ok(Plan { edits, outcome: Restored::Written });
            };
            which.check(table.object(&table.rows[at]))?;
            let Some(then) = then else {
                let edits = self.taken_out(store, &which.id, now)?;
                return Ok(Plan { edits, outcome: Restored::Deleted });
            };
            let mut rewrite = Rewrite::new(&table);
            if file.is_within(&self.root.child(archive::FOLDER)?) && !then.put_away {
                rewrite.remove(at);
                let mut edits = self.replaced(store, &file, &table, rewrite.bytes(), now)?;
                edits.push(self.brought_back(store, then.kind, &then.line)?);
                return Ok(Plan { edits, outcome: Restored::Written });
            }
            if version_of(&then.line) == version_of(table.object(&table.rows[at])) {
                return Ok(Plan { edits: Vec::new(), outcome: Restored::Unchanged });
            }
            rewrite.set(at, then.line);
            let edits = self.replaced(store, &file, &table, rewrite.bytes(), now)?;
            Ok(Plan { edits, outcome: Restored::Written })
        })
    }

    fn then(&self, id: &str, point: &Point) -> Result<Option<Then>> {
        let version = match point {
            Point::Moment(moment) => return self.at_moment(id, moment),
            Point::Version(version) => version,
        };
        let fits = |line: &str| version_of(line).as_str().starts_with(version.as_str());
        if let Ok((file, table, at)) = self.find(self.memory.store(), id)
            && fits(table.object(&table.rows[at]))
        {
            let put_away = file.is_within(&self.root.child(archive::FOLDER)?);
            let line = table.object(&table.rows[at]).to_owned();
            return Ok(Some(Then { kind: table.kind, put_away, line }));
        }
        for past in self.history_of(id, 0)?.changes {
            for moment in [Moment::After(past.change.clone()), Moment::Before(past.change.clone())] {
                if let Some(then) = self.at_moment(id, &moment)?.filter(|then| fits(&then.line)) {
                    return Ok(Some(then));
                }
            }
        }
        Err(crate::backend::not_in_history(format!("version {version} of the record `{id}`")))
    }

    fn at_moment(&self, id: &str, moment: &Moment) -> Result<Option<Then>> {
        let store = self.memory.store();
        let own = self.kind_now(store, id)?;
        let active = RecordType::ALL.map(|kind| self.root.child(kind.file()));
        let mut files = active.into_iter().collect::<Result<Vec<Locator>>>()?;
        files.extend(self.archives(store)?.into_iter().map(|(at, _)| at));
        for at in files {
            let Some(kind) = self.kind_held(&at).filter(|kind| own.is_none_or(|own| own == *kind)) else {
                continue;
            };
            if let Some(line) = self.object_then(&at, id, moment)? {
                let put_away = at.is_within(&self.root.child(archive::FOLDER)?);
                return Ok(Some(Then { kind, put_away, line }));
            }
        }
        Ok(None)
    }

    /// Returns the object with an id in a file at a moment. Only lines that may contain the id are parsed;
    /// its letters may be of either case, or written as escapes.
    pub(super) fn object_then(&self, at: &Locator, id: &str, moment: &Moment) -> Result<Option<String>> {
        let Some(kind) = kind_of_file(at.name()) else { return Ok(None) };
        let Some(bytes) = self.memory.store().backend().read_past(at, moment)? else { return Ok(None) };
        let (lower, wanted) = (bytes.to_ascii_lowercase(), folded(id));
        let finder = memchr::memmem::Finder::new(wanted.as_bytes());
        let may_have = |line: &jsonl::Line| {
            let line = &lower[line.whole.clone()];
            finder.find(line).is_some() || memchr::memchr(b'\\', line).is_some()
        };
        Ok(jsonl::lines(&bytes).filter(may_have).find_map(|line| {
            let table = self.parsed(kind, bytes[line.whole].to_vec());
            table.find(id).map(|row| table.object(&table.rows[row]).to_owned())
        }))
    }

    /// Returns the type of a record, if it exists.
    pub(super) fn kind_now(&self, store: &Store, id: &str) -> Result<Option<RecordType>> {
        match self.find(store, id) {
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            found => Ok(Some(found?.1.kind)),
        }
    }

    /// Returns the type of the records in a file; `None` if it is a backup or an index, not a file of
    /// records.
    pub(super) fn kind_held(&self, at: &Locator) -> Option<RecordType> {
        let inside = at.relative_to(&self.root)?;
        if inside.split('/').any(|part| part.starts_with('.')) { None } else { kind_of_file(at.name()) }
    }
}
