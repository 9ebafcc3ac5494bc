//! One integration binary: every file beside this one is a module of it.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)] // Tests may panic, speak, and play the outsider.

mod cached;
mod conformance;
mod crash;
mod entities;
mod faults;
mod files;
mod graph;
mod hooked;
mod hostile;
mod index;
mod local;
mod memory_tool;
mod model;
mod names;
mod notes;
mod object;
mod partition;
mod past;
mod processes;
mod records;
mod redact;
mod registry;
mod s3;
mod scoped;
mod tidy;
mod vault;
