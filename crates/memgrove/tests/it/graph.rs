//! The shape `graph` as its callers meet it.

mod by_hand;
mod exchange;
mod hostile;
mod large;
mod model;
mod ontology;
mod past;
mod seed;
mod upkeep;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memgrove::backend::{Change, Edit, Expect, Note};
use memgrove::backends::Ram;
use memgrove::clock::{Clock, ManualClock};
use memgrove::ids::Ids;
use memgrove::shapes::graph::{Connection, Graph, NewConnection, NewNode, Node, Properties};
use memgrove::{Locator, Memory, Store};
use serde_json::Value;

/// Randomness that is the same in every run.
pub(crate) struct Counted(AtomicU64);

impl Ids for Counted {
    fn random(&self) -> [u8; 16] {
        let count = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&count.to_le_bytes());
        bytes[8..].copy_from_slice(&count.rotate_left(32).to_le_bytes());
        bytes
    }
}

/// A graph over a store, as a process that has just begun has it.
pub(crate) fn graph_over(store: Store, seed: u64) -> Graph {
    let clock = Arc::new(ManualClock::default()) as Arc<dyn Clock>;
    Graph::new(Memory::new(store, clock), at("graph"), Arc::new(Counted(AtomicU64::new(seed))))
}

/// A graph in memory.
pub(crate) struct Fixture {
    pub(crate) graph: Graph,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Fixture { graph: graph_over(Store::new(Ram::default()), 1) }
    }

    pub(crate) fn store(&self) -> &Store {
        self.graph.memory().store()
    }

    /// The same store, with nothing in memory.
    pub(crate) fn beside(&self) -> Graph {
        graph_over(self.store().clone(), 7)
    }

    pub(crate) fn text(&self, path: &str) -> String {
        self.store().read(&at(path)).expect(path)
    }

    /// Writes a file as someone would who has never heard of memgrove.
    pub(crate) fn drop_in(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.edit(Edit::Write { at: at(path), bytes: bytes.into().into(), expect: Expect::Any });
    }

    pub(crate) fn remove(&self, path: &str) {
        self.edit(Edit::Delete { at: at(path), expect: Expect::Any });
    }

    fn edit(&self, edit: Edit) {
        self.store().apply(&Change { edits: vec![edit], note: Note::default() }).expect("it can be done");
    }

    pub(crate) fn node(&self, kind: &str, properties: Value) -> Node {
        let new = NewNode { kind: kind.into(), properties: object(properties), ..NewNode::default() };
        self.graph.create(note(), new).expect("a node").outcome
    }

    pub(crate) fn node_with(&self, kind: &str, content: &str) -> Node {
        let content = Some(content.as_bytes().to_vec());
        let new = NewNode { kind: kind.into(), content: content.map(Into::into), ..NewNode::default() };
        self.graph.create(note(), new).expect("a node").outcome
    }

    pub(crate) fn connect(&self, from: &str, kind: &str, to: &str) -> Connection {
        self.graph.connect(note(), &link(from, kind, to)).expect("a connection").outcome
    }
}

pub(crate) fn link(from: &str, kind: &str, to: &str) -> NewConnection {
    NewConnection { from: from.into(), kind: kind.into(), to: to.into(), ..NewConnection::default() }
}

pub(crate) fn at(key: &str) -> Locator {
    Locator::new(key).expect("a valid key")
}

pub(crate) fn note() -> Note {
    Note { verb: "test".into(), ..Note::default() }
}

pub(crate) fn object(value: Value) -> Properties {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}
