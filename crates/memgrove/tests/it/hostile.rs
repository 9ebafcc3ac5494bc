//! Hostile paths: whatever a path is spelled like, and whatever lies in the tree, nothing outside
//! the store's folder is read or changed.
//!
//! The store lies in a watched folder beside canaries. The spellings aim at the canaries and at
//! nothing else on the machine; `{root}` and `{outside}` stand for the folders of the test.

#![cfg(unix)]
#![allow(clippy::unwrap_used)] // A test that cannot go on fails.
#![allow(clippy::disallowed_methods)] // The disk is made hostile past the store.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use memgrove::backend::{Change, Edit, Expect, Note};
use memgrove::backends::{Local, LocalOptions};
use memgrove::clock::SystemClock;
use memgrove::memory::Plan;
use memgrove::shapes::files::{self, Limits, Operation};
use memgrove::shapes::memory_tool;
use memgrove::vfs::RealFs;
use memgrove::{Kind, Locator, Memory, Result, Store};
use rustix::fs::{CWD, FileType, Mode, RenameFlags};
use serde_json::{Value, json};
use tempfile::TempDir;

const CANARY: &str = "CANARY-4e1f";
/// What the tree holds that is neither file nor folder.
const SPECIAL: [&str; 11] = [
    "link-file",
    "link-dir",
    "link-parent",
    "link-self",
    "link-loop-a",
    "link-dangling",
    "link-absolute",
    "notes/link-mid",
    "fifo",
    "socket",
    "device",
];

/// Every hostile spelling, the placeholders still in it.
fn spellings() -> Vec<String> {
    let spellings: Vec<String> = serde_json::from_str(include_str!("../../../../tests/hostile-paths.json"))
        .expect("a list of strings");
    assert!(spellings.len() >= 400, "only {} spellings", spellings.len());
    spellings
}

/// A store in a watched folder, canaries around it, and traps in it.
struct Trap {
    parent: TempDir,
    memory: Memory,
    outside: BTreeMap<String, String>,
}

impl Trap {
    fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name);
        let siblings = ["outside", "store-evil", "store_backup", "memories_backup", "memories-evil"];
        for folder in siblings.into_iter().chain(["store", "store/notes"]) {
            fs::create_dir(path(folder)).unwrap();
        }
        for folder in siblings {
            fs::write(path(folder).join("canary.md"), CANARY).unwrap();
        }
        fs::write(path("outside/hard.md"), "linked").unwrap();
        fs::write(path("canary.md"), CANARY).unwrap();
        fs::hard_link(path("outside/hard.md"), path("store/hard-link.md")).unwrap();
        let link = |to: &str, name: &str| symlink(to, path("store").join(name)).unwrap();
        link("../outside/canary.md", "link-file");
        link("../outside", "link-dir");
        link("..", "link-parent");
        link("link-self", "link-self");
        link("link-loop-b", "link-loop-a");
        link("link-loop-a", "link-loop-b");
        link("../outside/new.md", "link-dangling");
        link(path("outside").to_str().unwrap(), "link-absolute");
        link("../../outside", "notes/link-mid");
        rustix::fs::mknodat(CWD, path("store/fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        UnixListener::bind(path("store/socket")).unwrap();
        make_device(&path("store/device"));
        let memory = opened(&path("store"));
        let outside = watched(parent.path());
        let trap = Trap { parent, memory, outside };
        trap.place_bait();
        trap
    }

    /// Puts back what the spellings name, what is renamed to them, and room for what they are
    /// renamed to.
    fn place_bait(&self) {
        self.tool(&json!({"command": "delete", "path": "/memories/moved.md"}));
        for key in ["notes.md", "notes/a.md", "bait.md"] {
            let at = Locator::new(key).unwrap();
            let _ =
                self.apply(|store| files::write(store, &at, b"inside\n".into(), None, &Limits::default()));
        }
    }

    fn spelled(&self, spelling: &str) -> String {
        let path = |name: &str| self.parent.path().join(name).to_str().unwrap().to_owned();
        spelling.replace("{outside}", &path("outside")).replace("{root}", &path("store"))
    }

    /// What an operation answers, as text.
    fn apply<T>(&self, plan: impl FnMut(&Store) -> Result<Plan<T>>) -> String
    where
        T: std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
    {
        match self.memory.apply(Note::default(), plan) {
            Ok(done) => format!("{:?}", done.outcome),
            Err(error) => format!("{error:?}"),
        }
    }

    fn tool(&self, command: &Value) -> String {
        memory_tool::run(&self.memory, &Locator::root(), Note::default(), command).content
    }

    /// Runs every file operation on a place and gives back all that they answered.
    fn file_operations(&self, at: &Locator) -> String {
        let limits = &Limits::default();
        let [bait, moved] = &["bait.md", "moved.md"].map(|key| Locator::new(key).unwrap());
        let write = Operation::Write { path: at.clone(), content: "new\n".into(), expect: None };
        let remove = Operation::Delete { path: at.clone(), expect: None };
        [
            format!("{:?}", files::view(self.memory.store(), at).map_err(|error| format!("{error:?}"))),
            self.apply(|store| files::replace(store, at, "inside", "changed", None, limits)),
            self.apply(|store| files::insert(store, at, 1, "inserted", None, limits)),
            self.apply(|store| files::create(store, at, b"created\n".into(), limits)),
            self.apply(|store| files::rename(store, at, moved, None)),
            self.apply(|store| files::rename(store, moved, at, None)),
            self.apply(|store| files::batch(store, &[write.clone(), remove.clone()], limits)),
            self.apply(|store| files::rename(store, bait, at, None)),
            self.apply(|store| files::delete(store, at, None)),
        ]
        .concat()
    }

    /// Runs every command of the Memory Tool on a path and gives back all that they answered.
    fn tool_commands(&self, path: &str) -> String {
        [
            json!({"command": "view", "path": path}),
            json!({"command": "str_replace", "path": path, "old_str": "inside", "new_str": "changed"}),
            json!({"command": "insert", "path": path, "insert_line": 0, "insert_text": "inserted"}),
            json!({"command": "rename", "old_path": path, "new_path": "/memories/moved.md"}),
            json!({"command": "rename", "old_path": "/memories/moved.md", "new_path": path}),
            json!({"command": "create", "path": path, "file_text": "created"}),
            json!({"command": "delete", "path": path}),
            json!({"command": "rename", "old_path": "/memories/bait.md", "new_path": path}),
            json!({"command": "delete", "path": path}),
        ]
        .iter()
        .map(|command| self.tool(command))
        .collect()
    }

    /// Checks that an answer betrays nothing of what is outside, nor where the store lies.
    fn check_answer(&self, spelling: &str, answer: &str) {
        assert!(!answer.contains(CANARY), "{spelling:?} read a canary: {answer}");
        let host = self.parent.path().to_str().unwrap();
        assert!(spelling.contains('{') || !answer.contains(host), "{spelling:?} leaks a path: {answer}");
    }

    /// Checks that nothing outside has changed, and that no trap in the tree was moved or removed.
    fn check_watched(&self, spelling: &str) {
        assert_eq!(watched(self.parent.path()), self.outside, "{spelling:?} changed something outside");
        for name in SPECIAL {
            let kind =
                fs::symlink_metadata(self.parent.path().join("store").join(name)).map(|m| m.file_type());
            let is_special =
                |t: &fs::FileType| t.is_symlink() || t.is_fifo() || t.is_socket() || t.is_char_device();
            assert!(kind.as_ref().is_ok_and(is_special), "{spelling:?} changed `{name}`: {kind:?}");
        }
    }
}

/// The device that swallows everything, under another name. Only root may make one: for others a pipe takes its place.
fn make_device(path: &Path) {
    let make = |kind, device| rustix::fs::mknodat(CWD, path, kind, Mode::from_raw_mode(0o600), device);
    if make(FileType::CharacterDevice, rustix::fs::makedev(1, 3)).is_err() {
        println!("no device could be made, as only root may: a pipe takes its place");
        make(FileType::Fifo, 0).unwrap();
    }
}

fn opened(root: &Path) -> Memory {
    let tree = Arc::new(RealFs::open_root(root).unwrap());
    let local = Local::open(LocalOptions::new(tree, Arc::new(SystemClock))).unwrap();
    Memory::new(Store::new(local), Arc::new(SystemClock))
}

/// Everything in the watched folder but the store: its kind, mode, time, inode and content.
fn watched(parent: &Path) -> BTreeMap<String, String> {
    fn visit(folder: &Path, parent: &Path, found: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path == parent.join("store") {
                continue;
            }
            let meta = fs::symlink_metadata(&path).unwrap();
            let content = if meta.is_file() { fs::read_to_string(&path).unwrap() } else { String::new() };
            let times = (meta.mtime(), meta.mtime_nsec());
            let seen = format!("{:o} {:?} {} {content}", meta.mode(), times, meta.ino());
            found.insert(path.to_str().unwrap().to_owned(), seen);
            if meta.is_dir() {
                visit(&path, parent, found);
            }
        }
    }
    let mut found = BTreeMap::new();
    visit(parent, parent, &mut found);
    found
}

/// Fails instead of waiting for ever, as a reader of a pipe would.
fn within_seconds(seconds: u64, test: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        let _ = sender.send(());
    });
    match receiver.recv_timeout(Duration::from_secs(seconds)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("an operation did not come back in {seconds} s"),
        _ => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}

#[test]
fn a_locator_never_names_anything_outside() {
    for spelling in spellings() {
        match Locator::new(&spelling) {
            Ok(at) => {
                assert!(!at.key().starts_with('/') && at.key().len() <= 1024, "{spelling:?}");
                assert!(
                    at.parts().all(|part| !matches!(part, "." | "..") && part.len() <= 255),
                    "{spelling:?}"
                );
                assert!(!at.key().chars().any(char::is_control), "{spelling:?}");
                assert_eq!(Locator::new(at.key()).unwrap(), at);
            }
            Err(error) => {
                assert_eq!((error.kind(), error.code_name()), (Kind::Invalid, Some("INVALID_PATH")));
                assert!(error.hint_text().is_some(), "{spelling:?}");
                assert!(!error.message().chars().any(char::is_control), "{spelling:?}: {error}");
            }
        }
    }
}

#[test]
fn file_operations_stay_inside() {
    within_seconds(300, || {
        let trap = Trap::new();
        for spelling in spellings() {
            let Ok(at) = Locator::new(trap.spelled(&spelling)) else { continue };
            trap.check_answer(&spelling, &trap.file_operations(&at));
            trap.check_watched(&spelling);
            trap.place_bait();
        }
    });
}

#[test]
fn the_memory_tool_stays_inside() {
    within_seconds(300, || {
        let trap = Trap::new();
        for spelling in spellings() {
            let spelled = trap.spelled(&spelling);
            for path in [spelled.clone(), format!("/memories/{spelled}"), format!("/memories{spelled}")] {
                trap.check_answer(&spelling, &trap.tool_commands(&path));
            }
            trap.check_watched(&spelling);
            trap.place_bait();
        }
        trap.check_answer("", &trap.tool(&json!({"command": "view", "path": "/memories"})));
    });
}

#[test]
fn links_and_special_files_are_refused_and_not_shown() {
    within_seconds(60, || {
        let trap = Trap::new();
        for name in SPECIAL {
            let path = format!("/memories/{name}");
            let fails = |command: Value, texts: &[&str]| {
                let reply = memory_tool::run(&trap.memory, &Locator::root(), Note::default(), &command);
                assert!(reply.is_error, "{command}: {}", reply.content);
                assert!(
                    texts.iter().any(|text| reply.content.contains(text)),
                    "{command}: {}",
                    reply.content
                );
            };
            let refused = "link";
            fails(json!({"command": "view", "path": path}), &["Unsupported file type for /memories/"]);
            fails(json!({"command": "create", "path": path, "file_text": ""}), &["already exists"]);
            let edit = json!({"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"});
            fails(edit, &["is not a file."]);
            fails(json!({"command": "delete", "path": path}), &[refused]);
            let rename = json!({"command": "rename", "old_path": path, "new_path": "/memories/new.md"});
            fails(rename, &[refused, "neither a file nor a folder"]);
            for beneath in [format!("{path}/canary.md"), format!("{path}/new.md")] {
                fails(
                    json!({"command": "create", "path": beneath, "file_text": ""}),
                    &["link", "neither", "is a file"],
                );
                let absent = ["does not exist", "Unsupported file type", "link"];
                fails(json!({"command": "view", "path": beneath}), &absent);
            }
        }
        let shown = trap.tool(&json!({"command": "view", "path": "/memories"}));
        assert!(shown.contains("/memories/notes.md") && shown.contains("/memories/hard-link.md"), "{shown}");
        let special = ["/memories/link-", "fifo", "socket", "device"];
        assert!(!special.iter().any(|name| shown.contains(name)), "{shown}");
        assert!(!shown.contains("canary"), "{shown}");
        trap.check_watched("links");
    });
}

#[test]
fn a_write_breaks_a_hard_link_instead_of_writing_through_it() {
    let trap = Trap::new();
    let at = &Locator::new("hard-link.md").unwrap();
    let answer = trap.apply(|store| files::replace(store, at, "linked", "changed", None, &Limits::default()));
    assert!(answer.starts_with("Edited"), "{answer}");
    assert_eq!(trap.memory.store().read(at).unwrap(), "changed");
    trap.check_watched("hard-link.md");
}

#[test]
fn an_append_breaks_a_hard_link_too() {
    let trap = Trap::new();
    let (store, at) = (trap.memory.store(), Locator::new("hard-link.md").unwrap());
    let append =
        |text: &str| Edit::Append { at: at.clone(), bytes: text.to_owned().into(), expect: Expect::Any };
    let path = trap.parent.path().join("store/hard-link.md");
    store.apply(&Change { edits: vec![append("")], note: Note::default() }).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().nlink(), 2, "nothing was added");
    let edits = vec![append(""), append(" and more"), append(" and more")];
    let applied = store.apply(&Change { edits, note: Note::default() }).unwrap();
    assert_eq!(applied.versions, [None, None, None]);
    assert_eq!(
        (store.read(&at).unwrap(), fs::metadata(&path).unwrap().nlink()),
        ("linked and more and more".into(), 1)
    );
    trap.check_watched("hard-link.md");
}

/// A folder that is swapped for a link to the outside, again and again, beside the operations.
#[test]
fn a_folder_swapped_for_a_link_leads_nowhere() {
    within_seconds(120, || {
        let trap = Trap::new();
        let path = |name: &str| trap.parent.path().join("store").join(name);
        fs::create_dir(path("swing")).unwrap();
        symlink("../outside", path("swung")).unwrap();
        let stop = AtomicBool::new(false);
        let mut served = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Most of the time the folder is there, so that operations begin in it.
                for wait_us in [100, 1500].into_iter().cycle() {
                    let flags = RenameFlags::EXCHANGE;
                    rustix::fs::renameat_with(CWD, path("swing"), CWD, path("swung"), flags).unwrap();
                    std::thread::sleep(Duration::from_micros(wait_us));
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let mut memory = opened(&path(""));
            for round in 0..1000 {
                // Opened again now and then: recovery meets the link too, and a store that met it in
                // the middle of a commit may take no more changes.
                if round % 20 == 0 {
                    drop(memory);
                    memory = opened(&path(""));
                }
                let name = if round % 3 == 0 { "canary.md".to_owned() } else { format!("{}.md", round % 50) };
                let path = format!("/memories/swing/{name}");
                for command in [
                    json!({"command": "view", "path": path}),
                    json!({"command": "create", "path": path, "file_text": "inside\n"}),
                    json!({"command": "insert", "path": path, "insert_line": 0, "insert_text": "inside"}),
                    json!({"command": "delete", "path": path}),
                ] {
                    let reply = memory_tool::run(&memory, &Locator::root(), Note::default(), &command);
                    served += usize::from(!reply.is_error);
                    trap.check_answer("swing", &reply.content);
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        trap.check_watched("swing");
        assert!(served > 50, "only {served} commands met the folder, so little was tried");
    });
}
