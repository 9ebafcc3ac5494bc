//! Everything in memory: strict, deterministic, with the whole history. Also the model that other
//! backends are compared with.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ledger::{Draft, Entry, Ledger, Node};
use crate::backend::{
    Applied, Backend, Bytes, Capabilities, Change, ChangeId, ConflictStrategy, Content, Depth, Edit,
    FileKind, Finding, HistoryQuery, Info, Keep, Moment, Op, Past, PastEdit, Pruned, Pruning, Version,
    cannot_forget, cannot_prune, is_folder, not_derivable, not_found,
};
use crate::clock::{Clock, ManualClock, Timestamp};
use crate::error::Result;
use crate::locator::Locator;
use crate::registry::Registration;

/// The protocol name.
pub const PROTOCOL: &str = "ram";

pub(crate) const REGISTRATION: Registration = Registration {
    open: |request| Ok(Arc::new(Ram::new(Arc::clone(&request.clock)))),
    capabilities: CAPABILITIES,
    about: "in memory, gone when the program ends; for tests and for trying things out",
};

/// One process only, and one copy only.
const CAPABILITIES: Capabilities =
    Capabilities { concurrent_writers: false, conflict_files: false, encryption: false, sync: false };

/// A storage in memory. Clones share the same files.
///
/// By default the clock starts at 2026 and moves by a millisecond with each use, so that equal
/// calls give equal stores.
#[derive(Clone)]
pub struct Ram {
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

type State = Ledger<Arc<File>>;

struct File {
    bytes: Bytes,
    version: Version,
    mtime: Timestamp,
    stamp: u64,
}

impl Ram {
    /// An empty storage that takes its times from `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Ram { clock, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic of another caller cannot have left half a change: the tree is swapped last.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Ram {
    fn default() -> Self {
        Ram::new(Arc::new(ManualClock::default()))
    }
}

impl fmt::Debug for Ram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Ram").field("entries", &state.tree.len()).field("changes", &state.changes()).finish()
    }
}

impl Backend for Ram {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn conflict_strategy(&self) -> ConflictStrategy {
        ConflictStrategy::None
    }

    fn read(&self, at: &Locator) -> Result<Content> {
        match self.state().tree.get(at) {
            None => Err(not_found(at)),
            Some(Node::Folder { .. }) => Err(is_folder(at)),
            Some(Node::File(file)) => {
                Ok(Content { bytes: file.bytes.to_vec(), version: file.version.clone() })
            }
        }
    }

    fn info(&self, at: &Locator) -> Result<Info> {
        self.state().tree.get(at).map(|node| info(at, &node)).ok_or_else(|| not_found(at))
    }

    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>> {
        let state = self.state();
        Ok(state.list(under, depth).into_iter().map(|Entry { at, node }| info(at, node)).collect())
    }

    fn mkdir(&self, at: &Locator) -> Result<()> {
        let mut state = self.state();
        let mut draft = Draft::new(&state.tree, self.clock.now(), &version);
        draft.mkdir(at)?;
        let changed = draft.finish();
        state.tree.swap(changed);
        Ok(())
    }

    fn apply(&self, change: &Change) -> Result<Applied> {
        let mut state = self.state();
        if let Some(key) = &change.note.key
            && let Some(applied) = state.replay(key)
        {
            return Ok(applied);
        }
        if change.note.derived {
            change.check_derived()?;
        }
        let (time, seq) = (self.clock.now(), state.changes() as u64 + 1);
        let mut draft = Draft::new(&state.tree, time, &version);
        let mut edits = Vec::with_capacity(change.edits.len());
        let mut versions = Vec::with_capacity(change.edits.len());
        for edit in &change.edits {
            let (past, version) = try_edit(&mut draft, edit, time, seq)?;
            if change.note.derived && past.op == Op::Delete && past.old.is_none() {
                return Err(not_derivable(edit.at()));
            }
            edits.push(past);
            versions.push(version);
        }
        // Every edit was possible: from here on nothing fails.
        let changed = draft.finish();
        let id = ChangeId::new(seq.to_string());
        let past = Past { change: id.clone(), time, note: change.note.clone(), edits };
        state.push(seq, past, versions.clone(), changed);
        Ok(Applied::now(id, versions, &change.note))
    }

    fn applied(&self, key: &str) -> Result<Option<Applied>> {
        Ok(self.state().replay(key))
    }

    fn history(&self, query: &HistoryQuery) -> Result<Vec<Past>> {
        self.state().history(query)
    }

    fn read_past(&self, at: &Locator, moment: &Moment) -> Result<Option<Vec<u8>>> {
        Ok(self.state().past_file(at, moment)?.map(|file| file.bytes.to_vec()))
    }

    fn redact(&self, at: &Locator, _moment: &Moment) -> Result<()> {
        Err(cannot_forget(at))
    }

    fn redact_holding(&self, under: &Locator, _holds: &dyn Fn(&[u8]) -> bool) -> Result<usize> {
        Err(cannot_forget(under))
    }

    fn prune(&self, _keep: Keep, _how: Pruning) -> Result<Pruned> {
        Err(cannot_prune())
    }

    fn check(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }
}

fn version(_: &Locator, file: &Arc<File>) -> Result<Version> {
    Ok(file.version.clone())
}

/// Tries one edit; gives back what the history keeps of it, and the version it left behind where
/// the caller is to be told. No two changes share a stamp.
fn try_edit(
    draft: &mut Draft<'_, Arc<File>>,
    edit: &Edit,
    mtime: Timestamp,
    stamp: u64,
) -> Result<(PastEdit, Option<Version>)> {
    let file = |bytes: Bytes| {
        let version = Version::of(&bytes);
        Arc::new(File { bytes, version, mtime, stamp })
    };
    let of = |file: Option<Arc<File>>| file.map(|file| file.version.clone());
    let past = |op, at: &Locator, to, old, new| PastEdit { op, at: at.clone(), to, old, new };
    match edit {
        Edit::Write { at, bytes, expect } => {
            let new = Version::of(bytes);
            let old = of(draft.write(at, expect, |_| file(bytes.clone()))?);
            Ok((past(Op::Write, at, None, old, Some(new.clone())), Some(new)))
        }
        Edit::Append { at, bytes, expect } => {
            let mut new = None;
            let old = draft.write(at, expect, |there| {
                let before: &[u8] = there.map_or(&[], |file| &file.bytes);
                let grown = file([before, bytes].concat().into());
                new = Some(grown.version.clone());
                grown
            })?;
            Ok((past(Op::Append, at, None, of(old), new), None))
        }
        Edit::Delete { at, expect } => {
            let old = of(draft.delete(at, expect)?);
            Ok((past(Op::Delete, at, None, old, None), None))
        }
        Edit::Rename { from, to, expect } => {
            let version = of(draft.rename(from, to, expect)?);
            Ok((past(Op::Rename, from, Some(to.clone()), version.clone(), version), None))
        }
    }
}

fn info(at: &Locator, node: &Node<Arc<File>>) -> Info {
    let locator = at.clone();
    match node {
        Node::Folder { mtime } => {
            Info { locator, kind: FileKind::Folder, size: 0, mtime: *mtime, stamp: 0, version: None }
        }
        Node::File(file) => Info {
            locator,
            kind: FileKind::File,
            size: file.bytes.len() as u64,
            mtime: file.mtime,
            stamp: file.stamp,
            version: Some(file.version.clone()),
        },
    }
}
