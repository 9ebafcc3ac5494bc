//! What nodes and connections were before, and how they are restored.

use super::Graph;
use super::draft::Former;
use super::entry::Entry;
use super::place::Thing;
use crate::backend::{HistoryQuery, Note, Version};
use crate::error::Result;
use crate::locator::Locator;
use crate::memory::{Done, Point, Restored};

impl Graph {
    /// Returns the file whose history is the history of a node, because every change of the node writes
    /// it. The node may be deleted.
    ///
    /// # Errors
    /// `NotFound` (`NODE_NOT_FOUND`) if there never was such a node.
    pub fn past_of(&self, id: &str) -> Result<Locator> {
        self.past_of_thing(Thing::Node, id)
    }

    /// As [`Graph::past_of`], for a connection.
    ///
    /// # Errors
    /// `NotFound` (`CONNECTION_NOT_FOUND`) if there never was such a connection.
    pub fn past_of_connection(&self, id: &str) -> Result<Locator> {
        self.past_of_thing(Thing::Connection, id)
    }

    pub(super) fn past_of_thing(&self, thing: Thing, id: &str) -> Result<Locator> {
        let unknown = || thing.unknown(id).hint("`memgrove history` shows what was changed");
        super::id::check(id).map_err(|_| unknown())?;
        let at = self.layout.meta(thing, id)?;
        let query = HistoryQuery { at: Some(at.clone()), before: None, limit: 1 };
        match self.store().exists(&at)? || !self.memory.history(&query)?.is_empty() {
            true => Ok(at),
            false => Err(unknown()),
        }
    }

    /// Restores a node, with its content, to a point in its past. It is removed if it did not exist then.
    ///
    /// # Errors
    /// As [`Memory::read_past`](crate::Memory::read_past), [`Graph::update`] and [`Graph::delete`].
    pub fn restore(
        &self,
        note: Note,
        id: &str,
        point: &Point,
        expect: Option<&str>,
    ) -> Result<Done<Restored>> {
        self.restore_thing(note, Thing::Node, id, point, expect)
    }

    /// Restores a connection to a point in its past.
    ///
    /// # Errors
    /// As [`Graph::restore`].
    pub fn restore_connection(
        &self,
        note: Note,
        id: &str,
        point: &Point,
        expect: Option<&str>,
    ) -> Result<Done<Restored>> {
        self.restore_thing(note, Thing::Connection, id, point, expect)
    }

    fn restore_thing(
        &self,
        note: Note,
        thing: Thing,
        id: &str,
        point: &Point,
        expect: Option<&str>,
    ) -> Result<Done<Restored>> {
        self.past_of_thing(thing, id)?;
        self.change(note, &format!("restoring the {} `{id}`", thing.noun()), |draft| {
            let former = self.former(thing, id, point)?;
            let was_there = former.is_some();
            Ok(match (draft.restore(thing, id, former, expect)?, was_there) {
                (false, _) => Restored::Unchanged,
                (true, true) => Restored::Written,
                (true, false) => Restored::Deleted,
            })
        })
    }

    fn former(&self, thing: Thing, id: &str, point: &Point) -> Result<Option<Former>> {
        let Some(bytes) = self.memory.read_past(&self.layout.meta(thing, id)?, point)? else {
            return Ok(None);
        };
        let entry = Entry::read(thing, id, bytes)?;
        let Some(storage) = entry.storage() else { return Ok(Some(Former { entry, content: None })) };
        let at = self.layout.content(&storage.path)?;
        let there = self.store().read_optional(&at)?;
        let content = match point {
            _ if there.is_some_and(|there| Version::of(&there.bytes).as_str() == storage.hash) => None,
            Point::Moment(_) => self.memory.read_past(&at, point)?,
            // The version is that of the entry, which names its content by hash.
            Point::Version(_) => {
                let version = Point::Version(Version::new(storage.hash.as_str()));
                self.memory.read_past(&at, &version)?
            }
        };
        Ok(Some(Former { entry, content }))
    }
}
