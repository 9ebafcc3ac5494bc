//! Content that is large: how often it is in memory at once.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memgrove::backend::{Applied, Backend, Change, Edit, exists};
use memgrove::backends::Ram;
use memgrove::backends::local::{Local, LocalOptions};
use memgrove::clock::SystemClock;
use memgrove::shapes::graph::NewNode;
use memgrove::vfs::RealFs;
use memgrove::{Result, Store};

use super::{graph_over, note};
use crate::hooked::{Hook, Hooked};

const VARIABLE: &str = "MEMGROVE_TEST_LARGE";
const MIB: usize = 1 << 20;
const CONTENT: usize = 100 * MIB;

/// A storage that takes large content and keeps nothing of it; the first time it says that someone
/// else was faster, so that the change is planned again.
struct Sink {
    inner: Ram,
    late: AtomicBool,
}

impl Hook for Sink {
    fn inner(&self) -> &dyn Backend {
        &self.inner
    }
    fn apply(&self, change: &Change) -> Result<Applied> {
        let large = |edit: &&Edit| matches!(edit, Edit::Write { bytes, .. } if bytes.len() == CONTENT);
        let content = change.edits.iter().find(large).expect("the content is handed on, each time");
        if !self.late.swap(true, Ordering::SeqCst) {
            return Err(exists(content.at()));
        }
        let edits = change.edits.iter().filter(|edit| !large(edit)).cloned().collect();
        self.inner.apply(&Change { edits, note: change.note.clone() })
    }
}

/// The most memory that this process has ever had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Not a test: what a child runs. A process of its own, because memory is counted for all of it.
#[test]
#[ignore = "run by another test, as a process of its own"]
fn child() {
    let Ok(told) = std::env::var(VARIABLE) else { return };
    let store = match told.as_str() {
        "sink" => Store::new(Hooked(Sink { inner: Ram::default(), late: AtomicBool::new(false) })),
        folder => {
            let tree = RealFs::open_root(std::path::Path::new(folder)).unwrap();
            Store::new(Local::open(LocalOptions::new(Arc::new(tree), Arc::new(SystemClock))).unwrap())
        }
    };
    let graph = graph_over(store, 5);
    let before = peak();
    let content: Vec<u8> = (0..CONTENT).map(|at| ((at * 31) >> 3) as u8).collect();
    let hash = memgrove::backend::Version::of(&content);
    let new = NewNode {
        kind: "film".into(),
        format: Some("mp4".into()),
        content: Some(content.into()),
        ..NewNode::default()
    };
    let node = graph.create(note(), new).unwrap().outcome;
    assert_eq!(node.storage.as_ref().unwrap().hash, hash.as_str());
    if told != "sink" {
        let back = graph.content(&node.id, &node.storage.unwrap()).unwrap();
        assert!(memgrove::backend::Version::of(&back.bytes) == hash, "it does not come back as it was");
    }
    // Closing makes what was written durable in its place.
    drop(graph);
    println!("\ngrown {}", peak() - before);
}

/// By how much a child's memory grew while it had a content of 100 MiB, made a node of it and read it.
fn grown(told: &str) -> usize {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "graph::large::child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, told)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said.lines().find_map(|line| line.strip_prefix("grown ")).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_content_of_100_mib_is_handed_on_and_never_copied_by_the_graph() {
    let grown = grown("sink");
    assert!(grown < CONTENT + 16 * MIB, "the graph itself held {} MiB", grown / MIB);
}

/// The journal's record shares the bytes of the change and writes them as they are; whoever needs to
/// know only what was changed reads past them.
#[cfg(target_os = "linux")]
#[test]
fn a_content_of_100_mib_in_a_local_store() {
    let folder = tempfile::tempdir().unwrap();
    let grown = grown(folder.path().to_str().unwrap());
    println!("a node of 100 MiB in a local store takes {} MiB of memory", grown / MIB);
    assert!(grown < CONTENT + 16 * MIB, "{} MiB", grown / MIB);
}
