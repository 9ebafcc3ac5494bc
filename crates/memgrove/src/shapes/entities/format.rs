//! How the file of an entity is read and written: in pieces that remember their bytes, so that an update
//! changes only what it is about and keeps everything that it does not understand.
//!
//! Parsing and printing are inverse for every string. In a value on a line of its own, newlines are
//! written as character references (`&#10;`), as in Markdown; further lines of an observation are indented
//! beneath its first.

mod items;
mod reading;

use super::escape::{escaped, escaped_list, unescaped, unescaped_list};
use super::prose;
use super::{Entity, Observation, Relation};

const TITLE: &str = "# Entity:";
const OBSERVATIONS: &str = "Observations";
const RELATIONS: &str = "Relations";

/// One entity's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pieces: Vec<Piece>,
    newline: &'static str,
    /// Whether it is ordinary Markdown, whose prose counts as observations.
    ordinary: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) raw: String,
    pub(super) what: What,
    /// How many of its bytes come before its facts.
    said: usize,
}

impl Piece {
    fn new(raw: String, what: What) -> Self {
        Piece { said: raw.len(), raw, what }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    Title(String),
    Field(&'static str, String),
    Section(String),
    Observation(Observation),
    Relation(Relation),
    /// A front matter: name, type, tags, created, updated.
    Front(Box<prose::Front>),
    /// A heading of ordinary markdown.
    Heading(String),
    /// Text that is kept as it is.
    Other,
}

const FIELDS: [&str; 4] = ["Type", "Created", "Updated", "Tags"];

impl Document {
    /// Makes a file for a new entity.
    pub fn new(entity: &Entity) -> Self {
        let mut pieces = vec![titled(&entity.name)];
        let tags = (!entity.tags.is_empty()).then(|| escaped_list(&entity.tags));
        let created = entity.created.as_deref().map(escaped);
        let updated = entity.updated.as_deref().map(escaped);
        let values = [Some(escaped(&entity.kind)), created, updated, tags];
        for (key, value) in FIELDS.into_iter().zip(values) {
            if let Some(value) = value {
                pieces.push(field(key, value, "\n"));
            }
        }
        let mut document = Document { pieces, newline: "\n", ordinary: false };
        document.begin(OBSERVATIONS);
        document.set_items(&entity.observations);
        document.set_items(&entity.relations);
        document
    }

    /// Makes a file for relations that start at an entity that does not exist.
    pub fn loose(name: &str) -> Self {
        Document { pieces: vec![titled(name)], newline: "\n", ordinary: false }
    }

    /// Reads a file. Every text is valid: what is not understood is kept.
    pub fn parse(text: &str) -> Self {
        let newline = match text.split_once('\n') {
            Some((first, _)) if first.ends_with('\r') => "\r\n",
            _ => "\n",
        };
        let ordinary = !text.trim_start_matches('\u{feff}').lines().any(|line| line.starts_with(TITLE));
        Document { pieces: reading::pieces(text, ordinary), newline, ordinary }
    }

    /// The file's text.
    pub fn print(&self) -> String {
        self.pieces.iter().map(|piece| piece.raw.as_str()).collect()
    }

    /// Returns the entity that the file describes. `stem` and `folder` stand in for a missing name and
    /// type.
    pub fn entity(&self, folder: &str, stem: &str) -> Entity {
        let mut entity = Entity::default();
        let (mut name, mut kind) = (None, None);
        for piece in &self.pieces {
            match &piece.what {
                What::Title(title) => name = name.or(Some(title.clone())),
                What::Heading(title) => name = name.or(Some(title.clone())),
                What::Field("Type", value) => kind = kind.or(Some(unescaped(value))),
                What::Field("Created", value) => {
                    entity.created.get_or_insert_with(|| unescaped(value));
                }
                What::Field("Updated", value) => {
                    entity.updated.get_or_insert_with(|| unescaped(value));
                }
                What::Field(_, value) if entity.tags.is_empty() => entity.tags = unescaped_list(value),
                What::Front(front) => {
                    name = front.name.clone();
                    kind.clone_from(&front.kind);
                    entity.tags.clone_from(&front.tags);
                    entity.created.clone_from(&front.created);
                    entity.updated.clone_from(&front.updated);
                }
                What::Observation(observation) => entity.observations.push(observation.clone()),
                What::Relation(relation) => entity.relations.push(relation.clone()),
                _ => {}
            }
        }
        entity.name = name.unwrap_or_else(|| stem.to_owned());
        entity.kind = kind.unwrap_or_else(|| folder.to_owned());
        entity
    }

    /// Makes the file describe this entity, changing as few bytes as possible. The name stays.
    pub fn update(&mut self, to: &Entity) {
        self.update_from(&self.entity("", ""), to);
    }

    /// As [`Document::update`], where `now` is the entity as it was read, so that a type taken from the
    /// folder's name is not written into the file.
    pub fn update_from(&mut self, now: &Entity, to: &Entity) {
        let plain = |value: &String| (escaped(value), prose::scalar(value));
        if now.kind != to.kind {
            self.set_field("Type", Some(plain(&to.kind)));
        }
        if now.created != to.created {
            self.set_field("Created", to.created.as_ref().map(plain));
        }
        if now.updated != to.updated {
            self.set_field("Updated", to.updated.as_ref().map(plain));
        }
        if now.tags != to.tags {
            let tags = || (escaped_list(&to.tags), prose::list(&to.tags));
            self.set_field("Tags", (!to.tags.is_empty()).then(tags));
        }
        self.set_items(&to.observations);
        self.set_items(&to.relations);
    }

    /// Sets a field. The value is given in two forms: for a line of our format, and for a front matter.
    fn set_field(&mut self, key: &'static str, value: Option<(String, String)>) {
        if let Some(at) = self.pieces.iter().position(|piece| matches!(piece.what, What::Front(_))) {
            // A front matter takes precedence, so a field beneath it would have no effect.
            prose::set(&mut self.pieces[at], key, value.map(|(_, value)| value), self.newline);
            return;
        }
        let there = self.pieces.iter().position(|piece| matches!(piece.what, What::Field(k, _) if k == key));
        match (there, value) {
            (Some(at), Some((value, _))) => self.pieces[at] = field(key, value, self.newline),
            (Some(at), None) => drop(self.pieces.remove(at)),
            (None, Some((value, _))) => {
                let header = self.pieces.iter().rposition(|piece| {
                    matches!(piece.what, What::Title(_) | What::Heading(_) | What::Field(..))
                });
                let at = header.map_or(0, |at| at + 1);
                self.end_line_before(at);
                self.pieces.insert(at, field(key, value, self.newline));
            }
            (None, None) => {}
        }
    }

    fn begin(&mut self, section: &str) {
        let end = self.pieces.len();
        self.end_line_before(end);
        if self.pieces.last().is_some_and(|piece| !piece.raw.trim().is_empty()) {
            self.pieces.push(Piece::new(self.newline.to_owned(), What::Other));
        }
        let raw = format!("## {section}{}", self.newline);
        self.pieces.push(Piece::new(raw, What::Section(section.to_owned())));
    }

    /// Ends a last line without a newline, so that what is added does not become part of it.
    fn end_line_before(&mut self, at: usize) {
        let newline = self.newline;
        if let Some(before) = at.checked_sub(1).and_then(|before| self.pieces.get_mut(before))
            && !before.raw.is_empty()
            && !before.raw.ends_with('\n')
        {
            before.raw.push_str(newline);
        }
    }

    /// Whether it is ordinary Markdown, written for another purpose.
    pub fn is_ordinary(&self) -> bool {
        self.ordinary
    }
}

fn field(key: &'static str, value: String, newline: &str) -> Piece {
    Piece::new(format!("**{key}:** {value}{newline}"), What::Field(key, value))
}

fn titled(name: &str) -> Piece {
    Piece::new(format!("{TITLE} {}\n", escaped(name)), What::Title(name.to_owned()))
}
