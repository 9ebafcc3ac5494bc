//! Which note a search visits next: the one that promises most for what it costs to read.

use std::cmp::Ordering;

/// A note that is to be visited.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lead {
    pub(super) promise: u32,
    /// What was found first is visited first, among equals.
    pub(super) order: std::cmp::Reverse<usize>,
    pub(super) path: String,
    pub(super) trail: Vec<String>,
}

impl Ord for Lead {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.promise, self.order).cmp(&(other.promise, other.order))
    }
}

impl PartialOrd for Lead {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// How promising a note is for the bytes that it costs to read, by how much of the question each of its
/// blocks may answer. One block with all of the words is worth many with some.
pub(super) fn promise(shares: &[f64], bytes: u64) -> u32 {
    let worth: f64 = shares.iter().map(|share| share.powi(4)).sum();
    (worth / bytes.max(64) as f64 * 1e9) as u32
}
