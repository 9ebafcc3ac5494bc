//! The bytes before and after each past change: P15.

use super::steps::{append, apply, at, delete, history_case, put, refused, rename, same, write};
use super::{Case, Trial, Verdict};
use crate::backend::{Backend, ChangeId, Edit, Moment};
use crate::error::Kind;

pub(super) const CASES: &[Case] = &[
    history_case("P15", "the_past_of_a_write", the_past_of_a_write),
    history_case("P15", "the_past_of_an_append", the_past_of_an_append),
    history_case("P15", "the_past_of_a_delete", the_past_of_a_delete),
    history_case("P15", "the_past_of_a_rename", the_past_of_a_rename),
    history_case("P15", "the_past_of_a_folders_rename", the_past_of_a_folders_rename),
    history_case("P15", "the_past_of_a_folder_holds_no_bytes", the_past_of_a_folder_holds_no_bytes),
    history_case("P15", "the_past_of_bytes_that_came_twice", the_past_of_bytes_that_came_twice),
    history_case("P15", "the_past_of_several_edits", the_past_of_several_edits),
    history_case("P15", "the_past_of_places_that_a_change_left_alone", the_past_of_places_left_alone),
    history_case("P15", "the_past_keeps_any_bytes", the_past_keeps_any_bytes),
    history_case("P15", "the_past_of_an_unknown_change_is_not_found", the_past_of_an_unknown_change),
    history_case("P15", "every_moment_of_a_long_past", every_moment_of_a_long_past),
];

/// Proves what a place held around a change; `None` is absence.
fn held(
    backend: &dyn Backend,
    key: &str,
    change: &ChangeId,
    before: Option<&str>,
    after: Option<&str>,
) -> Verdict {
    let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
    let found = backend.read_past(&at(key), &Moment::Before(change.clone()))?;
    same(&format!("`{key}` before change {change}"), &found, &bytes(before))?;
    let found = backend.read_past(&at(key), &Moment::After(change.clone()))?;
    same(&format!("`{key}` after change {change}"), &found, &bytes(after))
}

fn did(backend: &dyn Backend, edits: impl Into<Vec<Edit>>) -> crate::Result<ChangeId> {
    Ok(apply(backend, edits)?.change)
}

fn the_past_of_a_write(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let made = did(&*backend, [write("a.md", b"one")])?;
    let changed = did(&*backend, [write("a.md", b"two")])?;
    let emptied = did(&*backend, [write("a.md", b"")])?;
    held(&*backend, "a.md", &made, None, Some("one"))?;
    held(&*backend, "a.md", &changed, Some("one"), Some("two"))?;
    held(&*backend, "a.md", &emptied, Some("two"), Some(""))
}

fn the_past_of_an_append(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let made = did(&*backend, [append("a.md", b"one")])?;
    let grown = did(&*backend, [append("a.md", b" two")])?;
    let again = did(&*backend, [append("a.md", b" three")])?;
    let replaced = did(&*backend, [write("a.md", b"new")])?;
    held(&*backend, "a.md", &made, None, Some("one"))?;
    held(&*backend, "a.md", &grown, Some("one"), Some("one two"))?;
    held(&*backend, "a.md", &again, Some("one two"), Some("one two three"))?;
    held(&*backend, "a.md", &replaced, Some("one two three"), Some("new"))
}

fn the_past_of_a_delete(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let made = did(&*backend, [write("f/a.md", b"one")])?;
    let gone = did(&*backend, [delete("f/a.md")])?;
    let folder = did(&*backend, [delete("f")])?;
    let anew = did(&*backend, [write("f/a.md", b"two")])?;
    held(&*backend, "f/a.md", &made, None, Some("one"))?;
    held(&*backend, "f/a.md", &gone, Some("one"), None)?;
    held(&*backend, "f/a.md", &folder, None, None)?;
    held(&*backend, "f/a.md", &anew, None, Some("two"))
}

fn the_past_of_a_rename(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let made = did(&*backend, [write("a.md", b"one")])?;
    let moved = did(&*backend, [rename("a.md", "f/b.md")])?;
    let changed = did(&*backend, [write("f/b.md", b"two"), write("a.md", b"another")])?;
    let back = did(&*backend, [delete("a.md"), rename("f/b.md", "a.md")])?;
    held(&*backend, "a.md", &made, None, Some("one"))?;
    held(&*backend, "f/b.md", &made, None, None)?;
    held(&*backend, "a.md", &moved, Some("one"), None)?;
    held(&*backend, "f/b.md", &moved, None, Some("one"))?;
    held(&*backend, "f/b.md", &changed, Some("one"), Some("two"))?;
    held(&*backend, "a.md", &changed, None, Some("another"))?;
    held(&*backend, "a.md", &back, Some("another"), Some("two"))?;
    held(&*backend, "f/b.md", &back, Some("two"), None)
}

fn the_past_of_a_folders_rename(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let made = did(&*backend, [write("f/a.md", b"a"), write("f/g/b.md", b"b")])?;
    let moved = did(&*backend, [rename("f", "x/y")])?;
    let grown = did(&*backend, [append("x/y/g/b.md", b"+")])?;
    let again = did(&*backend, [rename("x/y/g", "f")])?;
    held(&*backend, "f/a.md", &made, None, Some("a"))?;
    held(&*backend, "f/a.md", &moved, Some("a"), None)?;
    held(&*backend, "f/g/b.md", &moved, Some("b"), None)?;
    held(&*backend, "x/y/g/b.md", &moved, None, Some("b"))?;
    held(&*backend, "x/y/a.md", &moved, None, Some("a"))?;
    held(&*backend, "x/y/g/b.md", &grown, Some("b"), Some("b+"))?;
    held(&*backend, "x/y/a.md", &again, Some("a"), Some("a"))?;
    held(&*backend, "x/y/g/b.md", &again, Some("b+"), None)?;
    held(&*backend, "f/b.md", &again, None, Some("b+"))
}

fn the_past_of_a_folder_holds_no_bytes(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let made = did(&*backend, [write("f/a.md", b"a")])?;
    let emptied = did(&*backend, [delete("f/a.md")])?;
    held(&*backend, "f", &made, None, None)?;
    held(&*backend, "f", &emptied, None, None)?;
    let removed = did(&*backend, [delete("f")])?;
    let file = did(&*backend, [write("f", b"a file")])?;
    held(&*backend, "f", &made, None, None)?;
    held(&*backend, "f", &removed, None, None)?;
    held(&*backend, "f", &file, None, Some("a file"))
}

fn the_past_of_bytes_that_came_twice(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    did(&*backend, [write("a.md", b"same"), rename("a.md", "b.md")])?;
    let again = did(&*backend, [append("a.md", b"same")])?;
    let replaced = did(&*backend, [write("a.md", b"new")])?;
    held(&*backend, "a.md", &again, None, Some("same"))?;
    held(&*backend, "a.md", &replaced, Some("same"), Some("new"))
}

fn the_past_of_several_edits(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    did(&*backend, [write("a.md", b"a"), write("b.md", b"b")])?;
    let edits = [
        write("a.md", b"passing"),
        append("a.md", b" by"),
        rename("b.md", "c.md"),
        rename("a.md", "b.md"),
        write("d.md", b"for a moment"),
        delete("d.md"),
        append("c.md", b"+"),
    ];
    let change = did(&*backend, edits)?;
    held(&*backend, "a.md", &change, Some("a"), None)?;
    held(&*backend, "b.md", &change, Some("b"), Some("passing by"))?;
    held(&*backend, "c.md", &change, None, Some("b+"))?;
    held(&*backend, "d.md", &change, None, None)
}

fn the_past_of_places_left_alone(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    did(&*backend, [write("a.md", b"a"), write("b.md", b"b")])?;
    let elsewhere = did(&*backend, [write("c.md", b"c")])?;
    did(&*backend, [append("a.md", b"+"), delete("b.md")])?;
    held(&*backend, "a.md", &elsewhere, Some("a"), Some("a"))?;
    held(&*backend, "b.md", &elsewhere, Some("b"), Some("b"))?;
    held(&*backend, "nowhere.md", &elsewhere, None, None)
}

fn the_past_keeps_any_bytes(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let mut changes = Vec::new();
    for (name, bytes) in super::reading::SAMPLES {
        match put(&*backend, "a.bin", bytes) {
            // What is no text is not held everywhere: `Needs::Binary`.
            Err(error) if error.kind() == Kind::Unsupported && std::str::from_utf8(bytes).is_err() => {}
            applied => changes.push((name, bytes, applied?.change)),
        }
    }
    for (name, bytes, change) in changes {
        let found = backend.read_past(&at("a.bin"), &Moment::After(change))?;
        same(&format!("the past bytes of {name}"), &found, &Some(bytes.to_vec()))?;
    }
    Ok(())
}

fn the_past_of_an_unknown_change(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"a")?;
    for moment in [Moment::Before(ChangeId::new("no such change")), Moment::After(ChangeId::new("99999"))] {
        let past = backend.read_past(&at("a.md"), &moment);
        refused("reading around an unknown change", past, Kind::NotFound)?;
    }
    Ok(())
}

fn every_moment_of_a_long_past(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let mut moments = Vec::new();
    let mut text: Option<String> = None;
    for i in 0..60 {
        let (edit, next) = match i % 6 {
            0 | 1 => (write("a.md", i.to_string()), Some(i.to_string())),
            2..=4 => (append("a.md", format!(",{i}")), text.as_ref().map(|text| format!("{text},{i}"))),
            _ => (delete("a.md"), None),
        };
        let change = did(&*backend, [edit, write("clock.md", i.to_string())])?;
        moments.push((change, text.clone(), next.clone()));
        text = next;
    }
    for (change, before, after) in &moments {
        held(&*backend, "a.md", change, before.as_deref(), after.as_deref())?;
    }
    Ok(())
}
