//! A store with meaning: plans of the shapes in, changes out. The only writer.

mod account;
mod past;

pub use account::Account;
pub use past::{Point, REDACTION, Restored, UndoOutcome, UndoScope, redaction_of};

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::backend::{Change, ChangeId, Edit, Note, Version};
use crate::clock::Clock;
use crate::error::Result;
use crate::store::Store;

/// What a shape wants to happen, and what to tell the caller when it has.
///
/// Shapes are pure: they read through the store and return a plan. Nothing is written until
/// [`Memory::apply`] hands the edits to the backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<T> {
    /// The edits, each with the version it rests on.
    pub edits: Vec<Edit>,
    /// The answer once the edits are durable.
    pub outcome: T,
}

/// What came of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done<T> {
    /// The plan's answer.
    pub outcome: T,
    /// The change in the history; `None` if there was nothing to do.
    pub change: Option<ChangeId>,
    /// The version that each edit left behind, as [`Applied::versions`](crate::backend::Applied::versions).
    pub versions: Vec<Option<Version>>,
    /// Whether the idempotency key had been applied before, so that nothing was done now.
    pub replayed: bool,
}

/// A store, and the one door through which it changes.
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

    /// Plans a change and applies it whole, planning anew from fresh bytes when someone else was
    /// faster. A key in the note that was applied before gives the first answer again.
    ///
    /// # Errors
    /// Whatever the plan returns, at once and with nothing written; else as
    /// [`Store::commit`].
    pub fn apply<T>(&self, note: Note, mut plan: impl FnMut(&Store) -> Result<Plan<T>>) -> Result<Done<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        self.apply_again(note, |store, _| plan(store))
    }

    /// As [`Memory::apply`], with the edits that came too late handed back to the plan (none the
    /// first time): content that is large need not be held twice to be planned twice.
    ///
    /// # Errors
    /// As [`Memory::apply`].
    pub fn apply_again<T>(
        &self,
        note: Note,
        mut plan: impl FnMut(&Store, Vec<Edit>) -> Result<Plan<T>>,
    ) -> Result<Done<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        if let Some(key) = &note.key
            && let Some(applied) = self.store.backend().applied(key)?
            && let Some(outcome) = recalled(applied.answer.as_deref())
        {
            return Ok(Done {
                outcome,
                change: Some(applied.change),
                versions: applied.versions,
                replayed: true,
            });
        }
        let mut first = Some(plan(&self.store, Vec::new())?);
        if let Some(Plan { edits, .. }) = &first
            && edits.is_empty()
            && note.key.is_none()
        {
            let outcome = first.take().expect("it was just seen").outcome;
            return Ok(Done { outcome, change: None, versions: Vec::new(), replayed: false });
        }
        let (applied, outcome) = self.store.commit_again(|late| {
            let Plan { edits, outcome } = match first.take() {
                Some(plan) => plan,
                None => plan(&self.store, late.map(|change| change.edits).unwrap_or_default())?,
            };
            let mut note = note.clone();
            if note.key.is_some() {
                note.answer = serde_json::to_string(&outcome).ok();
            }
            Ok((Change { edits, note }, outcome))
        })?;
        let outcome = match applied.replayed {
            true => recalled(applied.answer.as_deref()).unwrap_or(outcome),
            false => outcome,
        };
        Ok(Done {
            outcome,
            change: Some(applied.change),
            versions: applied.versions,
            replayed: applied.replayed,
        })
    }
}

fn recalled<T: DeserializeOwned>(answer: Option<&str>) -> Option<T> {
    serde_json::from_str(answer?).ok()
}
