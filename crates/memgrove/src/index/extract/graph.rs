//! How a graph becomes documents: one for the properties of each node and connection, and one for each
//! section of their content.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Source, links, markdown};
use crate::address::Scheme;
use crate::document::{Document, Shape, Weight};
use crate::index::analysis::folded;
use crate::index::dates;
use crate::locator::copies::is_like_copy_of;

pub(super) const META: &str = ".meta.json";
/// The folders of a graph with content, and the kind of address of what lies there.
const FOLDERS: [(&str, Scheme); 2] =
    [("_content/nodes/", Scheme::Node), ("_content/connections/", Scheme::Connection)];
/// The part of an address that stands for the properties of a thing that also has content.
const PROPERTIES: &str = "#properties";

/// The properties of a node or connection, as far as search uses them.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Said {
    #[serde(rename = "type")]
    kind: String,
    from: String,
    to: String,
    properties: Map<String, Value>,
    storage: Option<Value>,
    created: String,
    updated: String,
}

/// Whether a file holds properties or content of a node or connection; the registry only lists them.
pub(super) fn wants(inside: &str) -> bool {
    place(inside).is_some() && super::visible(inside)
}

/// Returns the address of the node or connection that a file belongs to, and its id.
fn place(inside: &str) -> Option<(String, &str)> {
    let (kind, file) =
        FOLDERS.iter().find_map(|(folder, kind)| Some((kind, inside.strip_prefix(folder)?)))?;
    let id = file.split_once('.').map_or(file, |(id, _)| id);
    // A sync tool's copy of the properties is neither properties nor content.
    (!id.is_empty() && !file.contains('/') && !is_like_copy_of(file, META)).then(|| (kind.address(id), id))
}

/// The documents of one file.
pub(super) fn documents(source: &Source<'_>) -> Vec<Document> {
    let Some((address, id)) = place(source.inside) else { return Vec::new() };
    if !source.inside.ends_with(META) {
        let blank = Document {
            address,
            shape: Shape::Graph,
            title: id.to_owned(),
            group: id.to_owned(),
            ..Document::default()
        };
        return markdown::sections_of(source, blank);
    }
    let said: Said = serde_json::from_slice(source.bytes).unwrap_or_default();
    let called = ["title", "name"].iter().find_map(|key| said.properties.get(*key)?.as_str());
    let importance =
        ["importance", "priority"].iter().find_map(|key| Weight::named(said.properties.get(*key)?.as_str()?));
    let mut lines = Vec::new();
    if !said.from.is_empty() {
        lines.push(format!("{} {} {}", said.from, said.kind, said.to));
    }
    lines.extend(said.properties.iter().map(|(key, value)| format!("{key}: {}", told(value))));
    let text = lines.join("\n");
    let ends = [&said.from, &said.to].into_iter().filter(|end| !end.is_empty()).cloned();
    vec![Document {
        address: if said.storage.is_some() { format!("{address}{PROPERTIES}") } else { address },
        shape: Shape::Graph,
        title: called.unwrap_or(id).to_owned(),
        tags: said.properties.get("tags").map(tags).unwrap_or_default(),
        importance: importance.unwrap_or_default(),
        date: dates::written(&said.updated).or_else(|| dates::written(&said.created)),
        links: ends.chain(links(&text)).collect(),
        kind: said.kind,
        name: folded(id),
        group: id.to_owned(),
        span: 0..source.bytes.len(),
        text,
        ..Document::default()
    }]
}

/// Returns a value as plain text.
fn told(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(told).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn tags(value: &Value) -> Vec<String> {
    match value {
        Value::Array(values) => values.iter().map(told).collect(),
        other => {
            told(other).split(',').map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(inside: &str, text: &str) -> Vec<Document> {
        documents(&Source { key: &format!("graph/{inside}"), inside, bytes: text.as_bytes() })
    }

    #[test]
    fn nodes_and_connections_are_told() {
        let meta = r#"{"id":"mem_a_001","type":"project","properties":{"title":"Kitchen","tags":["home"],"importance":"high","rooms":2},"updated":"2026-11-15T22:03:10Z"}"#;
        let found = of("_content/nodes/mem_a_001.meta.json", meta);
        let [node] = found.as_slice() else { panic!("one document") };
        assert_eq!((node.address.as_str(), node.title.as_str()), ("node:mem_a_001", "Kitchen"));
        assert_eq!((node.kind.as_str(), node.tags.as_slice()), ("project", &["home".to_owned()][..]));
        assert!(node.text.contains("rooms: 2") && node.date.is_some() && node.importance == Weight::High);
        let meta = r#"{"type":"uses","from":"mem_a_001","to":"mem_b_001","storage":{"path":"x"}}"#;
        let found = of("_content/connections/conn_1.meta.json", meta);
        assert_eq!(found[0].address, "connection:conn_1#properties");
        assert_eq!(found[0].links, ["mem_a_001", "mem_b_001"]);
        assert_eq!(found[0].text, "mem_a_001 uses mem_b_001");
        assert_eq!(of("_content/nodes/mem_a_001.meta.json", "damaged")[0].title, "mem_a_001");
    }

    #[test]
    fn what_they_hold_is_cut_into_sections() {
        let found = of("_content/nodes/mem_a_001.md", "# One\nfirst\n# Two\nsecond\n");
        let told: Vec<&str> = found.iter().map(|document| document.address.as_str()).collect();
        assert_eq!(told, ["node:mem_a_001#one", "node:mem_a_001#two"]);
        for copy in ["x.meta (1).json", "x.meta 2.json", "x.meta-LAPTOP.json", "x.meta.json.conflict1"] {
            assert!(!wants(&format!("_content/nodes/{copy}")), "{copy}");
        }
        assert!(!wants("_content/nodes/.hidden.md") && !wants("_system/registry.json"));
    }
}
