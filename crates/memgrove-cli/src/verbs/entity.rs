//! Entities as verbs.

mod batch;
mod keep;
mod recall;
mod walk;

use std::io;
use std::str::FromStr;

use memgrove::address::Scheme;
use memgrove::error::code;
use memgrove::memory::Done;
use memgrove::shapes::entities::{Facts, Loaded, Relation, Stored, folder_name};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::page::{Ink, Page, counted};

pub(crate) use batch::EntityBatch;
pub(crate) use keep::{EntityDelete, EntityLearn, EntityPattern, EntityRole, EntityStore};
pub(crate) use recall::{EntityLoad, EntitySearch};
pub(crate) use walk::EntityWalk;

/// The address of an entity.
pub(crate) fn address(kind: &str, name: &str) -> String {
    Scheme::Entity.address(format_args!("{}/{name}", folder_name(kind)))
}

/// The address of an entity that was read, with its folder as the type, even if the file names another.
pub(crate) fn address_of(loaded: &Loaded) -> String {
    let folder = loaded.path.parent().map(|folder| folder.name().to_owned()).unwrap_or_default();
    Scheme::Entity.address(format_args!("{folder}/{}", loaded.entity.name))
}

/// A relation, on the command line given as `type:to`.
#[derive(Debug, Clone, JsonSchema)]
pub(crate) struct Related {
    #[schemars(rename = "type")]
    kind: String,
    to: String,
}

/// Accepts the text of the command line too, because descriptions show it to models.
impl<'de> Deserialize<'de> for Related {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Apart {
            #[serde(rename = "type")]
            kind: String,
            to: String,
        }
        match Value::deserialize(deserializer)? {
            Value::String(text) => text.parse().map_err(D::Error::custom),
            given => {
                let Apart { kind, to } = Apart::deserialize(given).map_err(D::Error::custom)?;
                Ok(Related { kind, to })
            }
        }
    }
}

impl FromStr for Related {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, to) = text
            .split_once(':')
            .ok_or_else(|| format!("`{text}` is not a relation such as works-at:Acme"))?;
        Ok(Related { kind: kind.to_owned(), to: to.trim().to_owned() })
    }
}

impl From<Related> for Relation {
    fn from(given: Related) -> Self {
        Relation { kind: given.kind, to: given.to, facts: Facts::default() }
    }
}

/// Refuses an observation that says nothing.
fn check_said(text: &str) -> Result<()> {
    match text.trim().is_empty() {
        false => Ok(()),
        true => Err(unfit("an observation is empty", "leave it out, or say what is known")),
    }
}

/// Refuses a relation without a type, or to nobody.
fn check_related(relation: &Relation) -> Result<()> {
    let Relation { kind, to, .. } = relation;
    let missing = match (kind.trim().is_empty(), to.trim().is_empty()) {
        (false, false) => return Ok(()),
        (true, _) => "has no type",
        (false, true) => "leads to no entity",
    };
    let what = format!("the relation `{}:{}` {missing}", kind.escape_debug(), to.escape_debug());
    Err(unfit(what, "relations look like works-at:Acme"))
}

fn unfit(what: impl Into<String>, hint: &str) -> Error {
    Error::new(Kind::Invalid, what).code(code::INVALID_ENTITY).hint(hint)
}

/// What was stored.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StoredAnswer {
    stored: Vec<StoredEntity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    /// The key was applied before; nothing was done now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StoredEntity {
    address: String,
    /// Whether it is new.
    created: bool,
    /// Observations that are new.
    added: usize,
}

impl StoredAnswer {
    fn new(done: Done<Vec<Stored>>) -> Self {
        let stored = done.outcome.into_iter().map(|stored| StoredEntity {
            address: address(&stored.kind, &stored.name),
            created: stored.created,
            added: stored.added,
        });
        let change = done.change.map(|change| change.as_str().to_owned());
        StoredAnswer { stored: stored.collect(), change, replayed: done.replayed }
    }

    fn show(&self, page: &mut Page<'_>) -> io::Result<()> {
        for entity in &self.stored {
            page.put(if entity.created { "created " } else { "updated " })?;
            page.ink(Ink::Strong, &entity.address)?;
            page.line(&format!(" ({})", counted(entity.added, "new observation", "new observations")))?;
        }
        match (&self.change, self.replayed) {
            (_, true) => page.ink(Ink::Dim, "done before with this key\n"),
            (Some(change), _) => page.ink(Ink::Dim, &format!("change {change}\n")),
            (None, _) => page.ink(Ink::Dim, "nothing was new\n"),
        }
    }
}
