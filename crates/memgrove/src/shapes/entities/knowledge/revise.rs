//! How one entity is changed on conditions, at an expected version or with one observation superseding
//! another, and how it is removed.

use std::cell::OnceCell;

use super::{Knowledge, unknown};
use crate::backend::{Note, Version, moved_on};
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::memory::Done;
use crate::shapes::entities::draft::{Draft, How, Stored};
use crate::shapes::entities::{Entity, Observation};
use crate::store::Store;

/// A change of an entity, with its conditions.
pub struct Revision<'a> {
    /// What to store.
    pub entity: &'a Entity,
    /// What happens to an entity that already exists.
    pub how: How,
    /// The observation that the entity's only one supersedes: it stays, marked as superseded.
    pub supersedes: Option<&'a str>,
    /// The version that must be there, if any.
    pub expect: Option<&'a Expected<'a>>,
}

/// Returns the version that a file must have.
pub type Expected<'a> = dyn Fn(&Store, &Locator) -> Result<Option<Version>> + 'a;

impl Knowledge {
    /// Stores an entity if the conditions hold, as one change.
    ///
    /// # Errors
    /// As [`Knowledge::store`]; `Conflict` at another version; `NotFound` if the superseded observation
    /// does not exist.
    pub fn revise(&self, note: Note, revision: &Revision<'_>) -> Result<Done<Vec<Stored>>> {
        let Revision { entity, how, supersedes, expect } = revision;
        let new = match (supersedes, entity.observations.as_slice()) {
            (None, _) => None,
            (Some(old), [_]) => Some(*old),
            _ => {
                return Err(Error::new(
                    Kind::Invalid,
                    "`supersedes` replaces one observation with one other",
                )
                .hint("give exactly one observation with `supersedes`"));
            }
        };
        let kind = Some(entity.kind.trim()).filter(|kind| !kind.is_empty());
        self.apply(note, |store, desk| {
            let elsewhere = self.elsewhere(desk);
            let mut draft = Draft::looking(store, desk, &elsewhere);
            let mut entity = Entity::clone(entity);
            if expect.is_some() || new.is_some() {
                let place = draft.only(kind, &entity.name)?.ok_or_else(|| unknown(&entity.name))?;
                require(&draft, store, &place, &entity.name, *expect)?;
                if let Some(old) = new {
                    supersede(&mut draft, &place, old, &mut entity.observations[0])?;
                }
            }
            let stored = draft.store(&entity, *how)?;
            Ok(draft.into_plan(vec![stored]))
        })
    }

    /// Deletes an entity's file. Relations of other entities to it stay.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` where several types have the name and none is given; `Conflict` at
    /// another version.
    pub fn delete(
        &self,
        note: Note,
        name: &str,
        kind: Option<&str>,
        expect: Option<&Expected<'_>>,
    ) -> Result<Done<Locator>> {
        self.apply(note, |store, desk| {
            let elsewhere = self.elsewhere(desk);
            let mut draft = Draft::looking(store, desk, &elsewhere);
            let place = draft.only(kind, name)?.ok_or_else(|| unknown(name))?;
            require(&draft, store, &place, name, expect)?;
            draft.delete(&place)?;
            Ok(draft.into_plan(place))
        })
    }

    /// Removes what an address names: an entity's file, or one observation.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` at another version.
    pub fn forget(
        &self,
        note: Note,
        folder: &str,
        name: &str,
        expect: Option<&Expected<'_>>,
    ) -> Result<Done<Locator>> {
        let meant = OnceCell::new();
        self.apply(note, |store, desk| {
            let mut draft = Draft::new(store, desk);
            let (place, number) = self.resolve(folder, name)?.ok_or_else(|| unknown(name))?;
            let entity = draft.read(&place)?.ok_or_else(|| unknown(name))?;
            let at = number.map(|number| number.wrapping_sub(1));
            let said = at.and_then(|at| entity.observations.get(at)).cloned();
            // When the plan is made again, the number may be that of another observation.
            if said.is_none() && at.is_some() || *meant.get_or_init(|| said.clone()) != said {
                return Err(unknown(name));
            }
            require(&draft, store, &place, name, expect)?;
            match at {
                Some(at) => draft.change(&place, |entity| drop(entity.observations.remove(at)))?,
                None => draft.delete(&place)?,
            }
            Ok(draft.into_plan(place))
        })
    }
}

/// Checks that a file is at the expected version.
fn require(
    draft: &Draft<'_>,
    store: &Store,
    place: &Locator,
    name: &str,
    expect: Option<&Expected<'_>>,
) -> Result<()> {
    let wanted = expect.map_or(Ok(None), |expect| expect(store, place))?;
    match wanted.is_none_or(|wanted| draft.found_at(place) == Some(&wanted)) {
        true => Ok(()),
        false => Err(moved_on(format!("the entity `{}` is at another version", name.escape_debug()))),
    }
}

/// Marks an observation as superseded by another, from when that one holds.
fn supersede(draft: &mut Draft<'_>, place: &Locator, old: &str, new: &mut Observation) -> Result<()> {
    let now = draft.tick();
    let holds = |o: &Observation| o.text == old && o.facts.superseded_by.is_none();
    if !draft.read(place)?.is_some_and(|entity| entity.observations.iter().any(holds)) {
        return Err(Error::new(Kind::NotFound, format!("there is no observation `{}`", old.escape_debug()))
            .hint("give its text exactly as stored"));
    }
    new.facts.normalise();
    let since = new.facts.valid_from.as_ref().unwrap_or(&now);
    draft.change(place, |entity| {
        for known in entity.observations.iter_mut().filter(|o| holds(o)) {
            known.facts.superseded_by = Some(new.text.clone());
            known.facts.valid_until.get_or_insert(since.clone());
        }
    })?;
    new.facts.date.get_or_insert(now);
    Ok(())
}
