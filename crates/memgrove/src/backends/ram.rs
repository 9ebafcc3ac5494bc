//! Everything in memory: strict, deterministic, with the whole history. Also the model that other
//! backends are compared with.

mod draft;
mod tree;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::draft::Draft;
use self::tree::{Entry, Node, Tree};
use super::trail::Trail;
use crate::backend::{
    Applied, Backend, Capabilities, Change, ChangeId, ConflictStrategy, Content, Depth, FileKind, Finding,
    HistoryQuery, Info, Moment, Op, Past, Version, is_folder, not_derivable, not_found, not_in_history,
};
use crate::clock::{Clock, ManualClock, SystemClock, Timestamp};
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

#[derive(Default)]
struct State {
    tree: Tree,
    /// Every change that was applied, oldest first.
    past: Vec<Record>,
    /// Which change an idempotency key belongs to, as an index into `past`.
    keys: HashMap<String, usize>,
    /// How many derived changes there were, which are not in `past`.
    derived: u64,
}

struct Record {
    past: Past,
    versions: Vec<Option<Version>>,
    /// What was at each place that the change touched, before it.
    before: BTreeMap<String, Option<Entry>>,
}

impl Ram {
    /// An empty storage that takes its times from `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Ram { clock, state: Arc::default() }
    }

    /// An empty storage with the machine's clock.
    pub fn with_system_clock() -> Self {
        Ram::new(Arc::new(SystemClock))
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
        f.debug_struct("Ram").field("entries", &state.tree.len()).field("changes", &state.past.len()).finish()
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
        self.state().tree.get(at).map(|node| info(at, node)).ok_or_else(|| not_found(at))
    }

    fn list(&self, under: &Locator, depth: Depth) -> Result<Vec<Info>> {
        let state = self.state();
        let wanted = |entry: &&Entry| depth == Depth::All || entry.at.parent().as_ref() == Some(under);
        let mut found: Vec<Info> =
            state.tree.beneath(under).filter(wanted).map(|entry| info(&entry.at, &entry.node)).collect();
        found.sort_by(|one, other| one.locator.cmp(&other.locator));
        Ok(found)
    }

    fn mkdir(&self, at: &Locator) -> Result<()> {
        let mut state = self.state();
        let mut draft = Draft::new(&state.tree, self.clock.now(), state.stamp());
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
        let time = self.clock.now();
        let mut draft = Draft::new(&state.tree, time, state.stamp());
        let mut edits = Vec::with_capacity(change.edits.len());
        let mut versions = Vec::with_capacity(change.edits.len());
        for edit in &change.edits {
            let (past, version) = draft.apply(edit)?;
            if change.note.derived && past.op == Op::Delete && past.old.is_none() {
                return Err(not_derivable(edit.at()));
            }
            edits.push(past);
            versions.push(version);
        }
        // Every edit was possible: from here on nothing fails.
        let changed = draft.finish();
        let before = state.tree.swap(changed);
        if change.note.derived {
            state.derived += 1;
            return Ok(Applied::derived(versions));
        }
        let id = ChangeId::new((state.past.len() + 1).to_string());
        let past = Past { change: id.clone(), time, note: change.note.clone(), edits };
        if let Some(key) = &change.note.key {
            let index = state.past.len();
            state.keys.insert(key.clone(), index);
        }
        state.past.push(Record { past, versions: versions.clone(), before });
        Ok(Applied { change: id, versions, replayed: false, answer: change.note.answer.clone() })
    }

    fn applied(&self, key: &str) -> Result<Option<Applied>> {
        Ok(self.state().replay(key))
    }

    fn history(&self, query: &HistoryQuery) -> Result<Vec<Past>> {
        let state = self.state();
        let end = match &query.before {
            None => state.past.len(),
            Some(change) => state.index_of(change)?,
        };
        let limit = if query.limit == 0 { usize::MAX } else { query.limit };
        let mut trail = query.at.as_ref().map(Trail::of);
        // The trail starts at the present, also when only older changes are asked for.
        let newest_first = state.past.iter().enumerate().rev();
        let touched = newest_first
            .filter(|(_, record)| trail.as_mut().is_none_or(|trail| trail.touched_by(&record.past.edits)));
        let older = touched.filter(|(index, _)| *index < end);
        Ok(older.take(limit).map(|(_, record)| record.past.clone()).collect())
    }

    fn read_past(&self, at: &Locator, moment: &Moment) -> Result<Option<Vec<u8>>> {
        let state = self.state();
        let next = match moment {
            Moment::Before(change) => state.index_of(change)?,
            Moment::After(change) => state.index_of(change)? + 1,
        };
        // The first change since then that touched the place knows what it found there.
        let key = tree::folded(at);
        let found = state.past[next..].iter().find_map(|record| record.before.get(&key));
        let node = match found {
            Some(entry) => entry.as_ref().filter(|entry| entry.at == *at).map(|entry| &entry.node),
            None => state.tree.get(at),
        };
        Ok(node.and_then(Node::file).map(|file| file.bytes.to_vec()))
    }

    fn check(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }
}

impl State {
    /// The answer to a repeat of a key that was applied before.
    fn replay(&self, key: &str) -> Option<Applied> {
        let record = &self.past[*self.keys.get(key)?];
        Some(Applied {
            change: record.past.change.clone(),
            versions: record.versions.clone(),
            replayed: true,
            answer: record.past.note.answer.clone(),
        })
    }

    fn index_of(&self, change: &ChangeId) -> Result<usize> {
        let number: Option<usize> = change.as_str().parse().ok();
        let index = number.and_then(|number| number.checked_sub(1)).filter(|index| *index < self.past.len());
        index.ok_or_else(|| not_in_history(format!("the change `{change}`")))
    }

    /// A stamp for what the next change makes: no two changes share one.
    fn stamp(&self) -> u64 {
        self.past.len() as u64 + self.derived + 1
    }
}

fn info(at: &Locator, node: &Node) -> Info {
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

/// When the root was made: before everything in it.
const BEGINNING: Timestamp = Timestamp::UNIX_EPOCH;
