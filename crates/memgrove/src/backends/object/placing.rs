//! The plain objects: kept in step with the log by whoever comes by.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use super::bucket::{Answer, Object, Request, When};
use super::leaf::Leaf;
use super::reading::{Found, compare, is_ours, mark_of, rewriting};
use super::record::damaged;
use super::{OWN, ObjectStore, Seen};
use crate::backend::{Change, Edit, Expect, Finding, Level};
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;

/// How often a placement is tried while others place too.
const ROUNDS_MAX: u32 = 4;
/// What is appended to a file stays in the log alone until it is so many bytes, or so large a part
/// of the file, or so many pieces: a log of N lines is then not rewritten N times.
const BEHIND_BYTES_MAX: u64 = 32 * 1024;
const BEHIND_PIECES_MAX: u32 = 256;
/// How many objects of other programs are taken in with one change.
const STRAYS_AT_ONCE: usize = 32;
/// Why an object cannot be taken in beside another.
pub(super) const SAME_NAME: &str = "another file has its name but for upper and lower case";

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
    /// tells how many were.
    fn flush(&self) -> usize {
        let files: Vec<(Locator, Arc<Leaf>)> = {
            let state = self.state();
            let all = state.ledger.list(&Locator::root(), crate::backend::Depth::All).into_iter();
            all.filter_map(|entry| Some((entry.at.clone(), entry.node.clone().into_file()?))).collect()
        };
        let places: Vec<Locator> = files.iter().map(|(at, _)| at.clone()).collect();
        self.see(&places);
        let behind: Vec<Locator> = places.into_iter().filter(|at| self.is_behind(at)).collect();
        let _ = self.place(&behind);
        let mut done = behind.iter().filter(|at| !self.is_behind(at)).count();
        for (at, leaf) in files.into_iter().filter(|(_, leaf)| leaf.links > 1) {
            let Some(seen) = self.state().placed.get(&at).cloned() else { continue };
            if seen.size == leaf.len || !is_ours(&at, seen.mark.as_deref()) {
                continue;
            }
            done += usize::from(self.rewrite(&at, &leaf).is_ok());
        }
        done
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

    /// Takes into the log every object that other programs have put into the bucket, as it is, and
    /// removes what a late placement has left of a deleted file. Tells what could not be taken in.
    /// A store that lies deeper in the bucket is left alone.
    ///
    /// # Errors
    /// `Corrupt` where the log has a gap; else as the bucket says.
    pub(super) fn adopt_strays(&self) -> Result<Vec<Finding>> {
        let listed = self.bucket.list(&self.prefix)?;
        // The log is read after the objects: what was placed meanwhile is then known to it.
        self.sync()?;
        let mut findings = Vec::new();
        let mut strays = Vec::new();
        let names: Vec<&str> =
            listed.iter().filter_map(|listed| listed.key.strip_prefix(&self.prefix)).collect();
        self.check_log_is_whole(names.iter().copied())?;
        for name in plain_names(&names) {
            match Locator::new(name) {
                Ok(at) if at.key() == name => {
                    if !self.file_at(&at).is_ok_and(|leaf| leaf.is_some()) {
                        strays.push(at);
                    }
                }
                _ => findings.push(unfit(name, "its key is no name that every system can hold")),
            }
        }
        for batch in strays.chunks(STRAYS_AT_ONCE) {
            findings.extend(self.adopt_some_strays(batch)?);
        }
        Ok(findings)
    }

    /// How many objects are where a store would begin, and belong to none.
    ///
    /// # Errors
    /// As [`ObjectStore::adopt_strays`].
    pub(super) fn count_strays(&self) -> Result<usize> {
        let listed = self.bucket.list(&self.prefix)?;
        let names: Vec<&str> =
            listed.iter().filter_map(|listed| listed.key.strip_prefix(&self.prefix)).collect();
        self.check_log_is_whole(names.iter().copied())?;
        Ok(plain_names(&names).len())
    }

    /// Checks that no record of the log is there that could not be taken in.
    fn check_log_is_whole<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<()> {
        let number = |name: &str| name.strip_prefix(OWN)?.strip_prefix("/log/")?.parse::<u64>().ok();
        let (last, known) = (names.filter_map(number).max().unwrap_or_default(), self.state().seq);
        match last > known {
            true => Err(damaged(&format!("number {} is missing, and {last} is there", known + 1))),
            false => Ok(()),
        }
    }

    fn adopt_some_strays(&self, places: &[Locator]) -> Result<Vec<Finding>> {
        let answers = self.bucket.send(places.iter().map(|at| Request::Get(self.key(at))).collect());
        let mut strangers = Vec::new();
        for (at, answer) in places.iter().zip(answers) {
            let Answer::Object(object) = answer? else { continue };
            match self.recognised(at, &object) {
                // The log says that it was here, and is no more.
                Some(_) => drop(self.bucket.ask(Request::Delete(self.key(at)))?),
                None => strangers.push((at.clone(), object)),
            }
        }
        if strangers.is_empty() {
            return Ok(Vec::new());
        }
        self.check_conditions()?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let taken_in = |at: &Locator| Finding {
            level: Level::Info,
            at: at.key().to_owned(),
            what: "it was put into the bucket by another program, and is now in the history".into(),
            hint: "nothing is to be done".into(),
        };
        if self.adopt_together(&strangers).is_ok() {
            return Ok(strangers.iter().map(|(at, _)| taken_in(at)).collect());
        }
        let one = |(at, object): &(Locator, Object)| match self.adopt(at, object) {
            Ok(()) if self.file_at(at).is_ok_and(|leaf| leaf.is_some()) => Ok(taken_in(at)),
            Ok(()) => Ok(unfit(at.key(), SAME_NAME)),
            Err(error) if matches!(error.kind(), Kind::Busy | Kind::Denied) => Err(error),
            Err(error) => Ok(unfit(at.key(), error.message())),
        };
        strangers.iter().map(one).collect()
    }

    pub(super) fn examine(&self) -> Result<Vec<Finding>> {
        if let Some(bucket) = self.bucket.versioned() {
            return self.reconcile(bucket);
        }
        let mut findings = self.adopt_strays()?;
        let flushed = self.flush();
        if flushed > 0 {
            findings.push(Finding {
                level: Level::Info,
                at: self.bucket.name(),
                what: format!(
                    "the plain objects of {flushed} files were missing, or behind the log, and are not now"
                ),
                hint: "nothing is to be done".into(),
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

/// The names beneath a store's prefix that are its files: neither the backend's own, nor of stores that lie
/// deeper.
pub(super) fn plain_names<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let deeper: BTreeSet<&str> = names.iter().copied().filter_map(store_of).collect();
    let is_plain = |name: &&str| {
        let is_own = name.split('/').next() == Some(OWN);
        let is_deeper = || deeper.iter().any(|store| name.starts_with(store));
        !is_own && !name.ends_with('/') && !is_deeper()
    };
    names.iter().copied().filter(is_plain).collect()
}

/// The store that an object deeper in the bucket belongs to, if it is one of its own.
fn store_of(name: &str) -> Option<&str> {
    let own = format!("/{OWN}/");
    name.find(&own).map(|end| &name[..=end])
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

fn unfit(name: &str, why: &str) -> Finding {
    Finding {
        level: Level::Warning,
        at: name.to_owned(),
        what: format!("another program put it into the bucket, and it cannot be taken in: {why}"),
        hint: "rename the object".into(),
    }
}
