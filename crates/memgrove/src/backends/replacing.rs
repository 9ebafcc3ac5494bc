//! How appends become replacements of whole files, for storages in which a file must never be longer than
//! what is known of it.

use crate::backend::{Applied, Change, Content, Edit, Expect};
use crate::error::Result;
use crate::locator::Locator;

/// Returns the change with every append turned into a replacement; `None` if there was no such append.
///
/// # Errors
/// `Conflict` where an append expects another version than is there.
pub(super) fn by_replacement(
    change: &Change,
    read: impl Fn(&Locator) -> Result<Content>,
) -> Result<Option<Change>> {
    let mut edits = Vec::with_capacity(change.edits.len());
    let mut grown = false;
    for (index, edit) in change.edits.iter().enumerate() {
        let Edit::Append { at, bytes, expect } = edit else {
            edits.push(edit.clone());
            continue;
        };
        if touches(&change.edits[..index], at) {
            // What an earlier edit of this change leaves there cannot be read yet.
            edits.push(edit.clone());
            continue;
        }
        match read(at) {
            Ok(there) => {
                expect.check(at, Some(&there.version))?;
                let whole = [&there.bytes[..], bytes].concat();
                let expect = Expect::At(there.version);
                edits.push(Edit::Write { at: at.clone(), bytes: whole.into(), expect });
                grown = true;
            }
            // The file is new, or the edit itself will be refused.
            Err(_) => edits.push(edit.clone()),
        }
    }
    Ok(grown.then(|| Change { edits, note: change.note.clone() }))
}

/// Whether one of some edits changes what is at a place.
pub(super) fn touches(edits: &[Edit], at: &Locator) -> bool {
    edits.iter().flat_map(Edit::places).any(|place| place.is_within(at) || at.is_within(place))
}

/// Whether a change expects a version, so that it must not be tried again on top of another.
pub(super) fn rests_on_versions(change: &Change) -> bool {
    change.edits.iter().any(|edit| matches!(edit.expect(), Expect::At(_)))
}

/// Reports the outcome as of the change that was asked for, whose appends have no versions.
pub(super) fn as_asked(change: &Change, mut applied: Applied) -> Applied {
    for (edit, version) in change.edits.iter().zip(&mut applied.versions) {
        if matches!(edit, Edit::Append { .. }) {
            *version = None;
        }
    }
    applied
}
