//! How an entity becomes documents: one for each observation, and one for its relations or, if nothing is
//! known of it now, for its name.

use super::{Source, links};
use crate::address::Scheme;
use crate::clock::Timestamp;
use crate::document::{Document, Shape, Weight};
use crate::index::analysis::folded;
use crate::index::dates;
use crate::shapes::entities::{self, Entity, Facts};

const FOLDER: &str = "entities/";

/// Whether a file is an entity; the indexes beside entities are derived.
pub(super) fn wants(inside: &str) -> bool {
    inside.starts_with(FOLDER) && inside.ends_with(".md") && super::visible(inside)
}

/// The documents of one entity.
pub(super) fn documents(source: &Source<'_>) -> Vec<Document> {
    let inside = source.inside.trim_start_matches(FOLDER);
    let (folder, stem) = inside.trim_end_matches(".md").rsplit_once('/').unwrap_or(("general", inside));
    // As in an entity itself, the innermost folder stands in for a missing type.
    let folder = folder.rsplit('/').next().unwrap_or(folder);
    let text = String::from_utf8_lossy(source.bytes);
    let entity = entities::Document::parse(&text).entity(folder, stem);
    let base = Scheme::Entity.address(format_args!("{folder}/{}", entity.name));
    let relations: Vec<String> = entity.relations.iter().map(|relation| relation.to.clone()).collect();
    let blank = Document {
        address: base.clone(),
        shape: Shape::Entities,
        kind: entity.kind.clone(),
        title: entity.name.clone(),
        subject: entity.name.clone(),
        tags: entity.tags.clone(),
        date: entity.updated.as_deref().or(entity.created.as_deref()).and_then(dates::written),
        importance: Weight::Medium,
        links: relations,
        name: folded(&entity.name),
        group: base.clone(),
        span: 0..source.bytes.len(),
        ..Document::default()
    };
    let relations = relations_told(&entity);
    let known_now = entity.observations.iter().position(|said| said.facts.superseded_by.is_none());
    let mut found = Vec::new();
    if known_now.is_none() || !relations.is_empty() {
        found.push(Document { text: relations, ..blank.clone() });
    }
    // Links lead to the first document that counts.
    let named = known_now.filter(|_| found.is_empty()).map(|at| at + 1);
    for (observation, number) in entity.observations.iter().zip(1..) {
        let mut all = blank.links.clone();
        all.extend(links(&observation.text));
        found.push(Document {
            address: format!("{base}#{number}"),
            text: observation.text.clone(),
            date: dated(&observation.facts).or(blank.date),
            hidden: observation.facts.superseded_by.is_some(),
            holds: observation.facts.span(),
            links: all,
            name: if named == Some(number) { blank.name.clone() } else { String::new() },
            ..blank.clone()
        });
    }
    found
}

fn dated(facts: &Facts) -> Option<Timestamp> {
    facts.date.as_deref().or(facts.valid_from.as_deref()).and_then(dates::written)
}

/// Returns the relations of an entity, one in each line.
fn relations_told(entity: &Entity) -> String {
    let now = entity.relations.iter().filter(|relation| relation.facts.superseded_by.is_none());
    now.map(|relation| format!("{} {}", relation.kind, relation.to)).collect::<Vec<_>>().join("\n")
}
