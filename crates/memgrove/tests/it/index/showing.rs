//! What a search tells of what it found: how far a task is, what no longer counts, what is no text.

use std::sync::Arc;

use memgrove::backend::{Change, Edit, Expect, Note};
use memgrove::clock::SystemClock;
use memgrove::document::Weight;
use memgrove::index::{Place, Reach};

use super::{at, check_true, first, found, indexed, over, store};

/// A task's line: how far it is, and what else is known of that.
fn task(id: u8, content: &str, importance: &str, metadata: &str) -> String {
    let moment = format!("2026-01-0{id}T00:00:00Z");
    format!(
        "{{\"id\":\"{id:08x}-0000-4000-8000-000000000000\",\"type\":\"task\",\"content\":\"{content}\",\"created_at\":\"{moment}\",\"updated_at\":\"{moment}\",\"accessed_at\":\"{moment}\",\"access_count\":0,\"tags\":[\"ops\"],\"importance\":\"{importance}\",\"archived\":false,\"task_metadata\":{{{metadata}}}}}\n"
    )
}

#[test]
fn tasks_say_how_far_they_are() {
    let done = "\"status\":\"completed\",\"completed_at\":\"2026-01-01T00:00:00Z\",\"outcome\":\"all green\"";
    let waiting = "\"status\":\"blocked\",\"blockers\":[\"the new certificate\",\"Ann\"]";
    let tasks = task(1, "Move the build to the new runners", "high", done)
        + &task(2, "Renew the mail server", "medium", waiting)
        + &task(3, "Write the handbook", "medium", "\"status\":\"in-progress\"");
    let index = indexed(&[("records/tasks.jsonl", &tasks), ("files/a.md", "The road to the mill.\n")]);
    let address = |id: u8| format!("record:{id:08x}-0000-4000-8000-000000000000");
    for (query, id) in [
        ("what is blocked?", 2),
        ("blocked type:task", 2),
        ("tag:blocked", 2),
        ("tag:in-progress tag:ops", 3),
        ("which tasks are completed", 1),
        ("waits for a certificate", 2),
    ] {
        assert_eq!(first(&index, query), address(id), "{query}");
    }
    let hit = index.document(&address(2)).unwrap().unwrap();
    assert_eq!(hit.text, "Renew the mail server\n[blocked] waits for: the new certificate; Ann");
    assert_eq!(hit.tags, ["ops", "blocked"]);
    let hit = index.document(&address(1)).unwrap().unwrap();
    assert!(hit.text.ends_with("\n[completed] outcome: all green") && hit.importance == Weight::High);
    assert_eq!(found(&index, "importance:high"), [address(1)]);
    // What is done is important no more.
    let brief = index.brief(1_000).unwrap();
    let told: Vec<&str> = brief.snippets.iter().map(|snippet| snippet.hit.address.as_str()).collect();
    let place = |id: u8| told.iter().position(|told| *told == address(id)).unwrap();
    assert!(place(3) < place(1), "{told:?}");
}

#[test]
fn what_no_longer_counts_says_so() {
    let index = indexed(&[
        (
            "knowledge/entities/person/Ann.md",
            "# Entity: Ann\n\n## Observations\n1. lives in Oslo\n   - superseded by: lives in Rome\n2. lives in Rome\n3. rents a boat\n   - valid until: 2021-06-01\n",
        ),
        ("files/old.md", "---\narchived: true\n---\nAnn lived in Bergen.\n"),
    ]);
    let around = index.around("entity:person/Ann#2", 1).unwrap();
    let told: Vec<_> = around.iter().map(|hit| (hit.text.as_str(), hit.hidden)).collect();
    assert_eq!(
        told,
        [
            ("lives in Oslo", Some("superseded")),
            ("lives in Rome", None),
            ("rents a boat", Some("no longer true"))
        ]
    );
    let recalled = index.recall("who lived in Bergen or Oslo is:hidden", Reach::All, 1_000, 10).unwrap();
    let why = |address: &str| {
        let mut snippets = recalled.snippets.iter();
        snippets.find(|snippet| snippet.hit.address == address).and_then(|snippet| snippet.hit.hidden)
    };
    assert_eq!(why("entity:person/Ann#1"), Some("superseded"));
    assert_eq!(why("file:/memories/old.md"), Some("put away"));
}

#[test]
fn one_byte_that_is_no_text_hides_nothing_else() {
    let store = store(&[("files/b.md", "plain")]);
    let write = |key: &str, bytes: Vec<u8>| {
        let edit = Edit::Write { at: at(key), bytes: bytes.into(), expect: Expect::Any };
        store.apply(&Change { edits: vec![edit], note: Note::default() }).unwrap();
    };
    let said = |name: &str| format!("A kestrel in the {name} caf?.");
    for (key, name) in
        [("files/a.md", "old"), ("notes/a.md", "new"), ("graph/_content/nodes/mem_a_001.md", "red")]
    {
        let text = format!("# One\n{}\n\n# Two\nA heron.\n", said(name));
        write(key, text.bytes().map(|byte| if byte == b'?' { 0xe9 } else { byte }).collect());
    }
    write("files/picture.png", [0x89, 0x50, 0, 0xff].repeat(20));
    let index = over(&store, Place::Ram, Arc::new(SystemClock));
    let everywhere = found(&index, "kestrel");
    for (address, name) in
        [("file:/memories/a.md#one", "old"), ("note:a#one", "new"), ("node:mem_a_001#one", "red")]
    {
        assert!(everywhere.contains(&address.to_owned()), "{address}: {everywhere:?}");
        assert_eq!(index.document(address).unwrap().unwrap().text, said(name));
    }
    let told: Vec<(String, String)> =
        index.check().unwrap().into_iter().map(|finding| (finding.at, finding.what)).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|(_, what)| what.starts_with("line 2 has bytes that are not UTF-8")));
    check_true(&index);
}

#[test]
fn a_version_is_found_with_and_without_its_letter() {
    let index = indexed(&[
        ("files/a.md", "The api moved to v2.14.0 in May.\n"),
        ("files/b.md", "The app is at 3.7.1 now, chapter 14.\n"),
        ("files/c.md", "Section v2 has 14 pages and 0 figures.\n"),
    ]);
    for (query, address) in [
        ("2.14.0", "file:/memories/a.md"),
        ("v2.14.0", "file:/memories/a.md"),
        ("V2.14.0", "file:/memories/a.md"),
        ("v3.7.1", "file:/memories/b.md"),
        ("3.7.1", "file:/memories/b.md"),
        ("when did we move to 2.14.0", "file:/memories/a.md"),
    ] {
        assert_eq!(first(&index, query), address, "{query}");
    }
    assert!(!found(&index, "api moved pages -v2.14.0").contains(&"file:/memories/a.md".to_owned()));
    assert!(found(&index, "pages -v2.14.0").contains(&"file:/memories/c.md".to_owned()));
}

#[test]
fn things_of_the_graph_are_called_by_their_titles() {
    let node = |id: &str, title: &str| {
        format!(
            "{{\"id\":\"{id}\",\"type\":\"bird\",\"properties\":{{\"title\":\"{title}\"}},\"storage\":{{\"path\":\"x\"}}}}"
        )
    };
    let connection =
        r#"{"type":"lives_in","from":"mem_bird_001","to":"mem_gone_001","storage":{"path":"x"}}"#;
    let index = indexed(&[
        ("graph/_content/nodes/mem_bird_001.meta.json", &node("mem_bird_001", "Kestrel")),
        ("graph/_content/nodes/mem_bird_001.md", "It hovers.\n"),
        ("graph/_content/nodes/mem_told_001.meta.json", &node("mem_told_001", "Merlin")),
        ("graph/_content/nodes/mem_told_001.md", "# One\nIt dives.\n# Two\nIt hunts.\n"),
        ("graph/_content/nodes/mem_bare_001.md", "It swims.\n"),
        ("graph/_content/connections/conn_1.meta.json", connection),
        ("graph/_content/connections/conn_1.md", "Since spring.\n"),
    ]);
    for (address, title) in [
        ("node:mem_bird_001#properties", "Kestrel"),
        ("node:mem_bird_001", "Kestrel"),
        ("node:mem_told_001#two", "One > Two"),
        ("node:mem_bare_001", "mem_bare_001"),
        ("connection:conn_1#properties", "Kestrel lives_in mem_gone_001"),
        ("connection:conn_1", "Kestrel lives_in mem_gone_001"),
    ] {
        assert_eq!(index.document(address).unwrap().unwrap().title, title, "{address}");
    }
}

#[test]
fn an_entity_of_which_nothing_is_known_is_found_by_its_name() {
    let index = indexed(&[
        ("knowledge/entities/thing/Kettle.md", "# Entity: Kettle\n**Type:** thing\n"),
        ("files/a.md", "The road to the mill.\n"),
    ]);
    assert_eq!(found(&index, "kettle"), ["entity:thing/Kettle"]);
    assert_eq!(found(&index, "teapot"), Vec::<String>::new());
    check_true(&index);
}

#[test]
fn an_entity_is_no_hit_beside_what_is_known_of_it() {
    let index = indexed(&[
        ("knowledge/entities/thing/Kettle.md", "# Entity: Kettle\n\n## Observations\n1. is red\n"),
        (
            "knowledge/entities/thing/Stove.md",
            "# Entity: Stove\n\n## Observations\n1. is old\n\n## Relations\n- **stands-in:** Kitchen\n",
        ),
        (
            "knowledge/entities/thing/Pot.md",
            "# Entity: Pot\n\n## Observations\n1. leaks\n   - superseded by: is mended\n",
        ),
        ("files/a.md", "The walnut tree fell, see [[Kettle]].\n"),
    ]);
    for (query, addresses) in [
        ("kettle", &["entity:thing/Kettle#1", "file:/memories/a.md"][..]),
        ("stove", &["entity:thing/Stove", "entity:thing/Stove#1"]),
        ("pot", &["entity:thing/Pot"]),
        // Links lead to what is known.
        ("walnut tree", &["entity:thing/Kettle#1", "file:/memories/a.md"]),
    ] {
        let mut told = found(&index, query);
        told.sort();
        assert_eq!(told, addresses, "{query}");
    }
    assert_eq!(index.similar("entity:thing/Kettle", 5).unwrap().hits.len(), 1);
    check_true(&index);
}
