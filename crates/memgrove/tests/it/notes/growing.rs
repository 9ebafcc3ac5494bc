//! Ten thousand facts, one by one, from nothing: notes stay small and the tree stays flat. What the last
//! write costs against an early one is measured in `benches/notes.rs`.

use memgrove::backends::{Local, LocalOptions};
use memgrove::clock::Clock;
use memgrove::vfs::RealFs;

use super::*;

const SUBJECTS: [&str; 40] = [
    "Silica",
    "Alice",
    "Bob",
    "Berlin",
    "Garden",
    "Website",
    "Postgres",
    "Kubernetes",
    "Rust",
    "Python",
    "Lisbon",
    "Carol",
    "Dave",
    "Kitchen",
    "Bicycle",
    "Piano",
    "Budget",
    "Invoice",
    "Router",
    "Backup",
    "Travel",
    "Tokyo",
    "Chess",
    "Reading",
    "Running",
    "Coffee",
    "Camera",
    "Solar",
    "Insurance",
    "School",
    "Violin",
    "Compiler",
    "Parser",
    "Index",
    "Search",
    "Cache",
    "Queue",
    "Editor",
    "Terminal",
    "Keyboard",
];
const ASPECTS: [&str; 25] = [
    "uses pytest for testing",
    "was moved to the new office",
    "needs a review before the release",
    "likes green tea",
    "has a deadline in the spring",
    "depends on the shared library",
    "was discussed in the weekly meeting",
    "keeps its settings in one file",
    "is maintained by the platform team",
    "costs more than it did last year",
    "should be backed up every night",
    "was repaired after the storm",
    "runs on the small machine",
    "prefers short answers",
    "is described in the handbook",
    "was renamed during the migration",
    "has two open questions",
    "belongs to the first phase",
    "answers within a second",
    "was praised by the customer",
    "is cleaned on Fridays",
    "must not be exposed to the network",
    "works well with the older version",
    "was bought second hand",
    "is planned for the summer",
];

/// A fact that is like no other.
fn fact(number: usize) -> String {
    let (subject, aspect) = (SUBJECTS[number * 7 % SUBJECTS.len()], ASPECTS[number * 11 % ASPECTS.len()]);
    format!("{subject} {aspect}, as noted in entry {number} of the diary")
}

/// The number of links from the root to the farthest note, and how many notes were met.
fn depth(notes: &Notes) -> (usize, usize) {
    let graph = notes.graph().unwrap();
    let branches = memgrove::shapes::notes::picture::tree(&graph);
    assert!(branches.iter().all(|branch| branch.label != "no link leads here"), "every note is linked");
    (branches.iter().map(|branch| branch.depth).max().unwrap(), branches.len())
}

/// Notes in a real store, in memory where the system has a folder there: 10,000 writes would wear out
/// a disk.
fn local() -> (tempfile::TempDir, Notes) {
    let shared = std::path::Path::new("/dev/shm");
    let folder = if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }.unwrap();
    let tree = Arc::new(RealFs::open_root(folder.path()).unwrap());
    let clock = Arc::new(ManualClock::default());
    let store =
        Store::new(Local::open(LocalOptions::new(tree, Arc::clone(&clock) as Arc<dyn Clock>)).unwrap());
    (folder, Notes::new(Memory::new(store, clock), at("notes")))
}

fn check(facts: usize, fact: impl Fn(usize) -> String) {
    let (_folder, notes) = local();
    for number in 0..facts {
        let result = update(&notes, &fact(number));
        assert!(result.size_bytes <= 10_240, "{result:?}");
        for path in &result.new_files {
            assert!(read(&notes, path).len() <= 10_240, "{path}");
        }
    }
    let files = files(&notes);
    let all: String =
        files.iter().filter(|(name, _)| name.ends_with(".md")).map(|(_, text)| text.as_str()).collect();
    for number in 0..facts {
        assert_eq!(all.matches(&fact(number)).count(), 1, "{}", fact(number));
    }
    let largest =
        files.iter().filter(|(name, _)| name.ends_with(".md")).map(|(_, text)| text.len()).max().unwrap();
    let (depth, count) = depth(&notes);
    println!("{facts} facts: {count} notes, depth {depth}, largest {largest} bytes");
    assert!(largest <= 10_240 && depth <= 6);
}

#[test]
fn ten_thousand_facts_keep_notes_small() {
    check(10_000, fact);
}

/// The same for facts that nothing sets apart.
#[test]
fn facts_without_names_grow_as_well() {
    check(3_000, |number| format!("this is the fact with the number {number} and nothing more"));
}

/// And for all of them at once: the root comes apart into so many notes that its links are too many too.
#[test]
fn a_large_text_leaves_no_note_too_large() {
    let notes = notes();
    let line = |number: usize| {
        format!("- fact number {number} about topic{} and value {}\n", number % 50, number * 7)
    };
    let text: String = (0..12_000).map(line).collect();
    update(&notes, &text);
    for (name, text) in files(&notes).into_iter().filter(|(name, _)| name.ends_with(".md")) {
        assert!(text.len() <= 10_240, "{name} has {} bytes", text.len());
    }
    assert!(!update(&notes, &text).changed);
}

/// And for a diary.
#[test]
fn a_diary_grows_by_its_dates() {
    let day = |number: usize| {
        let (year, month, day) = (2020 + number / 1_000, 1 + number / 90 % 12, 1 + number / 4 % 28);
        format!("{year}-{month:02}-{day:02} went on with the work, entry {number} of the diary")
    };
    check(3_000, day);
}

#[test]
fn a_diary_whose_dates_are_written_out_comes_apart_by_time() {
    let notes = notes();
    let days = [
        "Friday, 10 January 2025",
        "Friday, 14 February 2025",
        "Friday 14 March 2025",
        "March 28th 2025",
        "Friday, 4 Apr 2025",
        "2025/05/09",
        "Friday, 13.06.2025",
    ];
    let mut text = String::from("# Diary\n");
    for (number, day) in days.into_iter().enumerate() {
        text.push_str(&format!("\n## {day}\n\n"));
        for line in 0..30 {
            text.push_str(&format!(
                "- On Friday entry {number}-{line} went to the garden and came back late\n"
            ));
        }
    }
    let made = write(&notes, "diary", &text, Mode::Replace).new_files;
    assert_eq!(made, ["diary/2025-q1", "diary/2025-q2"], "Friday is no name");
    let placed = write(&notes, "diary", "21 February 2025: the roof was mended", Mode::Update);
    assert_eq!(placed.path, "diary/2025-q1");
}
