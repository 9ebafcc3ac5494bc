//! What the files of records held when they were last read, and whether that is still true.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::access::Access;
use super::index::Archived;
use super::rewrite::kind_of_file;
use super::schema::RecordType;
use super::table::Table;
use super::{Records, archive, backup, unknown};
use crate::backend::{ChangeId, Depth, FileKind, Info};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::locator::Locator;
use crate::store::Store;
use crate::vfs::Open;

/// What is kept between calls.
#[derive(Default)]
pub(super) struct State {
    held: HashMap<Locator, Held>,
    tails: HashMap<RecordType, Tail>,
    /// Reads that are not logged yet.
    pub(super) pending: Vec<Access>,
    /// Warnings that a person should see.
    pub(super) warnings: Vec<String>,
    modes_checked: bool,
    /// Whether this process has changed records since the index was written.
    pub(super) behind: bool,
    /// Changes by other programs that were already examined.
    pub(super) examined: HashSet<ChangeId>,
}

impl State {
    /// Forgets every file, but not the reads that wait to be logged.
    pub(super) fn forget(&mut self) {
        self.held.clear();
        self.tails.clear();
    }
}

/// A file as it was read.
struct Held {
    stamp: u64,
    table: Arc<Table>,
}

/// What an addition needs to know of a file, which need not have been read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tail {
    stamp: u64,
    /// Its bytes.
    pub(super) size: u64,
    /// Its number of records, if it is known.
    pub(super) records: Option<u64>,
    /// Whether its last line lacks its newline.
    pub(super) open: bool,
}

impl Records {
    /// Returns one file of the folder, without reading it; with direct access to the folder, at almost no
    /// cost.
    pub(super) fn file_info(&self, store: &Store, name: &str) -> Result<Option<Info>> {
        let Some(folder) = &self.folder else { return Ok(self.folder(store)?.remove(name)) };
        let Ok(stat) = folder.stat(name) else { return Ok(None) };
        Ok(Some(Info {
            locator: self.root.child(name)?,
            kind: stat.kind,
            size: stat.size,
            mtime: Timestamp::UNIX_EPOCH,
            stamp: stat.inode.rotate_left(32)
                ^ stat.size
                ^ (stat.mtime_ns as u64).rotate_left(16)
                ^ (stat.ctime_ns as u64).rotate_left(48),
            version: None,
        }))
    }

    /// Lists the folder by name, without reading its files.
    pub(super) fn folder(&self, store: &Store) -> Result<BTreeMap<String, Info>> {
        let infos = store.backend().list(&self.root, Depth::Children)?;
        Ok(infos.into_iter().map(|info| (info.locator.name().to_owned(), info)).collect())
    }

    /// Returns the tables of the three files.
    pub(super) fn tables(&self, store: &Store) -> Result<[Arc<Table>; 3]> {
        let folder = self.folder(store)?;
        let [core, learning, task] =
            RecordType::ALL.map(|kind| self.table(store, kind, folder.get(kind.file())));
        Ok([core?, learning?, task?])
    }

    /// Returns the table of a type's file, which is read only if it has changed.
    pub(super) fn table(&self, store: &Store, kind: RecordType, info: Option<&Info>) -> Result<Arc<Table>> {
        self.check_modes();
        match info {
            Some(info) => self.load(store, kind, info),
            None => {
                let now = self.memory.clock().now();
                Ok(Arc::new(Table::parse(kind, Vec::new(), None, &self.limits, now)))
            }
        }
    }

    fn load(&self, store: &Store, kind: RecordType, info: &Info) -> Result<Arc<Table>> {
        if let Some(held) = self.state().held.get(&info.locator)
            && held.stamp == info.stamp
        {
            return Ok(Arc::clone(&held.table));
        }
        let now = self.memory.clock().now();
        let Some(mut content) = store.read_optional(&info.locator)? else {
            return Ok(Arc::new(Table::parse(kind, Vec::new(), None, &self.limits, now)));
        };
        let mut old = self.state().held.remove(&info.locator).map(|held| held.table);
        let version = Some(content.version);
        let follows = old.as_mut().is_some_and(|old| {
            Arc::make_mut(old).follow(&mut content.bytes, version.clone(), &self.limits, now)
        });
        let table = match old {
            Some(old) if follows => old,
            _ => Arc::new(Table::parse(kind, content.bytes, version, &self.limits, now)),
        };
        // The stamp is older than the bytes, so a write in between causes another read.
        let held = Held { stamp: info.stamp, table: Arc::clone(&table) };
        self.state().held.insert(info.locator.clone(), held);
        Ok(table)
    }

    /// Returns every file of the archive, in the order of names.
    pub(super) fn archives(&self, store: &Store) -> Result<Vec<(Locator, Arc<Table>)>> {
        let mut found = Vec::new();
        for info in self.archive_files(store)? {
            let Some(kind) = kind_of_file(info.locator.name()) else { continue };
            found.push((info.locator.clone(), self.load(store, kind, &info)?));
        }
        Ok(found)
    }

    fn archive_files(&self, store: &Store) -> Result<Vec<Info>> {
        let mut infos = store.backend().list(&self.root.child(archive::FOLDER)?, Depth::All)?;
        infos.retain(|info| info.kind == FileKind::File);
        Ok(infos)
    }

    pub(super) fn archived(&self, store: &Store) -> Result<Archived> {
        let mut all = Archived::default();
        for (_, table) in self.archives(store)? {
            all.records += table.rows.len() as u64;
            all.bytes += table.bytes.len() as u64;
        }
        Ok(all)
    }

    /// Returns the file, the table and the row of an id: from the three files, else from the archive.
    pub(super) fn find(&self, store: &Store, id: &str) -> Result<(Locator, Arc<Table>, usize)> {
        for table in self.tables(store)? {
            if let Some(at) = table.find(id) {
                return Ok((self.root.child(table.kind.file())?, table, at));
            }
        }
        for (file, table) in self.archives(store)? {
            if let Some(at) = table.find(id) {
                return Ok((file, table, at));
            }
        }
        Err(unknown(id))
    }

    /// Returns what an addition needs to know of an existing file.
    pub(super) fn tail(&self, store: &Store, kind: RecordType, info: &Info) -> Result<Tail> {
        if let Some(tail) = self.state().tails.get(&kind)
            && tail.stamp == info.stamp
        {
            return Ok(*tail);
        }
        let known =
            self.state().held.get(&info.locator).filter(|held| held.stamp == info.stamp).map(|held| {
                (held.table.rows.len() as u64, held.table.bytes.last().is_some_and(|byte| *byte != b'\n'))
            });
        let (records, open) = match (known, self.last_byte(kind.file())) {
            (Some((records, open)), _) => (Some(records), open),
            (None, Some(last)) => (None, last != b'\n'),
            (None, None) if info.size == 0 => (Some(0), false),
            // The storage can only read whole files.
            (None, None) => {
                let table = self.load_named(store, kind)?;
                (Some(table.rows.len() as u64), table.bytes.last().is_some_and(|byte| *byte != b'\n'))
            }
        };
        Ok(Tail { stamp: info.stamp, size: info.size, records, open })
    }

    /// Returns the table of a type's file, found by a listing of the folder.
    pub(super) fn load_named(&self, store: &Store, kind: RecordType) -> Result<Arc<Table>> {
        let folder = self.folder(store)?;
        self.table(store, kind, folder.get(kind.file()))
    }

    /// Remembers the count of a file that had to be read, for the next addition.
    pub(super) fn counted(&self, kind: RecordType, info: &Info, table: &Table) {
        if table.bytes.len() as u64 == info.size {
            let open = table.bytes.last().is_some_and(|byte| *byte != b'\n');
            let records = Some(table.rows.len() as u64);
            let tail = Tail { stamp: info.stamp, size: info.size, records, open };
            self.state().tails.insert(kind, tail);
        }
    }

    /// Remembers a file's end after an addition, if nobody else has touched it.
    pub(super) fn grown(&self, store: &Store, expected: &[(RecordType, u64, Option<u64>)]) -> Result<()> {
        for (kind, size, records) in expected {
            let there = self.file_info(store, kind.file())?.filter(|info| info.size == *size);
            let mut state = self.state();
            match there {
                Some(info) => {
                    let tail = Tail { stamp: info.stamp, size: *size, records: *records, open: false };
                    state.tails.insert(*kind, tail);
                }
                None => drop(state.tails.remove(kind)),
            }
        }
        Ok(())
    }

    /// Returns the last byte of a file, if there is direct access to the folder.
    fn last_byte(&self, name: &str) -> Option<u8> {
        let file = self.folder.as_ref()?.open(name, Open::Read).ok()?;
        let size = file.stat().ok()?.size;
        file.read_at(size.checked_sub(1)?, 1).ok()?.first().copied()
    }

    /// Once, removes other users' access to the files, with a warning.
    fn check_modes(&self) {
        let Some(folder) = &self.folder else { return };
        if std::mem::replace(&mut self.state().modes_checked, true) {
            return;
        }
        let mut names = vec![String::new()];
        names.extend(
            folder.names("", usize::MAX).unwrap_or_default().into_iter().filter(|name| is_ours(name)),
        );
        let mut mended = Vec::new();
        while let Some(name) = names.pop() {
            let Some(stat) = folder.stat(&name).ok().filter(|stat| stat.kind != FileKind::Other) else {
                continue;
            };
            if stat.mode & 0o077 != 0 && folder.set_mode(&name, stat.mode & 0o700).is_ok() {
                mended.push(name.clone());
            }
            if stat.kind == FileKind::Folder && !name.is_empty() {
                let inside = folder.names(&name, usize::MAX).unwrap_or_default();
                names.extend(inside.into_iter().map(|inside| format!("{name}/{inside}")));
            }
        }
        mended.sort_unstable();
        if let Some(first) = mended.first() {
            let first = if first.is_empty() { "the folder of records" } else { first };
            let more = match mended.len() {
                1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            let warning = format!("other users of this machine could read {first}{more}: fixed");
            self.state().warnings.push(warning);
        }
    }
}

/// Whether something in a folder of records belongs to the format.
fn is_ours(name: &str) -> bool {
    name.ends_with(".jsonl") || name.ends_with(".json") || [backup::FOLDER, archive::FOLDER].contains(&name)
}
