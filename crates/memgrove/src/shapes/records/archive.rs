//! How records are archived and restored: `archive/2026/learnings_2026_Q1.jsonl`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::access::Log;
use super::edit::{Changed, Guarded};
use super::rewrite::Rewrite;
use super::schema::{Importance, RecordType, Status, invalid, spelled};
use super::table::{Row, Table};
use super::{Records, limits, version_of};
use crate::backend::{Edit, Expect, Note};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::locator::Locator;
use crate::memory::{Done, Plan};
use crate::store::Store;
use crate::text::jsonl;

/// The folder of the archive.
pub const FOLDER: &str = "archive";
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// One record in this many is archived at once when a soft limit is reached, so that not every addition
/// rewrites the file.
const ROOM_PART: usize = 10;

/// What archiving did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ArchiveOutcome {
    /// The records that were archived.
    pub archived: Vec<String>,
}

/// The records that are due to be archived.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Due {
    /// The records.
    pub records: Vec<DueRecord>,
}

/// A record that is due to be archived, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueRecord {
    /// Its id.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: RecordType,
    /// Why.
    pub why: String,
}

/// The edits that make room in a file with a soft limit.
pub(super) struct Room {
    pub(super) edits: Vec<Edit>,
    pub(super) archived: Vec<String>,
    pub(super) warning: Option<String>,
}

impl Records {
    /// Moves records into the archive.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for one that is already archived; `Conflict` if an expected version is not
    /// there.
    pub fn archive(&self, note: Note, which: &[Guarded]) -> Result<Done<ArchiveOutcome>> {
        self.change(note, |store, now| {
            let tables = self.tables(store)?;
            let mut chosen: [Vec<usize>; 3] = Default::default();
            let mut outcome = ArchiveOutcome::default();
            for one in which {
                let found = tables.iter().position(|table| table.find(&one.id).is_some());
                let Some(place) = found else {
                    // The record either does not exist, or is archived.
                    self.find(store, &one.id)?;
                    return Err(invalid(format!("the record `{}` is already archived", one.id)));
                };
                let at = tables[place].find(&one.id).expect("it was just found");
                one.check(tables[place].object(&tables[place].rows[at]))?;
                if !chosen[place].contains(&at) {
                    chosen[place].push(at);
                    outcome.archived.push(tables[place].rows[at].id.to_string());
                }
            }
            let log = self.log()?;
            let mut edits = Vec::new();
            for (table, rows) in tables.iter().zip(&chosen) {
                edits.extend(self.put_away(store, table, rows, Rewrite::new(table), &log, now)?);
            }
            Ok(Plan { edits, outcome })
        })
    }

    /// Archives the records that are due.
    ///
    /// # Errors
    /// As the storage says.
    pub fn archive_due(&self, note: Note) -> Result<Done<ArchiveOutcome>> {
        self.change(note, |store, now| {
            let log = self.log()?;
            let (mut edits, mut outcome) = (Vec::new(), ArchiveOutcome::default());
            for table in self.tables(store)? {
                let due = self.due_rows(&table, &log, now);
                let rows: Vec<usize> = due.into_iter().map(|(at, _)| at).collect();
                outcome.archived.extend(rows.iter().map(|at| table.rows[*at].id.to_string()));
                edits.extend(self.put_away(store, &table, &rows, Rewrite::new(&table), &log, now)?);
            }
            Ok(Plan { edits, outcome })
        })
    }

    /// Returns what [`Records::archive_due`] would archive now.
    ///
    /// # Errors
    /// As the storage says.
    pub fn due(&self) -> Result<Due> {
        let (store, now) = (self.memory.store(), self.memory.clock().now());
        let log = self.log()?;
        let mut due = Due::default();
        for table in self.tables(store)? {
            for (at, why) in self.due_rows(&table, &log, now) {
                let id = table.rows[at].id.to_string();
                due.records.push(DueRecord { id, kind: table.kind, why });
            }
        }
        Ok(due)
    }

    /// Returns learnings that nobody has read or changed for long, and tasks that were completed long ago
    /// and not changed since: one that was changed or restored is still of use.
    fn due_rows(&self, table: &Table, log: &Log, now: Timestamp) -> Vec<(usize, String)> {
        let days = |since: i64| (now.as_millisecond() - since) / DAY_MS;
        let due = |row: &Row| match table.kind {
            RecordType::Core => None,
            RecordType::Learning => {
                let idle = days(log.with(row).1.max(row.updated));
                (idle >= i64::from(self.limits.learnings_archive_days))
                    .then(|| format!("neither read nor changed for {idle} days"))
            }
            RecordType::Task => {
                let completed = row.completed.filter(|_| row.status == Some(Status::Completed))?;
                (days(completed.max(row.updated)) >= i64::from(self.limits.tasks_archive_days))
                    .then(|| format!("completed {} days ago", days(completed)))
            }
        };
        let rows = table.rows.iter().enumerate().filter(|(_, row)| !row.archived);
        rows.filter_map(|(at, row)| Some((at, due(row)?))).collect()
    }

    /// Restores a record from the archive; it counts as changed and read now.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for one that is not archived; `Full` if a hard limit is reached.
    pub fn restore(&self, note: Note, which: &Guarded) -> Result<Done<Changed>> {
        self.change(note, |store, now| {
            let (file, table, at) = self.find(store, &which.id)?;
            let row = &table.rows[at];
            which.check(table.object(row))?;
            let put_away = file.is_within(&self.root.child(FOLDER)?);
            if !put_away && !row.archived {
                return Err(invalid(format!("the record `{}` is not archived", row.id)));
            }
            let log = self.log()?;
            let time = spelled(now);
            let mut splices = log.splices(row);
            splices.push(("archived", Some("false".to_owned())));
            splices.extend(["updated_at", "accessed_at"].map(|name| (name, Some(format!("\"{time}\"")))));
            let object = jsonl::spliced(table.object(row), &splices);
            let mut record = table.reading(row, &self.limits).record;
            log.apply(row, &mut record);
            (record.archived, record.updated_at, record.accessed_at) = (false, time.clone(), time);
            let mut rewrite = Rewrite::new(&table);
            let edits = match put_away {
                false => {
                    rewrite.set(at, object.clone());
                    self.replaced(store, &file, &table, rewrite.bytes(), now)?
                }
                true => {
                    rewrite.remove(at);
                    let mut edits = self.replaced(store, &file, &table, rewrite.bytes(), now)?;
                    edits.push(self.brought_back(store, table.kind, &object)?);
                    edits
                }
            };
            let version = Some(version_of(&object));
            Ok(Plan { edits, outcome: Changed { record, version } })
        })
    }

    pub(super) fn brought_back(&self, store: &Store, kind: RecordType, object: &str) -> Result<Edit> {
        let folder = self.folder(store)?;
        let table = self.table(store, kind, folder.get(kind.file()))?;
        let limit = self.limits.of(kind);
        let bytes = (table.bytes.len() + object.len() + 1) as u64;
        if kind == RecordType::Core && limit.is_over(table.rows.len() as u64 + 1, bytes) {
            return Err(limits::full(kind, &table, limit));
        }
        let at = self.root.child(kind.file())?;
        Ok(Edit::Append { at, bytes: closed(&table.bytes, [object]).into(), expect: Expect::Any })
    }

    /// Makes room for lines in a file with a soft limit, by archiving the least used records in the same
    /// change.
    pub(super) fn room(
        &self,
        store: &Store,
        table: &Arc<Table>,
        lines: &[String],
        now: Timestamp,
    ) -> Result<Room> {
        let log = self.log()?;
        let rows = self.least_used(table, &log, lines);
        let mut rewrite = Rewrite::new(table);
        lines.iter().for_each(|line| rewrite.add(line.clone()));
        let file = table.kind.file();
        if rows.is_empty() {
            let at = self.root.child(file)?;
            let bytes = closed(&table.bytes, lines.iter().map(String::as_str));
            let edits = vec![Edit::Append { at, bytes: bytes.into(), expect: Expect::Any }];
            let warning = Some(format!("`{file}` is over its limit, and nothing in it is done"));
            return Ok(Room { edits, archived: Vec::new(), warning });
        }
        let archived: Vec<String> = rows.iter().map(|at| table.rows[*at].id.to_string()).collect();
        let edits = self.put_away(store, table, &rows, rewrite, &log, now)?;
        let warning = format!("`{file}` had reached its limit: {} records were archived", archived.len());
        Ok(Room { edits, archived, warning: Some(warning) })
    }

    /// Returns the rows to archive first when a file is over its limit: learnings by when they were last
    /// read and how often, tasks by when they were completed, with high importance last. They are enough
    /// to fit the limit, and at least a tenth of the file unless that would include high importance.
    fn least_used(&self, table: &Table, log: &Log, lines: &[String]) -> Vec<usize> {
        let limit = self.limits.of(table.kind);
        let mut rows: Vec<(bool, i64, u64, usize)> = Vec::new();
        for (at, row) in table.rows.iter().enumerate() {
            let (count, accessed) = log.with(row);
            let high = row.importance == Importance::High;
            match table.kind {
                RecordType::Task if row.status != Some(Status::Completed) => {}
                RecordType::Task => rows.push((high, row.completed.unwrap_or(row.updated), count, at)),
                _ => rows.push((high, accessed, count, at)),
            }
        }
        rows.sort_unstable();
        let mut records = (table.rows.len() + lines.len()) as u64;
        let mut bytes =
            (table.bytes.len() + lines.iter().map(|line| line.len() + 1).sum::<usize>() + 1) as u64;
        let part = (table.rows.len() / ROOM_PART).max(1);
        let mut chosen = Vec::new();
        for (high, _, _, at) in rows {
            if (high || chosen.len() >= part) && !limit.is_over(records, bytes) {
                break;
            }
            records -= 1;
            bytes = bytes.saturating_sub(table.rows[at].removal.len() as u64);
            chosen.push(at);
        }
        chosen
    }

    /// Returns the edits that move rows into this quarter's archive.
    fn put_away(
        &self,
        store: &Store,
        table: &Table,
        rows: &[usize],
        mut rewrite: Rewrite<'_>,
        log: &Log,
        now: Timestamp,
    ) -> Result<Vec<Edit>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let mut moved = Vec::new();
        for at in rows {
            let row = &table.rows[*at];
            let mut splices = log.splices(row);
            splices.push(("archived", Some("true".to_owned())));
            moved.push(jsonl::spliced(table.object(row), &splices));
            rewrite.remove(*at);
        }
        rewrite.fold(log);
        let file = self.root.child(table.kind.file())?;
        let mut edits = self.replaced(store, &file, table, rewrite.bytes(), now)?;
        let ids: Vec<&str> = rows.iter().map(|at| &*table.rows[*at].id).collect();
        edits.extend(self.filed(store, table.kind, &ids, moved, now)?);
        Ok(edits)
    }

    /// Returns the edits that add lines to this quarter's archive, and remove what the archive already has
    /// of these records, because an id is in only one place.
    pub(super) fn filed(
        &self,
        store: &Store,
        kind: RecordType,
        ids: &[&str],
        mut lines: Vec<String>,
        now: Timestamp,
    ) -> Result<Vec<Edit>> {
        let target = self.archive_file(kind, now)?;
        let (mut edits, mut grown) = (Vec::new(), None);
        for (at, table) in self.archives(store)?.into_iter().filter(|(_, table)| table.kind == kind) {
            let held: Vec<usize> = ids.iter().filter_map(|id| table.find(id)).collect();
            if held.is_empty() {
                grown = if at == target { Some(table) } else { grown };
                continue;
            }
            let mut rewrite = Rewrite::new(&table);
            held.into_iter().for_each(|row| rewrite.remove(row));
            if at == target {
                lines.drain(..).for_each(|line| rewrite.add(line));
            }
            edits.extend(self.replaced(store, &at, &table, rewrite.bytes(), now)?);
        }
        if !lines.is_empty() {
            let there = grown.as_ref().map_or(&[][..], |table| &table.bytes);
            let bytes = closed(there, lines.iter().map(String::as_str)).into();
            edits.push(Edit::Append { at: target, bytes, expect: Expect::Any });
        }
        Ok(edits)
    }

    fn archive_file(&self, kind: RecordType, now: Timestamp) -> Result<Locator> {
        let date = now.to_zoned(jiff::tz::TimeZone::UTC).date();
        let (year, quarter) = (date.year(), (date.month() - 1) / 3 + 1);
        self.root.child(format!("{FOLDER}/{year}/{}_{year}_Q{quarter}.jsonl", kind.stem()))
    }
}

/// Returns the year in the name of an archive file, such as `learnings_2026_Q1.jsonl`.
pub(super) fn year_of(file: &str) -> Option<&str> {
    let (rest, quarter) = file.strip_suffix(".jsonl")?.rsplit_once("_Q")?;
    let year = rest.rsplit_once('_')?.1;
    let digits = |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(year, 4) && digits(quarter, 1)).then_some(year)
}

/// Returns lines to append to a file, after a newline if its last line lacks one.
pub(super) fn closed<'a>(there: &[u8], lines: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if there.last().is_some_and(|byte| *byte != b'\n') {
        bytes.push(b'\n');
    }
    for line in lines {
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}
