//! What the specification of the graph asks for: nodes, connections, ways, batches, exports.

use memgrove::Kind;
use memgrove::error::code;
use memgrove::shapes::graph::{
    ContentEdit, Contents, Direction, Existing, Form, NewNode, Operation, Outcome, Query, Removal, Update,
    Ways,
};
use serde_json::json;

use super::{Fixture, at, link, note, object};

#[test]
fn a_node_lies_where_the_specification_says() {
    let fixture = Fixture::new();
    let node = fixture.node_with("project", "# Kitchen Renovation\n");
    assert_eq!(node.id, "mem_project_001");
    assert_eq!(fixture.text("graph/_content/nodes/mem_project_001.md"), "# Kitchen Renovation\n");
    for (format, path) in [
        ("json", "mem_doc_001.json"),
        ("pdf", "mem_doc_002.pdf"),
        ("png", "mem_doc_003.png"),
        ("jpeg", "mem_doc_004.jpg"),
    ] {
        let content = Some(b"\x89\0\xff".to_vec());
        let new = NewNode {
            kind: "doc".into(),
            format: Some(format.into()),
            content: content.map(Into::into),
            ..NewNode::default()
        };
        let made = fixture.graph.create(note(), new).unwrap().outcome;
        assert_eq!(made.storage.as_ref().unwrap().path, format!("_content/nodes/{path}"));
        let got = fixture.graph.content(&made.id, &made.storage.unwrap()).unwrap();
        assert_eq!(got.bytes, b"\x89\0\xff");
    }
    let one = fixture.connect("mem_project_001", "has", "mem_doc_001");
    assert_eq!(one.id, "conn_001");
    let edit = ContentEdit::Create { content: "why\n".into(), format: None };
    fixture.graph.edit_connection(note(), "conn_001", &edit, None).unwrap();
    assert_eq!(fixture.text("graph/_content/connections/conn_001.md"), "why\n");
}

#[test]
fn a_reader_of_the_registry_alone_finds_a_valid_file_at_any_time() {
    let fixture = Fixture::new();
    let read = || -> serde_json::Value {
        serde_json::from_str(&fixture.text("graph/_system/registry.json")).expect("valid JSON")
    };
    fixture.node("project", json!({"title": "a"}));
    assert_eq!(read()["nodes"], json!({}), "it is there from the first change on");
    fixture.node_with("project", "x");
    fixture.connect("mem_project_001", "before", "mem_project_002");
    fixture.graph.fold().unwrap();
    let whole = read();
    assert_eq!(whole["nodes"]["mem_project_001"]["properties"], json!({"title": "a"}));
    assert_eq!(whole["nodes"]["mem_project_002"]["storage"]["path"], "_content/nodes/mem_project_002.md");
    assert_eq!(whole["nodes"]["mem_project_002"]["storage"]["format"], "markdown");
    assert_eq!(whole["connections"]["conn_001"]["from"], "mem_project_001");
    let tail = fixture.text("graph/_system/registry.tail.jsonl");
    assert_eq!(tail, format!("{{\"continues\":{}}}\n", whole["mark"]), "nothing came since");
    assert_eq!(fixture.beside().counts().unwrap(), (2, 1));
}

#[test]
fn properties_are_set_and_removed_and_all_else_stays() {
    let fixture = Fixture::new();
    fixture.node("project", json!({"title": "a", "old": 1}));
    let path = "graph/_content/nodes/mem_project_001.meta.json";
    let by_hand = fixture
        .text(path)
        .replace("\"old\": 1", "\"old\": 1, \"big\": 12345678901234567890123")
        .replace("\"id\"", "\"mine\": [1,  2],\n  \"id\"");
    fixture.drop_in(path, by_hand);
    let update =
        Update { set: object(json!({"title": "b"})), unset: vec!["old".into()], ..Update::default() };
    let node = fixture.graph.update(note(), "mem_project_001", &update, None).unwrap().outcome;
    assert_eq!(node.properties["title"], "b");
    assert!(node.updated > node.created);
    let text = fixture.text(path);
    assert!(
        text.contains("12345678901234567890123")
            && text.contains("\"mine\": [1,  2]")
            && !text.contains("\"old\""),
        "{text}"
    );
    fixture.graph.fold().unwrap();
    assert!(fixture.text("graph/_system/registry.json").contains("12345678901234567890123"));
}

#[test]
fn content_is_edited_by_the_six_operations() {
    let fixture = Fixture::new();
    fixture.node_with("project", "one\nthree\n");
    let edit = |edit: ContentEdit| {
        fixture.graph.edit(note(), "mem_project_001", edit, None).map(|done| done.outcome)
    };
    edit(ContentEdit::Insert { insert_line: 2, new_str: "two\n".into() }).unwrap();
    edit(ContentEdit::Replace { old_str: "three".into(), new_str: "3".into() }).unwrap();
    assert_eq!(fixture.text("graph/_content/nodes/mem_project_001.md"), "one\ntwo\n3\n");
    let create = || ContentEdit::Create { content: "x".into(), format: None };
    assert_eq!(edit(create()).unwrap_err().kind(), Kind::Exists);
    let moved = edit(ContentEdit::Rename { format: "text".into() }).unwrap();
    assert_eq!(moved.storage.unwrap().path, "_content/nodes/mem_project_001.txt");
    assert!(!fixture.store().exists(&at("graph/_content/nodes/mem_project_001.md")).unwrap());
    assert_eq!(fixture.text("graph/_content/nodes/mem_project_001.txt"), "one\ntwo\n3\n");
    assert_eq!(edit(ContentEdit::Delete).unwrap().storage, None);
    assert_eq!(edit(ContentEdit::Delete).unwrap_err().kind(), Kind::NotFound);
    let missing = edit(ContentEdit::Replace { old_str: "a".into(), new_str: "b".into() }).unwrap_err();
    assert_eq!(missing.code_name(), Some(code::FILE_NOT_FOUND));
    edit(create()).unwrap();
    edit(ContentEdit::Write { content: b"\xff\0".to_vec().into(), format: Some("bin".into()) }).unwrap();
    assert_eq!(
        edit(ContentEdit::Insert { insert_line: 1, new_str: "a".into() }).unwrap_err().code_name(),
        Some(code::NOT_TEXT)
    );
    assert_eq!(fixture.store().list(&at("graph/_content/nodes")).unwrap().len(), 2);
}

#[test]
fn deleting_refuses_or_takes_connections_along() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        fixture.node("a", json!({}));
    }
    fixture.connect("mem_a_001", "x", "mem_a_002");
    fixture.connect("mem_a_003", "y", "mem_a_001");
    fixture.connect("mem_a_003", "y", "mem_a_002");
    let error = fixture.graph.delete(note(), "mem_a_001", Removal::Refuse, None).unwrap_err();
    assert_eq!((error.kind(), error.code_name()), (Kind::Invalid, Some(code::NODE_CONNECTED)));
    assert!(error.message().contains("conn_001 (mem_a_001 x mem_a_002)"), "{error}");
    let removed = fixture.graph.delete(note(), "mem_a_001", Removal::Cascade, None).unwrap().outcome;
    assert_eq!(removed.connections, ["conn_001", "conn_002"]);
    for graph in [&fixture.graph, &fixture.beside()] {
        assert_eq!(graph.counts().unwrap(), (2, 1));
        assert_eq!(graph.node("mem_a_001").unwrap_err().code_name(), Some(code::NODE_NOT_FOUND));
    }
    // Its number is not used again.
    fixture.graph.fold().unwrap();
    let fresh = fixture.beside();
    let new = || NewNode { kind: "a".into(), ..NewNode::default() };
    assert_eq!(fresh.create(note(), new()).unwrap().outcome.id, "mem_a_004");
    fresh.delete(note(), "mem_a_004", Removal::Refuse, None).unwrap();
    assert_eq!(fixture.beside().create(note(), new()).unwrap().outcome.id, "mem_a_005");
    fixture.graph.disconnect(note(), "conn_003", None).unwrap();
    assert_eq!(
        fixture.graph.disconnect(note(), "conn_003", None).unwrap_err().code_name(),
        Some(code::CONNECTION_NOT_FOUND)
    );
}

#[test]
fn an_expected_version_is_minded() {
    let fixture = Fixture::new();
    fixture.node_with("a", "x");
    let version = fixture.graph.node("mem_a_001").unwrap().version.unwrap();
    let update = Update { set: object(json!({"n": 1})), ..Update::default() };
    fixture.graph.update(note(), "mem_a_001", &update, Some(&version.as_str()[..8])).unwrap();
    let late = fixture.graph.update(note(), "mem_a_001", &update, Some(version.as_str())).unwrap_err();
    assert_eq!((late.kind(), late.code_name()), (Kind::Conflict, Some(code::VERSION_MISMATCH)));
    let late =
        fixture.graph.delete(note(), "mem_a_001", Removal::Cascade, Some(version.as_str())).unwrap_err();
    assert_eq!(late.kind(), Kind::Conflict);
}

#[test]
fn an_idempotency_key_makes_one_node() {
    let fixture = Fixture::new();
    let note = || memgrove::backend::Note { key: Some("k".into()), ..note() };
    let new = || NewNode { kind: "a".into(), ..NewNode::default() };
    let first = fixture.graph.create(note(), new()).unwrap();
    let second = fixture.graph.create(note(), new()).unwrap();
    assert!(second.replayed && first.outcome == second.outcome);
    assert_eq!(fixture.graph.counts().unwrap(), (1, 0));
}

#[test]
fn ways_through_the_graph() {
    let fixture = Fixture::new();
    for _ in 0..6 {
        fixture.node("a", json!({}));
    }
    let id = |n: usize| format!("mem_a_00{n}");
    for (from, kind, to) in [(1, "x", 2), (2, "x", 3), (3, "y", 4), (4, "x", 1), (5, "x", 1), (2, "x", 2)] {
        fixture.connect(&id(from), kind, &id(to));
    }
    let graph = &fixture.graph;
    let ways = |direction, kinds: &[&str]| Ways {
        direction,
        kinds: kinds.iter().map(|kind| (*kind).into()).collect(),
    };
    let reached = |depth, ways: &Ways| -> Vec<String> {
        let mut nodes: Vec<String> =
            graph.neighbours(&id(1), depth, ways).unwrap().into_iter().map(|step| step.node).collect();
        nodes.sort();
        nodes.dedup();
        nodes
    };
    assert_eq!(reached(1, &ways(Direction::Out, &[])), [id(2)]);
    assert_eq!(reached(1, &ways(Direction::In, &[])), [id(4), id(5)]);
    assert_eq!(reached(2, &ways(Direction::Both, &["x"])), [id(2), id(3), id(4), id(5)]);
    assert_eq!(reached(0, &ways(Direction::Both, &[])), Vec::<String>::new());
    assert_eq!(
        graph.neighbours(&id(1), 9, &Ways::default()).unwrap().len(),
        6,
        "each connection once, circles included"
    );
    let route = |from, to, depth, ways: &Ways| {
        graph
            .route(&id(from), &id(to), depth, ways)
            .unwrap()
            .map(|steps| steps.into_iter().map(|step| step.node).collect::<Vec<_>>())
    };
    let out = ways(Direction::Out, &[]);
    assert_eq!(route(1, 4, 9, &out), Some(vec![id(2), id(3), id(4)]));
    assert_eq!(route(1, 4, 9, &Ways::default()), Some(vec![id(4)]));
    assert_eq!(route(1, 4, 2, &out), None);
    assert_eq!(route(1, 6, 9, &Ways::default()), None);
    assert_eq!(route(1, 1, 9, &out), Some(vec![]));
    let part = graph.part(&[id(5)], 1, &Ways::default()).unwrap();
    assert_eq!((part.nodes, part.connections), (vec![id(5), id(1)], vec!["conn_005".to_owned()]));
    let error = graph.neighbours("mem_a_099", 1, &Ways::default()).unwrap_err();
    assert_eq!(error.code_name(), Some(code::NODE_NOT_FOUND));
}

#[test]
fn lists_and_filters() {
    let fixture = Fixture::new();
    for n in 0..5 {
        fixture.node(if n % 2 == 0 { "even" } else { "odd" }, json!({"n": n}));
    }
    let list = |kind: Option<&str>, filters: &[&str], skip, limit| {
        let query = Query {
            kind: kind.map(str::to_owned),
            filters: filters.iter().map(|filter| filter.parse().unwrap()).collect(),
            skip,
            limit,
            ..Query::default()
        };
        let found = fixture.graph.list(&query).unwrap();
        (found.found.into_iter().map(|node| node.id).collect::<Vec<_>>(), found.total)
    };
    assert_eq!(list(Some("odd"), &[], 0, 0), (vec!["mem_odd_001".into(), "mem_odd_002".into()], 2));
    assert_eq!(list(None, &["n>=2", "n!=3"], 0, 0).1, 2);
    assert_eq!(list(None, &[], 1, 2), (vec!["mem_odd_001".into(), "mem_even_002".into()], 5));
    assert_eq!(list(None, &["n>0"], 1, 1), (vec!["mem_even_002".into()], 4));
}

#[test]
fn a_batch_happens_whole_or_not_at_all() {
    let fixture = Fixture::new();
    let operations = |last: serde_json::Value| -> Vec<Operation> {
        serde_json::from_value(json!([
            {"op": "create_node", "as": "p", "type": "project", "properties": {"t": 1}, "content": "x\n"},
            {"op": "create_node", "as": "q", "type": "project"},
            {"op": "connect", "as": "c", "from": "@p", "type": "before", "to": "@q"},
            {"op": "update_node", "id": "@p", "set": {"t": 2}},
            {"op": "edit_node", "id": "@p", "edit": {"operation": "str_replace", "old_str": "x", "new_str": "y"}},
            {"op": "update_connection", "id": "@c", "set": {"w": 1}},
            last,
        ]))
        .unwrap()
    };
    let error =
        fixture.graph.batch(note(), &operations(json!({"op": "delete_node", "id": "@p"}))).unwrap_err();
    assert!(
        error.message().starts_with("operations[6]: the node `mem_project_001` has 1 connection:"),
        "{error}"
    );
    assert_eq!(fixture.graph.counts().unwrap(), (0, 0));
    let error =
        fixture.graph.batch(note(), &operations(json!({"op": "disconnect", "id": "@z"}))).unwrap_err();
    assert!(error.message().contains("no earlier step made `@z`"), "{error}");
    let done = fixture
        .graph
        .batch(note(), &operations(json!({"op": "delete_node", "id": "@q", "cascade": true})))
        .unwrap();
    assert!(matches!(&done.outcome[6], Outcome::Removed(removed) if removed.connections.len() == 1));
    for graph in [&fixture.graph, &fixture.beside()] {
        let nodes = graph.list(&Query::default()).unwrap().found;
        assert_eq!((nodes.len(), &nodes[0].properties["t"]), (1, &json!(2)));
        assert_eq!(graph.counts().unwrap().1, 0);
    }
    let made = fixture.store().list(&at("graph/_content/connections")).unwrap();
    assert_eq!(made, []);
}

#[test]
fn what_is_exported_can_be_imported() {
    let fixture = Fixture::new();
    fixture.node("project", json!({"title": "a \"b\" <c> & \u{1}", "n": [1, null]}));
    fixture.node_with("doc", "text\r\n");
    let content = Some(vec![0, 255, 1]);
    fixture
        .graph
        .create(
            note(),
            NewNode {
                kind: "doc".into(),
                content: content.map(Into::into),
                format: Some("png".into()),
                ..NewNode::default()
            },
        )
        .unwrap();
    fixture
        .graph
        .connect(
            note(),
            &memgrove::shapes::graph::NewConnection {
                properties: object(json!({"w": 0.5})),
                content: Some(b"why".to_vec().into()),
                ..link("mem_project_001", "has | \"it\"", "mem_doc_001")
            },
        )
        .unwrap();
    let snapshot = fixture.graph.snapshot(None, Contents::Whole).unwrap();
    let json = Form::Json.print(&snapshot);
    let other = Fixture::new();
    let done = other.graph.import(&note(), json.as_bytes(), Existing::Skip).unwrap();
    assert_eq!((done.nodes, done.connections, done.errors.len()), (3, 1, 0), "{:?}", done.errors);
    let again = other.graph.snapshot(None, Contents::Whole).unwrap();
    let bare = |mut snapshot: memgrove::shapes::graph::Snapshot| {
        for node in &mut snapshot.nodes {
            (node.it.created, node.it.updated) = (String::new(), String::new());
        }
        for one in &mut snapshot.connections {
            (one.it.created, one.it.updated) = (String::new(), String::new());
        }
        snapshot
    };
    assert_eq!(bare(snapshot.clone()), bare(again));
    let repeated = other.graph.import(&note(), json.as_bytes(), Existing::Skip).unwrap();
    assert_eq!((repeated.nodes, repeated.skipped), (0, 4));
    let replaced = other.graph.import(&note(), json.as_bytes(), Existing::Replace).unwrap();
    assert_eq!((replaced.replaced, replaced.errors.len()), (4, 0), "{:?}", replaced.errors);
    assert_eq!(
        other.graph.import(&note(), json.as_bytes(), Existing::Refuse).unwrap_err().kind(),
        Kind::Exists
    );
    let graphml = Form::GraphMl.print(&snapshot);
    assert!(graphml.contains("a &quot;b&quot; &lt;c&gt; &amp; \u{fffd}"), "{graphml}");
    let dot = Form::Dot.print(&snapshot);
    assert!(dot.contains("\"mem_project_001\" -> \"mem_doc_001\" [label=\"has | \\\"it\\\"\"];"), "{dot}");
    let mermaid = Form::Mermaid.print(&snapshot);
    assert!(mermaid.contains("n0 -->|\"has #124; #34;it#34;\"| n1"), "{mermaid}");
}

#[test]
fn a_registry_of_another_program_is_used_in_place_and_imported() {
    let theirs = r#"{"nodes":{"proj_1":{"type":"project","properties":{"a":1},"storage":{"path":"_content/nodes/proj_1.md","format":"markdown"}},
        "act_1":{"type":"act","properties":{}}},"connections":{"c1":{"type":"has","from":"proj_1","to":"act_1","properties":{}}},"extra":{"kept": true}}"#;
    let fixture = Fixture::new();
    fixture.drop_in("graph/_system/registry.json", theirs);
    fixture.drop_in("graph/_content/nodes/proj_1.md", "# One\n");
    assert_eq!(fixture.graph.counts().unwrap(), (2, 1));
    let node = fixture.graph.node("proj_1").unwrap().it;
    assert_eq!(fixture.graph.content("proj_1", &node.storage.unwrap()).unwrap().bytes, b"# One\n");
    fixture.connect("act_1", "back", "proj_1");
    fixture.graph.fold().unwrap();
    assert!(fixture.text("graph/_system/registry.json").contains("\"extra\": {\"kept\":true}"));
    assert_eq!(fixture.beside().counts().unwrap(), (2, 2));
    fixture.graph.rebuild(note()).unwrap();
    assert_eq!(fixture.beside().counts().unwrap(), (2, 2), "what only the registry said is not lost");
    let other = Fixture::new();
    let done = other.graph.import(&note(), theirs.as_bytes(), Existing::Skip).unwrap();
    assert_eq!((done.nodes, done.connections), (2, 1), "{:?}", done.errors);
}
