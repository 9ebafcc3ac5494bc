//! Names that memgrove would not make, made by other means.

use std::sync::Arc;

use memgrove::backend::{Change, Edit, Expect, Note};
use memgrove::backends::{Local, LocalOptions};
use memgrove::clock::SystemClock;
use memgrove::vfs::RealFs;
use memgrove::{Kind, Locator, Result, Store};
use tempfile::TempDir;

fn at(key: &str) -> Locator {
    Locator::new(key).expect("a valid key")
}

/// A store in a folder where someone else has made these files.
#[allow(clippy::disallowed_methods)] // The files are made past the store: that is the point.
fn found(files: &[&str]) -> (TempDir, Store) {
    let root = tempfile::tempdir().expect("a temporary folder");
    for file in files {
        std::fs::write(root.path().join(file), "by hand").expect("the system holds the name");
    }
    let tree = RealFs::open_root(root.path()).expect("the folder exists");
    let local = Local::open(LocalOptions::new(Arc::new(tree), Arc::new(SystemClock)));
    (root, Store::new(local.expect("the store opens")))
}

fn apply(store: &Store, edit: Edit) -> Result<()> {
    store.apply(&Change { edits: vec![edit], note: Note::default() }).map(drop)
}

#[test]
fn what_is_there_can_be_read_overwritten_and_moved_away() -> Result<()> {
    let names = ["NUL.md", "a:b.md", "ends in a dot.", "what?.md", "zero\u{200b}width.md", "a\\b.md"];
    let (_root, store) = found(&names);
    for (index, name) in names.iter().enumerate() {
        assert_eq!(store.read(&at(name))?, "by hand", "{name}");
        store.write(&at(name), "overwritten")?;
        apply(&store, Edit::Append { at: at(name), bytes: b"!".to_vec().into(), expect: Expect::Any })?;
        assert_eq!(store.read(&at(name))?, "overwritten!", "{name}");
        let away = at(&format!("{index}.md"));
        apply(&store, Edit::Rename { from: at(name), to: away.clone(), expect: Expect::Any })?;
        assert_eq!(store.read(&away)?, "overwritten!");
        let again = store.write(&at(name), "new").expect_err("the name is free, so it would be new");
        assert_eq!(again.kind(), Kind::Invalid, "{name}");
    }
    Ok(())
}

#[test]
fn twins_that_are_there_are_told_apart() -> Result<()> {
    let (_root, store) = found(&["note.md", "Note.md"]);
    store.write(&at("note.md"), "one")?;
    store.write(&at("Note.md"), "other")?;
    assert_eq!((store.read(&at("note.md"))?, store.read(&at("Note.md"))?), ("one".into(), "other".into()));
    apply(&store, Edit::Rename { from: at("Note.md"), to: at("third.md"), expect: Expect::Any })?;
    apply(&store, Edit::Delete { at: at("note.md"), expect: Expect::Any })?;
    assert_eq!(store.list(&Locator::root())?, [at("third.md")]);
    Ok(())
}
