//! A store inside a folder of another.
/// Placeholder.
pub struct Scoped;
