//! What an ontology allows, and how it says no.

use memgrove::Kind;
use memgrove::error::code;
use memgrove::shapes::graph::{Direction, NewConnection, NewNode, Ontology, Query, Update, Ways};
use serde_json::{Value, json};

use super::{Fixture, link, note, object};

const ONTOLOGY: &str = "
node_types:
  thing:
    abstract: true
    properties:
      title: {type: string, required: true}
  project:
    prefix: proj
    extends: thing
    properties:
      status: {type: string, enum: [active, done], default: active}
      budget: {type: integer}
      due: {type: date}
  task: {prefix: act, extends: thing, closed: true}
connection_types:
  depends_on: {from: [thing], to: [project], inverse: required_by}
  part_of: {from: [task], to: [project], cardinality: many-to-one}
  replaces: {cardinality: one-to-one, properties: {why: {required: true}}}
";

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.graph.write_ontology(note(), ONTOLOGY).unwrap();
    fixture
}

fn refused(fixture: &Fixture, kind: &str, properties: Value) -> String {
    let new = NewNode { kind: kind.into(), properties: object(properties), ..NewNode::default() };
    let error = fixture.graph.create(note(), new).unwrap_err();
    assert_eq!((error.kind(), error.code_name()), (Kind::Invalid, Some(code::ONTOLOGY_RULE)), "{error}");
    error.message().to_owned()
}

#[test]
fn nodes_are_checked_and_the_rule_is_named() {
    let fixture = fixture();
    let made = fixture.node("project", json!({"title": "a", "other": [1]}));
    assert_eq!((made.id.as_str(), &made.properties["status"]), ("mem_proj_001", &json!("active")));
    let check = |kind: &str, properties: Value, expected: &str| {
        assert_eq!(refused(&fixture, kind, properties), expected)
    };
    check(
        "project",
        json!({}),
        "the property `title` is missing (rule node_types.thing.properties.title.required)",
    );
    check(
        "project",
        json!({"title": "a", "status": "paused"}),
        "the property `status` is one of \"active\", \"done\", and \"paused\" is not (rule node_types.project.properties.status.enum)",
    );
    check(
        "project",
        json!({"title": "a", "budget": "5"}),
        "the property `budget` is of the type integer, and \"5\" is not (rule node_types.project.properties.budget.type)",
    );
    check(
        "project",
        json!({"title": "a", "due": "2026-02-30"}),
        "the property `due` is of the type date, and \"2026-02-30\" is not (rule node_types.project.properties.due.type)",
    );
    check(
        "thing",
        json!({"title": "a"}),
        "`thing` is abstract: use a type that extends it (rule node_types.thing.abstract)",
    );
    check("idea", json!({}), "`idea` is not a type of nodes: project, task, thing (rule node_types)");
    check(
        "task",
        json!({"title": "a", "x": 1}),
        "`x` is none of its properties: title (rule node_types.task.closed)",
    );
    assert_eq!(fixture.graph.counts().unwrap(), (1, 0));
    let things = fixture.graph.list(&Query { kind: Some("thing".into()), ..Query::default() }).unwrap();
    assert_eq!(things.total, 1, "a type's list has those that extend it");
}

#[test]
fn connections_are_checked_and_inverses_understood() {
    let fixture = fixture();
    for (kind, title) in [("project", "p"), ("project", "q"), ("task", "t"), ("task", "u")] {
        fixture.node(kind, json!({"title": title}));
    }
    let refused = |from: &str, kind: &str, to: &str| {
        let error = fixture.graph.connect(note(), &link(from, kind, to)).unwrap_err();
        assert_eq!(error.code_name(), Some(code::ONTOLOGY_RULE), "{error}");
        error.message().to_owned()
    };
    fixture.connect("mem_act_001", "depends_on", "mem_proj_001");
    let inverse = fixture.connect("mem_proj_002", "required_by", "mem_act_001");
    assert_eq!((inverse.kind.as_str(), inverse.from.as_str()), ("depends_on", "mem_act_001"));
    let back = Ways { direction: Direction::Out, kinds: vec!["required_by".into()] };
    let steps = fixture.graph.neighbours("mem_proj_002", 1, &back).unwrap();
    assert_eq!(steps[0].node, "mem_act_001");
    assert_eq!(
        refused("mem_proj_001", "depends_on", "mem_act_001"),
        "`depends_on` ends at project, not at `task` (rule connection_types.depends_on.to)"
    );
    assert!(refused("mem_act_001", "likes", "mem_act_002").contains("(rule connection_types)"));
    fixture.connect("mem_act_001", "part_of", "mem_proj_001");
    fixture.connect("mem_act_002", "part_of", "mem_proj_001");
    assert!(
        refused("mem_act_001", "part_of", "mem_proj_002")
            .contains("(rule connection_types.part_of.cardinality)")
    );
    assert!(
        refused("mem_proj_001", "replaces", "mem_proj_002")
            .ends_with("(rule connection_types.replaces.properties.why.required)")
    );
}

#[test]
fn a_changed_ontology_reports_and_changes_nothing() {
    let fixture = Fixture::new();
    fixture.node("project", json!({"title": 5}));
    fixture.node("idea", json!({}));
    fixture.connect("mem_project_001", "likes", "mem_idea_001");
    let before = fixture.graph.snapshot(None, true).unwrap();
    fixture.graph.write_ontology(note(), ONTOLOGY).unwrap();
    let ontology = fixture.graph.ontology().unwrap().unwrap();
    let misfits = fixture.graph.misfits(&ontology).unwrap();
    let rules: Vec<&str> = misfits.iter().map(|misfit| misfit.broken.rule.as_str()).collect();
    assert_eq!(rules, ["node_types.thing.properties.title.type", "node_types", "connection_types"]);
    assert_eq!(fixture.graph.snapshot(None, true).unwrap(), before);
    assert!(
        fixture.graph.check().unwrap().iter().any(|finding| finding.what.starts_with("3 things do not fit"))
    );
    // What was broken before may be changed; nothing more may be broken.
    let set = |value: Value| Update { set: object(value), ..Update::default() };
    fixture.graph.update(note(), "mem_project_001", &set(json!({"note": 1})), None).unwrap();
    let error =
        fixture.graph.update(note(), "mem_project_001", &set(json!({"budget": true})), None).unwrap_err();
    assert_eq!(error.code_name(), Some(code::ONTOLOGY_RULE));
    let other = Ontology::parse("node_types:\n  project: {prefix: p}\n  idea: {}\n").unwrap();
    let (differences, misfits) = fixture.graph.compare(&other).unwrap();
    assert!(
        differences
            .iter()
            .any(|one| one.at == "node_types.project.prefix" && one.new.as_deref() == Some("\"p\""))
    );
    assert_eq!(misfits, []);
}

#[test]
fn what_is_inferred_fits() {
    let fixture = Fixture::new();
    fixture.node("project", json!({"title": "a", "n": 1}));
    fixture.node("project", json!({"title": "b"}));
    fixture.node("idea", json!({}));
    fixture.connect("mem_project_001", "likes", "mem_idea_001");
    let inferred = fixture.graph.inferred().unwrap();
    assert_eq!(fixture.graph.misfits(&inferred).unwrap(), []);
    assert_eq!(inferred.connection_types["likes"].to, ["idea"]);
    fixture.graph.write_ontology(note(), &inferred.print()).unwrap();
    assert_eq!(fixture.node("project", json!({"title": "c"})).id, "mem_project_003");
}

#[test]
fn a_bad_ontology_is_refused_or_reported() {
    let fixture = fixture();
    for (bad, part) in [
        ("node_types: [", "line"),
        ("node_types: {a: {extends: b}}", "extends `b`"),
        ("node_types: {a: {extends: b}, b: {extends: a}}", "circle"),
        ("node_types: {a: {requird: true}}", "means nothing"),
        ("connection_types: {x: {from: [nobody]}}", "nobody"),
        ("node_types: {a: {properties: {n: {type: integer, default: x}}}}", "default"),
    ] {
        let error = fixture.graph.write_ontology(note(), bad).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{bad}");
        assert!(error.message().contains(part), "{error}");
    }
    assert_eq!(fixture.graph.ontology_text().unwrap().as_deref(), Some(ONTOLOGY));
    fixture.drop_in("graph/_system/ontology.yaml", "node_types: [");
    let new = NewNode { kind: "a".into(), ..NewNode::default() };
    let error = fixture.graph.create(note(), new).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    assert!(fixture.graph.check().unwrap().iter().any(|finding| finding.at == "graph/_system/ontology.yaml"));
    assert_eq!(fixture.graph.counts().unwrap(), (0, 0), "reading goes on");
}

#[test]
fn what_a_type_extends_holds_part_by_part() {
    let fixture = Fixture::new();
    let text = "
node_types:
  thing: {properties: {size: {type: integer, required: true, enum: [1, 2, 3]}}}
  box: {extends: thing, properties: {size: {enum: [1, 2]}}}
connection_types:
  near: {from: [thing], to: [box], cardinality: one-to-one, properties: {by: {required: true}}}
  inside: {extends: near, inverse: holds}
";
    fixture.graph.write_ontology(note(), text).unwrap();
    for (properties, rule) in [
        (json!({}), "node_types.thing.properties.size.required"),
        (json!({"size": "1"}), "node_types.thing.properties.size.type"),
        (json!({"size": 3}), "node_types.box.properties.size.enum"),
    ] {
        assert!(refused(&fixture, "box", properties).contains(rule), "{rule}");
    }
    fixture.node("thing", json!({"size": 3}));
    fixture.node("box", json!({"size": 2}));
    let by = || object(json!({"by": "x"}));
    let link = |from: &str, kind: &str, to: &str| NewConnection { properties: by(), ..link(from, kind, to) };
    let refused = |from: &str, to: &str| {
        fixture.graph.connect(note(), &link(from, "inside", to)).unwrap_err().message().to_owned()
    };
    assert!(refused("mem_box_001", "mem_thing_001").contains("connection_types.near.to"));
    fixture.graph.connect(note(), &link("mem_box_001", "holds", "mem_thing_001")).unwrap();
    assert!(refused("mem_thing_001", "mem_box_001").contains("`inside` is one-to-one"));
    // The inverse is understood wherever a type is.
    let query = |kind: &str, from: &str| Query {
        kind: Some(kind.into()),
        from: Some(from.into()),
        ..Query::default()
    };
    for (kind, from, found) in
        [("holds", "mem_box_001", 1), ("holds", "mem_thing_001", 0), ("inside", "mem_thing_001", 1)]
    {
        assert_eq!(fixture.graph.connections(&query(kind, from)).unwrap().total, found, "{kind} {from}");
    }
    // Another type of a node is none that its connections forbid.
    let update = Update { kind: Some("thing".into()), ..Update::default() };
    let error = fixture.graph.update(note(), "mem_box_001", &update, None).unwrap_err();
    assert!(error.message().contains("connection_types.near.to"), "{error}");
    let twice = "connection_types: {a: {inverse: c}, b: {inverse: c}}";
    let error = fixture.graph.write_ontology(note(), twice).unwrap_err();
    assert!(error.message().contains("is the inverse of `a` too"), "{error}");
}

#[test]
fn an_ontology_that_cannot_be_read_stops_no_reader() {
    let fixture = fixture();
    fixture.node("project", json!({"title": "a"}));
    fixture.drop_in("graph/_system/ontology.yaml", "node_types: [");
    let graph = fixture.beside();
    assert_eq!(graph.list(&Query::default()).unwrap().total, 1);
    assert!(graph.take_warning().unwrap().contains("ontology.yaml` cannot be read"));
    assert_eq!(graph.connections(&Query::default()).unwrap().total, 0);
    assert_eq!(graph.neighbours("mem_proj_001", 1, &Ways::default()).unwrap(), []);
    assert_eq!(graph.part(&["mem_proj_001".into()], 1, &Ways::default()).unwrap().nodes.len(), 1);
    let new = NewNode { kind: "project".into(), ..NewNode::default() };
    assert_eq!(graph.create(note(), new).unwrap_err().kind(), Kind::Corrupt);
}
