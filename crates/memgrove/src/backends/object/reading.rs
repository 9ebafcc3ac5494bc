//! What a file holds: its plain object, and what the log has added to it since.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use super::bucket::{Answer, Object, Request};
use super::leaf::Leaf;
use super::placing::last_placed;
use super::record::{self, damaged};
use super::{ObjectStore, Seen};
use crate::backend::{Actor, Change, Edit, Expect, Note, Origin, Version, not_in_history};
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;

/// What a plain object is, compared with what the log says of its place.
pub(super) enum Found<'a> {
    /// The file, or an earlier state of it that has only been appended to since.
    State(&'a Leaf),
    /// An object that we placed, older or newer than what we know.
    Other,
    /// Somebody else wrote it.
    Foreign,
}

/// The mark of an object that holds a state of a file.
pub(super) fn mark_of(at: &Locator, leaf: &Leaf) -> String {
    format!("{}.{}", leaf.mark(), place_hash(at))
}

/// Part of every mark, so that a copy made by other means, mark and all, does not pass for our own.
pub(super) fn place_hash(at: &Locator) -> String {
    Version::of(at.key().as_bytes()).as_str()[..8].to_owned()
}

/// Whether this mark says that we placed the object at this place.
pub(super) fn is_ours(at: &Locator, mark: Option<&str>) -> bool {
    mark.and_then(|mark| mark.rsplit_once('.')).is_some_and(|(_, hash)| hash == place_hash(at))
}

/// The state of a file that a mark names, if it is one of this chain at this place.
fn state_named<'a>(at: &Locator, leaf: &'a Leaf, mark: Option<&str>) -> Option<&'a Leaf> {
    let (name, _) = mark.filter(|mark| is_ours(at, Some(mark)))?.rsplit_once('.')?;
    leaf.chain().find(|state| state.mark() == name)
}

/// The number of the record that a mark names.
pub(super) fn number_of(mark: &str) -> u64 {
    mark.split('.').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Says what a plain object is.
pub(super) fn compare<'a>(at: &Locator, leaf: &'a Leaf, seen: &Seen) -> Found<'a> {
    if seen.adopted {
        let is_it = leaf.chain().find(|state| is_tagged(state, &seen.tag, seen.size));
        return is_it.map_or(Found::Other, Found::State);
    }
    if !is_ours(at, seen.mark.as_deref()) {
        return Found::Foreign;
    }
    match state_named(at, leaf, seen.mark.as_deref()) {
        Some(state) if state.len == seen.size => Found::State(state),
        Some(_) => Found::Foreign,
        None => Found::Other,
    }
}

/// The note of a change that someone made past memgrove.
pub(super) fn file_edit() -> Note {
    let actor = Actor { origin: Origin::FileEdit, ..Actor::default() };
    Note { verb: "file_edit".into(), actor, ..Note::default() }
}

/// The note of a change that writes a file anew as it is, so that nothing of it is in the log alone.
pub(super) fn rewriting() -> Note {
    Note { verb: "rewrite".into(), derived: true, ..Note::default() }
}

impl ObjectStore {
    /// Takes in the log, looks at the plain objects of these places, and takes in what other
    /// programs have made of them.
    pub(super) fn look(&self, places: &[Locator]) -> Result<()> {
        for (at, found) in self.look_for_strangers(places)? {
            if self.deeper_store(&at)?.is_some() {
                continue;
            }
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            self.take_in_stranger(&at, found.as_ref())?;
        }
        let behind: Vec<Locator> = places.iter().filter(|at| self.is_behind(at)).cloned().collect();
        if !behind.is_empty() {
            // If this fails, the next reader tries again.
            let _ = self.place(&behind);
        }
        Ok(())
    }

    /// Takes what someone else did at a place into the log. The caller has the turn.
    ///
    /// # Errors
    /// `Invalid` for a file of a store that lies deeper.
    pub(super) fn take_in_stranger(&self, at: &Locator, found: Option<&Object>) -> Result<()> {
        if let Some(store) = self.deeper_store(at)? {
            return Err(Error::new(Kind::Invalid, format!("`{at}` belongs to the store in `{store}`"))
                .hint("name that store to change it"));
        }
        match found {
            Some(object) => self.adopt(at, object),
            None => self.adopt_deletion(at),
        }
    }

    /// As [`ObjectStore::look`], but returns what someone else wrote instead of taking it in; `None` stands
    /// for a deletion.
    pub(super) fn look_for_strangers(&self, places: &[Locator]) -> Result<Vec<(Locator, Option<Object>)>> {
        let files: Vec<Locator> = {
            let state = self.state();
            let versioned = self.bucket.versioned().is_some();
            let may_be = |at: &&Locator| match state.ledger.tree.get(at) {
                Some(node) => node.into_file().is_some(),
                None => versioned && self.check_place(at).is_ok(),
            };
            places.iter().filter(may_be).cloned().collect()
        };
        let answers = self.sync_beside(files.iter().map(|at| Request::Head(self.key(at))).collect())?;
        let mut strangers = Vec::new();
        for (at, answer) in files.into_iter().zip(answers) {
            let Answer::Object(head) = answer? else {
                self.state().placed.remove(&at);
                if let Ok(Some(leaf)) = self.file_at(&at)
                    && self.vanished(&at, &leaf)?
                {
                    strangers.push((at, None));
                }
                continue;
            };
            if self.is_foreign(&at, &head)?
                && let Some(object) = self.bucket.get(&self.key(&at))?
                && self.is_foreign_by_now(&at, &object)?
            {
                strangers.push((at, Some(object)));
            }
        }
        Ok(strangers)
    }

    /// Remembers an object as it was seen, and tells whether someone else wrote it.
    fn is_foreign(&self, at: &Locator, object: &Object) -> Result<bool> {
        let seen = self.seen(at, object)?;
        let mut state = self.state();
        state.placed.insert(at.clone(), seen.clone());
        Ok(match state.ledger.tree.get(at) {
            None => self.bucket.versioned().is_some() && seen.mark.is_none(),
            Some(node) => {
                node.into_file().is_some_and(|leaf| matches!(compare(at, &leaf, &seen), Found::Foreign))
            }
        })
    }

    /// As [`ObjectStore::is_foreign`], but reads the log again first: it tells what was placed meanwhile.
    fn is_foreign_by_now(&self, at: &Locator, object: &Object) -> Result<bool> {
        if self.bucket.versioned().is_some() {
            self.sync()?;
        }
        self.is_foreign(at, object)
    }

    /// Takes what someone else wrote into the log. The caller has the turn.
    pub(super) fn adopt(&self, at: &Locator, object: &Object) -> Result<()> {
        if self.bucket.versioned().is_none() {
            return self.adopt_as_it_is(at, object);
        }
        let Some(object) = self.bucket.get(&self.key(at))? else { return Ok(()) };
        self.sync()?;
        match self.seen(at, &object)?.mark {
            Some(_) => Ok(()),
            None => self.adopt_as_it_is(at, &object),
        }
    }

    /// Returns the mark of an object if the log says that it was placed there. A mark that came along with a
    /// copy from elsewhere names no record of this log, or none of this place.
    pub(super) fn recognised(&self, at: &Locator, object: &Object) -> Option<String> {
        let state = self.state();
        let leaf = state.ledger.tree.get(at).and_then(|node| node.into_file());
        if let Some(leaf) = &leaf {
            let placed = state_named(at, leaf, object.mark.as_deref());
            let taken_in = |state: &&Leaf| is_tagged(state, &object.tag, object.size);
            if let Some(state) = placed.or_else(|| since_placed(leaf).find(taken_in)) {
                return Some(mark_of(at, state));
            }
        }
        let mark = object.mark.as_deref().filter(|mark| is_ours(at, Some(mark)))?;
        let earlier = state.ledger.earlier(at, usize::MAX);
        earlier.iter().any(|state| mark_of(at, state) == mark).then(|| mark.to_owned())
    }

    fn adopt_as_it_is(&self, at: &Locator, object: &Object) -> Result<()> {
        let leaf = self.file_at(at)?;
        let bytes = self.with_pending(leaf.as_ref(), &object.bytes)?;
        let expect = match &leaf {
            None => Expect::Absent,
            Some(leaf) => Expect::At(self.version_of(at, leaf)?),
        };
        let (tag, mark) = (object.tag.clone(), object.mark.clone());
        self.state().placed.insert(at.clone(), Seen { tag, mark, size: object.size, adopted: true });
        // If the file was put back as it had been, nothing has changed, but the log learns what is there.
        let note = if expect == Expect::At(Version::of(&bytes)) { rewriting() } else { file_edit() };
        let edit = Edit::Write { at: at.clone(), bytes: bytes.into(), expect };
        match self.commit_in_turn(&Change { edits: vec![edit], note }, &[]) {
            Ok(_) => Ok(()),
            // Another machine took it in first, or changed the file since: the next look decides.
            Err(error) if matches!(error.kind(), Kind::Conflict | Kind::Exists) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns what someone else wrote, plus what was appended to the file since its plain object was last
    /// rewritten, which they cannot have seen.
    fn with_pending(&self, leaf: Option<&Arc<Leaf>>, written: &[u8]) -> Result<Vec<u8>> {
        let Some(leaf) = leaf.filter(|leaf| leaf.links > 1 && self.bucket.versioned().is_none()) else {
            return Ok(written.to_vec());
        };
        let whole = self.logged(leaf)?;
        let is_it = |state: &&Leaf| state.len == written.len() as u64 && whole.starts_with(written);
        let seen = since_placed(leaf).find(is_it).unwrap_or_else(|| last_placed(leaf));
        Ok([written, &whole[seen.len as usize..]].concat())
    }

    /// The bytes at a place now; `None` where nothing is.
    pub(super) fn read_current(&self, at: &Locator) -> Result<Option<Vec<u8>>> {
        if at.is_root() {
            return Err(crate::backend::is_folder(at));
        }
        let answer = self.sync_beside(vec![Request::Get(self.key(at))])?.pop();
        let object = answer.transpose()?.and_then(Answer::object);
        let Some(leaf) = self.file_at(at)? else {
            // Only what is in the log is there; strays are taken in by `memgrove doctor`.
            return if self.bucket.versioned().is_some() { self.read_stray(at, object) } else { Ok(None) };
        };
        if object.is_none() && self.vanished(at, &leaf)? {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            self.adopt_deletion(at)?;
            return Ok(None);
        }
        self.bytes_of(at, &leaf, object).map(Some)
    }

    /// The bytes of an object that the log does not know, if somebody else wrote it.
    fn read_stray(&self, at: &Locator, object: Option<Object>) -> Result<Option<Vec<u8>>> {
        let Some(object) = object.filter(|_| self.check_place(at).is_ok()) else { return Ok(None) };
        if !self.is_foreign(at, &object)? || self.deeper_store(at)?.is_some() {
            return Ok(None);
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.adopt(at, &object)?;
        Ok(Some(object.bytes))
    }

    /// Returns the bytes of a file whose plain object is this.
    fn bytes_of(&self, at: &Locator, leaf: &Arc<Leaf>, object: Option<Object>) -> Result<Vec<u8>> {
        let Some(object) = object else {
            let bytes = self.logged(leaf)?;
            let _ = self.place(std::slice::from_ref(at));
            return Ok(bytes);
        };
        let (mut leaf, mut seen) = (Arc::clone(leaf), self.seen(at, &object)?);
        if self.bucket.versioned().is_some() && matches!(compare(at, &leaf, &seen), Found::Foreign) {
            // It may have been placed after the log was read.
            self.sync()?;
            (leaf, seen) = (self.file_at(at)?.unwrap_or(leaf), self.seen(at, &object)?);
        }
        let leaf = &leaf;
        self.state().placed.insert(at.clone(), seen.clone());
        match compare(at, leaf, &seen) {
            Found::State(state) if holds(state, &object.bytes) => self.grown(leaf, state, object.bytes),
            Found::Other => {
                let bytes = self.logged(leaf)?;
                let _ = self.place(std::slice::from_ref(at));
                Ok(bytes)
            }
            Found::State(_) | Found::Foreign => {
                let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
                let adopted = self.adopt(at, &object);
                drop(turn);
                match adopted {
                    Ok(()) => self.file_at(at)?.map_or(Ok(object.bytes), |leaf| self.logged(&leaf)),
                    // Whoever may only read sees it all the same.
                    Err(error) if error.kind() == Kind::Denied => {
                        self.with_pending(Some(leaf), &object.bytes)
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Returns the bytes of a file, from its plain object where possible.
    pub(super) fn assemble(&self, at: &Locator, leaf: &Arc<Leaf>) -> Result<Vec<u8>> {
        let object = self.bucket.get(&self.key(at))?;
        if let Some(object) = object
            && let Found::State(state) = compare(at, leaf, &self.seen(at, &object)?)
            && holds(state, &object.bytes)
        {
            return self.grown(leaf, state, object.bytes);
        }
        self.logged(leaf)
    }

    pub(super) fn version_of(&self, at: &Locator, leaf: &Arc<Leaf>) -> Result<Version> {
        if let Some(version) = leaf.version.get() {
            return Ok(version.clone());
        }
        let version = Version::of(&self.assemble(at, leaf)?);
        Ok(leaf.version.get_or_init(|| version).clone())
    }

    /// The bytes of an earlier state with all that was appended since.
    fn grown(&self, leaf: &Leaf, from: &Leaf, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
        bytes.extend(self.pieces(leaf.chain().take_while(|state| state.links > from.links))?);
        let _ = leaf.version.set(Version::of(&bytes));
        Ok(bytes)
    }

    /// The bytes of a file from the log alone.
    pub(super) fn logged(&self, leaf: &Leaf) -> Result<Vec<u8>> {
        self.pieces(leaf.chain())
    }

    /// The bytes of some links of a chain, which come newest first.
    fn pieces<'a>(&self, links: impl Iterator<Item = &'a Leaf>) -> Result<Vec<u8>> {
        let links: Vec<&Leaf> = links.collect();
        let mut bodies: HashMap<u64, Arc<[u8]>> = HashMap::new();
        let mut missing = Vec::new();
        {
            let state = self.state();
            for link in links.iter().filter(|link| link.added > 0) {
                match state.bodies.get(&link.seq) {
                    Some(body) => drop(bodies.insert(link.seq, Arc::clone(body))),
                    None => missing.push(link.seq),
                }
            }
        }
        missing.sort_unstable();
        missing.dedup();
        let answers = self.bucket.send(missing.iter().map(|seq| Request::Get(self.log_key(*seq))).collect());
        for (seq, answer) in missing.into_iter().zip(answers) {
            let object = answer?.object().ok_or_else(|| self.lost(seq))?;
            let (header, body) = record::decode(seq, &object.bytes)?;
            if header.edits.iter().map(|step| step.len).sum::<u64>() != body.len() as u64 {
                return Err(self.lost(seq));
            }
            let body: Arc<[u8]> = body.into();
            self.state().keep_body(seq, &body);
            bodies.insert(seq, body);
        }
        let mut bytes = Vec::new();
        for link in links.iter().rev().filter(|link| link.added > 0) {
            let piece = bodies.get(&link.seq).and_then(|body| body.get(link.range()));
            bytes.extend_from_slice(piece.ok_or_else(|| damaged(&format!("number {} is short", link.seq)))?);
        }
        Ok(bytes)
    }
}

impl ObjectStore {
    /// The error for a record whose bytes cannot be found.
    fn lost(&self, seq: u64) -> Error {
        match self.bucket.versioned() {
            Some(_) => not_in_history(format!("what the change `{seq}` held")),
            None => damaged(&format!("number {seq} is missing")),
        }
    }
}

/// The states of a file since its plain object was last rewritten, newest first.
fn since_placed(leaf: &Leaf) -> impl Iterator<Item = &Leaf> {
    let first = last_placed(leaf).links;
    leaf.chain().take_while(move |state| state.links >= first)
}

/// Whether an object with this tag and size holds this state.
fn is_tagged(state: &Leaf, tag: &str, size: u64) -> bool {
    state.tag.get().is_some_and(|known| known == tag) && state.len == size
}

/// Whether these are the bytes of a state, as far as its version is known.
fn holds(state: &Leaf, bytes: &[u8]) -> bool {
    state.version.get().is_none_or(|version| *version == Version::of(bytes))
}
