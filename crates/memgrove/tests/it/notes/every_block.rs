//! Ten thousand notes, split, merged and split again: every block is kept, verbatim, exactly once.

use std::fmt::Write;

use super::*;

/// The same numbers each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

const WORDS: &[&str] = &[
    "Silica",
    "pytest",
    "garden",
    "tomato",
    "Berlin",
    "meeting",
    "deploy",
    "server",
    "Alice",
    "Bob",
    "prefers",
    "版本",
    "café",
    "naïve",
    "uses",
    "the",
    "and",
    "with",
    "plan",
    "budget",
    // No note is ever called so: a link to one that is merged would change.
    "[[Not/Yet Written]]",
    "`code`",
    "**bold**",
];

fn words(dice: &mut Dice, count: usize) -> String {
    (0..count).map(|_| dice.pick(WORDS)).collect::<Vec<_>>().join(" ")
}

/// One block of any kind, with a mark that no other has.
fn block(dice: &mut Dice, number: usize) -> String {
    let mark = format!("~{number}~");
    let count = 2 + dice.roll(14);
    let said = words(dice, count);
    match dice.roll(14) {
        0 => format!("{} {said} {mark}", "#".repeat(1 + dice.roll(4))),
        1..=4 => format!("{} {said} {mark}", dice.pick(&["-", "*", "1.", "12)"])),
        5 => format!("- {said}\n  - nested {said}\n\n  and more {mark}"),
        6 => format!("```rust\n# no heading\n\n- no item {said}\n{mark}\n```"),
        7 => format!("> quoted {said}\n> {mark}"),
        8 => format!("| a | b |\n|---|---|\n| {said} | {mark} |"),
        9 => {
            format!("{}-{:02}-{:02} {said} {mark}", 2023 + dice.roll(3), 1 + dice.roll(12), 1 + dice.roll(28))
        }
        10 => format!("{said}\n{said} {mark}"),
        11 => format!("    indented {said} {mark}"),
        12 if dice.roll(8) == 0 => format!("``` never closed {mark}"),
        _ => format!("{said}. {mark}"),
    }
}

struct Made {
    text: String,
    blocks: Vec<String>,
}

fn made(dice: &mut Dice) -> Made {
    let crlf = dice.roll(12) == 0;
    let mut text = String::new();
    if dice.roll(10) == 0 {
        text.push_str("---\ntags: [a, b]\n---\n\n");
    }
    if dice.roll(3) > 0 {
        text.push_str("# Title\n\n");
    }
    let mut blocks = Vec::new();
    let dated = dice.roll(5) == 0;
    let headed = dice.roll(3) == 0;
    for number in 0..8 + dice.roll(30) {
        let mut block = block(dice, number);
        if dated && !block.contains('\n') {
            block = format!("{}-{:02}-11 entry ~{number}~", 2020 + dice.roll(4), 1 + dice.roll(12));
        }
        if headed && number % 6 == 0 {
            block = format!("## {} ~{number}~", dice.pick(WORDS).trim_matches(['[', ']', '*', '`']));
        }
        // A blank line, so that what stands before does not swallow it.
        let _ = write!(text, "{block}\n\n");
        blocks.push(block);
    }
    if dice.roll(4) == 0 {
        text.push_str("## Links\n\n- [[somewhere/else]] - by hand\n");
    }
    if crlf {
        text = text.replace('\n', "\r\n");
        blocks = blocks.into_iter().map(|block| block.replace('\n', "\r\n")).collect();
    }
    Made { text, blocks }
}

/// Every block is in the notes, as it was, exactly once.
fn check(notes: &Notes, made: &Made, when: &str, seed: u64) {
    let all: String = files(notes)
        .into_iter()
        .filter(|(name, _)| name.ends_with(".md"))
        .map(|(_, text)| text + "\n")
        .collect();
    for block in &made.blocks {
        // A title that was made of a heading goes on behind it.
        let ends = |at: usize| matches!(all.as_bytes().get(at + block.len()), Some(b'\n' | b'\r'));
        let count = all.match_indices(block.as_str()).filter(|(at, _)| ends(*at)).count();
        assert_eq!(
            count, 1,
            "{when} (seed {seed}): {count} times\n{block}\n--- in\n{all}\n--- of\n{}",
            made.text
        );
    }
}

fn merge_all(notes: &Notes) {
    for _ in 0..40 {
        // The deepest first.
        let mut list = notes.list().unwrap();
        list.sort_by_key(|info| std::cmp::Reverse(info.path.matches('/').count()));
        let merged = list.iter().any(|info| {
            match notes.merge(noted(), Some(&info.path), &[], MergeSize::Any, &Guarded::default()) {
                Ok(_) => true,
                Err(error) => {
                    assert!(matches!(error.kind(), Kind::NotFound | Kind::Unsupported), "{error}");
                    false
                }
            }
        });
        if !merged {
            return;
        }
    }
}

fn kept(seeds: std::ops::Range<u64>) -> (usize, usize) {
    let (mut splits, mut merges) = (0, 0);
    for seed in seeds {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995);
        dice.roll(2);
        let made = made(&mut dice);
        let notes = notes().with_bytes_max(512 + dice.roll(1200));
        let result = write(&notes, "", &made.text, Mode::Replace);
        splits += usize::from(result.split_triggered);
        check(&notes, &made, "after the split", seed);
        merge_all(&notes);
        merges += usize::from(notes.list().unwrap().len() == 1);
        check(&notes, &made, "after the merge", seed);
        match notes.split(noted(), None, &Guarded::default()) {
            Ok(_) => {}
            Err(error) => assert!(matches!(error.kind(), Kind::Unsupported | Kind::Invalid), "{error}"),
        }
        check(&notes, &made, "after the second split", seed);
    }
    (splits, merges)
}

#[test]
fn ten_thousand_notes_keep_every_block() {
    let (splits, merges) = std::thread::scope(|scope| {
        let halves = [0..5_000, 5_000..10_000].map(|seeds| scope.spawn(move || kept(seeds)));
        halves
            .into_iter()
            .map(|half| half.join().unwrap())
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    });
    println!(
        "{splits} of 10,000 notes were split on the first write, {merges} were one note again after the merge"
    );
    assert!(splits > 7_000 && merges > 9_000, "{splits} splits, {merges} merges");
}
