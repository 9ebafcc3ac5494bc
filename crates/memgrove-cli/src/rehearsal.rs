//! A backend on which nothing happens: reads are real, changes are only planned. What it answers to
//! a change is what would be done.

use std::sync::Arc;

use memgrove::backend::{
    Applied, Backend, Capabilities, Change, ChangeId, ConflictStrategy, Content, Depth, Finding,
    HistoryQuery, Info, Keep, Moment, Past, Pruned, Pruning,
};
use memgrove::{Locator, Memory, Result, Store};

/// The same memory, with every change planned and none made.
pub(crate) fn rehearsed(memory: &Memory) -> Memory {
    let real = Arc::clone(memory.store().backend());
    Memory::new(Store::new(Rehearsal { real }), Arc::clone(memory.clock())).with_accounts_of(memory)
}

struct Rehearsal {
    real: Arc<dyn Backend>,
}

impl Backend for Rehearsal {
    fn capabilities(&self) -> Capabilities {
        self.real.capabilities()
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        self.real.conflict_strategy()
    }

    fn read(&self, at: &Locator) -> Result<Content> {
        self.real.read(at)
    }

    fn info(&self, at: &Locator) -> Result<Info> {
        self.real.info(at)
    }

    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>> {
        self.real.list(under, depth)
    }

    fn mkdir(&self, _at: &Locator) -> Result<()> {
        Ok(())
    }

    fn apply(&self, change: &Change) -> Result<Applied> {
        let versions = vec![None; change.edits.len()];
        Ok(Applied::now(ChangeId::new("planned"), versions, &change.note))
    }

    fn applied(&self, key: &str) -> Result<Option<Applied>> {
        self.real.applied(key)
    }

    fn history(&self, query: &HistoryQuery) -> Result<Vec<Past>> {
        self.real.history(query)
    }

    fn read_past(&self, at: &Locator, moment: &Moment) -> Result<Option<Vec<u8>>> {
        self.real.read_past(at, moment)
    }

    fn redact(&self, _at: &Locator, _moment: &Moment) -> Result<()> {
        Ok(())
    }

    fn redact_holding(&self, _under: &Locator, _holds: &dyn Fn(&[u8]) -> bool) -> Result<usize> {
        Ok(0)
    }

    fn prune(&self, keep: Keep, _how: Pruning) -> Result<Pruned> {
        self.real.prune(keep, Pruning::Planned)
    }

    fn check(&self) -> Result<Vec<Finding>> {
        self.real.check()
    }
}
