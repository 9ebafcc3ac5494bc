//! What a search finds, and in which order.

use std::sync::Arc;

use memgrove::Kind;
use memgrove::clock::ManualClock;
use memgrove::index::Place;

use super::{first, found, indexed, over, store};

const TEA: &str = "---\ndate: 2024-05-01\ntags: [drinks]\n---\n# Green tea\nBrew at eighty degrees.\n\n# Coffee\nGrind the beans fresh. See [[beans]].\n";

fn record(id: u8, content: &str, rest: &str) -> String {
    format!(
        "{{\"id\":\"{id:08x}-0000-4000-8000-000000000000\",\"type\":\"learning\",\"content\":\"{content}\",\"created_at\":\"2024-01-0{id}T00:00:00Z\",\"updated_at\":\"2024-01-0{id}T00:00:00Z\",\"accessed_at\":\"2024-01-0{id}T00:00:00Z\",\"access_count\":0,\"tags\":[\"python\"],\"importance\":\"medium\",\"archived\":false{rest}}}\n"
    )
}

fn mixed() -> memgrove::Index {
    let records = record(1, "Ruff is faster than flake8", "") + &record(2, "The deploy runs on Fridays", "");
    indexed(&[
        ("files/drinks.md", TEA),
        ("files/beans.md", "Arabica from Ethiopia, roasted light.\n"),
        ("files/code.md", "The function parseHttpHeader lives in src/net/http_parser.rs since v1.2.3.\n"),
        ("files/tokyo.md", "東京都に住んでいます。\n"),
        ("records/learnings.jsonl", &records),
        (
            "knowledge/entities/person/Ann.md",
            "# Entity: Ann\n**Type:** person\n\n## Observations\n1. plays the cello\n2. lives in Oslo\n   - superseded by: lives in Rome\n3. lives in Rome\n\n## Relations\n- **works-at:** Acme\n",
        ),
        ("notes/projects/silica.md", "# Silica\nA search engine for memories.\n"),
        ("memgrove.toml", "format = 1 # brew"),
    ])
}

#[test]
fn every_shape_is_found_at_its_address() {
    let index = mixed();
    for (query, address) in [
        ("how hot should I brew tea", "file:/memories/drinks.md#green-tea"),
        ("which linter is fast", "record:00000001-0000-4000-8000-000000000000"),
        ("Who plays an instrument?", "entity:person/Ann#1"),
        ("search engine", "note:projects/silica"),
        ("httpHeader", "file:/memories/code.md"),
        ("http_parser.rs", "file:/memories/code.md"),
        ("v1.2.3", "file:/memories/code.md"),
        ("東京", "file:/memories/tokyo.md"),
        ("brewing", "file:/memories/drinks.md#green-tea"),
        ("arab*", "file:/memories/beans.md"),
        ("\"grind the beans\"", "file:/memories/drinks.md#coffee"),
    ] {
        assert_eq!(first(&index, query), address, "{query}");
    }
    assert!(!found(&index, "brew").iter().any(|address| address.contains("toml")));
}

#[test]
fn filters_narrow_what_is_found() {
    let index = mixed();
    assert!(found(&index, "beans -coffee").iter().all(|address| !address.contains("#coffee")));
    assert_eq!(first(&index, "fast shape:records"), "record:00000001-0000-4000-8000-000000000000");
    assert!(
        found(&index, "lives shape:entities type:person").iter().all(|a| a.starts_with("entity:person/Ann"))
    );
    assert_eq!(
        found(&index, "faster tag:python before:2024-01-02"),
        ["record:00000001-0000-4000-8000-000000000000"]
    );
    assert!(found(&index, "brew in:drinks.md").iter().all(|address| address.contains("drinks.md")));
    assert!(
        found(&index, "brew since:2025").is_empty() || !first(&index, "brew since:2025").contains("drinks")
    );
    assert_eq!(index.search("shape:cube", 5).map(drop).map_err(|error| error.kind()), Err(Kind::Invalid));
    assert_eq!(found(&index, "\"beans the grind\""), Vec::<String>::new());
}

#[test]
fn what_was_superseded_is_hidden_unless_asked_for() {
    let index = mixed();
    assert!(found(&index, "lives in Oslo").iter().all(|address| address != "entity:person/Ann#2"));
    assert_eq!(first(&index, "lives in Oslo is:hidden"), "entity:person/Ann#2");
}

#[test]
fn what_has_ended_or_not_begun_is_hidden_as_time_passes() {
    let text = "# Entity: Shop\n\n## Observations\n1. tea is cheap\n   - valid until: 2026-01-01T00:01:00Z\n\
                2. tea is dear\n   - valid from: 2026-01-01T00:01:00Z\n3. tea was free\n   - valid until: 2021-06-01\n";
    let clock = Arc::new(ManualClock::default());
    let store = store(&[("knowledge/entities/places/town/shop.md", text)]);
    let index = over(&store, Place::Ram, clock.clone());
    let numbers = |query: &str| -> Vec<String> {
        let addresses = found(&index, query);
        let mut found: Vec<String> = addresses
            .iter()
            .filter_map(|address| Some(address.strip_prefix("entity:town/Shop#")?.to_owned()))
            .collect();
        found.sort();
        found
    };
    let brief = || {
        index
            .brief(500)
            .unwrap()
            .snippets
            .iter()
            .map(|snippet| snippet.hit.address.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(numbers("tea"), ["1"]);
    assert!(brief().contains(&"entity:town/Shop#1".to_owned()));
    assert_eq!(numbers("tea is:hidden"), ["1", "2", "3"]);
    clock.advance_ms(120_000);
    assert_eq!(numbers("tea"), ["2"]);
    assert!(!brief().contains(&"entity:town/Shop#1".to_owned()));
}

#[test]
fn a_misspelled_word_is_corrected_only_when_nothing_matches() {
    let index = mixed();
    let search = index.search("arabcia", 5).unwrap();
    assert_eq!(search.corrected, [("arabcia".to_owned(), "arabica".to_owned())]);
    assert_eq!(search.hits[0].address, "file:/memories/beans.md");
    assert!(index.search("arabica", 5).unwrap().corrected.is_empty());
}

#[test]
fn links_lead_one_step_further() {
    let index = mixed();
    assert!(found(&index, "grind fresh").contains(&"file:/memories/beans.md".to_owned()));
}

#[test]
fn copies_of_one_fact_are_one_hit() {
    let files: Vec<(String, String)> = (0..10)
        .map(|i| {
            (format!("files/{i}.md"), "The wifi password of the office is hunter two, ask Bob.\n".to_owned())
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    let hits = indexed(&files).search("wifi password", 10).unwrap().hits;
    assert_eq!((hits.len(), hits[0].alike.len()), (1, 9));
}

#[test]
fn scores_are_the_sum_of_what_they_show_and_do_not_change() {
    let index = mixed();
    let again = mixed();
    let (one, other) = (index.search("tea for Ann", 10).unwrap(), again.search("tea for Ann", 10).unwrap());
    let told = |found: &memgrove::index::Found| -> Vec<_> {
        found.hits.iter().map(|hit| (hit.address.clone(), hit.parts.words, hit.parts.meaning)).collect()
    };
    assert_eq!(told(&one), told(&other));
    for hit in &one.hits {
        let sum: f32 = hit.parts.entries().iter().map(|(_, value)| value).sum();
        assert!((sum - hit.parts.total()).abs() < 1e-6);
    }
}

#[test]
fn an_answer_fits_its_budget_and_tells_what_it_left_out() {
    let text: String =
        (0..40).map(|i| format!("## Day {i}\nWe walked the dog in the park, number {i}.\n\n")).collect();
    let index = indexed(&[("files/walks.md", &text)]);
    for budget in [0, 10, 60, 200, 2_000] {
        let answer = index.recall("walking the dog", budget, 50).unwrap();
        assert!(answer.tokens <= budget, "{budget}");
        assert_eq!(answer.tokens, answer.snippets.iter().map(|snippet| snippet.tokens).sum::<usize>());
        assert!(answer.left_out + answer.snippets.len() > 0);
    }
    let brief = index.brief(300).unwrap();
    assert!(brief.tokens <= 300 && !brief.snippets.is_empty() && brief.left_out > 0);
}

#[test]
fn similar_leaves_out_what_it_started_from() {
    let index = mixed();
    let alike = index.similar("file:/memories/beans.md", 5).unwrap();
    assert!(alike.hits.iter().all(|hit| hit.address != "file:/memories/beans.md"));
    assert_eq!(
        index.similar("file:/memories/none.md", 5).map(drop).map_err(|error| error.kind()),
        Err(Kind::NotFound)
    );
}

#[test]
fn neighbours_are_read_around_an_address() {
    let index = mixed();
    let around = index.around("file:/memories/drinks.md#coffee", 1).unwrap();
    let told: Vec<&str> = around.iter().map(|hit| hit.address.as_str()).collect();
    assert_eq!(told, ["file:/memories/drinks.md#green-tea", "file:/memories/drinks.md#coffee"]);
}

#[test]
fn strange_queries_are_answered() {
    let index = mixed();
    for query in
        ["", "\"", "-", "*", "the", "\"\"", "-tea", "💥", "a:b:c", "tag:", "' OR 1=1 --", &"x".repeat(10_000)]
    {
        index.search(query, 5).unwrap();
    }
    let empty = indexed(&[]);
    assert!(empty.search("anything", 5).unwrap().hits.is_empty());
}
