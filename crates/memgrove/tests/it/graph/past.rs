//! Undoing and restoring nodes and connections, whatever was folded in between.

use memgrove::Kind;
use memgrove::backend::{ChangeId, Moment, Note};
use memgrove::error::code;
use memgrove::memory::{Point, Restored, UndoScope};
use memgrove::shapes::graph::{ContentEdit, NewNode, Removal, Update};
use serde_json::json;

use super::{Fixture, note, object};

fn undo(fixture: &Fixture, scope: &UndoScope) -> Vec<ChangeId> {
    fixture.graph.memory().undo(note(), scope).unwrap().outcome.changes
}

/// What is listed is what the files say.
fn is_true(fixture: &Fixture, counts: (usize, usize)) {
    for graph in [&fixture.graph, &fixture.beside()] {
        assert_eq!(graph.counts().unwrap(), counts);
        assert_eq!(graph.check().unwrap(), []);
    }
}

#[test]
fn a_fold_is_not_in_the_way_of_undo() {
    let fixture = Fixture::new();
    fixture.node("a", json!({}));
    fixture.node_with("a", "content");
    fixture.connect("mem_a_001", "x", "mem_a_002");
    fixture.graph.fold().unwrap();
    let gone = fixture.graph.delete(note(), "mem_a_002", Removal::Cascade, None).unwrap().change.unwrap();
    fixture.graph.fold().unwrap();
    is_true(&fixture, (1, 0));
    assert_eq!(undo(&fixture, &UndoScope::Change(gone.clone())), [gone]);
    is_true(&fixture, (2, 1));
    fixture.graph.fold().unwrap();
    for left in [(2, 0), (1, 0), (0, 0)] {
        undo(&fixture, &UndoScope::Last);
        is_true(&fixture, left);
        fixture.graph.fold().unwrap();
    }
    let nothing = fixture.graph.memory().undo(note(), &UndoScope::Last).unwrap_err();
    assert_eq!(nothing.kind(), Kind::NotFound);
    assert_eq!(fixture.node("a", json!({})).id, "mem_a_003", "no id is given again");
}

#[test]
fn an_import_of_many_is_undone_whole() {
    let fixture = Fixture::new();
    let nodes: Vec<_> = (0..600).map(|n| json!({"id": format!("n{n}"), "type": "a"})).collect();
    let given = json!({ "nodes": nodes }).to_string();
    let by = Note { verb: "graph_import".into(), ..note() };
    fixture.graph.import(&by, given.as_bytes(), Default::default()).unwrap();
    fixture.graph.settle().unwrap();
    is_true(&fixture, (600, 0));
    assert_eq!(undo(&fixture, &UndoScope::Last).len(), 2);
    is_true(&fixture, (0, 0));
}

#[test]
fn what_was_only_held_to_is_not_in_the_way_of_undo() {
    let fixture = Fixture::new();
    fixture.node("a", json!({}));
    fixture.node("a", json!({}));
    let made = fixture.graph.connect(note(), &super::link("mem_a_001", "x", "mem_a_002")).unwrap().change;
    let set = object(json!({"later": 1}));
    fixture.graph.update(note(), "mem_a_001", &Update { set, ..Update::default() }, None).unwrap();
    undo(&fixture, &UndoScope::Change(made.unwrap()));
    is_true(&fixture, (2, 0));
    assert_eq!(fixture.graph.node("mem_a_001").unwrap().it.properties["later"], 1);
}

#[test]
fn a_node_is_restored_with_its_content_and_the_registry_knows() {
    let fixture = Fixture::new();
    let new = NewNode {
        kind: "a".into(),
        properties: object(json!({"n": 1})),
        content: Some(b"one".to_vec().into()),
        ..NewNode::default()
    };
    let first = fixture.graph.create(note(), new).unwrap();
    let version = fixture.graph.node("mem_a_001").unwrap().version.unwrap();
    let edit = ContentEdit::Write { content: b"two".to_vec().into(), format: Some("text".into()) };
    let second = fixture.graph.edit(note(), "mem_a_001", edit, None).unwrap();
    let set = object(json!({"n": 2}));
    fixture.graph.update(note(), "mem_a_001", &Update { set, ..Update::default() }, None).unwrap();
    let after = |change: &Option<ChangeId>| Point::Moment(Moment::After(change.clone().unwrap()));
    let before = Point::Moment(Moment::Before(first.change.clone().unwrap()));
    let restore = |point: &Point| fixture.graph.restore(note(), "mem_a_001", point, None).unwrap().outcome;
    let holds = |n: u64, content: &str| {
        is_true(&fixture, (1, 0));
        let node = fixture.beside().node("mem_a_001").unwrap().it;
        assert_eq!(node.properties["n"], n);
        let held = fixture.graph.content("mem_a_001", &node.storage.unwrap()).unwrap().bytes;
        assert_eq!(held, content.as_bytes());
    };
    assert_eq!(restore(&after(&first.change)), Restored::Written);
    holds(1, "one");
    assert_eq!(restore(&after(&second.change)), Restored::Written);
    holds(1, "two");
    fixture.graph.delete(note(), "mem_a_001", Removal::Refuse, None).unwrap();
    fixture.graph.fold().unwrap();
    assert_eq!(restore(&Point::Version(version)), Restored::Written);
    holds(1, "one");
    assert_eq!(restore(&after(&first.change)), Restored::Unchanged);
    assert_eq!(restore(&before), Restored::Deleted);
    is_true(&fixture, (0, 0));
    let at = fixture.graph.past_of("mem_a_001").unwrap();
    undo(&fixture, &UndoScope::Memory(at));
    holds(1, "one");
    assert_eq!(fixture.graph.past_of("mem_a_009").unwrap_err().kind(), Kind::NotFound);
}

/// Neither undo nor restore leaves a connection that leads nowhere.
#[test]
fn what_is_taken_back_leaves_no_connection_without_an_end() {
    let fixture = Fixture::new();
    let first = fixture.graph.create(note(), NewNode { kind: "x".into(), ..NewNode::default() }).unwrap();
    fixture.node("x", json!({}));
    let made = fixture.graph.connect(note(), &super::link("mem_x_001", "l", "mem_x_002")).unwrap();
    let undone = |scope: &UndoScope| fixture.graph.memory().undo(note(), scope).map(drop);
    for folded in [false, true] {
        if folded {
            fixture.graph.fold().unwrap();
        }
        let error = undone(&UndoScope::Change(first.change.clone().unwrap())).unwrap_err();
        assert_eq!(error.code_name(), Some(code::NODE_CONNECTED), "{error}");
        assert!(error.message().contains("conn_001 (mem_x_001 l mem_x_002)"), "{error}");
    }
    let gone = fixture.graph.delete(note(), "mem_x_001", Removal::Cascade, None).unwrap();
    let restore = |change: &Option<ChangeId>| {
        let point = Point::Moment(Moment::After(change.clone().unwrap()));
        fixture.graph.restore_connection(note(), "conn_001", &point, None).map(|done| done.outcome)
    };
    assert_eq!(restore(&made.change).unwrap_err().code_name(), Some(code::NODE_NOT_FOUND));
    let other = fixture.graph.delete(note(), "mem_x_002", Removal::Refuse, None).unwrap();
    let error = undone(&UndoScope::Change(gone.change.clone().unwrap())).unwrap_err();
    assert_eq!(error.code_name(), Some(code::NODE_NOT_FOUND), "{error}");
    is_true(&fixture, (0, 0));
    undo(&fixture, &UndoScope::Change(other.change.unwrap()));
    undo(&fixture, &UndoScope::Change(gone.change.unwrap()));
    is_true(&fixture, (2, 1));
    fixture.graph.disconnect(note(), "conn_001", None).unwrap();
    assert_eq!(restore(&made.change).unwrap(), Restored::Written);
    is_true(&fixture, (2, 1));
}
