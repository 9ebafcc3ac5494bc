//! What the file of an entity is called: readable, possible on every system, and found again from
//! the name alone.
//!
//! Several names may give one file name (`a b` and `a-b`, `é` in two spellings, `Bob` and `BOB`).
//! The first to come takes it; another takes the same with a few digits of its own name's hash,
//! which is looked at too. So a lookup is a few reads, however many entities there are.

use unicode_normalization::UnicodeNormalization;

use crate::backend::Version;
use crate::locator::Locator;

const CHARS_MAX: usize = 100;
const BYTES_MAX: usize = 160;
const HASH_CHARS: usize = 8;
/// How many candidates are looked at even where one before them is free.
pub(super) const CANDIDATES_MIN: usize = 3;

/// The name of an entity as a file name, without its ending: what no system can hold becomes a
/// dash.
pub fn file_name(name: &str) -> String {
    let mut text = String::new();
    for c in name.nfc() {
        let unfit = c.is_control() || c.is_whitespace() || "/\\:*?\"<>|".contains(c) || is_invisible(c);
        let c = if unfit { '-' } else { c };
        if c != '-' || !text.ends_with('-') {
            text.push(c);
        }
    }
    let text = text.trim_matches('-');
    let mut kept: String = text.chars().take(CHARS_MAX).collect();
    while kept.len() > BYTES_MAX {
        kept.pop();
    }
    let kept = kept.trim_end_matches(['.', '-', ' ']).trim_start_matches('.');
    if kept.is_empty() {
        return format!("unnamed-{}", hash(name));
    }
    let fits = Locator::new(kept).is_ok_and(|at| at.check_creatable().is_ok());
    if fits { kept.to_owned() } else { format!("_{kept}") }
}

/// The folder for a type of entity.
pub fn folder_name(kind: &str) -> String {
    if kind.trim().is_empty() { "general".to_owned() } else { file_name(&kind.to_lowercase()) }
}

/// The `index`-th place to look for an entity of a name.
pub(super) fn candidate(name: &str, index: usize) -> String {
    let plain = file_name(name);
    match index {
        0 => format!("{plain}.md"),
        1 => format!("{plain}-{}.md", hash(name)),
        _ => format!("{plain}-{}-{index}.md", hash(name)),
    }
}

fn hash(name: &str) -> String {
    Version::of(name.as_bytes()).as_str()[..HASH_CHARS].to_owned()
}

fn is_invisible(c: char) -> bool {
    Locator::new(c.to_string()).is_ok_and(|at| at.check_creatable().is_err()) && !c.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names() {
        let check = |name: &str, file: &str| assert_eq!(file_name(name), file, "{name:?}");
        check("Alice", "Alice");
        check("Project X: phase 1/2", "Project-X-phase-1-2");
        check("  a   b  ", "a-b");
        check("a\nb\tc", "a-b-c");
        check("con", "_con");
        check("Learning-Timeout-2026-01-01", "Learning-Timeout-2026-01-01");
        check("ends with a dot.", "ends-with-a-dot");
        check("..hidden", "hidden");
        check("日本語 のノート", "日本語-のノート");
        check("a\u{202e}b", "a-b");
        assert!(file_name("").starts_with("unnamed-"));
        assert!(file_name("???").starts_with("unnamed-") && file_name("???") != file_name("??"));
        assert_eq!(file_name(&"x".repeat(5_000)).len(), 100);
        assert!(file_name(&"語".repeat(5_000)).len() <= 160);
        assert_eq!(folder_name("Person/Friend"), "person-friend");
        assert_eq!(folder_name(" "), "general");
    }
}
