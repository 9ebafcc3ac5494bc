//! How `index.json` is written, by which other programs find records: derived, in the format's own form.
//!
//! memgrove never looks anything up in it. It searches the [`Table`] of each file, which is read from the
//! file itself and kept until the file changes. So the index may be missing, damaged, old or wrong, and it
//! does not slow down an addition: [`Records::settle`](super::Records::settle) rewrites it later, if it
//! differs from the files.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::schema::{Importance, RecordType, spelled};
use super::table::Table;
use crate::clock::Timestamp;

/// The file's name.
pub const FILE: &str = "index.json";
/// The version of the format.
pub const VERSION: &str = "1.0.0";

/// The index, as the file holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// The version of the format that the records are in.
    pub version: String,
    /// When it was written.
    pub last_updated: String,
    /// Counts.
    pub statistics: Statistics,
    /// The ids with each tag.
    pub tags_index: BTreeMap<String, Vec<String>>,
    /// The ids in each category.
    pub category_index: BTreeMap<String, Vec<String>>,
    /// The ids with each importance.
    pub importance_index: BTreeMap<String, Vec<String>>,
}

/// Counts of records, archived and not archived.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// Records that are not archived.
    pub total_memories: u64,
    /// The same by type.
    pub by_type: ByType,
    /// Records that are archived.
    pub archived_count: u64,
    /// Bytes of all files of records, archives included.
    pub total_storage_bytes: u64,
}

/// A count of each type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ByType {
    /// Core records.
    pub core: u64,
    /// Learnings.
    pub learning: u64,
    /// Tasks.
    pub task: u64,
}

/// What the archive holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Archived {
    pub(super) records: u64,
    pub(super) bytes: u64,
}

/// Counts the three files and the archive.
pub(super) fn statistics<'a>(tables: impl IntoIterator<Item = &'a Table>, archived: Archived) -> Statistics {
    let mut counts = Statistics {
        archived_count: archived.records,
        total_storage_bytes: archived.bytes,
        ..Statistics::default()
    };
    for table in tables {
        let put_away = table.rows.iter().filter(|row| row.archived).count() as u64;
        let active = table.rows.len() as u64 - put_away;
        counts.total_memories += active;
        counts.archived_count += put_away;
        counts.total_storage_bytes += table.bytes.len() as u64;
        match table.kind {
            RecordType::Core => counts.by_type.core = active,
            RecordType::Learning => counts.by_type.learning = active,
            RecordType::Task => counts.by_type.task = active,
        }
    }
    counts
}

/// Returns the text of the index, in the format's form, with ids in the order of the files.
pub(super) fn text(tables: &[&Table], archived: Archived, version: &str, now: Timestamp) -> String {
    let (mut tags, mut categories) = (BTreeMap::<&str, Vec<&str>>::new(), BTreeMap::<&str, Vec<&str>>::new());
    let mut importances: [Vec<&str>; 3] = Default::default();
    for table in tables {
        for row in table.rows.iter().filter(|row| !row.archived) {
            for tag in &row.tags {
                let ids = tags.entry(tag).or_default();
                if ids.last() != Some(&&*row.id) {
                    ids.push(&row.id);
                }
            }
            if let Some(category) = &row.category {
                categories.entry(category).or_default().push(&row.id);
            }
            importances[row.importance as usize].push(&row.id);
        }
    }
    let statistics = statistics(tables.iter().copied(), archived);
    let quoted = |text: &str| serde_json::to_string(text).expect("a string is JSON");
    let mut out = String::from("{\n");
    let head = serde_json::to_string_pretty(&statistics).expect("counts are plain data");
    let _ = writeln!(out, "  \"version\": {},", quoted(version));
    let _ = writeln!(out, "  \"last_updated\": {},", quoted(&spelled(now)));
    let _ = writeln!(out, "  \"statistics\": {},", head.replace('\n', "\n  "));
    put(&mut out, "tags_index", tags.iter().map(|(key, ids)| (*key, ids.as_slice())), ",");
    put(&mut out, "category_index", categories.iter().map(|(key, ids)| (*key, ids.as_slice())), ",");
    let importances = Importance::ALL.iter().map(|level| (level.name(), &*importances[*level as usize]));
    put(&mut out, "importance_index", importances, "");
    out.push_str("}\n");
    out
}

fn put<'a>(out: &mut String, name: &str, entries: impl Iterator<Item = (&'a str, &'a [&'a str])>, end: &str) {
    let quoted = |text: &str| serde_json::to_string(text).expect("a string is JSON");
    let _ = write!(out, "  \"{name}\": {{");
    let mut comma = "";
    for (key, ids) in entries {
        let _ = write!(out, "{comma}\n    {}: [", quoted(key));
        for (at, id) in ids.iter().enumerate() {
            out.push_str(if at == 0 { "\"" } else { ", \"" });
            // Ids are almost always plain text; any other is escaped.
            match id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
                true => out.push_str(id),
                false => out.push_str(quoted(id).trim_matches('"')),
            }
            out.push('"');
        }
        out.push(']');
        comma = ",";
    }
    out.push_str(if comma.is_empty() { "}" } else { "\n  }" });
    out.push_str(end);
    out.push('\n');
}

/// The state of the index on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It agrees with the files.
    Current,
    /// It does not exist.
    Missing,
    /// It cannot be read.
    Damaged(String),
    /// It is of another version of the format.
    OtherVersion(String),
    /// It differs from the files.
    Stale,
}

/// Compares the index on disk with what it should be, except for when it was written.
pub(super) fn standing(there: Option<&[u8]>, wanted: &str, version: &str) -> Standing {
    let Some(there) = there else { return Standing::Missing };
    let without_time = |text: &str| -> Option<(usize, usize)> {
        let start = text.find("\"last_updated\"")?;
        Some((start, start + text[start..].find('\n')?))
    };
    if let Ok(text) = std::str::from_utf8(there)
        && let (Some(ours), Some(theirs)) = (without_time(wanted), without_time(text))
        && wanted[..ours.0] == text[..theirs.0]
        && wanted[ours.1..] == text[theirs.1..]
    {
        return Standing::Current;
    }
    // Either another program wrote it differently, or its content differs.
    match serde_json::from_slice::<Index>(there) {
        Err(error) => match version_of(there) {
            Some(other) if other != version => Standing::OtherVersion(other),
            _ => Standing::Damaged(error.to_string()),
        },
        Ok(index) if index.version != version => Standing::OtherVersion(index.version),
        Ok(index) => match serde_json::from_str::<Index>(wanted) {
            Ok(mut wanted) => {
                wanted.last_updated.clone_from(&index.last_updated);
                if wanted == index { Standing::Current } else { Standing::Stale }
            }
            Err(_) => Standing::Stale,
        },
    }
}

/// Returns the version in an index, whatever else it contains.
pub(super) fn version_of(index: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Head {
        version: String,
    }
    serde_json::from_slice::<Head>(index).ok().map(|head| head.version)
}
