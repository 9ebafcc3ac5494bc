//! What the store would hold after the edits planned so far.

use std::collections::BTreeMap;

use super::nearest;
use super::splice::{self, Spliced};
use super::{Limits, Operation, Outcome};
use crate::backend::{self, Depth, Edit, Expect, FileKind, Version};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::memory::Plan;
use crate::store::{self, Store};

/// A store with planned edits on top that are not applied yet.
pub(super) struct Draft<'a> {
    store: &'a Store,
    limits: &'a Limits,
    edits: Vec<Edit>,
}

/// What a place holds in a draft.
enum There {
    Nothing,
    /// The version is `None` for a file that the draft itself wrote.
    File(Option<Version>),
    Folder,
    Other,
}

/// Where the content of a place comes from.
enum Trace<'d> {
    Nothing,
    Folder,
    Written(&'d [u8]),
    /// From the store, under the name that it has there.
    Stored(Locator),
}

impl<'a> Draft<'a> {
    pub(super) fn new(store: &'a Store, limits: &'a Limits) -> Self {
        Draft { store, limits, edits: Vec::new() }
    }

    /// Plans a single operation.
    pub(super) fn one(
        store: &'a Store,
        limits: &'a Limits,
        operation: impl FnOnce(&mut Self) -> Result<Outcome>,
    ) -> Result<Plan<Outcome>> {
        let mut draft = Draft::new(store, limits);
        let outcome = operation(&mut draft)?;
        Ok(Plan { edits: draft.edits, outcome })
    }

    pub(super) fn into_edits(self) -> Vec<Edit> {
        self.edits
    }

    pub(super) fn perform(&mut self, operation: &Operation) -> Result<Outcome> {
        match operation {
            Operation::Create { path, content } => self.create(path, content.clone()),
            Operation::Write { path, content, expect } => self.write(path, content.clone(), expect.as_ref()),
            Operation::Replace { path, old_str, new_str, expect } => {
                self.replace(path, old_str, new_str, expect.as_ref())
            }
            Operation::Insert { path, insert_line, new_str, expect } => {
                self.insert(path, *insert_line, new_str, expect.as_ref())
            }
            Operation::Delete { path, expect } => self.delete(path, expect.as_ref()),
            Operation::Rename { old_path, new_path, expect } => {
                self.rename(old_path, new_path, expect.as_ref())
            }
        }
    }

    pub(super) fn create(&mut self, at: &Locator, bytes: Vec<u8>) -> Result<Outcome> {
        self.limits.check(at, &bytes)?;
        self.must_be_free(at)?;
        let size = bytes.len() as u64;
        self.edits.push(Edit::Write { at: at.clone(), bytes: bytes.into(), expect: Expect::Absent });
        Ok(Outcome::Created { path: at.clone(), size })
    }

    pub(super) fn write(
        &mut self,
        at: &Locator,
        bytes: Vec<u8>,
        expect: Option<&Version>,
    ) -> Result<Outcome> {
        self.limits.check(at, &bytes)?;
        match self.there(at)? {
            There::Nothing => {
                minded(at, expect, None)?;
                self.create(at, bytes)
            }
            There::Folder => Err(backend::is_folder(at)),
            There::Other => Err(not_regular(at)),
            There::File(_) => {
                let (old, version) = self.content(at)?;
                let line = 1 + splice::newlines(&old[..common_prefix(&old, &bytes)]);
                self.rewrite(at, &old, version, Spliced { bytes, line }, expect)
            }
        }
    }

    pub(super) fn replace(
        &mut self,
        at: &Locator,
        old: &str,
        new: &str,
        expect: Option<&Version>,
    ) -> Result<Outcome> {
        let (bytes, version) = self.text(at, expect)?;
        let spliced = splice::replaced(at, &bytes, old, new)?;
        self.rewrite(at, bytes.as_bytes(), version, spliced, expect)
    }

    pub(super) fn insert(
        &mut self,
        at: &Locator,
        line: usize,
        text: &str,
        expect: Option<&Version>,
    ) -> Result<Outcome> {
        let (bytes, version) = self.text(at, expect)?;
        let spliced = splice::inserted(at, &bytes, line, text)?;
        self.rewrite(at, bytes.as_bytes(), version, spliced, expect)
    }

    pub(super) fn delete(&mut self, at: &Locator, expect: Option<&Version>) -> Result<Outcome> {
        if at.is_root() {
            return Err(root_stays("deleted"));
        }
        let expect = match self.there(at)? {
            There::Nothing => return Err(self.absent(at, expect)),
            There::Other => return Err(not_regular(at)),
            There::Folder if expect.is_some() => return Err(without_version(at)),
            There::Folder if !self.is_empty(at)? => return Err(backend::not_empty(at)),
            There::Folder => Expect::Any,
            There::File(version) => self.resting_on(at, expect, version)?,
        };
        self.edits.push(Edit::Delete { at: at.clone(), expect });
        Ok(Outcome::Deleted { path: at.clone() })
    }

    pub(super) fn rename(
        &mut self,
        from: &Locator,
        to: &Locator,
        expect: Option<&Version>,
    ) -> Result<Outcome> {
        if from.is_root() {
            return Err(root_stays("renamed"));
        }
        let there = self.there(from)?;
        let expect = match there {
            There::Nothing => return Err(self.absent(from, expect)),
            There::Other => return Err(not_regular(from)),
            There::Folder if expect.is_some() => return Err(without_version(from)),
            There::Folder if from != to && to.is_within(from) => return Err(backend::into_itself(from, to)),
            There::Folder => Expect::Any,
            There::File(version) => self.resting_on(from, expect, version)?,
        };
        if !matches!(self.there(to)?, There::Nothing) {
            return Err(backend::taken(to));
        }
        self.must_be_free(to)?;
        self.edits.push(Edit::Rename { from: from.clone(), to: to.clone(), expect });
        Ok(Outcome::Renamed { old_path: from.clone(), new_path: to.clone() })
    }

    /// Plans new content for a file. The same content is no edit; content on top of what the draft just
    /// wrote extends that edit.
    fn rewrite(
        &mut self,
        at: &Locator,
        old: &[u8],
        version: Option<Version>,
        new: Spliced,
        expect: Option<&Version>,
    ) -> Result<Outcome> {
        let Spliced { bytes, line } = new;
        self.limits.check(at, &bytes)?;
        let expect = self.resting_on(at, expect, version)?;
        let size = bytes.len() as u64;
        if bytes != old {
            let recent = self.edits.iter_mut().rev().map_while(|edit| match edit {
                Edit::Write { at, bytes, .. } => Some((at, bytes)),
                _ => None,
            });
            match recent.into_iter().find(|(written, _)| *written == at) {
                Some((_, before)) => *before = bytes.into(),
                None => self.edits.push(Edit::Write { at: at.clone(), bytes: bytes.into(), expect }),
            }
        }
        Ok(Outcome::Edited { path: at.clone(), size, line })
    }

    /// Returns what an edit of this file expects. What the draft itself wrote needs no check, because the
    /// edit that wrote it has one, and both are applied or neither.
    fn resting_on(&self, at: &Locator, expect: Option<&Version>, version: Option<Version>) -> Result<Expect> {
        match version {
            Some(version) => {
                minded(at, expect, Some(&version))?;
                Ok(Expect::At(version))
            }
            None => {
                if expect.is_some() {
                    minded(at, expect, Some(&Version::of(&self.content(at)?.0)))?;
                }
                Ok(Expect::Any)
            }
        }
    }

    /// Returns the text of a file, if it is at the version that the caller expects.
    fn text(&self, at: &Locator, expect: Option<&Version>) -> Result<(String, Option<Version>)> {
        let (bytes, version) = match self.content(at) {
            Err(error) if error.kind() == Kind::NotFound => return Err(self.absent(at, expect)),
            content => content?,
        };
        if expect.is_some() {
            minded(at, expect, Some(&version.clone().unwrap_or_else(|| Version::of(&bytes))))?;
        }
        Ok((store::text(at, bytes)?, version))
    }

    fn content(&self, at: &Locator) -> Result<(Vec<u8>, Option<Version>)> {
        match self.trace(at) {
            Trace::Nothing => Err(backend::not_found(at)),
            Trace::Folder => Err(backend::is_folder(at)),
            Trace::Written(bytes) => Ok((bytes.to_vec(), None)),
            Trace::Stored(stored) if stored.is_root() => Err(backend::is_folder(at)),
            Trace::Stored(stored) => {
                let content = self.store.read_bytes(&stored)?;
                Ok((content.bytes, Some(content.version)))
            }
        }
    }

    fn there(&self, at: &Locator) -> Result<There> {
        let stored = match self.trace(at) {
            Trace::Nothing => return Ok(There::Nothing),
            Trace::Folder => return Ok(There::Folder),
            Trace::Written(_) => return Ok(There::File(None)),
            Trace::Stored(stored) if stored.is_root() => return Ok(There::Folder),
            Trace::Stored(stored) => stored,
        };
        let info = self.store.info_optional(&stored)?;
        Ok(info.map_or(There::Nothing, |info| match info.kind {
            FileKind::File => There::File(info.version),
            FileKind::Folder => There::Folder,
            FileKind::Other => There::Other,
        }))
    }

    /// Follows a place back through the edits, to where its content comes from.
    fn trace(&self, at: &Locator) -> Trace<'_> {
        let mut now = at.clone();
        for edit in self.edits.iter().rev() {
            match edit {
                Edit::Write { at, bytes, .. } if *at == now => return Trace::Written(bytes),
                Edit::Write { at, .. } if at.is_within(&now) => return Trace::Folder,
                Edit::Delete { at, .. } if now.is_within(at) => return Trace::Nothing,
                Edit::Rename { from, to, .. } => match now.rebased(to, from) {
                    Some(before) => now = before,
                    None if now.is_within(from) => return Trace::Nothing,
                    None if to.is_within(&now) => return Trace::Folder,
                    None => {}
                },
                Edit::Write { .. } | Edit::Delete { .. } | Edit::Append { .. } => {}
            }
        }
        Trace::Stored(now)
    }

    /// Whether a folder is empty. For each name in it, the latest edit that touched it decides.
    fn is_empty(&self, folder: &Locator) -> Result<bool> {
        let mut now = folder.clone();
        let mut decided: BTreeMap<String, bool> = BTreeMap::new();
        let mut decide = |now: &Locator, at: &Locator, present: bool| {
            let within = at.relative_to(now).filter(|rest| !rest.is_empty());
            if let Some(name) = within.and_then(|rest| rest.split('/').next())
                && (present || at.parent().as_ref() == Some(now))
            {
                decided.entry(name.to_owned()).or_insert(present);
            }
        };
        let mut stored = true;
        for edit in self.edits.iter().rev() {
            match edit {
                Edit::Write { at, .. } | Edit::Append { at, .. } => decide(&now, at, true),
                Edit::Delete { at, .. } if *at == now => {
                    stored = false;
                    break;
                }
                Edit::Delete { at, .. } => decide(&now, at, false),
                Edit::Rename { from, to, .. } => match now.rebased(to, from) {
                    Some(before) => now = before,
                    None if now.is_within(from) => {
                        stored = false;
                        break;
                    }
                    None => {
                        decide(&now, to, true);
                        decide(&now, from, false);
                    }
                },
            }
        }
        if decided.values().any(|present| *present) {
            return Ok(false);
        }
        if !stored {
            return Ok(true);
        }
        let children = self.store.backend().list(&now, Depth::Children)?;
        Ok(children.iter().all(|child| decided.contains_key(child.locator.name())))
    }

    /// Refuses a place that is taken, lies beneath a file, or may not be created on any backend.
    fn must_be_free(&self, at: &Locator) -> Result<()> {
        if !matches!(self.there(at)?, There::Nothing) {
            return Err(backend::exists(at));
        }
        at.check_creatable()?;
        for folder in at.ancestors() {
            match self.there(&folder)? {
                There::Nothing => {}
                There::Folder => return Ok(()),
                There::File(_) => return Err(backend::is_file(&folder)),
                There::Other => return Err(not_regular(&folder)),
            }
        }
        Ok(())
    }

    /// Returns the error for an empty place: a conflict if the caller expects a version there.
    fn absent(&self, at: &Locator, expect: Option<&Version>) -> Error {
        match minded(at, expect, None) {
            Ok(()) => nearest::absent(self.store, at),
            Err(conflict) => conflict,
        }
    }
}

/// Checks the version that the caller expects, if any, given by its first characters.
fn minded(at: &Locator, expect: Option<&Version>, there: Option<&Version>) -> Result<()> {
    let Some(seen) = expect else { return Ok(()) };
    Expect::At(Version::named(seen.as_str(), there)?).check(at, there)
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn not_regular(at: &Locator) -> Error {
    Error::new(Kind::Invalid, format!("`{at}` is neither a file nor a folder"))
        .code(code::NOT_REGULAR)
        .hint("links, pipes, sockets and devices are neither followed nor changed")
}

pub(in crate::shapes) fn without_version(at: &Locator) -> Error {
    Error::new(Kind::Invalid, format!("`{at}` is a folder, which has no version to expect"))
        .code(code::IS_DIRECTORY)
        .hint("leave the expected version out")
}

fn root_stays(what: &str) -> Error {
    Error::new(Kind::Invalid, format!("the root of the store cannot be {what}"))
        .code(code::INVALID_PATH)
        .hint("name something in it")
}
