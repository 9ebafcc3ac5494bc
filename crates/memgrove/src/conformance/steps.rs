//! The small steps that cases are made of.

use std::fmt::Debug;

use super::{Case, Failure, Needs, Trial, Verdict};
use crate::backend::{Applied, Backend, Change, Depth, Edit, Expect, Note};
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;

/// A case that every backend must pass.
pub(super) const fn case(promise: &'static str, name: &'static str, run: fn(&Trial<'_>) -> Verdict) -> Case {
    Case { name, promise, needs: Needs::Nothing, run }
}

/// A case for backends that offer what not every backend can.
pub(super) const fn case_with(
    promise: &'static str,
    name: &'static str,
    needs: Needs,
    run: fn(&Trial<'_>) -> Verdict,
) -> Case {
    Case { name, promise, needs, run }
}

/// A case for backends with a history.
pub(super) const fn history_case(
    promise: &'static str,
    name: &'static str,
    run: fn(&Trial<'_>) -> Verdict,
) -> Case {
    Case { name, promise, needs: Needs::History, run }
}

pub(super) fn at(key: &str) -> Locator {
    Locator::new(key).expect("cases name valid keys")
}

/// A file that cases use where any would do.
pub(super) fn anything() -> Locator {
    at("a.md")
}

pub(super) fn write(key: &str, bytes: impl AsRef<[u8]>) -> Edit {
    write_if(key, bytes, Expect::Any)
}

pub(super) fn write_if(key: &str, bytes: impl AsRef<[u8]>, expect: Expect) -> Edit {
    Edit::Write { at: at(key), bytes: bytes.as_ref().to_vec().into(), expect }
}

pub(super) fn append(key: &str, bytes: impl AsRef<[u8]>) -> Edit {
    Edit::Append { at: at(key), bytes: bytes.as_ref().to_vec().into(), expect: Expect::Any }
}

pub(super) fn delete(key: &str) -> Edit {
    Edit::Delete { at: at(key), expect: Expect::Any }
}

pub(super) fn rename(from: &str, to: &str) -> Edit {
    Edit::Rename { from: at(from), to: at(to), expect: Expect::Any }
}

pub(super) fn change(edits: impl Into<Vec<Edit>>) -> Change {
    Change { edits: edits.into(), note: Note { verb: "test".into(), ..Note::default() } }
}

pub(super) fn keyed(key: &str, edits: impl Into<Vec<Edit>>) -> Change {
    let mut change = change(edits);
    change.note.key = Some(key.into());
    change
}

/// Applies edits as one change.
pub(super) fn apply(backend: &dyn Backend, edits: impl Into<Vec<Edit>>) -> Result<Applied> {
    backend.apply(&change(edits))
}

/// Makes a file hold these bytes.
pub(super) fn put(backend: &dyn Backend, key: &str, bytes: impl AsRef<[u8]>) -> Result<Applied> {
    apply(backend, [write(key, bytes)])
}

/// Proves that a file holds exactly these bytes.
pub(super) fn holds(backend: &dyn Backend, key: &str, bytes: impl AsRef<[u8]>) -> Verdict {
    let there = backend.read(&at(key)).map_err(|error| Failure(format!("`{key}` is not there: {error}")))?;
    same(&format!("the bytes of `{key}`"), &*there.bytes, bytes.as_ref())
}

/// Proves that nothing is there.
pub(super) fn is_gone(backend: &dyn Backend, key: &str) -> Verdict {
    refused(&format!("describing `{key}`"), backend.info(&at(key)), Kind::NotFound).map(drop)
}

/// Proves that the whole tree is this: folders end in `/`, files have their text after a `=`.
pub(super) fn tree_is(backend: &dyn Backend, wanted: &[&str]) -> Verdict {
    let found = tree(backend)?;
    ensure(found == wanted, || format!("the tree is {found:?}, not {wanted:?}"))
}

/// The whole tree, as [`tree_is`] writes it.
pub(super) fn tree(backend: &dyn Backend) -> std::result::Result<Vec<String>, Failure> {
    let line = |info: &crate::backend::Info| -> Result<String> {
        if info.is_dir() {
            return Ok(format!("{}/", info.locator));
        }
        let bytes = backend.read(&info.locator)?.bytes;
        Ok(format!("{}={}", info.locator, String::from_utf8_lossy(&bytes)))
    };
    let listed = backend.list(&Locator::root(), Depth::All)?;
    Ok(listed.iter().map(line).collect::<Result<_>>()?)
}

/// Proves that a call was refused with this kind of error.
pub(super) fn refused<T>(what: &str, result: Result<T>, kind: Kind) -> std::result::Result<Error, Failure> {
    refused_as(what, result, &[kind])
}

/// Proves that a call was refused with one of these kinds of error.
pub(super) fn refused_as<T>(
    what: &str,
    result: Result<T>,
    kinds: &[Kind],
) -> std::result::Result<Error, Failure> {
    let wanted = || kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" or ");
    match result {
        Err(error) if kinds.contains(&error.kind()) => Ok(error),
        Err(error) => Err(Failure(format!("{what} was {} ({error}), not {}", error.kind().name(), wanted()))),
        Ok(_) => Err(Failure(format!("{what} was accepted, not refused as {}", wanted()))),
    }
}

/// Proves that an error carries a code.
pub(super) fn coded(error: &Error, code: &'static str) -> Verdict {
    same("the error's code", &error.code_name(), &Some(code))
}

/// Proves that two things are equal.
pub(super) fn same<T: Debug + PartialEq + ?Sized>(what: &str, found: &T, wanted: &T) -> Verdict {
    ensure(found == wanted, || {
        let shorten = |text: String| text.chars().take(200).collect::<String>();
        format!("{what}: found {}, not {}", shorten(format!("{found:?}")), shorten(format!("{wanted:?}")))
    })
}

pub(super) fn ensure(holds: bool, why: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(Failure(why())) }
}
