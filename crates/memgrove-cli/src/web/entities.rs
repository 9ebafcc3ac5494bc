//! Entities: the list by type, and what is said of one beside its file.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::Response;
use maud::{Markup, html};
use memgrove::shapes::entities::{Direction, Entity, Hit, Match, Walk};
use memgrove::{Locator, Result};
use serde::Deserialize;

use super::browse::Shape;
use super::frame::{Frame, Live, at_base, base, dated, url};
use super::relations::{RELATIONS_MAX, Relation, Way};
use crate::context::Context;
use crate::http::Call;

/// The most entities that are listed.
const LISTED_MAX: usize = 500;

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    words: String,
    #[serde(default)]
    kind: String,
}

/// All entities, newest first.
///
/// # Errors
/// As reading the store.
pub(super) fn all(cx: &Context) -> Result<Vec<Hit>> {
    cx.reading_knowledge()?.search(&Match::default())
}

/// The page of all entities.
pub(super) async fn list(shape: &'static Shape, call: Call) -> Result<Response> {
    let Asked { words, kind } = call.query()?;
    let query = words.clone();
    let (found, kinds) = call
        .work(move |cx| {
            let everything = all(cx)?;
            let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
            everything.iter().for_each(|hit| *kinds.entry(hit.entity.kind.clone()).or_default() += 1);
            let found = match query.trim() {
                "" => everything,
                _ => cx.reading_knowledge()?.search(&Match { query, ..Match::default() })?,
            };
            Ok((found, kinds))
        })
        .await?;
    let found: Vec<&Hit> = found.iter().filter(|hit| kind.is_empty() || hit.entity.kind == kind).collect();
    let base = base(&call);
    let body = html! {
        div.heading { h1 { (shape.title) } p.facts { (found.len()) } }
        form.filters method="get" action=(url(&call, "/browse/entities", &[])) {
            label { "Words " input type="search" name="words" value=(words); }
            label {
                "Type "
                select name="kind" {
                    option value="" { "all" }
                    @for (name, count) in &kinds {
                        option value=(name) selected[*name == kind] { (name) " (" (count) ")" }
                    }
                }
            }
            button { "Show" }
        }
        @if found.is_empty() { p.empty { "No entities." } } @else { (table(&base, &found)) }
        @if found.len() > LISTED_MAX { p.dim { (found.len() - LISTED_MAX) " more: say what you look for." } }
    };
    let frame = Frame { title: shape.title, tab: "/browse", live: Live::Anew, ..Frame::default() };
    Ok(frame.around(&call, &body))
}

fn table(base: &str, found: &[&Hit]) -> Markup {
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
                        td.number data-label="relations" { (entity.relations.len()) }
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
    let steps = cx.reading_knowledge()?.walk(&walk)?;
    let total = steps.len();
    let relations = steps.into_iter().take(RELATIONS_MAX).map(|step| {
        let (way, other) = if step.from == *name { (Way::Out, step.to) } else { (Way::In, step.from) };
        let place = places.get(other.as_str()).map(|place| place.key().to_owned());
        Relation { way, kind: step.kind, told_at: None, other, place }
    });
    let relations = relations.collect();
    Ok(Some(Around { entity: Arc::clone(&hit.entity), relations, total }))
}
