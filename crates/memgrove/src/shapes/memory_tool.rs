//! The door for Anthropic's Memory Tool (`memory_20250818`): its six commands, answered in text.
//!
//! The texts, the order of the checks and the bytes left behind are those of the reference
//! implementation in Anthropic's Python SDK (2.8.0). These differences are meant:
//!
//! - `/memories_backup` is not inside `/memories`, and `..` never leads out of it, not even by way
//!   of the folder that holds it.
//! - Links are neither followed nor listed, and a folder that holds one cannot be deleted here.
//! - A command that fails leaves nothing behind, neither empty files nor folders.
//! - What the SDK answers with a raw runtime error, because of a missing or ill-typed parameter, a
//!   control character, a name that is too long, a file used as a folder, a folder moved into
//!   itself, or bytes that are not UTF-8, is a sentence that says what to mend. No text names a
//!   path of the machine. A `new_str` that is missing deletes `old_str`.
//! - Names are kept in Unicode normal form C. A new name that differs from a neighbour's in case
//!   only, or that some system cannot hold, is refused, so that a store can be carried anywhere.
//! - A folder's size is always shown as `4K`, which is what the SDK shows for a folder on most
//!   file systems: storages other than file systems have no such number.
//! - A list of places where `old_str` occurs ends after a thousand of them.
//! - A folder that may not be looked into is an error if it is the one to be shown; beneath that one it is
//!   listed without what it holds, as in the SDK.
//! - A `view_range` of text is refused; the SDK takes text of any length but two for none. A line number
//!   beyond the reach of floating point is echoed in its first seventeen digits.
//! - Half of a surrogate pair, which is no text, is refused before the command is looked at.
//!
//! Changes go through [`Memory::apply`], so they are durable, in the history, and never overwrite
//! what someone else wrote in between. A repeat of the same idempotency key gives the same text.

mod command;
mod edit;
mod place;
mod view;

use serde::Serialize;
use serde_json::Value;

use crate::backend::{Expect, FileKind, Note, Version};
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;
use crate::memory::{Memory, Plan};
use crate::shapes::files;
use crate::store::Store;

use command::Command;

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reply {
    /// The text for the model.
    pub content: String,
    /// Whether the command failed.
    pub is_error: bool,
}

/// Carries out one command, given as the model sent it: `{"command": "view", "path": …}`.
///
/// `root` is the folder that the model knows as `/memories`; it need not exist yet. The note's verb
/// becomes `memory_<command>`.
pub fn run(memory: &Memory, root: &Locator, note: Note, command: &Value) -> Reply {
    run_at(memory, root, note, command, None)
}

/// As [`run`], for a caller who has seen `path` (or `old_path`) at a version, given by its first
/// characters. The command fails if another version is there; a view ignores it.
pub fn run_at(
    memory: &Memory,
    root: &Locator,
    note: Note,
    command: &Value,
    expect: Option<&Version>,
) -> Reply {
    let done = match Command::parse(root, command) {
        Err(error) => Err(error.message().to_owned()),
        Ok(command) => {
            let telling = |error: Error| place::told(memory.store(), root, &command.places(), &error);
            answer(memory, note, &command, expect).map_err(telling)
        }
    };
    match done {
        Ok(content) => Reply { content, is_error: false },
        Err(content) => Reply { content, is_error: true },
    }
}

fn answer(memory: &Memory, mut note: Note, command: &Command, expect: Option<&Version>) -> Result<String> {
    note.verb = format!("memory_{}", command.name());
    let apply = |plan: &dyn Fn(&Store) -> Result<Plan<String>>| {
        let done = memory.apply(note, |store| match (expect, &command.places()[..]) {
            (Some(expect), [path, ..]) => resting_on(store, &path.at, expect, plan),
            _ => plan(store),
        })?;
        Ok(done.outcome)
    };
    match command {
        Command::View { path, range } => view::view(memory.store(), path, range),
        Command::Create { path, file_text } => apply(&|store| edit::create(store, path, file_text)),
        Command::StrReplace { path, old_str, new_str } => {
            apply(&|store| edit::str_replace(store, path, old_str, new_str))
        }
        Command::Insert { path, insert_line, insert_text } => {
            apply(&|store| edit::insert(store, path, insert_line, insert_text))
        }
        Command::Delete { path } => apply(&|store| edit::delete(store, path)),
        Command::Rename { old_path, new_path } => apply(&|store| edit::rename(store, old_path, new_path)),
    }
}

/// Plans an edit that expects the version which the caller has seen.
fn resting_on(
    store: &Store,
    at: &Locator,
    seen: &Version,
    plan: &dyn Fn(&Store) -> Result<Plan<String>>,
) -> Result<Plan<String>> {
    let there = store.info_optional(at)?;
    if there.as_ref().is_some_and(|info| info.kind == FileKind::Folder) {
        return Err(files::without_version(at));
    }
    let there = there.and_then(|info| info.version);
    let seen = Expect::At(Version::named(seen.as_str(), there.as_ref())?);
    seen.check(at, there.as_ref())?;
    let plan = plan(store)?;
    // The file may have changed while the plan was made.
    for edit in plan.edits.iter().filter(|edit| edit.at() == at) {
        if let Expect::At(read) = edit.expect() {
            seen.check(at, Some(read))?;
        }
    }
    Ok(plan)
}

/// The code of an error whose message is the whole answer.
const REFUSED: &str = "MEMORY_TOOL";

fn refused(text: impl Into<String>) -> Error {
    Error::new(Kind::Invalid, text).code(REFUSED)
}
