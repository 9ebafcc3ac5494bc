//! How two copies of one file become one, by what the file means.
//!
//! Records are merged by their ids, entities by their observations, notes by their blocks, anything else
//! line by line. With a common ancestor, what one side removed stays removed; without one, nothing is
//! removed.

mod ancestry;
mod entities;
mod finding;
mod notes;
mod records;

pub use finding::{Conflict, Side, find, merge_copy, merge_seen};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::text::merge::three_way;

/// How one kind of file is merged.
pub struct Merger {
    /// The name by which a result says which merger made it.
    pub name: &'static str,
    /// Whether a file is of that kind.
    pub fits: fn(&Locator) -> bool,
    /// Whether parts are identified by their text alone, so that a changed part and a new one can be told
    /// apart only with a common version.
    pub by_text: bool,
    /// Merges; `None` if the files cannot be read as that kind without loss.
    pub merge: fn(&Texts<'_>) -> Option<String>,
}

/// One merger for each shape whose files are more than lines. The first that fits is used.
pub const MERGERS: &[Merger] = &[
    Merger { name: "records", fits: records::fits, by_text: false, merge: records::merge },
    Merger { name: "entities", fits: entities::fits, by_text: false, merge: entities::merge },
    Merger { name: "notes", fits: notes::fits, by_text: true, merge: notes::merge },
];

/// The hint where a person has to decide.
const TAKE_ONE: &str =
    "compare both, then take one with --take ours or --take theirs; the history keeps the other";

/// The three texts of a merge.
pub struct Texts<'a> {
    /// The text that both come from, if it is known.
    pub base: Option<&'a str>,
    /// The text of the file itself.
    pub ours: &'a str,
    /// The text of the copy.
    pub theirs: &'a str,
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merged {
    /// The text; with git's markers where there are clashes.
    pub text: String,
    /// How many places both sides changed differently.
    pub clashes: usize,
    /// Which merger did it.
    pub by: String,
}

/// Merges two texts of a file.
///
/// # Errors
/// `Conflict` where lines differ and no common version is known.
pub fn merge(at: &Locator, texts: &Texts<'_>) -> Result<Merged> {
    by_meaning(at, texts).map_or_else(|| by_lines(at, texts), Ok)
}

/// Merges by what the file means; `None` if no merger fits.
fn by_meaning(at: &Locator, texts: &Texts<'_>) -> Option<Merged> {
    let merged = |text: String, by: &str| Merged { text, clashes: 0, by: by.to_owned() };
    if texts.ours == texts.theirs || texts.base == Some(texts.theirs) {
        return Some(merged(texts.ours.to_owned(), "sameness"));
    }
    if texts.base == Some(texts.ours) {
        return Some(merged(texts.theirs.to_owned(), "theirs"));
    }
    let mut fitting = MERGERS.iter().filter(|merger| (merger.fits)(at));
    fitting.find_map(|merger| Some(merged((merger.merge)(texts)?, merger.name)))
}

/// Returns ours, in our order, without what they removed, followed by what they added.
fn united<T: PartialEq + Clone>(base: &[T], ours: &[T], theirs: &[T]) -> Vec<T> {
    let kept = ours.iter().filter(|one| theirs.contains(one) || !base.contains(one));
    let added = theirs.iter().filter(|one| !ours.contains(one) && !base.contains(one));
    kept.chain(added).cloned().collect()
}

fn by_lines(at: &Locator, texts: &Texts<'_>) -> Result<Merged> {
    let Some(base) = texts.base else {
        let why = format!("`{at}` and its copy have no common version in the history");
        return Err(Error::new(Kind::Conflict, why).hint(TAKE_ONE));
    };
    if base == texts.ours {
        return Ok(Merged { text: texts.theirs.to_owned(), clashes: 0, by: "theirs".to_owned() });
    }
    let three = three_way(base, texts.ours, texts.theirs);
    Ok(Merged { text: three.text, clashes: three.clashes, by: "lines".to_owned() })
}
