//! Watchers: how a process that stays learns that nothing has changed, without a listing.
//!
//! A watcher is only a hint. It is believed for a short time, and only when it watched every folder
//! before the last listing began; then the files are listed again.

use std::sync::Arc;

use super::Index;
use super::listing::joined;
use crate::locator::Locator;

/// For how long the files are not listed while watchers say that nothing has changed, and for as
/// long again while they are listed (see `patrol`). Listing may take a fiftieth of the time, so
/// that many files do not make every search slow.
const BELIEVED_MS: i64 = 2_000;
const LISTING_SHARE: i64 = 50;
/// So many files are looked at one by one, or a share of all; for more a listing is quicker.
pub(super) const SINGLE_FILES_MAX: usize = 64;
const SINGLE_FILES_SHARE: usize = 8;

/// What a watcher has noticed since it was last asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Noticed {
    /// Nothing has changed.
    Nothing,
    /// At most these files were changed, made, moved or removed.
    Files(Vec<Locator>),
    /// Whatever may have changed.
    Anything,
}

/// Watches the files of one storage.
pub trait Watch: Send + Sync {
    /// What has happened since this was last asked. What a caller of the system was told to be
    /// written before is noticed.
    fn noticed(&self) -> Noticed;

    /// Watches these folders of the storage. `true` if it watched all of them before, so that
    /// nothing in them has escaped it.
    fn attend(&self, folders: &[Locator]) -> bool;
}

/// What is known of the last look at the files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Whether the watchers would have noticed any change since.
    covered: bool,
    began: i64,
    took: i64,
    /// When someone began to list everything again.
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

    /// This look, if it is time for another one and nobody has begun it: whoever asks begins it.
    pub(super) fn taken_if_due(&mut self, now: i64) -> Option<Look> {
        let due = self.holds(now) && now - self.again >= self.believed();
        due.then(|| {
            self.again = now;
            *self
        })
    }
}

/// Whether a moment is so near that what was true then is believed.
pub(super) fn is_recent(then: i64, now: i64) -> bool {
    (0..BELIEVED_MS).contains(&(now - then))
}

impl Index {
    /// For a process that stays: what every search needs is read at once, and these watch the
    /// storages, in their order. The files are listed only when a watcher, or time, calls for it.
    #[must_use]
    pub fn staying(self, watches: Vec<Arc<dyn Watch>>) -> Arc<Self> {
        Arc::new_cyclic(|myself| Index { stays: true, watches, myself: myself.clone(), ..self })
    }

    /// The files to look at, each with its storage; `None` if all must be listed. What is noticed
    /// here is noticed once: whoever asks must look, or list everything next time.
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

    /// Has the watchers attend to the folders of their storages. `true` if they all did before.
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
