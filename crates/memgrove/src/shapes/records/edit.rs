//! How records are changed and deleted.

use serde::{Deserialize, Serialize};

use super::limits::full;
use super::rewrite::{Rewrite, corrected};
use super::schema::{
    Importance, Record, RecordType, Status, TaskMetadata, check_line, hinted, invalid, spelled,
};
use super::table::{Row, Table};
use super::{Records, archive, version_of};
use crate::backend::{Edit, Note, Version, moved_on};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::memory::{Done, Plan};
use crate::store::Store;
use crate::text::jsonl;

/// What to change in a record; `None` leaves a member as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Patch {
    /// The memory itself.
    pub content: Option<String>,
    /// What it is about; an empty text removes it.
    pub category: Option<String>,
    /// All of its tags, replacing the present ones.
    pub tags: Option<Vec<String>>,
    /// Tags to add.
    pub add_tags: Vec<String>,
    /// How much it matters.
    pub importance: Option<Importance>,
    /// The status of the task.
    pub status: Option<Status>,
    /// What the task waits for.
    pub blockers: Option<Vec<String>>,
    /// The outcome of the task.
    pub outcome: Option<String>,
}

/// A record by its id, and optionally the expected version of its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guarded {
    /// The id.
    pub id: String,
    /// The version that must be there, or at least its first eight characters.
    pub expect: Option<String>,
}

impl Guarded {
    /// Names a record at any version.
    pub fn any(id: impl Into<String>) -> Self {
        Guarded { id: id.into(), expect: None }
    }

    /// Refuses an object that is not at the expected version.
    pub(super) fn check(&self, object: &str) -> Result<()> {
        let Some(expected) = self.expect.as_deref() else { return Ok(()) };
        let there = version_of(object);
        if there.is_named_by(expected)? {
            return Ok(());
        }
        let what = format!("the record `{}` is at version {there}, not at version {expected}", self.id);
        Err(moved_on(what))
    }
}

/// The result of changing one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The record as it is now, or as it was before it was deleted.
    pub record: Record,
    /// The version of its line now.
    pub version: Option<Version>,
}

impl Records {
    /// Changes parts of a record. Every other byte of its file stays, except that waiting reads are
    /// counted.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` if the expected version is not there; `Invalid` for a record that would
    /// break the schema, or that is archived.
    pub fn update(&self, note: Note, which: &Guarded, patch: &Patch) -> Result<Done<Changed>> {
        self.change(note, |store, now| {
            let (file, table, at) = self.find(store, &which.id)?;
            let row = &table.rows[at];
            which.check(table.object(row))?;
            if file.is_within(&self.root.child(archive::FOLDER)?) {
                return Err(invalid(format!("the record `{}` is in the archive", row.id))
                    .hint("restore it first: `memgrove record restore`"));
            }
            let log = self.log()?;
            let (object, mut record) = self.patched(&table, row, patch, now)?;
            log.apply(row, &mut record);
            let version = Some(version_of(&object));
            let mut rewrite = Rewrite::new(&table);
            rewrite.set(at, object);
            rewrite.fold(&log);
            let bytes = rewrite.bytes();
            self.check_room(&table, &bytes)?;
            let edits = self.replaced(store, &file, &table, bytes, now)?;
            Ok(Plan { edits, outcome: Changed { record, version } })
        })
    }

    /// Refuses if a file would grow beyond its hard limit.
    fn check_room(&self, table: &Table, bytes: &[u8]) -> Result<()> {
        let limit = self.limits.of(table.kind);
        let grown = bytes.len() > table.bytes.len() && bytes.len() as u64 > limit.bytes_max;
        if table.kind == RecordType::Core && grown { Err(full(table.kind, table, limit)) } else { Ok(()) }
    }

    fn patched(&self, table: &Table, row: &Row, patch: &Patch, now: Timestamp) -> Result<(String, Record)> {
        let before = table.reading(row, &self.limits).record;
        let mut record = before.clone();
        record.updated_at = spelled(now);
        if let Some(content) = &patch.content {
            record.content.clone_from(content);
        }
        if let Some(category) = &patch.category {
            record.category = Some(category.clone()).filter(|category| !category.is_empty());
        }
        if let Some(tags) = &patch.tags {
            record.tags = deduplicated(tags);
        }
        if !patch.add_tags.is_empty() {
            record.tags = deduplicated(&[record.tags, patch.add_tags.clone()].concat());
        }
        record.importance = patch.importance.unwrap_or(record.importance);
        record.task_metadata = task_after(before.task_metadata.as_ref(), patch, &record.updated_at);
        self.check_changed(&before, &record)?;
        let object = corrected(table, row, &self.limits);
        let splices = splices(&object, &before, &record);
        let patched = jsonl::spliced(&object, &splices);
        if patched.len() > object.len() {
            check_line(patched.len(), &self.limits)?;
        }
        Ok((patched, record))
    }

    /// Refuses faults that the change introduces; older ones may stay.
    fn check_changed(&self, before: &Record, after: &Record) -> Result<()> {
        let old = before.faults(&self.limits);
        match after.faults(&self.limits).into_iter().find(|fault| !old.contains(fault)) {
            Some((field, what)) => Err(hinted(field, invalid(format!("`{field}` {what}")))),
            None if old.is_empty() => after.check(&self.limits),
            None => Ok(()),
        }
    }

    /// Removes a record. Its file's backup and the history still hold it.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` if the expected version is not there.
    pub fn delete(&self, note: Note, which: &Guarded) -> Result<Done<Changed>> {
        self.change(note, |store, now| {
            let (_, table, at) = self.find(store, &which.id)?;
            let row = &table.rows[at];
            which.check(table.object(row))?;
            let record = table.reading(row, &self.limits).record;
            let edits = self.taken_out(store, &which.id, now)?;
            Ok(Plan { edits, outcome: Changed { record, version: None } })
        })
    }

    /// Returns the edits that remove a record from every file that has it, including the archive.
    pub(super) fn taken_out(&self, store: &Store, id: &str, now: Timestamp) -> Result<Vec<Edit>> {
        let (log, mut edits) = (self.log()?, Vec::new());
        for (file, table) in self.files(store)? {
            let Some(at) = table.find(id) else { continue };
            let mut rewrite = Rewrite::new(&table);
            rewrite.remove(at);
            rewrite.fold(&log);
            edits.extend(self.replaced(store, &file, &table, rewrite.bytes(), now)?);
        }
        Ok(edits)
    }
}

/// Returns the members to set in an object so that it becomes the changed record.
fn splices(object: &str, before: &Record, after: &Record) -> Vec<(&'static str, Option<String>)> {
    let mut found = Vec::new();
    if before.content != after.content {
        found.push(("content", Some(json(&after.content))));
    }
    if before.category != after.category {
        found.push(("category", after.category.as_ref().map(json)));
    }
    if before.tags != after.tags {
        found.push(("tags", Some(json(&after.tags))));
    }
    if before.importance != after.importance {
        found.push(("importance", Some(json(&after.importance))));
    }
    if before.task_metadata != after.task_metadata {
        found.push(("task_metadata", after.task_metadata.as_ref().map(|task| task_json(object, task))));
    }
    found.push(("updated_at", Some(json(&after.updated_at))));
    found
}

/// Returns a task's metadata as JSON, keeping members of other programs.
fn task_json(object: &str, task: &TaskMetadata) -> String {
    let there = jsonl::value(object, "task_metadata").filter(|text| text.starts_with('{')).unwrap_or("{}");
    let splices = [
        ("status", Some(json(&task.status))),
        ("completed_at", task.completed_at.as_ref().map(json)),
        ("blockers", task.blockers.as_ref().map(json)),
        ("outcome", task.outcome.as_ref().map(json)),
    ];
    jsonl::spliced(there, &splices)
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("a field is plain data")
}

/// Returns a task's metadata after a change: each status keeps only what belongs to it.
pub(super) fn task_after(before: Option<&TaskMetadata>, patch: &Patch, now: &str) -> Option<TaskMetadata> {
    let touched = patch.status.is_some() || patch.blockers.is_some() || patch.outcome.is_some();
    if !touched {
        return before.cloned();
    }
    let guessed = match (&patch.blockers, &patch.outcome) {
        (Some(blockers), _) if !blockers.is_empty() => Status::Blocked,
        (_, Some(_)) => Status::Completed,
        _ => Status::InProgress,
    };
    let status = patch.status.or(before.map(|task| task.status)).unwrap_or(guessed);
    let moved = before.is_none_or(|task| task.status != status);
    let kept = before.filter(|_| !moved);
    let completed_at = match kept.and_then(|task| task.completed_at.clone()) {
        None if status == Status::Completed => Some(now.to_owned()),
        kept => kept,
    };
    let blockers = patch.blockers.clone().or(kept.and_then(|task| task.blockers.clone()));
    Some(TaskMetadata {
        status,
        completed_at,
        blockers: blockers.filter(|blockers| !blockers.is_empty()),
        outcome: patch.outcome.clone().or(kept.and_then(|task| task.outcome.clone())),
    })
}

pub(super) fn deduplicated(tags: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::with_capacity(tags.len());
    for tag in tags {
        if !kept.contains(tag) {
            kept.push(tag.clone());
        }
    }
    kept
}
