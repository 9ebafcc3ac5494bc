//! The seam: what every storage must do, and the only words that shapes and storages share.
//!
//! Implementors write [`Backend`]; callers use [`Store`](crate::Store). What a backend promises
//! is numbered in [`PROMISES`], and the [conformance suite](crate::conformance) holds every
//! backend to each of them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result, code};
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
];

/// The bytes of one file and the version they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The version of these bytes.
    pub version: Version,
}

/// Names the state of one file. Opaque: a content hash here, an ETag there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(Box<str>);

impl Version {
    /// A version from its text, as [`Version::as_str`] gave it.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Version(text.into())
    }

    /// The version by content: 128 bits of BLAKE3, in hexadecimal.
    pub fn of(bytes: &[u8]) -> Self {
        let hash = blake3::hash(bytes);
        Version(hash.to_hex()[..32].into())
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
                Err(Error::new(Kind::Conflict, format!("`{at}` is {found}, not at version {wanted}"))
                    .code(code::VERSION_MISMATCH)
                    .hint("read it again and repeat the change on what is there now"))
            }
        }
    }
}

/// One step of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Makes the file hold exactly these bytes.
    Write {
        /// The file.
        at: Locator,
        /// All of its new content.
        bytes: Vec<u8>,
        /// What must be there before.
        expect: Expect,
    },
    /// Adds bytes to the end of the file, without reading what is before them.
    Append {
        /// The file.
        at: Locator,
        /// What is added.
        bytes: Vec<u8>,
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
}

/// A set of edits that happens whole or not at all, and what is to be remembered of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// The edits, in order.
    pub edits: Vec<Edit>,
    /// Who did it, with which verb, and why.
    pub note: Note,
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
    /// What the caller was answered, kept for a repeat of the same key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
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
    /// (whose version costs a read of the whole file: ask [`Backend::info`]).
    pub versions: Vec<Option<Version>>,
    /// Whether the idempotency key had been applied before, so that nothing was done now.
    pub replayed: bool,
    /// The answer that was kept with the first application of the key.
    pub answer: Option<String>,
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

    /// Applies a change whole or not at all: P4 to P8, P11 to P13, P16, P17.
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

/// The error for a place where nothing is.
pub fn not_found(at: &Locator) -> Error {
    Error::new(Kind::NotFound, format!("`{at}` does not exist")).code(code::FILE_NOT_FOUND)
}

/// The error for a place that is taken.
pub fn exists(at: &Locator) -> Error {
    Error::new(Kind::Exists, format!("`{at}` already exists"))
        .code(code::FILE_EXISTS)
        .hint("choose another name, or pass the version of what is there")
}

/// The error for a folder where a file is needed.
pub fn is_folder(at: &Locator) -> Error {
    Error::new(Kind::Invalid, format!("`{at}` is a folder"))
        .code(code::IS_DIRECTORY)
        .hint("name a file in it")
}

/// The error for a file where a folder is needed.
pub fn is_file(at: &Locator) -> Error {
    Error::new(Kind::Invalid, format!("`{at}` is a file, so nothing can be beneath it"))
        .code(code::NOT_DIRECTORY)
        .hint("choose a place that is not beneath a file")
}

/// The error for a folder that still holds something.
pub fn not_empty(at: &Locator) -> Error {
    Error::new(Kind::Invalid, format!("the folder `{at}` is not empty"))
        .code(code::DIRECTORY_NOT_EMPTY)
        .hint("delete what is in it first")
}

/// The error for moving a folder into itself.
pub fn into_itself(from: &Locator, to: &Locator) -> Error {
    Error::new(Kind::Invalid, format!("`{from}` cannot be moved into itself, to `{to}`"))
        .code(code::INVALID_PATH)
}

/// The error for a version or change that the history does not hold.
pub fn not_in_history(what: impl fmt::Display) -> Error {
    Error::new(Kind::NotFound, format!("the history does not hold {what}"))
        .hint("`memgrove history` lists what it holds")
}
