//! What backends say when they refuse: one sentence each, the same from every backend.

use std::fmt;

use crate::error::{Error, Kind, code};
use crate::locator::Locator;

/// The error for a place where nothing is.
pub fn not_found(at: &Locator) -> Error {
    Error::new(Kind::NotFound, format!("`{at}` does not exist")).code(code::FILE_NOT_FOUND)
}

/// The error for a place that is taken.
pub fn exists(at: &Locator) -> Error {
    Error::new(Kind::Exists, format!("`{at}` already exists"))
        .code(code::FILE_EXISTS)
        .hint("choose another name, or pass the version of what is there")
}

/// The error for moving something to where something is.
pub fn taken(at: &Locator) -> Error {
    exists(at).hint("choose another name, or move what is there away first")
}

/// The error for something that is not at the version that was expected, said in the words of its shape.
pub fn moved_on(what: impl Into<String>) -> Error {
    Error::new(Kind::Conflict, what)
        .code(code::VERSION_MISMATCH)
        .hint("read it again, then redo the change on the current version")
}

/// The error for a derived change that does more than write and delete files (P18).
pub fn not_derivable(at: &Locator) -> Error {
    Error::new(
        Kind::Invalid,
        format!("a derived change only writes and deletes files, and `{at}` is not one"),
    )
    .hint("leave appends, moves and folders to changes that are in the history")
}

/// The error for a folder where a file is needed.
pub fn is_folder(at: &Locator) -> Error {
    Error::new(Kind::Invalid, format!("`{at}` is a folder"))
        .code(code::IS_DIRECTORY)
        .hint("name a file in it")
}

/// The error for a file where a folder is needed.
pub fn is_file(at: &Locator) -> Error {
    Error::new(Kind::Invalid, format!("`{at}` is a file, so nothing can be beneath it"))
        .code(code::NOT_DIRECTORY)
        .hint("choose a place that is not beneath a file")
}

/// The error for a folder that still holds something.
pub fn not_empty(at: &Locator) -> Error {
    Error::new(Kind::Invalid, format!("the folder `{at}` is not empty"))
        .code(code::DIRECTORY_NOT_EMPTY)
        .hint("delete what is in it first")
}

/// The error for moving a folder into itself.
pub fn into_itself(from: &Locator, to: &Locator) -> Error {
    Error::new(Kind::Invalid, format!("`{from}` cannot be moved into itself, to `{to}`"))
        .code(code::INVALID_PATH)
}

/// The error for a version or change that the history does not hold.
pub fn not_in_history(what: impl fmt::Display) -> Error {
    Error::new(Kind::NotFound, format!("the history does not hold {what}"))
        .hint("`memgrove history` lists what it holds")
}

/// The error for redacting in a backend that cannot rewrite its history.
pub fn cannot_forget(at: &Locator) -> Error {
    Error::new(Kind::Unsupported, format!("this backend cannot forget what `{at}` held"))
        .hint("keep what may have to be forgotten in a `device-local` store")
}

/// The error for pruning in a backend that cannot shorten its history.
pub fn cannot_prune() -> Error {
    Error::new(Kind::Unsupported, "this backend cannot forget what happened")
        .hint("only a store in a folder of this machine can")
}

/// The error for deleting the root of a store.
pub fn root_stays() -> Error {
    Error::new(Kind::Invalid, "the root cannot be deleted").code(code::INVALID_PATH)
}
