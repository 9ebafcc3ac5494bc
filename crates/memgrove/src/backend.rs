//! The seam: what every storage must do, and the only words that shapes and storages share.
//!
//! Implementors write [`Backend`]; callers use [`Store`](crate::Store). What a backend promises
//! is numbered in [`PROMISES`], and the [conformance suite](crate::conformance) holds every
//! backend to each of them.

mod change;
mod past;
mod refusal;

use std::fmt;

pub use bytes::Bytes;
pub(crate) use change::random_id;
pub use change::{Actor, Applied, Change, ChangeId, Edit, Expect, Note, OUTSIDE, Origin, upkeep};
pub use past::{HistoryQuery, Keep, Moment, Op, Past, PastEdit, Pruned, Pruning};
pub use refusal::{
    cannot_forget, cannot_prune, exists, into_itself, is_file, is_folder, moved_on, not_derivable, not_empty,
    not_found, not_in_history, root_stays, taken,
};
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;

/// What every backend promises. A conformance case cites the number that it proves.
pub const PROMISES: &[(&str, &str)] = &[
    (
        "P1",
        "A read gives back exactly the bytes that were applied last: any newline style, any encoding, empty, or binary.",
    ),
    (
        "P2",
        "Reading or describing what is absent is `NotFound`; reading a folder is `Invalid` with code `IS_DIRECTORY`.",
    ),
    ("P3", "Different bytes have different versions, and `read` and `info` agree on the version."),
    (
        "P4",
        "`Expect::Absent` met by something is `Exists`; `Expect::At` met by another version, or by nothing, is `Conflict`; a refused change changes nothing.",
    ),
    ("P5", "A change is applied whole or not at all; each edit sees the edits before it in the same change."),
    (
        "P6",
        "`Write`, `Append` and the far end of `Rename` make the folders they need; `Append` makes the file it needs.",
    ),
    (
        "P7",
        "`Delete` removes a file, or a folder that is empty (else `Invalid`, code `DIRECTORY_NOT_EMPTY`); of what is absent it is `NotFound`.",
    ),
    (
        "P8",
        "`Rename` moves a file, or a folder with all that it holds, to a place that is free (else `Exists`), and never into itself (`Invalid`).",
    ),
    (
        "P9",
        "`list` gives what is there in the order of keys, folders included, never the backend's own files; of what is absent, or a file, it gives nothing.",
    ),
    ("P10", "`mkdir` makes a folder with its parents; again is no error; where a file is, it is `Exists`."),
    (
        "P11",
        "A file is never a folder too: an edit beneath a file or onto a folder is refused and changes nothing.",
    ),
    ("P12", "A change that was answered with `Ok` is there after the backend is opened again."),
    (
        "P13",
        "Of several changes that expect the same version, at the same time, exactly one wins; no answered change is lost.",
    ),
    ("P14", "A reader beside writers sees a whole old file or a whole new one."),
    (
        "P15",
        "The history lists changes newest first with verb, actor and reason, and gives back the bytes before and after each; a backend without history refuses with `Unsupported`.",
    ),
    (
        "P16",
        "A change whose idempotency key was applied before is not applied again; it is answered as the first time.",
    ),
    (
        "P17",
        "A locator that the backend reserves or cannot hold is refused with `Invalid` and a hint, and nothing is written.",
    ),
    (
        "P18",
        "A change that is derived writes and deletes files, each whole and each as expected, and is seen at once; but it is not in the history, and a power cut may take it as long as no other change was answered since by the same opened backend.",
    ),
    (
        "P19",
        "`redact` and `redact_holding` take what places held out of the history for good: it can be read no more, by whatever name or moment. That there were changes stays, and so do the files. A backend that cannot refuses with `Unsupported` and takes out nothing.",
    ),
    (
        "P20",
        "`prune` takes the oldest changes out of the history, with their idempotency keys, and never one that is to be kept; only planned, it takes none. The files stay. A backend that cannot refuses with `Unsupported`.",
    ),
];

/// The bytes of one file and the version they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The version of these bytes.
    pub version: Version,
}

/// What stands where a version was redacted.
const REDACTED: &str = "redacted";

/// Names the state of one file. Opaque: a content hash here, an ETag there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(Box<str>);

impl Version {
    /// The fewest characters of a version that stand for it.
    pub const PREFIX_MIN: usize = 8;

    /// The version that `given` names in full or by its first characters: the one that is there if it begins
    /// with them, else `given` itself.
    ///
    /// # Errors
    /// `Invalid` for fewer than [`Version::PREFIX_MIN`] characters that are not the whole version there.
    pub fn named(given: &str, there: Option<&Version>) -> Result<Self> {
        match there {
            Some(version) if version.as_str() == given => Ok(version.clone()),
            _ if given.len() < Version::PREFIX_MIN => {
                let message = format!("`{given}` is too short to name a version");
                let hint = format!("give at least its first {} characters", Version::PREFIX_MIN);
                Err(Error::new(Kind::Invalid, message).hint(hint))
            }
            Some(version) if version.as_str().starts_with(given) => Ok(version.clone()),
            _ => Ok(Version::new(given)),
        }
    }

    /// Whether `given` names this version, in full or by its first characters.
    ///
    /// # Errors
    /// As [`Version::named`].
    pub fn is_named_by(&self, given: &str) -> Result<bool> {
        Ok(Version::named(given, Some(self))? == *self)
    }

    /// A version from its text, as [`Version::as_str`] gave it.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Version(text.into())
    }

    /// The version by content: 128 bits of BLAKE3, in hexadecimal.
    pub fn of(bytes: &[u8]) -> Self {
        let hash = blake3::hash(bytes);
        Version(hash.to_hex()[..32].into())
    }

    /// What the history shows in place of a version whose content was redacted.
    pub fn redacted() -> Self {
        Version(REDACTED.into())
    }

    /// Whether it stands for a content that was redacted.
    pub fn is_redacted(&self) -> bool {
        &*self.0 == REDACTED
    }

    /// The version's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What kind of thing is at a locator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A link, pipe, socket or device: listed, but neither read nor changed.
    Other,
}

/// What is known of one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The place.
    pub locator: Locator,
    /// What is there.
    pub kind: FileKind,
    /// Bytes; 0 for a folder.
    pub size: u64,
    /// When it was last modified.
    pub mtime: Timestamp,
    /// A cheap token that changes (almost surely) when the content does; for caches and indexes.
    pub stamp: u64,
    /// The version, for a file: always from [`Backend::info`]; from a listing only where it is free.
    pub version: Option<Version>,
}

impl Info {
    /// Whether it is a folder.
    pub fn is_dir(&self) -> bool {
        self.kind == FileKind::Folder
    }
}

/// How deep a listing goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The immediate children.
    Children,
    /// Everything beneath.
    All,
}

/// What a backend can do beyond the promises. All false unless a backend says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// Safe under more than one writing process.
    pub concurrent_writers: bool,
    /// Conflict copies of a sync layer may turn up.
    pub conflict_files: bool,
    /// Content is encrypted at rest.
    pub encryption: bool,
    /// The tree is replicated by something else, so no database may live in it.
    pub sync: bool,
}

impl Capabilities {
    /// The names of all capabilities with their values, in order.
    pub fn entries(self) -> [(&'static str, bool); 4] {
        [
            ("concurrent_writers", self.concurrent_writers),
            ("conflict_files", self.conflict_files),
            ("encryption", self.encryption),
            ("sync", self.sync),
        ]
    }
}

/// How a backend reconciles writes that diverged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictStrategy {
    /// There is one copy, so nothing diverges.
    #[default]
    None,
    /// The whole file is the unit of conflict.
    WholeFile,
    /// The server's ETag decides.
    Etag,
}

/// One storage. Small on purpose: no method has a default body, so none can be forgotten.
///
/// All methods may be called from several threads at once.
pub trait Backend: Send + Sync {
    /// What this backend can do beyond the promises; constant for an open backend.
    fn capabilities(&self) -> Capabilities;

    /// How it reconciles writes that diverged.
    fn conflict_strategy(&self) -> ConflictStrategy;

    /// Reads a file: P1, P2, P14.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for a folder (`IS_DIRECTORY`) or a link or device (`NOT_REGULAR`).
    fn read(&self, at: &Locator) -> Result<Content>;

    /// Describes what is there, a file's version included: P2, P3.
    ///
    /// # Errors
    /// `NotFound`.
    fn info(&self, at: &Locator) -> Result<Info>;

    /// Lists what is beneath a folder: P9.
    ///
    /// # Errors
    /// `Denied` or `Io` when a folder cannot be read: never an empty listing instead.
    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>>;

    /// Ensures that a folder exists: P10. The root always does.
    ///
    /// # Errors
    /// `Exists` where a file is.
    fn mkdir(&self, at: &Locator) -> Result<()>;

    /// Applies a change whole or not at all: P4 to P8, P11 to P13, P16 to P18.
    ///
    /// # Errors
    /// As the promises say; after any error nothing of the change is to be seen, except that an
    /// `Io` error of the final sync leaves it unknown whether the change will survive a power cut.
    fn apply(&self, change: &Change) -> Result<Applied>;

    /// What came of the change with this idempotency key, if there was one: P16.
    ///
    /// # Errors
    /// `Unsupported` where the backend keeps no history.
    fn applied(&self, key: &str) -> Result<Option<Applied>>;

    /// Lists past changes, newest first: P15.
    ///
    /// # Errors
    /// `Unsupported` where the backend keeps no history; `NotFound` for an unknown `before`.
    fn history(&self, query: &HistoryQuery) -> Result<Vec<Past>>;

    /// The bytes that `at` (its name at that moment) held then; `None` if it was absent or a folder: P15.
    ///
    /// # Errors
    /// `Unsupported` where the backend keeps no history; `NotFound` for an unknown change, or for
    /// a moment older than the history.
    fn read_past(&self, at: &Locator, moment: &Moment) -> Result<Option<Vec<u8>>>;

    /// Takes what `at` (its name at that moment) held then out of the history for good. The history still
    /// tells that there was a change, but its content can be read no more: P19.
    ///
    /// # Errors
    /// `Unsupported` ([`cannot_forget`]) where the backend cannot, as most; `NotFound` for an unknown change,
    /// or where nothing was there; `Conflict` while the file still holds it.
    fn redact(&self, at: &Locator, moment: &Moment) -> Result<()>;

    /// Takes all content at or beneath a place for which `holds` is true out of the history for good, also
    /// what was only ever appended, and returns how many changes kept some. What the files hold now is left
    /// alone: P19.
    ///
    /// # Errors
    /// `Unsupported` ([`cannot_forget`]) where the backend cannot.
    fn redact_holding(&self, under: &Locator, holds: &dyn Fn(&[u8]) -> bool) -> Result<usize>;

    /// Takes the oldest changes out of the history, with what they held and their idempotency keys: about
    /// as many as are asked for, never more. The files are not touched: P20.
    ///
    /// # Errors
    /// `Unsupported` ([`cannot_prune`]) where the backend cannot.
    fn prune(&self, keep: Keep, how: Pruning) -> Result<Pruned>;

    /// What is wrong with the storage itself, for `memgrove doctor`.
    ///
    /// # Errors
    /// Only where the check itself cannot run.
    fn check(&self) -> Result<Vec<Finding>>;
}

/// Something that a check found and that a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// Where: a locator, or a file of the backend's own.
    pub at: String,
    /// What was found, as a sentence.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Worth knowing.
    Info,
    /// Something is skipped or unusual; no data is in danger.
    Warning,
    /// Data is damaged or in danger.
    Error,
}
