//! How somebody changes a node or connection by editing its files by hand.

use super::Graph;
use super::entry::{Connection, Node};
use super::place::Thing;
use crate::backend::{Note, Version};
use crate::error::Result;
use crate::locator::Locator;
use crate::memory::Done;

impl Graph {
    /// Returns the graph with changes that expect a file, such as the content of a node, at the version
    /// that somebody has seen. They are refused (`Conflict`) if it has another version when they are made.
    #[must_use]
    pub fn resting_on(self, at: Locator, seen: Version) -> Self {
        Graph { rests_on: Some((at, seen)), ..self }
    }

    /// Replaces the entry of a node (its `.meta.json`) with this text, as it is written.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if the text is not a node, or is wrong about its content, or newly breaks a
    /// rule of the ontology.
    pub fn resay(&self, note: Note, id: &str, text: &str) -> Result<Done<Node>> {
        let doing = format!("editing what is said of the node `{id}`");
        self.change(note, &doing, |draft| draft.resay(Thing::Node, id, text)?.node())
    }

    /// As [`Graph::resay`], for a connection.
    ///
    /// # Errors
    /// As [`Graph::resay`]; `Invalid` also if the ends are others.
    pub fn resay_connection(&self, note: Note, id: &str, text: &str) -> Result<Done<Connection>> {
        let doing = format!("editing what is said of the connection `{id}`");
        self.change(note, &doing, |draft| draft.resay(Thing::Connection, id, text)?.connection())
    }
}
