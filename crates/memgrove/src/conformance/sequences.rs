//! Edits of one change that build on each other in less usual ways: P5, P17.

use super::steps::{append, apply, at, case, delete, put, refused, rename, tree_is, write};
use super::{Case, Trial, Verdict};
use crate::backend::{Edit, Expect, Version};
use crate::error::Kind;

pub(super) const CASES: &[Case] = &[
    case("P5", "what_was_appended_to_can_be_replaced", what_was_appended_to_can_be_replaced),
    case("P5", "what_was_appended_to_has_its_new_version", what_was_appended_to_has_its_new_version),
    case("P5", "a_folder_made_on_the_way_can_be_removed", a_folder_made_on_the_way_can_be_removed),
    case("P5", "a_folder_emptied_in_a_change_can_be_removed_in_it", an_emptied_folder_can_be_removed),
    case("P17", "twins_within_one_change_are_refused", twins_within_one_change_are_refused),
];

fn what_was_appended_to_can_be_replaced(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for key in ["a.md", "b.md", "c.md"] {
        put(&*backend, key, b"old")?;
    }
    drop(backend);
    let backend = trial.open()?;
    apply(
        &*backend,
        [
            append("a.md", b"+"),
            write("a.md", b"new"),
            append("b.md", b"+"),
            delete("b.md"),
            append("c.md", b"+"),
            rename("c.md", "d.md"),
            append("d.md", b"+"),
        ],
    )?;
    tree_is(&*backend, &["a.md=new", "d.md=old++"])
}

fn what_was_appended_to_has_its_new_version(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"old")?;
    let old = backend.read(&at("a.md"))?.version;
    put(&*backend, "b.md", b"old+")?;
    let grown = backend.read(&at("b.md"))?.version;
    let change = |version: Version| {
        [append("a.md", b"+"), Edit::Delete { at: at("a.md"), expect: Expect::At(version) }]
    };
    refused("a delete at the version before", apply(&*backend, change(old)), Kind::Conflict)?;
    tree_is(&*backend, &["a.md=old", "b.md=old+"])?;
    // The version can be known beforehand only where versions depend on the content alone.
    if grown == Version::of(b"old+") {
        apply(&*backend, change(grown))?;
        tree_is(&*backend, &["b.md=old+"])?;
    }
    Ok(())
}

fn a_folder_made_on_the_way_can_be_removed(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("f/g/a.md", b"a"), rename("f/g/a.md", "b.md"), delete("f/g"), delete("f")])?;
    tree_is(&*backend, &["b.md=a"])?;
    apply(&*backend, [append("f/c.md", b"c"), rename("f", "g"), write("f", b"a file")])?;
    tree_is(&*backend, &["b.md=a", "f=a file", "g/", "g/c.md=c"])
}

fn an_emptied_folder_can_be_removed(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("f/a.md", b"a"), write("f/g/b.md", b"b"), write("h/c.md", b"c")])?;
    apply(
        &*backend,
        [rename("f/a.md", "a.md"), delete("f/g/b.md"), delete("f/g"), delete("f"), rename("h", "f")],
    )?;
    tree_is(&*backend, &["a.md=a", "f/", "f/c.md=c"])
}

fn twins_within_one_change_are_refused(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let pairs = [
        [write("a.md", b"1"), write("A.md", b"2")],
        [write("F/c.md", b"1"), append("f", b"2")],
        [write("f/g/c.md", b"1"), write("f/G/d.md", b"2")],
        [append("f/c.md", b"1"), rename("f/c.md", "F/c.md")],
    ];
    for pair in pairs {
        let what = format!("{pair:?}");
        refused(&what, apply(&*backend, pair), Kind::Exists)?;
        tree_is(&*backend, &[])?;
    }
    Ok(())
}
