//! What is done to a store before the power goes.

use memgrove::Locator;
use memgrove::backend::{Edit, Expect};

use super::model::{Doubts, Save, Synced, Tree, applied, at, doubts_after, with_folder};

/// One thing that happens to a store.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Change(Vec<Edit>),
    Mkdir(Locator),
    Checkpoint,
    /// The store is closed and opened again.
    Reopen,
    /// A person saves a file with an editor, or another program does.
    HandEdit(Locator, Vec<u8>, Save, Synced),
}

impl Step {
    /// The tree after this step; `None` if it makes no sense on this tree.
    pub(crate) fn after(&self, tree: &Tree) -> Option<Tree> {
        match self {
            Step::Change(edits) => applied(tree, edits),
            Step::Mkdir(folder) => with_folder(tree.clone(), folder),
            Step::Checkpoint | Step::Reopen => Some(tree.clone()),
            Step::HandEdit(at, bytes, save, _) => {
                let is_file = tree.get(at.key()).is_some_and(Option::is_some);
                let edit = match save {
                    Save::Append => append(at.key(), bytes.clone()),
                    _ => write(at.key(), bytes.clone()),
                };
                is_file.then(|| applied(tree, &[edit])).flatten()
            }
        }
    }

    /// What is in doubt after this step.
    pub(crate) fn doubts_after(&self, doubts: &Doubts) -> Doubts {
        let mut after = doubts.clone();
        match self {
            Step::Change(edits) => after = doubts_after(doubts, edits),
            Step::HandEdit(at, _, _, Synced::Yes) => drop(after.remove(at.key())),
            Step::HandEdit(at, _, Save::Append, Synced::No) => {
                after.entry(at.key().into()).or_default();
            }
            // It displaces what was added, too.
            Step::HandEdit(at, _, _, Synced::No) => drop(after.insert(at.key().into(), Vec::new())),
            Step::Mkdir(_) | Step::Checkpoint | Step::Reopen => {}
        }
        after
    }
}

/// Steps with the names of what they are made of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

impl Workload {
    /// The steps of the alphabet with these indexes, without those that make no sense in turn.
    pub(crate) fn of(indexes: &[usize]) -> Workload {
        let mut made = Workload::default();
        let mut tree = tree_after(&base());
        for (turn, index) in indexes.iter().enumerate() {
            let (name, step) = letter(*index, turn);
            if let Some(after) = step.after(&tree) {
                tree = after;
                made.name = format!("{} {name}", made.name).trim().to_owned();
                made.steps.push(step);
            }
        }
        made
    }
}

fn tree_after(steps: &[Step]) -> Tree {
    let step = |tree: Tree, step: &Step| step.after(&tree).expect("the base makes sense");
    steps.iter().fold(Tree::new(), step)
}

/// What every workload finds.
pub(crate) fn base() -> Vec<Step> {
    let files = [("a.md", 40), ("b.md", 700), ("dir/c.md", 90), ("dir/d.md", 1300)];
    let writes = files.map(|(key, len)| write(key, text(key, len)));
    vec![Step::Change(writes.into()), Step::Checkpoint]
}

/// How many letters the alphabet of steps has.
pub(crate) const LETTERS: usize = 28;

/// One letter of the alphabet, with bytes that differ from turn to turn.
pub(crate) fn letter(index: usize, turn: usize) -> (&'static str, Step) {
    let bytes = |len: usize| text(&format!("turn {turn} letter {index} "), len);
    let change = |edits: Vec<Edit>| Step::Change(edits);
    let by_hand = |key, bytes, save, synced| Step::HandEdit(at(key), bytes, save, synced);
    match index {
        0 => ("write-new", change(vec![write(&format!("n{turn}.md"), bytes(300))])),
        1 => ("write-deep", change(vec![write("x/y/n.md", bytes(60))])),
        2 => ("overwrite", change(vec![write("a.md", bytes(900))])),
        3 => ("overwrite-in-folder", change(vec![write("dir/d.md", bytes(100))])),
        4 => ("append", change(vec![append("b.md", bytes(50))])),
        5 => ("append-new", change(vec![append("log.md", bytes(600))])),
        6 => ("delete", change(vec![delete("a.md")])),
        7 => ("rename", change(vec![rename("a.md", "dir/a2.md")])),
        8 => ("rename-folder", change(vec![rename("dir", &format!("moved{turn}"))])),
        9 => (
            "many",
            change(vec![
                write("a.md", bytes(700)),
                append("b.md", bytes(30)),
                delete("dir/c.md"),
                write(&format!("z{turn}/new.md"), bytes(20)),
                rename("dir/d.md", &format!("z{turn}/d.md")),
            ]),
        ),
        10 => ("mkdir", Step::Mkdir(at("m/n"))),
        11 => ("checkpoint", Step::Checkpoint),
        12 => ("reopen", Step::Reopen),
        13 => ("edit-in-place", by_hand("b.md", bytes(650), Save::InPlace, Synced::Yes)),
        14 => ("edit-by-rename", by_hand("a.md", bytes(80), Save::ByRename, Synced::Yes)),
        15 => ("swap", change(vec![rename("a.md", "t.md"), rename("b.md", "a.md"), rename("t.md", "b.md")])),
        16 => ("large", change(vec![write("a.md", bytes(3000))])),
        17 => ("delete-folder", change(vec![delete("dir/c.md"), delete("dir/d.md"), delete("dir")])),
        18 => ("replace-by-rename", change(vec![delete("a.md"), rename("b.md", "a.md")])),
        19 => {
            ("write-and-move", change(vec![write("a.md", bytes(70)), rename("a.md", &format!("w{turn}.md"))]))
        }
        20 => {
            ("move-and-write", change(vec![rename("a.md", &format!("v{turn}.md")), write("a.md", bytes(70))]))
        }
        21 => ("swap-folders", change(vec![rename("dir", "t"), rename("x", "dir"), rename("t", "x")])),
        22 => ("unsynced-over-a", by_hand("a.md", bytes(1100), Save::InPlace, Synced::No)),
        23 => ("unsynced-over-b", by_hand("b.md", bytes(760), Save::InPlace, Synced::No)),
        24 => ("unsynced-rename-a", by_hand("a.md", bytes(30), Save::ByRename, Synced::No)),
        25 => ("unsynced-rename-b", by_hand("b.md", bytes(600), Save::ByRename, Synced::No)),
        26 => ("unsynced-append", by_hand("b.md", bytes(45), Save::Append, Synced::No)),
        27 => {
            let (write, moved) = (write("dir/in/e.md", bytes(70)), rename("dir", &format!("kept{turn}")));
            ("write-and-move-folder", change(vec![write, delete("dir/c.md"), moved]))
        }
        _ => unreachable!("the alphabet has {LETTERS} letters"),
    }
}

pub(crate) fn write(key: &str, bytes: Vec<u8>) -> Edit {
    Edit::Write { at: at(key), bytes: bytes.into(), expect: Expect::Any }
}

pub(crate) fn append(key: &str, bytes: Vec<u8>) -> Edit {
    Edit::Append { at: at(key), bytes: bytes.into(), expect: Expect::Any }
}

pub(crate) fn delete(key: &str) -> Edit {
    Edit::Delete { at: at(key), expect: Expect::Any }
}

pub(crate) fn rename(from: &str, to: &str) -> Edit {
    Edit::Rename { from: at(from), to: at(to), expect: Expect::Any }
}

/// Text of a length that no other place or turn has, in every sector.
pub(crate) fn text(what: &str, len: usize) -> Vec<u8> {
    let line = |number: usize| format!("{number} {what}\n");
    (0..).map(line).flat_map(String::into_bytes).take(len).collect()
}
