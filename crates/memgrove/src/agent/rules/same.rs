//! Whether a fact is already known, and whether it replaces an older one. A known fact is not stored
//! again, so the wording must match in all but how a sentence ends; and marking a true fact as superseded
//! is worse than leaving an old one unmarked.

use super::super::SUPERSEDED;
use crate::text::blocks::bullet;
use crate::text::words::is_plain;

/// Words that say that something has ended.
const END_WORDS: [&str; 6] = ["anymore", "instead", "longer", "stopped", "switched", "became"];
/// Words of a change, if `to`, `from` or `by` follows: what was `moved to` a place is elsewhere now;
/// `moved the desk` says nothing.
const MOVE_WORDS: [&str; 6] = ["moved", "changed", "renamed", "replaced", "migrated", "updated"];
/// Verbs of a state that has one value at a time.
const STATE_WORDS: [&str; 19] = [
    "is", "are", "prefers", "uses", "use", "lives", "works", "runs", "requires", "needs", "supports", "has",
    "costs", "weighs", "version", "targets", "lasts", "starts", "ends",
];
/// Phrases whose subject can have only one value: where someone lives, what something is called.
const SINGLE_WORDS: [&[&str]; 10] = [
    &["lives", "in"],
    &["live", "in"],
    &["lives", "at"],
    &["live", "at"],
    &["is", "based", "in"],
    &["are", "based", "in"],
    &["is", "located", "in"],
    &["is", "called"],
    &["is", "named"],
    &["reports", "to"],
];
/// Keys that may occur many times, so that each line is another entry.
const LIST_KEYS: &str = " action allergy answer assumption book bug child comment contact decision dislike done \
 event example fact feature feedback film fix fixme friend fyi goal hobby idea important issue item kid learned \
 lesson like link log meeting message milestone movie nb next note pet ps question quote recipe reference remember \
 reminder requirement risk rule see skill song source step story task test tip todo tool update url warning ";
/// Words after which a number names one thing among several.
const COUNTERS: &str = " answer bed case chapter day entry episode fact figure id invoice issue item lesson line \
 no note nr number order page part phase question room round row season section sprint step table task test ticket \
 volume week ";
/// Words that turn a fact into its opposite.
const NEGATIONS: [&str; 6] = ["no", "not", "never", "without", "anymore", "longer"];

fn is_in(list: &str, word: &str) -> bool {
    let word: &str = &word.to_lowercase();
    let singular = word.strip_suffix('s').unwrap_or(word);
    list.split_ascii_whitespace().any(|known| known == word || known == singular)
}

/// Returns the words of a fact, without its bullet and punctuation, in lower case. Words with digits, or
/// with capitals after the first letter, keep their spelling.
pub(super) fn plain_words(text: &str) -> Vec<String> {
    let text = text.trim();
    let text = &text[bullet(text).unwrap_or(0)..];
    text.split_whitespace().map(plain).collect()
}

fn plain(word: &str) -> String {
    let bare = unmarked(word);
    let own = bare.chars().any(char::is_numeric) || bare.chars().skip(1).any(char::is_uppercase);
    if own { bare.to_owned() } else { bare.to_lowercase() }
}

/// Strips closing punctuation and surrounding quotes or emphasis from a word. A word of signs alone stays
/// as it is.
fn unmarked(word: &str) -> &str {
    let says = |word: &&str| word.chars().any(char::is_alphanumeric);
    if !says(&word) {
        return word;
    }
    let mut bare = word.trim_end_matches(['.', ',', ';', ':', '!']);
    for mark in ["**", "\"", "'", "`"] {
        let inside = bare.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
        bare = inside.filter(says).unwrap_or(bare).trim_end_matches(['.', ',', ';', ':', '!']);
    }
    bare
}

/// Whether a block says the fact and is not superseded: as a whole, or in one of its sentences or lines.
pub(super) fn says(block: &str, fact: &[String]) -> bool {
    !fact.is_empty() && said(block).any(|words| words == fact)
}

/// Returns the words of a block and of each of its sentences and lines; nothing for a superseded block.
/// Indented lines belong to the line above them, and code has no sentences.
pub(super) fn said(block: &str) -> impl Iterator<Item = Vec<String>> {
    let is_code = block.trim_start().starts_with("```") || block.trim_start().starts_with("~~~");
    let lines = block.lines().enumerate().filter(|(at, line)| *at == 0 || !line.starts_with([' ', '\t']));
    let parts = lines.flat_map(|(_, line)| line.split(';')).flat_map(|part| part.split(". "));
    let parts = parts.filter(move |_| !is_code).map(plain_words);
    let all = std::iter::once_with(move || plain_words(block)).chain(parts);
    (!block.contains(SUPERSEDED)).then_some(all).into_iter().flatten()
}

/// Whether a block may say a fact in other words: it has most of the fact's telling words, all its
/// numbers, and the same negations.
pub fn may_say(block: &str, fact: &str) -> bool {
    let words = plain_words(fact);
    if says(block, &words) {
        return true;
    }
    let there = plain_words(block);
    let negates = |word: &String| NEGATIONS.contains(&word.to_lowercase().as_str()) || word.ends_with("n't");
    let exact = |word: &&String| has_digit(word) || negates(word);
    let negated = |words: &[String]| words.iter().any(negates);
    let shared = shared(&there, &words);
    !block.contains(SUPERSEDED)
        && negated(&there) == negated(&words)
        && words.iter().filter(exact).all(|word| there.contains(word))
        && shared > 0
        && shared * 3 >= telling(&words).count() * 2
}

/// Whether a fact and a block are about the same thing, so that one may replace the other.
pub fn may_replace(block: &str, fact: &str) -> bool {
    let (old, new) = (plain_words(block), plain_words(fact));
    if replaces(block, fact, &new) {
        return true;
    }
    let fewest = telling(&old).count().min(telling(&new).count());
    let shared = shared(&old, &new);
    shared > 0 && shared * 3 >= fewest
}

/// Counts the telling words of `new` that are also in `old`, in whatever inflection.
fn shared(old: &[String], new: &[String]) -> usize {
    let old = old.join(" ");
    let stems = crate::text::words::asked(&telling(new).cloned().collect::<Vec<_>>().join(" "));
    crate::text::words::overlap(&stems, &old)
}

fn is_change(word: &str) -> bool {
    word == "now" || END_WORDS.contains(&word) || MOVE_WORDS.contains(&word)
}

/// The words that say what a fact is about.
fn telling(words: &[String]) -> impl Iterator<Item = &String> {
    words.iter().filter(|word| word.len() > 2 && !is_change(word) && !is_plain(word))
}

/// Whether a fact replaces what a block says: by the same key with another value, the same sentence with
/// another number, another value where only one can hold, or words that announce a change.
pub(super) fn replaces(block: &str, fact_text: &str, fact: &[String]) -> bool {
    if block.contains(SUPERSEDED) || block.contains('\n') || fact_text.trim().contains('\n') {
        return false;
    }
    let old = plain_words(block);
    if old == fact || old.len() < 2 || fact.len() < 2 {
        return false;
    }
    match (key(block), key(fact_text)) {
        (Some((one, before)), Some((two, after))) => {
            let listed = one.last().is_some_and(|word| is_in(LIST_KEYS, word));
            one == two
                && !listed
                && is_value(before)
                && is_value(after)
                && qualifiers(before) == qualifiers(after)
        }
        (None, None) => other_number(&old, fact) || other_value(&old, fact) || announced(&old, fact),
        _ => false,
    }
}

/// Splits a line such as `Editor: vim` into its key and its value.
fn key(text: &str) -> Option<(Vec<String>, &str)> {
    let text = text.trim();
    let text = &text[bullet(text).unwrap_or(0)..];
    let (key, value) = text.split_once(": ")?;
    let words = plain_words(key);
    // In `Fact 12: …` the number counts facts, and the words are no key.
    ((1..=4).contains(&words.len()) && !words.iter().any(|word| has_digit(word))).then_some((words, value))
}

/// Whether a text is a value and not a sentence: it has few words, and does not begin with a verb.
fn is_value(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let verb = |word: &str| {
        let ending = ["s", "ed", "ing"].iter().any(|ending| word.ends_with(ending)) && !word.ends_with("ss");
        let other = ["can", "will", "must", "should", "went", "got", "made"].contains(&word);
        word.starts_with(char::is_lowercase) && (ending || other)
    };
    (1..=4).contains(&words.len()) && !(words.len() > 1 && verb(words[0]))
}

/// Returns what stands in parentheses; `(home)` and `(work)` tell apart two values that may both hold.
fn qualifiers(value: &str) -> Vec<&str> {
    value.split('(').skip(1).map(|rest| rest.split(')').next().unwrap_or(rest)).collect()
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether both are the same sentence about a state with another number after the verb, or another version
/// before it. Numbers that name one thing among several do not count.
fn other_number(old: &[String], new: &[String]) -> bool {
    if old.len() != new.len() || old.len() < 4 {
        return false;
    }
    let differ: Vec<usize> = (0..old.len()).filter(|at| old[*at] != new[*at]).collect();
    let [at] = differ[..] else { return false };
    let number = |word: &str| has_digit(word) && !word.trim_start_matches('-').contains('-');
    let Some(before) = at.checked_sub(1).map(|before| old[before].as_str()) else { return false };
    if !number(&old[at]) || !number(&new[at]) || is_in(COUNTERS, before) {
        return false;
    }
    if before == "in" && is_year(&old[at]) && is_year(&new[at]) {
        return false;
    }
    let state = |words: &[String]| words.iter().any(|word| STATE_WORDS.contains(&word.as_str()));
    let versions = is_version(&old[at]) && is_version(&new[at]);
    (at >= 2 && state(&old[..at])) || (versions && state(&old[at + 1..]))
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && (word.starts_with("19") || word.starts_with("20"))
}

fn is_version(word: &str) -> bool {
    let bare = word.trim_start_matches('v');
    bare.contains('.') && bare.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Whether both give a value where only one can hold, and the values differ.
fn other_value(old: &[String], new: &[String]) -> bool {
    let told = |words: &[String]| {
        let (start, end) = SINGLE_WORDS.iter().find_map(|verb| {
            let start = words.windows(verb.len()).position(|part| part == *verb)?;
            Some((start, start + verb.len()))
        })?;
        let value = &words[end..];
        let plain = value.iter().any(|word| is_plain(word) || is_change(word));
        ((1..=3).contains(&value.len()) && start > 0 && !plain).then(|| words[..end].to_vec())
    };
    told(old).is_some_and(|told_before| told(new) == Some(told_before))
}

/// Whether the new fact announces a change: it begins like the old one, and shares most of its words.
fn announced(old: &[String], new: &[String]) -> bool {
    let has = |words: &[String], list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let moved = new.windows(2).any(|pair| {
        MOVE_WORDS.contains(&pair[0].as_str()) && ["to", "from", "by"].contains(&pair[1].as_str())
    });
    let same_state = STATE_WORDS.iter().any(|verb| has(old, &[verb]) && has(new, &[verb]));
    if !(has(new, &END_WORDS) || moved || (has(new, &["now"]) && same_state)) {
        return false;
    }
    let old: Vec<&String> = telling(old).collect();
    let same = old.iter().filter(|word| new.contains(word)).count();
    let subject = old.first().is_some_and(|first| telling(new).next() == Some(first));
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
        check("- Alice:\n  - likes tea", "likes tea", false);
        check("- Alice lives in Berlin *(superseded 2026-01-01)*", "Alice lives in Berlin", false);
        check("- The **best** \"tool\" is `jq`", "the best tool is jq.", true);
        for (one, two) in [
            ("Port offset is -5", "Port offset is 5"),
            ("node >=18 only", "node <=18 only"),
            ("x != y", "x == y"),
            ("build is ✅", "build is ❌"),
            ("password is AbC123", "password is abc123"),
            ("config is in /far/foo", "config is in ~/far/foo"),
            ("★★★", "★★★★★"),
            ("[ ] buy milk", "[x] buy milk"),
            ("ignore *.rs", "ignore .rs"),
        ] {
            check(one, two, false);
            check(two, one, false);
        }
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
        check("- User lives in Berlin", "User lives in Paris", true);
        check("- User lives in Berlin", "User lives in a flat in Paris", false);
        check("- Kafka 2.8 is used in prod", "Kafka 3.6 is used in prod", true);
        check("- Port offset is -5", "Port offset is 5", true);
        check("- TODO: buy milk", "TODO: call mum", false);
        check("- Open question: who pays", "Open question: who signs", false);
        check("- Alice: likes tea", "Alice: has two dogs", false);
        check("- Phone: 123 (home)", "Phone: 456 (work)", false);
        check("- Phone: 123 (home)", "Phone: 456 (home)", true);
        check("- Invoice is number 4711 from ACME", "Invoice is number 4712 from ACME", false);
        check("- Alice is in Rome in 2019", "Alice is in Rome in 2020", false);
        check("- Maria works on the Terraform state", "Maria moved the Terraform docs", false);
    }

    #[test]
    fn what_a_model_may_take_for_known_or_replaced() {
        assert!(may_say("- Silica is tested with pytest", "Silica tests with pytest"));
        assert!(!may_say("- Silica uses ruff", "The wifi password is hunter2"));
        assert!(!may_say("- Rent costs 1200 euros", "Rent costs 1300 euros"));
        assert!(!may_say("- Silica uses pytest", "Silica never uses pytest"));
        assert!(may_replace("- User lives in Berlin", "User moved to Paris"));
        assert!(!may_replace("- Silica uses ruff", "User moved to Paris"));
    }
}
