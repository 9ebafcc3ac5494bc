//! What an agent knows, as Markdown: one file for each entity, with observations and relations.
//!
//! The file of an entity is the truth; `format` describes it. Planners are pure; [`Knowledge`] connects
//! them with a [`Memory`](crate::Memory), a catalog of what was read, and the indexes for people, which
//! are written later.

mod cache;
mod catalog;
mod draft;
mod escape;
mod format;
mod indexes;
pub mod kg;
pub mod kg_file;
mod knowledge;
mod names;
mod patterns;
mod phrase;
mod prose;
mod roll;
mod search;
mod time;
mod walk;
mod words;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result, code};

pub use cache::SessionCache;
pub use catalog::Catalog;
pub use draft::{Desk, How, Stored};
pub use format::Document;
pub use indexes::Indexes;
pub use knowledge::{Era, Expected, Exported, Found, Imported, Knowledge, Loaded, Revision};
pub use names::{file_name, folder_name};
pub use patterns::{Learning, Pattern, RoleState};
pub use search::{Hit, Match, Named, SEARCH_HITS_MAX, Strong, score};
pub use time::{When, as_of};
pub use walk::{Direction, Step, Walk};

/// A thing that something is known about: a person, a project, a lesson.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Entity {
    /// What it is called.
    pub name: String,
    /// What kind of thing it is.
    #[serde(rename = "type", alias = "entityType")]
    pub kind: String,
    /// When its file was first written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// When its file last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<String>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// What is known of it.
    pub observations: Vec<Observation>,
    /// Its relations to others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<Relation>,
}

/// One thing that is known of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Said")]
pub struct Observation {
    /// What is known, in words.
    pub text: String,
    /// What is known about the observation itself.
    #[serde(flatten)]
    pub facts: Facts,
}

/// An observation as callers may give it: with its facts, or its text alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Text(String),
    Whole {
        text: String,
        #[serde(flatten)]
        facts: Facts,
    },
}

impl From<Said> for Observation {
    fn from(said: Said) -> Self {
        match said {
            Said::Text(text) => Observation { text, facts: Facts::default() },
            Said::Whole { text, facts } => Observation { text, facts },
        }
    }
}

impl From<&str> for Observation {
    fn from(text: &str) -> Self {
        Observation { text: text.to_owned(), facts: Facts::default() }
    }
}

/// A relation of one entity to another, which need not exist.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Relation {
    /// The kind of relation, in active voice.
    #[serde(rename = "type", alias = "relationType")]
    pub kind: String,
    /// The name of the other entity.
    pub to: String,
    /// What is known about the relation itself.
    #[serde(flatten)]
    pub facts: Facts,
}

/// What is known about an observation or a relation. All of it may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// When it was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// From when on it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<String>,
    /// Until when it held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<String>,
    /// What has taken its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
}

impl Facts {
    /// The names of the facts in a file.
    pub const KEYS: [&str; 5] = ["source", "date", "valid from", "valid until", "superseded by"];

    fn entries(&self) -> [(&'static str, Option<&str>); 5] {
        let [source, date, from, until, by] = Facts::KEYS;
        [
            (source, self.source.as_deref()),
            (date, self.date.as_deref()),
            (from, self.valid_from.as_deref()),
            (until, self.valid_until.as_deref()),
            (by, self.superseded_by.as_deref()),
        ]
    }

    fn entries_mut(&mut self) -> [(&'static str, &mut Option<String>); 5] {
        let [source, date, from, until, by] = Facts::KEYS;
        [
            (source, &mut self.source),
            (date, &mut self.date),
            (from, &mut self.valid_from),
            (until, &mut self.valid_until),
            (by, &mut self.superseded_by),
        ]
    }
}

impl Entity {
    /// Checks an entity as given: it has a name and at least one observation, and its dates are valid.
    ///
    /// # Errors
    /// `Invalid`, naming what is missing.
    pub fn check(&self) -> Result<()> {
        if self.observations.is_empty() && !self.name.trim().is_empty() {
            let what = format!("the entity `{}` has no observations", self.name.escape_debug());
            return Err(wrong(what, "give at least one observation"));
        }
        self.check_addition()
    }

    /// Checks what is to be added to an existing entity: tags or relations alone are enough.
    fn check_addition(&self) -> Result<()> {
        if self.name.trim().is_empty() {
            return Err(wrong("the entity has no name", "give it a name to find it by"));
        }
        if self.observations.is_empty() && self.tags.is_empty() && self.relations.is_empty() {
            return self.check();
        }
        match self.misdated() {
            Some(what) => Err(time::misdated(&what)),
            None => Ok(()),
        }
    }
}

fn wrong(what: impl Into<String>, hint: &str) -> Error {
    Error::new(Kind::Invalid, what).code(code::INVALID_ENTITY).hint(hint)
}
