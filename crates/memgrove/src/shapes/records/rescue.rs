//! What a file is brought back from when no record in it can be read.

use std::fmt;

use super::schema::RecordType;
use super::table::{Skip, Table};
use super::{Records, backup};
use crate::backend::{Finding, HistoryQuery, Level, Moment, Op, Origin, Past};
use crate::clock::Timestamp;
use crate::error::{Kind, Result};
use crate::locator::Locator;
use crate::store::Store;
use crate::text::jsonl;

/// Whether the records of a file are lost, and where they are still to be had.
pub(super) enum Ruin {
    /// Nothing is lost.
    None,
    /// They are nowhere else.
    Hopeless,
    /// They are there.
    From(Rescue),
}

/// Records that are still to be had.
pub(super) struct Rescue {
    pub(super) bytes: Vec<u8>,
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
        let what = match table.bytes.is_empty() {
            true => "it is empty, and nobody took its records out with memgrove".to_owned(),
            false => "no record in it can be read".to_owned(),
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
    /// Looks whether the records of a file are lost: then it is rebuilt from the newest that is known
    /// of it. That is what the history holds, else a backup, else the archive.
    pub(super) fn ruin(&self, store: &Store, at: &Locator, table: &Table) -> Result<Ruin> {
        let emptied = table.bytes.is_empty() && table.version.is_some();
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
        Ok(Ruin::From(Rescue { bytes, records: lines.len(), source }))
    }

    /// The newest state of a file with a record in it, unless memgrove itself has since written one
    /// without: then the records were taken out, and what is damaged was so before.
    fn in_history(&self, store: &Store, at: &Locator, kind: RecordType) -> Result<Option<Ruin>> {
        let query = HistoryQuery { at: Some(at.clone()), ..HistoryQuery::default() };
        let history = match store.backend().history(&query) {
            Err(error) if error.kind() == Kind::Unsupported => return Ok(None),
            history => history?,
        };
        for past in history {
            let bytes = match store.backend().read_past(at, &Moment::After(past.change.clone())) {
                // It is too old, or was redacted.
                Err(error) if error.kind() == Kind::NotFound => continue,
                bytes => bytes?.unwrap_or_default(),
            };
            let table = self.parsed(kind, bytes);
            if !table.rows.is_empty() {
                let source = format!("change {} of the history", past.change);
                return Ok(Some(Ruin::From(Rescue {
                    records: table.rows.len(),
                    bytes: table.bytes,
                    source,
                })));
            }
            if is_written(&past, at) {
                return Ok(Some(Ruin::None));
            }
        }
        Ok(None)
    }

    /// The newest backup of a file with a record in it, unless all that is damaged stands in it too.
    fn in_backups(&self, store: &Store, at: &Locator, damaged: &Table) -> Result<Option<Ruin>> {
        let mut backups = self.backups_in(store)?;
        backups.retain(|backup| backup.file == at.name());
        for backup in backups.into_iter().rev() {
            let Some(content) = store.read_optional(&self.backup_at(&backup.name)?)? else { continue };
            let table = self.parsed(damaged.kind, content.bytes);
            if table.rows.is_empty() {
                continue;
            }
            let known = |(span, _): &(std::ops::Range<usize>, Skip)| {
                let piece = &damaged.bytes[span.clone()];
                table.skipped.iter().any(|(known, _)| table.bytes[known.clone()] == *piece)
            };
            if damaged.skipped.iter().all(known) {
                return Ok(Some(Ruin::None));
            }
            let source = format!("{}/{}", backup::FOLDER, backup.name);
            return Ok(Some(Ruin::From(Rescue { records: table.rows.len(), bytes: table.bytes, source })));
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

    fn parsed(&self, kind: RecordType, bytes: Vec<u8>) -> Table {
        Table::parse(kind, bytes, None, &self.limits, Timestamp::UNIX_EPOCH)
    }
}

/// Whether memgrove wrote all of a file in a change, so that what it held then is certain.
fn is_written(past: &Past, at: &Locator) -> bool {
    let whole = |edit: &crate::backend::PastEdit| edit.at == *at && edit.op != Op::Append;
    past.note.actor.origin != Origin::FileEdit && past.edits.iter().any(whole)
}
