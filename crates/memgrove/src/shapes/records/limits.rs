//! How much a folder of records may hold, and what happens when it is full.

use serde::{Deserialize, Serialize};

use super::schema::RecordType;
use super::table::{Row, Table};
use crate::address::Scheme;
use crate::error::{Error, Kind};

/// The fewest bytes of a line that can be a record: an id and a content.
pub(super) const RECORD_BYTES_MIN: u64 = 60;
/// How many records a refusal suggests to archive.
const SUGGESTIONS_MAX: usize = 3;

/// How much records may hold. The defaults are those of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Core records at most: a hard limit.
    pub core_records_max: u64,
    /// Bytes of the core file at most: a hard limit.
    pub core_bytes_max: u64,
    /// Learnings at most; more are archived.
    pub learnings_records_max: u64,
    /// Bytes of the file of learnings at most; more are archived.
    pub learnings_bytes_max: u64,
    /// Tasks at most; completed ones are archived.
    pub tasks_records_max: u64,
    /// Bytes of the file of tasks at most; completed ones are archived.
    pub tasks_bytes_max: u64,
    /// Days without access after which a learning is archived.
    pub learnings_archive_days: u32,
    /// Days after its completion after which a task is archived.
    pub tasks_archive_days: u32,
    /// Backups that are kept of each file.
    pub backups_max: usize,
    /// Characters of a content.
    pub content_chars_max: usize,
    /// Bytes of a record's line.
    pub line_bytes_max: usize,
    /// Characters of a category.
    pub category_chars_max: usize,
    /// Tags of a record.
    pub tags_max: usize,
    /// Characters of a tag.
    pub tag_chars_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            core_records_max: 1000,
            core_bytes_max: 10 << 20,
            learnings_records_max: 500,
            learnings_bytes_max: 5 << 20,
            tasks_records_max: 200,
            tasks_bytes_max: 2 << 20,
            learnings_archive_days: 90,
            tasks_archive_days: 30,
            backups_max: 5,
            content_chars_max: 5000,
            line_bytes_max: 10 * 1024,
            category_chars_max: 50,
            tags_max: 10,
            tag_chars_max: 30,
        }
    }
}

/// The limits of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimit {
    /// Records.
    pub records_max: u64,
    /// Bytes.
    pub bytes_max: u64,
}

impl FileLimit {
    /// Whether these counts exceed the limits.
    pub fn is_over(self, records: u64, bytes: u64) -> bool {
        records > self.records_max || bytes > self.bytes_max
    }
}

impl Limits {
    /// Returns the limits of a type's file.
    pub fn of(&self, kind: RecordType) -> FileLimit {
        let (records_max, bytes_max) = match kind {
            RecordType::Core => (self.core_records_max, self.core_bytes_max),
            RecordType::Learning => (self.learnings_records_max, self.learnings_bytes_max),
            RecordType::Task => (self.tasks_records_max, self.tasks_bytes_max),
        };
        FileLimit { records_max, bytes_max }
    }

    /// Returns limits that nothing reaches.
    #[must_use]
    pub fn unbounded() -> Self {
        let most = u64::MAX;
        Limits {
            core_records_max: most,
            core_bytes_max: most,
            learnings_records_max: most,
            learnings_bytes_max: most,
            tasks_records_max: most,
            tasks_bytes_max: most,
            ..Limits::default()
        }
    }
}

/// Returns the refusal for a full file with a hard limit, with records to archive.
pub(super) fn full(kind: RecordType, table: &Table, limit: FileLimit) -> Error {
    let mut rows: Vec<&Row> = table.rows.iter().filter(|row| !row.archived).collect();
    rows.sort_by_key(|row| (row.count, row.accessed, row.created));
    let suggested: Vec<String> =
        rows.iter().take(SUGGESTIONS_MAX).map(|row| Scheme::Record.address(&row.id)).collect();
    let (records, bytes) = (table.rows.len(), table.bytes.len());
    let message = format!(
        "`{}` is full: {records} of {} records, {bytes} of {} bytes",
        kind.file(),
        limit.records_max,
        limit.bytes_max
    );
    let hint = match suggested.is_empty() {
        true => "raise the limit in memgrove.toml, under [records]".to_owned(),
        false => format!("archive what is used least, such as {}", suggested.join(", ")),
    };
    Error::new(Kind::Full, message).hint(hint)
}
