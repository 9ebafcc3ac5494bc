//! What is where: folders and files by name.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::clock::Timestamp;
use crate::locator::{Locator, collision_key};

/// One file or folder.
#[derive(Debug, Clone)]
pub(in crate::backends) enum Node<F> {
    /// A folder, and when it was made.
    Folder { mtime: Timestamp },
    /// A file.
    File(F),
}

impl<F> Node<F> {
    pub(in crate::backends) fn into_file(self) -> Option<F> {
        match self {
            Node::Folder { .. } => None,
            Node::File(file) => Some(file),
        }
    }
}

/// A node under its name.
#[derive(Debug, Clone)]
pub(in crate::backends) struct Entry<F> {
    pub(in crate::backends) at: Locator,
    pub(in crate::backends) node: Node<F>,
}

/// Entries by folded key, so that two names that some system would take for one cannot both be
/// there. The root is always there and has no entry.
#[derive(Debug)]
pub(in crate::backends) struct Tree<F>(BTreeMap<String, Entry<F>>);

impl<F> Default for Tree<F> {
    fn default() -> Self {
        Tree(BTreeMap::new())
    }
}

/// When the root was made: before everything in it.
const BEGINNING: Timestamp = Timestamp::UNIX_EPOCH;

impl<F: Clone> Tree<F> {
    pub(in crate::backends) fn len(&self) -> usize {
        self.0.len()
    }

    /// What is exactly there.
    pub(in crate::backends) fn get(&self, at: &Locator) -> Option<Node<F>> {
        if at.is_root() {
            return Some(Node::Folder { mtime: BEGINNING });
        }
        self.twin(&folded(at)).filter(|entry| entry.at == *at).map(|entry| entry.node.clone())
    }

    /// What is there, whatever the case of its name.
    pub(in crate::backends) fn twin(&self, key: &str) -> Option<&Entry<F>> {
        self.0.get(key)
    }

    /// Everything beneath a folder, itself not included; nothing if it is absent or a file.
    pub(in crate::backends) fn beneath(&self, under: &Locator) -> impl Iterator<Item = &Entry<F>> {
        range_beneath(&self.0, &folded(under))
            .map(|(_, entry)| entry)
            .filter(|entry| entry.at.is_within(under))
    }

    /// Puts new entries in place (`None`: removes) and gives back what was there before.
    pub(in crate::backends) fn swap(
        &mut self,
        changed: BTreeMap<String, Option<Entry<F>>>,
    ) -> BTreeMap<String, Option<Entry<F>>> {
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
pub(in crate::backends) fn folded(at: &Locator) -> String {
    let names: Vec<String> = at.parts().map(collision_key).collect();
    names.join("/")
}

/// The part of a map that lies beneath a folded key.
pub(in crate::backends) fn range_beneath<'a, T>(
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
