//! Imports of which parts fail, and exports that keep what nobody here understands.

use memgrove::Kind;
use memgrove::shapes::graph::{Contents, Existing, Form, Imported, NewConnection};
use serde_json::{Value, json};

use super::{Fixture, link, note};

fn import(fixture: &Fixture, graph: &Value, existing: Existing) -> Imported {
    fixture.graph.import(&note(), graph.to_string().as_bytes(), existing).unwrap()
}

#[test]
fn what_cannot_be_imported_leaves_no_trace() {
    let fixture = Fixture::new();
    fixture.node("a", json!({"n": 1}));
    fixture.node_with("a", "content");
    fixture.connect("mem_a_001", "x", "mem_a_002");
    fixture.drop_in("graph/_content/nodes/stray.md", "somebody's");
    let given = json!({
        "nodes": [
            {"id": "mem_a_001", "type": "a", "properties": {"n": 2}, "content_base64": "no base64!"},
            {"id": "mem_a_002", "type": "a", "properties": {"n": 3}, "content": "x", "storage": {"path": "", "format": "a/b"}},
            {"id": "stray", "type": "a", "content": "mine"},
            {"id": "good", "type": "a", "content": "mine"},
        ],
        "connections": [
            {"id": "conn_001", "type": "x", "from": "mem_a_001", "to": "nobody"},
            {"type": "x", "from": "good", "to": "mem_a_001"},
        ]
    });
    let done = import(&fixture, &given, Existing::Replace);
    assert_eq!(
        (done.nodes, done.connections, done.replaced, done.skipped),
        (1, 1, 0, 0),
        "{:?}",
        done.errors
    );
    let named: Vec<&str> = done.errors.iter().map(|error| error.split(':').next().unwrap()).collect();
    assert_eq!(named, ["node mem_a_001", "node mem_a_002", "node stray", "connection conn_001"]);
    for graph in [&fixture.graph, &fixture.beside()] {
        assert_eq!(graph.counts().unwrap(), (3, 2));
        assert_eq!(graph.node("mem_a_001").unwrap().it.properties["n"], 1);
        assert!(graph.node("mem_a_002").unwrap().it.properties.is_empty());
        assert_eq!(graph.connection("conn_001").unwrap().it.to, "mem_a_002");
    }
    assert_eq!(fixture.text("graph/_content/nodes/mem_a_002.md"), "content");
    assert_eq!(fixture.text("graph/_content/nodes/stray.md"), "somebody's");
    let refused = fixture.graph.import(&note(), given.to_string().as_bytes(), Existing::Refuse);
    assert_eq!(refused.unwrap_err().kind(), Kind::Exists);
}

#[test]
fn a_replaced_connection_counts_once() {
    let fixture = Fixture::new();
    let ontology = "connection_types: {x: {cardinality: one-to-one}}";
    fixture.graph.write_ontology(note(), ontology).unwrap();
    for _ in 0..3 {
        fixture.node("a", json!({}));
    }
    fixture.connect("mem_a_001", "x", "mem_a_002");
    let given = json!({"connections": [
        {"id": "conn_001", "type": "x", "from": "mem_a_001", "to": "mem_a_003"},
        {"id": "conn_009", "type": "x", "from": "mem_a_001", "to": "mem_a_002"},
        {"id": "conn_010", "type": "x", "from": "mem_a_002", "to": "mem_a_001"},
    ]});
    let done = import(&fixture, &given, Existing::Replace);
    assert_eq!((done.replaced, done.connections, done.errors.len()), (1, 1, 1), "{:?}", done.errors);
    assert!(done.errors[0].starts_with("connection conn_009: `x` is one-to-one"), "{:?}", done.errors);
}

#[test]
fn numbers_times_and_unknown_fields_go_along() {
    let text = r#"{"id":"a1","type":"a","properties":{"order":20261116100000000001,"x":0.12345678901234567891},"created":"2001-01-01T00:00:00Z","updated":"2002-02-02T00:00:00Z","mine":{"z":[1e4]}}"#;
    let given = format!(
        r#"{{"nodes":[{text},{{"id":"b1","type":"a"}}],"connections":[{{"id":"c1","type":"x","from":"a1","to":"b1","properties":{{"n":18446744073709551616}},"also":true}}]}}"#
    );
    let fixture = Fixture::new();
    let done = fixture.graph.import(&note(), given.as_bytes(), Existing::Skip).unwrap();
    assert_eq!(done.errors, Vec::<String>::new());
    let export =
        |fixture: &Fixture| Form::Json.print(&fixture.graph.snapshot(None, Contents::Whole).unwrap());
    let first = export(&fixture);
    for kept in [
        "\"order\": 20261116100000000001",
        "\"x\": 0.12345678901234567891",
        "\"created\": \"2001-01-01T00:00:00Z\"",
        "\"updated\": \"2002-02-02T00:00:00Z\"",
        "1e4",
        "\"n\": 18446744073709551616",
        "\"also\": true",
    ] {
        assert!(first.contains(kept), "{kept} is not in {first}");
    }
    let (second, third) = (Fixture::new(), Fixture::new());
    import_text(&second, &first);
    assert_eq!(export(&second), first);
    import_text(
        &third,
        r#"{"nodes":[{"id":"a1","type":"b","properties":{"old":1},"updated":"1999-09-09T00:00:00Z"}]}"#,
    );
    import_text(&third, &first);
    assert_eq!(export(&third), first, "replaced is as good as new");
}

fn import_text(fixture: &Fixture, text: &str) {
    let done = fixture.graph.import(&note(), text.as_bytes(), Existing::Replace).unwrap();
    assert_eq!(done.errors, Vec::<String>::new());
}

/// A registry says where contents are, and not what they are.
#[test]
fn an_import_without_contents_leaves_those_that_are_there_and_tells_of_others() {
    let fixture = Fixture::new();
    fixture.node_with("a", "held");
    fixture.node("a", json!({}));
    let why = NewConnection { content: Some(b"why".to_vec().into()), ..link("mem_a_001", "l", "mem_a_002") };
    fixture.graph.connect(note(), &why).unwrap();
    fixture.graph.fold().unwrap();
    let registry = fixture.text("graph/_system/registry.json");
    let done = fixture.graph.import(&note(), registry.as_bytes(), Existing::Replace).unwrap();
    assert_eq!((done.replaced, done.without_content, done.errors), (3, vec![], vec![]));
    assert_eq!(fixture.text("graph/_content/connections/conn_001.md"), "why");
    assert_eq!(fixture.text("graph/_content/nodes/mem_a_001.md"), "held");
    assert_eq!(fixture.beside().check().unwrap(), []);
    let empty = Fixture::new();
    let done = empty.graph.import(&note(), registry.as_bytes(), Existing::Replace).unwrap();
    assert_eq!((done.nodes, done.connections, done.errors), (2, 1, vec![]));
    assert_eq!(done.without_content, ["mem_a_001", "conn_001"]);
}

#[test]
fn what_is_wrong_is_named_and_a_refused_import_writes_nothing() {
    let fixture = Fixture::new();
    fixture.node("a", json!({}));
    let given = json!({
        "nodes": [5, {"type": "a", "content": "x", "content_base64": "eA=="}],
        "connections": [{"type": "l", "from": "mem_a_001", "to": "nobody"}],
    });
    let done = import(&fixture, &given, Existing::Skip);
    assert_eq!(
        done.errors,
        [
            "node 0: it is not an object",
            "node 1: `content` and `content_base64` are both given",
            "connection 0: there is no node `nobody`",
        ]
    );
    let mut nodes: Vec<Value> = (0..600).map(|n| json!({"id": format!("n{n}"), "type": "a"})).collect();
    nodes.push(json!({"id": "mem_a_001", "type": "a"}));
    let given = json!({ "nodes": nodes }).to_string();
    let refused = fixture.graph.import(&note(), given.as_bytes(), Existing::Refuse).unwrap_err();
    assert_eq!(refused.kind(), Kind::Exists);
    assert_eq!(fixture.graph.counts().unwrap(), (1, 0));
}
