//! The operations of the MCP memory server: on entity files, on its own file, and in plain memory
//! they answer alike.

use memgrove::backend::Note;
use memgrove::backends::Ram;
use memgrove::clock::ManualClock;
use memgrove::shapes::entities::Era;
use memgrove::shapes::entities::kg::{Addition, Answer, Call, Deletion, Edge, Graph, Node};
use memgrove::shapes::entities::kg_file::{self, GraphFile};
use memgrove::{Memory, Result, Store};
use proptest::prelude::*;
use std::sync::Arc;

use super::{Fixture, at};

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "A", "a b", "a-b", "b", "", "é", "e\u{301}", "long\nname", "con", "🦀"])
        .prop_map(str::to_owned)
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["x", "likes tea", "", "1. one", "two\nlines", "**b:** c", "Tea", "- source: x"])
        .prop_map(str::to_owned)
}

fn node() -> impl Strategy<Value = Node> {
    let kind = prop::sample::select(vec!["Person", "person", "a/b", "", "T e"]).prop_map(str::to_owned);
    (name(), kind, prop::collection::vec(word(), 0..4)).prop_map(|(name, entity_type, observations)| Node {
        name,
        entity_type,
        observations,
    })
}

fn edge() -> impl Strategy<Value = Edge> {
    let kind = prop::sample::select(vec!["knows", "is: **a", ""]).prop_map(str::to_owned);
    (name(), name(), kind).prop_map(|(from, to, relation_type)| Edge { from, to, relation_type })
}

fn call() -> impl Strategy<Value = Call> {
    let words = || prop::collection::vec(word(), 0..3);
    prop_oneof![
        4 => prop::collection::vec(node(), 0..4).prop_map(Call::CreateEntities),
        3 => prop::collection::vec(edge(), 0..4).prop_map(Call::CreateRelations),
        3 => prop::collection::vec((name(), words()).prop_map(|(entity_name, contents)| Addition { entity_name, contents }), 0..3)
            .prop_map(Call::AddObservations),
        1 => prop::collection::vec(name(), 0..3).prop_map(Call::DeleteEntities),
        1 => prop::collection::vec((name(), words()).prop_map(|(entity_name, observations)| Deletion { entity_name, observations }), 0..3)
            .prop_map(Call::DeleteObservations),
        1 => prop::collection::vec(edge(), 0..3).prop_map(Call::DeleteRelations),
        2 => Just(Call::ReadGraph),
        2 => word().prop_map(Call::SearchNodes),
        1 => prop::collection::vec(name(), 0..3).prop_map(Call::OpenNodes),
    ]
}

fn told(answer: Result<Answer>) -> std::result::Result<Answer, String> {
    answer.map_err(|error| error.message().to_owned())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn entity_files_and_the_servers_file_answer_like_the_server(calls in prop::collection::vec(call(), 1..25)) {
        let fixture = Fixture::new();
        let file = Memory::new(Store::new(Ram::default()), Arc::new(ManualClock::default()));
        let mut model = Graph::default();
        for call in calls {
            let mut next = model.clone();
            let expected = told(next.perform(&call));
            if expected.is_ok() {
                model = next;
            }
            let ours = told(fixture.knowledge.kg(Note::default(), &call).map(|done| done.outcome));
            prop_assert_eq!(&ours, &expected, "{:?}", call);
            let theirs = told(file.apply(Note::default(), |store| kg_file::plan(store, &at("memory.jsonl"), &call)).map(|done| done.outcome.answer));
            prop_assert_eq!(&theirs, &expected, "{:?}", call);
        }
        let exported = fixture.knowledge.export(Era::Now).expect("exported");
        prop_assert_eq!(&exported.graph, &model);
        prop_assert_eq!(GraphFile::parse(&exported.bytes).graph, model);
    }

    #[test]
    fn nothing_is_dropped_by_an_import(nodes in prop::collection::vec(node(), 0..12), edges in prop::collection::vec(edge(), 0..12)) {
        let graph = Graph { entities: nodes, relations: edges };
        let bytes = GraphFile::default().print(&graph);
        let fixture = Fixture::new();
        let planned = fixture.knowledge.rehearse_import(memgrove::Store::new(memgrove::backends::Ram::default()), &bytes).expect("rehearsed");
        prop_assert!(!fixture.store().exists(&at("knowledge")).expect("readable"), "a rehearsal writes nothing");
        let imported = fixture.knowledge.import(&Note::default(), &bytes).expect("imported");
        prop_assert_eq!(&planned, &imported);
        let all = graph.entities.len() + graph.relations.len();
        prop_assert_eq!((imported.entities + imported.relations + imported.known, imported.errors.len()), (all, 0));
        let back = fixture.knowledge.export(Era::Now).expect("exported").graph;
        for node in &graph.entities {
            let found = back.entities.iter().any(|there| there.name == node.name && node.observations.iter().all(|o| there.observations.contains(o)));
            prop_assert!(found, "{:?} in {:?}", node, back.entities);
        }
        for edge in &graph.relations {
            prop_assert!(back.relations.contains(edge), "{:?}", edge);
        }
        let again = fixture.knowledge.import(&Note::default(), &bytes).expect("imported again");
        prop_assert_eq!((again.entities, again.relations, again.known, again.errors.len()), (0, 0, all, 0));
        prop_assert_eq!(fixture.knowledge.export(Era::Now).expect("exported").graph, back, "importing twice changes nothing");
    }
}

#[test]
fn a_damaged_line_stops_nothing_and_stays() {
    let store = Store::new(Ram::default());
    let memory = Memory::new(store.clone(), Arc::new(ManualClock::default()));
    let there = "{\"type\":\"entity\",\"name\":\"a\",\"entityType\":\"t\",\"observations\":[\"x\"],\"mine\":7}\nnot json\n\n{\"type\":\"entity\",\"name\":5}\n{\"type\":\"other\"}\n";
    store.write(&at("memory.jsonl"), there).expect("written");
    let run = |call: Call| {
        memory
            .apply(Note::default(), |store| kg_file::plan(store, &at("memory.jsonl"), &call))
            .expect("carried out")
            .outcome
    };
    let read = run(Call::ReadGraph);
    assert_eq!(read.damaged, [2, 4]);
    assert!(matches!(read.answer, Answer::Graph(graph) if graph.entities.len() == 1));
    assert_eq!(store.read(&at("memory.jsonl")).expect("readable"), there, "reading writes nothing");
    run(Call::AddObservations(vec![Addition { entity_name: "a".into(), contents: vec!["y".into()] }]));
    run(Call::CreateEntities(vec![Node { name: "b".into(), entity_type: "t".into(), observations: vec![] }]));
    assert_eq!(
        store.read(&at("memory.jsonl")).expect("readable"),
        "{\"type\":\"entity\",\"name\":\"a\",\"entityType\":\"t\",\"observations\":[\"x\",\"y\"],\"mine\":7}\n\
         {\"type\":\"entity\",\"name\":\"b\",\"entityType\":\"t\",\"observations\":[]}\nnot json\n{\"type\":\"entity\",\"name\":5}\n{\"type\":\"other\"}"
    );
}
