//! Whether a change may happen, and what its record says: every edit is checked against the disk
//! as the edits before it leave it.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use super::journal::Journal;
use super::record::Entry;
use super::{Core, absent_or, meant, not_regular};
use crate::backend::{
    Depth, Edit, Expect, FileKind, Version, exists, into_itself, is_file, is_folder, not_empty, not_found,
};
use crate::error::{Error, Kind, Result, code};
use crate::locator::{Locator, collision_key};

/// How many names of a folder are compared for twins; in a larger one only the likely spellings.
const TWIN_NAMES_MAX: usize = 4096;

/// A change that may happen.
#[derive(Default)]
pub(super) struct Planned {
    pub(super) entries: Vec<Entry>,
    pub(super) body: Vec<u8>,
}

/// What is at a place.
#[derive(Clone)]
enum There {
    Absent,
    /// The folder on the disk, if it is there by now.
    Folder(Option<u64>),
    File {
        size: u64,
        /// The file on the disk, if it is there by now and stays the same one.
        inode: Option<u64>,
        /// The content, where it has been read or is about to be written.
        content: Option<Arc<Loaded>>,
    },
}

struct Loaded {
    bytes: Vec<u8>,
    version: Version,
    /// Whether the journal's segment holds these bytes.
    journaled: bool,
}

/// The disk as the edits planned so far leave it.
pub(super) struct View<'a> {
    core: &'a Core,
    journal: Option<&'a Journal>,
    changed: HashMap<Locator, There>,
    moves: Vec<(Locator, Locator)>,
    /// The names in a folder by how a careless file system would compare them.
    twins: HashMap<Locator, HashMap<String, String>>,
}

/// Plans all edits, in order.
pub(super) fn plan(core: &Core, journal: Option<&Journal>, edits: &[Edit]) -> Result<Planned> {
    let mut view = View::new(core, journal);
    let mut planned = Planned::default();
    for edit in edits {
        core.check_reserved(edit.at())?;
        if edit.at().is_root() {
            return Err(is_folder(edit.at()).hint("the root of a store stays where it is"));
        }
        let entry = match edit {
            Edit::Write { at, bytes, expect } => view.write(at, bytes, expect, &mut planned.body)?,
            Edit::Append { at, bytes, expect } => view.append(at, bytes, expect, &mut planned.body)?,
            Edit::Delete { at, expect } => view.delete(at, expect, &mut planned.body)?,
            Edit::Rename { from, to, expect } => view.rename(from, to, expect)?,
        };
        planned.entries.push(entry);
    }
    Ok(planned)
}

impl<'a> View<'a> {
    pub(super) fn new(core: &'a Core, journal: Option<&'a Journal>) -> Self {
        View { core, journal, changed: HashMap::new(), moves: Vec::new(), twins: HashMap::new() }
    }

    fn write(&mut self, at: &Locator, bytes: &[u8], expect: &Expect, body: &mut Vec<u8>) -> Result<Entry> {
        let old = match self.there(at)? {
            There::Folder(_) => return Err(is_folder(at)),
            There::Absent => {
                expect.check(at, None)?;
                self.check_new(at)?;
                None
            }
            There::File { .. } => {
                let old = self.load(at)?;
                expect.check(at, Some(&old.version))?;
                Some(old)
            }
        };
        let new = Version::of(bytes);
        body.extend_from_slice(bytes);
        let before = self.keep(old.as_deref(), body);
        let loaded = Loaded { bytes: bytes.to_vec(), version: new.clone(), journaled: true };
        self.set(at, There::File { size: bytes.len() as u64, inode: None, content: Some(Arc::new(loaded)) });
        let old = old.map(|old| old.version.clone());
        Ok(Entry::Write { at: at.clone(), old, new, len: bytes.len() as u64, before })
    }

    fn append(&mut self, at: &Locator, bytes: &[u8], expect: &Expect, body: &mut Vec<u8>) -> Result<Entry> {
        let there = self.there(at)?;
        let (offset, inode, content) = match &there {
            There::Folder(_) => return Err(is_folder(at)),
            There::Absent => {
                expect.check(at, None)?;
                self.check_new(at)?;
                (0, None, Some(bytes.to_vec()))
            }
            There::File { size, inode, content } => {
                self.check_expect(at, expect)?;
                let joined = content.as_ref().map(|old| [&old.bytes, bytes].concat());
                (*size, *inode, joined)
            }
        };
        body.extend_from_slice(bytes);
        let content = content.map(|bytes| {
            let version = Version::of(&bytes);
            Arc::new(Loaded { bytes, version, journaled: false })
        });
        let created = matches!(there, There::Absent);
        self.set(at, There::File { size: offset + bytes.len() as u64, inode, content });
        Ok(Entry::Append { at: at.clone(), offset, len: bytes.len() as u64, created })
    }

    fn delete(&mut self, at: &Locator, expect: &Expect, body: &mut Vec<u8>) -> Result<Entry> {
        let (old, before) = match self.there(at)? {
            There::Absent => return Err(gone(at, expect)),
            There::Folder(_) => {
                folder_expect(at, expect)?;
                if !self.is_empty(at)? {
                    return Err(not_empty(at));
                }
                (None, None)
            }
            There::File { .. } => {
                let old = self.load(at)?;
                expect.check(at, Some(&old.version))?;
                (Some(old.version.clone()), self.keep(Some(&*old), body))
            }
        };
        self.set(at, There::Absent);
        Ok(Entry::Delete { at: at.clone(), old, before })
    }

    fn rename(&mut self, from: &Locator, to: &Locator, expect: &Expect) -> Result<Entry> {
        let there = self.there(from)?;
        let (folder, inode) = match &there {
            There::Absent => return Err(gone(from, expect)),
            There::Folder(inode) => {
                folder_expect(from, expect)?;
                (true, inode.or_else(|| self.folder_inode(from)))
            }
            There::File { inode, .. } => {
                self.check_expect(from, expect)?;
                (false, *inode)
            }
        };
        if to != from && to.is_within(from) {
            return Err(if folder { into_itself(from, to) } else { is_file(from) });
        }
        self.core.check_reserved(to)?;
        if !matches!(self.there(to)?, There::Absent) {
            return Err(exists(to));
        }
        if to.parent() == from.parent() {
            self.forget_name(from);
        }
        self.check_new(to)?;
        if folder {
            self.check_lengths(from, to)?;
            let within: Vec<_> = self.changed.keys().filter(|at| at.is_within(from)).cloned().collect();
            for at in within {
                let moved = at.rebased(from, to).expect("it lies within");
                let there = self.changed.remove(&at).expect("it was just seen");
                self.changed.insert(moved, there);
            }
            self.twins.clear();
        }
        self.moves.push((from.clone(), to.clone()));
        self.set(to, there);
        self.set(from, There::Absent);
        Ok(Entry::Rename { at: from.clone(), to: to.clone(), folder, inode })
    }

    /// The folder that the disk has at a place that an earlier edit has put something into.
    fn folder_inode(&self, at: &Locator) -> Option<u64> {
        let stat = self.core.tree.stat(&self.core.spelled(&self.on_disk(at)?)).ok()?;
        (stat.kind == FileKind::Folder).then_some(stat.inode)
    }

    /// Refuses a move that makes the key of anything in the folder too long.
    fn check_lengths(&self, from: &Locator, to: &Locator) -> Result<()> {
        let Some(name) = self.on_disk(from).filter(|_| to.key().len() > from.key().len()) else {
            return Ok(());
        };
        let mut within = Vec::new();
        self.core.list_into(&name, Depth::All, &mut within)?;
        for info in within {
            Locator::new(info.locator.rebased(&name, to).expect("it was listed beneath").key())?
                .check_creatable()?;
        }
        Ok(())
    }

    /// Adds old bytes to the record, unless the journal's segment holds them already.
    fn keep(&self, old: Option<&Loaded>, body: &mut Vec<u8>) -> Option<u64> {
        let old = old.filter(|old| !old.journaled)?;
        body.extend_from_slice(&old.bytes);
        Some(old.bytes.len() as u64)
    }

    fn check_expect(&mut self, at: &Locator, expect: &Expect) -> Result<()> {
        match expect {
            Expect::Any => Ok(()),
            Expect::Absent => Err(exists(at)),
            Expect::At(_) => expect.check(at, Some(&self.load(at)?.version)),
        }
    }

    fn set(&mut self, at: &Locator, there: There) {
        let parent = at.parent().unwrap_or_default();
        if let Some(names) = self.twins.get_mut(&parent) {
            let key = collision_key(at.name());
            match there {
                There::Absent => names.remove(&key),
                _ => names.insert(key, at.name().to_owned()),
            };
        }
        if !matches!(there, There::Absent) {
            for folder in at.ancestors() {
                if matches!(self.changed.get(&folder), Some(There::Folder(_))) {
                    break;
                }
                self.changed.insert(folder, There::Folder(None));
            }
        }
        self.changed.insert(at.clone(), there);
    }

    /// Where the disk has, at this moment, what the planned edits leave at a place.
    fn on_disk(&self, at: &Locator) -> Option<Locator> {
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

    fn there(&mut self, at: &Locator) -> Result<There> {
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
                FileKind::File => Ok(There::File { size: stat.size, inode: Some(stat.inode), content: None }),
                FileKind::Other => Err(not_regular(at)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(There::Absent),
            Err(error) => Err(meant(error, at)),
        }
    }

    /// The content of a file that is there.
    fn load(&mut self, at: &Locator) -> Result<Arc<Loaded>> {
        if let Some(There::File { content: Some(content), .. }) = self.changed.get(at) {
            return Ok(Arc::clone(content));
        }
        let name = self.on_disk(at).unwrap_or_else(|| at.clone());
        let mut bytes =
            self.core.read_file(&name).map_err(|error| error.while_doing("reading what is there"))?;
        if let Some(There::File { size, content: None, .. }) = self.changed.get(at) {
            // Appends of this very change are not on the disk yet. They are rare enough to refuse.
            if *size != bytes.len() as u64 {
                return Err(Error::new(
                    Kind::Invalid,
                    format!("`{at}` is appended to and then replaced in one change"),
                )
                .hint("make it one write"));
            }
        }
        let version = Version::of(&bytes);
        let journaled = self.journal.is_some_and(|journal| journal.known.get(at) == Some(&version));
        bytes.shrink_to_fit();
        Ok(Arc::new(Loaded { bytes, version, journaled }))
    }

    fn is_empty(&mut self, folder: &Locator) -> Result<bool> {
        let planned = |(at, there): (&Locator, &There)| {
            at.parent().as_ref() == Some(folder) && !matches!(there, There::Absent)
        };
        if self.changed.iter().any(planned) {
            return Ok(false);
        }
        let Some(name) = self.on_disk(folder) else { return Ok(true) };
        let names = self
            .core
            .tree
            .names(&self.core.spelled(&name), usize::MAX)
            .map_err(|error| absent_or(error, folder))?;
        for name in names.iter().filter(|name| *name != "." && *name != "..") {
            let gone = folder.child(name).is_ok_and(|child| {
                matches!(self.changed.get(&child), Some(There::Absent)) || self.on_disk(&child).is_none()
            });
            if !gone {
                return Ok(false);
            }
        }
        Ok(true)
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
        let names = &self.twins[&parent];
        match names.get(&collision_key(at.name())) {
            Some(twin) if twin != at.name() => {
                let twin = parent.child(twin)?;
                Err(Error::new(Kind::Exists, format!("`{at}` differs from `{twin}` only in case or accents"))
                    .code(code::FILE_EXISTS)
                    .hint(format!("use `{twin}`, or a name that stays different on every system")))
            }
            _ => Ok(()),
        }
    }

    fn names_in(&self, folder: &Locator) -> Result<HashMap<String, String>> {
        let Some(name) = self.on_disk(folder) else { return Ok(HashMap::new()) };
        let names = match self.core.tree.names(&self.core.spelled(&name), TWIN_NAMES_MAX) {
            Ok(names) => names,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Vec::new()
            }
            Err(error) => return Err(meant(error, folder)),
        };
        let gone = |name: &String| {
            folder.child(name).is_ok_and(|child| matches!(self.changed.get(&child), Some(There::Absent)))
        };
        let planned = self
            .changed
            .iter()
            .filter(|(at, there)| at.parent().as_ref() == Some(folder) && !matches!(there, There::Absent));
        let planned: Vec<String> = planned.map(|(at, _)| at.name().to_owned()).collect();
        let names = names.into_iter().filter(|name| !gone(name)).chain(planned);
        Ok(names.map(|name| (collision_key(&name), name)).collect())
    }

    /// Lets a rename change the case of its own name.
    fn forget_name(&mut self, at: &Locator) {
        let parent = at.parent().unwrap_or_default();
        if !self.twins.contains_key(&parent)
            && let Ok(names) = self.names_in(&parent)
        {
            self.twins.insert(parent.clone(), names);
        }
        if let Some(names) = self.twins.get_mut(&parent) {
            names.remove(&collision_key(at.name()));
        }
    }
}

/// The error for changing what is not there.
fn gone(at: &Locator, expect: &Expect) -> Error {
    match expect {
        Expect::At(_) => expect.check(at, None).expect_err("nothing is at no version"),
        _ => not_found(at),
    }
}

fn folder_expect(at: &Locator, expect: &Expect) -> Result<()> {
    match expect {
        Expect::Any => Ok(()),
        Expect::Absent => Err(exists(at)),
        Expect::At(_) => Err(Error::new(Kind::Invalid, format!("the folder `{at}` has no version"))
            .code(code::IS_DIRECTORY)
            .hint("name the version of a file, or none")),
    }
}
