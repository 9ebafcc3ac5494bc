//! Entities as verbs.

mod keep;
mod recall;
mod walk;

use std::io;
use std::str::FromStr;

use memgrove::Result;
use memgrove::address::Scheme;
use memgrove::memory::Done;
use memgrove::shapes::entities::{Facts, Loaded, Relation, Stored, folder_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::page::{Ink, Page, counted};

pub(crate) use keep::{EntityBatch, EntityDelete, EntityLearn, EntityPattern, EntityRole, EntityStore};
pub(crate) use recall::{EntityLoad, EntitySearch};
pub(crate) use walk::EntityWalk;

/// The address of an entity.
pub(crate) fn address(kind: &str, name: &str) -> String {
    Scheme::Entity.address(format_args!("{}/{name}", folder_name(kind)))
}

/// The address of an entity that was read: its folder is its type, also where someone named that otherwise.
pub(crate) fn address_of(loaded: &Loaded) -> String {
    let folder = loaded.path.parent().map(|folder| folder.name().to_owned()).unwrap_or_default();
    Scheme::Entity.address(format_args!("{folder}/{}", loaded.entity.name))
}

/// A relation, on the command line given as `type:to`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Related {
    #[serde(rename = "type")]
    kind: String,
    to: String,
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
