//! What keeps entities in order: the indexes, the check, and moving to and from the MCP memory
//! server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use super::{Knowledge, noted};
use crate::backend::{Finding, Level, Note};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::memory::Memory;
use crate::shapes::entities::draft::{Draft, How};
use crate::shapes::entities::kg::{Answer, Call, Edge, Graph, Node};
use crate::shapes::entities::kg_file::GraphFile;
use crate::shapes::entities::{Entity, Facts, Observation, Relation, indexes};
use crate::store::Store;
use crate::tier::{DerivedMaintenance, Tier};

/// How many entities or relations are imported in one change.
const IMPORT_BATCH: usize = 250;

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// Entities that were stored.
    pub entities: usize,
    /// Relations that were stored.
    pub relations: usize,
    /// Of these, relations whose start does not exist.
    pub loose: usize,
    /// What could not be stored, and why.
    pub errors: Vec<String>,
}

/// What the history would be told of the lists, if they were not derived.
fn lists() -> Note {
    Note { derived: true, ..noted("entity_index") }
}

impl Knowledge {
    /// Whether indexes wait to be written.
    pub fn is_settled(&self) -> bool {
        self.shared.changed.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
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

    /// Writes the indexes anew from all entities, and says how many were not true.
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

    /// What is wrong with the entities, and of which a person should know.
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
                places.entry((card.entity.kind.to_lowercase(), &card.entity.name)).or_default().push(at);
            }
            for ((_, name), places) in places.into_iter().filter(|(_, places)| places.len() > 1) {
                let what = format!("the entity `{name}` is also in `{}`", places[0]);
                findings.push(warning(places[1], what, "merge the two files, or rename one of the entities"));
            }
            findings
        })
    }

    /// Takes over the file of an MCP memory server: entities are merged into those that are there,
    /// relations into the entities that they start from. Nothing is dropped.
    ///
    /// # Errors
    /// As the store says. What a line or an entity is at fault for is in [`Imported::errors`].
    pub fn import(&self, note: &Note, bytes: &[u8]) -> Result<Imported> {
        let file = GraphFile::parse(bytes);
        let mut imported = Imported::default();
        let damaged =
            file.damaged.iter().map(|number| format!("line {number} is damaged: it stays in the file"));
        imported.errors.extend(damaged);
        for nodes in file.graph.entities.chunks(IMPORT_BATCH) {
            match self.import_entities(note, nodes) {
                Ok(()) => imported.entities += nodes.len(),
                // One by one, so that one at fault keeps no other out.
                Err(_) => {
                    for node in nodes {
                        match self.import_entities(note, std::slice::from_ref(node)) {
                            Ok(()) => imported.entities += 1,
                            Err(error) => {
                                imported.errors.push(format!("`{}`: {error}", node.name.escape_debug()))
                            }
                        }
                    }
                }
            }
        }
        for edges in file.graph.relations.chunks(IMPORT_BATCH) {
            let loose = self.import_relations(note, edges)?;
            imported.relations += edges.len();
            imported.loose += loose;
        }
        self.settle()?;
        Ok(imported)
    }

    fn import_entities(&self, note: &Note, nodes: &[Node]) -> Result<()> {
        let done = self.apply(note.clone(), |store, desk| {
            let mut draft = Draft::new(store, desk);
            for node in nodes {
                let observations = node.observations.iter().map(|text| Observation::from(text.as_str()));
                let entity = Entity {
                    name: node.name.clone(),
                    kind: node.entity_type.clone(),
                    observations: observations.collect(),
                    ..Entity::default()
                };
                draft.merge(entity, Some(&node.entity_type), How::Merge)?;
            }
            Ok(draft.into_plan(()))
        });
        done.map(|_| ())
    }

    fn import_relations(&self, note: &Note, edges: &[Edge]) -> Result<usize> {
        let done = self.apply(note.clone(), |store, desk| {
            let mut draft = Draft::new(store, desk);
            let mut loose = 0;
            for edge in edges {
                let facts = Facts { date: Some(draft.tick()), ..Facts::default() };
                let relation = Relation { kind: edge.relation_type.clone(), to: edge.to.clone(), facts };
                let same = |r: &Relation| r.kind == relation.kind && r.to == relation.to;
                let mut places = draft.find(None, &edge.from)?;
                if places.is_empty() {
                    places = draft.find_loose(&edge.from)?;
                    loose += 1;
                }
                let mut known = false;
                for at in &places {
                    known |= draft.read(at)?.is_some_and(|entity| entity.relations.iter().any(same));
                }
                match places.first() {
                    _ if known => {}
                    Some(at) => draft.change(at, |entity| entity.relations.push(relation))?,
                    None => drop(draft.add_loose(&edge.from, vec![relation])?),
                }
            }
            Ok(draft.into_plan(loose))
        })?;
        Ok(done.outcome)
    }

    /// All that is known, as the file of an MCP memory server.
    ///
    /// # Errors
    /// As the store says.
    pub fn export(&self) -> Result<(Vec<u8>, Graph)> {
        match self.kg(noted("export_mcp_memory"), &Call::ReadGraph)?.outcome {
            Answer::Graph(graph) => Ok((GraphFile::default().print(&graph), graph)),
            _ => Err(Error::new(Kind::Corrupt, "the graph could not be read")),
        }
    }

    /// Imports into a copy, made in an empty store that is thrown away, to see what would come of it.
    ///
    /// # Errors
    /// As [`Knowledge::import`].
    pub fn rehearse_import(&self, scratch: Store, bytes: &[u8]) -> Result<Imported> {
        for info in self.store_itself().list_all(&self.root)? {
            if let Ok(content) = self.store_itself().read_bytes(&info.locator) {
                let text = String::from_utf8_lossy(&content.bytes);
                scratch.write(&info.locator, &text)?;
            }
        }
        let copy = Knowledge::new(Memory::new(scratch, self.memory.clock().clone()), self.root.clone());
        copy.import(&noted("import_mcp_memory"), bytes)
    }
}

impl DerivedMaintenance for Knowledge {
    fn reindex(&self, tier: Tier) -> Result<()> {
        match tier {
            Tier::Source => Err(Error::new(Kind::Invalid, "the source is not derived from anything")
                .hint("name a derived tier")),
            Tier::SharedAbstracts => self.rebuild().map(drop),
            // The catalog is in memory, and true whenever it is looked at.
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
