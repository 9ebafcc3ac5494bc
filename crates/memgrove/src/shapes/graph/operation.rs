//! How several steps become one change.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::draft::{ContentEdit, Draft, NewConnection, NewNode, Removal, Removed, Update};
use super::entry::{Connection, Node, Properties};
use super::place::Thing;
use crate::error::{Error, Kind, Result};

/// One step of a batch. It refers to what an earlier step made by `@` and the name given there as `as`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// Makes a node.
    CreateNode {
        /// What later steps call it.
        #[serde(rename = "as", default)]
        name: Option<String>,
        /// Its id, if it is to have a certain one.
        #[serde(default)]
        id: Option<String>,
        /// Its type.
        #[serde(rename = "type")]
        kind: String,
        /// Its properties.
        #[serde(default)]
        properties: Properties,
        /// Its content.
        #[serde(default)]
        content: Option<String>,
        /// The kind of its content.
        #[serde(default)]
        format: Option<String>,
    },
    /// Changes a node.
    UpdateNode {
        /// The node.
        id: String,
        /// Another type.
        #[serde(rename = "type", default)]
        kind: Option<String>,
        /// Properties to set.
        #[serde(default)]
        set: Properties,
        /// Properties to remove.
        #[serde(default)]
        unset: Vec<String>,
    },
    /// Changes a node's content.
    EditNode {
        /// The node.
        id: String,
        /// How.
        edit: ContentEdit,
    },
    /// Removes a node.
    DeleteNode {
        /// The node.
        id: String,
        /// Whether its connections go with it.
        #[serde(default)]
        cascade: bool,
    },
    /// Connects two nodes.
    Connect {
        /// What later steps call it.
        #[serde(rename = "as", default)]
        name: Option<String>,
        /// Where it starts.
        from: String,
        /// Its type.
        #[serde(rename = "type")]
        kind: String,
        /// Where it ends.
        to: String,
        /// Its properties.
        #[serde(default)]
        properties: Properties,
        /// Its content.
        #[serde(default)]
        content: Option<String>,
    },
    /// Changes a connection.
    UpdateConnection {
        /// The connection.
        id: String,
        /// Properties to set.
        #[serde(default)]
        set: Properties,
        /// Properties to remove.
        #[serde(default)]
        unset: Vec<String>,
    },
    /// Changes a connection's content.
    EditConnection {
        /// The connection.
        id: String,
        /// How.
        edit: ContentEdit,
    },
    /// Removes a connection.
    Disconnect {
        /// The connection.
        id: String,
    },
}

/// What a step did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "done", rename_all = "snake_case")]
pub enum Outcome {
    /// A node was made or changed.
    Node(Node),
    /// A connection was made, changed or removed.
    Connection(Connection),
    /// A node was removed.
    Removed(Removed),
}

/// The ids of what the steps of a batch have named.
#[derive(Default)]
pub(super) struct Names(HashMap<String, String>);

impl Names {
    fn id(&self, given: &str) -> Result<String> {
        match given.strip_prefix('@') {
            None => Ok(given.to_owned()),
            Some(name) => self.0.get(name).cloned().ok_or_else(|| {
                Error::new(Kind::Invalid, format!("no earlier step made `@{}`", name.escape_debug()))
                    .hint("name it there with `as`")
            }),
        }
    }

    fn give(&mut self, name: Option<&String>, id: &str) {
        if let Some(name) = name {
            self.0.insert(name.clone(), id.to_owned());
        }
    }
}

impl Operation {
    pub(super) fn perform(&self, draft: &mut Draft<'_>, names: &mut Names) -> Result<Outcome> {
        match self {
            Operation::CreateNode { name, id, kind, properties, content, format } => {
                let node = draft.create(NewNode {
                    id: id.clone(),
                    kind: kind.clone(),
                    properties: properties.clone(),
                    format: format.clone(),
                    content: content.clone().map(Into::into),
                    said: None,
                })?;
                names.give(name.as_ref(), &node.id);
                Ok(Outcome::Node(node))
            }
            Operation::UpdateNode { id, kind, set, unset } => {
                let update =
                    Update { kind: kind.clone(), set: set.clone(), unset: unset.clone(), said: None };
                Ok(Outcome::Node(draft.update_node(&names.id(id)?, &update, None)?))
            }
            Operation::EditNode { id, edit } => {
                Ok(Outcome::Node(draft.edit(Thing::Node, &names.id(id)?, edit.clone(), None)?.node()?))
            }
            Operation::DeleteNode { id, cascade } => {
                let how = if *cascade { Removal::Cascade } else { Removal::Refuse };
                Ok(Outcome::Removed(draft.delete(&names.id(id)?, how, None)?))
            }
            Operation::Connect { name, from, kind, to, properties, content } => {
                let connection = draft.connect(NewConnection {
                    id: None,
                    kind: kind.clone(),
                    from: names.id(from)?,
                    to: names.id(to)?,
                    properties: properties.clone(),
                    format: None,
                    content: content.clone().map(Into::into),
                    said: None,
                })?;
                names.give(name.as_ref(), &connection.id);
                Ok(Outcome::Connection(connection))
            }
            Operation::UpdateConnection { id, set, unset } => {
                let update = Update { kind: None, set: set.clone(), unset: unset.clone(), said: None };
                Ok(Outcome::Connection(draft.update_connection(&names.id(id)?, &update, None)?))
            }
            Operation::EditConnection { id, edit } => {
                let entry = draft.edit(Thing::Connection, &names.id(id)?, edit.clone(), None)?;
                Ok(Outcome::Connection(entry.connection()?))
            }
            Operation::Disconnect { id } => Ok(Outcome::Connection(draft.disconnect(&names.id(id)?, None)?)),
        }
    }
}
