//! Which records a query finds: by type, tags, category, importance, time and words.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::access::Log;
use super::limits::Limits;
use super::schema::{Importance, Record, RecordType, Status};
use super::table::{Row, Table};
use crate::clock::Timestamp;

/// Conditions for records, all of which must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Of one of these types; empty for all.
    pub kinds: Vec<RecordType>,
    /// With all of these tags.
    pub tags: Vec<String>,
    /// Of this category.
    pub category: Option<String>,
    /// Of this importance.
    pub importance: Option<Importance>,
    /// Tasks with this status.
    pub status: Option<Status>,
    /// Changed at this moment or later.
    pub since: Option<Timestamp>,
    /// Changed before this moment.
    pub until: Option<Timestamp>,
    /// Whether archived records are included.
    pub archived: Archived,
    /// With all of these words, ignoring case, in the content, category, tags, or a task's blockers and
    /// outcome.
    pub text: Option<String>,
    /// The order of the records.
    pub sort: Sort,
    /// The most records to return; 0 is no limit.
    pub limit: usize,
}

/// Which records are wanted, archived or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Archived {
    /// Those that are not archived.
    #[default]
    No,
    /// Those that are archived, moved to the archive or marked in place.
    Only,
    /// Both.
    Any,
}

/// The order of an answer. Equals keep the order of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Last changed first.
    #[default]
    Updated,
    /// Newest first.
    Created,
    /// Oldest first.
    Oldest,
    /// Last read first.
    Accessed,
    /// Most read first.
    Used,
    /// Most important first, then last changed.
    Importance,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The records, up to the limit.
    pub records: Vec<Record>,
    /// How many match without the limit.
    pub total: usize,
}

/// Whether a table is of an archive file: all its records are archived, whatever their lines say.
pub(super) type PutAway = bool;

/// Searches tables. Only rows with the rarest wanted tag or category are tried, so that only the records
/// to return are parsed (and, for words, those that may have them).
pub(super) fn run(tables: &[(Arc<Table>, PutAway)], query: &Query, limits: &Limits, log: &Log) -> Found {
    let words: Vec<String> = query.text.iter().flat_map(|text| text.split_whitespace()).map(folded).collect();
    let mut hits: Vec<(&(Arc<Table>, PutAway), &Row)> = Vec::new();
    for place in tables {
        let (table, put_away) = place;
        if !query.kinds.is_empty() && !query.kinds.contains(&table.kind) {
            continue;
        }
        let fits = |row: &&Row| query.fits(row, *put_away) && says(table, row, &words, limits);
        match query.candidates(table) {
            Some(rows) => {
                let rows = rows.iter().map(|at| &table.rows[*at as usize]);
                hits.extend(rows.filter(fits).map(|row| (place, row)));
            }
            None => hits.extend(table.rows.iter().filter(fits).map(|row| (place, row))),
        }
    }
    let total = hits.len();
    // The sort is stable, so that equals keep the order of the files.
    match query.sort {
        Sort::Updated => hits.sort_by_key(|(_, row)| -row.updated),
        Sort::Created => hits.sort_by_key(|(_, row)| -row.created),
        Sort::Oldest => hits.sort_by_key(|(_, row)| row.created),
        Sort::Accessed => hits.sort_by_key(|(_, row)| -log.with(row).1),
        Sort::Used => hits.sort_by_key(|(_, row)| std::cmp::Reverse(log.with(row).0)),
        Sort::Importance => hits.sort_by_key(|(_, row)| (row.importance, -row.updated)),
    }
    if query.limit > 0 {
        hits.truncate(query.limit);
    }
    let read = |((table, put_away), row): (&(Arc<Table>, PutAway), &Row)| {
        let mut record = table.reading(row, limits).record;
        log.apply(row, &mut record);
        record.archived |= *put_away;
        record
    };
    Found { records: hits.into_iter().map(read).collect(), total }
}

impl Query {
    /// Returns the rows to try; `None` for all.
    fn candidates<'a>(&self, table: &'a Table) -> Option<&'a [u32]> {
        // Only records that are not archived are listed by tag and category.
        if self.archived != Archived::No {
            return None;
        }
        let tags = self.tags.iter().map(|tag| table.tagged(tag));
        let category = self.category.iter().map(|category| table.of_category(category));
        tags.chain(category).min_by_key(|rows| rows.len())
    }

    fn fits(&self, row: &Row, put_away: PutAway) -> bool {
        let in_time = self.since.is_none_or(|since| row.updated >= since.as_millisecond())
            && self.until.is_none_or(|until| row.updated < until.as_millisecond());
        let archived = match self.archived {
            Archived::No => !row.archived && !put_away,
            Archived::Only => row.archived || put_away,
            Archived::Any => true,
        };
        in_time
            && archived
            && self.importance.is_none_or(|importance| row.importance == importance)
            && self.status.is_none_or(|status| row.status == Some(status))
            && self.category.as_ref().is_none_or(|category| row.category.as_deref() == Some(category))
            && self.tags.iter().all(|tag| row.tags.iter().any(|there| **there == **tag))
    }
}

/// Returns a text in lower case and in normal form.
fn folded(text: &str) -> String {
    match text.is_ascii() {
        true => text.to_ascii_lowercase(),
        false => text.nfc().collect::<String>().to_lowercase().nfc().collect(),
    }
}

fn says(table: &Table, row: &Row, words: &[String], limits: &Limits) -> bool {
    if words.is_empty() {
        return true;
    }
    let record = table.reading(row, limits).record;
    let mut text = folded(&record.content);
    let task =
        record.task_metadata.iter().flat_map(|task| task.blockers.iter().flatten().chain(&task.outcome));
    for more in record.category.iter().chain(&record.tags).chain(task) {
        text.push('\n');
        text.push_str(&folded(more));
    }
    words.iter().all(|word| text.contains(word.as_str()))
}
