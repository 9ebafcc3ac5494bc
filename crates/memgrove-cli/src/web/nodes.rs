//! Nodes of the graph: the list by type, and one with its properties and connections.

use std::collections::HashMap;

use axum::response::Response;
use maud::{Markup, html};
use memgrove::shapes::graph::{Connection, Graph, Node, Query};
use memgrove::{Kind, Locator, Result};
use serde_json::Value;

use super::browse::Shape;
use super::frame::{at_base, base, dated, noun};
use super::listing::{Asked, LISTED_MAX, counted, page};
use super::relations::{RELATIONS_MAX, Relation, Way};
use crate::context::Context;
use crate::http::Call;

/// Where the files of nodes lie.
const NODES: &str = "graph/_content/nodes/";
/// The ending of files that describe a node.
const META: &str = ".meta.json";

/// A row of the list.
struct Row {
    node: Node,
    connections: usize,
}

impl Row {
    /// Whether all words occur in its id, its type or its properties.
    fn has(&self, words: &[String]) -> bool {
        let known = self.node.properties.values().map(told).collect::<Vec<_>>().join(" ");
        let text = format!("{} {} {known}", self.node.id, self.node.kind).to_lowercase();
        words.iter().all(|word| text.contains(word))
    }
}

/// The page of all nodes, newest first.
pub(super) async fn list(shape: &'static Shape, call: Call) -> Result<Response> {
    let asked: Asked = call.query()?;
    let rows = call.work(rows).await?;
    let kinds = counted(rows.iter().map(|row| &row.node.kind));
    let wanted: Vec<String> = asked.words.split_whitespace().map(str::to_lowercase).collect();
    let fits = |row: &&Row| (asked.kind.is_empty() || row.node.kind == asked.kind) && row.has(&wanted);
    let found: Vec<&Row> = rows.iter().filter(fits).collect();
    Ok(page(shape, &call, &asked, &kinds, found.len(), &table(&base(&call), &found)))
}

fn rows(cx: &Context) -> Result<Vec<Row>> {
    let graph = cx.reading_graph()?;
    let mut counts: HashMap<String, usize> = HashMap::new();
    for connection in graph.connections(&Query::default())?.found {
        *counts.entry(connection.from).or_default() += 1;
        *counts.entry(connection.to).or_default() += 1;
    }
    let row = |node: Node| Row { connections: counts.get(&node.id).copied().unwrap_or_default(), node };
    let mut rows: Vec<Row> = graph.list(&Query::default())?.found.into_iter().map(row).collect();
    rows.sort_by(|one, two| two.node.updated.cmp(&one.node.updated).then(one.node.id.cmp(&two.node.id)));
    Ok(rows)
}

fn table(base: &str, found: &[&Row]) -> Markup {
    html! {
        table.wide {
            thead { tr { th { "Name" } th { "Type" } th { "Id" } th { "Connections" } th { "Changed" } } }
            tbody {
                @for Row { node, connections } in found.iter().take(LISTED_MAX) {
                    tr data-item="" {
                        td { a dir="auto" href=(at_base(base, "/read", &[("at", &place(node))])) { (title(node)) } }
                        td { span.kind { (node.kind) } }
                        td { code { (node.id) } }
                        td.number data-label=(noun(*connections, "connection", "connections")) { (connections) }
                        td { (dated(&node.updated)) }
                    }
                }
            }
        }
    }
}

/// What a node is called: by a property that names it, or else by its id.
pub(super) fn title(node: &Node) -> String {
    let named = |name: &&str| node.properties.get(*name).and_then(Value::as_str);
    let found = ["title", "name", "label"].iter().find_map(named).filter(|text| !text.trim().is_empty());
    found.unwrap_or(&node.id).to_owned()
}

/// Where a node is read: at its content, or at its description if it has none.
fn place(node: &Node) -> String {
    match &node.storage {
        Some(storage) => format!("graph/{}", storage.path),
        None => format!("{NODES}{}{META}", node.id),
    }
}

/// Whether a file describes a node, rather than being its content.
pub(super) fn is_said_in(at: &Locator) -> bool {
    at.key().starts_with(NODES) && at.key().ends_with(META)
}

/// One node with its connections in both directions.
pub(super) struct Around {
    pub(super) node: Node,
    pub(super) relations: Vec<Relation>,
    pub(super) total: usize,
}

/// The node whose file this is, if it is one.
///
/// # Errors
/// As reading the graph.
pub(super) fn around(cx: &Context, at: &Locator) -> Result<Option<Around>> {
    let Some(name) = at.key().strip_prefix(NODES) else { return Ok(None) };
    let id = name.strip_suffix(META).or_else(|| name.rsplit_once('.').map(|(id, _)| id)).unwrap_or(name);
    let graph = cx.reading_graph()?;
    let node = match graph.node(id) {
        // A file without a node, or one that cannot be read, is shown as a plain file.
        Err(error) if matches!(error.kind(), Kind::NotFound | Kind::Corrupt | Kind::Invalid) => {
            return Ok(None);
        }
        got => got?.it,
    };
    let mut relations = Vec::new();
    let mut total = 0;
    for way in [Way::Out, Way::In] {
        let end = Some(node.id.clone());
        let query = match way {
            Way::Out => Query { from: end, ..Query::default() },
            Way::In | Way::Perhaps => Query { to: end, ..Query::default() },
        };
        let found = graph.connections(&query)?.found;
        total += found.len();
        let room = RELATIONS_MAX.saturating_sub(relations.len());
        relations.extend(found.into_iter().take(room).map(|connection| relation(&graph, way, connection)));
    }
    Ok(Some(Around { node, relations, total }))
}

fn relation(graph: &Graph, way: Way, connection: Connection) -> Relation {
    let other = if way == Way::Out { connection.to } else { connection.from };
    // A node that is missing or unreadable has only a name.
    let node = graph.node(&other).ok().map(|got| got.it);
    Relation {
        way,
        kind: connection.kind,
        told_at: connection.storage.map(|storage| format!("graph/{}", storage.path)),
        place: node.as_ref().map(place),
        other: node.as_ref().map_or(other, title),
    }
}

impl Around {
    /// What is known of it beside its content.
    pub(super) fn properties(&self) -> Markup {
        let shown = self.node.properties.iter().filter(|(_, value)| !value.is_null());
        html! {
            @if !self.node.properties.is_empty() {
                dl.properties { @for (name, value) in shown { dt { (name) } dd { (told(value)) } } }
            }
        }
    }
}

/// A property as people read it.
fn told(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(told).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
