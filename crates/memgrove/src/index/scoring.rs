//! Which documents have the words of a query, and which mean the same: a score for every document.

use std::collections::HashMap;

use std::sync::Arc;

use rusqlite::Connection;

use super::View;
use super::database::meant;
use super::postings::{self, Entry};
use crate::error::Result;

/// BM25 as everyone knows it; another `b` would fit one kind of text and fail others.
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// What the title and the tags are worth beside the text. They are weighed on their own: a word
/// that every title has tells nothing there, and still tells much in a text.
const HEAD: f32 = 1.0;
/// How many words a prefix stands for at most.
pub(crate) const PREFIX_TERMS_MAX: usize = 4_096;
/// How far off a word may be spelled: letters, by its length.
const TYPO_CHARS: [(usize, usize); 2] = [(8, 2), (4, 1)];

/// For how many documents that have a term there is room from the start.
const ENTRIES: usize = 1_024;

/// A set of documents, by their numbers.
#[derive(Clone)]
pub(crate) struct Set(Vec<u64>);

impl Set {
    /// No document of so many.
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

    /// Keeps what is in both.
    pub(crate) fn keep(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= other);
    }
}

/// Terms that count as one: the words that a prefix stands for.
pub(crate) struct Group {
    pub(crate) terms: Vec<String>,
    /// Terms that count only for these documents.
    pub(crate) stems: Vec<String>,
    pub(crate) having: Set,
}

impl Group {
    /// The group of one term.
    pub(crate) fn of(term: &str) -> Self {
        Group { terms: vec![term.to_owned()], stems: Vec::new(), having: Set(Vec::new()) }
    }

    /// All its terms.
    pub(crate) fn all(&self) -> impl Iterator<Item = &String> {
        self.terms.iter().chain(&self.stems)
    }

    /// The documents that have any of its terms, as often as they do.
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
    /// How much each term tells: rare ones more.
    pub(crate) weights: HashMap<String, f32>,
    /// What the words that it has tell together, of every document by its number.
    pub(crate) covered: Vec<f32>,
    /// What all words of the query tell together.
    pub(crate) all: f32,
}

/// The statistics that scores rest on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Statistics {
    pub(crate) documents: i64,
    pub(crate) length: i64,
    pub(crate) next: i64,
}

impl Statistics {
    /// How much a term tells that so many documents have.
    pub(crate) fn weight(self, documents: usize) -> f32 {
        let (all, having) = (self.documents as f32, documents as f32);
        (1.0 + (all - having + 0.5).max(0.0) / (having + 0.5)).ln()
    }
}

/// The blocks of a term from one on, and one of them.
const ALL_BLOCKS: &str = "SELECT block, data FROM postings WHERE term = ?1 AND block >= ?2 ORDER BY block";
const ONE_BLOCK: &str = "SELECT block, data FROM postings WHERE term = ?1 AND block = ?2";

/// Where a term stands, after so many changes: its blocks, in their order.
pub(crate) struct Posted {
    change: i64,
    blocks: Vec<(i64, Arc<[u8]>)>,
}

impl View<'_> {
    /// The documents that have a term.
    pub(super) fn having(&self, term: &str, mut found: impl FnMut(usize, Entry)) -> Result<()> {
        for (block, bytes) in &self.posted(term)?.blocks {
            postings::each(*block, bytes, |id, entry| found(usize::try_from(id).unwrap_or(0), entry))?;
        }
        Ok(())
    }

    /// Where a term stands: as it was read lately, but for the blocks that have changed since.
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
        // A word that many texts have tells no more where it is a tag of few.
        let [text_weight, head_weight] = [in_text, entries.len()].map(|count| statistics.weight(count));
        let told = if in_text > 0 { text_weight } else { head_weight };
        self.weights.extend(group.all().map(|term| (term.clone(), told)));
        self.all += told;
        for (id, entry) in entries {
            let Some(score) = self.scores.get_mut(*id) else { return Err(postings::broken()) };
            self.covered[*id] += told;
            if *score == 0.0 {
                self.touched.push(*id as u32);
            }
            let [text, head] = [f32::from(entry.text), f32::from(entry.heads())];
            let long = 1.0 - B + B * entry.length as f32 / average;
            let text = text_weight * text * (K1 + 1.0) / (text + K1 * long);
            let head = HEAD * head_weight * head * (K1 + 1.0) / (head + K1);
            // Whoever tags a text with a word of it has not said it twice.
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
}

/// The words of the index that begin so.
pub(crate) fn beginning(connection: &Connection, prefix: &str) -> Result<Vec<String>> {
    let end = format!("{prefix}\u{10ffff}");
    let sql = "SELECT DISTINCT term FROM postings WHERE term >= ?1 AND term < ?2 LIMIT ?3";
    let mut statement = connection.prepare_cached(sql).map_err(meant)?;
    let rows = statement
        .query_map(rusqlite::params![prefix, end, PREFIX_TERMS_MAX as i64], |row| row.get(0))
        .map_err(meant)?;
    rows.collect::<Result<_, _>>().map_err(meant)
}

/// A term of the index that a misspelled word may have been meant to have.
pub(crate) struct Near {
    pub(crate) term: String,
    /// How far off its spelling is, at the least.
    pub(crate) distance: usize,
    /// How much room it takes, which grows with how many have it.
    pub(crate) often: i64,
}

impl Near {
    /// Nearest first, then most frequent.
    pub(crate) fn order(&self) -> (usize, i64, &str) {
        (self.distance, -self.often, &self.term)
    }
}

/// How far off a word may be spelled; `None` for one that is too short to tell. Numbers are never
/// misspelled.
pub(crate) fn far(word: &str) -> Option<usize> {
    let size = word.chars().count();
    let (_, far) = TYPO_CHARS.into_iter().find(|(chars, _)| size >= *chars && !has_digit(word))?;
    Some(far)
}

/// The terms of the index that a word may begin with, if it is misspelled so far: stems are shorter
/// than words, though not by half. The first letter is hardly ever misspelled.
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

/// Whether two words begin with the same letter, or their first two have traded places.
fn begin_alike(a: &str, b: &str) -> bool {
    let [a, b] = [a, b].map(|word| {
        let mut chars = word.chars();
        (chars.next(), chars.next())
    });
    a.0 == b.0 || (a.0 == b.1 && a.1 == b.0)
}

/// How many letters must change, be added, be left out or trade places; `None` if more than `most`.
pub(crate) fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    Some(distances(&a, &b)[a.len()][b.len()]).filter(|distance| *distance <= most)
}

/// The distances between the beginnings of two words, by their lengths.
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
