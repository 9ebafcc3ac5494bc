//! Which backend a store uses, why, and how it is opened: the one place that decides, for opening,
//! for `memgrove backends` and for `memgrove doctor`.

mod state;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use memgrove::backend::{Finding, Level};
use memgrove::backends::cached::Freshness;
use memgrove::backends::local::JOURNAL;
use memgrove::backends::{CacheOptions, Cached};
use memgrove::backends::{anthropic, object, vault};
use memgrove::clock::{Clock, SystemClock};
use memgrove::registry::{DEFAULT_PROTOCOL, OpenRequest, Registration};
use memgrove::vfs::{RealFs, Vfs};
use memgrove::{Backend, Error, Kind, Registry, Result};
use state::State;

use crate::config::{BucketVariables, Environment, How, Place};
use crate::context::located;
use crate::settings::{BucketSettings, MemoryStoreSettings, Settings};

/// How many bytes of a far store are kept on this machine.
const CACHE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A backend that was chosen, and everything to open it with.
pub(crate) struct Selected {
    /// Its protocol name.
    pub(crate) protocol: String,
    /// Who named it.
    pub(crate) because: &'static str,
    registration: Registration,
    /// Where the store is, in the backend's words.
    pub(crate) location: String,
    state: Option<State>,
    settings: BTreeMap<String, String>,
    freshness: Option<Freshness>,
}

/// Chooses the backend of a store: the one named explicitly, else the one in the store's settings, else the
/// default. Never falls back to another.
///
/// # Errors
/// As [`Registry::select`]; `Invalid` where the backend lacks something to be opened with; `Denied`
/// where a store that was merely found names a bucket.
pub(crate) fn select(
    environment: &Environment,
    place: &Place,
    flag: Option<&str>,
    requires: &[&str],
) -> Result<Selected> {
    let settings = Settings::read(&place.root)?;
    let configured = settings.as_ref().and_then(|settings| settings.backend.as_deref());
    let explicit = flag.or(environment.backend.as_deref());
    let registry = Registry::standard();
    let (protocol, registration) = registry.select(explicit, configured, requires)?;
    let because = match (flag, &environment.backend, configured) {
        (Some(_), ..) => "named by --backend",
        (None, Some(_), _) => "named by MEMGROVE_BACKEND",
        (None, None, Some(_)) if place.is_url() => "named by the store's address",
        (None, None, Some(_)) => "named by the store's memgrove.toml",
        (None, None, None) => "the default",
    };
    if let (Some(explicit), Some(settings)) = (explicit, &settings) {
        check_one_history(explicit, settings.backend.as_deref().unwrap_or(DEFAULT_PROTOCOL), because)?;
    }
    let mut selected = Selected {
        protocol: protocol.to_owned(),
        because,
        registration: *registration,
        location: String::new(),
        state: None,
        settings: BTreeMap::new(),
        freshness: None,
    };
    if protocol == object::PROTOCOL {
        let recorded = settings.map(|settings| settings.object).unwrap_or_default();
        selected.bucket(environment, place, recorded)?;
    } else if protocol == anthropic::PROTOCOL {
        let recorded = settings.map(|settings| settings.anthropic).unwrap_or_default();
        selected.memory_store(environment, place, recorded)?;
    } else if place.is_url() {
        let why = format!("the backend `{protocol}` cannot use the address `{}`", place.root.display());
        return Err(Error::new(Kind::Invalid, why)
            .hint(format!("the address determines the backend: leave out the one {because}")));
    } else {
        selected.location = located(&place.root)?;
        if protocol == vault::PROTOCOL {
            let id = settings.as_ref().and_then(|settings| settings.id.as_deref());
            selected.state = Some(State::find(environment.state_folder()?, id, &selected.location));
        }
    }
    Ok(selected)
}

/// Opens a folder that is used in place: all but its memories lies in the state folder, under a name made
/// from its path.
pub(crate) fn in_place(
    environment: &Environment,
    folder: &Path,
    backend: Option<&str>,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Backend>> {
    let registry = Registry::standard();
    let (_, registration) = registry.select(backend, None, &[])?;
    let state = Some(located(&state_in_place(environment, folder)?)?);
    (registration.open)(&OpenRequest { location: located(folder)?, state, settings: BTreeMap::new(), clock })
}

/// Makes the folder for the history of a folder that is used in place.
pub(crate) fn state_in_place(environment: &Environment, folder: &Path) -> Result<PathBuf> {
    let (states, folder) = (environment.state_folder()?, located(folder)?);
    State::in_place(states.clone(), &folder).settle().map_err(|error| {
        let error = error.while_doing(format_args!("the history of `{folder}` cannot be kept"));
        match error.kind() {
            Kind::Full | Kind::Busy => error,
            _ => error.hint(format!(
                "make `{}` writable, or set XDG_STATE_HOME to a folder that is",
                states.display()
            )),
        }
    })
}

/// Whether a folder has been used in place before.
pub(crate) fn is_used_in_place(states: PathBuf, folder: &Path) -> bool {
    folder.to_str().is_some_and(|folder| State::in_place(states, folder).tells_place())
}

/// Refuses to open a store as a vault and as a plain folder in turn: they keep their histories in different
/// places, and each would undo what it does not know.
fn check_one_history(asked: &str, own: &str, because: &str) -> Result<()> {
    let in_a_folder = |protocol: &str| [DEFAULT_PROTOCOL, vault::PROTOCOL].contains(&protocol);
    if asked == own || !in_a_folder(asked) || !in_a_folder(own) {
        return Ok(());
    }
    let why =
        format!("the store uses the backend `{own}`: as `{asked}` ({because}) it would get a second history");
    Err(Error::new(Kind::Invalid, why)
        .hint(format!("leave that out, or copy the store: memgrove copy --to {asked}:FOLDER")))
}

/// Returns an address with its scheme in lower case.
fn with_plain_scheme(location: &str) -> String {
    match location.split_once("://") {
        Some((scheme, rest)) => format!("{}://{rest}", scheme.to_ascii_lowercase()),
        None => location.to_owned(),
    }
}

/// A repository that somebody else wrote must not choose where memories are sent.
fn check_named(place: &Place, location: &str) -> Result<()> {
    if place.how != How::Upward || place.is_url() {
        return Ok(());
    }
    let root = place.root.display();
    let why =
        format!("the store at `{root}` was found, not named, so it may not send memories to `{location}`");
    Err(Error::new(Kind::Denied, why).hint(format!("if you trust it, name it: --store {root}")))
}

impl Selected {
    /// Takes the bucket from the address, the environment or the store's settings, in this order.
    fn bucket(&mut self, environment: &Environment, place: &Place, recorded: BucketSettings) -> Result<()> {
        let told = &environment.bucket;
        let location = match (place.is_url(), &told.bucket) {
            (true, _) => place.root.to_str().map(str::to_owned),
            (false, Some(bucket)) => {
                let prefix = told.prefix.as_deref().unwrap_or("memory/");
                Some(format!("s3://{bucket}/{prefix}"))
            }
            (false, None) => recorded.location.clone(),
        };
        let Some(location) = location else {
            return Err(Error::new(Kind::Invalid, "the backend `object` has no bucket to use").hint(
                "name it with --store s3://bucket/prefix, with MEMGROVE_S3_BUCKET, or as `location` in [object] of memgrove.toml",
            ));
        };
        let location = with_plain_scheme(&location);
        if told.bucket.is_none() || (recorded.endpoint.is_some() && told.endpoint.is_none()) {
            check_named(place, &location)?;
        }
        // The variables speak of S3; the other providers have their own.
        let nothing = BucketVariables::default();
        let told = if location.starts_with("s3://") { told } else { &nothing };
        let or = |told: &Option<String>, recorded: Option<String>| told.clone().or(recorded);
        let path_style = or(&told.path_style, recorded.path_style.map(|style| style.to_string()));
        let named = [
            ("region", or(&told.region, recorded.region)),
            ("endpoint", or(&told.endpoint, recorded.endpoint)),
            ("path_style", path_style),
        ];
        self.settings.clone_from(&environment.providers);
        self.settings.extend(named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        self.far_away(environment, location)
    }

    /// Takes the memory store from the address or the store's settings.
    fn memory_store(
        &mut self,
        environment: &Environment,
        place: &Place,
        recorded: MemoryStoreSettings,
    ) -> Result<()> {
        let address = place.root.to_str().filter(|_| place.is_url()).map(str::to_owned);
        let Some(location) = address.or(recorded.location) else {
            return Err(Error::new(Kind::Invalid, "the backend `anthropic` has no memory store to use").hint(
                "name it with --store anthropic://memstore_…, or as `location` in [anthropic] of memgrove.toml",
            ));
        };
        let location = with_plain_scheme(&location);
        check_named(place, &location)?;
        self.settings.clone_from(&environment.providers);
        self.far_away(environment, location)
    }

    /// Sets up the state folder and the cache of a store that is not on this machine.
    fn far_away(&mut self, environment: &Environment, location: String) -> Result<()> {
        self.location = location;
        self.state = Some(State::of(environment.state_folder()?, self.identity().as_bytes()));
        let seconds = environment.cache_ttl.as_deref().map_or(Ok(0), |text| {
            text.parse::<u64>().map_err(|_| {
                Error::new(Kind::Invalid, format!("`{text}` is not a number of seconds"))
                    .hint("MEMGROVE_CACHE_TTL is a whole number of seconds, such as 300")
            })
        })?;
        self.freshness = Some(match seconds {
            0 => Freshness::Checked,
            seconds => Freshness::For(Duration::from_secs(seconds)),
        });
        Ok(())
    }

    /// What tells this store from every other: the same address at another service, or of another account, is
    /// another store.
    pub(crate) fn identity(&self) -> String {
        let tells =
            |name: &str| ["endpoint", "base_url", "account_name"].iter().any(|part| name.contains(part));
        let told = self.settings.iter().filter(|(name, _)| tells(name));
        let told: Vec<String> = told.map(|(name, value)| format!("\n{name}={value}")).collect();
        format!("{}{}", self.location, told.concat())
    }

    fn request(&self) -> Result<OpenRequest> {
        let state = self.state.as_ref().map(|state| located(&state.settle()?)).transpose()?;
        let (location, settings) = (self.location.clone(), self.settings.clone());
        Ok(OpenRequest { location, state, settings, clock: Arc::new(SystemClock) })
    }

    /// Opens the backend, with a cache in front if it is far away.
    pub(crate) fn open(&self) -> Result<Arc<dyn Backend>> {
        let request = self.request()?;
        let backend: Arc<dyn Backend> = match self.protocol == object::PROTOCOL {
            true => {
                let store = object::open(&request)?;
                if store.unclaimed() > 0 {
                    let (count, at) = (store.unclaimed(), &self.location);
                    crate::notice(&format!(
                        "{count} objects in {at} belong to no store yet: `memgrove doctor` or the first change adopts them"
                    ));
                }
                Arc::new(store)
            }
            false => (self.registration.open)(&request)?,
        };
        let Some(freshness) = self.freshness else { return Ok(backend) };
        let mut options = CacheOptions::new(Arc::new(SystemClock));
        options.freshness = freshness;
        options.disk = self.cache_folder()?.map(|folder| (folder, CACHE_BYTES_MAX));
        Ok(Arc::new(Cached::new(backend, options)))
    }

    /// Checks with the service itself that many may write to it, where only the service can tell.
    pub(crate) fn check_service(&self, requires: &[&str]) -> Result<()> {
        match self.protocol == object::PROTOCOL && requires.contains(&"concurrent_writers") {
            true => object::open(&self.request()?)?.check_conditions(),
            false => Ok(()),
        }
    }

    /// Opens the store with the conflict copies of a vault visible.
    pub(crate) fn open_with_copies(&self) -> Result<Arc<dyn Backend>> {
        if self.protocol == vault::PROTOCOL { vault::open_with_copies(&self.request()?) } else { self.open() }
    }

    /// How much the history takes, where the backend keeps it on this machine.
    pub(crate) fn history_bytes(&self) -> Option<u64> {
        let entries = std::fs::read_dir(self.journal()?).ok()?;
        entries.map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum()
    }

    /// The folder of the history, where the backend keeps one on this machine.
    fn journal(&self) -> Option<PathBuf> {
        let beside = match self.protocol.as_str() {
            DEFAULT_PROTOCOL => Some(PathBuf::from(&self.location)),
            vault::PROTOCOL => self.state.as_ref().map(State::folder),
            _ => None,
        };
        beside.map(|folder| folder.join(JOURNAL))
    }

    /// The finding that another copy of this store is on this machine.
    pub(crate) fn twin(&self) -> Option<Finding> {
        let twin = self.state.as_ref()?.twin.as_ref()?;
        Some(Finding {
            level: Level::Info,
            at: twin.clone(),
            what: "it is a copy of this store; each has a history of its own on this machine".to_owned(),
            hint: "nothing to do; delete the one you do not need".to_owned(),
        })
    }

    /// The folder of the cache, where there is one.
    pub(crate) fn cache_folder(&self) -> Result<Option<Arc<dyn Vfs>>> {
        let Some(state) = self.state.as_ref().filter(|_| self.freshness.is_some()) else { return Ok(None) };
        let folder = state.folder().join("cache");
        let made = RealFs::create_root(&folder).map_err(|error| Error::from_io(error, folder.display()))?;
        Ok(Some(Arc::new(made)))
    }
}
