//! The cost of durability, as ratios taken side by side in one run: `make bench`.
//!
//! Times on shared machines are noise; a ratio of two things measured alternately is not.

#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)] // It measures the machine, and speaks.

use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use memgrove::backend::{Change, Edit, Expect, Note};
use memgrove::backends::{Local, LocalOptions};
use memgrove::clock::SystemClock;
use memgrove::vfs::RealFs;
use memgrove::{Locator, Store};
use rustix::fs::{CWD, RenameFlags};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, root, name] = arguments.as_slice() {
        match mode.as_str() {
            "--writer" => return writer(Path::new(root), name),
            "--raw-writer" => return raw_writer(Path::new(root), name),
            _ => {}
        }
    }
    println!("| figure | measured | bound |");
    println!("|---|--:|--:|");
    single();
    processes();
    batch();
}

fn temp() -> tempfile::TempDir {
    // Beside the build, not in /tmp, which may be memory.
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&target).unwrap();
    tempfile::tempdir_in(target).unwrap()
}

fn store(root: &Path) -> Store {
    let tree = Arc::new(RealFs::open_root(root).unwrap());
    Store::new(Local::open(LocalOptions::new(tree, Arc::new(SystemClock))).unwrap())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn row(figure: &str, measured: String, bound: &str) {
    println!("| {figure} | {measured} | {bound} |");
}

/// A log that is appended to and synced, with nothing around it.
struct RawLog {
    file: std::fs::File,
    offset: u64,
}

impl RawLog {
    fn new(root: &Path, name: &str) -> Self {
        RawLog { file: std::fs::File::create_new(root.join(name)).unwrap(), offset: 0 }
    }

    fn append(&mut self, text: &str) {
        self.file.write_all_at(text.as_bytes(), self.offset).unwrap();
        self.file.sync_data().unwrap();
        self.offset += text.len() as u64;
    }
}

/// One durable write of 1 KiB against an append and `fdatasync` of the same bytes, in turns. Beside
/// them the bare system calls that any write needs that leaves a plain file and never a torn one.
fn single() {
    const ROUNDS: usize = 1_200;
    const KINDS: usize = 4;
    let (ours, raw) = (temp(), temp());
    let store = store(ours.path());
    let (mut log, mut bare_log) = (RawLog::new(raw.path(), "log"), RawLog::new(raw.path(), "bare"));
    let mut times = [const { Vec::new() }; KINDS];
    for round in 0..ROUNDS {
        let text = format!("{round:01024}");
        // In turning orders: what comes after a sync finds a busier disk.
        let order =
            (0..KINDS).map(|step| (round + step * if round % 2 == 0 { 1 } else { KINDS - 1 }) % KINDS);
        for which in order {
            let start = Instant::now();
            match which {
                0 => log.append(&text),
                1 => drop(store.write(&Locator::new(format!("notes/{}.md", round % 100)).unwrap(), &text)),
                2 => {
                    drop(
                        store.write(&Locator::new(format!("new/{}/{round}.md", round / 100)).unwrap(), &text),
                    );
                }
                _ => bare_replace(raw.path(), round % 100, &text, &mut bare_log),
            }
            times[which].push(start.elapsed());
        }
    }
    let [raw, write, create, bare] = times.map(median);
    let ratio =
        |time: Duration| format!("{:.2} ({time:.0?} / {raw:.0?})", time.as_secs_f64() / raw.as_secs_f64());
    row("replace a 1 KiB file durably / raw append + fdatasync", ratio(write), "1.5");
    row("create a 1 KiB file durably / raw append + fdatasync", ratio(create), "1.5");
    row("the bare system calls of a replacement / raw append + fdatasync", ratio(bare), "-");
}

fn bare_replace(root: &Path, file: usize, text: &str, log: &mut RawLog) {
    let (temp, place) = (root.join("temp"), root.join(file.to_string()));
    std::fs::write(&temp, text).unwrap();
    log.append(text);
    match rustix::fs::renameat_with(CWD, &temp, CWD, &place, RenameFlags::EXCHANGE) {
        Ok(()) => std::fs::remove_file(&temp).unwrap(),
        Err(_) => std::fs::rename(&temp, &place).unwrap(),
    }
}

fn writer(root: &Path, name: &str) {
    let store = store(root);
    until_stopped(|count| {
        let at = Locator::new(format!("notes/{name}-{}.md", count % 50)).unwrap();
        store.write(&at, &format!("{count:01024}")).unwrap();
    });
}

fn raw_writer(root: &Path, name: &str) {
    let mut log = RawLog::new(root, name);
    until_stopped(|count| log.append(&format!("{count:01024}")));
}

/// Writes until the parent closes the standard input, then says how often.
fn until_stopped(mut write: impl FnMut(u64)) {
    let stop = std::thread::spawn(|| std::io::stdin().read_to_end(&mut Vec::new()));
    println!("ready");
    let mut count = 0u64;
    while !stop.is_finished() {
        write(count);
        count += 1;
    }
    println!("{count}");
}

/// The writes a second of one process against those of eight, one after the other; and the same
/// for processes that append to a log each, which have nothing to agree on.
fn processes() {
    let throughput = |mode: &str, count: usize| {
        let root = temp();
        drop(store(root.path()).write(&Locator::new("first").unwrap(), ""));
        let spawn = |index: usize| {
            Command::new(std::env::current_exe().unwrap())
                .args([mode.as_ref(), root.path().as_os_str(), format!("w{index}").as_ref()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let mut children: Vec<_> = (0..count).map(spawn).collect();
        for child in &mut children {
            child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        }
        let start = Instant::now();
        std::thread::sleep(Duration::from_secs(2));
        children.iter_mut().for_each(|child| drop(child.stdin.take()));
        let elapsed = start.elapsed();
        let total: u64 = children
            .into_iter()
            .map(|child| {
                String::from_utf8(child.wait_with_output().unwrap().stdout)
                    .unwrap()
                    .trim()
                    .parse::<u64>()
                    .unwrap()
            })
            .sum();
        total as f64 / elapsed.as_secs_f64()
    };
    let rows = [
        ("--writer", "writes a second of 8 processes / of 1", "at least 4"),
        ("--raw-writer", "raw appends + fdatasync a second of 8 processes, a file each / of 1", "-"),
    ];
    for (mode, figure, bound) in rows {
        let (mut one, mut eight) = (0.0, 0.0);
        for _ in 0..3 {
            one += throughput(mode, 1);
            eight += throughput(mode, 8);
        }
        row(figure, format!("{:.2} ({:.0}/s / {:.0}/s)", eight / one, eight / 3.0, one / 3.0), bound);
    }
}

/// Ten thousand files in one change against plain writes and one `sync`, in turns.
fn batch() {
    const FILES: usize = 10_000;
    let text = "x".repeat(1024);
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let root = temp();
        let start = Instant::now();
        std::fs::create_dir(root.path().join("many")).unwrap();
        for index in 0..FILES {
            let mut file = std::fs::File::create(root.path().join(format!("many/{index}.md"))).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }
        rustix::fs::sync();
        plain.push(start.elapsed());
        let root = temp();
        let store = store(root.path());
        let edits = (0..FILES).map(|index| Edit::Write {
            at: Locator::new(format!("many/{index}.md")).unwrap(),
            bytes: text.clone().into(),
            expect: Expect::Absent,
        });
        let change = Change { edits: edits.collect(), note: Note::default() };
        let start = Instant::now();
        store.apply(&change).unwrap();
        ours.push(start.elapsed());
    }
    let (ours, plain) = (median(ours), median(plain));
    let measured = format!("{:.2} ({ours:.0?} / {plain:.0?})", ours.as_secs_f64() / plain.as_secs_f64());
    row("10,000 files in one change / plain writes and one sync", measured, "3");
}
