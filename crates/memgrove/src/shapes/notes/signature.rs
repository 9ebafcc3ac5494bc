//! Which words may be in a note, and in which of its blocks, in a few hundred bytes. It may be wrong in
//! saying that a word is there, but never in saying that it is not.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::page::{Page, Piece, Role};
use crate::text::words;

/// How many bits each word gets, in a note and again in a block. About one lookup in forty is a false
/// positive; more bits would cost more to read than they save.
const BITS: usize = 8;
const PROBES: u64 = 4;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// The places that a word can be recorded for: the whole note; its path, title and headings; so many
/// blocks that it counts for all of them; and single blocks.
const ANYWHERE: u64 = 0;
const AROUND: u64 = 1;
const EVERYWHERE: u64 = 2;
const FIRST_BLOCK: u64 = 3;
/// A word counts for all blocks if more than this many have it, and more than one block in this many.
const COMMON: usize = 4;

/// A word, prepared for lookups in many signatures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word(u64, u64);

impl Word {
    /// Makes a word from its stem.
    pub(super) fn of(stem: &str) -> Self {
        let hash = blake3::hash(stem.as_bytes());
        let part =
            |at: usize| u64::from_le_bytes(hash.as_bytes()[at..at + 8].try_into().expect("eight bytes"));
        Word(part(0), part(8))
    }

    /// Returns the bits of the word for one place of a note.
    fn probes(self, place: u64, bits: u64) -> impl Iterator<Item = usize> {
        let mixed = (self.0 ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let (one, two) = (mixed ^ (mixed >> 29), self.1 | 1);
        (0..PROBES).map(move |probe| (one.wrapping_add(probe.wrapping_mul(two)) % bits.max(1)) as usize)
    }
}

/// The words of a note, hashed into bits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub(super) struct Signature {
    blocks: u64,
    /// Six bits in each byte.
    digits: Vec<u8>,
}

impl Signature {
    /// Makes the signature of a note: of all its words, and of the words in each block without stop words.
    pub(super) fn of(path: &str, page: &Page) -> Self {
        let mut held: BTreeSet<(u64, String)> = BTreeSet::new();
        let mut all = |place: u64, text: &str| {
            words::each_word(text, |stem| {
                held.insert((place, stem.to_owned()));
            });
        };
        all(ANYWHERE, path);
        // Only what a search shows: the note's own content. Its links are known anyway, and nobody
        // searches for its metadata.
        let shown = |piece: &&Piece| matches!(piece.role, Role::Body | Role::Title | Role::Aside);
        page.pieces.iter().filter(shown).for_each(|piece| all(ANYWHERE, &piece.text));
        all(AROUND, path);
        all(AROUND, &page.title(path));
        page.pieces.iter().filter_map(|piece| piece.heading()).for_each(|heading| all(AROUND, heading));
        let mut holders: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        let mut blocks = 0;
        for piece in page.pieces.iter().filter(shown) {
            words::each_raw_word(&piece.text, |raw, stem| {
                if !words::is_plain(raw) {
                    holders.entry(stem.to_owned()).or_default().insert(FIRST_BLOCK + blocks);
                }
            });
            blocks += 1;
        }
        for (stem, places) in holders {
            match places.len() > COMMON && places.len() * COMMON > blocks as usize {
                true => held.extend([(EVERYWHERE, stem)]),
                false => held.extend(places.into_iter().map(|place| (place, stem.clone()))),
            }
        }
        let mut made = Signature { blocks, digits: vec![0; (held.len() * BITS).div_ceil(6)] };
        for (place, stem) in &held {
            for bit in Word::of(stem).probes(*place, made.bits()) {
                made.digits[bit / 6] |= 1 << (bit % 6);
            }
        }
        made
    }

    /// Whether a word may be anywhere in the note.
    pub(super) fn may_hold(&self, word: Word) -> bool {
        self.may_hold_at(word, ANYWHERE)
    }

    /// Returns how much of some words each block may have, from 0 to 1, by their weights. A word that is
    /// only around the block counts for the share `around`.
    pub(super) fn shares(&self, asked: &[Word], weights: &[f64], around: f64) -> Vec<f64> {
        let whole = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let there: Vec<(Word, f64, f64)> = (asked.iter().zip(weights))
            .filter(|(word, _)| self.may_hold(**word))
            .map(|(word, weight)| {
                match (self.may_hold_at(*word, EVERYWHERE), self.may_hold_at(*word, AROUND)) {
                    (true, _) => (*word, *weight, *weight),
                    (_, true) => (*word, *weight, weight * around),
                    _ => (*word, *weight, 0.0),
                }
            })
            .collect();
        let block = |place: u64| {
            let of = |(word, inside, outside): &(Word, f64, f64)| {
                if self.may_hold_at(*word, place) { *inside } else { *outside }
            };
            there.iter().map(of).sum::<f64>() / whole
        };
        (FIRST_BLOCK..FIRST_BLOCK + self.blocks).map(block).collect()
    }

    /// Returns in how many blocks a word may be.
    pub(super) fn blocks_with(&self, word: Word) -> usize {
        if !self.may_hold(word) {
            return 0;
        }
        if self.may_hold_at(word, EVERYWHERE) {
            return self.blocks as usize;
        }
        (FIRST_BLOCK..FIRST_BLOCK + self.blocks).filter(|place| self.may_hold_at(word, *place)).count()
    }

    fn may_hold_at(&self, word: Word, place: u64) -> bool {
        !self.digits.is_empty()
            && word.probes(place, self.bits()).all(|bit| self.digits[bit / 6] & (1 << (bit % 6)) != 0)
    }

    fn bits(&self) -> u64 {
        (self.digits.len() * 6) as u64
    }
}

impl From<String> for Signature {
    /// An invalid digit counts as all bits set, so that damage hides no word.
    fn from(text: String) -> Self {
        let value = |digit: u8| DIGITS.iter().position(|own| *own == digit).map_or(63, |at| at as u8);
        let (blocks, digits) = text.split_once('.').unwrap_or(("", "."));
        Signature { blocks: blocks.parse().unwrap_or(1), digits: digits.bytes().map(value).collect() }
    }
}

impl From<Signature> for String {
    fn from(signature: Signature) -> String {
        let digits = signature.digits.iter().map(|digit| char::from(DIGITS[usize::from(digit & 63)]));
        format!("{}.{}", signature.blocks, digits.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(text: &str) -> Signature {
        Signature::of("some/path", &Page::parse(text))
    }

    #[test]
    fn no_word_is_denied_and_few_are_invented() {
        let text: String = (0..400).map(|number| format!("- word{number}x\n")).collect();
        let made = Signature::from(String::from(signature(&text)));
        assert_eq!(made, signature(&text));
        let may = |word: String| made.may_hold(Word::of(&word));
        assert!((0..400).all(|number| may(format!("word{number}x"))));
        assert!(may("path".to_owned()), "its path is part of it");
        let invented = (0..4000).filter(|number| may(format!("other{number}y"))).count();
        assert!(invented < 320, "{invented} of 4000");
        assert!(!Signature::of("", &Page::default()).may_hold(Word::of("a")));
    }

    #[test]
    fn words_of_one_block_count_together() {
        let made = signature("# Title\n\n- red apples\n- green pears\n- red pears, ripe\n");
        let asked = ["red", "pear", "titl", "green"].map(Word::of);
        let best = |weights: [f64; 4]| {
            let shares = made.shares(&asked, &weights, 0.5);
            assert_eq!(shares.len(), 4);
            shares.into_iter().fold(0.0, f64::max)
        };
        assert_eq!(best([1.0, 1.0, 0.0, 0.0]), 1.0);
        assert_eq!(best([1.0, 0.0, 0.0, 1.0]), 0.5, "no block is red and green");
        assert_eq!(best([0.0, 0.0, 1.0, 1.0]), 0.75, "the title stands around every block");
        assert_eq!(asked.map(|word| made.blocks_with(word)), [2, 2, 1, 1]);
    }

    #[test]
    fn damage_hides_nothing() {
        let damaged = Signature::from("no signature".to_owned());
        assert!(damaged.may_hold(Word::of("anything")) && damaged.blocks_with(Word::of("anything")) > 0);
    }
}
