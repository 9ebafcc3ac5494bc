//! Which store a folder is, or lies in. Files that are memories do not count, so that no memory can change
//! which store is used.

use std::path::{Path, PathBuf};

use super::{Environment, STORE_FOLDER};
use crate::address::FOLDERS;
use crate::opening;
use crate::settings;

impl Environment {
    /// The nearest store at or above a folder. In a linked git worktree the main checkout's store
    /// counts too, so that memory does not depend on which worktree an agent was started in.
    pub(super) fn upward(&self, from: &Path) -> Option<PathBuf> {
        let store_of = |folder: &Path| self.store_of(folder);
        from.ancestors().find_map(|folder| store_of(folder).or_else(|| store_of(&main_checkout(folder)?)))
    }

    /// The store in a folder, or the folder itself if it is one. Faulty settings count too: otherwise one
    /// fault would send memories elsewhere.
    fn store_of(&self, folder: &Path) -> Option<PathBuf> {
        let inside = folder.join(STORE_FOLDER);
        let found = if inside.is_dir() { inside } else { folder.to_owned() };
        let is_one = found != folder || self.has_settings(folder);
        (is_one && !self.is_among_memories(folder)).then_some(found)
    }

    /// The store that a folder is, or lies in.
    pub(crate) fn store_around(&self, folder: &Path) -> Option<PathBuf> {
        let folder = resolved(folder);
        let is_store = |folder: &&Path| self.has_settings(folder) && !self.is_among_memories(folder);
        folder.ancestors().find(is_store).map(Path::to_owned)
    }

    /// Whether a folder is, or lies in, a folder that holds the memories of a store.
    fn is_among_memories(&self, folder: &Path) -> bool {
        let holds_memories = |part: &Path| {
            let is_named_so = FOLDERS.iter().any(|name| part.ends_with(name));
            is_named_so && part.parent().is_some_and(|around| self.has_settings(around))
        };
        folder.ancestors().any(holds_memories)
    }

    /// Whether a folder has a store's settings; in a folder used in place such a file is a memory.
    fn has_settings(&self, folder: &Path) -> bool {
        let bytes = settings::read_bytes(&folder.join(settings::FILE)).unwrap_or_default();
        let are_settings = String::from_utf8_lossy(&bytes).lines().any(|line| line.starts_with("format"));
        are_settings && !self.is_used_in_place(folder)
    }

    /// Whether a folder is used in place as `/memories`, with a history of its own.
    pub(crate) fn is_used_in_place(&self, folder: &Path) -> bool {
        self.state_folder().is_ok_and(|states| opening::is_used_in_place(states, &resolved(folder)))
    }
}

/// A path without links, as far as it exists.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    let mut there = path.ancestors().filter_map(|part| Some((part, part.canonicalize().ok()?)));
    match there.next().and_then(|(part, real)| Some(real.join(path.strip_prefix(part).ok()?))) {
        Some(resolved) => resolved.components().collect(),
        None => path.to_owned(),
    }
}

/// The folder of the main checkout, if this is a linked git worktree: its `.git` is a file that
/// says `gitdir: <main>/.git/worktrees/<name>`.
pub(crate) fn main_checkout(folder: &Path) -> Option<PathBuf> {
    let link = folder.join(".git");
    if !link.is_file() {
        return None;
    }
    let text = settings::read_small(&link).ok()?;
    let target = folder.join(text.strip_prefix("gitdir:")?.trim());
    let worktrees = target.parent().filter(|path| path.ends_with("worktrees"))?;
    let git = worktrees.parent().filter(|path| path.ends_with(".git"))?;
    git.parent().map(Path::to_owned)
}
