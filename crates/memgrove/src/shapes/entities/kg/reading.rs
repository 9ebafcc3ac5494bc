//! How the graph is made that the server answers with, from the entities that were read.

use std::collections::{BTreeSet, HashSet};

use super::{Edge, Graph, Node};
use crate::locator::Locator;
use crate::shapes::entities::Entity;
use crate::shapes::entities::catalog::{Card, Shelf};
use crate::shapes::entities::phrase::Phrase;

pub(super) fn search(shelf: &Shelf, query: &str) -> Graph {
    let lower = query.to_lowercase();
    let places = shelf.holding(&Phrase::new(&lower)).cloned().collect();
    graph(shelf, Some(&places), present)
}

/// Returns what holds of an entity at present.
pub(super) fn present(card: &Card) -> &Entity {
    &card.present
}

/// Returns the graph of some entities, or of all. `seen` picks what is shown of each.
pub(in crate::shapes::entities) fn graph(
    shelf: &Shelf,
    places: Option<&BTreeSet<Locator>>,
    seen: fn(&Card) -> &Entity,
) -> Graph {
    let mut cards: Vec<_> = match places {
        None => shelf.entities(),
        Some(places) => places.iter().filter_map(|at| Some((at, shelf.cards.get(at)?))).collect(),
    };
    cards.sort_by(|a, b| (a.1.order(), a.0).cmp(&(b.1.order(), b.0)));
    let node = |card: &Card| Node {
        name: card.entity.name.clone(),
        entity_type: card.entity.kind.clone(),
        observations: seen(card).observations.iter().map(|o| o.text.clone()).collect(),
    };
    let entities: Vec<Node> = cards.iter().map(|(_, card)| node(card)).collect();
    let mut edges = match places {
        None => edges_in(shelf, shelf.cards.keys(), seen),
        Some(_) => {
            let names: HashSet<&str> = entities.iter().map(|node| node.name.as_str()).collect();
            let holders: BTreeSet<&Locator> = names
                .iter()
                .flat_map(|name| {
                    [shelf.by_name.get(*name).map(|own| own.iter().collect::<Vec<_>>())]
                        .into_iter()
                        .chain([shelf.incoming.get(*name).map(|into| into.iter().collect())])
                })
                .flatten()
                .flatten()
                .collect();
            let mut edges = edges_in(shelf, holders, seen);
            edges.retain(|(_, edge)| names.contains(edge.from.as_str()) || names.contains(edge.to.as_str()));
            edges
        }
    };
    edges.sort_by(|a, b| a.0.cmp(&b.0));
    Graph { relations: edges.into_iter().map(|(_, edge)| edge).collect(), entities }
}

type Order<'a> = (&'a str, &'a str, usize);

/// Returns the relations in some files, each with its sort key.
fn edges_in<'a>(
    shelf: &'a Shelf,
    holders: impl IntoIterator<Item = &'a Locator>,
    seen: fn(&Card) -> &Entity,
) -> Vec<(Order<'a>, Edge)> {
    let cards = holders.into_iter().filter_map(|at| shelf.cards.get(at));
    let edges = cards.flat_map(|card| {
        seen(card).relations.iter().enumerate().map(|(index, relation)| {
            let date = relation.facts.date.as_deref().or(card.entity.created.as_deref()).unwrap_or("");
            let (from, to) = (card.entity.name.clone(), relation.to.clone());
            let edge = Edge { from, to, relation_type: relation.kind.clone() };
            ((date, card.entity.name.as_str(), index), edge)
        })
    });
    edges.collect()
}
