//! Which files are in conflict, and the merge of a copy into its file as one change.

use serde::Serialize;
use serde_json::Value;

use super::{Merged, Texts, merge};
use crate::backend::{Edit, Expect, HistoryQuery, Moment, Note, Version};
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::locator::copies::{copy_of, placeholder};
use crate::memory::{Done, Memory, Plan};
use crate::store::Store;
use crate::text::merge::markers;

/// How many past versions are looked at for the one that both sides come from.
const ANCESTORS_MAX: usize = 20;
/// The largest file that is searched for markers.
const MARKED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A file that needs somebody's eye.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Conflict {
    /// A copy that a sync tool made because two machines changed the file.
    Copy {
        /// The copy.
        at: String,
        /// The file that it is a copy of.
        of: String,
        /// Whether that file is there.
        base_exists: bool,
        /// The tool.
        by: &'static str,
    },
    /// git's markers are in the file; they are shown, never resolved.
    Markers {
        /// The file.
        at: String,
        /// The lines on which conflicts begin.
        lines: Vec<usize>,
    },
    /// The file is not on this machine.
    Placeholder {
        /// The placeholder.
        at: String,
        /// The file that it stands for.
        of: String,
    },
}

/// Which side to take where a merge is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What is in the place of the file.
    Ours,
    /// What is in the copy.
    Theirs,
}

/// Every conflict of a store, in the order of keys.
///
/// # Errors
/// As the storage says.
pub fn find(store: &Store) -> Result<Vec<Conflict>> {
    let mut found = Vec::new();
    let all = store.list_all(&Locator::root())?;
    for info in all.iter().filter(|info| info.kind == crate::backend::FileKind::File) {
        let (at, name) = (info.locator.key().to_owned(), info.locator.name());
        if let Some(of) = placeholder(name) {
            found.push(Conflict::Placeholder { at, of: beside(&info.locator, of)?.key().to_owned() });
            continue;
        }
        if let Some(copy) = copy_of(name) {
            let of = beside(&info.locator, &copy.base)?;
            let base_exists = all.iter().any(|other| other.locator == of);
            if copy.family.is_certain() || (base_exists && same_thing(store, &info.locator, &of)?) {
                found.push(Conflict::Copy {
                    at,
                    of: of.key().to_owned(),
                    base_exists,
                    by: copy.family.name(),
                });
                continue;
            }
        }
        if info.size <= MARKED_BYTES_MAX
            && let Ok(text) = store.read(&info.locator)
        {
            let lines = markers(&text);
            if !lines.is_empty() {
                found.push(Conflict::Markers { at, lines });
            }
        }
    }
    Ok(found)
}

fn beside(at: &Locator, name: &str) -> Result<Locator> {
    at.parent().unwrap_or_default().child(name)
}

/// Whether two files say that they are the same thing: the same id in the front matter, the same
/// entity, or a record in common.
fn same_thing(store: &Store, one: &Locator, other: &Locator) -> Result<bool> {
    let (Ok(one), Ok(other)) = (store.read(one), store.read(other)) else { return Ok(false) };
    let ids = [ids_of(&one), ids_of(&other)];
    Ok(ids[0].iter().any(|id| ids[1].contains(id)))
}

/// What a text says that it is.
fn ids_of(text: &str) -> Vec<String> {
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    match lines.next() {
        Some("---") => {
            let front = lines.take_while(|line| *line != "---");
            front.filter_map(|line| line.strip_prefix("id:")).map(|id| id.trim().to_owned()).collect()
        }
        Some(first) if first.starts_with("# Entity: ") => vec![first.to_owned()],
        _ => {
            let id =
                |line: &str| Some(serde_json::from_str::<Value>(line).ok()?.get("id")?.as_str()?.to_owned());
            text.lines().filter_map(id).collect()
        }
    }
}

/// Merges a copy into its file and removes the copy, as one change: the history keeps both as they
/// were.
///
/// # Errors
/// `NotFound` for a copy that is not there; `Conflict` where both sides changed the same lines and
/// no side is taken.
pub fn merge_copy(memory: &Memory, note: Note, copy: &Locator, take: Option<Side>) -> Result<Done<Merged>> {
    let Some(named) = copy_of(copy.name()) else {
        return Err(Error::new(Kind::Invalid, format!("`{copy}` is not named like a conflict copy"))
            .hint("`memgrove conflicts` lists them"));
    };
    let at = beside(copy, &named.base)?;
    memory.apply(note, |store| {
        let theirs = store.read_bytes(copy)?;
        let gone = Edit::Delete { at: copy.clone(), expect: Expect::At(theirs.version.clone()) };
        let Some(ours) = store.read_optional(&at)? else {
            // The file itself is gone: the copy takes its place.
            let edits = vec![Edit::Rename { from: copy.clone(), to: at.clone(), expect: Expect::At(theirs.version) }];
            let text = String::from_utf8_lossy(&theirs.bytes).into_owned();
            return Ok(Plan { edits, outcome: Merged { text, clashes: 0, by: "place".to_owned() } });
        };
        let merged = match take {
            Some(Side::Ours) => taken(&ours.bytes, "ours"),
            Some(Side::Theirs) => taken(&theirs.bytes, "theirs"),
            None => {
                let text = |bytes: &[u8]| crate::store::text(&at, bytes.to_vec());
                let base = ancestor(store, &at, &ours.version, &theirs.bytes)?;
                let (ours, theirs) = (text(&ours.bytes)?, text(&theirs.bytes)?);
                merge(&at, &Texts { base: base.as_deref(), ours: &ours, theirs: &theirs })?
            }
        };
        if merged.clashes > 0 {
            return Err(Error::new(
                Kind::Conflict,
                format!("`{at}` and its copy changed the same lines in {} places", merged.clashes),
            )
            .hint("look at both, then take one of them with --take ours or --take theirs; the history keeps the other"));
        }
        let bytes = match take {
            Some(Side::Theirs) => theirs.bytes,
            Some(Side::Ours) => ours.bytes.clone(),
            None => merged.text.clone().into_bytes(),
        };
        let mut edits = vec![gone];
        if bytes != ours.bytes {
            edits.insert(0, Edit::Write { at: at.clone(), bytes: bytes.into(), expect: Expect::At(ours.version) });
        }
        Ok(Plan { edits, outcome: merged })
    })
}

fn taken(bytes: &[u8], by: &str) -> Merged {
    Merged { text: String::from_utf8_lossy(bytes).into_owned(), clashes: 0, by: by.to_owned() }
}

/// The past version that is nearest to the copy: most likely what both sides come from.
fn ancestor(store: &Store, at: &Locator, now: &Version, theirs: &[u8]) -> Result<Option<String>> {
    let query = HistoryQuery { at: Some(at.clone()), before: None, limit: ANCESTORS_MAX };
    let past = match store.backend().history(&query) {
        Ok(past) => past,
        Err(error) if error.kind() == Kind::Unsupported => return Ok(None),
        Err(error) => return Err(error),
    };
    let theirs = String::from_utf8_lossy(theirs);
    let mut best: Option<(f32, String)> = None;
    for change in past {
        for moment in [Moment::After(change.change.clone()), Moment::Before(change.change)] {
            let Ok(Some(bytes)) = store.backend().read_past(at, &moment) else { continue };
            let Ok(text) = String::from_utf8(bytes) else { continue };
            if Version::of(text.as_bytes()) == *now {
                continue;
            }
            let near = similar::TextDiff::from_lines(&*text, &*theirs).ratio();
            if best.as_ref().is_none_or(|(nearest, _)| near > *nearest) {
                best = Some((near, text));
            }
        }
    }
    Ok(best.map(|(_, text)| text))
}
