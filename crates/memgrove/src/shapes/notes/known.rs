//! What is known of notes without reading them: `.metadata/index.json`. It is derived, may be missing or
//! old at any time, and is small, because every search reads it whole.

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

/// One note: its size and stamp when it was read, its words, and where it leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry(u64, u64, Signature, Vec<Target>);

/// Where a link leads: to a path, which in the file is the place of that path among all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
enum Target {
    Note(usize),
    Named(String),
}

impl Entry {
    /// What is kept of a note that was just read.
    pub(super) fn of(path: &str, info: &Info, page: &Page) -> Self {
        let links: BTreeSet<Target> =
            page.edges().into_iter().map(|(target, _)| Target::Named(target)).collect();
        Entry(info.size, info.stamp, Signature::of(path, page), links.into_iter().collect())
    }

    /// The same with every link as `change` makes it.
    fn linked(self, change: impl Fn(Target) -> Target) -> Self {
        Entry(self.0, self.1, self.2, self.3.into_iter().map(change).collect())
    }

    fn is_of(&self, size: u64, stamp: u64) -> bool {
        (self.0, self.1) == (size, stamp)
    }
}

/// All notes, as they were when they were last looked at.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Index {
    notes: BTreeMap<String, Entry>,
}

impl Index {
    /// The index as it was kept, and its size; empty if it is missing or damaged.
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

    /// The index as its file has it.
    fn text(self) -> String {
        let paths: Vec<String> = self.notes.keys().cloned().collect();
        let placed = |target: Target| match target {
            Target::Named(path) => paths.binary_search(&path).map_or(Target::Named(path), Target::Note),
            placed => placed,
        };
        let notes = self.notes.into_iter().map(|(path, entry)| (path, entry.linked(placed))).collect();
        serde_json::to_string(&Index { notes }).unwrap_or_default() + "\n"
    }

    /// The edit that brings the index up to date, if it is not: with what was just read, with what it
    /// knows itself, and by reading the rest.
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

/// What is known of notes without reading them: only of those that have not changed since.
pub(super) struct Known {
    /// The paths of all notes.
    pub(super) paths: Vec<String>,
    /// How many bytes it cost to know.
    pub(super) bytes: usize,
    unchanged: BTreeMap<String, Entry>,
}

impl Known {
    /// What the index still knows.
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

    /// Where a link leads. What a note was split from is looked up in the note, and only for a link that
    /// cannot be followed without.
    pub(super) fn leads(&self, store: &Store, root: &Locator, target: &str, from: &str) -> Option<String> {
        let origin = |path: &str| {
            let content = store.read_optional(&note_at(root, path).ok()?).ok()??;
            let page = Page::parse(&String::from_utf8_lossy(&content.bytes));
            page.meta(SPLIT_FROM).map(str::to_owned)
        };
        resolved(target, from, &self.paths, &mut { origin }).map(str::to_owned)
    }

    /// Whether most of the notes are not known.
    pub(super) fn is_old(&self) -> bool {
        self.unchanged.len() * 2 < self.paths.len()
    }

    /// How much of some words each block of a note may have, and the size of the note; `None` if that is
    /// not known.
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

    /// Whether none of some words is in a note, as far as that is known.
    pub(super) fn has_none(&self, path: &str, asked: &[Word]) -> bool {
        let none = |entry: &Entry| asked.iter().all(|word| !entry.2.may_hold(*word));
        self.unchanged.get(path).is_some_and(none)
    }

    /// Where a note leads; `None` if that is not known.
    pub(super) fn links(&self, path: &str) -> Option<Vec<String>> {
        let name = |target: &Target| match target {
            Target::Named(path) => Some(path.clone()),
            Target::Note(_) => None,
        };
        self.unchanged.get(path).map(|entry| entry.3.iter().filter_map(name).collect())
    }

    /// In how many blocks of the known notes a word may be, those of some notes aside.
    pub(super) fn blocks_with(&self, word: Word, aside: &HashSet<String>) -> usize {
        let others = self.unchanged.iter().filter(|(path, _)| !aside.contains(*path));
        others.map(|(_, entry)| entry.2.blocks_with(word)).sum()
    }
}
