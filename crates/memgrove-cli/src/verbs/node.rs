//! The nodes of the graph as verbs.

mod change;
mod find;

pub(super) use change::Editing;
pub(crate) use change::{NodeCreate, NodeDelete, NodeEdit, NodeUpdate};
pub(super) use find::{LIST_TOKENS_MAX, filters, fitted, left_out, limit_of, list_tokens_max};
pub(crate) use find::{NodeList, NodeRead};

use std::borrow::Cow;
use std::io;
use std::str::FromStr;

use memgrove::address::Scheme;
use memgrove::shapes::graph::{Properties, Storage, inexact_number};
use memgrove::{Error, Kind};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::Guard;
use crate::page::{Ink, Page};
use crate::portion;

/// The id that someone gives: itself, or the address of the node.
pub(super) fn id_of(given: &str) -> &str {
    Scheme::Node.bare(given)
}

/// Properties as they are given: an object, on the command line as JSON.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "Properties")]
pub(super) struct Given(Properties);

impl TryFrom<Properties> for Given {
    type Error = String;

    fn try_from(given: Properties) -> Result<Self, String> {
        given.keys().try_for_each(|name| named(name))?;
        Ok(Given(given))
    }
}

/// Refuses a property without a name.
fn named(name: &str) -> Result<(), String> {
    match name.trim().is_empty() {
        false => Ok(()),
        true => Err("a property needs a name, as in status=active".to_owned()),
    }
}

impl FromStr for Given {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        exact(text)?;
        serde_json::from_str::<Properties>(text)
            .map_err(|error| format!("`{text}` is not a JSON object: {error}"))
            .and_then(Given::try_from)
    }
}

impl JsonSchema for Given {
    fn schema_name() -> Cow<'static, str> {
        "Properties".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object" })
    }
}

/// Refuses numbers that would lose precision. Text that is not JSON passes: whoever parses it refuses it.
pub(super) fn exact(json: &str) -> Result<(), String> {
    let is_json =
        || serde_json::Deserializer::from_str(json).into_iter::<IgnoredAny>().all(|value| value.is_ok());
    match inexact_number(json).filter(|_| is_json()) {
        Some(number) => Err(format!("{number} would lose precision: quote it, as \"{number}\"")),
        None => Ok(()),
    }
}

/// One property as the command line gives it: a value that is JSON is what it says, any other is
/// text.
#[derive(Debug, Clone)]
pub(super) struct Pair(String, Value);

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` is not a property such as status=active"))?;
        named(name)?;
        let value = match serde_json::from_str(value) {
            Ok(read) => {
                exact(value)?;
                read
            }
            Err(_) => Value::from(value),
        };
        Ok(Pair(name.to_owned(), value))
    }
}

/// All properties that were given, one way or the other.
pub(super) fn properties(given: Option<Given>, pairs: Vec<Pair>) -> Properties {
    let mut all = given.unwrap_or_default().0;
    all.extend(pairs.into_iter().map(|Pair(name, value)| (name, value)));
    all
}

/// Refuses an expected version for something that does not exist yet.
pub(super) fn refuse_expect(guard: &Guard, what: &str) -> memgrove::Result<()> {
    match guard.expect {
        None => Ok(()),
        Some(_) => {
            let message = format!("a {what} that does not exist yet has no version");
            let hint = format!("leave it out, or update the existing {what}");
            Err(Error::new(Kind::Invalid, message).hint(hint))
        }
    }
}

/// What became of a node or connection.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Changed {
    done: &'static str,
    address: String,
    /// What it is now, or was.
    #[schemars(with = "Value")]
    it: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    connections: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    /// The key was applied before; nothing was done now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

impl Changed {
    pub(super) fn new<T: Serialize>(
        done: &'static str,
        address: String,
        it: &T,
        change: Option<memgrove::backend::ChangeId>,
        replayed: bool,
    ) -> Self {
        let it = serde_json::to_value(it).expect("answers are plain data with text keys");
        let change = change.map(|change| change.as_str().to_owned());
        Changed { done, address, it, connections: Vec::new(), change, replayed }
    }

    pub(super) fn show(&self, page: &mut Page<'_>) -> io::Result<()> {
        let done = if self.change.is_none() && !self.replayed { "unchanged" } else { self.done };
        page.put(&format!("{done} "))?;
        page.ink(Ink::Strong, &self.address)?;
        if let (Some(from), Some(kind), Some(to)) =
            (self.it["from"].as_str(), self.it["type"].as_str(), self.it["to"].as_str())
        {
            page.put(&format!(" ({from} -{kind}-> {to})"))?;
        }
        if !self.connections.is_empty() {
            page.put(&format!(" with {}", self.connections.join(", ")))?;
        }
        match (&self.change, self.replayed) {
            (_, true) => page.ink(Ink::Dim, " (done before with this key)\n"),
            (Some(change), _) => page.ink(Ink::Dim, &format!(" (change {change})\n")),
            (None, _) => page.put("\n"),
        }
    }
}

/// Shows properties, one a line.
pub(super) fn show_properties(properties: &Properties, page: &mut Page<'_>) -> io::Result<()> {
    properties.iter().try_for_each(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        page.line(&format!("  {name}: {value}"))
    })
}

/// What a content is, in a few words.
pub(super) fn about(storage: &Storage) -> String {
    format!("{}, {}", storage.format, portion::size(storage.size))
}
