//! Which existing place was most likely meant by a name that does not exist.

use crate::backend::{self, Depth, FileKind};
use crate::error::Error;
use crate::locator::Locator;
use crate::store::Store;

/// Returns the error for a missing place, with the nearest existing one as its hint.
pub(super) fn absent(store: &Store, at: &Locator) -> Error {
    let error = backend::not_found(at);
    match nearest(store, at) {
        Some(nearest) => error.hint(format!("did you mean `{nearest}`?")),
        None => error.hint("`memgrove file view` shows what is there"),
    }
}

/// Returns a sibling whose name is spelled almost the same, or else the same name in another folder;
/// nothing if the folder cannot be listed.
fn nearest(store: &Store, at: &Locator) -> Option<Locator> {
    let wanted = folded(at.name());
    let siblings = store.backend().list(&at.parent()?, Depth::Children).ok()?;
    let sibling = siblings
        .into_iter()
        .filter(|info| info.kind != FileKind::Other)
        .map(|info| (distance(&wanted, &folded(info.locator.name())), info.locator))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= (wanted.len() / 3).clamp(1, 4));
    if let Some((_, sibling)) = sibling {
        return Some(sibling);
    }
    // Only the shape's own folder is searched: a file of another shape would be no help.
    let top = Locator::new(at.parts().next()?).ok()?;
    let top = if top == *at { Locator::root() } else { top };
    let mut elsewhere = store.list_all(&top).ok()?;
    elsewhere.retain(|info| info.kind == FileKind::File);
    let same_name = |info: &&backend::Info| folded(info.locator.name()) == wanted;
    let same_stem = |info: &&backend::Info| stem(&folded(info.locator.name())) == stem(&wanted);
    let found = elsewhere.iter().find(same_name).or_else(|| elsewhere.iter().find(same_stem));
    found.map(|info| info.locator.clone())
}

fn folded(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).collect()
}

/// The name without its extension.
fn stem(name: &[char]) -> &[char] {
    match name.iter().rposition(|char| *char == '.') {
        Some(dot) if dot > 0 => &name[..dot],
        _ => name,
    }
}

/// Returns how many characters must be added, dropped, changed or swapped to turn one name into the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_slips() {
        let check = |a: &str, b: &str, slips: usize| {
            assert_eq!(distance(&folded(a), &folded(b)), slips, "{a} and {b}");
        };
        check("", "", 0);
        check("", "ab", 2);
        check("notes.md", "Notes.MD", 0);
        check("notes.md", "note.md", 1);
        check("notes.md", "ntoes.md", 1);
        check("notes.md", "nites.md", 1);
        check("kitten", "sitting", 3);
    }
}
