//! Shell sessions as documents and as tests: every `console` block in `tests/transcripts` is run.
//!
//! A line `$ command` is given to the shell, what follows is what it prints, and `[exit 3]` is the
//! exit code where it is not 0. All blocks of a file share one home. What differs from run to run
//! is written as `<version>`, `<time>`, `<id>` or `<temporary>`. Run the tests with
//! `MEMGROVE_UPDATE=1` to write down what is printed now.

use std::fmt::Write;
use std::path::Path;

use super::sandbox::Sandbox;

#[test]
fn transcripts_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the transcripts")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "there are no transcripts");
    let update = std::env::var_os("MEMGROVE_UPDATE").is_some();
    let mut wrong = String::new();
    for path in files {
        let written = std::fs::read_to_string(&path).expect("a transcript");
        let replayed = replay(&written);
        if replayed == written {
            continue;
        }
        if update {
            std::fs::write(&path, replayed).expect("a transcript can be written");
        } else {
            let name = path.file_name().expect("a file").display();
            writeln!(wrong, "{name}:\n{}", difference(&written, &replayed)).expect("text takes text");
        }
    }
    assert!(wrong.is_empty(), "transcripts differ from what is printed now:\n{wrong}");
}

/// The same document with what its commands print now.
fn replay(written: &str) -> String {
    let sandbox = Sandbox::empty();
    let (mut replayed, mut inside) = (String::new(), false);
    for line in written.lines() {
        let fence = line.starts_with("```");
        if fence {
            inside = line == "```console";
        }
        match line.strip_prefix("$ ") {
            Some(command) if inside => {
                writeln!(replayed, "{line}").expect("text takes text");
                replayed.push_str(&run(&sandbox, command));
            }
            _ if inside && !fence => {}
            _ => writeln!(replayed, "{line}").expect("text takes text"),
        }
    }
    replayed
}

fn run(sandbox: &Sandbox, command: &str) -> String {
    let output = sandbox
        .command("/bin/sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .stdin(std::process::Stdio::null())
        .output()
        .expect("there is a shell");
    let mut text = normal(sandbox, &String::from_utf8_lossy(&output.stdout));
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    match output.status.code() {
        Some(0) => text,
        code => format!("{text}[exit {}]\n", code.unwrap_or(-1)),
    }
}

/// What is printed, without what differs from run to run.
fn normal(sandbox: &Sandbox, text: &str) -> String {
    let home = sandbox.home().display().to_string();
    let temporary = sandbox.path().display().to_string();
    let text = text.replace(&home, "~").replace(&temporary, "<temporary>");
    let mut normal = String::new();
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let word = &rest
            [..rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-:.".contains(c))).unwrap_or(rest.len())];
        match stand_in(word) {
            Some(name) => normal.push_str(name),
            None if word.is_empty() => normal.push(first),
            None => normal.push_str(word),
        }
        rest = &rest[word.len().max(if word.is_empty() { first.len_utf8() } else { 0 })..];
    }
    normal
}

fn stand_in(word: &str) -> Option<&'static str> {
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if let Some(id) = word.strip_prefix("record:") {
        return stand_in(id).filter(|name| *name == "<id>").map(|_| "record:<id>");
    }
    let dashes = word.matches('-').count();
    if word.len() == 36 && dashes == 4 && hex(&word.replace('-', "")) {
        return Some("<id>");
    }
    if word.len() >= 19 && word.as_bytes()[10] == b'T' && dashes == 2 {
        return Some("<time>");
    }
    (matches!(word.len(), 12 | 32) && hex(word)).then_some("<version>")
}

fn difference(written: &str, replayed: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (written.lines().collect(), replayed.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = |lines: &[&str]| {
        lines[same.min(lines.len())..].iter().take(12).map(|line| format!("    {line}\n")).collect::<String>()
    };
    format!("  from line {} it was\n{}  and is\n{}", same + 1, tail(&old), tail(&new))
}

#[test]
fn what_differs_from_run_to_run_is_named() {
    let sandbox = Sandbox::empty();
    let check = |text: &str, expected: &str| assert_eq!(normal(&sandbox, text), expected);
    check("version 571d6732a0ba, change 3", "version <version>, change 3");
    check("571d6732a0ba65e980516bb7d0c1e946", "<version>");
    check("3  2026-11-15T21:33:12  by", "3  <time>  by");
    check("d136b724-a1ce-4ca6-a45a-5c9417a110b4", "<id>");
    check("record:d136b724-a1ce-4ca6-a45a-5c9417a110b4", "record:<id>");
    check(&format!("at {}/x…", sandbox.home().display()), "at ~/x…");
}
