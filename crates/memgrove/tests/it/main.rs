//! The integration tests of the library, as one binary.

mod conformance;
mod registry;
