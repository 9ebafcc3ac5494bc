//! Moving to and from the MCP memory server: nothing is dropped without a word.

use std::sync::Arc;

use memgrove::backend::Note;
use memgrove::backends::Ram;
use memgrove::clock::ManualClock;
use memgrove::shapes::entities::kg::{Addition, Answer, Call};
use memgrove::shapes::entities::kg_file;
use memgrove::shapes::entities::{Era, How, Revision};
use memgrove::{Memory, Store};

use super::{Fixture, at, entity};

const ANN: &str = r#"{"type":"entity","name":"Ann","entityType":"person","observations":["sings"],"id":12345678901234567890123,"rate":1.10}"#;

#[test]
fn an_import_tells_what_it_leaves_and_what_it_merges() {
    let fixture = Fixture::new();
    fixture.keep(&entity("Ann", "person", &["dances"]));
    let lines = format!(
        "{ANN}\n{{\"type\":\"memo\",\"text\":\"x\"}}\n{{\"type\":\"relation\",\"from\":\"Ann\",\"to\":\"Bob\",\"relationType\":\"knows\",\"id\":1}}"
    );
    let imported = fixture.knowledge.import(&Note::default(), lines.as_bytes()).expect("imported");
    assert_eq!((imported.entities, imported.merged, imported.relations), (1, 1, 1));
    assert!(imported.errors.is_empty());
    assert_eq!(
        imported.left_out,
        [
            "line 2 is neither an entity nor a relation",
            "the field `id` of 2 lines",
            "the field `rate` of 1 line"
        ]
    );
    // Of what is known by now, nothing is new.
    let again = fixture.knowledge.import(&Note::default(), lines.as_bytes()).expect("imported");
    assert_eq!((again.entities, again.merged, again.relations, again.known), (0, 0, 0, 2));
}

#[test]
fn a_graph_that_was_saved_is_imported() {
    let fixture = Fixture::new();
    let saved = "\u{feff}{\n  \"entities\": [\n    {\"name\": \"Ann\", \"entityType\": \"person\", \"observations\": [\"sings\"]},\n    {\"name\": 5}\n  ],\n  \"relations\": [{\"from\": \"Ann\", \"to\": \"Bob\", \"relationType\": \"knows\"}]\n}\n";
    let imported = fixture.knowledge.import(&Note::default(), saved.as_bytes()).expect("imported");
    assert_eq!((imported.entities, imported.merged, imported.relations, imported.errors.len()), (1, 0, 1, 1));
    let graph = fixture.knowledge.export(Era::Now).expect("exported").graph;
    assert_eq!((graph.entities[0].name.as_str(), graph.relations.len()), ("Ann", 1));
}

#[test]
fn an_export_tells_what_it_leaves_out() {
    let fixture = Fixture::new();
    fixture.keep(&entity("Ann", "person", &["lives in Oslo"]));
    let rome = entity("Ann", "person", &["lives in Rome"]);
    let revision =
        Revision { entity: &rome, how: How::Merge, supersedes: Some("lives in Oslo"), expect: None };
    fixture.knowledge.revise(Note::default(), &revision).expect("superseded");
    let exported = fixture.knowledge.export(Era::Now).expect("exported");
    assert_eq!((exported.graph.entities[0].observations.len(), exported.left_out), (1, 1));
    let exported = fixture.knowledge.export(Era::Ever).expect("exported");
    assert_eq!((exported.graph.entities[0].observations.len(), exported.left_out), (2, 0));
}

#[test]
fn the_servers_file_keeps_its_mark_and_the_digits_of_others() {
    let store = Store::new(Ram::default());
    let memory = Memory::new(store.clone(), Arc::new(ManualClock::default()));
    store.write(&at("memory.jsonl"), &format!("\u{feff}{ANN}\n7")).expect("written");
    let add =
        Call::AddObservations(vec![Addition { entity_name: "Ann".into(), contents: vec!["dances".into()] }]);
    for (call, damaged) in [(&Call::ReadGraph, 0), (&add, 0)] {
        let done = memory.apply(Note::default(), |store| kg_file::plan(store, &at("memory.jsonl"), call));
        let outcome = done.expect("carried out").outcome;
        assert_eq!(outcome.damaged.len(), damaged);
        assert!(!matches!(outcome.answer, Answer::Graph(graph) if graph.entities.is_empty()));
    }
    let text = store.read(&at("memory.jsonl")).expect("readable");
    assert_eq!(text, format!("\u{feff}{}\n7", ANN.replace("[\"sings\"]", "[\"sings\",\"dances\"]")));
}
