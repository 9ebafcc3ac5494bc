//! How the file of an entity is named: readably, validly on every system, and so that it is found again by
//! the name alone.
//!
//! Several names may give the same file name (`a b` and `a-b`, `é` in two spellings, `Bob` and `BOB`). The
//! first entity takes it; another adds a few digits of its own name's hash, which is looked up too. So a
//! lookup is a few reads, however many entities there are.

use unicode_normalization::UnicodeNormalization;

use crate::backend::Version;
use crate::locator::Locator;

const CHARS_MAX: usize = 100;
const BYTES_MAX: usize = 160;
const HASH_CHARS: usize = 8;
/// How many candidates are always looked at, even if an earlier one is free.
pub(super) const CANDIDATES_MIN: usize = 3;

/// Turns the name of an entity into a file name without extension. Characters that some system does not
/// allow become dashes.
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

/// Returns the folder for entities of a type.
pub fn folder_name(kind: &str) -> String {
    if kind.trim().is_empty() { "general".to_owned() } else { file_name(&kind.to_lowercase()) }
}

/// Returns the `index`-th file name to try for an entity with a name.
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
