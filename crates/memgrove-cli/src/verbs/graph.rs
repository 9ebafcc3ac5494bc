//! The graph as a whole, as verbs.

mod exchange;
mod keep;
mod walk;

pub(crate) use exchange::{GraphBatch, GraphExport, GraphImport};
pub(crate) use keep::{GraphCheck, GraphOntology};
pub(crate) use walk::{GraphNeighbours, GraphPath, GraphSubgraph};
