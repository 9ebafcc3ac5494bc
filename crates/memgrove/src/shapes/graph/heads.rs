//! Which parts of an entry are read when the graph is opened. The rest is only checked to be readable,
//! because an entry that fails later would block all others.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::entry::{Connection, Node};

/// How deeply JSON may be nested, and how long its numbers may be, to be readable without a closer look.
const PLAIN_DEPTH_MAX: usize = 100;
const PLAIN_DIGITS_MAX: usize = 200;

/// The parts of a node's entry that are read.
#[derive(Deserialize)]
pub(super) struct NodeHead<'a> {
    #[serde(borrow, default)]
    pub(super) id: Cow<'a, str>,
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(rename = "properties", default)]
    _properties: AnyObject,
    #[serde(rename = "storage", borrow, default)]
    _storage: Option<StorageHead<'a>>,
    #[serde(rename = "created", borrow, default)]
    _created: Cow<'a, str>,
    #[serde(rename = "updated", borrow, default)]
    _updated: Cow<'a, str>,
}

/// The parts of a connection's entry that are read.
#[derive(Deserialize)]
pub(super) struct ConnectionHead<'a> {
    #[serde(borrow, default)]
    pub(super) id: Cow<'a, str>,
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) from: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) to: Cow<'a, str>,
    #[serde(rename = "properties", default)]
    _properties: AnyObject,
    #[serde(rename = "storage", borrow, default)]
    _storage: Option<StorageHead<'a>>,
    #[serde(rename = "created", borrow, default)]
    _created: Cow<'a, str>,
    #[serde(rename = "updated", borrow, default)]
    _updated: Cow<'a, str>,
}

#[derive(Deserialize)]
struct StorageHead<'a> {
    #[serde(rename = "path", borrow)]
    _path: Cow<'a, str>,
    #[serde(rename = "format", borrow, default)]
    _format: Cow<'a, str>,
    #[serde(rename = "size", default)]
    _size: u64,
    #[serde(rename = "hash", borrow, default)]
    _hash: Cow<'a, str>,
}

/// An object, whatever it holds.
#[derive(Default)]
struct AnyObject;

impl<'de> Deserialize<'de> for AnyObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Passing;
        impl<'de> Visitor<'de> for Passing {
            type Value = AnyObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AnyObject, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(AnyObject)
            }
        }
        deserializer.deserialize_map(Passing)
    }
}

/// Reads these parts of a node's entry; `None` if the entry cannot be read, now or later.
pub(super) fn node_head(text: &str) -> Option<NodeHead<'_>> {
    let head = serde_json::from_str(text).ok()?;
    (is_plain(text) || serde_json::from_str::<Node>(text).is_ok()).then_some(head)
}

/// Reads these parts of a connection's entry; `None` if the entry cannot be read, now or later.
pub(super) fn connection_head(text: &str) -> Option<ConnectionHead<'_>> {
    let head = serde_json::from_str(text).ok()?;
    (is_plain(text) || serde_json::from_str::<Connection>(text).is_ok()).then_some(head)
}

/// Whether JSON contains nothing that skipping accepts and reading may not: half a surrogate pair, numbers
/// out of range, or very deep nesting.
fn is_plain(json: &str) -> bool {
    let (mut bytes, mut before) = (json.bytes(), b' ');
    let (mut depth, mut digits) = (0_usize, 0_usize);
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if !is_plain_string(&mut bytes) => return false,
            b'e' | b'E' if before.is_ascii_digit() => return false,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        if depth > PLAIN_DEPTH_MAX || digits > PLAIN_DIGITS_MAX {
            return false;
        }
        before = byte;
    }
    true
}

/// Skips the rest of a string. Returns `false` if it has `\uD…`, which may be half a surrogate pair.
fn is_plain_string(bytes: &mut std::str::Bytes<'_>) -> bool {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => break,
            b'\\' if bytes.next() == Some(b'u') && matches!(bytes.next(), Some(b'd' | b'D')) => return false,
            _ => {}
        }
    }
    true
}

/// One line of the tail.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    /// In the first line: the mark of the registry that the tail continues.
    #[serde(default)]
    pub(super) continues: Option<IgnoredAny>,
    #[serde(borrow, default)]
    pub(super) node: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) connection: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) deleted_node: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) deleted_connection: Option<Cow<'a, str>>,
}
