//! The storages: one file each, and one line in the table of standard protocols.

#[cfg(unix)]
pub mod local;
pub mod ram;
pub mod scoped;
mod trail;

#[cfg(unix)]
pub use local::{Local, LocalOptions};
pub use ram::Ram;
pub use scoped::Scoped;

use crate::registry::Registration;

/// The protocols of this crate and how to open them.
pub(crate) const STANDARD: &[(&str, Registration)] = &[
    #[cfg(unix)]
    (local::PROTOCOL, local::REGISTRATION),
    (ram::PROTOCOL, ram::REGISTRATION),
];
