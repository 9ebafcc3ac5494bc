//! What a graph costs, as ratios taken side by side in one run: `make bench`.
//!
//! Times on shared machines are noise; a ratio of two things measured alternately is not.

#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)] // It measures the machine, and speaks.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use memgrove::backend::Note;
use memgrove::backends::{Local, LocalOptions};
use memgrove::clock::SystemClock;
use memgrove::ids::Ids;
use memgrove::shapes::graph::{Graph, NewNode, Operation, Properties, Ways};
use memgrove::vfs::RealFs;
use memgrove::{Locator, Memory, Store};
use serde_json::{Value, json};

const NODES: usize = 100_000;
const CONNECTIONS: usize = 300_000;
const FEW: usize = 1_000;
const BATCH: usize = 1_000;

struct Counted(AtomicU64);

impl Ids for Counted {
    fn random(&self) -> [u8; 16] {
        let count = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mut bytes = [0; 16];
        bytes[8..].copy_from_slice(&count.to_be_bytes());
        bytes
    }
}

fn main() {
    println!("| figure | measured | bound |");
    println!("|---|--:|--:|");
    let (root, registry) = written();
    open(root.path(), &registry);
    walk(root.path(), &registry);
    create();
}

fn temp() -> tempfile::TempDir {
    // Beside the build, not in /tmp, which may be memory.
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&target).unwrap();
    tempfile::tempdir_in(target).unwrap()
}

fn graph(root: &Path) -> Graph {
    let tree = Arc::new(RealFs::open_root(root).unwrap());
    let store = Store::new(Local::open(LocalOptions::new(tree, Arc::new(SystemClock))).unwrap());
    let memory = Memory::new(store, Arc::new(SystemClock));
    Graph::new(memory, Locator::new("graph").unwrap(), Arc::new(Counted(AtomicU64::new(1))))
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

fn properties(at: usize) -> Value {
    json!({"title": format!("Number {at}"), "status": "active", "weight": at % 17, "tags": ["a", "b"]})
}

/// A registry of 100,000 nodes and 300,000 connections, as a fold would have written it.
fn written() -> (tempfile::TempDir, PathBuf) {
    let root = temp();
    let mut text = String::from("{\n\"version\": 1,\n\"nodes\": {\n");
    for at in 0..NODES {
        let comma = if at == 0 { "" } else { ",\n" };
        let entry = json!({"id": format!("mem_proj_{at:03}"), "type": "project", "properties": properties(at),
            "storage": {"path": format!("_content/nodes/mem_proj_{at:03}.md"), "format": "markdown", "size": 120,
                "hash": "0123456789abcdef0123456789abcdef"},
            "created": "2026-11-15T22:01:07.123456Z", "updated": "2026-11-15T22:01:07.123456Z"});
        write!(text, "{comma}\"mem_proj_{at:03}\": {entry}").unwrap();
    }
    text.push_str("\n},\n\"connections\": {\n");
    for at in 0..CONNECTIONS {
        let comma = if at == 0 { "" } else { ",\n" };
        let (from, to) = (at % NODES, (at * 7919 + 13) % NODES);
        let entry = json!({"id": format!("conn_{at:03}"), "type": "depends_on", "from": format!("mem_proj_{from:03}"),
            "to": format!("mem_proj_{to:03}"), "properties": {}, "created": "2026-11-15T22:01:07.123456Z",
            "updated": "2026-11-15T22:01:07.123456Z"});
        write!(text, "{comma}\"conn_{at:03}\": {entry}").unwrap();
    }
    text.push_str("\n}\n}\n");
    std::fs::create_dir_all(root.path().join("graph/_system")).unwrap();
    let registry = root.path().join("graph/_system/registry.json");
    std::fs::write(&registry, text).unwrap();
    (root, registry)
}

/// Opening the graph against reading and parsing the same JSON once.
fn open(root: &Path, registry: &Path) {
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let start = Instant::now();
        let graph = graph(root);
        assert_eq!(graph.counts().unwrap(), (NODES, CONNECTIONS));
        ours.push(start.elapsed());
        drop(graph);
        let start = Instant::now();
        let value: Value = serde_json::from_slice(&std::fs::read(registry).unwrap()).unwrap();
        assert_eq!(value["nodes"].as_object().unwrap().len(), NODES);
        plain.push(start.elapsed());
    }
    row(
        "open 100,000 nodes and 300,000 connections / read and parse the JSON",
        median(ours),
        median(plain),
        "2",
    );
}

/// Neighbours to depth 3 against reading the registry for every step.
fn walk(root: &Path, registry: &Path) {
    let graph = graph(root);
    graph.counts().unwrap();
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for round in 0..3 {
        let from = format!("mem_proj_{:03}", round * 1234 + 5);
        let start = Instant::now();
        let steps = graph.neighbours(&from, 3, &Ways::default()).unwrap();
        ours.push(start.elapsed());
        let start = Instant::now();
        let (mut seen, mut edges): (HashSet<String>, HashSet<String>) =
            (HashSet::from([from]), HashSet::new());
        let mut frontier = seen.clone();
        for _ in 0..3 {
            let value: Value = serde_json::from_slice(&std::fs::read(registry).unwrap()).unwrap();
            let mut next = HashSet::new();
            for (id, one) in value["connections"].as_object().unwrap() {
                let (from, to) = (one["from"].as_str().unwrap(), one["to"].as_str().unwrap());
                if frontier.contains(from) || frontier.contains(to) {
                    edges.insert(id.clone());
                    next.extend([from.to_owned(), to.to_owned()]);
                }
            }
            frontier = next.into_iter().filter(|node| seen.insert(node.clone())).collect();
        }
        plain.push(start.elapsed());
        assert_eq!(steps.len(), edges.len());
    }
    let (ours, plain) = (median(ours), median(plain));
    let ratio = plain.as_secs_f64() / ours.as_secs_f64();
    println!(
        "| read the registry per step / neighbours to depth 3 | {ratio:.0} ({plain:.1?} / {ours:.1?}) | at least 50 |"
    );
}

fn fill(root: &Path, count: usize) {
    let graph = graph(root);
    for from in (0..count).step_by(BATCH) {
        let operations: Vec<Operation> = (from..(from + BATCH).min(count))
            .map(|at| Operation::CreateNode {
                name: None,
                id: None,
                kind: "project".into(),
                properties: properties(at).as_object().unwrap().clone(),
                content: Some(format!("# Number {at}\n\nWhat is known of it.\n")),
                format: None,
            })
            .collect();
        graph.batch(note(), &operations).unwrap();
        graph.settle().unwrap();
    }
}

/// Creating a node beside 100,000 against beside 1,000, in turns; each by a process that has the
/// graph in use, and by one that has just begun.
fn create() {
    let (small, large) = (temp(), temp());
    fill(small.path(), FEW);
    fill(large.path(), NODES);
    let timed = |graph: &Graph, at: usize| {
        let start = Instant::now();
        let properties: Properties = properties(at).as_object().unwrap().clone();
        let content = Some(format!("# Number {at}\n").into());
        graph
            .create(note(), NewNode { kind: "project".into(), properties, content, ..NewNode::default() })
            .unwrap();
        start.elapsed()
    };
    let roots = [small.path(), large.path()];
    let (mut times, mut cold) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let warm = roots.map(graph);
    for at in 0..300 {
        for (graph, times) in warm.iter().zip(&mut times) {
            times.push(timed(graph, at));
        }
    }
    drop(warm);
    for at in 0..40 {
        for (root, times) in roots.iter().zip(&mut cold) {
            let graph = graph(root);
            times.push(timed(&graph, at));
        }
    }
    let [few, many] = times.map(median);
    row("create a node beside 100,000 / beside 1,000", many, few, "1.3");
    let [few, many] = cold.map(median);
    row("the same, by a process that has just begun", many, few, "1.3");
}
