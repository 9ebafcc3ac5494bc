//! How the index is kept true to the files: what is listed through the backend is compared with what was
//! seen before (see `listing`). Nothing is trusted that a listing does not show.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::database::{BUSY_WAIT, Database, meant};
use super::listing::{Listed, Work};
use super::watch::Look;
use super::write::{FileRow, Writer, changes};
use super::{Index, Progress, extract};
use crate::backend::{Content, Info, Version};
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::store::Store;

/// How many new documents are committed together, so that other processes get their turn.
const BATCH_DOCUMENTS: usize = 4_000;
/// About how many bytes are read before they are written into the index.
const AHEAD_BYTES: u64 = 16 << 20;
/// A file that was modified less than this before it was read may change again without a new stamp: some
/// file systems tick in milliseconds, others in seconds.
const TICK_MS: i64 = 100;
const COARSE_TICK_MS: i64 = 2_000;

/// A storage whose files are indexed, and where its keys begin in the index.
#[derive(Clone)]
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
    /// Files that were written again with the same content.
    pub touched: usize,
    /// Folders and files that could not be read: what was known of them is kept.
    pub unreadable: Vec<String>,
}

impl Synced {
    /// Adds what a further sync did; of what cannot be read, the later one knows best.
    pub(super) fn add(&mut self, later: Synced) {
        self.read += later.read;
        self.removed += later.removed;
        self.touched += later.touched;
        self.unreadable = later.unreadable;
    }
}

/// What was seen of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(super) stamp: u64,
    pub(super) version: String,
    pub(super) settled: bool,
}

impl Seen {
    /// Whether both have the same stamp and content.
    fn is_of(&self, other: &Seen) -> bool {
        self.stamp == other.stamp && self.version == other.version
    }
}

/// What a process has seen of the files.
#[derive(Default)]
pub(crate) struct Files {
    pub(super) seen: HashMap<String, Seen>,
    /// The number of index changes for which `seen` is complete.
    change: i64,
    pub(super) look: Look,
    /// Files that a listing found changed; each is still to be looked at.
    pub(super) doubts: Vec<(usize, Locator)>,
    /// Files found to be settled, with their stamps, which the index does not know yet.
    pub(super) settled: Vec<(String, u64)>,
}

impl Files {
    /// Takes over what other processes have written, and returns how often the index has changed. After a
    /// change all files are listed again, because what others saw may be older than what this process saw.
    pub(super) fn follow(&mut self, connection: &Connection) -> Result<i64> {
        let change = changes(connection)?;
        if change != self.change {
            *self = Files { seen: known(connection)?, change, ..Files::default() };
        }
        Ok(change)
    }

    /// Whether `seen` is complete for this number of changes.
    pub(super) fn are_of(&self, change: i64) -> bool {
        change == self.change
    }
}

impl Index {
    /// Brings a database up to date with the files.
    pub(super) fn bring(
        &self,
        database: &mut Database,
        files: &mut Files,
        work: Work<'_>,
        progress: Progress<'_>,
    ) -> Result<Synced> {
        let mut synced = Synced { unreadable: work.unreadable, ..Synced::default() };
        let total = work.stale.len();
        let mut left = work.stale.into_iter().peekable();
        let mut gone = work.gone;
        let mut held = VecDeque::new();
        while left.peek().is_some() || !held.is_empty() || !gone.is_empty() {
            if held.is_empty() {
                // Read before the write lock is taken, so that nobody waits for a remote storage.
                held = read_ahead(&mut left, self.clock.now().as_millisecond());
            }
            let transaction = database
                .connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(meant)?;
            let mut writer = Writer::new(&transaction, &self.analysis, self.embedder.as_deref())?;
            let mut learnt = Vec::new();
            for key in gone.drain(..) {
                // While this process waited for the lock, the file may have come back and another process
                // may have indexed it.
                let now = seen_by(&transaction, &key)?;
                let is_known = |now: &Seen| files.seen.get(&key).is_some_and(|seen| seen.is_of(now));
                if now.as_ref().is_none_or(is_known) {
                    synced.removed += usize::from(writer.remove(&key)?);
                    learnt.push((key, None));
                }
            }
            while writer.pending() < BATCH_DOCUMENTS
                && let Some(Held { file, content, read_ms }) = held.pop_front()
            {
                let before = seen_by(&transaction, &file.key)?;
                match self.learn(&mut writer, before, &file, content, read_ms) {
                    Ok((did, now)) => {
                        synced.read += usize::from(did == Did::Read);
                        synced.touched += usize::from(did == Did::Touched);
                        learnt.push((file.key, Some(now)));
                    }
                    // Gone since it was listed; the next sync notices that.
                    Err(error) if error.kind() == Kind::NotFound => {}
                    Err(error) if is_unreadable(&error) => synced.unreadable.push(file.key),
                    Err(error) => return Err(error),
                }
            }
            let change = writer.finish()?;
            transaction.commit().map_err(meant)?;
            // If others have written in between, `seen` is incomplete, and the number stays behind.
            files.change += i64::from(files.change + 1 == change);
            for (key, now) in learnt {
                match now {
                    Some(now) => files.seen.insert(key, now),
                    None => files.seen.remove(&key),
                };
            }
            progress(total - left.len() - held.len(), total);
        }
        note_settled(database, &mut files.seen, &work.sound)?;
        if synced.unreadable.is_empty() {
            files.look = work.look;
        }
        Ok(synced)
    }

    /// Indexes a file if it has changed, and returns what is now seen of it.
    fn learn(
        &self,
        writer: &mut Writer<'_>,
        before: Option<Seen>,
        file: &Listed<'_>,
        content: Option<Result<Content>>,
        read_ms: i64,
    ) -> Result<(Did, Seen)> {
        if let Some(seen) = before.as_ref().filter(|seen| seen.stamp == file.info.stamp && seen.settled) {
            return Ok((Did::Nothing, seen.clone()));
        }
        let (bytes, version) = match content.transpose()? {
            None => (Vec::new(), Version::new(format!("large {}", file.info.stamp))),
            Some(content) => (content.bytes, content.version),
        };
        let (mtime, settled) = (file.info.mtime.as_millisecond(), is_settled(&file.info, read_ms));
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

/// A file and its content; no content if the file is too large.
struct Held<'a> {
    file: Listed<'a>,
    content: Option<Result<Content>>,
    /// A moment before the content was read.
    read_ms: i64,
}

/// Reads the next files, many at once where their storage is remote.
fn read_ahead<'a>(left: &mut impl Iterator<Item = Listed<'a>>, read_ms: i64) -> VecDeque<Held<'a>> {
    let (mut files, mut bytes) = (Vec::new(), 0);
    while files.len() < BATCH_DOCUMENTS
        && bytes < AHEAD_BYTES
        && let Some(file) = left.next()
    {
        bytes += file.info.size.min(extract::BYTES_MAX);
        files.push(file);
    }
    let is_read = |file: &Listed<'_>| file.info.size <= extract::BYTES_MAX;
    let mut contents = VecDeque::new();
    for part in files.chunk_by(|one, other| std::ptr::eq(one.store, other.store)) {
        let places: Vec<Locator> =
            part.iter().filter(|file| is_read(file)).map(|file| file.info.locator.clone()).collect();
        contents.extend(part[0].store.read_many(&places));
    }
    let with = |file: Listed<'a>| {
        let content = if is_read(&file) { contents.pop_front() } else { None };
        Held { file, content, read_ms }
    };
    files.into_iter().map(with).collect()
}

/// What was done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Did {
    Nothing,
    Touched,
    Read,
}

/// Whether a file read at `now` cannot change any more without a new stamp.
pub(super) fn is_settled(info: &Info, now: i64) -> bool {
    let tick = if info.mtime.subsec_nanosecond() == 0 { COARSE_TICK_MS } else { TICK_MS };
    info.mtime.as_millisecond() + tick < now || info.version.is_some()
}

/// Notes in the index which files are settled, unless another process is writing.
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

/// Returns what any process has seen of one file.
fn seen_by(connection: &Connection, key: &str) -> Result<Option<Seen>> {
    let sql = "SELECT stamp, version, settled FROM files WHERE key = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(meant)?;
    let read = |row: &rusqlite::Row<'_>| {
        let stamp: i64 = row.get(0)?;
        Ok(Seen { stamp: stamp.cast_unsigned(), version: row.get(1)?, settled: row.get(2)? })
    };
    statement.query_row([key], read).optional().map_err(meant)
}

/// Returns what any process has seen of every file.
fn known(connection: &Connection) -> Result<HashMap<String, Seen>> {
    let mut statement =
        connection.prepare_cached("SELECT key, stamp, version, settled FROM files").map_err(meant)?;
    let read = |row: &rusqlite::Row<'_>| {
        let stamp: i64 = row.get(1)?;
        Ok((row.get(0)?, Seen { stamp: stamp.cast_unsigned(), version: row.get(2)?, settled: row.get(3)? }))
    };
    let rows = statement.query_map([], read).map_err(meant)?;
    rows.collect::<Result<_, _>>().map_err(meant)
}

pub(super) fn is_unreadable(error: &Error) -> bool {
    matches!(error.kind(), Kind::Denied | Kind::Io | Kind::Invalid)
}
