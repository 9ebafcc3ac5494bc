//! What a power cut leaves: the platter, and a pseudo-random part of what was on its way to it.

use std::sync::Arc;

use super::disk::{Disk, FolderNode, Inode, Names, Node, ROOT, set};
use super::file::Survival;
use super::rng::Rng;

/// The character of one power cut. The extremes come up often, because that is where bugs are.
#[derive(Debug, Clone, Copy)]
enum Mood {
    Everything,
    Nothing,
    /// Names but no bytes: what XFS does to a file that was renamed without a sync.
    NamesOnly,
    /// Names and sizes, but zeros for bytes: what ext4 does to an append.
    NamesAndSizes,
    /// Bytes but no names: what a missing sync of the folder does.
    BytesOnly,
    /// The names up to some point in time; the same for each file.
    Prefix,
    /// Anything, each with this many chances in eight.
    Any(usize),
}

impl Mood {
    fn pick(rng: &mut Rng) -> Mood {
        match rng.below(16) {
            0 => Mood::Everything,
            1 => Mood::Nothing,
            2 => Mood::NamesOnly,
            3 => Mood::NamesAndSizes,
            4 => Mood::BytesOnly,
            5 | 6 => Mood::Prefix,
            7 | 8 => Mood::Any(1),
            9 | 10 => Mood::Any(7),
            _ => Mood::Any(4),
        }
    }

    fn names(self, count: usize, rng: &mut Rng) -> Vec<bool> {
        match self {
            Mood::Everything | Mood::NamesOnly | Mood::NamesAndSizes => vec![true; count],
            Mood::Nothing | Mood::BytesOnly => vec![false; count],
            Mood::Prefix => {
                let end = rng.below(count + 1);
                (0..count).map(|index| index < end).collect()
            }
            Mood::Any(chances) => (0..count).map(|_| rng.below(8) < chances).collect(),
        }
    }

    fn file(self, rng: &mut Rng) -> Survival {
        match self {
            Mood::Everything | Mood::BytesOnly => Survival::Everything,
            Mood::Nothing | Mood::NamesOnly => Survival::Nothing,
            Mood::NamesAndSizes => Survival::SizeOnly,
            Mood::Prefix => Survival::Prefix,
            Mood::Any(_) => match rng.below(8) {
                0 => Survival::Nothing,
                1 => Survival::SizeOnly,
                2 | 3 => Survival::Everything,
                4 => Survival::Prefix,
                _ => Survival::Sectors,
            },
        }
    }
}

impl Disk {
    /// The disk as the next boot finds it.
    pub(super) fn after_cut(&self, seed: u64) -> Disk {
        let mut rng = Rng::new(seed);
        let mood = Mood::pick(&mut rng);
        let mut chosen = mood.names(self.pending.len(), &mut rng);
        self.close_over(&mut chosen);
        let mut left = Disk {
            nodes: vec![None; self.nodes.len()],
            pending: Vec::new(),
            boot: self.boot + 1,
            ops: self.ops + 1,
            ..*self
        };
        let mut survivors = Survivors { before: self, mood, folders: Vec::new() };
        for (group, chosen) in self.pending.iter().zip(chosen) {
            for assigned in &group.sets {
                let names = survivors.names_in(assigned.folder);
                if chosen {
                    set(Arc::make_mut(names), &assigned.name, assigned.inode);
                }
            }
        }
        survivors.bring_over(ROOT, &mut left, &mut rng);
        left
    }
}

/// What is carried over to the next boot.
struct Survivors<'a> {
    before: &'a Disk,
    mood: Mood,
    /// The folders in which a name was pending, as the platter has them now.
    folders: Vec<(Inode, Arc<Names>)>,
}

impl Survivors<'_> {
    fn names_in(&mut self, inode: Inode) -> &mut Arc<Names> {
        let index = self.folders.iter().position(|(known, _)| *known == inode).unwrap_or_else(|| {
            let Node::Folder(folder) = self.before.node(inode) else {
                unreachable!("names are in folders only")
            };
            self.folders.push((inode, Arc::clone(&folder.kept)));
            self.folders.len() - 1
        });
        &mut self.folders[index].1
    }

    /// Brings over a node, and what the platter's names lead to from there.
    fn bring_over(&self, inode: Inode, left: &mut Disk, rng: &mut Rng) {
        let node = self.before.nodes[inode].as_ref().expect("the platter names only what there is");
        let node = match &**node {
            Node::File(file) if !file.is_settled() || file.links != 1 => {
                Arc::new(Node::File(file.after_cut(self.mood.file(rng), rng)))
            }
            Node::File(_) => Arc::clone(node),
            Node::Folder(folder) => {
                let touched = self.folders.iter().find(|(known, _)| *known == inode);
                let names = touched.map_or(&folder.kept, |(_, names)| names);
                names.iter().for_each(|(_, inode)| self.bring_over(*inode, left, rng));
                match touched {
                    None => Arc::clone(node),
                    Some(_) => Arc::new(Node::Folder(FolderNode {
                        now: Arc::clone(names),
                        kept: Arc::clone(names),
                        ..*folder
                    })),
                }
            }
        };
        left.nodes[inode] = Some(node);
    }
}
