//! Changes by somebody who has looked at the files of a node or connection, and edits them by hand.

use super::Graph;
use super::entry::{Connection, Node};
use super::place::Thing;
use crate::backend::{Note, Version};
use crate::error::Result;
use crate::locator::Locator;
use crate::memory::Done;

impl Graph {
    /// The same graph, whose changes rest on a file that somebody has seen, such as the content of a node:
    /// they are refused (`Conflict`) where it is no longer at that version when they are made.
    #[must_use]
    pub fn resting_on(self, at: Locator, seen: Version) -> Self {
        Graph { rests_on: Some((at, seen)), ..self }
    }

    /// Makes what is said of a node (its `.meta.json`) this text, as it is written.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for a text that says no node, or says of its content what is not so, and for a
    /// rule of the ontology that was not broken before.
    pub fn resay(&self, note: Note, id: &str, text: &str) -> Result<Done<Node>> {
        let doing = format!("editing what is said of the node `{id}`");
        self.change(note, &doing, |draft| draft.resay(Thing::Node, id, text)?.node())
    }

    /// The same of a connection.
    ///
    /// # Errors
    /// As [`Graph::resay`]; `Invalid` also for other ends.
    pub fn resay_connection(&self, note: Note, id: &str, text: &str) -> Result<Done<Connection>> {
        let doing = format!("editing what is said of the connection `{id}`");
        self.change(note, &doing, |draft| draft.resay(Thing::Connection, id, text)?.connection())
    }
}
