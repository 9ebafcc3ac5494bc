//! How a graph is written for other programs: as JSON, GraphML, DOT or Mermaid.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::entry::{Connection, Entry, Node, Properties};
use super::json::laid_out;
use super::query::plain;
use crate::text::jsonl::spliced;

/// A graph, or a part of one, with its contents.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// The nodes.
    pub nodes: Vec<Held<Node>>,
    /// The connections.
    pub connections: Vec<Held<Connection>>,
}

/// A node or connection with its content.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Held<T> {
    /// The node or connection.
    #[serde(flatten)]
    pub it: T,
    /// Its content, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Its content in base64, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_base64: Option<String>,
    /// Its entry as it is written; empty for a new one that was never written.
    #[serde(skip)]
    pub said: String,
}

impl<T: Serialize> Held<T> {
    /// Returns a node or connection as the registry has it, without its content.
    pub(super) fn of(it: T, id: &str, text: &str) -> Self {
        Held { it, content: None, content_base64: None, said: Entry::known(id, text).compact() }
    }

    fn json(&self) -> String {
        let quoted = |text: &String| serde_json::to_string(text).expect("a string is JSON");
        match self.said.is_empty() {
            true => serde_json::to_string(self).expect("a graph is plain data with text keys"),
            false => spliced(
                &self.said,
                &[
                    ("content", self.content.as_ref().map(quoted)),
                    ("content_base64", self.content_base64.as_ref().map(quoted)),
                ],
            ),
        }
    }
}

/// A form to export in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Everything, contents included; can be imported again.
    Json,
    /// For yEd, Gephi, Cytoscape.
    GraphMl,
    /// For Graphviz.
    Dot,
    /// For markdown.
    Mermaid,
}

impl Form {
    /// Every form.
    pub const ALL: [Form; 4] = [Form::Json, Form::GraphMl, Form::Dot, Form::Mermaid];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Form::Json => "json",
            Form::GraphMl => "graphml",
            Form::Dot => "dot",
            Form::Mermaid => "mermaid",
        }
    }

    /// Writes a graph in this form.
    pub fn print(self, graph: &Snapshot) -> String {
        match self {
            Form::Json => json(graph),
            Form::GraphMl => graphml(graph),
            Form::Dot => dot(graph),
            Form::Mermaid => mermaid(graph),
        }
    }
}

/// Writes every entry as it is, so that numbers of any size and unknown fields are kept.
fn json(graph: &Snapshot) -> String {
    let nodes: Vec<String> = graph.nodes.iter().map(Held::json).collect();
    let connections: Vec<String> = graph.connections.iter().map(Held::json).collect();
    let text = format!("{{\"nodes\":[{}],\"connections\":[{}]}}", nodes.join(","), connections.join(","));
    laid_out(&text) + "\n"
}

/// Returns a node's name for people: its title or name, else its id.
fn title(node: &Node) -> &str {
    let named = ["title", "name", "label"].iter().find_map(|key| node.properties.get(*key)?.as_str());
    named.unwrap_or(&node.id)
}

fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' | '\r' => safe.push_str(&format!("&#{};", c as u32)),
            // XML allows these in no form, not even escaped.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

fn graphml(graph: &Snapshot) -> String {
    let names = |all: &mut dyn Iterator<Item = &Properties>| -> BTreeSet<String> {
        all.flat_map(|properties| properties.keys().cloned()).collect()
    };
    let node_names = names(&mut graph.nodes.iter().map(|node| &node.it.properties));
    let edge_names = names(&mut graph.connections.iter().map(|one| &one.it.properties));
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
    );
    let mut keys: HashMap<(&str, &str), String> = HashMap::new();
    for (domain, names) in [("node", &node_names), ("edge", &edge_names)] {
        text.push_str(&format!(
            "<key id=\"{domain}_type\" for=\"{domain}\" attr.name=\"type\" attr.type=\"string\"/>\n"
        ));
        for (number, name) in names.iter().enumerate() {
            let key = format!("{domain}_{number}");
            let shown = xml(name);
            text.push_str(&format!(
                "<key id=\"{key}\" for=\"{domain}\" attr.name=\"{shown}\" attr.type=\"string\"/>\n"
            ));
            keys.insert((domain, name), key);
        }
    }
    let data = |domain: &str, kind: &str, properties: &Properties| {
        let mut text = format!("<data key=\"{domain}_type\">{}</data>", xml(kind));
        for (name, value) in properties {
            let key = &keys[&(domain, name.as_str())];
            text.push_str(&format!("<data key=\"{key}\">{}</data>", xml(&plain(value))));
        }
        text
    };
    text.push_str("<graph edgedefault=\"directed\">\n");
    // An edge needs both of its nodes, even those that do not exist.
    let known: BTreeSet<&str> = graph.nodes.iter().map(|node| &*node.it.id).collect();
    let ends = graph.connections.iter().flat_map(|one| [&*one.it.from, &*one.it.to]);
    for id in ends.filter(|id| !known.contains(id)).collect::<BTreeSet<_>>() {
        text.push_str(&format!("<node id=\"{}\"/>\n", xml(id)));
    }
    for node in graph.nodes.iter().map(|node| &node.it) {
        let inside = data("node", &node.kind, &node.properties);
        text.push_str(&format!("<node id=\"{}\">{inside}</node>\n", xml(&node.id)));
    }
    for one in graph.connections.iter().map(|one| &one.it) {
        let (id, from, to) = (xml(&one.id), xml(&one.from), xml(&one.to));
        let inside = data("edge", &one.kind, &one.properties);
        text.push_str(&format!("<edge id=\"{id}\" source=\"{from}\" target=\"{to}\">{inside}</edge>\n"));
    }
    text.push_str("</graph>\n</graphml>\n");
    text
}

fn dot(graph: &Snapshot) -> String {
    let quoted = |text: &str| {
        let mut safe = String::from("\"");
        for c in text.chars() {
            match c {
                '"' => safe.push_str("\\\""),
                '\\' => safe.push_str("\\\\"),
                '\n' => safe.push_str("\\n"),
                c if c.is_control() => safe.push(' '),
                c => safe.push(c),
            }
        }
        safe.push('"');
        safe
    };
    let mut text = String::from("digraph memory {\n");
    for node in graph.nodes.iter().map(|node| &node.it) {
        let label = format!("{}\n({})", title(node), node.kind);
        text.push_str(&format!("  {} [label={}];\n", quoted(&node.id), quoted(&label)));
    }
    for one in graph.connections.iter().map(|one| &one.it) {
        text.push_str(&format!(
            "  {} -> {} [label={}];\n",
            quoted(&one.from),
            quoted(&one.to),
            quoted(&one.kind)
        ));
    }
    text.push_str("}\n");
    text
}

fn mermaid(graph: &Snapshot) -> String {
    let quoted = |text: &str| {
        let mut safe = String::new();
        for c in text.chars() {
            match c {
                '"' | '#' | '&' | '<' | '>' | '|' | '`' | '[' | ']' | ';' | '\\' => {
                    safe.push_str(&format!("#{};", c as u32))
                }
                c if c.is_control() => safe.push(' '),
                c => safe.push(c),
            }
        }
        format!("\"{safe}\"")
    };
    // An id may be a reserved word of Mermaid, so numbers stand for ids.
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut text = String::from("flowchart LR\n");
    let ends =
        graph.connections.iter().flat_map(|one| [(&*one.it.from, &*one.it.from), (&*one.it.to, &*one.it.to)]);
    for (id, label) in graph.nodes.iter().map(|node| (&*node.it.id, title(&node.it))).chain(ends) {
        let next = numbers.len();
        numbers.entry(id).or_insert_with(|| {
            text.push_str(&format!("  n{next}[{}]\n", quoted(label)));
            next
        });
    }
    for one in graph.connections.iter().map(|one| &one.it) {
        let (from, to) = (numbers[&*one.from], numbers[&*one.to]);
        text.push_str(&format!("  n{from} -->|{}| n{to}\n", quoted(&one.kind)));
    }
    text
}
