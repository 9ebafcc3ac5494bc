//! A change as it would turn out: edits are tried here first, and the tree is left alone until all
//! of them are known to be possible.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::tree::{Entry, File, Node, Tree, folded, range_beneath};
use crate::backend::{
    Edit, Expect, Op, PastEdit, Version, exists, into_itself, is_file, is_folder, not_empty, not_found,
};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;

/// A tree with some entries changed.
pub(super) struct Draft<'a> {
    tree: &'a Tree,
    changed: BTreeMap<String, Option<Entry>>,
    time: Timestamp,
    stamp: u64,
}

impl<'a> Draft<'a> {
    pub(super) fn new(tree: &'a Tree, time: Timestamp, stamp: u64) -> Self {
        Draft { tree, changed: BTreeMap::new(), time, stamp }
    }

    /// The entries that differ from the tree's (`None`: removed).
    pub(super) fn finish(self) -> BTreeMap<String, Option<Entry>> {
        self.changed
    }

    /// Makes a folder with its parents.
    pub(super) fn mkdir(&mut self, at: &Locator) -> Result<()> {
        match self.get(at) {
            Some(Node::Folder { .. }) => Ok(()),
            Some(Node::File(_)) => Err(exists(at)),
            None => {
                self.make_way(at, None)?;
                self.put(at, Node::Folder { mtime: self.time });
                Ok(())
            }
        }
    }

    /// Does one edit; gives back what the history keeps of it, and the version it left behind
    /// where the caller is to be told.
    pub(super) fn apply(&mut self, edit: &Edit) -> Result<(PastEdit, Option<Version>)> {
        match edit {
            Edit::Write { at, bytes, expect } => {
                let old = self.file_for_writing(at, expect)?.map(|file| file.version.clone());
                let new = self.write(at, bytes.as_slice().into());
                Ok((past(Op::Write, at, None, old, Some(new.clone())), Some(new)))
            }
            Edit::Append { at, bytes, expect } => {
                let there = self.file_for_writing(at, expect)?;
                let old = there.as_ref().map(|file| file.version.clone());
                let before: &[u8] = there.as_ref().map_or(&[], |file| &file.bytes);
                let new = self.write(at, [before, bytes].concat().into());
                Ok((past(Op::Append, at, None, old, Some(new)), None))
            }
            Edit::Delete { at, expect } => {
                let old = self.delete(at, expect)?;
                Ok((past(Op::Delete, at, None, old, None), None))
            }
            Edit::Rename { from, to, expect } => {
                let version = self.rename(from, to, expect)?;
                Ok((past(Op::Rename, from, Some(to.clone()), version.clone(), version), None))
            }
        }
    }

    /// The file that is there and is to be replaced; `None` if a new one may be made.
    fn file_for_writing(&mut self, at: &Locator, expect: &Expect) -> Result<Option<Arc<File>>> {
        match self.get(at) {
            Some(Node::Folder { .. }) => Err(folder_met(at, expect).err().unwrap_or_else(|| is_folder(at))),
            Some(Node::File(file)) => {
                expect.check(at, Some(&file.version))?;
                Ok(Some(file))
            }
            None => {
                expect.check(at, None)?;
                self.make_way(at, None)?;
                Ok(None)
            }
        }
    }

    fn write(&mut self, at: &Locator, bytes: Arc<[u8]>) -> Version {
        let version = Version::of(&bytes);
        let file = File { bytes, version: version.clone(), mtime: self.time, stamp: self.stamp };
        self.put(at, Node::File(Arc::new(file)));
        version
    }

    fn delete(&mut self, at: &Locator, expect: &Expect) -> Result<Option<Version>> {
        let version = self.version_for_moving(at, expect)?;
        if at.is_root() {
            return Err(Error::new(Kind::Invalid, "the root cannot be deleted").code(code::INVALID_PATH));
        }
        if !self.beneath(at).is_empty() {
            return Err(not_empty(at));
        }
        self.remove(at);
        Ok(version)
    }

    fn rename(&mut self, from: &Locator, to: &Locator, expect: &Expect) -> Result<Option<Version>> {
        let version = self.version_for_moving(from, expect)?;
        if from != to && to.is_within(from) {
            return Err(into_itself(from, to));
        }
        if self.get(to).is_some() {
            return Err(exists(to));
        }
        self.make_way(to, Some(from))?;
        let mut moved = self.beneath(from);
        moved.extend(self.get(from).map(|node| Entry { at: from.clone(), node }));
        for entry in &moved {
            self.remove(&entry.at);
        }
        for entry in moved {
            let at = entry.at.rebased(from, to).expect("it is beneath what is moved");
            at.check_creatable()?;
            self.put(&at, entry.node);
        }
        Ok(version)
    }

    /// The version of what is to be removed or moved; `None` for a folder.
    fn version_for_moving(&self, at: &Locator, expect: &Expect) -> Result<Option<Version>> {
        match self.get(at) {
            None => {
                expect.check(at, None)?;
                Err(not_found(at))
            }
            Some(Node::Folder { .. }) => folder_met(at, expect).map(|()| None),
            Some(Node::File(file)) => {
                expect.check(at, Some(&file.version))?;
                Ok(Some(file.version.clone()))
            }
        }
    }

    /// Checks that something new may be made at a free place, and makes the folders above it.
    /// `moving` is about to leave its own place, so a new spelling of its name is no twin.
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

    fn get(&self, at: &Locator) -> Option<Node> {
        if at.is_root() {
            return self.tree.get(at).cloned();
        }
        self.twin(&folded(at)).filter(|entry| entry.at == *at).map(|entry| entry.node.clone())
    }

    fn twin(&self, key: &str) -> Option<&Entry> {
        match self.changed.get(key) {
            Some(entry) => entry.as_ref(),
            None => self.tree.twin(key),
        }
    }

    fn beneath(&self, under: &Locator) -> Vec<Entry> {
        let key = folded(under);
        let unchanged = self.tree.beneath(under).map(|entry| folded(&entry.at));
        let changed = range_beneath(&self.changed, &key).map(|(key, _)| key.clone());
        let keys: BTreeSet<String> = unchanged.chain(changed).collect();
        keys.iter().filter_map(|key| self.twin(key).cloned()).collect()
    }

    fn put(&mut self, at: &Locator, node: Node) {
        self.changed.insert(folded(at), Some(Entry { at: at.clone(), node }));
    }

    fn remove(&mut self, at: &Locator) {
        self.changed.insert(folded(at), None);
    }
}

/// What an expectation says of a folder, which has no version: only `Any` is met.
fn folder_met(at: &Locator, expect: &Expect) -> Result<()> {
    match expect {
        Expect::Any => Ok(()),
        Expect::Absent => Err(exists(at)),
        Expect::At(_) => Err(is_folder(at)),
    }
}

fn past(op: Op, at: &Locator, to: Option<Locator>, old: Option<Version>, new: Option<Version>) -> PastEdit {
    PastEdit { op, at: at.clone(), to, old, new }
}
