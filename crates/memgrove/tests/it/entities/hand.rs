//! What people wrote by hand: it is found wherever it lies, and an update leaves it as it is.

use memgrove::backend::Note;
use memgrove::shapes::entities::{Document, Entity, How, Knowledge, Observation, Revision};

use super::{Fixture, at, entity, relation};

const FILES: &[(&str, &str, &str)] = &[
    ("Carol Jones", "people/carol.md", "# Entity: Carol Jones\n\n## Observations\n- sails\n"),
    ("Dan", "people/staff/someone.md", "# Entity: Dan\n**Type:** Person\n\n## Observations\n- cooks\n"),
    ("Green tea", "drink/tea.md", "---\ntitle: Green tea\n---\nA drink.\n"),
];

/// A process that starts now.
fn fresh(fixture: &Fixture) -> Knowledge {
    Knowledge::new(fixture.knowledge.memory().clone(), at("knowledge"))
}

#[test]
fn no_twin_is_made_of_a_file_that_is_named_otherwise() {
    for listed in [false, true] {
        for stays in [false, true] {
            let fixture = Fixture::new();
            if listed {
                fixture.keep(&entity("Other", "General", &["x"]));
                fixture.knowledge.settle().expect("settled");
            }
            for (_, path, text) in FILES {
                fixture.drop_in(&format!("knowledge/entities/{path}"), text);
            }
            if stays {
                fixture.knowledge.check().expect("looked at");
            }
            let knowledge = || if stays { fixture.knowledge.clone() } else { fresh(&fixture) };
            for (name, path, _) in FILES {
                let kind = if *name == "Dan" { "Person" } else { "" };
                let given = entity(name, kind, &["is known"]);
                let stored = knowledge().store(Note::default(), &[given], How::Merge).expect("stored");
                assert_eq!(stored.outcome[0].path, at(&format!("knowledge/entities/{path}")));
                let newer = entity(name, "", &["is well known"]);
                let supersedes = Some("is known");
                let revision = Revision { entity: &newer, how: How::Merge, supersedes, expect: None };
                knowledge().revise(Note::default(), &revision).expect("superseded");
                let text = fixture.text(&format!("knowledge/entities/{path}"));
                assert!(text.contains("- superseded by: is well known\n"), "{text}");
            }
            let lines =
                "{\"type\":\"relation\",\"from\":\"Dan\",\"to\":\"Carol Jones\",\"relationType\":\"knows\"}";
            assert_eq!(knowledge().import(&Note::default(), lines.as_bytes()).expect("imported").loose, 0);
            let files = fixture.store().list_all(&at("knowledge/entities")).expect("listed");
            let files = files.iter().filter(|info| !info.is_dir()).count();
            assert_eq!(files, FILES.len() + usize::from(listed), "listed {listed}, stays {stays}");
        }
    }
}

#[test]
fn a_title_that_was_edited_since_the_list_was_written_is_seen() {
    let fixture = Fixture::new();
    fixture.keep(&entity("Bob", "Person", &["x"]));
    fixture.knowledge.settle().expect("settled");
    let path = "knowledge/entities/person/Bob.md";
    fixture.clock.advance_ms(5_000);
    fixture.drop_in(path, &fixture.text(path).replace("# Entity: Bob", "# Entity: Robert"));
    let stored = fresh(&fixture).store(Note::default(), &[entity("Robert", "", &["y"])], How::Merge);
    assert_eq!(stored.expect("stored").outcome[0].path, at(path));
}

#[test]
fn tags_and_relations_may_be_added_alone() {
    let fixture = Fixture::new();
    fixture.keep(&entity("Bob", "Person", &["x"]));
    let given = Entity {
        tags: vec!["friend".to_owned()],
        relations: vec![relation("knows", "Ann")],
        ..entity("Bob", "", &[])
    };
    fixture.keep(&given);
    let text = fixture.text("knowledge/entities/person/Bob.md");
    assert!(text.contains("**Tags:** friend\n") && text.contains("- **knows:** Ann\n"), "{text}");
}

/// A text after its entity was changed.
fn updated(text: &str, edit: impl FnOnce(&mut Entity)) -> String {
    let mut document = Document::parse(text);
    let old = document.entity("folder", "stem");
    let mut entity = old.clone();
    edit(&mut entity);
    document.update_from(&old, &entity);
    let printed = document.print();
    assert_eq!(Document::parse(&printed).entity("folder", "stem"), entity, "{printed}");
    printed
}

#[test]
fn an_update_leaves_everything_else_where_it_is() {
    let prose =
        "# Trip\n\nWe went far.\n\n## Monday\n\n- saw a fox\n- ate soup\n\n## Tuesday\n\nRain. It\npoured.\n";
    assert_eq!(updated(prose, |trip| drop(trip.observations.remove(1))), prose.replace("- saw a fox\n", ""));
    let ended = |entity: &mut Entity, at: usize| {
        entity.observations[at].facts.valid_until = Some("2026-01-01".to_owned())
    };
    assert_eq!(
        updated(prose, |trip| {
            ended(trip, 2);
            ended(trip, 3);
            trip.observations.push(Observation::from("home"));
        }),
        prose
            .replace("- ate soup\n", "- ate soup\n  - valid until: 2026-01-01\n")
            .replace("poured.\n", "poured.\n  - valid until: 2026-01-01\n\n## Observations\n5. home\n")
    );
    let own = "# Entity: x\n\n## Observations\nMine:\n1. one\n2. two\n   lines\n> a quote\n3. three\n   - source: me\n* four\n\n\
               ## Relations\n- **a:** b\n<!-- kept -->\n- **c:** d\n";
    assert_eq!(
        updated(own, |x| drop(x.observations.remove(0))),
        own.replace("1. one\n2. two", "1. two").replace("3. three", "2. three")
    );
    assert_eq!(
        updated(own, |x| {
            x.observations[2].facts.source = None;
            x.relations.remove(0);
            x.relations[0].facts.date = Some("2026".to_owned());
        }),
        own.replace("   - source: me\n", "")
            .replace("- **a:** b\n", "")
            .replace("** d\n", "** d\n  - date: 2026\n")
    );
    let eleven: String =
        (1..=11).map(|n| format!("{n}. item\n{}more\n", " ".repeat(n.to_string().len() + 2))).collect();
    let eleven = format!("# Entity: x\n\n## Observations\n{eleven}");
    let ten = updated(&eleven, |x| drop(x.observations.remove(0)));
    assert!(ten.ends_with("9. item\n   more\n10. item\n    more\n"), "{ten}");
}

#[test]
fn a_front_matter_is_read_and_written_with_care() {
    let text = "---\ntitle: Tea\nmeta:\n  updated: by me\n  tags: [inner]\nmodified: 2020-01-01\ntags: [\"a, b\", 'it''s', plain]\n---\nA drink.\n";
    let tea = Document::parse(text).entity("folder", "stem");
    assert_eq!(tea.tags, ["a, b", "it's", "plain"]);
    assert_eq!(tea.updated.as_deref(), Some("2020-01-01"));
    let printed = updated(text, |tea| {
        tea.updated = Some("2026-01-01T00:00:00.000000Z".to_owned());
        tea.tags.extend(["x: y", "\"quoted\"", "[c]", "-d", "e\\f", "two\nlines"].map(str::to_owned));
        tea.kind = "Drink: hot".to_owned();
    });
    assert_eq!(
        printed,
        "---\ntitle: Tea\nmeta:\n  updated: by me\n  tags: [inner]\nmodified: 2026-01-01T00:00:00.000000Z\n\
         tags: [\"a, b\", it's, plain, \"x: y\", \"\\\"quoted\\\"\", \"[c]\", \"-d\", e\\f, \"two\\nlines\"]\n\
         type: \"Drink: hot\"\n---\nA drink.\n"
    );
}
