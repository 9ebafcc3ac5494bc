//! How things are found: a cache of the files that can be deleted at any time, outside the store,
//! shared by every process of the machine.
//!
//! Before every search the index is brought up to date: one listing, compared with what was seen
//! (see `sync`). A search weighs words (`lookup`), meaning (`embedding`) and what stands around
//! (`rank`), and answers within a budget of tokens (`recall`).
//!
//! The tables lie in SQLite for its log, locks and transactions. Ranking is ours: SQLite's own
//! full-text search scores every matching row through a lookup each, which takes longer than a
//! whole search may take once a hundred thousand documents share their words. Vectors lie in the
//! same file, so that they are never out of step with the documents, and each process keeps a flat
//! copy to scan; a mapped file would end the process if someone cut it short.

mod alike;
pub mod analysis;
mod brief;
mod database;
pub mod dates;
mod digest;
mod embedding;
mod extract;
mod facts;
mod filter;
mod hit;
mod keep;
mod lookup;
mod postings;
mod query;
mod rank;
mod recall;
mod search;
mod sync;
mod watch;
mod wordpiece;
mod write;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use crate::clock::Clock;
use crate::document::Document;
use crate::error::{Error, Kind, Result};
use analysis::Analysis;
use database::{Database, Home, meant};
use embedding::DIMENSIONS;
use lookup::Statistics;

pub use brief::Brief;
pub use database::Opener;
pub use embedding::{Embedder, Potion};
pub use hit::Hit;
pub use keep::{Difference, Status};
pub use rank::Parts;
pub use recall::{Recalled, Snippet};
pub use search::Found;
pub use sync::{Source, Synced};
pub use watch::{Noticed, Watch};
pub use wordpiece::tokens;

/// Told how many files of how many were read.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize);

/// How an index is made.
pub struct Options {
    /// The language whose words are stemmed; `none` stems nothing.
    pub language: String,
    /// What turns text into meaning; `None` finds by words alone.
    pub embedder: Option<Arc<dyn Embedder>>,
}

impl Default for Options {
    fn default() -> Self {
        Options { language: "english".to_owned(), embedder: Some(Arc::new(Potion)) }
    }
}

/// Where an index is kept.
pub enum Place {
    /// In a folder of the machine, which the system knows by this name.
    Folder(Opener, String),
    /// In this process alone.
    Ram,
}

/// One index over the files of a store.
pub struct Index {
    home: Option<Home>,
    sources: Vec<Source>,
    clock: Arc<dyn Clock>,
    analysis: Analysis,
    embedder: Option<Arc<dyn Embedder>>,
    state: Mutex<Option<State>>,
    /// Whether the process stays and asks again and again; then these watch the sources.
    stays: bool,
    watches: Vec<Arc<dyn Watch>>,
}

/// An open database, and what this process remembers of it.
struct State {
    database: Database,
    seen: HashMap<String, sync::Seen>,
    /// SQLite's count of changes by others, when `seen` was read.
    foreign: i64,
    statistics: Statistics,
    /// The vectors of all documents, by their numbers, as of this change.
    vectors: Vec<u8>,
    change: i64,
    hidden: Vec<usize>,
    facts: RefCell<facts::Facts>,
    look: watch::Look,
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
            home,
            sources,
            clock,
            analysis,
            embedder: options.embedder,
            state: Mutex::new(None),
            stays: false,
            watches: Vec::new(),
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
        self.with(&mut |_, _| (), |state, _| state.by_address(address))
    }

    /// The document of an address with so many before and after it in its file; none without one.
    ///
    /// # Errors
    /// As [`Index::sync`].
    pub fn around(&self, address: &str, count: usize) -> Result<Vec<Hit>> {
        self.with(&mut |_, _| (), |state, _| state.around(address, count))
    }

    /// Does something with an index that is up to date. A damaged one is left for a new one; one
    /// that is busy is not damaged.
    fn with<T>(
        &self,
        progress: Progress<'_>,
        mut work: impl FnMut(&mut State, Synced) -> Result<T>,
    ) -> Result<T> {
        let mut guard: MutexGuard<'_, Option<State>> =
            self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut healed = 0;
        loop {
            let tried = self.fresh(&mut guard, progress).and_then(|synced| {
                let state = guard.as_mut().expect("it was just opened");
                // One view of the index for the whole of the work, and its locks are taken once.
                state.run("BEGIN")?;
                let done = work(state, synced);
                let ended = state.run("COMMIT");
                done.and_then(|done| ended.map(|()| done))
            });
            let Err(error) = tried else { return tried };
            healed += 1;
            let Some(home) = self.home.as_ref().filter(|_| healed <= 3) else { return Err(error) };
            let generation = guard.take().map(|state| state.database.generation);
            match error.kind() {
                Kind::Corrupt => {
                    let damaged = generation.map_or_else(|| home.newest(), Ok)?;
                    *guard = Some(State::new(home.open_after(damaged)?)?);
                }
                // Someone has taken the file away beneath us.
                Kind::Io | Kind::Denied if healed == 1 => {}
                _ => return Err(error),
            }
        }
    }

    /// Opens the database if need be, and brings it up to date.
    fn fresh(&self, guard: &mut Option<State>, progress: Progress<'_>) -> Result<Synced> {
        if let (Some(home), Some(state)) = (&self.home, guard.as_ref())
            && !home.is_current(&state.database)?
        {
            *guard = None;
        }
        if guard.is_none() {
            let database = self.home.as_ref().map_or_else(Database::in_memory, Home::open)?;
            *guard = Some(State::new(database)?);
        }
        let state = guard.as_mut().expect("it was just opened");
        state.refresh()?;
        let synced = self.bring(&mut state.database, &mut state.seen, Some(&mut state.look), progress)?;
        if synced.read + synced.removed + synced.touched > 0 {
            state.reload()?;
        }
        if self.stays && state.facts.borrow().is_empty() {
            state.read_facts()?;
        }
        Ok(synced)
    }
}

impl State {
    fn new(database: Database) -> Result<Self> {
        let statistics = Statistics { documents: 0, length: 0, next: 0 };
        let mut state = State {
            database,
            seen: HashMap::new(),
            foreign: -1,
            statistics,
            vectors: Vec::new(),
            change: 0,
            hidden: Vec::new(),
            facts: RefCell::default(),
            look: watch::Look::default(),
        };
        state.refresh()?;
        Ok(state)
    }

    fn connection(&self) -> &Connection {
        &self.database.connection
    }

    fn run(&self, sql: &str) -> Result<()> {
        self.connection()
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map_err(meant)?;
        Ok(())
    }

    /// Looks whether another process has changed something.
    fn refresh(&mut self) -> Result<()> {
        let foreign = self
            .connection()
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(meant)?;
        if foreign != self.foreign {
            self.seen = sync::known(self.connection())?;
            self.look = watch::Look::default();
            self.reload()?;
            self.foreign = foreign;
        }
        Ok(())
    }

    /// Reads what has changed since it was read last.
    fn reload(&mut self) -> Result<()> {
        let [documents, length, next, change] = write::counts(self.connection())?;
        self.statistics = Statistics { documents, length, next };
        let mut vectors = std::mem::take(&mut self.vectors);
        {
            let sql = "SELECT block, data FROM vectors WHERE change > ?1";
            let mut statement = self.connection().prepare_cached(sql).map_err(meant)?;
            let mut rows = statement.query([self.change]).map_err(meant)?;
            while let Some(row) = rows.next().map_err(meant)? {
                let block: i64 = row.get(0).map_err(meant)?;
                let data = row.get_ref(1).map_err(meant)?;
                let data = data.as_blob().map_err(|_| postings::broken())?;
                let start =
                    usize::try_from(block * write::VECTORS).map_err(|_| postings::broken())? * DIMENSIONS;
                let rows_max = usize::try_from(next).unwrap_or(0).saturating_mul(DIMENSIONS);
                if start > rows_max || data.len() > write::VECTORS as usize * DIMENSIONS {
                    return Err(postings::broken());
                }
                vectors.resize(vectors.len().max(start + data.len()), 0);
                vectors[start..start + data.len()].copy_from_slice(data);
                self.facts.borrow_mut().forget(block);
            }
        }
        self.vectors = vectors;
        self.change = change;
        self.hidden = {
            let mut statement =
                self.connection().prepare_cached("SELECT id FROM docs WHERE hidden = 1").map_err(meant)?;
            let rows = statement.query_map([], |row| row.get::<_, i64>(0)).map_err(meant)?;
            let ids = rows.map(|id| id.map(|id| usize::try_from(id).unwrap_or(0)));
            ids.collect::<Result<_, _>>().map_err(meant)?
        };
        Ok(())
    }
}

/// The documents of one file, as every search sees them: for `read` of a part, and for tests.
pub fn documents(key: &str, bytes: &[u8]) -> Vec<Document> {
    extract::documents(key, bytes)
}
