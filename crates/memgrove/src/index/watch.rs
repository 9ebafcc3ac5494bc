//! How a long-lived process learns that nothing has changed, without a listing: from watchers.
//!
//! A watcher is only a hint. It is trusted for a short time, and only if it watched every folder before
//! the last listing began; after that the files are listed again.

use std::sync::Arc;

use super::Index;
use super::listing::joined;
use crate::locator::Locator;

/// How long a listing is trusted while watchers report no change, and once more as long while `patrol`
/// lists the files again. If a listing is slow, it is trusted for this many times its duration, so that a
/// store of many files does not slow down every search.
const BELIEVED_MS: i64 = 2_000;
const LISTING_SHARE: i64 = 50;
/// Up to this many changed files, or this part of all, are looked at one by one; beyond that a listing is
/// faster.
pub(super) const SINGLE_FILES_MAX: usize = 64;
const SINGLE_FILES_SHARE: usize = 8;

/// What a watcher has noticed since it was last asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Noticed {
    /// Nothing has changed.
    Nothing,
    /// At most these files were changed, made, moved or removed.
    Files(Vec<Locator>),
    /// Anything may have changed.
    Anything,
}

/// Watches the files of one storage.
pub trait Watch: Send + Sync {
    /// Returns what has happened since this was last asked, including every write that the system had
    /// confirmed before the call.
    fn noticed(&self) -> Noticed;

    /// Watches these folders of the storage. Returns `true` if it already watched all of them, so that no
    /// change in them was missed.
    fn attend(&self, folders: &[Locator]) -> bool;
}

/// What is known of the last listing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Whether the watchers would have noticed any change since.
    covered: bool,
    began: i64,
    took: i64,
    /// When a new listing was last begun.
    again: i64,
}

impl Look {
    /// A listing that began and ended at these moments.
    pub(super) fn listed(began: i64, ended: i64, covered: bool) -> Self {
        Look { covered, began, took: (ended - began).max(0), again: began }
    }

    fn believed(self) -> i64 {
        BELIEVED_MS.max(self.took.saturating_mul(LISTING_SHARE))
    }

    fn holds(self, now: i64) -> bool {
        self.covered && (0..self.believed().saturating_mul(2)).contains(&(now - self.began))
    }

    /// Returns this listing if a new one is due and nobody has begun it; the caller then begins it.
    pub(super) fn taken_if_due(&mut self, now: i64) -> Option<Look> {
        let due = self.holds(now) && now - self.again >= self.believed();
        due.then(|| {
            self.again = now;
            *self
        })
    }
}

/// Whether a moment is so recent that what was true then is still trusted.
pub(super) fn is_recent(then: i64, now: i64) -> bool {
    (0..BELIEVED_MS).contains(&(now - then))
}

impl Index {
    /// Prepares the index for a long-lived process: everything that searches need is read at once, and one
    /// watcher for each storage, in order, saves listing the files before every search.
    #[must_use]
    pub fn staying(self, watches: Vec<Arc<dyn Watch>>) -> Arc<Self> {
        Arc::new_cyclic(|myself| Index { stays: true, watches, myself: myself.clone(), ..self })
    }

    /// Returns the files to look at, each with the number of its storage; `None` if all must be listed.
    /// Watchers report each change once, so the caller must look at these files or list everything next
    /// time.
    pub(super) fn noticed(&self, look: Look, now: i64, seen: usize) -> Option<Vec<(usize, Locator)>> {
        if self.watches.len() != self.sources.len() {
            return None;
        }
        let mut files = Vec::new();
        let mut anything = !look.holds(now);
        for (source, watch) in self.watches.iter().enumerate() {
            match watch.noticed() {
                Noticed::Nothing => {}
                Noticed::Files(found) => {
                    let under = &self.sources[source];
                    let found = found.into_iter().filter(|at| self.indexes(under, &joined(&under.under, at)));
                    files.extend(found.map(|at| (source, at)));
                }
                Noticed::Anything => anything = true,
            }
        }
        (!anything && files.len() <= SINGLE_FILES_MAX.max(seen / SINGLE_FILES_SHARE)).then_some(files)
    }

    /// Has the watchers watch the folders of their storages. Returns `true` if all did so before.
    pub(super) fn attend(&self, folders: &[Vec<Locator>]) -> bool {
        let attended = self.watches.iter().zip(folders).map(|(watch, folders)| watch.attend(folders));
        let attended: Vec<bool> = attended.collect();
        attended.len() == self.sources.len() && !attended.contains(&false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watcher_is_believed_for_a_while() {
        let mut look = Look::listed(10_000, 10_001, true);
        assert!(look.holds(10_000) && look.holds(13_999));
        assert!(!look.holds(14_000) && !look.holds(9_999), "too late, or the clock was set back");
        assert!(Look::listed(10_000, 10_300, true).holds(39_999));
        assert!(!Look::listed(10_000, 10_001, false).holds(10_000));
        assert_eq!(look.taken_if_due(11_999), None);
        assert!(look.taken_if_due(12_000).is_some_and(|taken| taken == look));
        assert_eq!(look.taken_if_due(13_999), None, "someone is at it");
    }
}
