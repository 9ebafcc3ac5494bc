//! Where lost records of a file are restored from. They are lost if none can be read, if the file is empty
//! or gone, or if nearly all vanished at once without memgrove removing them.

use std::collections::HashSet;
use std::fmt;

use super::schema::RecordType;
use super::table::{Skip, Table, folded};
use super::{Records, backup};
use crate::backend::{Finding, HistoryQuery, Level, Moment, Op, Origin, Past};
use crate::clock::Timestamp;
use crate::error::{Kind, Result};
use crate::locator::Locator;
use crate::store::Store;
use crate::text::jsonl;

/// How many of a file's newest changes are searched for vanished records.
const LOOKED_AT_MAX: usize = 64;

/// Whether the records of a file are lost, and where they can be restored from.
pub(super) enum Ruin {
    /// Nothing is lost.
    None,
    /// They are lost, and nothing else has them.
    Hopeless,
    /// They are lost, and can be restored.
    From(Rescue),
}

/// Lost records that can be restored.
pub(super) struct Rescue {
    pub(super) bytes: Vec<u8>,
    /// Whether the present content of the file stays, after them.
    pub(super) beside: bool,
    records: usize,
    source: String,
}

impl fmt::Display for Rescue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "restored from {}: {} records", self.source, self.records)
    }
}

impl Ruin {
    pub(super) fn finding(&self, at: &Locator, table: &Table) -> Finding {
        let lost = match self {
            Ruin::From(Rescue { records, beside: true, .. }) => Some(records),
            _ => None,
        };
        let what = match (lost, &table.version) {
            (Some(records), _) => format!("{records} records are gone, but were not deleted with memgrove"),
            (None, None) => "it is gone, but its records were not deleted with memgrove".to_owned(),
            (None, _) if table.bytes.is_empty() => {
                "it is empty, but its records were not deleted with memgrove".to_owned()
            }
            _ => "no record in it can be read".to_owned(),
        };
        let hint = match self {
            Ruin::From(Rescue { records, source, .. }) => {
                format!("`memgrove doctor --fix` restores {records} records from {source}")
            }
            _ => "there is no backup of it, and nothing in the history".to_owned(),
        };
        Finding { level: Level::Error, at: at.to_string(), what, hint }
    }
}

impl Records {
    /// Finds out whether the records of a file are lost, and the newest source to restore them from: the
    /// history, else a backup, else the archive.
    pub(super) fn ruin(&self, store: &Store, at: &Locator, table: &Table) -> Result<Ruin> {
        let emptied = table.bytes.is_empty();
        if !table.rows.is_empty() {
            return self.vanished(store, at, table);
        }
        if !(table.is_ruined() || emptied) {
            return Ok(Ruin::None);
        }
        if let Some(found) = self.in_history(store, at, table.kind)? {
            return Ok(found);
        }
        if emptied {
            return Ok(Ruin::None);
        }
        if let Some(found) = self.in_backups(store, at, table)? {
            return Ok(found);
        }
        let lines = self.archived_lines(store, table.kind)?;
        if lines.is_empty() || at.name() != table.kind.file() {
            return Ok(Ruin::Hopeless);
        }
        let (bytes, source) = (lines.concat().into_bytes(), "the archive".to_owned());
        Ok(Ruin::From(Rescue { bytes, records: lines.len(), beside: false, source }))
    }

    /// Finds records that memgrove left in a file and later found missing, where nearly all vanished at
    /// once or damage took their place. Any other missing record was removed by hand, and stays removed.
    fn vanished(&self, store: &Store, at: &Locator, table: &Table) -> Result<Ruin> {
        let query = HistoryQuery { at: Some(at.clone()), before: None, limit: LOOKED_AT_MAX };
        let history = match store.backend().history(&query) {
            Err(error) if error.kind() == Kind::Unsupported => return Ok(Ruin::None),
            history => history?,
        };
        let mut known: HashSet<Box<str>> = HashSet::new();
        let others = self.files(store)?;
        others.iter().for_each(|(_, table)| known.extend(table.rows.iter().map(|row| folded(&row.id))));
        // The content that memgrove's next change found, with its version if that is known.
        let (mut next, mut version) = (self.parsed(table.kind, table.bytes.clone()), table.version.clone());
        for past in history.iter().filter(|past| past.note.actor.origin != Origin::FileEdit) {
            let edits = || past.edits.iter().filter(|edit| edit.at == *at);
            let new = edits().next_back().and_then(|edit| edit.new.clone());
            if new.is_none() || new != version {
                let Some(left) =
                    self.table_then(store, at, table.kind, &Moment::After(past.change.clone()))?
                else {
                    break;
                };
                let gone = |id: &str| !known.contains(&folded(id));
                let lines: Vec<&str> = match is_lost(&left, &next) {
                    true => {
                        left.rows.iter().filter(|row| gone(&row.id)).map(|row| left.object(row)).collect()
                    }
                    false => Vec::new(),
                };
                if !lines.is_empty() {
                    let bytes = (lines.join("\n") + "\n").into_bytes();
                    let (records, source) = (lines.len(), source_of(past));
                    return Ok(Ruin::From(Rescue { bytes, beside: true, records, source }));
                }
                known.extend(left.rows.iter().map(|row| folded(&row.id)));
            }
            let Some(met) = self.table_then(store, at, table.kind, &Moment::Before(past.change.clone()))?
            else {
                break;
            };
            (next, version) = (met, edits().next().and_then(|edit| edit.old.clone()));
            known.extend(next.rows.iter().map(|row| folded(&row.id)));
        }
        Ok(Ruin::None)
    }

    /// Returns a file at a moment, empty if it did not exist; `None` if the history no longer has it.
    fn table_then(
        &self,
        store: &Store,
        at: &Locator,
        kind: RecordType,
        moment: &Moment,
    ) -> Result<Option<Table>> {
        match store.backend().read_past(at, moment) {
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            bytes => Ok(Some(self.parsed(kind, bytes?.unwrap_or_default()))),
        }
    }

    /// Finds the newest content of a file with a record in it. If memgrove itself has since written one
    /// without, nothing is lost: the records were removed, and any damage is older.
    fn in_history(&self, store: &Store, at: &Locator, kind: RecordType) -> Result<Option<Ruin>> {
        let query = HistoryQuery { at: Some(at.clone()), ..HistoryQuery::default() };
        let history = match store.backend().history(&query) {
            Err(error) if error.kind() == Kind::Unsupported => return Ok(None),
            history => history?,
        };
        for past in history {
            let bytes = match store.backend().read_past(at, &Moment::After(past.change.clone())) {
                // It was pruned or redacted.
                Err(error) if error.kind() == Kind::NotFound => continue,
                bytes => bytes?.unwrap_or_default(),
            };
            let table = self.parsed(kind, bytes);
            if !table.rows.is_empty() {
                return Ok(Some(Ruin::From(Rescue {
                    records: table.rows.len(),
                    bytes: table.bytes,
                    beside: false,
                    source: source_of(&past),
                })));
            }
            if is_written(&past, at) {
                return Ok(Some(Ruin::None));
            }
        }
        Ok(None)
    }

    /// Finds the newest backup of a file with a record in it, unless it already has all of the damage.
    fn in_backups(&self, store: &Store, at: &Locator, damaged: &Table) -> Result<Option<Ruin>> {
        let mut backups = self.backups_in(store)?;
        backups.retain(|backup| backup.file == at.name());
        for backup in backups.into_iter().rev() {
            let Some(content) = store.read_optional(&self.backup_at(&backup.name)?)? else { continue };
            let table = self.parsed(damaged.kind, content.bytes);
            if table.rows.is_empty() {
                continue;
            }
            if !is_damaged_since(&table, damaged) {
                return Ok(Some(Ruin::None));
            }
            let (records, source) = (table.rows.len(), format!("{}/{}", backup::FOLDER, backup.name));
            return Ok(Some(Ruin::From(Rescue { records, bytes: table.bytes, beside: false, source })));
        }
        Ok(None)
    }

    fn archived_lines(&self, store: &Store, kind: RecordType) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for (_, table) in self.archives(store)?.into_iter().filter(|(_, table)| table.kind == kind) {
            for row in &table.rows {
                let splices = [("archived", Some("false".to_owned()))];
                lines.push(jsonl::spliced(table.object(row), &splices) + "\n");
            }
        }
        Ok(lines)
    }

    /// Reads a content that is not the present file.
    pub(super) fn parsed(&self, kind: RecordType, bytes: Vec<u8>) -> Table {
        Table::parse(kind, bytes, None, &self.limits, Timestamp::UNIX_EPOCH)
    }
}

/// Whether memgrove wrote, moved or deleted the whole file in a change, so that its content after it is
/// certain.
fn is_written(past: &Past, at: &Locator) -> bool {
    let whole = |edit: &crate::backend::PastEdit| {
        edit.op != Op::Append
            && (at.is_within(&edit.at) || edit.to.as_ref().is_some_and(|to| at.is_within(to)))
    };
    past.note.actor.origin != Origin::FileEdit && past.edits.iter().any(whole)
}

fn source_of(past: &Past) -> String {
    format!("change {} of the history", past.change)
}

/// Whether at least nine in ten records vanished between two contents of a file, or fewer while new damage
/// appeared: nobody does that by hand.
fn is_lost(left: &Table, next: &Table) -> bool {
    let lost = left.rows.iter().filter(|row| next.find(&row.id).is_none()).count();
    lost > 0 && (lost * 10 >= left.rows.len() * 9 || is_damaged_since(left, next))
}

/// Whether a file has damage that it did not have before.
fn is_damaged_since(before: &Table, now: &Table) -> bool {
    let is_new = |(span, skip): &(std::ops::Range<usize>, Skip)| {
        let same = |(known, _): &(std::ops::Range<usize>, Skip)| {
            before.bytes[known.clone()] == now.bytes[span.clone()]
        };
        matches!(skip, Skip::Damaged | Skip::Nul) && !before.skipped.iter().any(same)
    };
    now.skipped.iter().any(is_new)
}
