//! The default storage: plain files in a folder, committed through a journal.
use crate::clock::Clock;
use crate::error::Result;
use crate::registry::Registration;
use crate::vfs::Vfs;
use std::sync::Arc;
/// The protocol name.
pub const PROTOCOL: &str = "device-local";
pub(crate) const REGISTRATION: Registration = Registration {
    open: |_| todo!(),
    capabilities: crate::backend::Capabilities {
        concurrent_writers: true,
        conflict_files: false,
        encryption: false,
        sync: false,
    },
    about: "",
};
/// What a local backend is opened with.
pub struct LocalOptions {
    /// The tree of files.
    pub tree: Arc<dyn Vfs>,
    /// Where `.journal` and `.lock` lie; the tree itself if `None`.
    pub state: Option<Arc<dyn Vfs>>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Whether a thread of its own makes checkpoints.
    pub background: bool,
}
/// The default storage.
pub struct Local;
impl Local {
    /// Opens.
    ///
    /// # Errors
    /// Some.
    pub fn open(_options: LocalOptions) -> Result<Self> {
        todo!()
    }
}
