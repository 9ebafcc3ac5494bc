//! The past of nodes and connections.

use super::Graph;
use super::draft::Former;
use super::entry::Entry;
use super::place::Thing;
use crate::backend::{HistoryQuery, Note, Version};
use crate::error::Result;
use crate::locator::Locator;
use crate::memory::{Done, Point, Restored};

impl Graph {
    /// The file that every change of a node writes, by which its history is known: also of one that
    /// is deleted.
    ///
    /// # Errors
    /// `NotFound` (`NODE_NOT_FOUND`) for what never was.
    pub fn past_of(&self, id: &str) -> Result<Locator> {
        self.past_of_thing(Thing::Node, id)
    }

    /// The same of a connection.
    ///
    /// # Errors
    /// `NotFound` (`CONNECTION_NOT_FOUND`) for what never was.
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

    /// Makes a node what it was at a point in its past, with its content. One that was not there
    /// then is removed.
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

    /// Makes a connection what it was at a point in its past.
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
            // A version is one of what is said; that names the content by its hash.
            Point::Version(_) => {
                let version = Point::Version(Version::new(storage.hash.as_str()));
                self.memory.read_past(&at, &version)?
            }
        };
        Ok(Some(Former { entry, content }))
    }
}
