//! The file that holds an index: one SQLite database for each generation, in a folder outside the
//! store that every process on the machine shares.
//!
//! The name says what is inside: `<format>-<language>-<model>.<generation>.db`. Another format or model
//! has another name, so the two are never confused; a damaged file is replaced by the next generation.
//! SQLite's own log and locks let processes read and write at the same time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result};
use crate::vfs::{Rename, Vfs};

/// The version of the tables below and of how documents are cut and analysed.
pub(crate) const FORMAT: &str = "mg6";
/// What the names of all formats begin with.
const FORMATS: &str = "mg";
/// How long an index of another format is kept for an older program that may still use it.
const OLD_NS: i128 = 30 * 24 * 60 * 60 * 1_000_000_000;
/// How long to wait for another process that writes.
pub(crate) const BUSY_WAIT: Duration = Duration::from_secs(20);
/// The pause between attempts where SQLite does not wait by itself.
const BUSY_PAUSE: Duration = Duration::from_millis(5);
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS files (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, stamp INTEGER NOT NULL, version TEXT NOT NULL,
  mtime INTEGER NOT NULL, settled INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS docs (
  id INTEGER PRIMARY KEY, file INTEGER NOT NULL, ord INTEGER NOT NULL, terms BLOB NOT NULL, whole BLOB NOT NULL,
  address TEXT NOT NULL, shape TEXT NOT NULL, kind TEXT NOT NULL, date INTEGER, importance INTEGER NOT NULL,
  uses INTEGER NOT NULL, hidden INTEGER NOT NULL, begins INTEGER, ends INTEGER, grp TEXT NOT NULL, name TEXT NOT NULL, title TEXT NOT NULL,
  linking INTEGER NOT NULL, says INTEGER NOT NULL, head_tokens INTEGER NOT NULL, text_tokens INTEGER NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS docs_place ON docs (file, ord);
CREATE INDEX IF NOT EXISTS docs_address ON docs (address);
CREATE INDEX IF NOT EXISTS docs_name ON docs (name) WHERE name <> '';
CREATE INDEX IF NOT EXISTS docs_date ON docs (date) WHERE date IS NOT NULL;
CREATE INDEX IF NOT EXISTS docs_hidden ON docs (id) WHERE hidden = 1;
CREATE INDEX IF NOT EXISTS docs_timed ON docs (id) WHERE begins IS NOT NULL;
CREATE TABLE IF NOT EXISTS bodies (
  id INTEGER PRIMARY KEY, subject TEXT NOT NULL, body TEXT NOT NULL, tags TEXT NOT NULL,
  links TEXT NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS postings (
  term TEXT NOT NULL, block INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (term, block)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS vectors (block INTEGER PRIMARY KEY, change INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS vectors_change ON vectors (change);
CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
";

/// Opens the folder of an index, and makes it if it is missing: someone may delete it at any time.
pub type Opener = Arc<dyn Fn() -> Result<Arc<dyn Vfs>> + Send + Sync>;

/// Where generations lie.
#[derive(Clone)]
pub(crate) struct Home {
    opener: Opener,
    location: String,
    stem: String,
}

/// One open generation.
pub(crate) struct Database {
    /// The connection.
    pub(crate) connection: Connection,
    /// Which generation it is; 0 for one in memory.
    pub(crate) generation: u64,
    inode: u64,
    folder: Option<Arc<dyn Vfs>>,
}

/// Which file a database is.
pub(crate) type Identity = (u64, u64);

/// How many times opening is tried when the generation is removed at the same moment.
const OPENINGS_MAX: u32 = 20;

impl Home {
    /// The generations with one stamp in a folder. `location` is the folder's path for the system.
    pub(crate) fn new(opener: Opener, location: &str, stamp: &str) -> Self {
        let location = location.trim_end_matches('/').to_owned();
        Home { opener, location, stem: format!("{FORMAT}-{stamp}") }
    }

    fn folder(&self) -> Result<Arc<dyn Vfs>> {
        (self.opener)()
    }

    /// The file of a generation.
    pub(crate) fn file(&self, generation: u64) -> String {
        format!("{}.{generation}.db", self.stem)
    }

    /// The newest generation that is there; 0 for none.
    pub(crate) fn newest(&self) -> Result<u64> {
        let names = self.folder()?.names("", usize::MAX).map_err(|error| self.failed(error))?;
        Ok(names.iter().filter_map(|name| self.generation(name)).max().unwrap_or(0))
    }

    fn generation(&self, name: &str) -> Option<u64> {
        name.strip_prefix(&self.stem)?.strip_prefix('.')?.strip_suffix(".db")?.parse().ok()
    }

    /// Opens the newest generation, or makes the first.
    pub(crate) fn open(&self) -> Result<Database> {
        self.opened(|| Ok(self.newest()?.max(1)))
    }

    /// Opens a generation, or its successor if the file has just been removed.
    fn opened(&self, generation: impl Fn() -> Result<u64>) -> Result<Database> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.open_generation(generation()?) {
                Err(error) if error.kind() == Kind::NotFound && attempt < OPENINGS_MAX => {}
                other => return other,
            }
        }
    }

    /// Gives up a damaged generation, and opens the next one, which begins empty.
    pub(crate) fn open_after(&self, damaged: u64) -> Result<Database> {
        let opened = self.opened(|| Ok(self.newest()?.max(damaged + 1)))?;
        self.remove_before(opened.generation);
        Ok(opened)
    }

    fn open_generation(&self, generation: u64) -> Result<Database> {
        let name = self.file(generation);
        let connection = connected(&format!("{}/{name}", self.location))?;
        let folder = self.folder()?;
        let inode = folder.stat(&name).map_err(|error| self.failed(error))?.inode;
        Ok(Database { connection, generation, inode, folder: Some(folder) })
    }

    /// Creates a database beside the generations, and returns it with its name. [`Home::take`] makes it
    /// the next generation once it is filled.
    pub(crate) fn aside(&self, name: &str) -> Result<(Database, String)> {
        let name = format!("{}.{name}.aside", self.stem);
        self.remove(&name);
        let connection = connected(&format!("{}/{name}", self.location))?;
        Ok((Database { connection, generation: 0, inode: 0, folder: None }, name))
    }

    /// Makes a database from [`Home::aside`] the newest generation.
    pub(crate) fn take(&self, database: Database, name: &str) -> Result<()> {
        // Closing folds the log into the file, which is then complete by itself.
        database.connection.close().map_err(|(_, error)| meant(error))?;
        loop {
            let next = self.newest()? + 1;
            match self.folder()?.rename(name, &self.file(next), Rename::NoReplace) {
                Ok(()) => {
                    self.remove_before(next);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// Whether an open generation is still the newest, and its name still leads to the same file.
    pub(crate) fn is_current(&self, database: &Database) -> Result<bool> {
        let name = self.file(database.generation);
        let there = self.folder()?.stat(&name).is_ok_and(|stat| stat.inode == database.inode);
        Ok(there && self.newest()? == database.generation)
    }

    /// Whether the name of an open generation still leads to the same file, in the folder that it was
    /// opened in.
    pub(crate) fn has(&self, database: &Database) -> bool {
        let stat = database.folder.as_ref().map(|folder| folder.stat(&self.file(database.generation)));
        stat.is_some_and(|stat| stat.is_ok_and(|stat| stat.inode == database.inode))
    }

    /// The bytes of the newest generation, its log included.
    pub(crate) fn bytes(&self) -> u64 {
        let name = self.file(self.newest().unwrap_or(0));
        let Ok(folder) = self.folder() else { return 0 };
        let size = |name: &str| folder.stat(name).map_or(0, |stat| stat.size);
        size(&name) + size(&format!("{name}-wal"))
    }

    fn remove_before(&self, generation: u64) {
        let Ok(folder) = self.folder() else { return };
        let names = folder.names("", usize::MAX).unwrap_or_default();
        let old = |name: &&String| self.generation(name).is_some_and(|number| number < generation);
        names.iter().filter(old).for_each(|name| self.remove(name));
    }

    /// Removes the indexes of other formats that have not been written to for long.
    pub(crate) fn remove_outgrown(&self, now: Timestamp) {
        let Ok(folder) = self.folder() else { return };
        let names = folder.names("", usize::MAX).unwrap_or_default();
        let is_other = |name: &str| {
            let format = name.split('-').next().unwrap_or_default();
            let number = format.strip_prefix(FORMATS).is_some_and(|number| number.parse::<u32>().is_ok());
            number && format != FORMAT && name.ends_with(".db")
        };
        let written = |name: &str| folder.stat(name).map_or(i128::MIN, |stat| stat.mtime_ns);
        for name in names.iter().filter(|name| is_other(name)) {
            let last = ["", "-wal"].iter().map(|end| written(&format!("{name}{end}"))).max();
            if last.is_some_and(|last| last + OLD_NS < now.as_nanosecond()) {
                self.remove(name);
            }
        }
    }

    /// Removes a database. A process that has it open keeps it until its next search.
    fn remove(&self, name: &str) {
        let Ok(folder) = self.folder() else { return };
        for end in ["", "-wal", "-shm"] {
            // A file that is already gone is fine.
            let _ = folder.remove_file(&format!("{name}{end}"));
        }
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::from_io(error, &self.location)
            .while_doing("the index cannot be kept")
            .hint("check the owner and the mode of the cache's folder; the memories are safe")
    }
}

impl Database {
    /// An index that lives as long as this process looks at it.
    pub(crate) fn in_memory() -> Result<Database> {
        let connection = prepared(Connection::open_in_memory())?;
        connection.execute_batch(TABLES).map_err(meant)?;
        Ok(Database { connection, generation: 0, inode: 0, folder: None })
    }

    /// Which file it is.
    pub(crate) fn identity(&self) -> Identity {
        (self.generation, self.inode)
    }

    /// Begins a read transaction: from here on, what others write is not seen.
    pub(crate) fn begin(&self) -> Result<()> {
        self.end()?;
        self.run("BEGIN")
    }

    /// Ends the read transaction, so that what others have written is seen.
    pub(crate) fn end(&self) -> Result<()> {
        match self.connection.is_autocommit() {
            true => Ok(()),
            false => self.run("ROLLBACK"),
        }
    }

    fn run(&self, sql: &str) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql).map_err(meant)?;
        statement.execute([]).map_err(meant)?;
        Ok(())
    }
}

fn connected(location: &str) -> Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = prepared(Connection::open_with_flags(location, flags))?;
    write_ahead(&connection)?;
    connection.busy_timeout(BUSY_WAIT).map_err(meant)?;
    // Deleted data is overwritten: a memory that was removed must not linger here.
    let pragmas = "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -4000; PRAGMA temp_store = MEMORY; \
                   PRAGMA secure_delete = ON;";
    connection.execute_batch(pragmas).map_err(meant)?;
    if !has_tables(&connection)? {
        // The first process makes the tables; the others wait, and look again.
        connection.execute_batch("BEGIN IMMEDIATE").map_err(meant)?;
        if !has_tables(&connection)? {
            connection.execute_batch(TABLES).map_err(meant)?;
        }
        connection.execute_batch("COMMIT").map_err(meant)?;
    }
    Ok(connection)
}

/// Switches a database to write-ahead logging. If several processes do that to a new one at once, SQLite
/// does not wait but refuses all but one, so the wait is done here.
fn write_ahead(connection: &Connection) -> Result<()> {
    connection.busy_timeout(Duration::ZERO).map_err(meant)?;
    let mut left = BUSY_WAIT;
    loop {
        match connection.execute_batch("PRAGMA journal_mode = WAL").map_err(meant) {
            Err(error) if error.kind() == Kind::Busy && !left.is_zero() => {
                std::thread::sleep(BUSY_PAUSE);
                left = left.saturating_sub(BUSY_PAUSE);
            }
            done => return done,
        }
    }
}

/// Returns a connection that prepares each statement once. Otherwise SQLite would plan a statement again
/// for every new parameter value, which takes longer than running it.
fn prepared(opened: rusqlite::Result<Connection>) -> Result<Connection> {
    let connection = opened.map_err(meant)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(meant)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn has_tables(connection: &Connection) -> Result<bool> {
    let count = "SELECT count(*) FROM sqlite_master WHERE name = 'counts'";
    let there: i64 = connection.query_row(count, [], |row| row.get(0)).map_err(meant)?;
    Ok(there > 0)
}

/// What an error of SQLite means: busy is not corrupt, and a full disk is neither.
pub(crate) fn meant(error: rusqlite::Error) -> Error {
    let kind = match &error {
        rusqlite::Error::SqliteFailure(failure, message) => match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Kind::Busy,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Kind::Corrupt,
            // Missing tables or impossible rows mean that someone has changed the file.
            ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch => Kind::Corrupt,
            ErrorCode::Unknown if message.as_ref().is_some_and(|text| text.contains("no such")) => {
                Kind::Corrupt
            }
            ErrorCode::DiskFull => Kind::Full,
            ErrorCode::PermissionDenied | ErrorCode::ReadOnly => Kind::Denied,
            _ => Kind::Io,
        },
        rusqlite::Error::SqlInputError { msg, .. } if msg.contains("no such") => Kind::Corrupt,
        rusqlite::Error::QueryReturnedNoRows
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::Utf8Error(..) => Kind::Corrupt,
        _ => Kind::Io,
    };
    let made = Error::new(kind, format!("the index cannot be used: {error}"));
    let made = match kind {
        Kind::Busy => made.hint("another process is building it: try again in a moment"),
        Kind::Corrupt => made.hint("it is rebuilt automatically; `memgrove index rebuild` does it now"),
        _ => made.hint("the memories are safe: the index can be deleted at any time"),
    };
    made.caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// Those who come first make the file, all at once.
    #[test]
    fn a_crowd_opens_a_new_file() {
        const CROWD: usize = 8;
        let folder = tempfile::tempdir().expect("a temporary folder");
        for round in 0..40 {
            let location = folder.path().join(format!("{round}.db"));
            let (location, barrier) = (location.to_str().expect("text"), Barrier::new(CROWD));
            let open = || {
                barrier.wait();
                connected(location).map(drop)
            };
            std::thread::scope(|scope| {
                let opening: Vec<_> = (0..CROWD).map(|_| scope.spawn(open)).collect();
                for opened in opening {
                    opened.join().expect("it does not panic").expect("it opens");
                }
            });
        }
    }
}
