//! The log: learning what others have done, and adding a change.

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use super::bucket::{Answer, Request, When};
use super::leaf::{Leaf, Place};
use super::record::{self, Header, Step, damaged};
use super::{ObjectStore, State};
pub(in crate::backends) use crate::backend::random_id;
use crate::backend::{Applied, Change, ChangeId, Edit, Expect, Note, Op, Origin, Version};
use crate::backends::ledger::{Draft, Entry, Node};
use crate::backends::replacing::{as_asked, rests_on_versions};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;

/// How many records are asked for at a time when there are many.
pub(super) const RUN_MAX: u64 = 64;
/// How often a change is tried anew because another machine was faster.
const ATTEMPTS_MAX: u32 = 400;
/// How many times a record is sent again when the answer was lost.
const DOUBTS_MAX: u32 = 5;
const BACKOFF_MAX_MS: u64 = 400;
/// How many bytes of recent records are kept in memory.
const BODIES_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What came of trying to add a record.
enum Added {
    /// It is in the log.
    Ours,
    /// Another machine was faster.
    Taken,
}

impl ObjectStore {
    pub(super) fn log_key(&self, seq: u64) -> String {
        self.own(&format!("log/{seq:016}"))
    }

    /// Takes in whatever the log has by now.
    pub(super) fn sync(&self) -> Result<()> {
        self.sync_beside(Vec::new()).map(drop)
    }

    /// Takes in whatever the log has by now, and sends other requests along with the first one.
    pub(super) fn sync_beside(&self, others: Vec<Request>) -> Result<Vec<Result<Answer>>> {
        let (mut run, mut others, mut answered) = (1, Some(others), Vec::new());
        loop {
            let from = self.state().seq;
            let mut requests: Vec<Request> =
                (1..=run).map(|ahead| Request::Get(self.log_key(from + ahead))).collect();
            requests.extend(others.take().unwrap_or_default());
            let mut answers = self.bucket.send(requests);
            let beside = answers.split_off(run as usize);
            if !beside.is_empty() {
                answered = beside;
            }
            let mut answers = (from + 1..).zip(answers);
            while let Some((number, answer)) = answers.next() {
                let Some(object) = answer?.object() else {
                    if answers.any(|(_, later)| later.is_ok_and(|later| later.object().is_some())) {
                        self.check_is_there(number)?;
                    }
                    return Ok(answered);
                };
                self.take_in_object(number, &object.bytes)?;
            }
            run = (run * 4).min(RUN_MAX);
        }
    }

    /// Checks on a record that was missing although a later one was there: it may just have arrived.
    fn check_is_there(&self, number: u64) -> Result<()> {
        match self.bucket.get(&self.log_key(number))? {
            Some(_) => Ok(()),
            None => Err(damaged(&format!("number {number} is missing, and later ones are there"))),
        }
    }

    fn take_in_object(&self, number: u64, bytes: &[u8]) -> Result<()> {
        let (header, body) = record::decode(number, bytes)?;
        let mut state = self.state();
        // Another thread may have taken it in meanwhile.
        if header.seq == state.seq + 1 {
            let whole: u64 = header.edits.iter().map(|step| step.len).sum();
            if whole == body.len() as u64 {
                state.keep_body(header.seq, body);
            }
            state.take_in(&header)?;
        }
        Ok(())
    }

    /// Applies a change on top of what is there, again and again until its record is in the log.
    pub(super) fn commit(&self, change: &Change) -> Result<Applied> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let named: Vec<Locator> = change.edits.iter().map(|edit| edit.at().clone()).collect();
        self.commit_in_turn(change, &named)
    }

    /// As [`ObjectStore::commit`], with the turn held; first looks at the plain objects of `looked_at`.
    pub(super) fn commit_in_turn(&self, change: &Change, looked_at: &[Locator]) -> Result<Applied> {
        let id = random_id();
        for attempt in 0..ATTEMPTS_MAX {
            for (at, found) in self.look_for_strangers(looked_at)? {
                self.take_in_stranger(&at, found.as_ref())?;
            }
            if let Some(key) = &change.note.key
                && let Some(applied) = self.state().ledger.replay(key)
            {
                return Ok(applied);
            }
            let whole = self.whole_files(change)?;
            let rehearsed = self.rehearse(whole.as_ref().unwrap_or(change), &id);
            let (mut header, body) = match rehearsed {
                // The file changed after it was read for an append that expects no version: try again.
                Err(error)
                    if error.kind() == Kind::Conflict && whole.is_some() && !rests_on_versions(change) =>
                {
                    continue;
                }
                rehearsed => rehearsed?,
            };
            match self.add(&header, &body)? {
                Added::Taken => self.step_back(attempt),
                Added::Ours => {
                    let versions = header.edits.iter_mut().map(|step| step.new.take()).collect();
                    self.fold_if_due();
                    self.place_record(header.seq)?;
                    let applied = Applied::now(ChangeId::new(header.seq.to_string()), versions, &change.note);
                    return Ok(as_asked(change, applied));
                }
            }
        }
        Err(Error::new(Kind::Busy, "other machines change this store faster than this one can follow")
            .hint("try again; give machines that do not share memories a prefix each"))
    }

    pub(super) fn commit_mkdir(&self, at: &Locator) -> Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_conditions()?;
        let id = random_id();
        for attempt in 0..ATTEMPTS_MAX {
            let header = {
                let state = self.state();
                let mut draft = Draft::new(&state.ledger.tree, state.time, &unasked);
                if !draft.mkdir(at)? {
                    return Ok(());
                }
                let time = self.clock.now().max(state.time);
                let (id, note, mkdir) = (id.clone(), Note::default(), Some(at.clone()));
                Header { seq: state.seq + 1, id, time, mkdir, note, edits: Vec::new() }
            };
            match self.add(&header, &[])? {
                Added::Ours => return Ok(()),
                Added::Taken => self.step_back(attempt),
            }
            self.sync()?;
        }
        Err(Error::new(Kind::Busy, format!("the folder `{at}` could not be made")).hint("try again"))
    }

    /// Checks a change against what is there, and returns the record that it would become.
    fn rehearse(&self, change: &Change, id: &str) -> Result<(Header, Vec<u8>)> {
        let mut fetched: HashMap<String, Vec<u8>> = HashMap::new();
        loop {
            let state = self.state();
            let time = self.clock.now().max(state.time);
            let (mut header, body) = Header::of(change, state.seq + 1, id.to_owned(), time);
            self.tag_steps(&mut header, &change.edits, &state);
            tag_adopted(&mut header, &state);
            let (seq, unknown) = (header.seq, RefCell::new(None));
            let versions = |_: &Locator, leaf: &Arc<Leaf>| {
                if let Some(version) = leaf.version.get() {
                    return Ok(version.clone());
                }
                // What this change itself appends is in its body; what comes before it is in the log.
                let base = leaf.chain().find(|link| link.seq != seq);
                let bytes = match base.map(|base| (base, fetched.get(&base.mark()))) {
                    None => Vec::new(),
                    Some((_, Some(bytes))) => bytes.clone(),
                    Some((base, None)) => {
                        *unknown.borrow_mut() = Some(base.itself(leaf));
                        return Err(Error::new(Kind::Busy, "the version is not known yet"));
                    }
                };
                let own: Vec<&Leaf> = leaf.chain().take_while(|link| link.seq == seq).collect();
                let pieces = own.iter().rev().map(|link| &body[link.range()]);
                let version = Version::of(&pieces.fold(bytes, |bytes, piece| [&bytes, piece].concat()));
                Ok(leaf.version.get_or_init(|| version).clone())
            };
            let mut draft = Draft::new(&state.ledger.tree, time, &versions);
            let tried = try_steps(&mut draft, &mut header, &change.edits);
            let changed = draft.finish();
            drop(state);
            match unknown.take() {
                // Fetched after the lock is released; then everything is tried again.
                Some(base) => drop(fetched.insert(base.mark(), self.logged(&base)?)),
                None => return tried.and_then(|()| self.check_fits(&changed)).map(|()| (header, body)),
            }
        }
    }

    /// Checks that the bucket can hold what a change would leave.
    fn check_fits(&self, changed: &BTreeMap<String, Option<Entry<Arc<Leaf>>>>) -> Result<()> {
        let Some(bucket) = self.bucket.versioned() else { return Ok(()) };
        for Entry { at, node } in changed.values().flatten() {
            let key = self.key(at);
            bucket.check_key(&key)?;
            if let Node::File(leaf) = node {
                bucket.check_size(&key, leaf.len)?;
            }
        }
        Ok(())
    }

    /// Puts a record into the log if its number is free. A lost answer is no failure: the id of the record
    /// that is there says whose it is.
    fn add(&self, header: &Header, body: &[u8]) -> Result<Added> {
        let key = self.log_key(header.seq);
        let bytes = record::encode(header, body);
        let mut doubt = None;
        for attempt in 0..DOUBTS_MAX {
            let put = Request::Put { key: key.clone(), bytes: bytes.clone(), when: When::Absent, mark: None };
            match self.bucket.ask(put) {
                Ok(Answer::Written(_)) => return self.added(header, body),
                Ok(_) => {}
                Err(error) if !matches!(error.kind(), Kind::Busy | Kind::NotFound | Kind::Io) => {
                    return Err(error);
                }
                Err(error) => doubt = Some(error),
            }
            match self.bucket.get(&key) {
                Ok(Some(there)) if record::decode(header.seq, &there.bytes)?.0.id == header.id => {
                    return self.added(header, body);
                }
                Ok(Some(_)) => return Ok(Added::Taken),
                // Not there: the request may be lost, or still on its way. The same record is sent again, and
                // whichever arrives first counts.
                Ok(None) => {}
                Err(error) => doubt = Some(error),
            }
            self.step_back(attempt);
        }
        Err(doubt.unwrap_or_else(|| Error::new(Kind::Busy, "the bucket did not take the change"))).map_err(
            |error| {
                error.while_doing("it is not known whether the change was made").hint(
                    "check before you retry, or retry with the same idempotency key, which applies it only once",
                )
            },
        )
    }

    fn added(&self, header: &Header, body: &[u8]) -> Result<Added> {
        let mut state = self.state();
        // A reader in this process may already have taken our record in from the log.
        if state.seq < header.seq {
            state.keep_body(header.seq, body);
            state.take_in(header)?;
        }
        Ok(Added::Ours)
    }

    /// Waits for a random time, whose limit grows with each attempt.
    fn step_back(&self, attempt: u32) {
        let most = (4_u64 << attempt.min(10)).min(BACKOFF_MAX_MS);
        thread::sleep(Duration::from_millis(RandomState::new().hash_one(attempt) % most));
    }
}

/// Notes the tags of adopted objects, so that they are recognised again although they lack our mark.
fn tag_adopted(header: &mut Header, state: &State) {
    if header.note.actor.origin != Origin::FileEdit {
        return;
    }
    for step in header.edits.iter_mut().filter(|step| step.op == Op::Write) {
        let seen = state.placed.get(&step.at).filter(|seen| seen.adopted && seen.size == step.len);
        step.tag = step.tag.take().or_else(|| seen.map(|seen| seen.tag.clone()));
    }
}

/// Stands in for a version lookup in drafts without expectations.
fn unasked(at: &Locator, _: &Arc<Leaf>) -> Result<Version> {
    Err(Error::new(Kind::Conflict, format!("nobody asked for the version of `{at}`")))
}

/// Tries every step of a change in a draft, and notes the versions before in the header.
fn try_steps(draft: &mut Draft<'_, Arc<Leaf>>, header: &mut Header, edits: &[Edit]) -> Result<()> {
    let (seq, time, id, mut offset) = (header.seq, header.time, header.short_id(), 0);
    for (index, (step, edit)) in header.edits.iter_mut().zip(edits).enumerate() {
        let place = Place { seq, index, id, offset, len: step.len };
        offset += step.len;
        let expect = match edit {
            Edit::Write { expect, .. }
            | Edit::Append { expect, .. }
            | Edit::Delete { expect, .. }
            | Edit::Rename { expect, .. } => expect,
        };
        let old = try_step(draft, step, place, time, expect)?;
        step.old = old.and_then(|leaf| leaf.version.get().cloned());
    }
    Ok(())
}

fn try_step(
    draft: &mut Draft<'_, Arc<Leaf>>,
    step: &Step,
    place: Place,
    time: Timestamp,
    expect: &Expect,
) -> Result<Option<Arc<Leaf>>> {
    let tagged = |leaf: Arc<Leaf>| {
        step.tag.iter().for_each(|tag| drop(leaf.tag.set(tag.clone())));
        leaf
    };
    match step.op {
        Op::Write => draft.write(&step.at, expect, |_| tagged(Leaf::written(place, time, step.new.clone()))),
        Op::Append => draft.write(&step.at, expect, |before| tagged(Leaf::appended(before, place, time))),
        Op::Delete => draft.delete(&step.at, expect),
        Op::Rename => {
            let to = step.to.as_ref().ok_or_else(|| damaged("a rename leads nowhere"))?;
            draft.rename(&step.at, to, expect)
        }
    }
}

impl State {
    /// Takes in the next record.
    pub(super) fn take_in(&mut self, header: &Header) -> Result<()> {
        let mut draft = Draft::new(&self.ledger.tree, header.time, &unasked);
        if let Some(folder) = &header.mkdir {
            draft.mkdir(folder).map_err(|error| damaged(error.message()))?;
            let changed = draft.finish();
            self.ledger.tree.swap(changed);
        } else {
            let mut offset = 0;
            for (index, step) in header.edits.iter().enumerate() {
                let place = Place { seq: header.seq, index, id: header.short_id(), offset, len: step.len };
                offset += step.len;
                try_step(&mut draft, step, place, header.time, &Expect::Any)
                    .map_err(|error| damaged(error.message()))?;
            }
            let changed = draft.finish();
            let versions = header.edits.iter().map(|step| step.new.clone()).collect();
            self.ledger.push(header.seq, header.past(), versions, changed);
        }
        self.seq = header.seq;
        self.time = self.time.max(header.time);
        self.headers.push(header.line());
        Ok(())
    }

    pub(super) fn keep_body(&mut self, seq: u64, body: &[u8]) {
        if self.bodies_len + body.len() > BODIES_BYTES_MAX {
            self.bodies.clear();
            self.bodies_len = 0;
        }
        if body.len() <= BODIES_BYTES_MAX / 4 && !body.is_empty() {
            self.bodies_len += body.len();
            self.bodies.insert(seq, body.into());
        }
    }
}
