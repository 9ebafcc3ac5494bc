//! A change: what happens, whole or not at all, and what is remembered of it.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Version, exists, moved_on, not_derivable};
use crate::error::Result;
use crate::locator::Locator;

/// What a change requires of a file before it touches it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Expect {
    /// Nothing: the last writer wins (the bytes before are still in the history).
    #[default]
    Any,
    /// That nothing is there; else `Exists`.
    Absent,
    /// That exactly this version is there; else `Conflict`.
    At(Version),
}

impl Expect {
    /// Checks what is there against what is required.
    ///
    /// # Errors
    /// `Exists` or `Conflict`, as promise P4 says.
    pub fn check(&self, at: &Locator, there: Option<&Version>) -> Result<()> {
        match (self, there) {
            (Expect::Any, _) | (Expect::Absent, None) => Ok(()),
            (Expect::At(wanted), Some(version)) if wanted == version => Ok(()),
            (Expect::Absent, Some(_)) => Err(exists(at)),
            (Expect::At(wanted), there) => {
                let found = there.map_or("gone".to_owned(), |version| format!("at version {version}"));
                Err(moved_on(format!("`{at}` is {found}, not at version {wanted}")))
            }
        }
    }
}

/// One step of a change. Its bytes are shared, not copied, by whoever keeps the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Makes the file hold exactly these bytes.
    Write {
        /// The file.
        at: Locator,
        /// All of its new content.
        bytes: Bytes,
        /// What must be there before.
        expect: Expect,
    },
    /// Adds bytes to the end of the file, without reading what is before them.
    Append {
        /// The file.
        at: Locator,
        /// What is added.
        bytes: Bytes,
        /// What must be there before.
        expect: Expect,
    },
    /// Removes a file or an empty folder.
    Delete {
        /// The file or folder.
        at: Locator,
        /// What must be there before; for a folder only `Any`.
        expect: Expect,
    },
    /// Moves a file, or a folder with all that it holds, to a free place.
    Rename {
        /// Where it is.
        from: Locator,
        /// Where it shall be.
        to: Locator,
        /// What must be at `from` before; for a folder only `Any`.
        expect: Expect,
    },
}

impl Edit {
    /// The place that the edit starts from.
    pub fn at(&self) -> &Locator {
        match self {
            Edit::Write { at, .. } | Edit::Append { at, .. } | Edit::Delete { at, .. } => at,
            Edit::Rename { from, .. } => from,
        }
    }

    /// The places that the edit names: where it starts, and where a rename ends.
    pub fn places(&self) -> impl Iterator<Item = &Locator> {
        let to = match self {
            Edit::Rename { to, .. } => Some(to),
            _ => None,
        };
        std::iter::once(self.at()).chain(to)
    }

    /// What must be there before.
    pub fn expect(&self) -> &Expect {
        let (Edit::Write { expect, .. }
        | Edit::Append { expect, .. }
        | Edit::Delete { expect, .. }
        | Edit::Rename { expect, .. }) = self;
        expect
    }
}

/// A set of edits that happens whole or not at all, and what is to be remembered of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// The edits, in order.
    pub edits: Vec<Edit>,
    /// Who did it, with which verb, and why.
    pub note: Note,
}

impl Change {
    /// Refuses a derived change that does more than write and delete (P18).
    ///
    /// # Errors
    /// `Invalid`.
    pub fn check_derived(&self) -> Result<()> {
        let plain = |edit: &Edit| matches!(edit, Edit::Write { .. } | Edit::Delete { .. });
        match self.edits.iter().find(|edit| !plain(edit)) {
            Some(edit) => Err(not_derivable(edit.at())),
            None => Ok(()),
        }
    }
}

/// What the history remembers of a change beside its edits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Note {
    /// The verb, such as `file_create`.
    pub verb: String,
    /// Who did it.
    #[serde(default, skip_serializing_if = "Actor::is_unknown")]
    pub actor: Actor,
    /// Why, in the actor's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The caller's idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// A digest of what was asked with the key, so that another request is not taken for a repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// What the caller was answered, kept for a repeat of the same key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The piece of work that the change is a part of, if that took several: they are undone together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Whether the change can be made again from other files: then the history leaves it out (P18).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
}

/// How many characters the name of a job has.
const JOB_CHARS: usize = 16;

/// The verb of a change that someone made past memgrove and that the history kept.
pub const OUTSIDE: &str = "outside";

/// The verbs of changes that nobody asks for: what they do follows from other changes.
pub mod upkeep {
    /// Readings of records were logged.
    pub const RECORD_ACCESS: &str = "record_access";
    /// Records that were due were archived.
    pub const RECORD_ARCHIVE: &str = "record_archive_due";
    /// Lines that slipped in beside a change were taken in.
    pub const RECORD_TAKE_IN: &str = "record_take_in";
    /// The tail of a graph's registry was folded into it.
    pub const GRAPH_FOLD: &str = "graph_fold";
    /// What a graph's registry alone knew was written down.
    pub const GRAPH_MEND: &str = "graph_mend";
    /// The ids of memories were written down, before the changes went that they are derived from.
    pub const MEMORY_IDS: &str = "memory_ids";
    /// Copies of what is redacted were deleted.
    pub const REDACT_COPIES: &str = "redact_copies";
}

const UPKEEP: [&str; 7] = [
    upkeep::RECORD_ACCESS,
    upkeep::RECORD_ARCHIVE,
    upkeep::RECORD_TAKE_IN,
    upkeep::GRAPH_FOLD,
    upkeep::GRAPH_MEND,
    upkeep::MEMORY_IDS,
    upkeep::REDACT_COPIES,
];

impl Note {
    /// Returns the note with a new job, shared by all changes of one piece of work that takes several.
    #[must_use]
    pub fn of_job(&self) -> Self {
        Note { job: Some(random_id()[..JOB_CHARS].to_owned()), ..self.clone() }
    }

    /// Whether the change is upkeep, which nobody asked for, and so is meant only when it is named.
    pub fn is_upkeep(&self) -> bool {
        UPKEEP.contains(&self.verb.as_str())
    }
}

/// Who made a change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Actor {
    /// What kind of actor.
    pub origin: Origin,
    /// The program: `cli`, or the client's name as it introduced itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The conversation or connection, so that one can be undone as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

impl Actor {
    fn is_unknown(&self) -> bool {
        *self == Actor::default()
    }
}

/// What kind of actor made a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A person, at the command line or in the web page.
    User,
    /// A model's decision.
    Agent,
    /// A program on a model's or a person's behalf.
    #[default]
    Tool,
    /// Bytes that came from another system.
    Import,
    /// A person or a program that changed the file itself, past memgrove.
    FileEdit,
}

impl Origin {
    /// Its name, as the history and the scope of an undo spell it.
    pub fn name(self) -> &'static str {
        match self {
            Origin::User => "user",
            Origin::Agent => "agent",
            Origin::Tool => "tool",
            Origin::Import => "import",
            Origin::FileEdit => "file_edit",
        }
    }
}

/// A name of 32 hexadecimal digits: no two are the same.
pub(crate) fn random_id() -> String {
    let part = |salt: u8| RandomState::new().hash_one(salt);
    format!("{:016x}{:016x}", part(0), part(1))
}

/// Names a change in one backend's history.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChangeId(Box<str>);

impl ChangeId {
    /// A change's name from its text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        ChangeId(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What came of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Its name in the history.
    pub change: ChangeId,
    /// The version that each edit left behind: `None` for deletions, renames, and appends
    /// (whose version costs a read of the whole file: ask [`Backend::info`](super::Backend::info)).
    pub versions: Vec<Option<Version>>,
    /// Whether the idempotency key had been applied before, so that nothing was done now.
    pub replayed: bool,
    /// The answer that was kept with the first application of the key.
    pub answer: Option<String>,
    /// The verb of the first application of the key.
    pub verb: String,
    /// The digest of the request that was kept with it.
    pub request: Option<String>,
}

impl Applied {
    /// What came of a change that was made now.
    pub fn now(change: ChangeId, versions: Vec<Option<Version>>, note: &Note) -> Self {
        let Note { verb, request, answer, .. } = note.clone();
        Applied { change, versions, replayed: false, answer, verb, request }
    }

    /// What came of a change that was made before, for a repeat of its key.
    pub fn before(change: ChangeId, versions: Vec<Option<Version>>, note: &Note) -> Self {
        Applied { replayed: true, ..Applied::now(change, versions, note) }
    }

    /// What came of a derived change, which has no place in the history.
    pub fn derived(versions: Vec<Option<Version>>) -> Self {
        Applied::now(ChangeId::new("derived"), versions, &Note::default())
    }
}
