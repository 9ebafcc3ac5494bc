//! Accounts: files in which a shape summarizes others, such as the registry of a graph.
//!
//! Undoing a change must not undo what it did to an account, to which others have added since. That part
//! of the change is left alone, and the account is updated within the undo to what its files then say.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Memory;
use crate::backend::{Bytes, Edit};
use crate::error::Result;
use crate::locator::Locator;
use crate::store::Store;

/// Files that summarize others.
pub trait Account: Send + Sync {
    /// Whether a place is a part of the account.
    fn holds(&self, at: &Locator) -> bool;

    /// Returns the edits that update the account to what these places will hold; `None` means that nothing
    /// is there. The store does not hold it yet.
    ///
    /// # Errors
    /// If the account cannot be updated, or must not be.
    fn told(&self, store: &Store, now: &BTreeMap<Locator, Option<Bytes>>) -> Result<Vec<Edit>>;
}

impl Memory {
    /// Returns the memory with an account that is updated when changes are undone. It adds nothing if an
    /// account already holds the place.
    #[must_use]
    pub fn with_account(mut self, place: &Locator, account: Arc<dyn Account>) -> Self {
        if !self.is_account(place) {
            self.accounts.push(account);
        }
        self
    }

    /// Returns the memory with the accounts of another.
    #[must_use]
    pub fn with_accounts_of(mut self, other: &Memory) -> Self {
        self.accounts.clone_from(&other.accounts);
        self
    }

    /// Whether a place is a part of an account.
    pub(super) fn is_account(&self, at: &Locator) -> bool {
        self.accounts.iter().any(|account| account.holds(at))
    }

    /// Returns the edits that update all accounts to what other edits will leave.
    pub(super) fn account_edits(&self, store: &Store, edits: &[Edit]) -> Result<Vec<Edit>> {
        if self.accounts.is_empty() || edits.is_empty() {
            return Ok(Vec::new());
        }
        let now = left_by(store, edits)?;
        let told = self.accounts.iter().map(|account| account.told(store, &now));
        Ok(told.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }
}

/// Returns what files hold once the edits are made.
fn left_by(store: &Store, edits: &[Edit]) -> Result<BTreeMap<Locator, Option<Bytes>>> {
    let mut now: BTreeMap<Locator, Option<Bytes>> = BTreeMap::new();
    for edit in edits {
        match edit {
            Edit::Write { at, bytes, .. } => drop(now.insert(at.clone(), Some(bytes.clone()))),
            Edit::Delete { at, .. } => drop(now.insert(at.clone(), None)),
            Edit::Append { at, bytes, .. } => {
                let before = before(store, &now, at)?.unwrap_or_default();
                now.insert(at.clone(), Some([&before[..], &bytes[..]].concat().into()));
            }
            Edit::Rename { from, to, .. } => {
                let moved = before(store, &now, from)?;
                now.insert(from.clone(), None);
                now.insert(to.clone(), moved);
            }
        }
    }
    Ok(now)
}

fn before(store: &Store, now: &BTreeMap<Locator, Option<Bytes>>, at: &Locator) -> Result<Option<Bytes>> {
    if let Some(known) = now.get(at) {
        return Ok(known.clone());
    }
    Ok(store.read_file_optional(at)?.map(|content| content.bytes.into()))
}
