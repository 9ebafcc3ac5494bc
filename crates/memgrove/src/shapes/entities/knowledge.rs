//! What an agent can do with the entities of one memory: store, load, search and walk them. The indexes
//! are updated later.

mod exchange;
mod finding;
mod revise;
mod upkeep;

pub use exchange::{Era, Exported, Imported};
pub use revise::{Expected, Revision};

use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::cache::SessionCache;
use super::catalog::{Catalog, Shelf};
use super::draft::{Desk, Draft, How, Stored, entity_at};
use super::format::Document;
use super::search::{self, Hit, Match, SEARCH_HITS_MAX, Strong, holds_phrase};
use super::walk::{self, Direction, Step, Walk};
use super::{Entity, Learning, Pattern, RoleState, kg};
use crate::backend::{Note, Version};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::memory::{Done, Memory, Plan};
use crate::store::Store;

/// The entities of one memory. Clones share what they have read.
#[derive(Clone)]
pub struct Knowledge {
    memory: Memory,
    root: Locator,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    catalog: Catalog,
    cache: SessionCache,
    /// Files whose lines in the indexes are out of date.
    changed: Mutex<BTreeSet<Locator>>,
    /// How often an entity was not found under its own file name.
    missed: AtomicUsize,
}

/// An entity that was loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Its file.
    pub path: Locator,
    /// The version of its file.
    pub version: Version,
    /// Everything that the file says.
    pub entity: Arc<Entity>,
    /// How it was found.
    pub found: Found,
}

/// How an entity was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// By its name.
    Name,
    /// By its name, among what this session had loaded.
    Cache,
    /// By a search, under another name.
    Search,
}

impl Knowledge {
    /// Returns the entities beneath a folder of a memory.
    pub fn new(memory: Memory, root: Locator) -> Self {
        Knowledge { memory, root, shared: Arc::default() }
    }

    /// The memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    fn store_itself(&self) -> &Store {
        self.memory.store()
    }

    fn now(&self) -> Timestamp {
        self.memory.clock().now()
    }

    fn desk(&self) -> Desk {
        Desk { root: self.root.clone(), now: self.now(), attempt: 0 }
    }

    /// Plans and applies a change, and remembers which lines of the indexes it outdates.
    fn apply<T>(&self, note: Note, plan: impl Fn(&Store, &Desk) -> Result<Plan<T>>) -> Result<Done<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let mut desk = self.desk();
        let mut touched = BTreeSet::new();
        let mut attempt = 0;
        let done = self.memory.apply(note, |store| {
            desk.attempt = attempt;
            attempt += 1;
            let planned = plan(store, &desk)?;
            touched = planned.edits.iter().map(|edit| edit.at().clone()).collect();
            Ok(planned)
        })?;
        if !done.replayed {
            self.shared.changed.lock().unwrap_or_else(PoisonError::into_inner).append(&mut touched);
        }
        Ok(done)
    }

    /// Stores entities: all or none.
    ///
    /// # Errors
    /// `Invalid` for an entity without a name or without observations, with its index in front.
    pub fn store(&self, note: Note, entities: &[Entity], how: How) -> Result<Done<Vec<Stored>>> {
        self.apply(note, |store, desk| {
            let elsewhere = self.elsewhere(desk);
            let mut draft = Draft::looking(store, desk, &elsewhere);
            let mut stored = Vec::with_capacity(entities.len());
            for (index, entity) in entities.iter().enumerate() {
                stored.push(draft.store(entity, how).map_err(|error| match entities.len() {
                    1 => error,
                    _ => error.while_doing(format_args!("entities[{index}]")),
                })?);
            }
            Ok(draft.into_plan(stored))
        })
    }

    /// Replaces an entity with this one. Returns `false`, with nothing written, if it is not valid.
    ///
    /// # Errors
    /// As the store says; not for an invalid entity.
    pub fn store_in_memory(&self, entity: &Entity) -> Result<bool> {
        match self.store(noted("entity_store"), std::slice::from_ref(entity), How::Replace) {
            Ok(_) => Ok(true),
            Err(error) if error.code_name() == Some(code::INVALID_ENTITY) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Stores many entities, and returns for each whether it was stored: an invalid one does not stop the
    /// others. The valid ones are one change, and the indexes are brought up to date once.
    ///
    /// # Errors
    /// As the store says.
    pub fn batch_store(&self, entities: &[Entity]) -> Result<Vec<(String, bool)>> {
        let valid: Vec<Entity> = entities.iter().filter(|entity| entity.check().is_ok()).cloned().collect();
        if !valid.is_empty() {
            self.store(noted("entity_batch"), &valid, How::Replace)?;
        }
        self.settle()?;
        Ok(entities.iter().map(|entity| (entity.name.clone(), entity.check().is_ok())).collect())
    }

    /// Loads the entity with a name, and with a type if one is given.
    ///
    /// # Errors
    /// As the store says.
    pub fn load(&self, name: &str, kind: Option<&str>) -> Result<Option<Loaded>> {
        let key = format!("{}/{name}", kind.unwrap_or("*").to_lowercase());
        let now = self.now();
        if let Some((path, version, entity)) = self.shared.cache.get(&key, now) {
            let there = self.store_itself().info_optional(&path)?.and_then(|info| info.version);
            if there.as_ref() == Some(&version) {
                return Ok(Some(Loaded { path, version, entity, found: Found::Cache }));
            }
            self.shared.cache.remove(&key);
        }
        let Some(path) = self.places(name, kind)?.into_iter().next() else { return Ok(None) };
        let loaded = self.read(&path, Found::Name)?;
        if let Some(Loaded { path, version, entity, .. }) = &loaded {
            self.shared.cache.set(&key, path.clone(), version.clone(), Arc::clone(entity), now);
        }
        Ok(loaded)
    }

    fn read(&self, path: &Locator, found: Found) -> Result<Option<Loaded>> {
        let Some(content) = self.store_itself().read_optional(path)? else { return Ok(None) };
        let text = crate::store::text(path, content.bytes)?;
        let entity = Arc::new(entity_at(path, &Document::parse(&text)));
        Ok(Some(Loaded { path: path.clone(), version: content.version, entity, found }))
    }

    /// Loads the entity with a name, or else the best hit of a search for the name.
    ///
    /// # Errors
    /// As the store says.
    pub fn load_from_memory(&self, name: &str) -> Result<Option<Loaded>> {
        if let Some(loaded) = self.load(name, None)? {
            return Ok(Some(loaded));
        }
        match self.search_memory(name)?.first() {
            Some(hit) => self.read(&hit.path, Found::Search),
            None => Ok(None),
        }
    }

    /// Loads the entities that these names lead to.
    ///
    /// # Errors
    /// As the store says.
    pub fn batch_load(&self, names: &[&str]) -> Result<Vec<Loaded>> {
        names.iter().filter_map(|name| self.load_from_memory(name).transpose()).collect()
    }

    /// Searches by words, best first.
    ///
    /// # Errors
    /// As the store says.
    pub fn search(&self, wanted: &Match) -> Result<Vec<Hit>> {
        self.look(&self.desk(), |shelf| search::all(shelf, wanted))
    }

    /// Searches by words for what is worth showing: at most `most` entities, best first.
    ///
    /// # Errors
    /// As the store says.
    pub fn strongest(&self, wanted: &Match, most: usize) -> Result<Strong> {
        self.look(&self.desk(), |shelf| search::strong(shelf, wanted, most))
    }

    /// Searches for the whole query as written, ignoring case, and orders the hits by their plain score:
    /// at most [`SEARCH_HITS_MAX`] entities.
    ///
    /// # Errors
    /// As the store says.
    pub fn search_memory(&self, query: &str) -> Result<Vec<Hit>> {
        let lower = query.to_lowercase();
        let mut hits = self.search(&Match { query: query.to_owned(), ..Match::default() })?;
        hits.retain(|hit| holds_phrase(&hit.entity, &lower));
        hits.sort_by_key(|hit| std::cmp::Reverse(hit.score));
        hits.truncate(SEARCH_HITS_MAX);
        Ok(hits)
    }

    /// The relations from and to an entity.
    ///
    /// # Errors
    /// As the store says.
    pub fn find_relations(&self, name: &str, kind: Option<&str>) -> Result<Vec<Step>> {
        self.walk(&Walk {
            from: name.to_owned(),
            depth: 1,
            kind: kind.map(str::to_owned),
            direction: Direction::Both,
            as_of: None,
        })
    }

    /// Walks along relations, nearest first.
    ///
    /// # Errors
    /// As the store says.
    pub fn walk(&self, wanted: &Walk) -> Result<Vec<Step>> {
        let desk = self.desk();
        self.look(&desk, |shelf| walk::walk(shelf, wanted, desk.now))
    }

    fn look<T>(&self, desk: &Desk, look: impl FnOnce(&Shelf) -> T) -> Result<T> {
        self.shared.catalog.with(self.store_itself(), desk, &**self.memory.clock(), look)
    }

    /// Stores what was learned from a mistake.
    ///
    /// # Errors
    /// As [`Knowledge::store`].
    pub fn store_learning(&self, note: Note, learning: &Learning) -> Result<Done<Vec<Stored>>> {
        self.store(note, &[learning.entity(&self.day())], How::Merge)
    }

    /// Stores the state of a role in place of its earlier state.
    ///
    /// # Errors
    /// As [`Knowledge::store`].
    pub fn store_role_state(&self, note: Note, state: &RoleState) -> Result<Done<Vec<Stored>>> {
        self.store(note, &[state.entity()], How::Replace)
    }

    /// Stores a pattern that works.
    ///
    /// # Errors
    /// As [`Knowledge::store`].
    pub fn store_pattern(&self, note: Note, pattern: &Pattern) -> Result<Done<Vec<Stored>>> {
        self.store(note, &[pattern.entity(&self.day())], How::Merge)
    }

    fn day(&self) -> String {
        format!("{:.0}", self.now())[..10].to_owned()
    }

    /// Carries out a call of the MCP memory server.
    ///
    /// # Errors
    /// As [`kg::Graph::perform`].
    pub fn kg(&self, note: Note, call: &kg::Call) -> Result<Done<kg::Answer>> {
        let clock = self.memory.clock();
        self.apply(note, |store, desk| kg::plan(store, desk, &self.shared.catalog, &**clock, call))
    }
}

fn unknown(name: &str) -> Error {
    Error::new(Kind::NotFound, format!("there is no entity `{}`", name.escape_debug()))
        .code(code::ENTITY_NOT_FOUND)
        .hint("`memgrove entity search` finds entities by words")
}

fn noted(verb: &str) -> Note {
    Note { verb: verb.to_owned(), ..Note::default() }
}
