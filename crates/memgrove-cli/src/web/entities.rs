//! Entities: the list by type, and what is said of one beside its file.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::response::Response;
use maud::{Markup, html};
use memgrove::shapes::entities::{Direction, Entity, Hit, Match, Observation, Walk, When};
use memgrove::{Locator, Result};

use super::browse::Shape;
use super::frame::{at_base, base, dated};
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
            let counts = both_ways(&everything);
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

/// How many relations lead from or to each name, in small letters.
fn both_ways(all: &[Hit]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    let ends = all
        .iter()
        .flat_map(|hit| hit.entity.relations.iter().flat_map(|relation| [&hit.entity.name, &relation.to]));
    ends.for_each(|name| *counts.entry(name.to_lowercase()).or_default() += 1);
    counts
}

fn table(base: &str, found: &[&Hit], counts: &HashMap<String, usize>) -> Markup {
    html! {
        table.wide {
            thead { tr { th { "Name" } th { "Type" } th { "Known" } th { "Relations" } th { "Changed" } } }
            tbody {
                @for hit in found.iter().take(LISTED_MAX) {
                    @let entity = &hit.entity;
                    tr data-item="" {
                        td { a href=(at_base(base, "/read", &[("at", hit.path.key())])) { (entity.name) } }
                        td { span.kind { (entity.kind) } }
                        td.number data-label="known" { (entity.observations.len()) }
                        td.number data-label="relations" { (counts.get(&entity.name.to_lowercase()).copied().unwrap_or_default()) }
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
    let name = &hit.entity.name;
    let places: BTreeMap<&str, &Locator> =
        everything.iter().map(|hit| (hit.entity.name.as_str(), &hit.path)).collect();
    let walk = Walk { from: name.clone(), depth: 1, kind: None, direction: Direction::Both, as_of: None };
    let knowledge = cx.reading_knowledge()?;
    let steps = knowledge.walk(&walk)?;
    let total = steps.len();
    let relations = steps.into_iter().take(RELATIONS_MAX).map(|step| {
        let (way, other) = if step.from == *name { (Way::Out, step.to) } else { (Way::In, step.from) };
        let place = places.get(other.as_str()).map(|place| place.key().to_owned());
        Relation { way, kind: step.kind, told_at: None, other, place }
    });
    let relations = relations.collect();
    let now = When::Now(knowledge.memory().clock().now());
    let Some(whole) = knowledge.at(at)? else { return Ok(None) };
    let observed = whole.entity.observed(now).map(|(number, one)| (number, one.clone())).collect();
    Ok(Some(Around { entity: Arc::clone(&hit.entity), observed, relations, total }))
}
