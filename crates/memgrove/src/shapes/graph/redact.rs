//! How the past of nodes and connections is removed from the history for good.
//!
//! Their own files are redacted version by version, as any other. This adds the registry, which repeats
//! their entries.

use std::collections::BTreeSet;

use super::Graph;
use super::place::Thing;
use crate::backend::{FileKind, HistoryQuery};
use crate::error::Result;
use crate::locator::Locator;
use crate::text::jsonl;

impl Graph {
    /// Returns all files that have ever held a node's entry or content. The node may be deleted.
    ///
    /// # Errors
    /// `NotFound` (`NODE_NOT_FOUND`) if there never was such a node.
    pub fn places_of(&self, id: &str) -> Result<Vec<Locator>> {
        self.places_of_thing(Thing::Node, id)
    }

    /// As [`Graph::places_of`], for a connection.
    ///
    /// # Errors
    /// `NotFound` (`CONNECTION_NOT_FOUND`) if there never was such a connection.
    pub fn places_of_connection(&self, id: &str) -> Result<Vec<Locator>> {
        self.places_of_thing(Thing::Connection, id)
    }

    fn places_of_thing(&self, thing: Thing, id: &str) -> Result<Vec<Locator>> {
        let meta = self.past_of_thing(thing, id)?;
        let query = HistoryQuery { at: Some(self.layout.folder(thing)?), ..HistoryQuery::default() };
        let past = self.memory.history(&query)?;
        let edits = past.into_iter().flat_map(|past| past.edits);
        let mut contents: BTreeSet<Locator> =
            edits.flat_map(|edit| [Some(edit.at), edit.to]).flatten().collect();
        contents.retain(|at| self.layout.held_by(at) == Some((thing, id)));
        Ok([meta].into_iter().chain(contents).collect())
    }

    /// Removes the earlier entries of a node or connection from the registry's files and from their
    /// history; no undo and no restore needs them. Returns the graph's own files that still hold one,
    /// which are damaged files that were kept.
    ///
    /// # Errors
    /// As [`Backend::redact_holding`](crate::Backend::redact_holding).
    pub fn redact_registered(&self, id: &str) -> Result<Vec<Locator>> {
        // A tail holds earlier entries, line by line; a registry does not.
        self.fold()?;
        let holds = |bytes: &[u8]| jsonl::holds_id(bytes, id);
        let own = self.layout.system_folder()?;
        self.store().backend().redact_holding(&own, &holds)?;
        let mut found = Vec::new();
        for info in self.store().list_all(&own)? {
            let is_kept = info.kind == FileKind::File && !self.derived_files()?.contains(&info.locator);
            if is_kept && holds(&self.store().read_bytes(&info.locator)?.bytes) {
                found.push(info.locator);
            }
        }
        Ok(found)
    }
}
