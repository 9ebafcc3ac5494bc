//! What child processes do, and how they are told.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

use memgrove::Store;
use memgrove::backend::{Change, Edit, Expect, Note};
use memgrove::backends::local::Bug;
use memgrove::vfs::{Open, RealFs, Vfs};

use super::{at, open};

const VARIABLE: &str = "MEMGROVE_TEST_CHILD";

/// Something for a child to do.
pub(super) enum Task {
    /// Adds lines to files, in turn, each by a read-modify-write.
    Update { id: usize, each: usize, files: usize },
    /// Makes changes under keys that every child uses.
    Keys { each: usize },
    /// Makes numbered changes of two files, until it is killed.
    Endless { slot: usize },
    /// Asks so often who has a file open to write.
    Ask { times: usize },
}

/// The line that a child adds.
pub(super) fn line(id: usize, i: usize) -> String {
    format!("line {i} of process {id}")
}

const BUGS: &[Bug] = &[Bug::LockOnTarget, Bug::CompareWithoutLock, Bug::PlainRename, Bug::PlaceBeforeSync];

/// A running child.
pub(super) struct Child {
    process: std::process::Child,
    output: BufReader<ChildStdout>,
}

impl Child {
    pub(super) fn start(root: &Path, bug: Option<Bug>, task: &Task) -> Self {
        let bug = bug.map_or("none".into(), |bug| {
            BUGS.iter().position(|known| *known == bug).expect("children know the bug").to_string()
        });
        let task = match task {
            Task::Update { id, each, files } => format!("update {id} {each} {files}"),
            Task::Keys { each } => format!("keys {each}"),
            Task::Endless { slot } => format!("endless {slot}"),
            Task::Ask { times } => format!("ask {times}"),
        };
        let root = root.to_str().expect("a temporary folder has a plain name");
        let mut process = Command::new(std::env::current_exe().expect("the test binary"))
            .args(["--exact", "processes::child::child", "--ignored", "--nocapture", "--test-threads=1"])
            .env(VARIABLE, format!("{root}\n{bug}\n{task}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the test binary can be run");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        Child { process, output }
    }

    /// Waits for the child to end; an error if it failed.
    pub(super) fn finish(mut self) -> Result<(), String> {
        let said = self.lines();
        let status = self.process.wait().map_err(|error| error.to_string())?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("a child failed: {}", said.join(" / "))),
        }
    }

    /// Whether the child is still at it.
    pub(super) fn is_running(&mut self) -> bool {
        self.process.try_wait().is_ok_and(|status| status.is_none())
    }

    /// Waits until the child has opened the store.
    pub(super) fn wait_until_ready(&mut self) {
        let mut line = String::new();
        while !line.ends_with("ready\n") {
            line.clear();
            let read = self.output.read_line(&mut line).expect("a child speaks UTF-8");
            assert_ne!(read, 0, "a child ended before it was ready");
        }
    }

    /// Kills the child, and gives back the number of the last change that it was told is done.
    pub(super) fn kill(mut self) -> Option<u64> {
        self.process.kill().expect("it is running");
        let last = self.lines().iter().filter_map(|line| line.strip_prefix("ack ")?.parse().ok()).next_back();
        self.process.wait().expect("it has ended");
        last
    }

    /// Everything that the child still says. What a killed child had said stays in the pipe.
    fn lines(&mut self) -> Vec<String> {
        let mut text = String::new();
        // A line that is cut off was not said.
        let _ = std::io::Read::read_to_string(&mut self.output, &mut text);
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(str::to_owned).collect()
    }
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{text}\n").as_bytes()).and_then(|()| out.flush()).expect("the parent listens");
}

/// Not a test: what a child runs.
#[test]
#[ignore = "run by other tests, as a process of its own"]
#[allow(clippy::disallowed_methods)] // A child learns its task from its parent by a variable.
fn child() {
    let Ok(told) = std::env::var(VARIABLE) else { return };
    let mut told = told.split('\n');
    let (root, bug, task) = (told.next(), told.next(), told.next());
    let (Some(root), Some(bug), Some(task)) = (root, bug, task) else { panic!("told too little") };
    let bug = bug.parse().ok().map(|index: usize| BUGS[index]);
    let store = open(Path::new(root), bug).expect("the store opens");
    say("\nready");
    let words: Vec<&str> = task.split(' ').collect();
    let number = |index: usize| -> usize { words[index].parse().expect("a number") };
    match words[0] {
        "update" => update(&store, number(1), number(2), number(3)),
        "keys" => keys(&store, number(1)),
        "endless" => endless(&store, number(1)),
        "ask" => ask(Path::new(root), number(1)),
        other => panic!("told to {other}"),
    }
}

fn update(store: &Store, id: usize, each: usize, files: usize) {
    for i in 0..each {
        let added = format!("{}\n", line(id, i));
        let result = store.update(&at(&format!("{}.md", i % files)), |old| {
            Ok([old.unwrap_or_default(), added.as_bytes()].concat())
        });
        if let Err(error) = result {
            say(&format!("update {i} failed: {error}"));
            panic!("{error}");
        }
        say(&format!("ack {i}"));
    }
}

fn ask(root: &Path, times: usize) {
    let file =
        RealFs::open_root(root).and_then(|tree| tree.open("asked.md", Open::Read)).expect("it is there");
    let busy = (0..times).filter(|_| file.has_writers() == Some(true)).count();
    say(&format!("{busy} of {times}"));
}

fn keys(store: &Store, each: usize) {
    for i in 0..each {
        let edits =
            vec![Edit::Append { at: at("log.md"), bytes: format!("{i}\n").into(), expect: Expect::Any }];
        let note = Note { verb: "test".into(), key: Some(format!("key {i}")), ..Note::default() };
        store.apply(&Change { edits, note }).expect("it can be done");
    }
}

/// Every kind of edit, over and over: a log grows, a file is replaced, another comes, moves and goes.
fn endless(store: &Store, slot: usize) {
    let place = |name: &str| at(&format!("{slot}/{name}"));
    for i in 0_u64.. {
        let text = format!("{i}\n");
        let mut edits = vec![
            Edit::Append { at: place("log.md"), bytes: text.clone().into(), expect: Expect::Any },
            Edit::Write { at: place("last.md"), bytes: text.clone().into(), expect: Expect::Any },
        ];
        match i % 3 {
            0 => edits.push(Edit::Write { at: place("a.md"), bytes: text.into(), expect: Expect::Absent }),
            1 => edits.push(Edit::Rename { from: place("a.md"), to: place("b.md"), expect: Expect::Any }),
            _ => edits.push(Edit::Delete { at: place("b.md"), expect: Expect::Any }),
        }
        let note = Note { verb: "test".into(), ..Note::default() };
        if let Err(error) = store.apply(&Change { edits, note }) {
            say(&format!("change {i} failed: {error}"));
            panic!("{error}");
        }
        say(&format!("ack {i}"));
    }
}
