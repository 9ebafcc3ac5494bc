//! Which note a search visits next: the one that promises most for what it costs to read.

use std::cmp::Ordering;

/// A note that is to be visited.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lead {
    pub(super) rank: Rank,
    /// Among equals, the one found first is visited first.
    pub(super) order: std::cmp::Reverse<usize>,
    pub(super) path: String,
    pub(super) trail: Vec<String>,
}

impl Ord for Lead {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.rank, self.order).cmp(&(other.rank, other.order))
    }
}

impl PartialOrd for Lead {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// How promising a note is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// Whether one of its blocks may have all of the words, which outweighs any number of blocks with
    /// some.
    whole: bool,
    /// How much it promises for the bytes that reading it costs.
    worth: u32,
}

impl Rank {
    /// Before everything else.
    pub(super) const FIRST: Rank = Rank { whole: true, worth: u32::MAX };
    /// After everything that promises anything.
    pub(super) const LAST: Rank = Rank { whole: false, worth: 0 };

    /// Ranks a note by how much of the question each of its blocks may answer, and by its size.
    pub(super) fn of(shares: &[f64], bytes: u64) -> Self {
        let whole = shares.iter().any(|share| *share > 1.0 - 1e-9);
        let worth: f64 = shares.iter().map(|share| share.powi(4)).sum();
        Rank { whole, worth: (worth / bytes.max(64) as f64 * 1e9) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_words_outweigh_one_of_them_many_times() {
        assert!(Rank::of(&[0.2, 1.0], 50_000) > Rank::of(&[0.6; 200], 2_000));
        assert!(Rank::of(&[0.6; 3], 2_000) > Rank::of(&[0.6], 2_000));
        assert!(Rank::of(&[1.0], 2_000) > Rank::of(&[1.0], 3_000), "what costs less comes first");
    }
}
