//! What is known of notes without reading them: `.metadata/index.json`. It is derived, and may be missing
//! or outdated at any time; it is small, because every search reads all of it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use super::page::{Page, SPLIT_FROM};
use super::paths::{METADATA, note_at, path_of, resolved};
use super::signature::{Signature, Word};
use crate::backend::{Edit, Expect, FileKind, Info};
use crate::error::Result;
use crate::locator::Locator;
use crate::store::Store;

/// The file of the index, beside the notes.
const INDEX: &str = "index.json";

/// One note: its size and stamp when it was read, its words, and its links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry(u64, u64, Signature, Vec<Target>);

/// The target of a link. In the file it is a number: the place of its path among all paths.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
enum Target {
    Note(usize),
    Named(String),
}

impl Entry {
    /// Returns what is remembered of a note that was just read.
    pub(super) fn of(path: &str, info: &Info, page: &Page) -> Self {
        let links: BTreeSet<Target> =
            page.edges().into_iter().map(|(target, _)| Target::Named(target)).collect();
        Entry(info.size, info.stamp, Signature::of(path, page), links.into_iter().collect())
    }

    /// Returns the entry with every link replaced by `change`.
    fn linked(self, change: impl Fn(Target) -> Target) -> Self {
        Entry(self.0, self.1, self.2, self.3.into_iter().map(change).collect())
    }

    fn is_of(&self, size: u64, stamp: u64) -> bool {
        (self.0, self.1) == (size, stamp)
    }
}

/// All notes, as they were when they were last read.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Index {
    notes: BTreeMap<String, Entry>,
}

impl Index {
    /// Reads the stored index and its size; empty if it is missing or damaged.
    fn read(store: &Store, root: &Locator) -> Result<(Self, usize)> {
        let content = store.read_optional(&root.child(METADATA)?.child(INDEX)?)?;
        let Some(content) = content else { return Ok(Default::default()) };
        let kept: Index = serde_json::from_slice(&content.bytes).unwrap_or_default();
        let paths: Vec<String> = kept.notes.keys().cloned().collect();
        let named = |target: Target| match target {
            Target::Note(at) => Target::Named(paths.get(at).cloned().unwrap_or_default()),
            named => named,
        };
        let notes = kept.notes.into_iter().map(|(path, entry)| (path, entry.linked(named))).collect();
        Ok((Index { notes }, content.bytes.len()))
    }

    /// Returns the index as its file stores it.
    fn text(self) -> String {
        let paths: Vec<String> = self.notes.keys().cloned().collect();
        let placed = |target: Target| match target {
            Target::Named(path) => paths.binary_search(&path).map_or(Target::Named(path), Target::Note),
            placed => placed,
        };
        let notes = self.notes.into_iter().map(|(path, entry)| (path, entry.linked(placed))).collect();
        serde_json::to_string(&Index { notes }).unwrap_or_default() + "\n"
    }

    /// Returns the edit that brings the index up to date, if it is outdated: from what was just read, what
    /// it already knows, and by reading the rest.
    pub(super) fn kept<'n>(
        store: &Store,
        root: &Locator,
        notes: impl Iterator<Item = (&'n String, u64, u64)>,
        mut fresh: BTreeMap<String, Entry>,
    ) -> Result<Option<Edit>> {
        let (old, _) = Index::read(store, root)?;
        let mut new = Index::default();
        for (path, size, stamp) in notes {
            let known = fresh.remove(path).or_else(|| old.notes.get(path).cloned());
            let entry = match known.filter(|entry| entry.is_of(size, stamp)) {
                Some(entry) => Some(entry),
                None => read(store, root, path)?,
            };
            new.notes.extend(entry.map(|entry| (path.clone(), entry)));
        }
        if new == old {
            return Ok(None);
        }
        let at = root.child(METADATA)?.child(INDEX)?;
        Ok(Some(Edit::Write { at, bytes: new.text().into(), expect: Expect::Any }))
    }
}

fn read(store: &Store, root: &Locator, path: &str) -> Result<Option<Entry>> {
    let at = note_at(root, path)?;
    let Some(info) = store.info_optional(&at)? else { return Ok(None) };
    let Some(content) = store.read_optional(&at)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&content.bytes);
    Ok(Some(Entry::of(path, &info, &Page::parse(&text))))
}

/// What is known of notes without reading them, for those that have not changed since.
pub(super) struct Known {
    /// The paths of all notes.
    pub(super) paths: Vec<String>,
    /// How many bytes were read for this.
    pub(super) bytes: usize,
    unchanged: BTreeMap<String, Entry>,
}

impl Known {
    /// Reads the index, and keeps what is still true.
    pub(super) fn of(store: &Store, root: &Locator) -> Result<Self> {
        let (index, bytes) = Index::read(store, root)?;
        let mut unchanged = index.notes;
        let infos = store.list_all(root)?;
        let files = infos.iter().filter(|info| info.kind == FileKind::File);
        let there: BTreeMap<String, (u64, u64)> =
            files.filter_map(|info| Some((path_of(root, &info.locator)?, (info.size, info.stamp)))).collect();
        let same = |path: &String, entry: &Entry| {
            there.get(path).is_some_and(|(size, stamp)| entry.is_of(*size, *stamp))
        };
        unchanged.retain(|path, entry| same(path, entry));
        Ok(Known { paths: there.into_keys().collect(), bytes, unchanged })
    }

    /// Returns where a link leads. Which note another was split from is read from the note, only if the
    /// link cannot be followed without that.
    pub(super) fn leads(&self, store: &Store, root: &Locator, target: &str, from: &str) -> Option<String> {
        let origin = |path: &str| {
            let content = store.read_optional(&note_at(root, path).ok()?).ok()??;
            let page = Page::parse(&String::from_utf8_lossy(&content.bytes));
            page.meta(SPLIT_FROM).map(str::to_owned)
        };
        resolved(target, from, &self.paths, &mut { origin }).map(str::to_owned)
    }

    /// Whether most of the notes are unknown.
    pub(super) fn is_old(&self) -> bool {
        self.unchanged.len() * 2 < self.paths.len()
    }

    /// Returns for each block of a note how much of some words it may have, and the size of the note;
    /// `None` if that is unknown.
    pub(super) fn shares(
        &self,
        path: &str,
        asked: &[Word],
        weights: &[f64],
        around: f64,
    ) -> Option<(Vec<f64>, u64)> {
        let entry = self.unchanged.get(path)?;
        Some((entry.2.shares(asked, weights, around), entry.0))
    }

    /// Whether a note is known to have none of some words.
    pub(super) fn has_none(&self, path: &str, asked: &[Word]) -> bool {
        let none = |entry: &Entry| asked.iter().all(|word| !entry.2.may_hold(*word));
        self.unchanged.get(path).is_some_and(none)
    }

    /// Returns where a note's links lead; `None` if that is unknown.
    pub(super) fn links(&self, path: &str) -> Option<Vec<String>> {
        let name = |target: &Target| match target {
            Target::Named(path) => Some(path.clone()),
            Target::Note(_) => None,
        };
        self.unchanged.get(path).map(|entry| entry.3.iter().filter_map(name).collect())
    }

    /// Returns in how many blocks of the known notes, except for those in `aside`, a word may be.
    pub(super) fn blocks_with(&self, word: Word, aside: &HashSet<String>) -> usize {
        let others = self.unchanged.iter().filter(|(path, _)| !aside.contains(*path));
        others.map(|(_, entry)| entry.2.blocks_with(word)).sum()
    }
}
