//! A store inside a folder of another.

use std::sync::Arc;

use memgrove::backend::{Backend, Change, Edit, Expect, HistoryQuery, Note, Op};
use memgrove::backends::{Ram, Scoped};
use memgrove::{Kind, Locator, Store};

fn at(key: &str) -> Locator {
    Locator::new(key).expect("a valid key")
}

fn write(key: &str) -> Edit {
    Edit::Write { at: at(key), bytes: b"text".to_vec().into(), expect: Expect::Any }
}

fn rename(from: &str, to: &str) -> Edit {
    Edit::Rename { from: at(from), to: at(to), expect: Expect::Any }
}

fn change(edits: Vec<Edit>) -> Change {
    Change { edits, note: Note { verb: "test".into(), ..Note::default() } }
}

fn pair() -> (Arc<Ram>, Scoped) {
    let inner = Arc::new(Ram::default());
    (Arc::clone(&inner), Scoped::new(inner, at("f/g")))
}

#[test]
fn places_are_named_from_the_folder() {
    let (inner, scoped) = pair();
    let store = Store::new(scoped);
    store.write(&at("a/b.md"), "text").expect("it is writable");
    assert!(inner.info(&at("f/g/a/b.md")).is_ok());
    assert_eq!(store.list_all(&Locator::root()).expect("a listing").len(), 2);
    inner.apply(&change(vec![write("f/other.md"), write("f/g-x.md")])).expect("it is writable");
    assert_eq!(store.list(&Locator::root()).expect("a listing"), [at("a")]);
}

#[test]
fn errors_name_what_the_caller_named() {
    let (_, scoped) = pair();
    scoped.apply(&change(vec![write("README.md")])).expect("it is writable");
    let error = scoped.read(&at("x.md")).expect_err("nothing is there");
    assert_eq!((error.kind(), error.message()), (Kind::NotFound, "`x.md` does not exist"));
    let twin = scoped.apply(&change(vec![write("readme.md")])).expect_err("a twin");
    assert_eq!(twin.kind(), Kind::Exists);
    assert_eq!(twin.message(), "`readme.md` cannot be told apart from `README.md` on every system");
    assert!(twin.hint_text().is_some_and(|hint| hint.starts_with("use `README.md`, ")));
}

#[test]
fn the_root_is_there_before_anything_is_in_it() {
    let (inner, scoped) = pair();
    assert!(scoped.info(&Locator::root()).expect("the root").is_dir());
    assert!(inner.info(&at("f")).is_err(), "looking makes nothing");
    for edit in [write(""), Edit::Delete { at: Locator::root(), expect: Expect::Any }, rename("", "x")] {
        assert_eq!(scoped.apply(&change(vec![edit])).expect_err("the root stays").kind(), Kind::Invalid);
    }
    assert!(inner.info(&at("f")).is_err(), "refusing makes nothing");
}

#[test]
fn the_history_shows_what_happened_in_the_folder() {
    let (inner, scoped) = pair();
    let apply = |edits| inner.apply(&change(edits)).expect("it can be done").change;
    apply(vec![write("elsewhere.md")]);
    let both = apply(vec![write("f/g/a.md"), write("elsewhere.md")]);
    let into = apply(vec![rename("elsewhere.md", "f/g/b.md")]);
    let out = apply(vec![rename("f/g/a.md", "a.md")]);
    apply(vec![write("a.md")]);
    let within = apply(vec![rename("f/g/b.md", "f/g/c.md")]);
    let past = scoped.history(&HistoryQuery::default()).expect("a history");
    let seen: Vec<_> = past
        .iter()
        .map(|past| {
            let edits = past.edits.iter();
            let edits = edits.map(|edit| (edit.op, edit.at.key(), edit.to.as_ref().map(Locator::key)));
            (past.change.clone(), edits.collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(
        seen,
        [
            (within, vec![(Op::Rename, "b.md", Some("c.md"))]),
            (out, vec![(Op::Delete, "a.md", None)]),
            (into, vec![(Op::Write, "b.md", None)]),
            (both, vec![(Op::Write, "a.md", None)]),
        ]
    );
}

#[test]
fn keys_of_two_folders_are_apart() {
    let inner: Arc<dyn Backend> = Arc::new(Ram::default());
    let one = Scoped::new(Arc::clone(&inner), at("one"));
    let two = Scoped::new(Arc::clone(&inner), at("two"));
    let mut keyed = change(vec![write("a.md")]);
    keyed.note.key = Some("k".into());
    assert!(!one.apply(&keyed).expect("the first time").replayed);
    assert!(!two.apply(&keyed).expect("the first time, elsewhere").replayed);
    assert!(one.apply(&keyed).expect("a repeat").replayed);
    let past = one.history(&HistoryQuery::default()).expect("a history");
    assert_eq!(past[0].note.key.as_deref(), Some("k"), "the key is given back as it was given");
}
