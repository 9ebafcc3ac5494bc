//! One document as it comes out of the index.

use rusqlite::{Params, Row};

use super::database::meant;
use super::digest::{self, COLUMNS, kept};
use super::rank::Parts;
use super::wordpiece::tokens;
use super::{View, write};
use crate::clock::Timestamp;
use crate::error::Result;

/// One document that was found.
#[derive(Debug, Clone, Default)]
pub struct Hit {
    /// What `read` takes.
    pub address: String,
    /// The shape that it comes from.
    pub shape: String,
    /// The kind of thing within its shape.
    pub kind: String,
    /// What it is called.
    pub title: String,
    /// Who says it or whom it is about, where the text itself tells.
    pub subject: String,
    /// What it says.
    pub text: String,
    /// Words that someone has chosen to find it by.
    pub tags: Vec<String>,
    /// What it refers to.
    pub links: Vec<String>,
    /// When it is from.
    pub date: Option<Timestamp>,
    /// Its file's key in the store.
    pub file: String,
    /// Where it stands in its file, in bytes.
    pub span: std::ops::Range<usize>,
    /// What its score is made of.
    pub parts: Parts,
    /// The addresses of documents that say the same.
    pub alike: Vec<String>,
    /// What it costs, counted when it was indexed.
    pub(super) tokens: Option<Tokens>,
}

/// What a document costs in tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tokens {
    /// Its address and title.
    pub(super) head: usize,
    pub(super) text: usize,
}

impl Tokens {
    /// Counts them.
    pub(super) fn of(address: &str, title: &str, text: &str) -> Self {
        Tokens { head: tokens(address) + tokens(title), text: tokens(text) }
    }
}

impl Hit {
    /// What its address and title, and its text, cost.
    pub(super) fn tokens(&self) -> Tokens {
        self.tokens.unwrap_or_else(|| Tokens::of(&self.address, &self.title, &self.text))
    }
}

macro_rules! hit {
    ($rest:literal) => {
        concat!(
            "SELECT ",
            kept!(),
            ", coalesce(d.date, f.mtime), f.key, d.head_tokens, d.text_tokens FROM docs d JOIN files f ON f.id = d.file JOIN bodies b ON b.id = d.id ",
            $rest
        )
    };
}

impl View<'_> {
    /// A document by its number.
    pub(super) fn by_id(&self, id: usize) -> Result<Option<Hit>> {
        self.hit(hit!("WHERE d.id = ?1"), [id as i64])
    }

    /// How many files there are.
    pub(super) fn files(&self) -> Result<usize> {
        let sql = "SELECT count(*) FROM files";
        let count: i64 = self.connection().query_row(sql, [], |row| row.get(0)).map_err(meant)?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// The numbers of the documents that an address stands for: one, or all beneath it.
    pub(super) fn at(&self, address: &str) -> Result<Vec<usize>> {
        let sql = "SELECT id FROM docs WHERE address = ?1 OR (address > ?1 || '#' AND address < ?1 || '$') ORDER BY file, ord";
        let mut statement = self.connection().prepare_cached(sql).map_err(meant)?;
        let rows = statement.query_map([address], |row| row.get::<_, i64>(0)).map_err(meant)?;
        rows.map(|id| Ok(usize::try_from(id.map_err(meant)?).unwrap_or(0))).collect()
    }

    /// A document by its address.
    pub(super) fn by_address(&self, address: &str) -> Result<Option<Hit>> {
        self.hit(hit!("WHERE d.address = ?1"), [address])
    }

    /// A document as it was written: one that is damaged is never shown.
    fn hit(&self, sql: &str, by: impl Params) -> Result<Option<Hit>> {
        let mut statement = self.connection().prepare_cached(sql).map_err(meant)?;
        let mut rows = statement.query(by).map_err(meant)?;
        let Some(row) = rows.next().map_err(meant)? else { return Ok(None) };
        digest::check(row)?;
        hit(row).map(Some).map_err(meant)
    }
}

impl View<'_> {
    /// A document and its neighbours, in the order of their file.
    pub(super) fn around(&self, address: &str, count: usize) -> Result<Vec<Hit>> {
        let sql = "SELECT n.id FROM docs d JOIN docs n ON n.file = d.file
                   AND n.ord BETWEEN d.ord - ?2 AND d.ord + ?2 WHERE d.address = ?1 ORDER BY n.ord";
        let mut statement = self.connection().prepare_cached(sql).map_err(meant)?;
        let count = i64::try_from(count).unwrap_or(i64::MAX / 2);
        let rows = statement
            .query_map(rusqlite::params![address, count], |row| row.get::<_, i64>(0))
            .map_err(meant)?;
        let ids: Vec<i64> = rows.collect::<Result<_, _>>().map_err(meant)?;
        let hits = ids.into_iter().map(|id| self.by_id(usize::try_from(id).unwrap_or(0)));
        Ok(hits.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }
}

fn hit(row: &Row<'_>) -> rusqlite::Result<Hit> {
    let (tags, links): (String, String) = (row.get(5)?, row.get(9)?);
    let date: i64 = row.get(COLUMNS)?;
    let [start, stop]: [i64; 2] = [row.get(16)?, row.get(17)?];
    let [head, text]: [i64; 2] = [row.get(COLUMNS + 2)?, row.get(COLUMNS + 3)?];
    let [head, text] = [head, text].map(|count| usize::try_from(count).unwrap_or(usize::MAX / 4));
    Ok(Hit {
        address: row.get(6)?,
        shape: row.get(8)?,
        kind: row.get(0)?,
        title: row.get(1)?,
        subject: row.get(2)?,
        text: row.get(3)?,
        tags: write::listed(&tags),
        links: write::listed(&links),
        date: Timestamp::from_millisecond(date).ok(),
        file: row.get(COLUMNS + 1)?,
        span: usize::try_from(start).unwrap_or(0)..usize::try_from(stop).unwrap_or(0),
        parts: Parts::default(),
        alike: Vec::new(),
        tokens: Some(Tokens { head, text }),
    })
}
