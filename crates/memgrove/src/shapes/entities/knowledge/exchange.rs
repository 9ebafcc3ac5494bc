//! How entities are imported from the MCP memory server and exported to it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Knowledge, noted};
use crate::backend::{Change, Edit, Expect, FileKind, Note};
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::memory::Memory;
use crate::shapes::entities::draft::{Draft, How};
use crate::shapes::entities::kg::{self, Edge, Graph, Node};
use crate::shapes::entities::kg_file::GraphFile;
use crate::shapes::entities::{Entity, Facts, Observation, Relation};
use crate::store::Store;

/// How many entities or relations are imported in one change.
const IMPORT_BATCH: usize = 250;

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Imported {
    /// Entities that were stored.
    pub entities: usize,
    /// How many of these existed before and were merged with.
    pub merged: usize,
    /// Relations that were stored.
    pub relations: usize,
    /// How many of these start at an entity that does not exist.
    pub loose: usize,
    /// Entities and relations with nothing new.
    pub known: usize,
    /// What could not be stored, and why.
    pub errors: Vec<String>,
    /// What has no place here and remains only in the imported file.
    pub left_out: Vec<String>,
}

impl Imported {
    /// Adds the counts of another import.
    fn add(&mut self, more: &Imported) {
        self.entities += more.entities;
        self.merged += more.merged;
        self.relations += more.relations;
        self.loose += more.loose;
        self.known += more.known;
    }
}

/// Which time an export covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// What holds now.
    Now,
    /// What holds now or held before.
    Ever,
}

/// The result of an export.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exported {
    /// The file.
    pub bytes: Vec<u8>,
    /// The graph that it describes.
    pub graph: Graph,
    /// Observations and relations that were left out because they no longer hold.
    pub left_out: usize,
}

/// Whether the imported data is at fault, and not the storage, which would fail for all data.
fn is_at_fault(error: &Error) -> bool {
    !matches!(error.kind(), Kind::Io | Kind::Denied | Kind::Full | Kind::Busy)
}

impl Knowledge {
    /// Imports the file of an MCP memory server, or a graph saved in the form of its answer. Entities are
    /// merged into existing ones, relations into the entities that they start from. Whatever is dropped is
    /// reported, and the whole import is undone together.
    ///
    /// # Errors
    /// As the store says. Faults of a line or an entity are in [`Imported::errors`].
    pub fn import(&self, note: &Note, bytes: &[u8]) -> Result<Imported> {
        let (file, note) = (GraphFile::parse_any(bytes), &note.of_job());
        let mut imported = Imported { left_out: file.left_out(), ..Imported::default() };
        let damaged =
            file.damaged.iter().map(|number| format!("line {number} is damaged: it stays in the file"));
        imported.errors.extend(damaged);
        for nodes in file.graph.entities.chunks(IMPORT_BATCH) {
            match self.import_entities(note, nodes) {
                Ok(done) => imported.add(&done),
                // One by one, so that a faulty one does not stop the others.
                Err(error) if is_at_fault(&error) => {
                    for node in nodes {
                        match self.import_entities(note, std::slice::from_ref(node)) {
                            Ok(done) => imported.add(&done),
                            Err(error) if is_at_fault(&error) => {
                                imported.errors.push(format!("`{}`: {error}", node.name.escape_debug()))
                            }
                            Err(error) => return Err(error),
                        }
                    }
                }
                Err(error) => return Err(error),
            }
        }
        for edges in file.graph.relations.chunks(IMPORT_BATCH) {
            imported.add(&self.import_relations(note, edges)?);
        }
        self.settle()?;
        Ok(imported)
    }

    fn import_entities(&self, note: &Note, nodes: &[Node]) -> Result<Imported> {
        let done = self.apply(note.clone(), |store, desk| {
            let elsewhere = self.elsewhere(desk);
            let mut draft = Draft::looking(store, desk, &elsewhere);
            let mut imported = Imported::default();
            for node in nodes {
                let observations = node.observations.iter().map(|text| Observation::from(text.as_str()));
                let entity = Entity {
                    name: node.name.clone(),
                    kind: node.entity_type.clone(),
                    observations: observations.collect(),
                    ..Entity::default()
                };
                let there = draft.find(Some(&node.entity_type), &node.name)?.into_iter().next();
                let stored = draft.merge(entity, there, How::Merge)?;
                match (stored.created, stored.added) {
                    (false, 0) => imported.known += 1,
                    (created, _) => {
                        imported.entities += 1;
                        imported.merged += usize::from(!created);
                    }
                }
            }
            Ok(draft.into_plan(imported))
        });
        done.map(|done| done.outcome)
    }

    fn import_relations(&self, note: &Note, edges: &[Edge]) -> Result<Imported> {
        let done = self.apply(note.clone(), |store, desk| {
            let mut draft = Draft::new(store, desk);
            let mut imported = Imported::default();
            // A relation does not give the type of its start; the catalog finds it without reading files.
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
                let is_loose = places.is_empty();
                if is_loose {
                    places = draft.find_loose(&edge.from)?;
                }
                let mut known = false;
                for at in &places {
                    known |= draft.read(at)?.is_some_and(|entity| entity.relations.iter().any(same));
                }
                if known {
                    imported.known += 1;
                    continue;
                }
                imported.relations += 1;
                imported.loose += usize::from(is_loose);
                match places.first() {
                    Some(at) => draft.change(at, |entity| entity.relations.push(relation))?,
                    None => drop(draft.add_loose(&edge.from, vec![relation])?),
                }
            }
            Ok(draft.into_plan(imported))
        })?;
        Ok(done.outcome)
    }

    /// Exports what is known as the file of an MCP memory server.
    ///
    /// # Errors
    /// As the store says.
    pub fn export(&self, era: Era) -> Result<Exported> {
        self.look(&self.desk(), |shelf| {
            let graph = match era {
                Era::Now => kg::graph(shelf, None, |card| &card.present),
                Era::Ever => kg::graph(shelf, None, |card| &card.entity),
            };
            let items = |entity: &Entity| entity.observations.len() + entity.relations.len();
            let past = shelf.cards.values().map(|card| items(&card.entity) - items(&card.present));
            let left_out = if era == Era::Now { past.sum() } else { 0 };
            Exported { bytes: GraphFile::default().print(&graph), graph, left_out }
        })
    }

    /// Imports into a copy, made in an empty store that is thrown away, to see what the result would be.
    ///
    /// # Errors
    /// As [`Knowledge::import`].
    pub fn rehearse_import(&self, scratch: Store, bytes: &[u8]) -> Result<Imported> {
        for info in self.store_itself().list_all(&self.root)? {
            if info.kind == FileKind::File {
                let bytes = self.store_itself().read_bytes(&info.locator)?.bytes.into();
                let edit = Edit::Write { at: info.locator, bytes, expect: Expect::Any };
                scratch.apply(&Change { edits: vec![edit], note: Note::default() })?;
            }
        }
        let copy = Knowledge::new(Memory::new(scratch, self.memory.clock().clone()), self.root.clone());
        copy.import(&noted("import_mcp_memory"), bytes)
    }
}
