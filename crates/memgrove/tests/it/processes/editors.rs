//! Editors that take no lock, beside processes that write.

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::Duration;

use memgrove::backend::{HistoryQuery, Moment};
use memgrove::backends::local::Bug;
use memgrove::{Result, Store};

use super::child::{Child, Task, line};
use super::{at, is_noticed, on_disk, open};

/// How an editor saves.
#[derive(Debug, Clone, Copy)]
enum Saving {
    /// Writes a new file and renames it over the old one.
    Rename,
    /// Truncates the file and writes it anew.
    InPlace,
}

const WRITERS: usize = 4;

/// One editor adds lines to a file, without any lock, while processes add theirs through the
/// store. Gives back every line that is neither in the file nor anywhere in its history.
fn gone(saving: Saving, bug: Option<Bug>, saves: usize, each: usize) -> Result<Vec<String>> {
    let root = on_disk();
    let scratch = on_disk();
    open(root.path(), None)?.write(&at("0.md"), "")?;
    let writers: Vec<Child> =
        (0..WRITERS).map(|id| Child::start(root.path(), bug, &Task::Update { id, each, files: 1 })).collect();
    let mut saved = Vec::new();
    for i in 0..saves {
        let added = format!("line {i} of the editor");
        if save(saving, root.path(), scratch.path(), &added) {
            saved.push(added);
        }
        thread::sleep(Duration::from_micros(500 + (i as u64 * 7_919) % 3_000));
    }
    for writer in writers {
        writer.finish().expect("writers are not disturbed by an editor");
    }
    // Whatever the editor was saving when the last of them left is seen to by the next who writes.
    open(root.path(), None)?.write(&at("last.md"), "")?;
    let written = (0..WRITERS).flat_map(|id| (0..each).map(move |i| line(id, i)));
    let missing = saved.into_iter().chain(written).collect();
    missing_everywhere(&open(root.path(), None)?, missing)
}

/// Saves as an editor does: reads what is there, and writes it with one more line.
#[allow(clippy::disallowed_methods)] // It is an editor, which knows nothing of the store.
fn save(saving: Saving, root: &Path, scratch: &Path, added: &str) -> bool {
    let target = root.join("0.md");
    let Ok(text) = std::fs::read_to_string(&target) else { return false };
    let text = format!("{text}{added}\n");
    match saving {
        Saving::Rename => {
            let temp = scratch.join("save");
            std::fs::write(&temp, text).and_then(|()| std::fs::rename(&temp, &target)).is_ok()
        }
        Saving::InPlace => std::fs::write(&target, text).is_ok(),
    }
}

/// Those of the lines that no state of the file holds, neither now nor in the past.
fn missing_everywhere(store: &Store, lines: BTreeSet<String>) -> Result<Vec<String>> {
    let file = at("0.md");
    let mut missing = lines;
    strike_out(&mut missing, store.read_bytes(&file)?.bytes);
    for past in
        store.backend().history(&HistoryQuery { at: Some(file.clone()), ..HistoryQuery::default() })?
    {
        if missing.is_empty() {
            break;
        }
        for moment in [Moment::After(past.change.clone()), Moment::Before(past.change.clone())] {
            if let Some(bytes) = store.backend().read_past(&file, &moment)? {
                strike_out(&mut missing, bytes);
            }
        }
    }
    Ok(missing.into_iter().collect())
}

fn strike_out(missing: &mut BTreeSet<String>, bytes: Vec<u8>) {
    for line in String::from_utf8_lossy(&bytes).lines() {
        missing.remove(line);
    }
}

#[test]
fn an_editor_that_renames_loses_nothing_and_takes_nothing() {
    assert_eq!(gone(Saving::Rename, None, 200, 60).expect("the store works"), Vec::<String>::new());
}

#[test]
fn an_editor_that_writes_in_place_loses_nothing_and_takes_nothing() {
    assert_eq!(gone(Saving::InPlace, None, 200, 60).expect("the store works"), Vec::<String>::new());
}

/// Proves that edits are lost where files are replaced by a plain rename.
fn plain_rename_is_noticed(saving: Saving) {
    is_noticed(5, || {
        let gone = gone(saving, Some(Bug::PlainRename), 200, 60).map_err(|error| error.to_string())?;
        if gone.is_empty() { Ok(()) } else { Err(format!("{} lines are gone: {gone:?}", gone.len())) }
    });
}

#[test]
fn a_plain_rename_over_an_editor_that_renames_is_noticed() {
    plain_rename_is_noticed(Saving::Rename);
}

#[test]
fn a_plain_rename_over_an_editor_that_writes_in_place_is_noticed() {
    plain_rename_is_noticed(Saving::InPlace);
}

#[test]
#[ignore = "takes many minutes"]
fn torture_editors() {
    for saving in [Saving::Rename, Saving::InPlace] {
        for round in 0..25 {
            let gone = gone(saving, None, 1_000, 300).expect("the store works");
            assert_eq!(gone, Vec::<String>::new(), "{saving:?}, round {round}");
        }
    }
}

/// The system tells a process that asks who has a file open, by a signal, of everyone who opens it meanwhile.
#[test]
fn asking_who_has_a_file_open_survives_those_who_open_it() {
    let root = on_disk();
    let path = root.path().join("asked.md");
    std::fs::write(&path, "x").expect("a file");
    let mut child = Child::start(root.path(), None, &Task::Ask { times: 20_000 });
    child.wait_until_ready();
    while child.is_running() {
        drop(std::fs::OpenOptions::new().append(true).open(&path).expect("an editor opens it"));
    }
    assert_eq!(child.finish(), Ok(()));
}
