//! One integration binary: every file beside this one is a module of it.

mod conformance;
mod crash;
mod faults;
mod local;
mod registry;
