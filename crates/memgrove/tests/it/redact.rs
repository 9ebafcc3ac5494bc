//! Forgetting: what was redacted is nowhere any more, and nothing else is lost, wherever the power goes.

use std::sync::Arc;

use memgrove::backend::{Change, ChangeId, Edit, Expect, HistoryQuery, Keep, Moment, Note, Pruning};
use memgrove::backends::local::{Local, LocalOptions};
use memgrove::backends::{CacheOptions, Cached, Ram, Vault};
use memgrove::clock::ManualClock;
use memgrove::error::code;
use memgrove::memory::{REDACTION, UndoScope};
use memgrove::vfs::{Open, Recording, SimFs, Vfs};
use memgrove::{Backend, Kind, Locator, Memory, Store};

use crate::crash::explore::{mix, open};

const SECRET: &str = "sk-the-secret-of-this-test";

fn at(key: &str) -> Locator {
    Locator::new(key).expect("a valid key")
}

fn note(verb: &str) -> Note {
    Note { verb: verb.into(), ..Note::default() }
}

fn memory(disk: &SimFs) -> Memory {
    let clock = Arc::new(ManualClock::default());
    let mut options = LocalOptions::new(Arc::new(disk.clone()), clock.clone());
    options.background = false;
    Memory::new(Store::new(Local::open(options).expect("it opens")), clock)
}

fn did(backend: &dyn Backend, edit: Edit) -> ChangeId {
    backend.apply(&Change { edits: vec![edit], note: note("test") }).expect("it is possible").change
}

fn wrote(backend: &dyn Backend, key: &str, text: &str) -> ChangeId {
    did(backend, Edit::Write { at: at(key), bytes: text.to_owned().into(), expect: Expect::Any })
}

/// A file that held a secret, was changed, moved, and changed again; and the change with the secret.
fn prepared(backend: &dyn Backend) -> (ChangeId, ChangeId) {
    let first = wrote(backend, "a.md", "harmless\n");
    let secret = wrote(backend, "a.md", &format!("{SECRET}\n"));
    wrote(backend, "a.md", "clean\n");
    did(backend, Edit::Rename { from: at("a.md"), to: at("b/c.md"), expect: Expect::Any });
    wrote(backend, "b/c.md", "cleaner\n");
    wrote(backend, "other.md", "another\n");
    (first, secret)
}

/// The names of all files whose bytes hold the secret.
fn holders(disk: &SimFs, folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (name, stat) in disk.read_dir(folder).expect("it can be listed") {
        let name = name.expect("it is text");
        if [".", ".."].contains(&name.as_str()) {
            continue;
        }
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        if stat.kind == memgrove::backend::FileKind::Folder {
            found.extend(holders(disk, &path));
            continue;
        }
        let bytes = disk.open(&path, Open::Read).and_then(|file| file.read_all()).expect("it can be read");
        if bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
            found.push(path);
        }
    }
    found
}

fn check_the_rest(backend: &dyn Backend, first: &ChangeId) {
    assert_eq!(backend.read(&at("b/c.md")).unwrap().bytes, b"cleaner\n");
    assert_eq!(backend.read(&at("other.md")).unwrap().bytes, b"another\n");
    let past = |key: &str, moment| backend.read_past(&at(key), &moment).unwrap();
    assert_eq!(past("a.md", Moment::After(first.clone())), Some(b"harmless\n".to_vec()));
    let last = backend.history(&HistoryQuery { at: Some(at("b/c.md")), ..HistoryQuery::default() }).unwrap();
    let before = Moment::Before(last[0].change.clone());
    assert_eq!(past("b/c.md", before), Some(b"clean\n".to_vec()));
    assert_eq!(backend.check().unwrap(), []);
}

#[test]
fn what_is_redacted_is_nowhere_and_the_history_stays() {
    let disk = SimFs::new();
    let memory = memory(&disk);
    let backend = memory.store().backend();
    let (first, secret) = prepared(&**backend);
    let changes = memory.history(&HistoryQuery::default()).unwrap().len();
    assert_ne!(holders(&disk, ""), Vec::<String>::new(), "the test can fail");
    memory.redact(note("redact"), &at("a.md"), &Moment::After(secret.clone())).unwrap();
    assert_eq!(holders(&disk, ""), Vec::<String>::new());
    let history = memory.history(&HistoryQuery::default()).unwrap();
    assert_eq!(history.len(), changes + 1);
    assert!(history[0].note.key.as_deref().is_some_and(|key| key.starts_with(REDACTION)));
    assert_eq!(history[0].note.reason.as_deref(), Some(secret.as_str()));
    let gone = backend.read_past(&at("a.md"), &Moment::After(secret.clone())).unwrap_err();
    assert_eq!((gone.kind(), gone.code_name()), (Kind::NotFound, Some(code::REDACTED)));
    check_the_rest(&**backend, &first);
    memory.redact(note("redact"), &at("a.md"), &Moment::After(secret.clone())).expect("again is no error");
    assert_eq!(memory.history(&HistoryQuery::default()).unwrap().len(), changes + 1);
    wrote(&**backend, "a.md", "new here\n");
    drop(memory);
    let backend = open(Arc::new(disk.clone()), None, None).unwrap();
    check_the_rest(&backend, &first);
}

#[test]
fn an_undo_that_meets_what_was_redacted_names_another() {
    let memory = memory(&SimFs::new());
    let backend = memory.store().backend();
    let kept = wrote(&**backend, "kept.md", "harmless\n");
    let secret = wrote(&**backend, "a.md", SECRET);
    did(&**backend, Edit::Delete { at: at("a.md"), expect: Expect::Any });
    memory.redact(note("redact"), &at("a.md"), &Moment::After(secret)).unwrap();
    let refused = memory.undo(note("undo"), &UndoScope::Last).unwrap_err();
    assert_eq!(refused.code_name(), Some(code::REDACTED));
    assert!(refused.hint_text().unwrap().contains(&format!("`memgrove undo {kept}`")), "{refused:?}");
    memory.undo(note("undo"), &UndoScope::Change(kept)).unwrap();
    assert!(!memory.store().exists(&at("kept.md")).unwrap());
}

#[test]
fn a_storage_around_another_forgets_as_that_one_does() {
    let clock = Arc::new(ManualClock::default());
    let options = |disk: &SimFs| LocalOptions {
        background: false,
        ..LocalOptions::new(Arc::new(disk.clone()), clock.clone())
    };
    let cached = |disk: &SimFs| -> Arc<dyn Backend> {
        let local = Arc::new(Local::open(options(disk)).unwrap());
        Arc::new(Cached::new(local, CacheOptions::new(clock.clone())))
    };
    let vault = |disk: &SimFs| -> Arc<dyn Backend> { Arc::new(Vault::open(options(disk)).unwrap()) };
    for wrap in [&cached as &dyn Fn(&SimFs) -> Arc<dyn Backend>, &vault] {
        let disk = SimFs::new();
        let backend = wrap(&disk);
        let (first, secret) = prepared(&*backend);
        backend.redact(&at("a.md"), &Moment::After(secret)).unwrap();
        assert_eq!(holders(&disk, ""), Vec::<String>::new());
        assert!(backend.read_past(&at("a.md"), &Moment::After(first)).unwrap().is_some());
    }
    let ram = Ram::default();
    let change = wrote(&ram, "a.md", SECRET);
    assert_eq!(ram.redact(&at("a.md"), &Moment::After(change)).unwrap_err().kind(), Kind::Unsupported);
}

#[test]
fn what_is_still_there_is_not_redacted() {
    let disk = SimFs::new();
    let memory = memory(&disk);
    let backend = memory.store().backend();
    let secret = wrote(&**backend, "a.md", SECRET);
    let refused = memory.redact(note("redact"), &at("a.md"), &Moment::After(secret.clone())).unwrap_err();
    assert_eq!(refused.kind(), Kind::Conflict);
    assert_eq!(memory.store().read(&at("a.md")).unwrap(), SECRET);
    did(&**backend, Edit::Delete { at: at("a.md"), expect: Expect::Any });
    memory.redact(note("redact"), &at("a.md"), &Moment::After(secret.clone())).unwrap();
    assert_eq!(holders(&disk, ""), Vec::<String>::new());
    let unknown =
        memory.redact(note("redact"), &at("a.md"), &Moment::After(ChangeId::new("99"))).unwrap_err();
    assert_eq!(unknown.kind(), Kind::NotFound);
}

/// Records keep what their file was in `.backup/`: two of them here, one deleted since.
#[test]
fn backups_are_redacted_too() {
    let disk = SimFs::new();
    let memory = memory(&disk);
    let backend = memory.store().backend();
    let secret = wrote(&**backend, "records/tasks.jsonl", SECRET);
    wrote(&**backend, "records/.backup/tasks.jsonl.backup.1", SECRET);
    wrote(&**backend, "records/.backup/tasks.jsonl.backup.2", SECRET);
    wrote(&**backend, "records/.backup/tasks.jsonl.backup.3", "another\n");
    did(&**backend, Edit::Delete { at: at("records/.backup/tasks.jsonl.backup.1"), expect: Expect::Any });
    let refused = memory
        .redact(note("redact"), &at("records/tasks.jsonl"), &Moment::After(secret.clone()))
        .unwrap_err();
    assert_eq!(refused.kind(), Kind::Conflict);
    assert!(memory.store().exists(&at("records/.backup/tasks.jsonl.backup.2")).unwrap(), "nothing was done");
    wrote(&**backend, "records/tasks.jsonl", "clean\n");
    assert!(holders(&disk, "").len() > 1, "the test can fail");
    memory.redact(note("redact"), &at("records/tasks.jsonl"), &Moment::After(secret.clone())).unwrap();
    assert_eq!(holders(&disk, ""), Vec::<String>::new());
    assert!(memory.store().exists(&at("records/.backup/tasks.jsonl.backup.3")).unwrap());
    assert_eq!(backend.check().unwrap(), []);
}

/// Shows a check every disk that a power cut can leave, and a second one while the store is opened again.
fn after_every_cut(recording: &Recording, calls_min: usize, check: impl Fn(&str, &SimFs)) {
    assert!(recording.ops() > calls_min, "only {} calls", recording.ops());
    for after in 0..=recording.ops() {
        for seed in 0..8 {
            let disk = recording.power_cut(after, seed);
            disk.record();
            drop(open(Arc::new(disk.clone()), None, None).unwrap());
            let opening = disk.recording();
            let again = usize::try_from(mix(seed, after as u64, 1)).unwrap() % (opening.ops() + 1);
            let when = format!("cut after {after}, seed {seed}");
            check(&when, &recording.power_cut(after, seed));
            check(&format!("{when}, and again after {again}"), &opening.power_cut(again, seed));
        }
    }
}

#[test]
fn power_cuts_during_a_redaction_lose_nothing() {
    let disk = SimFs::new();
    let backend = open(Arc::new(disk.clone()), None, None).unwrap();
    let (first, secret) = prepared(&backend);
    disk.record();
    backend.redact(&at("a.md"), &Moment::After(secret.clone())).unwrap();
    after_every_cut(&disk.recording(), 10, |when, disk| {
        let backend = open(Arc::new(disk.clone()), None, None).unwrap();
        check_the_rest(&backend, &first);
        match backend.read_past(&at("a.md"), &Moment::After(secret.clone())) {
            Ok(bytes) => {
                assert_eq!(bytes.as_deref(), Some(format!("{SECRET}\n").as_bytes()));
                backend.redact(&at("a.md"), &Moment::After(secret.clone())).unwrap();
            }
            Err(error) => assert_eq!(error.code_name(), Some(code::REDACTED)),
        }
        assert_eq!(holders(disk, ""), Vec::<String>::new(), "{when}");
    });
}

/// The same where everything that holds it is taken out at once.
#[test]
fn power_cuts_while_all_that_holds_a_secret_is_redacted_lose_nothing() {
    let disk = SimFs::new();
    let backend = open(Arc::new(disk.clone()), None, None).unwrap();
    let (first, _) = prepared(&backend);
    let holds = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
    disk.record();
    assert!(backend.redact_holding(&Locator::root(), &holds).unwrap() > 0);
    after_every_cut(&disk.recording(), 10, |when, disk| {
        let backend = open(Arc::new(disk.clone()), None, None).unwrap();
        check_the_rest(&backend, &first);
        backend.redact_holding(&Locator::root(), &holds).unwrap();
        assert_eq!(holders(disk, ""), Vec::<String>::new(), "{when}");
    });
}

/// Others write while a version is taken out: every answered change is there.
#[test]
fn writers_beside_a_redaction_lose_nothing() {
    let disk = SimFs::new();
    let memory = memory(&disk);
    let backend = memory.store().backend();
    let (first, secret) = prepared(&**backend);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let disk = disk.clone();
            scope.spawn(move || {
                // Each as a process of its own would.
                let backend = open(Arc::new(disk), None, None).unwrap();
                for line in 0..25 {
                    wrote(&backend, &format!("w{writer}-{line}.md"), "kept\n");
                }
            });
        }
        memory.redact(note("redact"), &at("a.md"), &Moment::After(secret.clone())).unwrap();
    });
    for (writer, line) in (0..4).flat_map(|writer| (0..25).map(move |line| (writer, line))) {
        assert_eq!(memory.store().read(&at(&format!("w{writer}-{line}.md"))).unwrap(), "kept\n");
    }
    assert_eq!(memory.history(&HistoryQuery::default()).unwrap().len(), 6 + 100 + 1);
    check_the_rest(&**backend, &first);
    assert_eq!(holders(&disk, ""), Vec::<String>::new());
}

/// A record of a file that grows line by line: what holds it goes, wherever it stands.
#[test]
fn appended_content_is_redacted_too() {
    let disk = SimFs::new();
    let memory = memory(&disk);
    let backend = memory.store().backend();
    let append = |text: &str| {
        let bytes = format!("{text}\n").into();
        did(&**backend, Edit::Append { at: at("log/a.jsonl"), bytes, expect: Expect::Any })
    };
    let (first, secret) = (append("harmless"), append(SECRET));
    append("later");
    wrote(&**backend, "log/a.jsonl", "harmless\nlater\n");
    wrote(&**backend, "other.md", "another\n");
    let holds = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
    assert_eq!(backend.redact_holding(&at("other.md"), &holds).unwrap(), 0);
    assert_ne!(holders(&disk, ""), Vec::<String>::new(), "the test can fail");
    assert!(backend.redact_holding(&at("log"), &holds).unwrap() > 0);
    assert_eq!(holders(&disk, ""), Vec::<String>::new());
    let past = |change: &ChangeId| backend.read_past(&at("log/a.jsonl"), &Moment::After(change.clone()));
    assert_eq!(past(&first).unwrap(), Some(b"harmless\n".to_vec()));
    assert_eq!(past(&secret).unwrap_err().code_name(), Some(code::REDACTED));
    let now = append("last");
    assert_eq!(past(&now).unwrap(), Some(b"harmless\nlater\nlast\n".to_vec()));
    assert_eq!(memory.history(&HistoryQuery::default()).unwrap().len(), 6);
    assert_eq!(backend.check().unwrap(), []);
}

/// Wherever the power goes, the files are whole, and what is left of the history has no gap.
#[test]
fn power_cuts_during_pruning_lose_nothing() {
    let disk = SimFs::new();
    let backend = open(Arc::new(disk.clone()), None, None).unwrap();
    for round in 0..3 {
        wrote(&backend, "a.md", &format!("{round}\n"));
        wrote(&backend, "b.md", &format!("{round}\n"));
        // A segment begins, and nothing goes.
        assert_eq!(backend.prune(Keep::Changes(usize::MAX), Pruning::Done).unwrap().changes, 0);
    }
    assert_eq!(backend.prune(Keep::Changes(1), Pruning::Planned).unwrap().changes, 4);
    disk.record();
    assert_eq!(backend.prune(Keep::Changes(1), Pruning::Done).unwrap().changes, 4);
    after_every_cut(&disk.recording(), 3, |when, disk| {
        let backend = open(Arc::new(disk.clone()), None, None).unwrap();
        let history = backend.history(&HistoryQuery::default()).unwrap();
        let left: Vec<&str> = history.iter().map(|past| past.change.as_str()).collect();
        assert_eq!(left, ["6", "5", "4", "3", "2", "1"][..left.len()], "{when}");
        assert!(left.len() >= 2 && backend.check().unwrap().is_empty());
        assert_eq!(backend.read(&at("a.md")).unwrap().bytes, b"2\n");
        assert_eq!(wrote(&backend, "c.md", "new\n").as_str(), "7");
    });
}
