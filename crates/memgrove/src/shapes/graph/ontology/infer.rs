//! Which ontology a graph follows without having one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{ConnectionType, NodeType, Ontology, PropertyRule, PropertyType};
use crate::shapes::graph::entry::{Connection, Node, Properties};
use crate::shapes::graph::id::kind_prefix;

/// What was seen of the properties of one type.
#[derive(Default)]
struct Seen {
    count: usize,
    properties: BTreeMap<String, (usize, Option<PropertyType>)>,
}

impl Seen {
    fn take(&mut self, properties: &Properties) {
        self.count += 1;
        for (name, value) in properties {
            let (count, kind) = self.properties.entry(name.clone()).or_default();
            *count += 1;
            *kind = Some(kind.map_or_else(|| kind_of(value), |kind| joined(kind, value)));
        }
    }

    fn rules(&self) -> BTreeMap<String, PropertyRule> {
        let rule = |(name, (count, kind)): (&String, &(usize, Option<PropertyType>))| {
            let rule = PropertyRule {
                kind: kind.unwrap_or_default(),
                required: *count == self.count,
                ..PropertyRule::default()
            };
            (name.clone(), rule)
        };
        self.properties.iter().map(rule).collect()
    }
}

/// Returns an ontology that all of these nodes and connections fit. A property is required if none lacks
/// it.
pub fn infer(nodes: &[Node], connections: &[Connection]) -> Ontology {
    let mut kinds: BTreeMap<&str, (Seen, BTreeSet<&str>)> = BTreeMap::new();
    let mut kind_of_node: BTreeMap<&str, &str> = BTreeMap::new();
    for node in nodes {
        kind_of_node.insert(&node.id, &node.kind);
        let (seen, prefixes) = kinds.entry(&node.kind).or_default();
        seen.take(&node.properties);
        prefixes.extend(kind_prefix(&node.id));
    }
    let mut ontology = Ontology::default();
    for (kind, (seen, prefixes)) in kinds {
        let prefix = prefixes.into_iter().collect::<Vec<_>>();
        let prefix = if let [only] = prefix[..] { Some(only.to_owned()) } else { None };
        let known = NodeType { prefix, properties: seen.rules(), ..NodeType::default() };
        ontology.node_types.insert(kind.to_owned(), known);
    }
    let mut ways: BTreeMap<&str, (Seen, BTreeSet<&str>, BTreeSet<&str>)> = BTreeMap::new();
    for connection in connections {
        let (seen, from, to) = ways.entry(&connection.kind).or_default();
        seen.take(&connection.properties);
        from.extend(kind_of_node.get(connection.from.as_str()));
        to.extend(kind_of_node.get(connection.to.as_str()));
    }
    for (kind, (seen, from, to)) in ways {
        let names = |kinds: BTreeSet<&str>| kinds.into_iter().map(str::to_owned).collect();
        let known = ConnectionType {
            from: names(from),
            to: names(to),
            properties: seen.rules(),
            ..ConnectionType::default()
        };
        ontology.connection_types.insert(kind.to_owned(), known);
    }
    ontology
}

fn kind_of(value: &Value) -> PropertyType {
    use PropertyType::{Any, Boolean, Date, Datetime, Integer, List, Number, Object, String};
    let kinds = [Boolean, Integer, Number, Date, Datetime, String, List, Object];
    kinds.into_iter().find(|kind| kind.fits(value)).unwrap_or(Any)
}

/// Returns the narrowest type that fits both what was seen and this value.
fn joined(kind: PropertyType, value: &Value) -> PropertyType {
    use PropertyType::{Any, Date, Datetime, Integer, Number, String};
    let other = kind_of(value);
    match (kind, other) {
        (a, b) if a == b => a,
        (Integer | Number, Integer | Number) => Number,
        (Date | Datetime | String, Date | Datetime | String) => String,
        _ => Any,
    }
}

impl Ontology {
    /// Writes the ontology as YAML. Names are quoted if YAML could read them as something else.
    pub fn print(&self) -> String {
        let value = serde_json::to_value(self).expect("an ontology is plain data with text keys");
        let mut text = String::new();
        print_members(&value, 0, &mut text);
        text
    }
}

fn print_members(value: &Value, depth: usize, text: &mut String) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let indent = "  ".repeat(depth);
        let name = plain(name);
        match value {
            // A rule without nested rules fits on one line.
            Value::Object(members) if members.values().any(Value::is_object) && depth < 3 => {
                text.push_str(&format!("{indent}{name}:\n"));
                print_members(value, depth + 1, text);
            }
            Value::Object(_) if depth < 2 => {
                text.push_str(&format!("{indent}{name}:\n"));
                print_members(value, depth + 1, text);
            }
            value => text.push_str(&format!("{indent}{name}: {}\n", flow(value))),
        }
    }
}

/// Writes a value in YAML's flow style.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => plain(text),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{}: {}", plain(name), flow(value))).collect();
            format!("{{{}}}", members.join(", "))
        }
        other => other.to_string(),
    }
}

/// Writes a text as YAML, unquoted if it can only be text.
fn plain(text: &str) -> String {
    let bare = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if bare { text.to_owned() } else { serde_json::to_string(text).expect("a string is JSON") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_again() {
        let node = |kind: &str, json: &str| Node {
            id: "mem_p_001".into(),
            kind: kind.into(),
            properties: serde_json::from_str(json).expect("properties"),
            ..Node::default()
        };
        let nodes = [
            node("project", r#"{"title":"a","n":1,"yes":true,"odd: #key":"2026-01-31"}"#),
            node("project", r#"{"title":"b","n":1.5,"yes":null}"#),
            node("no", "{}"),
            node("a \"b\"\n", r#"{"x":[1]}"#),
        ];
        let connection = Connection {
            kind: "part of".into(),
            from: "mem_p_001".into(),
            to: "gone".into(),
            ..Connection::default()
        };
        let inferred = infer(&nodes, &[connection]);
        let project = &inferred.node_types["project"].properties;
        assert_eq!(project["n"].kind, PropertyType::Number);
        assert!(project["title"].required && !project["odd: #key"].required);
        assert_eq!(project["odd: #key"].kind, PropertyType::Date);
        assert_eq!(project["yes"].kind, PropertyType::Any);
        let text = inferred.print();
        assert_eq!(Ontology::parse(&text).as_ref(), Ok(&inferred), "{text}");
    }
}
