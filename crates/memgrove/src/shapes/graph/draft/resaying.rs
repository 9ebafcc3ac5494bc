//! How an entry that somebody edited by hand is written, and how a change expects what somebody has seen.

use super::making::check_kind;
use super::{Draft, Entry};
use crate::backend::{Expect, Version};
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::shapes::graph::place::Thing;

impl Draft<'_> {
    /// Refuses if a file is no longer at the version that somebody has seen.
    pub(in crate::shapes::graph) fn rest_on(&mut self, at: &Locator, seen: &Version) -> Result<()> {
        self.touch(at)?;
        Expect::At(seen.clone()).check(at, self.files[at].before.as_ref())
    }

    /// Replaces the entry of a node or connection with a text, as it is written. Where its content is and
    /// which nodes it connects cannot be changed this way; an entry that cannot be read can be repaired.
    pub(in crate::shapes::graph) fn resay(&mut self, thing: Thing, id: &str, text: &str) -> Result<Entry> {
        let new = Entry::read(thing, id, text.as_bytes().to_vec());
        let new = new.map_err(|error| Error::new(Kind::Invalid, error.message()))?;
        let old = match self.entry(thing, id) {
            Err(error) if error.kind() == Kind::Corrupt => {
                self.say(thing, id, &new)?;
                return Ok(new);
            }
            old => old?,
        };
        let refused = |what: &str| {
            let message = format!("{what} of the {} `{id}` cannot be changed here", thing.noun());
            Error::new(Kind::Invalid, message).hint("leave it as it was")
        };
        if old.storage() != new.storage() {
            return Err(refused("`storage`"));
        }
        match thing {
            Thing::Node => {
                check_kind(thing, &new.node()?.kind)?;
                self.keep_node(id, &old, new)
            }
            Thing::Connection => {
                let (before, after) = (old.connection()?, new.connection()?);
                if (before.from, before.to) != (after.from, after.to) {
                    return Err(refused("`from` and `to`"));
                }
                check_kind(thing, &after.kind)?;
                self.keep_connection(id, &old, new)
            }
        }
    }
}
