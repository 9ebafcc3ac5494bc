//! What callers use: the seam's verbs over any backend, with text and retries.

use std::sync::Arc;
use std::thread;

use crate::backend::{
    Applied, Backend, Capabilities, Change, ConflictStrategy, Content, Depth, Edit, Expect, Info, Note,
};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;

/// How often a change is planned anew before its conflict is given to the caller.
pub const ATTEMPTS_MAX: u32 = 256;
const EXISTS_ATTEMPTS_MAX: u32 = 32;
const FULL_FOLDER_ATTEMPTS_MAX: u32 = 64;
/// How many files are read at the same time from a storage that is far away.
const READERS_MAX: usize = 32;

/// A backend as callers see it.
///
/// ```
/// use memgrove::{Store, backends::Ram};
///
/// let store = Store::new(Ram::default());
/// let at = store.resolve(&["notes", "today.md"])?;
/// store.write(&at, "# Today\n")?;
/// assert_eq!(store.read(&at)?, "# Today\n");
/// # Ok::<(), memgrove::Error>(())
/// ```
#[derive(Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
}

impl Store {
    /// A store over a backend.
    pub fn new(backend: impl Backend + 'static) -> Self {
        Store { backend: Arc::new(backend) }
    }

    /// A store over a backend that is shared already.
    pub fn shared(backend: Arc<dyn Backend>) -> Self {
        Store { backend }
    }

    /// The backend itself.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Makes a locator from its parts; none is the root.
    ///
    /// # Errors
    /// `Invalid`, as [`Locator::new`].
    pub fn resolve(&self, parts: &[&str]) -> Result<Locator> {
        Locator::new(parts.join("/"))
    }

    /// Reads a file as text.
    ///
    /// # Errors
    /// As [`Backend::read`]; `Invalid` (code `NOT_TEXT`) for bytes that are not UTF-8.
    pub fn read(&self, at: &Locator) -> Result<String> {
        text(at, self.read_bytes(at)?.bytes)
    }

    /// Reads a file as bytes, with its version.
    ///
    /// # Errors
    /// As [`Backend::read`].
    pub fn read_bytes(&self, at: &Locator) -> Result<Content> {
        self.backend.read(at)
    }

    /// Reads many files, in the order of `places`; from a storage that is far away, many at a time.
    pub fn read_many(&self, places: &[Locator]) -> Vec<Result<Content>> {
        if self.conflict_strategy() != ConflictStrategy::Etag || places.len() < 2 {
            return places.iter().map(|at| self.backend.read(at)).collect();
        }
        let each = places.len().div_ceil(READERS_MAX);
        let read = |part: &[Locator]| part.iter().map(|at| self.backend.read(at)).collect::<Vec<_>>();
        thread::scope(|scope| {
            let parts: Vec<_> = places.chunks(each).map(|part| scope.spawn(move || read(part))).collect();
            parts.into_iter().flat_map(|part| part.join().expect("a read does not panic")).collect()
        })
    }

    /// Reads a file as bytes; `None` where nothing is.
    ///
    /// # Errors
    /// As [`Backend::read`], except for absence.
    pub fn read_optional(&self, at: &Locator) -> Result<Option<Content>> {
        match self.backend.read(at) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// As [`Store::read_optional`], and `None` for a folder too.
    ///
    /// # Errors
    /// As [`Backend::read`], except for absence and folders.
    pub fn read_file_optional(&self, at: &Locator) -> Result<Option<Content>> {
        match self.read_optional(at) {
            Err(error) if error.code_name() == Some(code::IS_DIRECTORY) => Ok(None),
            there => there,
        }
    }

    /// Writes a text, whatever was there before, and gives back where.
    ///
    /// # Errors
    /// As [`Backend::apply`].
    pub fn write(&self, at: &Locator, text: &str) -> Result<Locator> {
        let edit = Edit::Write { at: at.clone(), bytes: text.to_owned().into(), expect: Expect::Any };
        let note = Note { verb: "write".into(), ..Note::default() };
        self.apply(&Change { edits: vec![edit], note })?;
        Ok(at.clone())
    }

    /// Lists the immediate children.
    ///
    /// # Errors
    /// As [`Backend::list`].
    pub fn list(&self, under: &Locator) -> Result<Vec<Locator>> {
        let children = self.backend.list(under, Depth::Children)?;
        Ok(children.into_iter().map(|info| info.locator).collect())
    }

    /// Describes everything beneath a folder.
    ///
    /// # Errors
    /// As [`Backend::list`].
    pub fn list_all(&self, under: &Locator) -> Result<Vec<Info>> {
        self.backend.list(under, Depth::All)
    }

    /// Whether anything is there.
    ///
    /// # Errors
    /// As [`Backend::info`], except for absence.
    pub fn exists(&self, at: &Locator) -> Result<bool> {
        Ok(self.info_optional(at)?.is_some())
    }

    /// Describes what is there.
    ///
    /// # Errors
    /// As [`Backend::info`].
    pub fn info(&self, at: &Locator) -> Result<Info> {
        self.backend.info(at)
    }

    /// Describes what is there; `None` where nothing is.
    ///
    /// # Errors
    /// As [`Backend::info`], except for absence.
    pub fn info_optional(&self, at: &Locator) -> Result<Option<Info>> {
        match self.backend.info(at) {
            Ok(info) => Ok(Some(info)),
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Ensures that a folder exists, and gives back where.
    ///
    /// # Errors
    /// As [`Backend::mkdir`].
    pub fn mkdir(&self, at: &Locator) -> Result<Locator> {
        self.backend.mkdir(at)?;
        Ok(at.clone())
    }

    /// What the backend can do beyond the promises.
    pub fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    /// How the backend reconciles writes that diverged.
    pub fn conflict_strategy(&self) -> ConflictStrategy {
        self.backend.conflict_strategy()
    }

    /// Applies a change once.
    ///
    /// # Errors
    /// As [`Backend::apply`].
    pub fn apply(&self, change: &Change) -> Result<Applied> {
        self.backend.apply(change)
    }

    /// Plans a change and applies it, planning anew from fresh bytes each time that someone else
    /// was faster. The one place that retries a conflict.
    ///
    /// # Errors
    /// Whatever `plan` returns, at once; `Conflict` after [`ATTEMPTS_MAX`] attempts; else as
    /// [`Backend::apply`].
    pub fn commit<T>(&self, mut plan: impl FnMut() -> Result<(Change, T)>) -> Result<(Applied, T)> {
        let mut attempt = 1;
        loop {
            let (change, outcome) = plan()?;
            match self.backend.apply(&change) {
                Ok(applied) => return Ok((applied, outcome)),
                // `NotFound` too: what the plan wanted to remove or move may be gone since.
                Err(error)
                    if matches!(error.kind(), Kind::Conflict | Kind::NotFound) && attempt < ATTEMPTS_MAX =>
                {
                    attempt += 1;
                }
                // `Exists` too: the plan may rest on an absence that has ended since. A plan that
                // minds what is there now says so itself on the next round; only a name that can
                // never be made is refused again and again.
                Err(error) if error.kind() == Kind::Exists && attempt < EXISTS_ATTEMPTS_MAX => attempt += 1,
                // Nor does a folder that the plan emptied stay empty while others write.
                Err(error)
                    if error.code_name() == Some(code::DIRECTORY_NOT_EMPTY)
                        && attempt < FULL_FOLDER_ATTEMPTS_MAX =>
                {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Replaces a file's bytes by what `edit` makes of them (`None`: nothing is there), and never
    /// loses what someone else wrote in between.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn update(
        &self,
        at: &Locator,
        mut edit: impl FnMut(Option<&[u8]>) -> Result<Vec<u8>>,
    ) -> Result<Applied> {
        let plan = || {
            let there = self.read_optional(at)?;
            let bytes = edit(there.as_ref().map(|content| content.bytes.as_slice()))?;
            let expect = there.map_or(Expect::Absent, |content| Expect::At(content.version));
            let edits = vec![Edit::Write { at: at.clone(), bytes: bytes.into(), expect }];
            Ok((Change { edits, note: Note { verb: "update".into(), ..Note::default() } }, ()))
        };
        Ok(self.commit(plan)?.0)
    }
}

/// The bytes of a file as text.
///
/// # Errors
/// `Invalid` with code `NOT_TEXT`.
pub fn text(at: &Locator, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        Error::new(Kind::Invalid, format!("`{at}` is not UTF-8 text (byte {offset})"))
            .code(code::NOT_TEXT)
            .hint("read it as bytes with `memgrove read`; text operations leave it alone")
    })
}
