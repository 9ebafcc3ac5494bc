//! The simulated disk: files and folders, each as programs see it and as the platter has it.
//!
//! Cheap to clone: nodes are shared until they change, so a clone per call is a recording.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use super::file::FileNode;
use super::names::{Assignment, Group};
use crate::vfs::Rename;

/// The number of a file or folder; its place in the table of nodes.
pub(super) type Inode = usize;

/// The folder that holds everything.
pub(super) const ROOT: Inode = 0;

/// The names in a folder, sorted.
pub(super) type Names = Vec<(Arc<str>, Inode)>;

#[derive(Debug, Clone)]
pub(super) enum Node {
    File(FileNode),
    Folder(FolderNode),
}

/// A folder. `pending` groups of the disk lead from `kept` to `now`.
#[derive(Debug, Clone)]
pub(super) struct FolderNode {
    pub(super) now: Arc<Names>,
    pub(super) kept: Arc<Names>,
    pub(super) mtime: u64,
    pub(super) mode: u32,
}

impl FolderNode {
    fn new(mtime: u64) -> Self {
        FolderNode { now: Arc::default(), kept: Arc::default(), mtime, mode: 0o700 }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub(super) nodes: Vec<Option<Arc<Node>>>,
    pub(super) pending: Vec<Arc<Group>>,
    /// The number of the next group.
    pub(super) next_group: u64,
    /// How many calls have changed the disk or made something durable.
    pub(super) ops: u64,
    /// How many microseconds have passed beside those of the calls.
    pub(super) idle_us: u64,
    pub(super) boot: u64,
    pub(super) capacity_bytes: Option<u64>,
    pub(super) can_exchange: bool,
}

impl Disk {
    pub(super) fn new() -> Self {
        Disk {
            nodes: vec![Some(Arc::new(Node::Folder(FolderNode::new(0))))],
            pending: Vec::new(),
            next_group: 0,
            ops: 0,
            idle_us: 0,
            boot: 1,
            capacity_bytes: None,
            can_exchange: true,
        }
    }

    /// The simulated time, in microseconds: it moves one per call, and otherwise only when told to.
    pub(super) fn time_us(&self) -> u64 {
        self.ops + self.idle_us
    }

    pub(super) fn node(&self, inode: Inode) -> &Node {
        self.nodes[inode].as_deref().expect("a node stays while a name or a handle leads to it")
    }

    pub(super) fn file_mut(&mut self, inode: Inode) -> &mut FileNode {
        let node = self.nodes[inode].as_mut().expect("an open file has a node");
        match Arc::make_mut(node) {
            Node::File(file) => file,
            Node::Folder(_) => unreachable!("only files are opened"),
        }
    }

    pub(super) fn folder_mut(&mut self, inode: Inode) -> &mut FolderNode {
        let node = self.nodes[inode].as_mut().expect("a folder in use has a node");
        match Arc::make_mut(node) {
            Node::Folder(folder) => folder,
            Node::File(_) => unreachable!("a name resolves through folders only"),
        }
    }

    fn folder(&self, inode: Inode) -> io::Result<&FolderNode> {
        match self.node(inode) {
            Node::Folder(folder) => Ok(folder),
            Node::File(_) => Err(ErrorKind::NotADirectory.into()),
        }
    }

    /// The node that has this name beneath `root`.
    pub(super) fn resolve(&self, root: Inode, name: &str) -> io::Result<Inode> {
        let mut at = root;
        for part in name.split('/').filter(|part| !part.is_empty()) {
            at = find(&self.folder(at)?.now, part).ok_or(ErrorKind::NotFound)?;
        }
        Ok(at)
    }

    /// The folder that a name is or would be in, the final part, and what is there.
    pub(super) fn place<'a>(&self, root: Inode, name: &'a str) -> io::Result<Place<'a>> {
        let (parent, part) = crate::vfs::split(name);
        if part.is_empty() {
            return Err(ErrorKind::ResourceBusy.into());
        }
        let folder = self.resolve(root, parent)?;
        Ok(Place { folder, part, there: find(&self.folder(folder)?.now, part) })
    }

    fn is_folder(&self, inode: Inode) -> bool {
        matches!(self.node(inode), Node::Folder(_))
    }

    fn is_empty_folder(&self, inode: Inode) -> bool {
        matches!(self.node(inode), Node::Folder(folder) if folder.now.is_empty())
    }

    pub(super) fn create(&mut self, place: &Place<'_>) -> io::Result<Inode> {
        self.check_space()?;
        let inode = self.add(Node::File(FileNode::new(self.time_us())));
        self.assign(Group::of([place.holds(Some(inode))]));
        Ok(inode)
    }

    pub(super) fn mkdir(&mut self, place: &Place<'_>) -> io::Result<()> {
        if place.there.is_some() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.check_space()?;
        let inode = self.add(Node::Folder(FolderNode::new(self.time_us())));
        self.assign(Group { makes: Some(inode), ..Group::of([place.holds(Some(inode))]) });
        Ok(())
    }

    fn add(&mut self, node: Node) -> Inode {
        self.nodes.push(Some(Arc::new(node)));
        self.nodes.len() - 1
    }

    pub(super) fn remove_file(&mut self, place: &Place<'_>) -> io::Result<()> {
        let inode = place.there.ok_or(ErrorKind::NotFound)?;
        if self.is_folder(inode) {
            return Err(ErrorKind::IsADirectory.into());
        }
        self.assign(Group::of([place.holds(None)]));
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, place: &Place<'_>) -> io::Result<()> {
        let inode = place.there.ok_or(ErrorKind::NotFound)?;
        if !self.is_folder(inode) {
            return Err(ErrorKind::NotADirectory.into());
        }
        if !self.is_empty_folder(inode) {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        self.assign(Group { ends: Some(inode), ..Group::of([place.holds(None)]) });
        Ok(())
    }

    /// Renames; `false` if there was nothing to do.
    pub(super) fn rename(&mut self, from: &Place<'_>, to: &Place<'_>, how: Rename) -> io::Result<bool> {
        let source = from.there.ok_or(ErrorKind::NotFound)?;
        let moves_folder = self.is_folder(source) || to.there.is_some_and(|inode| self.is_folder(inode));
        let around = to.there.is_some_and(|target| self.holds(target, from.folder));
        let refused = match (how, to.there) {
            (Rename::Exchange, _) if !self.can_exchange => Some(ErrorKind::Unsupported),
            (Rename::Exchange, None) => Some(ErrorKind::NotFound),
            (Rename::NoReplace, Some(_)) => Some(ErrorKind::AlreadyExists),
            _ if self.holds(source, to.folder) => Some(ErrorKind::InvalidInput),
            (Rename::Exchange, Some(_)) if around => Some(ErrorKind::InvalidInput),
            (Rename::Replace, Some(_)) if around => Some(ErrorKind::DirectoryNotEmpty),
            _ => None,
        };
        if let Some(kind) = refused {
            return Err(kind.into());
        }
        if let (Rename::Replace, Some(target)) = (how, to.there) {
            self.check_replace(source, target)?;
        }
        let left = to.there.filter(|_| how == Rename::Exchange);
        if to.there == Some(source) {
            return Ok(false);
        }
        let ends = to.there.filter(|target| left.is_none() && self.is_folder(*target));
        let group = Group::of([from.holds(left), to.holds(Some(source))]);
        self.assign(Group { ends, moves_folder, ..group });
        Ok(true)
    }

    fn check_replace(&self, source: Inode, target: Inode) -> io::Result<()> {
        match (self.is_folder(source), self.is_folder(target)) {
            (false, true) => Err(ErrorKind::IsADirectory.into()),
            (true, false) => Err(ErrorKind::NotADirectory.into()),
            (true, true) if source != target && !self.is_empty_folder(target) => {
                Err(ErrorKind::DirectoryNotEmpty.into())
            }
            _ => Ok(()),
        }
    }

    /// Whether `below` is `above` or lies beneath it.
    fn holds(&self, above: Inode, below: Inode) -> bool {
        above == below
            || match self.node(above) {
                Node::Folder(folder) => folder.now.iter().any(|(_, inode)| self.holds(*inode, below)),
                Node::File(_) => false,
            }
    }

    /// Lets programs see a group of assignments and remembers that it is not durable.
    fn assign(&mut self, group: Group) {
        for Assignment { folder, name, inode } in &group.sets {
            let old = find(&self.folder_mut(*folder).now, name);
            for (inode, step) in [(old, -1), (*inode, 1)] {
                let Some(inode) = inode else { continue };
                if !self.is_folder(inode) {
                    let file = self.file_mut(inode);
                    file.links = file.links.saturating_add_signed(step);
                }
            }
            let mtime = self.time_us();
            let folder = self.folder_mut(*folder);
            set(Arc::make_mut(&mut folder.now), name, *inode);
            folder.mtime = mtime;
        }
        self.push_pending(group);
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.nodes.iter().flatten().map(|node| node.used_bytes()).sum()
    }

    /// How many bytes may still be written.
    pub(super) fn free_bytes(&self) -> u64 {
        self.capacity_bytes.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used_bytes()))
    }

    fn check_space(&self) -> io::Result<()> {
        if self.free_bytes() == 0 { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl Node {
    /// A file without a name gives its space back, even while it is open.
    fn used_bytes(&self) -> u64 {
        match self {
            Node::File(file) if file.links > 0 => file.bytes().len() as u64,
            _ => 0,
        }
    }
}

/// Where a name is or would be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) folder: Inode,
    pub(super) part: &'a str,
    pub(super) there: Option<Inode>,
}

impl Place<'_> {
    fn holds(&self, inode: Option<Inode>) -> Assignment {
        Assignment { folder: self.folder, name: self.part.into(), inode }
    }
}

fn find(names: &Names, part: &str) -> Option<Inode> {
    let index = names.binary_search_by(|(name, _)| (**name).cmp(part)).ok()?;
    Some(names[index].1)
}

pub(super) fn set(names: &mut Names, part: &Arc<str>, inode: Option<Inode>) {
    match (names.binary_search_by(|(name, _)| name.cmp(part)), inode) {
        (Ok(index), Some(inode)) => names[index].1 = inode,
        (Ok(index), None) => drop(names.remove(index)),
        (Err(index), Some(inode)) => names.insert(index, (Arc::clone(part), inode)),
        (Err(_), None) => {}
    }
}
