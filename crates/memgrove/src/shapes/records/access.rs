//! How reads of records are counted: in a log beside the records, which is folded in when their file is
//! rewritten anyway.
//!
//! A line of the log is an id and a moment. It counts if the moment is later than the record's own
//! `accessed_at`, so folding it in twice, or crashing between folding and clearing, counts nothing double.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::rewrite::Rewrite;
use super::schema::{Record, spelled};
use super::table::Row;
use super::{Records, verb};
use crate::backend::{Edit, Expect, Note};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::memory::Plan;
use crate::store::Store;
use crate::text::jsonl;

/// The log's name, by default in the folder of the records.
pub const LOG: &str = ".access.jsonl";
/// How many reads wait in memory before they are logged.
pub(super) const PENDING_MAX: usize = 32;
/// The size from which the log is folded into the files.
const LOG_BYTES_MAX: usize = 32 * 1024;

/// One read of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Access {
    id: String,
    /// Milliseconds since the epoch.
    at: i64,
}

/// Reads that are not in the files yet, by id.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    moments: HashMap<String, Vec<i64>>,
}

impl Log {
    fn extend(&mut self, accesses: impl IntoIterator<Item = Access>) {
        for Access { id, at } in accesses {
            self.moments.entry(id.to_ascii_lowercase()).or_default().push(at);
        }
    }

    /// Returns the ids of the records that were read.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.moments.keys().map(String::as_str)
    }

    /// Returns how often a record was read, and when last, including what its file says.
    pub(super) fn with(&self, row: &Row) -> (u64, i64) {
        if self.moments.is_empty() {
            return (row.count, row.accessed);
        }
        let moments = self.moments.get(&row.id.to_ascii_lowercase());
        let later = moments.into_iter().flatten().filter(|at| **at > row.accessed);
        later.fold((row.count, row.accessed), |(count, last), at| (count.saturating_add(1), last.max(*at)))
    }

    /// Sets the reads of a record.
    pub(super) fn apply(&self, row: &Row, record: &mut Record) {
        let (count, last) = self.with(row);
        if last > row.accessed {
            record.access_count = count;
            record.accessed_at = spelled(Timestamp::from_millisecond(last).unwrap_or_default());
        }
    }

    /// Returns the members to set in a row's object so that it includes the reads.
    pub(super) fn splices(&self, row: &Row) -> Vec<(&'static str, Option<String>)> {
        let (count, last) = self.with(row);
        if last <= row.accessed {
            return Vec::new();
        }
        let time = spelled(Timestamp::from_millisecond(last).unwrap_or_default());
        vec![("access_count", Some(count.to_string())), ("accessed_at", Some(format!("\"{time}\"")))]
    }
}

impl Records {
    /// Counts a read.
    pub(super) fn accessed(&self, row: &Row) {
        let now = self.memory.clock().now().as_millisecond();
        // Later than the moment in the file, even within the same millisecond.
        let access = Access { id: row.id.to_string(), at: now.max(row.accessed + 1) };
        self.state().pending.push(access);
    }

    /// Returns every read that may not be in the files yet.
    pub(super) fn log(&self) -> Result<Log> {
        let mut log = Log::default();
        let (memory, at) = self.aside();
        if let Some(content) = memory.store().read_optional(at)? {
            log.extend(entries(&content.bytes));
        }
        log.extend(self.state().pending.iter().cloned());
        Ok(log)
    }

    /// Writes the reads that wait in memory to the log, and folds the log into the files once it is large.
    ///
    /// # Errors
    /// As [`Memory::apply`](crate::Memory::apply); the reads then keep waiting.
    pub fn flush(&self) -> Result<()> {
        let waiting = std::mem::take(&mut self.state().pending);
        if waiting.is_empty() {
            return Ok(());
        }
        let lines: String =
            waiting.iter().map(|access| serde_json::to_string(access).expect("plain data") + "\n").collect();
        let (memory, at) = self.aside();
        let note = Note { verb: verb::ACCESS.into(), actor: self.actor.clone(), ..Note::default() };
        let logged = memory.apply(note, |_| {
            let edit = Edit::Append { at: at.clone(), bytes: lines.clone().into(), expect: Expect::Any };
            Ok(Plan { edits: vec![edit], outcome: () })
        });
        if let Err(error) = logged {
            self.state().pending.splice(0..0, waiting);
            return Err(error);
        }
        self.trim_log()
    }

    /// Folds a large log into the files, and removes from it what they now contain.
    fn trim_log(&self) -> Result<()> {
        let (memory, at) = self.aside();
        if memory.store().read_optional(at)?.is_none_or(|log| log.bytes.len() < LOG_BYTES_MAX) {
            return Ok(());
        }
        let note = || Note { verb: verb::ACCESS.into(), actor: self.actor.clone(), ..Note::default() };
        self.change(note(), |store, _| {
            let (log, mut edits) = (self.log()?, Vec::new());
            for (at, table) in self.files(store)? {
                let mut rewrite = Rewrite::new(&table);
                rewrite.fold(&log);
                let bytes = rewrite.bytes();
                if bytes != table.bytes {
                    let expect = table.version.clone().map_or(Expect::Absent, Expect::At);
                    edits.push(Edit::Write { at, bytes: bytes.into(), expect });
                }
            }
            Ok(Plan { edits, outcome: () })
        })?;
        let files = self.files(self.memory.store())?;
        let counts = |access: &Access| {
            let mut rows =
                files.iter().filter_map(|(_, table)| table.find(&access.id).map(|at| &table.rows[at]));
            rows.any(|row| access.at > row.accessed)
        };
        let trimmed = |store: &Store| {
            let Some(content) = store.read_optional(at)? else {
                return Ok(Plan { edits: vec![], outcome: () });
            };
            let kept = entries(&content.bytes).filter(counts);
            let kept: String =
                kept.map(|access| serde_json::to_string(&access).expect("plain data") + "\n").collect();
            if kept.len() >= content.bytes.len() {
                return Ok(Plan { edits: vec![], outcome: () });
            }
            let expect = Expect::At(content.version);
            let edits = vec![Edit::Write { at: at.clone(), bytes: kept.into(), expect }];
            Ok(Plan { edits, outcome: () })
        };
        memory.apply(note(), trimmed).map(drop)
    }
}

fn entries(bytes: &[u8]) -> impl Iterator<Item = Access> + '_ {
    jsonl::lines(bytes).filter_map(|line| serde_json::from_slice(&bytes[line.body]).ok())
}
