//! File-based memory for AI agents: plain files are the truth, one small seam carries them to any
//! storage, shapes give them meaning, and one door changes them.
//!
//! Start at [`backend`], which holds the contract; [`Store`] is what callers use, and [`Memory`]
//! is a store with meaning. This crate has no terminal, no environment, no ambient clock and no
//! async.

pub mod error;

pub mod clock;
pub mod locator;

pub mod backend;
pub mod store;

pub mod registry;
pub mod tier;

#[cfg(any(feature = "anthropic", feature = "openai", feature = "memory-stores"))]
mod wire;

pub mod vfs;

pub mod backends;

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
