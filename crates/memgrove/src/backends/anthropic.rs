//! Anthropic's memory stores: `anthropic://memstore_…/prefix`.
//!
//! The API knows single memories: no change of several of them, no author or reason, no folders and no
//! idempotency keys. [`ObjectStore`] adds all of that to any bucket with conditional writes, so this backend
//! is that one, over a [`Bucket`](super::object::Bucket) made of memories: there is one transactional machine
//! to trust, not two.
//!
//! Two things differ. A log of one object per record would soon fill a store with small memories, so the log
//! is the versions of one memory (`anthropic/log.rs`). And a memory holds nothing beside its content, so who
//! wrote it is told from its hash and the store's versions (`object/unmarked.rs`). A
//! [`Version`](crate::backend::Version) is our own hash of the content, as everywhere; `content_sha256`,
//! another hash of the same bytes, serves for conditions and never leaves this backend.

mod head;
mod log;
mod memories;
mod service;

use std::sync::Arc;

pub use memories::Memories;

use super::object::{ObjectStore, checked_prefix};
use crate::backend::{Backend, Capabilities};
use crate::error::{Error, Kind, Result};
use crate::registry::{OpenRequest, Registration};

/// The protocol name.
pub const PROTOCOL: &str = "anthropic";

/// How an address begins.
pub const SCHEME: &str = "anthropic://";

pub(crate) const REGISTRATION: Registration = Registration {
    open: open_request,
    capabilities: Capabilities {
        concurrent_writers: true,
        conflict_files: false,
        encryption: false,
        sync: false,
    },
    about: "a memory store of Anthropic's API: anthropic://memstore_…/prefix; text of at most 102,400 bytes",
};

/// Opens a memory store. The settings are `anthropic_api_key`, and `anthropic_base_url` for another
/// service that speaks the same API.
fn open_request(request: &OpenRequest) -> Result<Arc<dyn Backend>> {
    let (store, prefix) = parts(&request.location)?;
    let key = request.settings.get("anthropic_api_key").ok_or_else(|| {
        Error::new(Kind::Denied, "the backend `anthropic` has no key").hint("set ANTHROPIC_API_KEY")
    })?;
    let base = request.settings.get("anthropic_base_url").map(String::as_str);
    let memories = Memories::new(store, &prefix, base, key)?;
    Ok(Arc::new(ObjectStore::open(Arc::new(memories), &prefix, Arc::clone(&request.clock))?))
}

/// The memory store and the folder in it that an address names.
fn parts(location: &str) -> Result<(&str, String)> {
    let rest = location.strip_prefix(SCHEME).unwrap_or_default();
    let (store, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let named = store.strip_prefix("memstore_").is_some_and(|id| !id.is_empty());
    if !named || !store.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(Error::new(Kind::Invalid, format!("`{location}` names no memory store")).hint(
            "name one as anthropic://memstore_…, or with a folder of it as anthropic://memstore_…/prefix",
        ));
    }
    let prefix = checked_prefix(location, prefix)?;
    Ok((store, if prefix.is_empty() { String::new() } else { format!("{prefix}/") }))
}
