//! What is done where an index cannot be kept: the same one in memory. Whoever asks what was
//! remembered gets an answer, even on a machine whose cache may not be written to, or is full.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::turns::Turns;
use super::{Held, Index};
use crate::error::{Error, Kind, Result};

/// An index in memory, once it was needed.
#[derive(Default)]
pub(super) struct Spare {
    index: OnceLock<Box<Index>>,
    /// Why it was needed first, until someone has asked.
    trouble: OnceLock<Mutex<Option<Error>>>,
}

impl Index {
    /// Why the index was not kept and had to be made in memory, told once.
    pub fn trouble(&self) -> Option<Error> {
        self.spare.trouble.get()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The same index in memory; `None` if this one is there already. It has no watchers: what they
    /// notice is told once, to the one that is kept.
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

    /// Notes why the spare was used, the first time that it helped.
    pub(super) fn noting<T>(&self, trouble: Error, done: Result<T>) -> Result<T> {
        if done.is_ok() {
            self.spare.trouble.get_or_init(|| Mutex::new(Some(trouble)));
        }
        done
    }
}

/// The error for a place where an index cannot be opened, whatever the reason; damage and haste
/// are none, and are dealt with elsewhere.
pub(super) fn unusable(error: Error) -> Error {
    match error.kind() {
        Kind::Corrupt | Kind::Busy | Kind::Denied => error,
        _ => Error::new(Kind::Denied, error.to_string())
            .hint("the memories are safe: the index can be deleted at any time")
            .caused_by(error),
    }
}
