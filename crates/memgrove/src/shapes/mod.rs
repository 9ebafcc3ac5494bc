//! What bytes mean: each shape is a set of pure planners that read through the store and return
//! a [`Plan`](crate::memory::Plan).

pub mod entities;
pub mod files;
pub mod graph;
pub mod memory_tool;
pub mod merging;
pub mod notes;
pub mod records;
