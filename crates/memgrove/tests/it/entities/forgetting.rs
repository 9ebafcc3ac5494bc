//! Letting go: of the entity that an address names, of one observation, and of nothing else.

use memgrove::backend::{Note, Version};
use memgrove::shapes::entities::Knowledge;
use memgrove::{Kind, Locator, Result, Store};

use super::{Fixture, at, entity};

fn forget(knowledge: &Knowledge, folder: &str, name: &str) -> Result<Locator> {
    knowledge.forget(Note::default(), folder, name, None).map(|done| done.outcome)
}

#[test]
fn an_address_names_one_entity_or_one_observation() {
    let fixture = Fixture::new();
    for (name, kind, observations) in [
        ("Mercury", "Element", &["is liquid", "is heavy"][..]),
        ("Mercury", "Planet", &["is liquid", "is hot", "is hot"]),
        ("C# notes", "Topic", &["one"]),
        ("A", "T", &["first of A"]),
        ("A#1", "T", &["of its own"]),
    ] {
        fixture.keep(&entity(name, kind, observations));
    }
    fixture.drop_in(
        "knowledge/entities/people/carol.md",
        "# Entity: Carol #7\n**Type:** Person\n\n## Observations\n- x\n- y\n",
    );
    let texts = |path: &str| fixture.text(&format!("knowledge/entities/{path}"));
    let forget = |folder, name| forget(&fixture.knowledge, folder, name);

    forget("planet", "Mercury#2").expect("forgotten");
    assert!(texts("planet/Mercury.md").ends_with("1. is liquid\n2. is hot\n"), "one of two alike");
    assert!(texts("element/Mercury.md").contains("is liquid"));
    forget("element", "Mercury#1").expect("forgotten");
    assert!(texts("planet/Mercury.md").contains("is liquid"), "that of another type stays");
    for (folder, name) in
        [("planet", "Mercury#3"), ("planet", "Mercury#0"), ("gas", "Mercury"), ("topic", "C"), ("t", "A#2")]
    {
        assert_eq!(forget(folder, name).expect_err(name).kind(), Kind::NotFound, "{folder}/{name}");
    }
    assert_eq!(forget("planet", "Mercury").expect("forgotten"), at("knowledge/entities/planet/Mercury.md"));
    assert!(texts("element/Mercury.md").contains("is heavy"));
    forget("topic", "C# notes#1").expect("forgotten");
    assert!(!texts("topic/C#-notes.md").contains("1. one"));
    forget("topic", "C# notes").expect("forgotten");
    assert!(!fixture.store().exists(&at("knowledge/entities/topic/C#-notes.md")).expect("readable"));
    assert_eq!(forget("t", "A#1").expect("the entity"), at("knowledge/entities/t/A#1.md"));
    assert_eq!(forget("t", "A#1").expect("the observation"), at("knowledge/entities/t/A.md"));
    for folder in ["people", "person"] {
        forget(folder, "Carol #7#1").expect("by the folder and by the type");
    }
    assert!(texts("people/carol.md").ends_with("## Observations\n"));
}

#[test]
fn versions_are_minded_and_types_asked_for() {
    let fixture = Fixture::new();
    fixture.keep(&entity("Ann", "Person", &["x"]));
    fixture.keep(&entity("Ann", "Ship", &["y"]));
    let stale = |_: &Store, _: &Locator| Ok(Some(Version::new("stale")));
    let delete = |kind, expect| fixture.knowledge.delete(Note::default(), "Ann", kind, expect);
    assert_eq!(delete(Some("Ship"), Some(&stale)).expect_err("stale").kind(), Kind::Conflict);
    assert_eq!(delete(None, None).expect_err("which?").kind(), Kind::Invalid);
    for name in ["Ann", "Ann#1"] {
        let refused = fixture.knowledge.forget(Note::default(), "ship", name, Some(&stale));
        assert_eq!(refused.expect_err("stale").kind(), Kind::Conflict);
    }
    let keyed = || Note { key: Some("k".to_owned()), ..Note::default() };
    delete(Some("ship"), None).expect("deleted");
    let gone = fixture.knowledge.delete(keyed(), "Ann", None, None).expect("deleted").outcome;
    let again = fixture.knowledge.delete(keyed(), "Ann", None, None).expect("answered again");
    assert!(again.replayed && again.outcome == gone);
}
