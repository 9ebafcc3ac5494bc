//! What a change would leave: its edits are tried here first, and the tree is not touched until all of them
//! are known to be possible.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{Entry, Node, Tree, folded, range_beneath};
use crate::backend::{
    Expect, Version, exists, into_itself, is_file, is_folder, not_empty, not_found, root_stays, taken,
};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;

/// Tells the version of a file, however much that costs: asked only where a change expects one.
pub(in crate::backends) type Versions<'a, F> = &'a dyn Fn(&Locator, &F) -> Result<Version>;

/// A tree with some entries changed.
pub(in crate::backends) struct Draft<'a, F> {
    tree: &'a Tree<F>,
    changed: BTreeMap<String, Option<Entry<F>>>,
    time: Timestamp,
    versions: Versions<'a, F>,
}

impl<'a, F: Clone> Draft<'a, F> {
    pub(in crate::backends) fn new(tree: &'a Tree<F>, time: Timestamp, versions: Versions<'a, F>) -> Self {
        Draft { tree, changed: BTreeMap::new(), time, versions }
    }

    /// The entries that differ from the tree's (`None`: removed).
    pub(in crate::backends) fn finish(self) -> BTreeMap<String, Option<Entry<F>>> {
        self.changed
    }

    /// Makes a folder with its parents; returns `false` if it was there already.
    pub(in crate::backends) fn mkdir(&mut self, at: &Locator) -> Result<bool> {
        match self.get(at) {
            Some(Node::Folder { .. }) => Ok(false),
            Some(Node::File(_)) => Err(exists(at)),
            None => {
                self.make_way(at, None)?;
                self.put(at, Node::Folder { mtime: self.time });
                Ok(true)
            }
        }
    }

    /// Replaces what is at a place by the file that `make` makes of it, and returns what was there.
    pub(in crate::backends) fn write(
        &mut self,
        at: &Locator,
        expect: &Expect,
        make: impl FnOnce(Option<&F>) -> F,
    ) -> Result<Option<F>> {
        let there = match self.get(at) {
            Some(Node::Folder { .. }) => {
                return Err(folder_met(at, expect).err().unwrap_or_else(|| is_folder(at)));
            }
            Some(Node::File(file)) => {
                self.check(at, &file, expect)?;
                Some(file)
            }
            None => {
                expect.check(at, None)?;
                self.make_way(at, None)?;
                None
            }
        };
        let file = make(there.as_ref());
        self.put(at, Node::File(file));
        Ok(there)
    }

    /// Removes a file or an empty folder; gives back the file.
    pub(in crate::backends) fn delete(&mut self, at: &Locator, expect: &Expect) -> Result<Option<F>> {
        let file = self.file_for_moving(at, expect)?;
        if at.is_root() {
            return Err(root_stays());
        }
        if !self.beneath(at).is_empty() {
            return Err(not_empty(at));
        }
        self.remove(at);
        Ok(file)
    }

    /// Moves a file, or a folder with all that it holds; gives back the file.
    pub(in crate::backends) fn rename(
        &mut self,
        from: &Locator,
        to: &Locator,
        expect: &Expect,
    ) -> Result<Option<F>> {
        let file = self.file_for_moving(from, expect)?;
        if from != to && to.is_within(from) {
            return Err(into_itself(from, to));
        }
        if self.get(to).is_some() {
            return Err(taken(to));
        }
        self.make_way(to, Some(from))?;
        let mut moved = self.beneath(from);
        moved.extend(self.get(from).map(|node| Entry { at: from.clone(), node }));
        for entry in &moved {
            self.remove(&entry.at);
        }
        for entry in moved {
            let at = entry.at.rebased(from, to).expect("it is beneath what is moved");
            at.check_length()?;
            self.put(&at, entry.node);
        }
        Ok(file)
    }

    /// The file that is to be removed or moved; `None` for a folder.
    fn file_for_moving(&self, at: &Locator, expect: &Expect) -> Result<Option<F>> {
        match self.get(at) {
            None => {
                expect.check(at, None)?;
                Err(not_found(at))
            }
            Some(Node::Folder { .. }) => folder_met(at, expect).map(|()| None),
            Some(Node::File(file)) => self.check(at, &file, expect).map(|()| Some(file)),
        }
    }

    fn check(&self, at: &Locator, file: &F, expect: &Expect) -> Result<()> {
        match expect {
            Expect::Any => Ok(()),
            Expect::Absent => Err(exists(at)),
            Expect::At(_) => expect.check(at, Some(&(self.versions)(at, file)?)),
        }
    }

    /// Checks that something may be made at a free place, and makes the folders above it. `moving` is about
    /// to leave its own place, so it does not count as a twin of its new name.
    fn make_way(&mut self, at: &Locator, moving: Option<&Locator>) -> Result<()> {
        at.check_creatable()?;
        let mut folders: Vec<Locator> = at.ancestors().collect();
        folders.reverse();
        for folder in folders {
            match self.get(&folder) {
                Some(Node::File(_)) => return Err(is_file(&folder)),
                Some(Node::Folder { .. }) => {}
                None => {
                    self.check_no_twin(&folder, None)?;
                    self.put(&folder, Node::Folder { mtime: self.time });
                }
            }
        }
        self.check_no_twin(at, moving)
    }

    fn check_no_twin(&self, at: &Locator, moving: Option<&Locator>) -> Result<()> {
        match self.twin(&folded(at)) {
            Some(entry) if entry.at != *at && Some(&entry.at) != moving => Err(Error::new(
                Kind::Exists,
                format!("`{at}` cannot be told apart from `{}` on every system", entry.at),
            )
            .code(code::FILE_EXISTS)
            .hint(format!("use `{}`, or choose a name that differs in more than case", entry.at))),
            _ => Ok(()),
        }
    }

    fn get(&self, at: &Locator) -> Option<Node<F>> {
        if at.is_root() {
            return self.tree.get(at);
        }
        self.twin(&folded(at)).filter(|entry| entry.at == *at).map(|entry| entry.node.clone())
    }

    fn twin(&self, key: &str) -> Option<&Entry<F>> {
        match self.changed.get(key) {
            Some(entry) => entry.as_ref(),
            None => self.tree.twin(key),
        }
    }

    fn beneath(&self, under: &Locator) -> Vec<Entry<F>> {
        let key = folded(under);
        let unchanged = self.tree.beneath(under).map(|entry| folded(&entry.at));
        let changed = range_beneath(&self.changed, &key).map(|(key, _)| key.clone());
        let keys: BTreeSet<String> = unchanged.chain(changed).collect();
        keys.iter().filter_map(|key| self.twin(key).cloned()).collect()
    }

    fn put(&mut self, at: &Locator, node: Node<F>) {
        self.changed.insert(folded(at), Some(Entry { at: at.clone(), node }));
    }

    fn remove(&mut self, at: &Locator) {
        self.changed.insert(folded(at), None);
    }
}

/// Checks an expectation against a folder: it has no version, so only `Any` is met.
fn folder_met(at: &Locator, expect: &Expect) -> Result<()> {
    match expect {
        Expect::Any => Ok(()),
        Expect::Absent => Err(exists(at)),
        Expect::At(_) => Err(is_folder(at)),
    }
}
