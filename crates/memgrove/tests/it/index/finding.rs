//! What a search finds, and in which order.

use std::sync::Arc;

use memgrove::Kind;
use memgrove::clock::ManualClock;
use memgrove::index::{Place, Reach};

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
        let answer = index.recall("walking the dog", Reach::Near, budget, 50).unwrap();
        assert!(answer.tokens <= budget, "{budget}");
        assert_eq!(answer.tokens, answer.snippets.iter().map(|snippet| snippet.tokens).sum::<usize>());
        assert!(answer.left_out + answer.snippets.len() > 0);
    }
    let brief = index.brief(300).unwrap();
    assert!(brief.tokens <= 300 && !brief.snippets.is_empty() && brief.left_out > 0);
}

#[test]
fn a_memory_of_one_word_is_not_counted_as_like_itself() {
    let alike = |records: &str| {
        let index = indexed(&[("records/learnings.jsonl", records)]);
        let own = "record:00000001-0000-4000-8000-000000000000";
        let alike = index.recall_similar(own, Reach::Near, 1_000, 10).unwrap();
        (alike.snippets.len(), alike.left_out, alike.total)
    };
    let deploy = record(1, "deploy", "");
    assert_eq!(alike(&deploy), (0, 0, 0));
    assert_eq!(alike(&(deploy + &record(2, "We deploy on Fridays", ""))), (1, 0, 1));
    // Nor is one of which no word is looked for.
    assert_eq!(alike(&record(1, "the", "")), (0, 0, 0));
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

/// Every query finds these addresses and no others, in any order.
fn check_found(index: &memgrove::Index, table: &[(&str, &[&str])]) {
    for (query, addresses) in table {
        let mut told = found(index, query);
        told.sort();
        let told: Vec<&str> =
            told.iter().map(|address| address.trim_start_matches("file:/memories/")).collect();
        assert_eq!(told, *addresses, "{query}");
    }
}

#[test]
fn signs_mean_what_they_say() {
    let index = indexed(&[
        (
            "files/green.md",
            "---\ntags: [hot drinks, bug]\ntype: plan\n---\nWe drink green tea every morning.\n",
        ),
        ("files/black.md", "---\ntype: list\n---\nBlack tea needs milk. The deployment waits.\n"),
        ("files/My Folder/deploy.md", "Tea, then run scripts/deploy.sh to deploy.\n"),
        (
            "files/paths.md",
            "See src/index_file.rs, conf/app.config.toml and https://example.com/docs/setup.html?x=1.\n",
        ),
        ("files/pools.md", "The class SQLiteConnectionPools holds them.\n"),
    ]);
    check_found(
        &index,
        &[
            ("tea -\"green tea\"", &["My Folder/deploy.md", "black.md"]),
            ("tea -scripts/deploy.sh", &["black.md", "green.md"]),
            ("tea -tag:bug", &["My Folder/deploy.md", "black.md"]),
            ("tea -type:plan -in:\"My Folder\"", &["black.md"]),
            ("tea -deplo*", &["green.md"]),
            ("tea type:plan type:list", &["black.md", "green.md"]),
            ("tea in:\"My Folder\"", &["My Folder/deploy.md"]),
            ("tea tag:\"hot drinks\"", &["green.md"]),
            ("\"index_file.rs\"", &["paths.md"]),
            ("\"app.config.toml\"", &["paths.md"]),
            ("\"https://example.com/docs/setup.html\"", &["paths.md"]),
            ("\"file_index.rs\"", &[]),
            ("morni*", &["green.md"]),
            ("deploym*", &["black.md"]),
            ("deplo*", &["My Folder/deploy.md", "black.md"]),
            ("every*", &["green.md"]),
            ("sqliteconnectionpools", &["pools.md"]),
        ],
    );
    assert!(index.search("sqliteconnectionpools", 5).unwrap().corrected.is_empty());
    assert_eq!(index.search("tea -since:7d", 5).map(drop).map_err(|error| error.kind()), Err(Kind::Invalid));
}

#[test]
fn headings_and_names_are_found() {
    let index = indexed(&[
        ("files/zephyr.md", "# Project Gale\n\n## Setup\nRun make.\n\n## Call the plumber\n"),
        ("files/garden-plan.md", "# Beds\nBeans and peas.\n"),
    ]);
    for (query, address) in [
        ("gale", "file:/memories/zephyr.md#setup"),
        ("plumber", "file:/memories/zephyr.md#call-the-plumber"),
        ("zephyr", "file:/memories/zephyr.md#setup"),
        ("garden", "file:/memories/garden-plan.md"),
    ] {
        assert!(found(&index, query).contains(&address.to_owned()), "{query}: {:?}", found(&index, query));
    }
    let similar = index.similar("file:/memories/zephyr.md", 5).unwrap();
    assert!(similar.hits.iter().all(|hit| !hit.address.contains("zephyr")));
}

#[test]
fn what_differs_is_never_one_hit() {
    let ann = "# Entity: Ann\n**Type:** person\n\n## Observations\n1. prefers tabs\n";
    let index = indexed(&[
        ("knowledge/entities/person/Ann.md", ann),
        ("knowledge/entities/person/Bob.md", &ann.replace("Ann", "Bob")),
        (
            "files/a.md",
            "The nightly export job of the shop is running on host alpha since spring, says the operations team.\n",
        ),
        (
            "files/b.md",
            "The nightly export job of the shop is not running on host alpha since spring, says the operations team.\n",
        ),
        ("files/c.md", "# Production\nThe port is low.\n\n# Staging\nThe port is low.\n"),
        ("files/d.md", "In room 12 the red, green, blue, white, black, pink, grey and brown chairs stand.\n"),
        ("files/e.md", "In room 13 the red, green, blue, white, black, pink, grey and brown chairs stand.\n"),
        ("files/f.md", "The editor prefers spaces over tabs.\n"),
        ("files/g.md", "The editor prefers tabs over spaces.\n"),
        ("files/h.md", "The tool needs python >=3.11.\n"),
        ("files/i.md", "The tool needs python <3.11.\n"),
    ]);
    check_found(
        &index,
        &[
            ("tabs", &["entity:person/Ann#1", "entity:person/Bob#1", "f.md", "g.md"]),
            ("editor", &["f.md", "g.md"]),
            ("python", &["h.md", "i.md"]),
            ("export", &["a.md", "b.md"]),
            ("port", &["c.md#production", "c.md#staging"]),
            ("chairs", &["d.md", "e.md"]),
        ],
    );
    let brief = index.brief(2_000).unwrap().snippets;
    assert!(brief.len() > 10 && brief.iter().all(|snippet| snippet.hit.alike.is_empty()), "{brief:?}");
}

#[test]
fn copies_are_similar() {
    let names: Vec<String> = (0..10).map(|i| format!("files/{i}.md")).collect();
    let files: Vec<(&str, &str)> =
        names.iter().map(|key| (key.as_str(), "The wifi password is hunter two.\n")).collect();
    let index = indexed(&files);
    let hits = index.similar("file:/memories/3.md", usize::MAX).unwrap().hits;
    assert_eq!((hits.len(), hits[0].alike.len()), (1, 8));
}

#[test]
fn a_time_told_from_now_is_found_among_many() {
    let clock = memgrove::clock::ManualClock::new("2026-11-16T12:00:00Z".parse().unwrap());
    let mut files: Vec<(String, String)> = (0..150)
        .map(|i| {
            (format!("files/n{i}.md"), format!("---\ndate: 2026-11-16\n---\nWe met and worked on item{i}.\n"))
        })
        .collect();
    files.push(("files/old.md".into(), "---\ndate: 2026-11-10\n---\nPlanted seven apple trees.\n".into()));
    files.push(("files/other.md".into(), "---\ndate: 2026-11-11\n---\nWe met the mayor.\n".into()));
    let files: Vec<(&str, &str)> = files.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    let index = super::over(&super::store(&files), memgrove::index::Place::Ram, std::sync::Arc::new(clock));
    let (old, other) = ("file:/memories/old.md", "file:/memories/other.md");
    for (query, first_of_all) in [
        ("last week", other),
        ("what did I do last week", other),
        ("6 days ago", old),
        ("whom have we met last week", other),
        ("trees last week", old),
    ] {
        assert_eq!(first(&index, query), first_of_all, "{query}");
    }
    let mut told = found(&index, "last week");
    told.sort();
    assert_eq!(told, [old, other]);
}

#[test]
fn what_is_counted_adds_up() {
    let mut files: Vec<(String, String)> = (0..120)
        .map(|i| {
            (format!("files/n{i}.md"), format!("---\ntags: [bug]\n---\nThe quokka{i} sleeps, quokka.\n"))
        })
        .collect();
    files.extend(
        (0..5).map(|i| (format!("files/same{i}.md"), "---\ntags: [bug]\n---\nA quokka.\n".to_owned())),
    );
    let files: Vec<(&str, &str)> = files.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    let index = indexed(&files);
    for (query, limit, budget, all) in [
        ("tag:bug", 3, 9_000, 125),
        ("tag:bug", 0, 9_000, 125),
        ("quokka", 50, 60, 125),
        ("quokka", 50, 900, 125),
        ("quokka*", 500, 90_000, 125),
    ] {
        let told = index.recall(query, Reach::Near, budget, limit).unwrap();
        let alike: usize = told.snippets.iter().map(|snippet| snippet.hit.alike.len()).sum();
        let counted = (told.total, told.snippets.len() + alike + told.left_out, told.at_least);
        assert_eq!(counted, (all, all, false), "{query} {limit} {budget}");
        assert!(told.snippets.len() <= limit && told.tokens <= budget);
    }
}

#[test]
fn where_no_word_stands_only_what_is_close_is_found() {
    let index = mixed();
    let told = index.search("walrus", 10).unwrap();
    assert!(told.wordless && told.hits.is_empty(), "{:?}", told.hits);
    assert!(!index.search("tea", 10).unwrap().wordless);
}

#[test]
fn long_text_without_spaces_is_cut_and_shown() {
    let text = "我们每天早上喝绿茶。".repeat(100) + "密码是蓝鲸。" + &"晚上喝红茶。".repeat(100);
    let index = indexed(&[("files/cha.md", &text)]);
    let told = index.recall("蓝鲸", Reach::Near, 200, 5).unwrap();
    assert!(told.snippets[0].text.contains("蓝鲸"), "{:?}", told.snippets);
    assert!(told.snippets[0].text.chars().count() < 200);
}
