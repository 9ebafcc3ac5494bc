//! How a change of the graph is planned: files are read when they are first touched, each edit expects the
//! version that was read, and later steps see earlier ones.
//!
//! What a change relies on without writing it, such as the ends of a new connection, is pinned to its
//! version by appending nothing. A change that relies on the whole graph (for example, that a node has no
//! other connections) expects the tail of the registry to be as it was read.

mod connecting;
mod content;
mod making;
mod resaying;
mod restoring;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::catalog::Catalog;
use super::entry::{Connection, Entry, Node};
use super::ontology::Ontology;
use super::place::{Layout, NUMBERS, REGISTRY, TAIL, Thing};
use super::reading::is_edited;
use super::shelf::{Glance, Shelf, is_fresh};
use super::tail;
use crate::backend::{Bytes, Edit, Expect, Version, moved_on};
use crate::error::{Error, Kind, Result, code};
use crate::ids::Ids;
use crate::locator::Locator;
use crate::memory::Plan;
use crate::store::Store;

pub(super) use connecting::connected;
pub use connecting::{NewConnection, Removal, Removed};
pub use content::ContentEdit;
pub use making::{NewNode, Update};
pub(super) use restoring::Former;

/// What planning needs.
pub(super) struct Desk<'a> {
    pub(super) store: &'a Store,
    pub(super) layout: &'a Layout,
    pub(super) shelf: &'a mut Shelf,
    pub(super) ids: &'a dyn Ids,
    /// The present moment, as it is written into files.
    pub(super) now: String,
    /// How often this was planned before.
    pub(super) attempt: u32,
}

/// One file of the draft.
struct File {
    before: Option<Version>,
    now: Option<Bytes>,
}

/// A change that is being planned.
pub(super) struct Draft<'a> {
    desk: Desk<'a>,
    pub(super) ontology: Option<Arc<Ontology>>,
    fresh: bool,
    /// The length of the tail when planning began.
    tail_bytes: u64,
    /// Whether it takes numbers for new ids.
    drawn: bool,
    files: BTreeMap<Locator, File>,
    /// Files that the change writes or removes.
    changed: BTreeSet<Locator>,
    held: BTreeMap<Locator, Version>,
    /// Entries that were read from the registry because the file at this place, which should hold them, is
    /// missing.
    registered: BTreeMap<Locator, Registered>,
    /// The lines to add to the tail.
    lines: String,
    /// Whether the change relies on the whole catalog.
    whole: bool,
    /// Whether the catalog was read for this plan.
    read: bool,
    /// What this draft does to connections, in order.
    links: Vec<Link>,
    /// What was there before each step of the current attempt, if there is one.
    trail: Option<Vec<Trace>>,
}

/// The entry of a node or connection that only the registry has.
pub(super) struct Registered {
    thing: Thing,
    id: String,
    entry: Entry,
}

/// What the change does to a connection.
enum Link {
    Made(Box<Connection>),
    Gone(String),
}

/// What a draft had planned for a file before it planned something else.
struct Trace {
    at: Locator,
    now: Option<Bytes>,
    changed: bool,
    held: Option<Version>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(desk: Desk<'a>) -> Result<Self> {
        let seen = Glance::of(desk.store, desk.layout)?;
        let ontology = desk.shelf.ontology(desk.store, desk.layout, &seen)?;
        let fresh = !seen.has(REGISTRY) && is_fresh(desk.store, desk.layout, &seen)?;
        let tail_bytes = seen.size(TAIL);
        Ok(Draft { ontology, fresh, tail_bytes, ..Draft::reading(desk) })
    }

    /// Returns a draft that only reads.
    pub(super) fn reading(desk: Desk<'a>) -> Self {
        Draft {
            desk,
            ontology: None,
            fresh: false,
            tail_bytes: 0,
            drawn: false,
            files: BTreeMap::new(),
            changed: BTreeSet::new(),
            held: BTreeMap::new(),
            registered: BTreeMap::new(),
            lines: String::new(),
            whole: false,
            read: false,
            links: Vec::new(),
            trail: None,
        }
    }

    /// Returns the catalog, brought up to date.
    fn catalog(&mut self) -> Result<&Catalog> {
        if !self.read {
            self.desk.shelf.refresh(self.desk.store, self.desk.layout)?;
            self.read = true;
        }
        Ok(&self.desk.shelf.catalog)
    }

    /// Returns the catalog, which the change then expects to stay the same until it is applied.
    fn whole_catalog(&mut self) -> Result<&Catalog> {
        self.whole = true;
        self.catalog()?;
        match self.desk.shelf.loss {
            None => Ok(&self.desk.shelf.catalog),
            Some(_) => Err(Error::new(Kind::Corrupt, "the registry is lost")
                .code(code::REGISTRY_LOST)
                .hint("`memgrove graph check --rebuild` rebuilds it from the files")),
        }
    }

    /// Reads a file, unless this draft already has.
    fn touch(&mut self, at: &Locator) -> Result<()> {
        if !self.files.contains_key(at) {
            let content = self.desk.store.read_optional(at)?;
            let (before, now) = content.map(|content| (content.version, content.bytes.into())).unzip();
            self.files.insert(at.clone(), File { before, now });
        }
        Ok(())
    }

    fn bytes(&mut self, at: &Locator) -> Result<Option<&[u8]>> {
        self.touch(at)?;
        Ok(self.files[at].now.as_deref())
    }

    /// Plans that a file holds these bytes, or is removed.
    fn put(&mut self, at: &Locator, now: Option<Bytes>) -> Result<()> {
        self.touch(at)?;
        let file = self.files.get_mut(at).expect("it was just read");
        let before = std::mem::replace(&mut file.now, now);
        let held = self.held.remove(at);
        let changed = !self.changed.insert(at.clone());
        if let Some(trail) = &mut self.trail {
            trail.push(Trace { at: at.clone(), now: before, changed, held });
        }
        Ok(())
    }

    /// Does a step as a whole or not at all: if it fails, the draft is as it was before.
    pub(super) fn attempt<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (lines, links) = (self.lines.len(), self.links.len());
        self.trail = Some(Vec::new());
        let done = step(self);
        let trail = self.trail.take().unwrap_or_default();
        if done.is_err() {
            self.lines.truncate(lines);
            self.links.truncate(links);
            for Trace { at, now, changed, held } in trail.into_iter().rev() {
                self.held.extend(held.map(|version| (at.clone(), version)));
                match self.files.get_mut(&at) {
                    Some(file) if changed => file.now = now,
                    // It is read again when it is next needed.
                    _ => drop((self.changed.remove(&at), self.files.remove(&at))),
                }
            }
        }
        done
    }

    /// Returns the entry of a node or connection: from its own file, or else from the registry, where
    /// other programs may have written it.
    fn entry(&mut self, thing: Thing, id: &str) -> Result<Entry> {
        if super::id::check(id).is_err() {
            return Err(self.unknown(thing, id));
        }
        let at = self.desk.layout.meta(thing, id)?;
        if let Some(bytes) = self.bytes(&at)? {
            return Entry::read(thing, id, bytes.to_vec());
        }
        let deleted = self.changed.contains(&at);
        let known = self.catalog()?.text(thing, id);
        let Some(entry) = known.filter(|_| !deleted).map(|text| Entry::known(id, text)) else {
            return Err(self.unknown(thing, id));
        };
        self.registered.insert(at, Registered { thing, id: id.to_owned(), entry: entry.clone() });
        Ok(entry)
    }

    /// Returns the changed entries that no file had before this change. A change before this one must
    /// write them to files, or undoing this one could not bring them back.
    pub(super) fn unfiled(&mut self) -> Vec<Registered> {
        let registered = std::mem::take(&mut self.registered).into_iter();
        registered.filter(|(at, _)| self.changed.contains(at)).map(|(_, one)| one).collect()
    }

    /// Writes a file for each entry that only the registry had.
    pub(super) fn file(&mut self, registered: &[Registered]) -> Result<()> {
        for Registered { thing, id, entry } in registered {
            let at = self.desk.layout.meta(*thing, id)?;
            if self.bytes(&at)?.is_none() {
                self.say(*thing, id, entry)?;
            }
        }
        Ok(())
    }

    fn unknown(&self, thing: Thing, id: &str) -> Error {
        thing.unknown(id).hint(match thing {
            Thing::Node => "`memgrove node list` shows the nodes there are",
            Thing::Connection => "`memgrove connection list` shows the connections there are",
        })
    }

    pub(super) fn node(&mut self, id: &str) -> Result<Node> {
        self.entry(Thing::Node, id)?.node()
    }

    pub(super) fn connection(&mut self, id: &str) -> Result<Connection> {
        self.entry(Thing::Connection, id)?.connection()
    }

    /// Returns the entry of a node or connection, and the version of its file.
    pub(super) fn got(&mut self, thing: Thing, id: &str) -> Result<(Entry, Option<Version>)> {
        let entry = self.entry(thing, id)?;
        let at = self.desk.layout.meta(thing, id)?;
        Ok((entry, self.files.get(&at).and_then(|file| file.before.clone())))
    }

    /// Whether a node or connection with this id exists, readable or not.
    pub(super) fn is_there(&mut self, thing: Thing, id: &str) -> Result<bool> {
        match self.entry(thing, id) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == Kind::NotFound => Ok(false),
            Err(error) if error.kind() == Kind::Corrupt => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Refuses unless the entry is at the version that the caller expects. The version of the content is
    /// accepted too, from a caller who has read only that.
    fn mind(&mut self, thing: Thing, id: &str, expect: Option<&str>) -> Result<()> {
        let Some(wanted) = expect else { return Ok(()) };
        let at = self.desk.layout.meta(thing, id)?;
        self.touch(&at)?;
        let there = self.files[&at].before.clone().unwrap_or_else(|| Version::new(""));
        let storage = self.entry(thing, id)?.storage();
        let what = if there.is_named_by(wanted)? {
            if !is_edited(self.desk.store, self.desk.layout, storage.as_ref())? {
                return Ok(());
            }
            format!("the content of the {} `{id}` was changed by hand since version {wanted}", thing.noun())
        } else {
            let held = match &storage {
                Some(storage) => self.content(storage)?.map(Version::of),
                None => None,
            };
            if held.is_some_and(|held| held.is_named_by(wanted).is_ok_and(|is_named| is_named)) {
                return Ok(());
            }
            format!("the {} `{id}` is at version {there}, not at version {wanted}", thing.noun())
        };
        Err(moved_on(what))
    }

    /// Writes the entry of a node or connection, into its file and into the tail.
    fn say(&mut self, thing: Thing, id: &str, entry: &Entry) -> Result<()> {
        let at = self.desk.layout.meta(thing, id)?;
        self.put(&at, Some(Bytes::copy_from_slice(entry.text().as_bytes())))?;
        self.lines.push_str(&tail::said(thing, entry));
        Ok(())
    }

    /// Removes the entry of a node or connection.
    fn unsay(&mut self, thing: Thing, id: &str) -> Result<()> {
        let at = self.desk.layout.meta(thing, id)?;
        self.put(&at, None)?;
        self.lines.push_str(&tail::gone(thing, id));
        Ok(())
    }

    /// Makes the change expect that a node stays as it is until the change is applied.
    fn hold(&mut self, id: &str) -> Result<Node> {
        let entry = self.entry(Thing::Node, id)?;
        let at = self.desk.layout.meta(Thing::Node, id)?;
        match &self.files[&at].before {
            _ if self.changed.contains(&at) => {}
            Some(version) => drop(self.held.insert(at, version.clone())),
            // Only the registry has it, so its own file is written too.
            None => self.say(Thing::Node, id, &entry)?,
        }
        entry.node()
    }

    /// Returns the edits of this draft.
    pub(super) fn into_plan<T>(mut self, outcome: T) -> Result<Plan<T>> {
        let mut edits = Vec::new();
        for at in std::mem::take(&mut self.changed) {
            let Some(File { before, now }) = self.files.remove(&at) else { continue };
            let expect = before.clone().map_or(Expect::Absent, Expect::At);
            match (now, before) {
                (Some(bytes), _) => edits.push(Edit::Write { at, bytes, expect }),
                (None, Some(_)) => edits.push(Edit::Delete { at, expect }),
                (None, None) => {}
            }
        }
        if edits.is_empty() {
            return Ok(Plan { edits, outcome });
        }
        edits.extend(self.held.into_iter().map(|(at, version)| Edit::Append {
            at,
            bytes: Bytes::new(),
            expect: Expect::At(version),
        }));
        let Desk { store, layout, shelf, ids, .. } = self.desk;
        if self.fresh {
            let mark = tail::mark(ids.random());
            self.lines.insert_str(0, &tail::begun(&mark));
            let mut empty = Catalog::default();
            empty.mark = Some(mark);
            let bytes = super::registry::print(&empty).into_bytes();
            edits.push(Edit::Write {
                at: layout.system(REGISTRY)?,
                bytes: bytes.into(),
                expect: Expect::Absent,
            });
        }
        let expect = match (self.whole, &shelf.tail_version) {
            (false, _) => Expect::Any,
            (true, None) => Expect::Absent,
            (true, Some(version)) => Expect::At(version.clone()),
        };
        // A sync tool would only cause conflicts in a file that every change rewrites.
        let given = shelf.numbered(self.tail_bytes, &self.lines, self.drawn);
        if let Some(given) = given.filter(|_| !store.capabilities().sync) {
            let bytes = given.print().into();
            edits.push(Edit::Write { at: layout.system(NUMBERS)?, bytes, expect: Expect::Any });
        }
        edits.push(Edit::Append { at: layout.system(TAIL)?, bytes: self.lines.into(), expect });
        Ok(Plan { edits, outcome })
    }
}
