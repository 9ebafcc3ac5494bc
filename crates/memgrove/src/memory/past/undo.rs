//! How changes are undone: which ones, and by which edits.

mod inverse;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

pub use self::inverse::FOLDER_KEEPER;
use self::inverse::Inverse;
use crate::backend::{ChangeId, HistoryQuery, Moment, Note, OUTSIDE, Op, Past, Version, not_in_history};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::memory::{Done, Memory, Plan};

/// The verb of a change that undoes others.
const VERB: &str = "undo";
/// How the reason of such a change begins. The ids of the undone changes follow, separated by a comma and
/// a space; a colon ends the list if more follows.
pub const UNDO_OF: &str = "undo of ";
/// How many recent changes are looked at before the whole history is.
const RECENT: usize = 64;

/// What to undo.
///
/// Changes that are already undone do not count, so undoing again steps further back. An undo is chosen
/// only by its id: undoing it brings back what it undid. Upkeep ([`Note::is_upkeep`]) is also chosen only
/// by its id, and what people wrote with an editor never is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoScope {
    /// The latest change, with all others of its job ([`Note::job`]).
    Last,
    /// The latest change of a session, with all others of its job.
    LastOf(String),
    /// This change.
    Change(ChangeId),
    /// The latest change that touched this place, or anything beneath it, with all others of its job.
    Memory(Locator),
    /// Every change of a session.
    Session(String),
    /// Every change of a client, by its name, or of an origin: `user`, `agent`, `tool`, `import`.
    Source(String),
}

/// What was undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoOutcome {
    /// The changes, newest first.
    pub changes: Vec<ChangeId>,
    /// The places that they had touched, by their present names.
    pub places: Vec<Locator>,
}

impl Memory {
    /// Returns the changes that an undo would take back, newest first.
    ///
    /// # Errors
    /// As [`Memory::undo`].
    pub fn undoable(&self, scope: &UndoScope) -> Result<Vec<Past>> {
        choose(self, scope)
    }

    /// Undoes changes, all of them in one new change, which can be undone in turn.
    ///
    /// # Errors
    /// `NotFound` if there is nothing to undo; `Invalid` for a change that is undone already;
    /// `Conflict` if what a change left behind was changed since; else as [`Memory::apply`].
    pub fn undo(&self, note: Note, scope: &UndoScope) -> Result<Done<UndoOutcome>> {
        // The reason lists the ids of the changes, so they are chosen before the plan. A repeated key gets
        // its first answer, whatever there is to undo by now.
        let note = Note { verb: VERB.into(), ..note };
        let repeat = self.repeated(&note)?.is_some();
        let mut chosen = if repeat { Vec::new() } else { choose(self, scope)? };
        chosen.iter_mut().try_for_each(|past| self.forget_holds(past))?;
        let refused = match self.take_back(note.clone(), &chosen) {
            Err(error) if error.code_name() == Some(code::VERSION_MISMATCH) => error,
            Err(error) if error.code_name() == Some(code::REDACTED) => {
                return Err(self.with_another(error, scope, &chosen));
            }
            done => return done,
        };
        // Upkeep may be in the way; it is undone as well, because it is done again when due.
        let with_upkeep = self.with_upkeep(&chosen)?;
        match with_upkeep.len() > chosen.len() {
            true => self.take_back(note, &with_upkeep).map_err(|_| refused),
            false => Err(refused),
        }
    }

    /// Adds a hint that names another change to undo instead of a redacted one. That change is not undone
    /// unasked, because it may be old.
    fn with_another(&self, error: Error, scope: &UndoScope, chosen: &[Past]) -> Error {
        let holds = |past: &Past| {
            past.edits.iter().flat_map(|edit| [&edit.old, &edit.new]).flatten().any(Version::is_redacted)
        };
        let another = match (scope, chosen) {
            (UndoScope::Last | UndoScope::LastOf(_) | UndoScope::Memory(_), [past]) => {
                let passed = |other: &Past| other.change == past.change || holds(other);
                choose_but(self, scope, passed).ok().and_then(|found| found.into_iter().next())
            }
            _ => None,
        };
        match another {
            Some(past) => error.hint(format!(
                "`memgrove undo {}` undoes the latest change that was not redacted ({})",
                past.change, past.note.verb
            )),
            None => error,
        }
    }

    /// Takes these changes (newest first) back.
    fn take_back(&self, note: Note, chosen: &[Past]) -> Result<Done<UndoOutcome>> {
        let names: Vec<&str> = chosen.iter().map(|past| past.change.as_str()).collect();
        let mut reason = format!("{UNDO_OF}{}", names.join(", "));
        if let Some(given) = &note.reason {
            reason = format!("{reason}: {given}");
        }
        let note = Note { reason: Some(reason), ..note };
        self.apply(note, |store| {
            let mut inverse = Inverse::new(store, chosen.iter().map(|past| past.change.clone()).collect());
            for past in chosen {
                inverse.take_back(past)?;
            }
            let (mut edits, places) = inverse.finish()?;
            edits.extend(self.account_edits(store, &edits)?);
            let changes = chosen.iter().map(|past| past.change.clone()).collect();
            Ok(Plan { edits, outcome: UndoOutcome { changes, places } })
        })
    }

    /// Returns these changes (newest first) with the later upkeep of the same places.
    fn with_upkeep(&self, chosen: &[Past]) -> Result<Vec<Past>> {
        let Some(oldest) = chosen.last() else { return Ok(Vec::new()) };
        let places: HashSet<&Locator> =
            chosen.iter().flat_map(|past| &past.edits).map(|edit| &edit.at).collect();
        let mut later = self.history(&HistoryQuery::default())?;
        later.truncate(later.iter().position(|past| past.change == oldest.change).map_or(0, |at| at + 1));
        let undone: HashSet<ChangeId> = later.iter().flat_map(|past| undone_by(&past.note)).collect();
        let in_the_way = |past: &Past| {
            past.note.is_upkeep()
                && !undone.contains(&past.change)
                && past.edits.iter().any(|edit| places.contains(&edit.at))
        };
        let meant = |past: Past| {
            let own = chosen.iter().find(|one| one.change == past.change).cloned();
            own.or_else(|| in_the_way(&past).then_some(past))
        };
        Ok(later.into_iter().filter_map(meant).collect())
    }

    /// Drops the files that a change only pinned to their version, by appending nothing: the change did
    /// nothing to them, so later changes to them are not in its way.
    fn forget_holds(&self, past: &mut Past) -> Result<()> {
        let backend = self.store().backend();
        if past.edits.len() < 2 || past.edits.iter().any(|edit| edit.op == Op::Rename) {
            return Ok(());
        }
        let (before, after) = (Moment::Before(past.change.clone()), Moment::After(past.change.clone()));
        let mut held = HashSet::new();
        for edit in past.edits.iter().filter(|edit| edit.op == Op::Append) {
            let alone = past.edits.iter().filter(|other| other.at == edit.at).count() == 1;
            if alone
                && let Some(bytes) = backend.read_past(&edit.at, &before)?
                && backend.read_past(&edit.at, &after)? == Some(bytes)
            {
                held.insert(edit.at.clone());
            }
        }
        // If nothing else is left, appending nothing was the change itself.
        if held.len() < past.edits.len() {
            past.edits.retain(|edit| !held.contains(&edit.at));
        }
        Ok(())
    }
}

/// Returns the changes that a scope means, newest first.
fn choose(memory: &Memory, scope: &UndoScope) -> Result<Vec<Past>> {
    choose_but(memory, scope, |_| false)
}

/// As [`choose`], without the changes that `passed` names.
fn choose_but(memory: &Memory, scope: &UndoScope, passed: impl Fn(&Past) -> bool) -> Result<Vec<Past>> {
    // What a change did to an account does not count: a change that did nothing else cannot be undone.
    let history = |at: Option<Locator>, limit| {
        let mut all = memory.store().backend().history(&HistoryQuery { at, before: None, limit })?;
        all.iter_mut().for_each(|past| past.edits.retain(|edit| !memory.is_account(&edit.at)));
        Ok::<_, Error>(all)
    };
    let touching: Option<HashSet<ChangeId>> = match scope {
        UndoScope::Memory(at) => {
            Some(history(Some(at.clone()), 0)?.into_iter().map(|past| past.change).collect())
        }
        _ => None,
    };
    let is_meant = |past: &Past| match scope {
        UndoScope::Last => true,
        UndoScope::Change(change) => past.change == *change,
        UndoScope::Memory(_) => touching.as_ref().is_some_and(|all| all.contains(&past.change)),
        UndoScope::LastOf(session) | UndoScope::Session(session) => {
            past.note.actor.session.as_ref() == Some(session)
        }
        UndoScope::Source(source) => {
            let client = past.note.actor.client.as_deref().unwrap_or_default();
            // A server names the token that was used, then the client.
            let (token, named) = client.split_once('/').unwrap_or((client, client));
            [client, token, named, past.note.actor.origin.name()].contains(&source.as_str())
        }
    };
    let meant = |past: &Past| !passed(past) && is_meant(past);
    let many = matches!(scope, UndoScope::Session(_) | UndoScope::Source(_));
    let by_name = matches!(scope, UndoScope::Change(_));
    if !many
        && let Some(last) = live(&history(None, RECENT)?, by_name, meant)?.into_iter().next()
        && (by_name || last.note.job.is_none())
    {
        return Ok(vec![last]);
    }
    let all = history(None, 0)?;
    if let UndoScope::Change(change) = scope
        && !all.iter().any(meant)
    {
        return Err(not_in_history(format!("a change `{change}`")));
    }
    let mut found = live(&all, by_name, meant)?;
    if !many {
        found.truncate(1);
        if let Some(job) = found.first().and_then(|last| last.note.job.clone()).filter(|_| !by_name) {
            found = live(&all, false, |past| past.note.job.as_ref() == Some(&job))?;
        }
    }
    match (found.is_empty(), scope) {
        (false, _) => Ok(found),
        (true, UndoScope::LastOf(_)) => {
            Err(Error::new(Kind::NotFound, "nothing of this session is left to undo")
                .hint("another change can be undone by its number; `memgrove history` lists them"))
        }
        (true, _) => Err(Error::new(Kind::NotFound, "there is nothing to undo")
            .hint("`memgrove history` lists the changes and who made them")),
    }
}

/// Returns the changes of a history (newest first) that are meant and not undone.
fn live(history: &[Past], by_name: bool, meant: impl Fn(&Past) -> bool) -> Result<Vec<Past>> {
    let undone = undone(history);
    let mut found = Vec::new();
    for past in history {
        let by_name = by_name && meant(past);
        if undone.contains(&past.change) {
            if by_name {
                return Err(undone_already(&past.change));
            }
            // An undo that is itself undone does not count, so what it undid counts again.
            continue;
        }
        if past.note.verb == VERB {
            if by_name {
                return Ok(vec![past.clone()]);
            }
            continue;
        }
        if past.note.is_upkeep() && !by_name {
            continue;
        }
        if past.note.verb == OUTSIDE || past.edits.is_empty() || !meant(past) {
            continue;
        }
        found.push(past.clone());
    }
    Ok(found)
}

/// Returns the changes of a part of the history (newest first) that still have an effect: neither those
/// that are undone, nor an undo if everything it undid is in the same part.
fn still_counting(history: &[Past]) -> impl Iterator<Item = &Past> {
    let undone = undone(history);
    let here: HashSet<&ChangeId> = history.iter().map(|past| &past.change).collect();
    history.iter().filter(move |past| {
        let taken_back = if past.note.verb == VERB { undone_by(&past.note) } else { Vec::new() };
        let cancels = !taken_back.is_empty() && taken_back.iter().all(|change| here.contains(change));
        !undone.contains(&past.change) && !cancels
    })
}

/// Returns the changes that are undone. `history` must begin with the newest change and have no gaps. An
/// undo that is itself undone does not count.
pub fn undone(history: &[Past]) -> HashSet<ChangeId> {
    let mut undone = HashSet::new();
    for past in history.iter().filter(|past| past.note.verb == VERB) {
        if !undone.contains(&past.change) {
            undone.extend(undone_by(&past.note));
        }
    }
    undone
}

/// Returns the changes that an undo took back, as its reason lists them.
pub fn undone_by(note: &Note) -> Vec<ChangeId> {
    let reason = note.reason.as_deref().filter(|_| note.verb == VERB);
    let list = reason.and_then(|reason| reason.strip_prefix(UNDO_OF));
    let list = list.map(|list| list.split(':').next().unwrap_or(list));
    list.map(|list| list.split(", ").map(ChangeId::new).collect()).unwrap_or_default()
}

fn undone_already(change: &ChangeId) -> Error {
    Error::new(Kind::Invalid, format!("change {change} is undone already"))
        .hint("to redo it, undo the change that undid it: `memgrove history` shows it")
}
