//! Changing one entity with conditions: at a version, and with one observation in the place of
//! another.

use super::{Knowledge, unknown};
use crate::backend::{Note, Version};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::memory::Done;
use crate::shapes::entities::draft::{Draft, How, Stored};
use crate::shapes::entities::{Entity, Facts, Observation};
use crate::store::Store;

/// What becomes of an entity.
pub struct Revision<'a> {
    /// What is stored.
    pub entity: &'a Entity,
    /// How it meets what is known.
    pub how: How,
    /// The observation whose place the entity's only one takes: it stays, and says so.
    pub supersedes: Option<&'a str>,
    /// Which version must be there, if one must.
    pub expect: Option<&'a Expected<'a>>,
}

/// Tells which version a file must be at.
type Expected<'a> = dyn Fn(&Store, &Locator) -> Result<Option<Version>> + 'a;

impl Knowledge {
    /// Stores an entity on conditions, as one change.
    ///
    /// # Errors
    /// As [`Knowledge::store`]; `Conflict` at another version; `NotFound` where what is superseded is
    /// not there.
    pub fn revise(&self, note: Note, revision: &Revision<'_>) -> Result<Done<Vec<Stored>>> {
        let Revision { entity, how, supersedes, expect } = revision;
        let new = match (supersedes, entity.observations.as_slice()) {
            (None, _) => None,
            (Some(old), [new]) => Some((*old, new)),
            _ => {
                return Err(Error::new(Kind::Invalid, "one observation takes the place of another")
                    .hint("give exactly one observation with `supersedes`"));
            }
        };
        let kind = Some(entity.kind.as_str()).filter(|kind| !kind.is_empty());
        self.apply(note, |store, desk| {
            let mut draft = Draft::new(store, desk);
            if expect.is_some() || new.is_some() {
                let place = self.place(&entity.name, kind)?.ok_or_else(|| unknown(&entity.name))?;
                draft.read(&place)?.ok_or_else(|| unknown(&entity.name))?;
                let wanted = expect.map_or(Ok(None), |expect| expect(store, &place))?;
                if wanted.is_some_and(|wanted| draft.found_at(&place) != Some(&wanted)) {
                    return Err(moved_on(&entity.name));
                }
                if let Some((old, new)) = new {
                    supersede(&mut draft, &place, old, new)?;
                }
            }
            let stored = draft.store(entity, *how)?;
            Ok(draft.into_plan(vec![stored]))
        })
    }
}

fn supersede(draft: &mut Draft<'_>, place: &Locator, old: &str, new: &Observation) -> Result<()> {
    let now = draft.tick();
    let holds = |o: &Observation| o.text == old && o.facts.superseded_by.is_none();
    if !draft.read(place)?.is_some_and(|entity| entity.observations.iter().any(holds)) {
        return Err(Error::new(Kind::NotFound, format!("there is no observation `{}`", old.escape_debug()))
            .hint("give its text exactly as it stands"));
    }
    draft.change(place, |entity| {
        let since = new.facts.valid_from.clone().unwrap_or(now.clone());
        for known in entity.observations.iter_mut().filter(|o| holds(o)) {
            known.facts.superseded_by = Some(new.text.clone());
            known.facts.valid_until.get_or_insert(since.clone());
        }
        let facts = Facts { date: new.facts.date.clone().or(Some(now)), ..new.facts.clone() };
        entity.observations.push(Observation { text: new.text.clone(), facts });
    })
}

fn moved_on(name: &str) -> Error {
    Error::new(Kind::Conflict, format!("the entity `{}` is at another version", name.escape_debug()))
        .code(code::VERSION_MISMATCH)
        .hint("read it again and repeat the change on what is there now")
}
