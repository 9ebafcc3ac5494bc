//! The registry as an account of the files that say what nodes and connections are: when one of them
//! is put back to what it was, past the graph, the tail says so.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::entry::Entry;
use super::place::{Layout, REGISTRY, TAIL};
use super::tail;
use crate::backend::{Bytes, Edit, Expect};
use crate::error::Result;
use crate::locator::Locator;
use crate::memory::{Account, Memory};

struct Registry {
    layout: Layout,
}

impl Account for Registry {
    fn holds(&self, at: &Locator) -> bool {
        self.layout.is_derived(at)
    }

    fn told(&self, now: &BTreeMap<Locator, Option<Bytes>>) -> Result<Vec<Edit>> {
        let mut lines = String::new();
        for (at, bytes) in now {
            let Some((thing, id)) = self.layout.said_at(at) else { continue };
            match bytes.as_ref().map(|bytes| Entry::read(thing, id, bytes.to_vec())) {
                None => lines.push_str(&tail::gone(thing, id)),
                Some(Ok(entry)) => lines.push_str(&tail::said(thing, &entry)),
                // What cannot be read is told by the check.
                Some(Err(_)) => {}
            }
        }
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![Edit::Append { at: self.layout.system(TAIL)?, bytes: lines.into(), expect: Expect::Any }])
    }
}

/// A memory that keeps the registry of the graph beneath `root` true when changes are taken back.
///
/// # Errors
/// For a root that is too long.
pub fn kept_true(memory: Memory, root: &Locator) -> Result<Memory> {
    let layout = Layout { root: root.clone() };
    Ok(memory.with_account(&layout.system(REGISTRY)?, Arc::new(Registry { layout })))
}
