//! What a store should hold, worked out without a disk, and what it does hold.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use memgrove::backend::{Backend, Depth, Edit, FileKind};
use memgrove::vfs::{Open, Rename, Vfs};
use memgrove::{Locator, Result};

/// Every file with its bytes and every folder (`None`), by key.
pub(crate) type Tree = BTreeMap<String, Option<Arc<[u8]>>>;

pub(crate) fn at(key: &str) -> Locator {
    Locator::new(key).expect("a valid key")
}

/// The tree after a change; `None` if the change must be refused.
pub(crate) fn applied(tree: &Tree, edits: &[Edit]) -> Option<Tree> {
    let mut tree = tree.clone();
    for edit in edits {
        match edit {
            Edit::Write { at, bytes, .. } => put(&mut tree, at, bytes[..].into())?,
            Edit::Append { at, bytes, .. } => {
                let old = tree.get(at.key()).cloned().flatten().unwrap_or_default();
                put(&mut tree, at, [&*old, bytes].concat().into())?;
            }
            Edit::Delete { at, .. } => {
                let is_used = tree.keys().any(|key| key.starts_with(&format!("{at}/")));
                tree.remove(at.key()).filter(|_| !is_used)?;
            }
            Edit::Rename { from, to, .. } => tree = renamed(tree, from, to)?,
        }
    }
    Some(tree)
}

/// The tree with a folder and its parents; `None` if a file is in the way.
pub(crate) fn with_folder(mut tree: Tree, folder: &Locator) -> Option<Tree> {
    for folder in folder.ancestors().chain([folder.clone()]).filter(|folder| !folder.is_root()) {
        if tree.insert(folder.key().into(), None).is_some_and(|there| there.is_some()) {
            return None;
        }
    }
    Some(tree)
}

fn put(tree: &mut Tree, at: &Locator, bytes: Arc<[u8]>) -> Option<()> {
    *tree = with_folder(std::mem::take(tree), &at.parent()?)?;
    match tree.insert(at.key().into(), Some(bytes)) {
        Some(None) => None,
        _ => Some(()),
    }
}

fn renamed(tree: Tree, from: &Locator, to: &Locator) -> Option<Tree> {
    if !tree.contains_key(from.key()) || tree.contains_key(to.key()) || to.is_within(from) {
        return None;
    }
    let moved = |(key, there): (String, _)| match at(&key).rebased(from, to) {
        Some(target) => (target.key().to_owned(), there),
        None => (key, there),
    };
    with_folder(tree.into_iter().map(moved).collect(), &to.parent()?)
}

/// What a backend shows.
pub(crate) fn observed(backend: &dyn Backend) -> Result<Tree> {
    let mut tree = Tree::new();
    for info in backend.list(&Locator::root(), Depth::All)? {
        let there = match info.kind {
            FileKind::Folder => None,
            _ => Some(backend.read(&info.locator)?.bytes.into()),
        };
        tree.insert(info.locator.key().into(), there);
    }
    Ok(tree)
}

/// What two trees do not have in common, for a person to read.
pub(crate) fn difference(expected: &Tree, found: &Tree) -> String {
    let keys: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let lines = keys.into_iter().filter_map(|key| {
        let (expected, found) = (expected.get(key), found.get(key));
        let from = match (expected, found) {
            _ if expected == found => return None,
            (Some(Some(expected)), Some(Some(found))) => {
                expected.iter().zip(&**found).take_while(|(a, b)| a == b).count()
            }
            _ => 0,
        };
        let shown = |there| show(there, from);
        Some(format!("  {key}, from byte {from}: expected {}, found {}", shown(expected), shown(found)))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn show(there: Option<&Option<Arc<[u8]>>>, from: usize) -> String {
    match there {
        None => "nothing".to_owned(),
        Some(None) => "a folder".to_owned(),
        Some(Some(bytes)) => {
            let part = &bytes[from..bytes.len().min(from + 24)];
            format!("`{}` of {} bytes", part.escape_ascii(), bytes.len())
        }
    }
}

/// The temporary files that lie anywhere on the disk.
pub(crate) fn leftovers(disk: &dyn Vfs, under: &str) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for (name, stat) in disk.read_dir(under)? {
        let name = name.unwrap_or_else(|escaped| escaped);
        let full = if under.is_empty() { name.clone() } else { format!("{under}/{name}") };
        if stat.kind == FileKind::Folder {
            found.extend(leftovers(disk, &full)?);
        } else if name.starts_with(".mtmp-") || full.contains(".journal/tmp-") {
            found.push(full);
        }
    }
    Ok(found)
}

/// How a person's editor, or another program, saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Save {
    /// It opens the file and writes over it.
    InPlace,
    /// It writes another file and renames it over the first.
    ByRename,
    /// It adds to the file.
    Append,
}

/// Whether what was saved is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Synced {
    Yes,
    /// As most programs do.
    No,
}

/// Saves as an editor does, past the store.
pub(crate) fn hand_edit(
    tree: &dyn Vfs,
    at: &Locator,
    bytes: &[u8],
    (save, synced): (Save, Synced),
) -> io::Result<()> {
    let key = at.key();
    let swap = format!("{key}{SWAP}");
    let file = match save {
        Save::InPlace | Save::Append => tree.open(key, Open::WriteOrCreate)?,
        Save::ByRename => tree.open(&swap, Open::CreateNew)?,
    };
    match save {
        Save::Append => file.append(bytes)?,
        _ => file.set_len(0).and_then(|()| file.write_at(0, bytes))?,
    }
    if synced == Synced::Yes {
        file.sync_data()?;
    }
    if save == Save::ByRename {
        tree.rename(&swap, key, Rename::Replace)?;
    }
    if synced == Synced::No {
        return Ok(());
    }
    at.ancestors().try_for_each(|folder| tree.sync_dir(folder.key()))?;
    tree.sync_dir("")
}

/// How the names end that an editor saves under first.
const SWAP: char = '~';

/// The files whose content is in doubt, because someone saved them past the store and not durably, each with what was
/// added to it since and answered.
pub(crate) type Doubts = BTreeMap<String, Vec<Arc<[u8]>>>;

/// What is in doubt after a change.
pub(crate) fn doubts_after(doubts: &Doubts, edits: &[Edit]) -> Doubts {
    let mut doubts = doubts.clone();
    for edit in edits {
        match edit {
            Edit::Write { at, .. } | Edit::Delete { at, .. } => drop(doubts.remove(at.key())),
            Edit::Append { at, bytes, .. } => {
                doubts.entry(at.key().into()).and_modify(|added| added.push(bytes[..].into()));
            }
            Edit::Rename { from, to, .. } => {
                let moved = |(key, added): (String, _)| match at(&key).rebased(from, to) {
                    Some(target) => (target.key().to_owned(), added),
                    None => (key, added),
                };
                doubts = doubts.into_iter().map(moved).collect();
            }
        }
    }
    doubts
}

/// The part of a tree that is not in doubt.
pub(crate) fn undoubted(mut tree: Tree, doubts: &Doubts) -> Tree {
    tree.retain(|key, _| !doubts.contains_key(key) && !key.ends_with(SWAP));
    tree
}

/// Whether what was added to files in doubt is there, whole.
pub(crate) fn has_added(tree: &Tree, doubts: &Doubts) -> bool {
    let holds = |there: &[u8], added: &[u8]| there.windows(added.len()).any(|window| window == added);
    let mut all = doubts.iter().flat_map(|(key, added)| added.iter().map(move |added| (key, added)));
    all.all(|(key, added)| {
        tree.get(key).is_some_and(|there| there.as_ref().is_some_and(|there| holds(there, added)))
    })
}
