//! Entities: a document for each observation, with the name of what it is about.

use super::{Source, links};
use crate::address::Scheme;
use crate::clock::Timestamp;
use crate::document::{Document, Shape, Weight};
use crate::index::analysis::folded;
use crate::index::dates;
use crate::shapes::entities::{self, Entity, Facts};

const FOLDER: &str = "entities/";

/// The files of entities; the indexes beside them are derived.
pub(super) fn wants(inside: &str) -> bool {
    inside.starts_with(FOLDER) && inside.ends_with(".md") && super::visible(inside)
}

/// The documents of one entity.
pub(super) fn documents(source: &Source<'_>) -> Vec<Document> {
    let inside = source.inside.trim_start_matches(FOLDER);
    let (folder, stem) = inside.trim_end_matches(".md").rsplit_once('/').unwrap_or(("general", inside));
    // As for an entity itself, the innermost folder is what stands in for a type.
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
    let mut found = vec![Document { text: relations_told(&entity), ..blank.clone() }];
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
            name: String::new(),
            ..blank.clone()
        });
    }
    found
}

fn dated(facts: &Facts) -> Option<Timestamp> {
    facts.date.as_deref().or(facts.valid_from.as_deref()).and_then(dates::written)
}

/// How an entity stands to others, as lines.
fn relations_told(entity: &Entity) -> String {
    let now = entity.relations.iter().filter(|relation| relation.facts.superseded_by.is_none());
    now.map(|relation| format!("{} {}", relation.kind, relation.to)).collect::<Vec<_>>().join("\n")
}
