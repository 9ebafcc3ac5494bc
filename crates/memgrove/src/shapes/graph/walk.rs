//! How to get from node to node: neighbours, the shortest path between two, and the surrounding part.

use std::collections::{HashMap, HashSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::catalog::{Catalog, ConnectionRow};
use super::ontology::Ontology;
use super::place::Thing;
use crate::error::Result;
use crate::shapes::entities::Direction;

/// Which connections to follow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ways {
    /// Which way connections are followed.
    pub direction: Direction,
    /// Only these types and those that extend them. The inverse that an ontology names stands for its
    /// type, followed backwards. If there are none, any type.
    pub kinds: Vec<String>,
}

/// One connection that was followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The distance from the start to where it leads: 1 for the start's own connections.
    pub depth: usize,
    /// The connection.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it starts.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// The node that it leads to, as seen from the start.
    pub node: String,
    /// The type of that node; `None` if there is no such node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_type: Option<String>,
}

/// A part of the graph: ids of its nodes, nearest first, and of the connections between them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Part {
    /// The nodes.
    pub nodes: Vec<String>,
    /// The connections.
    pub connections: Vec<String>,
}

/// The connections to follow, with their types resolved by the ontology.
pub(super) struct Resolved {
    direction: Direction,
    /// A type, and whether it is followed backwards.
    kinds: Vec<(String, bool)>,
}

impl Ways {
    pub(super) fn resolved(&self, ontology: Option<&Ontology>) -> Resolved {
        let kinds = self.kinds.iter().flat_map(|kind| meant(ontology, kind)).collect();
        Resolved { direction: self.direction, kinds }
    }
}

/// Returns the types of connections that a type stands for, each with whether it is followed backwards.
pub(super) fn meant(ontology: Option<&Ontology>, kind: &str) -> Vec<(String, bool)> {
    ontology.map_or_else(|| vec![(kind.to_owned(), false)], |ontology| ontology.meant(kind))
}

impl Resolved {
    /// Returns where a connection leads from a node, if it may be followed.
    fn leads(&self, catalog: &Catalog, row: &ConnectionRow, node: u32) -> Option<u32> {
        let allowed = |flipped: bool| {
            let direction = match (self.direction, flipped) {
                (Direction::Out, true) => Direction::In,
                (Direction::In, true) => Direction::Out,
                (direction, _) => direction,
            };
            let out = (row.from == node && direction != Direction::In).then_some(row.to);
            out.or((row.to == node && direction != Direction::Out).then_some(row.from))
        };
        if self.kinds.is_empty() {
            return allowed(false);
        }
        let kind = catalog.connection_kind(row);
        self.kinds.iter().filter(|(wanted, _)| wanted == kind).find_map(|(_, flipped)| allowed(*flipped))
    }
}

fn start(catalog: &Catalog, id: &str) -> Result<u32> {
    let known = catalog.number_of(id).filter(|number| catalog.is_node(*number));
    known.ok_or_else(|| Thing::Node.unknown(id).hint("`memgrove node list` shows the nodes there are"))
}

fn step(catalog: &Catalog, row: &ConnectionRow, node: u32, depth: usize) -> Step {
    Step {
        depth,
        id: row.id.to_string(),
        kind: catalog.connection_kind(row).to_owned(),
        from: catalog.node_id(row.from).to_owned(),
        to: catalog.node_id(row.to).to_owned(),
        node: catalog.node_id(node).to_owned(),
        node_type: catalog.is_node(node).then(|| catalog.node_kind(node).to_owned()),
    }
}

/// Returns the connections that lead to nodes at most `depth` steps away, nearest first, each once.
pub(super) fn neighbours(catalog: &Catalog, from: &str, depth: usize, ways: &Resolved) -> Result<Vec<Step>> {
    let from = start(catalog, from)?;
    let mut visited = HashSet::from([from]);
    let mut followed: HashSet<&str> = HashSet::new();
    let mut queue = VecDeque::from([(from, 0)]);
    let mut steps = Vec::new();
    while let Some((node, far)) = queue.pop_front() {
        if far >= depth {
            continue;
        }
        for row in catalog.around(node) {
            let Some(next) = ways.leads(catalog, row, node) else { continue };
            if followed.insert(&row.id) {
                steps.push(step(catalog, row, next, far + 1));
            }
            if visited.insert(next) {
                queue.push_back((next, far + 1));
            }
        }
    }
    Ok(steps)
}

/// Returns a shortest path from one node to another; `None` if there is none with at most `depth` steps.
pub(super) fn route(
    catalog: &Catalog,
    from: &str,
    to: &str,
    depth: usize,
    ways: &Resolved,
) -> Result<Option<Vec<Step>>> {
    let (from, to) = (start(catalog, from)?, start(catalog, to)?);
    let mut came: HashMap<u32, (u32, &ConnectionRow, usize)> = HashMap::new();
    let mut queue = VecDeque::from([(from, 0)]);
    while let Some((node, far)) = queue.pop_front() {
        if node == to {
            break;
        }
        for row in catalog.around(node).filter(|_| far < depth) {
            let Some(next) = ways.leads(catalog, row, node) else { continue };
            if next != from && !came.contains_key(&next) {
                came.insert(next, (node, row, far + 1));
                queue.push_back((next, far + 1));
            }
        }
    }
    let (mut steps, mut node) = (Vec::new(), to);
    while node != from {
        let Some((before, row, far)) = came.get(&node) else { return Ok(None) };
        steps.push(step(catalog, row, node, *far));
        node = *before;
    }
    steps.reverse();
    Ok(Some(steps))
}

/// Returns the nodes at most `depth` steps from any of these, and all connections between them.
pub(super) fn part(catalog: &Catalog, from: &[String], depth: usize, ways: &Resolved) -> Result<Part> {
    let mut far: HashMap<u32, usize> = HashMap::new();
    let (mut order, mut queue) = (Vec::new(), VecDeque::new());
    for id in from {
        let number = start(catalog, id)?;
        if far.insert(number, 0).is_none() {
            order.push(number);
            queue.push_back(number);
        }
    }
    while let Some(node) = queue.pop_front() {
        let next_far = far[&node] + 1;
        for row in catalog.around(node).filter(|_| next_far <= depth) {
            let next = ways.leads(catalog, row, node).filter(|next| catalog.is_node(*next));
            let Some(next) = next.filter(|next| !far.contains_key(next)) else { continue };
            far.insert(next, next_far);
            order.push(next);
            queue.push_back(next);
        }
    }
    let mut connections = Vec::new();
    for node in &order {
        let starting = catalog.around(*node).filter(|row| row.from == *node && far.contains_key(&row.to));
        connections.extend(starting.map(|row| row.id.to_string()));
    }
    let nodes = order.iter().map(|number| catalog.node_id(*number).to_owned()).collect();
    Ok(Part { nodes, connections })
}
