//! Listing and making folders: P9, P10.

use super::steps::{apply, at, case, delete, ensure, put, refused, same, tree_is, write};
use super::{Case, Trial, Verdict};
use crate::backend::{Backend, Depth};
use crate::error::{Kind, Result};

pub(super) const CASES: &[Case] = &[
    case("P9", "a_listing_of_what_is_absent_is_empty", a_listing_of_what_is_absent_is_empty),
    case("P9", "a_listing_of_a_file_is_empty", a_listing_of_a_file_is_empty),
    case("P9", "a_listing_of_an_empty_folder_is_empty", a_listing_of_an_empty_folder_is_empty),
    case("P9", "a_new_store_is_empty", a_new_store_is_empty),
    case("P9", "children_are_listed_in_order", children_are_listed_in_order),
    case("P9", "everything_beneath_is_listed_in_order", everything_beneath_is_listed_in_order),
    case("P9", "a_listing_stays_in_its_folder", a_listing_stays_in_its_folder),
    case("P9", "a_listing_describes_like_info", a_listing_describes_like_info),
    case("P9", "many_files_are_all_listed", many_files_are_all_listed),
    case("P9", "the_backends_own_files_are_not_listed", the_backends_own_files_are_not_listed),
    case("P10", "mkdir_makes_parents", mkdir_makes_parents),
    case("P10", "mkdir_twice_is_no_error", mkdir_twice_is_no_error),
    case("P10", "mkdir_onto_a_file_is_refused", mkdir_onto_a_file_is_refused),
];

fn listed(backend: &dyn Backend, under: &str, depth: Depth) -> Result<Vec<String>> {
    let infos = backend.list(&at(under), depth)?;
    Ok(infos.into_iter().map(|info| info.locator.key().to_owned()).collect())
}

fn lists(backend: &dyn Backend, under: &str, depth: Depth, wanted: &[&str]) -> Verdict {
    let found = listed(backend, under, depth)?;
    ensure(found == wanted, || format!("`{under}` lists {found:?}, not {wanted:?}"))
}

fn a_listing_of_what_is_absent_is_empty(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "f/a.md", b"a")?;
    for under in ["nowhere", "f/nowhere", "no/where/at/all", "f/a.md/beneath", "a"] {
        lists(&*backend, under, Depth::Children, &[])?;
        lists(&*backend, under, Depth::All, &[])?;
    }
    Ok(())
}

fn a_listing_of_a_file_is_empty(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "f/a.md", b"a")?;
    lists(&*backend, "f/a.md", Depth::Children, &[])?;
    lists(&*backend, "f/a.md", Depth::All, &[])
}

fn a_listing_of_an_empty_folder_is_empty(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    backend.mkdir(&at("f"))?;
    lists(&*backend, "f", Depth::Children, &[])?;
    put(&*backend, "f/a.md", b"a")?;
    apply(&*backend, [delete("f/a.md")])?;
    lists(&*backend, "f", Depth::All, &[])
}

fn a_new_store_is_empty(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    lists(&*backend, "", Depth::Children, &[])?;
    lists(&*backend, "", Depth::All, &[])?;
    ensure(backend.info(&crate::Locator::root())?.is_dir(), || "the root is no folder".into())
}

/// Names whose order differs between bytes, letters and folders first. No two differ in case only.
const NAMES: &[&str] =
    &["a", "b.md", "Z.md", "a.md", "a-b", "_x", ".hidden", "10", "9", "é", "日本", "~t", "c d"];

fn children_are_listed_in_order(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    for name in NAMES {
        put(&*backend, &format!("f/{name}"), b"")?;
    }
    backend.mkdir(&at("f/m"))?;
    put(&*backend, "f/m/deep.md", b"")?;
    let mut wanted: Vec<String> = NAMES.iter().chain(&["m"]).map(|name| format!("f/{name}")).collect();
    wanted.sort();
    same("the children", &listed(&*backend, "f", Depth::Children)?, &wanted)
}

fn everything_beneath_is_listed_in_order(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    let files = ["a/c.md", "a-b.md", "a.md", "a/b/x.md", "a/b-c.md", "b.md", "B2.md", "a/b/é.md", "a0"];
    apply(&*backend, files.map(|key| write(key, b"")))?;
    backend.mkdir(&at("a/b/empty"))?;
    let mut wanted: Vec<&str> = files.iter().chain(&["a", "a/b", "a/b/empty"]).copied().collect();
    wanted.sort_unstable();
    lists(&*backend, "", Depth::All, &wanted)?;
    let beneath: Vec<&str> = wanted.iter().filter(|key| key.starts_with("a/")).copied().collect();
    lists(&*backend, "a", Depth::All, &beneath)
}

fn a_listing_stays_in_its_folder(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, ["f/a", "f-g/b", "f.md", "fg/c", "g/f/d", "f/f/e", "f0"].map(|key| write(key, b"")))?;
    lists(&*backend, "f", Depth::Children, &["f/a", "f/f"])?;
    lists(&*backend, "f", Depth::All, &["f/a", "f/f", "f/f/e"])?;
    lists(&*backend, "f/f", Depth::All, &["f/f/e"])?;
    lists(&*backend, "", Depth::Children, &["f", "f-g", "f.md", "f0", "fg", "g"])
}

fn a_listing_describes_like_info(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    apply(&*backend, [write("f/a.md", b"12345"), write("f/g/b.md", b""), write("c.bin", b"\0\0")])?;
    let all = backend.list(&crate::Locator::root(), Depth::All)?;
    same("the count", &all.len(), &5)?;
    for listed in all {
        let mut described = backend.info(&listed.locator)?;
        if listed.version.is_none() {
            described.version = None;
        }
        same(&format!("`{}` as it is listed", listed.locator), &listed, &described)?;
    }
    Ok(())
}

fn many_files_are_all_listed(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    // More than any storage gives in one page.
    let mut keys: Vec<String> = (0..1500).map(|i| format!("f/{i}.md")).collect();
    apply(&*backend, keys.iter().map(|key| write(key, key)).collect::<Vec<_>>())?;
    keys.sort();
    same("the children", &listed(&*backend, "f", Depth::Children)?, &keys)
}

fn the_backends_own_files_are_not_listed(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    // Whatever a backend makes for itself, it has made after these.
    apply(&*backend, [write("a.md", b"a"), write("f/b.md", b"b")])?;
    apply(&*backend, [delete("a.md")])?;
    tree_is(&*backend, &["f/", "f/b.md=b"])?;
    for key in trial.reserved() {
        match backend.list(&at(key), Depth::All) {
            Err(error) if error.kind() == Kind::Invalid => {}
            listed => same(&format!("the listing of `{key}`"), &listed?, &Vec::new())?,
        }
        ensure(backend.read(&at(key)).is_err(), || format!("`{key}` can be read"))?;
    }
    Ok(())
}

fn mkdir_makes_parents(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    backend.mkdir(&at("a/b/c"))?;
    tree_is(&*backend, &["a/", "a/b/", "a/b/c/"])?;
    backend.mkdir(&at("a/d"))?;
    put(&*backend, "a/d/x.md", b"x")?;
    tree_is(&*backend, &["a/", "a/b/", "a/b/c/", "a/d/", "a/d/x.md=x"])
}

fn mkdir_twice_is_no_error(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    backend.mkdir(&at("f"))?;
    put(&*backend, "f/a.md", b"a")?;
    backend.mkdir(&at("f"))?;
    backend.mkdir(&crate::Locator::root())?;
    tree_is(&*backend, &["f/", "f/a.md=a"])
}

fn mkdir_onto_a_file_is_refused(trial: &Trial<'_>) -> Verdict {
    let backend = trial.open()?;
    put(&*backend, "a.md", b"a")?;
    refused("a folder where a file is", backend.mkdir(&at("a.md")), Kind::Exists)?;
    tree_is(&*backend, &["a.md=a"])
}
