//! The machine's own disk.
/// Placeholder.
pub struct RealFs;
