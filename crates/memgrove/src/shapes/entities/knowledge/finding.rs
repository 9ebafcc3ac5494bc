//! Where an entity is stored: found by its name, by its address, or among files that people have named.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use super::{Found, Knowledge, Loaded, Shared};
use crate::error::Result;
use crate::locator::Locator;
use crate::shapes::entities::catalog::Shelf;
use crate::shapes::entities::draft::{Desk, Draft, typed};
use crate::shapes::entities::{Entity, Observation, folder_name, indexes};

/// How often the list of names is searched before reading all entities is the better way.
const MISSES_MAX: usize = 4;

impl Knowledge {
    /// Returns the files of the entities with a name, oldest first.
    pub(super) fn places(&self, name: &str, kind: Option<&str>) -> Result<Vec<Locator>> {
        let desk = self.desk();
        let elsewhere = self.elsewhere(&desk);
        let mut draft = Draft::looking(self.store_itself(), &desk, &elsewhere);
        draft.find(kind, name)
    }

    /// Returns all entities with a name as `TYPE/NAME`, beginning with the one that the name alone leads
    /// to.
    ///
    /// # Errors
    /// As the store says.
    pub fn namesakes(&self, name: &str) -> Result<Vec<String>> {
        Ok(typed(&self.places(name, None)?, name))
    }

    /// Whether there are entities of a type.
    ///
    /// # Errors
    /// As the store says.
    pub fn has_type(&self, kind: &str) -> Result<bool> {
        self.store_itself().exists(&self.desk().entities().child(folder_name(kind))?)
    }

    /// Returns a function that finds the files that may hold an entity under a file name other than its
    /// own, because a person has named the file.
    ///
    /// The catalog knows them, but building it reads every file. A process that asks only a few times,
    /// such as a command, searches the list of names instead, and the files that the list does not cover
    /// yet. A long-lived process asks the catalog, which it then has at hand.
    ///
    /// Within one plan all questions see the same state of the catalog.
    pub(super) fn elsewhere<'a>(&'a self, desk: &'a Desk) -> impl Fn(&str) -> Result<Vec<Locator>> + 'a {
        let looked = Cell::new(false);
        move |name| {
            let Shared { catalog, missed, .. } = &*self.shared;
            let places = |shelf: &Shelf| shelf.named(name).into_iter().map(|(at, _)| at.clone()).collect();
            if looked.get() {
                return Ok(catalog.as_read(places));
            }
            if missed.fetch_add(1, Ordering::Relaxed) < MISSES_MAX
                && !catalog.is_read()
                && let Some(places) = indexes::may_hold(self.store_itself(), desk, name)?
            {
                return Ok(places);
            }
            looked.set(true);
            self.look(desk, places)
        }
    }

    /// Returns the file of the entity that an address names by the folder of its type and its name.
    ///
    /// # Errors
    /// As the store says.
    pub fn locate(&self, folder: &str, name: &str) -> Result<Option<Locator>> {
        let desk = self.desk();
        match self.located(&desk, folder, name)? {
            Some(at) => Ok(Some(at)),
            None => self.located_elsewhere(&desk, folder, name),
        }
    }

    fn located(&self, desk: &Desk, folder: &str, name: &str) -> Result<Option<Locator>> {
        let mut draft = Draft::new(self.store_itself(), desk);
        Ok(draft.find_in(&desk.entities().child(folder)?, name)?.into_iter().next())
    }

    fn located_elsewhere(&self, desk: &Desk, folder: &str, name: &str) -> Result<Option<Locator>> {
        let mut draft = Draft::new(self.store_itself(), desk);
        for at in self.elsewhere(desk)(name)? {
            let within = at.parent().is_some_and(|parent| parent.name() == folder);
            let fits =
                |entity: &Entity| entity.name == name && (within || folder_name(&entity.kind) == folder);
            if draft.read(&at)?.is_some_and(fits) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Returns the file that an address names, and the number of an observation if it names one after a
    /// `#`. A name may contain `#` too: an entity with the whole name comes first.
    ///
    /// # Errors
    /// As the store says.
    pub fn resolve(&self, folder: &str, name: &str) -> Result<Option<(Locator, Option<usize>)>> {
        let desk = self.desk();
        let part = name.rsplit_once('#').and_then(|(name, number)| Some((name, number.parse().ok()?)));
        // The file names that names lead to are tried before all others, which takes longer.
        for find in [Self::located, Self::located_elsewhere] {
            if let Some(at) = find(self, &desk, folder, name)? {
                return Ok(Some((at, None)));
            }
            if let Some((name, number)) = part
                && let Some(at) = find(self, &desk, folder, name)?
            {
                return Ok(Some((at, Some(number))));
            }
        }
        Ok(None)
    }

    /// The entity in a file.
    ///
    /// # Errors
    /// As the store says.
    pub fn at(&self, path: &Locator) -> Result<Option<Loaded>> {
        self.read(path, Found::Name)
    }

    /// One observation of the entity in a file, by its number from 1.
    ///
    /// # Errors
    /// As the store says.
    pub fn observation(&self, path: &Locator, number: usize) -> Result<Option<Observation>> {
        let loaded = self.at(path)?;
        Ok(loaded.and_then(|loaded| loaded.entity.observations.get(number.wrapping_sub(1)).cloned()))
    }
}
