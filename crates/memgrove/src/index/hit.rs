//! One document as it comes out of the index.

use std::sync::Arc;

use jiff::civil::Date;
use rusqlite::{OptionalExtension, Params};

use super::border::{day_of, is_day};
use super::database::meant;
use super::digest::{self, COLUMNS, kept};
use super::rank::Parts;
use super::wordpiece::tokens;
use super::{View, write};
use crate::address::Scheme;
use crate::clock::Timestamp;
use crate::document::{Shape, Weight};
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
    /// The day of `date`, in the asker's zone.
    pub day: Option<Date>,
    /// How much it matters.
    pub importance: Weight,
    /// How often it was read.
    pub uses: u64,
    /// Why it is hidden, if it is: hidden documents are found only when asked for.
    pub hidden: Option<&'static str>,
    /// Its file's key in the store.
    pub file: String,
    /// Where it stands in its file, in bytes.
    pub span: std::ops::Range<usize>,
    /// The parts of its score.
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
    /// When it is from, as closely as that is known: a day, or a moment.
    pub fn when(&self) -> Option<String> {
        let date = self.date?;
        match self.day {
            Some(day) if is_day(date.as_millisecond()) => Some(day.to_string()),
            _ => Some(date.to_string()),
        }
    }

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

/// A document as it was read: the same for every asker at every moment.
pub(super) struct Row {
    hit: Hit,
    /// Whether it was put away, and from when until when it holds.
    hidden: bool,
    holds: [Option<i64>; 2],
}

impl Row {
    /// About how many bytes it takes.
    fn weight(&self) -> usize {
        let Hit { address, title, subject, text, tags, links, file, .. } = &self.hit;
        let texts = [address, title, subject, text, file].into_iter().chain(tags).chain(links);
        std::mem::size_of::<Row>() + texts.map(|text| text.len() + 32).sum::<usize>()
    }

    /// Why it is hidden at this moment, if it is.
    fn hidden(&self, now: Timestamp) -> Option<&'static str> {
        if self.hidden {
            return Some(match self.hit.shape.as_str() {
                shape if shape == Shape::Entities.name() => "superseded",
                shape if shape == Shape::Records.name() => "archived",
                _ => "put away",
            });
        }
        let ([begins, ends], now) = (self.holds, now.as_millisecond());
        let (early, late) = (begins.is_some_and(|begins| now < begins), ends.is_some_and(|ends| ends <= now));
        early.then_some("not true yet").or(late.then_some("no longer true"))
    }
}

impl View<'_> {
    /// A document by its number.
    pub(super) fn by_id(&self, id: usize) -> Result<Option<Hit>> {
        let (key, lately) = ((id, self.known.since(id)), &self.known.lately.rows);
        if let Some(row) = lately.get(&key) {
            return self.shown(&row).map(Some);
        }
        let Some(row) = self.row(hit!("WHERE d.id = ?1"), [id as i64])? else { return Ok(None) };
        let row = Arc::new(row);
        lately.put(key, Arc::clone(&row), row.weight());
        self.shown(&row).map(Some)
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
        self.row(hit!("WHERE d.address = ?1"), [address])?.map(|row| self.shown(&row)).transpose()
    }

    /// Reads a document from its row, and refuses a damaged one.
    fn row(&self, sql: &str, by: impl Params) -> Result<Option<Row>> {
        let mut statement = self.connection().prepare_cached(sql).map_err(meant)?;
        let mut rows = statement.query(by).map_err(meant)?;
        let Some(row) = rows.next().map_err(meant)? else { return Ok(None) };
        digest::check(row)?;
        read(row).map(Some).map_err(meant)
    }

    /// Completes a document for this moment and this asker, with its current title.
    fn shown(&self, row: &Row) -> Result<Hit> {
        let day = row.hit.date.map(|date| day_of(date, self.zone));
        let mut hit = Hit { day, hidden: row.hidden(self.now), ..row.hit.clone() };
        if hit.shape == Shape::Graph.name() {
            self.entitle(&mut hit)?;
        }
        Ok(hit)
    }
}

impl View<'_> {
    /// Titles the content of a node with the node's name, and a connection with the names of its ends.
    fn entitle(&self, hit: &mut Hit) -> Result<()> {
        let base = hit.address.split('#').next().unwrap_or_default();
        let Some((kind, id)) = Scheme::split(base) else { return Ok(()) };
        let Some(section) =
            hit.title.strip_prefix(id).filter(|rest| rest.is_empty() || rest.starts_with(" > "))
        else {
            return Ok(());
        };
        let called = match kind {
            Scheme::Node => self.said_of(base)?.map(|(title, ..)| title),
            _ => self.connected(base)?,
        };
        if let Some(called) = called {
            hit.title = format!("{called}{section}");
            // The tokens were counted with the old title.
            hit.tokens = None;
        }
        Ok(())
    }

    /// The title of a connection, from the names of its ends.
    fn connected(&self, base: &str) -> Result<Option<String>> {
        let Some((_, kind, links)) = self.said_of(base)? else { return Ok(None) };
        let [from, to, ..] = links.as_slice() else { return Ok(None) };
        let called = |end: &str| -> Result<String> {
            let said = self.said_of(&Scheme::Node.address(end))?;
            Ok(said.map_or_else(|| end.to_owned(), |(title, ..)| title))
        };
        Ok(Some(format!("{} {kind} {}", called(from)?, called(to)?)))
    }

    /// Returns the title of a node or connection, its type, and its links, which for a connection begin
    /// with its ends.
    fn said_of(&self, base: &str) -> Result<Option<(String, String, Vec<String>)>> {
        let sql = "SELECT d.title, d.kind, b.links FROM docs d JOIN bodies b ON b.id = d.id
                   WHERE d.address IN (?1 || '#properties', ?1) ORDER BY length(d.address) DESC LIMIT 1";
        let mut statement = self.connection().prepare_cached(sql).map_err(meant)?;
        let read = |row: &rusqlite::Row<'_>| {
            Ok((row.get(0)?, row.get(1)?, write::listed(&row.get::<_, String>(2)?)))
        };
        statement.query_row([base], read).optional().map_err(meant)
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

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let (tags, links): (String, String) = (row.get(5)?, row.get(9)?);
    let date: i64 = row.get(COLUMNS)?;
    let [start, stop]: [i64; 2] = [row.get(16)?, row.get(17)?];
    let [head, text]: [i64; 2] = [row.get(COLUMNS + 2)?, row.get(COLUMNS + 3)?];
    let [head, text] = [head, text].map(|count| usize::try_from(count).unwrap_or(usize::MAX / 4));
    let hit = Hit {
        address: row.get(6)?,
        shape: row.get(8)?,
        kind: row.get(0)?,
        title: row.get(1)?,
        subject: row.get(2)?,
        text: row.get(3)?,
        tags: write::listed(&tags),
        links: write::listed(&links),
        date: Timestamp::from_millisecond(date).ok(),
        day: None,
        importance: Weight::of_points(row.get(11)?),
        uses: u64::try_from(row.get::<_, i64>(12)?).unwrap_or(0),
        hidden: None,
        file: row.get(COLUMNS + 1)?,
        span: usize::try_from(start).unwrap_or(0)..usize::try_from(stop).unwrap_or(0),
        parts: Parts::default(),
        alike: Vec::new(),
        tokens: Some(Tokens { head, text }),
    };
    Ok(Row { hit, hidden: row.get(13)?, holds: [row.get(14)?, row.get(15)?] })
}
