//! Entities: the list by type, and what is said of one beside its file.

use std::collections::HashMap;
use std::sync::Arc;

use axum::response::Response;
use maud::{Markup, html};
use memgrove::shapes::entities::{Entity, Hit, Match, Observation, When};
use memgrove::{Locator, Result};

use super::browse::Shape;
use super::frame::{at_base, base, dated, noun};
use super::listing::{Asked, LISTED_MAX, counted, page};
use super::relations::{RELATIONS_MAX, Relation, Way};
use crate::context::Context;
use crate::http::Call;

/// All entities, newest first.
///
/// # Errors
/// As reading the store.
pub(super) fn all(cx: &Context) -> Result<Vec<Hit>> {
    cx.reading_knowledge()?.search(&Match::default())
}

/// The page of all entities.
pub(super) async fn list(shape: &'static Shape, call: Call) -> Result<Response> {
    let asked: Asked = call.query()?;
    let query = asked.words.clone();
    let (found, kinds, counts) = call
        .work(move |cx| {
            let everything = all(cx)?;
            let kinds = counted(everything.iter().map(|hit| &hit.entity.kind));
            let counts = incoming(&everything);
            let found = match query.trim() {
                "" => everything,
                _ => cx.reading_knowledge()?.search(&Match { query, ..Match::default() })?,
            };
            Ok((found, kinds, counts))
        })
        .await?;
    let fits = |hit: &&Hit| asked.kind.is_empty() || hit.entity.kind == asked.kind;
    let found: Vec<&Hit> = found.iter().filter(fits).collect();
    Ok(page(shape, &call, &asked, &kinds, found.len(), &table(&base(&call), &found, &counts)))
}

/// How many relations lead to each name, in small letters.
fn incoming(all: &[Hit]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    let ends = all.iter().flat_map(|hit| &hit.entity.relations).map(|relation| relation.to.to_lowercase());
    ends.for_each(|name| *counts.entry(name).or_default() += 1);
    counts
}

fn table(base: &str, found: &[&Hit], counts: &HashMap<String, usize>) -> Markup {
    html! {
        table.wide {
            thead { tr { th { "Name" } th { "Type" } th { "Known" } th { "Relations" } th { "Changed" } } }
            tbody {
                @for hit in found.iter().take(LISTED_MAX) {
                    @let entity = &hit.entity;
                    @let others = counts.get(&entity.name.to_lowercase()).copied().unwrap_or_default();
                    tr data-item="" {
                        td { a dir="auto" href=(at_base(base, "/read", &[("at", hit.path.key())])) { (entity.name) } }
                        td { span.kind { (entity.kind) } }
                        td.number data-label="known" { (entity.observations.len()) }
                        @let total = entity.relations.len() + others;
                        td.number data-label=(noun(total, "relation", "relations")) { (total) }
                        td { (dated(entity.updated.as_deref().unwrap_or_default())) }
                    }
                }
            }
        }
    }
}

/// One entity and its relations in both directions.
pub(super) struct Around {
    pub(super) entity: Arc<Entity>,
    /// What holds of it at present, with the numbers that addresses name it by.
    pub(super) observed: Vec<(usize, Observation)>,
    pub(super) relations: Vec<Relation>,
    pub(super) total: usize,
}

/// The entity whose file this is, if it is one.
///
/// # Errors
/// As reading the store.
pub(super) fn around(cx: &Context, at: &Locator) -> Result<Option<Around>> {
    let everything = all(cx)?;
    let Some(hit) = everything.iter().find(|hit| hit.path == *at) else { return Ok(None) };
    // A relation names its end, and several entities of different types may have that name.
    let mut named: HashMap<String, Vec<&Locator>> = HashMap::new();
    for hit in &everything {
        named.entry(hit.entity.name.to_lowercase()).or_default().push(&hit.path);
    }
    let place = |name: &str| {
        let there = named.get(&name.to_lowercase())?;
        let other = there.iter().find(|place| **place != at).or(there.first())?;
        Some(other.key().to_owned())
    };
    let out = hit.entity.relations.iter().map(|relation| Relation {
        way: Way::Out,
        kind: relation.kind.clone(),
        told_at: None,
        other: relation.to.clone(),
        place: place(&relation.to),
    });
    let own = hit.entity.name.to_lowercase();
    let way = if named[&own].len() > 1 { Way::Perhaps } else { Way::In };
    let others = everything.iter().filter(|other| other.path != *at);
    let into = others.flat_map(|other| other.entity.relations.iter().map(move |relation| (other, relation)));
    let into =
        into.filter(|(_, relation)| relation.to.to_lowercase() == own).map(|(other, relation)| Relation {
            way,
            kind: relation.kind.clone(),
            told_at: None,
            other: other.entity.name.clone(),
            place: Some(other.path.key().to_owned()),
        });
    let mut relations: Vec<Relation> = out.chain(into).collect();
    let total = relations.len();
    relations.truncate(RELATIONS_MAX);
    let knowledge = cx.reading_knowledge()?;
    let now = When::Now(knowledge.memory().clock().now());
    let Some(whole) = knowledge.at(at)? else { return Ok(None) };
    let observed = whole.entity.observed(now).map(|(number, one)| (number, one.clone())).collect();
    Ok(Some(Around { entity: Arc::clone(&hit.entity), observed, relations, total }))
}
