//! How two copies of a note become one: by the union of blocks, links and metadata.

use super::Texts;
use crate::locator::Locator;
use crate::shapes::notes::union;

pub(super) fn fits(at: &Locator) -> bool {
    at.name().ends_with(".md") && at.parts().any(|part| part == "notes")
}

/// Merges both notes; `None` if lines must be merged instead.
pub(super) fn merge(texts: &Texts<'_>) -> Option<String> {
    union(texts.base, texts.ours, texts.theirs)
}
