//! How search works: an index of the store's files, kept outside the store, shared by every process of the
//! machine and safe to delete at any time.
//!
//! Before every search the index is brought up to date: one listing, compared with what was seen
//! (see `sync`). A search weighs words (`scoring`), meaning (`embedding`) and what stands around
//! (`rank`), and answers within a budget of tokens (`recall`). The modules stand in that order below.
//!
//! The tables lie in SQLite for its log, locks and transactions. Ranking is ours: SQLite's own
//! full-text search scores every matching row through a lookup each, which takes longer than a
//! whole search may take once a hundred thousand documents share their words. Vectors lie in the
//! same file, so that they are never out of step with the documents, and each process keeps a flat
//! copy to scan; a mapped file would end the process if someone cut it short.

// What is in the store, piece by piece.
mod extract;
mod lists;

// Keeping in step with the files.
mod digest;
mod keep;
mod listing;
mod odd;
mod patrol;
mod sync;
mod watch;
mod write;

// The tables, and what of them is in memory.
mod database;
mod facts;
mod known;
mod postings;
mod recent;
mod spare;
mod turns;

// Understanding a question.
pub mod analysis;
mod border;
pub mod dates;
mod query;
mod spoken;
mod wordpiece;

// Finding and ranking what answers it.
mod embedding;
mod filter;
mod linked;
mod matching;
mod prefix;
mod rank;
mod scoring;
mod search;
mod timely;

// Telling it within a budget.
mod alike;
mod brief;
mod hit;
mod recall;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use rusqlite::Connection;

use crate::clock::{Clock, TimeZone, Timestamp};
use crate::document::Document;
use crate::error::{Error, Kind, Result};
use analysis::Analysis;
use database::{Database, Home};
use known::Known;
use spare::Spare;
use sync::Files;
use turns::Turns;

pub use brief::Brief;
pub use database::Opener;
pub use embedding::{Embedder, Potion};
pub use hit::Hit;
pub use keep::{Difference, Status};
pub use query::sought;
pub use rank::Parts;
pub use recall::{Recalled, Snippet};
pub use search::{Found, Reach};
pub use sync::{Source, Synced};
pub use watch::{Noticed, Watch};
pub use wordpiece::tokens;

/// Called with how many files have been read, of how many.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize);

/// How an index is made.
pub struct Options {
    /// The language whose words are stemmed; `none` stems nothing.
    pub language: String,
    /// What turns text into meaning; `None` finds by words alone.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Where whoever asks is: `yesterday` is a day there.
    pub zone: TimeZone,
}

impl Default for Options {
    fn default() -> Self {
        let embedder: Arc<dyn Embedder> = Arc::new(Potion);
        Options { language: "english".to_owned(), embedder: Some(embedder), zone: TimeZone::UTC }
    }
}

/// Where an index is kept.
pub enum Place {
    /// In a folder of the machine, which the system knows by this name.
    Folder(Opener, String),
    /// In this process alone.
    Ram,
}

/// The upper bound of [`at_once`], for machines with many processors.
const AT_ONCE_MAX: usize = 8;

/// Returns how many threads may search an index at once: one more than there are processors, because one
/// of them may be waiting while the files are compared. The others wait their turn.
pub fn at_once() -> usize {
    (thread::available_parallelism().map_or(1, usize::from) + 1).min(AT_ONCE_MAX)
}

/// How many times one search compares the files while other processes keep writing into the index.
const LOOKS_MAX: usize = 8;

/// One index over the files of a store.
pub struct Index {
    home: Option<Home>,
    sources: Vec<Source>,
    clock: Arc<dyn Clock>,
    analysis: Arc<Analysis>,
    embedder: Option<Arc<dyn Embedder>>,
    zone: TimeZone,
    turns: Turns,
    /// Locked while the files are compared with the index, and never while a search runs.
    held: Mutex<Held>,
    /// Whether the process is long-lived and asks repeatedly; if so, `watches` watch the sources.
    stays: bool,
    watches: Vec<Arc<dyn Watch>>,
    /// A handle to itself, for the thread that checks what the watches report.
    myself: Weak<Index>,
    /// The stand-in, in memory, while the index on disk cannot be used.
    spare: Spare,
}

/// What this process remembers of an index.
#[derive(Default)]
struct Held {
    /// Which file this was read from, and when it was last known that no newer one exists.
    of: Option<database::Identity>,
    sure_at: i64,
    files: Files,
    known: Arc<Known>,
}

/// Does something with an index that is up to date.
type Work<'a, T> = &'a mut dyn FnMut(&View<'_>, Synced) -> Result<T>;

/// The index at one moment: a connection that sees nothing later, and what is known in memory.
struct View<'a> {
    database: &'a Database,
    known: &'a Known,
    now: Timestamp,
    zone: &'a TimeZone,
}

impl Index {
    /// An index over these storages. Nothing is read or made before it is first asked.
    ///
    /// # Errors
    /// `Invalid` for a language without a stemmer.
    pub fn new(place: Place, sources: Vec<Source>, clock: Arc<dyn Clock>, options: Options) -> Result<Self> {
        let analysis = Analysis::of(&options.language).ok_or_else(|| {
            let names: Vec<&str> = Analysis::languages().collect();
            Error::new(
                Kind::Invalid,
                format!("there is no stemmer for `{}`", options.language.escape_debug()),
            )
            .hint(format!("choose from: {}", names.join(", ")))
        })?;
        let model = options.embedder.as_ref().map_or("words", |embedder| embedder.name());
        let home = match place {
            Place::Folder(opener, location) => {
                Some(Home::new(opener, &location, &format!("{}-{model}", analysis.language())))
            }
            Place::Ram => None,
        };
        Ok(Index {
            // A database in memory has only one connection.
            turns: Turns::new(if home.is_some() { at_once() } else { 1 }),
            home,
            sources,
            clock,
            analysis: Arc::new(analysis),
            embedder: options.embedder,
            zone: options.zone,
            held: Mutex::default(),
            stays: false,
            watches: Vec::new(),
            myself: Weak::new(),
            spare: Spare::default(),
        })
    }

    /// Brings the index up to date with the files.
    ///
    /// # Errors
    /// `Busy` if another process keeps writing; as the storage says.
    pub fn sync(&self, progress: Progress<'_>) -> Result<Synced> {
        self.with(progress, |_, synced| Ok(synced))
    }

    /// The document of an address, if there is one.
    ///
    /// # Errors
    /// As [`Index::sync`].
    pub fn document(&self, address: &str) -> Result<Option<Hit>> {
        self.with(&mut |_, _| (), |view, _| view.by_address(address))
    }

    /// Returns the document at an address with up to `count` documents before and after it in its file;
    /// empty if there is none.
    ///
    /// # Errors
    /// As [`Index::sync`].
    pub fn around(&self, address: &str, count: usize) -> Result<Vec<Hit>> {
        self.with(&mut |_, _| (), |view, _| view.around(address, count))
    }

    /// Runs `work` on an index that is up to date: the one on disk, or one in memory where access to that
    /// is denied.
    fn with<T>(
        &self,
        progress: Progress<'_>,
        mut work: impl FnMut(&View<'_>, Synced) -> Result<T>,
    ) -> Result<T> {
        match self.tried(progress, &mut work) {
            Err(error) if error.kind() == Kind::Denied => match self.in_memory() {
                Some(spare) => self.noting(error, spare.tried(progress, &mut work)),
                None => Err(error),
            },
            done => done,
        }
    }

    /// As [`Index::with`], on this index only. A damaged database is replaced by a new one; a busy one is
    /// not damaged.
    fn tried<T>(&self, progress: Progress<'_>, work: Work<'_, T>) -> Result<T> {
        self.list_again();
        let mut turn = self.turns.turn();
        let mut healed = 0;
        loop {
            let tried = self.fresh(&mut turn.database, progress).and_then(|(known, synced)| {
                let database = turn.database.as_ref().expect("it was just opened");
                let view = View { database, known: &known, now: self.clock.now(), zone: &self.zone };
                work(&view, synced)
            });
            let Err(error) = tried else { return tried };
            healed += 1;
            let Some(home) = self.home.as_ref().filter(|_| healed <= 3) else { return Err(error) };
            match error.kind() {
                Kind::Corrupt => {
                    let damaged = turn.database.take().map(|database| database.generation);
                    let damaged = damaged.map_or_else(|| home.newest(), Ok)?;
                    turn.database = Some(home.open_after(damaged)?);
                }
                // Someone has removed the file while it was open, or truncated it.
                Kind::Io => turn.database = None,
                Kind::Denied if healed == 1 => turn.database = None,
                _ => return Err(error),
            }
        }
    }

    /// Opens the database if need be, brings it up to date, and begins a read transaction: from here on
    /// the connection sees one moment, and its locks are taken once.
    ///
    /// Whatever was written before this call is included. Threads that arrive while another compares the
    /// files wait for it, and then find little to do.
    fn fresh(&self, database: &mut Option<Database>, progress: Progress<'_>) -> Result<(Arc<Known>, Synced)> {
        let held = &mut *self.held();
        let database = self.current(database, held)?;
        let mut synced = Synced::default();
        let mut change = 0;
        for _ in 0..LOOKS_MAX {
            database.begin()?;
            change = held.files.follow(&database.connection)?;
            let work = self.work(&mut held.files)?;
            let writes = work.writes();
            if writes {
                database.end()?;
            }
            synced.add(self.bring(database, &mut held.files, work, progress)?);
            if !writes {
                break;
            }
            database.begin()?;
            change = write::changes(&database.connection)?;
            // What others wrote meanwhile may come from an older listing of the files than ours.
            if held.files.are_of(change) {
                break;
            }
        }
        Known::follow(&mut held.known, &database.connection, change, self.stays)?;
        Ok((Arc::clone(&held.known), synced))
    }

    /// Returns the newest database, opened, and forgets what was remembered of any other.
    fn current<'a>(&self, database: &'a mut Option<Database>, held: &mut Held) -> Result<&'a mut Database> {
        if let (Some(home), Some(open)) = (&self.home, database.as_ref()) {
            let now = self.clock.now().as_millisecond();
            let is_sure = watch::is_recent(held.sure_at, now);
            let is_current = if is_sure { home.has(open) } else { home.is_current(open)? };
            if !is_current {
                *database = None;
            } else if !is_sure {
                held.sure_at = now;
            }
        }
        if database.is_none() {
            let open = |home: &Home| {
                home.remove_outgrown(self.clock.now());
                home.open().map_err(spare::unusable)
            };
            *database = Some(self.home.as_ref().map_or_else(Database::in_memory, open)?);
        }
        let database = database.as_mut().expect("it was just opened");
        if held.of != Some(database.identity()) {
            *held = Held { of: Some(database.identity()), ..Held::default() };
        }
        Ok(database)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl View<'_> {
    fn connection(&self) -> &Connection {
        &self.database.connection
    }
}

/// Whether searches look into a file of the store.
pub fn is_searched(key: &str) -> bool {
    extract::wants(key)
}

/// The documents of one file, as every search sees them: for `read` of a part, and for tests.
pub fn documents(key: &str, bytes: &[u8]) -> Vec<Document> {
    extract::documents(key, bytes)
}
