//! How a store is changed: shapes hand in plans, and changes come out. This is the only writer.

mod account;
mod past;

pub use account::Account;
pub use past::{
    BACKUPS, FOLDER_KEEPER, PRUNING, Point, REDACTION, Restored, UNDO_OF, UndoOutcome, UndoScope, difference,
    redaction_of, undone, undone_by,
};

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::backend::{Applied, Change, ChangeId, Edit, Note, Version};
use crate::clock::Clock;
use crate::error::{Error, Kind, Result, code};
use crate::store::Store;

/// What a shape wants to change, and the answer for the caller once that has happened.
///
/// Shapes are pure: they read through the store and return a plan. Nothing is written until
/// [`Memory::apply`] hands the edits to the backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<T> {
    /// The edits, each with the version that it expects.
    pub edits: Vec<Edit>,
    /// The answer once the edits are durable.
    pub outcome: T,
}

/// The result of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done<T> {
    /// The plan's answer.
    pub outcome: T,
    /// The change in the history; `None` if there was nothing to do.
    pub change: Option<ChangeId>,
    /// The version that each edit left, as in [`Applied::versions`](crate::backend::Applied::versions).
    pub versions: Vec<Option<Version>>,
    /// Whether the idempotency key had been applied before, so that nothing was done now.
    pub replayed: bool,
}

impl<T> Done<T> {
    fn of(applied: Applied, outcome: T) -> Self {
        let Applied { change, versions, replayed, .. } = applied;
        Done { outcome, change: Some(change), versions, replayed }
    }
}

/// A store, and the only way to change it.
#[derive(Clone)]
pub struct Memory {
    store: Store,
    clock: Arc<dyn Clock>,
    accounts: Vec<Arc<dyn Account>>,
}

impl Memory {
    /// A memory over a store.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Memory { store, clock, accounts: Vec::new() }
    }

    /// The store, for reading.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns the result of the change that already used the note's key, if there is one: the note is a
    /// repeat of it.
    ///
    /// # Errors
    /// `Invalid` (`KEY_USED`) if that was another change; else as
    /// [`Backend::applied`](crate::Backend::applied).
    pub fn repeated(&self, note: &Note) -> Result<Option<Applied>> {
        let Some(key) = &note.key else { return Ok(None) };
        let applied = self.store.backend().applied(key)?;
        applied.map(|applied| repeats(note, applied)).transpose()
    }

    /// Plans a change and applies it as a whole, planning again from fresh bytes if someone else was
    /// faster. If the note's key was applied before, the first answer is given again.
    ///
    /// # Errors
    /// Whatever the plan returns, at once and with nothing written; `Invalid` (`KEY_USED`) for a key
    /// that was used for another change; else as [`Store::commit`].
    pub fn apply<T>(&self, note: Note, mut plan: impl FnMut(&Store) -> Result<Plan<T>>) -> Result<Done<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        if let Some(applied) = self.repeated(&note)? {
            let outcome = recalled(&note, &applied)?;
            return Ok(Done::of(applied, outcome));
        }
        let mut first = Some(plan(&self.store)?);
        if let Some(Plan { edits, .. }) = &first
            && edits.is_empty()
            && note.key.is_none()
        {
            let outcome = first.take().expect("it was just seen").outcome;
            return Ok(Done { outcome, change: None, versions: Vec::new(), replayed: false });
        }
        let (applied, outcome) = self.store.commit(|| {
            let Plan { edits, outcome } = match first.take() {
                Some(plan) => plan,
                None => plan(&self.store)?,
            };
            let mut note = note.clone();
            if note.key.is_some() {
                note.answer = serde_json::to_string(&outcome).ok();
            }
            Ok((Change { edits, note }, outcome))
        })?;
        match applied.replayed {
            // Someone used the key after it was looked up, so the plan was not applied.
            true => {
                let applied = repeats(&note, applied)?;
                let outcome = recalled(&note, &applied)?;
                Ok(Done::of(applied, outcome))
            }
            false => Ok(Done::of(applied, outcome)),
        }
    }
}

/// Returns the first use of a note's key if it was the same change: the same verb and, as far as known,
/// the same request.
fn repeats(note: &Note, applied: Applied) -> Result<Applied> {
    let other = matches!((&note.request, &applied.request), (Some(now), Some(then)) if now != then);
    match applied.verb == note.verb && !other {
        true => Ok(applied),
        false => Err(used(note, &applied)),
    }
}

/// Returns the answer that the first use of a note's key was given.
fn recalled<T: DeserializeOwned>(note: &Note, applied: &Applied) -> Result<T> {
    let kept = applied.answer.as_deref().and_then(|answer| serde_json::from_str(answer).ok());
    kept.ok_or_else(|| used(note, applied))
}

/// Returns the error for a key that was used for another change.
fn used(note: &Note, applied: &Applied) -> Error {
    let key = note.key.as_deref().unwrap_or_default().escape_debug();
    let Applied { verb, change, .. } = applied;
    let what = if *verb == note.verb { "another request" } else { "something else" };
    Error::new(Kind::Invalid, format!("the key `{key}` was used for {what}: {verb}, change {change}"))
        .code(code::KEY_USED)
        .hint("nothing was done: use a new key for each change")
}
