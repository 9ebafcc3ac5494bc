//! The disk as the edits planned so far leave it.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::journal::Journal;
use super::twins::{Names, likely_spellings};
use super::{Core, absent_or, meant, not_regular};
use crate::backend::{FileKind, Version, is_file, not_empty};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::vfs::{Open, VfsFile};

/// How many names of a folder are compared for twins, so that making a file costs the same in a
/// folder of any size; in a larger one the likely spellings are looked for too.
const TWIN_NAMES_MAX: usize = 256;

/// What is at a place.
#[derive(Clone)]
pub(super) enum There {
    Absent,
    /// A folder, with its inode if it is on the disk already.
    Folder(Option<u64>),
    File {
        size: u64,
        /// The file's inode, if it is on the disk already and the edits do not replace it.
        inode: Option<u64>,
        /// Whether that file has other names too, which must not see what is added to it.
        is_shared: bool,
        /// The content, where it has been read or is about to be written.
        content: Option<Arc<Loaded>>,
        /// What is about to be added to the content on the disk.
        added: Vec<u8>,
    },
}

pub(super) struct Loaded {
    pub(super) bytes: Bytes,
    pub(super) version: Version,
    /// Whether the journal's segment holds these bytes.
    pub(super) journaled: bool,
}

/// The disk as the edits planned so far leave it.
pub(super) struct View<'a> {
    pub(super) core: &'a Core,
    journal: Option<&'a Journal>,
    pub(super) changed: HashMap<Locator, There>,
    pub(super) moves: Vec<(Locator, Locator)>,
    /// The names in the folders where something new is made.
    pub(super) twins: HashMap<Locator, Names>,
    /// The file that the edit being planned replaces, opened to read.
    pub(super) replaced: Option<Box<dyn VfsFile>>,
}

impl<'a> View<'a> {
    pub(super) fn new(core: &'a Core, journal: Option<&'a Journal>) -> Self {
        let (changed, moves, twins) = (HashMap::new(), Vec::new(), HashMap::new());
        View { core, journal, changed, moves, twins, replaced: None }
    }

    pub(super) fn set(&mut self, at: &Locator, there: There) {
        let present = !matches!(there, There::Absent);
        self.note_name(at, present);
        self.changed.insert(at.clone(), there);
        for folder in at.ancestors().take_while(|_| present) {
            if matches!(self.changed.get(&folder), Some(There::Folder(_))) {
                break;
            }
            self.note_name(&folder, true);
            self.changed.insert(folder, There::Folder(None));
        }
    }

    fn note_name(&mut self, at: &Locator, present: bool) {
        if let Some(names) = self.twins.get_mut(&at.parent().unwrap_or_default()) {
            match present {
                true => names.add(at.name()),
                false => names.remove(at.name()),
            }
        }
    }

    /// Returns where the disk now has what the planned edits will have at a place; `None` if nowhere.
    pub(super) fn on_disk(&self, at: &Locator) -> Option<Locator> {
        let mut name = at.clone();
        for (from, to) in self.moves.iter().rev() {
            if let Some(earlier) = name.rebased(to, from) {
                name = earlier;
            } else if name.is_within(from) {
                return None;
            }
        }
        Some(name)
    }

    pub(super) fn there(&mut self, at: &Locator) -> Result<There> {
        if let Some(there) = self.changed.get(at) {
            return Ok(there.clone());
        }
        let mut cleared = false;
        for folder in at.ancestors() {
            match self.changed.get(&folder) {
                Some(There::File { .. }) => return Err(is_file(&folder)),
                Some(There::Absent) => cleared = true,
                _ => {}
            }
        }
        let Some(name) = self.on_disk(at).filter(|_| !cleared) else { return Ok(There::Absent) };
        match self.core.tree.stat(&self.core.spelled(&name)) {
            Ok(stat) => match stat.kind {
                FileKind::Folder => Ok(There::Folder(Some(stat.inode))),
                FileKind::File => Ok(There::File {
                    size: stat.size,
                    inode: Some(stat.inode),
                    is_shared: stat.links > 1,
                    content: None,
                    added: Vec::new(),
                }),
                FileKind::Other => Err(not_regular(at)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(There::Absent),
            Err(error) if is_not_folder(&error) && self.lies_in_new_folder(at) => Ok(There::Absent),
            Err(error) => Err(meant(error, at)),
        }
    }

    /// As [`View::there`], but opens the file right away, because it is about to be read and replaced.
    pub(super) fn opened(&mut self, at: &Locator) -> Result<There> {
        let above = at.ancestors().filter_map(|folder| self.changed.get(&folder));
        let is_as_on_disk = self.moves.is_empty()
            && !self.changed.contains_key(at)
            && above.into_iter().all(|there| matches!(there, There::Folder(_)));
        if !is_as_on_disk {
            return self.there(at);
        }
        match self.core.tree.open(&self.core.spelled(at), Open::Read) {
            Ok(file) => {
                self.replaced = Some(file);
                // Its size is known once it is read.
                Ok(There::File { size: 0, inode: None, is_shared: false, content: None, added: Vec::new() })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(There::Absent),
            Err(_) => self.there(at),
        }
    }

    /// Whether `at` lies in a folder that the planned edits make, where the disk still has a file.
    fn lies_in_new_folder(&self, at: &Locator) -> bool {
        let folder = at.ancestors().find(|folder| self.changed.contains_key(folder));
        folder.is_some_and(|folder| self.folder_inode(&folder).is_none())
    }

    /// Returns the inode of the folder that the disk has at a place; `None` if it has none there.
    pub(super) fn folder_inode(&self, at: &Locator) -> Option<u64> {
        let stat = self.core.tree.stat(&self.core.spelled(&self.on_disk(at)?)).ok()?;
        (stat.kind == FileKind::Folder).then_some(stat.inode)
    }

    /// The content of a file that is there.
    pub(super) fn load(&mut self, at: &Locator) -> Result<Arc<Loaded>> {
        if let Some(There::File { content: Some(content), .. }) = self.changed.get(at) {
            return Ok(Arc::clone(content));
        }
        let read = match &self.replaced {
            Some(file) => file.read_all().map_err(|error| meant(error, at)),
            None => self.core.read_file(&self.on_disk(at).unwrap_or_else(|| at.clone())),
        };
        let mut bytes = read.map_err(|error| error.while_doing("reading what is there"))?;
        if let Some(There::File { added, .. }) = self.changed.get(at) {
            bytes.extend_from_slice(added);
        }
        let version = Version::of(&bytes);
        let journaled = self.journal.is_some_and(|journal| journal.known.get(at) == Some(&version));
        Ok(Arc::new(Loaded { bytes: bytes.into(), version, journaled }))
    }

    pub(super) fn is_empty(&mut self, folder: &Locator) -> Result<bool> {
        let planned = |(at, there): (&Locator, &There)| {
            at.parent().as_ref() == Some(folder) && !matches!(there, There::Absent)
        };
        if self.changed.iter().any(planned) {
            return Ok(false);
        }
        let Some(name) = self.on_disk(folder) else { return Ok(true) };
        let name = self.core.spelled(&name);
        let names = match self.core.tree.names(&name, usize::MAX) {
            // An edit before this one makes the folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound || is_not_folder(&error) => {
                return Ok(true);
            }
            other => other.map_err(|error| absent_or(error, folder))?,
        };
        for name in &names {
            let gone = folder.child(name).is_ok_and(|child| {
                matches!(self.changed.get(&child), Some(There::Absent)) || self.on_disk(&child).is_none()
            });
            if !gone {
                return Ok(false);
            }
        }
        // Only `read_dir` lists names that are not text.
        let all = self.core.tree.read_dir(&name).map_err(|error| absent_or(error, folder))?;
        match all.iter().any(|(name, _)| name.is_err()) {
            true => Err(not_empty(folder).hint(
                "it holds a name that is not text: `memgrove doctor` shows it; rename or remove it by hand",
            )),
            false => Ok(true),
        }
    }

    /// Checks that a new name can be made here, and on every other system too.
    pub(super) fn check_new(&mut self, at: &Locator) -> Result<()> {
        at.check_creatable()?;
        let parent = at.parent().filter(|parent| !parent.is_root());
        if let Some(parent) = parent
            && matches!(self.there(&parent)?, There::Absent)
        {
            self.check_new(&parent)?;
        }
        self.check_twin(at)
    }

    /// Refuses a name that differs only in case, or in Unicode form, from one that is there: on
    /// many systems the two would be one file.
    fn check_twin(&mut self, at: &Locator) -> Result<()> {
        let parent = at.parent().unwrap_or_default();
        if !self.twins.contains_key(&parent) {
            let names = self.names_in(&parent)?;
            self.twins.insert(parent.clone(), names);
        }
        let twin = self.twin(&parent, at.name()).map(|twin| parent.child(twin)).transpose()?;
        // A twin in a pending record may not be in its place yet.
        let pending = || self.journal.into_iter().flat_map(|journal| &journal.pending);
        match twin.or_else(|| pending().find_map(|pending| pending.twin_of(at))) {
            Some(twin) => {
                Err(Error::new(Kind::Exists, format!("`{at}` differs from `{twin}` only in case or accents"))
                    .code(code::FILE_EXISTS)
                    .hint(format!("use `{twin}`, or a name that stays different on every system")))
            }
            None => Ok(()),
        }
    }

    /// Returns a name in a folder that collides with a new one.
    fn twin(&mut self, parent: &Locator, name: &str) -> Option<String> {
        let names = self.twins.get_mut(parent)?;
        let like = names.like(name);
        if like.is_some() || !names.are_cut() {
            return like.filter(|like| like != name);
        }
        let spellings = likely_spellings(name).into_iter();
        let spellings: Vec<String> =
            spellings.filter(|spelling| spelling != name && !names.lacks(spelling)).collect();
        let folder = self.on_disk(parent)?;
        let is_there =
            |spelling: &String| folder.child(spelling).is_ok_and(|at| self.core.tree.stat(at.key()).is_ok());
        spellings.into_iter().find(is_there)
    }

    fn names_in(&self, folder: &Locator) -> Result<Names> {
        let Some(name) = self.on_disk(folder) else { return Ok(Names::default()) };
        let names = match self.core.tree.names(&self.core.spelled(&name), TWIN_NAMES_MAX) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound || is_not_folder(&error) => Vec::new(),
            Err(error) => return Err(meant(error, folder)),
        };
        let are_cut = names.len() >= TWIN_NAMES_MAX;
        let mut names = Names::new(names, are_cut);
        let here = self.changed.iter().filter(|(at, _)| at.parent().as_ref() == Some(folder));
        for (at, there) in here {
            match there {
                There::Absent => names.remove(at.name()),
                _ => names.add(at.name()),
            }
        }
        Ok(names)
    }

    /// Lets a rename change the case of its own name.
    pub(super) fn forget_name(&mut self, at: &Locator) {
        let parent = at.parent().unwrap_or_default();
        if !self.twins.contains_key(&parent)
            && let Ok(names) = self.names_in(&parent)
        {
            self.twins.insert(parent.clone(), names);
        }
        if let Some(names) = self.twins.get_mut(&parent) {
            names.remove(at.name());
        }
    }
}

fn is_not_folder(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotADirectory
}
