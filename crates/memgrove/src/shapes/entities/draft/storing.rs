//! How an entity is stored: what is new is added to what is known.

use super::{Draft, How, Stored};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::locator::Locator;
use crate::shapes::entities::{Entity, Facts, Relation};

impl Draft<'_> {
    /// Stores an entity after checking it.
    pub(in crate::shapes::entities) fn store(&mut self, given: &Entity, how: How) -> Result<Stored> {
        let kind = Some(given.kind.trim()).filter(|kind| !kind.is_empty());
        let there = self.only(kind, &given.name)?;
        match (&there, how) {
            (Some(_), How::Merge) => given.check_addition()?,
            _ => given.check()?,
        }
        let mut given = tidied(given);
        if given.kind.is_empty() && there.is_none() {
            "general".clone_into(&mut given.kind);
        }
        self.merge(given, there, how)
    }

    /// Stores an entity without checking it, in an existing file or else in a new one.
    pub(in crate::shapes::entities) fn merge(
        &mut self,
        given: Entity,
        there: Option<Locator>,
        how: How,
    ) -> Result<Stored> {
        let now = self.tick();
        let Some(at) = there else {
            let (added, kind, name) = (given.observations.len(), given.kind.clone(), given.name.clone());
            let mut entity = Entity { updated: Some(now.clone()), ..given };
            entity.created.get_or_insert_with(|| now.clone());
            for relation in &mut entity.relations {
                relation.facts.date.get_or_insert_with(|| now.clone());
            }
            let path = self.create(entity)?;
            return Ok(Stored { name, kind, path, created: true, added });
        };
        let old = self.read(&at)?.cloned().unwrap_or_default();
        let stored = combined(&old, given, how, self.desk.now, &now);
        let added = stored.observations.iter().filter(|new| !old.observations.contains(new)).count();
        let (name, kind) = (old.name, stored.kind.clone());
        self.change(&at, |entity| *entity = stored)?;
        Ok(Stored { name, kind, path: at, created: false, added })
    }
}

fn tidied(given: &Entity) -> Entity {
    let mut entity = given.clone();
    entity.tags.retain(|tag| !tag.trim().is_empty());
    entity.kind = entity.kind.trim().to_owned();
    entity.observations.iter_mut().for_each(|observation| observation.facts.normalise());
    entity.relations.iter_mut().for_each(|relation| relation.facts.normalise());
    entity
}

/// Whether a given statement is already known: the known one holds at present, or ended in the same way.
fn is_known(known: &Facts, given: &Facts, now: Timestamp) -> bool {
    let span =
        |facts: &Facts| [&facts.valid_from, &facts.valid_until, &facts.superseded_by].map(Clone::clone);
    known.holds_at(now) || span(known) == span(given)
}

/// Combines the stored entity with the given one.
fn combined(old: &Entity, given: Entity, how: How, now: Timestamp, tick: &str) -> Entity {
    let mut relations = if how == How::Merge { old.relations.clone() } else { Vec::new() };
    for mut relation in given.relations {
        let same = |r: &&Relation| {
            (&r.kind, &r.to) == (&relation.kind, &relation.to) && is_known(&r.facts, &relation.facts, now)
        };
        if relations.iter().any(|r| same(&r)) {
            continue;
        }
        match old.relations.iter().find(same) {
            Some(known) => relations.push(known.clone()),
            None => {
                relation.facts.date.get_or_insert_with(|| tick.to_owned());
                relations.push(relation);
            }
        }
    }
    let mut entity = Entity { relations, ..old.clone() };
    match how {
        How::Merge => {
            for mut given in given.observations {
                let mut same = old.observations.iter().filter(|known| known.text == given.text).peekable();
                if same.peek().is_some() {
                    // A statement that held before and is made again holds from now on.
                    given.facts.date.get_or_insert_with(|| tick.to_owned());
                }
                if !same.any(|known| is_known(&known.facts, &given.facts, now)) {
                    entity.observations.push(given);
                }
            }
            entity.tags.extend(given.tags.into_iter().filter(|tag| !old.tags.contains(tag)));
        }
        How::Replace => {
            entity.observations = given.observations;
            entity.tags = given.tags;
            entity.kind = if given.kind.is_empty() { entity.kind } else { given.kind };
        }
    }
    entity
}
