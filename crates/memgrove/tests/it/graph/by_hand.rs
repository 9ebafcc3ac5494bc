//! Files that people and other programs have written, cut off, damaged or removed: nothing is lost, and
//! nothing is said to be done that is not.

use memgrove::Kind;
use memgrove::error::code;
use memgrove::memory::UndoScope;
use memgrove::shapes::graph::{
    ContentEdit, Contents, Graph, NewConnection, NewNode, Operation, Query, Removal, Update,
};
use serde_json::{Value, json};

use super::{Fixture, link, note, object};

const TAIL: &str = "graph/_system/registry.tail.jsonl";
const REGISTRY: &str = "graph/_system/registry.json";
const UNREAD: &str = "graph/_system/registry.unread.jsonl";

fn ids(graph: &Graph) -> Vec<String> {
    let nodes = graph.list(&Query::default()).unwrap().found.into_iter().map(|node| node.id);
    let connections = graph.connections(&Query::default()).unwrap().found.into_iter().map(|one| one.id);
    nodes.chain(connections).collect()
}

/// Two nodes.
fn two() -> Fixture {
    let fixture = Fixture::new();
    fixture.node("x", json!({}));
    fixture.node("x", json!({}));
    fixture
}

#[test]
fn a_tail_that_was_cut_off_or_damaged_is_not_believed() {
    let connect =
        |graph: &Graph| graph.connect(note(), &link("mem_x_001", "l", "mem_x_002")).map(drop).unwrap();
    type Damage = fn(&str) -> String;
    let damages: [(&str, Damage); 4] = [
        ("without its last line feed", |tail| tail.trim_end().to_owned()),
        ("cut off in a line", |tail| tail[..tail.len() - 30].to_owned()),
        ("damaged in the middle", |tail| tail.replacen("{\"node\":", "{\"node;", 1)),
        ("with a mark in front", |tail| format!("\u{feff}{tail}")),
    ];
    for (name, damage) in damages {
        for seen in [false, true] {
            let fixture = two();
            let graph = if seen { fixture.graph.clone() } else { fixture.beside() };
            fixture.drop_in(TAIL, damage(&fixture.text(TAIL)));
            connect(&graph);
            for graph in [&graph, &fixture.beside()] {
                assert_eq!(ids(graph), ["mem_x_001", "mem_x_002", "conn_001"], "{name}");
                let refused = graph.delete(note(), "mem_x_001", Removal::Refuse, None).unwrap_err();
                assert_eq!(refused.code_name(), Some(code::NODE_CONNECTED), "{name}");
            }
            assert_eq!(graph.check().unwrap(), [], "{name}");
            let again = fixture.beside();
            assert_eq!(
                (again.counts().unwrap(), again.take_report()),
                ((2, 1), None),
                "{name}: once is enough"
            );
        }
    }
    let fixture = two();
    fixture.drop_in(TAIL, fixture.text(TAIL) + "{\"of a newer program\":1}\n");
    fixture.graph.settle().unwrap();
    fixture.graph.fold().unwrap();
    assert_eq!(fixture.text(UNREAD), "{\"of a newer program\":1}\n");
    let fresh = fixture.beside();
    assert_eq!((fresh.counts().unwrap(), fresh.take_report()), ((2, 0), None));
}

/// A graph that another program has left: a registry, and the content of one node.
fn foreign() -> Fixture {
    let fixture = Fixture::new();
    fixture.drop_in("graph/_content/nodes/a1.md", "held");
    let storage = json!({"path": "_content/nodes/a1.md", "format": "markdown"});
    let registry = json!({
        "nodes": {"a1": {"type": "p", "storage": storage}, "a2": {"type": "p"}, "a3": {"type": "p", "mine": 1}},
        "connections": {"c1": {"type": "has", "from": "a1", "to": "a2"}},
    });
    fixture.drop_in(REGISTRY, registry.to_string());
    fixture
}

#[test]
fn what_only_the_registry_knows_is_deleted_and_comes_back() {
    type Step = fn(&Graph);
    let steps: [(&str, Step, &[&str]); 6] = [
        (
            "delete",
            |graph| drop(graph.delete(note(), "a3", Removal::Refuse, None).unwrap()),
            &["a1", "a2", "c1"],
        ),
        (
            "batch",
            |graph| {
                let step = Operation::DeleteNode { id: "a3".into(), cascade: false };
                assert!(graph.batch(note(), &[step]).unwrap().change.is_some());
            },
            &["a1", "a2", "c1"],
        ),
        ("disconnect", |graph| drop(graph.disconnect(note(), "c1", None).unwrap()), &["a1", "a2", "a3"]),
        ("cascade", |graph| drop(graph.delete(note(), "a1", Removal::Cascade, None).unwrap()), &["a2", "a3"]),
        (
            "update",
            |graph| {
                let update = Update { set: object(json!({"n": 1})), ..Update::default() };
                graph.update(note(), "a3", &update, None).unwrap();
            },
            &["a1", "a2", "a3", "c1"],
        ),
        (
            "connect",
            |graph| {
                let new = NewConnection { id: Some("c2".into()), ..link("a2", "has", "a3") };
                graph.connect(note(), &new).unwrap();
            },
            &["a1", "a2", "a3", "c1", "c2"],
        ),
    ];
    for (name, step, left) in steps {
        let fixture = foreign();
        step(&fixture.graph);
        for graph in [&fixture.graph, &fixture.beside()] {
            assert_eq!(ids(graph), left, "{name}");
        }
        fixture.graph.memory().undo(note(), &UndoScope::Last).unwrap();
        for graph in [&fixture.graph, &fixture.beside()] {
            let mut there = ids(graph);
            there.sort();
            assert_eq!(there, ["a1", "a2", "a3", "c1"], "{name}");
            assert!(graph.node("a3").unwrap().it.properties.is_empty(), "{name}");
        }
        assert_eq!(fixture.text("graph/_content/nodes/a1.md"), "held", "{name}");
    }
}

#[test]
fn a_content_that_only_the_registry_knows_is_written_whole() {
    let fixture = foreign();
    let edit = ContentEdit::Write { content: b"new".to_vec().into(), format: None };
    fixture.graph.edit(note(), "a1", edit, None).unwrap();
    assert_eq!(fixture.text("graph/_content/nodes/a1.md"), "new");
    fixture.graph.memory().undo(note(), &UndoScope::Last).unwrap();
    assert_eq!(fixture.text("graph/_content/nodes/a1.md"), "held");
    assert_eq!(fixture.beside().node("a1").unwrap().it.kind, "p");
}

#[test]
fn a_meta_file_that_was_removed_is_told_and_written_anew() {
    let fixture = Fixture::new();
    let properties = object(json!({"t": "important"}));
    let content = Some(b"hello".to_vec());
    let new =
        NewNode { kind: "x".into(), properties, content: content.map(Into::into), ..NewNode::default() };
    fixture.graph.create(note(), new).unwrap();
    fixture.node("x", json!({}));
    let meta = "graph/_content/nodes/mem_x_001.meta.json";
    fixture.remove(meta);
    let found: Vec<String> = fixture.graph.check().unwrap().into_iter().map(|finding| finding.what).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("1 things have lost their `.meta.json`") && found[0].ends_with("mem_x_001"),
        "{found:?}"
    );
    assert_eq!(fixture.graph.rebuild(note()).unwrap().outcome.lost, ["mem_x_001"]);
    fixture.remove(REGISTRY);
    assert_eq!(fixture.beside().node("mem_x_001").unwrap().it.properties["t"], "important");
    assert_eq!(fixture.beside().check().unwrap(), []);
    // One that held nothing was deleted by whoever removed its file, and can be deleted here too.
    fixture.remove("graph/_content/nodes/mem_x_002.meta.json");
    assert!(fixture.graph.delete(note(), "mem_x_002", Removal::Refuse, None).unwrap().change.is_some());
    assert_eq!(ids(&fixture.beside()), ["mem_x_001"]);
}

#[test]
fn a_content_goes_only_with_the_one_it_belongs_to() {
    let fixture = Fixture::new();
    fixture.node_with("x", "of the node");
    fixture.drop_in("graph/_content/shared.pdf", "of both");
    let held = |path: &str| json!({"path": path, "format": "markdown"});
    for (folder, id, more) in [
        (
            "connections",
            "c9",
            json!({"from": "mem_x_001", "to": "mem_x_001", "storage": held("_content/nodes/mem_x_001.md")}),
        ),
        ("nodes", "f1", json!({"storage": held("_content/shared.pdf")})),
        ("nodes", "f2", json!({"storage": held("_content/shared.pdf")})),
    ] {
        let mut entry = object(more);
        entry.extend([("id".to_owned(), Value::from(id)), ("type".to_owned(), Value::from("x"))]);
        fixture.drop_in(&format!("graph/_content/{folder}/{id}.meta.json"), Value::Object(entry).to_string());
    }
    fixture.graph.rebuild(note()).unwrap();
    assert_eq!(fixture.graph.check().unwrap(), []);
    fixture.graph.disconnect(note(), "c9", None).unwrap();
    assert_eq!(fixture.text("graph/_content/nodes/mem_x_001.md"), "of the node");
    let edit = ContentEdit::Write { content: b"of one".to_vec().into(), format: None };
    let edited = fixture.graph.edit(note(), "f1", edit, None).unwrap().outcome;
    assert_eq!(edited.storage.unwrap().path, "_content/nodes/f1.md");
    assert_eq!(fixture.text("graph/_content/shared.pdf"), "of both");
    fixture.graph.memory().undo(note(), &UndoScope::Last).unwrap();
    fixture.graph.delete(note(), "f1", Removal::Refuse, None).unwrap();
    assert_eq!(fixture.text("graph/_content/shared.pdf"), "of both");
    fixture.graph.delete(note(), "f2", Removal::Refuse, None).unwrap();
    assert!(
        !fixture.store().exists(&super::at("graph/_content/shared.pdf")).unwrap(),
        "nobody has it any more"
    );
}

#[test]
fn an_entry_that_nobody_can_read_whole_blocks_nothing() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let odd = ["\"\\ud800\"", "1e400", &"9".repeat(400), &deep];
    for value in odd {
        let fixture = Fixture::new();
        fixture.drop_in("graph/_content/nodes/b1.md", "held");
        let entry = format!("{{\"type\":\"x\",\"properties\":{{\"p\":{value}}}}}");
        let fine = r#"{"type":"x","properties":{"p":"\ud83d\ude00","n":1e4}}"#;
        let connection = entry.replace("\"type\"", "\"from\":\"g1\",\"to\":\"g1\",\"type\"");
        fixture.drop_in(
            REGISTRY,
            format!("{{\"nodes\":{{\"b1\":{entry},\"g1\":{fine}}},\"connections\":{{\"c1\":{connection}}}}}"),
        );
        for rebuilt in [false, true] {
            let graph = fixture.beside();
            if rebuilt {
                graph.rebuild(note()).unwrap();
            }
            assert_eq!(ids(&graph), ["g1"]);
            assert_eq!(graph.snapshot(None, Contents::Whole).unwrap().nodes.len(), 1);
            assert!(graph.inferred().unwrap().node_types.contains_key("x"));
            let found: Vec<String> = graph.check().unwrap().into_iter().map(|finding| finding.what).collect();
            assert!(
                found.contains(&"2 entries of the registry cannot be read: b1, c1".to_owned()),
                "{found:?}"
            );
            assert!(fixture.text(REGISTRY).contains(&entry), "it is kept");
        }
        assert!(!fixture.store().exists(&super::at("graph/_content/nodes/b1.meta.json")).unwrap());
    }
}

#[test]
fn the_mark_that_some_editors_put_in_front_means_nothing() {
    let fixture = two();
    fixture.graph.fold().unwrap();
    let meta = "graph/_content/nodes/mem_x_001.meta.json";
    for path in [meta, REGISTRY] {
        fixture.drop_in(path, format!("\u{feff}{}", fixture.text(path)));
    }
    let fresh = fixture.beside();
    assert_eq!((fresh.counts().unwrap(), fresh.take_report()), ((2, 0), None));
    assert_eq!(fresh.check().unwrap(), []);
    let set = object(json!({"n": 1}));
    fresh.update(note(), "mem_x_001", &Update { set, ..Update::default() }, None).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&fixture.text(meta)).unwrap()["properties"]["n"], 1);
}

#[test]
fn who_only_reads_is_answered_from_files_and_writes_nothing() {
    let fixture = two();
    fixture.connect("mem_x_001", "l", "mem_x_002");
    for damage in [None, Some("{\"nodes\": {")] {
        match damage {
            None => fixture.remove(REGISTRY),
            Some(damage) => fixture.drop_in(REGISTRY, damage),
        }
        let all = || fixture.store().list_all(&super::at("graph")).unwrap();
        let before = all();
        let reader = fixture.beside().only_reading();
        assert_eq!(ids(&reader), ["mem_x_001", "mem_x_002", "conn_001"]);
        assert_eq!(reader.neighbours("mem_x_001", 1, &Default::default()).unwrap().len(), 1);
        assert!(reader.take_warning().unwrap().contains("the files were read"));
        assert_eq!((reader.counts().unwrap(), reader.take_warning()), ((2, 1), None), "it is told once");
        assert_eq!(all(), before);
        fixture.beside().counts().unwrap();
    }
}

#[test]
fn an_id_that_no_file_can_have_stays_in_the_registry() {
    let fixture = Fixture::new();
    fixture.drop_in(REGISTRY, r#"{"nodes":{"a b.c":{"type":"x","mine":1}},"connections":{}}"#);
    assert_eq!(fixture.graph.node("a b.c").unwrap_err().kind(), Kind::NotFound);
    fixture.graph.rebuild(note()).unwrap();
    assert!(fixture.text(REGISTRY).contains(r#""a b.c": {"type":"x","mine":1}"#));
}

#[test]
fn a_second_file_beside_a_content_is_told() {
    let fixture = Fixture::new();
    fixture.node_with("x", "held");
    fixture.drop_in("graph/_content/nodes/mem_x_001.txt", "somebody's");
    let found = fixture.graph.check().unwrap();
    assert!(found[0].what.ends_with("graph/_content/nodes/mem_x_001.txt"), "{found:?}");
    let rename = ContentEdit::Rename { format: "text".into() };
    let error = fixture.graph.edit(note(), "mem_x_001", rename, None).unwrap_err();
    assert_eq!(error.hint_text(), Some("move it away, or choose another format"));
    let rename = ContentEdit::Rename { format: "markdown".into() };
    assert_eq!(
        fixture.graph.edit(note(), "mem_x_001", rename, None).unwrap().change,
        None,
        "it is so already"
    );
}
