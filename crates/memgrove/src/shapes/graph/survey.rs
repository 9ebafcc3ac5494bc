//! The graph as its files say it is: for the check, and for a registry that must be made anew.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use super::catalog::Catalog;
use super::entry::{Connection, Entry, Node, Storage};
use super::id;
use super::place::{FOLDING, Layout, META, NUMBERS, REGISTRY, TAIL, Thing, UNREAD, format_of, split_name};
use super::registry;
use super::shelf::{Loss, Shelf};
use crate::backend::{Edit, Expect, FileKind, Info, Version};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::locator::Locator;
use crate::memory::Plan;
use crate::store::Store;

/// What a survey found, by id or file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// How many nodes there are.
    pub nodes: usize,
    /// How many connections there are.
    pub connections: usize,
    /// Why the registry had to be made anew: it was lost, or damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// Contents of nodes that somebody changed by hand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<String>,
    /// Files with content that belonged to no node, and are nodes now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub adopted: Vec<String>,
    /// What the registry did not know, or knew otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<String>,
    /// What the registry knew, and no file says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// Nodes and connections whose content is missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Connections with an end that does not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dangling: Vec<String>,
    /// Files that cannot be read, and were left as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

/// Everything that files say, and what is to be done about them.
#[derive(Default)]
pub(super) struct Survey {
    pub(super) report: Report,
    /// Entries by thing and id, as the registry shall have them.
    entries: BTreeMap<(Thing, String), Entry>,
    /// Entries that are to be written beside their content.
    writes: Vec<(Locator, Entry, Option<Version>)>,
}

/// The files of one node or connection.
#[derive(Default)]
struct Files {
    meta: Option<Info>,
    contents: Vec<Info>,
}

impl Survey {
    /// Looks at every file of the graph.
    pub(super) fn of(store: &Store, layout: &Layout, catalog: &Catalog, now: &str) -> Result<Self> {
        let mut survey = Survey::default();
        for thing in [Thing::Node, Thing::Connection] {
            let mut found: BTreeMap<String, Files> = BTreeMap::new();
            for info in store.list_all(&layout.folder(thing)?)? {
                if info.kind != FileKind::File {
                    continue;
                }
                let (id, rest) = split_name(info.locator.name());
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
        let known = match thing {
            Thing::Node => catalog.node_text(&id),
            Thing::Connection => catalog.connection_text(&id),
        };
        let (entry, version) = match &files.meta {
            None => match known {
                Some(text) => (Some(Entry::known(&id, text)), None),
                None => (self.adopted(thing, &id, layout, &files, now), None),
            },
            Some(info) => {
                let Some(content) = store.read_optional(&info.locator)? else { return Ok(()) };
                let version = content.version.clone();
                match Entry::read(thing, &id, content.bytes) {
                    Ok(entry) => (Some(entry), Some(version)),
                    Err(_) => {
                        self.report.damaged.push(info.locator.key().to_owned());
                        (known.map(|text| Entry::known(&id, text)), None)
                    }
                }
            }
        };
        let Some(entry) = entry else { return Ok(()) };
        let entry = self.with_content(store, layout, (thing, &id), entry, version.as_ref(), &files)?;
        self.entries.insert((thing, id), entry);
        Ok(())
    }

    /// An entry for a content that nobody speaks of.
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
        let kind =
            id.strip_prefix("mem_").and_then(|id| id.rsplit_once('_')).map_or("unknown", |(kind, _)| kind);
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

    /// The entry with what its content is now. A content is read only if its size or its date say
    /// that somebody may have changed it.
    fn with_content(
        &mut self,
        store: &Store,
        layout: &Layout,
        (thing, id): (Thing, &str),
        entry: Entry,
        version: Option<&Version>,
        files: &Files,
    ) -> Result<Entry> {
        let (storage, updated) = match thing {
            Thing::Node => entry.node().map(|node| (node.storage, node.updated))?,
            Thing::Connection => entry.connection().map(|one| (one.storage, one.updated))?,
        };
        let at = layout.meta(thing, id)?;
        let Some(storage) = storage else { return Ok(entry) };
        let place = layout.content(&storage.path);
        let there = place.ok().and_then(|place| files.contents.iter().find(|info| info.locator == place));
        let Some(info) = there else {
            self.report.missing.push(id.to_owned());
            return Ok(entry);
        };
        let later = updated.parse::<Timestamp>().map_or(true, |updated| info.mtime > updated);
        if info.size == storage.size && !storage.hash.is_empty() && !later {
            return Ok(entry);
        }
        let Some(content) = store.read_optional(&info.locator)? else { return Ok(entry) };
        let (size, hash) = (content.bytes.len() as u64, Version::of(&content.bytes).as_str().to_owned());
        if (size, &hash) == (storage.size, &storage.hash) {
            return Ok(entry);
        }
        if !storage.hash.is_empty() {
            self.report.edited.push(id.to_owned());
        }
        let storage =
            serde_json::to_string(&Storage { size, hash, ..storage }).expect("a storage is plain data");
        let entry = entry.with(&[("storage", Some(storage))]);
        // What is damaged is left as it is.
        if version.is_some() || files.meta.is_none() {
            self.writes.push((at, entry.clone(), version.cloned()));
        }
        Ok(entry)
    }

    /// Entries that only the registry has, because another program wrote them there: from here on
    /// files say them too.
    fn take_foreign(&mut self, layout: &Layout, catalog: &Catalog) -> Result<()> {
        let nodes = catalog.nodes().map(|(id, _, text)| (Thing::Node, id, text));
        let connections = catalog.connections().map(|(row, text)| (Thing::Connection, &*row.id, text));
        for (thing, id, text) in nodes.chain(connections) {
            let key = (thing, id.to_owned());
            if !super::entry::is_named(text) && id::check(id).is_ok() {
                let entry = self.entries.entry(key).or_insert_with(|| Entry::known(id, text)).clone();
                let at = layout.meta(thing, id)?;
                if !self.writes.iter().any(|(written, ..)| *written == at) {
                    self.writes.push((at, entry, None));
                }
            }
        }
        Ok(())
    }

    /// Compares the files with the registry.
    fn compare(&mut self, catalog: &Catalog) {
        let nodes = catalog.nodes().map(|(id, _, text)| (Thing::Node, id, text));
        let connections = catalog.connections().map(|(row, text)| (Thing::Connection, &*row.id, text));
        let mut known = HashSet::new();
        for (thing, id, text) in nodes.chain(connections) {
            let key = (thing, id.to_owned());
            match self.entries.get(&key) {
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

    /// The registry anew, from what the files say. A registry that cannot be read is put aside.
    pub(super) fn into_plan(mut self, layout: &Layout, shelf: &Shelf) -> Result<Plan<Report>> {
        let mut catalog = Catalog::default();
        for ((thing, id), entry) in &self.entries {
            let line = format!("{{\"{}\":{}}}", thing.noun(), entry.compact());
            if !catalog.follow(&line) {
                self.report.damaged.push(id.clone());
            }
        }
        catalog.numbers.join(&shelf.catalog.numbers);
        let mut edits = Vec::new();
        let registry = layout.system(REGISTRY)?;
        let mut expect = shelf.registry_version.clone().map_or(Expect::Absent, Expect::At);
        self.report.registry = shelf.loss.as_ref().map(|loss| match loss {
            Loss::Lost => "it was lost".to_owned(),
            Loss::Damaged(why) => format!("it was damaged: {why}"),
        });
        if let (Some(Loss::Damaged(_)), Some(version)) = (&shelf.loss, &shelf.registry_version) {
            let aside = layout.system(&format!("registry.damaged-{}.json", &version.as_str()[..8]))?;
            edits.push(Edit::Rename { from: registry.clone(), to: aside, expect });
            expect = Expect::Absent;
        }
        edits.push(Edit::Write { at: registry, bytes: registry::print(&catalog).into(), expect });
        let numbers = serde_json::to_string(&catalog.numbers).expect("numbers are plain data");
        let bytes = (numbers + "\n").into_bytes();
        edits.push(Edit::Write { at: layout.system(NUMBERS)?, bytes: bytes.into(), expect: Expect::Any });
        for (name, version) in [(FOLDING, &shelf.folding_version), (TAIL, &shelf.tail_version)] {
            if let Some(version) = version {
                edits.push(Edit::Delete { at: layout.system(name)?, expect: Expect::At(version.clone()) });
            }
        }
        if !shelf.unread.is_empty() {
            let bytes = (shelf.unread.join("\n") + "\n").into_bytes();
            edits.push(Edit::Append { at: layout.system(UNREAD)?, bytes: bytes.into(), expect: Expect::Any });
        }
        for (at, entry, version) in self.writes {
            let expect = version.map_or(Expect::Absent, Expect::At);
            edits.push(Edit::Write { at, bytes: entry.text().to_owned().into(), expect });
        }
        Ok(Plan { edits, outcome: self.report })
    }
}
