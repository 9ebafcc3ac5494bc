//! What a record is: its fields, their constraints, and the rules of tasks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::limits::Limits;
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result, code};

/// What kind of memory a record is; each has a file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordType {
    /// Something that stays true.
    Core,
    /// Something that was learnt.
    Learning,
    /// Something that was done, or is to be done.
    Task,
}

impl RecordType {
    /// Every type, in the order of the files.
    pub const ALL: [RecordType; 3] = [RecordType::Core, RecordType::Learning, RecordType::Task];

    /// The type's name.
    pub fn name(self) -> &'static str {
        match self {
            RecordType::Core => "core",
            RecordType::Learning => "learning",
            RecordType::Task => "task",
        }
    }

    /// The name of its file without the extension.
    pub fn stem(self) -> &'static str {
        match self {
            RecordType::Core => "core_memories",
            RecordType::Learning => "learnings",
            RecordType::Task => "tasks",
        }
    }

    /// The name of its file.
    pub fn file(self) -> &'static str {
        match self {
            RecordType::Core => "core_memories.jsonl",
            RecordType::Learning => "learnings.jsonl",
            RecordType::Task => "tasks.jsonl",
        }
    }
}

/// How much a record matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Importance {
    /// It matters most.
    High,
    /// It matters as most records do.
    #[default]
    Medium,
    /// It matters least.
    Low,
}

impl Importance {
    /// Every importance, highest first.
    pub const ALL: [Importance; 3] = [Importance::High, Importance::Medium, Importance::Low];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Importance::High => "high",
            Importance::Medium => "medium",
            Importance::Low => "low",
        }
    }
}

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Done.
    Completed,
    /// Under way.
    InProgress,
    /// Waiting for something.
    Blocked,
}

impl Status {
    /// Every status.
    pub const ALL: [Status; 3] = [Status::Completed, Status::InProgress, Status::Blocked];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Status::Completed => "completed",
            Status::InProgress => "in-progress",
            Status::Blocked => "blocked",
        }
    }
}

macro_rules! named {
    ($kind:ident, $what:literal) => {
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $kind {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                $kind::ALL.into_iter().find(|known| known.name() == text).ok_or_else(|| {
                    let names = $kind::ALL.map(|known| known.name()).join(", ");
                    invalid(format!(concat!("`{}` is not ", $what), text.escape_default()))
                        .hint(format!("choose from: {names}"))
                })
            }
        }
    };
}

named!(RecordType, "a type of record");
named!(Importance, "an importance");
named!(Status, "a status of a task");

/// What is known of a task in addition to a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMetadata {
    /// Its status.
    pub status: Status,
    /// When it was completed; given exactly if it is completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// What it waits for; given exactly if it is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blockers: Option<Vec<String>>,
    /// Its outcome, once completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// One record, as a line of its file holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// A UUID, version 4.
    pub id: String,
    /// Which kind of memory.
    #[serde(rename = "type")]
    pub kind: RecordType,
    /// The memory itself.
    pub content: String,
    /// What it is about, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// When it was made, in ISO 8601 with a zone, as all times here.
    pub created_at: String,
    /// When it was last changed.
    pub updated_at: String,
    /// When it was last read.
    pub accessed_at: String,
    /// How often it was read.
    pub access_count: u64,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// How much it matters.
    pub importance: Importance,
    /// Whether it is archived.
    pub archived: bool,
    /// What is known of a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_metadata: Option<TaskMetadata>,
}

impl Record {
    /// Returns the record as one line of JSON, without its newline.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("a record is plain data")
    }

    /// Returns when it was made, changed and read, in milliseconds since the epoch; `None` if one of these
    /// is not a time.
    pub(super) fn moments(&self) -> Option<[i64; 3]> {
        let ms = |text: &str| moment(text).map(Timestamp::as_millisecond);
        Some([ms(&self.created_at)?, ms(&self.updated_at)?, ms(&self.accessed_at)?])
    }

    /// Returns the faults against the schema: the field, and what is wrong.
    pub fn faults(&self, limits: &Limits) -> Vec<(&'static str, String)> {
        let mut found = self.faults_beside_times(limits);
        let mut fault = |field, what: String| found.push((field, what));
        let times = [&self.created_at, &self.updated_at, &self.accessed_at];
        for (field, time) in ["created_at", "updated_at", "accessed_at"].into_iter().zip(times) {
            if moment(time).is_none() {
                fault(field, NO_TIME.to_owned());
            }
        }
        found
    }

    /// Returns the faults against the schema, except for those of times.
    pub(super) fn faults_beside_times(&self, limits: &Limits) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let mut fault = |field, what: String| found.push((field, what));
        if !is_uuid_v4(&self.id) {
            fault("id", "is not a UUID of version 4".to_owned());
        }
        let chars = self.content.chars().count();
        if self.content.trim().is_empty() {
            fault("content", "is empty".to_owned());
        } else if chars > limits.content_chars_max {
            fault("content", format!("has {chars} characters, and {} are allowed", limits.content_chars_max));
        }
        if let Some(chars) = self.category.as_ref().map(|category| category.chars().count())
            && chars > limits.category_chars_max
        {
            fault(
                "category",
                format!("has {chars} characters, and {} are allowed", limits.category_chars_max),
            );
        }
        if self.tags.len() > limits.tags_max {
            fault("tags", format!("has {} tags, and {} are allowed", self.tags.len(), limits.tags_max));
        }
        for tag in &self.tags {
            let chars = tag.chars().count();
            if chars > limits.tag_chars_max {
                fault(
                    "tags",
                    format!("has a tag of {chars} characters, and {} are allowed", limits.tag_chars_max),
                );
            }
        }
        if let Some(task) = &self.task_metadata {
            found.extend(task_faults(self.kind, task));
        }
        found
    }

    /// Refuses a record with a fault against the schema.
    ///
    /// # Errors
    /// `Invalid`, naming the field; code `TOO_LARGE` for content and line.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        if let Some((field, what)) = self.faults(limits).into_iter().next() {
            let error = invalid(format!("`{field}` {what}"));
            return Err(match field {
                "content" if !self.content.trim().is_empty() => {
                    error.code(code::TOO_LARGE).hint("split it into several records")
                }
                _ => hinted(field, error),
            });
        }
        if self.tags.iter().any(|tag| tag.trim().is_empty()) {
            return Err(invalid("`tags` has an empty tag".to_owned()));
        }
        check_line(self.line().len(), limits)
    }
}

/// Returns the error with a hint, if its field is not one that callers give.
pub(super) fn hinted(field: &str, error: Error) -> Error {
    match field {
        "status" | "blockers" | "outcome" => error.hint(
            "`status`, `blockers` and `outcome` are for tasks alone: a blocked one needs blockers \
             (`--blocker`), and only a completed one has an outcome",
        ),
        _ => error,
    }
}

/// Refuses a line that is too long.
pub(super) fn check_line(bytes: usize, limits: &Limits) -> Result<()> {
    if bytes <= limits.line_bytes_max {
        return Ok(());
    }
    Err(invalid(format!("the record's line has {bytes} bytes, and {} are allowed", limits.line_bytes_max))
        .code(code::TOO_LARGE)
        .hint("characters beyond ASCII take several bytes each: split it into several records"))
}

const NO_TIME: &str = "is not a time of ISO 8601 with a zone";

fn task_faults(kind: RecordType, task: &TaskMetadata) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut fault = |field, what: &str| found.push((field, what.to_owned()));
    let has_blockers = task.blockers.as_ref().is_some_and(|blockers| !blockers.is_empty());
    if kind != RecordType::Task {
        let field = match &task.outcome {
            Some(_) => "outcome",
            None if has_blockers => "blockers",
            None => "status",
        };
        fault(field, &format!("is for tasks only, and this is a {kind} record"));
    }
    let done = task.status == Status::Completed;
    match &task.completed_at {
        None if done => fault("completed_at", "is missing, though the task is completed"),
        Some(_) if !done => fault("completed_at", "is for completed tasks only"),
        Some(time) if moment(time).is_none() => fault("completed_at", NO_TIME),
        _ => {}
    }
    match task.status == Status::Blocked {
        true if !has_blockers => fault("blockers", "is missing, though the task is blocked"),
        false if has_blockers => fault("blockers", "is for blocked tasks only"),
        _ => {}
    }
    if task.outcome.is_some() && !done {
        fault("outcome", "is for completed tasks only");
    }
    found
}

/// Reads a moment in ISO 8601 with a zone.
pub fn moment(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// Writes a moment as records do: in UTC, with milliseconds if it has any.
pub fn spelled(time: Timestamp) -> String {
    Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time).to_string()
}

/// Whether a text is a UUID of version 4.
pub fn is_uuid_v4(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            14 => *byte == b'4',
            19 => matches!(byte, b'8' | b'9' | b'a' | b'b' | b'A' | b'B'),
            _ => byte.is_ascii_hexdigit(),
        })
}

pub(super) fn invalid(message: String) -> Error {
    Error::new(Kind::Invalid, message)
}
