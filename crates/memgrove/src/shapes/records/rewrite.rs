//! How a file is rewritten with some records changed or removed, and every other byte as it was.

use std::collections::BTreeMap;

use super::access::Log;
use super::schema::RecordType;
use super::table::{Row, Table};
use super::{Records, limits::Limits};
use crate::backend::{Edit, Expect};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::locator::Locator;
use crate::store::Store;
use crate::text::jsonl;

/// The changes of one file.
pub(super) struct Rewrite<'a> {
    table: &'a Table,
    /// The new object of each changed row; `None` removes it.
    rows: BTreeMap<usize, Option<String>>,
    /// Lines that are added at the end.
    added: Vec<String>,
}

impl<'a> Rewrite<'a> {
    /// Begins without any change.
    pub(super) fn new(table: &'a Table) -> Self {
        Rewrite { table, rows: BTreeMap::new(), added: Vec::new() }
    }

    /// Replaces the object of a row.
    pub(super) fn set(&mut self, row: usize, object: String) {
        self.rows.insert(row, Some(object));
    }

    /// Removes a row.
    pub(super) fn remove(&mut self, row: usize) {
        self.rows.insert(row, None);
    }

    /// Adds a record at the end.
    pub(super) fn add(&mut self, line: String) {
        self.added.push(line);
    }

    /// Folds the reads in the log into the rows that stay.
    pub(super) fn fold(&mut self, log: &Log) {
        for id in log.ids() {
            let Some(at) = self.table.find(id) else { continue };
            let row = &self.table.rows[at];
            let splices = log.splices(row);
            if splices.is_empty() || matches!(self.rows.get(&at), Some(None)) {
                continue;
            }
            let object = match self.rows.get(&at) {
                Some(Some(object)) => jsonl::spliced(object, &splices),
                _ => jsonl::spliced(self.table.object(row), &splices),
            };
            self.rows.insert(at, Some(object));
        }
    }

    /// Returns the new content of the file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let old = &self.table.bytes;
        let added: usize = self.added.iter().map(|line| line.len() + 1).sum();
        let mut bytes = Vec::with_capacity(old.len() + added + 64 * self.rows.len() + 1);
        let mut copied = 0;
        for (at, object) in &self.rows {
            let row = &self.table.rows[*at];
            let (span, new) = match object {
                Some(object) => (&row.span, object.as_bytes()),
                None => (&row.removal, &[][..]),
            };
            bytes.extend_from_slice(&old[copied..span.start]);
            bytes.extend_from_slice(new);
            copied = span.end;
        }
        bytes.extend_from_slice(&old[copied..]);
        for line in &self.added {
            if bytes.last().is_some_and(|last| *last != b'\n') {
                bytes.push(b'\n');
            }
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        bytes
    }
}

impl Records {
    /// Returns the edits that write a file and back it up. The file comes first, so that a conflict with a
    /// faster writer is noticed first.
    pub(super) fn replaced(
        &self,
        store: &Store,
        at: &Locator,
        table: &Table,
        bytes: Vec<u8>,
        now: Timestamp,
    ) -> Result<Vec<Edit>> {
        let expect = table.version.clone().map_or(Expect::Absent, Expect::At);
        let mut edits = vec![Edit::Write { at: at.clone(), bytes: bytes.into(), expect }];
        edits.extend(self.backed_up(store, at.name(), &table.bytes, now)?);
        Ok(edits)
    }
}

/// Returns the object of a row with the corrections that reading it makes.
pub(super) fn corrected(table: &Table, row: &Row, limits: &Limits) -> String {
    let reading = table.reading(row, limits);
    let splices: Vec<(&str, Option<String>)> = reading
        .corrections
        .into_iter()
        .map(|correction| (correction.field, Some(correction.value)))
        .collect();
    jsonl::spliced(table.object(row), &splices)
}

/// Returns the type of a file of records by its name, archives included. Other programs may name archives
/// after the type: `learning_memories_2025_Q4.jsonl`.
pub(crate) fn kind_of_file(name: &str) -> Option<RecordType> {
    let is_archive = |stem: &str| {
        name.strip_prefix(stem).is_some_and(|rest| rest.starts_with('_') && rest.ends_with(".jsonl"))
    };
    RecordType::ALL.into_iter().find(|kind| {
        name == kind.file() || is_archive(kind.stem()) || is_archive(&format!("{kind}_memories"))
    })
}
