//! Browsing by shape. The shapes are one table: each entry has a page, a card and a place in the graph of
//! links.

use axum::response::Response;
use futures_util::future::BoxFuture;
use maud::{Markup, html};
use memgrove::backend::FileKind;
use memgrove::shapes::records::Query;
use memgrove::{Error, Kind, Locator, Result};

use super::frame::{Frame, Live, url};
use super::{entities, nodes, records, tree};
use crate::address::is_memory;
use crate::http::Call;
use crate::portion;

/// A shape as pages show it.
pub(super) struct Shape {
    /// Its name in addresses.
    pub(super) name: &'static str,
    /// Its title.
    pub(super) title: &'static str,
    /// What one of its memories is called.
    pub(super) one: &'static str,
    /// Its folder in the store.
    pub(super) folder: &'static str,
    /// What it is for.
    about: &'static str,
    /// Whether its files are texts to be searched as they are.
    pub(super) texts: bool,
    /// The page that lists it.
    list: fn(&'static Shape, Call) -> BoxFuture<'static, Result<Response>>,
}

/// The shapes, in the order in which they are shown.
pub(super) const SHAPES: &[Shape] = &[
    Shape {
        name: "notes",
        title: "Notes",
        one: "note",
        folder: "notes",
        about: "One note that grows into a tree.",
        texts: true,
        list: |shape, call| Box::pin(tree::page(shape, call)),
    },
    Shape {
        name: "records",
        title: "Records",
        one: "record",
        folder: "records",
        about: "Facts, lessons and tasks, a line each.",
        texts: false,
        list: |shape, call| Box::pin(records::list(shape, call)),
    },
    Shape {
        name: "entities",
        title: "Entities",
        one: "entity",
        folder: "knowledge",
        about: "People, projects and things, and their relations.",
        texts: false,
        list: |shape, call| Box::pin(entities::list(shape, call)),
    },
    Shape {
        name: "graph",
        title: "Nodes",
        one: "node",
        folder: "graph",
        about: "Typed nodes, and the connections between them.",
        texts: true,
        list: |shape, call| Box::pin(nodes::list(shape, call)),
    },
    Shape {
        name: "files",
        title: "Files",
        one: "file",
        folder: "files",
        about: "What agents see as /memories.",
        texts: true,
        list: |shape, call| Box::pin(tree::page(shape, call)),
    },
];

/// The shape that a place belongs to.
pub(super) fn shape_of(at: &Locator) -> Option<&'static Shape> {
    let first = at.parts().next()?;
    SHAPES.iter().find(|shape| shape.folder == first)
}

/// How much there is of one shape.
pub(super) struct Count {
    pub(super) shape: &'static Shape,
    /// How many memories there are: several may share a file.
    pub(super) count: usize,
    pub(super) files: usize,
    pub(super) bytes: u64,
}

/// How much there is of every shape.
///
/// # Errors
/// As listing the store.
pub(super) async fn counts(call: &Call) -> Result<Vec<Count>> {
    call.work(|cx| {
        let memory = cx.reading()?;
        let count = |shape: &'static Shape| -> Result<Count> {
            let all = memory.store().list_all(&Locator::new(shape.folder)?)?;
            let all = all.iter().filter(|info| info.kind == FileKind::File && is_memory(&info.locator));
            let nodes = all.clone().filter(|info| nodes::is_said_in(&info.locator)).count();
            let (files, bytes) = (all.clone().count(), all.map(|info| info.size).sum());
            let count = match shape.name {
                "records" => cx.reading_records()?.list(&records_query())?.total,
                "graph" => nodes,
                _ => files,
            };
            Ok(Count { shape, count, files, bytes })
        };
        SHAPES.iter().map(count).collect()
    })
    .await
}

/// Counts the records that are not archived, without reading more than one.
fn records_query() -> Query {
    Query { limit: 1, ..Query::default() }
}

/// The shapes as cards.
pub(super) fn cards(call: &Call, counts: &[Count]) -> Markup {
    html! {
        ul.cards {
            @for Count { shape, count, bytes, .. } in counts {
                li data-item="" {
                    a href=(url(call, &format!("/browse/{}", shape.name), &[])) { (shape.title) }
                    p.dim { (shape.about) }
                    p.facts {
                        @if *count == 0 { "none yet" } @else {
                            (count) " " @if *count == 1 { (shape.one) } @else { (shape.title.to_lowercase()) } ", "
                            (portion::size(*bytes))
                        }
                    }
                }
            }
        }
    }
}

/// The page of all shapes.
pub(super) async fn overview(call: Call) -> Result<Response> {
    let counts = counts(&call).await?;
    let body = html! { h1 { "Browse" } (cards(&call, &counts)) };
    let frame = Frame { title: "Browse", tab: "/browse", live: Live::Anew, ..Frame::default() };
    Ok(frame.around(&call, &body))
}

/// The page of one shape.
pub(super) async fn shape(call: Call) -> Result<Response> {
    let name = call.param("shape").to_owned();
    match SHAPES.iter().find(|shape| shape.name == name) {
        Some(shape) => (shape.list)(shape, call).await,
        None => Err(Error::new(Kind::NotFound, format!("there is no shape `{}`", name.escape_debug()))
            .hint("the shapes are under Browse")),
    }
}

/// The path of folders down to a place, as links.
pub(super) fn crumbs(call: &Call, at: &Locator) -> Markup {
    let Some(shape) = shape_of(at) else { return html! {} };
    let list = format!("/browse/{}", shape.name);
    let mut under = shape.folder.to_owned();
    let inside: Vec<(String, String)> = at
        .parts()
        .skip(1)
        .map(|part| {
            under = format!("{under}/{part}");
            (part.to_owned(), under.clone())
        })
        .collect();
    // Only a tree of files has a page for each folder.
    let is_tree = shape.texts && shape.name != "graph";
    let folders = if is_tree { inside.len().saturating_sub(1) } else { 0 };
    html! {
        nav.crumbs aria-label="Place" {
            a href=(url(call, &list, &[])) { (shape.title) }
            @for (part, under) in &inside[..folders] {
                span aria-hidden="true" { "/" }
                a href=(url(call, &list, &[("under", under)])) { (part) }
            }
        }
    }
}
