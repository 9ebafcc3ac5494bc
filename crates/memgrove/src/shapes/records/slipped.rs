//! Which lines other programs added to a file just while memgrove was replacing it.
//!
//! The storage keeps such a content in the history, but the file no longer has it. If it is a content that
//! memgrove knew with more lines at the end, these lines were appended, and belong to the end of the
//! present file.

use std::collections::HashSet;
use std::sync::Arc;

use super::archive::closed;
use super::table::{Table, folded};
use super::{Records, verb};
use crate::backend::{ChangeId, Edit, Expect, HistoryQuery, Moment, Note, OUTSIDE, Past, Version};
use crate::error::{Kind, Result};
use crate::locator::Locator;
use crate::memory::Plan;
use crate::store::Store;
use crate::text::jsonl;

/// How many of the newest changes are examined after a change.
const RECENT: usize = 64;
/// How many of the newest changes a check examines.
pub(super) const CHECKED: usize = 1_024;
/// How many lines another program may have added at once.
const LINES_MAX: usize = 256;
/// How many later contents, and how many earlier ones, are searched for a record that was there.
const LOOKED_AT_MAX: usize = 64;

/// Lines to put back at the end of a file.
pub(super) struct Slipped {
    pub(super) at: Locator,
    pub(super) table: Arc<Table>,
    pub(super) lines: Vec<String>,
}

impl Slipped {
    /// Returns the bytes to append to the present file.
    fn bytes(&self) -> Vec<u8> {
        closed(&self.table.bytes, self.lines.iter().map(String::as_str))
    }

    /// Adds the lines to a new content of the file.
    pub(super) fn add_to(&self, bytes: &mut Vec<u8>) {
        let more = closed(bytes, self.lines.iter().map(String::as_str));
        bytes.extend(more);
    }
}

impl Records {
    /// Whether an edit replaces a file of records.
    pub(super) fn rewrites(&self, edit: &Edit) -> bool {
        matches!(edit, Edit::Write { at, .. } if self.kind_held(at).is_some())
    }

    /// After a change that replaced files, puts back what others had added to them meanwhile. If that
    /// fails, the change stands, and a check finds the lines later.
    pub(super) fn take_in(&self) {
        // Other programs can write past memgrove only into a folder of this machine.
        if self.folder.is_none() {
            return;
        }
        let told = match self.taken_in() {
            Ok(0) => return,
            Ok(count) => {
                format!("another program wrote at the same time: {count} of its records were restored")
            }
            Err(error) => format!(
                "what another program wrote at the same time is only in the history ({error}): \
                 `memgrove doctor --fix` restores it"
            ),
        };
        self.state().warnings.push(told);
    }

    fn taken_in(&self) -> Result<usize> {
        // What slipped in is in the history right after the change that replaced it, or before the next.
        let news = |past: &Past| past.note.verb == OUTSIDE && !self.state().examined.contains(&past.change);
        if !self.newest(self.memory.store(), 2)?.iter().any(news) {
            return Ok(0);
        }
        let examined = std::mem::take(&mut self.state().examined);
        let note = Note { verb: verb::TAKE_IN.into(), actor: self.actor.clone(), ..Note::default() };
        let mut seen = examined.clone();
        let done = self.change(note, |store, _| {
            let history = self.newest(store, RECENT)?;
            let outside = history.iter().filter(|past| past.note.verb == OUTSIDE);
            seen = outside.map(|past| past.change.clone()).collect();
            let slipped = self.slipped(store, &history, &examined)?;
            let append = |one: &Slipped| Edit::Append {
                at: one.at.clone(),
                bytes: one.bytes().into(),
                expect: Expect::Any,
            };
            let outcome = slipped.iter().map(|one| one.lines.len()).sum::<usize>();
            Ok(Plan { edits: slipped.iter().map(append).collect(), outcome })
        })?;
        self.state().examined = seen;
        Ok(done.outcome)
    }

    pub(super) fn newest(&self, store: &Store, limit: usize) -> Result<Vec<Past>> {
        let query = HistoryQuery { at: Some(self.root.clone()), before: None, limit };
        match store.backend().history(&query) {
            Err(error) if error.kind() == Kind::Unsupported => Ok(Vec::new()),
            history => history,
        }
    }

    /// Returns the lines that others appended and no file has, from a part of the history (newest first),
    /// without the changes that were already examined.
    pub(super) fn slipped(
        &self,
        store: &Store,
        history: &[Past],
        examined: &HashSet<ChangeId>,
    ) -> Result<Vec<Slipped>> {
        if !history.iter().any(|past| past.note.verb == OUTSIDE) {
            return Ok(Vec::new());
        }
        let (files, mut found) = (self.files(store)?, Vec::new());
        for (at, table) in &files {
            let history: Vec<&Past> =
                history.iter().filter(|past| past.edits.iter().any(|edit| edit.at == *at)).collect();
            let edits = history.iter().flat_map(|past| &past.edits).filter(|edit| edit.at == *at);
            let known: HashSet<&Version> = edits.flat_map(|edit| [&edit.old, &edit.new]).flatten().collect();
            let mut lines: Vec<(Box<str>, String)> = Vec::new();
            for (place, past) in history.iter().enumerate().rev() {
                if past.note.verb != OUTSIDE || examined.contains(&past.change) {
                    continue;
                }
                let Some(content) = self.content_after(store, at, past)? else { continue };
                let added = self.parsed(table.kind, appended(&content, &known).to_vec());
                let mut new: Vec<(Box<str>, String)> = Vec::new();
                for row in &added.rows {
                    let id = folded(&row.id);
                    let there = files.iter().any(|(_, table)| table.find(&id).is_some())
                        || lines.iter().chain(&new).any(|(one, _)| *one == id);
                    if !there {
                        new.push((id, added.object(row).to_owned()));
                    }
                }
                self.without_removed(store, at, &mut new, history[..place].iter().rev())?;
                self.without_removed(store, at, &mut new, history[place + 1..].iter())?;
                lines.extend(new);
            }
            if !lines.is_empty() {
                let lines = lines.into_iter().map(|(_, line)| line).collect();
                found.push(Slipped { at: at.clone(), table: Arc::clone(table), lines });
            }
        }
        Ok(found)
    }

    /// Drops the records that were in the file after one of these changes: they were removed on purpose, after
    /// the content that slipped in or before. What a power cut leaves of a file may hold what was just removed.
    fn without_removed<'p>(
        &self,
        store: &Store,
        at: &Locator,
        new: &mut Vec<(Box<str>, String)>,
        changes: impl Iterator<Item = &'p &'p Past>,
    ) -> Result<()> {
        let Some(kind) = self.kind_held(at) else { return Ok(()) };
        for past in changes.filter(|past| past.note.verb != OUTSIDE).take(LOOKED_AT_MAX) {
            if new.is_empty() {
                break;
            }
            if let Some(content) = self.content_after(store, at, past)? {
                let table = self.parsed(kind, content);
                new.retain(|(id, _)| table.find(id).is_none());
            }
        }
        Ok(())
    }

    fn content_after(&self, store: &Store, at: &Locator, past: &Past) -> Result<Option<Vec<u8>>> {
        match store.backend().read_past(at, &Moment::After(past.change.clone())) {
            // It was pruned or redacted.
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            content => content,
        }
    }
}

/// Returns what follows the longest known beginning of a content; nothing if no beginning is known.
fn appended<'b>(content: &'b [u8], known: &HashSet<&Version>) -> &'b [u8] {
    let starts: Vec<usize> =
        jsonl::lines(content).map(|line| line.whole.start).filter(|at| *at > 0).collect();
    let is_known = |start: &&usize| known.contains(&Version::of(&content[..**start]));
    let start = starts.iter().rev().take(LINES_MAX).find(is_known);
    start.map_or(&[], |start| &content[*start..])
}
