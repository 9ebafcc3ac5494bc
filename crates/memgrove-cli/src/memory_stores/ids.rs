//! Which memory is which when the history no longer tells: ids derive from the changes that made the
//! memories, and those may be pruned.

use memgrove::backend::{Edit, Expect, Past, upkeep};
use memgrove::clock::Timestamp;
use memgrove::memory::Plan;
use memgrove::{Locator, Result, Store};
use serde::{Deserialize, Serialize};

use super::{Catalog, note, roots};
use crate::context::Context;

/// The file in which ids are written down.
const PLACE: &str = "memory_stores/ids.json";

/// One memory, as it was when the history was pruned.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) id: String,
    /// Where it was, unless it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<Locator>,
    /// Its last version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) created_at: Option<Timestamp>,
}

/// Writes down the ids of all memories in memory stores, for when the history is pruned.
///
/// # Errors
/// As [`memgrove::Memory::apply`].
pub(crate) fn keep_ids(cx: &Context) -> Result<()> {
    let kept = cx.changing()?.apply(note(cx, upkeep::MEMORY_IDS, None), |store| {
        let roots = roots(cx, store)?;
        let mut catalog = Catalog::default();
        if !roots.is_empty() {
            catalog.refresh(cx)?;
        }
        let (at, kept) = (Locator::new(PLACE)?, catalog.kept(&roots));
        let there = store.read_optional(&at)?;
        let bytes = serde_json::to_vec_pretty(&kept).expect("ids are plain data");
        let is_new = there.as_ref().map_or(!kept.is_empty(), |there| there.bytes != bytes);
        let expect = there.map_or(Expect::Absent, |there| Expect::At(there.version));
        let edits = is_new.then(|| Edit::Write { at, bytes: bytes.into(), expect }).into_iter().collect();
        Ok(Plan { edits, outcome: () })
    });
    kept.map(drop)
}

/// Reads the ids that were written down; none if the file cannot be understood.
pub(crate) fn kept(store: &Store) -> Result<Vec<Kept>> {
    let there = store.read_optional(&Locator::new(PLACE)?)?;
    Ok(there.and_then(|there| serde_json::from_slice(&there.bytes).ok()).unwrap_or_default())
}

/// Whether a change wrote ids down.
pub(crate) fn are_kept_by(past: &Past) -> bool {
    past.edits.iter().any(|edit| edit.at.key() == PLACE)
}
