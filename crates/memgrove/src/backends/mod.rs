//! The storages: one file each, and one line in the table of standard protocols.

pub mod cached;
mod ledger;
#[cfg(unix)]
pub mod local;
#[cfg(feature = "object")]
pub mod object;
pub mod ram;
pub mod scoped;
mod trail;
#[cfg(unix)]
pub mod vault;

pub use cached::{CacheOptions, Cached};
#[cfg(unix)]
pub use local::{Local, LocalOptions};
#[cfg(feature = "object")]
pub use object::ObjectStore;
pub use ram::Ram;
pub use scoped::Scoped;
#[cfg(unix)]
pub use vault::Vault;

use crate::registry::Registration;

/// The protocols of this crate and how to open them.
pub(crate) const STANDARD: &[(&str, Registration)] = &[
    #[cfg(unix)]
    (local::PROTOCOL, local::REGISTRATION),
    #[cfg(feature = "object")]
    (object::PROTOCOL, object::REGISTRATION),
    (ram::PROTOCOL, ram::REGISTRATION),
    #[cfg(unix)]
    (vault::PROTOCOL, vault::REGISTRATION),
];
