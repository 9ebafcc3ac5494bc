//! Files that iCloud keeps elsewhere, and copies that are still on their way.

use memgrove::backend::{Change, Edit, Expect, Level, Note};
use memgrove::locator::Locator;
use memgrove::shapes::merging;
use memgrove::{Kind, Store};

use super::{Folders, SETTLED, at};

fn apply(store: &Store, edit: Edit) -> memgrove::Result<()> {
    store.apply(&Change { edits: vec![edit], note: Note::default() }).map(drop)
}

#[test]
fn what_is_elsewhere_is_there_and_left_alone() {
    let folders = Folders::new();
    let vault = folders.vault();
    vault.write(&at("notes/a.md"), "a").unwrap();
    folders.place("notes/.b.md.icloud", "stub");
    folders.place("notes/.a.md.icloud", "stale");
    let listed: Vec<String> = vault.list(&at("notes")).unwrap().iter().map(|at| at.to_string()).collect();
    assert_eq!(listed, ["notes/a.md", "notes/b.md"]);
    let b = at("notes/b.md");
    let write = |at: &Locator| Edit::Write { at: at.clone(), bytes: b"new"[..].into(), expect: Expect::Any };
    let rename = |from: &str, to: &str| Edit::Rename { from: at(from), to: at(to), expect: Expect::Any };
    let delete = |at: &Locator| Edit::Delete { at: at.clone(), expect: Expect::Any };
    let refused = [
        vault.read(&b).map(drop),
        vault.info(&b).map(drop),
        vault.exists(&b).map(drop),
        apply(&vault, write(&b)),
        apply(&vault, delete(&b)),
        apply(&vault, rename("notes/a.md", "notes/b.md")),
        // A placeholder that is deleted takes its file along.
        apply(&vault, delete(&at("notes"))),
        apply(&vault, rename("notes", "old")),
    ];
    for (number, refused) in refused.into_iter().enumerate() {
        let error = refused.expect_err(&number.to_string());
        assert_eq!(error.kind(), Kind::Io, "{number}: {error}");
        assert_eq!(error.message(), "`notes/b.md` is not on this machine: iCloud keeps it elsewhere");
    }
    assert_eq!(vault.read(&at("notes/a.md")).unwrap(), "a", "one that is here is read");
    assert!(
        vault.write(&at("notes/.c.md.icloud"), "x").unwrap_err().message().contains("iCloud placeholder")
    );
    let found = vault.backend().check().unwrap();
    let warned = found.iter().filter(|one| one.level == Level::Warning);
    assert!(warned.map(|one| &*one.at).any(|at| at == "notes/.b.md.icloud"), "{found:?}");
    // Nor does a copy take the place of a file that is merely elsewhere.
    let copy = "notes/b (Ada's conflicted copy 2026-01-31).md";
    folders.place(copy, "copy");
    let refused = merging::merge_copy(&folders.bare(), Note::default(), &at(copy), None).unwrap_err();
    assert_eq!(refused.kind(), Kind::Io, "{refused}");
}

#[test]
fn a_copy_that_is_on_its_way_is_waited_for_before_it_is_merged() {
    let folders = Folders::new();
    folders.vault().write(&at("a.md"), "theirs").unwrap();
    let copy = "a (Ada's conflicted copy 2026-01-31).md";
    let begun = folders.begun_by_another(copy);
    merging::merge_copy(&folders.bare(), Note::default(), &at(copy), None).unwrap();
    assert!(begun.elapsed() >= SETTLED, "it was waited for");
}
