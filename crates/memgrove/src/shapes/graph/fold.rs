//! How the tail is folded into the registry, so that a reader who knows only `registry.json` is never far
//! behind, and the cost of a change does not grow with the graph.
//!
//! First the tail is renamed, atomically and whatever is being added to it; the next change begins a new
//! tail. Then the registry is written with the old tail's lines. It is derived, so it is not in the
//! history, which would otherwise grow by a whole registry each time. Last, a change that is confirmed
//! only when the registry is durable removes the old tail. After a crash in between, the next fold takes
//! in the file that was left: its lines are whole entries, so reading them twice does no harm.

use serde::{Deserialize, Serialize};

use super::id::Given;
use super::place::{FOLDING, Layout, NUMBERS, REGISTRY, TAIL};
use super::shelf::{Glance, Shelf};
use super::{registry, tail};
use crate::backend::{Edit, Expect, Version};
use crate::error::Result;
use crate::memory::Plan;
use crate::store::Store;

/// A smaller tail is not folded.
const TAIL_BYTES_MIN: u64 = 16 * 1024;
/// Nor is a tail of less than one part in this many of the registry, so folding costs a bounded part of
/// writing.
const TAIL_SHARE: u64 = 8;

/// Whether the tail has grown enough to be folded, or a fold was left unfinished.
pub(super) fn is_due(seen: &Glance) -> bool {
    seen.has(FOLDING) || seen.size(TAIL) >= TAIL_BYTES_MIN.max(seen.size(REGISTRY) / TAIL_SHARE)
}

/// Renames the tail, and begins another with the mark of the registry to be written.
pub(super) fn freeze(store: &Store, layout: &Layout, mark: &str) -> Result<Plan<()>> {
    let seen = Glance::of(store, layout)?;
    let mut edits = Vec::new();
    if seen.has(TAIL) && !seen.has(FOLDING) {
        edits.push(Edit::Rename {
            from: layout.system(TAIL)?,
            to: layout.system(FOLDING)?,
            expect: Expect::Any,
        });
        let bytes = tail::begun(mark).into();
        edits.push(Edit::Write { at: layout.system(TAIL)?, bytes, expect: Expect::Absent });
    }
    Ok(Plan { edits, outcome: () })
}

/// What a fold has taken into the registry.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Folded {
    /// The version of the renamed tail.
    folding: Version,
}

/// Writes a registry that contains the renamed tail.
pub(super) fn fold(store: &Store, layout: &Layout, shelf: &mut Shelf) -> Result<Plan<Option<Folded>>> {
    // What was read earlier may be outdated, and only the present registry may be replaced.
    shelf.forget();
    shelf.refresh(store, layout)?;
    let Some(folding) = shelf.folding_version.clone().filter(|_| shelf.loss.is_none()) else {
        return Ok(Plan { edits: Vec::new(), outcome: None });
    };
    let mut numbers = shelf.catalog.numbers.clone();
    if let Some(hint) = store.read_optional(&layout.system(NUMBERS)?)?
        && let Some(known) = Given::read(&hint.bytes)
    {
        numbers.join(&known.numbers);
    }
    let numbers = Given { numbers, tail: None }.print();
    let expect = shelf.registry_version.clone().map_or(Expect::Absent, Expect::At);
    shelf.catalog.mark.clone_from(&shelf.tail_mark);
    let bytes = registry::print(&shelf.catalog).into_bytes();
    let folded = Folded { folding };
    let edits = vec![
        Edit::Write { at: layout.system(REGISTRY)?, bytes: bytes.into(), expect },
        Edit::Write { at: layout.system(NUMBERS)?, bytes: numbers.into(), expect: Expect::Any },
    ];
    Ok(Plan { edits, outcome: Some(folded) })
}

/// Removes the renamed tail once the registry contains it. If another process has folded meanwhile,
/// removing it is left to that process.
pub(super) fn clear(
    store: &Store,
    layout: &Layout,
    folded: &Folded,
    registry: Option<&Version>,
) -> Result<Plan<()>> {
    let version = |name: &str| Ok(store.read_optional(&layout.system(name)?)?.map(|file| file.version));
    let mut edits = Vec::new();
    if version(FOLDING)?.as_ref() == Some(&folded.folding) && version(REGISTRY)?.as_ref() == registry {
        let expect = Expect::At(folded.folding.clone());
        edits.push(Edit::Delete { at: layout.system(FOLDING)?, expect });
    }
    Ok(Plan { edits, outcome: () })
}
