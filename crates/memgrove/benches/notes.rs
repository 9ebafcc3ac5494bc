//! What notes cost, and how well the rules file them: `make bench`.
//!
//! With a folder of `docs.jsonl`, `queries.jsonl` and `qrels.jsonl` as its argument, the quality of the
//! rules is measured on that too: one store is one note, one document is one block.

#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)] // It measures the machine, and speaks.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use memgrove::backend::Note;
use memgrove::backends::{Local, LocalOptions, Ram};
use memgrove::clock::SystemClock;
use memgrove::shapes::notes::{Guarded, Mode, Notes, Search, picture};
use memgrove::vfs::RealFs;
use memgrove::{Locator, Memory, Store};
use serde_json::Value;

fn main() {
    println!("| figure | measured | bound |");
    println!("|---|--:|--:|");
    // `quality` measures nothing else.
    if !std::env::args().any(|argument| argument == "quality") {
        growth();
        searching();
    }
    let (asked, before, after, share, cache) = quality(&own_notes(), 10);
    report("own notes", asked, before, after, share, cache);
    let given = std::env::args().skip(1).find(|argument| Path::new(argument).is_dir());
    if let Some(folder) = given {
        let (asked, before, after, share, cache) = quality(&given_notes(Path::new(&folder)), 10);
        report("given notes", asked, before, after, share, cache);
    }
}

fn note() -> Note {
    Note { verb: "bench".into(), ..Note::default() }
}

fn notes_in(root: &Path) -> Notes {
    let tree = Arc::new(RealFs::open_root(root).unwrap());
    let store = Store::new(Local::open(LocalOptions::new(tree, Arc::new(SystemClock))).unwrap());
    Notes::new(Memory::new(store, Arc::new(SystemClock)), Locator::new("notes").unwrap())
}

fn in_ram() -> Notes {
    let memory = Memory::new(Store::new(Ram::default()), Arc::new(SystemClock));
    Notes::new(memory, Locator::new("notes").unwrap())
}

fn temp() -> tempfile::TempDir {
    // Beside the build, not in /tmp, which may be memory.
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&target).unwrap();
    tempfile::tempdir_in(target).unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

const SUBJECTS: [&str; 16] = [
    "Silica",
    "Alice",
    "Berlin",
    "Garden",
    "Website",
    "Postgres",
    "Kubernetes",
    "Lisbon",
    "Kitchen",
    "Bicycle",
    "Piano",
    "Router",
    "Backup",
    "Camera",
    "Violin",
    "Compiler",
];
const ASPECTS: [&str; 12] = [
    "uses pytest for testing",
    "was moved to the new office",
    "needs a review before the release",
    "likes green tea",
    "has a deadline in the spring",
    "depends on the shared library",
    "was discussed in the weekly meeting",
    "keeps its settings in one file",
    "costs more than it did last year",
    "was repaired after the storm",
    "is described in the handbook",
    "must not be exposed to the network",
];

fn fact(number: usize) -> String {
    let (subject, aspect) = (SUBJECTS[number * 7 % 16], ASPECTS[number * 11 % 12]);
    format!("{subject} {aspect}, as noted in entry {number} of the diary")
}

/// Ten thousand facts, one by one, on disk.
fn growth() {
    let root = temp();
    let notes = notes_in(root.path());
    let (mut early, mut late) = (Vec::new(), Vec::new());
    for number in 0..10_000 {
        let start = Instant::now();
        notes.write(note(), None, &fact(number), Mode::Update, &Guarded::default()).unwrap();
        match number {
            900..1_100 => early.push(start.elapsed()),
            9_800.. => late.push(start.elapsed()),
            _ => {}
        }
    }
    let (early, late) = (median(early), median(late));
    let ratio = late.as_secs_f64() / early.as_secs_f64();
    println!("| the 10,000th fact / the 1,000th | {ratio:.2} ({late:.1?} / {early:.1?}) | 2 |");
    let graph = notes.graph().unwrap();
    let depth = picture::tree(&graph).iter().map(|branch| branch.depth).max().unwrap();
    let largest = graph.nodes.iter().map(|node| node.size).max().unwrap();
    println!("| depth of {} notes | {depth} | 6 |", graph.nodes.len());
    println!("| the largest note, in bytes | {largest} | 10240 |");
}

/// A search over a thousand notes, by walking alone and with what the graph knows.
fn searching() {
    let root = temp();
    let notes = notes_in(root.path());
    for folder in 0..25 {
        let list: String =
            (0..40).map(|leaf| format!("- [[area{folder}/leaf{leaf}]] - leaf {leaf}\n")).collect();
        let at = root.path().join(format!("notes/area{folder}"));
        std::fs::create_dir_all(&at).unwrap();
        std::fs::write(
            root.path().join(format!("notes/area{folder}.md")),
            format!("# Area\n\n## Links\n\n{list}"),
        )
        .unwrap();
        for leaf in 0..40 {
            let facts: String =
                (0..60).map(|at| format!("- {}\n", fact(folder * 2_400 + leaf * 60 + at))).collect();
            let needle = format!("- the word needle{}x stands here\n", folder * 40 + leaf);
            std::fs::write(at.join(format!("leaf{leaf}.md")), format!("# Leaf\n\n{facts}{needle}")).unwrap();
        }
    }
    let areas: String = (0..25).map(|folder| format!("- [[area{folder}]] - area\n")).collect();
    std::fs::write(root.path().join("notes/memory.md"), format!("# Memory\n\n## Links\n\n{areas}")).unwrap();
    let timed = |what: &str| {
        let mut times = Vec::new();
        for round in 0..15 {
            let start = Instant::now();
            let found = notes.search(&Search::new(format!("Where is needle{}x?", round * 61))).unwrap();
            times.push(start.elapsed());
            assert!(found.results[0].excerpt.contains(&format!("needle{}x", round * 61)));
        }
        println!("| search over 1,026 notes, {what} | {:.1?} | 2 s |", median(times));
    };
    timed("walking");
    notes.keep_graph().unwrap();
    timed("with the graph's signatures");
}

/// A note and the questions that are asked of it, each with the blocks that answer it.
struct Asked {
    text: String,
    questions: Vec<(String, Vec<String>)>,
}

fn report(what: &str, asked: usize, before: usize, after: usize, share: f64, cache: f64) {
    println!("| {what}: {asked} questions find a block, before the split | {before} | |");
    println!("| the same after it, reading at most 40 % of the bytes | {after} | {before} |");
    println!(
        "| the share of the notes' bytes that is read | {share:.2} (of which the index is {cache:.2}) | 0.40 |"
    );
}

/// How many questions find a block among the first results: in one large note, and in what came of it.
fn quality(all: &[Asked], results: usize) -> (usize, usize, usize, f64, f64) {
    let (mut asked, mut before, mut after, mut share, mut cache) = (0, 0, 0, 0.0, 0.0);
    for one in all {
        let whole = in_ram().with_bytes_max(usize::MAX);
        let parts = in_ram();
        for notes in [&whole, &parts] {
            notes.write(note(), None, &one.text, Mode::Replace, &Guarded::default()).unwrap();
            notes.keep_graph().unwrap();
        }
        // What the index beside the notes costs to read is part of the bound.
        let bytes: u64 = parts.list().unwrap().iter().map(|info| info.size_bytes).sum();
        let index =
            parts.memory().store().read(&Locator::new("notes/.metadata/index.json").unwrap()).unwrap();
        for (question, answers) in &one.questions {
            let found = |notes: &Notes, bytes_max| {
                let search = Search { max_results: results, bytes_max, ..Search::new(question.clone()) };
                let searched = notes.search(&search).unwrap();
                let hit = searched
                    .results
                    .iter()
                    .any(|result| answers.iter().any(|answer| result.excerpt.contains(answer)));
                (usize::from(hit), searched.bytes_read)
            };
            asked += 1;
            before += found(&whole, None).0;
            let (hit, read) = found(&parts, Some(bytes as usize * 2 / 5));
            after += hit;
            share += read as f64 / bytes as f64;
            cache += index.len() as f64 / bytes as f64;
        }
    }
    (asked, before, after, share / asked as f64, cache / asked as f64)
}

/// Facts with questions in other words, by topic.
const OWN_NOTES: [(&str, &[(&str, &str)]); 6] = [
    (
        "Silica",
        &[
            (
                "The test suite runs with pytest and the xdist plugin on eight workers",
                "How are Silica's tests run in parallel?",
            ),
            ("Releases are tagged on Thursdays after the smoke checks pass", "When are releases tagged?"),
            ("The GitHub integration signs its webhooks with a rotating secret", "How are webhooks signed?"),
            (
                "Ruff replaced flake8 because it lints the tree in under a second",
                "Which linter replaced flake8?",
            ),
        ],
    ),
    (
        "Kitchen",
        &[
            (
                "The oven runs twenty degrees hot, so bake bread at 210 instead of 230",
                "What should I bake bread at in our oven?",
            ),
            (
                "Sourdough starter is fed with rye flour every evening",
                "How often is the sourdough starter fed?",
            ),
            ("Maria is allergic to hazelnuts and cannot eat the praline", "Who is allergic to hazelnuts?"),
            (
                "The dishwasher filter has to be rinsed on the first of the month",
                "When must the dishwasher filter be rinsed?",
            ),
        ],
    ),
    (
        "Travel",
        &[
            (
                "The night train to Lisbon leaves from platform nine at 21:40",
                "Which platform does the train to Lisbon leave from?",
            ),
            (
                "Passports expire in March and need six months of validity for Japan",
                "When do the passports expire?",
            ),
            (
                "The hotel in Kyoto keeps luggage for free before check-in",
                "Does the hotel in Kyoto keep luggage?",
            ),
            (
                "Grandmother's house key hangs behind the blue shutter",
                "Where does the key of grandmother's house hang?",
            ),
        ],
    ),
    (
        "Music",
        &[
            ("The piano was tuned to 442 Hz by Mr Okafor in October", "Who tuned the piano?"),
            (
                "Scales are practised in thirds before the Chopin nocturne",
                "What is practised before the nocturne?",
            ),
            (
                "The violin bow needs new hair from the shop on Linden street",
                "Where does the bow get new hair?",
            ),
            (
                "Choir rehearsal moved to Wednesday because of the concert hall",
                "On which day is choir rehearsal?",
            ),
        ],
    ),
    (
        "Servers",
        &[
            (
                "Postgres backups are encrypted with age and kept for ninety days",
                "How long are database backups kept?",
            ),
            (
                "The router's admin page listens on 192.168.7.1 port 8443",
                "What port does the router admin page use?",
            ),
            ("Certificates are renewed by a timer at 03:15 every Sunday", "When are certificates renewed?"),
            ("The old NAS reports a failing disk in bay three", "Which bay of the NAS has a failing disk?"),
        ],
    ),
    (
        "Garden",
        &[
            (
                "Tomatoes are watered at dawn with rain from the copper barrel",
                "With what are tomatoes watered?",
            ),
            (
                "The apple tree by the gate is a Boskoop grafted in 1998",
                "Which variety is the apple tree by the gate?",
            ),
            ("Slugs avoid the bed that has crushed eggshells around it", "What keeps slugs away?"),
            (
                "The greenhouse vent opens by itself at 26 degrees",
                "At what temperature does the greenhouse vent open?",
            ),
        ],
    ),
];

/// Facts under headings, and questions in other words.
fn own_notes() -> Vec<Asked> {
    let mut text = String::from("# Memory\n");
    let mut questions = Vec::new();
    for (topic, facts) in OWN_NOTES {
        text.push_str(&format!("\n## {topic}\n\n"));
        for (fact, question) in facts {
            text.push_str(&format!("- {fact}\n"));
            questions.push((format!("{topic}: {question}"), vec![(*fact).to_owned()]));
            questions.push(((*question).to_owned(), vec![(*fact).to_owned()]));
        }
        for number in 0..18 {
            let said = ASPECTS[(number * 5 + topic.len()) % ASPECTS.len()];
            text.push_str(&format!("- {topic} {said}, which came up on page {number} of the old notebook\n"));
        }
    }
    vec![Asked { text, questions }]
}

/// Conversations as notes: a heading for each session, an item for each turn.
fn given_notes(folder: &Path) -> Vec<Asked> {
    let lines = |name: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut blocks: HashMap<String, String> = HashMap::new();
    let mut last = String::new();
    for document in lines("docs.jsonl") {
        let of = |name: &str| document[name].as_str().unwrap_or("").to_owned();
        let text = texts.entry(of("store")).or_insert_with(|| "# Memory\n".to_owned());
        if last != of("session") {
            text.push_str(&format!("\n## {} on {}\n\n", of("title"), of("date")));
            last = of("session");
        }
        let said =
            format!("{}: {}", of("speaker"), of("text").split_whitespace().collect::<Vec<_>>().join(" "));
        text.push_str(&format!("- {said}\n"));
        // An excerpt ends after 400 characters.
        blocks.insert(of("id"), said.chars().take(390).collect());
    }
    let mut answers: HashMap<String, Vec<String>> = HashMap::new();
    for line in lines("qrels.jsonl") {
        let ids = line["rel"].as_object().unwrap().keys();
        answers.insert(
            line["qid"].as_str().unwrap().to_owned(),
            ids.filter_map(|id| blocks.get(id).cloned()).collect(),
        );
    }
    let mut asked: BTreeMap<String, Asked> =
        texts.into_iter().map(|(store, text)| (store, Asked { text, questions: Vec::new() })).collect();
    for query in lines("queries.jsonl") {
        let (store, id) = (query["store"].as_str().unwrap(), query["id"].as_str().unwrap());
        let found = answers.get(id).filter(|found| !found.is_empty());
        if let (Some(one), Some(found)) = (asked.get_mut(store), found) {
            one.questions.push((query["text"].as_str().unwrap().to_owned(), found.clone()));
        }
    }
    asked.into_values().collect()
}
