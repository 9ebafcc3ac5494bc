//! Notes: one file that grows into a linked memory.

mod blocks;
mod by_hand;
mod every_block;
mod filing;
mod growing;
mod models;
mod moving;
mod obsidian;
mod server;
mod tending;

use std::collections::BTreeMap;
use std::sync::Arc;

use memgrove::backend::Note;
use memgrove::backends::Ram;
use memgrove::clock::ManualClock;
use memgrove::shapes::notes::{Accelerator, Guarded, MergeSize, Mode, Notes, Search, WriteResult};
use memgrove::{Kind, Locator, Memory, Store};

fn at(key: &str) -> Locator {
    Locator::new(key).unwrap()
}

fn noted() -> Note {
    Note { verb: "test".into(), ..Note::default() }
}

fn notes() -> Notes {
    let memory = Memory::new(Store::new(Ram::default()), Arc::new(ManualClock::default()));
    Notes::new(memory, at("notes"))
}

fn write(notes: &Notes, path: &str, content: &str, mode: Mode) -> WriteResult {
    notes.write(noted(), Some(path), content, mode, &Guarded::default()).unwrap().outcome
}

fn update(notes: &Notes, content: &str) -> WriteResult {
    write(notes, "", content, Mode::Update)
}

/// Every file beneath the notes.
fn files(notes: &Notes) -> BTreeMap<String, String> {
    let store = notes.memory().store();
    let all = store.list_all(&at("notes")).unwrap();
    all.into_iter()
        .filter(|info| !info.is_dir())
        .map(|info| (info.locator.key().to_owned(), store.read(&info.locator).unwrap()))
        .collect()
}

fn read(notes: &Notes, path: &str) -> String {
    notes.read(Some(path)).unwrap().0
}

/// Facts about three projects, enough to split a note.
fn three_projects() -> String {
    let mut text = String::from("# Memory\n\nWhat I know.\n");
    for (name, about) in [
        ("Silica", "pytest fixtures and ruff linting"),
        ("Website", "static pages and deployment"),
        ("Garden", "tomatoes and watering"),
    ] {
        text.push_str(&format!("\n## {name}\n\n"));
        for number in 0..40 {
            text.push_str(&format!(
                "- {name} note {number}: something about {about} worth keeping for later\n"
            ));
        }
    }
    text
}

#[test]
fn the_first_fact_begins_the_memory() {
    let notes = notes();
    assert_eq!(notes.read(None).unwrap_err().kind(), Kind::NotFound);
    let result = update(&notes, "I'm working on a Python project called Silica");
    assert_eq!((result.success, result.path.as_str(), result.split_triggered), (true, "memory", false));
    let text = read(&notes, "");
    assert_eq!(
        text,
        "# Memory\n\n- I'm working on a Python project called Silica\n\n## Metadata\n\n\
         last_updated: 2026-01-01T00:00:00Z\nsize_bytes: 123\n"
    );
    assert_eq!((text.len(), result.size_bytes), (123, 123));
    update(&notes, "Silica uses pytest for testing and ruff for linting");
    assert!(read(&notes, "memory").contains("Silica\n- Silica uses pytest"));
}

#[test]
fn hand_edits_and_unknown_sections_survive() {
    let notes = notes();
    let by_hand = "---\ntags: [a]\n---\n\n# Mine\n\nintro  \nline two\n\n## Links\nmy own remark\n- [[x]] - there\n\n\
                   ## Metadata\n\nmood: good\nsize_bytes: 1\n\nstray text\n\n## Afterword\n\n\tindented\n";
    notes.memory().store().write(&at("notes/memory.md"), by_hand).unwrap();
    write(&notes, "memory", "appended", Mode::Append);
    let text = read(&notes, "memory");
    let expected = by_hand
        .replace(
            "size_bytes: 1\n",
            &format!("size_bytes: {}\nlast_updated: 2026-01-01T00:00:00Z\n", text.len()),
        )
        .replace("\tindented\n", "\tindented\n\nappended\n");
    assert_eq!(text, expected);
}

#[test]
fn a_fact_finds_its_heading_and_is_not_kept_twice() {
    let notes = notes();
    write(&notes, "", "# Memory\n\n## Editors\n\n- vim is fine\n\n## Food\n\n- likes soup\n", Mode::Replace);
    let result = update(&notes, "The best soup is tomato soup, a warm food");
    assert!(result.reason.contains("Food"), "{}", result.reason);
    let text = read(&notes, "");
    assert!(text.contains("- likes soup\n- The best soup is tomato soup, a warm food\n"), "{text}");
    let again = update(&notes, "Likes soup!");
    assert_eq!((again.already_known, read(&notes, "")), (1, text));
    let changed = update(&notes, "Editor: helix");
    assert_eq!(changed.superseded, 0);
    let changed = update(&notes, "Editor: emacs");
    assert_eq!(changed.superseded, 1);
    assert!(read(&notes, "").contains("- Editor: helix *(superseded 2026-01-01)*\n- Editor: emacs\n"));
}

#[test]
fn a_large_note_comes_apart_by_its_headings_and_can_be_put_back() {
    let notes = notes();
    let text = three_projects();
    let result = write(&notes, "", &text, Mode::Replace);
    assert!(result.split_triggered && result.size_bytes < 10_240, "{result:?}");
    assert_eq!(result.new_files, ["garden", "silica", "website"]);
    let root = read(&notes, "");
    assert!(root.starts_with("# Memory\n\nWhat I know.\n\n## Links\n\n- [[silica]] - "), "{root}");
    assert!(read(&notes, "silica").starts_with("## Silica\n\n- Silica note 0"), "{}", read(&notes, "silica"));
    assert!(read(&notes, "silica").contains("split_from: memory\n"));
    let fact = update(&notes, "Silica now needs Python 3.12");
    assert_eq!(fact.path, "silica");
    let (decisions, damaged) = notes.decisions().unwrap();
    assert_eq!((decisions[0].what.as_str(), decisions[1].what.as_str(), damaged), ("place", "split", 0));
    assert!(decisions[1].reason.contains("3 sections"), "{decisions:?}");
    let refused = notes.merge(noted(), None, &[], MergeSize::Fitting, &Guarded::default()).unwrap_err();
    assert_eq!(refused.kind(), Kind::Full);
    let merged = notes
        .merge(noted(), None, &["garden".into()], MergeSize::Fitting, &Guarded::default())
        .unwrap()
        .outcome;
    assert_eq!(merged.merged, ["garden"]);
    let root = read(&notes, "");
    assert!(root.contains("## Garden\n\n- Garden note 0") && !root.contains("[[garden]]"), "{root}");
    assert_eq!(notes.read(Some("garden")).unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn the_list_and_the_graph_know_every_link() {
    let notes = notes();
    write(&notes, "", &three_projects(), Mode::Replace);
    write(&notes, "silica", "see also [[garden|the plants]] and `[[not this]]`", Mode::Append);
    write(&notes, "loose/end", "a note of its own", Mode::Update);
    let list = notes.list().unwrap();
    let named: Vec<&str> = list.iter().map(|info| info.path.as_str()).collect();
    assert_eq!(named, ["garden", "loose/end", "memory", "silica", "website"]);
    assert_eq!(list[0].linked_from, ["memory", "silica"]);
    assert_eq!(list[2].links_to, ["silica", "website", "garden", "loose/end"]);
    assert_eq!(list[3].links_to, ["garden"]);
    let graph = notes.graph().unwrap();
    let label = |id: &str| graph.nodes.iter().find(|node| node.id == id).unwrap().label.clone();
    assert_eq!((label("memory"), label("silica")), ("Root".to_owned(), "Silica".to_owned()));
    notes.settle().unwrap();
    let kept: serde_json::Value =
        serde_json::from_str(&notes.memory().store().read(&at("notes/.metadata/graph.json")).unwrap())
            .unwrap();
    assert_eq!(kept["nodes"], serde_json::to_value(&graph.nodes).unwrap());
    assert_eq!(notes.graph().unwrap(), graph, "the cache changes nothing");
    notes.memory().store().write(&at("notes/.metadata/graph.json"), "damaged").unwrap();
    assert_eq!(notes.graph().unwrap(), graph, "nor does its damage");
}

#[test]
fn search_follows_links_and_says_which_way_it_went() {
    let notes = notes();
    write(&notes, "", &three_projects(), Mode::Replace);
    write(&notes, "silica", "Circles are fine: [[memory]]. Silica uses pytest with xdist.", Mode::Append);
    let searched = notes.search(&Search::new("How does Silica handle xdist?")).unwrap();
    let best = &searched.results[0];
    assert_eq!((best.path.as_str(), best.context.as_str()), ("silica", "memory > silica"));
    assert!(best.excerpt.contains("xdist") && (0.0..=1.0).contains(&best.relevance_score), "{best:?}");
    assert_eq!(notes.search(&Search::new("watering tomatoes")).unwrap().results[0].path, "garden");
    assert!(notes.search(&Search::new("zeppelin")).unwrap().results.is_empty());
    assert_eq!(notes.search(&Search::new("  ")).unwrap_err().kind(), Kind::Invalid);
    let bounded = Search { notes_max: 2, ..Search::new("Silica") };
    assert!(notes.search(&bounded).unwrap().bounded);
}

/// Knows which notes hold a word by reading them all: slow, but what an index would say.
struct Reader(Notes);

impl Accelerator for Reader {
    fn holders(&self, query: &str) -> memgrove::Result<Option<Vec<String>>> {
        let asked = memgrove::text::words::asked(query);
        let list = self.0.list()?.into_iter().map(|info| info.path);
        let holds = |path: &String| {
            memgrove::text::words::overlap(&asked, &format!("{path} {}", read(&self.0, path))) > 0
        };
        Ok(Some(list.filter(holds).collect()))
    }
}

#[test]
fn whatever_speeds_a_search_up_changes_no_answer() {
    let notes = notes().with_bytes_max(2_048);
    write(&notes, "", &three_projects(), Mode::Replace);
    let questions =
        ["watering tomatoes", "Silica note 7", "ruff", "zeppelin", "deployment of static pages", "Garden"];
    let plain: Vec<_> = questions.map(|question| notes.search(&Search::new(question)).unwrap()).to_vec();
    notes.keep_graph().unwrap();
    let known: Vec<_> = questions.map(|question| notes.search(&Search::new(question)).unwrap()).to_vec();
    let indexed = notes.clone().with_accelerator(Arc::new(Reader(notes.clone())));
    for ((question, plain), known) in questions.iter().zip(&plain).zip(&known) {
        let indexed = indexed.search(&Search::new(*question)).unwrap();
        assert_eq!(plain.results, known.results, "{question}");
        assert_eq!(plain.results, indexed.results, "{question}");
        assert!(indexed.bytes_read <= known.bytes_read, "{question}");
    }
    assert_eq!(
        (known[3].visited, plain[3].visited > 9),
        (0, true),
        "what is nowhere is not looked for everywhere"
    );
}

#[test]
fn small_children_are_proposed_for_a_merge() {
    let notes = notes().with_bytes_max(2048);
    write(&notes, "", &three_projects(), Mode::Replace);
    assert!(notes.proposals().unwrap().is_empty());
    let notes = notes.with_bytes_max(1 << 20);
    assert!(notes.proposals().unwrap().iter().any(|proposal| !proposal.children.is_empty()));
}

#[test]
fn a_version_that_is_expected_is_checked() {
    let notes = notes();
    update(&notes, "one");
    let (_, version) = notes.read(None).unwrap();
    let guarded = Guarded { expect: Some(version) };
    notes.write(noted(), None, "two", Mode::Update, &guarded).unwrap();
    let error = notes.write(noted(), None, "three", Mode::Update, &guarded).unwrap_err();
    assert_eq!(error.code_name(), Some("VERSION_MISMATCH"));
}

#[test]
fn a_split_can_be_undone_after_later_decisions() {
    let notes = notes();
    let text = three_projects();
    write(&notes, "", "first", Mode::Update);
    let (before, _) = notes.read(None).unwrap();
    let done = notes.write(noted(), None, &text, Mode::Replace, &Guarded::default()).unwrap();
    write(&notes, "elsewhere/a", "another note", Mode::Append);
    let undone = notes.memory().undo(noted(), &memgrove::memory::UndoScope::Change(done.change.unwrap()));
    // The root was changed since: it lists the other note now.
    assert_eq!(undone.unwrap_err().kind(), Kind::Conflict);
    let split = notes.split(noted(), Some("silica"), &Guarded::default()).unwrap();
    update(&notes, "Garden beds are raised");
    let silica = files(&notes)["notes/silica.md"].clone();
    let change = memgrove::memory::UndoScope::Change(split.change.unwrap());
    notes.memory().undo(noted(), &change).unwrap();
    assert_ne!(files(&notes)["notes/silica.md"], silica);
    assert!(!files(&notes).keys().any(|name| name.starts_with("notes/silica/")));
    assert!(!before.is_empty());
    let (decisions, damaged) = notes.decisions().unwrap();
    assert_eq!((decisions[0].path.as_str(), damaged), ("garden", 0), "the log is whole");
}
