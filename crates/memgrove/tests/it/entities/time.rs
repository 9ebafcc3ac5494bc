//! What holds now and what held once: dates, restatements, and a clock that goes on.

use memgrove::Kind;
use memgrove::backend::Note;
use memgrove::shapes::entities::kg::{Addition, Answer, Call, Edge};
use memgrove::shapes::entities::{Entity, Facts, How, Match, Observation, Revision, When};

use super::{Fixture, entity, moment, relation};

fn said(text: &str, facts: Facts) -> Observation {
    Observation { text: text.to_owned(), facts }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// What a search for everything about a name shows of it.
fn seen(fixture: &Fixture, name: &str, as_of: Option<&str>) -> Vec<String> {
    let wanted = Match { query: name.to_owned(), as_of: as_of.map(moment), kind: None };
    let hits = fixture.knowledge.search(&wanted).expect("searched");
    hits.iter().flat_map(|hit| hit.entity.observations.iter().map(|o| o.text.clone())).collect()
}

#[test]
fn time_passes_for_those_who_stay() {
    let fixture = Fixture::new();
    let until = Facts { valid_until: some("2026-01-01T00:01:00Z"), ..Facts::default() };
    let from = Facts { valid_from: some("2026-01-01T00:01:00Z"), ..Facts::default() };
    let mut shop = entity("Shop", "Place", &["on the corner"]);
    shop.observations.extend([said("is open", until.clone()), said("is shut", from)]);
    shop.relations = vec![relation("sells", "tea")];
    shop.relations[0].facts = until;
    fixture.keep(&shop);
    let graph =
        |query: &str| match fixture.knowledge.kg(Note::default(), &Call::SearchNodes(query.to_owned())) {
            Ok(done) => match done.outcome {
                Answer::Graph(graph) => (graph.entities.len(), graph.relations.len()),
                other => panic!("{other:?}"),
            },
            Err(error) => panic!("{error}"),
        };
    assert_eq!(seen(&fixture, "Shop", None), ["on the corner", "is open"]);
    assert_eq!((graph("is open"), graph("is shut")), ((1, 1), (0, 0)));
    fixture.clock.advance_ms(61_000);
    assert_eq!(seen(&fixture, "Shop", None), ["on the corner", "is shut"]);
    assert_eq!((graph("is open"), graph("is shut")), ((0, 0), (1, 0)));
}

#[test]
fn what_is_no_date_is_refused_and_others_are_written_alike() {
    let fixture = Fixture::new();
    for wrong in ["garbage", "2026-13-45", ""] {
        for facts in [
            Facts { date: some(wrong), ..Facts::default() },
            Facts { valid_from: some(wrong), ..Facts::default() },
            Facts { valid_until: some(wrong), ..Facts::default() },
        ] {
            let given = Entity { observations: vec![said("x", facts)], ..entity("a", "t", &[]) };
            let refused = fixture.knowledge.store(Note::default(), &[given], How::Merge).expect_err(wrong);
            assert_eq!(refused.kind(), Kind::Invalid, "{wrong}");
        }
    }
    let facts = Facts { valid_from: some("2025-9-1"), ..Facts::default() };
    fixture.keep(&Entity { observations: vec![said("x", facts)], ..entity("a", "t", &[]) });
    assert!(fixture.text("knowledge/entities/t/a.md").contains("   - valid from: 2025-09-01\n"));
    assert_eq!(seen(&fixture, "a", Some("2025-09-01")), ["x"]);
    assert!(seen(&fixture, "a", Some("2025-08-31")).is_empty());

    fixture.drop_in(
        "knowledge/entities/t/b.md",
        "# Entity: b\n\n## Observations\n1. y\n   - valid from: whenever\n   - valid until: never\n",
    );
    assert_eq!(seen(&fixture, "b", None), ["y"], "what is no date hides nothing");
    let findings = fixture.knowledge.check().expect("checked");
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].what, "`valid from: whenever` is not a date");
}

#[test]
fn what_is_stated_again_holds_again() {
    let fixture = Fixture::new();
    fixture
        .keep(&Entity { relations: vec![relation("at", "Acme")], ..entity("Ann", "P", &["lives in Oslo"]) });
    let rome = entity("Ann", "P", &["lives in Rome"]);
    let supersede =
        Revision { entity: &rome, how: How::Merge, supersedes: Some("lives in Oslo"), expect: None };
    let done = fixture.knowledge.revise(Note::default(), &supersede).expect("superseded");
    assert_eq!(done.outcome[0].added, 1);
    let path = "knowledge/entities/p/Ann.md";
    let text = fixture.text(path);
    let ended = "- **at:** Acme\n  - valid until: 2026-01-01\n";
    let (head, _) = text.split_once("- **at:** Acme\n").expect("a relation");
    fixture.drop_in(path, &format!("{head}{ended}"));

    let again = Entity { relations: vec![relation("at", "Acme")], ..entity("Ann", "P", &["lives in Oslo"]) };
    let stored = fixture.knowledge.store(Note::default(), std::slice::from_ref(&again), How::Merge);
    assert_eq!(stored.expect("stored").outcome[0].added, 1);
    assert_eq!(seen(&fixture, "Ann", None), ["lives in Rome", "lives in Oslo"]);
    let known = fixture.knowledge.store(Note::default(), &[again], How::Merge).expect("stored");
    assert_eq!((known.change, known.outcome[0].added), (None, 0), "now it is known");
    assert_eq!(fixture.knowledge.find_relations("Ann", None).expect("found").len(), 1);

    // As the tools of the MCP memory server do it.
    let text =
        fixture.text(path).replace("2. lives in Rome\n", "2. lives in Rome\n   - valid until: 2026-01-01\n");
    fixture.drop_in(path, &text.replace("  - date: 2026", "  - valid until: 2026"));
    let call = Call::AddObservations(vec![Addition {
        entity_name: "Ann".to_owned(),
        contents: vec!["lives in Rome".to_owned()],
    }]);
    fixture.knowledge.kg(Note::default(), &call).expect("added");
    assert!(seen(&fixture, "Ann", None).contains(&"lives in Rome".to_owned()));
    let edge = Edge { from: "Ann".to_owned(), to: "Acme".to_owned(), relation_type: "at".to_owned() };
    fixture.knowledge.kg(Note::default(), &Call::CreateRelations(vec![edge])).expect("related");
    assert_eq!(fixture.knowledge.find_relations("Ann", None).expect("found").len(), 1);
}

#[test]
fn the_past_is_answered_from_when_things_were_known() {
    let fixture = Fixture::new();
    fixture.keep(&entity("Ann", "P", &["likes tea"]));
    assert_eq!(seen(&fixture, "Ann", Some("2026-01-01")), ["likes tea"]);
    assert!(seen(&fixture, "Ann", Some("2020-01-01")).is_empty(), "nobody knew of it then");
    fixture.drop_in(
        "knowledge/entities/p/bob.md",
        "# Entity: Bob\n**Created:** 2024-01-01\n\n## Observations\n1. lives in Oslo\n   - superseded by: lives in Rome\n\
         2. lives in Rome\n   - valid from: 2025-01-01\n3. sang\n   - valid until: 2023-05-01\n4. was gone\n   - superseded by: nothing\n",
    );
    let bob = fixture.knowledge.load("Bob", None).expect("readable").expect("there").entity;
    for (date, held) in [
        ("2023-01-01", &["sang"][..]),
        ("2024-06-01", &["lives in Oslo"]),
        ("2025-06-01", &["lives in Rome"]),
    ] {
        let then = bob.holding(When::Past(moment(date)));
        let texts: Vec<&str> = then.observations.iter().map(|o| o.text.as_str()).collect();
        assert_eq!(texts, held, "{date}");
    }
}
