//! What things cost, in files that are read: not more with more entities or more types.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use memgrove::backend::{Content, Note};
use memgrove::backends::Ram;
use memgrove::clock::ManualClock;
use memgrove::shapes::entities::{How, Knowledge};
use memgrove::{Backend, Locator, Memory, Result, Store};

use super::{at, entity};
use crate::hooked::{Hook, Hooked};

/// A storage that counts how often a file is read.
#[derive(Default)]
struct Counting {
    inner: Ram,
    reads: AtomicUsize,
}

impl Hook for Counting {
    fn inner(&self) -> &dyn Backend {
        &self.inner
    }
    fn read(&self, at: &Locator) -> Result<Content> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.read(at)
    }
}

fn counted() -> (Arc<Hooked<Counting>>, impl Fn() -> Knowledge) {
    let backend = Arc::new(Hooked::<Counting>::default());
    let store = Store::shared(Arc::clone(&backend) as Arc<dyn Backend>);
    let memory = Memory::new(store, Arc::new(ManualClock::default()));
    (backend, move || Knowledge::new(memory.clone(), at("knowledge")))
}

#[test]
fn a_process_that_stores_one_entity_does_not_read_the_others() {
    let (backend, fresh) = counted();
    let all: Vec<_> = (0..300).map(|n| entity(&format!("entity {n}"), "T", &["x"])).collect();
    let first = fresh();
    first.store(Note::default(), &all, How::Merge).expect("stored");
    first.settle().expect("settled");
    let before = backend.0.reads.load(Ordering::SeqCst);
    fresh().store(Note::default(), &[entity("new", "", &["y"])], How::Merge).expect("stored");
    let reads = backend.0.reads.load(Ordering::SeqCst) - before;
    assert!(reads < 20, "{reads} files were read");
}

#[test]
fn relations_are_imported_without_a_look_into_the_folder_of_every_type() {
    let (backend, fresh) = counted();
    let entity = |n: usize| {
        format!("{{\"type\":\"entity\",\"name\":\"e{n}\",\"entityType\":\"t{n}\",\"observations\":[]}}\n")
    };
    let relation = |n: usize| {
        format!("{{\"type\":\"relation\",\"from\":\"e{n}\",\"to\":\"e0\",\"relationType\":\"r\"}}\n")
    };
    let entities: String = (0..40).map(entity).collect();
    let relations: String = (0..40).map(relation).collect();
    fresh().import(&Note::default(), entities.as_bytes()).expect("imported");
    let before = backend.0.reads.load(Ordering::SeqCst);
    let imported = fresh().import(&Note::default(), relations.as_bytes()).expect("imported");
    assert_eq!((imported.relations, imported.loose), (40, 0));
    let reads = backend.0.reads.load(Ordering::SeqCst) - before;
    assert!(reads < 40 * 5, "{reads} files were read");
}
