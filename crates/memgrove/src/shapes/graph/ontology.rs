//! What a graph may contain, as `ontology.yaml` says. Without that file, anything.

mod diff;
mod infer;
mod rules;

pub use diff::{Difference, differences};
pub use infer::infer;
pub use rules::Break;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;

const ONTOLOGY_BYTES_MAX: usize = 4 << 20;

/// The parser's names for the parts of an ontology, with the names that people use.
const WORDS: &[(&str, &str)] = &[
    ("struct Ontology", "node_types and connection_types"),
    ("struct NodeType", "a type of nodes"),
    ("struct ConnectionType", "a type of connections"),
    ("struct PropertyRule", "the rule of a property, such as {type: string}"),
];

/// What a graph may contain.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ontology {
    /// The types of nodes; if there are none, any is allowed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_types: BTreeMap<String, NodeType>,
    /// The types of connections; if there are none, any is allowed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub connection_types: BTreeMap<String, ConnectionType>,
    /// Unknown members.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// A type of nodes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeType {
    /// What the ids of its nodes begin with after `mem_`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The type whose rules apply here too; these nodes are also of that type.
    #[serde(alias = "parent", skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// Whether no node may be of exactly this type.
    #[serde(rename = "abstract", skip_serializing_if = "std::ops::Not::not")]
    pub is_abstract: bool,
    /// Whether properties other than these are forbidden.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
    /// The properties.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, PropertyRule>,
    /// Unknown members.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// A type of connections.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionType {
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The types of nodes where it may start, including those that extend them; if there are none, any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
    /// The types of nodes where it may end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// Its name when it is read from end to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inverse: Option<String>,
    /// How many of them may touch a node.
    #[serde(skip_serializing_if = "Cardinality::is_many")]
    pub cardinality: Cardinality,
    /// The type whose rules apply here too, unless this type says otherwise.
    #[serde(alias = "parent", skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// Whether properties other than these are forbidden.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
    /// The properties.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, PropertyRule>,
    /// Unknown members.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// How many connections of a type may start or end at one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cardinality {
    /// Any number may start and end.
    #[default]
    #[serde(alias = "many_to_many")]
    ManyToMany,
    /// At most one may end.
    #[serde(alias = "one_to_many")]
    OneToMany,
    /// At most one may start.
    #[serde(alias = "many_to_one")]
    ManyToOne,
    /// At most one may start, and at most one may end.
    #[serde(alias = "one_to_one")]
    OneToOne,
}

impl Cardinality {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Cardinality::ManyToMany => "many-to-many",
            Cardinality::OneToMany => "one-to-many",
            Cardinality::ManyToOne => "many-to-one",
            Cardinality::OneToOne => "one-to-one",
        }
    }

    /// Whether at most one may start at a node.
    pub fn has_one_to(self) -> bool {
        matches!(self, Cardinality::ManyToOne | Cardinality::OneToOne)
    }

    /// Whether at most one may end at a node.
    pub fn has_one_from(self) -> bool {
        matches!(self, Cardinality::OneToMany | Cardinality::OneToOne)
    }

    fn is_many(&self) -> bool {
        *self == Cardinality::ManyToMany
    }
}

/// The rules of a property.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PropertyRule {
    /// The type of its value.
    #[serde(rename = "type", skip_serializing_if = "PropertyType::is_any")]
    pub kind: PropertyType,
    /// Whether it must be there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// The values that it may have; if there are none, any of its type.
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Value>,
    /// Its value if none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Unknown members.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// The type of a property's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PropertyType {
    /// Any.
    #[default]
    Any,
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A day such as `2026-01-31`.
    Date,
    /// A moment such as `2026-01-31T12:00:00Z`.
    #[serde(alias = "timestamp")]
    Datetime,
    /// A list.
    #[serde(alias = "array")]
    List,
    /// An object.
    Object,
}

impl PropertyType {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            PropertyType::Any => "any",
            PropertyType::String => "string",
            PropertyType::Integer => "integer",
            PropertyType::Number => "number",
            PropertyType::Boolean => "boolean",
            PropertyType::Date => "date",
            PropertyType::Datetime => "datetime",
            PropertyType::List => "list",
            PropertyType::Object => "object",
        }
    }

    fn is_any(&self) -> bool {
        *self == PropertyType::Any
    }

    /// Whether a value is of this type.
    pub fn fits(self, value: &Value) -> bool {
        let text = value.as_str();
        match self {
            PropertyType::Any => true,
            PropertyType::String => text.is_some(),
            PropertyType::Integer => value.is_i64() || value.is_u64(),
            PropertyType::Number => value.is_number(),
            PropertyType::Boolean => value.is_boolean(),
            PropertyType::Date => {
                text.is_some_and(|text| text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok())
            }
            PropertyType::Datetime => text.is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok()),
            PropertyType::List => value.is_array(),
            PropertyType::Object => value.is_object(),
        }
    }
}

impl Ontology {
    /// Reads an ontology.
    ///
    /// # Errors
    /// `Corrupt` (`ONTOLOGY_RULE`) with the line where the YAML cannot be read.
    pub fn read(at: &Locator, bytes: Vec<u8>) -> Result<Self> {
        let wrong = |why: String| {
            Error::new(Kind::Corrupt, format!("`{at}` cannot be read: {why}"))
                .code(code::ONTOLOGY_RULE)
                .hint("fix it, or move it away: without an ontology anything may be written")
        };
        if bytes.len() > ONTOLOGY_BYTES_MAX {
            return Err(wrong(format!("it has more than {ONTOLOGY_BYTES_MAX} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8 text".to_owned()))?;
        Ontology::parse(&text).map_err(wrong)
    }

    /// Reads the text of an ontology.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
        if text.lines().all(blank) {
            return Ok(Ontology::default());
        }
        let first = |error: String| error.lines().next().unwrap_or_default().to_owned();
        let value: Value = serde_saphyr::from_str(text).map_err(|error| first(error.to_string()))?;
        if value.is_null() {
            return Ok(Ontology::default());
        }
        serde_json::from_value(value).map_err(|error| {
            WORDS.iter().fold(error.to_string(), |text, (theirs, ours)| text.replace(theirs, ours))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_read() {
        let text = "
# What there may be
node_types:
  thing: {abstract: true, properties: {title: {type: string, required: true}}}
  project:
    prefix: proj
    extends: thing
    properties:
      status: {type: string, enum: [active, done], default: active}
connection_types:
  depends_on: {from: [project], to: [thing], inverse: required_by, cardinality: one-to-many}
";
        let ontology = Ontology::parse(text).expect("it is well formed");
        assert!(ontology.node_types["thing"].is_abstract);
        assert_eq!(ontology.node_types["project"].prefix.as_deref(), Some("proj"));
        assert_eq!(ontology.connection_types["depends_on"].cardinality, Cardinality::OneToMany);
        assert_eq!(ontology.problems(), Vec::<String>::new());
        assert_eq!(Ontology::parse("# nothing\n\n"), Ok(Ontology::default()));
    }

    #[test]
    fn what_cannot_be_read_says_where() {
        let error = Ontology::parse("node_types:\n  a: [\n").expect_err("it is cut off");
        assert!(error.contains("line"), "{error}");
        assert!(Ontology::parse("node_types: 5").is_err());
        let error = Ontology::parse("node_types: {a: 5}").expect_err("it is no type");
        assert!(error.contains("a type of nodes") && !error.contains("struct"), "{error}");
        let bomb = format!("a: {}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Ontology::parse(&bomb).is_err());
        let laughs = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n";
        assert!(Ontology::parse(laughs).is_err());
    }
}
