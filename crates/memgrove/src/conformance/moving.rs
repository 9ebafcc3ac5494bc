//! Renaming files and folders: P8.

use super::steps::{
    append, apply, at, case, delete, ensure, put, refused, refused_as, rename, same, tree_is, write,
};
use super::{Case, Trial, Verdict};
use crate::backend::{Edit, Expect};
use crate::error::Kind;

pub(super) const CASES: &[Case] = &[
    case("P8", "rename_moves_a_file", rename_moves_a_file),
    case("P8", "rename_keeps_the_version", rename_keeps_the_version),
    case("P8", "rename_moves_a_folder_with_all_it_holds", rename_moves_a_folder),
    case("P8", "rename_moves_an_empty_folder", rename_moves_an_empty_folder),
    case("P8", "rename_leaves_alone_what_only_begins_alike", rename_leaves_similar_names_alone),
    case("P8", "rename_brings_what_the_change_had_removed_there", rename_brings_removed_names_back),
    case("P8", "rename_needs_a_free_place", rename_needs_a_free_place),
    case("P8", "rename_never_goes_into_itself", rename_never_goes_into_itself),
    case("P8", "rename_of_what_is_absent_is_not_found", rename_of_what_is_absent_is_not_found),
    case("P8", "rename_can_change_the_case_of_a_name", rename_can_change_the_case_of_a_name),
];

fn rename_moves_a_file(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"a")?;
    apply(&*backend, [rename("a.md", "b.md")])?;
    tree_is(&*backend, &["b.md=a"])?;
    apply(&*backend, [rename("b.md", "f/c.md")])?;
    tree_is(&*backend, &["f/", "f/c.md=a"])?;
    apply(&*backend, [rename("f/c.md", "a.md")])?;
    tree_is(&*backend, &["a.md=a", "f/"])
}

fn rename_keeps_the_version(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"a")?;
    let version = backend.read(&at("a.md"))?.version;
    apply(&*backend, [Edit::Rename { from: at("a.md"), to: at("b.md"), expect: Expect::At(version) }])?;
    let moved = backend.read(&at("b.md"))?;
    same("the version by info", &backend.info(&at("b.md"))?.version, &Some(moved.version.clone()))?;
    apply(
        &*backend,
        [Edit::Write { at: at("b.md"), bytes: b"b".as_slice().into(), expect: Expect::At(moved.version) }],
    )?;
    tree_is(&*backend, &["b.md=b"])
}

fn rename_moves_a_folder(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("f/a.md", b"a"), write("f/g/b.md", b"b"), write("f/g/h/c.bin", b"\0")])?;
    backend.mkdir(&at("f/empty"))?;
    apply(&*backend, [rename("f", "x/y")])?;
    tree_is(
        &*backend,
        &["x/", "x/y/", "x/y/a.md=a", "x/y/empty/", "x/y/g/", "x/y/g/b.md=b", "x/y/g/h/", "x/y/g/h/c.bin=\0"],
    )?;
    // The old names are free again, and what was moved can be changed.
    apply(&*backend, [write("f/a.md", b"new"), append("x/y/a.md", b"+"), rename("x/y/g", "g")])?;
    tree_is(
        &*backend,
        &[
            "f/",
            "f/a.md=new",
            "g/",
            "g/b.md=b",
            "g/h/",
            "g/h/c.bin=\0",
            "x/",
            "x/y/",
            "x/y/a.md=a+",
            "x/y/empty/",
        ],
    )
}

fn rename_moves_an_empty_folder(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    backend.mkdir(&at("f"))?;
    apply(&*backend, [rename("f", "g/h")])?;
    tree_is(&*backend, &["g/", "g/h/"])
}

fn rename_leaves_similar_names_alone(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(
        &*backend,
        [
            write("f/a.md", b"1"),
            write("f-x/a.md", b"2"),
            write("f.md", b"3"),
            write("ff/a.md", b"4"),
            write("e/f/a.md", b"5"),
        ],
    )?;
    apply(&*backend, [rename("f", "g")])?;
    tree_is(
        &*backend,
        &["e/", "e/f/", "e/f/a.md=5", "f-x/", "f-x/a.md=2", "f.md=3", "ff/", "ff/a.md=4", "g/", "g/a.md=1"],
    )
}

/// A folder that one change clears away and replaces must not hide what is moved there.
fn rename_brings_removed_names_back(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("f/a.md", b"old"), write("g/a.md", b"new"), write("g/b.md", b"b")])?;
    let version = backend.read(&at("g/a.md"))?.version;
    let removed = Edit::Delete { at: at("f/a.md"), expect: Expect::At(version) };
    apply(&*backend, [delete("f/a.md"), delete("f"), rename("g", "f"), removed])?;
    tree_is(&*backend, &["f/", "f/b.md=b"])
}

fn rename_needs_a_free_place(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("a.md", b"a"), write("b.md", b"b"), write("f/c.md", b"c")])?;
    backend.mkdir(&at("empty"))?;
    for (from, to) in [
        ("a.md", "b.md"),
        ("a.md", "f"),
        ("a.md", "empty"),
        ("f", "a.md"),
        ("f", "empty"),
        ("empty", "f"),
        ("a.md", "a.md"),
    ] {
        refused(&format!("moving `{from}` to `{to}`"), apply(&*backend, [rename(from, to)]), Kind::Exists)?;
    }
    tree_is(&*backend, &["a.md=a", "b.md=b", "empty/", "f/", "f/c.md=c"])
}

fn rename_never_goes_into_itself(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("f/g/a.md", b"a"), write("b.md", b"b")])?;
    for (from, to) in [("f", "f/x"), ("f", "f/g/x"), ("f/g", "f/g/h/x"), ("b.md", "b.md/x"), ("", "x")] {
        refused(&format!("moving `{from}` to `{to}`"), apply(&*backend, [rename(from, to)]), Kind::Invalid)?;
    }
    refused_as("moving `f` to `f`", apply(&*backend, [rename("f", "f")]), &[Kind::Invalid, Kind::Exists])?;
    tree_is(&*backend, &["b.md=b", "f/", "f/g/", "f/g/a.md=a"])?;
    // Moving out of itself is allowed: a folder's child may take a place above it.
    apply(&*backend, [rename("f/g", "g")])?;
    tree_is(&*backend, &["b.md=b", "f/", "g/", "g/a.md=a"])
}

fn rename_of_what_is_absent_is_not_found(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "f/a.md", b"a")?;
    for from in ["b.md", "f/b.md", "nowhere/b.md"] {
        refused(&format!("moving `{from}`"), apply(&*backend, [rename(from, "g/c.md")]), Kind::NotFound)?;
    }
    let beneath = apply(&*backend, [rename("f/a.md/beneath", "g/c.md")]);
    refused_as("moving from beneath a file", beneath, &[Kind::NotFound, Kind::Invalid])?;
    tree_is(&*backend, &["f/", "f/a.md=a"])
}

fn rename_can_change_the_case_of_a_name(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("a.md", b"a"), write("folder/b.md", b"b")])?;
    apply(&*backend, [rename("a.md", "A.md")])?;
    apply(&*backend, [rename("folder", "Folder")])?;
    let names: Vec<String> = super::steps::tree(&*backend)?;
    ensure(names == ["A.md=a", "Folder/", "Folder/b.md=b"], || format!("found {names:?}"))
}
