//! A simulated disk.
/// Placeholder.
pub struct SimFs;
