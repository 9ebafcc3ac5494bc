//! How nodes are connected, and how nodes and connections are removed.

use serde::{Deserialize, Serialize};

use super::making::{check_kind, format_of};
use super::{Connection, Draft, Link};
use crate::backend::Bytes;
use crate::error::{Error, Kind, Result, code};
use crate::shapes::graph::entry::{Entry, Properties};
use crate::shapes::graph::id;
use crate::shapes::graph::place::Thing;

/// How many connections an error names.
const NAMED_MAX: usize = 5;

/// A connection to be made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NewConnection {
    /// Its id; `None` for the next free one.
    pub id: Option<String>,
    /// The type of the connection, or the inverse that an ontology names.
    #[serde(rename = "type")]
    pub kind: String,
    /// The node where it starts.
    pub from: String,
    /// The node where it ends.
    pub to: String,
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

/// What happens to the connections of a node that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// A node that has connections is not removed.
    #[default]
    Refuse,
    /// They are removed with it.
    Cascade,
}

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// The node.
    pub id: String,
    /// The connections that were removed with it.
    pub connections: Vec<String>,
}

impl Draft<'_> {
    /// Connects two nodes.
    pub(in crate::shapes::graph) fn connect(&mut self, mut new: NewConnection) -> Result<Connection> {
        check_kind(Thing::Connection, &new.kind)?;
        if let Some(ontology) = &self.ontology
            && let Some(kind) = ontology.inverted(&new.kind)
        {
            new.kind = kind.to_owned();
            std::mem::swap(&mut new.from, &mut new.to);
        }
        let (from, to) = (self.hold(&new.from)?, self.hold(&new.to)?);
        if let Some(ontology) = self.ontology.clone() {
            ontology.complete_connection(&new.kind, &mut new.properties);
            ontology
                .refuse(ontology.connection_breaks(&new.kind, &from.kind, &to.kind, &new.properties), &[])?;
            self.check_cardinality(&new.kind, &new.from, &new.to)?;
        }
        let id = match new.id {
            Some(id) => self.chosen_id(Thing::Connection, id)?,
            None => {
                let format = new.content.as_deref().map(|content| format_of(new.format.as_deref(), content));
                self.fresh_id(Thing::Connection, id::CONN, format.as_deref())?
            }
        };
        let storage = match new.content {
            Some(content) => {
                Some(self.store_content(Thing::Connection, &id, new.format.as_deref(), content, None)?)
            }
            None => None,
        };
        let now = self.desk.now.clone();
        let connection = Connection {
            id,
            kind: new.kind,
            from: new.from,
            to: new.to,
            properties: new.properties,
            storage,
            created: now.clone(),
            updated: now,
        };
        let entry = Entry::new(&connection).saying(new.said.as_deref().unwrap_or_default());
        let connection = entry.connection()?;
        self.say(Thing::Connection, &connection.id, &entry)?;
        self.links.push(Link::Made(Box::new(connection.clone())));
        Ok(connection)
    }

    /// Refuses one connection more than its type allows at a node.
    pub(super) fn check_cardinality(&mut self, kind: &str, from: &str, to: &str) -> Result<()> {
        let Some(ontology) = self.ontology.clone() else { return Ok(()) };
        let (place, cardinality) = ontology.cardinality(kind);
        let (one_to, one_from) = (cardinality.has_one_to(), cardinality.has_one_from());
        if !one_to && !one_from {
            return Ok(());
        }
        let meant = ontology.meant(place);
        self.whole = true;
        let starts = one_to.then(|| self.touching(from)).transpose()?;
        let ends = one_from.then(|| self.touching(to)).transpose()?;
        let taken = |there: Option<Vec<Connection>>, fits: &dyn Fn(&str, &str) -> bool| {
            there.into_iter().flatten().find(|one| {
                meant.iter().any(|(kind, turned)| {
                    *kind == one.kind
                        && if *turned { fits(&one.to, &one.from) } else { fits(&one.from, &one.to) }
                })
            })
        };
        let taken = taken(starts, &|start, _| start == from).or_else(|| taken(ends, &|_, end| end == to));
        match taken {
            None => Ok(()),
            Some(one) => Err(Error::new(
                Kind::Invalid,
                format!(
                    "`{kind}` is {}: `{}` already connects `{}` to `{}` (rule connection_types.{place}.cardinality)",
                    cardinality.name(),
                    one.id,
                    one.from,
                    one.to
                ),
            )
            .code(code::ONTOLOGY_RULE)
            .hint(format!("delete `{}` first, or change its type in the ontology", one.id))),
        }
    }

    /// Returns the connections that touch a node, with the changes of this draft.
    pub(super) fn touching(&mut self, id: &str) -> Result<Vec<Connection>> {
        let mut known = self.whole_catalog()?.touching(id);
        for link in &self.links {
            match link {
                Link::Gone(gone) => known.retain(|one| one.id != *gone),
                Link::Made(made) if made.from == id || made.to == id => known.push((**made).clone()),
                Link::Made(_) => {}
            }
        }
        Ok(known)
    }

    /// Removes a connection.
    pub(in crate::shapes::graph) fn disconnect(
        &mut self,
        id: &str,
        expect: Option<&str>,
    ) -> Result<Connection> {
        self.mind(Thing::Connection, id, expect)?;
        let connection = self.connection(id)?;
        self.drop_content(Thing::Connection, id, connection.storage.as_ref())?;
        self.unsay(Thing::Connection, id)?;
        self.links.push(Link::Gone(id.to_owned()));
        Ok(connection)
    }

    /// Removes a node.
    pub(in crate::shapes::graph) fn delete(
        &mut self,
        id: &str,
        how: Removal,
        expect: Option<&str>,
    ) -> Result<Removed> {
        self.mind(Thing::Node, id, expect)?;
        let node = self.node(id)?;
        let touching = self.touching(id)?;
        if how == Removal::Refuse && !touching.is_empty() {
            let hint = format!("delete them first, or with it: `memgrove node delete {id} --cascade`");
            return Err(connected(id, &touching).hint(hint));
        }
        let mut connections = Vec::with_capacity(touching.len());
        for one in touching {
            self.disconnect(&one.id, None)?;
            connections.push(one.id);
        }
        self.drop_content(Thing::Node, id, node.storage.as_ref())?;
        self.unsay(Thing::Node, id)?;
        Ok(Removed { id: id.to_owned(), connections })
    }
}

/// Returns the error for a node that cannot be removed, because connections lead to it.
pub(in crate::shapes::graph) fn connected(id: &str, touching: &[Connection]) -> Error {
    let named: Vec<String> = (touching.iter().take(NAMED_MAX))
        .map(|one| format!("{} ({} {} {})", one.id, one.from, one.kind, one.to))
        .collect();
    let more = if touching.len() > NAMED_MAX { ", …" } else { "" };
    let noun = if touching.len() == 1 { "connection" } else { "connections" };
    let message = format!("the node `{id}` has {} {noun}: {}{more}", touching.len(), named.join(", "));
    Error::new(Kind::Invalid, message).code(code::NODE_CONNECTED)
}
