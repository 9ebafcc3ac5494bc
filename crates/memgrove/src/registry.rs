//! Which backends there are: a protocol name and how to open it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::backend::{Backend, Capabilities};
use crate::clock::Clock;
use crate::error::{Error, Kind, Result};

/// The protocol that is used when nobody says otherwise.
pub const DEFAULT_PROTOCOL: &str = "device-local";

/// What a backend is opened with.
#[derive(Clone)]
pub struct OpenRequest {
    /// Where the store is, in the backend's own words: a folder, a URL.
    pub location: String,
    /// A folder on this machine for what must not lie in the store (a vault's journal, an object
    /// store's cache); `None` lets the backend keep its files in the store.
    pub state: Option<String>,
    /// What else the backend may want to know: a region, an endpoint, credentials. Never shown.
    pub settings: BTreeMap<String, String>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// Opens a backend.
pub type Open = fn(&OpenRequest) -> Result<Arc<dyn Backend>>;

/// One registered backend.
#[derive(Clone, Copy)]
pub struct Registration {
    /// How to open it.
    pub open: Open,
    /// What it can do, known before it is opened.
    pub capabilities: Capabilities,
    /// One line for `memgrove backends`.
    pub about: &'static str,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("about", &self.about).finish_non_exhaustive()
    }
}

/// What a second registration of the same name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clobber {
    /// A mistake.
    Refuse,
    /// Intended: it replaces the first.
    Replace,
}

/// Names of protocols and how to open them. Registries are independent of each other.
///
/// A bad registration fails loudly; a name that nobody registered is plain absence, and only
/// [`Registry::select`] turns that into an error.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    known: BTreeMap<String, Registration>,
}

impl Registry {
    /// A registry that knows nothing.
    pub fn new() -> Self {
        Registry::default()
    }

    /// Registers a backend under a protocol name.
    ///
    /// # Errors
    /// `Invalid` for a name that is empty or has other characters than `a-z`, `0-9` and `-`;
    /// `Exists` for a name that is taken, unless `clobber` says to replace it.
    pub fn register(&mut self, protocol: &str, registration: Registration, clobber: Clobber) -> Result<()> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if protocol.is_empty() || !protocol.chars().all(fits) {
            return Err(Error::new(Kind::Invalid, format!("`{protocol}` cannot name a protocol"))
                .hint("use lower-case letters, digits and `-`"));
        }
        if clobber == Clobber::Refuse && self.known.contains_key(protocol) {
            return Err(Error::new(Kind::Exists, format!("the protocol `{protocol}` is registered already"))
                .hint("choose another name, or ask to replace it"));
        }
        self.known.insert(protocol.to_owned(), registration);
        Ok(())
    }

    /// The backend of that name; `None` if nobody registered one.
    pub fn get(&self, protocol: &str) -> Option<&Registration> {
        self.known.get(protocol)
    }

    /// Whether a backend of that name is registered.
    pub fn contains(&self, protocol: &str) -> bool {
        self.known.contains_key(protocol)
    }

    /// The registered names, sorted.
    pub fn protocols(&self) -> Vec<&str> {
        self.known.keys().map(String::as_str).collect()
    }

    /// Chooses a backend: the explicit name, else the configured one, else the default. Never
    /// falls back: a name that cannot be used is an error.
    ///
    /// # Errors
    /// `Unsupported` for an unknown protocol or one that lacks a required capability; `Invalid`
    /// for a requirement that is not a capability.
    pub fn select<'a>(
        &'a self,
        explicit: Option<&'a str>,
        configured: Option<&'a str>,
        requires: &[&str],
    ) -> Result<(&'a str, &'a Registration)> {
        let protocol = explicit.or(configured).unwrap_or(DEFAULT_PROTOCOL);
        let Some(registration) = self.get(protocol) else {
            let known = self.protocols().join(", ");
            return Err(Error::new(Kind::Unsupported, format!("there is no backend named `{protocol}`"))
                .hint(format!("choose one of: {known}")));
        };
        for required in requires {
            let entries = registration.capabilities.entries();
            match entries.iter().find(|(name, _)| name == required) {
                None => {
                    let names = entries.map(|(name, _)| name).join(", ");
                    return Err(Error::new(Kind::Invalid, format!("`{required}` is not a capability"))
                        .hint(format!("choose from: {names}")));
                }
                Some((_, false)) => {
                    return Err(Error::new(
                        Kind::Unsupported,
                        format!("the backend `{protocol}` does not offer `{required}`"),
                    )
                    .hint("choose another backend (`memgrove backends` shows what each offers), or drop the requirement"));
                }
                Some((_, true)) => {}
            }
        }
        Ok((protocol, registration))
    }
}
