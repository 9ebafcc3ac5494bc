//! Notes as verbs: one file that grows into a linked memory.

mod look;
mod tend;
mod write;

pub(crate) use look::{NoteGraph, NoteList, NoteLog, NoteRead, NoteSearch};
pub(crate) use tend::{NoteMerge, NoteSplit};
pub(crate) use write::NoteWrite;

use memgrove::Result;
use memgrove::agent::Spent;
use memgrove::backend::Finding;
use memgrove::shapes::notes::{Guarded, Notes, normal_path};

use crate::context::{Context, Guard};

/// What is wrong with the notes, and what was mended first.
pub(super) fn examine(cx: &Context, fix: bool) -> Result<(Vec<Finding>, Vec<String>)> {
    let mended = match fix {
        true => cx.writing_notes()?.mend(cx.note("doctor", &Guard::default()))?.outcome,
        false => Vec::new(),
    };
    let knowledge = cx.reading_knowledge()?;
    let is_entity = |target: &str| knowledge.load(target, None).is_ok_and(|found| found.is_some());
    Ok((cx.reading_notes()?.check_beside(&is_entity)?, mended))
}

/// The version that a note must be at before it is changed.
fn guarded(notes: &Notes, guard: &Guard, path: Option<&str>) -> Result<Guarded> {
    let at = notes.locate(&normal_path(path)?)?;
    Ok(Guarded { expect: guard.expected(notes.memory().store(), &at)? })
}

/// What asking a model cost, for people; nothing if none was asked.
fn cost(spent: &Spent) -> String {
    if spent.is_nothing() {
        return String::new();
    }
    let dollars = spent.usd.map_or(String::new(), |usd| format!(", ${usd:.4}"));
    format!(" ({} calls, {} + {} tokens{dollars})", spent.calls, spent.input_tokens, spent.output_tokens)
}
