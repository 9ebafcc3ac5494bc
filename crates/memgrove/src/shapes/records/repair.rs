//! What is wrong with the files of records, and how it is repaired: after a backup, and without dropping
//! anything.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::index::Standing;
use super::rescue::Ruin;
use super::rewrite::{Rewrite, corrected};
use super::table::{Fate, Skip, Table};
use super::{Records, archive, backup, index, slipped};
use crate::backend::{Finding, Level, Note};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::locator::Locator;
use crate::memory::{Done, Plan};
use crate::store::Store;
use crate::text::jsonl::{self, BYTE_ORDER_MARK};

/// How many lines of one file are reported one by one.
const REPORTED_MAX: usize = 50;
const ROUNDS_MAX: usize = 4;
const FIX: &str = "`memgrove doctor --fix` repairs it, after a backup";

/// The result of repairing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mended {
    /// What was done, one sentence each.
    pub done: Vec<String>,
}

impl Records {
    /// Returns the faults of the records, line by line.
    ///
    /// # Errors
    /// As the storage says; damage is a finding, not an error.
    pub fn check(&self) -> Result<Vec<Finding>> {
        let store = self.memory.store();
        let mut findings = Vec::new();
        let mut seen: HashMap<Box<str>, String> = HashMap::new();
        for (at, table) in self.wanted(store)? {
            let ruin = self.ruin(store, &at, &table)?;
            if !matches!(ruin, Ruin::None) {
                findings.push(ruin.finding(&at, &table));
            }
            if matches!(ruin, Ruin::None) || !table.rows.is_empty() {
                findings.extend(lines_of(&at, &table));
            }
            for row in &table.rows {
                let here = format!("{at}:{}", row.line);
                if let Some(first) = seen.insert(row.id.to_ascii_lowercase().into(), here.clone()) {
                    let what = format!("the id {} is also at {first}, which counts", row.id);
                    let hint = "keep one of them, and delete the other by hand".to_owned();
                    findings.push(Finding { level: Level::Warning, at: here, what, hint });
                }
            }
            findings.extend(self.nearly(&at, &table));
        }
        for one in self.slipped(store, &self.newest(store, slipped::CHECKED)?, &HashSet::new())? {
            let count = one.lines.len();
            let what = format!("{count} records that another program added are only in the history");
            let hint = FIX.to_owned();
            findings.push(Finding { level: Level::Warning, at: one.at.to_string(), what, hint });
        }
        for folder in [backup::FOLDER, archive::FOLDER] {
            let at = self.root.child(folder)?;
            if store.info_optional(&at)?.is_some_and(|info| !info.is_dir()) {
                let what = "it is in the place of a folder, so that records cannot be changed".to_owned();
                let hint = "move it away".to_owned();
                findings.push(Finding { level: Level::Error, at: at.to_string(), what, hint });
            }
        }
        findings.extend(self.index_finding()?);
        Ok(findings)
    }

    /// Returns the three files, existing or not, and those of the archive.
    fn wanted(&self, store: &Store) -> Result<Vec<(Locator, Arc<Table>)>> {
        let active = self.tables(store)?.into_iter();
        let active = active.map(|table| Ok((self.root.child(table.kind.file())?, table)));
        let mut files = active.collect::<Result<Vec<_>>>()?;
        files.extend(self.archives(store)?);
        Ok(files)
    }

    /// Returns those of the three files that exist, and those of the archive.
    pub(super) fn files(&self, store: &Store) -> Result<Vec<(Locator, Arc<Table>)>> {
        let mut files = self.wanted(store)?;
        files.retain(|(_, table)| table.version.is_some());
        Ok(files)
    }

    fn nearly(&self, at: &Locator, table: &Table) -> Option<Finding> {
        if at.name() != table.kind.file() {
            return None;
        }
        let limit = self.limits.of(table.kind);
        if !limit.is_over(table.rows.len() as u64, table.bytes.len() as u64) {
            return None;
        }
        let what = format!("it is over its limit: {} records, {} bytes", table.rows.len(), table.bytes.len());
        let hint = "archive what is no longer needed: `memgrove record archive`".to_owned();
        Some(Finding { level: Level::Warning, at: at.to_string(), what, hint })
    }

    fn index_finding(&self) -> Result<Option<Finding>> {
        let at = self.root.child(index::FILE)?.to_string();
        let (level, what) = match self.index_standing()? {
            Standing::Current => return Ok(None),
            // Having nothing to index is no fault, and neither is an index that is a little behind.
            Standing::Missing | Standing::Stale => return Ok(None),
            Standing::Damaged(why) => (Level::Warning, format!("it cannot be read: {why}")),
            Standing::OtherVersion(version) => {
                (Level::Warning, format!("it is of version {version}, not {}", self.version))
            }
        };
        let hint = "it is derived, and rewritten after the next change or by `memgrove doctor --fix`";
        Ok(Some(Finding { level, at, what, hint: hint.to_owned() }))
    }

    /// Repairs what can be repaired, in one change with a backup of every file that it touches. Everything
    /// else stays as it is.
    ///
    /// # Errors
    /// As the storage says.
    pub fn mend(&self, note: Note) -> Result<Done<Mended>> {
        let done = self.change(note, |store, now| {
            let (mut edits, mut outcome) = (Vec::new(), Mended::default());
            let slipped = self.slipped(store, &self.newest(store, slipped::CHECKED)?, &HashSet::new())?;
            for (at, table) in self.wanted(store)? {
                let (mut bytes, mut what) = self.remade(store, &at, &table, now)?;
                if let Some(one) = slipped.iter().find(|one| one.at == at) {
                    one.add_to(&mut bytes);
                    what.push(format!("restored {} records of another program", one.lines.len()));
                }
                if bytes != table.bytes {
                    edits.extend(self.replaced(store, &at, &table, bytes, now)?);
                    outcome.done.push(format!("{at}: {}", what.join(", ")));
                }
            }
            Ok(Plan { edits, outcome })
        })?;
        self.settle()?;
        Ok(done)
    }

    /// Returns the repaired content of a file, with lost records restored, and what was done.
    fn remade(
        &self,
        store: &Store,
        at: &Locator,
        table: &Table,
        now: Timestamp,
    ) -> Result<(Vec<u8>, Vec<String>)> {
        Ok(match self.ruin(store, at, table)? {
            Ruin::From(rescue) if rescue.beside => {
                let what = rescue.to_string();
                ([rescue.bytes, self.mended(table, now).0].concat(), vec![what])
            }
            Ruin::From(rescue) => {
                let what = rescue.to_string();
                (rescue.bytes, vec![what])
            }
            Ruin::None if !table.problems.is_empty() => {
                let (bytes, what) = self.mended(table, now);
                let what = if bytes == table.bytes { Vec::new() } else { vec![what] };
                (bytes, what)
            }
            Ruin::None | Ruin::Hopeless => (table.bytes.clone(), Vec::new()),
        })
    }

    /// Returns the content of a file with every possible repair.
    fn mended(&self, table: &Table, now: Timestamp) -> (Vec<u8>, String) {
        let (mut bytes, lines) = self.regrouped(table);
        let mut corrections = 0;
        // A correction may turn two lines into duplicates, so a few rounds may be needed.
        for _ in 0..ROUNDS_MAX {
            let again = Table::parse(table.kind, bytes.clone(), None, &self.limits, now);
            let mut rewrite = Rewrite::new(&again);
            for (at, row) in again.rows.iter().enumerate().filter(|(_, row)| row.corrected) {
                rewrite.set(at, corrected(&again, row, &self.limits));
                corrections += 1;
            }
            let mended = Table::parse(table.kind, rewrite.bytes(), None, &self.limits, now);
            let mended = self.regrouped(&mended).0;
            if mended == bytes {
                break;
            }
            bytes = mended;
        }
        (bytes, format!("records corrected: {corrections}, lines fixed: {lines}"))
    }

    /// Returns the file with one object in each line, ids for objects without one, and without byte order
    /// mark, NUL bytes and exact duplicates.
    fn regrouped(&self, table: &Table) -> (Vec<u8>, usize) {
        let mut bytes = Vec::with_capacity(table.bytes.len() + 64);
        let mut count = usize::from(table.bytes.starts_with(BYTE_ORDER_MARK));
        let (mut rows_left, mut skips_left) = (&table.rows[..], &table.skipped[..]);
        for line in jsonl::lines(&table.bytes) {
            let body = &table.bytes[line.body.clone()];
            // Both lists are in the order of the lines.
            let rows = rows_left.iter().take_while(|row| row.span.start < line.whole.end).count();
            rows_left = &rows_left[rows..];
            let skips = skips_left.iter().take_while(|(span, _)| span.start < line.whole.end).count();
            let skipped;
            (skipped, skips_left) = skips_left.split_at(skips);
            if skipped.is_empty() && rows <= 1 {
                bytes.extend_from_slice(&table.bytes[line.body.start..line.whole.end]);
                continue;
            }
            let before = bytes.len();
            for piece in jsonl::pieces(body) {
                let (jsonl::Piece::Object(at) | jsonl::Piece::Damaged(at, _)) = piece;
                let span = line.body.start + at.start..line.body.start + at.end;
                let skip = skipped.iter().find(|(skipped, _)| *skipped == span).map(|(_, skip)| *skip);
                let Some(text) = self.regrouped_piece(table, span, skip) else { continue };
                bytes.extend_from_slice(&text);
                bytes.push(b'\n');
            }
            let old = &table.bytes[line.body.start..line.whole.end];
            let open = old.last() != Some(&b'\n');
            if open && bytes.len() > before {
                bytes.pop();
            }
            count += usize::from(bytes[before..] != *old);
        }
        (bytes, count)
    }

    fn regrouped_piece(&self, table: &Table, span: Range<usize>, skip: Option<Skip>) -> Option<Vec<u8>> {
        let text = &table.bytes[span];
        match skip {
            Some(Skip::Nul) => None,
            Some(Skip::Duplicate) if is_copy(table, text) => None,
            Some(Skip::Nameless) => {
                let object = std::str::from_utf8(text).ok()?;
                let id = format!("\"{}\"", self.fresh_id());
                Some(jsonl::spliced(object, &[("id", Some(id))]).into_bytes())
            }
            _ => Some(text.to_vec()),
        }
    }
}

/// Whether a record is an exact duplicate of the one with its id.
fn is_copy(table: &Table, object: &[u8]) -> bool {
    let text = std::str::from_utf8(object).ok();
    let id: Option<String> = text.and_then(|text| serde_json::from_str(jsonl::value(text, "id")?).ok());
    id.and_then(|id| table.find(&id)).is_some_and(|at| table.bytes[table.rows[at].span.clone()] == *object)
}

/// Returns the faults in the lines of one file.
fn lines_of(at: &Locator, table: &Table) -> Vec<Finding> {
    let finding = |problem: &super::table::Problem| {
        let (level, hint) = match problem.fate {
            Fate::Skipped => (Level::Warning, "it is skipped and kept: check it, and fix it by hand"),
            Fate::Mendable | Fate::Corrected => (Level::Warning, FIX),
            Fate::Kept => (Level::Info, "it is used as it is"),
        };
        Finding {
            level,
            at: format!("{at}:{}", problem.line),
            what: problem.what.clone(),
            hint: hint.to_owned(),
        }
    };
    let mut findings: Vec<Finding> = table.problems.iter().take(REPORTED_MAX).map(finding).collect();
    if let Some(more) = table.problems.len().checked_sub(REPORTED_MAX).filter(|more| *more > 0) {
        findings.push(Finding {
            level: Level::Warning,
            at: at.to_string(),
            what: format!("{more} more lines have problems"),
            hint: "fix these first".to_owned(),
        });
    }
    findings
}
