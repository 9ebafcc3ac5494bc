//! Which memories there were and what became of each, read from the history: the history is the truth,
//! this only remembers how far it was read.

mod lookup;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use memgrove::backend::{Actor, ChangeId, HistoryQuery, Moment, OUTSIDE, Op, Past, PastEdit, Version};
use memgrove::clock::Timestamp;
use memgrove::memory::{PRUNING, REDACTION, redaction_of, undone_by};
use memgrove::{Locator, Memory, Result};
use serde::Deserialize;

use super::ids::{self, Kept};
use crate::context::Context;

/// Every memory that the history tells of.
#[derive(Default)]
pub(crate) struct Catalog {
    last: Option<ChangeId>,
    /// Which memory is at a place.
    live: BTreeMap<Locator, usize>,
    pub(crate) memories: Vec<Lineage>,
    /// Which memory an id belongs to.
    ids: HashMap<String, usize>,
    redactions: Vec<Redaction>,
    /// The hashes and sizes of versions that were read, so that a listing reads each only once.
    digests: RefCell<HashMap<String, Digest>>,
}

/// What a version holds, without its content.
#[derive(Clone)]
pub(crate) struct Digest {
    pub(crate) sha256: String,
    pub(crate) size: usize,
}

/// One memory, through all its names.
pub(crate) struct Lineage {
    pub(crate) id: String,
    /// When it was made, if the history no longer tells because of pruning.
    made: Option<Timestamp>,
    pub(crate) versions: Vec<VersionOf>,
}

impl Lineage {
    /// When it was made, as far as the history tells.
    pub(crate) fn made(&self) -> Option<Timestamp> {
        self.made.or(self.versions.first().map(|version| version.time))
    }
}

/// One change of a memory.
pub(crate) struct VersionOf {
    pub(crate) id: String,
    /// The moment at which it held this version: after the change that made it, or, if it was written past
    /// memgrove, before the change that found it.
    pub(crate) moment: Moment,
    /// Where it was after the change; before it, if the change deleted it.
    pub(crate) at: Locator,
    pub(crate) operation: Operation,
    pub(crate) time: Timestamp,
    /// Who made it; `None` if it was written past memgrove.
    pub(crate) actor: Option<Actor>,
    /// The version of its content, where the history tells it without a read.
    pub(crate) content: Option<Version>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Operation {
    Created,
    Modified,
    Deleted,
}

impl Operation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::Created => "created",
            Operation::Modified => "modified",
            Operation::Deleted => "deleted",
        }
    }
}

/// That something was redacted, when and by whom.
pub(crate) struct Redaction {
    key: String,
    /// What was taken out, if the history told: equal content elsewhere was redacted with it.
    content: Option<Version>,
    pub(crate) time: Timestamp,
    pub(crate) actor: Actor,
}

impl Catalog {
    /// Reads what has happened since it was last read.
    pub(crate) fn refresh(&mut self, cx: &Context) -> Result<()> {
        let (memory, files) = (cx.reading()?, cx.files());
        if let Some(news) = self.news(&memory)? {
            news.into_iter().rev().for_each(|past| self.add(&files, past));
            return Ok(());
        }
        *self = Catalog::default();
        let mut kept = ids::kept(memory.store())?;
        let all = memory.history(&HistoryQuery::default())?;
        let cut = all.iter().position(ids::are_kept_by);
        if cut.is_none() {
            self.recall(std::mem::take(&mut kept));
        }
        for (index, past) in all.into_iter().enumerate().rev() {
            self.add(&files, past);
            if cut == Some(index) {
                self.recall(std::mem::take(&mut kept));
            }
        }
        Ok(())
    }

    /// What happened since, newest first; `None` if the history must be read anew: it never was, or it is
    /// another journal, or its beginning was pruned.
    fn news(&self, memory: &Memory) -> Result<Option<Vec<Past>>> {
        let Some(last) = &self.last else { return Ok(None) };
        let mut limit = 16;
        loop {
            let query = HistoryQuery { limit, ..HistoryQuery::default() };
            let mut past = memory.history(&query)?;
            if let Some(seen) = past.iter().position(|past| past.change == *last) {
                past.truncate(seen);
                let pruned = |past: &Past| past.note.key.as_ref().is_some_and(|key| key.starts_with(PRUNING));
                return Ok((!past.iter().any(pruned)).then_some(past));
            }
            if limit == 0 || past.len() < limit {
                return Ok(None);
            }
            limit = if limit < 1_000 { limit * 8 } else { 0 };
        }
    }

    /// Gives memories back the ids that they had before the changes that made them were pruned.
    fn recall(&mut self, kept: Vec<Kept>) {
        let known = self.memories.iter().enumerate();
        let known =
            known.flat_map(|(memory, lineage)| lineage.versions.iter().map(move |of| (&of.id, memory)));
        let known: HashMap<String, usize> =
            known.map(|(version, memory)| (version.clone(), memory)).collect();
        for Kept { id, at, version, created_at } in kept {
            let memory = match (at, version) {
                (Some(at), _) => self.live.get(&at).copied().unwrap_or_else(|| self.begin(id.clone(), &at)),
                (None, version) => match version.and_then(|version| known.get(&version).copied()) {
                    Some(memory) => memory,
                    // Its whole past was pruned.
                    None => continue,
                },
            };
            self.ids.insert(id.clone(), memory);
            self.memories[memory].id = id;
            self.memories[memory].made = created_at;
        }
    }

    fn add(&mut self, files: &Locator, past: Past) {
        if let Some(key) = past.note.key.clone().filter(|key| key.starts_with(REDACTION)) {
            let content = self.content_of(&key);
            // Other versions may have lost the same content.
            self.digests.get_mut().clear();
            self.redactions.push(Redaction { key, content, time: past.time, actor: past.note.actor.clone() });
        }
        let fleeting = self.fleeting(&past);
        for (index, edit) in past.edits.iter().enumerate() {
            match edit.op {
                Op::Write | Op::Delete if fleeting.contains(&edit.at) => {}
                Op::Write | Op::Append if edit.at.is_within(files) => self.written(&past, index, edit),
                Op::Delete => self.deleted(files, &past, index, edit),
                Op::Rename => self.renamed(files, &past, index, edit),
                _ => {}
            }
        }
        self.last = Some(past.change);
    }

    /// Places that a change both wrote and deleted: nobody ever saw what was there.
    fn fleeting(&self, past: &Past) -> HashSet<Locator> {
        let ends = past.edits.iter().filter(|edit| edit.op == Op::Delete).map(|edit| &edit.at);
        let here = |at: &Locator| {
            let touched = past.edits.iter().filter(|edit| edit.at == *at || edit.to.as_ref() == Some(at));
            touched.collect::<Vec<_>>()
        };
        let came_and_went = |at: &Locator| match here(at).as_slice() {
            [first, within @ .., last] => {
                (first.op, &first.old, last.op) == (Op::Write, &None, Op::Delete)
                    && within.iter().all(|edit| edit.op != Op::Rename)
            }
            _ => false,
        };
        ends.filter(|at| !self.live.contains_key(*at) && came_and_went(at)).cloned().collect()
    }

    fn written(&mut self, past: &Past, index: usize, edit: &PastEdit) {
        let known = self.live.get(&edit.at).copied().or_else(|| self.unrecorded(edit));
        let operation = if known.is_some() { Operation::Modified } else { Operation::Created };
        let known = known.or_else(|| self.brought_back(past, &edit.at));
        let memory = known.unwrap_or_else(|| self.begin(format!("mem_{}x{index}", past.change), &edit.at));
        self.found(memory, past, index, edit);
        self.version(memory, past, version_id(past, index), &edit.at, operation, edit.new.clone());
    }

    /// The memory that was deleted here by a change that this one undoes.
    fn brought_back(&mut self, past: &Past, at: &Locator) -> Option<usize> {
        let undone = undone_by(&past.note);
        let deleted = |memory: &Lineage| {
            memory.versions.last().is_some_and(|last| {
                let (Moment::Before(change) | Moment::After(change)) = &last.moment;
                last.operation == Operation::Deleted && last.at == *at && undone.contains(change)
            })
        };
        let memory = (!undone.is_empty()).then(|| self.memories.iter().rposition(deleted)).flatten()?;
        self.live.insert(at.clone(), memory);
        Some(memory)
    }

    fn deleted(&mut self, files: &Locator, past: &Past, index: usize, edit: &PastEdit) {
        let known = self.live.get(&edit.at).copied();
        let memory = known.or_else(|| edit.at.is_within(files).then(|| self.unrecorded(edit)).flatten());
        if let Some(memory) = memory {
            self.found(memory, past, index, edit);
            self.live.remove(&edit.at);
            self.version(memory, past, version_id(past, index), &edit.at, Operation::Deleted, None);
        }
    }

    /// A memory that was there before the history knew of it.
    fn unrecorded(&mut self, edit: &PastEdit) -> Option<usize> {
        edit.old.as_ref().map(|_| self.begin(unrecorded(&edit.at), &edit.at))
    }

    /// Records the content that a change found instead of what the history knew: a version too, because the
    /// history now holds it.
    fn found(&mut self, memory: usize, past: &Past, index: usize, edit: &PastEdit) {
        let Some(old) = &edit.old else { return };
        let versions = &mut self.memories[memory].versions;
        let last = versions.last();
        if last.is_some_and(|last| last.content.as_ref().is_none_or(|held| held == old)) {
            return;
        }
        let operation = if last.is_none() { Operation::Created } else { Operation::Modified };
        versions.push(VersionOf {
            id: format!("{}o", version_id(past, index)),
            moment: Moment::Before(past.change.clone()),
            at: edit.at.clone(),
            operation,
            time: past.time,
            actor: None,
            content: Some(old.clone()),
        });
    }

    fn renamed(&mut self, files: &Locator, past: &Past, index: usize, edit: &PastEdit) {
        let Some(to) = &edit.to else { return };
        let moved: Vec<(Locator, Locator)> =
            self.live.keys().filter_map(|at| Some((at.clone(), at.rebased(&edit.at, to)?))).collect();
        for (from, to) in moved {
            let Some(memory) = self.live.remove(&from) else { continue };
            // A moved folder moves many memories, and each gets a version of its own.
            let id = version_id(past, index);
            let id = if from == edit.at { id } else { format!("{id}p{}", digest_of(&from)) };
            let held = self.memories[memory].versions.last().and_then(|version| version.content.clone());
            if to.is_within(files) {
                self.live.insert(to.clone(), memory);
                self.version(memory, past, id, &to, Operation::Modified, held);
            } else {
                self.version(memory, past, id, &from, Operation::Deleted, None);
            }
        }
    }

    fn begin(&mut self, id: String, at: &Locator) -> usize {
        self.ids.insert(id.clone(), self.memories.len());
        self.memories.push(Lineage { id, made: None, versions: Vec::new() });
        self.live.insert(at.clone(), self.memories.len() - 1);
        self.memories.len() - 1
    }

    /// Adds a version. However many edits a change makes to a memory, they are one version.
    fn version(
        &mut self,
        memory: usize,
        past: &Past,
        id: String,
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
            id,
            moment,
            at: at.clone(),
            operation,
            time: past.time,
            actor: Some(past.note.actor.clone()).filter(|_| past.note.verb != OUTSIDE),
            content,
        });
    }

    /// The ids of all memories that are, or last were, in one of these folders.
    pub(crate) fn kept(&self, roots: &[Locator]) -> Vec<Kept> {
        let of = |(memory, lineage): (usize, &Lineage)| {
            let (at, last) = (self.place(memory), lineage.versions.last());
            let within = at.or(last.map(|last| &last.at))?;
            roots.iter().any(|root| within.is_within(root)).then(|| Kept {
                id: lineage.id.clone(),
                at: at.cloned(),
                version: last.map(|last| last.id.clone()),
                created_at: lineage.made(),
            })
        };
        self.memories.iter().enumerate().filter_map(of).collect()
    }

    /// The hash and size of a version's content, if it was read before.
    pub(crate) fn digest(&self, version: &VersionOf) -> Option<Digest> {
        self.digests.borrow().get(&version.id).cloned()
    }

    pub(crate) fn keep_digest(&self, version: &VersionOf, digest: Digest) {
        self.digests.borrow_mut().insert(version.id.clone(), digest);
    }

    /// When and by whom a version was redacted: itself, or else another version of the same content.
    pub(crate) fn redaction(&self, version: &VersionOf) -> Option<&Redaction> {
        let key = redaction_of(&version.at, &version.moment);
        let own = self.redactions.iter().find(|redaction| redaction.key == key);
        let same =
            |redaction: &&Redaction| redaction.content.is_some() && redaction.content == version.content;
        own.or_else(|| self.redactions.iter().find(same))
    }

    /// The content of the version that a redaction names.
    fn content_of(&self, key: &str) -> Option<Version> {
        let mut versions = self.memories.iter().flat_map(|memory| &memory.versions);
        let version = versions.find(|version| redaction_of(&version.at, &version.moment) == key);
        version.and_then(|version| version.content.clone())
    }
}

/// The id of a memory that was there before the history began.
pub(crate) fn unrecorded(at: &Locator) -> String {
    format!("mem_p{}", digest_of(at))
}

/// The id of the version that an edit of a change made.
fn version_id(past: &Past, index: usize) -> String {
    format!("memver_{}x{index}", past.change)
}

/// A place as a part of an id.
fn digest_of(at: &Locator) -> String {
    Version::of(at.key().as_bytes()).as_str()[..24].to_owned()
}
