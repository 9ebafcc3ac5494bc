//! Things in a table, narrowed by words and by type: the page of entities, and that of nodes.

use std::collections::BTreeMap;

use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::browse::Shape;
use super::frame::{Frame, Live, done, url};
use crate::http::Call;

/// The most things that are listed.
pub(super) const LISTED_MAX: usize = 500;

/// What a page is narrowed to.
#[derive(Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    pub(super) words: String,
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    done: String,
}

/// How many things there are of each type.
pub(super) type Kinds = BTreeMap<String, usize>;

/// How many things there are of each type.
pub(super) fn counted<'a>(kinds: impl Iterator<Item = &'a String>) -> Kinds {
    let mut counts = Kinds::new();
    kinds.for_each(|kind| *counts.entry(kind.clone()).or_default() += 1);
    counts
}

/// The ways to the pages before and after one of a long list.
pub(super) fn pager(page: usize, total: usize, most: usize, other: impl Fn(usize) -> String) -> Markup {
    html! {
        @if total > most {
            p.actions {
                @if page > 1 { a.button href=(other(page - 1)) { "Earlier page" } }
                @if total > most * page { a.button href=(other(page + 1)) { "Next page" } }
                span.dim { "page " (page) " of " (total.div_ceil(most)) }
            }
        }
    }
}

/// The page: how many were found, what to narrow them by, and the table of them.
pub(super) fn page(
    shape: &Shape,
    call: &Call,
    asked: &Asked,
    kinds: &Kinds,
    found: usize,
    table: &Markup,
) -> Response {
    let Asked { words, kind, done: said } = asked;
    let body = html! {
        (done(said))
        div.heading { h1 { (shape.title) } p.facts { (found) } }
        form.filters method="get" action=(url(call, &format!("/browse/{}", shape.name), &[])) {
            label { "Words " input type="search" name="words" value=(words); }
            label {
                "Type "
                select name="kind" {
                    option value="" { "all" }
                    @for (name, count) in kinds {
                        option value=(name) selected[name == kind] { (name) " (" (count) ")" }
                    }
                }
            }
            button { "Show" }
        }
        @if found == 0 { p.empty { "No " (shape.title.to_lowercase()) "." } } @else { (table) }
        @if found > LISTED_MAX { p.dim { (found - LISTED_MAX) " more: say what you look for." } }
    };
    let frame = Frame { title: shape.title, tab: "/browse", live: Live::Anew, ..Frame::default() };
    frame.around(call, &body)
}
