//! Which edits undo changes: one change after the other, newest first.
//!
//! The edits are first tried on a layer over the store, so that each change meets the files as the undoing
//! of later changes leaves them.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::still_counting;
use crate::backend::{
    ChangeId, Content, Depth, Edit, Expect, HistoryQuery, Moment, OUTSIDE, Op, Past, PastEdit,
};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::memory::past::BACKUPS;
use crate::memory::past::layer::Layer;
use crate::store::Store;
use crate::text::jsonl;

/// A file that is written and deleted at once, because only a file can bring its folder back.
pub const FOLDER_KEEPER: &str = ".memgrove-undo";

/// Files of the store as they were first read: the edits expect these versions.
type Seen = Rc<RefCell<HashMap<Locator, Option<Content>>>>;

/// The edits so far, and what they lead to.
pub(super) struct Inverse<'a> {
    store: &'a Store,
    seen: Seen,
    layer: Layer<'a>,
    edits: Vec<Edit>,
    /// The index in `edits` of the last write of a file, if nothing was moved since.
    written: HashMap<Locator, usize>,
    /// Folders that the edits make (`true`) or remove, whatever the store has.
    folders: HashMap<Locator, bool>,
    places: BTreeSet<Locator>,
    chosen: HashSet<ChangeId>,
}

/// One edit of a past change, and what it found.
struct Step<'p> {
    edit: &'p PastEdit,
    /// Whether a file was there right before the edit.
    was_file: bool,
    /// The name of the place before the whole change, if it had one.
    before: Option<Locator>,
}

/// What to do with a file that has changed since.
enum Settled {
    /// Leave it as it is.
    AsIs,
    /// Write this: what others have made of it, without the change.
    Merged(Vec<u8>),
}

impl<'a> Inverse<'a> {
    pub(super) fn new(store: &'a Store, chosen: HashSet<ChangeId>) -> Self {
        let seen = Seen::default();
        let cache = Rc::clone(&seen);
        let layer = Layer::over(move |at| {
            let there = cached(store, &cache, at)?;
            Ok(there.map(|content| content.bytes))
        });
        Inverse {
            store,
            seen,
            layer,
            edits: Vec::new(),
            written: HashMap::new(),
            folders: HashMap::new(),
            places: BTreeSet::new(),
            chosen,
        }
    }

    /// Takes back one more change.
    pub(super) fn take_back(&mut self, past: &Past) -> Result<()> {
        let before = Moment::Before(past.change.clone());
        let steps = self.replay(past, &before)?;
        let settled = self.settle_touched_since(past, &steps, &before)?;
        for step in steps.iter().rev().filter(|step| !settled.contains_key(&step.edit.at)) {
            self.take_back_step(step, &before)?;
        }
        // Within the change an edit may have replaced what an earlier one wrote, so each file is set to
        // its content from before the whole change.
        let names = steps.iter().filter_map(|step| step.before.as_ref());
        for name in names.filter(|name| !settled.contains_key(*name)) {
            let wanted = self.past(name, &before)?;
            let there = self.layer.get(name)?;
            match wanted {
                Some(bytes) if there.as_ref() != Some(&bytes) => self.write(name, bytes)?,
                None if there.is_some() => self.delete(name)?,
                _ => {}
            }
            self.places.insert(name.clone());
        }
        for (name, settled) in settled {
            match settled {
                Settled::AsIs => {}
                // The change made the file, and nobody else has added anything to it.
                Settled::Merged(bytes) if bytes.is_empty() && self.past(&name, &before)?.is_none() => {
                    self.delete(&name)?;
                }
                Settled::Merged(bytes) => self.write(&name, bytes)?,
            }
        }
        Ok(())
    }

    /// Returns the edits, and the places that they concern.
    pub(super) fn finish(mut self) -> Result<(Vec<Edit>, Vec<Locator>)> {
        if self.edits.is_empty() {
            // The changes had no effect, but the history must show that they are undone, or the next undo
            // would choose them again.
            for at in self.places.clone() {
                if let Some(bytes) = self.layer.get(&at)? {
                    self.write(&at, bytes)?;
                    break;
                }
            }
        }
        Ok((self.edits, self.places.into_iter().collect()))
    }

    /// Replays a change over the files before it, to learn what each edit found.
    fn replay<'p>(&self, past: &'p Past, before: &Moment) -> Result<Vec<Step<'p>>> {
        let mut layer = Layer::over(|at| self.past(at, before));
        let mut steps = Vec::with_capacity(past.edits.len());
        for edit in &past.edits {
            let was_file = layer.get(&edit.at)?.is_some();
            steps.push(Step { edit, was_file, before: layer.base_name(&edit.at) });
            match (edit.op, &edit.to) {
                // Only whether a file exists matters here, not its content.
                (Op::Write | Op::Append, _) => layer.set(&edit.at, Some(Vec::new())),
                (Op::Delete, _) => layer.set(&edit.at, None),
                (Op::Rename, Some(to)) => layer.rename(&edit.at, to),
                (Op::Rename, None) => {}
            }
        }
        Ok(steps)
    }

    /// Decides about the files that have changed since the change. Fails, unless the later edits can be
    /// told apart from the change.
    fn settle_touched_since(
        &mut self,
        past: &Past,
        steps: &[Step<'_>],
        before: &Moment,
    ) -> Result<HashMap<Locator, Settled>> {
        let mut settled = HashMap::new();
        let after = Moment::After(past.change.clone());
        let mut names: BTreeSet<Locator> = steps.iter().filter_map(|step| step.before.clone()).collect();
        for (index, step) in steps.iter().enumerate() {
            let later = || past.edits[index + 1..].iter();
            let to = step.edit.to.iter().map(|to| name_after(to, later()));
            names.extend(to.chain([name_after(&step.edit.at, later())]));
        }
        for name in names {
            let (there, left) = (self.layer.get(&name)?, self.past(&name, &after)?);
            if there == left {
                continue;
            }
            // Backups come and go, and need not match.
            if name.parent().is_some_and(|folder| folder.name() == BACKUPS) {
                settled.insert(name, Settled::AsIs);
                continue;
            }
            let was = self.past(&name, before)?.unwrap_or_default();
            let merged = match (&left, &there) {
                (Some(left), Some(there)) => merged(&name, &past.edits, &was, left, there),
                _ => None,
            };
            match merged {
                Some(bytes) => settled.insert(name, Settled::Merged(bytes)),
                None => return Err(self.changed_since(&name, past)?),
            };
        }
        Ok(settled)
    }

    fn take_back_step(&mut self, step: &Step<'_>, before: &Moment) -> Result<()> {
        let at = &step.edit.at;
        match (step.edit.op, &step.edit.to) {
            (Op::Write | Op::Append, _) if step.was_file => Ok(()),
            (Op::Write | Op::Append, _) => self.delete(at),
            (Op::Delete, _) if step.was_file => {
                let bytes = step.before.as_ref().map(|name| self.past(name, before)).transpose()?.flatten();
                self.write(at, bytes.unwrap_or_default())
            }
            (Op::Delete, _) => self.make_folder(at),
            (Op::Rename, Some(to)) if step.was_file || self.is_folder(to)? => self.rename(to, at),
            // The change itself removed the folder later, which was empty.
            (Op::Rename, _) => self.make_folder(at),
        }
    }

    fn past(&self, at: &Locator, moment: &Moment) -> Result<Option<Vec<u8>>> {
        self.store.backend().read_past(at, moment)
    }

    fn write(&mut self, at: &Locator, bytes: Vec<u8>) -> Result<()> {
        self.clear_folder(at)?;
        self.places.insert(at.clone());
        let expect = self.expect(at)?;
        self.layer.set(at, Some(bytes.clone()));
        if let Some(Edit::Write { bytes: written, .. }) =
            self.written.get(at).and_then(|index| self.edits.get_mut(*index))
        {
            *written = bytes.into();
            return Ok(());
        }
        self.folders.extend(at.ancestors().map(|folder| (folder, true)));
        self.written.insert(at.clone(), self.edits.len());
        self.edits.push(Edit::Write { at: at.clone(), bytes: bytes.into(), expect });
        Ok(())
    }

    fn delete(&mut self, at: &Locator) -> Result<()> {
        self.places.insert(at.clone());
        let expect = self.expect(at)?;
        self.layer.set(at, None);
        self.written.remove(at);
        self.edits.push(Edit::Delete { at: at.clone(), expect });
        Ok(())
    }

    fn rename(&mut self, from: &Locator, to: &Locator) -> Result<()> {
        self.clear_folder(to)?;
        self.places.insert(to.clone());
        let expect = match self.layer.get(from)? {
            Some(_) => self.expect(from)?,
            None => Expect::Any,
        };
        self.layer.rename(from, to);
        self.written.clear();
        let moved = |folder: &Locator| folder.rebased(from, to);
        // What was known of the target has just been cleared away.
        let folders = std::mem::take(&mut self.folders).into_iter();
        self.folders = folders
            .filter(|(folder, _)| !folder.is_within(to))
            .map(|(folder, there)| (moved(&folder).unwrap_or(folder), there))
            .collect();
        self.folders.extend(to.ancestors().map(|folder| (folder, true)));
        self.edits.push(Edit::Rename { from: from.clone(), to: to.clone(), expect });
        Ok(())
    }

    /// Brings an empty folder back. It does so even if the folder exists, so that the undo is in the
    /// history.
    fn make_folder(&mut self, at: &Locator) -> Result<()> {
        let keeper = at.child(FOLDER_KEEPER)?;
        self.write(&keeper, Vec::new())?;
        self.delete(&keeper)?;
        self.places.remove(&keeper);
        self.places.insert(at.clone());
        Ok(())
    }

    /// Removes an empty folder that is in the way of a file.
    fn clear_folder(&mut self, at: &Locator) -> Result<()> {
        if !self.is_folder(at)? {
            return Ok(());
        }
        let (mut empty, mut full) = (BTreeSet::new(), self.layer.put_beneath(at).next().is_some());
        // What the store has there, and what was moved there from elsewhere in the store.
        for root in self.layer.moved_into(at).into_iter().chain([at.clone()]) {
            let Some(base) = self.layer.base_name(&root) else { continue };
            let itself = self.store.info_optional(&base)?;
            for info in self.store.backend().list(&base, Depth::All)?.into_iter().chain(itself) {
                let name = self.layer.layer_name(&info.locator);
                // Something else may have been moved onto it since.
                let still = name.is_within(at) && self.layer.base_name(&name).as_ref() == Some(&info.locator);
                match info.is_dir() {
                    _ if !still => {}
                    true => drop(empty.insert(name)),
                    false => full |= self.layer.get(&name)?.is_some(),
                }
            }
        }
        if full {
            return Err(Error::new(Kind::Conflict, format!("`{at}` is a folder now, with files in it"))
                .code(code::IS_DIRECTORY)
                .hint("move or undo what is in it first"));
        }
        empty.extend(self.folders.keys().filter(|folder| folder.is_within(at)).cloned());
        // In descending order, children come before their folders.
        for folder in empty.into_iter().rev() {
            if self.folders.get(&folder) != Some(&false) {
                self.folders.insert(folder.clone(), false);
                self.edits.push(Edit::Delete { at: folder, expect: Expect::Any });
            }
        }
        Ok(())
    }

    fn is_folder(&self, at: &Locator) -> Result<bool> {
        if let Some(there) = self.folders.get(at) {
            return Ok(*there);
        }
        let Some(base) = self.layer.base_name(at) else { return Ok(false) };
        Ok(self.store.info_optional(&base)?.is_some_and(|info| info.is_dir()))
    }

    /// Returns what the next edit of a place can expect: the version that was read, for the first edit.
    fn expect(&self, at: &Locator) -> Result<Expect> {
        match self.layer.base_name(at) {
            Some(base) if !self.layer.knows(at) => {
                let there = cached(self.store, &self.seen, &base)?;
                Ok(there.map_or(Expect::Absent, |content| Expect::At(content.version)))
            }
            _ => Ok(Expect::Any),
        }
    }

    /// Returns the error for a file that has changed since a change, naming what came later.
    fn changed_since(&self, at: &Locator, past: &Past) -> Result<Error> {
        let query = HistoryQuery { at: Some(at.clone()), ..HistoryQuery::default() };
        let history = self.store.backend().history(&query)?;
        let here = history.iter().position(|one| one.change == past.change).unwrap_or(history.len());
        let later = still_counting(&history[..here]).find(|later| !self.chosen.contains(&later.change));
        let (who, first) = match later {
            Some(later) if later.note.verb != OUTSIDE => (
                format!("change {} ({})", later.change, later.note.verb),
                format!("undo change {} first", later.change),
            ),
            _ => (
                "an edit outside memgrove".into(),
                format!("see it with `memgrove diff {at} {}`", past.change),
            ),
        };
        let message = format!("`{at}` is not as change {} left it: {who} came later", past.change);
        let older = history.get(here + 1).map_or(String::new(), |older| {
            format!(", or restore what it was before: `memgrove restore {at} --to {}`", older.change)
        });
        Ok(Error::new(Kind::Conflict, message).code(code::VERSION_MISMATCH).hint(format!("{first}{older}")))
    }
}

/// Returns the present content of a file without what a change did to it; `None` if the two cannot be told
/// apart.
fn merged(name: &Locator, edits: &[PastEdit], was: &[u8], left: &[u8], there: &[u8]) -> Option<Vec<u8>> {
    if edits.iter().any(|edit| edit.op == Op::Rename) {
        return None;
    }
    let only_grown = edits.iter().filter(|edit| edit.at == *name).all(|edit| edit.op == Op::Append);
    if only_grown && left.starts_with(was) && there.get(was.len()..left.len()) == Some(&left[was.len()..]) {
        let (mut bytes, rest) = (there[..was.len()].to_vec(), &there[left.len()..]);
        // The change ended an unfinished line; that newline stays if other lines follow.
        let closed = bytes.last().is_some_and(|last| *last != b'\n') && left[was.len()..].starts_with(b"\n");
        if closed && !rest.is_empty() {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(rest);
        return Some(bytes);
    }
    if name.name().ends_with(".jsonl") { jsonl::taken_back(was, left, there) } else { None }
}

/// Returns the name that something called `name` has after further edits.
fn name_after<'p>(name: &Locator, edits: impl Iterator<Item = &'p PastEdit>) -> Locator {
    edits.fold(name.clone(), |name, edit| {
        let moved = edit.to.as_ref().and_then(|to| name.rebased(&edit.at, to));
        moved.unwrap_or(name)
    })
}

/// Returns the file that the store has at a place, as it was first read.
fn cached(store: &Store, seen: &Seen, at: &Locator) -> Result<Option<Content>> {
    if let Some(known) = seen.borrow().get(at) {
        return Ok(known.clone());
    }
    let there = store.read_file_optional(at)?;
    seen.borrow_mut().insert(at.clone(), there.clone());
    Ok(there)
}
