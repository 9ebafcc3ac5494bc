//! A backend with a cache in front: for storages that are far away.
//!
//! Bytes are kept under their version, so an entry is never wrong: at worst nobody asks for its version any
//! more. What may be out of date is *which* version a place is at, and [`Freshness`] says how long that is
//! believed.

mod rates;
mod shelf;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rates::Counters;
pub use rates::Rates;
use shelf::Shelf;

use crate::backend::{
    Applied, Backend, Capabilities, Change, ConflictStrategy, Content, Depth, Edit, Finding, HistoryQuery,
    Info, Keep, Moment, Past, Pruned, Pruning, Version,
};
use crate::clock::{Clock, Timestamp};
use crate::error::Result;
use crate::locator::Locator;
use crate::vfs::Vfs;

/// How long a place is believed to be at the version that was seen there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Not at all: each read asks the storage for the version, and only the bytes come from the cache.
    /// Another machine's write is seen by the next read.
    Checked,
    /// For this long: reads within it ask nobody. Another machine's write may be seen that late; our own
    /// never is, and a change based on an outdated read is refused as a conflict.
    For(Duration),
}

/// The usual time to live.
pub const TTL: Duration = Duration::from_secs(300);

/// For how many places it is remembered what was seen there.
const SEEN_MAX: usize = 100_000;

/// What a cache is made with.
pub struct CacheOptions {
    /// How long a place is believed to be at the version that was seen there.
    pub freshness: Freshness,
    /// How many bytes are kept in memory.
    pub memory_bytes_max: u64,
    /// A folder for bytes that outlive the process, and for how many of them. It may be deleted at any time.
    pub disk: Option<(Arc<dyn Vfs>, u64)>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl CacheOptions {
    /// A cache in memory alone that checks every read.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        CacheOptions { freshness: Freshness::Checked, memory_bytes_max: 64 * 1024 * 1024, disk: None, clock }
    }
}

/// A backend with a cache in front.
pub struct Cached {
    inner: Arc<dyn Backend>,
    freshness: Freshness,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Has its own lock, so that hashing and disk access do not block lookups in `state`.
    shelf: Mutex<Shelf>,
    rates: Counters,
}

struct State {
    /// What was last seen at each place, and when; empty if nothing is believed without asking.
    seen: HashMap<Locator, (Info, Timestamp)>,
    /// Counts each beginning and end of a change: what was read across one of them is not kept.
    turn: u64,
}

impl Cached {
    /// Puts a cache in front of a backend.
    pub fn new(inner: Arc<dyn Backend>, options: CacheOptions) -> Self {
        let rates = Counters::load(options.disk.as_ref().map(|(folder, _)| Arc::clone(folder)));
        let shelf = Mutex::new(Shelf::new(options.memory_bytes_max, options.disk));
        let state = Mutex::new(State { seen: HashMap::new(), turn: 0 });
        Cached { inner, freshness: options.freshness, clock: options.clock, state, shelf, rates }
    }

    /// How often the cache helped: since it was made, or with a disk, since its folder was made.
    pub fn rates(&self) -> Rates {
        self.rates.rates()
    }

    /// Reads the rates that a cache on a disk has stored in its folder.
    pub fn rates_in(folder: Arc<dyn Vfs>) -> Rates {
        Counters::load(Some(folder)).rates()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // At worst a panic elsewhere leaves an entry that costs a miss.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is believed to be at a place without asking.
    fn believed(&self, at: &Locator) -> Option<Info> {
        let Freshness::For(ttl) = self.freshness else { return None };
        let state = self.state();
        let (info, when) = state.seen.get(at)?;
        // If the clock was set back, the age is unknown.
        let age = u128::try_from(self.clock.now().duration_since(*when).as_millis()).ok()?;
        (age <= ttl.as_millis()).then(|| info.clone())
    }

    fn kept(&self, version: &Version) -> Option<Vec<u8>> {
        self.shelf().get(version)
    }

    /// Keeps what was read since `turn`; the description only if no change has begun or ended since.
    fn keep(&self, turn: u64, info: Option<Info>, content: Option<&Content>) {
        let now = self.clock.now();
        if let Some(content) = content {
            self.shelf().put(&content.version, &content.bytes);
        }
        if self.freshness == Freshness::Checked {
            return;
        }
        let mut state = self.state();
        if let Some(info) = info.filter(|_| state.turn == turn) {
            if state.seen.len() >= SEEN_MAX {
                state.seen.clear();
            }
            state.seen.insert(info.locator.clone(), (info, now));
        }
    }

    /// Marks the beginning or end of a change, and forgets what was seen at the places that it touches.
    fn forget(&self, edits: &[Edit]) {
        let mut state = self.state();
        state.turn += 1;
        for edit in edits {
            match edit {
                Edit::Write { at, .. } | Edit::Append { at, .. } => drop(state.seen.remove(at)),
                Edit::Delete { at, .. } => state.seen.retain(|place, _| !place.is_within(at)),
                Edit::Rename { from, to, .. } => {
                    state.seen.retain(|place, _| !place.is_within(from) && !place.is_within(to));
                }
            }
        }
    }

    fn read_inner(&self, at: &Locator, info: Option<Info>) -> Result<Content> {
        let turn = self.state().turn;
        self.rates.miss();
        let content = self.inner.read(at)?;
        // The description is kept only if it is of these very bytes.
        let info = match self.freshness {
            Freshness::Checked => None,
            Freshness::For(_) => match info {
                Some(info) => Some(info),
                None => Some(self.inner.info(at)?),
            },
        };
        self.keep(turn, info.filter(|info| info.version.as_ref() == Some(&content.version)), Some(&content));
        Ok(content)
    }
}

impl Backend for Cached {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        self.inner.conflict_strategy()
    }

    fn read(&self, at: &Locator) -> Result<Content> {
        let believed = self.believed(at).and_then(|info| info.version);
        if let Some(version) = believed
            && let Some(bytes) = self.kept(&version)
        {
            self.rates.hit(bytes.len());
            return Ok(Content { bytes, version });
        }
        if self.shelf().is_empty() {
            return self.read_inner(at, None);
        }
        let turn = self.state().turn;
        let info = self.inner.info(at)?;
        let kept = info.version.as_ref().and_then(|version| Some((version.clone(), self.kept(version)?)));
        let Some((version, bytes)) = kept else { return self.read_inner(at, Some(info)) };
        self.rates.checked(bytes.len());
        self.keep(turn, Some(info), None);
        Ok(Content { bytes, version })
    }

    fn info(&self, at: &Locator) -> Result<Info> {
        if let Some(info) = self.believed(at) {
            return Ok(info);
        }
        let turn = self.state().turn;
        let info = self.inner.info(at)?;
        self.keep(turn, Some(info.clone()), None);
        Ok(info)
    }

    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>> {
        self.inner.list(under, depth)
    }

    fn mkdir(&self, at: &Locator) -> Result<()> {
        self.inner.mkdir(at)
    }

    fn apply(&self, change: &Change) -> Result<Applied> {
        self.forget(&change.edits);
        let result = self.inner.apply(change);
        // Also after a refusal, which says that what was believed is no longer true.
        self.forget(&change.edits);
        if let Ok(applied) = &result
            && !applied.replayed
        {
            let mut shelf = self.shelf();
            for (edit, version) in change.edits.iter().zip(&applied.versions) {
                if let (Edit::Write { bytes, .. }, Some(version)) = (edit, version) {
                    shelf.put(version, bytes);
                }
            }
        }
        result
    }

    fn applied(&self, key: &str) -> Result<Option<Applied>> {
        self.inner.applied(key)
    }

    fn history(&self, query: &HistoryQuery) -> Result<Vec<Past>> {
        self.inner.history(query)
    }

    fn read_past(&self, at: &Locator, moment: &Moment) -> Result<Option<Vec<u8>>> {
        self.inner.read_past(at, moment)
    }

    fn redact(&self, at: &Locator, moment: &Moment) -> Result<()> {
        self.inner.redact(at, moment)
    }

    fn redact_holding(&self, under: &Locator, holds: &dyn Fn(&[u8]) -> bool) -> Result<usize> {
        self.inner.redact_holding(under, holds)
    }

    fn prune(&self, keep: Keep, how: Pruning) -> Result<Pruned> {
        self.inner.prune(keep, how)
    }

    fn check(&self) -> Result<Vec<Finding>> {
        self.inner.check()
    }
}
