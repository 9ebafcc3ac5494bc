//! How records are added: by one append, however many there are already.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Records;
use super::edit::{Patch, deduplicated, task_after};
use super::limits::{RECORD_BYTES_MIN, full};
use super::schema::{Importance, Record, RecordType, Status, spelled};
use super::table::Table;
use crate::backend::{Edit, Expect, Info, Note};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::memory::{Done, Plan};
use crate::store::Store;

/// The percentage of a limit from which an addition warns.
const NEARLY_FULL_PERCENT: u64 = 90;

/// A record to be added.
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
    /// The status of the task.
    #[serde(default)]
    pub status: Option<Status>,
    /// What the task waits for.
    #[serde(default)]
    pub blockers: Vec<String>,
    /// The outcome of the task.
    #[serde(default)]
    pub outcome: Option<String>,
}

impl NewRecord {
    /// Makes a record of medium importance with only its content.
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

/// What an addition did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// The records, in the given order.
    pub records: Vec<Record>,
    /// The records that were archived to make room.
    pub archived: Vec<String>,
    /// What a person should know.
    pub warnings: Vec<String>,
}

impl Records {
    /// Adds records with one append to each file: all of them or none.
    ///
    /// # Errors
    /// `Invalid` for a record that breaks the schema; `Full` if a hard limit is reached.
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

    /// Plans an addition, and returns what each file's size and count will be.
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

    /// Returns the table of a file into which the lines do not fit; `None` if they fit.
    fn overflow(
        &self,
        store: &Store,
        kind: RecordType,
        info: Option<&Info>,
        lines: &[String],
    ) -> Result<Option<Arc<Table>>> {
        let limit = self.limits.of(kind);
        let added = (lines.len() as u64, lines.iter().map(|line| line.len() as u64 + 1).sum::<u64>());
        let (size, most) = match info {
            None => (0, 0),
            Some(info) => {
                let tail = self.tail(store, kind, info)?;
                // If the count is unknown, as many as its bytes could hold.
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
        Ok((Edit::Append { at, bytes: bytes.into(), expect: Expect::Any }, (size, records)))
    }

    fn nearly_full(&self, kind: RecordType, (size, records): (u64, Option<u64>)) -> Option<String> {
        let limit = self.limits.of(kind);
        let near =
            |used: u64, most: u64| used.saturating_mul(100) >= most.saturating_mul(NEARLY_FULL_PERCENT);
        let records = records.filter(|records| near(*records, limit.records_max));
        if kind != RecordType::Core || (records.is_none() && !near(size, limit.bytes_max)) {
            return None;
        }
        let used = match records {
            Some(records) => format!("{records} of {} records", limit.records_max),
            None => format!("{size} of {} bytes", limit.bytes_max),
        };
        Some(format!("`{}` is nearly full: {used}; archive what is no longer needed", kind.file()))
    }
}
