//! What a query means: times, identifiers, filters, and how much of what it finds is shown.

use std::sync::Arc;

use memgrove::Index;
use memgrove::clock::{ManualClock, TimeZone};
use memgrove::index::{Options, Place, Reach, Source};

use super::{first, found, indexed, store};

const NOW: &str = "2026-11-16T12:00:00Z";

/// An index over files with dates, on a Monday.
fn dated(files: &[(&str, &str, &str)]) -> Index {
    dated_in(&TimeZone::UTC, files)
}

/// The same, for whoever asks in a zone.
fn dated_in(zone: &TimeZone, files: &[(&str, &str, &str)]) -> Index {
    let files: Vec<(String, String)> = files
        .iter()
        .map(|(name, date, text)| (format!("files/{name}.md"), format!("---\ndate: {date}\n---\n{text}\n")))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    let sources = vec![Source { under: String::new(), store: store(&files) }];
    let options = Options { zone: zone.clone(), ..Options::default() };
    Index::new(Place::Ram, sources, Arc::new(ManualClock::new(NOW.parse().unwrap())), options).unwrap()
}

fn names(addresses: Vec<String>) -> Vec<String> {
    addresses
        .into_iter()
        .map(|a| a.trim_start_matches("file:/memories/").trim_end_matches(".md").to_owned())
        .collect()
}

fn diary() -> Index {
    let old: Vec<(String, String)> = (0..13)
        .map(|i| {
            (
                format!("old{i}"),
                format!("It happened at the harbour, and what happened in number {i} happened."),
            )
        })
        .collect();
    let mut files: Vec<(&str, &str, &str)> =
        old.iter().map(|(name, text)| (name.as_str(), "2022-06-01", text.as_str())).collect();
    files.extend([
        ("trees", "2026-11-10", "Planted apple trees."),
        ("mayor", "2026-11-12", "Met the mayor."),
        ("wood", "2026-11-14", "Cut wood."),
        ("bread", "2026-11-15", "Baked bread."),
        ("skis", "2026-10-20", "Bought skis."),
        ("boots", "2026-10-27", "Sold boots in the October sale of 20 shops."),
        ("tent", "2023-07-15", "Slept in a tent."),
        ("late", "2023-01-05", "A decision on rents in spring."),
        ("early", "2022-12-30", "A decision on rents in autumn."),
        ("sale", "2024-03-01", "There was a sale in July 2023."),
    ]);
    dated(&files)
}

#[test]
fn times_in_words_are_understood() {
    let index = diary();
    for (query, first) in [
        ("what happened last week", &["bread", "wood", "mayor", "trees"][..]),
        ("what did I do in October?", &["boots", "skis"]),
        ("in October", &["boots", "skis"]),
        ("October", &["boots", "skis"]),
        ("July 2023", &["tent", "sale"]),
        ("what happened in July 2023", &["tent", "sale"]),
        ("20 Oct 2026", &["skis"]),
        ("2026-10-20", &["skis"]),
        ("day before yesterday", &["wood"]),
        ("before yesterday", &["wood", "mayor", "trees", "boots", "skis"]),
        ("since last Saturday", &["bread", "wood"]),
        ("since yesterday", &["bread"]),
        ("until last Saturday", &["wood", "mayor"]),
        ("last night", &["bread"]),
        ("last weekend", &["bread", "wood"]),
        ("past few days", &["bread", "wood"]),
        ("yesterday's", &["bread"]),
        ("trees since October", &["trees"]),
        ("decision of 2022", &["early", "late"]),
    ] {
        let mut told = names(found(&index, query));
        told.truncate(first.len());
        assert_eq!(told, first, "{query}");
    }
    assert_eq!(found(&index, "since yesterday").len(), 1);
    assert!(!index.search("since yesterday", 5).unwrap().wordless);
}

#[test]
fn days_are_those_of_the_zone_in_which_one_asks() {
    let files = [
        ("supper", "2026-11-16T02:00:00Z", "The owl called at supper."),
        ("noon", "2026-11-15T12:00:00Z", "The owl called at noon."),
        ("dawn", "2026-11-15T04:00:00Z", "The owl called at dawn."),
        ("written", "2026-11-15", "The owl called some time that day."),
    ];
    // At noon in UTC it is the 16th in New York, and the 17th in Auckland.
    let asked = |zone: &str, query: &str| {
        let index = dated_in(&TimeZone::posix(zone).unwrap(), &files);
        let mut told = names(found(&index, query));
        told.sort();
        told
    };
    let (new_york, auckland) = ("EST5EDT,M3.2.0,M11.1.0", "NZST-12NZDT,M9.5.0,M4.1.0/3");
    for (zone, query, told) in [
        ("UTC0", "yesterday", &["dawn", "noon", "written"][..]),
        (new_york, "yesterday", &["noon", "supper", "written"]),
        (auckland, "yesterday", &["noon", "supper"]),
        (auckland, "2 days ago", &["dawn", "written"]),
        (new_york, "on 15 November 2026", &["noon", "supper", "written"]),
        (new_york, "owl before:yesterday", &["dawn"]),
        (auckland, "owl since:yesterday", &["noon", "supper"]),
        (new_york, "owl since:24h", &["noon", "supper"]),
    ] {
        assert_eq!(asked(zone, query), told, "{query} in {zone}");
    }
    let hits = dated_in(&TimeZone::posix(new_york).unwrap(), &files).search("owl", 9).unwrap().hits;
    let day = |name: &str| {
        let hit = hits.iter().find(|hit| hit.address.contains(name)).unwrap();
        (hit.day.unwrap().to_string(), hit.when().unwrap())
    };
    assert_eq!(day("dawn"), ("2026-11-14".to_owned(), "2026-11-15T04:00:00Z".to_owned()));
    assert_eq!(day("written"), ("2026-11-15".to_owned(), "2026-11-15".to_owned()));
}

#[test]
fn where_nothing_is_from_then_that_is_told() {
    let index = diary();
    for query in ["last year", "five weeks ago", "what happened in May 2021"] {
        let told = index.search(query, 10).unwrap();
        assert!(told.untimely && told.hits.is_empty(), "{query}");
    }
    let told = index.search("trees five weeks ago", 10).unwrap();
    assert!(told.untimely && told.hits[0].address.contains("trees"));
    assert!(!index.search("trees last week", 10).unwrap().untimely);
}

#[test]
fn many_of_a_month_are_counted_as_many() {
    let names: Vec<String> = (0..150).map(|i| format!("n{i}")).collect();
    let texts: Vec<String> = (0..150).map(|i| format!("Item q{i}x.")).collect();
    let files: Vec<(&str, &str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (name.as_str(), "2026-10-20", text.as_str())).collect();
    let told = dated(&files).search("in October", 10).unwrap();
    assert_eq!((told.hits.len(), told.at_least), (10, true));
}

#[test]
fn numbers_are_never_corrected() {
    let index = indexed(&[(
        "files/a.md",
        "In 2026 port 151 of 3f9a2bc7 ran the code of an arabica shop: build7alpha.\n",
    )]);
    for query in ["in 2023", "1951", "3f9a2bc8", "node", "order99buidl"] {
        assert!(index.search(query, 5).unwrap().corrected.is_empty(), "{query}");
    }
    assert_eq!(index.search("arabcia", 5).unwrap().corrected[0].1, "arabica");
}

#[test]
fn one_identifier_is_looked_for_as_a_whole() {
    let index = indexed(&[
        ("files/a.md", "The function handleInvoice118 of v1.2.3 runs on 192.168.1.17, see node7.\n"),
        ("files/b.md", "The function handleQuery57 of v1.3 runs on 192.168.2.4 and has 2 or 3 callers.\n"),
        ("files/c.md", "There is a handle, an invoice, and 118 of them.\n"),
        ("files/zh.md", "我住在北京。\n"),
        ("files/zh2.md", "他住在南京，喜欢北方。\n"),
        ("files/ko.md", "오늘 회의가 있다.\n"),
        ("files/ko2.md", "회사원과 의사.\n"),
    ]);
    for (query, addresses) in [
        ("handleInvoice118", &["a", "c"][..]),
        ("handleInvoice119", &["a", "b", "c"]),
        ("v1.2.3", &["a"]),
        ("192.168.1.17", &["a"]),
        ("invoice", &["a", "c"]),
        ("node", &["a"]),
        ("北京", &["zh"]),
        ("京", &["zh", "zh2"]),
        ("회의", &["ko"]),
    ] {
        let mut told = names(found(&index, query));
        told.sort();
        assert_eq!(told, addresses, "{query}");
    }
    assert_eq!(index.search("handleInvoice118", 9).unwrap().total, 2);
}

#[test]
fn what_a_node_holds_is_of_its_type() {
    let meta = r#"{"id":"mem_project_001","type":"project","properties":{"title":"Atlas","tags":["infra"],"importance":"high"},"storage":{"path":"x"},"updated":"2020-01-01T00:00:00Z"}"#;
    let index = indexed(&[
        ("graph/_content/nodes/mem_project_001.meta.json", meta),
        ("graph/_content/nodes/mem_project_001.md", "It has twelve shards.\n"),
        ("graph/_content/nodes/mem_other_001.md", "It has no shards.\n"),
    ]);
    for filter in ["type:project", "tag:infra", "importance:high", "type:project since:2021"] {
        assert_eq!(first(&index, &format!("shards {filter}")), "node:mem_project_001", "{filter}");
    }
    assert_eq!(found(&index, "shards -type:project"), ["node:mem_other_001"]);
}

fn record(number: usize, content: &str, rest: &str) -> String {
    format!(
        "{{\"id\":\"{number:08x}-0000-4000-8000-000000000000\",\"type\":\"learning\",\"content\":\"{content}\",\"created_at\":\"2026-11-16T11:00:{number:02}Z\",\"updated_at\":\"2026-11-16T11:00:{number:02}Z\",\"accessed_at\":\"2026-11-16T11:00:00Z\",\"access_count\":0,\"tags\":[],\"archived\":false{rest}}}\n"
    )
}

#[test]
fn facts_that_were_told_one_after_another_stand_alone() {
    let records = record(1, "The accountant is called Ms Ito", "")
        + &record(2, "The staging database is orchid_stage", "")
        + &record(3, "Ann: the auditor comes on Monday", "")
        + &record(4, "Bob: then I shall bake", "");
    let index = indexed(&[("records/learnings.jsonl", &records)]);
    let beside = |query: &str| -> Vec<(String, bool)> {
        let hits = index.search(query, 10).unwrap().hits.into_iter();
        hits.map(|hit| (hit.text, hit.parts.neighbours > 0.0)).collect()
    };
    assert!(beside("who is the accountant").iter().all(|(text, beside)| !beside || !text.contains("orchid")));
    assert!(beside("who is the auditor").contains(&("Bob: then I shall bake".to_owned(), true)));
}

#[test]
fn a_brief_tells_what_matters_and_nothing_twice() {
    let important = ",\"importance\":\"high\"";
    let rules: String = (1..=6)
        .map(|i| record(i, &format!("Alice: critical rule number {i}, never to be broken"), important))
        .collect();
    let sections: String = (1..=6).map(|i| format!("## Part {i}\nWord number {i} of it.\n\n")).collect();
    let files: Vec<(String, String)> = (0..4)
        .map(|i| (format!("files/same{i}.md"), "The wifi password is hunter two.\n".to_owned()))
        .collect();
    let mut all: Vec<(&str, &str)> = files.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    all.extend([("records/learnings.jsonl", rules.as_str()), ("files/parts.md", &sections)]);
    let brief = indexed(&all).brief(2_000).unwrap();
    let count = |part: &str| brief.snippets.iter().filter(|snippet| snippet.text.contains(part)).count();
    assert_eq!((count("critical rule"), count("Word number"), count("wifi")), (6, 6, 1));
    assert_eq!(brief.left_out, 0, "copies are told");
}

#[test]
fn what_fits_faintly_is_left_out_and_counted() {
    let index = indexed(&[
        ("files/ann.md", "Ann has a peanut allergy, and carries a pen for it.\n"),
        ("files/bob.md", "Bob drinks coffee in the morning.\n"),
        ("files/eve.md", "Eve has no allergy of any kind and likes walnuts.\n"),
        ("files/car.md", "The car is in the garage.\n"),
    ]);
    let [near, all] = [
        index.recall("peanut allergy", Reach::Near, 900, 9),
        index.recall("peanut allergy", Reach::All, 900, 9),
    ]
    .map(Result::unwrap);
    assert_eq!(near.snippets[0].hit.address, "file:/memories/ann.md");
    assert!(near.snippets.iter().all(|snippet| !snippet.text.contains("coffee")));
    assert_eq!((near.snippets.len() + near.faint, all.faint), (all.snippets.len(), 0));
    assert!(near.faint > 0);
}

#[test]
fn notices_say_why_little_is_found() {
    let index = indexed(&[
        ("files/a.md", "We drink **green** tea, said Ann\u{2019}s friend.\n"),
        ("files/b.md", "---\narchived: true\n---\nOslo is cold.\n"),
    ]);
    for (query, hits, notice) in [
        ("\"green tea\"", 1, ""),
        ("\u{201c}green tea\u{201d}", 1, ""),
        ("\"ann's friend\"", 1, ""),
        ("\"een tea\"", 0, "nothing passes the filters"),
        ("tea in:nowhere", 0, "nothing is in `nowhere`"),
        ("Oslo", 0, "1 hidden: `is:hidden` finds what was superseded or archived"),
        ("the", 1, "no words to search for: these are the newest"),
        ("\u{1f389}", 0, ""),
        ("tea last year", 1, "nothing is from that time"),
        ("gren", 1, "nothing has `gren`: looked for `green`"),
    ] {
        let told = index.recall(query, Reach::Near, 900, 9).unwrap();
        assert_eq!((told.snippets.len(), told.notices.join("; ").as_str()), (hits, notice), "{query}");
    }
}

#[test]
fn what_does_not_fit_makes_room_for_what_does() {
    let long = "a-rather-long-name-of-a-folder/".repeat(4);
    let index = indexed(&[
        (&format!("files/{long}camp.md"), "The camping trip, the camping trip.\n"),
        ("files/b.md", "A camping trip.\n"),
    ]);
    let told = index.recall("camping trip", Reach::All, 40, 9).unwrap();
    assert_eq!((told.snippets.len(), told.left_out), (1, 1));
    assert_eq!(told.snippets[0].hit.address, "file:/memories/b.md");
}

#[test]
fn those_of_one_time_come_as_they_stand_in_their_files() {
    let text = "---\ndate: 2024-05-01\ntags: [x]\n---\n# B\none\n\n# A\ntwo\n\n# C\nthree\n";
    let index = indexed(&[("files/a.md", text)]);
    assert_eq!(names(found(&index, "tag:x")), ["a.md#b", "a.md#a", "a.md#c"]);
}

#[test]
fn what_is_derived_is_no_memory() {
    let index = indexed(&[
        ("notes/memory.md", "# Memory\n\n## Links\n\n- [[projects/silica]] - kestrel, tools\n"),
        ("notes/places.md", "# Places\n\n## Links\n\n- [[Paris]] - where we met the kestrel\n"),
        ("notes/projects/silica.md", "# Silica\nA search engine.\n"),
    ]);
    assert_eq!(found(&index, "kestrel"), ["note:places"]);
    assert!(index.search("memory", 5).unwrap().hits[0].links.contains(&"projects/silica".to_owned()));
    // Sentences are the note's own, or someone's.
    let list =
        |told: &str| format!("# Memory\n\n## Links\n\n- [[silica]] - {told}\n- [[tea]] - tea, drinks\n");
    let told = |described: &str| {
        let notes = [
            ("notes/memory.md", &*list(described)),
            ("notes/silica.md", "# Silica\n- A kestrel **sits** on it.\n"),
        ];
        let index = indexed(&notes);
        let found = index.search("kestrel", 5).unwrap();
        let brief = index.brief(500).unwrap();
        (found.total, found.hits.len(), brief.snippets.len())
    };
    assert_eq!(told("A kestrel sits on it…"), (1, 1, 1));
    assert_eq!(told("where we met the kestrel"), (2, 2, 2));
}

#[test]
fn a_time_is_named_by_all_of_its_words() {
    let decisions = "# Decisions\n\n## 2026-02-10 Kafka over RabbitMQ\nIt keeps events for replay.\n\n\
                     ## 2026-04-22 ClickHouse over Druid\nIt answers our dashboards faster.\n";
    let meeting = record(1, "The planning meeting is on 2026-12-03 in Berlin", "");
    let index = indexed(&[("files/decisions.md", decisions), ("records/learnings.jsonl", &meeting)]);
    let meeting = "record:00000001-0000-4000-8000-000000000000";
    let recalled = |query: &str| -> Vec<String> {
        let told = index.recall(query, Reach::Near, 900, 9).unwrap();
        assert!(told.notices.is_empty(), "{query}: {:?}", told.notices);
        names(told.snippets.into_iter().map(|snippet| snippet.hit.address).collect())
    };
    for (query, first) in [
        ("what was decided in April 2026?", "decisions.md#2026-04-22-clickhouse-over-druid"),
        ("decisions of February 2026", "decisions.md#2026-02-10-kafka-over-rabbitmq"),
        // A text may write the month as a number.
        ("what is on 3 December 2026?", meeting),
        ("meetings in December 2026", meeting),
    ] {
        let told = recalled(query);
        assert_eq!(told[0], first, "{query}: {told:?}");
    }
}

#[test]
fn the_best_from_a_named_time_are_never_weak() {
    let files: Vec<(String, String, String)> = (1..=9)
        .map(|i| (format!("old{i}"), format!("2025-03-0{i}"), "We chose a database for the shop.".to_owned()))
        .chain(
            (1..=5).map(|i| {
                (format!("new{i}"), format!("2026-04-0{i}"), format!("Druid gave way, number {i}."))
            }),
        )
        .collect();
    let files: Vec<(&str, &str, &str)> =
        files.iter().map(|(name, date, text)| (name.as_str(), date.as_str(), text.as_str())).collect();
    let index = dated(&files);
    let told = |query: &str| {
        let told = index.recall(query, Reach::Near, 900, 20).unwrap();
        let addresses = told.snippets.into_iter().map(|snippet| snippet.hit.address);
        addresses.filter(|address| address.contains("new")).count()
    };
    assert_eq!(told("which database was chosen in April 2026?"), 3);
    assert_eq!(told("which database was chosen?"), 0);
}

#[test]
fn a_hit_that_names_the_time_is_from_that_time_for_whoever_asks() {
    let records = record(1, "Incident 2026-09-17: Redis ran out of memory", "");
    let index = indexed(&[("records/learnings.jsonl", &records)]);
    for (query, hits, notice) in [
        ("2026-09-17", 1, ""),
        ("what happened on 17 September 2026?", 1, ""),
        ("2026-09-18", 0, "nothing is from that time"),
    ] {
        let told = index.recall(query, Reach::Near, 900, 9).unwrap();
        assert_eq!((told.snippets.len(), told.notices.join("; ").as_str()), (hits, notice), "{query}");
    }
}

#[test]
fn a_sign_makes_another_word() {
    let index = indexed(&[
        ("files/cpp.md", "C++ code lives in native/\n"),
        ("files/cs.md", "The billing service is written in C#, in its own folder since the spring.\n"),
        ("files/c.md", "The kernel module is in C.\n"),
    ]);
    for (query, addresses) in [
        ("C#", &["cs"][..]),
        ("c#", &["cs"]),
        ("C++", &["cpp"]),
        ("\"C++\"", &["cpp"]),
        ("code -C#", &["cpp"]),
    ] {
        assert_eq!(names(found(&index, query)), addresses, "{query}");
    }
    assert_eq!(found(&index, "C").len(), 3);
    assert_eq!(names(found(&index, "what is written in C#?"))[0], "cs");
}

#[test]
fn a_stop_word_alone_is_a_name_if_something_has_it() {
    let index = indexed(&[
        ("files/a.md", "Bob heads the IT department.\n"),
        ("files/b.md", "The US office opens in May.\n"),
        ("files/c.md", "Tell us when it is done, you may.\n"),
    ]);
    for (query, addresses) in [
        ("IT", &["a"][..]),
        ("it", &["a"]),
        ("US", &["b"]),
        ("\"US office\"", &["b"]),
        ("\"TELL US\"", &["c"]),
        ("May", &["b"]),
        ("the", &["a", "b", "c"]),
    ] {
        let mut told = names(found(&index, query));
        told.sort();
        assert_eq!(told, addresses, "{query}");
    }
    assert!(index.search("the", 5).unwrap().newest && !index.search("IT", 5).unwrap().newest);
    assert_eq!(names(found(&index, "which office is in the US"))[0], "b");
}

#[test]
fn a_question_is_not_about_its_asking() {
    let index = indexed(&[
        ("files/a.md", "The frontend keeps its state in Zustand.\n"),
        ("files/b.md", "We use use-package, and use it often.\n"),
        ("files/c.md", "Pinia is what nobody can use.\n"),
    ]);
    let told =
        index.recall("which state management do we use in the frontend?", Reach::Near, 900, 9).unwrap();
    let told = names(told.snippets.into_iter().map(|snippet| snippet.hit.address).collect());
    assert_eq!(told, ["a"]);
    assert_eq!(names(found(&index, "what do we use?"))[0], "b");
}
