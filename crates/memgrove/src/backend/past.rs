//! How the past is asked for and told.

use serde::{Deserialize, Serialize};

use super::{ChangeId, Note, Version};
use crate::clock::Timestamp;
use crate::locator::Locator;

/// Which part of the history to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistoryQuery {
    /// Only changes that touched this place, or anything beneath it, under this or an earlier name.
    pub at: Option<Locator>,
    /// Only changes before this one.
    pub before: Option<ChangeId>,
    /// At most so many; 0 is no limit.
    pub limit: usize,
}

/// One change in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// The change's name.
    pub change: ChangeId,
    /// When it was applied.
    pub time: Timestamp,
    /// Who, with which verb, and why.
    pub note: Note,
    /// What it did.
    pub edits: Vec<PastEdit>,
}

/// What one edit of a past change did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastEdit {
    /// The operation.
    pub op: Op,
    /// Where.
    pub at: Locator,
    /// The far end of a rename.
    pub to: Option<Locator>,
    /// The version before, where it is known without a read.
    pub old: Option<Version>,
    /// The version after, where it is known without a read.
    pub new: Option<Version>,
}

/// The operation of a past edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// A file was created or replaced.
    Write,
    /// A file grew.
    Append,
    /// A file or folder was removed.
    Delete,
    /// A file or folder was moved.
    Rename,
}

/// A point in a file's past, next to a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    /// Just before the change.
    Before(ChangeId),
    /// Just after it.
    After(ChangeId),
}

/// How much of the history is to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// What happened since then.
    Since(Timestamp),
    /// At least this many of the newest changes.
    Changes(usize),
}

/// Whether pruning is done or only planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pruning {
    /// Nothing is removed; the answer tells what would be.
    Planned,
    /// The changes are removed.
    Done,
}

/// What was taken off the beginning of the history, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Pruned {
    /// How many changes.
    pub changes: usize,
    /// How many bytes they took.
    pub bytes: u64,
}
