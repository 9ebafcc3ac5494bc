//! How a change of entities is planned: files are read when they are first touched, each edit expects the
//! version that was read, and later steps see earlier ones.

mod storing;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::format::Document;
use super::names::{CANDIDATES_MIN, candidate, folder_name};
use super::{Entity, Relation};
use crate::backend::{Depth, Edit, Expect, Version};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result};
use crate::locator::{Locator, collision_key};
use crate::memory::Plan;
use crate::store::Store;

/// Where and when a change of entities is planned.
#[derive(Debug, Clone)]
pub struct Desk {
    /// The folder of all knowledge.
    pub root: Locator,
    /// The present moment.
    pub now: Timestamp,
    /// How often this was planned before. After the first time, a folder is searched for names that differ
    /// from a new one only in case.
    pub attempt: u32,
}

/// What storing does to an entity that already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It adds what is new.
    #[default]
    Merge,
    /// It replaces everything but the time of creation.
    Replace,
}

/// The result of storing one entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The entity's name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its file.
    pub path: Locator,
    /// Whether the file is new.
    pub created: bool,
    /// How many observations were added.
    pub added: usize,
}

impl Desk {
    /// The folder of the entities' files.
    pub fn entities(&self) -> Locator {
        beneath(&self.root, "entities")
    }

    /// The folder of relations that start at an entity that does not exist.
    pub(super) fn loose(&self) -> Locator {
        beneath(&self.root, "loose")
    }
}

pub(super) fn beneath(root: &Locator, name: &str) -> Locator {
    root.child(name).unwrap_or_else(|_| root.clone())
}

/// A change that is being planned.
pub(super) struct Draft<'a> {
    store: &'a Store,
    desk: &'a Desk,
    files: BTreeMap<Locator, Option<File>>,
    /// The version at which each file was found; `None` if it did not exist.
    before: HashMap<Locator, Option<Version>>,
    changed: BTreeSet<Locator>,
    /// The names in a folder, in the form in which a case-insensitive file system compares them.
    names: HashMap<Locator, HashSet<String>>,
    ticks: i64,
    elsewhere: Option<&'a Elsewhere<'a>>,
}

/// Finds files that may hold an entity under a file name other than its own.
pub(super) type Elsewhere<'a> = dyn Fn(&str) -> Result<Vec<Locator>> + 'a;

/// One file of the draft.
#[derive(Clone)]
pub(super) struct File {
    pub(super) entity: Entity,
    document: Document,
}

impl<'a> Draft<'a> {
    pub(super) fn new(store: &'a Store, desk: &'a Desk) -> Self {
        Draft {
            store,
            desk,
            files: BTreeMap::new(),
            before: HashMap::new(),
            changed: BTreeSet::new(),
            names: HashMap::new(),
            ticks: 0,
            elsewhere: None,
        }
    }

    /// As [`Draft::new`], with a way to find entities whose files people have renamed.
    pub(super) fn looking(store: &'a Store, desk: &'a Desk, elsewhere: &'a Elsewhere<'a>) -> Self {
        Draft { elsewhere: Some(elsewhere), ..Draft::new(store, desk) }
    }

    /// The present moment, the same for the whole draft.
    pub(super) fn now(&self) -> Timestamp {
        self.desk.now
    }

    /// Returns a moment later than every other that this draft has returned.
    pub(super) fn tick(&mut self) -> String {
        let now = self.desk.now.as_microsecond() + self.ticks;
        self.ticks += 1;
        let moment = Timestamp::from_microsecond(now).unwrap_or(self.desk.now);
        format!("{moment:.6}")
    }

    /// Returns the entity in a file; `None` if there is no file, or it is not text.
    pub(super) fn read(&mut self, at: &Locator) -> Result<Option<&Entity>> {
        if !self.files.contains_key(at) {
            let content = self.store.read_optional(at)?;
            self.before.insert(at.clone(), content.as_ref().map(|content| content.version.clone()));
            let file = content.and_then(|content| {
                let document = Document::parse(&String::from_utf8(content.bytes).ok()?);
                let entity = entity_at(at, &document);
                Some(File { entity, document })
            });
            self.files.insert(at.clone(), file);
        }
        Ok(self.files[at].as_ref().map(|file| &file.entity))
    }

    /// Returns the version at which a file was found.
    pub(super) fn found_at(&self, at: &Locator) -> Option<&Version> {
        self.before.get(at)?.as_ref()
    }

    /// Whether anything at all is at a place.
    fn is_taken(&mut self, at: &Locator) -> Result<bool> {
        self.read(at)?;
        let deleted = self.changed.contains(at) && self.files[at].is_none();
        Ok(self.files[at].is_some() || (self.before[at].is_some() && !deleted))
    }

    /// Returns the files of the entities with this name and type (or any type), oldest first. Files
    /// elsewhere are searched only if the file names that the name leads to hold none.
    pub(super) fn find(&mut self, kind: Option<&str>, name: &str) -> Result<Vec<Locator>> {
        let mut places = Vec::new();
        for folder in self.folders(kind)? {
            places.extend(self.find_in(&folder, name)?);
        }
        let found = self.oldest_first(&places, kind, name)?;
        match self.elsewhere {
            Some(elsewhere) if found.is_empty() => self.oldest_first(&elsewhere(name)?, kind, name),
            _ => Ok(found),
        }
    }

    /// Returns the file of the one entity with this name and type; of several with one type, the oldest.
    ///
    /// # Errors
    /// `Invalid` where several types have the name and none is given.
    pub(super) fn only(&mut self, kind: Option<&str>, name: &str) -> Result<Option<Locator>> {
        let found = self.find(kind, name)?;
        let named = typed(&found, name);
        match kind.is_none() && named.len() > 1 {
            true => Err(several(name, &named)),
            false => Ok(found.into_iter().next()),
        }
    }

    /// Returns those of the files that hold an entity with this name and type, oldest first.
    fn oldest_first(&mut self, places: &[Locator], kind: Option<&str>, name: &str) -> Result<Vec<Locator>> {
        let mut found = Vec::new();
        for at in places {
            let entity = self.read(at)?.filter(|entity| entity.name == name && is_kind(entity, kind));
            found.extend(entity.map(|entity| (entity.created.clone(), at.clone())));
        }
        found.sort();
        Ok(found.into_iter().map(|(_, at)| at).collect())
    }

    /// Returns the files of the entities with this name in one folder.
    pub(super) fn find_in(&mut self, folder: &Locator, name: &str) -> Result<Vec<Locator>> {
        let mut found = Vec::new();
        for index in 0.. {
            let at = folder.child(candidate(name, index))?;
            match self.read(&at)? {
                Some(entity) if entity.name == name => found.push(at),
                None if index + 1 >= CANDIDATES_MIN => break,
                _ => {}
            }
        }
        Ok(found)
    }

    fn folders(&mut self, kind: Option<&str>) -> Result<BTreeSet<Locator>> {
        let entities = self.desk.entities();
        if let Some(kind) = kind {
            return Ok(BTreeSet::from([entities.child(folder_name(kind))?]));
        }
        let listed = self.store.backend().list(&entities, Depth::Children)?;
        let there = listed.into_iter().filter(|info| info.is_dir()).map(|info| info.locator);
        let made = self.files.keys().filter_map(Locator::parent).filter(|folder| folder.is_within(&entities));
        Ok(there.chain(made).collect())
    }

    /// Makes a file for a new entity, which takes over the relations that were waiting for it.
    pub(super) fn create(&mut self, mut entity: Entity) -> Result<Locator> {
        let waiting = self.find_loose(&entity.name)?;
        for at in &waiting {
            if let Some(loose) = self.read(at)?.cloned() {
                let mut relations = loose.relations;
                relations.append(&mut entity.relations);
                entity.relations = relations;
            }
            self.delete(at)?;
        }
        let folder = self.desk.entities().child(folder_name(&entity.kind))?;
        let document = Document::new(&entity);
        self.place(&folder, File { entity, document })
    }

    fn place(&mut self, folder: &Locator, file: File) -> Result<Locator> {
        let mut index = 0;
        let at = loop {
            let at = folder.child(candidate(&file.entity.name, index))?;
            if !self.is_taken(&at)? && !self.has_twin(folder, &at)? {
                break at;
            }
            index += 1;
        };
        self.names.entry(folder.clone()).or_default().insert(collision_key(at.name()));
        self.changed.insert(at.clone());
        self.files.insert(at.clone(), Some(file));
        Ok(at)
    }

    /// Whether the folder has a name that differs only in case. The first attempt leaves that to the
    /// backend, because listing a large folder is slow.
    fn has_twin(&mut self, folder: &Locator, at: &Locator) -> Result<bool> {
        if self.desk.attempt > 0 && !self.names.contains_key(folder) {
            let listed = self.store.list(folder)?;
            let names = listed.iter().map(|at| collision_key(at.name())).collect();
            self.names.insert(folder.clone(), names);
        }
        Ok(self.names.get(folder).is_some_and(|names| names.contains(&collision_key(at.name()))))
    }

    /// Returns the files with relations that start at an entity that does not exist.
    pub(super) fn find_loose(&mut self, name: &str) -> Result<Vec<Locator>> {
        self.find_in(&self.desk.loose(), name)
    }

    /// Adds relations that start at an entity that does not exist.
    pub(super) fn add_loose(&mut self, name: &str, relations: Vec<Relation>) -> Result<Locator> {
        if let Some(at) = self.find_loose(name)?.into_iter().next() {
            self.change(&at, |entity| entity.relations.extend(relations))?;
            return Ok(at);
        }
        let entity = Entity { name: name.to_owned(), relations, ..Entity::default() };
        let mut document = Document::loose(name);
        document.update(&entity);
        self.place(&self.desk.loose(), File { entity, document })
    }

    /// Changes an entity. It is not written if it stays the same.
    pub(super) fn change(&mut self, at: &Locator, edit: impl FnOnce(&mut Entity)) -> Result<()> {
        self.read(at)?;
        let Some(Some(file)) = self.files.get(at) else { return Ok(()) };
        let mut file = file.clone();
        edit(&mut file.entity);
        if Some(&file.entity) == self.files[at].as_ref().map(|old| &old.entity) {
            return Ok(());
        }
        if file.entity.updated.is_some() || !file.document.is_ordinary() {
            let loose = at.is_within(&self.desk.loose());
            file.entity.updated = if loose { None } else { Some(self.tick()) };
        }
        if let Some(old) = &self.files[at] {
            file.document.update_from(&old.entity, &file.entity);
        }
        self.changed.insert(at.clone());
        self.files.insert(at.clone(), Some(file));
        Ok(())
    }

    /// Removes a file.
    pub(super) fn delete(&mut self, at: &Locator) -> Result<()> {
        self.read(at)?;
        self.changed.insert(at.clone());
        self.files.insert(at.clone(), None);
        if let Some(names) = at.parent().and_then(|folder| self.names.get_mut(&folder)) {
            names.remove(&collision_key(at.name()));
        }
        Ok(())
    }

    /// Returns the edits of this draft.
    pub(super) fn into_plan<T>(self, outcome: T) -> Plan<T> {
        let mut edits = Vec::new();
        for at in &self.changed {
            let before = self.before.get(at).cloned().flatten();
            match (&self.files[at], before) {
                (Some(file), before) => {
                    let expect = before.map_or(Expect::Absent, Expect::At);
                    edits.push(Edit::Write { at: at.clone(), bytes: file.document.print().into(), expect });
                }
                (None, Some(before)) => {
                    edits.push(Edit::Delete { at: at.clone(), expect: Expect::At(before) })
                }
                (None, None) => {}
            }
        }
        Plan { edits, outcome }
    }
}

/// Returns the entity that a file describes.
pub(super) fn entity_at(at: &Locator, document: &Document) -> Entity {
    let folder = at.parent().unwrap_or_default();
    let stem = at.name().strip_suffix(".md").unwrap_or(at.name());
    document.entity(folder.name(), stem)
}

/// Returns the entities with a name in some files, each as `TYPE/NAME`.
pub(super) fn typed(places: &[Locator], name: &str) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for at in places {
        let one = format!("{}/{name}", at.parent().unwrap_or_default().name());
        if !named.contains(&one) {
            named.push(one);
        }
    }
    named
}

fn several(name: &str, named: &[String]) -> Error {
    Error::new(Kind::Invalid, format!("several types have an entity `{}`", name.escape_debug()))
        .hint(format!("say which by its type: there are {}", named.join(", ")))
}

/// Whether an entity is of a type: types with the same folder are one, because addresses name the folder.
fn is_kind(entity: &Entity, kind: Option<&str>) -> bool {
    kind.is_none_or(|kind| folder_name(&entity.kind) == folder_name(kind))
}
