//! Folds: the headers of many records in one object, so that a new machine learns a long log with
//! few requests. Derived: a missing or damaged fold only costs requests, and is made anew.

use super::ObjectStore;
use super::bucket::{Request, When};
use super::log::RUN_MAX;
use super::record::Header;
use crate::error::Result;

/// How many records a fold of the first level holds, and how many of those one of the second.
const FOLD: u64 = 64;

impl ObjectStore {
    fn fold_key(&self, level: u32, index: u64) -> String {
        self.own(&format!("fold/{level}/{index:012}"))
    }

    /// Learns the log from its beginning: large folds, small folds, then single records.
    pub(super) fn learn(&self) -> Result<()> {
        if let Some(bucket) = self.bucket.versioned() {
            self.take_in_fold(bucket.headers()?.as_bytes())?;
            self.state().headers.clear();
            return self.sync();
        }
        for level in [2, 1] {
            let span = FOLD.pow(level);
            let mut run = 1;
            'level: loop {
                let from = self.state().seq / span;
                let keys = (from..from + run).map(|index| Request::Get(self.fold_key(level, index)));
                for (index, answer) in (from..).zip(self.bucket.send(keys.collect())) {
                    let Some(fold) = answer?.object() else { break 'level };
                    // A damaged fold is as good as a missing one: the log has it all, and it is made anew.
                    if self.take_in_fold(&fold.bytes).is_err() || self.state().seq < (index + 1) * span {
                        let _ = self.bucket.ask(Request::Delete(self.fold_key(level, index)));
                        break 'level;
                    }
                    self.state().headers.clear();
                }
                run = (run * 4).min(RUN_MAX);
            }
        }
        self.sync()?;
        self.fold_if_due();
        Ok(())
    }

    fn take_in_fold(&self, bytes: &[u8]) -> Result<()> {
        let mut state = self.state();
        for line in String::from_utf8_lossy(bytes).lines() {
            let header = Header::parse(line)?;
            if header.seq == state.seq + 1 {
                state.take_in(&header)?;
            }
        }
        Ok(())
    }

    /// Folds the records since the last fold once there are enough. Failing is no harm.
    pub(super) fn fold_if_due(&self) {
        if self.bucket.versioned().is_some() {
            // It keeps the headers itself.
            self.state().headers.clear();
            return;
        }
        loop {
            let (index, text) = {
                let mut state = self.state();
                let first = state.seq - state.headers.len() as u64;
                if state.headers.len() < FOLD as usize || !first.is_multiple_of(FOLD) {
                    return;
                }
                let text: String = state.headers.drain(..FOLD as usize).map(|line| line + "\n").collect();
                (first / FOLD, text)
            };
            let written = self.put_fold(1, index, text.into_bytes());
            if written.is_ok() && (index + 1).is_multiple_of(FOLD) {
                let _ = self.fold_folds(index / FOLD);
            }
        }
    }

    fn fold_folds(&self, index: u64) -> Result<()> {
        let keys = (index * FOLD..(index + 1) * FOLD).map(|one| Request::Get(self.fold_key(1, one)));
        let mut text = Vec::new();
        for answer in self.bucket.send(keys.collect()) {
            // If one of them is missing, they cannot be folded.
            let Some(fold) = answer?.object() else { return Ok(()) };
            text.extend_from_slice(&fold.bytes);
        }
        self.put_fold(2, index, text)
    }

    fn put_fold(&self, level: u32, index: u64, bytes: Vec<u8>) -> Result<()> {
        let key = self.fold_key(level, index);
        self.bucket.ask(Request::Put { key, bytes, when: When::Absent, mark: None }).map(drop)
    }
}
