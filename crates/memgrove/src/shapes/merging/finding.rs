//! Which files are in conflict, and how a copy is merged into its file as one change.

use serde::Serialize;
use serde_json::Value;

use super::ancestry::merge_with_history;
use super::{Merged, TAKE_ONE};
use crate::backend::{Edit, Expect, Note, Version};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::locator::copies::{Copy, Family, copy_of, placeholder};
use crate::memory::{Done, Memory, Plan};
use crate::store::Store;
use crate::text::merge::markers;

/// The largest file that is searched for markers.
const MARKED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A file that a person should look at.
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
    /// A file beside another with a name that sync tools use for copies, and people for other files.
    Perhaps {
        /// The file.
        at: String,
        /// The file that it may be a copy of.
        of: String,
        /// The tool.
        by: &'static str,
    },
    /// A file with git's conflict markers, which are reported and never resolved.
    Markers {
        /// The file.
        at: String,
        /// The lines on which conflicts begin.
        lines: Vec<usize>,
    },
    /// A file whose content is not on this machine.
    Placeholder {
        /// The placeholder.
        at: String,
        /// The file that it stands for.
        of: String,
    },
}

/// Which side to take if a merge is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The file itself.
    Ours,
    /// The copy.
    Theirs,
}

/// Returns every conflict of a store, in the order of keys.
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
            let (of_key, by) = (of.key().to_owned(), copy.family.name());
            if is_copy(store, &info.locator, &copy, &of)? {
                found.push(Conflict::Copy { at, of: of_key, base_exists, by });
                continue;
            }
            if base_exists {
                found.push(Conflict::Perhaps { at: at.clone(), of: of_key, by });
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

/// Whether a file is a copy: its name leaves no doubt, or its content shows it.
fn is_copy(store: &Store, at: &Locator, named: &Copy, of: &Locator) -> Result<bool> {
    Ok(named.family.is_certain() || same_thing(store, at, of)?)
}

/// Whether two files are about the same thing: the same id, the same entity, or a record in common.
fn same_thing(store: &Store, one: &Locator, other: &Locator) -> Result<bool> {
    let (Ok(one), Ok(other)) = (store.read(one), store.read(other)) else { return Ok(false) };
    let ids = [ids_of(&one), ids_of(&other)];
    Ok(ids[0].iter().any(|id| ids[1].contains(id)))
}

/// Returns what identifies the content of a text.
fn ids_of(text: &str) -> Vec<String> {
    let id = |text: &str| Some(serde_json::from_str::<Value>(text).ok()?.get("id")?.as_str()?.to_owned());
    if let Some(id) = id(text) {
        return vec![id];
    }
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    match lines.next() {
        Some("---") => {
            let front = lines.take_while(|line| *line != "---");
            front.filter_map(|line| line.strip_prefix("id:")).map(|id| id.trim().to_owned()).collect()
        }
        Some(first) if first.starts_with("# Entity: ") => vec![first.to_owned()],
        _ => text.lines().filter_map(id).collect(),
    }
}

/// Merges a copy into its file and removes the copy, as one change. The history keeps both as they were.
///
/// # Errors `NotFound` if the copy does not exist; `Invalid` for a file that is not certainly a copy,
/// unless a side is taken; `Conflict` if both sides changed the same lines and no side is taken, and for
/// names that differ only in case.
pub fn merge_copy(memory: &Memory, note: Note, copy: &Locator, take: Option<Side>) -> Result<Done<Merged>> {
    merge_seen(memory, note, copy, take, &[])
}

/// As [`merge_copy`], if these places are still at the versions that somebody has seen; `None` is for a
/// file that did not exist.
///
/// # Errors
/// As [`merge_copy`]; `Conflict` (`VERSION_MISMATCH`) if a place has changed since.
pub fn merge_seen(
    memory: &Memory,
    note: Note,
    copy: &Locator,
    take: Option<Side>,
    seen: &[(Locator, Option<Version>)],
) -> Result<Done<Merged>> {
    let Some(named) = copy_of(copy.name()) else {
        return Err(Error::new(Kind::Invalid, format!("`{copy}` is not named like a conflict copy"))
            .hint("`memgrove conflicts` lists them"));
    };
    let at = beside(copy, &named.base)?;
    memory.apply(note, |store| {
        for (at, seen) in seen {
            let there = store.info_optional(at)?.and_then(|info| info.version);
            if *seen != there {
                let what = format!("`{at}` was changed since it was looked at");
                let hint = "compare both again, then choose";
                return Err(Error::new(Kind::Conflict, what).code(code::VERSION_MISMATCH).hint(hint));
            }
        }
        let theirs = store.read_bytes(copy)?;
        check_copy(store, copy, &named, &at, take)?;
        let Some(ours) = store.read_optional(&at)? else {
            // The file itself is gone, so the copy takes its place.
            let edits =
                vec![Edit::Rename { from: copy.clone(), to: at.clone(), expect: Expect::At(theirs.version) }];
            return Ok(Plan { edits, outcome: taken(&theirs.bytes, "place") });
        };
        let (merged, bytes) = match take {
            Some(Side::Ours) => (taken(&ours.bytes, "ours"), ours.bytes.clone()),
            Some(Side::Theirs) => (taken(&theirs.bytes, "theirs"), theirs.bytes),
            None if ours.bytes == theirs.bytes => (taken(&ours.bytes, "sameness"), theirs.bytes),
            None => {
                let merged = merged(store, &at, &ours.bytes, &theirs.bytes)?;
                let bytes = merged.text.clone().into_bytes();
                (merged, bytes)
            }
        };
        let mut edits = vec![Edit::Delete { at: copy.clone(), expect: Expect::At(theirs.version) }];
        if bytes != ours.bytes {
            edits.insert(
                0,
                Edit::Write { at: at.clone(), bytes: bytes.into(), expect: Expect::At(ours.version) },
            );
        }
        Ok(Plan { edits, outcome: merged })
    })
}

/// Refuses a file that is not certainly a copy.
fn check_copy(store: &Store, copy: &Locator, named: &Copy, at: &Locator, take: Option<Side>) -> Result<()> {
    if named.family == Family::CaseClash {
        let why = format!(
            "`{copy}` is not a copy, but another file whose name differed from a neighbour's in case alone"
        );
        return Err(Error::new(Kind::Conflict, why).hint("give it a name of its own, or delete it"));
    }
    // A caller who names it and says which side to take knows what it is; the history keeps both.
    if is_copy(store, copy, named, at)? || take.is_some() && store.exists(at)? {
        return Ok(());
    }
    Err(Error::new(
        Kind::Invalid,
        format!("`{copy}` may be a file of its own: nothing says that it is `{at}`"),
    )
    .hint("if it is a copy of a file beside it, name it and say which to take: --take ours or --take theirs"))
}

/// Merges both texts into one.
fn merged(store: &Store, at: &Locator, ours: &[u8], theirs: &[u8]) -> Result<Merged> {
    let (Ok(ours), Ok(theirs)) = (str::from_utf8(ours), str::from_utf8(theirs)) else {
        let why = format!("`{at}` or its copy is not text, and cannot be merged");
        return Err(Error::new(Kind::Conflict, why).hint(TAKE_ONE));
    };
    let merged = merge_with_history(store, at, ours, theirs)?;
    match merged.clashes {
        0 => Ok(merged),
        clashes => {
            let why = format!("`{at}` and its copy changed the same lines in {clashes} places");
            Err(Error::new(Kind::Conflict, why).hint(TAKE_ONE))
        }
    }
}

fn taken(bytes: &[u8], by: &str) -> Merged {
    Merged { text: String::from_utf8_lossy(bytes).into_owned(), clashes: 0, by: by.to_owned() }
}
