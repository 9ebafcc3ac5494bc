//! The picture of the whole memory. The script draws it; the list beneath says the same in words.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use maud::html;
use memgrove::{Error, Kind, Result};

use super::frame::{Frame, Live, at_base, base, url};
use super::web_of_links::{Thing, Web, gather};
use crate::http::Call;
use crate::page::counted;

/// The most things that the list names.
const LISTED_MAX: usize = 200;

/// The page.
pub(super) async fn page(call: Call) -> Result<Response> {
    let web = call.work(gather).await?;
    let base = base(&call);
    let mut things: Vec<&Thing> = web.things.iter().filter(|thing| !thing.at.is_empty()).collect();
    things.sort_by_key(|thing| std::cmp::Reverse(thing.links));
    let clusters = web.things.iter().filter(|thing| thing.count > 1).count();
    let body = html! {
        div.heading {
            h1 { "Graph" }
            p.facts #graph-facts {
                (counted(web.total, "thing", "things")) ", " (counted(web.total_links, "link", "links"))
            }
        }
        @if clusters > 0 {
            p.warning #graph-note {
                (web.total) " things are more than can be shown one by one: the " (web.things.len() - clusters)
                " most linked are themselves, the others are in " (counted(clusters, "cluster", "clusters")) "."
            }
        }
        @if web.total_links > web.links.len() && clusters == 0 {
            p.warning { (web.links.len()) " of " (web.total_links) " links are drawn." }
        }
        @if web.things.is_empty() { p.empty { "There is nothing to draw yet." } }
        @else {
            div.picture {
                canvas #graph tabindex="0" role="img" aria-label="The things of this memory and the links between them. The list below names them."
                    data-source=(url(&call, "/graph/data", &[])) data-read=(url(&call, "/read", &[])) data-browse=(url(&call, "/browse", &[])) {}
                div #legend aria-label="Kinds" role="group" {}
                label.filter {
                    span.hidden { "Find in the picture" } input #graph-find type="search" placeholder="Find in the picture";
                }
            }
            p.dim {
                "Drag to move, scroll to zoom, click to open. Records have no links, and are not drawn."
            }
            details {
                summary { "As a list" }
                ul.plain {
                    @for thing in things.iter().take(LISTED_MAX) {
                        li data-item="" {
                            a href=(at_base(&base, "/read", &[("at", &thing.at)])) { (thing.label) }
                            span.facts { span.kind { (thing.kind) } (counted(thing.links, "link", "links")) }
                        }
                    }
                }
                @if things.len() > LISTED_MAX { p.dim { "and " (things.len() - LISTED_MAX) " more" } }
            }
        }
    };
    let script = Some("/web/graph.js");
    let frame = Frame { title: "Graph", tab: "/graph", live: Live::Tell, script, ..Frame::default() };
    Ok(frame.around(&call, &body))
}

/// What the script draws.
pub(super) async fn data(call: Call) -> Result<Response> {
    let web: Web = call.work(gather).await?;
    let text = serde_json::to_string(&web).map_err(|error| Error::new(Kind::Io, error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}
