//! How a memory's past is used: history, differences, restoring and undoing.

mod layer;
mod undo;

pub use undo::{FOLDER_KEEPER, UNDO_OF, UndoOutcome, UndoScope, undone, undone_by};

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use similar::TextDiff;

use super::{Done, Memory, Plan};
use crate::backend::{
    Edit, Expect, HistoryQuery, Keep, Moment, Note, Op, Past, Pruned, Pruning, Version, not_in_history,
    upkeep,
};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::store::Store;

/// The folder beside files in which a shape keeps their earlier contents.
pub const BACKUPS: &str = ".backup";
/// The beginning of the keys by which the history knows redactions.
pub const REDACTION: &str = "redaction of";
/// The beginning of the keys by which the history knows prunings.
pub const PRUNING: &str = "pruning after";

/// Returns the key of the redaction of what a place held at a moment.
pub fn redaction_of(at: &Locator, moment: &Moment) -> String {
    match moment {
        Moment::After(change) => format!("{REDACTION} {change} {at}"),
        Moment::Before(change) => format!("{REDACTION} what was before {change} {at}"),
    }
}

/// A point in the past of one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    /// Before or after a change.
    Moment(Moment),
    /// When it was this version.
    Version(Version),
}

impl From<Moment> for Point {
    fn from(moment: Moment) -> Self {
        Point::Moment(moment)
    }
}

impl From<Version> for Point {
    fn from(version: Version) -> Self {
        Point::Version(version)
    }
}

/// What restoring did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restored {
    /// The old content is there again.
    Written,
    /// Nothing was there then, and nothing is there now.
    Deleted,
    /// It already was as it should be.
    Unchanged,
}

impl Memory {
    /// Lists past changes, newest first.
    ///
    /// # Errors
    /// As [`Backend::history`](crate::Backend::history).
    pub fn history(&self, query: &HistoryQuery) -> Result<Vec<Past>> {
        self.store().backend().history(query)
    }

    /// The bytes that a place held at a point in its past; `None` if nothing was there.
    ///
    /// Whatever had this name then counts. If nothing had, the thing that has the name now is followed
    /// back to the name that it had then.
    ///
    /// # Errors
    /// As [`Backend::read_past`](crate::Backend::read_past); `NotFound` for a version that the
    /// place never was.
    pub fn read_past(&self, at: &Locator, point: &Point) -> Result<Option<Vec<u8>>> {
        bytes_at(self.store(), at, point)
    }

    /// Returns the difference between two points in a place's past, or between one and now (`None`), as
    /// [`difference`] writes it for a thing of this name.
    ///
    /// # Errors
    /// As [`Memory::read_past`].
    pub fn diff(&self, at: &Locator, name: &str, from: &Point, to: Option<&Point>) -> Result<String> {
        let old = self.read_past(at, from)?;
        let new = match to {
            Some(point) => self.read_past(at, point)?,
            None => self.store().read_optional(at)?.map(|content| content.bytes),
        };
        Ok(difference(name, (Some(from), old.as_deref()), (to, new.as_deref())))
    }

    /// Returns the versions of a place, past and present, that begin with these characters. A file that
    /// was only ever appended to has no past versions here.
    ///
    /// # Errors
    /// As [`Backend::history`](crate::Backend::history).
    pub fn versions_from(&self, at: &Locator, start: &str) -> Result<BTreeSet<Version>> {
        let query = HistoryQuery { at: Some(at.clone()), ..HistoryQuery::default() };
        let past = self.history(&query)?.into_iter().flat_map(|past| past.edits);
        let now = self.store().info_optional(at)?.and_then(|info| info.version);
        let all = past.flat_map(|edit| [edit.new, edit.old]).flatten().chain(now);
        Ok(all.filter(|version| version.as_str().starts_with(start)).collect())
    }

    /// Removes what a place (by its name at that moment) held at a moment from the history for good, and
    /// from the backups beside it (`.backup/`), and notes this in the history. Repeating it changes
    /// nothing.
    ///
    /// # Errors
    /// As [`Backend::redact`](crate::Backend::redact).
    pub fn redact(&self, note: Note, at: &Locator, moment: &Moment) -> Result<()> {
        self.redact_backups(&note, at, moment)?;
        self.redacted(at, moment)?;
        self.keep_redaction(note, at, moment)
    }

    /// Notes in the history that what a place (by its name at that moment) held at a moment is redacted;
    /// for a deleted file nothing else is needed. Repeating it changes nothing.
    ///
    /// # Errors
    /// As [`Memory::apply`].
    pub fn keep_redaction(&self, note: Note, at: &Locator, moment: &Moment) -> Result<()> {
        let key = redaction_of(at, moment);
        if self.store().backend().applied(&key)?.is_some() {
            return Ok(());
        }
        let (Moment::Before(change) | Moment::After(change)) = moment;
        let reason = note.reason.clone().unwrap_or_else(|| change.as_str().to_owned());
        let note = Note { key: Some(key), reason: Some(reason), ..note };
        self.apply(note, |_| Ok(Plan { edits: Vec::new(), outcome: () })).map(drop)
    }

    /// Removes the oldest changes from the history, and notes this in the history.
    ///
    /// # Errors
    /// As [`Backend::prune`](crate::Backend::prune).
    pub fn prune(&self, note: Note, keep: Keep, how: Pruning) -> Result<Pruned> {
        let pruned = self.store().backend().prune(keep, how)?;
        if how == Pruning::Done && pruned.changes > 0 {
            let newest = HistoryQuery { limit: 1, ..HistoryQuery::default() };
            let newest = self.history(&newest)?.into_iter().next().map(|past| past.change.to_string());
            let key = format!("{PRUNING} {}", newest.unwrap_or_else(|| "all".to_owned()));
            let note = Note { key: Some(key), ..note };
            self.apply(note, |_| Ok(Plan { edits: Vec::new(), outcome: () }))?;
        }
        Ok(pruned)
    }

    fn redacted(&self, at: &Locator, moment: &Moment) -> Result<()> {
        match self.store().backend().redact(at, moment) {
            // It was redacted before, but the note of it was not written.
            Err(error) if error.code_name() == Some(code::REDACTED) => Ok(()),
            done => done,
        }
    }

    /// Deletes the backups that hold the redacted content, and redacts them in the history too, even those
    /// deleted long ago.
    fn redact_backups(&self, note: &Note, at: &Locator, moment: &Moment) -> Result<()> {
        let folder = at.parent().unwrap_or_default().child(BACKUPS)?;
        let query = HistoryQuery { at: Some(folder), ..HistoryQuery::default() };
        let past = self.history(&query)?;
        if past.is_empty() {
            return Ok(());
        }
        let held = match self.store().backend().read_past(at, moment) {
            Err(error) if error.code_name() == Some(code::REDACTED) => return Ok(()),
            held => held?,
        };
        let Some(version) = held.map(|bytes| Version::of(&bytes)) else { return Ok(()) };
        let now = self.store().info_optional(at)?.and_then(|info| info.version);
        if now.as_ref() == Some(&version) {
            // The redaction of the present content will be refused, so its backups stay.
            return Ok(());
        }
        for past in &past {
            for edit in past.edits.iter().filter(|edit| edit.new.as_ref() == Some(&version)) {
                let there = self.store().info_optional(&edit.at)?.and_then(|info| info.version);
                if there.as_ref() == Some(&version) {
                    let gone = Edit::Delete { at: edit.at.clone(), expect: Expect::At(version.clone()) };
                    let note = Note { verb: upkeep::REDACT_COPIES.into(), key: None, ..note.clone() };
                    self.apply(note, |_| Ok(Plan { edits: vec![gone.clone()], outcome: () }))?;
                }
                self.redacted(&edit.at, &Moment::After(past.change.clone()))?;
            }
        }
        Ok(())
    }

    /// Makes a place hold what it held at a point in its past: writes those bytes, or deletes the file if
    /// there was none. `expected` is the version that must be there now.
    ///
    /// # Errors
    /// As [`Memory::read_past`]; `Conflict` if another version than the expected one is there.
    pub fn restore(
        &self,
        note: Note,
        at: &Locator,
        point: &Point,
        expected: Option<&Version>,
    ) -> Result<Done<Restored>> {
        self.apply(note, |store| {
            let old = bytes_at(store, at, point)?;
            let there = store.read_optional(at)?;
            let version = there.as_ref().map(|content| &content.version);
            if let Some(expected) = expected {
                Expect::At(expected.clone()).check(at, version)?;
            }
            let expect = version.map_or(Expect::Absent, |version| Expect::At(version.clone()));
            let (edits, outcome) = match (old, there) {
                (None, None) => {
                    check_was_file(store, at)?;
                    (Vec::new(), Restored::Unchanged)
                }
                (Some(old), Some(there)) if old == there.bytes => (Vec::new(), Restored::Unchanged),
                (Some(bytes), _) => {
                    (vec![Edit::Write { at: at.clone(), bytes: bytes.into(), expect }], Restored::Written)
                }
                (None, Some(_)) => (vec![Edit::Delete { at: at.clone(), expect }], Restored::Deleted),
            };
            let told = self.account_edits(store, &edits)?;
            Ok(Plan { edits: edits.into_iter().chain(told).collect(), outcome })
        })
    }
}

/// Returns the difference between two states of a thing, each with its point in the past (`None` is now),
/// as a unified diff. For bytes that are not text it is one line that says so; it is empty if both are
/// equal.
pub fn difference(
    name: &str,
    (from, old): (Option<&Point>, Option<&[u8]>),
    (to, new): (Option<&Point>, Option<&[u8]>),
) -> String {
    if old == new {
        return String::new();
    }
    let head = |point: Option<&Point>, bytes: Option<&[u8]>| match bytes {
        Some(_) => format!("{name}\t{}", point.map_or("now".into(), point_name)),
        None => "/dev/null".into(),
    };
    let size = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
    match (text(old), text(new)) {
        (Some(before), Some(after)) => TextDiff::from_lines(before, after)
            .unified_diff()
            .header(&head(from, old), &head(to, new))
            .to_string(),
        _ => format!("`{name}` is not text: {} bytes became {} bytes\n", size(old), size(new)),
    }
}

fn text(bytes: Option<&[u8]>) -> Option<&str> {
    let text = str::from_utf8(bytes.unwrap_or_default()).ok()?;
    (!text.contains('\0')).then_some(text)
}

/// Refuses a name that no file ever had, most likely misspelt, and the name of a folder.
fn check_was_file(store: &Store, at: &Locator) -> Result<()> {
    let query = HistoryQuery { at: Some(at.clone()), ..HistoryQuery::default() };
    let past = store.backend().history(&query)?;
    let Some(last) = past.first() else { return Err(not_in_history(format!("`{at}`"))) };
    let beneath = |place: &Locator| place != at && place.is_within(at);
    let mut edits = past.iter().flat_map(|past| &past.edits);
    match edits.any(|edit| beneath(&edit.at) || edit.to.as_ref().is_some_and(beneath)) {
        true => {
            Err(Error::new(Kind::Invalid, format!("`{at}` was a folder, and files are restored one by one"))
                .code(code::IS_DIRECTORY)
                .hint(format!(
                    "name a file in it; `memgrove undo {}` takes back the last change of it",
                    last.change
                )))
        }
        false => Ok(()),
    }
}

fn point_name(point: &Point) -> String {
    match point {
        Point::Moment(Moment::Before(change)) => format!("before change {change}"),
        Point::Moment(Moment::After(change)) => format!("after change {change}"),
        Point::Version(version) => format!("version {version}"),
    }
}

fn bytes_at(store: &Store, at: &Locator, point: &Point) -> Result<Option<Vec<u8>>> {
    match point {
        Point::Moment(moment) => bytes_at_moment(store, at, moment),
        Point::Version(version) => bytes_of_version(store, at, version).map(Some),
    }
}

/// Reads what had this name at a moment, or else what has it now, by the name it had then.
fn bytes_at_moment(store: &Store, at: &Locator, moment: &Moment) -> Result<Option<Vec<u8>>> {
    let backend = store.backend();
    if let Some(bytes) = backend.read_past(at, moment)? {
        return Ok(Some(bytes));
    }
    let query = HistoryQuery { at: Some(at.clone()), ..HistoryQuery::default() };
    let mut name = at.clone();
    for past in backend.history(&query)? {
        match moment {
            Moment::After(change) if *change == past.change => break,
            Moment::Before(change) if *change == past.change => {
                name = earlier_name(name, &past);
                break;
            }
            _ => name = earlier_name(name, &past),
        }
    }
    if name == *at { Ok(None) } else { backend.read_past(&name, moment) }
}

fn bytes_of_version(store: &Store, at: &Locator, version: &Version) -> Result<Vec<u8>> {
    let backend = store.backend();
    if let Some(there) = store.read_optional(at)?
        && there.version == *version
    {
        return Ok(there.bytes);
    }
    let query = HistoryQuery { at: Some(at.clone()), ..HistoryQuery::default() };
    let mut name = at.clone();
    for past in backend.history(&query)? {
        let after = Moment::After(past.change.clone());
        let named = past.edits.iter().any(|edit| edit.new.as_ref() == Some(version));
        let unnamed = past.edits.iter().any(|edit| edit.new.is_none() && edit.op == Op::Append);
        if (named || unnamed)
            && let Some(bytes) = backend.read_past(&name, &after)?
            // In a change of several files, the version may be that of another file.
            && (Version::of(&bytes) == *version || (named && past.edits.len() == 1))
        {
            return Ok(bytes);
        }
        let replaced = past.edits.iter().any(|edit| edit.old.as_ref() == Some(version));
        name = earlier_name(name, &past);
        if replaced
            && let Some(bytes) = backend.read_past(&name, &Moment::Before(past.change.clone()))?
            && (Version::of(&bytes) == *version || past.edits.len() == 1)
        {
            return Ok(bytes);
        }
    }
    Err(not_in_history(format!("version {version} of `{at}`")))
}

/// Returns the name that something called `name` after a change had before it.
fn earlier_name(name: Locator, past: &Past) -> Locator {
    past.edits.iter().rev().fold(name, |name, edit| {
        let earlier = edit.to.as_ref().and_then(|to| name.rebased(to, &edit.at));
        earlier.unwrap_or(name)
    })
}
