//! How documents are put into the index and taken out, exactly: the result is what a new index of the same
//! files would hold.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Connection, OptionalExtension, params};

use super::alike;
use super::analysis::Analysis;
use super::database::meant;
use super::digest::{digests, embed, span, uses};
use super::embedding::{DIMENSIONS, Embedder, Vector};
use super::hit::Tokens;
use super::postings::{self, BLOCK, Entry};
use crate::document::Document;
use crate::error::Result;

/// How many vectors share a row.
pub(crate) const VECTORS: i64 = 64;

/// One file as it was read.
pub(crate) struct FileRow<'a> {
    pub(crate) key: &'a str,
    pub(crate) stamp: u64,
    pub(crate) version: &'a str,
    pub(crate) mtime: i64,
    pub(crate) settled: bool,
}

/// Changes to one index that are written together.
pub(crate) struct Writer<'a> {
    connection: &'a Connection,
    analysis: &'a Analysis,
    embedder: Option<&'a dyn Embedder>,
    postings: HashMap<(String, i64), BTreeMap<i64, Option<Entry>>>,
    vectors: BTreeMap<i64, Vector>,
    /// Blocks of documents in which something other than a vector has changed.
    blocks: BTreeSet<i64>,
    documents: i64,
    length: i64,
    next: i64,
    change: i64,
}

impl<'a> Writer<'a> {
    /// A writer within an open transaction.
    pub(crate) fn new(
        connection: &'a Connection,
        analysis: &'a Analysis,
        embedder: Option<&'a dyn Embedder>,
    ) -> Result<Self> {
        let [documents, length, next, change] = counts(connection)?;
        Ok(Writer {
            connection,
            analysis,
            embedder,
            postings: HashMap::new(),
            vectors: BTreeMap::new(),
            blocks: BTreeSet::new(),
            documents,
            length,
            next,
            change: change + 1,
        })
    }

    /// Notes that a file was looked at and its content is unchanged.
    pub(crate) fn touch(&mut self, file: &FileRow<'_>) -> Result<()> {
        let sql = "UPDATE files SET stamp = ?2, mtime = ?3, settled = ?4 WHERE key = ?1 RETURNING id";
        let row = params![file.key, file.stamp.cast_signed(), file.mtime, file.settled];
        let id: i64 = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row(row, |row| row.get(0)))
            .map_err(meant)?;
        // A document without a date has the date of its file.
        let known = self.known(id)?;
        self.blocks.extend(known.values().map(|known| known.id / VECTORS));
        Ok(())
    }

    /// Replaces the documents of a file. Those whose terms are unchanged keep their numbers.
    pub(crate) fn put(&mut self, file: &FileRow<'_>, documents: &[Document]) -> Result<()> {
        let id: i64 = {
            let sql = "INSERT INTO files (key, stamp, version, mtime, settled) VALUES (?1, ?2, ?3, ?4, ?5)
                       ON CONFLICT (key) DO UPDATE SET stamp = ?2, version = ?3, mtime = ?4, settled = ?5
                       RETURNING id";
            let row = params![file.key, file.stamp.cast_signed(), file.version, file.mtime, file.settled];
            let mut statement = self.connection.prepare_cached(sql).map_err(meant)?;
            statement.query_row(row, |row| row.get(0)).map_err(meant)?
        };
        let mut old = self.known(id)?;
        self.blocks.extend(old.values().map(|known| known.id / VECTORS));
        let (mut fresh, mut moved) = (Vec::new(), Vec::new());
        for (document, ord) in documents.iter().zip(0i64..) {
            let (terms, whole) = digests(document);
            match old.remove(&document.address) {
                Some(known) if known.terms == terms => {
                    if known.whole != whole {
                        self.describe(known.id, document, &whole)?;
                    }
                    if known.ord != ord {
                        // Places are unique, so a document leaves its place before another can take it.
                        self.run("UPDATE docs SET ord = -1 - ord WHERE id = ?1", &[&known.id])?;
                        moved.push((known.id, ord));
                    }
                }
                known => {
                    old.extend(known.map(|known| (document.address.clone(), known)));
                    fresh.push((document, ord, terms, whole));
                }
            }
        }
        for known in old.into_values() {
            self.remove_document(known.id)?;
        }
        for (id, ord) in moved {
            self.run("UPDATE docs SET ord = ?2 WHERE id = ?1", &[&id, &ord])?;
        }
        for (document, ord, terms, whole) in fresh {
            self.insert((id, file.key), ord, document, (&terms, &whole))?;
        }
        Ok(())
    }

    /// Removes a file and its documents. Returns `false` if it was not there.
    pub(crate) fn remove(&mut self, key: &str) -> Result<bool> {
        let id: Option<i64> = self
            .connection
            .prepare_cached("SELECT id FROM files WHERE key = ?1")
            .and_then(|mut statement| statement.query_row([key], |row| row.get(0)).optional())
            .map_err(meant)?;
        let Some(id) = id else { return Ok(false) };
        for known in self.known(id)?.into_values() {
            self.remove_document(known.id)?;
        }
        self.run("DELETE FROM files WHERE id = ?1", &[&id])?;
        Ok(true)
    }

    /// Returns how many changes wait to be written, as a measure of their memory.
    pub(crate) fn pending(&self) -> usize {
        self.vectors.len()
    }

    /// Writes everything, ready to be committed, and returns how often the index has then changed.
    pub(crate) fn finish(mut self) -> Result<i64> {
        self.flush()?;
        let counted = [
            ("documents", self.documents),
            ("length", self.length),
            ("next", self.next),
            ("change", self.change),
        ];
        for (name, value) in counted {
            self.run("INSERT OR REPLACE INTO counts (name, value) VALUES (?1, ?2)", &[&name, &value])?;
        }
        Ok(self.change)
    }

    fn run(&self, sql: &str, row: &[&dyn rusqlite::ToSql]) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql).map_err(meant)?;
        statement.execute(row).map_err(meant)?;
        Ok(())
    }

    fn known(&self, file: i64) -> Result<HashMap<String, Known>> {
        let sql = "SELECT address, id, terms, whole, ord FROM docs WHERE file = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(meant)?;
        let rows = statement
            .query_map([file], |row| {
                Ok((
                    row.get(0)?,
                    Known { id: row.get(1)?, terms: row.get(2)?, whole: row.get(3)?, ord: row.get(4)? },
                ))
            })
            .map_err(meant)?;
        rows.collect::<Result<_, _>>().map_err(meant)
    }

    fn insert(
        &mut self,
        (file, key): (i64, &str),
        ord: i64,
        document: &Document,
        (terms, whole): (&[u8; 16], &[u8; 16]),
    ) -> Result<()> {
        let id = self.next;
        self.next += 1;
        let sql = "INSERT INTO docs (id, file, ord, terms, whole, address, says, head_tokens, text_tokens,
                   linking, shape, kind, date, importance, uses, hidden, grp, name, title)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, '', '', NULL, 0, 0, 0, '', '', '')";
        let tokens = Tokens::of(&document.address, &document.title, &document.text);
        let [head, text] = [tokens.head, tokens.text].map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        let says = alike::says(key, document);
        self.run(sql, &[&id, &file, &ord, terms, whole, &document.address, &says, &head, &text])?;
        self.describe(id, document, whole)?;
        let (entries, length) = self.entries(document);
        self.documents += 1;
        self.length += i64::from(length);
        for (term, entry) in entries {
            self.postings.entry((term, id / BLOCK)).or_default().insert(id, Some(entry));
        }
        let vector = self.embedder.map_or([0; DIMENSIONS], |embedder| embed(embedder, document));
        self.vectors.insert(id, vector);
        Ok(())
    }

    /// Writes everything about a document but its terms.
    fn describe(&self, id: i64, document: &Document, whole: &[u8; 16]) -> Result<()> {
        let date = document.date.map(crate::clock::Timestamp::as_millisecond);
        let sql = "UPDATE docs SET whole = ?2, shape = ?3, kind = ?4, date = ?5, importance = ?6, uses = ?7, hidden = ?8,
                   grp = ?9, name = ?10, title = ?11, begins = ?12, ends = ?13, linking = ?14 WHERE id = ?1";
        let holds =
            document.holds.map(|(from, until)| [from, until].map(crate::clock::Timestamp::as_millisecond));
        self.run(
            sql,
            &[
                &id,
                whole,
                &document.shape.name(),
                &document.kind,
                &date,
                &document.importance.points(),
                &uses(document),
                &document.hidden,
                &document.group,
                &document.name,
                &document.title,
                &holds.map(|[from, _]| from),
                &holds.map(|[_, until]| until),
                &!document.links.is_empty(),
            ],
        )?;
        let sql = "INSERT OR REPLACE INTO bodies (id, subject, body, tags, links, start, stop)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let [start, stop] = span(document);
        let [tags, links] = [&document.tags, &document.links].map(|list| list.join("\n"));
        self.run(sql, &[&id, &document.subject, &document.text, &tags, &links, &start, &stop])
    }

    fn remove_document(&mut self, id: i64) -> Result<()> {
        let document = self.text_of(id)?;
        let (entries, length) = self.entries(&document);
        self.documents -= 1;
        self.length -= i64::from(length);
        for (term, _) in entries {
            self.postings.entry((term, id / BLOCK)).or_default().insert(id, None);
        }
        self.vectors.insert(id, [0; DIMENSIONS]);
        self.run("DELETE FROM docs WHERE id = ?1", &[&id])?;
        self.run("DELETE FROM bodies WHERE id = ?1", &[&id])
    }

    /// Returns the parts of a stored document that have terms.
    fn text_of(&self, id: i64) -> Result<Document> {
        let sql = "SELECT d.kind, d.title, b.subject, b.body, b.tags, d.name FROM docs d JOIN bodies b ON b.id = d.id WHERE d.id = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(meant)?;
        let read = |row: &rusqlite::Row<'_>| {
            let tags: String = row.get(4)?;
            Ok(Document {
                kind: row.get(0)?,
                title: row.get(1)?,
                subject: row.get(2)?,
                text: row.get(3)?,
                tags: listed(&tags),
                name: row.get(5)?,
                ..Document::default()
            })
        };
        statement.query_row([id], read).map_err(meant)
    }

    /// Returns the terms of a document, and how many terms its text has.
    fn entries(&self, document: &Document) -> (HashMap<String, Entry>, u32) {
        let mut entries: HashMap<String, Entry> = HashMap::new();
        let text = self.analysis.terms(&document.text);
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        for term in text {
            let entry = entries.entry(term).or_default();
            entry.text = entry.text.saturating_add(1);
        }
        for term in self.analysis.terms(&document.title) {
            let entry = entries.entry(term).or_default();
            entry.title = entry.title.saturating_add(1);
        }
        // The name that links use counts as part of the title, whatever the heading is.
        for term in self.analysis.terms(&document.name) {
            let entry = entries.entry(term).or_default();
            entry.title = entry.title.max(1);
        }
        for word in document.tags.iter().chain([&document.kind]) {
            for term in self.analysis.terms(word) {
                entries.entry(term).or_default().tag = true;
            }
        }
        for term in self.analysis.terms(&document.subject) {
            entries.entry(term).or_default().subject = true;
        }
        for entry in entries.values_mut() {
            entry.length = length;
        }
        (entries, length)
    }

    fn flush(&mut self) -> Result<()> {
        // In the order of their keys, which is the order on disk.
        let mut changed: Vec<_> = std::mem::take(&mut self.postings).into_iter().collect();
        changed.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for ((term, block), changes) in changed {
            let old: Option<Vec<u8>> = self
                .connection
                .prepare_cached("SELECT data FROM postings WHERE term = ?1 AND block = ?2")
                .and_then(|mut statement| {
                    statement.query_row(params![term, block], |row| row.get(0)).optional()
                })
                .map_err(meant)?;
            let data = postings::changed(block, old.as_deref().unwrap_or_default(), &changes)?;
            if data.is_empty() {
                self.run("DELETE FROM postings WHERE term = ?1 AND block = ?2", &[&term, &block])?;
            } else {
                self.run(
                    "INSERT OR REPLACE INTO postings (term, block, data) VALUES (?1, ?2, ?3)",
                    &[&term, &block, &data],
                )?;
            }
        }
        self.flush_vectors()
    }

    fn flush_vectors(&mut self) -> Result<()> {
        let mut blocks: BTreeMap<i64, Vec<(i64, Vector)>> = BTreeMap::new();
        for (id, vector) in std::mem::take(&mut self.vectors) {
            blocks.entry(id / VECTORS).or_default().push((id, vector));
        }
        for block in std::mem::take(&mut self.blocks) {
            self.run("UPDATE vectors SET change = ?2 WHERE block = ?1", &[&block, &self.change])?;
        }
        for (block, rows) in blocks {
            let old: Option<Vec<u8>> = self
                .connection
                .prepare_cached("SELECT data FROM vectors WHERE block = ?1")
                .and_then(|mut statement| statement.query_row([block], |row| row.get(0)).optional())
                .map_err(meant)?;
            let mut data = old.unwrap_or_default();
            for (id, vector) in rows {
                let at = usize::try_from(id % VECTORS).unwrap_or(0) * DIMENSIONS;
                data.resize(data.len().max(at + DIMENSIONS), 0);
                data[at..at + DIMENSIONS].copy_from_slice(&vector.map(|value| value as u8));
            }
            self.run(
                "INSERT OR REPLACE INTO vectors (block, change, data) VALUES (?1, ?2, ?3)",
                &[&block, &self.change, &data],
            )?;
        }
        Ok(())
    }
}

struct Known {
    id: i64,
    terms: [u8; 16],
    whole: [u8; 16],
    ord: i64,
}

/// Splits a stored list into its lines.
pub(crate) fn listed(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Returns the number of documents, the number of their terms, the next free number, and how often the
/// index has changed.
pub(crate) fn counts(connection: &Connection) -> Result<[i64; 4]> {
    let [documents, length, change] = ["documents", "length", "change"].map(|name| count(connection, name));
    Ok([
        documents?.unwrap_or(0),
        length?.unwrap_or(0),
        count(connection, "next")?.unwrap_or(1),
        change?.unwrap_or(0),
    ])
}

/// Returns how often an index has changed.
pub(crate) fn changes(connection: &Connection) -> Result<i64> {
    Ok(count(connection, "change")?.unwrap_or(0))
}

fn count(connection: &Connection, name: &str) -> Result<Option<i64>> {
    let sql = "SELECT value FROM counts WHERE name = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(meant)?;
    statement.query_row([name], |row| row.get(0)).optional().map_err(meant)
}
