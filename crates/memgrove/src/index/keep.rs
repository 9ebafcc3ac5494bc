//! How an index is maintained: what state it is in, how it is rebuilt beside the old one, and how it is
//! proved equal to a new one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::database::{Database, meant};
use super::digest::{self, COLUMNS, kept};
use super::known::Known;
use super::postings;
use super::sync::{Files, Synced};
use super::{Held, Index, Progress, View, write};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::tier::{DerivedMaintenance, Tier};

/// How an index stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Documents that can be found.
    pub documents: usize,
    /// Files that they come from.
    pub files: usize,
    /// Bytes on disk; 0 in memory.
    pub bytes: u64,
    /// The file's name; empty in memory.
    pub file: String,
    /// The language whose words are stemmed.
    pub language: String,
    /// The model that meaning comes from; empty where it is off.
    pub model: String,
    /// What the last look at the files did.
    pub synced: Synced,
}

/// Something that an index has and a new one would not, or the other way round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What, as a sentence.
    pub what: String,
}

/// What an index holds, described so that the order in which it was built does not show.
type Dump = BTreeMap<String, String>;

impl Index {
    /// Says how the index stands, after a look at the files.
    ///
    /// # Errors
    /// As [`Index::sync`].
    pub fn status(&self) -> Result<Status> {
        let kept = |view: &View<'_>| self.home.as_ref().filter(|_| view.database.generation > 0);
        self.with(&mut |_, _| (), |view, synced| {
            Ok(Status {
                documents: usize::try_from(view.known.statistics.documents).unwrap_or(0),
                files: view.files()?,
                bytes: kept(view).map_or(0, |home| home.bytes()),
                file: kept(view).map_or_else(String::new, |home| home.file(view.database.generation)),
                language: self.analysis.language().to_owned(),
                model: self.embedder.as_ref().map_or_else(String::new, |embedder| embedder.name().to_owned()),
                synced,
            })
        })
    }

    /// Builds a new index beside the old one, and then puts it in its place.
    ///
    /// # Errors
    /// As [`Index::sync`]; the old index stays.
    pub fn rebuild(&self, progress: Progress<'_>) -> Result<Synced> {
        let Some(home) = &self.home else {
            let mut turn = self.turns.turn();
            turn.database = None;
            *self.held() = Held::default();
            drop(turn);
            return self.sync(progress);
        };
        let (mut database, name) = home.aside(&self.clock.now().as_nanosecond().to_string())?;
        let synced = self.fill(&mut database, progress)?;
        // The next search finds that the old one is gone.
        let _held = self.held();
        home.take(database, &name)?;
        Ok(synced)
    }

    /// Fills an empty database.
    fn fill(&self, database: &mut Database, progress: Progress<'_>) -> Result<Synced> {
        let mut files = Files::default();
        let work = self.listing_work(&mut files)?;
        self.bring(database, &mut files, work, progress)
    }

    /// Erases what the files no longer hold, also from the free pages of the index and from its log, so
    /// that redacted text leaves no trace.
    ///
    /// # Errors
    /// As [`Index::sync`]; `Busy` while another process reads.
    pub fn scrub(&self) -> Result<()> {
        self.sync(&mut |_, _| ())?;
        let mut turn = self.turns.turn();
        // No search can begin now, and those under way will soon be done.
        let held = &mut *self.held();
        let database = self.current(&mut turn.database, held)?;
        // What was read lately must not stay in the memory of this process either, though no search shows
        // it.
        held.known = Arc::default();
        database.connection.execute_batch("VACUUM").map_err(meant)?;
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: i64 = database.connection.query_row(sql, [], |row| row.get(0)).map_err(meant)?;
        match busy {
            0 => Ok(()),
            _ => Err(Error::new(Kind::Busy, "another process is reading the index")
                .hint("`memgrove index rebuild` rebuilds it without what was redacted")),
        }
    }

    /// Compares the index with one that is made anew in memory.
    ///
    /// # Errors
    /// As [`Index::sync`].
    pub fn verify(&self, progress: Progress<'_>) -> Result<Vec<Difference>> {
        let held = self.with(&mut |_, _| (), |view, _| view.dump())?;
        let mut database = Database::in_memory()?;
        self.fill(&mut database, progress)?;
        let mut known = Arc::default();
        Known::follow(&mut known, &database.connection, write::changes(&database.connection)?, false)?;
        let now = self.clock.now();
        let fresh = View { database: &database, known: &known, now, zone: &self.zone }.dump()?;
        let missing = fresh.iter().filter(|(key, value)| held.get(*key) != Some(*value));
        let surplus = held.keys().filter(|key| !fresh.contains_key(*key));
        let missing = missing.map(|(key, _)| format!("{key} is missing or differs"));
        let what = missing.chain(surplus.map(|key| format!("{key} should not be there")));
        Ok(what.map(|what| Difference { what }).collect())
    }
}

impl View<'_> {
    /// Everything that decides what a search finds, by address.
    fn dump(&self) -> Result<Dump> {
        let mut dump = Dump::new();
        let mut addresses = HashMap::new();
        let sql = concat!(
            "SELECT ",
            kept!(),
            ", d.id, f.key, d.ord, f.version, d.says, d.head_tokens, d.text_tokens FROM docs d JOIN files f ON f.id = d.file JOIN bodies b ON b.id = d.id"
        );
        let mut statement = self.connection().prepare(sql).map_err(meant)?;
        let mut rows = statement.query([]).map_err(meant)?;
        while let Some(row) = rows.next().map_err(meant)? {
            let read = |row: &rusqlite::Row<'_>| -> rusqlite::Result<(i64, String, String)> {
                let (address, key): (String, String) = (row.get(6)?, row.get(COLUMNS + 1)?);
                let (ord, version): (i64, String) = (row.get(COLUMNS + 2)?, row.get(COLUMNS + 3)?);
                // The digest is compared only if it matches the row that it is stored in.
                let whole: Option<Vec<u8>> = digest::is_sound(row)?.then(|| row.get(19)).transpose()?;
                let noted: [i64; 3] = [row.get(COLUMNS + 4)?, row.get(COLUMNS + 5)?, row.get(COLUMNS + 6)?];
                let held = format!("{ord} {whole:?} {version} {noted:?}");
                Ok((row.get(COLUMNS)?, format!("{address} in {key}"), held))
            };
            let (id, address, held) = read(row).map_err(meant)?;
            let vector = self.known.vector(usize::try_from(id).unwrap_or(0));
            let vector = vector.map(blake3::hash).map(|hash| hash.to_hex());
            dump.insert(format!("document {address}"), format!("{held} {vector:?}"));
            addresses.insert(id, address);
        }
        let mut statement =
            self.connection().prepare("SELECT term, block, data FROM postings").map_err(meant)?;
        let mut rows = statement.query([]).map_err(meant)?;
        while let Some(row) = rows.next().map_err(meant)? {
            let (term, block, data): (String, i64, Vec<u8>) =
                (row.get(0).map_err(meant)?, row.get(1).map_err(meant)?, row.get(2).map_err(meant)?);
            postings::each(block, &data, |id, entry| {
                let address = addresses.get(&id).map_or("nothing", String::as_str);
                dump.insert(format!("term {term} of {address}"), format!("{entry:?}"));
            })?;
        }
        let [documents, length, ..] = write::counts(self.connection())?;
        dump.insert("the count".to_owned(), format!("{documents} {length}"));
        Ok(dump)
    }
}

impl DerivedMaintenance for Index {
    fn reindex(&self, tier: Tier) -> Result<()> {
        match tier {
            Tier::LocalIndex => self.rebuild(&mut |_, _| ()).map(drop),
            Tier::SharedAbstracts => {
                Err(Error::new(Kind::Unsupported, "the index does not write the shared abstracts")
                    .hint("`memgrove doctor --fix` rewrites them"))
            }
            Tier::Source => {
                Err(Error::new(Kind::Invalid, "the source is not derived: there is nothing to make it from"))
            }
        }
    }

    fn changed_since(&self, mtime: Timestamp) -> Result<Vec<Locator>> {
        self.with(&mut |_, _| (), |view, _| {
            let sql = "SELECT key FROM files WHERE mtime > ?1 ORDER BY key";
            let mut statement = view.connection().prepare_cached(sql).map_err(meant)?;
            let rows = statement
                .query_map([mtime.as_millisecond()], |row| row.get::<_, String>(0))
                .map_err(meant)?;
            rows.map(|key| Locator::new(key.map_err(meant)?)).collect()
        })
    }
}

/// The error for an address that no document has.
pub(super) fn no_document(address: &str) -> Error {
    Error::new(Kind::NotFound, format!("there is nothing at `{}`", address.escape_debug()))
        .hint("`memgrove recall` finds addresses by words")
}
