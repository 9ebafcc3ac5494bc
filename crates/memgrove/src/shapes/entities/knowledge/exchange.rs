//! Moving to and from the MCP memory server.

use std::collections::HashMap;

use super::{Knowledge, noted};
use crate::backend::Note;
use crate::error::Result;
use crate::locator::Locator;
use crate::memory::Memory;
use crate::shapes::entities::draft::{Draft, How};
use crate::shapes::entities::kg::{self, Edge, Graph, Node};
use crate::shapes::entities::kg_file::GraphFile;
use crate::shapes::entities::{Entity, Facts, Observation, Relation};
use crate::store::Store;

/// How many entities or relations are imported in one change.
const IMPORT_BATCH: usize = 250;

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// Entities that were stored.
    pub entities: usize,
    /// Of these, entities that were there already and have taken in what was new.
    pub merged: usize,
    /// Relations that were stored.
    pub relations: usize,
    /// Of these, relations whose start does not exist.
    pub loose: usize,
    /// What could not be stored, and why.
    pub errors: Vec<String>,
    /// What has no place here and stays in the file alone.
    pub left_out: Vec<String>,
}

/// What came of an export.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exported {
    /// The file.
    pub bytes: Vec<u8>,
    /// What it says.
    pub graph: Graph,
    /// Observations and relations that hold no longer, and were left out.
    pub left_out: usize,
}

impl Knowledge {
    /// Takes over the file of an MCP memory server, or a graph that was saved as it answers with one:
    /// entities are merged into those that are there, relations into the entities that they start from.
    /// Nothing is dropped without a word, and all of it is undone together.
    ///
    /// # Errors
    /// As the store says. What a line or an entity is at fault for is in [`Imported::errors`].
    pub fn import(&self, note: &Note, bytes: &[u8]) -> Result<Imported> {
        let (file, note) = (GraphFile::parse_any(bytes), &note.of_job());
        let mut imported = Imported { left_out: file.left_out(), ..Imported::default() };
        let damaged =
            file.damaged.iter().map(|number| format!("line {number} is damaged: it stays in the file"));
        imported.errors.extend(damaged);
        for nodes in file.graph.entities.chunks(IMPORT_BATCH) {
            match self.import_entities(note, nodes) {
                Ok(merged) => {
                    imported.entities += nodes.len();
                    imported.merged += merged;
                }
                // One by one, so that one at fault keeps no other out.
                Err(_) => {
                    for node in nodes {
                        match self.import_entities(note, std::slice::from_ref(node)) {
                            Ok(merged) => {
                                imported.entities += 1;
                                imported.merged += merged;
                            }
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

    /// Imports entities, and says how many were there already.
    fn import_entities(&self, note: &Note, nodes: &[Node]) -> Result<usize> {
        let done = self.apply(note.clone(), |store, desk| {
            let elsewhere = self.elsewhere(desk);
            let mut draft = Draft::looking(store, desk, &elsewhere);
            let mut merged = 0;
            for node in nodes {
                let observations = node.observations.iter().map(|text| Observation::from(text.as_str()));
                let entity = Entity {
                    name: node.name.clone(),
                    kind: node.entity_type.clone(),
                    observations: observations.collect(),
                    ..Entity::default()
                };
                let there = draft.find(Some(&node.entity_type), &node.name)?.into_iter().next();
                merged += usize::from(there.is_some());
                draft.merge(entity, there, How::Merge)?;
            }
            Ok(draft.into_plan(merged))
        });
        done.map(|done| done.outcome)
    }

    fn import_relations(&self, note: &Note, edges: &[Edge]) -> Result<usize> {
        let done = self.apply(note.clone(), |store, desk| {
            let mut draft = Draft::new(store, desk);
            let mut loose = 0;
            // Of which types the starts are, nobody says: the catalog knows without a look at each.
            let starts: HashMap<&str, Vec<Locator>> = self.look(desk, |shelf| {
                let places =
                    |edge: &Edge| shelf.named(&edge.from).into_iter().map(|(at, _)| at.clone()).collect();
                edges.iter().map(|edge| (edge.from.as_str(), places(edge))).collect()
            })?;
            for edge in edges {
                let facts = Facts { date: Some(draft.tick()), ..Facts::default() };
                let relation = Relation { kind: edge.relation_type.clone(), to: edge.to.clone(), facts };
                let now = desk.now;
                let same =
                    |r: &Relation| r.kind == relation.kind && r.to == relation.to && r.facts.holds_at(now);
                let mut places = starts[edge.from.as_str()].clone();
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

    /// All that holds, as the file of an MCP memory server; or, with `all`, what held once too.
    ///
    /// # Errors
    /// As the store says.
    pub fn export(&self, all: bool) -> Result<Exported> {
        self.look(&self.desk(), |shelf| {
            let graph = kg::graph(shelf, None, if all { |card| &card.entity } else { |card| &card.present });
            let items = |entity: &Entity| entity.observations.len() + entity.relations.len();
            let past = shelf.cards.values().map(|card| items(&card.entity) - items(&card.present));
            let left_out = if all { 0 } else { past.sum() };
            Exported { bytes: GraphFile::default().print(&graph), graph, left_out }
        })
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
