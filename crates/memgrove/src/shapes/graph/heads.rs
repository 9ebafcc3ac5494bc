//! What is looked at in an entry when the graph is opened. The rest is only seen to be of the kind that
//! it must be: an entry that cannot be read later on would block all others.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// What is looked at in the entry of a node.
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

/// The same of a connection.
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

/// What a line of the tail says.
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
