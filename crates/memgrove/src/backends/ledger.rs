//! A tree of files with its whole past: shared by the backends that keep both in memory.
//!
//! `F` is what the backend keeps of a file: its bytes, or where they are.

mod draft;
mod tree;

use std::collections::{BTreeMap, HashMap};

pub(super) use draft::Draft;
pub(super) use tree::{Entry, Node, Tree};

use super::trail::Trail;
use crate::backend::{Applied, ChangeId, Depth, HistoryQuery, Moment, Origin, Past, Version, not_in_history};
use crate::error::Result;
use crate::locator::Locator;

/// What is there, and every change that made it so.
pub(super) struct Ledger<F> {
    pub(super) tree: Tree<F>,
    /// Every change that was applied, oldest first.
    past: Vec<Record<F>>,
    /// Which change an idempotency key belongs to, as an index into `past`.
    keys: HashMap<String, usize>,
}

struct Record<F> {
    seq: u64,
    past: Past,
    versions: Vec<Option<Version>>,
    /// What was at each place that the change touched, before it.
    before: BTreeMap<String, Option<Entry<F>>>,
}

impl<F> Default for Ledger<F> {
    fn default() -> Self {
        Ledger { tree: Tree::default(), past: Vec::new(), keys: HashMap::new() }
    }
}

impl<F: Clone> Ledger<F> {
    pub(super) fn changes(&self) -> usize {
        self.past.len()
    }

    /// Takes in a change whose number is above all before it.
    pub(super) fn push(
        &mut self,
        seq: u64,
        past: Past,
        versions: Vec<Option<Version>>,
        changed: BTreeMap<String, Option<Entry<F>>>,
    ) {
        let before = self.tree.swap(changed);
        if let Some(key) = &past.note.key {
            self.keys.insert(key.clone(), self.past.len());
        }
        self.past.push(Record { seq, past, versions, before });
    }

    /// The files that a change touched, under their names before and now.
    #[cfg_attr(not(any(feature = "object", feature = "memory-stores")), allow(dead_code))] // Only backends with plain copies use it.
    pub(super) fn touched(&self, seq: u64) -> Vec<Locator> {
        let Ok(index) = self.past.binary_search_by_key(&seq, |record| record.seq) else { return Vec::new() };
        let file = |entry: &'_ Entry<F>| matches!(entry.node, Node::File(_)).then_some(entry.at.clone());
        let mut places = Vec::new();
        for (key, before) in &self.past[index].before {
            let now = self.tree.twin(key).and_then(file);
            let before = before.as_ref().and_then(file).filter(|at| Some(at) != now.as_ref());
            places.extend(before.into_iter().chain(now));
        }
        places
    }

    /// The last change that touched a place, if there was one, and who made it.
    #[cfg_attr(not(any(feature = "object", feature = "memory-stores")), allow(dead_code))] // As above.
    pub(super) fn last_touch(&self, at: &Locator) -> Option<(u64, Origin)> {
        let key = tree::folded(at);
        let last = self.past.iter().rev().find(|record| record.before.contains_key(&key));
        last.map(|record| (record.seq, record.past.note.actor.origin))
    }

    /// What a place has held before what it holds now, newest first.
    #[cfg_attr(not(any(feature = "object", feature = "memory-stores")), allow(dead_code))] // As above.
    pub(super) fn earlier(&self, at: &Locator, most: usize) -> Vec<F> {
        let key = tree::folded(at);
        let held = self.past.iter().rev().filter_map(|record| record.before.get(&key)?.clone());
        held.filter(|entry| entry.at == *at).filter_map(|entry| entry.node.into_file()).take(most).collect()
    }

    /// The answer to a repeat of an idempotency key; `None` if the key is new.
    pub(super) fn replay(&self, key: &str) -> Option<Applied> {
        let record = &self.past[*self.keys.get(key)?];
        Some(Applied::before(record.past.change.clone(), record.versions.clone(), &record.past.note))
    }

    /// What is beneath a folder, in order.
    pub(super) fn list(&self, under: &Locator, depth: Depth) -> Vec<&Entry<F>> {
        let wanted = |entry: &&Entry<F>| depth == Depth::All || entry.at.parent().as_ref() == Some(under);
        let mut found: Vec<&Entry<F>> = self.tree.beneath(under).filter(wanted).collect();
        found.sort_by(|one, other| one.at.cmp(&other.at));
        found
    }

    pub(super) fn history(&self, query: &HistoryQuery) -> Result<Vec<Past>> {
        let end = match &query.before {
            None => self.past.len(),
            Some(change) => self.index_of(change)?,
        };
        let limit = if query.limit == 0 { usize::MAX } else { query.limit };
        let mut trail = query.at.as_ref().map(Trail::of);
        // The trail starts at the present, also when only older changes are asked for.
        let newest_first = self.past.iter().enumerate().rev();
        let touched = newest_first
            .filter(|(_, record)| trail.as_mut().is_none_or(|trail| trail.touched_by(&record.past.edits)));
        let older = touched.filter(|(index, record)| *index < end && !record.past.note.derived);
        Ok(older.take(limit).map(|(_, record)| record.past.clone()).collect())
    }

    /// The file that was at a place at a moment.
    pub(super) fn past_file(&self, at: &Locator, moment: &Moment) -> Result<Option<F>> {
        let next = match moment {
            Moment::Before(change) => self.index_of(change)?,
            Moment::After(change) => self.index_of(change)? + 1,
        };
        // The first change since then that touched the place knows what it found there.
        let key = tree::folded(at);
        let found = self.past[next..].iter().find_map(|record| record.before.get(&key));
        let node = match found {
            Some(entry) => entry.as_ref().filter(|entry| entry.at == *at).map(|entry| entry.node.clone()),
            None => self.tree.get(at),
        };
        Ok(node.and_then(Node::into_file))
    }

    fn index_of(&self, change: &ChangeId) -> Result<usize> {
        let seq: Option<u64> = change.as_str().parse().ok();
        let index = seq.and_then(|seq| self.past.binary_search_by_key(&seq, |record| record.seq).ok());
        index.ok_or_else(|| not_in_history(format!("the change `{change}`")))
    }
}
