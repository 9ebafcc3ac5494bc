//! Whether an entity contains a phrase, answered for thousands of entities at once: most are ruled out by
//! a compact filter, without a look at their text.

use std::sync::Arc;

use memchr::memmem::Finder;

use super::catalog::Card;
use super::search::holds_phrase;

const SIEVE_BITS: u32 = 512;

/// Which sequences of three bytes occur in a text, as bits that several sequences share. A bit that is not
/// set proves that a sequence is missing; one that is set proves nothing.
#[derive(Clone, Copy, Default)]
pub(super) struct Sieve([u64; SIEVE_BITS as usize / 64]);

impl Sieve {
    pub(super) fn of(text: &str) -> Self {
        let mut sieve = Sieve([0; SIEVE_BITS as usize / 64]);
        for bit in bits(text) {
            sieve.0[bit / 64] |= 1 << (bit % 64);
        }
        sieve
    }

    fn may_hold(&self, bits: &[usize]) -> bool {
        bits.iter().all(|bit| self.0[bit / 64] & (1 << (bit % 64)) != 0)
    }
}

fn bits(text: &str) -> impl Iterator<Item = usize> {
    text.as_bytes().windows(3).map(|three| {
        let number = u32::from_le_bytes([three[0], three[1], three[2], 0]);
        // The upper bits of the product depend on all three bytes.
        (number.wrapping_mul(0x9E37_79B1) >> (u32::BITS - SIEVE_BITS.ilog2())) as usize
    })
}

/// A lower-case phrase that is searched for in many entities.
pub(super) struct Phrase<'a> {
    lower: &'a str,
    bits: Vec<usize>,
    finder: Finder<'a>,
    /// Whether it could match across the border of two fields.
    crosses: bool,
}

impl<'a> Phrase<'a> {
    pub(super) fn new(lower: &'a str) -> Self {
        let crosses = lower.contains('\0');
        Phrase { lower, bits: bits(lower).collect(), finder: Finder::new(lower), crosses }
    }

    /// Whether a text with this filter may contain the phrase.
    pub(super) fn may_stand_in(&self, sieve: &Sieve) -> bool {
        sieve.may_hold(&self.bits)
    }

    /// Whether the phrase is in the name, the type or an observation that holds at present.
    pub(super) fn stands_in(&self, card: &Card) -> bool {
        self.finder.find(card.lower.as_bytes()).is_some()
            && ((Arc::ptr_eq(&card.entity, &card.present) && !self.crosses)
                || holds_phrase(&card.present, self.lower))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_part_of_a_text_is_sieved_out(text in ".{0,80}", from in 0usize..80, len in 0usize..20) {
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let from = from.min(starts.len() - 1);
            let part = &text[starts[from]..starts[(from + len).min(starts.len() - 1)]];
            prop_assert!(Sieve::of(&text).may_hold(&bits(part).collect::<Vec<_>>()));
        }
    }

    #[test]
    fn most_texts_without_a_phrase_are_passed_over() {
        let wanted: Vec<usize> = bits("quentin okafor").collect();
        let text =
            |n: u32| format!("entity {n} keeps the runbook in folder {} beside the ledger notes", n * 7);
        let passed = (0..1000).filter(|n| Sieve::of(&text(*n)).may_hold(&wanted)).count();
        assert!(passed < 10, "{passed} of 1000 texts would be read");
    }
}
