//! Which words may be in a note, in a few hundred bytes: never wrong when it says that one is not.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::text::words;

/// Bits for each word: about one word in forty is taken for another.
const BITS: usize = 8;
const PROBES: u64 = 4;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The words of a note, folded into bits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub(super) struct Signature {
    /// Six bits each.
    digits: Vec<u8>,
}

impl Signature {
    /// The signature of all words of a text.
    pub(super) fn of(text: &str) -> Self {
        let mut stems = BTreeSet::new();
        words::each_word(text, |stem| {
            stems.insert(stem.to_owned());
        });
        let mut made = Signature { digits: vec![0; (stems.len() * BITS).div_ceil(6)] };
        for stem in &stems {
            for bit in made.probes(stem) {
                made.digits[bit / 6] |= 1 << (bit % 6);
            }
        }
        made
    }

    /// Whether a word may be there.
    pub(super) fn may_hold(&self, stem: &str) -> bool {
        self.probes(stem).iter().all(|bit| self.digits[bit / 6] & (1 << (bit % 6)) != 0)
            && !self.digits.is_empty()
    }

    fn probes(&self, stem: &str) -> Vec<usize> {
        let hash = blake3::hash(stem.as_bytes());
        let part =
            |at: usize| u64::from_le_bytes(hash.as_bytes()[at..at + 8].try_into().expect("eight bytes"));
        let (one, two, bits) = (part(0), part(8) | 1, (self.digits.len() * 6) as u64);
        if bits == 0 {
            return Vec::new();
        }
        (0..PROBES).map(|probe| (one.wrapping_add(probe.wrapping_mul(two)) % bits) as usize).collect()
    }
}

impl From<String> for Signature {
    /// What is no digit counts as every word, so that damage hides nothing.
    fn from(text: String) -> Self {
        let value = |digit: u8| DIGITS.iter().position(|own| *own == digit).map_or(63, |at| at as u8);
        Signature { digits: text.bytes().map(value).collect() }
    }
}

impl From<Signature> for String {
    fn from(signature: Signature) -> String {
        signature.digits.iter().map(|digit| char::from(DIGITS[usize::from(digit & 63)])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_denied_and_few_are_invented() {
        let text: String = (0..400).map(|number| format!("word{number}x ")).collect();
        let made = Signature::from(String::from(Signature::of(&text)));
        assert_eq!(made, Signature::of(&text));
        assert!((0..400).all(|number| made.may_hold(&format!("word{number}x"))));
        let invented = (0..4000).filter(|number| made.may_hold(&format!("other{number}y"))).count();
        assert!(invented < 200, "{invented} of 4000");
        assert!(!Signature::of("").may_hold("a"));
    }
}
