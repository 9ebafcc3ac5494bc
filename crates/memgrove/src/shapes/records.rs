//! Records: memories of one line each, in three JSONL files with an index, backups and an archive.
//!
//! | where | what |
//! |---|---|
//! | `core_memories.jsonl`, `learnings.jsonl`, `tasks.jsonl` | one JSON object a line: the truth |
//! | `index.json` | tags, categories and counts for other programs; derived, written behind |
//! | `.backup/` | what a file was before it was changed, five of each |
//! | `archive/<year>/<file>_<year>_Q<n>.jsonl` | what was put away |
//! | `.access.jsonl` | readings that are not counted in the files yet |
//!
//! Adding a record is one append, at the same cost however many there are. Finding one uses a
//! [`Table`](table::Table) of each file, kept in memory until the file changes; nothing is ever looked up
//! in `index.json`. Changing one rewrites its file, replacing only that record's bytes, with a backup in
//! the same change. A line that cannot be read stays where it is, is skipped, and is reported.

mod access;
pub mod add;
pub mod archive;
pub mod backup;
pub mod edit;
#[cfg(unix)]
pub mod folder_lock;
pub mod index;
pub mod limits;
pub mod migrate;
pub mod past;
mod patchwork;
pub mod query;
pub mod reading;
mod redact;
pub mod repair;
mod rescue;
mod rewrite;
pub mod schema;
mod shelf;
mod slipped;
pub mod table;
mod trace;
mod upkeep;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use access::LOG;
pub use add::{Added, NewRecord};
pub use archive::{ArchiveOutcome, Due, DueRecord};
pub use backup::{Backup, RestoredBackup, Which};
pub use edit::{Changed, Guarded, Patch};
#[cfg(unix)]
pub use folder_lock::FolderLock;
pub use index::Statistics;
pub use limits::Limits;
pub use migrate::{Migrated, Migration};
pub use past::RecordPast;
pub use query::{Archived, Found, Query, Sort};
pub use repair::Mended;
pub(crate) use rewrite::kind_of_file;
pub use schema::{Importance, Record, RecordType, Status, TaskMetadata};

use crate::backend::{Actor, Note, Version};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result};
use crate::ids::Ids;
use crate::locator::Locator;
use crate::memory::{Done, Memory, Plan};
use crate::store::Store;
use crate::text::jsonl;
use crate::vfs::Vfs;
use shelf::State;

/// The verbs of changes that nobody asks for explicitly.
mod verb {
    /// Reads were logged.
    pub(super) const ACCESS: &str = crate::backend::upkeep::RECORD_ACCESS;
    /// The index was written.
    pub(super) const INDEX: &str = "record_index";
    /// Old records were archived.
    pub(super) const ARCHIVE: &str = crate::backend::upkeep::RECORD_ARCHIVE;
    /// Records were brought to another version of the format.
    pub(super) const MIGRATE: &str = "record_migrate";
    /// Lines that other programs had added meanwhile were restored.
    pub(super) const TAKE_IN: &str = crate::backend::upkeep::RECORD_TAKE_IN;
}

/// A folder of records.
pub struct Records {
    memory: Memory,
    root: Locator,
    ids: Arc<dyn Ids>,
    limits: Limits,
    actor: Actor,
    #[cfg(unix)]
    lock: Option<FolderLock>,
    folder: Option<Arc<dyn Vfs>>,
    aside: Option<(Memory, Locator)>,
    own_log: Locator,
    version: &'static str,
    migrations: &'static [Migration],
    state: Mutex<State>,
}

/// One record that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Got {
    /// The record, with this read counted.
    pub record: Record,
    /// The version of its line, for a change that expects it. Reading does not change it.
    pub version: Version,
    /// The file that it is in.
    pub file: Locator,
    /// Its line there, from 1.
    pub line: usize,
    /// The line as it is written.
    pub text: String,
}

impl Records {
    /// The records in a folder of a memory.
    ///
    /// # Errors
    /// `Invalid` where the folder's name leaves no room for the files in it.
    pub fn new(memory: Memory, root: Locator, ids: Arc<dyn Ids>) -> Result<Self> {
        Ok(Records {
            own_log: root.child(access::LOG)?,
            memory,
            root,
            ids,
            limits: Limits::default(),
            actor: Actor::default(),
            #[cfg(unix)]
            lock: None,
            folder: None,
            aside: None,
            version: index::VERSION,
            migrations: &[],
            state: Mutex::default(),
        })
    }

    /// Returns the records with limits other than the format's.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Gives direct access to the folder, so that the end of a file can be read alone and file modes can
    /// be checked and repaired.
    #[must_use]
    pub fn with_folder(mut self, folder: Arc<dyn Vfs>) -> Self {
        self.folder = Some(folder);
        self
    }

    /// Takes the folder's `.lock` around every change, for a folder that other programs write to as well.
    #[cfg(unix)]
    #[must_use]
    pub fn with_lock(mut self, lock: FolderLock) -> Self {
        self.lock = Some(lock);
        self
    }

    /// Keeps the log of reads elsewhere, so that the folder holds only the format's own files.
    #[must_use]
    pub fn with_log(mut self, memory: Memory, at: Locator) -> Self {
        self.aside = Some((memory, at));
        self
    }

    /// Sets another version of the format, and the migrations that lead to it.
    #[must_use]
    pub fn with_migrations(mut self, version: &'static str, migrations: &'static [Migration]) -> Self {
        (self.version, self.migrations) = (version, migrations);
        self
    }

    /// Sets who makes the changes that nobody asks for explicitly.
    #[must_use]
    pub fn for_actor(mut self, actor: Actor) -> Self {
        self.actor = actor;
        self
    }

    /// What the records may hold.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The folder.
    pub fn root(&self) -> &Locator {
        &self.root
    }

    /// The memory that the records are in.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Reads one record by its id, active or archived, and counts it as an access.
    ///
    /// # Errors
    /// `NotFound`; else as the storage says.
    pub fn get(&self, id: &str) -> Result<Got> {
        let got = self.seen(id, |row| self.accessed(row))?;
        let waiting = self.state().pending.len();
        if waiting >= access::PENDING_MAX {
            self.flush()?;
        }
        Ok(got)
    }

    /// Reads one record by its id without counting it, for callers who may change nothing.
    ///
    /// # Errors
    /// As [`Records::get`].
    pub fn view(&self, id: &str) -> Result<Got> {
        self.seen(id, |_| {})
    }

    fn seen(&self, id: &str, count: impl FnOnce(&table::Row)) -> Result<Got> {
        let store = self.memory.store();
        let (file, table, at) = self.find(store, id)?;
        let row = &table.rows[at];
        count(row);
        let mut record = table.reading(row, &self.limits).record;
        self.log()?.apply(row, &mut record);
        record.archived |= file.is_within(&self.root.child(archive::FOLDER)?);
        let text = table.object(row).to_owned();
        Ok(Got { record, version: version_of(&text), file, line: row.line, text })
    }

    /// Finds records.
    ///
    /// # Errors
    /// As the storage says; a damaged line is not an error.
    pub fn list(&self, query: &Query) -> Result<Found> {
        let store = self.memory.store();
        let mut tables: Vec<_> = self.tables(store)?.into_iter().map(|table| (table, false)).collect();
        self.warn_of_ruins(&tables);
        if query.archived != Archived::No {
            tables.extend(self.archives(store)?.into_iter().map(|(_, table)| (table, true)));
        }
        Ok(query::run(&tables, query, &self.limits, &self.log()?))
    }

    /// Warns of files of which nothing can be read any more, so that they do not pass for empty ones.
    fn warn_of_ruins(&self, tables: &[(Arc<table::Table>, bool)]) {
        for (table, _) in tables.iter().filter(|(table, _)| table.is_ruined()) {
            let warning = format!("no record in `{}` can be read: run `memgrove doctor`", table.kind.file());
            self.state().warnings.push(warning);
        }
    }

    /// Counts the records.
    ///
    /// # Errors
    /// As the storage says.
    pub fn statistics(&self) -> Result<Statistics> {
        let store = self.memory.store();
        let tables = self.tables(store)?;
        Ok(index::statistics(tables.iter().map(|table| &**table), self.archived(store)?))
    }

    /// Returns the warnings since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.state().warnings)
    }

    /// Does something to the memory that the records are in, while holding the folder's lock.
    ///
    /// # Errors
    /// As the lock and the act say.
    pub fn while_locked<T>(&self, act: impl FnOnce(&Memory) -> Result<T>) -> Result<T> {
        #[cfg(unix)]
        let _held = self.lock.as_ref().map(FolderLock::take).transpose()?;
        act(&self.memory)
    }

    /// Plans a change and applies it while holding the folder's lock.
    fn change<T>(
        &self,
        note: Note,
        mut plan: impl FnMut(&Store, Timestamp) -> Result<Plan<T>>,
    ) -> Result<Done<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let (mut first, mut rewrites, derived) = (true, false, note.derived);
        let done = self.while_locked(|memory| {
            memory.apply(note, |store| {
                // After a conflict, a file that looks unchanged may have changed, so all are read again.
                if !std::mem::take(&mut first) {
                    self.state().forget();
                }
                let planned = plan(store, memory.clock().now())?;
                rewrites = planned.edits.iter().any(|edit| self.rewrites(edit));
                Ok(planned)
            })
        })?;
        self.state().behind |= done.change.is_some() && !derived;
        if rewrites && done.change.is_some() {
            self.take_in();
        }
        Ok(done)
    }

    fn aside(&self) -> (&Memory, &Locator) {
        match &self.aside {
            Some((memory, at)) => (memory, at),
            None => (&self.memory, &self.own_log),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fresh_id(&self) -> String {
        self.ids.uuid()
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        // A failure to log reads is not worth reporting here.
        let _ = self.flush();
    }
}

/// Returns the version of a record: that of its object without the members that change when it is read.
fn version_of(object: &str) -> Version {
    Version::of(jsonl::beside_readings(object).as_bytes())
}

/// The error for an id that no record has.
fn unknown(id: &str) -> Error {
    Error::new(Kind::NotFound, format!("there is no record `{}`", id.escape_default()))
        .code(crate::error::code::RECORD_NOT_FOUND)
        .hint("`memgrove record list` shows what there is")
}
