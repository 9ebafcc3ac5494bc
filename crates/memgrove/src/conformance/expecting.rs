//! What a change may require of what is there: P4.

use super::steps::{
    append, apply, at, case, change, coded, delete, ensure, put, refused, refused_as, same, tree, tree_is,
    write, write_if,
};
use super::{Case, Trial, Verdict};
use crate::backend::{Backend, Bytes, Edit, Expect, Version};
use crate::error::{Kind, Result, code};

pub(super) const CASES: &[Case] = &[
    case("P4", "write_minds_what_it_expects", |trial| matrix(trial, write_with)),
    case("P4", "append_minds_what_it_expects", |trial| matrix(trial, append_with)),
    case("P4", "delete_minds_what_it_expects", |trial| matrix(trial, delete_with)),
    case("P4", "rename_minds_what_it_expects", |trial| matrix(trial, rename_with)),
    case("P4", "a_version_comes_back_with_its_bytes_or_not_at_all", a_stale_version_stays_stale),
    case("P4", "a_conflict_names_both_versions", a_conflict_names_both_versions),
    case("P4", "a_refused_change_leaves_no_folder_behind", a_refused_change_leaves_no_folder_behind),
    case("P4", "a_folder_meets_no_version", a_folder_meets_no_version),
    case("P4", "an_append_of_nothing_holds_a_file_to_its_version", an_append_of_nothing_holds_a_file),
];

fn write_with(expect: Expect) -> Edit {
    write_if("f/a.md", b"new", expect)
}

fn append_with(expect: Expect) -> Edit {
    Edit::Append { at: at("f/a.md"), bytes: b"+more".as_slice().into(), expect }
}

fn delete_with(expect: Expect) -> Edit {
    Edit::Delete { at: at("f/a.md"), expect }
}

fn rename_with(expect: Expect) -> Edit {
    Edit::Rename { from: at("f/a.md"), to: at("f/b.md"), expect }
}

/// What is at the place before the edit.
#[derive(Debug, Clone, Copy, PartialEq)]
enum There {
    Nothing,
    SameVersion,
    OtherVersion,
}

/// Every expectation against everything that may be there, for one kind of edit.
fn matrix(trial: &Trial<'_>, edit: fn(Expect) -> Edit) -> Verdict {
    let backend = trial.open()?;
    let needs_a_file = matches!(edit(Expect::Any), Edit::Delete { .. } | Edit::Rename { .. });
    for there in [There::Nothing, There::SameVersion, There::OtherVersion] {
        for name in ["any", "absent", "at"] {
            let known = set_up(&*backend, there)?;
            let expect = match name {
                "any" => Expect::Any,
                "absent" => Expect::Absent,
                _ => Expect::At(known),
            };
            let refusal = match (&expect, there) {
                (Expect::Absent, There::SameVersion | There::OtherVersion) => Some(Kind::Exists),
                (Expect::At(_), There::Nothing | There::OtherVersion) => Some(Kind::Conflict),
                (_, There::Nothing) if needs_a_file => Some(Kind::NotFound),
                _ => None,
            };
            let before = tree(&*backend)?;
            let what = format!("an edit that expects {name} where there is {there:?}");
            let result = apply(&*backend, [edit(expect)]);
            match refusal {
                Some(kind) => {
                    let error = refused(&what, result, kind)?;
                    if kind == Kind::Conflict {
                        coded(&error, code::VERSION_MISMATCH)?;
                    }
                    same(&format!("the tree after {what}"), &tree(&*backend)?, &before)?;
                }
                None => {
                    result?;
                    let changed = tree(&*backend)?;
                    ensure(changed != before, || format!("{what} changed nothing"))?;
                }
            }
        }
    }
    Ok(())
}

/// Puts the place into a state, and returns the version that it is at only in `SameVersion`.
fn set_up(backend: &dyn Backend, there: There) -> Result<Version> {
    for key in ["f/a.md", "f/b.md"] {
        if backend.info(&at(key)).is_ok() {
            apply(backend, [delete(key)])?;
        }
    }
    put(backend, "f/a.md", b"old")?;
    let known = backend.read(&at("f/a.md"))?.version;
    match there {
        There::Nothing => apply(backend, [delete("f/a.md")]).map(drop)?,
        There::SameVersion => {}
        There::OtherVersion => put(backend, "f/a.md", b"other").map(drop)?,
    }
    Ok(known)
}

fn a_stale_version_stays_stale(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"one")?;
    let first = backend.read(&at("a.md"))?.version;
    for bytes in [&b"two"[..], b"three"] {
        put(&*backend, "a.md", bytes)?;
        let stale = apply(&*backend, [write_if("a.md", b"late", Expect::At(first.clone()))]);
        refused("a write on a stale version", stale, Kind::Conflict)?;
    }
    apply(&*backend, [append("a.md", b"!")])?;
    let known = backend.read(&at("a.md"))?.version;
    apply(&*backend, [append("a.md", b"!")])?;
    let stale = apply(&*backend, [write_if("a.md", b"late", Expect::At(known))]);
    refused("a write on the version before an append", stale, Kind::Conflict)?;
    tree_is(&*backend, &["a.md=three!!"])
}

fn a_conflict_names_both_versions(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"one")?;
    let there = backend.read(&at("a.md"))?.version;
    let wanted = Version::new("no-such-version");
    let error = refused(
        "a write on another version",
        apply(&*backend, [write_if("a.md", b"two", Expect::At(wanted))]),
        Kind::Conflict,
    )?;
    let said = error.message();
    ensure(said.contains("no-such-version") && said.contains(there.as_str()), || {
        format!("the conflict does not name both versions: {said}")
    })
}

fn a_refused_change_leaves_no_folder_behind(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"a")?;
    let edits = [write("new/folder/b.md", b"b"), write_if("a.md", b"late", Expect::Absent)];
    refused("a change that expects an absence", backend.apply(&change(edits)), Kind::Exists)?;
    tree_is(&*backend, &["a.md=a"])
}

fn a_folder_meets_no_version(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    backend.mkdir(&at("folder"))?;
    let version = Version::new("some-version");
    let remove = |expect| apply(&*backend, [Edit::Delete { at: at("folder"), expect }]);
    let rename = |expect| apply(&*backend, [Edit::Rename { from: at("folder"), to: at("other"), expect }]);
    let kinds = [Kind::Invalid, Kind::Conflict];
    refused_as("deleting a folder at a version", remove(Expect::At(version.clone())), &kinds)?;
    refused_as("moving a folder at a version", rename(Expect::At(version)), &kinds)?;
    refused_as(
        "deleting a folder that shall be absent",
        remove(Expect::Absent),
        &[Kind::Exists, Kind::Invalid],
    )?;
    refused_as(
        "moving a folder that shall be absent",
        rename(Expect::Absent),
        &[Kind::Exists, Kind::Invalid],
    )?;
    tree_is(&*backend, &["folder/"])
}

fn an_append_of_nothing_holds_a_file(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "held.md", b"one")?;
    let known = backend.read(&at("held.md"))?.version;
    let hold = |expect| Edit::Append { at: at("held.md"), bytes: Bytes::new(), expect };
    apply(&*backend, [write("a.md", b"a"), hold(Expect::At(known.clone()))])?;
    same("the version of what was held", &backend.read(&at("held.md"))?.version, &known)?;
    put(&*backend, "held.md", b"two")?;
    let late = apply(&*backend, [write("b.md", b"b"), hold(Expect::At(known.clone()))]);
    refused("a change that relies on an older version", late, Kind::Conflict)?;
    apply(&*backend, [delete("held.md")])?;
    let late = apply(&*backend, [write("b.md", b"b"), hold(Expect::At(known))]);
    refused("a change that relies on a file that is gone", late, Kind::Conflict)?;
    tree_is(&*backend, &["a.md=a"])
}
