//! How quickly the program is there, and how little it takes: `make bench`.

#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)] // It measures the machine, and speaks.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MEMGROVE: &str = env!("CARGO_BIN_EXE_memgrove");
const ROUNDS: usize = 200;

fn main() {
    println!("| figure | measured | bound |");
    println!("|---|--:|--:|");
    let root = tempfile::tempdir().unwrap();
    let store = root.path().join("store");
    let store = store.to_str().unwrap();
    run(&[MEMGROVE, "init", store]);
    run(&[MEMGROVE, "--store", store, "file", "create", "/memories/a.md", "--text", "hello"]);
    let file = format!("{store}/files/a.md");
    let commands: [&[&str]; 3] = [
        &["cat", &file],
        &[MEMGROVE, "--help"],
        &[MEMGROVE, "--store", store, "file", "view", "/memories/a.md"],
    ];
    let mut times = commands.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (command, times) in commands.iter().zip(&mut times) {
            let start = Instant::now();
            run(command);
            times.push(start.elapsed());
        }
    }
    let [cat, help, view] = times.map(median);
    let bound = cat * 3 + Duration::from_millis(10);
    for (name, time) in [("memgrove --help", help), ("memgrove file view", view)] {
        println!(
            "| {name} / (3 x cat + 10 ms) | {:.2} ({time:.1?}, cat {cat:.1?}) | 1 |",
            time.as_secs_f64() / bound.as_secs_f64()
        );
    }
    println!("| resident memory of an idle memgrove mcp | {:.1} MB | 20 MB |", idle_megabytes(store));
}

fn run(command: &[&str]) {
    let status = Command::new(command[0]).args(&command[1..]).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// What a server takes after it has greeted a client and listed its tools.
fn idle_megabytes(store: &str) -> f64 {
    let mut server = Command::new(MEMGROVE)
        .args(["--store", store, "mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = BufReader::new(server.stdout.take().unwrap()).lines();
    let ask = |line: &str| writeln!(server.stdin.as_ref().unwrap(), "{line}").unwrap();
    ask(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
    );
    answers.next().unwrap().unwrap();
    ask(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    ask(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    answers.next().unwrap().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kilobytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    drop(server.stdin.take());
    server.wait().unwrap();
    kilobytes / 1024.0
}
