//! The storages: one module each, and one line in the table of standard protocols.

#[cfg(feature = "memory-stores")]
pub mod anthropic;
pub mod cached;
mod ledger;
#[cfg(unix)]
pub mod local;
#[cfg(any(feature = "object", feature = "memory-stores"))]
pub mod object;
pub mod ram;
#[cfg(any(unix, feature = "object", feature = "memory-stores"))]
mod replacing;
pub mod scoped;
mod trail;
#[cfg(unix)]
pub mod vault;

pub use cached::{CacheOptions, Cached};
#[cfg(unix)]
pub use local::{Local, LocalOptions};
#[cfg(any(feature = "object", feature = "memory-stores"))]
pub use object::ObjectStore;
pub use ram::Ram;
pub use scoped::Scoped;
#[cfg(unix)]
pub use vault::Vault;

use crate::registry::{Clobber, Registration, Registry};

/// The protocols of this crate and how to open them.
const STANDARD: &[(&str, Registration)] = &[
    #[cfg(feature = "memory-stores")]
    (anthropic::PROTOCOL, anthropic::REGISTRATION),
    #[cfg(unix)]
    (local::PROTOCOL, local::REGISTRATION),
    #[cfg(feature = "object")]
    (object::PROTOCOL, object::REGISTRATION),
    (ram::PROTOCOL, ram::REGISTRATION),
    #[cfg(unix)]
    (vault::PROTOCOL, vault::REGISTRATION),
];

impl Registry {
    /// A registry of the backends in this crate.
    pub fn standard() -> Self {
        let mut registry = Registry::new();
        for (protocol, registration) in STANDARD {
            registry
                .register(protocol, *registration, Clobber::Refuse)
                .expect("the standard protocols have distinct, valid names");
        }
        registry
    }
}
