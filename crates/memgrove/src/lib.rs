//! File-based memory for AI agents: plain files are the truth, one small seam carries them to any
//! storage, shapes give them meaning, and one door changes them.
//!
//! Start at [`backend`], which holds the contract; [`Store`] is what callers use, and [`Memory`]
//! is a store with meaning. This crate has no terminal, no environment, no ambient clock and no
//! async.
//!
//! ```
//! use std::sync::Arc;
//!
//! use memgrove::backend::{Backend, Note};
//! use memgrove::backends::{Local, LocalOptions};
//! use memgrove::clock::SystemClock;
//! use memgrove::ids::SystemIds;
//! use memgrove::index::{Options, Place, Source};
//! use memgrove::shapes::records::{NewRecord, RecordType, Records};
//! use memgrove::vfs::RealFs;
//! use memgrove::{Index, Locator, Memory, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! // A store is a folder.
//! let clock = Arc::new(SystemClock);
//! let tree = Arc::new(RealFs::create_root(&folder.path().join("memory"))?);
//! let backend = Local::open(LocalOptions::new(tree, clock.clone()))?;
//! let memory = Memory::new(Store::new(backend), clock.clone());
//!
//! // What is remembered is one line of a plain file, and a change in the history.
//! let records = Records::new(memory.clone(), Locator::new("records")?, Arc::new(SystemIds))?;
//! let note = Note { verb: "example".into(), ..Note::default() };
//! let fact = NewRecord::new(RecordType::Learning, "Deploys run on Tuesdays since May");
//! let done = records.add(note, &[fact])?;
//! assert_eq!(done.change.map(|change| change.to_string()).as_deref(), Some("1"));
//!
//! // What is looked for is found in the files.
//! let sources = vec![Source { under: String::new(), store: memory.store().clone() }];
//! let index = Index::new(Place::Ram, sources, clock, Options::default())?;
//! let found = index.search("when do we deploy?", 5)?;
//! assert_eq!(found.hits[0].text, "Deploys run on Tuesdays since May");
//! # Ok(())
//! # }
//! ```

pub mod error;

pub mod clock;
pub mod ids;
pub mod locator;

pub mod backend;
pub mod store;

pub mod registry;
pub mod tier;

#[cfg(any(feature = "anthropic", feature = "openai", feature = "memory-stores"))]
mod wire;

pub mod vfs;

pub mod backends;

pub mod address;
pub mod conformance;

pub mod text;

pub mod agent;

pub mod shapes;

pub mod memory;

pub mod copy;
pub mod document;
pub mod index;

pub use backend::Backend;
pub use error::{Error, Kind, Result};
pub use index::Index;
pub use locator::Locator;
pub use memory::Memory;
pub use registry::Registry;
pub use store::Store;
