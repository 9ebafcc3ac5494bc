//! What is known of all entities, kept in memory and brought up to date before each use: from the history
//! for changes through memgrove, and by a listing for all others.
//!
//! It is only a cache: if it is dropped, it is rebuilt equal.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::draft::{Desk, entity_at};
use super::format::Document;
use super::phrase::Phrase;
use super::roll::Roll;
use super::words::Index;
use super::{Entity, When};
use crate::backend::{ChangeId, HistoryQuery, Op, Past, Version};
use crate::clock::{Clock, Timestamp};
use crate::error::{Kind, Result};
use crate::locator::Locator;
use crate::store::Store;

/// Listings may take one part in this many of the time; a listing faster than this is made every time.
const LISTING_SHARE: i64 = 100;
const LISTING_FREE_US: i64 = 5_000;
/// How many changes of the history are read before a listing is the better way.
const HISTORY_MAX: usize = 512;
/// How long a change in the history may take to reach its file.
const SETTLE_SECONDS: i64 = 10;

/// All entities of a store.
#[derive(Default)]
pub struct Catalog {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    shelf: Shelf,
    /// The newest change that was taken in.
    seen: Option<ChangeId>,
    listed: Option<Timestamp>,
    listing_us: i64,
    /// Files that do not yet have the version that the history names, and since when.
    unsettled: HashMap<Locator, (Version, Timestamp)>,
}

/// The entities as they were read.
#[derive(Default)]
pub(super) struct Shelf {
    pub(super) cards: HashMap<Locator, Card>,
    pub(super) by_name: HashMap<String, BTreeSet<Locator>>,
    /// The files with a relation to each name.
    pub(super) incoming: HashMap<String, HashSet<Locator>>,
    pub(super) index: Index,
    pub(super) roll: Roll,
    /// Files that are not text.
    pub(super) unread: BTreeSet<Locator>,
    /// When something in a file next begins or ceases to hold.
    turning: BTreeSet<(Timestamp, Locator)>,
    next_id: u32,
    /// Numbers that can be used again.
    free_ids: Vec<u32>,
}

/// One file.
pub(super) struct Card {
    pub(super) entity: Arc<Entity>,
    /// The part of it that holds at present, which search sees.
    pub(super) present: Arc<Entity>,
    /// Name, type and observations in lower case, for substring search.
    pub(super) lower: Box<str>,
    /// Whether it only holds relations that start at an entity that does not exist.
    pub(super) loose: bool,
    pub(super) version: Version,
    /// Its number in the index of words.
    pub(super) id: u32,
    stamp: u64,
    turns: Option<Timestamp>,
}

impl Card {
    /// Its name in lower case.
    pub(super) fn lower_name(&self) -> &str {
        self.lower.split('\0').next().unwrap_or_default()
    }

    /// The order of creation.
    pub(super) fn order(&self) -> (&str, &str) {
        (self.entity.created.as_deref().unwrap_or(""), &self.entity.name)
    }
}

impl Catalog {
    /// Brings the catalog up to date, and calls `look` with it.
    pub(super) fn with<T>(
        &self,
        store: &Store,
        desk: &Desk,
        clock: &dyn Clock,
        look: impl FnOnce(&Shelf) -> T,
    ) -> Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.refresh(store, desk, clock)?;
        state.shelf.turn(desk);
        Ok(look(&state.shelf))
    }

    /// Calls `look` with the catalog as it was last read.
    pub(super) fn as_read<T>(&self, look: impl FnOnce(&Shelf) -> T) -> T {
        look(&self.state.lock().unwrap_or_else(PoisonError::into_inner).shelf)
    }

    /// Whether it has been read, so that bringing it up to date costs only what is new.
    pub(super) fn is_read(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).listed.is_some()
    }
}

impl State {
    fn refresh(&mut self, store: &Store, desk: &Desk, clock: &dyn Clock) -> Result<()> {
        let started = clock.now();
        let due = self.listed.is_none_or(|listed| {
            let free = self.listing_us <= LISTING_FREE_US;
            let passed = started.as_microsecond() - listed.as_microsecond();
            free || desk.attempt > 0 || passed < 0 || passed > self.listing_us * LISTING_SHARE
        });
        let newest = newest(store)?;
        if due || newest.is_none() {
            self.list(store, desk)?;
            let ended = clock.now();
            self.listing_us = ended.as_microsecond() - started.as_microsecond();
            self.listed = Some(ended);
            self.seen = newest;
            return Ok(());
        }
        if self.seen != newest && !self.follow(store, desk, started)? {
            self.list(store, desk)?;
        }
        self.seen = newest;
        self.settle(store, desk, started)
    }

    /// Takes in the changes since the last one seen. Returns `false` if a listing is needed instead.
    fn follow(&mut self, store: &Store, desk: &Desk, now: Timestamp) -> Result<bool> {
        // Usually one change is new; with a larger limit, a big import before it would be loaded for
        // nothing.
        let mut limit = 2;
        let news = loop {
            let query = HistoryQuery { limit, ..HistoryQuery::default() };
            let found = store.backend().history(&query)?;
            if let Some(end) = found.iter().position(|past| Some(&past.change) == self.seen.as_ref()) {
                break found.into_iter().take(end).collect::<Vec<Past>>();
            }
            if found.len() < limit || limit >= HISTORY_MAX {
                return Ok(false);
            }
            limit *= 4;
        };
        let mut last: HashMap<Locator, Option<Version>> = HashMap::new();
        for edit in news.into_iter().rev().flat_map(|past| past.edits) {
            if !edit.at.is_within(&desk.root) && !edit.to.as_ref().is_some_and(|to| to.is_within(&desk.root))
            {
                continue;
            }
            match edit.op {
                Op::Rename => return Ok(false),
                Op::Delete if !is_entity_file(&edit.at, desk) => return Ok(false),
                _ => drop(last.insert(edit.at, edit.new)),
            }
        }
        for (at, expected) in last {
            if !is_entity_file(&at, desk) {
                continue;
            }
            let version = self.shelf.read(store, desk, &at, 0)?;
            if expected.is_some() && version != expected {
                self.unsettled.extend(expected.map(|expected| (at, (expected, now))));
            }
        }
        Ok(true)
    }

    /// Reads again the files whose change was in the history before it was in the file.
    fn settle(&mut self, store: &Store, desk: &Desk, now: Timestamp) -> Result<()> {
        let waiting: Vec<Locator> = self.unsettled.keys().cloned().collect();
        for at in waiting {
            let version = self.shelf.read(store, desk, &at, 0)?;
            let (expected, since) = &self.unsettled[&at];
            if version.as_ref() == Some(expected) || now.as_second() - since.as_second() > SETTLE_SECONDS {
                self.unsettled.remove(&at);
            }
        }
        Ok(())
    }

    fn list(&mut self, store: &Store, desk: &Desk) -> Result<()> {
        let mut gone: HashSet<Locator> = self.shelf.cards.keys().cloned().collect();
        gone.extend(self.shelf.unread.iter().cloned());
        for folder in [desk.entities(), desk.loose()] {
            for info in store.list_all(&folder)? {
                if info.kind != crate::backend::FileKind::File || !is_entity_file(&info.locator, desk) {
                    continue;
                }
                gone.remove(&info.locator);
                let known = self.shelf.cards.get(&info.locator).is_some_and(|card| card.stamp == info.stamp);
                if !known {
                    self.shelf.read(store, desk, &info.locator, info.stamp)?;
                }
            }
        }
        gone.iter().for_each(|at| self.shelf.forget(at));
        Ok(())
    }
}

impl Shelf {
    /// Reads one file, and returns its version if it exists.
    fn read(&mut self, store: &Store, desk: &Desk, at: &Locator, stamp: u64) -> Result<Option<Version>> {
        let Some(content) = store.read_optional(at)? else {
            self.forget(at);
            return Ok(None);
        };
        if let Some(card) = self.cards.get_mut(at)
            && card.version == content.version
        {
            card.stamp = stamp;
            return Ok(Some(content.version));
        }
        self.forget(at);
        let Ok(text) = String::from_utf8(content.bytes) else {
            self.unread.insert(at.clone());
            return Ok(Some(content.version));
        };
        let entity = Arc::new(entity_at(at, &Document::parse(&text)));
        self.take_in(at, entity, content.version.clone(), desk, stamp);
        Ok(Some(content.version))
    }

    fn take_in(&mut self, at: &Locator, entity: Arc<Entity>, version: Version, desk: &Desk, stamp: u64) {
        let id = self.free_ids.pop().unwrap_or_else(|| {
            self.next_id += 1;
            self.next_id - 1
        });
        let loose = at.is_within(&desk.loose());
        let present = match entity.holds_whole(desk.now) {
            true => Arc::clone(&entity),
            false => Arc::new(entity.holding(When::Now(desk.now))),
        };
        let turns = entity.turns(desk.now);
        self.turning.extend(turns.map(|moment| (moment, at.clone())));
        self.by_name.entry(entity.name.clone()).or_default().insert(at.clone());
        for relation in &entity.relations {
            self.incoming.entry(relation.to.clone()).or_default().insert(at.clone());
        }
        let lower: Box<str> = lowered(&entity).into();
        if !loose {
            self.index.add(id, &present);
            self.roll.enter(id, at, &entity.kind, &lower);
        }
        self.cards.insert(at.clone(), Card { entity, present, lower, loose, version, id, stamp, turns });
    }

    /// Takes in again the entities of which something has begun or ceased to hold since they were read.
    fn turn(&mut self, desk: &Desk) {
        while let Some((moment, at)) = self.turning.first().filter(|(moment, _)| *moment <= desk.now).cloned()
        {
            self.turning.remove(&(moment, at.clone()));
            let Some(card) = self.cards.get(&at) else { continue };
            let (entity, version, stamp) = (Arc::clone(&card.entity), card.version.clone(), card.stamp);
            self.forget(&at);
            self.take_in(&at, entity, version, desk, stamp);
        }
    }

    fn forget(&mut self, at: &Locator) {
        self.unread.remove(at);
        let Some(card) = self.cards.remove(at) else { return };
        card.turns.map(|moment| self.turning.remove(&(moment, at.clone())));
        if let Some(places) = self.by_name.get_mut(&card.entity.name) {
            places.remove(at);
            if places.is_empty() {
                self.by_name.remove(&card.entity.name);
            }
        }
        for relation in &card.entity.relations {
            if let Some(places) = self.incoming.get_mut(&relation.to) {
                places.remove(at);
            }
        }
        if !card.loose {
            self.index.remove(card.id, &card.present);
            self.roll.leave(card.id);
        }
        self.free_ids.push(card.id);
    }

    /// Returns the files of the entities that contain a phrase.
    pub(super) fn holding(&self, phrase: &Phrase<'_>) -> impl Iterator<Item = &Locator> {
        let may = self.roll.look_for(phrase).filter(|(_, _, may)| *may);
        may.filter(|(_, entry, _)| phrase.stands_in(&self.cards[&entry.at])).map(|(_, entry, _)| &entry.at)
    }

    /// Returns the entities with a name, in order of creation.
    pub(super) fn named(&self, name: &str) -> Vec<(&Locator, &Card)> {
        let places = self.by_name.get(name).into_iter().flatten();
        let mut found: Vec<_> = places.filter_map(|at| Some((at, self.cards.get(at)?))).collect();
        found.retain(|(_, card)| !card.loose);
        found.sort_by(|a, b| a.1.order().cmp(&b.1.order()));
        found
    }

    /// Returns all entities, in order of creation.
    pub(super) fn entities(&self) -> Vec<(&Locator, &Card)> {
        let mut all: Vec<_> = self.cards.iter().filter(|(_, card)| !card.loose).collect();
        all.sort_by(|a, b| (a.1.order(), a.0).cmp(&(b.1.order(), b.0)));
        all
    }
}

/// Returns the text for substring search, field by field.
fn lowered(entity: &Entity) -> String {
    let mut text = entity.name.to_lowercase();
    for field in std::iter::once(&entity.kind).chain(entity.observations.iter().map(|o| &o.text)) {
        text.push('\0');
        text.push_str(&field.to_lowercase());
    }
    text
}

pub(super) fn is_entity_file(at: &Locator, desk: &Desk) -> bool {
    let within = at.is_within(&desk.entities()) || at.is_within(&desk.loose());
    within && at.name().ends_with(".md") && !at.name().starts_with('.')
}

/// Returns the newest change of the store; `None` if it keeps no history.
fn newest(store: &Store) -> Result<Option<ChangeId>> {
    match store.backend().history(&HistoryQuery { limit: 1, ..HistoryQuery::default() }) {
        Ok(past) => Ok(past.into_iter().next().map(|past| past.change)),
        Err(error) if error.kind() == Kind::Unsupported => Ok(None),
        Err(error) => Err(error),
    }
}
