//! Load on `memgrove serve`: 10,000 memories, 128 clients that wait for nothing but their answers, nine
//! recalls to one durable write; then the same beside 32 stdio servers that write to the same store.
//!
//! The clients share the machine with the server, so they do no more than HTTP asks for. Exits with 1 if a
//! request failed or a write was lost.

#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)] // It measures the machine, and speaks.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_memgrove");
const MEMORIES: usize = 10_000;
const CLIENTS: usize = 128;
const STDIO: usize = 32;
/// What each stdio server writes.
const STDIO_WRITES: usize = 10;
const TIME: Duration = Duration::from_secs(15);
const WORDS: [&str; 14] = [
    "garden", "river", "deploy", "friday", "coffee", "mountain", "table", "window", "letter", "engine",
    "harbour", "winter", "planet", "silver",
];

fn main() {
    let served = Served::start();
    served.fill();
    println!("| figure | p50 | p99 | bound of p99 |");
    println!("|---|--:|--:|--:|");
    let alone = load(&served, "alone", 0);
    // Beside the others nothing may fail or be lost; how long it takes is told.
    let crowded = load(&served, "crowded", STDIO);
    let kept = ["w", "s"].map(|folder| served.files(folder));
    let wanted = [alone.written + crowded.written, STDIO * STDIO_WRITES];
    println!("| writes kept, by clients and by stdio servers | {kept:?} | of {wanted:?} | |");
    let failed = alone.failed + crowded.failed;
    println!("| requests that failed | {failed} | | 0 |");
    drop(served);
    std::process::exit(i32::from(failed > 0 || kept != wanted));
}

/// A server with a home and a store of its own.
struct Served {
    process: Child,
    home: tempfile::TempDir,
    host: String,
    token: String,
}

impl Served {
    fn start() -> Self {
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut process = program(home.path(), &["serve", "--listen", "127.0.0.1:0"]);
        let mut link = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut link).unwrap();
        let host = link.trim_start_matches("http://").split('/').next().unwrap().to_owned();
        let token = std::fs::read_to_string(home.path().join(".local/state/memgrove/serve-token")).unwrap();
        Served { process, host, token: token.trim().to_owned(), home }
    }

    /// Makes the memories, many in one change, and has them found, once for every look that a server takes at
    /// new folders before it believes those who watch them.
    fn fill(&self) {
        let mut line = Line::new(self);
        for start in (0..MEMORIES).step_by(500) {
            let create = |number: usize| {
                let text = format!(
                    "# Memory {number}\n{} {} {number}\n",
                    WORDS[number % 14],
                    WORDS[number / 14 % 14]
                );
                json!({"type": "create", "path": format!("m/{}/{number}.md", number % 100), "content": text})
            };
            let operations: Vec<Value> = (start..start + 500).map(create).collect();
            assert!(line.ask("/api/file_batch", Some(&json!({ "operations": operations }))));
        }
        for _ in 0..3 {
            assert!(line.ask("/api/recall", Some(&json!({"query": "garden"}))));
        }
    }

    fn files(&self, folder: &str) -> usize {
        let folder = self.home.path().join(".memgrove/files").join(folder);
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }

    /// The milliseconds that processors have worked for the server, as far as the system tells.
    fn worked(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
        (ticks(11) + ticks(12)) * 10.0
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program(home: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env_clear().env("HOME", home).current_dir(home);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// One connection.
struct Line {
    stream: TcpStream,
    head: String,
    answer: Vec<u8>,
}

impl Line {
    fn new(served: &Served) -> Self {
        let stream = TcpStream::connect(&served.host).unwrap();
        stream.set_nodelay(true).unwrap();
        let head = format!(
            "HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n",
            served.host, served.token
        );
        Line { stream, head, answer: Vec::new() }
    }

    /// Whether a request is answered with 200.
    fn ask(&mut self, path: &str, body: Option<&Value>) -> bool {
        let method = if body.is_some() { "POST" } else { "GET" };
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!("{method} {path} {}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
        self.stream.write_all(request.as_bytes()).unwrap();
        self.answer.clear();
        let mut wanted = usize::MAX;
        while self.answer.len() < wanted {
            let mut piece = [0; 64 * 1024];
            let count = self.stream.read(&mut piece).unwrap();
            assert!(count > 0, "the server closed a connection");
            self.answer.extend_from_slice(&piece[..count]);
            let head_end = self.answer.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
            if let Some(head_end) = head_end.filter(|_| wanted == usize::MAX) {
                let head = String::from_utf8_lossy(&self.answer[..head_end]).to_lowercase();
                let length = head.split("content-length:").nth(1).unwrap().lines().next().unwrap();
                wanted = head_end + length.trim().parse::<usize>().unwrap();
            }
        }
        self.answer.starts_with(b"HTTP/1.1 200 ")
    }
}

/// What clients have seen.
#[derive(Default)]
struct Seen {
    recalls: Vec<Duration>,
    writes: Vec<Duration>,
    healths: Vec<Duration>,
    written: usize,
    failed: usize,
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.recalls.extend(other.recalls);
        self.writes.extend(other.writes);
        self.healths.extend(other.healths);
        self.written += other.written;
        self.failed += other.failed;
    }
}

/// Clients for a while, beside so many stdio servers.
fn load(served: &Served, name: &str, stdio_count: usize) -> Seen {
    let (worked, until) = (served.worked(), Instant::now() + TIME);
    let mut seen = Seen::default();
    std::thread::scope(|scope| {
        let client = |number: usize| scope.spawn(move || client(served, name, number, until));
        let beside = |number: usize| scope.spawn(move || stdio(served.home.path(), number));
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        let beside: Vec<_> = (0..stdio_count).map(beside).collect();
        clients.into_iter().for_each(|client| seen.add(client.join().unwrap()));
        seen.failed += beside.into_iter().map(|server| server.join().unwrap()).sum::<usize>();
    });
    let all = seen.recalls.len() + seen.writes.len() + seen.healths.len();
    let worked = (served.worked() - worked) / all as f64;
    let [recalls, writes, healths] =
        [&mut seen.recalls, &mut seen.writes, &mut seen.healths].map(|times| Times::of(times));
    let bound = (5 * healths.p99).max(Duration::from_millis(50));
    let second = |times: &Times| times.count as f64 / TIME.as_secs_f64();
    for (what, times, bound) in [
        ("recall", recalls, if stdio_count == 0 { format!("{bound:.1?}") } else { String::new() }),
        ("durable write", writes, String::new()),
        ("/healthz", healths, String::new()),
    ] {
        let (rate, Times { p50, p99, .. }) = (second(&times), times);
        println!("| {name}: {what}, {rate:.0} a second | {p50:.1?} | {p99:.1?} | {bound} |");
    }
    println!("| {name}: work of the server, a request | {worked:.2} ms | | |");
    seen
}

struct Times {
    count: usize,
    p50: Duration,
    p99: Duration,
}

impl Times {
    fn of(times: &mut [Duration]) -> Self {
        times.sort_unstable();
        let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
        Times { count: times.len(), p50: at(0.5), p99: at(0.99) }
    }
}

fn client(served: &Served, name: &str, number: usize, until: Instant) -> Seen {
    let (mut line, mut seen, mut turn) = (Line::new(served), Seen::default(), number);
    while Instant::now() < until {
        turn += 1;
        let (path, body) = if turn.is_multiple_of(10) {
            seen.written += 1;
            let path = format!("w/{name}-{number}-{}.md", seen.written);
            ("/api/file_create", json!({"path": path, "text": "written under load\n"}))
        } else {
            let query = format!("{} {}", WORDS[turn % 14], WORDS[turn / 14 % 14]);
            ("/api/recall", json!({ "query": query }))
        };
        let started = Instant::now();
        seen.failed += usize::from(!line.ask(path, Some(&body)));
        let times = if turn.is_multiple_of(10) { &mut seen.writes } else { &mut seen.recalls };
        times.push(started.elapsed());
        if turn.is_multiple_of(5) {
            let started = Instant::now();
            seen.failed += usize::from(!line.ask("/healthz", None));
            seen.healths.push(started.elapsed());
        }
    }
    seen
}

/// One stdio server that writes, beside the others. How many of its writes failed.
fn stdio(home: &Path, number: usize) -> usize {
    let mut process = program(home, &["mcp", "--tools", "all"]);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "load", "version": "1"}});
    let mut messages = vec![
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    for line in 0..STDIO_WRITES {
        let path = format!("s/{number}-{line}.md");
        let arguments = json!({"path": path, "text": "written beside\n"});
        let call = json!({"name": "file_create", "arguments": arguments});
        messages.push(json!({"jsonrpc": "2.0", "id": line + 1, "method": "tools/call", "params": call}));
    }
    let mut input = process.stdin.take().unwrap();
    messages.iter().for_each(|message| writeln!(input, "{message}").unwrap());
    // It ends once it has answered all.
    drop(input);
    let output = process.wait_with_output().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    let is_good = |line: &&str| {
        let answer: Value = serde_json::from_str(line).unwrap();
        answer["id"].as_u64().is_some_and(|id| id > 0) && answer["result"]["isError"] == json!(false)
    };
    STDIO_WRITES - answers.lines().filter(is_good).count()
}
