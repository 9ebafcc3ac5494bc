//! How entities are kept in order: by rewriting the indexes, and by a check.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use super::{Knowledge, noted};
use crate::backend::{Finding, Level, Note};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::shapes::entities::catalog::is_entity_file;
use crate::shapes::entities::{folder_name, indexes};
use crate::tier::{DerivedMaintenance, Tier};

/// The note of a change of the lists, which are derived and not in the history.
fn lists() -> Note {
    Note { derived: true, ..noted("entity_index") }
}

impl Knowledge {
    /// Whether all indexes are up to date with what this process has changed.
    pub fn is_settled(&self) -> bool {
        self.shared.changed.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Notes files that were changed elsewhere, such as by an undo.
    pub fn note_changed<'a>(&self, places: impl IntoIterator<Item = &'a Locator>) {
        let desk = self.desk();
        let ours = places.into_iter().filter(|at| is_entity_file(at, &desk)).cloned();
        self.shared.changed.lock().unwrap_or_else(PoisonError::into_inner).extend(ours);
    }

    /// Brings the indexes up to date with what this process has changed.
    ///
    /// # Errors
    /// As the store says; what was not written is tried again the next time.
    pub fn settle(&self) -> Result<()> {
        let changed =
            std::mem::take(&mut *self.shared.changed.lock().unwrap_or_else(PoisonError::into_inner));
        if changed.is_empty() {
            return Ok(());
        }
        let written = self.memory.apply(lists(), |store| {
            let desk = self.desk();
            match indexes::patch(store, &desk, &changed)? {
                Some(plan) => Ok(plan),
                None => self.rebuilt(store, &desk),
            }
        });
        if let Err(error) = written {
            self.shared.changed.lock().unwrap_or_else(PoisonError::into_inner).extend(changed);
            return Err(error);
        }
        Ok(())
    }

    /// Writes the indexes again from all entities, and returns how many were wrong.
    ///
    /// # Errors
    /// As the store says.
    pub fn rebuild(&self) -> Result<usize> {
        let done = self.memory.apply(lists(), |store| self.rebuilt(store, &self.desk()))?;
        self.shared.changed.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(done.outcome)
    }

    fn rebuilt(&self, store: &crate::Store, desk: &super::Desk) -> Result<crate::memory::Plan<usize>> {
        self.look(desk, |shelf| {
            if shelf.cards.is_empty() && !store.exists(&desk.root)? {
                return Ok(crate::memory::Plan { edits: Vec::new(), outcome: 0 });
            }
            let all = shelf.cards.iter().map(|(at, card)| (at, &*card.entity));
            indexes::rebuild(store, desk, all)
        })?
    }

    /// Returns the faults of entities that a person should know of.
    ///
    /// # Errors
    /// As the store says.
    pub fn check(&self) -> Result<Vec<Finding>> {
        let warning = |at: &Locator, what: String, hint: &str| Finding {
            level: Level::Warning,
            at: at.key().to_owned(),
            what,
            hint: hint.to_owned(),
        };
        self.look(&self.desk(), |shelf| {
            let mut findings = Vec::new();
            for at in &shelf.unread {
                let hint = "convert it to UTF-8; until then it is left alone";
                findings.push(warning(at, "the file is not UTF-8 text".to_owned(), hint));
            }
            let mut places: BTreeMap<(String, &str), Vec<&Locator>> = BTreeMap::new();
            for (at, card) in shelf.entities() {
                if card.entity.name.trim().is_empty() {
                    findings.push(warning(
                        at,
                        "the entity has no name".to_owned(),
                        "give it a title: `# Entity: name`",
                    ));
                }
                if let Some(what) = card.entity.misdated() {
                    let hint = "write it as 2026-06-01; until then it is ignored";
                    findings.push(warning(at, format!("`{}` is not a date", what.escape_debug()), hint));
                }
                // Addresses name the folder of the file, or the folder of the type.
                let folder = at.parent().unwrap_or_default().name().to_owned();
                for folder in BTreeSet::from([folder, folder_name(&card.entity.kind)]) {
                    places.entry((folder, card.entity.name.as_str())).or_default().push(at);
                }
            }
            let mut told = BTreeSet::new();
            for ((_, name), places) in places {
                for at in &places[1..] {
                    if told.insert((*at, places[0])) {
                        let what = format!("the entity `{name}` is also in `{}`", places[0]);
                        let hint = "merge the two files, or rename one of the entities";
                        findings.push(warning(at, what, hint));
                    }
                }
            }
            findings
        })
    }
}

impl DerivedMaintenance for Knowledge {
    fn reindex(&self, tier: Tier) -> Result<()> {
        match tier {
            Tier::Source => Err(Error::new(Kind::Invalid, "the source is not derived from anything")
                .hint("name a derived tier")),
            Tier::SharedAbstracts => self.rebuild().map(drop),
            // The catalog is in memory, and is brought up to date before each use.
            Tier::LocalIndex => Ok(()),
        }
    }

    fn changed_since(&self, mtime: Timestamp) -> Result<Vec<Locator>> {
        let mut found = BTreeSet::new();
        for info in self.store_itself().list_all(&self.desk().entities())? {
            if !info.is_dir() && info.mtime > mtime {
                found.insert(info.locator);
            }
        }
        Ok(found.into_iter().collect())
    }
}
