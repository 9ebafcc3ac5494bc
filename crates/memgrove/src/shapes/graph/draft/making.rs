//! How nodes are made, and how nodes and connections are changed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Draft, Link};
use crate::backend::Bytes;
use crate::error::{Error, Kind, Result, code};
use crate::shapes::graph::entry::{Entry, Node, Properties, Storage};
use crate::shapes::graph::id;
use crate::shapes::graph::place::{Thing, content_key};

const KIND_BYTES_MAX: usize = 200;

/// A node to be made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NewNode {
    /// Its id; `None` for the next free one.
    pub id: Option<String>,
    /// What kind of thing it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is known of it.
    pub properties: Properties,
    /// The kind of its content; `None` for Markdown, or for binary if the content is not text.
    pub format: Option<String>,
    /// Its content.
    #[serde(skip)]
    pub content: Option<Bytes>,
    /// Further members of its entry: a JSON object whose members are kept as they are written.
    #[serde(skip)]
    pub said: Option<String>,
}

/// A change of a node or connection.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Update {
    /// The new type.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Properties to set.
    pub set: Properties,
    /// Properties to remove.
    pub unset: Vec<String>,
    /// Further members of its entry: a JSON object whose members are kept as they are written.
    #[serde(skip)]
    pub said: Option<String>,
}

impl Draft<'_> {
    /// Makes a node.
    pub(in crate::shapes::graph) fn create(&mut self, new: NewNode) -> Result<Node> {
        check_kind(Thing::Node, &new.kind)?;
        let mut properties = new.properties;
        let mut prefix = None;
        if let Some(ontology) = &self.ontology {
            ontology.complete_node(&new.kind, &mut properties);
            ontology.check_node(&new.kind, &properties)?;
            prefix = ontology.prefix(&new.kind).map(str::to_owned);
        }
        let id = match new.id {
            Some(id) => self.chosen_id(Thing::Node, id)?,
            None => {
                let format = new.content.as_deref().map(|content| format_of(new.format.as_deref(), content));
                let prefix = id::node_prefix(prefix.as_deref(), &new.kind);
                self.fresh_id(Thing::Node, &prefix, format.as_deref())?
            }
        };
        let storage = match new.content {
            Some(content) => {
                Some(self.store_content(Thing::Node, &id, new.format.as_deref(), content, None)?)
            }
            None => None,
        };
        let now = self.desk.now.clone();
        let node = Node { id, kind: new.kind, properties, storage, created: now.clone(), updated: now };
        let entry = Entry::new(&node).saying(new.said.as_deref().unwrap_or_default());
        self.say(Thing::Node, &node.id, &entry)?;
        entry.node()
    }

    /// Checks an id that someone has chosen.
    pub(super) fn chosen_id(&mut self, thing: Thing, id: String) -> Result<String> {
        id::check(&id)?;
        self.refuse_taken(thing, &id)?;
        Ok(id)
    }

    /// Refuses an id that is taken.
    pub(in crate::shapes::graph) fn refuse_taken(&mut self, thing: Thing, id: &str) -> Result<()> {
        match self.is_there(thing, id)? {
            false => Ok(()),
            true => Err(Error::new(Kind::Exists, format!("there is a {} `{id}` already", thing.noun()))
                .code(code::NODE_EXISTS)
                .hint("choose another id, or give none to get the next free one")),
        }
    }

    /// Returns the next id with a prefix whose entry file, and content file if there is one, do not exist:
    /// those that others are just making are not in the registry yet. The change expects these files to
    /// stay absent.
    pub(super) fn fresh_id(&mut self, thing: Thing, prefix: &str, format: Option<&str>) -> Result<String> {
        let mut passed = 0;
        loop {
            let id = self.next_id(prefix, passed)?;
            passed += 1;
            let meta = self.desk.layout.meta(thing, &id)?;
            let content = format.map(|format| self.desk.layout.content(&content_key(thing, &id, format)?));
            let content = content.transpose()?;
            let taken = self.bytes(&meta)?.is_some()
                || content.map_or(Ok(false), |at| Ok::<_, Error>(self.bytes(&at)?.is_some()))?;
            if !taken {
                return Ok(id);
            }
        }
    }

    /// Returns the next id with a prefix. After a lost race it tries a number a little further on, so that
    /// the same writers do not collide again.
    fn next_id(&mut self, prefix: &str, passed: u64) -> Result<String> {
        let desk = &mut self.desk;
        // Others who have added to the tail may have taken numbers.
        let late = desk.attempt > 0 && self.lines.is_empty();
        let again = late || (self.lines.is_empty() && !desk.shelf.knows_numbers(self.tail_bytes));
        let random = desk.ids.random();
        let replicated = (desk.store.capabilities().sync || desk.ids.branches()).then_some(random);
        let numbers = desk.shelf.numbers(desk.store, desk.layout, self.tail_bytes, again)?;
        let reach = if late { 8_u64 << desk.attempt.min(16) } else { 1 };
        let step = u64::from(u32::from_le_bytes([random[12], random[13], random[14], random[15]])) % reach;
        let id = id::spelled(prefix, numbers.next(prefix) + step + passed, replicated);
        numbers.note(&id);
        self.drawn = true;
        Ok(id)
    }

    /// Plans to write a content to the file of its kind, and returns its storage. A file that exists there
    /// and is not this thing's `own` is not overwritten.
    pub(super) fn store_content(
        &mut self,
        thing: Thing,
        id: &str,
        format: Option<&str>,
        content: Bytes,
        own: Option<&str>,
    ) -> Result<Storage> {
        super::content::check_size(thing, id, &content)?;
        let format = format_of(format, &content);
        let path = content_key(thing, id, &format)?;
        let at = self.desk.layout.content(&path)?;
        if own != Some(path.as_str()) && self.bytes(&at)?.is_some() {
            let hint = match self.is_there(thing, id)? {
                false => "`memgrove graph check --rebuild` makes a node of it",
                true => "move it away, or choose another format",
            };
            let what = format!("`{at}` is there, and no {} says so", thing.noun());
            return Err(Error::new(Kind::Exists, what).code(code::FILE_EXISTS).hint(hint));
        }
        let storage = Storage {
            path,
            format,
            size: content.len() as u64,
            hash: crate::backend::Version::of(&content).as_str().to_owned(),
        };
        self.put(&at, Some(content))?;
        Ok(storage)
    }

    /// Changes the entry of a node.
    pub(in crate::shapes::graph) fn update_node(
        &mut self,
        id: &str,
        update: &Update,
        expect: Option<&str>,
    ) -> Result<Node> {
        self.mind(Thing::Node, id, expect)?;
        let entry = self.entry(Thing::Node, id)?;
        let changed = self.updated(Thing::Node, &entry, update)?;
        self.keep_node(id, &entry, changed)?.node()
    }

    /// Writes the entry of a node, if the ontology allows it.
    pub(super) fn keep_node(&mut self, id: &str, entry: &Entry, changed: Entry) -> Result<Entry> {
        if let Some(ontology) = &self.ontology {
            let (old, new) = (entry.node()?, changed.node()?);
            let broken = ontology.node_breaks(&old.kind, &old.properties);
            ontology.refuse(ontology.node_breaks(&new.kind, &new.properties), &broken)?;
            if new.kind != old.kind {
                self.check_ends(id, &old.kind, &new.kind)?;
            }
        }
        self.keep(Thing::Node, id, entry, changed)
    }

    /// Changes the entry of a connection.
    pub(in crate::shapes::graph) fn update_connection(
        &mut self,
        id: &str,
        update: &Update,
        expect: Option<&str>,
    ) -> Result<super::Connection> {
        self.mind(Thing::Connection, id, expect)?;
        let entry = self.entry(Thing::Connection, id)?;
        let changed = self.updated(Thing::Connection, &entry, update)?;
        self.keep_connection(id, &entry, changed)?.connection()
    }

    /// Writes the entry of a connection, if the ontology allows it.
    pub(super) fn keep_connection(&mut self, id: &str, entry: &Entry, changed: Entry) -> Result<Entry> {
        if self.ontology.is_some() {
            let (old, new) = (entry.connection()?, changed.connection()?);
            let (from, to) = (self.hold(&new.from)?, self.hold(&new.to)?);
            let ontology = self.ontology.as_ref().expect("it was just seen");
            let broken = ontology.connection_breaks(&old.kind, &from.kind, &to.kind, &old.properties);
            let breaks = ontology.connection_breaks(&new.kind, &from.kind, &to.kind, &new.properties);
            ontology.refuse(breaks, &broken)?;
            if new.kind != old.kind {
                self.links.push(Link::Gone(id.to_owned()));
                self.check_cardinality(&new.kind, &new.from, &new.to)?;
                self.links.push(Link::Made(Box::new(new)));
            }
        }
        self.keep(Thing::Connection, id, entry, changed)
    }

    fn updated(&self, thing: Thing, entry: &Entry, update: &Update) -> Result<Entry> {
        let mut changed = entry.clone();
        if let Some(kind) = &update.kind {
            check_kind(thing, kind)?;
            changed = changed.with(&[("type", Some(Value::from(kind.as_str()).to_string()))]);
        }
        if !update.set.is_empty() || !update.unset.is_empty() {
            changed = changed.with_properties(&update.set, &update.unset);
        }
        if let Some(said) = &update.said {
            changed = changed.saying(said);
        }
        Ok(changed)
    }

    /// Refuses a new type of a node if one of its connections does not allow it at that end.
    fn check_ends(&mut self, id: &str, old: &str, new: &str) -> Result<()> {
        let Some(ontology) = self.ontology.clone() else { return Ok(()) };
        for one in self.touching(id)? {
            let other = if one.from == id { &one.to } else { &one.from };
            let other = if other == id { None } else { self.node(other).ok().map(|node| node.kind) };
            let breaks = |kind: &str| {
                let other = other.as_deref().unwrap_or(kind);
                match one.from == id {
                    true => ontology.end_breaks(&one.kind, kind, other),
                    false => ontology.end_breaks(&one.kind, other, kind),
                }
            };
            let refused = ontology.refuse(breaks(new), &breaks(old));
            refused.map_err(|error| error.while_doing(format_args!("its connection `{}`", one.id)))?;
        }
        Ok(())
    }

    /// Writes an entry if it has changed. `updated` is set, unless the change sets it itself.
    pub(super) fn keep(&mut self, thing: Thing, id: &str, old: &Entry, new: Entry) -> Result<Entry> {
        if new == *old {
            return Ok(new);
        }
        let now = Value::from(self.desk.now.as_str()).to_string();
        let dated = match new.value("updated") == old.value("updated") {
            true => new.with(&[("updated", Some(now))]),
            false => new,
        };
        self.say(thing, id, &dated)?;
        Ok(dated)
    }
}

pub(super) fn check_kind(thing: Thing, kind: &str) -> Result<()> {
    let noun = thing.noun();
    if kind.trim().is_empty() {
        return Err(Error::new(Kind::Invalid, format!("the {noun} has no type")).hint(match thing {
            Thing::Node => "give a type, such as project",
            Thing::Connection => "give a type, such as depends_on",
        }));
    }
    if kind.len() > KIND_BYTES_MAX || kind.chars().any(char::is_control) {
        let shown: String = kind.chars().take(40).collect();
        return Err(Error::new(
            Kind::Invalid,
            format!("`{}` cannot be the type of a {noun}", shown.escape_debug()),
        )
        .hint("a type is at most 200 bytes, without control characters"));
    }
    Ok(())
}

/// Returns the kind of a content, by default according to its bytes.
pub(super) fn format_of(format: Option<&str>, content: &[u8]) -> String {
    match format {
        Some(format) => format.to_ascii_lowercase(),
        None if std::str::from_utf8(content).is_ok() => "markdown".to_owned(),
        None => "binary".to_owned(),
    }
}
