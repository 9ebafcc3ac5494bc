//! What happens where an index cannot be kept on disk: the same index is made in memory, so that searches
//! work even on a machine whose cache is full or may not be written to.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::turns::Turns;
use super::{Held, Index};
use crate::error::{Error, Kind, Result};

/// An index in memory, made when it is first needed.
#[derive(Default)]
pub(super) struct Spare {
    index: OnceLock<Box<Index>>,
    /// Why it was first needed, until someone has asked.
    trouble: OnceLock<Mutex<Option<Error>>>,
}

impl Index {
    /// Returns, once, why the index had to be made in memory.
    pub fn trouble(&self) -> Option<Error> {
        self.spare.trouble.get()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the same index in memory; `None` if this one is in memory already. It has no watchers: they
    /// report each change once, to the index on disk.
    pub(super) fn in_memory(&self) -> Option<&Index> {
        self.home.as_ref()?;
        Some(self.spare.index.get_or_init(|| {
            Box::new(Index {
                home: None,
                sources: self.sources.clone(),
                clock: Arc::clone(&self.clock),
                analysis: Arc::clone(&self.analysis),
                embedder: self.embedder.clone(),
                zone: self.zone.clone(),
                turns: Turns::new(1),
                held: Mutex::new(Held::default()),
                stays: self.stays,
                watches: Vec::new(),
                myself: Weak::new(),
                spare: Spare::default(),
            })
        }))
    }

    /// Remembers why the spare was used, the first time that it succeeded.
    pub(super) fn noting<T>(&self, trouble: Error, done: Result<T>) -> Result<T> {
        if done.is_ok() {
            self.spare.trouble.get_or_init(|| Mutex::new(Some(trouble)));
        }
        done
    }
}

/// Turns any error in opening an index into `Denied`, except `Corrupt` and `Busy`, which are handled
/// elsewhere.
pub(super) fn unusable(error: Error) -> Error {
    match error.kind() {
        Kind::Corrupt | Kind::Busy | Kind::Denied => error,
        _ => Error::new(Kind::Denied, error.to_string())
            .hint("the memories are safe: the index can be deleted at any time")
            .caused_by(error),
    }
}
