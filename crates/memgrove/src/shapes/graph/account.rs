//! How the registry is kept true as an account of the graph's entry files: when an undo or restore outside
//! the graph puts one back, the tail of the registry records it. If that would leave a connection without
//! an end it is refused, as everywhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::catalog::Catalog;
use super::draft::connected;
use super::entry::{Connection, Entry};
use super::place::{Layout, REGISTRY, TAIL, Thing};
use super::shelf::Shelf;
use super::{id, tail};
use crate::backend::{Bytes, Edit, Expect, Version};
use crate::error::Result;
use crate::locator::Locator;
use crate::memory::{Account, Memory};
use crate::store::Store;

struct Registry {
    layout: Layout,
}

/// What files will hold; `None` if they will be gone.
type Left = BTreeMap<Locator, Option<Bytes>>;

impl Account for Registry {
    fn holds(&self, at: &Locator) -> bool {
        self.layout.is_derived(at)
    }

    fn told(&self, store: &Store, now: &Left) -> Result<Vec<Edit>> {
        let mut lines = String::new();
        let (mut gone, mut made) = (Vec::new(), Vec::new());
        for (at, bytes) in now {
            let Some((thing, id)) = self.layout.said_at(at) else { continue };
            match bytes.as_ref().map(|bytes| Entry::read(thing, id, bytes.to_vec())) {
                None => {
                    lines.push_str(&tail::gone(thing, id));
                    gone.extend((thing == Thing::Node).then_some(id));
                }
                Some(Ok(entry)) => {
                    lines.push_str(&tail::said(thing, &entry));
                    made.extend((thing == Thing::Connection).then(|| entry.connection()).transpose()?);
                }
                // The graph's check reports what cannot be read.
                Some(Err(_)) => {}
            }
        }
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        let mut shelf = Shelf::default();
        let mut held = BTreeMap::new();
        for one in &made {
            self.hold_ends(store, &mut shelf, now, one, &mut held)?;
        }
        let mut expect = Expect::Any;
        if !gone.is_empty() {
            let (catalog, _) = shelf.believable(store, &self.layout)?;
            gone.iter().try_for_each(|id| self.refuse_connected(catalog, now, id))?;
            // So that nobody can connect them meanwhile.
            expect = shelf.tail_version.clone().map_or(Expect::Absent, Expect::At);
        }
        let mut edits: Vec<Edit> = (held.into_iter())
            .map(|(at, version)| Edit::Append { at, bytes: Bytes::new(), expect: Expect::At(version) })
            .collect();
        edits.push(Edit::Append { at: self.layout.system(TAIL)?, bytes: lines.into(), expect });
        Ok(edits)
    }
}

impl Registry {
    /// Refuses a new or changed connection with an end that will not exist, and otherwise pins the ends to
    /// their versions.
    fn hold_ends(
        &self,
        store: &Store,
        shelf: &mut Shelf,
        now: &Left,
        one: &Connection,
        held: &mut BTreeMap<Locator, Version>,
    ) -> Result<()> {
        let there = store.read_optional(&self.layout.meta(Thing::Connection, &one.id)?)?;
        let there = there.and_then(|content| Entry::read(Thing::Connection, &one.id, content.bytes).ok());
        let there = there.and_then(|entry| entry.connection().ok());
        if there.is_some_and(|there| (&there.from, &there.to) == (&one.from, &one.to)) {
            return Ok(());
        }
        for end in [&one.from, &one.to] {
            let unknown = || {
                let error = Thing::Node.unknown(end);
                let hint = format!(
                    "`{}` connects it: restore the node first: `memgrove history node:{end}` shows its past",
                    one.id
                );
                error.hint(hint)
            };
            id::check(end).map_err(|_| unknown())?;
            let at = self.layout.meta(Thing::Node, end)?;
            match now.get(&at) {
                Some(Some(_)) => continue,
                Some(None) => return Err(unknown()),
                None => {}
            }
            match store.info_optional(&at)?.and_then(|info| info.version) {
                Some(version) => drop(held.insert(at, version)),
                None if shelf.believable(store, &self.layout)?.0.node_text(end).is_some() => {}
                None => return Err(unknown()),
            }
        }
        Ok(())
    }

    /// Refuses to remove a node that remaining connections lead to.
    fn refuse_connected(&self, catalog: &Catalog, now: &Left, id: &str) -> Result<()> {
        let mut staying = Vec::new();
        for one in catalog.touching(id).into_iter().filter(|_| catalog.node_text(id).is_some()) {
            let said = self.layout.meta(Thing::Connection, &one.id)?;
            staying.extend((now.get(&said) != Some(&None)).then_some(one));
        }
        match staying.is_empty() {
            true => Ok(()),
            false => Err(connected(id, &staying).hint("delete them first, or undo what made them")),
        }
    }
}

/// Returns a memory that keeps the registry of the graph beneath `root` true when changes are undone.
///
/// # Errors
/// If the root is too long.
pub fn kept_true(memory: Memory, root: &Locator) -> Result<Memory> {
    let layout = Layout { root: root.clone() };
    Ok(memory.with_account(&layout.system(REGISTRY)?, Arc::new(Registry { layout })))
}
