//! One integration binary: every file beside this one is a module of it.

mod crash;
mod faults;
mod local;
