//! How the fields of a JSON object are kept as they are written: what is not understood is written back
//! unchanged, down to the digits of its numbers.

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::shapes::entities::kg::{Edge, Node};

/// Keys and values, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Fields(pub(super) Vec<(String, String)>);

impl Fields {
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(there, _)| there == key)
    }

    /// Removes a field and returns its value; of duplicates the last counts.
    pub(super) fn taken<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = self.0.iter().rfind(|(there, _)| there == key).map(|(_, value)| value.clone());
        self.0.retain(|(there, _)| there != key);
        serde_json::from_str(&value?).ok()
    }

    /// Removes the fields of an entity, and returns it.
    pub(super) fn node(&mut self) -> Option<Node> {
        let (name, entity_type) = (self.taken("name"), self.taken("entityType"));
        let observations = self.taken("observations");
        Some(Node { name: name?, entity_type: entity_type?, observations: observations? })
    }

    /// Removes the fields of a relation, and returns it.
    pub(super) fn edge(&mut self) -> Option<Edge> {
        let (from, to, relation_type) = (self.taken("from"), self.taken("to"), self.taken("relationType"));
        Some(Edge { from: from?, to: to?, relation_type: relation_type? })
    }

    /// Returns an object followed by these fields, as JSON.
    pub(super) fn behind(&self, object: &impl Serialize) -> Vec<u8> {
        let mut line = serde_json::to_string(object).expect("lines are plain data");
        line.pop();
        for (key, value) in &self.0 {
            let key = serde_json::to_string(key).expect("text is plain data");
            line.push_str(&format!(",{key}:{value}"));
        }
        line.push('}');
        line.into_bytes()
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    fields.push((key, value.get().to_owned()));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
