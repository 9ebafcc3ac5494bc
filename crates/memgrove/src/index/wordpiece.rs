//! How the model cuts a text into word pieces, and how many tokens a text has.
//!
//! Follows BERT's uncased tokenizer: clean, lower case, no accents, every punctuation mark and
//! every Chinese character on its own, then the longest pieces that the vocabulary has.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::OnceLock;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

const VOCABULARY: &str = include_str!("../../assets/potion-base-4M-int8/vocab.txt");
/// Longer words have no pieces.
const WORD_CHARS_MAX: usize = 100;

/// A fast hash for short keys that no attacker can choose: the vocabulary, and our own numbers.
#[derive(Default)]
pub(crate) struct Quick(u64);

impl Quick {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        // A product mixes into the high bits, and hash tables use the lowest.
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            self.add(rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(byte.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }
}

/// Hashes quickly.
pub(crate) type Quickly = BuildHasherDefault<Quick>;

type Pieces = HashMap<&'static str, u32, Quickly>;

fn pieces() -> &'static (Pieces, Pieces) {
    static PIECES: OnceLock<(Pieces, Pieces)> = OnceLock::new();
    PIECES.get_or_init(|| {
        let (mut starts, mut rests) = (Pieces::default(), Pieces::default());
        starts.reserve(32_768);
        rests.reserve(8_192);
        for (piece, id) in VOCABULARY.lines().zip(0..) {
            match piece.strip_prefix("##") {
                Some(rest) if !rest.is_empty() => rests.insert(rest, id),
                _ => starts.insert(piece, id),
            };
        }
        (starts, rests)
    })
}

/// Returns the ids of the pieces of a text, without words that have none.
pub(crate) fn ids(text: &str) -> Vec<u32> {
    let mut found = Vec::with_capacity(text.len() / 4);
    each_word(text, |word| {
        cut(word, &mut found);
    });
    found
}

/// Whether the model knows a folded word as one piece, which means that it is spelled right.
pub(crate) fn is_word(word: &str) -> bool {
    pieces().0.contains_key(word)
}

/// Returns how many tokens a text has.
///
/// They are the word pieces of the built-in model. Its vocabulary is a third of what large models use
/// today, so the count is rather too high than too low.
pub fn tokens(text: &str) -> usize {
    let mut found = Vec::new();
    let mut unknown = 0;
    each_word(text, |word| {
        if !cut(word, &mut found) {
            // Unknown words cost other tokenizers about one token for three bytes.
            unknown += word.len().div_ceil(3);
        }
    });
    found.len() + unknown
}

/// Cuts a word into its pieces. `false` if it has none.
fn cut(word: &str, found: &mut Vec<u32>) -> bool {
    let (starts, rests) = pieces();
    let before = found.len();
    if word.chars().count() > WORD_CHARS_MAX {
        return false;
    }
    let mut rest = word;
    while !rest.is_empty() {
        let known = if rest.len() == word.len() { starts } else { rests };
        let mut end = rest.len();
        let id = loop {
            if let Some(id) = known.get(&rest[..end]) {
                break *id;
            }
            match rest[..end].char_indices().next_back() {
                Some((0, _)) | None => {
                    found.truncate(before);
                    return false;
                }
                Some((at, _)) => end = at,
            }
        };
        found.push(id);
        rest = &rest[end..];
    }
    true
}

/// Calls back with every word, in the form that the model expects.
fn each_word(text: &str, mut word_done: impl FnMut(&str)) {
    let mut word = String::new();
    let mut flush = |word: &mut String| {
        if !word.is_empty() {
            word_done(word);
            word.clear();
        }
    };
    let mut take = |c: char, word: &mut String| {
        if c.is_whitespace() || c.is_control() {
            // BERT drops control characters, and splits words at white space.
            if c.is_whitespace() {
                flush(word);
            }
        } else if is_punctuation(c) || is_chinese(c) {
            flush(word);
            word.push(c);
            flush(word);
        } else {
            word.push(c);
        }
    };
    for c in text.chars() {
        if c.is_ascii() {
            take(c.to_ascii_lowercase(), &mut word);
            continue;
        }
        for c in c.to_lowercase().nfd().filter(|c| !is_combining_mark(*c)) {
            take(c, &mut word);
        }
    }
    take(' ', &mut word);
}

fn is_punctuation(c: char) -> bool {
    match c {
        '\0'..='\x7f' => c.is_ascii_punctuation(),
        _ => {
            matches!(c, '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}'
                | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}'..='\u{3003}'
                | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}' | '\u{30fb}'
                | '\u{ff01}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}' | '\u{ff3b}'..='\u{ff3d}' | '\u{ff5b}'..='\u{ff65}')
        }
    }
}

fn is_chinese(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces_of(text: &str) -> Vec<&'static str> {
        let all: Vec<&str> = VOCABULARY.lines().collect();
        ids(text).into_iter().map(|id| all[id as usize]).collect()
    }

    #[test]
    fn texts_are_cut_as_the_model_was_taught() {
        assert_eq!(pieces_of("Hello, World!"), ["hello", ",", "world", "!"]);
        assert_eq!(pieces_of("unaffable caf\u{e9}"), ["una", "##ffa", "##ble", "cafe"]);
        assert_eq!(pieces_of("don't"), ["don", "'", "t"]);
        assert_eq!(pieces_of(""), Vec::<&str>::new());
        assert!(ids(&"x".repeat(101)).is_empty());
    }

    #[test]
    fn tokens_count_what_has_no_piece_too() {
        assert_eq!(tokens("hello world"), 2);
        assert!(tokens(&"x".repeat(300)) >= 100);
    }
}
