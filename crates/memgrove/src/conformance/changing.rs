//! Changes of several edits, and what each edit needs and makes: P5, P6, P7, P11.

use super::steps::{
    append, apply, at, case, coded, delete, ensure, holds, is_gone, put, refused, refused_as, rename, same,
    tree_is, write, write_if,
};
use super::{Case, Trial, Verdict};
use crate::backend::{Edit, Expect, Version};
use crate::error::{Kind, code};

pub(super) const CASES: &[Case] = &[
    case("P5", "edits_see_the_edits_before_them", edits_see_the_edits_before_them),
    case("P5", "a_place_freed_in_a_change_can_be_taken_in_it", a_freed_place_can_be_taken),
    case("P5", "two_files_can_trade_places", two_files_can_trade_places),
    case("P5", "a_failing_last_edit_undoes_all", a_failing_last_edit_undoes_all),
    case("P5", "expectations_are_of_the_moment_of_the_edit", expectations_are_of_the_moment),
    case("P5", "a_thousand_edits_are_one_change", a_thousand_edits_are_one_change),
    case("P5", "a_thousand_edits_fail_as_one", a_thousand_edits_fail_as_one),
    case("P5", "every_edit_has_its_version", every_edit_has_its_version),
    case("P5", "a_change_without_edits_is_no_error", a_change_without_edits_is_no_error),
    case("P6", "edits_make_the_folders_they_need", edits_make_the_folders_they_need),
    case("P6", "append_makes_the_file_it_needs", append_makes_the_file_it_needs),
    case("P7", "delete_removes_files_and_empty_folders", delete_removes_files_and_empty_folders),
    case("P7", "delete_spares_full_folders", delete_spares_full_folders),
    case("P7", "delete_of_what_is_absent_is_not_found", delete_of_what_is_absent_is_not_found),
    case("P7", "what_was_deleted_can_be_made_again", what_was_deleted_can_be_made_again),
    case("P11", "nothing_is_made_beneath_a_file", nothing_is_made_beneath_a_file),
    case("P11", "no_file_is_made_onto_a_folder", no_file_is_made_onto_a_folder),
    case("P11", "the_root_stays", the_root_stays),
];

fn edits_see_the_edits_before_them(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let edits = [
        write("a.md", b"one"),
        append("a.md", b" two"),
        rename("a.md", "folder/b.md"),
        append("folder/b.md", b" three"),
        write("c.md", b"gone"),
        delete("c.md"),
        rename("folder", "place"),
        append("place/b.md", b" four"),
    ];
    apply(&*backend, edits)?;
    tree_is(&*backend, &["place/", "place/b.md=one two three four"])
}

fn a_freed_place_can_be_taken(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("a.md", b"a"), write("b.md", b"b"), write("f/x.md", b"x")])?;
    let absent = Expect::Absent;
    apply(
        &*backend,
        [delete("a.md"), write_if("a.md", b"anew", absent), delete("b.md"), rename("a.md", "b.md")],
    )?;
    tree_is(&*backend, &["b.md=anew", "f/", "f/x.md=x"])?;
    // A file becomes a folder and a folder becomes a file, in one change.
    apply(
        &*backend,
        [delete("b.md"), write("b.md/y.md", b"y"), delete("f/x.md"), delete("f"), write("f", b"file")],
    )?;
    tree_is(&*backend, &["b.md/", "b.md/y.md=y", "f=file"])
}

fn two_files_can_trade_places(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("a.md", b"a"), write("b.md", b"b")])?;
    apply(&*backend, [rename("a.md", "c.md"), rename("b.md", "a.md"), rename("c.md", "b.md")])?;
    tree_is(&*backend, &["a.md=b", "b.md=a"])
}

fn a_failing_last_edit_undoes_all(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("a.md", b"a"), write("b.md", b"b"), write("f/c.md", b"c"), write("d.md", b"d")])?;
    backend.mkdir(&at("empty"))?;
    let before = ["a.md=a", "b.md=b", "d.md=d", "empty/", "f/", "f/c.md=c"];
    let stale = Expect::At(Version::new("stale"));
    let failing = [
        (write_if("z.md", b"z", stale.clone()), Kind::Conflict),
        (delete("f/c.md"), Kind::NotFound),
        (delete("nowhere.md"), Kind::NotFound),
        (rename("nowhere.md", "x.md"), Kind::NotFound),
        (rename("d.md", "moved/c.md"), Kind::Exists),
        (write("moved", b"onto a folder"), Kind::Invalid),
        (delete("moved"), Kind::Invalid),
        (Edit::Append { at: at("d.md"), bytes: b"late".as_slice().into(), expect: stale }, Kind::Conflict),
    ];
    for (last, kind) in failing {
        let edits = [
            write("a.md", b"changed"),
            append("b.md", b"changed"),
            rename("f", "moved"),
            append("moved/c.md", b"changed"),
            delete("empty"),
            write("new/folder/e.md", b"e"),
            last.clone(),
        ];
        refused(&format!("a change that ends in {last:?}"), apply(&*backend, edits), kind)?;
        tree_is(&*backend, &before)?;
    }
    Ok(())
}

fn expectations_are_of_the_moment(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"old")?;
    let old = backend.read(&at("a.md"))?.version;
    let stale = [write("a.md", b"new"), write_if("a.md", b"newer", Expect::At(old.clone()))];
    refused("an edit that expects what an earlier edit replaced", apply(&*backend, stale), Kind::Conflict)?;
    let twice = [write_if("b.md", b"b", Expect::Absent), write_if("b.md", b"b", Expect::Absent)];
    refused("a second edit that expects an absence", apply(&*backend, twice), Kind::Exists)?;
    tree_is(&*backend, &["a.md=old"])?;
    let moved = [
        rename("a.md", "b.md"),
        write_if("b.md", b"new", Expect::At(old)),
        write_if("a.md", b"other", Expect::Absent),
    ];
    apply(&*backend, moved)?;
    tree_is(&*backend, &["a.md=other", "b.md=new"])
}

fn thousand() -> Vec<Edit> {
    let place = |i: usize| format!("{}/{i}.md", ["x", "y", "z"][i % 3]);
    let kind = |i: usize| match i % 5 {
        4 => append(&place(i - 1), b" and more"),
        _ => write(&place(i), format!("number {i}")),
    };
    (0..1000).map(kind).collect()
}

fn a_thousand_edits_are_one_change(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let applied = apply(&*backend, thousand())?;
    same("the count of versions", &applied.versions.len(), &1000)?;
    let all = backend.list(&crate::Locator::root(), crate::backend::Depth::All)?;
    same("the count of files and folders", &all.len(), &803)?;
    holds(&*backend, "x/3.md", b"number 3 and more")?;
    holds(&*backend, "z/998.md", b"number 998 and more")
}

fn a_thousand_edits_fail_as_one(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"a")?;
    let mut edits = thousand();
    edits.push(delete("nowhere.md"));
    refused("a change with a bad thousand-and-first edit", apply(&*backend, edits), Kind::NotFound)?;
    tree_is(&*backend, &["a.md=a"])
}

fn every_edit_has_its_version(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "old.md", b"old")?;
    let edits = [
        write("a.md", b"a"),
        append("a.md", b"b"),
        delete("old.md"),
        write("c.md", b"c"),
        rename("c.md", "d.md"),
    ];
    let applied = apply(&*backend, edits)?;
    let kept: Vec<bool> = applied.versions.iter().map(Option::is_some).collect();
    same("which edits have a version", &kept, &vec![true, false, false, true, false])?;
    let there = backend.read(&at("d.md"))?.version;
    same("the version of the second write", &applied.versions[3], &Some(there))
}

fn a_change_without_edits_is_no_error(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let applied = apply(&*backend, [])?;
    same("the versions", &applied.versions, &Vec::new())?;
    tree_is(&*backend, &[])
}

fn edits_make_the_folders_they_need(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("a/b/c/one.md", b"1"), append("d/e/two.md", b"2")])?;
    apply(&*backend, [rename("a/b/c/one.md", "f/g/h/three.md")])?;
    apply(&*backend, [rename("d", "i/j/k")])?;
    let wanted = [
        "a/",
        "a/b/",
        "a/b/c/",
        "f/",
        "f/g/",
        "f/g/h/",
        "f/g/h/three.md=1",
        "i/",
        "i/j/",
        "i/j/k/",
        "i/j/k/e/",
        "i/j/k/e/two.md=2",
    ];
    tree_is(&*backend, &wanted)
}

fn append_makes_the_file_it_needs(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [append("a.md", b"one\n")])?;
    apply(&*backend, [append("a.md", b"two\n"), append("b.md", b"")])?;
    tree_is(&*backend, &["a.md=one\ntwo\n", "b.md="])
}

fn delete_removes_files_and_empty_folders(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("f/a.md", b"a"), write("f/b.md", b"b")])?;
    apply(&*backend, [delete("f/a.md")])?;
    is_gone(&*backend, "f/a.md")?;
    tree_is(&*backend, &["f/", "f/b.md=b"])?;
    apply(&*backend, [delete("f/b.md")])?;
    tree_is(&*backend, &["f/"])?;
    apply(&*backend, [delete("f")])?;
    tree_is(&*backend, &[])
}

fn delete_spares_full_folders(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("f/a.md", b"a"), write("g/h/b.md", b"b"), write("f-b.md", b"beside")])?;
    for folder in ["f", "g", "g/h"] {
        let error = refused("deleting a full folder", apply(&*backend, [delete(folder)]), Kind::Invalid)?;
        coded(&error, code::DIRECTORY_NOT_EMPTY)?;
    }
    tree_is(&*backend, &["f/", "f-b.md=beside", "f/a.md=a", "g/", "g/h/", "g/h/b.md=b"])
}

fn delete_of_what_is_absent_is_not_found(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "f/a.md", b"a")?;
    for key in ["b.md", "f/b.md", "g/b.md"] {
        refused(&format!("deleting `{key}`"), apply(&*backend, [delete(key)]), Kind::NotFound)?;
    }
    let beneath = apply(&*backend, [delete("f/a.md/beneath")]);
    refused_as("deleting beneath a file", beneath, &[Kind::NotFound, Kind::Invalid])?;
    tree_is(&*backend, &["f/", "f/a.md=a"])
}

fn what_was_deleted_can_be_made_again(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for round in ["one", "two", "three"] {
        apply(&*backend, [write_if("f/a.md", round, Expect::Absent)])?;
        holds(&*backend, "f/a.md", round)?;
        apply(&*backend, [delete("f/a.md")])?;
        is_gone(&*backend, "f/a.md")?;
    }
    apply(&*backend, [append("f/a.md", b"tail")])?;
    holds(&*backend, "f/a.md", b"tail")
}

fn nothing_is_made_beneath_a_file(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("a.md", b"a"), write("b.md", b"b")])?;
    backend.mkdir(&at("f"))?;
    for key in ["a.md/x", "a.md/x/y"] {
        for edit in [write(key, b"x"), append(key, b"x"), rename("b.md", key), rename("f", key)] {
            let what = format!("{edit:?}");
            let error = refused(&what, apply(&*backend, [edit]), Kind::Invalid)?;
            coded(&error, code::NOT_DIRECTORY)?;
        }
        refused_as("a folder beneath a file", backend.mkdir(&at(key)), &[Kind::Invalid, Kind::Exists])?;
    }
    tree_is(&*backend, &["a.md=a", "b.md=b", "f/"])
}

fn no_file_is_made_onto_a_folder(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "f/a.md", b"a")?;
    backend.mkdir(&at("e"))?;
    for key in ["f", "e"] {
        for edit in [write(key, b"x"), append(key, b"x")] {
            let what = format!("{edit:?}");
            let error = refused(&what, apply(&*backend, [edit]), Kind::Invalid)?;
            coded(&error, code::IS_DIRECTORY)?;
        }
        let absent = apply(&*backend, [write_if(key, b"x", Expect::Absent)]);
        refused_as("a new file where a folder is", absent, &[Kind::Invalid, Kind::Exists])?;
    }
    tree_is(&*backend, &["e/", "f/", "f/a.md=a"])
}

fn the_root_stays(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for edit in [write("", b"x"), append("", b"x"), delete(""), rename("", "f")] {
        let what = format!("{edit:?}");
        refused(&what, apply(&*backend, [edit]), Kind::Invalid)?;
    }
    put(&*backend, "a.md", b"a")?;
    refused_as(
        "a file moved onto the root",
        apply(&*backend, [rename("a.md", "")]),
        &[Kind::Exists, Kind::Invalid],
    )?;
    refused("deleting the root", apply(&*backend, [delete("")]), Kind::Invalid)?;
    ensure(backend.info(&crate::Locator::root())?.is_dir(), || "the root is no folder".into())?;
    tree_is(&*backend, &["a.md=a"])
}
