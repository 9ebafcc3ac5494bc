//! Whether a fact is there already, and whether it takes the place of an older one.

use crate::text::blocks::bullet;

/// Words with which something says that it has changed.
const CHANGE_WORDS: [&str; 13] = [
    "now", "anymore", "instead", "switched", "moved", "changed", "renamed", "replaced", "migrated",
    "updated", "longer", "stopped", "became",
];
/// Verbs of a state that has one value at a time.
const STATE_WORDS: [&str; 20] = [
    "is", "are", "was", "prefers", "uses", "use", "lives", "works", "runs", "requires", "needs", "supports",
    "has", "costs", "weighs", "version", "targets", "lasts", "starts", "ends",
];

/// The words of a fact, in lower case, without its bullet and its marks.
pub(super) fn plain_words(text: &str) -> Vec<String> {
    let text = text.trim();
    let text = &text[bullet(text).unwrap_or(0)..];
    let lower = text.to_lowercase();
    let trimmed =
        |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '+' && c != '#').to_owned();
    lower.split_whitespace().map(trimmed).filter(|word| !word.is_empty()).collect()
}

/// Whether a block says the fact: as a whole, or in one of its sentences or lines.
pub(super) fn says(block: &str, fact: &[String]) -> bool {
    if fact.is_empty() {
        return false;
    }
    if plain_words(block) == fact {
        return true;
    }
    let parts = block.split(['\n', ';']).flat_map(|line| line.split(". "));
    block.len() > fact.len() && parts.into_iter().any(|part| plain_words(part) == fact)
}

/// Whether a fact takes the place of what a block says: the same key with another value, the same
/// sentence with another number, or a change that says so of the same thing.
pub(super) fn replaces(block: &str, fact_text: &str, fact: &[String]) -> bool {
    if block.contains(super::super::SUPERSEDED) || block.contains('\n') {
        return false;
    }
    let old = plain_words(block);
    if old == fact || old.len() < 2 || fact.len() < 2 {
        return false;
    }
    match (key(block), key(fact_text)) {
        (Some(one), Some(two)) => one == two,
        (None, None) => other_number(&old, fact) || announced(&old, fact),
        _ => false,
    }
}

/// The key of a line such as `Editor: vim`.
fn key(text: &str) -> Option<Vec<String>> {
    let text = text.trim();
    let text = &text[bullet(text).unwrap_or(0)..];
    let (key, value) = text.split_once(": ")?;
    let words = plain_words(key);
    let short = (1..=4).contains(&words.len()) && value.split_whitespace().count() <= 12;
    // `Fact 12: …` counts facts; it names none.
    (short && !words.iter().any(|word| has_digit(word))).then_some(words)
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// The same sentence about a state, but for a number that is not what it counts by.
fn other_number(old: &[String], new: &[String]) -> bool {
    if old.len() != new.len() || old.len() < 4 {
        return false;
    }
    let differ: Vec<usize> = (0..old.len()).filter(|at| old[*at] != new[*at]).collect();
    let [at] = differ[..] else { return false };
    let state = old[..at].iter().any(|word| STATE_WORDS.contains(&word.as_str()));
    state && at >= 2 && has_digit(&old[at]) && has_digit(&new[at]) && !old[at].contains('-')
}

/// A change that says so: it begins as the older fact does, and shares most of its words.
fn announced(old: &[String], new: &[String]) -> bool {
    if !new.iter().any(|word| CHANGE_WORDS.contains(&word.as_str())) {
        return false;
    }
    let telling = |word: &&String| {
        let word = word.as_str();
        word.len() > 2 && !CHANGE_WORDS.contains(&word) && !crate::text::words::is_plain(word)
    };
    let old: Vec<&String> = old.iter().filter(telling).collect();
    let same = old.iter().filter(|word| new.contains(word)).count();
    let subject = old.first().is_some_and(|first| new.iter().find(telling) == Some(first));
    old.len() >= 2 && subject && same >= 2 && same * 2 >= old.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_that_are_there_already() {
        let check = |block: &str, fact: &str, expected: bool| {
            assert_eq!(says(block, &plain_words(fact)), expected, "{block:?} {fact:?}");
        };
        check("- User prefers dark mode.", "user prefers dark mode", true);
        check("Silica uses pytest. It is fast.", "Silica uses pytest", true);
        check("- Silica no longer uses pytest", "Silica uses pytest", false);
        check("- a", "", false);
    }

    #[test]
    fn facts_that_replace_others() {
        let check = |old: &str, new: &str, expected: bool| {
            assert_eq!(replaces(old, new, &plain_words(new)), expected, "{old:?} {new:?}");
        };
        check("- Editor: vim", "Editor: helix", true);
        check("- Silica requires Python 3.10", "Silica requires Python 3.12", true);
        check("- Alice lives in Berlin", "Alice moved to Lisbon, no longer in Berlin", true);
        check("- The API uses REST for clients", "The API now uses gRPC for clients", true);
        check("- Fact 12: the sky is blue", "Fact 13: the sky is blue", false);
        check("- Silica uses pytest", "Silica uses ruff", false);
        check("- On 2025-01-02 he is at home", "On 2025-01-03 he is at home", false);
        check("- Alice lives in Berlin", "Bob moved to Berlin", false);
    }
}
