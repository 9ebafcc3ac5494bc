//! Everything in memory.
use crate::registry::Registration;
/// The protocol name.
pub const PROTOCOL: &str = "ram";
pub(crate) const REGISTRATION: Registration = Registration {
    open: |_| todo!(),
    capabilities: crate::backend::Capabilities {
        concurrent_writers: false,
        conflict_files: false,
        encryption: false,
        sync: false,
    },
    about: "",
};
/// Placeholder.
#[derive(Default)]
pub struct Ram;
