//! How names become durable: groups of assignments, each atomic, each resting on earlier ones.

use std::sync::Arc;

use super::disk::{Disk, Inode, Node, set};

/// What one name in one folder leads to from now on.
#[derive(Debug, Clone)]
pub(super) struct Assignment {
    pub(super) folder: Inode,
    pub(super) name: Arc<str>,
    pub(super) inode: Option<Inode>,
}

/// What one call did to names. It reaches the platter whole or not at all.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    pub(super) number: u64,
    pub(super) sets: Vec<Assignment>,
    /// The numbers of the groups that must have reached the platter before this one can.
    pub(super) needs: Vec<u64>,
    /// The folder that it made.
    pub(super) makes: Option<Inode>,
    /// The folder that it removed.
    pub(super) ends: Option<Inode>,
    /// Whether it moved a folder.
    pub(super) moves_folder: bool,
}

impl Group {
    pub(super) fn of<const N: usize>(sets: [Assignment; N]) -> Self {
        Group { sets: sets.into(), ..Group::default() }
    }

    fn touches(&self, folder: Inode) -> bool {
        self.sets.iter().any(|set| set.folder == folder)
    }

    fn touches_name(&self, of: &Assignment) -> bool {
        self.sets.iter().any(|set| set.folder == of.folder && set.name == of.name)
    }

    fn crosses_folders(&self) -> bool {
        self.sets.windows(2).any(|pair| pair[0].folder != pair[1].folder)
    }

    /// Whether no file system would bring this group to the platter before `earlier`.
    ///
    /// The order is as weak as it can be without losing what nobody removed: one name changes in
    /// the order of calls, a folder goes only after all that was in it, what moves between folders
    /// does not move into one that does not exist yet, and folders move in the order of calls.
    fn rests_on(&self, earlier: &Group) -> bool {
        self.sets.iter().any(|set| earlier.touches_name(set))
            || self.ends.is_some_and(|folder| earlier.touches(folder))
            || (self.crosses_folders() && earlier.makes.is_some_and(|folder| self.touches(folder)))
            || (self.moves_folder && earlier.moves_folder)
    }
}

impl Disk {
    pub(super) fn push_pending(&mut self, mut group: Group) {
        let rests_on = self.pending.iter().filter(|earlier| group.rests_on(earlier));
        group.needs = rests_on.map(|earlier| earlier.number).collect();
        group.number = self.next_group;
        self.next_group += 1;
        self.pending.push(Arc::new(group));
    }

    /// Adds to the chosen pending groups those that they rest on.
    pub(super) fn close_over(&self, chosen: &mut [bool]) {
        for index in (0..chosen.len()).rev() {
            if !chosen[index] {
                continue;
            }
            for need in &self.pending[index].needs {
                // A group that is not found has become durable since.
                if let Ok(found) = self.pending.binary_search_by_key(need, |group| group.number) {
                    chosen[found] = true;
                }
            }
        }
    }

    /// Makes the names in one folder durable, and what they rest on.
    pub(super) fn sync_names(&mut self, in_folder: impl Fn(Inode) -> bool) {
        let concerns = |group: &Group| group.sets.iter().any(|set| in_folder(set.folder));
        let mut chosen: Vec<bool> = self.pending.iter().map(|group| concerns(group)).collect();
        self.close_over(&mut chosen);
        let pending = std::mem::take(&mut self.pending);
        let mut touched = Vec::new();
        for (group, chosen) in pending.into_iter().zip(chosen) {
            if !chosen {
                self.pending.push(group);
                continue;
            }
            for Assignment { folder, name, inode } in &group.sets {
                set(Arc::make_mut(&mut self.folder_mut(*folder).kept), name, *inode);
                touched.push(*folder);
            }
        }
        touched.sort_unstable();
        touched.dedup();
        touched.into_iter().for_each(|folder| self.share_names(folder));
    }

    /// Lets both views of a folder share their memory where they are equal.
    fn share_names(&mut self, inode: Inode) {
        let Some(Node::Folder(folder)) = self.nodes[inode].as_deref() else { return };
        if Arc::ptr_eq(&folder.now, &folder.kept) || folder.now != folder.kept {
            return;
        }
        let folder = self.folder_mut(inode);
        folder.kept = Arc::clone(&folder.now);
    }

    /// Makes all files and names beneath a folder durable.
    pub(super) fn sync_beneath(&mut self, root: Inode) {
        let mut beneath = vec![false; self.nodes.len()];
        self.mark_beneath(root, &mut beneath);
        for inode in (0..beneath.len()).filter(|inode| beneath[*inode]) {
            if matches!(self.node(inode), Node::File(file) if !file.is_settled()) {
                self.file_mut(inode).sync();
            }
        }
        self.sync_names(|folder| beneath[folder]);
    }

    fn mark_beneath(&self, inode: Inode, marks: &mut [bool]) {
        marks[inode] = true;
        if let Node::Folder(folder) = self.node(inode) {
            folder.now.iter().for_each(|(_, inode)| self.mark_beneath(*inode, marks));
        }
    }

    /// Forgets nodes that neither a name, nor what a power cut could bring back, nor a handle
    /// leads to.
    pub(super) fn collect(&mut self, is_open: impl Fn(Inode) -> bool) {
        if !self.pending.is_empty() {
            return;
        }
        let mut alive = vec![false; self.nodes.len()];
        self.mark_beneath(super::disk::ROOT, &mut alive);
        for (inode, node) in self.nodes.iter_mut().enumerate() {
            if !alive[inode] && !is_open(inode) {
                *node = None;
            }
        }
    }
}
