//! An index of the files is what a new index of the files would be, after any history.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use memgrove::Store;
use memgrove::backend::{Change, Edit, Expect, HistoryQuery, Note};

use super::{at, check_true, kept, on_disk};

const VARIABLE: &str = "MEMGROVE_TEST_INDEX_CHILD";

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn words(&mut self, count: u64) -> String {
        (0..count).map(|_| format!("word{} ", self.roll(200))).collect()
    }
}

fn text(dice: &mut Dice) -> String {
    let sections = 1 + dice.roll(4);
    (0..sections)
        .map(|_| {
            let heading = dice.roll(5);
            let words = 1 + dice.roll(60);
            format!("# heading {heading}\n{}\n\n", dice.words(words))
        })
        .collect()
}

/// One random operation, as a process, or as an editor that takes no lock.
fn operate(store: &Store, root: &Path, dice: &mut Dice) {
    let name = |dice: &mut Dice| format!("files/{}/{}.md", dice.roll(3), dice.roll(12));
    let (key, other) = (name(dice), name(dice));
    let apply = |edit: Edit| {
        // Another process may have been faster: that is no failure here.
        let _ = store.apply(&Change { edits: vec![edit], note: Note::default() });
    };
    match dice.roll(8) {
        0..=2 => apply(Edit::Write { at: at(&key), bytes: text(dice).into(), expect: Expect::Any }),
        3 => apply(Edit::Append { at: at(&key), bytes: text(dice).into(), expect: Expect::Any }),
        4 => apply(Edit::Delete { at: at(&key), expect: Expect::Any }),
        5 => apply(Edit::Rename { from: at(&key), to: at(&other), expect: Expect::Any }),
        6 => {
            let _ = std::fs::create_dir_all(root.join(&key).parent().unwrap());
            let _ = std::fs::write(root.join(&key), text(dice));
        }
        _ => {
            let _ = std::fs::remove_file(root.join(&key));
        }
    }
}

/// Not a test: what the children do.
#[test]
#[ignore = "started by the tests below"]
fn child() {
    let Ok(told) = std::env::var(VARIABLE) else { return };
    let parts: Vec<&str> = told.split('\n').collect();
    let (root, seed, count) =
        (Path::new(parts[0]), parts[1].parse().unwrap(), parts[2].parse::<usize>().unwrap());
    let store = on_disk(&root.join("store"));
    let index = kept(&store, &root.join("cache"));
    let mut dice = Dice(seed);
    for step in 0..count {
        operate(&store, &root.join("store"), &mut dice);
        if step % 5 == 0 {
            let word = dice.roll(200);
            index.search(&format!("word{word}"), 10).unwrap();
        }
    }
}

fn start(root: &Path, seed: u64, count: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "index::truth::child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, format!("{}\n{seed}\n{count}", root.to_str().unwrap()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Several processes, each of them also an editor, and some of them killed on the way.
fn crowd(processes: u64, each: usize, rounds: u64) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for round in 0..rounds {
        let mut children: Vec<Child> =
            (0..processes).map(|id| start(root, 1 + round * 100 + id, each)).collect();
        let mut victim = start(root, 77 + round, usize::MAX / 2);
        std::thread::sleep(std::time::Duration::from_millis(200));
        victim.kill().unwrap();
        victim.wait().unwrap();
        for child in &mut children {
            assert!(child.wait().unwrap().success(), "a child failed");
        }
        let store = on_disk(&root.join("store"));
        // Three of eight operations write whatever the others do, so less than that was not tried.
        let all = HistoryQuery { limit: usize::MAX, ..HistoryQuery::default() };
        let changes = store.backend().history(&all).unwrap().len();
        let tried = (round + 1) as usize * processes as usize * each / 4;
        assert!(changes > tried, "only {changes} changes");
        check_true(&kept(&store, &root.join("cache")));
    }
}

#[test]
fn the_index_is_true_after_a_crowd() {
    crowd(3, 100, 2);
}

/// The figure of the product: ten thousand operations.
#[test]
#[ignore = "minutes"]
fn torture_the_index_is_true_after_ten_thousand_operations() {
    crowd(4, 500, 5);
}

#[test]
fn the_index_is_true_after_every_operation() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("store");
    let store = on_disk(&root);
    let index = kept(&store, &folder.path().join("cache"));
    let mut dice = Dice(3);
    for step in 0..150 {
        operate(&store, &root, &mut dice);
        if step % 10 == 0 {
            check_true(&index);
        }
    }
    check_true(&index);
}
