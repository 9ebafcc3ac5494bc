//! The integration tests: one binary.

mod crash;
mod faults;
