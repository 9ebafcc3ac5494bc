//! Adding, changing and deleting records.

use serde::{Deserialize, Serialize};

use super::limits::{RECORD_BYTES_MIN, full};
use super::rewrite::{Rewrite, corrected};
use super::schema::{Importance, Record, RecordType, Status, TaskMetadata, invalid, spelled};
use super::table::{Row, Table};
use super::{Records, archive};
use crate::backend::{Edit, Expect, Info, Note, Version};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result, code};
use crate::memory::{Done, Plan};
use crate::store::Store;
use crate::text::jsonl;

/// The part of a limit from which an addition warns.
const NEARLY_FULL_PERCENT: u64 = 90;

/// A record to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewRecord {
    /// Which kind of memory.
    #[serde(rename = "type")]
    pub kind: RecordType,
    /// The memory itself.
    pub content: String,
    /// What it is about, in a word.
    #[serde(default)]
    pub category: Option<String>,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// How much it matters.
    #[serde(default)]
    pub importance: Importance,
    /// How far the task is.
    #[serde(default)]
    pub status: Option<Status>,
    /// What the task waits for.
    #[serde(default)]
    pub blockers: Vec<String>,
    /// What came of the task.
    #[serde(default)]
    pub outcome: Option<String>,
}

impl NewRecord {
    /// A record of medium importance with nothing but its content.
    pub fn new(kind: RecordType, content: impl Into<String>) -> Self {
        NewRecord {
            kind,
            content: content.into(),
            category: None,
            tags: Vec::new(),
            importance: Importance::Medium,
            status: None,
            blockers: Vec::new(),
            outcome: None,
        }
    }
}

/// What shall change of a record; what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Patch {
    /// The memory itself.
    pub content: Option<String>,
    /// What it is about; empty takes it away.
    pub category: Option<String>,
    /// All of its tags.
    pub tags: Option<Vec<String>>,
    /// How much it matters.
    pub importance: Option<Importance>,
    /// How far the task is.
    pub status: Option<Status>,
    /// What the task waits for.
    pub blockers: Option<Vec<String>>,
    /// What came of the task.
    pub outcome: Option<String>,
}

/// Names a record, and optionally the version of its line that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guarded {
    /// The id.
    pub id: String,
    /// The version that must be there, or at least its first eight characters.
    pub expect: Option<String>,
}

impl Guarded {
    /// A record, whatever its version.
    pub fn any(id: impl Into<String>) -> Self {
        Guarded { id: id.into(), expect: None }
    }

    /// Refuses an object that is not at the expected version.
    pub(super) fn check(&self, object: &str) -> Result<()> {
        let Some(expected) = self.expect.as_deref() else { return Ok(()) };
        let there = Version::of(object.as_bytes());
        if expected.len() >= 8 && there.as_str().starts_with(expected) {
            return Ok(());
        }
        let message = format!("the record `{}` is at version {there}, not at version {expected}", self.id);
        Err(Error::new(Kind::Conflict, message)
            .code(code::VERSION_MISMATCH)
            .hint("read it again and repeat the change on what is there now"))
    }
}

/// What an addition did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// The records, in the order in which they were given.
    pub records: Vec<Record>,
    /// The records that were archived to make room.
    pub archived: Vec<String>,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// What a change of one record did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The record as it is now, or was before it was deleted.
    pub record: Record,
    /// The version of its line now.
    pub version: Option<Version>,
}

impl Records {
    /// Adds records: one append for each file, all or none of them.
    ///
    /// # Errors
    /// `Invalid` for a record that breaks the schema; `Full` where a hard limit is reached.
    pub fn add(&self, note: Note, new: &[NewRecord]) -> Result<Done<Added>> {
        let now = self.memory.clock().now();
        let records: Vec<Record> = new
            .iter()
            .enumerate()
            .map(|(at, one)| {
                self.made(one, now).map_err(|error| match new.len() {
                    1 => error,
                    _ => error.while_doing(format_args!("records[{at}]")),
                })
            })
            .collect::<Result<_>>()?;
        let mut grown = Vec::new();
        let done = self.change(note, |store, now| {
            let (plan, expected) = self.addition(store, &records, now)?;
            grown = expected;
            Ok(plan)
        })?;
        if !done.replayed {
            self.grown(self.memory.store(), &grown)?;
        }
        Ok(done)
    }

    fn made(&self, new: &NewRecord, now: Timestamp) -> Result<Record> {
        let time = spelled(now);
        let task = Patch {
            status: new.status,
            blockers: (!new.blockers.is_empty()).then(|| new.blockers.clone()),
            outcome: new.outcome.clone(),
            ..Patch::default()
        };
        let record = Record {
            id: self.fresh_id(),
            kind: new.kind,
            content: new.content.clone(),
            category: new.category.clone().filter(|category| !category.is_empty()),
            created_at: time.clone(),
            updated_at: time.clone(),
            accessed_at: time.clone(),
            access_count: 0,
            tags: deduplicated(&new.tags),
            importance: new.importance,
            archived: false,
            task_metadata: task_after(None, &task, &time),
        };
        record.check(&self.limits)?;
        Ok(record)
    }

    /// The plan of an addition, and what each file's size and count will be.
    #[allow(clippy::type_complexity)] // A size and a count for each file.
    fn addition(
        &self,
        store: &Store,
        records: &[Record],
        now: Timestamp,
    ) -> Result<(Plan<Added>, Vec<(RecordType, u64, Option<u64>)>)> {
        let mut outcome = Added { records: records.to_vec(), archived: Vec::new(), warnings: Vec::new() };
        let (mut edits, mut grown) = (Vec::new(), Vec::new());
        for kind in RecordType::ALL {
            let lines: Vec<String> =
                records.iter().filter(|record| record.kind == kind).map(Record::line).collect();
            if lines.is_empty() {
                continue;
            }
            let info = self.file_info(store, kind.file())?;
            match self.overflow(store, kind, info.as_ref(), &lines)? {
                None => {
                    let (edit, expected) = self.append(store, kind, info.as_ref(), &lines)?;
                    edits.push(edit);
                    grown.push((kind, expected.0, expected.1));
                    outcome.warnings.extend(self.nearly_full(kind, expected));
                }
                Some(table) => {
                    let room = self.room(store, &table, &lines, now)?;
                    edits.extend(room.edits);
                    outcome.archived.extend(room.archived);
                    outcome.warnings.extend(room.warning);
                }
            }
        }
        Ok((Plan { edits, outcome }, grown))
    }

    /// The file, read, if the lines do not fit into it.
    fn overflow(
        &self,
        store: &Store,
        kind: RecordType,
        info: Option<&Info>,
        lines: &[String],
    ) -> Result<Option<std::sync::Arc<Table>>> {
        let limit = self.limits.of(kind);
        let added = (lines.len() as u64, lines.iter().map(|line| line.len() as u64 + 1).sum::<u64>());
        let (size, most) = match info {
            None => (0, 0),
            Some(info) => {
                let tail = self.tail(store, kind, info)?;
                // Without a count, as many as the bytes can hold.
                (tail.size, tail.records.unwrap_or(tail.size / RECORD_BYTES_MIN + 1))
            }
        };
        if !limit.is_over(most + added.0, size + added.1 + 1) {
            return Ok(None);
        }
        let table = self.load_named(store, kind)?;
        if let Some(info) = info {
            self.counted(kind, info, &table);
        }
        let over = limit.is_over(table.rows.len() as u64 + added.0, size + added.1 + 1);
        match (over, kind) {
            (false, _) => Ok(None),
            (true, RecordType::Core) => Err(full(kind, &table, limit)),
            (true, _) => Ok(Some(table)),
        }
    }

    fn append(
        &self,
        store: &Store,
        kind: RecordType,
        info: Option<&Info>,
        lines: &[String],
    ) -> Result<(Edit, (u64, Option<u64>))> {
        let tail = info.map(|info| self.tail(store, kind, info)).transpose()?;
        let mut bytes = Vec::new();
        if tail.is_some_and(|tail| tail.open) {
            bytes.push(b'\n');
        }
        for line in lines {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        let size = tail.map_or(0, |tail| tail.size) + bytes.len() as u64;
        let records = tail.map_or(Some(0), |tail| tail.records).map(|records| records + lines.len() as u64);
        let at = self.root.child(kind.file())?;
        Ok((Edit::Append { at, bytes, expect: Expect::Any }, (size, records)))
    }

    fn nearly_full(&self, kind: RecordType, (size, records): (u64, Option<u64>)) -> Option<String> {
        let limit = self.limits.of(kind);
        let near = |used: u64, most: u64| used >= (most / 100).saturating_mul(NEARLY_FULL_PERCENT);
        let records = records.filter(|records| near(*records, limit.records_max));
        if kind != RecordType::Core || (records.is_none() && !near(size, limit.bytes_max)) {
            return None;
        }
        let used = match records {
            Some(records) => format!("{records} of {} records", limit.records_max),
            None => format!("{size} of {} bytes", limit.bytes_max),
        };
        Some(format!("`{}` is nearly full: {used}; archive what is not needed any more", kind.file()))
    }

    /// Changes parts of a record; every other byte of its file stays (but for readings, which are
    /// counted on the way).
    ///
    /// # Errors
    /// `NotFound`; `Conflict` where the expected version is not there; `Invalid` for a record that
    /// would break the schema, or that is archived.
    pub fn update(&self, note: Note, which: &Guarded, patch: &Patch) -> Result<Done<Changed>> {
        self.change(note, |store, now| {
            let (file, table, at) = self.find(store, &which.id)?;
            let row = &table.rows[at];
            which.check(table.object(row))?;
            if file.is_within(&self.root.child(archive::FOLDER)?) {
                return Err(invalid(format!("the record `{}` is in the archive", row.id))
                    .hint("restore it first: `memgrove record restore`"));
            }
            let (object, record) = self.patched(&table, row, patch, now)?;
            let version = Some(Version::of(object.as_bytes()));
            let mut rewrite = Rewrite::new(&table);
            rewrite.set(at, object);
            rewrite.fold(&self.log()?);
            let edits = self.replaced(store, &file, &table, rewrite.bytes(), now)?;
            Ok(Plan { edits, outcome: Changed { record, version } })
        })
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
        record.importance = patch.importance.unwrap_or(record.importance);
        record.task_metadata = task_after(before.task_metadata.as_ref(), patch, &record.updated_at);
        self.check_changed(&before, &record)?;
        let object = corrected(table, row, &self.limits);
        let splices = splices(&object, &before, &record);
        Ok((jsonl::spliced(&object, &splices), record))
    }

    /// Refuses what the change breaks; what was broken before may stay.
    fn check_changed(&self, before: &Record, after: &Record) -> Result<()> {
        let old = before.faults(&self.limits);
        match after.faults(&self.limits).into_iter().find(|fault| !old.contains(fault)) {
            Some((field, what)) => Err(invalid(format!("`{field}` {what}"))),
            None if old.is_empty() => after.check(&self.limits),
            None => Ok(()),
        }
    }

    /// Removes a record for good (its file's backup and the history still hold it).
    ///
    /// # Errors
    /// `NotFound`; `Conflict` where the expected version is not there.
    pub fn delete(&self, note: Note, which: &Guarded) -> Result<Done<Changed>> {
        self.change(note, |store, now| {
            let (file, table, at) = self.find(store, &which.id)?;
            let row = &table.rows[at];
            which.check(table.object(row))?;
            let record = table.reading(row, &self.limits).record;
            let mut rewrite = Rewrite::new(&table);
            rewrite.remove(at);
            rewrite.fold(&self.log()?);
            let edits = self.replaced(store, &file, &table, rewrite.bytes(), now)?;
            Ok(Plan { edits, outcome: Changed { record, version: None } })
        })
    }
}

/// What differs, as members of the object.
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

/// A task's metadata with what others keep in it.
fn task_json(object: &str, task: &TaskMetadata) -> String {
    let there = jsonl::members(object).into_iter().rfind(|member| member.key == "task_metadata");
    let there =
        there.map(|member| &object[member.value]).filter(|text| text.starts_with('{')).unwrap_or("{}");
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

/// What a task is known by after a change: each status keeps what belongs to it.
fn task_after(before: Option<&TaskMetadata>, patch: &Patch, now: &str) -> Option<TaskMetadata> {
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

fn deduplicated(tags: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::with_capacity(tags.len());
    for tag in tags {
        if !kept.contains(tag) {
            kept.push(tag.clone());
        }
    }
    kept
}
