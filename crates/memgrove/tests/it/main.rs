//! One integration binary: every file beside this one is a module of it.

mod conformance;
mod entities;
mod files;
mod hostile;
mod local;
mod memory_tool;
mod past;
mod registry;
