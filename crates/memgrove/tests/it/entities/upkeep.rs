//! The indexes follow behind and are true again; the check finds what a person should know.

use memgrove::Kind;
use memgrove::backend::Note;
use memgrove::shapes::entities::{Entity, How};
use memgrove::tier::{DerivedMaintenance, Tier};

use super::{Fixture, at, entity, relation};

const LISTS: [&str; 4] = [
    "knowledge/indexes/by-name.md",
    "knowledge/indexes/by-type.md",
    "knowledge/indexes/by-date.md",
    "knowledge/relations/entity-relations.md",
];

fn lists(fixture: &Fixture) -> Vec<String> {
    let dateless = |text: String| {
        text.lines()
            .filter(|line| !line.starts_with("**Updated:**"))
            .map(|line| format!("{line}\n"))
            .collect()
    };
    LISTS.iter().map(|path| dateless(fixture.text(path))).collect()
}

#[test]
fn indexes_are_written_behind_in_the_form_for_people() {
    let fixture = Fixture::new();
    fixture.keep(&Entity {
        relations: vec![relation("knows", "Bob")],
        ..entity("Zoe", "Person", &["first", "second"])
    });
    fixture.keep(&entity("Bob", "Person", &["two\nlines"]));
    assert!(!fixture.store().exists(&at(LISTS[0])).expect("readable"), "storing does not wait for them");
    fixture.knowledge.settle().expect("settled");
    assert!(fixture.knowledge.is_settled());
    let [by_name, by_type, by_date, relations] = lists(&fixture).try_into().expect("four");
    assert_eq!(
        by_name,
        "# Entity Index\n**Count:** 2 entities\n\n## Entries\n- `Bob` - two&#10;lines - entities/person/Bob.md\n- `Zoe` - first - entities/person/Zoe.md\n"
    );
    assert!(by_type.contains("# Type Index\n") && by_type.contains("\n## Person\n- `Bob`"), "{by_type}");
    assert!(by_date.contains("\n## 2026-01-01\n"), "{by_date}");
    assert!(
        relations.contains("**Count:** 1 relations\n")
            && relations.contains("- `Zoe` - **knows:** `Bob` - 2026-01-01T"),
        "{relations}"
    );
}

#[test]
fn patched_indexes_equal_rebuilt_ones() {
    let fixture = Fixture::new();
    for round in 0..30 {
        let name = format!("entity {}", round % 11);
        match round % 5 {
            4 => drop(fixture.knowledge.delete(Note::default(), &name, None, None)),
            _ => {
                let relations = vec![relation("after", &format!("entity {}", round % 3))];
                let given = Entity {
                    relations,
                    ..entity(&name, ["A", "B"][round % 2], &[&format!("round {round}")])
                };
                fixture.knowledge.store(Note::default(), &[given], How::Replace).map(drop).expect("stored");
            }
        }
        fixture.knowledge.settle().expect("settled");
        let patched = lists(&fixture);
        for path in LISTS {
            fixture.drop_in(path, "spoiled");
        }
        fixture.knowledge.reindex(Tier::SharedAbstracts).expect("rebuilt");
        assert_eq!(lists(&fixture), patched, "round {round}");
    }
    assert_eq!(fixture.knowledge.rebuild().expect("rebuilt"), 0, "nothing is written that is true");
    assert_eq!(fixture.knowledge.reindex(Tier::Source).expect_err("refused").kind(), Kind::Invalid);
    assert!(
        !fixture.knowledge.changed_since(memgrove::clock::Timestamp::UNIX_EPOCH).expect("listed").is_empty()
    );
}

#[test]
fn the_check_finds_doubles_and_unreadable_files() {
    let fixture = Fixture::new();
    fixture.keep(&entity("Bob", "Person", &["x"]));
    assert!(fixture.knowledge.check().expect("checked").is_empty());
    fixture.drop_in("knowledge/entities/person/robert.md", "# Entity: Bob\n**Type:** person\n");
    let found = fixture.knowledge.check().expect("checked");
    assert_eq!(found.len(), 1);
    assert!(
        found[0].what.starts_with("the entity `Bob` is also in `knowledge/entities/person/"),
        "{found:?}"
    );
}

#[test]
fn batches_are_one_change_and_say_what_was_stored() {
    let fixture = Fixture::new();
    let given = [entity("a", "t", &["x"]), entity(" ", "t", &["x"]), entity("b", "t", &[])];
    let stored = fixture.knowledge.batch_store(&given).expect("stored");
    assert_eq!(stored, [("a".to_owned(), true), (" ".to_owned(), false), ("b".to_owned(), false)]);
    assert!(fixture.text(LISTS[0]).contains("**Count:** 1 entities"));
    let error = fixture.knowledge.store(Note::default(), &given, How::Merge).expect_err("all or none");
    assert_eq!(error.message(), "entities[1]: the entity has no name");
}
