//! How records are brought to another version of the format: by a chain of small steps, all or none.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::rewrite::Rewrite;
use super::{Records, index};
use crate::backend::{Edit, Expect, Note};
use crate::error::{Error, Kind, Result};
use crate::memory::{Done, Plan};
use crate::text::jsonl;

/// Members to set, as JSON, or to remove.
pub type Splices = Vec<(&'static str, Option<String>)>;

/// One step from a version of the format to the next.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// The version that it starts from.
    pub from: &'static str,
    /// The version that it leads to.
    pub to: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Returns its changes of one object; every other byte stays.
    pub apply: fn(&serde_json::Value) -> Splices,
}

/// What a migration did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migrated {
    /// The version before.
    pub from: String,
    /// The version now.
    pub to: String,
    /// What each step did.
    pub steps: Vec<String>,
    /// How many records were changed.
    pub records: u64,
}

impl fmt::Display for Migrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.steps.is_empty() {
            true => write!(f, "the records have version {}: nothing to do", self.to),
            false => write!(
                f,
                "migrated {} records from version {} to {}: {}",
                self.records,
                self.from,
                self.to,
                self.steps.join("; ")
            ),
        }
    }
}

impl Records {
    /// Returns the version of the records and the migrations from there to this version, if there is such
    /// a chain.
    pub(super) fn pending_migration(&self) -> Result<Option<(String, Vec<&'static Migration>)>> {
        let Some(content) = self.memory.store().read_optional(&self.root.child(index::FILE)?)? else {
            return Ok(None);
        };
        let Some(there) = index::version_of(&content.bytes).filter(|there| there != self.version) else {
            return Ok(None);
        };
        let mut steps = Vec::new();
        let mut at = there.clone();
        while at != self.version {
            let step = self.migrations.iter().find(|step| step.from == at);
            // No chain starts from this version: its index is rebuilt, and its records stay.
            let Some(step) = step.filter(|_| steps.len() < self.migrations.len()) else { return Ok(None) };
            steps.push(step);
            at = step.to.to_owned();
        }
        Ok(Some((there, steps)))
    }

    /// Brings every record, archived ones too, to this version: in one change with every file backed up,
    /// or not at all.
    ///
    /// # Errors
    /// `Corrupt` if a record cannot be migrated; else as the storage says.
    pub fn migrate(&self, note: Note) -> Result<Done<Migrated>> {
        let mut done = self.change(note, |store, now| {
            let Some((from, steps)) = self.pending_migration()? else {
                let outcome = Migrated {
                    from: self.version.to_owned(),
                    to: self.version.to_owned(),
                    steps: Vec::new(),
                    records: 0,
                };
                return Ok(Plan { edits: Vec::new(), outcome });
            };
            let mut files = Vec::new();
            for table in self.tables(store)? {
                files.push((self.root.child(table.kind.file())?, table));
            }
            files.extend(self.archives(store)?);
            let (mut edits, mut records) = (Vec::new(), 0);
            for (at, table) in files {
                let mut rewrite = Rewrite::new(&table);
                for (row_at, row) in table.rows.iter().enumerate() {
                    let old = table.object(row);
                    let new = stepped(old, &steps).map_err(|error| {
                        error.while_doing(format_args!("migrating line {} of `{at}`", row.line))
                    })?;
                    if new != old {
                        rewrite.set(row_at, new);
                        records += 1;
                    }
                }
                let bytes = rewrite.bytes();
                if bytes != table.bytes {
                    edits.extend(self.replaced(store, &at, &table, bytes, now)?);
                }
            }
            let at = self.root.child(index::FILE)?;
            edits.push(Edit::Write { at, bytes: self.version_mark(store, now)?.into(), expect: Expect::Any });
            let steps = steps.iter().map(|step| format!("{} to {}: {}", step.from, step.to, step.about));
            let outcome = Migrated { from, to: self.version.to_owned(), steps: steps.collect(), records };
            Ok(Plan { edits, outcome })
        })?;
        if done.change.is_some() && !done.replayed {
            self.write_index()?;
        }
        done.versions.clear();
        Ok(done)
    }

    /// Returns an index with the new version; its lists are written right after.
    fn version_mark(&self, store: &crate::Store, now: crate::clock::Timestamp) -> Result<Vec<u8>> {
        let tables = self.tables(store)?;
        let tables: Vec<&super::table::Table> = tables.iter().map(|table| &**table).collect();
        Ok(index::text(&tables, self.archived(store)?, self.version, now).into_bytes())
    }
}

fn stepped(object: &str, steps: &[&Migration]) -> Result<String> {
    let mut text = object.to_owned();
    for step in steps {
        let value = serde_json::from_str(&text).map_err(|error| broken(step, &error))?;
        text = jsonl::spliced(&text, &(step.apply)(&value));
    }
    serde_json::from_str::<serde::de::IgnoredAny>(&text)
        .map_err(|error| broken(steps.last().expect("there is a step"), &error))?;
    Ok(text)
}

fn broken(step: &Migration, error: &serde_json::Error) -> Error {
    Error::new(
        Kind::Corrupt,
        format!("the step from {} to {} does not lead to JSON: {error}", step.from, step.to),
    )
    .hint("nothing was changed; fix the record, then migrate again")
}
