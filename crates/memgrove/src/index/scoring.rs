//! Which documents have the words of a query, and which mean the same: a score for every document.

use std::collections::HashMap;

use std::sync::Arc;

use rusqlite::Connection;

use super::View;
use super::database::meant;
use super::postings::{self, Entry};
use crate::error::Result;

/// The usual parameters of BM25; another `b` would fit one kind of text and fail others.
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// The weight of title and tags beside the text. They are scored separately, because a word in every title
/// says nothing there and may still say much in a text.
const HEAD: f32 = 1.0;
/// How many words a prefix stands for at most.
pub(crate) const PREFIX_TERMS_MAX: usize = 4_096;
/// How many letters of a word may be wrong, by its least length.
const TYPO_CHARS: [(usize, usize); 2] = [(8, 2), (4, 1)];

/// How many entries of a term memory is reserved for at first.
const ENTRIES: usize = 1_024;

/// A set of documents, by their numbers.
#[derive(Clone)]
pub(crate) struct Set(Vec<u64>);

impl Set {
    /// Makes an empty set with room for the numbers below `next`.
    pub(crate) fn none(next: usize) -> Self {
        Set(vec![0; next / 64 + 1])
    }

    pub(crate) fn insert(&mut self, id: usize) {
        if let Some(word) = self.0.get_mut(id / 64) {
            *word |= 1 << (id % 64);
        }
    }

    pub(crate) fn remove(&mut self, id: usize) {
        if let Some(word) = self.0.get_mut(id / 64) {
            *word &= !(1 << (id % 64));
        }
    }

    pub(crate) fn has(&self, id: usize) -> bool {
        self.0.get(id / 64).is_some_and(|word| word & 1 << (id % 64) != 0)
    }

    /// Every document that is in it.
    pub(crate) fn ids(&self) -> impl Iterator<Item = usize> + '_ {
        let bits = |word: u64| (0..64).filter(move |bit| word & 1 << bit != 0);
        self.0.iter().enumerate().flat_map(move |(at, word)| bits(*word).map(move |bit| at * 64 + bit))
    }

    /// Keeps only what is in both sets.
    pub(crate) fn keep(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= other);
    }
}

/// Terms that count as one: the words that a prefix stands for.
pub(crate) struct Group {
    pub(crate) terms: Vec<String>,
    /// Terms that count only for the documents in `having`.
    pub(crate) stems: Vec<String>,
    pub(crate) having: Set,
    /// The only documents in which the terms count; `None` for all.
    pub(crate) within: Option<Set>,
}

impl Group {
    /// The group of one term.
    pub(crate) fn of(term: &str) -> Self {
        Group { terms: vec![term.to_owned()], stems: Vec::new(), having: Set(Vec::new()), within: None }
    }

    /// All its terms.
    pub(crate) fn all(&self) -> impl Iterator<Item = &String> {
        self.terms.iter().chain(&self.stems)
    }

    /// Tells every document that has any of the terms, once for each term that it has.
    pub(super) fn each(&self, view: &View<'_>, mut found: impl FnMut(usize, Entry)) -> Result<()> {
        for term in &self.terms {
            view.having(term, &mut found)?;
        }
        for stem in &self.stems {
            view.having(stem, |id, entry| {
                if self.having.has(id) {
                    found(id, entry);
                }
            })?;
        }
        Ok(())
    }
}

/// What the words of a query found.
pub(crate) struct Lexical {
    /// The score of every document, by its number.
    pub(crate) scores: Vec<f32>,
    /// Which documents have any of the words.
    pub(crate) touched: Vec<u32>,
    /// Documents whose subject the query names.
    pub(crate) subjects: Set,
    /// The weight of each term: more for rare ones.
    pub(crate) weights: HashMap<String, f32>,
    /// For every document by its number, the weight of those words of the query that it has.
    pub(crate) covered: Vec<f32>,
    /// The weight of all words of the query, and of those that any document has.
    pub(crate) all: f32,
    pub(crate) known: f32,
}

/// The statistics that scores are computed from.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Statistics {
    pub(crate) documents: i64,
    pub(crate) length: i64,
    pub(crate) next: i64,
}

impl Statistics {
    /// Returns the weight of a term that this many documents have.
    pub(crate) fn weight(self, documents: usize) -> f32 {
        let (all, having) = (self.documents as f32, documents as f32);
        (1.0 + (all - having + 0.5).max(0.0) / (having + 0.5)).ln()
    }
}

/// The queries for all blocks of a term from one on, and for one block.
const ALL_BLOCKS: &str = "SELECT block, data FROM postings WHERE term = ?1 AND block >= ?2 ORDER BY block";
const ONE_BLOCK: &str = "SELECT block, data FROM postings WHERE term = ?1 AND block = ?2";

/// The postings of a term after a given number of changes: its blocks, in order.
pub(crate) struct Posted {
    change: i64,
    blocks: Vec<(i64, Arc<[u8]>)>,
}

impl View<'_> {
    /// Tells every document that has a term.
    pub(super) fn having(&self, term: &str, mut found: impl FnMut(usize, Entry)) -> Result<()> {
        for (block, bytes) in &self.posted(term)?.blocks {
            postings::each(*block, bytes, |id, entry| found(usize::try_from(id).unwrap_or(0), entry))?;
        }
        Ok(())
    }

    /// Returns the postings of a term: as they were read lately, with the blocks that have changed since
    /// read again.
    fn posted(&self, term: &str) -> Result<Arc<Posted>> {
        let (change, lately) = (self.known.change, &self.known.lately.posted);
        let known = lately.get(term).filter(|known| known.change <= change);
        if let Some(known) = known.as_ref().filter(|known| known.change == change) {
            return Ok(Arc::clone(known));
        }
        let mut blocks = Vec::new();
        match known {
            None => self.read_posted(ALL_BLOCKS, (term, 0), &mut blocks)?,
            Some(known) => {
                let mut before = known.blocks.iter().peekable();
                let last = self.known.statistics.next / postings::BLOCK;
                for block in 0..=last {
                    let kept = before.next_if(|(at, _)| *at == block);
                    let number = usize::try_from(block).unwrap_or(0);
                    match self.known.posted_after(number, known.change) {
                        false => blocks.extend(kept.cloned()),
                        true => self.read_posted(ONE_BLOCK, (term, block), &mut blocks)?,
                    }
                }
            }
        }
        let posted = Arc::new(Posted { change, blocks });
        let weight = posted.blocks.iter().map(|(_, bytes)| bytes.len() + 64).sum::<usize>();
        lately.put(term.to_owned(), Arc::clone(&posted), weight + term.len() + 128);
        Ok(posted)
    }

    fn read_posted(&self, sql: &str, of: (&str, i64), into: &mut Vec<(i64, Arc<[u8]>)>) -> Result<()> {
        let mut statement = self.connection().prepare_cached(sql).map_err(meant)?;
        let mut rows = statement.query(of).map_err(meant)?;
        while let Some(row) = rows.next().map_err(meant)? {
            let data = row.get_ref(1).map_err(meant)?;
            let bytes = data.as_blob().map_err(|_| postings::broken())?;
            into.push((row.get(0).map_err(meant)?, bytes.into()));
        }
        Ok(())
    }
}

/// Scores every document by BM25 over its fields.
pub(super) fn lexical(view: &View<'_>, groups: &[Group]) -> Result<Lexical> {
    let statistics = view.known.statistics;
    let next = usize::try_from(statistics.next).unwrap_or(0);
    let mut found = Lexical {
        scores: vec![0.0; next],
        touched: Vec::new(),
        subjects: Set::none(next),
        weights: HashMap::new(),
        covered: vec![0.0; next],
        all: 0.0,
        known: 0.0,
    };
    let average = (statistics.length as f32 / statistics.documents.max(1) as f32).max(1.0);
    let mut entries: Vec<(usize, Entry)> = Vec::with_capacity(ENTRIES);
    for group in groups {
        entries.clear();
        group.each(view, |id, entry| entries.push((id, entry)))?;
        if group.all().nth(1).is_some() {
            entries.sort_by_key(|(id, entry)| (*id, u8::MAX - entry.text));
            entries.dedup_by_key(|(id, _)| *id);
        }
        found.add(group, &entries, statistics, average)?;
    }
    Ok(found)
}

impl Lexical {
    /// Adds what one group of terms is worth to each document that has it.
    fn add(
        &mut self,
        group: &Group,
        entries: &[(usize, Entry)],
        statistics: Statistics,
        average: f32,
    ) -> Result<()> {
        let in_text = entries.iter().filter(|(_, entry)| entry.text > 0).count();
        // A word that is in many texts weighs no more because it is a tag of few.
        let [text_weight, head_weight] = [in_text, entries.len()].map(|count| statistics.weight(count));
        let told = if in_text > 0 { text_weight } else { head_weight };
        self.weights.extend(group.all().map(|term| (term.clone(), told)));
        self.all += told;
        self.known += if entries.is_empty() { 0.0 } else { told };
        let counts = |id: usize| group.within.as_ref().is_none_or(|within| within.has(id));
        for (id, entry) in entries.iter().filter(|(id, _)| counts(*id)) {
            let Some(score) = self.scores.get_mut(*id) else { return Err(postings::broken()) };
            self.covered[*id] += told;
            if *score == 0.0 {
                self.touched.push(*id as u32);
            }
            let [text, head] = [f32::from(entry.text), f32::from(entry.heads())];
            let long = 1.0 - B + B * entry.length as f32 / average;
            let text = text_weight * text * (K1 + 1.0) / (text + K1 * long);
            let head = HEAD * head_weight * head * (K1 + 1.0) / (head + K1);
            // A tag that repeats a word of the text does not count twice.
            *score += text.max(head);
            if entry.subject {
                self.subjects.insert(*id);
            }
        }
        Ok(())
    }
}

impl Lexical {
    /// Whether a document has all words of the query.
    pub(crate) fn has_all(&self, id: usize) -> bool {
        self.all > 0.0 && self.covered.get(id).is_some_and(|covered| *covered >= self.all)
    }

    /// Whether a document has all words of the query that any document has.
    pub(crate) fn has_known(&self, id: usize) -> bool {
        self.known > 0.0 && self.covered.get(id).is_some_and(|covered| *covered >= self.known)
    }
}

/// Returns the indexed terms with a prefix.
pub(crate) fn beginning(connection: &Connection, prefix: &str) -> Result<Vec<String>> {
    let end = format!("{prefix}\u{10ffff}");
    let sql = "SELECT DISTINCT term FROM postings WHERE term >= ?1 AND term < ?2 LIMIT ?3";
    let mut statement = connection.prepare_cached(sql).map_err(meant)?;
    let rows = statement
        .query_map(rusqlite::params![prefix, end, PREFIX_TERMS_MAX as i64], |row| row.get(0))
        .map_err(meant)?;
    rows.collect::<Result<_, _>>().map_err(meant)
}

/// An indexed term that a misspelled word may stand for.
pub(crate) struct Near {
    pub(crate) term: String,
    /// The least distance of its spelling.
    pub(crate) distance: usize,
    /// The size of its postings, which grows with the documents that have it.
    pub(crate) often: i64,
}

impl Near {
    /// Nearest first, then most frequent.
    pub(crate) fn order(&self) -> (usize, i64, &str) {
        (self.distance, -self.often, &self.term)
    }
}

/// Returns how many letters of a word may be wrong; `None` if it is too short to correct or has a digit:
/// numbers are never corrected.
pub(crate) fn far(word: &str) -> Option<usize> {
    let size = word.chars().count();
    let (_, far) = TYPO_CHARS.into_iter().find(|(chars, _)| size >= *chars && !has_digit(word))?;
    Some(far)
}

/// Returns the indexed terms that a misspelled word may begin with, up to a distance. Stems are shorter
/// than words, but not by more than half. The first letter is hardly ever wrong.
pub(crate) fn nearest(connection: &Connection, word: &str, far: usize) -> Result<Vec<Near>> {
    let word_chars: Vec<char> = word.chars().collect();
    let sql = "SELECT term, sum(length(data)) FROM postings GROUP BY term";
    let mut statement = connection.prepare_cached(sql).map_err(meant)?;
    let mut rows = statement.query([]).map_err(meant)?;
    let mut found: Vec<Near> = Vec::new();
    while let Some(row) = rows.next().map_err(meant)? {
        let there = row.get_ref(0).map_err(meant)?;
        let there = there.as_str().map_err(|_| postings::broken())?;
        if !begin_alike(word, there) || has_digit(there) {
            continue;
        }
        let term: Vec<char> = there.chars().collect();
        if term.len() * 2 < word_chars.len() || term.len() > word_chars.len() + far {
            continue;
        }
        let distance = distances(&word_chars, &term).iter().map(|row| row[term.len()]).min();
        if let Some(distance) = distance.filter(|distance| *distance <= far) {
            found.push(Near { term: there.to_owned(), distance, often: row.get(1).map_err(meant)? });
        }
    }
    found.sort_by(|a, b| a.order().cmp(&b.order()));
    Ok(found)
}

fn has_digit(word: &str) -> bool {
    word.chars().any(char::is_numeric)
}

/// Whether two words begin with the same letter, or with the same two letters swapped.
fn begin_alike(a: &str, b: &str) -> bool {
    let [a, b] = [a, b].map(|word| {
        let mut chars = word.chars();
        (chars.next(), chars.next())
    });
    a.0 == b.0 || (a.0 == b.1 && a.1 == b.0)
}

/// Returns how many letters must be changed, added, dropped or swapped; `None` if more than `most`.
pub(crate) fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    Some(distances(&a, &b)[a.len()][b.len()]).filter(|distance| *distance <= most)
}

/// Returns the distances between all beginnings of two words, by their lengths.
fn distances(a: &[char], b: &[char]) -> Vec<Vec<usize>> {
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut cost = (rows[i][j] + usize::from(x != y)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                cost = cost.min(rows[i - 1][j - 1] + 1);
            }
            row.push(cost);
        }
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "kitten", 1), Some(0));
        assert_eq!(distance("kitten", "kiten", 1), Some(1));
        assert_eq!(distance("kitten", "iktten", 1), Some(1));
        assert_eq!(distance("kitten", "sitting", 2), None);
    }

    #[test]
    fn sets() {
        let mut set = Set::none(100);
        set.insert(3);
        set.insert(99);
        let mut other = set.clone();
        other.remove(3);
        set.keep(&other);
        assert_eq!(set.ids().collect::<Vec<_>>(), [99]);
        assert!(set.has(99) && !set.has(3) && !set.has(1_000));
    }
}
