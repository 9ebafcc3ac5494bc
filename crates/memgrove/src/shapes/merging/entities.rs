//! Entities: the union of observations, relations and tags.

use super::Texts;
use crate::locator::Locator;
use crate::shapes::entities::Document;

pub(super) fn fits(at: &Locator) -> bool {
    at.name().ends_with(".md") && at.parts().any(|part| part == "entities")
}

/// Our file with what only they know; `None` if they have text that is neither.
pub(super) fn merge(texts: &Texts<'_>) -> Option<String> {
    let (mut ours, theirs) = (Document::parse(texts.ours), Document::parse(texts.theirs));
    let base = texts.base.map(|text| Document::parse(text).entity("", "")).unwrap_or_default();
    let (mine, yours) = (ours.entity("", ""), theirs.entity("", ""));
    if ours.is_ordinary() || theirs.is_ordinary() || mine.name != yours.name {
        return None;
    }
    let mut merged = mine.clone();
    merged.observations = united(&base.observations, &mine.observations, &yours.observations);
    merged.relations = united(&base.relations, &mine.relations, &yours.relations);
    merged.tags = united(&base.tags, &mine.tags, &yours.tags);
    merged.updated = mine.updated.max(yours.updated.clone());
    merged.created = match (mine.created, yours.created.clone()) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    ours.update(&merged);
    let text = ours.print();
    // Prose of theirs that is no observation must not be lost: then lines are merged instead.
    let mut reduced = theirs;
    let mut bare = yours;
    (bare.observations, bare.relations, bare.tags) = (Vec::new(), Vec::new(), Vec::new());
    (bare.created, bare.updated) = (merged.created, merged.updated);
    reduced.update(&bare);
    let known = |line: &str| text.contains(line) || texts.base.is_some_and(|base| base.contains(line));
    reduced.print().lines().filter(|line| !line.trim().is_empty()).all(known).then_some(text)
}

/// Ours in our order without what they removed, then what they added.
fn united<T: PartialEq + Clone>(base: &[T], ours: &[T], theirs: &[T]) -> Vec<T> {
    let kept = ours.iter().filter(|one| theirs.contains(one) || !base.contains(one));
    let added = theirs.iter().filter(|one| !ours.contains(one) && !base.contains(one));
    kept.chain(added).cloned().collect()
}
