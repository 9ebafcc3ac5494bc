//! What a node or a connection is: its entry, one JSON object beside its content and in the registry.
//!
//! The text of an entry is the truth. What a change does not touch stays as it is written, including
//! unknown fields and numbers that no machine word holds.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::json::compacted;
use super::place::Thing;
use crate::error::{Error, Kind, Result};
use crate::text::blocks::BYTE_ORDER_MARK;
use crate::text::jsonl::{members, spliced};

/// Properties by name.
pub type Properties = Map<String, Value>;

/// A node: something with a type, properties, and perhaps a content.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Node {
    /// Its id.
    #[serde(default)]
    pub id: String,
    /// What kind of thing it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is known of it.
    #[serde(default)]
    pub properties: Properties,
    /// Where its content is, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// When it was made.
    #[serde(default)]
    pub created: String,
    /// When it was last changed.
    #[serde(default)]
    pub updated: String,
}

/// A connection from one node to another.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Connection {
    /// Its id.
    #[serde(default)]
    pub id: String,
    /// The type of the connection.
    #[serde(rename = "type")]
    pub kind: String,
    /// The node where it starts.
    pub from: String,
    /// The node where it ends.
    pub to: String,
    /// What is known of it.
    #[serde(default)]
    pub properties: Properties,
    /// Where its content is, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// When it was made.
    #[serde(default)]
    pub created: String,
    /// When it was last changed.
    #[serde(default)]
    pub updated: String,
}

/// Where a content is, and its size and hash when memgrove last wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Storage {
    /// The file, relative to the graph's root.
    pub path: String,
    /// What kind of content: `markdown`, `json`, `pdf`, or another extension.
    #[serde(default)]
    pub format: String,
    /// Its bytes.
    #[serde(default)]
    pub size: u64,
    /// 128 bits of BLAKE3 over its bytes, in hexadecimal.
    #[serde(default)]
    pub hash: String,
}

/// Members that [`Entry::saying`] does not take over.
const OWN: [&str; 7] = ["id", "type", "from", "to", "storage", "content", "content_base64"];

/// The entry of a node or connection, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry(String);

impl Entry {
    /// Makes the entry of something new.
    pub(super) fn new(thing: &impl Serialize) -> Self {
        let mut text = serde_json::to_string_pretty(thing).expect("entries are plain data with text keys");
        text.push('\n');
        Entry(text)
    }

    /// Reads the entry in a file. The file's name gives the id, whatever the entry contains.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not an entry of this kind.
    pub(super) fn read(thing: Thing, id: &str, bytes: Vec<u8>) -> Result<Self> {
        let wrong = |why: String| {
            Error::new(
                Kind::Corrupt,
                format!("the properties of the {} `{id}` cannot be read: {why}", thing.noun()),
            )
            .hint(
                "fix its `.meta.json`, or restore it from the registry with `memgrove graph check --rebuild`",
            )
        };
        let text = unmarked(bytes).map_err(|_| wrong("it is not UTF-8 text".to_owned()))?;
        let read = match thing {
            Thing::Node => serde_json::from_str::<Node>(&text).map(|node| node.id),
            Thing::Connection => serde_json::from_str::<Connection>(&text).map(|one| one.id),
        };
        match read.map_err(|error| wrong(error.to_string()))? {
            said if said == id || said.is_empty() => Ok(Entry(text)),
            _ => Ok(Entry(text).with(&[("id", Some(Value::from(id).to_string()))])),
        }
    }

    /// Returns the entry as the registry has it. Registries of other programs do not repeat the id.
    pub(super) fn known(id: &str, text: &str) -> Self {
        Entry(named(id, text).into_owned() + "\n")
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Returns the node of this entry.
    pub(super) fn node(&self) -> Result<Node> {
        serde_json::from_str(&self.0).map_err(|error| unreadable(Thing::Node, &self.id(), &error))
    }

    /// Returns the connection of this entry.
    pub(super) fn connection(&self) -> Result<Connection> {
        serde_json::from_str(&self.0).map_err(|error| unreadable(Thing::Connection, &self.id(), &error))
    }

    /// Returns where the content is, if that can be read.
    pub(super) fn storage(&self) -> Option<Storage> {
        serde_json::from_str(self.value("storage")?).ok()
    }

    /// Returns the value of a member, as it is written.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        let found = members(&self.0).into_iter().rfind(|member| member.key == key)?;
        Some(&self.0[found.value])
    }

    fn id(&self) -> String {
        self.value("id").and_then(|id| serde_json::from_str(id).ok()).unwrap_or_default()
    }

    /// Returns the entry with members set (as JSON) or removed; all other bytes stay.
    #[must_use]
    pub(super) fn with(&self, changes: &[(&str, Option<String>)]) -> Self {
        Entry(spliced(&self.0, changes))
    }

    /// Returns the entry with properties set or removed; all other properties stay as they are written.
    #[must_use]
    pub(super) fn with_properties(&self, set: &Properties, unset: &[String]) -> Self {
        let changes: Vec<(&str, Option<String>)> = (unset.iter().map(|name| (name.as_str(), None)))
            .chain(set.iter().map(|(name, value)| (name.as_str(), Some(value.to_string()))))
            .collect();
        self.with_property_texts(&changes)
    }

    fn with_property_texts(&self, changes: &[(&str, Option<String>)]) -> Self {
        let old = self.value("properties").filter(|old| old.starts_with('{')).unwrap_or("{}");
        self.with(&[("properties", Some(spliced(old, changes)))])
    }

    /// Returns the entry with everything that another text of the same thing contains, as it is written
    /// there: properties, times and unknown fields.
    #[must_use]
    pub(super) fn saying(&self, text: &str) -> Self {
        let known = |key: &str| OWN.contains(&key);
        let said = members(text).into_iter().map(|member| (member.key, &text[member.value]));
        let (mut changes, mut made) = (Vec::new(), self.clone());
        for (key, value) in said.filter(|(key, value)| !known(key) && *value != "\"\"") {
            match &*key {
                "properties" => {
                    let properties = members(value);
                    let texts: Vec<(&str, Option<String>)> = (properties.iter())
                        .map(|member| (&*member.key, Some(value[member.value.clone()].to_owned())))
                        .collect();
                    made = made.with_property_texts(&texts);
                }
                _ => changes.push((key, Some(value.to_owned()))),
            }
        }
        let changes: Vec<(&str, Option<String>)> =
            changes.iter().map(|(key, value)| (&**key, value.clone())).collect();
        made.with(&changes)
    }

    /// Returns the object on one line, for the registry and its tail.
    pub(super) fn compact(&self) -> String {
        compacted(&self.0)
    }
}

/// Reads the node in an object of the registry.
pub(super) fn read_node(id: &str, text: &str) -> Result<Node> {
    let node: Node = serde_json::from_str(text).map_err(|error| unreadable(Thing::Node, id, &error))?;
    Ok(Node { id: id.to_owned(), ..node })
}

/// Reads the connection in an object of the registry.
pub(super) fn read_connection(id: &str, text: &str) -> Result<Connection> {
    let one: Connection =
        serde_json::from_str(text).map_err(|error| unreadable(Thing::Connection, id, &error))?;
    Ok(Connection { id: id.to_owned(), ..one })
}

fn unreadable(thing: Thing, id: &str, error: &serde_json::Error) -> Error {
    Error::new(
        Kind::Corrupt,
        format!("the properties of the {} `{id}` cannot be read: {error}", thing.noun()),
    )
    .hint("fix its `.meta.json`, then run `memgrove graph check --rebuild`")
}

/// Returns the path of the content that an entry names, if that can be read.
pub(super) fn content_of(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Holding {
        storage: Option<Storage>,
    }
    Some(serde_json::from_str::<Holding>(text).ok()?.storage?.path)
}

/// Returns the text of a file without a byte order mark.
pub(super) fn unmarked(bytes: Vec<u8>) -> Result<String, std::string::FromUtf8Error> {
    let mut text = String::from_utf8(bytes)?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    Ok(text)
}

/// Whether an entry contains its own id, as those that memgrove makes do.
pub(super) fn is_named(text: &str) -> bool {
    members(text).iter().any(|member| member.key == "id")
}

fn named<'a>(id: &str, text: &'a str) -> Cow<'a, str> {
    match is_named(text) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(spliced(text, &[("id", Some(Value::from(id).to_string()))])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_change_does_not_touch_stays() {
        let text = "{ \"id\":\"mem_a_001\",\"type\":\"a\",\n\"mine\": [1,  2],\"properties\":{\"big\": 12345678901234567890123,\"x\":1} }";
        let entry = Entry::read(Thing::Node, "mem_a_001", text.into()).expect("an entry");
        let set: Properties = serde_json::from_str("{\"x\":\"two\",\"y\":null}").expect("properties");
        let changed = entry.with_properties(&set, &[]).with(&[("updated", Some("\"now\"".into()))]);
        assert_eq!(
            changed.text(),
            "{ \"id\":\"mem_a_001\",\"type\":\"a\",\n\"mine\": [1,  2],\"properties\":{\"big\": 12345678901234567890123,\"x\":\"two\",\"y\":null},\"updated\":\"now\" }"
        );
        let without = changed.with_properties(&Properties::new(), &["x".into(), "none".into()]);
        assert!(without.text().contains("{\"big\": 12345678901234567890123,\"y\":null}"));
    }
}
