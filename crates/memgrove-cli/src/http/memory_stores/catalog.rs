//! Which memories there were and what became of each, read from the history: the history is the truth,
//! this only remembers how far it was read.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use memgrove::backend::{Actor, ChangeId, HistoryQuery, Moment, Op, Past, PastEdit, Version};
use memgrove::clock::Timestamp;
use memgrove::memory::{REDACTION, redaction_of};
use memgrove::{Locator, Result};

use crate::context::Context;

/// Every memory that the history tells of.
#[derive(Default)]
pub(crate) struct Catalog {
    last: Option<ChangeId>,
    /// Which memory is at a place.
    live: BTreeMap<Locator, usize>,
    pub(super) memories: Vec<Lineage>,
    /// Which memory an id belongs to.
    ids: HashMap<String, usize>,
    redactions: Vec<Redaction>,
    /// What versions were found to hold, so that a listing reads each once.
    digests: RefCell<HashMap<String, Digest>>,
}

/// What a version holds, without its content.
#[derive(Clone)]
pub(super) struct Digest {
    pub(super) sha256: String,
    pub(super) size: usize,
}

/// One memory through all its names.
pub(super) struct Lineage {
    pub(super) id: String,
    pub(super) versions: Vec<VersionOf>,
}

/// One change of a memory.
pub(super) struct VersionOf {
    pub(super) id: String,
    /// When it held what it is a version of: after the change that made it, or before the change that
    /// found it, if it was made outside the history.
    pub(super) moment: Moment,
    /// Where it was after the change; before it, if the change deleted it.
    pub(super) at: Locator,
    pub(super) operation: Operation,
    pub(super) time: Timestamp,
    pub(super) actor: Actor,
    /// What it then held, where the history says so without being read.
    pub(super) content: Option<Version>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Created,
    Modified,
    Deleted,
}

impl Operation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Operation::Created => "created",
            Operation::Modified => "modified",
            Operation::Deleted => "deleted",
        }
    }
}

/// That something was redacted, when and by whom.
pub(super) struct Redaction {
    key: String,
    /// What was taken out, where the history said so before: the same content elsewhere went with it.
    content: Option<Version>,
    pub(super) time: Timestamp,
    pub(super) actor: Actor,
}

impl Catalog {
    /// Reads what has happened since it was last read.
    pub(crate) fn refresh(&mut self, cx: &Context) -> Result<()> {
        let memory = cx.reading()?;
        let mut limit = 16;
        let news = loop {
            let query = HistoryQuery { limit, ..HistoryQuery::default() };
            let mut past = memory.history(&query)?;
            let whole = limit == 0 || past.len() < limit;
            if let Some(seen) = past.iter().position(|past| Some(&past.change) == self.last.as_ref()) {
                past.truncate(seen);
                break past;
            }
            if whole {
                // It begins anew: the journal is another one, or was never read.
                *self = Catalog::default();
                break past;
            }
            limit = if limit < 1_000 { limit * 8 } else { 0 };
        };
        let files = cx.files();
        for past in news.into_iter().rev() {
            self.add(&files, past);
        }
        Ok(())
    }

    fn add(&mut self, files: &Locator, past: Past) {
        if let Some(key) = past.note.key.clone().filter(|key| key.starts_with(REDACTION)) {
            let content = self.content_of(&key);
            // Also other versions may have lost the same content with it.
            self.digests.get_mut().clear();
            self.redactions.push(Redaction { key, content, time: past.time, actor: past.note.actor.clone() });
        }
        for (index, edit) in past.edits.iter().enumerate() {
            match edit.op {
                Op::Write | Op::Append if edit.at.is_within(files) => self.written(&past, index, edit),
                Op::Delete => self.deleted(files, &past, index, edit),
                Op::Rename => self.renamed(files, &past, index, edit),
                _ => {}
            }
        }
        self.last = Some(past.change);
    }

    fn written(&mut self, past: &Past, index: usize, edit: &PastEdit) {
        let known = self.live.get(&edit.at).copied().or_else(|| self.unrecorded(edit));
        let operation = if known.is_some() { Operation::Modified } else { Operation::Created };
        let memory = known.unwrap_or_else(|| self.begin(format!("mem_{}x{index}", past.change), &edit.at));
        self.found(memory, past, index, edit);
        self.version(memory, past, index, &edit.at, operation, edit.new.clone());
    }

    fn deleted(&mut self, files: &Locator, past: &Past, index: usize, edit: &PastEdit) {
        let known = self.live.get(&edit.at).copied();
        let memory = known.or_else(|| edit.at.is_within(files).then(|| self.unrecorded(edit)).flatten());
        if let Some(memory) = memory {
            self.found(memory, past, index, edit);
            self.live.remove(&edit.at);
            self.version(memory, past, index, &edit.at, Operation::Deleted, None);
        }
    }

    /// A memory that was there before the history knew of it.
    fn unrecorded(&mut self, edit: &PastEdit) -> Option<usize> {
        edit.old.as_ref().map(|_| self.begin(unrecorded(&edit.at), &edit.at))
    }

    /// What a change found in the place of what the history knew: it is a version too, because the
    /// history holds it from now on.
    fn found(&mut self, memory: usize, past: &Past, index: usize, edit: &PastEdit) {
        let Some(old) = &edit.old else { return };
        let versions = &mut self.memories[memory].versions;
        let last = versions.last();
        if last.is_some_and(|last| last.content.as_ref().is_none_or(|held| held == old)) {
            return;
        }
        let operation = if last.is_none() { Operation::Created } else { Operation::Modified };
        versions.push(VersionOf {
            id: format!("memver_{}x{index}o", past.change),
            moment: Moment::Before(past.change.clone()),
            at: edit.at.clone(),
            operation,
            time: past.time,
            actor: Actor::default(),
            content: Some(old.clone()),
        });
    }

    fn renamed(&mut self, files: &Locator, past: &Past, index: usize, edit: &PastEdit) {
        let Some(to) = &edit.to else { return };
        let moved: Vec<(Locator, Locator)> =
            self.live.keys().filter_map(|at| Some((at.clone(), at.rebased(&edit.at, to)?))).collect();
        for (from, to) in moved {
            let Some(memory) = self.live.remove(&from) else { continue };
            let held = self.memories[memory].versions.last().and_then(|version| version.content.clone());
            if to.is_within(files) {
                self.live.insert(to.clone(), memory);
                self.version(memory, past, index, &to, Operation::Modified, held);
            } else {
                self.version(memory, past, index, &from, Operation::Deleted, None);
            }
        }
    }

    fn begin(&mut self, id: String, at: &Locator) -> usize {
        self.ids.insert(id.clone(), self.memories.len());
        self.memories.push(Lineage { id, versions: Vec::new() });
        self.live.insert(at.clone(), self.memories.len() - 1);
        self.memories.len() - 1
    }

    /// One change of a memory is one version, however many edits it took.
    fn version(
        &mut self,
        memory: usize,
        past: &Past,
        index: usize,
        at: &Locator,
        operation: Operation,
        content: Option<Version>,
    ) {
        let versions = &mut self.memories[memory].versions;
        let moment = Moment::After(past.change.clone());
        if let Some(last) = versions.last_mut().filter(|last| last.moment == moment) {
            last.at = at.clone();
            last.content = content;
            if operation == Operation::Deleted {
                last.operation = operation;
            }
            return;
        }
        versions.push(VersionOf {
            id: format!("memver_{}x{index}", past.change),
            moment,
            at: at.clone(),
            operation,
            time: past.time,
            actor: past.note.actor.clone(),
            content,
        });
    }

    /// The memory at a place.
    pub(super) fn at(&self, at: &Locator) -> Option<&Lineage> {
        self.live.get(at).map(|memory| &self.memories[*memory])
    }

    /// The memory of an id, and where it is if it is still there.
    pub(super) fn by_id(&self, id: &str) -> Option<(&Lineage, Option<&Locator>)> {
        let memory = &self.memories[*self.ids.get(id)?];
        let last = memory.versions.last().filter(|last| last.operation != Operation::Deleted);
        Some((memory, last.map(|last| &last.at)))
    }

    /// What a version holds, if it was read before.
    pub(super) fn digest(&self, version: &VersionOf) -> Option<Digest> {
        self.digests.borrow().get(&version.id).cloned()
    }

    pub(super) fn keep_digest(&self, version: &VersionOf, digest: Digest) {
        self.digests.borrow_mut().insert(version.id.clone(), digest);
    }

    /// When and by whom a version was redacted; if only its content was, with another version of the
    /// same content, then as that one.
    pub(super) fn redaction(&self, version: &VersionOf) -> Option<&Redaction> {
        let key = redaction_of(&version.at, &version.moment);
        let own = self.redactions.iter().find(|redaction| redaction.key == key);
        let same =
            |redaction: &&Redaction| redaction.content.is_some() && redaction.content == version.content;
        own.or_else(|| self.redactions.iter().find(same))
    }

    /// What the version held that a redaction is about.
    fn content_of(&self, key: &str) -> Option<Version> {
        let mut versions = self.memories.iter().flat_map(|memory| &memory.versions);
        let version = versions.find(|version| redaction_of(&version.at, &version.moment) == key);
        version.and_then(|version| version.content.clone())
    }
}

/// The id of a memory that was there before the history began.
pub(super) fn unrecorded(at: &Locator) -> String {
    format!("mem_p{}", &Version::of(at.key().as_bytes()).as_str()[..24])
}
