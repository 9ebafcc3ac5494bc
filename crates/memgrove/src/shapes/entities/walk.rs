//! Which entities are reached along relations, none of which is followed twice.

use std::collections::{HashSet, VecDeque};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::When;
use super::catalog::{Card, Shelf};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result};

/// Which way relations are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From an entity to those that it names.
    Out,
    /// From an entity to those that name it.
    In,
    /// Both ways.
    #[default]
    Both,
}

impl FromStr for Direction {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "out" => Ok(Direction::Out),
            "in" => Ok(Direction::In),
            "both" => Ok(Direction::Both),
            _ => Err(Error::new(Kind::Invalid, format!("`{text}` is not out, in or both"))),
        }
    }
}

/// Where to start, how far to walk, and along which relations.
#[derive(Debug, Clone)]
pub struct Walk {
    /// Where to start.
    pub from: String,
    /// How many relations away to go at most.
    pub depth: usize,
    /// Only along relations of this type.
    pub kind: Option<String>,
    /// Which way.
    pub direction: Direction,
    /// Follow relations that held at this moment, instead of now.
    pub as_of: Option<Timestamp>,
}

/// One relation that was followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The distance from the start to where it leads: 1 for the start's own relations.
    pub depth: usize,
    /// Where the relation starts.
    pub from: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it ends.
    pub to: String,
    /// When it was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Whether the entity that it leads to exists.
    pub known: bool,
}

pub(super) fn walk(shelf: &Shelf, walk: &Walk, now: Timestamp) -> Vec<Step> {
    let when = walk.as_of.map_or(When::Now(now), When::Past);
    let mut seen: HashSet<(String, String, String)> = HashSet::new();
    let mut visited = HashSet::from([walk.from.clone()]);
    let mut queue = VecDeque::from([(walk.from.clone(), 0)]);
    let mut steps = Vec::new();
    while let Some((name, depth)) = queue.pop_front() {
        if depth >= walk.depth {
            continue;
        }
        for mut step in around(shelf, &name, walk, when) {
            let key = (step.from.clone(), step.kind.clone(), step.to.clone());
            if !seen.insert(key) {
                continue;
            }
            step.depth = depth + 1;
            let next = if step.from == name { step.to.clone() } else { step.from.clone() };
            step.known = !shelf.named(&next).is_empty();
            if visited.insert(next.clone()) {
                queue.push_back((next, depth + 1));
            }
            steps.push(step);
        }
    }
    steps
}

/// Returns the relations of one entity, oldest first.
fn around(shelf: &Shelf, name: &str, walk: &Walk, when: When) -> Vec<Step> {
    let out = shelf.by_name.get(name).into_iter().flatten();
    let into = shelf.incoming.get(name).into_iter().flatten();
    let mut steps = Vec::new();
    let mut add = |card: &Card, wanted: &dyn Fn(&str) -> bool| {
        for relation in &card.entity.relations {
            let kind = walk.kind.as_ref().is_none_or(|kind| *kind == relation.kind);
            if kind && wanted(&relation.to) && card.entity.relates(relation, when) {
                steps.push(Step {
                    depth: 0,
                    from: card.entity.name.clone(),
                    kind: relation.kind.clone(),
                    to: relation.to.clone(),
                    date: relation.facts.date.clone(),
                    known: true,
                });
            }
        }
    };
    if walk.direction != Direction::In {
        out.filter_map(|at| shelf.cards.get(at)).for_each(|card| add(card, &|_| true));
    }
    if walk.direction != Direction::Out {
        into.filter_map(|at| shelf.cards.get(at)).for_each(|card| add(card, &|to| to == name));
    }
    steps.sort_by(|a, b| (&a.date, &a.from, &a.to).cmp(&(&b.date, &b.from, &b.to)));
    steps
}
