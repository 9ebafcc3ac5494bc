//! A journal that is not where, or not what, it was: pruned, copied, put back, or one of two on a tree. No
//! answered change is lost of it, and no file of another is touched.

use std::path::Path;

use super::*;
use memgrove::backend::{Applied, Keep, Pruning};

fn write(key: &str, text: &str) -> Edit {
    Edit::Write { at: at(key), bytes: text.to_owned().into(), expect: Expect::Any }
}

fn keyed(local: &Local, key: &str, edit: Edit) -> Applied {
    let note = Note { key: Some(key.into()), ..Note::default() };
    local.apply(&Change { edits: vec![edit], note }).unwrap()
}

fn create(root: &Path, keys: &[&str]) {
    let store = store(root);
    keys.iter().for_each(|key| drop(store.write(&at(key), key).unwrap()));
}

/// The files that the history tells of, the oldest first.
fn told(root: &Path) -> Vec<String> {
    let past = open(root).history(&HistoryQuery::default()).unwrap().into_iter().rev();
    past.flat_map(|past| past.edits).map(|edit| edit.at.key().to_owned()).collect()
}

#[test]
fn a_key_is_free_again_when_its_change_was_pruned() {
    let root = tempfile::tempdir().unwrap();
    let local = open(root.path());
    let first = keyed(&local, "one", write("a.md", "1"));
    keyed(&local, "two", write("b.md", "2"));
    assert_eq!(keyed(&local, "one", write("a.md", "1")).change, first.change);
    local.prune(Keep::Changes(0), Pruning::Done).unwrap();
    let again = keyed(&local, "one", write("a.md", "3"));
    assert_ne!(again.change, first.change);
    assert_eq!(local.read(&at("a.md")).unwrap().bytes, b"3");
    assert_eq!(keyed(&local, "one", write("a.md", "3")).change, again.change);
}

/// Two users, or a machine and a container on it, each with a state folder of their own.
#[test]
fn two_journals_of_one_tree_keep_their_temporary_files_apart() {
    const EACH: usize = 150;
    let tree = tempfile::tempdir().unwrap();
    // A person may call a file as they like.
    std::fs::write(tree.path().join(".mtmp-1-0"), "theirs").unwrap();
    let states = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    std::thread::scope(|scope| {
        for (who, state) in states.iter().enumerate() {
            let mut options = options(tree.path());
            options.state = Some(Arc::new(RealFs::open_root(state.path()).unwrap()));
            scope.spawn(move || {
                let store = Store::new(Local::open(options).unwrap());
                for i in 0..EACH {
                    let name = format!("{who}-{i}.md");
                    store.write(&at(&name), &name).unwrap();
                }
            });
        }
    });
    let mut found = 0;
    for entry in std::fs::read_dir(tree.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = std::fs::read_to_string(tree.path().join(&name)).unwrap();
        assert_eq!(text, if name == ".mtmp-1-0" { "theirs" } else { &name });
        found += 1;
    }
    assert_eq!(found, 2 * EACH + 1);
}

const MARK: &str = ".journal/mark";
const LOG: &str = ".journal/0000000000000001.log";

/// Makes three changes, keeps a file of the journal, makes three more, and puts the file back.
fn put_back(root: &Path, name: &str) {
    create(root, &["1", "2", "3"]);
    let kept = std::fs::read(root.join(name)).unwrap();
    create(root, &["4", "5", "6"]);
    std::fs::write(root.join(name), kept).unwrap();
}

#[test]
fn a_mark_that_is_older_than_its_journal_hides_nothing() {
    let root = tempfile::tempdir().unwrap();
    put_back(root.path(), MARK);
    assert_eq!(told(root.path()), ["1", "2", "3", "4", "5", "6"]);
    create(root.path(), &["7"]);
    assert_eq!(told(root.path()), ["1", "2", "3", "4", "5", "6", "7"]);
}

#[test]
fn what_is_written_to_a_journal_that_is_older_than_its_mark_is_found() {
    let root = tempfile::tempdir().unwrap();
    put_back(root.path(), LOG);
    create(root.path(), &["7"]);
    assert_eq!(told(root.path()), ["1", "2", "3", "7"]);
    std::fs::remove_file(root.path().join(MARK)).unwrap();
    create(root.path(), &["8"]);
    assert_eq!(told(root.path()), ["1", "2", "3", "7", "8"]);
}

/// Bytes that came into the middle of a segment move the rest of it away from where the mark says it is.
#[test]
fn a_journal_that_was_shifted_loses_only_what_was_hit() {
    let root = tempfile::tempdir().unwrap();
    create(root.path(), &["1", "2", "3"]);
    let mut log = std::fs::read(root.path().join(LOG)).unwrap();
    log.splice(70..70, *b"QQQQQQQ");
    std::fs::write(root.path().join(LOG), log).unwrap();
    create(root.path(), &["4"]);
    assert_eq!(told(root.path()), ["2", "3", "4"]);
}

/// A copy that is taken while a process writes has a mark and a segment of different moments.
#[test]
fn a_copy_of_a_store_in_use_has_all_records_that_were_copied() {
    let (root, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let writer = store(root.path());
    let copied = |name: &str| {
        std::fs::create_dir_all(copy.path().join(".journal")).unwrap();
        std::fs::copy(root.path().join(name), copy.path().join(name)).unwrap();
    };
    writer.write(&at("1"), "1").unwrap();
    copied(MARK);
    writer.write(&at("2"), "2").unwrap();
    copied(LOG);
    copied("1");
    assert_eq!(told(copy.path()), ["1", "2"]);
    assert_eq!(store(copy.path()).read(&at("2")).unwrap(), "2", "what it tells of is there");
    create(copy.path(), &["3"]);
    assert_eq!(told(copy.path()), ["1", "2", "3"]);
    assert_eq!(told(root.path()), ["1", "2"]);
}
