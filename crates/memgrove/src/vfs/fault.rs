//! A disk on which the n-th call fails.
/// Placeholder.
pub struct FaultFs;
/// Placeholder.
pub struct Fault;
