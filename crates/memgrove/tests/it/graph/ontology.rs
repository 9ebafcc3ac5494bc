//! What an ontology allows, and how it says no.

use memgrove::Kind;
use memgrove::error::code;
use memgrove::shapes::graph::{Contents, Direction, NewConnection, NewNode, Ontology, Query, Update, Ways};
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
    check("idea", json!({}), "`idea` is not a node type: project, task, thing (rule node_types)");
    check(
        "task",
        json!({"title": "a", "x": 1}),
        "`x` is not one of its properties: title (rule node_types.task.closed)",
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
    let before = fixture.graph.snapshot(None, Contents::Whole).unwrap();
    fixture.graph.write_ontology(note(), ONTOLOGY).unwrap();
    let ontology = fixture.graph.ontology().unwrap().unwrap();
    let misfits = fixture.graph.misfits(&ontology).unwrap();
    let rules: Vec<&str> = misfits.iter().map(|misfit| misfit.broken.rule.as_str()).collect();
    assert_eq!(rules, ["node_types.thing.properties.title.type", "node_types", "connection_types"]);
    assert_eq!(fixture.graph.snapshot(None, Contents::Whole).unwrap(), before);
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
        ("node_types: {a: {extends: b}, b: {extends: a}}", "cycle"),
        ("node_types: {a: {requird: true}}", "is not known here"),
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

fn found(fixture: &Fixture, query: Query) -> Vec<String> {
    fixture.beside().connections(&query).unwrap().found.into_iter().map(|one| one.id).collect()
}

/// Connections of a type that only later became the inverse of another are found by both.
#[test]
fn what_was_connected_before_a_type_had_an_inverse_is_still_found() {
    let fixture = Fixture::new();
    fixture.node("x", json!({}));
    fixture.node("x", json!({}));
    fixture.connect("mem_x_001", "child_of", "mem_x_002");
    let ontology = "connection_types: {parent_of: {inverse: child_of}}";
    fixture.graph.write_ontology(note(), ontology).unwrap();
    fixture.connect("mem_x_001", "child_of", "mem_x_002");
    for (kind, from, to) in [("child_of", "mem_x_001", "mem_x_002"), ("parent_of", "mem_x_002", "mem_x_001")]
    {
        let query = Query { kind: Some(kind.into()), ..Query::default() };
        assert_eq!(found(&fixture, query.clone()), ["conn_001", "conn_002"], "{kind}");
        let between = Query { from: Some(from.into()), to: Some(to.into()), ..query.clone() };
        assert_eq!(found(&fixture, between), ["conn_001", "conn_002"], "{kind}");
        let against = Query { from: Some(to.into()), ..query };
        assert_eq!(found(&fixture, against), [] as [&str; 0], "{kind}");
        let ways = Ways { direction: Direction::Out, kinds: vec![kind.into()] };
        let near = |id: &str| fixture.graph.neighbours(id, 1, &ways).unwrap().len();
        assert_eq!((near(from), near(to)), (2, 0), "{kind}");
    }
}

#[test]
fn a_type_of_connections_means_those_that_extend_it() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        fixture.node("x", json!({}));
    }
    let ontology = "connection_types: {owns: {cardinality: one-to-many}, leases: {extends: owns}, sees: {}}";
    fixture.graph.write_ontology(note(), ontology).unwrap();
    fixture.connect("mem_x_001", "leases", "mem_x_002");
    fixture.connect("mem_x_001", "owns", "mem_x_003");
    let of = |kind: &str| found(&fixture, Query { kind: Some(kind.into()), ..Query::default() });
    assert_eq!((of("owns").len(), of("leases").len(), of("sees").len()), (2, 1, 0));
    let ways = Ways { kinds: vec!["owns".into()], ..Ways::default() };
    assert_eq!(fixture.graph.neighbours("mem_x_001", 1, &ways).unwrap().len(), 2);
    for kind in ["owns", "leases"] {
        let error = fixture.graph.connect(note(), &link("mem_x_003", kind, "mem_x_002")).unwrap_err();
        assert!(error.message().ends_with("(rule connection_types.owns.cardinality)"), "{error}");
    }
    let loose = "connection_types: {owns: {}, leases: {extends: owns}, sees: {}}";
    fixture.graph.write_ontology(note(), loose).unwrap();
    fixture.connect("mem_x_003", "owns", "mem_x_002");
    let misfits = fixture.graph.misfits(&Ontology::parse(ontology).unwrap()).unwrap();
    assert_eq!(misfits.len(), 1, "{misfits:?}");
}

#[test]
fn a_rule_that_is_broken_is_not_broken_further() {
    let fixture = Fixture::new();
    fixture.node("stray", json!({"odd": 1, "size": "big"}));
    fixture.node("known", json!({"odd": 1, "size": "big"}));
    let ontology = "node_types: {known: {closed: true, properties: {size: {enum: [small]}}}}";
    fixture.graph.write_ontology(note(), ontology).unwrap();
    let update = |id: &str, update: Update| fixture.graph.update(note(), id, &update, None).map(drop);
    let set = |value: Value| Update { set: object(value), ..Update::default() };
    let kind = |kind: &str| Update { kind: Some(kind.into()), ..Update::default() };
    for (id, refused) in [
        ("mem_known_001", set(json!({"other": 1}))),
        ("mem_known_001", set(json!({"size": "huge"}))),
        ("mem_stray_001", kind("another")),
    ] {
        assert_eq!(update(id, refused).unwrap_err().code_name(), Some(code::ONTOLOGY_RULE));
    }
    update("mem_known_001", set(json!({"odd": 2}))).unwrap();
    update("mem_known_001", set(json!({"size": "small"}))).unwrap();
    update("mem_stray_001", set(json!({"other": 1}))).unwrap();
}
