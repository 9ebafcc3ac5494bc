//! Notes as verbs: one file that grows into a linked memory.

mod look;
mod tend;
mod write;

pub(crate) use look::{NoteGraph, NoteList, NoteLog, NoteRead, NoteSearch};
pub(crate) use tend::{NoteMerge, NoteSplit};
pub(crate) use write::NoteWrite;

use memgrove::agent::Spent;

/// What asking a model cost, for people; nothing if none was asked.
fn cost(spent: &Spent) -> String {
    if spent.is_nothing() {
        return String::new();
    }
    let dollars = spent.usd.map_or(String::new(), |usd| format!(", ${usd:.4}"));
    format!(" ({} calls, {} + {} tokens{dollars})", spent.calls, spent.input_tokens, spent.output_tokens)
}
