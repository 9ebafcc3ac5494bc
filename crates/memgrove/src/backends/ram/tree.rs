//! What is where: folders and files by name.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::BEGINNING;
use crate::backend::Version;
use crate::clock::Timestamp;
use crate::locator::{Locator, collision_key};

/// One file or folder.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Folder { mtime: Timestamp },
    File(Arc<File>),
}

impl Node {
    pub(super) fn file(&self) -> Option<&File> {
        match self {
            Node::Folder { .. } => None,
            Node::File(file) => Some(file),
        }
    }
}

#[derive(Debug)]
pub(super) struct File {
    pub(super) bytes: Arc<[u8]>,
    pub(super) version: Version,
    pub(super) mtime: Timestamp,
    pub(super) stamp: u64,
}

/// A node under its name.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) at: Locator,
    pub(super) node: Node,
}

/// Entries by folded key, so that two names that some system would take for one cannot both be
/// there. The root is always there and has no entry.
#[derive(Debug, Default)]
pub(super) struct Tree(BTreeMap<String, Entry>);

impl Tree {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What is exactly there.
    pub(super) fn get(&self, at: &Locator) -> Option<&Node> {
        if at.is_root() {
            return Some(&Node::Folder { mtime: BEGINNING });
        }
        self.twin(&folded(at)).filter(|entry| entry.at == *at).map(|entry| &entry.node)
    }

    /// What is there, whatever the case of its name.
    pub(super) fn twin(&self, key: &str) -> Option<&Entry> {
        self.0.get(key)
    }

    /// Everything beneath a folder, itself not included; nothing if it is absent or a file.
    pub(super) fn beneath(&self, under: &Locator) -> impl Iterator<Item = &Entry> {
        range_beneath(&self.0, &folded(under))
            .map(|(_, entry)| entry)
            .filter(|entry| entry.at.is_within(under))
    }

    /// Puts new entries in place (`None`: removes) and gives back what was there before.
    pub(super) fn swap(
        &mut self,
        changed: BTreeMap<String, Option<Entry>>,
    ) -> BTreeMap<String, Option<Entry>> {
        changed
            .into_iter()
            .map(|(key, entry)| {
                let before = match entry {
                    Some(entry) => self.0.insert(key.clone(), entry),
                    None => self.0.remove(&key),
                };
                (key, before)
            })
            .collect()
    }
}

/// The key of a place with every name reduced to its [`collision_key`].
pub(super) fn folded(at: &Locator) -> String {
    let names: Vec<String> = at.parts().map(collision_key).collect();
    names.join("/")
}

/// The part of a map that lies beneath a folded key.
pub(super) fn range_beneath<'a, T>(
    map: &'a BTreeMap<String, T>,
    folder: &str,
) -> impl Iterator<Item = (&'a String, &'a T)> + use<'a, T> {
    let (from, to) = match folder {
        "" => (Bound::Unbounded, Bound::Unbounded),
        // `0` is the character after `/`.
        _ => (Bound::Excluded(format!("{folder}/")), Bound::Excluded(format!("{folder}0"))),
    };
    map.range((from, to))
}
