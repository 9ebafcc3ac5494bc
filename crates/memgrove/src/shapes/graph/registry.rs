//! How `registry.json` is read and written: every node and connection by id, one entry in each line,
//! readable by any program.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::catalog::Catalog;
use super::json::compacted;

/// The newest form of the registry that this version knows.
pub(super) const VERSION: u64 = 1;
/// The beginning of the message about a registry of a newer form.
pub(super) const NEWER: &str = "it is of the form";

/// The text of an entry: a part of the registry's text, or a text of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Text {
    Part(usize, usize),
    Own(Box<str>),
}

impl Text {
    pub(super) fn get<'a>(&'a self, base: &'a str) -> &'a str {
        match self {
            Text::Part(start, end) => &base[*start..*end],
            Text::Own(text) => text,
        }
    }
}

/// A registry's text, divided into entries by id.
pub(super) struct Read {
    pub(super) nodes: Vec<(String, Text)>,
    pub(super) connections: Vec<(String, Text)>,
    pub(super) strange: Vec<(String, Text)>,
    pub(super) mark: Option<String>,
}

impl Read {
    /// # Errors
    /// The parser's message if the text is not a registry, or is of a newer form.
    pub(super) fn of(base: &str) -> Result<Self, String> {
        let file: File<'_> = serde_json::from_str(base).map_err(|error| error.to_string())?;
        if file.version > VERSION {
            return Err(format!("{NEWER} {}, and this program knows {VERSION}", file.version));
        }
        if file.is_empty {
            return Err("it has neither nodes nor connections".to_owned());
        }
        let start = base.as_ptr() as usize;
        let part = |raw: &RawValue| {
            let at = raw.get().as_ptr() as usize - start;
            Text::Part(at, at + raw.get().len())
        };
        let parts = |rows: Vec<(Cow<'_, str>, &RawValue)>| {
            rows.into_iter().map(|(id, raw)| (id.into_owned(), part(raw))).collect()
        };
        Ok(Read {
            nodes: parts(file.nodes.0),
            connections: parts(file.connections.0),
            strange: parts(file.strange),
            mark: file.mark,
        })
    }
}

struct File<'a> {
    version: u64,
    mark: Option<String>,
    /// Whether it has neither nodes nor connections, not even empty ones.
    is_empty: bool,
    nodes: Rows<'a>,
    connections: Rows<'a>,
    strange: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// Entries by id, in their written order.
#[derive(Default)]
pub(super) struct Rows<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Rows<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Rows<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of entries by id")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Rows<'de>, A::Error> {
                let mut rows = Vec::new();
                while let Some(Key(id)) = map.next_key()? {
                    rows.push((id, map.next_value()?));
                }
                Ok(Rows(rows))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

impl<'de> Deserialize<'de> for File<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Whole;
        impl<'de> Visitor<'de> for Whole {
            type Value = File<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a registry: an object with nodes and connections")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<File<'de>, A::Error> {
                let (nodes, connections) = (Rows::default(), Rows::default());
                let (mark, strange) = (None, Vec::new());
                let mut file = File { version: VERSION, mark, is_empty: true, nodes, connections, strange };
                while let Some(Key(key)) = map.next_key()? {
                    file.is_empty &= !matches!(&*key, "nodes" | "connections");
                    match &*key {
                        "version" => file.version = map.next_value()?,
                        "mark" => {
                            let raw: &RawValue = map.next_value()?;
                            match serde_json::from_str(raw.get()) {
                                Ok(mark) => file.mark = Some(mark),
                                Err(_) => file.strange.push((key, raw)),
                            }
                        }
                        "nodes" => file.nodes = map.next_value()?,
                        "connections" => file.connections = map.next_value()?,
                        _ => file.strange.push((key, map.next_value()?)),
                    }
                }
                Ok(file)
            }
        }
        deserializer.deserialize_map(Whole)
    }
}

/// Writes the registry of a graph: one entry in each line, in their order of arrival.
pub(super) fn print(catalog: &Catalog) -> String {
    let mut text = format!("{{\n\"version\": {VERSION},\n");
    if let Some(mark) = &catalog.mark {
        text.push_str(&format!("\"mark\": {},\n", quoted(mark)));
    }
    for (key, value) in &catalog.strange {
        text.push_str(&format!("{}: {},\n", quoted(key), compacted(catalog.entry(value))));
    }
    text.push_str("\"nodes\": {");
    let nodes = catalog.nodes().map(|(id, _, entry)| (id, entry));
    let unread = catalog.unread_nodes.iter().map(|(id, entry)| (id.as_str(), catalog.entry(entry)));
    rows(&mut text, nodes.chain(unread));
    text.push_str("},\n\"connections\": {");
    let connections = catalog.connections().map(|(row, entry)| (&*row.id, entry));
    let unread = catalog.unread_connections.iter().map(|(id, entry)| (id.as_str(), catalog.entry(entry)));
    rows(&mut text, connections.chain(unread));
    text.push_str("}\n}\n");
    text
}

fn rows<'a>(text: &mut String, rows: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut first = true;
    for (id, entry) in rows {
        text.push_str(if first { "\n" } else { ",\n" });
        first = false;
        text.push_str(&quoted(id));
        text.push_str(": ");
        // An entry that a person has spread over several lines becomes one line again.
        match entry.contains('\n') {
            true => text.push_str(&compacted(entry)),
            false => text.push_str(entry),
        }
    }
    if !first {
        text.push('\n');
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}
