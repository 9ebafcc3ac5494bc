//! How to tell who wrote an object where the bucket keeps no marks, but every version of every object.
//!
//! If an object has the content that the log gives its place, it is in step, whoever wrote it. Content that
//! its place never had is an edit by someone else. What remains is an *earlier* content, or no object: either
//! our placement is still to come, or someone has put the old content back or deleted the file. The versions
//! decide: if the right content was there after its record was written, what is there now came later, and is
//! meant.
//!
//! All of this holds only if the object was fetched *before* the log was read, so that whatever memgrove put
//! there is known. So before acting on a verdict that someone else wrote it, the check is repeated in that
//! order.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use super::bucket::{Answer, Object, Request, Versioned};
use super::leaf::Leaf;
use super::reading::{file_edit, mark_of, number_of, place_hash};
use super::record::Header;
use super::strays::{SAME_NAME, plain_names};
use super::{OWN, ObjectStore, Seen, State};
use crate::backend::{Change, Content, Depth, Edit, Expect, Finding, Level, Origin, Version, not_found};
use crate::backends::replacing::{by_replacement, touches};
use crate::error::{Kind, Result};
use crate::locator::Locator;

/// How many earlier contents of a place are compared: placements are late by a few changes at most.
const EARLIER_MAX: usize = 64;
/// How many files are taken in with one change.
const BATCH: usize = 32;

impl ObjectStore {
    /// Describes an object as it was seen; without marks in the bucket, the mark is derived from the content.
    pub(super) fn seen(&self, at: &Locator, object: &Object) -> Result<Seen> {
        let mark = match self.bucket.versioned() {
            Some(bucket) => self.told_mark(bucket, at, &object.tag)?,
            None => {
                if object.mark.as_deref().is_some_and(|mark| number_of(mark) > self.state().seq) {
                    // It may have been placed after the log was read.
                    self.sync()?;
                }
                self.recognised(at, object)
            }
        };
        Ok(Seen { tag: object.tag.clone(), mark, size: object.size, adopted: false })
    }

    fn told_mark(&self, bucket: &dyn Versioned, at: &Locator, tag: &str) -> Result<Option<String>> {
        let leaf = self.state().ledger.tree.get(at).and_then(|node| node.into_file());
        if let Some(leaf) = &leaf {
            match self.tag_of(bucket, leaf) {
                Ok(known) if known == tag => return Ok(Some(mark_of(at, leaf))),
                Ok(_) => {}
                // If the service no longer remembers the content, what lies there is believed.
                Err(error) if error.kind() == Kind::NotFound => return Ok(Some(mark_of(at, leaf))),
                Err(error) => return Err(error),
            }
        }
        let earlier = self.state().ledger.earlier(at, EARLIER_MAX);
        let stood = |leaf: &Arc<Leaf>| self.tag_of(bucket, leaf).is_ok_and(|known| known == tag);
        if !earlier.iter().any(stood) || self.came_later(bucket, at, leaf.as_ref(), tag)? {
            return Ok(None);
        }
        Ok(Some(format!("0.0.{}", place_hash(at))))
    }

    /// Whether what is at a place was put there after the content that the log gives it had been placed.
    fn came_later(
        &self,
        bucket: &dyn Versioned,
        at: &Locator,
        leaf: Option<&Arc<Leaf>>,
        tag: &str,
    ) -> Result<bool> {
        let Some((seq, by)) = self.state().ledger.last_touch(at) else { return Ok(true) };
        let stood = bucket.since(&self.key(at), &self.log_key(seq))?;
        if stood.last().and_then(Option::as_deref) != Some(tag) {
            // The content has changed since it was fetched.
            return Ok(false);
        }
        match leaf {
            Some(leaf) => Ok(self.was_placed(bucket, leaf, by, &stood)?),
            None => Ok(stood.iter().skip_while(|tag| tag.is_some()).any(Option::is_some)),
        }
    }

    /// Whether a file was placed after its record was written; what was adopted always was.
    fn was_placed(
        &self,
        bucket: &dyn Versioned,
        leaf: &Leaf,
        by: Origin,
        stood: &[Option<String>],
    ) -> Result<bool> {
        Ok(by == Origin::FileEdit || stood.contains(&Some(self.tag_of(bucket, leaf)?)))
    }

    /// Whether someone has deleted a file that has no plain object.
    pub(super) fn vanished(&self, at: &Locator, leaf: &Arc<Leaf>) -> Result<bool> {
        let Some(bucket) = self.bucket.versioned() else { return Ok(false) };
        let Some((seq, by)) = self.state().ledger.last_touch(at) else { return Ok(false) };
        if self.bucket.get(&self.key(at))?.is_some() {
            // The object appeared in the meantime.
            return Ok(false);
        }
        let stood = bucket.since(&self.key(at), &self.log_key(seq))?;
        Ok(stood.last() == Some(&None) && self.was_placed(bucket, leaf, by, &stood)?)
    }

    /// The tag of the object that holds a file.
    fn tag_of(&self, bucket: &dyn Versioned, leaf: &Leaf) -> Result<String> {
        if let Some(tag) = leaf.tag.get() {
            return Ok(tag.clone());
        }
        let tag = bucket.tag_of(&self.logged(leaf)?);
        Ok(leaf.tag.get_or_init(|| tag).clone())
    }

    /// Returns the change with appends as whole files, for a bucket that knows objects by the hash of all
    /// their bytes: then the log tells that hash, and no piece is ever fetched to compute it.
    pub(super) fn whole_files(&self, change: &Change) -> Result<Option<Change>> {
        if self.bucket.versioned().is_none() {
            return Ok(None);
        }
        by_replacement(change, |at| {
            let leaf = self.file_at(at)?.ok_or_else(|| not_found(at))?;
            let bytes = self.assemble(at, &leaf)?;
            Ok(Content { version: Version::of(&bytes), bytes })
        })
    }

    /// Notes the tags of what is written, where the bucket keeps no marks.
    pub(super) fn tag_steps(&self, header: &mut Header, edits: &[Edit], state: &State) {
        let Some(bucket) = self.bucket.versioned() else { return };
        for (index, (step, edit)) in header.edits.iter_mut().zip(edits).enumerate() {
            let is_new = |at| state.ledger.tree.get(at).is_none() && !touches(&edits[..index], at);
            step.tag = match edit {
                Edit::Write { bytes, .. } => Some(bucket.tag_of(bytes)),
                Edit::Append { at, bytes, .. } if is_new(at) => Some(bucket.tag_of(bytes)),
                _ => None,
            };
        }
    }

    /// Takes into the log that someone has deleted a file. The caller has the turn.
    pub(super) fn adopt_deletion(&self, at: &Locator) -> Result<()> {
        self.sync()?;
        let Some(leaf) = self.file_at(at)? else { return Ok(()) };
        if !self.vanished(at, &leaf)? {
            return Ok(());
        }
        self.state().placed.remove(at);
        let expect = Expect::At(self.version_of(at, &leaf)?);
        let edits = vec![Edit::Delete { at: at.clone(), expect }];
        match self.commit_in_turn(&Change { edits, note: file_edit() }, &[]) {
            Err(error) if !matches!(error.kind(), Kind::Conflict | Kind::NotFound) => Err(error),
            _ => Ok(()),
        }
    }

    /// Brings the log and the objects together: takes in what others have written, made or deleted, and
    /// places what is not in place yet. Returns what could not be.
    pub(super) fn reconcile(&self, bucket: &dyn Versioned) -> Result<Vec<Finding>> {
        // The log is read after the objects, so that it knows every object placed until then.
        let listed = self.bucket.list(&self.prefix)?;
        self.sync()?;
        let tag_of: HashMap<&str, Option<String>> = listed
            .iter()
            .filter_map(|listed| Some((listed.key.strip_prefix(&self.prefix)?, listed.tag.clone())))
            .collect();
        let names: Vec<&str> = tag_of.keys().copied().collect();
        let mut tags: HashMap<Locator, String> = HashMap::new();
        let mut findings = Vec::new();
        for name in plain_names(&names) {
            match Locator::new(name) {
                Ok(at) if at.key() == name => drop(tags.insert(at, tag_of[name].clone().unwrap_or_default())),
                _ => findings.push(unfit(name, "its path is not a name that every system can hold")),
            }
        }
        let files: Vec<(Locator, Arc<Leaf>)> = {
            let state = self.state();
            let all = state.ledger.list(&Locator::root(), Depth::All).into_iter();
            all.filter_map(|entry| Some((entry.at.clone(), entry.node.clone().into_file()?))).collect()
        };
        let mut behind = Vec::new();
        for (at, leaf) in files {
            match tags.get(&at) {
                Some(tag) if self.tag_of(bucket, &leaf).is_ok_and(|known| known == *tag) => {
                    tags.remove(&at);
                }
                Some(_) => {}
                // A store was begun in a folder around it, which owns it now.
                None if tag_of.contains_key(at.key()) => {}
                None if self.vanished(&at, &leaf)? => {
                    let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
                    self.adopt_deletion(&at)?;
                }
                None => behind.push(at),
            }
        }
        let mut unknown: Vec<Locator> = tags.into_keys().collect();
        unknown.sort();
        for batch in unknown.chunks(BATCH) {
            findings.extend(self.take_in_strangers(batch, &mut behind)?);
        }
        self.see(&behind);
        if let Err(error) = self.place(&behind) {
            findings.push(unfit(&self.bucket.name(), error.message()));
        }
        Ok(findings)
    }

    /// Returns the folder of a deeper store that a place belongs to; `None` for places that the log knows.
    pub(super) fn deeper_store(&self, at: &Locator) -> Result<Option<Locator>> {
        if self.bucket.versioned().is_none() || self.file_at(at).is_ok_and(|leaf| leaf.is_some()) {
            return Ok(None);
        }
        let mut folder = at.parent();
        while let Some(outer) = folder.filter(|folder| !folder.is_root()) {
            if !self.bucket.list(&format!("{}/{OWN}/", self.key(&outer)))?.is_empty() {
                return Ok(Some(outer));
            }
            folder = outer.parent();
        }
        Ok(None)
    }

    /// Takes in what others have written at these places; adds those that nobody else wrote to `behind`.
    fn take_in_strangers(&self, places: &[Locator], behind: &mut Vec<Locator>) -> Result<Vec<Finding>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = self.bucket.send(places.iter().map(|at| Request::Get(self.key(at))).collect());
        self.sync()?;
        let mut strangers = Vec::new();
        for (at, answer) in places.iter().zip(answers) {
            let Answer::Object(object) = answer? else { continue };
            match self.seen(at, &object)?.mark {
                Some(_) => behind.push(at.clone()),
                None => strangers.push((at.clone(), object)),
            }
        }
        let fresh = strangers.iter().all(|(at, _)| self.state().ledger.tree.get(at).is_none());
        if fresh && strangers.len() > 1 && self.adopt_together(&strangers).is_ok() {
            return Ok(Vec::new());
        }
        let mut findings = Vec::new();
        for (at, object) in strangers {
            match self.adopt(&at, &object) {
                Err(error) if error.kind() == Kind::Busy => return Err(error),
                Err(error) => findings.push(unfit(at.key(), error.message())),
                Ok(()) if self.file_at(&at).is_ok_and(|leaf| leaf.is_some()) => {}
                Ok(()) if self.bucket.get(&self.key(&at))?.is_none() => {}
                Ok(()) => findings.push(unfit(at.key(), SAME_NAME)),
            }
        }
        Ok(findings)
    }

    /// Takes in what others have put where nothing was, as one change. The caller has the turn.
    pub(super) fn adopt_together(&self, strangers: &[(Locator, Object)]) -> Result<()> {
        let write = |(at, object): &(Locator, Object)| Edit::Write {
            at: at.clone(),
            bytes: object.bytes.clone().into(),
            expect: Expect::Absent,
        };
        let change = Change { edits: strangers.iter().map(write).collect(), note: file_edit() };
        for (at, object) in strangers {
            let seen = Seen { tag: object.tag.clone(), mark: None, size: object.size, adopted: true };
            self.state().placed.insert(at.clone(), seen);
        }
        self.commit_in_turn(&change, &[]).map(drop)
    }
}

fn unfit(name: &str, why: &str) -> Finding {
    Finding {
        level: Level::Warning,
        at: name.to_owned(),
        what: format!("it is not as the history says, and cannot be brought together with it: {why}"),
        hint: "rename it in the memory store, or make room there".into(),
    }
}
