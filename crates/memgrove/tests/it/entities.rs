//! The shape `entities` as its callers meet it.

mod cost;
mod exchange;
mod forgetting;
mod format;
mod hand;
mod kg;
mod time;
mod upkeep;

use std::sync::Arc;

use memgrove::backend::{Change, Edit, Expect, HistoryQuery, Note, Version};
use memgrove::backends::Ram;
use memgrove::clock::{Clock, ManualClock, Timestamp};
use memgrove::shapes::entities::{
    Direction, Entity, Facts, Found, How, Knowledge, Learning, Match, Observation, Pattern, Relation,
    Revision, RoleState, Walk, as_of,
};
use memgrove::{Kind, Locator, Memory, Store};

pub(crate) struct Fixture {
    pub(crate) knowledge: Knowledge,
    pub(crate) clock: Arc<ManualClock>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let memory = Memory::new(Store::new(Ram::default()), clock.clone() as Arc<dyn Clock>);
        Fixture { knowledge: Knowledge::new(memory, at("knowledge")), clock }
    }

    pub(crate) fn store(&self) -> &Store {
        self.knowledge.memory().store()
    }

    pub(crate) fn keep(&self, entity: &Entity) {
        self.knowledge.store(Note::default(), std::slice::from_ref(entity), How::Merge).expect("stored");
    }

    pub(crate) fn text(&self, path: &str) -> String {
        self.store().read(&at(path)).expect(path)
    }

    /// Writes a file as someone would who has never heard of memgrove.
    pub(crate) fn drop_in(&self, path: &str, text: &str) {
        let edit = Edit::Write { at: at(path), bytes: text.to_owned().into(), expect: Expect::Any };
        self.store().apply(&Change { edits: vec![edit], note: Note::default() }).expect("written");
    }
}

pub(crate) fn at(key: &str) -> Locator {
    Locator::new(key).expect("a valid key")
}

pub(crate) fn moment(date: &str) -> Timestamp {
    as_of(date).expect("a date")
}

pub(crate) fn entity(name: &str, kind: &str, observations: &[&str]) -> Entity {
    let observations = observations.iter().map(|text| Observation::from(*text)).collect();
    Entity { name: name.to_owned(), kind: kind.to_owned(), observations, ..Entity::default() }
}

pub(crate) fn relation(kind: &str, to: &str) -> Relation {
    Relation { kind: kind.to_owned(), to: to.to_owned(), facts: Facts::default() }
}

#[test]
fn a_stored_entity_is_a_file_that_people_can_read() {
    let fixture = Fixture::new();
    let mut alice = entity("Alice Smith", "Person", &["likes tea", "lives in Oslo"]);
    alice.tags = vec!["friend".to_owned(), "norway".to_owned()];
    alice.relations = vec![relation("works-at", "Acme")];
    fixture.keep(&alice);
    assert_eq!(
        fixture.text("knowledge/entities/person/Alice-Smith.md"),
        "# Entity: Alice Smith\n**Type:** Person\n**Created:** 2026-01-01T00:00:00.000000Z\n\
         **Updated:** 2026-01-01T00:00:00.000000Z\n**Tags:** friend, norway\n\n## Observations\n1. likes tea\n\
         2. lives in Oslo\n\n## Relations\n- **works-at:** Acme\n  - date: 2026-01-01T00:00:00.000000Z\n"
    );
    fixture.keep(&entity("Alice Smith", "Person", &["likes tea", "plays chess"]));
    let text = fixture.text("knowledge/entities/person/Alice-Smith.md");
    assert!(text.contains("**Created:** 2026-01-01T00:00:00.000000Z\n"), "{text}");
    assert!(!text.contains("**Updated:** 2026-01-01T00:00:00.000000Z\n"), "{text}");
    assert!(text.contains("2. lives in Oslo\n3. plays chess\n"), "{text}");
}

#[test]
fn what_is_no_entity_is_refused() {
    let fixture = Fixture::new();
    let refused = |given: &Entity, message: &str| {
        let error = fixture
            .knowledge
            .store(Note::default(), std::slice::from_ref(given), How::Merge)
            .expect_err(message);
        assert_eq!((error.kind(), error.message()), (Kind::Invalid, message));
        assert!(!fixture.knowledge.store_in_memory(given).expect("no failure of the store"));
    };
    refused(&entity("  ", "x", &["a"]), "the entity has no name");
    refused(&entity("a", "x", &[]), "the entity `a` has no observations");
    assert!(!fixture.store().exists(&at("knowledge")).expect("readable"));
}

#[test]
fn names_that_look_alike_never_share_a_file() {
    let fixture = Fixture::new();
    let names = [
        "a b",
        "a-b",
        "a  b",
        "a/b",
        "A B",
        "A-b",
        "caf\u{e9}",
        "cafe\u{301}",
        "CAF\u{c9}",
        "con",
        "_con",
        "ß",
        "ss",
        "SS",
    ];
    for name in names {
        fixture.keep(&entity(name, "Thing", &[&format!("is {name}")]));
    }
    for name in names {
        let loaded = fixture.knowledge.load(name, Some("thing")).expect("readable").expect(name);
        assert_eq!(loaded.entity.observations[0].text, format!("is {name}"));
    }
    let together = Fixture::new();
    let all: Vec<Entity> = names.iter().map(|name| entity(name, "Thing", &["x"])).collect();
    together.knowledge.store(Note::default(), &all, How::Merge).expect("one change");
    assert_eq!(together.store().list(&at("knowledge/entities/thing")).expect("listed").len(), names.len());
}

#[test]
fn one_name_may_have_several_types() {
    let fixture = Fixture::new();
    for kind in ["Fruit", "Company", "a/b"] {
        fixture.keep(&entity("Apple", kind, &[kind]));
    }
    for kind in ["fruit", "Company", "a/b"] {
        let loaded = fixture.knowledge.load("Apple", Some(kind)).expect("readable").expect(kind);
        assert_eq!(loaded.entity.observations.len(), 1);
        assert_eq!(loaded.entity.kind.to_lowercase(), kind.to_lowercase());
    }
    assert_eq!(fixture.knowledge.load("Apple", None).expect("readable").expect("any").entity.kind, "Fruit");
}

/// An address names the folder, so no two entities of one name may share it.
#[test]
fn types_that_share_a_folder_are_one() {
    let fixture = Fixture::new();
    fixture.keep(&entity("X", "Work Item", &["alpha"]));
    fixture.keep(&entity("X", "work-item", &["beta"]));
    let loaded = fixture.knowledge.load("X", Some("work item")).expect("readable").expect("there");
    assert_eq!((loaded.entity.kind.as_str(), loaded.entity.observations.len()), ("Work Item", 2));
    assert_eq!(fixture.knowledge.namesakes("X").expect("read"), ["work-item/X"]);
    let wanted = Match { kind: Some("WORK-ITEM".to_owned()), ..Match::default() };
    assert_eq!(fixture.knowledge.search(&wanted).expect("searched").len(), 1);
    assert!(fixture.knowledge.check().expect("checked").is_empty());
    // Two that are there already are for people to decide.
    let twin = "knowledge/entities/work-item/X-f7b966d4.md";
    let text = "# Entity: X\n**Type:** work-item\n**Created:** 2026-02-01\n\n## Observations\n1. gamma\n";
    fixture.drop_in(twin, text);
    let found = fixture.knowledge.check().expect("checked");
    assert_eq!(found.len(), 1, "{found:?}");
    let what = "the entity `X` is also in `knowledge/entities/work-item/X.md`";
    assert_eq!((found[0].at.as_str(), found[0].what.as_str()), (twin, what));
}

#[test]
fn the_session_remembers_until_the_file_changes() {
    let fixture = Fixture::new();
    fixture.keep(&entity("Bob", "Person", &["one"]));
    let load = || fixture.knowledge.load_from_memory("Bob").expect("readable").expect("there");
    assert_eq!(load().found, Found::Name);
    assert_eq!(load().found, Found::Cache);
    let text = fixture.text("knowledge/entities/person/Bob.md").replace("1. one", "1. two");
    fixture.drop_in("knowledge/entities/person/Bob.md", &text);
    let fresh = load();
    assert_eq!((fresh.found, fresh.entity.observations[0].text.as_str()), (Found::Name, "two"));
    fixture.clock.advance_ms(301_000);
    assert_eq!(load().found, Found::Name, "five minutes are over");
    assert_eq!(
        fixture.knowledge.load_from_memory("two").expect("readable").expect("found").found,
        Found::Search
    );
    assert!(fixture.knowledge.load_from_memory("nobody").expect("readable").is_none());
    assert_eq!(fixture.knowledge.batch_load(&["Bob", "nobody", "two"]).expect("readable").len(), 2);
}

#[test]
fn search_ranks_names_before_mentions() {
    let fixture = Fixture::new();
    fixture.keep(&entity("Kitchen plan", "Project", &["Alice helps with the tiles"]));
    fixture.keep(&entity("Alice", "Person", &["likes green tea"]));
    fixture.keep(&entity("Alice Cooper", "Person", &["sings"]));
    let names = |query: &str| -> Vec<String> {
        let hits = fixture
            .knowledge
            .search(&Match { query: query.to_owned(), ..Match::default() })
            .expect("searched");
        hits.into_iter().map(|hit| hit.entity.name.clone()).collect()
    };
    assert_eq!(names("alice"), ["Alice", "Alice Cooper", "Kitchen plan"]);
    assert_eq!(names("Who is helping with our tiles?"), ["Kitchen plan"]);
    assert_eq!(names("een te"), ["Alice"], "a part of the text as it stands");
    assert_eq!(names("nothing of the kind").len(), 0);
    let scores = |query: &str| -> Vec<(String, u32)> {
        let hits = fixture.knowledge.search_memory(query).expect("searched");
        hits.into_iter().map(|hit| (hit.entity.name.clone(), hit.score)).collect()
    };
    assert_eq!(
        scores("alice"),
        [("Alice".into(), 100), ("Alice Cooper".into(), 50), ("Kitchen plan".into(), 0)]
    );
    assert_eq!(scores("Person"), [("Alice".to_owned(), 25), ("Alice Cooper".to_owned(), 25)]);
}

#[test]
fn search_sees_what_others_write_and_what_they_delete() {
    let fixture = Fixture::new();
    let found = |query: &str| {
        fixture
            .knowledge
            .search(&Match { query: query.to_owned(), ..Match::default() })
            .expect("searched")
            .len()
    };
    fixture.keep(&entity("One", "T", &["zebra"]));
    assert_eq!(found("zebra"), 1);
    fixture.drop_in("knowledge/entities/t/hand-made.md", "# Entity: Two\n\n## Observations\n- a zebra too\n");
    assert_eq!(found("zebra"), 2);
    assert!(fixture.knowledge.load("Two", None).expect("readable").is_some(), "under a name of its own");
    fixture.knowledge.delete(Note::default(), "Two", None, None).expect("deleted");
    assert_eq!(found("zebra"), 1);
    let error = fixture.knowledge.delete(Note::default(), "Two", None, None).expect_err("gone");
    assert_eq!(error.message(), "there is no entity `Two`");
}

#[test]
fn the_superseded_is_hidden_and_the_past_can_be_asked_for() {
    let fixture = Fixture::new();
    let dated = |text: &str, date: &str| Observation {
        text: text.to_owned(),
        facts: Facts { date: Some(date.to_owned()), source: Some("chat 7".to_owned()), ..Facts::default() },
    };
    let alice =
        Entity { observations: vec![dated("lives in Oslo", "2025-01-01")], ..entity("Alice", "Person", &[]) };
    fixture.keep(&alice);
    let new = Observation {
        facts: Facts { valid_from: Some("2025-06-01".to_owned()), ..Facts::default() },
        ..Observation::from("lives in Rome")
    };
    let alice = Entity { observations: vec![new], ..entity("Alice", "Person", &[]) };
    let supersede = || {
        let supersedes = Some("lives in Oslo");
        let revision = Revision { entity: &alice, how: How::Merge, supersedes, expect: None };
        fixture.knowledge.revise(Note::default(), &revision)
    };
    let changes =
        || fixture.knowledge.memory().store().backend().history(&HistoryQuery::default()).unwrap().len();
    let before = changes();
    supersede().expect("superseded");
    assert_eq!(changes(), before + 1, "in one change");
    let text = fixture.text("knowledge/entities/person/Alice.md");
    assert!(text.contains("1. lives in Oslo\n   - source: chat 7\n   - date: 2025-01-01\n   - valid until: 2025-06-01\n   - superseded by: lives in Rome\n"), "{text}");
    let seen = |query: &str, as_of: Option<&str>| -> Vec<String> {
        let wanted = Match { query: query.to_owned(), as_of: as_of.map(moment), kind: None };
        let hits = fixture.knowledge.search(&wanted).expect("searched");
        hits.iter().flat_map(|hit| hit.entity.observations.iter().map(|o| o.text.clone())).collect()
    };
    assert_eq!(seen("lives", None), ["lives in Rome"]);
    assert!(seen("Oslo", None).is_empty());
    assert_eq!(seen("lives", Some("2025-03-01")), ["lives in Oslo"]);
    assert_eq!(seen("Oslo", Some("2025-03-01")), ["lives in Oslo"]);
    assert!(seen("lives", Some("2024-03-01")).is_empty());
    assert_eq!(supersede().expect_err("already").message(), "there is no observation `lives in Oslo`");
    let stale = |_: &Store, _: &Locator| Ok(Some(Version::new("stale")));
    let revision = Revision { entity: &alice, how: How::Merge, supersedes: None, expect: Some(&stale) };
    let error = fixture.knowledge.revise(Note::default(), &revision).expect_err("at another version");
    assert_eq!(error.kind(), Kind::Conflict);
}

#[test]
fn walks_end_in_circles_and_mind_direction_type_and_depth() {
    let fixture = Fixture::new();
    let keep = |name: &str, relations: &[(&str, &str)]| {
        let relations = relations.iter().map(|(kind, to)| relation(kind, to)).collect();
        fixture.keep(&Entity { relations, ..entity(name, "N", &["x"]) });
    };
    keep("a", &[("knows", "b"), ("owns", "c")]);
    keep("b", &[("knows", "c")]);
    keep("c", &[("knows", "a"), ("knows", "ghost")]);
    let walked = |from: &str, depth, kind: Option<&str>, direction| -> Vec<String> {
        let kind = kind.map(str::to_owned);
        let steps = fixture
            .knowledge
            .walk(&Walk { from: from.to_owned(), depth, kind, direction, as_of: None })
            .expect("walked");
        steps
            .iter()
            .map(|s| format!("{} {} {} {}{}", s.depth, s.from, s.kind, s.to, if s.known { "" } else { "?" }))
            .collect()
    };
    assert_eq!(walked("a", 1, None, Direction::Out), ["1 a knows b", "1 a owns c"]);
    assert_eq!(walked("a", 1, None, Direction::In), ["1 c knows a"]);
    assert_eq!(walked("a", 1, Some("knows"), Direction::Both), ["1 a knows b", "1 c knows a"]);
    assert_eq!(
        walked("a", 9, None, Direction::Out),
        ["1 a knows b", "1 a owns c", "2 b knows c", "2 c knows a", "2 c knows ghost?"]
    );
    assert_eq!(fixture.knowledge.find_relations("c", Some("owns")).expect("found").len(), 1);
    assert!(walked("nobody", 3, None, Direction::Both).is_empty());
}

#[test]
fn a_name_of_two_types_is_written_to_only_with_its_type() {
    let fixture = Fixture::new();
    fixture.keep(&entity("Ann", "person", &["sings"]));
    fixture.clock.advance_ms(1);
    fixture.keep(&entity("Ann", "project", &["is late"]));
    assert_eq!(fixture.knowledge.namesakes("Ann").expect("read"), ["person/Ann", "project/Ann"]);
    let untyped = entity("Ann", "", &["dances"]);
    let refused = fixture.knowledge.store(Note::default(), &[untyped], How::Merge).expect_err("which?");
    assert_eq!(refused.kind(), Kind::Invalid);
    assert!(refused.hint_text().is_some_and(|hint| hint.ends_with("person/Ann, project/Ann")), "{refused:?}");
    fixture.keep(&entity("Ann", "Project", &["is done"]));
    assert!(fixture.text("knowledge/entities/project/Ann.md").contains("2. is done"));
}

#[test]
fn common_patterns_have_helpers() {
    let fixture = Fixture::new();
    let learning = Learning {
        error_type: "Timeout".into(),
        error: "it hung".into(),
        context: "deploying".into(),
        role: "engineer".into(),
        task_type: "deploy".into(),
        lesson: "set a limit".into(),
        prevention: "always".into(),
    };
    fixture.knowledge.store_learning(Note::default(), &learning).expect("stored");
    let text = fixture.text("knowledge/entities/learning/Learning-Timeout-2026-01-01.md");
    assert!(text.contains("**Tags:** learning, Timeout, engineer\n"), "{text}");
    assert!(text.contains(
        "1. Error: it hung\n2. Context: deploying\n3. Learning: set a limit\n4. Prevention: always\n"
    ));
    assert!(
        text.contains("- **learned-by:** engineer\n") && text.contains("- **applies-to:** deploy\n"),
        "{text}"
    );
    let mut state = RoleState { role: "dev".into(), p: 1, q: 2, active_context: "{}".into(), tasks: 3 };
    fixture.knowledge.store_role_state(Note::default(), &state).expect("stored");
    state.tasks = 4;
    fixture.knowledge.store_role_state(Note::default(), &state).expect("stored");
    let text = fixture.text("knowledge/entities/rolestate/role-state-dev.md");
    assert!(text.contains("2. Scores: P=1, Q=2\n") && text.contains("4. Task History: 4 tasks\n"), "{text}");
    let pattern = Pattern {
        kind: "Review".into(),
        name: "small".into(),
        description: "in small steps".into(),
        ..Pattern::default()
    };
    fixture.knowledge.store_pattern(Note::default(), &pattern).expect("stored");
    assert!(
        fixture
            .text("knowledge/entities/reviewpattern/Review-Pattern-small-2026-01-01.md")
            .contains("**Tags:** pattern, review\n")
    );
}
