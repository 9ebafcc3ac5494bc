//! The lines of the tail: what is newer than the registry.
//!
//! A tail begins with the mark of the registry that it continues, and the registry has the same
//! mark: so it is seen when one of them is lost, or is of another time than the other.

use serde::Deserialize;

use super::entry::Entry;
use super::place::Thing;

/// That something is now this.
pub(super) fn said(thing: Thing, entry: &Entry) -> String {
    format!("{{\"{}\":{}}}\n", thing.noun(), entry.compact())
}

/// That something is gone.
pub(super) fn gone(thing: Thing, id: &str) -> String {
    let quoted = serde_json::to_string(id).expect("a string is JSON");
    format!("{{\"deleted_{}\":{quoted}}}\n", thing.noun())
}

/// How a tail begins.
pub(super) fn begun(mark: &str) -> String {
    format!("{{\"continues\":\"{mark}\"}}\n")
}

/// A mark that no other registry has.
pub(super) fn mark(random: [u8; 16]) -> String {
    random[..8].iter().zip(&random[8..]).map(|(one, other)| format!("{:02x}", one ^ other)).collect()
}

/// The mark that a tail begins with; those of old have none.
pub(super) fn mark_of(tail: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct First {
        continues: String,
    }
    let first = tail.split(|byte| *byte == b'\n').next()?;
    serde_json::from_slice::<First>(first).ok().map(|first| first.continues)
}
