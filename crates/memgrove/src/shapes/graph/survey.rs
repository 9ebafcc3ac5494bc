//! What the graph is according to its files: for the check, and for rebuilding the registry.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;

use super::catalog::Catalog;
use super::entry::{Connection, Entry, Node, Storage, is_named};
use super::id;
use super::id::Given;
use super::place::{FOLDING, Layout, META, NUMBERS, REGISTRY, TAIL, Thing, UNREAD, format_of, split_name};
use super::registry::{self, Text};
use super::report::Report;
use super::shelf::{Loss, Shelf};
use super::tail;
use crate::backend::{Edit, Expect, FileKind, Info, Version};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::locator::Locator;
use crate::locator::copies::is_like_copy_of;
use crate::memory::Plan;
use crate::store::Store;
use crate::text::blocks::BYTE_ORDER_MARK;
use crate::text::merge::markers;

/// What was found in all files, and what is to be done about it.
#[derive(Default)]
pub(super) struct Survey {
    pub(super) report: Report,
    /// The entries that the registry should have.
    entries: BTreeMap<(Thing, String), Entry>,
    /// Entry files to write, each over a version if there is one.
    writes: Vec<(Locator, Entry, Option<Version>)>,
    /// Files to move aside, because they cannot be read and the registry has their entries.
    aside: Vec<(Locator, Version)>,
    /// Entries of the registry that cannot be read.
    unread: Vec<(Thing, String, String)>,
}

/// The files of one node or connection.
#[derive(Default)]
struct Files {
    meta: Option<Info>,
    contents: Vec<Info>,
}

impl Survey {
    /// Surveys every file of the graph.
    pub(super) fn of(store: &Store, layout: &Layout, catalog: &Catalog, now: &str) -> Result<Self> {
        let mut survey = Survey::default();
        for thing in [Thing::Node, Thing::Connection] {
            let mut found: BTreeMap<String, Files> = BTreeMap::new();
            for info in store.list_all(&layout.folder(thing)?)? {
                if info.kind != FileKind::File {
                    continue;
                }
                let (id, rest) = split_name(info.locator.name());
                // Names that begin with a dot belong to the system; `memgrove conflicts` reports copies of
                // sync tools.
                if id.is_empty() || is_like_copy_of(info.locator.name(), META) {
                    continue;
                }
                let files = found.entry(id.to_owned()).or_default();
                match rest == META {
                    true => files.meta = Some(info),
                    false => files.contents.push(info),
                }
            }
            for (id, files) in found {
                survey.take(store, layout, catalog, (thing, id), files, now)?;
            }
        }
        survey.take_foreign(layout, catalog)?;
        survey.compare(catalog);
        Ok(survey)
    }

    fn take(
        &mut self,
        store: &Store,
        layout: &Layout,
        catalog: &Catalog,
        (thing, id): (Thing, String),
        files: Files,
        now: &str,
    ) -> Result<()> {
        let known = catalog.text(thing, &id).map(|text| Entry::known(&id, text));
        if files.meta.is_none() && catalog.unread().any(|(kind, unread, _)| (kind, unread) == (thing, &id)) {
            // The registry's unreadable entry is left for a program that can read it.
            return Ok(());
        }
        // Whether the entry's file is to be written again, and over which version.
        let anew;
        let mut version = None;
        let entry = match &files.meta {
            None => {
                anew = known.is_some();
                // An entry that another program wrote into the registry never had a file.
                let lost = catalog.text(thing, &id).is_some_and(is_named);
                self.report.lost.extend(lost.then(|| id.clone()));
                known.or_else(|| self.adopted(thing, &id, layout, &files, now))
            }
            Some(info) => {
                let Some(content) = store.read_optional(&info.locator)? else { return Ok(()) };
                let text = str::from_utf8(&content.bytes).ok();
                let said = text.and_then(said_id);
                if said.is_none() && text.is_some_and(|text| !markers(text).is_empty()) {
                    self.report.marked.push(info.locator.key().to_owned());
                    self.entries.extend(known.map(|known| ((thing, id), known)));
                    return Ok(());
                }
                match Entry::read(thing, &id, content.bytes) {
                    Ok(entry) => {
                        anew = said.is_some_and(|said| said != id);
                        self.report.misnamed.extend(anew.then(|| info.locator.key().to_owned()));
                        version = Some(content.version);
                        Some(entry)
                    }
                    Err(_) => {
                        self.report.damaged.push(info.locator.key().to_owned());
                        anew = known.is_some();
                        self.aside.extend(anew.then(|| (info.locator.clone(), content.version)));
                        known
                    }
                }
            }
        };
        let Some(entry) = entry else { return Ok(()) };
        let held = entry.storage().and_then(|storage| layout.content(&storage.path).ok());
        let stray = files.contents.iter().filter(|info| Some(&info.locator) != held.as_ref());
        self.report.stray.extend(stray.map(|info| info.locator.key().to_owned()));
        let (entry, changed) = self.with_content(store, layout, &id, entry, &files)?;
        if anew || changed {
            self.writes.push((layout.meta(thing, &id)?, entry.clone(), version));
        }
        self.entries.insert((thing, id), entry);
        Ok(())
    }

    /// Makes an entry for a content that has none.
    fn adopted(
        &mut self,
        thing: Thing,
        id: &str,
        layout: &Layout,
        files: &Files,
        now: &str,
    ) -> Option<Entry> {
        let info = files.contents.first()?;
        let name = info.locator.key().to_owned();
        // What a connection connects cannot be guessed.
        if thing == Thing::Connection || id::check(id).is_err() {
            self.report.damaged.push(name);
            return None;
        }
        let kind = id::kind_prefix(id).unwrap_or("unknown");
        let node = Node {
            id: id.to_owned(),
            kind: kind.to_owned(),
            storage: Some(Storage {
                path: info.locator.relative_to(&layout.root)?.to_owned(),
                format: format_of(&name).unwrap_or_else(|| "binary".to_owned()),
                ..Storage::default()
            }),
            created: now.to_owned(),
            updated: now.to_owned(),
            ..Node::default()
        };
        self.report.adopted.push(id.to_owned());
        Some(Entry::new(&node))
    }

    /// Returns the entry with the present size and hash of its content, and whether they have changed. The
    /// content is read only if its size or date shows that somebody may have changed it.
    fn with_content(
        &mut self,
        store: &Store,
        layout: &Layout,
        id: &str,
        entry: Entry,
        files: &Files,
    ) -> Result<(Entry, bool)> {
        let Some(storage) = entry.storage() else { return Ok((entry, false)) };
        let updated = entry.value("updated").and_then(|text| serde_json::from_str::<String>(text).ok());
        let place = layout.content(&storage.path);
        let own = |place: &Locator| files.contents.iter().find(|info| info.locator == *place).cloned();
        let there = match place.ok().map(|place| (own(&place), place)) {
            // Other programs keep contents elsewhere beneath `_content`.
            Some((None, place)) => store.info_optional(&place)?.filter(|info| info.kind == FileKind::File),
            Some((own, _)) => own,
            None => None,
        };
        let Some(info) = there else {
            self.report.missing.push(id.to_owned());
            return Ok((entry, false));
        };
        let updated = updated.and_then(|updated| updated.parse::<Timestamp>().ok());
        let later = updated.is_none_or(|updated| info.mtime > updated);
        if info.size == storage.size && !storage.hash.is_empty() && !later {
            return Ok((entry, false));
        }
        let Some(content) = store.read_optional(&info.locator)? else { return Ok((entry, false)) };
        let (size, hash) = (content.bytes.len() as u64, Version::of(&content.bytes).as_str().to_owned());
        if (size, &hash) == (storage.size, &storage.hash) {
            return Ok((entry, false));
        }
        if !storage.hash.is_empty() {
            self.report.edited.push(id.to_owned());
        }
        let storage =
            serde_json::to_string(&Storage { size, hash, ..storage }).expect("a storage is plain data");
        Ok((entry.with(&[("storage", Some(storage))]), true))
    }

    /// Takes in entries that only the registry has, because another program wrote them there, so that they
    /// are written to files too.
    fn take_foreign(&mut self, layout: &Layout, catalog: &Catalog) -> Result<()> {
        for (thing, id, text) in catalog.entries() {
            let key = (thing, id.to_owned());
            if self.entries.contains_key(&key) {
                continue;
            }
            // No file can have this name, so the entry stays in the registry.
            if id::check(id).is_err() {
                self.unread.push((thing, id.to_owned(), text.to_owned()));
                continue;
            }
            if is_named(text) {
                continue;
            }
            let entry = Entry::known(id, text);
            self.writes.push((layout.meta(thing, id)?, entry.clone(), None));
            self.entries.insert(key, entry);
        }
        for (thing, id, text) in catalog.unread() {
            if !self.entries.contains_key(&(thing, id.to_owned())) {
                self.unread.push((thing, id.to_owned(), text.to_owned()));
            }
        }
        self.report.unread = self.unread.iter().map(|(_, id, _)| id.clone()).collect();
        Ok(())
    }

    /// Returns the entry files that do not exist yet, with their texts.
    pub(super) fn unwritten(self) -> Vec<(Locator, String)> {
        let unwritten = self.writes.into_iter().filter(|(_, _, version)| version.is_none());
        unwritten.map(|(at, entry, _)| (at, entry.text().to_owned())).collect()
    }

    /// Compares the files with the registry.
    fn compare(&mut self, catalog: &Catalog) {
        let mut known = HashSet::new();
        for (thing, id, text) in catalog.entries() {
            let key = (thing, id.to_owned());
            match self.entries.get(&key) {
                None if self.unread.iter().any(|(kind, unread, _)| (*kind, &**unread) == (thing, id)) => {}
                None => self.report.gone.push(id.to_owned()),
                Some(entry) if entry.compact() != Entry::known(id, text).compact() => {
                    let edited = self.report.edited.iter().any(|edited| edited == id);
                    self.report.stale.extend((!edited).then(|| id.to_owned()));
                }
                Some(_) => {}
            }
            known.insert(key);
        }
        let unknown = self.entries.keys().filter(|key| !known.contains(key)).map(|(_, id)| id.clone());
        let unknown: Vec<String> = unknown.filter(|id| !self.report.adopted.contains(id)).collect();
        self.report.stale.extend(unknown);
        let dangles = |one: &Connection| {
            [&one.from, &one.to].iter().any(|end| !self.entries.contains_key(&(Thing::Node, (*end).clone())))
        };
        let connections = self.entries.iter().filter(|((thing, _), _)| *thing == Thing::Connection);
        let connections = connections.filter_map(|(_, entry)| entry.connection().ok());
        self.report.dangling = connections.filter(dangles).map(|one| one.id).collect();
        let count = |wanted: Thing| self.entries.keys().filter(|(thing, _)| *thing == wanted).count();
        (self.report.nodes, self.report.connections) = (count(Thing::Node), count(Thing::Connection));
    }

    /// Plans to rebuild the registry from the files, keeping everything in it that this version does not
    /// know, and to move aside what cannot be read.
    pub(super) fn into_plan(
        mut self,
        store: &Store,
        layout: &Layout,
        shelf: &Shelf,
        mark: &str,
    ) -> Result<Plan<Report>> {
        let mut catalog = self.catalog(&shelf.catalog);
        catalog.mark = Some(mark.to_owned());
        let mut edits = Vec::new();
        let registry = layout.system(REGISTRY)?;
        let mut expect = shelf.registry_version.clone().map_or(Expect::Absent, Expect::At);
        self.report.registry = shelf.loss.as_ref().map(ToString::to_string);
        if let (Some(loss @ Loss::Damaged(_)), Some(version)) = (&shelf.loss, &shelf.registry_version) {
            let aside = layout.system(&format!("registry.damaged-{}.json", short(version)))?;
            self.report.registry = Some(format!("{loss} (kept as `{aside}`)"));
            edits.push(put_aside(store, registry.clone(), aside, version.clone())?);
            expect = Expect::Absent;
        }
        edits.push(Edit::Write { at: registry, bytes: registry::print(&catalog).into(), expect });
        let given = Given { numbers: catalog.numbers.clone(), tail: None };
        let bytes = given.print().into();
        edits.push(Edit::Write { at: layout.system(NUMBERS)?, bytes, expect: Expect::Any });
        let tail = shelf.tail_version.clone().map_or(Expect::Absent, Expect::At);
        let bytes = tail::begun(mark).into();
        edits.push(Edit::Write { at: layout.system(TAIL)?, bytes, expect: tail });
        if let Some(version) = &shelf.folding_version {
            edits.push(Edit::Delete { at: layout.system(FOLDING)?, expect: Expect::At(version.clone()) });
        }
        if !shelf.unread.is_empty() {
            let kept = layout.system(UNREAD)?;
            self.report.registry = self.report.registry.map(|why| format!("{why} (kept in `{kept}`)"));
            let bytes = (shelf.unread.join("\n") + "\n").into_bytes();
            edits.push(Edit::Append { at: kept, bytes: bytes.into(), expect: Expect::Any });
        }
        for (from, version) in self.aside {
            let to = layout.system(&format!("damaged/{}-{}", short(&version), from.name()))?;
            self.report.aside.push(to.key().to_owned());
            edits.push(put_aside(store, from, to, version)?);
        }
        for (at, entry, version) in self.writes {
            let expect = version.map_or(Expect::Absent, Expect::At);
            edits.push(Edit::Write { at, bytes: entry.text().to_owned().into(), expect });
        }
        Ok(Plan { edits, outcome: self.report })
    }

    /// Returns the catalog of the files' entries, with everything of an old one that this version does not
    /// know.
    pub(super) fn catalog(&mut self, old: &Catalog) -> Catalog {
        let mut catalog = Catalog::default();
        let own = |text: &str| Text::Own(text.into());
        catalog.strange = old.strange.iter().map(|(key, text)| (key.clone(), own(old.entry(text)))).collect();
        for ((thing, id), entry) in &self.entries {
            if !catalog.take(*thing, Some(id), &entry.compact()) {
                self.report.damaged.push(id.clone());
            }
        }
        for (thing, id, text) in &self.unread {
            match thing {
                Thing::Node => catalog.unread_nodes.push((id.clone(), own(text))),
                Thing::Connection => catalog.unread_connections.push((id.clone(), own(text))),
            }
        }
        catalog.numbers.join(&old.numbers);
        catalog
    }
}

/// Moves a file aside. If a copy with the same damage is there already, the file is only deleted.
fn put_aside(store: &Store, from: Locator, to: Locator, version: Version) -> Result<Edit> {
    let kept = store.info_optional(&to)?.and_then(|info| info.version);
    let is_kept = kept.as_ref() == Some(&version);
    let expect = Expect::At(version);
    Ok(if is_kept { Edit::Delete { at: from, expect } } else { Edit::Rename { from, to, expect } })
}

/// Returns enough of a version to tell it from others in a file name.
fn short(version: &Version) -> &str {
    version.as_str().get(..8).unwrap_or(version.as_str())
}

/// Returns the id in an entry, if it can be read.
fn said_id(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Said {
        id: String,
    }
    serde_json::from_str::<Said>(text.trim_start_matches(BYTE_ORDER_MARK)).ok().map(|said| said.id)
}
