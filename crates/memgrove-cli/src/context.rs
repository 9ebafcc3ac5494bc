//! What a verb works with: the store, who asks, and what may be read.

mod folder;
mod shapes;
mod shown;
mod text;

pub(crate) use shapes::{GRAPH, KNOWLEDGE};

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use memgrove::backend::{Actor, Note, Version};
use memgrove::backends::{Ram, ram};
use memgrove::clock::SystemClock;
use memgrove::ids::{Ids, SystemIds};
use memgrove::shapes::entities::{Expected, Knowledge};
use memgrove::shapes::graph::Graph;
use memgrove::shapes::notes::Notes;
use memgrove::shapes::records::Records;
use memgrove::{Error, Index, Kind, Locator, Memory, Result, Store};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::{Environment, How, Place, STORE_FOLDER};
use crate::opening::{self, Selected};
use crate::settings::{self, Made, Settings};
use shown::Shown;

/// The folder of a store that the Memory Tool calls `/memories`.
pub(crate) const FILES: &str = "files";
/// How many characters tell one request from another.
const REQUEST_CHARS: usize = 16;

/// What a verb works with. Clones share the open store.
#[derive(Clone)]
pub(crate) struct Context {
    shared: Arc<Shared>,
    /// Who asks.
    pub(crate) actor: Actor,
    /// What text may be read from.
    pub(crate) input: Input,
    /// Whether the asker may change nothing.
    reads_only: bool,
    /// The request that came with a key, as far as it is known so far.
    request: Option<Arc<Mutex<String>>>,
}

struct Shared {
    environment: Environment,
    target: Target,
    backend: Option<String>,
    opened: OnceLock<Memory>,
    records: OnceLock<Arc<Records>>,
    knowledge: OnceLock<Knowledge>,
    graph: OnceLock<Graph>,
    notes: OnceLock<Notes>,
    index: OnceLock<Arc<Index>>,
    shown: Shown,
}

impl Shared {
    fn new(environment: Environment, target: Target, backend: Option<String>) -> Self {
        Shared {
            environment,
            target,
            backend,
            opened: OnceLock::new(),
            records: OnceLock::new(),
            knowledge: OnceLock::new(),
            graph: OnceLock::new(),
            notes: OnceLock::new(),
            index: OnceLock::new(),
            shown: Shown::default(),
        }
    }
}

/// Which store a context opens.
enum Target {
    /// A store of ours.
    Store(Place),
    /// A folder that is used in place as `/memories`.
    Folder(PathBuf),
}

/// Where a verb may take text from beside its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    /// Nowhere: the caller sends everything.
    None,
    /// Standard input and files, at the command line.
    Terminal,
}

/// What every verb that changes something takes.
#[derive(Debug, Clone, Default, clap::Args, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Guard {
    /// Only if it is at this version
    ///
    /// The first 8 characters of the version are enough.
    #[arg(long, value_name = "VERSION")]
    pub(crate) expect: Option<String>,
    /// Idempotency key
    ///
    /// A change whose key was used before is not made again: the first answer is returned. Reusing a key
    /// for a different request is an error.
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// Why, for the history
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) reason: Option<String>,
}

/// What a change takes that expects no version.
#[derive(Debug, Clone, Default, clap::Args, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Marks {
    /// Idempotency key
    ///
    /// A change whose key was used before is not made again: the first answer is returned. Reusing a key
    /// for a different request is an error.
    #[arg(long)]
    key: Option<String>,
    /// Why, for the history
    #[arg(long, allow_hyphen_values = true)]
    reason: Option<String>,
}

impl From<Marks> for Guard {
    fn from(Marks { key, reason }: Marks) -> Self {
        Guard { key, reason, expect: None }
    }
}

impl Context {
    /// A context over the store that is found as [`Environment::find_store`] says.
    pub(crate) fn new(
        environment: Environment,
        store: Option<&Path>,
        backend: Option<String>,
        actor: Actor,
        input: Input,
    ) -> Result<Self> {
        let target = Target::Store(environment.find_store(store)?);
        let shared = Arc::new(Shared::new(environment, target, backend));
        Ok(Context { shared, actor, input, reads_only: false, request: None })
    }

    /// The same asker over another store, and how that was named.
    pub(crate) fn over_store(&self, store: &Path, how: How) -> Result<Self> {
        let (environment, backend) = (self.shared.environment.clone(), self.shared.backend.clone());
        self.clone().over_store_in(environment, backend, store, how)
    }

    /// As [`Context::over_store`], with another environment and backend.
    pub(crate) fn over_store_in(
        self,
        environment: Environment,
        backend: Option<String>,
        store: &Path,
        how: How,
    ) -> Result<Self> {
        let target = Target::Store(environment.named(store, how)?);
        Ok(Context { shared: Arc::new(Shared::new(environment, target, backend)), ..self })
    }

    /// The same store for another asker.
    pub(crate) fn asked_by(&self, actor: Actor) -> Self {
        Context { actor, ..self.clone() }
    }

    /// The same store and asker, with texts taken from `input`.
    pub(crate) fn taking(self, input: Input) -> Self {
        Context { input, ..self }
    }

    /// The same store, for an asker who may change nothing.
    pub(crate) fn only_reading(self) -> Self {
        Context { reads_only: true, ..self }
    }

    /// The same store and asker for one request with a key, so that a repeat must ask for the same thing.
    pub(crate) fn asking(&self, request: &impl std::fmt::Debug) -> Self {
        Context { request: Some(Arc::new(Mutex::new(format!("{request:?}")))), ..self.clone() }
    }

    /// Checks that the asker may change something.
    ///
    /// # Errors
    /// `Denied` if not.
    pub(crate) fn may_write(&self) -> Result<()> {
        match self.reads_only {
            false => Ok(()),
            true => Err(Error::new(Kind::Denied, "the store is read-only here")
                .code("READ_ONLY")
                .hint("use a token that may write")),
        }
    }

    /// An option as the asker spells it: `--all` at a command line, `all` in a tool's arguments.
    pub(crate) fn option(&self, name: &str) -> String {
        match self.input {
            Input::Terminal => format!("--{name}"),
            Input::None => name.to_owned(),
        }
    }

    /// What the machine says.
    pub(crate) fn environment(&self) -> &Environment {
        &self.shared.environment
    }

    /// The backend that was asked for by name.
    pub(crate) fn backend_flag(&self) -> Option<&str> {
        self.shared.backend.as_deref()
    }

    /// The settings of the store, if it is a folder and has some.
    ///
    /// # Errors
    /// As [`Settings::read`].
    pub(crate) fn settings(&self) -> Result<Option<Settings>> {
        Ok(self.place().map(|place| Settings::read(&place.root)).transpose()?.flatten())
    }

    /// Where the store is, unless a folder is used in place.
    pub(crate) fn place(&self) -> Option<&Place> {
        match &self.shared.target {
            Target::Store(place) => Some(place),
            Target::Folder(_) => None,
        }
    }

    /// The store's place, or the folder that is used in place.
    pub(crate) fn root(&self) -> &Path {
        match &self.shared.target {
            Target::Store(place) => &place.root,
            Target::Folder(folder) => folder,
        }
    }

    /// The folder of the store that is `/memories`.
    pub(crate) fn files(&self) -> Locator {
        match &self.shared.target {
            Target::Store(_) => Locator::new(FILES).expect("a plain name is a locator"),
            Target::Folder(_) => Locator::root(),
        }
    }

    /// The memory, to read. A store at home that was never written to is an empty one.
    pub(crate) fn reading(&self) -> Result<Memory> {
        if let Some(memory) = self.shared.opened.get() {
            return Ok(memory.clone());
        }
        match self.is_made()? {
            true => self.open(),
            false => Ok(Memory::new(Store::new(Ram::default()), Arc::new(SystemClock))),
        }
    }

    /// Whether there is a store, or one was named that should exist: only the store at home is made unasked.
    pub(crate) fn is_made(&self) -> Result<bool> {
        Ok(match self.place() {
            Some(Place { root, how: How::Home }) => {
                self.shared.backend.is_some() || self.names_a_bucket() || Settings::read(root)?.is_some()
            }
            _ => true,
        })
    }

    /// The memory, to change. Makes the store at home if it does not exist.
    pub(crate) fn writing(&self) -> Result<Memory> {
        self.may_write()?;
        if let Some(memory) = self.shared.opened.get() {
            return Ok(memory.clone());
        }
        if let Some(place @ Place { root, how: How::Home }) = self.place()
            && !self.names_a_bucket()
        {
            // A backend that cannot be used is refused before anything is made.
            let protocol = self.selected(place, &[])?.protocol;
            let kept = Some(protocol.as_str()).filter(|protocol| *protocol != ram::PROTOCOL);
            if settings::make_store(root, &random_id(), kept)? == Made::Now {
                crate::notice(&format!("created a store at {}", root.display()));
            }
        }
        self.open()
    }

    /// The memory, to change what is there. Does not make a missing store, which has nothing to change.
    pub(crate) fn changing(&self) -> Result<Memory> {
        self.may_write()?;
        self.reading()
    }

    fn open(&self) -> Result<Memory> {
        let backend = match &self.shared.target {
            Target::Store(place) => {
                let selected = self.selected(place, &[])?;
                if Settings::read(&place.root)?.is_none() && !self.names_a_bucket() {
                    return Err(absent(place));
                }
                selected.open()?
            }
            Target::Folder(folder) => self.open_folder(folder)?,
        };
        let clock = Arc::new(SystemClock);
        let memory = Context::kept_true(Memory::new(Store::shared(backend), clock))?;
        Ok(self.shared.opened.get_or_init(|| memory).clone())
    }

    /// Which backend the store uses, and why.
    pub(crate) fn selected(&self, place: &Place, requires: &[&str]) -> Result<Selected> {
        opening::select(&self.shared.environment, place, self.backend_flag(), requires)
    }

    /// The store with the conflict copies of a vault visible.
    pub(crate) fn with_copies(&self) -> Result<Memory> {
        let Some(place) = self.place() else { return self.reading() };
        if Settings::read(&place.root)?.is_none() {
            return self.reading();
        }
        let backend = self.selected(place, &[])?.open_with_copies()?;
        Ok(Memory::new(Store::shared(backend), Arc::new(SystemClock)))
    }

    /// Whether the environment and the command line say all that a store in a bucket needs.
    fn names_a_bucket(&self) -> bool {
        let environment = &self.shared.environment;
        let backend = self.backend_flag().or(environment.backend.as_deref());
        backend == Some(memgrove::backends::object::PROTOCOL) && environment.bucket.bucket.is_some()
    }

    /// What the history is to remember of a change.
    pub(crate) fn note(&self, verb: &str, guard: &Guard) -> Note {
        let key = guard.key.clone().filter(|key| !is_blank(key));
        let asked = self.request.as_ref().map(|asked| asked.lock().unwrap_or_else(PoisonError::into_inner));
        let digest = asked.map(|asked| Version::of(asked.as_bytes()).as_str()[..REQUEST_CHARS].to_owned());
        Note {
            verb: verb.to_owned(),
            actor: self.actor.clone(),
            reason: guard.reason.clone(),
            request: digest.filter(|_| key.is_some()),
            key,
            ..Note::default()
        }
    }
}

impl Guard {
    /// As [`Guard::expected`], for a place that is not known yet; `None` if nothing is expected.
    pub(crate) fn expecting(&self) -> Option<Box<Expected<'_>>> {
        self.expect.as_ref()?;
        Some(Box::new(|store: &Store, at: &Locator| self.expected(store, at)))
    }

    /// What must be there before the change; the first 8 characters of a version stand for it.
    pub(crate) fn expected(&self, store: &Store, at: &Locator) -> Result<Option<Version>> {
        let Some(given) = self.expect.as_deref() else { return Ok(None) };
        let there = store.info_optional(at)?.and_then(|info| info.version);
        Ok(Some(Version::named(given, there.as_ref())?))
    }
}

/// Whether a key is blank, and so counts as none.
pub(crate) fn is_blank(key: &str) -> bool {
    key.trim().is_empty()
}

/// A fresh random name, for stores and connections.
pub(crate) fn random_id() -> String {
    SystemIds.uuid()
}

fn absent(place: &Place) -> Error {
    let root = place.root.display();
    let error =
        Error::new(Kind::NotFound, format!("there is no store at `{root}` ({})", place.how.because()));
    error.hint(match store_inside(&place.root) {
        Some(inside) => format!("there is one inside: use `{}`", inside.display()),
        None => format!("create one with `memgrove init {root}`"),
    })
}

/// The store that lies in the `.memgrove` of a folder.
pub(crate) fn store_inside(folder: &Path) -> Option<PathBuf> {
    let inside = folder.join(STORE_FOLDER);
    inside.join(settings::FILE).is_file().then_some(inside)
}

pub(crate) fn located(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Error::new(Kind::Invalid, format!("`{}` is not a UTF-8 path", path.display()))
            .hint("use a folder whose name is UTF-8")
    })
}
