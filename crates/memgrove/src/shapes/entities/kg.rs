//! What the operations of the MCP memory server do, in its own terms and with its own answers.
//!
//! [`Graph::perform`] defines what each of them means; [`plan`] carries them out on entity files without
//! reading more than it must, and `kg_file` on the server's own file.

mod reading;

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use super::catalog::{Catalog, Shelf};
use super::draft::{Desk, Draft};
use super::{Entity, Facts, Observation, Relation};
use crate::clock::Clock;
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::memory::Plan;
use crate::store::Store;

pub(super) use reading::graph;
use reading::{present, search};

/// An entity as the server knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its type.
    pub entity_type: String,
    /// What is known of it.
    pub observations: Vec<String>,
}

/// A relation as the server knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    /// Where it starts.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// Its type.
    pub relation_type: String,
}

/// What is to be added to one entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Addition {
    /// The entity.
    pub entity_name: String,
    /// The observations.
    pub contents: Vec<String>,
}

/// What is to be removed from one entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// The entity.
    pub entity_name: String,
    /// The observations.
    pub observations: Vec<String>,
}

/// What was added to one entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Added {
    /// The entity.
    pub entity_name: String,
    /// The observations that were new.
    pub added_observations: Vec<String>,
}

/// Entities and relations.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Graph {
    /// The entities, in the order of their creation.
    pub entities: Vec<Node>,
    /// The relations, in the order of their creation.
    pub relations: Vec<Edge>,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// `create_entities`
    CreateEntities(Vec<Node>),
    /// `create_relations`
    CreateRelations(Vec<Edge>),
    /// `add_observations`
    AddObservations(Vec<Addition>),
    /// `delete_entities`
    DeleteEntities(Vec<String>),
    /// `delete_observations`
    DeleteObservations(Vec<Deletion>),
    /// `delete_relations`
    DeleteRelations(Vec<Edge>),
    /// `read_graph`
    ReadGraph,
    /// `search_nodes`
    SearchNodes(String),
    /// `open_nodes`
    OpenNodes(Vec<String>),
}

/// What a tool answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// What was asked for.
    Graph(Graph),
    /// The entities that were new.
    Entities(Vec<Node>),
    /// The relations that were new.
    Relations(Vec<Edge>),
    /// The observations that were new.
    Results(Vec<Added>),
    /// That something was deleted.
    Deleted(String),
}

impl Call {
    /// Whether the call changes nothing.
    pub fn reads(&self) -> bool {
        matches!(self, Call::ReadGraph | Call::SearchNodes(_) | Call::OpenNodes(_))
    }

    fn deleted(&self) -> Answer {
        let what = match self {
            Call::DeleteEntities(_) => "Entities",
            Call::DeleteObservations(_) => "Observations",
            _ => "Relations",
        };
        Answer::Deleted(format!("{what} deleted successfully"))
    }
}

fn unknown(name: &str) -> Error {
    Error::new(Kind::NotFound, format!("Entity with name {name} not found"))
}

impl Graph {
    /// Carries a call out, as the server does.
    ///
    /// # Errors
    /// `NotFound` for observations of an entity that does not exist; the graph is then to be
    /// dropped.
    pub fn perform(&mut self, call: &Call) -> Result<Answer> {
        match call {
            Call::CreateEntities(given) => {
                let is_new = |node: &&Node| !self.entities.iter().any(|there| there.name == node.name);
                let new: Vec<Node> = given.iter().filter(is_new).cloned().collect();
                self.entities.extend(new.iter().cloned());
                Ok(Answer::Entities(new))
            }
            Call::CreateRelations(given) => {
                let there: HashSet<&Edge> = self.relations.iter().collect();
                let new: Vec<Edge> = given.iter().filter(|edge| !there.contains(edge)).cloned().collect();
                self.relations.extend(new.iter().cloned());
                Ok(Answer::Relations(new))
            }
            Call::AddObservations(additions) => {
                let mut results = Vec::new();
                for Addition { entity_name, contents } in additions {
                    let node = self.entities.iter_mut().find(|node| node.name == *entity_name);
                    let node = node.ok_or_else(|| unknown(entity_name))?;
                    let is_new = |content: &&String| !node.observations.contains(content);
                    let added: Vec<String> = contents.iter().filter(is_new).cloned().collect();
                    node.observations.extend(added.iter().cloned());
                    results.push(Added { entity_name: entity_name.clone(), added_observations: added });
                }
                Ok(Answer::Results(results))
            }
            Call::DeleteEntities(names) => {
                self.entities.retain(|node| !names.contains(&node.name));
                self.relations.retain(|edge| !names.contains(&edge.from) && !names.contains(&edge.to));
                Ok(call.deleted())
            }
            Call::DeleteObservations(deletions) => {
                for Deletion { entity_name, observations } in deletions {
                    if let Some(node) = self.entities.iter_mut().find(|node| node.name == *entity_name) {
                        node.observations.retain(|there| !observations.contains(there));
                    }
                }
                Ok(call.deleted())
            }
            Call::DeleteRelations(edges) => {
                self.relations.retain(|edge| !edges.contains(edge));
                Ok(call.deleted())
            }
            Call::ReadGraph => Ok(Answer::Graph(self.clone())),
            Call::SearchNodes(query) => {
                let query = query.to_lowercase();
                Ok(Answer::Graph(self.around(|node| contains(node, &query))))
            }
            Call::OpenNodes(names) => Ok(Answer::Graph(self.around(|node| names.contains(&node.name)))),
        }
    }

    /// Returns the wanted entities, and the relations with at least one end among them.
    fn around(&self, wanted: impl Fn(&Node) -> bool) -> Graph {
        let entities: Vec<Node> = self.entities.iter().filter(|node| wanted(node)).cloned().collect();
        let names: HashSet<&str> = entities.iter().map(|node| node.name.as_str()).collect();
        let touches = |edge: &&Edge| names.contains(edge.from.as_str()) || names.contains(edge.to.as_str());
        let relations = self.relations.iter().filter(touches).cloned().collect();
        Graph { entities, relations }
    }
}

fn contains(node: &Node, query: &str) -> bool {
    let fields = [&node.name, &node.entity_type].into_iter().chain(&node.observations);
    fields.into_iter().any(|field| field.to_lowercase().contains(query))
}

/// Plans a call on entity files.
///
/// # Errors
/// As [`Graph::perform`].
pub fn plan(
    store: &Store,
    desk: &Desk,
    catalog: &Catalog,
    clock: &dyn Clock,
    call: &Call,
) -> Result<Plan<Answer>> {
    let mut draft = Draft::new(store, desk);
    let answer = catalog.with(store, desk, clock, |shelf| match call {
        Call::CreateEntities(nodes) => create_entities(&mut draft, shelf, nodes),
        Call::CreateRelations(edges) => create_relations(&mut draft, shelf, edges),
        Call::AddObservations(additions) => add_observations(&mut draft, shelf, additions),
        Call::DeleteEntities(names) => delete_entities(&mut draft, shelf, names).map(|()| call.deleted()),
        Call::DeleteObservations(deletions) => {
            for Deletion { entity_name, observations } in deletions {
                if let Some(at) = first(shelf, entity_name) {
                    draft.change(at, |entity| {
                        entity.observations.retain(|there| !observations.contains(&there.text));
                    })?;
                }
            }
            Ok(call.deleted())
        }
        Call::DeleteRelations(edges) => {
            for edge in edges {
                for at in shelf.by_name.get(&edge.from).into_iter().flatten() {
                    let other =
                        |relation: &Relation| relation.to != edge.to || relation.kind != edge.relation_type;
                    remove_relations(&mut draft, desk, at, other)?;
                }
            }
            Ok(call.deleted())
        }
        Call::ReadGraph => Ok(Answer::Graph(graph(shelf, None, present))),
        Call::SearchNodes(query) => Ok(Answer::Graph(search(shelf, query))),
        Call::OpenNodes(names) => {
            let names: HashSet<&str> = names.iter().map(String::as_str).collect();
            let places = names.iter().flat_map(|name| shelf.named(name)).map(|(at, _)| at.clone());
            Ok(Answer::Graph(graph(shelf, Some(&places.collect()), present)))
        }
    })??;
    Ok(draft.into_plan(answer))
}

fn first<'a>(shelf: &'a Shelf, name: &str) -> Option<&'a Locator> {
    shelf.named(name).first().map(|(at, _)| *at)
}

fn create_entities(draft: &mut Draft<'_>, shelf: &Shelf, nodes: &[Node]) -> Result<Answer> {
    let mut new = Vec::new();
    for node in nodes.iter().filter(|node| shelf.named(&node.name).is_empty()) {
        let now = draft.tick();
        draft.create(Entity {
            name: node.name.clone(),
            kind: node.entity_type.clone(),
            created: Some(now.clone()),
            updated: Some(now),
            observations: node.observations.iter().map(|text| Observation::from(text.as_str())).collect(),
            ..Entity::default()
        })?;
        new.push(node.clone());
    }
    Ok(Answer::Entities(new))
}

fn create_relations(draft: &mut Draft<'_>, shelf: &Shelf, edges: &[Edge]) -> Result<Answer> {
    let mut new = Vec::new();
    for edge in edges {
        let holds = |entity: &Entity| {
            entity.relations.iter().any(|there| there.to == edge.to && there.kind == edge.relation_type)
        };
        let places = shelf.by_name.get(&edge.from).into_iter().flatten();
        if places.filter_map(|at| shelf.cards.get(at)).any(|card| holds(&card.present)) {
            continue;
        }
        let facts = Facts { date: Some(draft.tick()), ..Facts::default() };
        let relation = Relation { kind: edge.relation_type.clone(), to: edge.to.clone(), facts };
        match first(shelf, &edge.from) {
            Some(at) => draft.change(at, |entity| entity.relations.push(relation))?,
            None => drop(draft.add_loose(&edge.from, vec![relation])?),
        }
        new.push(edge.clone());
    }
    Ok(Answer::Relations(new))
}

fn add_observations(draft: &mut Draft<'_>, shelf: &Shelf, additions: &[Addition]) -> Result<Answer> {
    let mut results = Vec::new();
    for Addition { entity_name, contents } in additions {
        let at = first(shelf, entity_name).ok_or_else(|| unknown(entity_name))?;
        let (now, moment) = (draft.now(), draft.tick());
        let entity = draft.read(at)?.ok_or_else(|| unknown(entity_name))?;
        let mut known: HashSet<&str> = HashSet::new();
        let holds = |there: &&Observation| there.facts.holds_at(now);
        known.extend(entity.observations.iter().filter(holds).map(|there| there.text.as_str()));
        let added: Vec<String> =
            contents.iter().filter(|text| !known.contains(text.as_str())).cloned().collect();
        draft.change(at, |entity| {
            for text in &added {
                // A statement that held before and is made again holds from now on.
                let again = entity.observations.iter().any(|there| there.text == *text);
                let facts = Facts { date: again.then(|| moment.clone()), ..Facts::default() };
                entity.observations.push(Observation { text: text.clone(), facts });
            }
        })?;
        results.push(Added { entity_name: entity_name.clone(), added_observations: added });
    }
    Ok(Answer::Results(results))
}

fn delete_entities(draft: &mut Draft<'_>, shelf: &Shelf, names: &[String]) -> Result<()> {
    let gone: BTreeSet<&Locator> =
        names.iter().filter_map(|name| shelf.by_name.get(name)).flatten().collect();
    for at in &gone {
        draft.delete(at)?;
    }
    let holders: BTreeSet<&Locator> =
        names.iter().filter_map(|name| shelf.incoming.get(name)).flatten().collect();
    for at in holders.difference(&gone) {
        let loose = shelf.cards.get(*at).is_some_and(|card| card.loose);
        let empty = |entity: &Entity| entity.relations.iter().all(|relation| names.contains(&relation.to));
        if loose && draft.read(at)?.is_some_and(empty) {
            draft.delete(at)?;
        } else {
            draft.change(at, |entity| entity.relations.retain(|relation| !names.contains(&relation.to)))?;
        }
    }
    Ok(())
}

fn remove_relations(
    draft: &mut Draft<'_>,
    desk: &Desk,
    at: &Locator,
    stays: impl Fn(&Relation) -> bool,
) -> Result<()> {
    let Some(entity) = draft.read(at)? else { return Ok(()) };
    if at.is_within(&desk.loose()) && !entity.relations.iter().any(&stays) {
        return draft.delete(at);
    }
    draft.change(at, |entity| entity.relations.retain(&stays))
}
