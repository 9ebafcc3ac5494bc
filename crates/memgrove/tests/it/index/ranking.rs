//! Which of what is found comes first, and what is told beside it.

use memgrove::index::Reach;

use super::{first, found, indexed};

const PEOPLE: [(&str, &str); 2] = [
    (
        "knowledge/entities/person/Ann.md",
        "# Entity: Ann\n**Type:** person\n\n## Observations\n1. plays the cello in an orchestra\n2. lives in Oslo\n   \
         - superseded by: lives in Rome\n3. lives in Rome\n4. is allergic to peanuts\n5. drives a tram\n6. repairs bicycles\n",
    ),
    ("files/list.md", "Buy a present for the birthday party of Mila.\n"),
];

#[test]
fn words_that_are_spelled_right_are_not_corrected() {
    let index = indexed(&[
        ("files/events.md", "Retention is seven days.\n"),
        ("files/lag.md", "Measure the replication lag.\n"),
        ("files/law.md", "The lawyer reviews data processing.\n"),
    ]);
    for query in ["what happened recently?", "how large is the company", "what is still in progress"] {
        assert_eq!(index.search(query, 5).unwrap().corrected, [], "{query}");
    }
    for (query, instead, address) in [
        ("retnetion", "retention", "events.md"),
        ("replicaton lagg", "replication", "lag.md"),
        ("the data centres of the lawer", "", "law.md"),
    ] {
        let told = index.search(query, 5).unwrap();
        let names = told.corrected.first().map_or("", |(_, instead)| instead.as_str());
        assert_eq!((names, first(&index, query)), (instead, format!("file:/memories/{address}")), "{query}");
    }
}

#[test]
fn what_has_all_the_words_comes_before_what_has_none() {
    let hay = "wir gehen durch die stadt und sehen den turm, dann essen wir suppe und warten auf den zug, "
        .repeat(3);
    let long = format!("---\ndate: 2020-01-01\n---\n{hay}zebra invoice, {hay}\n");
    let bills = "# Bill\nPayment for an antelope, billed.\n\n## Receipt\nPayment for an antelope, billed.\n\n\
                 ## Charge\nPayment for an antelope, charged.\n";
    let mut files = vec![("files/walk.md", long.as_str()), ("files/bills.md", bills)];
    files.extend([
        ("files/1.md", "The tower is old.\n"),
        ("files/2.md", "Soup and rain.\n"),
        ("files/3.md", "My brother waits.\n"),
        ("files/4.md", "Music at school.\n"),
        ("files/5.md", "We played chess.\n"),
        ("files/6.md", "Wind from the sea.\n"),
    ]);
    assert_eq!(first(&indexed(&files), "zebra invoice"), "file:/memories/walk.md");
}

#[test]
fn a_tag_that_the_text_says_too_counts_once() {
    let index = indexed(&[
        ("files/a.md", "---\ntags: [gateway]\n---\nThe gateway restarts nightly.\n"),
        ("files/b.md", "The gateway restarts weekly.\n"),
    ]);
    let words: Vec<f32> =
        index.search("does the gateway restart", 5).unwrap().hits.iter().map(|hit| hit.parts.words).collect();
    assert_eq!((words.len(), words[0]), (2, words[1]));
}

#[test]
fn what_is_hidden_and_fits_better_is_told() {
    let index = indexed(&PEOPLE);
    for (query, hidden) in [
        ("does Ann live in Oslo", 1),
        ("does Ann live in Oslo shape:files", 0),
        ("does Ann live in Oslo is:hidden", 0),
        ("where does Ann live", 0),
        ("oslo", 1),
    ] {
        assert_eq!(index.search(query, 5).unwrap().hidden, hidden, "{query}");
    }
}

#[test]
fn an_answer_is_what_was_asked_of_whom_it_names() {
    let mut files = PEOPLE.to_vec();
    files.push((
        "files/family.md",
        "Ihre Tochter heisst Mila und wurde am dritten Mai geboren, im Norden, bei Sturm.\n",
    ));
    let index = indexed(&files);
    let recalled = |query: &str| -> Vec<String> {
        let told = index.recall(query, Reach::Near, 1_000, 10).unwrap();
        told.snippets.into_iter().map(|snippet| snippet.hit.address).collect()
    };
    let told = recalled("where does Ann live?");
    assert!(told[0] == "entity:person/Ann#3" && told.len() <= 3, "{told:?}");
    assert!(found(&index, "where does Ann live?").len() > 4);
    assert!(recalled("what is Mila's birthday").contains(&"file:/memories/family.md".to_owned()));
}

#[test]
fn what_is_known_of_whom_the_query_names_comes_before_what_mentions_them() {
    let entity = |name: &str, said: &[&str]| {
        let said: String = said.iter().zip(1..).map(|(said, number)| format!("{number}. {said}\n")).collect();
        format!("# Entity: {name}\n\n## Observations\n{said}")
    };
    let alice = [
        "prefers coffee",
        "works in Z\u{fc}rich",
        "owns the billing service",
        "is on vacation until 2 December",
        "speaks French",
    ];
    let index = indexed(&[
        ("knowledge/entities/general/Alice.md", &entity("Alice", &alice)),
        (
            "knowledge/entities/general/Carol.md",
            &entity("Carol", &["reports to Alice", "leads the mobile team"]),
        ),
        ("knowledge/entities/general/Bob.md", &entity("Bob", &["knows Alice from university"])),
        ("knowledge/entities/general/Acme.md", &entity("Acme", &["Alice is the account manager"])),
    ]);
    let recalled = |query: &str| -> Vec<String> {
        let told = index.recall(query, Reach::Near, 1_000, 20).unwrap();
        told.snippets.into_iter().map(|snippet| snippet.hit.address).collect()
    };
    for query in ["who is Alice?", "Alice", "alice", "tell me about Alice", "what do we know about Alice?"] {
        let told = recalled(query);
        let own = told.iter().take_while(|address| address.starts_with("entity:general/Alice#")).count();
        assert_eq!(own, alice.len(), "{query}: {told:?}");
        assert!(told.contains(&"entity:general/Carol#1".to_owned()), "{query}: {told:?}");
    }
    // Who asks for more than the name is told less than all of it.
    for (query, first) in [
        ("where does Alice work?", "Alice#2"),
        ("what does Alice drink?", "Alice#1"),
        ("is Alice away?", "Alice#4"),
        ("does Alice speak French?", "Alice#5"),
        ("who reports to Alice?", "Carol#1"),
        ("who knows Alice from university", "Bob#1"),
    ] {
        let told = recalled(query);
        assert!(told[0] == format!("entity:general/{first}") && told.len() < 8, "{query}: {told:?}");
    }
}
