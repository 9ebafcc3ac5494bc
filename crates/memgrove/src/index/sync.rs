//! Keeping the index true to the files: what is listed is compared with what was seen, through the
//! seam alone. Nothing is trusted that a listing does not show.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use rusqlite::{OptionalExtension, TransactionBehavior};

use super::database::{BUSY_WAIT, Database, meant};
use super::watch::Look;
use super::write::{FileRow, Writer};
use super::{Index, Progress, extract};
use crate::backend::{Depth, FileKind, Info, Version};
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::store::Store;

/// How many new documents are committed together, so that others get their turn.
const BATCH_DOCUMENTS: usize = 4_000;
/// A file that was modified so shortly before it was read may be modified again without a new
/// stamp: clocks of file systems tick in a few milliseconds, some in seconds.
const TICK_MS: i64 = 100;
const COARSE_TICK_MS: i64 = 2_000;

/// A storage whose files are indexed, and where they stand among the keys of the index.
pub struct Source {
    /// The folder of the store that this storage stands for; empty for the store itself.
    pub under: String,
    /// The storage.
    pub store: Store,
}

/// What a sync did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Synced {
    /// Files that were read anew.
    pub read: usize,
    /// Files that are gone.
    pub removed: usize,
    /// Files that were written again and say what they said.
    pub touched: usize,
    /// Folders and files that could not be read: what was known of them is kept.
    pub unreadable: Vec<String>,
}

/// What was seen of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    stamp: u64,
    version: String,
    settled: bool,
}

/// A file that a listing shows.
struct Listed<'a> {
    store: &'a Store,
    key: String,
    info: Info,
}

/// What there is to do.
#[derive(Default)]
struct Work<'a> {
    stale: Vec<Listed<'a>>,
    gone: Vec<String>,
    unreadable: Vec<String>,
}

impl Index {
    /// Brings a database up to date with the files.
    pub(crate) fn bring(
        &self,
        database: &mut Database,
        seen: &mut HashMap<String, Seen>,
        mut look: Option<&mut Look>,
        progress: Progress<'_>,
    ) -> Result<Synced> {
        let mut next = Look::default();
        let mut work = match &mut look {
            // What was noticed must not be lost if the work fails: then everything is listed again.
            Some(look) => self.noted(seen, std::mem::take(look), &mut next)?,
            None => self.work(seen, &mut next)?,
        };
        let sound = self.sift(&mut work.stale, seen);
        let mut synced = Synced { unreadable: work.unreadable, ..Synced::default() };
        let total = work.stale.len();
        let mut left = work.stale.into_iter().peekable();
        let mut gone = work.gone;
        while left.peek().is_some() || !gone.is_empty() {
            let transaction = database
                .connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(meant)?;
            let mut writer = Writer::new(&transaction, &self.analysis, self.embedder.as_deref())?;
            let mut learnt = Vec::new();
            for key in gone.drain(..) {
                // Another process may have done some of the work while we waited for our turn.
                synced.removed += usize::from(writer.remove(&key)?);
                learnt.push((key, None));
            }
            while writer.pending() < BATCH_DOCUMENTS
                && let Some(file) = left.next()
            {
                match self.learn(&mut writer, seen_by(&transaction, &file.key)?, &file) {
                    Ok((did, now)) => {
                        synced.read += usize::from(did == Did::Read);
                        synced.touched += usize::from(did == Did::Touched);
                        learnt.push((file.key, Some(now)));
                    }
                    // Gone since it was listed: the next look at the files sees that.
                    Err(error) if error.kind() == Kind::NotFound => {}
                    Err(error) if is_unreadable(&error) => synced.unreadable.push(file.key),
                    Err(error) => return Err(error),
                }
            }
            writer.finish()?;
            transaction.commit().map_err(meant)?;
            for (key, now) in learnt {
                match now {
                    Some(now) => seen.insert(key, now),
                    None => seen.remove(&key),
                };
            }
            progress(total - left.len(), total);
        }
        note_settled(database, seen, &sound)?;
        if let Some(look) = look.filter(|_| synced.unreadable.is_empty()) {
            *look = next;
        }
        Ok(synced)
    }

    /// Takes out the files that hold what they held, though they were modified too shortly before
    /// they were read to be sure of it. Noting that they are settled now can wait: a search that
    /// has nothing to write waits for nobody.
    fn sift(&self, stale: &mut Vec<Listed<'_>>, seen: &HashMap<String, Seen>) -> Vec<(String, u64)> {
        let now = self.clock.now().as_millisecond();
        let mut sound = Vec::new();
        stale.retain(|file| {
            let Some(before) = seen.get(&file.key).filter(|before| before.stamp == file.info.stamp) else {
                return true;
            };
            let same = file.store.read_bytes(&file.info.locator);
            let same = same.is_ok_and(|content| content.version.as_str() == before.version);
            if same && is_settled(&file.info, now) {
                sound.push((file.key.clone(), file.info.stamp));
            }
            !same
        });
        sound
    }

    /// What there is to do, where watchers have noticed what has changed: as [`Index::work`], if
    /// they cannot tell.
    fn noted<'a>(&'a self, seen: &HashMap<String, Seen>, look: Look, next: &mut Look) -> Result<Work<'a>> {
        let Some(files) = self.noticed(look, self.clock.now().as_millisecond()) else {
            return self.work(seen, next);
        };
        *next = look;
        let mut work = Work::default();
        for (source, at) in files {
            let source = &self.sources[source];
            let key = joined(&source.under, &at);
            if !self.indexes(source, &key) {
                continue;
            }
            match source.store.info(&at) {
                // The version was read after the stamp, so it does not vouch for it.
                Ok(info) if info.kind == FileKind::File => {
                    work.consider(source, key, Info { version: None, ..info }, seen);
                }
                Err(error) if error.kind() != Kind::NotFound => return self.work(seen, next),
                _ => work.gone.extend(seen.contains_key(&key).then_some(key)),
            }
        }
        Ok(work)
    }

    /// Whether a file of a storage has documents, and no other storage stands in its place.
    fn indexes(&self, source: &Source, key: &str) -> bool {
        let elsewhere = |other: &Source| other.under != source.under && within(key, &other.under);
        extract::wants(key) && !self.sources.iter().any(elsewhere)
    }

    /// What there is to do, by a listing of everything.
    fn work<'a>(&'a self, seen: &HashMap<String, Seen>, next: &mut Look) -> Result<Work<'a>> {
        let mut work = Work::default();
        let mut there = HashSet::with_capacity(seen.len());
        let mut folders = Vec::new();
        let began = self.clock.now().as_millisecond();
        for source in &self.sources {
            let mut inside = vec![Locator::root()];
            for info in listing(source, &mut work.unreadable)? {
                let key = joined(&source.under, &info.locator);
                if info.is_dir() {
                    inside.push(info.locator);
                } else if info.kind == FileKind::File && self.indexes(source, &key) {
                    there.insert(key.clone());
                    work.consider(source, key, info, seen);
                }
            }
            folders.push(inside);
        }
        let covered = work.unreadable.is_empty() && self.attend(&folders);
        *next = Look::listed(began, self.clock.now().as_millisecond(), covered);
        let lost = |key: &&String| {
            !there.contains(*key) && !work.unreadable.iter().any(|folder| within(key, folder))
        };
        work.gone = seen.keys().filter(lost).cloned().collect();
        work.gone.sort();
        Ok(work)
    }

    /// Reads a file if need be, and says what is seen of it now.
    fn learn(&self, writer: &mut Writer<'_>, before: Option<Seen>, file: &Listed<'_>) -> Result<(Did, Seen)> {
        if let Some(seen) = before.as_ref().filter(|seen| seen.stamp == file.info.stamp && seen.settled) {
            return Ok((Did::Nothing, seen.clone()));
        }
        let now = self.clock.now().as_millisecond();
        let (bytes, version) = match file.info.size > extract::BYTES_MAX {
            true => (Vec::new(), Version::new(format!("large {}", file.info.stamp))),
            false => {
                let content = file.store.read_bytes(&file.info.locator)?;
                (content.bytes, content.version)
            }
        };
        let (mtime, settled) = (file.info.mtime.as_millisecond(), is_settled(&file.info, now));
        let row =
            FileRow { key: &file.key, stamp: file.info.stamp, version: version.as_str(), mtime, settled };
        let now = Seen { stamp: row.stamp, version: row.version.to_owned(), settled };
        if before.is_some_and(|seen| seen.version == now.version) {
            writer.touch(&row)?;
            return Ok((Did::Touched, now));
        }
        writer.put(&row, &extract::documents(&file.key, &bytes))?;
        Ok((Did::Read, now))
    }
}

/// What was done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Did {
    Nothing,
    Touched,
    Read,
}

impl<'a> Work<'a> {
    /// Takes a file that is there, if it is not what was seen.
    fn consider(&mut self, source: &'a Source, key: String, info: Info, seen: &HashMap<String, Seen>) {
        if seen.get(&key).is_none_or(|seen| seen.stamp != info.stamp || !seen.settled) {
            self.stale.push(Listed { store: &source.store, key, info });
        }
    }
}

/// Whether a file that is read now cannot change any more without a new stamp.
fn is_settled(info: &Info, now: i64) -> bool {
    let tick = if info.mtime.subsec_nanosecond() == 0 { COARSE_TICK_MS } else { TICK_MS };
    info.mtime.as_millisecond() + tick < now || info.version.is_some()
}

/// Notes which files are settled, if nobody else is writing.
fn note_settled(
    database: &mut Database,
    seen: &mut HashMap<String, Seen>,
    sound: &[(String, u64)],
) -> Result<()> {
    if sound.is_empty() {
        return Ok(());
    }
    database.connection.busy_timeout(Duration::ZERO).map_err(meant)?;
    let noted =
        database.connection.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|turn| {
            for (key, stamp) in sound {
                let sql = "UPDATE files SET settled = 1 WHERE key = ?1 AND stamp = ?2";
                turn.prepare_cached(sql)?.execute((key, stamp.cast_signed()))?;
            }
            turn.commit()
        });
    database.connection.busy_timeout(BUSY_WAIT).map_err(meant)?;
    for (key, _) in sound {
        if let Some(seen) = seen.get_mut(key) {
            seen.settled = true;
        }
    }
    match noted.map_err(meant) {
        Err(error) if error.kind() != Kind::Busy => Err(error),
        _ => Ok(()),
    }
}

/// What was seen of one file, by any process.
fn seen_by(connection: &rusqlite::Connection, key: &str) -> Result<Option<Seen>> {
    let sql = "SELECT stamp, version, settled FROM files WHERE key = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(meant)?;
    let read = |row: &rusqlite::Row<'_>| {
        let stamp: i64 = row.get(0)?;
        Ok(Seen { stamp: stamp.cast_unsigned(), version: row.get(1)?, settled: row.get(2)? })
    };
    statement.query_row([key], read).optional().map_err(meant)
}

/// What was seen of every file.
pub(crate) fn known(connection: &rusqlite::Connection) -> Result<HashMap<String, Seen>> {
    let mut statement =
        connection.prepare_cached("SELECT key, stamp, version, settled FROM files").map_err(meant)?;
    let read = |row: &rusqlite::Row<'_>| {
        let stamp: i64 = row.get(1)?;
        Ok((row.get(0)?, Seen { stamp: stamp.cast_unsigned(), version: row.get(2)?, settled: row.get(3)? }))
    };
    let rows = statement.query_map([], read).map_err(meant)?;
    rows.collect::<Result<_, _>>().map_err(meant)
}

/// Everything in a storage. Where a folder cannot be read, the others still are: what was known of
/// it is kept, because nobody has said that it is gone.
fn listing(source: &Source, unreadable: &mut Vec<String>) -> Result<Vec<Info>> {
    match source.store.list_all(&Locator::root()) {
        Err(error) if is_unreadable(&error) => {}
        listed => return listed,
    }
    let (mut found, mut folders) = (Vec::new(), vec![Locator::root()]);
    while let Some(folder) = folders.pop() {
        match source.store.backend().list(&folder, Depth::Children) {
            Ok(children) => {
                folders.extend(children.iter().filter(|info| info.is_dir()).map(|info| info.locator.clone()));
                found.extend(children);
            }
            Err(error) if is_unreadable(&error) && !folder.is_root() => {
                unreadable.push(joined(&source.under, &folder));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn is_unreadable(error: &Error) -> bool {
    matches!(error.kind(), Kind::Denied | Kind::Io | Kind::Invalid)
}

fn joined(under: &str, at: &Locator) -> String {
    if under.is_empty() { at.key().to_owned() } else { format!("{under}/{at}") }
}

fn within(key: &str, folder: &str) -> bool {
    !folder.is_empty()
        && key.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
