//! How nodes and connections are restored.

use super::Draft;
use super::connecting::Removal;
use crate::error::Result;
use crate::shapes::graph::entry::Entry;
use crate::shapes::graph::place::Thing;

/// An earlier state of a node or connection.
pub(in crate::shapes::graph) struct Former {
    /// Its entry then.
    pub(in crate::shapes::graph) entry: Entry,
    /// Its content then; `None` if it is unknown, or the same as now.
    pub(in crate::shapes::graph) content: Option<Vec<u8>>,
}

impl Draft<'_> {
    /// Restores a node or connection to an earlier state, or removes it if it did not exist then. Returns
    /// whether that changes anything.
    pub(in crate::shapes::graph) fn restore(
        &mut self,
        thing: Thing,
        id: &str,
        former: Option<Former>,
        expect: Option<&str>,
    ) -> Result<bool> {
        let there = self.is_there(thing, id)?;
        if there {
            self.mind(thing, id, expect)?;
        }
        let Some(Former { entry, content }) = former else {
            match thing {
                _ if !there => {}
                Thing::Node => drop(self.delete(id, Removal::Refuse, None)?),
                Thing::Connection => drop(self.disconnect(id, None)?),
            }
            return Ok(there);
        };
        let old = if there { self.entry(thing, id).ok() } else { None };
        if thing == Thing::Connection {
            let new = entry.connection()?;
            let old = old.as_ref().and_then(|old| old.connection().ok());
            if old.is_none_or(|old| (old.from, old.to) != (new.from.clone(), new.to.clone())) {
                self.hold(&new.from)?;
                self.hold(&new.to)?;
            }
        }
        let (old_storage, new_storage) = (old.as_ref().and_then(Entry::storage), entry.storage());
        let (old_path, new_path) =
            (old_storage.as_ref().map(|old| &old.path), new_storage.as_ref().map(|new| &new.path));
        let mut changed = old.as_ref() != Some(&entry);
        if old_path != new_path {
            self.drop_content(thing, id, old_storage.as_ref())?;
        }
        if let (Some(content), Some(storage)) = (content, &new_storage) {
            let at = self.desk.layout.content(&storage.path)?;
            if self.bytes(&at)? != Some(&content[..]) {
                self.put(&at, Some(content.into()))?;
                changed = true;
            }
        }
        if old.as_ref() != Some(&entry) {
            self.say(thing, id, &entry)?;
        }
        Ok(changed)
    }
}
