//! How the lines of the tail look, which hold the entries newer than the registry.
//!
//! A tail begins with the mark of the registry that it continues, and the registry has the same mark, so
//! that it shows when one of them is lost or outdated.

use serde::Deserialize;

use super::entry::Entry;
use super::place::Thing;

/// Returns the line for the new entry of something.
pub(super) fn said(thing: Thing, entry: &Entry) -> String {
    format!("{{\"{}\":{}}}\n", thing.noun(), entry.compact())
}

/// Returns the line for something that is removed.
pub(super) fn gone(thing: Thing, id: &str) -> String {
    let quoted = serde_json::to_string(id).expect("a string is JSON");
    format!("{{\"deleted_{}\":{quoted}}}\n", thing.noun())
}

/// Returns the first line of a tail.
pub(super) fn begun(mark: &str) -> String {
    format!("{{\"continues\":\"{mark}\"}}\n")
}

/// Returns a mark that no other registry has.
pub(super) fn mark(random: [u8; 16]) -> String {
    random[..8].iter().zip(&random[8..]).map(|(one, other)| format!("{:02x}", one ^ other)).collect()
}

/// Returns the mark that a tail begins with; old ones have none.
pub(super) fn mark_of(tail: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct First {
        continues: String,
    }
    let first = tail.split(|byte| *byte == b'\n').next()?;
    serde_json::from_slice::<First>(first).ok().map(|first| first.continues)
}
