//! Whether a change may happen, and what its record says: every edit is checked against the disk
//! as the edits before it leave it.

use std::sync::Arc;

use bytes::Bytes;

use super::Core;
use super::journal::Journal;
use super::record::{Bodies, Entry};
use super::view::{Loaded, There, View};
use crate::backend::{
    Depth, Edit, Expect, Version, exists, into_itself, is_file, is_folder, not_empty, not_found, taken,
};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::vfs::VfsFile;

/// How many of the files that a change replaces are kept open until they are replaced.
const REPLACED_OPEN_MAX: usize = 16;

/// A change that may happen.
#[derive(Default)]
pub(super) struct Planned {
    pub(super) entries: Vec<Entry>,
    pub(super) bodies: Vec<Bodies>,
    /// For each edit the file that it replaces, still open; only for the first few edits.
    pub(super) replaced: Vec<Option<Box<dyn VfsFile>>>,
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
        let (entry, bodies) = match edit {
            Edit::Write { at, bytes, expect } => view.write(at, bytes, expect)?,
            Edit::Append { at, bytes, expect } => view.append(at, bytes, expect)?,
            Edit::Delete { at, expect } => view.delete(at, expect)?,
            Edit::Rename { from, to, expect } => (view.rename(from, to, expect)?, Bodies::default()),
        };
        planned.entries.push(entry);
        planned.bodies.push(bodies);
        planned.replaced.push(view.replaced.take().filter(|_| planned.entries.len() <= REPLACED_OPEN_MAX));
    }
    Ok(planned)
}

impl<'a> View<'a> {
    fn write(&mut self, at: &Locator, bytes: &Bytes, expect: &Expect) -> Result<(Entry, Bodies)> {
        let old = match self.opened(at)? {
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
        Ok(self.replace(at, bytes, old))
    }

    /// Plans to replace the content that a file was found to have.
    fn replace(&mut self, at: &Locator, bytes: &Bytes, old: Option<Arc<Loaded>>) -> (Entry, Bodies) {
        let new = Version::of(bytes);
        let before = kept(old.as_deref());
        let loaded = Loaded { bytes: bytes.clone(), version: new.clone(), journaled: true };
        self.set(
            at,
            There::File {
                size: bytes.len() as u64,
                inode: None,
                is_shared: false,
                content: Some(Arc::new(loaded)),
                added: Vec::new(),
            },
        );
        let old = old.map(|old| old.version.clone());
        let before_len = before.as_ref().map(|before| before.len() as u64);
        let entry = Entry::Write { at: at.clone(), old, new, len: bytes.len() as u64, before: before_len };
        (entry, [bytes.clone(), before.unwrap_or_default()])
    }

    fn append(&mut self, at: &Locator, bytes: &Bytes, expect: &Expect) -> Result<(Entry, Bodies)> {
        let loaded = |bytes: Bytes| {
            let version = Version::of(&bytes);
            Some(Arc::new(Loaded { bytes, version, journaled: false }))
        };
        let (offset, created, inode, is_shared, content, mut added) = match self.there(at)? {
            There::Folder(_) => return Err(is_folder(at)),
            There::Absent => {
                expect.check(at, None)?;
                self.check_new(at)?;
                (0, true, None, false, loaded(bytes.clone()), Vec::new())
            }
            There::File { is_shared: true, .. } if !bytes.is_empty() => {
                self.check_expect(at, expect)?;
                let old = self.load(at)?;
                let whole = [&old.bytes[..], bytes].concat().into();
                return Ok(self.replace(at, &whole, Some(old)));
            }
            There::File { size, inode, is_shared, content, added } => {
                self.check_expect(at, expect)?;
                (
                    size,
                    false,
                    inode,
                    is_shared,
                    content.and_then(|old| loaded([&*old.bytes, bytes].concat().into())),
                    added,
                )
            }
        };
        added.extend_from_slice(bytes);
        self.set(at, There::File { size: offset + bytes.len() as u64, inode, is_shared, content, added });
        let entry = Entry::Append { at: at.clone(), offset, len: bytes.len() as u64, created };
        Ok((entry, [bytes.clone(), Bytes::new()]))
    }

    fn delete(&mut self, at: &Locator, expect: &Expect) -> Result<(Entry, Bodies)> {
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
                (Some(old.version.clone()), kept(Some(&old)))
            }
        };
        self.set(at, There::Absent);
        let before_len = before.as_ref().map(|before| before.len() as u64);
        let entry = Entry::Delete { at: at.clone(), old, before: before_len };
        Ok((entry, [Bytes::new(), before.unwrap_or_default()]))
    }

    fn rename(&mut self, from: &Locator, to: &Locator, expect: &Expect) -> Result<Entry> {
        let there = self.there(from)?;
        let (folder, inode, old) = match &there {
            There::Absent => return Err(gone(from, expect)),
            There::Folder(inode) => {
                folder_expect(from, expect)?;
                (true, inode.or_else(|| self.folder_inode(from)), None)
            }
            There::File { inode, .. } => {
                self.check_expect(from, expect)?;
                // A file that cannot be read can still be moved.
                (false, *inode, self.load(from).ok().map(|held| held.version.clone()))
            }
        };
        if to != from && to.is_within(from) {
            return Err(if folder { into_itself(from, to) } else { is_file(from) });
        }
        self.core.check_reserved(to)?;
        if !matches!(self.there(to)?, There::Absent) {
            return Err(taken(to));
        }
        if to.parent() == from.parent() {
            self.forget_name(from);
        }
        self.check_new(to)?;
        if folder {
            self.check_lengths(from, to)?;
            // Earlier edits beneath the target must not hide what is moved there.
            self.changed.retain(|at, _| !at.is_within(to));
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
        Ok(Entry::Rename { at: from.clone(), to: to.clone(), folder, inode, old })
    }

    /// Refuses a move that makes the key of anything in the folder too long.
    fn check_lengths(&self, from: &Locator, to: &Locator) -> Result<()> {
        let Some(name) = self.on_disk(from).filter(|_| to.key().len() > from.key().len()) else {
            return Ok(());
        };
        let mut within = Vec::new();
        self.core.list_into(&name, Depth::All, &mut within)?;
        for info in within {
            info.locator.rebased(&name, to).expect("it was listed beneath").check_length()?;
        }
        Ok(())
    }

    fn check_expect(&mut self, at: &Locator, expect: &Expect) -> Result<()> {
        match expect {
            Expect::Any => Ok(()),
            Expect::Absent => Err(exists(at)),
            Expect::At(_) => expect.check(at, Some(&self.load(at)?.version)),
        }
    }
}

/// The old bytes that the record is to keep: none where the journal's segment holds them already.
fn kept(old: Option<&Loaded>) -> Option<Bytes> {
    old.filter(|old| !old.journaled).map(|old| old.bytes.clone())
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
