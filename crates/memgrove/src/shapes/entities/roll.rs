//! What a search needs to know of every entity, in compact rows: looking at all of them touches little
//! memory, and an entity itself is opened only if it may match.

use std::collections::HashMap;

use super::phrase::{Phrase, Sieve};
use crate::locator::Locator;

/// All entities by their numbers.
#[derive(Default)]
pub(super) struct Roll {
    sieves: Vec<Sieve>,
    entries: Vec<Option<Entry>>,
    /// Every type that has ever occurred, and its number.
    kinds: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
}

/// One entity.
pub(super) struct Entry {
    /// Its file.
    pub(super) at: Locator,
    kind: u32,
}

impl Entry {
    /// Returns the value that [`Roll::by_kind`] computed for this entity's type.
    pub(super) fn of_kind<'a, T>(&self, kinds: &'a [T]) -> &'a T {
        &kinds[self.kind as usize]
    }
}

impl Roll {
    /// Enters an entity at its number: its file, its type, and its lower-case text.
    pub(super) fn enter(&mut self, id: u32, at: &Locator, kind: &str, lower: &str) {
        let place = id as usize;
        if self.entries.len() <= place {
            self.entries.resize_with(place + 1, || None);
            self.sieves.resize(place + 1, Sieve::default());
        }
        let kind = match self.numbers.get(kind) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.kinds.len()).unwrap_or(u32::MAX);
                self.kinds.push(kind.into());
                self.numbers.insert(kind.into(), number);
                number
            }
        };
        self.sieves[place] = Sieve::of(lower);
        self.entries[place] = Some(Entry { at: at.clone(), kind });
    }

    /// Removes the entity with a number.
    pub(super) fn leave(&mut self, id: u32) {
        if let Some(entry) = self.entries.get_mut(id as usize) {
            *entry = None;
        }
    }

    /// Computes a value for each type, to be looked up with [`Entry::of_kind`].
    pub(super) fn by_kind<T>(&self, about: impl Fn(&str) -> T) -> Vec<T> {
        self.kinds.iter().map(|kind| about(kind)).collect()
    }

    /// Returns every entity with its number, and whether it may contain a phrase.
    pub(super) fn look_for(&self, phrase: &Phrase<'_>) -> impl Iterator<Item = (u32, &Entry, bool)> {
        let all = self.entries.iter().zip(&self.sieves).zip(0u32..);
        all.filter_map(|((entry, sieve), id)| Some((id, entry.as_ref()?, phrase.may_stand_in(sieve))))
    }
}
