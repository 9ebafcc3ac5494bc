//! What records cost, as ratios taken side by side in one run: `make bench`.
//!
//! Times on shared machines are noise; a ratio of two things measured alternately is not.

#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)] // It measures the machine, and speaks.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use memgrove::backend::Note;
use memgrove::backends::{Local, LocalOptions};
use memgrove::clock::SystemClock;
use memgrove::ids::Ids;
use memgrove::shapes::records::{Guarded, Limits, NewRecord, Patch, Query, RecordType, Records, Status};
use memgrove::vfs::RealFs;
use memgrove::{Locator, Memory, Store};

struct Counted(AtomicU64);

impl Ids for Counted {
    fn random(&self) -> [u8; 16] {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        let mut bytes = [7; 16];
        bytes[8..].copy_from_slice(&count.to_be_bytes());
        bytes
    }
}

static COUNT: AtomicU64 = AtomicU64::new(1);

fn main() {
    println!("| figure | measured | bound |");
    println!("|---|--:|--:|");
    add();
    let (root, ids) = filled();
    query(root.path());
    load(root.path());
    rewrite(root.path(), &ids);
    growth();
}

fn temp() -> tempfile::TempDir {
    // Beside the build, not in /tmp, which may be memory.
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&target).unwrap();
    tempfile::tempdir_in(target).unwrap()
}

fn records(root: &Path, limits: Limits) -> Records {
    let tree = Arc::new(RealFs::open_root(root).unwrap());
    let store = Store::new(Local::open(LocalOptions::new(tree, Arc::new(SystemClock))).unwrap());
    let memory = Memory::new(store, Arc::new(SystemClock));
    let ids = Arc::new(Counted(AtomicU64::new(COUNT.fetch_add(1 << 32, Ordering::Relaxed))));
    std::fs::create_dir_all(root.join("records")).unwrap();
    let folder = Arc::new(RealFs::open_root(&root.join("records")).unwrap());
    let at = Locator::new("records").unwrap();
    Records::new(memory, at, ids).unwrap().with_limits(limits).with_folder(folder)
}

fn new(kind: RecordType, at: usize) -> NewRecord {
    let content = format!(
        "Number {at}: the user prefers what was agreed on in the meeting of that week, and says so whenever \
         somebody asks; see the notes of the project for how it came to that."
    );
    NewRecord {
        category: Some(format!("category-{}", at % 25)),
        tags: vec![format!("tag-{}", at % 100), "shared".to_owned(), format!("group-{}", at % 10)],
        status: (kind == RecordType::Task).then_some(Status::InProgress),
        ..NewRecord::new(kind, content)
    }
}

fn note() -> Note {
    Note { verb: "bench".into(), ..Note::default() }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn row(figure: &str, ours: Duration, theirs: Duration, bound: &str) {
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("| {figure} | {ratio:.2} ({ours:.1?} / {theirs:.1?}) | {bound} |");
}

/// A store at the full limits: 1,000 core records, 500 learnings, 200 tasks.
fn filled() -> (tempfile::TempDir, Vec<String>) {
    let root = temp();
    let records = records(root.path(), Limits::default());
    let mut ids = Vec::new();
    for (kind, count) in [(RecordType::Core, 1000), (RecordType::Learning, 500), (RecordType::Task, 200)] {
        let all: Vec<NewRecord> = (0..count).map(|at| new(kind, at)).collect();
        let added = records.add(note(), &all).unwrap().outcome.records;
        ids.extend(
            added.into_iter().filter(|record| record.kind == RecordType::Core).map(|record| record.id),
        );
    }
    records.settle().unwrap();
    (root, ids)
}

/// One record against an append and `fdatasync` of the same bytes, in turns.
fn add() {
    const ROUNDS: usize = 900;
    let (ours, raw) = (temp(), temp());
    let records = records(ours.path(), Limits::default());
    let file = std::fs::File::create_new(raw.path().join("log")).unwrap();
    let (mut times, mut raws, mut offset) = (Vec::new(), Vec::new(), 0);
    for round in 0..ROUNDS {
        let start = Instant::now();
        let added = records.add(note(), &[new(RecordType::Core, round)]).unwrap();
        times.push(start.elapsed());
        let line = added.outcome.records[0].line() + "\n";
        let start = Instant::now();
        file.write_all_at(line.as_bytes(), offset).unwrap();
        file.sync_data().unwrap();
        raws.push(start.elapsed());
        offset += line.len() as u64;
    }
    row("add a record / raw append + fdatasync", median(times), median(raws), "1.5");
}

/// A query by tag and by category against parsing every line.
fn query(root: &Path) {
    let records = records(root, Limits::default());
    let by_tag = Query { tags: vec!["tag-7".into()], ..Query::default() };
    let by_category = Query { category: Some("category-7".into()), ..Query::default() };
    records.list(&by_tag).unwrap();
    let (mut tag, mut category, mut scans) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..200 {
        let start = Instant::now();
        assert_eq!(records.list(&by_tag).unwrap().total, 17);
        tag.push(start.elapsed());
        let start = Instant::now();
        assert_eq!(records.list(&by_category).unwrap().total, 68);
        category.push(start.elapsed());
        let start = Instant::now();
        let mut hits = 0;
        for kind in RecordType::ALL {
            let text = std::fs::read_to_string(root.join("records").join(kind.file())).unwrap();
            for line in text.lines() {
                let value: serde_json::Value = serde_json::from_str(line).unwrap();
                let tags = value["tags"].as_array().unwrap();
                hits += usize::from(tags.iter().any(|tag| tag == "tag-7"));
            }
        }
        assert_eq!(hits, 17);
        scans.push(start.elapsed());
    }
    let scan = median(scans);
    let times = |name: &str, time: Duration| {
        let ratio = scan.as_secs_f64() / time.as_secs_f64();
        println!(
            "| parse every line / query by {name} | {ratio:.1} ({scan:.1?} / {time:.1?}) | at least 20 |"
        );
    };
    times("tag", median(tag));
    times("category", median(category));
}

/// Opening, reading and checking the index against reading and parsing the files once.
fn load(root: &Path) {
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        let records = records(root, Limits::default());
        let start = Instant::now();
        assert_eq!(records.list(&Query { limit: 1, ..Query::default() }).unwrap().total, 1700);
        let standing = records.index_standing().unwrap();
        ours.push(start.elapsed());
        assert_eq!(standing, memgrove::shapes::records::index::Standing::Current);
        let start = Instant::now();
        let mut count = 0;
        for kind in RecordType::ALL {
            let text = std::fs::read_to_string(root.join("records").join(kind.file())).unwrap();
            for line in text.lines() {
                let value: serde_json::Value = serde_json::from_str(line).unwrap();
                count += usize::from(value.is_object());
            }
        }
        assert_eq!(count, 1700);
        plain.push(start.elapsed());
    }
    row("load with index check / read and parse once", median(ours), median(plain), "2");
}

/// Changing one of 1,000 records against writing the file anew: temp, `fsync`, rename, `fsync`.
fn rewrite(root: &Path, ids: &[String]) {
    let records = records(root, Limits::default());
    let raw = temp();
    let bytes = std::fs::read(root.join("records/core_memories.jsonl")).unwrap();
    let (mut updates, mut deletes, mut raws) = (Vec::new(), Vec::new(), Vec::new());
    for (round, id) in ids.iter().take(100).enumerate() {
        let start = Instant::now();
        let patch = Patch { content: Some(format!("changed in round {round}")), ..Patch::default() };
        records.update(note(), &Guarded::any(id), &patch).unwrap();
        updates.push(start.elapsed());
        let start = Instant::now();
        let (temp, place) = (raw.path().join("temp"), raw.path().join("file"));
        let file = std::fs::File::create(&temp).unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        file.sync_all().unwrap();
        std::fs::rename(&temp, &place).unwrap();
        std::fs::File::open(raw.path()).unwrap().sync_all().unwrap();
        raws.push(start.elapsed());
        let start = Instant::now();
        records.delete(note(), &Guarded::any(id)).unwrap();
        deletes.push(start.elapsed());
    }
    let raw = median(raws);
    row("update a record / raw rewrite of the file", median(updates), raw, "3");
    row("delete a record / raw rewrite of the file", median(deletes), raw, "3");
}

/// An addition beside 1,000 records against one beside 100,000, in turns; each by a process that
/// has the file in use, and by one that has just begun.
fn growth() {
    let (small, large) = (temp(), temp());
    for (root, count) in [(small.path(), 1_000), (large.path(), 100_000)] {
        let records = records(root, Limits::unbounded());
        let all: Vec<NewRecord> = (0..count).map(|at| new(RecordType::Learning, at)).collect();
        for part in all.chunks(10_000) {
            records.add(note(), part).unwrap();
        }
    }
    let timed = |records: &Records, at: usize| {
        let start = Instant::now();
        records.add(note(), &[new(RecordType::Learning, at)]).unwrap();
        start.elapsed()
    };
    let roots = [small.path(), large.path()];
    let warm = roots.map(|root| records(root, Limits::unbounded()));
    let (mut times, mut cold) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for at in 0..300 {
        for (records, times) in warm.iter().zip(&mut times) {
            times.push(timed(records, at));
        }
    }
    for at in 0..20 {
        for (root, times) in roots.iter().zip(&mut cold) {
            let records = records(root, Limits::unbounded());
            times.push(timed(&records, at));
        }
    }
    let [small, large] = times.map(median);
    row("add beside 100,000 records / beside 1,000", large, small, "about 1");
    let [small, large] = cold.map(median);
    row("the same, by a process that has just begun", large, small, "about 1");
}
