//! What can go wrong, and what the caller should do about it.
//!
//! There are few kinds: a new one exists only where a caller would act differently.

use std::error::Error as StdError;
use std::fmt;

/// The result of every fallible call in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the caller should do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Fix the request: it can never succeed as it stands.
    Invalid,
    /// Name something that exists.
    NotFound,
    /// Choose another place, or pass the version of what is there.
    Exists,
    /// Read again, then retry: someone else was faster.
    Conflict,
    /// Use another backend: this one cannot do that.
    Unsupported,
    /// Run `memgrove doctor`: bytes on disk are not what they should be.
    Corrupt,
    /// Retry unchanged, a little later.
    Busy,
    /// Archive or delete something: a limit was reached or the disk is full.
    Full,
    /// Get permission.
    Denied,
    /// Mend the machine: the disk or the network failed.
    Io,
}

impl Kind {
    /// Every kind, in the order of the table in the documentation.
    pub const ALL: [Kind; 10] = [
        Kind::Invalid,
        Kind::NotFound,
        Kind::Exists,
        Kind::Conflict,
        Kind::Unsupported,
        Kind::Corrupt,
        Kind::Busy,
        Kind::Full,
        Kind::Denied,
        Kind::Io,
    ];

    /// The kind's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Invalid => "invalid",
            Kind::NotFound => "not_found",
            Kind::Exists => "exists",
            Kind::Conflict => "conflict",
            Kind::Unsupported => "unsupported",
            Kind::Corrupt => "corrupt",
            Kind::Busy => "busy",
            Kind::Full => "full",
            Kind::Denied => "denied",
            Kind::Io => "io",
        }
    }
}

/// Stable codes, finer than [`Kind`], that programs may match on.
pub mod code {
    /// Nothing is there.
    pub const FILE_NOT_FOUND: &str = "FILE_NOT_FOUND";
    /// Something is there already.
    pub const FILE_EXISTS: &str = "FILE_EXISTS";
    /// The path is malformed, reserved, or of the wrong kind.
    pub const INVALID_PATH: &str = "INVALID_PATH";
    /// The operating system or a rule of the store forbids it.
    pub const PERMISSION_DENIED: &str = "PERMISSION_DENIED";
    /// The text to replace is not in the file.
    pub const STRING_NOT_FOUND: &str = "STRING_NOT_FOUND";
    /// The text to replace is in the file more than once.
    pub const STRING_NOT_UNIQUE: &str = "STRING_NOT_UNIQUE";
    /// The folder still has something in it.
    pub const DIRECTORY_NOT_EMPTY: &str = "DIRECTORY_NOT_EMPTY";
    /// A file was needed and a folder is there.
    pub const IS_DIRECTORY: &str = "IS_DIRECTORY";
    /// A folder was needed and a file is there.
    pub const NOT_DIRECTORY: &str = "NOT_DIRECTORY";
    /// A link, pipe, socket or device, which memgrove neither follows nor changes.
    pub const NOT_REGULAR: &str = "NOT_REGULAR";
    /// The line number is outside the file.
    pub const INVALID_LINE: &str = "INVALID_LINE";
    /// The content is not UTF-8 text.
    pub const NOT_TEXT: &str = "NOT_TEXT";
    /// The content is larger than the store allows.
    pub const TOO_LARGE: &str = "TOO_LARGE";
    /// An entity lacks its name or its observations.
    pub const INVALID_ENTITY: &str = "INVALID_ENTITY";
    /// There is no entity of that name.
    pub const ENTITY_NOT_FOUND: &str = "ENTITY_NOT_FOUND";
    /// There is no record of that id.
    pub const RECORD_NOT_FOUND: &str = "RECORD_NOT_FOUND";
    /// There is no note of that path.
    pub const NOTE_NOT_FOUND: &str = "NOTE_NOT_FOUND";
    /// There is no node of that id.
    pub const NODE_NOT_FOUND: &str = "NODE_NOT_FOUND";
    /// There is a node of that id already.
    pub const NODE_EXISTS: &str = "NODE_EXISTS";
    /// The node still has connections.
    pub const NODE_CONNECTED: &str = "NODE_CONNECTED";
    /// There is no connection of that id.
    pub const CONNECTION_NOT_FOUND: &str = "CONNECTION_NOT_FOUND";
    /// A node or connection breaks a rule of the ontology, or the ontology itself is no good.
    pub const ONTOLOGY_RULE: &str = "ONTOLOGY_RULE";
    /// The registry of the graph is gone or damaged.
    pub const REGISTRY_LOST: &str = "REGISTRY_LOST";
    /// The version expected is not the version there.
    pub const VERSION_MISMATCH: &str = "VERSION_MISMATCH";
    /// The idempotency key was used for another change.
    pub const KEY_USED: &str = "KEY_USED";
    /// What it held was removed from the history for good.
    pub const REDACTED: &str = "REDACTED";
}

/// One failure: its kind, one sentence, and what to try.
///
/// The message is a lower-case sentence without a final period, locators in backticks.
#[derive(Debug)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    kind: Kind,
    code: Option<&'static str>,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// `ENFILE` and `EMFILE`, the same on every Unix.
const TOO_MANY_OPEN: [i32; 2] = [23, 24];

impl Error {
    /// Makes an error of a kind with its sentence.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        let inner = Inner { kind, code: None, message: message.into(), hint: None, source: None };
        Error { inner: Box::new(inner) }
    }

    /// Adds what to try, as a sentence of its own.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.inner.hint = Some(hint.into());
        self
    }

    /// Adds a stable code from [`code`].
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.inner.code = Some(code);
        self
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// Puts what was being done in front of the message; the kind, the code and the hint stay.
    #[must_use]
    pub fn while_doing(mut self, what: impl fmt::Display) -> Self {
        self.inner.message = format!("{what}: {}", self.inner.message);
        self
    }

    /// What the caller should do.
    pub fn kind(&self) -> Kind {
        self.inner.kind
    }

    /// The stable code, where there is one finer than the kind.
    pub fn code_name(&self) -> Option<&'static str> {
        self.inner.code
    }

    /// The sentence alone.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// What to try.
    pub fn hint_text(&self) -> Option<&str> {
        self.inner.hint.as_deref()
    }

    /// The same error in other words: message and hint, each through `words`.
    #[must_use]
    pub fn reworded(self, words: impl Fn(&str) -> String) -> Self {
        let mut made = Error::new(self.kind(), words(self.message()));
        made.inner.code = self.code_name();
        made.inner.hint = self.hint_text().map(words);
        made.caused_by(self)
    }

    /// An operating-system error met while working on `what`, a locator or a file of our own.
    pub fn from_io(error: std::io::Error, what: impl fmt::Display) -> Self {
        use std::io::ErrorKind as E;
        let (kind, hint, code) = match error.kind() {
            E::NotFound => (Kind::NotFound, None, Some(code::FILE_NOT_FOUND)),
            E::AlreadyExists => (
                Kind::Exists,
                Some("something else has that name: choose another, or move it away"),
                Some(code::FILE_EXISTS),
            ),
            E::PermissionDenied | E::ReadOnlyFilesystem => (
                Kind::Denied,
                Some("check the owner and the mode of the store's folder"),
                Some(code::PERMISSION_DENIED),
            ),
            E::StorageFull | E::QuotaExceeded | E::FileTooLarge => {
                (Kind::Full, Some("free some space; nothing was changed"), None)
            }
            E::WouldBlock | E::TimedOut | E::Interrupted => (Kind::Busy, Some("try again"), None),
            E::InvalidFilename => (Kind::Invalid, Some("use a shorter name"), Some(code::INVALID_PATH)),
            E::NotADirectory => (
                Kind::Invalid,
                Some("a file lies where a folder is needed: choose another place, or move it away"),
                Some(code::NOT_DIRECTORY),
            ),
            E::IsADirectory => (
                Kind::Invalid,
                Some("a folder lies where a file is needed: choose another place, or move it away"),
                Some(code::IS_DIRECTORY),
            ),
            _ if error.raw_os_error().is_some_and(|number| TOO_MANY_OPEN.contains(&number)) => {
                (Kind::Io, Some("close other programs, or allow more open files: `ulimit -n`"), None)
            }
            _ => (Kind::Io, Some("check the disk and the system's log"), None),
        };
        let mut made = Error::new(kind, format!("`{what}`: {error}")).caused_by(error);
        made.inner.hint = hint.map(String::from);
        made.inner.code = code;
        made
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
