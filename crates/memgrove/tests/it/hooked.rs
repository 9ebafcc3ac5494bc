//! A storage that passes every call on to another, for tests that count some calls or answer them
//! otherwise: they say which, and nothing else.

use memgrove::backend::{
    Applied, Backend, Capabilities, Change, ConflictStrategy, Content, Depth, Finding, HistoryQuery, Info,
    Keep, Moment, Past, Pruned, Pruning,
};
use memgrove::{Locator, Result};

/// What a test does with the calls that it is about.
pub(crate) trait Hook: Send + Sync {
    /// The storage that all others are passed on to.
    fn inner(&self) -> &dyn Backend;

    fn capabilities(&self) -> Capabilities {
        self.inner().capabilities()
    }
    fn conflict_strategy(&self) -> ConflictStrategy {
        self.inner().conflict_strategy()
    }
    fn read(&self, at: &Locator) -> Result<Content> {
        self.inner().read(at)
    }
    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>> {
        self.inner().list(under, depth)
    }
    fn apply(&self, change: &Change) -> Result<Applied> {
        self.inner().apply(change)
    }
}

/// The storage.
#[derive(Default)]
pub(crate) struct Hooked<H>(pub(crate) H);

impl<H: Hook> Backend for Hooked<H> {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
    fn conflict_strategy(&self) -> ConflictStrategy {
        self.0.conflict_strategy()
    }
    fn read(&self, at: &Locator) -> Result<Content> {
        self.0.read(at)
    }
    fn info(&self, at: &Locator) -> Result<Info> {
        self.0.inner().info(at)
    }
    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>> {
        self.0.list(under, depth)
    }
    fn mkdir(&self, at: &Locator) -> Result<()> {
        self.0.inner().mkdir(at)
    }
    fn apply(&self, change: &Change) -> Result<Applied> {
        self.0.apply(change)
    }
    fn applied(&self, key: &str) -> Result<Option<Applied>> {
        self.0.inner().applied(key)
    }
    fn history(&self, query: &HistoryQuery) -> Result<Vec<Past>> {
        self.0.inner().history(query)
    }
    fn read_past(&self, at: &Locator, moment: &Moment) -> Result<Option<Vec<u8>>> {
        self.0.inner().read_past(at, moment)
    }
    fn redact(&self, at: &Locator, moment: &Moment) -> Result<()> {
        self.0.inner().redact(at, moment)
    }
    fn redact_holding(&self, under: &Locator, holds: &dyn Fn(&[u8]) -> bool) -> Result<usize> {
        self.0.inner().redact_holding(under, holds)
    }
    fn prune(&self, keep: Keep, how: Pruning) -> Result<Pruned> {
        self.0.inner().prune(keep, how)
    }
    fn check(&self) -> Result<Vec<Finding>> {
        self.0.inner().check()
    }
}
