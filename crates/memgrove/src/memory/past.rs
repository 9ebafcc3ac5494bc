//! The past of a memory: history, differences, restoring and undoing.

/// What to undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoScope {}
