//! The plain objects: kept in step with the log by whoever comes by.

use std::sync::{Arc, PoisonError};

use super::bucket::{Answer, Request, When};
use super::leaf::Leaf;
use super::reading::{Found, compare, is_ours, mark_of, rewriting};
use super::{OWN, ObjectStore, Seen};
use crate::backend::{Change, Edit, Expect, Finding, Level};
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;

/// How often a placement is tried while others place too.
const ROUNDS_MAX: u32 = 4;
/// What is appended stays in the log alone until it has this many bytes, or in a large file half its size, or
/// this many pieces: so a file of N lines is not rewritten N times.
const BEHIND_BYTES_MAX: u64 = 32 * 1024;
const BEHIND_PIECES_MAX: u32 = 256;

impl ObjectStore {
    /// Brings the plain objects that a record touched in step. What fails here is done by the next
    /// reader: the change itself is in the log.
    ///
    /// # Errors
    /// Where the bucket may forget the log and will never take the objects.
    pub(super) fn place_record(&self, seq: u64) -> Result<()> {
        let touched = self.state().ledger.touched(seq);
        self.place(&touched).map_err(|error| {
            error
                .while_doing("the change is in the history, but not in its place")
                .hint("make room in the memory store, then run `memgrove doctor`")
        })
    }

    /// Brings the plain objects of some places in step with the log.
    ///
    /// # Errors
    /// As [`ObjectStore::place_record`].
    pub(super) fn place(&self, places: &[Locator]) -> Result<()> {
        let versioned = self.bucket.versioned().is_some();
        let mut never = None;
        let mut open: Vec<Locator> = places.to_vec();
        let unseen = {
            let state = self.state();
            // A verdict that somebody else wrote it is found anew where it is not told by a mark.
            let is_open = |at: &&Locator| match state.placed.get(*at) {
                None => state.ledger.tree.get(at).is_none(),
                Some(seen) => versioned && seen.mark.is_none() && !seen.adopted,
            };
            open.iter().filter(is_open).cloned().collect::<Vec<_>>()
        };
        self.see(&unseen);
        for round in 0..ROUNDS_MAX {
            if round > 0 {
                self.see(&open);
            }
            let mut tried = Vec::new();
            let mut requests = Vec::new();
            for at in open {
                if let Some((request, leaf)) = self.placement(&at) {
                    requests.push(request);
                    tried.push((at, leaf));
                }
            }
            let answers = self.bucket.send(requests);
            open = Vec::new();
            for ((at, leaf), answer) in tried.into_iter().zip(answers) {
                if let Err(error) = &answer
                    && versioned
                    && error.kind() != Kind::Busy
                {
                    let hint = error.hint_text().unwrap_or_default();
                    never = Some(Error::new(error.kind(), error.message()).hint(hint));
                }
                open.extend(self.unplaced(at, leaf.as_ref(), answer));
            }
            if open.is_empty() {
                break;
            }
        }
        never.map_or(Ok(()), Err)
    }

    /// Takes in the answer to a placement; gives back the place if it is still to be done.
    fn unplaced(&self, at: Locator, leaf: Option<&Arc<Leaf>>, answer: Result<Answer>) -> Option<Locator> {
        let mut state = self.state();
        match answer {
            Ok(Answer::Written(tag)) => {
                let leaf = leaf?;
                let _ = leaf.tag.set(tag.clone());
                let seen = Seen { tag, mark: Some(mark_of(&at, leaf)), size: leaf.len, adopted: false };
                state.placed.insert(at, seen);
                None
            }
            Ok(Answer::Refused) => Some(at),
            Ok(_) => {
                state.placed.remove(&at);
                None
            }
            Err(_) => None,
        }
    }

    /// Looks at plain objects anew.
    pub(super) fn see(&self, places: &[Locator]) {
        let requests: Vec<_> = places.iter().map(|at| Request::Head(self.key(at))).collect();
        let answers = self.bucket.send(requests);
        if self.bucket.versioned().is_some() && !places.is_empty() {
            // What was seen may be newer than what is known; if it cannot be known, nothing is seen.
            if self.sync().is_err() {
                return;
            }
        }
        for (at, answer) in places.iter().zip(answers) {
            match answer {
                Ok(Answer::Object(object)) => {
                    if let Ok(seen) = self.seen(at, &object) {
                        self.state().placed.insert(at.clone(), seen);
                    }
                }
                Ok(_) => drop(self.state().placed.remove(at)),
                Err(_) => {}
            }
        }
    }

    /// What is to be done about a plain object, if anything, and which state it will hold.
    fn placement(&self, at: &Locator) -> Option<(Request, Option<Arc<Leaf>>)> {
        let (leaf, seen) = {
            let state = self.state();
            (state.ledger.tree.get(at).and_then(|node| node.into_file()), state.placed.get(at).cloned())
        };
        if at.parts().any(|part| part == OWN) {
            // Taken in by an earlier version of this program; it is another store's.
            return None;
        }
        let key = self.key(at);
        let Some(leaf) = leaf else {
            // Gone by the log; the object goes if it is ours.
            return is_ours(at, seen?.mark.as_deref()).then_some((Request::Delete(key), None));
        };
        let marks = self.bucket.versioned().is_none();
        let when = match &seen {
            None => When::Absent,
            Some(seen) if leaf.tag.get() == Some(&seen.tag) => return None,
            Some(seen) => match compare(at, &leaf, seen) {
                Found::State(state) if marks && is_near(state, &leaf) => return None,
                Found::State(_) | Found::Other => When::Tagged(seen.tag.clone()),
                // Left as it is: whoever reads it next takes it in.
                Found::Foreign => return None,
            },
        };
        let bytes = self.whole(at, &leaf).ok()?;
        let mark = Some(mark_of(at, &leaf)).filter(|_| marks);
        Some((Request::Put { key, bytes, when, mark }, Some(leaf)))
    }

    fn whole(&self, at: &Locator, leaf: &Arc<Leaf>) -> Result<Vec<u8>> {
        if leaf.links == 1 { self.logged(leaf) } else { self.assemble(at, leaf) }
    }

    /// Brings every plain object in step that is missing, is an old one, or is behind the log however little;
    /// tells how many were, and which of them still are.
    fn flush(&self) -> (usize, Vec<Locator>) {
        let files: Vec<(Locator, Arc<Leaf>)> = {
            let state = self.state();
            let all = state.ledger.list(&Locator::root(), crate::backend::Depth::All).into_iter();
            all.filter_map(|entry| Some((entry.at.clone(), entry.node.clone().into_file()?))).collect()
        };
        let places: Vec<Locator> = files.iter().map(|(at, _)| at.clone()).collect();
        self.see(&places);
        let behind: Vec<Locator> = places.into_iter().filter(|at| self.is_behind(at)).collect();
        let _ = self.place(&behind);
        let (left, placed): (Vec<_>, Vec<_>) = behind.into_iter().partition(|at| self.is_behind(at));
        let mut done = placed.len();
        for (at, leaf) in files.into_iter().filter(|(_, leaf)| leaf.links > 1) {
            let Some(seen) = self.state().placed.get(&at).cloned() else { continue };
            if seen.size == leaf.len || !is_ours(&at, seen.mark.as_deref()) {
                continue;
            }
            done += usize::from(self.rewrite(&at, &leaf).is_ok());
        }
        (done, left)
    }

    /// Said of a file whose plain object is missing or an old one, and stays so.
    fn unplaceable(&self, at: &Locator) -> Finding {
        let leaf = self.state().ledger.tree.get(at).and_then(|node| node.into_file());
        let found = leaf.map(|leaf| self.whole(at, &leaf));
        let (why, hint) = match &found {
            Some(Err(error)) => (error.message(), error.hint_text().unwrap_or_default()),
            _ => ("the bucket does not take it", "try again"),
        };
        Finding {
            level: Level::Error,
            at: at.key().to_owned(),
            what: format!("its plain object is missing or an old one, and cannot be put in place: {why}"),
            hint: hint.to_owned(),
        }
    }

    /// Whether a file's plain object, as it was last seen, is missing or an old one.
    pub(super) fn is_behind(&self, at: &Locator) -> bool {
        let state = self.state();
        let Some(leaf) = state.ledger.tree.get(at).and_then(|node| node.into_file()) else { return false };
        state.placed.get(at).is_none_or(|seen| matches!(compare(at, &leaf, seen), Found::Other))
    }

    /// Writes a file anew as it is: then nothing of it is in the log alone, and the log says so.
    fn rewrite(&self, at: &Locator, leaf: &Arc<Leaf>) -> Result<()> {
        let bytes = self.assemble(at, leaf)?;
        let expect = Expect::At(self.version_of(at, leaf)?);
        let edits = vec![Edit::Write { at: at.clone(), bytes: bytes.into(), expect }];
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.commit_in_turn(&Change { edits, note: rewriting() }, &[]).map(drop)
    }

    pub(super) fn examine(&self) -> Result<Vec<Finding>> {
        if let Some(bucket) = self.bucket.versioned() {
            return self.reconcile(bucket);
        }
        let mut findings = self.adopt_strays()?;
        let (flushed, left) = self.flush();
        findings.extend(left.iter().map(|at| self.unplaceable(at)));
        if flushed > 0 {
            findings.push(Finding {
                level: Level::Info,
                at: self.bucket.name(),
                what: format!(
                    "the plain objects of {flushed} files were missing or outdated, and are now restored"
                ),
                hint: "nothing to do".into(),
            });
        }
        if let Err(error) = self.check_conditions() {
            findings.push(Finding {
                level: Level::Error,
                at: self.bucket.name(),
                what: error.message().to_owned(),
                hint: error.hint_text().unwrap_or_default().to_owned(),
            });
        }
        Ok(findings)
    }
}

/// The state of a file that its plain object holds, as far as the chain tells.
pub(super) fn last_placed(leaf: &Leaf) -> &Leaf {
    let states: Vec<&Leaf> = leaf.chain().collect();
    states
        .into_iter()
        .rev()
        .reduce(|placed, next| if is_near(placed, next) { placed } else { next })
        .unwrap_or(leaf)
}

/// Whether a placed state is near enough to the file: nothing, or little, was appended since.
fn is_near(placed: &Leaf, leaf: &Leaf) -> bool {
    let (bytes, pieces) = (leaf.len - placed.len, leaf.links - placed.links);
    bytes == 0 && pieces == 0 || bytes < BEHIND_BYTES_MAX.max(placed.len / 2) && pieces < BEHIND_PIECES_MAX
}
