//! The device-local backend on a real disk: what lies there, and how it gets there.

use std::sync::Arc;

use memgrove::backend::{Change, Edit, Expect, HistoryQuery, Moment, Note};
use memgrove::backends::{Local, LocalOptions};
use memgrove::clock::SystemClock;
use memgrove::vfs::RealFs;
use memgrove::{Backend, Locator, Store};

fn at(key: &str) -> Locator {
    Locator::new(key).unwrap()
}

fn open(root: &std::path::Path) -> Local {
    let tree = Arc::new(RealFs::open_root(root).unwrap());
    Local::open(LocalOptions::new(tree, Arc::new(SystemClock))).unwrap()
}

#[test]
fn a_write_is_there_after_opening_again() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::new(open(root.path()));
    store.write(&at("files/a.md"), "one").unwrap();
    store.write(&at("files/a.md"), "two").unwrap();
    let edits = vec![Edit::Append { at: at("files/a.md"), bytes: b" three".into(), expect: Expect::Any }];
    let last = store.apply(&Change { edits, note: Note::default() }).unwrap();
    assert_eq!(store.read(&at("files/a.md")).unwrap(), "two three");
    drop(store);
    let local = open(root.path());
    assert_eq!(local.read(&at("files/a.md")).unwrap().bytes, b"two three");
    let past = local.history(&HistoryQuery::default()).unwrap();
    assert_eq!(past.len(), 3);
    assert_eq!(past[0].change, last.change);
    let read = |moment: Moment| local.read_past(&at("files/a.md"), &moment).unwrap();
    assert_eq!(read(Moment::After(past[0].change.clone())).unwrap(), b"two three");
    assert_eq!(read(Moment::Before(past[0].change.clone())).unwrap(), b"two");
    assert_eq!(read(Moment::After(past[2].change.clone())).unwrap(), b"one");
    assert_eq!(read(Moment::Before(past[2].change.clone())), None);
}
