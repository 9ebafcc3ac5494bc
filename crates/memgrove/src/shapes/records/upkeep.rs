//! How records are maintained now and then, outside of any call: the index, archiving, migrations.

use super::index::{self, Standing};
use super::schema::RecordType;
use super::{Records, verb};
use crate::backend::{Edit, Expect, Note};
use crate::error::Result;
use crate::memory::Plan;

/// The most that an index may lag behind the newest changes.
const INDEX_AGE_MAX_MS: i64 = 60_000;
/// How many bytes of records a process reads to leave a current index when it ends. With records of usual
/// length, the format's own limits stay below this. Reading so much takes less time than starting a
/// process and syncing one change.
const INDEXED_BYTES_MAX: u64 = 2 * 1024 * 1024;

impl Records {
    /// Does what [`Records::settle`] does, if that was not done for a while: so an addition costs one
    /// append, and the index is at most about a minute old.
    ///
    /// # Errors
    /// As [`Records::settle`].
    pub fn settle_if_due(&self) -> Result<()> {
        let folder = self.folder(self.memory.store())?;
        let newest = RecordType::ALL.iter().filter_map(|kind| folder.get(kind.file())).map(|info| info.mtime);
        let Some(newest) = newest.max() else { return Ok(()) };
        let now = self.memory.clock().now().as_millisecond();
        match folder.get(index::FILE) {
            Some(index) if index.mtime >= newest => Ok(()),
            Some(index) if now - index.mtime.as_millisecond() < INDEX_AGE_MAX_MS => Ok(()),
            _ => self.settle(),
        }
    }

    /// Logs the waiting reads, and updates `index.json` if this process has changed records: for a process
    /// that ends or rests. If the files are large, the next [`Records::settle_if_due`] does it instead.
    ///
    /// # Errors
    /// As [`Records::settle`].
    pub fn settle_behind(&self) -> Result<()> {
        self.flush()?;
        if !std::mem::take(&mut self.state().behind) {
            return Ok(());
        }
        let folder = self.folder(self.memory.store())?;
        let bytes: u64 =
            RecordType::ALL.iter().filter_map(|kind| folder.get(kind.file())).map(|info| info.size).sum();
        match bytes <= INDEXED_BYTES_MAX {
            true => self.write_index().map(drop),
            false => Ok(()),
        }
    }

    /// Logs the waiting reads, migrates records of an older version, archives what is due, and writes
    /// `index.json` if it differs from the files.
    ///
    /// # Errors
    /// As [`Memory::apply`](crate::Memory::apply); each step is a change of its own.
    pub fn settle(&self) -> Result<()> {
        self.flush()?;
        if self.pending_migration()?.is_some() {
            let note = Note { verb: verb::MIGRATE.into(), actor: self.actor.clone(), ..Note::default() };
            let migrated = self.migrate(note)?.outcome;
            self.state().warnings.push(migrated.to_string());
        }
        if !self.due()?.records.is_empty() {
            let note = Note { verb: verb::ARCHIVE.into(), actor: self.actor.clone(), ..Note::default() };
            let archived = self.archive_due(note)?.outcome.archived.len();
            self.state().warnings.push(format!("{archived} records were due and are archived"));
        }
        self.write_index().map(drop)
    }

    /// Returns the state of the index on disk.
    ///
    /// # Errors
    /// As the storage says.
    pub fn index_standing(&self) -> Result<Standing> {
        let store = self.memory.store();
        let there = store.read_optional(&self.root.child(index::FILE)?)?;
        let wanted = self.index_text()?;
        Ok(index::standing(there.as_ref().map(|content| content.bytes.as_slice()), &wanted, self.version))
    }

    pub(super) fn index_text(&self) -> Result<String> {
        let store = self.memory.store();
        let tables = self.tables(store)?;
        let tables: Vec<&super::table::Table> = tables.iter().map(|table| &**table).collect();
        Ok(index::text(&tables, self.archived(store)?, self.version, self.memory.clock().now()))
    }

    /// Writes the index if it differs from the files, and returns the state that it was in.
    ///
    /// # Errors
    /// As [`Memory::apply`](crate::Memory::apply).
    pub fn write_index(&self) -> Result<Standing> {
        let standing = self.index_standing()?;
        if standing == Standing::Current {
            return Ok(standing);
        }
        let note = Note { verb: verb::INDEX.into(), derived: true, ..Note::default() };
        self.change(note, |_, _| {
            let edit = Edit::Write {
                at: self.root.child(index::FILE)?,
                bytes: self.index_text()?.into(),
                // It is derived, and whoever writes it last has read the files last.
                expect: Expect::Any,
            };
            Ok(Plan { edits: vec![edit], outcome: () })
        })?;
        Ok(standing)
    }
}
