//! The six file operations: view, create, replace, insert, delete and rename, and batches of them.
//!
//! Every operation is a pure planner: it reads through the store and returns a [`Plan`] that
//! [`Memory::apply`](crate::Memory::apply) carries out. A text operation splices bytes: newline styles,
//! byte order marks and everything else outside the edited span stay as they are, and a file that is not
//! UTF-8 text is left alone. If the caller's `expect` is not the present version, the planner returns a
//! `Conflict`, which no retry hides. The edits themselves expect the version that was read, so a writer
//! who slips in between causes a new plan and is never overwritten.

mod draft;
mod nearest;
mod splice;
mod wire;

use serde::{Deserialize, Serialize};

use crate::backend::{Depth, Info, Version};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::memory::Plan;
use crate::store::Store;

use draft::Draft;
pub(super) use draft::without_version;
pub(super) use splice::{PLACES_MAX, inserted, places, replaced};

/// How large things may get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The largest file, in bytes, that an operation may write.
    pub file_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { file_bytes_max: 64 << 20 }
    }
}

impl Limits {
    /// Refuses a content that is larger than a file may be.
    ///
    /// # Errors
    /// `Invalid` with code `TOO_LARGE`.
    pub fn check(&self, at: &Locator, bytes: &[u8]) -> Result<()> {
        let (size, most) = (bytes.len() as u64, self.file_bytes_max);
        if size <= most {
            return Ok(());
        }
        Err(Error::new(
            Kind::Invalid,
            format!("`{at}` would have {size} bytes, and a file has at most {most}"),
        )
        .code(code::TOO_LARGE)
        .hint("split it into several files"))
    }
}

/// What is at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Viewed {
    /// A file.
    File {
        /// Its bytes.
        bytes: Vec<u8>,
        /// The version of these bytes.
        version: Version,
    },
    /// A folder.
    Folder {
        /// Its immediate children, in the order of names.
        entries: Vec<Info>,
    },
}

/// What an operation did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "done", rename_all = "snake_case")]
pub enum Outcome {
    /// A file was made.
    Created {
        /// The file.
        path: Locator,
        /// Its bytes.
        size: u64,
    },
    /// A file's content was changed.
    Edited {
        /// The file.
        path: Locator,
        /// Its bytes now.
        size: u64,
        /// The first line that changed, from 1.
        line: usize,
    },
    /// A file or an empty folder was removed.
    Deleted {
        /// What it was called.
        path: Locator,
    },
    /// A file, or a folder with all that it holds, was moved.
    Renamed {
        /// Where it was.
        old_path: Locator,
        /// Where it is.
        new_path: Locator,
    },
}

/// One operation of a batch.
///
/// ```
/// use memgrove::shapes::files::Operation;
///
/// let given = r#"{"type": "str_replace", "path": "/a.md", "old_str": "$50k", "new_str": "$45k"}"#;
/// let operation: Operation = serde_json::from_str(given)?;
/// assert_eq!(operation.name(), "str_replace");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// Makes a file where nothing is.
    #[serde(with = "wire::create")]
    Create {
        /// The file.
        path: Locator,
        /// Its content: on the wire `content`, or `content_base64` for what is no text.
        content: Vec<u8>,
    },
    /// Makes a file hold exactly this, whether or not it was there.
    #[serde(with = "wire::write")]
    Write {
        /// The file.
        path: Locator,
        /// All of its new content, on the wire as that of [`Operation::Create`].
        content: Vec<u8>,
        /// The version that must be there.
        expect: Option<Version>,
    },
    /// Replaces a text that is in the file exactly once.
    #[serde(rename = "str_replace", alias = "replace")]
    Replace {
        /// The file.
        path: Locator,
        /// The text that is there.
        old_str: String,
        /// The text to be there instead.
        new_str: String,
        /// The version that must be there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expect: Option<Version>,
    },
    /// Inserts text before a line.
    Insert {
        /// The file.
        path: Locator,
        /// The line, from 1.
        insert_line: usize,
        /// The text.
        new_str: String,
        /// The version that must be there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expect: Option<Version>,
    },
    /// Removes a file or an empty folder.
    Delete {
        /// The file or folder.
        path: Locator,
        /// The version that must be there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expect: Option<Version>,
    },
    /// Moves a file, or a folder with all that it holds.
    Rename {
        /// Where it is.
        old_path: Locator,
        /// Where it shall be.
        new_path: Locator,
        /// The version that must be there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expect: Option<Version>,
    },
}

impl Operation {
    /// The operation's name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Create { .. } => "create",
            Operation::Write { .. } => "write",
            Operation::Replace { .. } => "str_replace",
            Operation::Insert { .. } => "insert",
            Operation::Delete { .. } => "delete",
            Operation::Rename { .. } => "rename",
        }
    }

    /// The same operation with its paths taken as beneath `root`.
    ///
    /// # Errors
    /// `Invalid` where a path becomes too long.
    pub fn beneath(mut self, root: &Locator) -> Result<Self> {
        match &mut self {
            Operation::Create { path, .. }
            | Operation::Write { path, .. }
            | Operation::Replace { path, .. }
            | Operation::Insert { path, .. }
            | Operation::Delete { path, .. } => *path = root.child(path.key())?,
            Operation::Rename { old_path, new_path, .. } => {
                *old_path = root.child(old_path.key())?;
                *new_path = root.child(new_path.key())?;
            }
        }
        Ok(self)
    }
}

/// Reads a file, or lists a folder.
///
/// # Errors
/// `NotFound` (`FILE_NOT_FOUND`), with the nearest name as a hint; else as
/// [`Backend::read`](crate::Backend::read).
pub fn view(store: &Store, at: &Locator) -> Result<Viewed> {
    let folder = || Ok(Viewed::Folder { entries: store.backend().list(at, Depth::Children)? });
    if at.is_root() {
        return folder();
    }
    match store.read_bytes(at) {
        Ok(content) => Ok(Viewed::File { bytes: content.bytes, version: content.version }),
        Err(error) if error.code_name() == Some(code::IS_DIRECTORY) => folder(),
        Err(error) if error.kind() == Kind::NotFound => Err(nearest::absent(store, at)),
        Err(error) => Err(error),
    }
}

/// Makes a file, and the folders it needs, where nothing is.
///
/// # Errors
/// `Exists` (`FILE_EXISTS`), for a folder too; `Invalid` (`NOT_DIRECTORY`, `TOO_LARGE`).
pub fn create(store: &Store, at: &Locator, bytes: Vec<u8>, limits: &Limits) -> Result<Plan<Outcome>> {
    Draft::one(store, limits, |draft| draft.create(at, bytes))
}

/// Makes a file hold exactly these bytes, whether or not it was there.
///
/// # Errors
/// `Conflict` (`VERSION_MISMATCH`) where `expect` is not there; `Invalid` (`IS_DIRECTORY`,
/// `NOT_DIRECTORY`, `TOO_LARGE`).
pub fn write(
    store: &Store,
    at: &Locator,
    bytes: Vec<u8>,
    expect: Option<&Version>,
    limits: &Limits,
) -> Result<Plan<Outcome>> {
    Draft::one(store, limits, |draft| draft.write(at, bytes, expect))
}

/// Replaces a text that is in the file exactly once. The match is exact, byte for byte, and two
/// matches that overlap are two: `aa` is not unique in `aaa`.
///
/// # Errors
/// `Invalid` (`STRING_NOT_FOUND`, `STRING_NOT_UNIQUE`, `NOT_TEXT`, `IS_DIRECTORY`, `TOO_LARGE`);
/// `NotFound`; `Conflict` (`VERSION_MISMATCH`) where `expect` is not there.
pub fn replace(
    store: &Store,
    at: &Locator,
    old: &str,
    new: &str,
    expect: Option<&Version>,
    limits: &Limits,
) -> Result<Plan<Outcome>> {
    Draft::one(store, limits, |draft| draft.replace(at, old, new, expect))
}

/// Inserts text before a line, counted from 1; what was there moves down.
///
/// Lines are what is between newlines, so a file that ends in a newline has an empty last line,
/// and an empty file has one. `lines + 1` adds a line to the end. The text becomes lines of its
/// own: where a line follows, a newline is added unless the text ends in one, so `x` and `x\n`
/// insert the same single line. In a file whose newlines are all CRLF, the text's become CRLF;
/// a byte order mark stays the first thing in the file.
///
/// # Errors
/// `Invalid` (`INVALID_LINE`, `NOT_TEXT`, `IS_DIRECTORY`, `TOO_LARGE`); `NotFound`; `Conflict`
/// (`VERSION_MISMATCH`) where `expect` is not there.
pub fn insert(
    store: &Store,
    at: &Locator,
    line: usize,
    text: &str,
    expect: Option<&Version>,
    limits: &Limits,
) -> Result<Plan<Outcome>> {
    Draft::one(store, limits, |draft| draft.insert(at, line, text, expect))
}

/// Removes a file or an empty folder.
///
/// # Errors
/// `NotFound`; `Invalid` (`DIRECTORY_NOT_EMPTY`); `Conflict` (`VERSION_MISMATCH`) where `expect`
/// is not there.
pub fn delete(store: &Store, at: &Locator, expect: Option<&Version>) -> Result<Plan<Outcome>> {
    Draft::one(store, &Limits::default(), |draft| draft.delete(at, expect))
}

/// Moves a file, or a folder with all that it holds, to a free place.
///
/// # Errors
/// `NotFound`; `Exists` where something is at `to`; `Invalid` (`INVALID_PATH`) for a folder into
/// itself; `Conflict` (`VERSION_MISMATCH`) where `expect` is not there.
pub fn rename(
    store: &Store,
    from: &Locator,
    to: &Locator,
    expect: Option<&Version>,
) -> Result<Plan<Outcome>> {
    Draft::one(store, &Limits::default(), |draft| draft.rename(from, to, expect))
}

/// Plans several operations as one change: all of them happen or none. Each sees what the ones
/// before it did.
///
/// # Errors
/// Those of the operation that fails, with its index, from 0, in front of the message.
pub fn batch(store: &Store, operations: &[Operation], limits: &Limits) -> Result<Plan<Vec<Outcome>>> {
    let mut draft = Draft::new(store, limits);
    let mut outcome = Vec::with_capacity(operations.len());
    for (index, operation) in operations.iter().enumerate() {
        let done = draft.perform(operation);
        outcome.push(done.map_err(|error| {
            error.while_doing(format_args!("operations[{index}] ({})", operation.name()))
        })?);
    }
    Ok(Plan { edits: draft.into_edits(), outcome })
}
