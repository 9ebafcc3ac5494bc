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
use memgrove::vfs::{FaultFs, RealFs, Vfs};
use memgrove::{Locator, Store};
use rustix::fs::{CWD, RenameFlags};

/// What a sync takes longer here than the disk of this machine needs: nothing, or as much as on many disks that
/// do not answer before the bytes are safe.
const DELAYS: [(Duration, &str); 2] =
    [(Duration::ZERO, ""), (Duration::from_millis(2), ", where a sync takes 2 ms more")];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, root, name, delay] = arguments.as_slice() {
        let delay = Duration::from_micros(delay.parse().unwrap());
        match mode.as_str() {
            "--writer" => return writer(Path::new(root), name, delay),
            "--raw-writer" => return raw_writer(Path::new(root), name, delay),
            _ => {}
        }
    }
    println!("| figure | measured | bound |");
    println!("|---|--:|--:|");
    for (delay, place) in DELAYS {
        single(delay, place);
        processes(delay, place);
    }
    batch();
}

fn temp() -> tempfile::TempDir {
    // Beside the build, not in /tmp, which may be memory; or on the disk that someone wants to know about.
    let folder =
        std::env::var_os("BENCH_DIR").map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from);
    std::fs::create_dir_all(&folder).unwrap();
    tempfile::tempdir_in(folder).unwrap()
}

fn store(root: &Path, delay: Duration) -> Store {
    let disk: Arc<dyn Vfs> = Arc::new(RealFs::open_root(root).unwrap());
    let tree = match delay {
        Duration::ZERO => disk,
        delay => Arc::new(FaultFs::new(disk).with_sync_delay(delay)),
    };
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
    delay: Duration,
}

impl RawLog {
    fn new(root: &Path, name: &str, delay: Duration) -> Self {
        RawLog { file: std::fs::File::create_new(root.join(name)).unwrap(), offset: 0, delay }
    }

    fn append(&mut self, text: &str) {
        self.file.write_all_at(text.as_bytes(), self.offset).unwrap();
        self.file.sync_data().unwrap();
        if !self.delay.is_zero() {
            std::thread::sleep(self.delay);
        }
        self.offset += text.len() as u64;
    }
}

/// One durable write of 1 KiB against an append and `fdatasync` of the same bytes, in turns. Beside it the bare
/// system calls that any such write needs that leaves a plain file and never a torn one.
fn single(delay: Duration, place: &str) {
    // Deleted in the end: some file systems make files more slowly while others are being forgotten.
    let roots: [_; 5] = std::array::from_fn(|_| temp());
    let [raw, replacing, creating, bare_replacing, bare_creating] = roots.each_ref().map(|root| root.path());
    let mut log = RawLog::new(raw, "log", delay);
    let mut beside_raw = |figure: &str, bound: &str, write: &mut dyn FnMut(usize, &str)| {
        let mut times = [const { Vec::new() }; 2];
        for round in 0..if delay.is_zero() { 2_000 } else { 200 } {
            let text = format!("{round:01024}");
            for which in [round % 2, (round + 1) % 2] {
                let start = Instant::now();
                if which == 0 {
                    log.append(&text)
                } else {
                    write(round, &text)
                }
                times[which].push(start.elapsed());
            }
        }
        let [raw, time] = times.map(median);
        let ratio = time.as_secs_f64() / raw.as_secs_f64();
        row(
            &format!("{figure} / raw append + fdatasync{place}"),
            format!("{ratio:.2} ({time:.0?} / {raw:.0?})"),
            bound,
        );
    };
    let written = |store: &Store, at: String, text: &str| {
        store.write(&Locator::new(at).unwrap(), text).unwrap();
    };
    let store_of_few = store(replacing, delay);
    beside_raw("replace a 1 KiB file durably", "1.5", &mut |round, text| {
        written(&store_of_few, format!("notes/{}.md", round % 100), text);
    });
    let mut bare = RawLog::new(bare_replacing, "log", delay);
    beside_raw("the bare system calls of a replacement", "-", &mut |round, text| {
        bare_write(bare_replacing, &format!("{}.md", round % 100), text, &mut bare);
    });
    let store_of_many = store(creating, delay);
    beside_raw("create a 1 KiB file durably", "1.5", &mut |round, text| {
        written(&store_of_many, format!("new/{}/{round}.md", round / 100), text);
    });
    let mut bare = RawLog::new(bare_creating, "log", delay);
    beside_raw("the bare system calls of a new file", "-", &mut |round, text| {
        bare_write(bare_creating, &format!("{round}.md"), text, &mut bare);
    });
}

fn bare_write(root: &Path, name: &str, text: &str, log: &mut RawLog) {
    let (temp, place) = (root.join("temp"), root.join(name));
    std::fs::write(&temp, text).unwrap();
    log.append(text);
    match rustix::fs::renameat_with(CWD, &temp, CWD, &place, RenameFlags::EXCHANGE) {
        Ok(()) => std::fs::remove_file(&temp).unwrap(),
        Err(_) => std::fs::rename(&temp, &place).unwrap(),
    }
}

fn writer(root: &Path, name: &str, delay: Duration) {
    let store = store(root, delay);
    until_stopped(|count| {
        let at = Locator::new(format!("notes/{name}-{}.md", count % 50)).unwrap();
        store.write(&at, &format!("{count:01024}")).unwrap();
    });
}

fn raw_writer(root: &Path, name: &str, delay: Duration) {
    let mut log = RawLog::new(root, name, delay);
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
fn processes(delay: Duration, place: &str) {
    let throughput = |mode: &str, count: usize| {
        let root = temp();
        store(root.path(), delay).write(&Locator::new("first").unwrap(), "").unwrap();
        let spawn = |index: usize| {
            Command::new(std::env::current_exe().unwrap())
                .args([
                    mode,
                    root.path().to_str().unwrap(),
                    &format!("w{index}"),
                    &delay.as_micros().to_string(),
                ])
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
        let figure = format!("{figure}{place}");
        row(&figure, format!("{:.2} ({:.0}/s / {:.0}/s)", eight / one, eight / 3.0, one / 3.0), bound);
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
        let store = store(root.path(), Duration::ZERO);
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
