//! Pruning: the oldest segments of the journal are deleted, whole and one after the other from the
//! beginning, so that a crash leaves a shorter history and never one with a gap.
//!
//! Nothing that is left needs them: what a change replaced is kept within its own segment, and
//! recovery looks at the last segment alone.

use super::Core;
use super::journal::{FOLDER, segment_name, segments};
use super::temps::Temps;
use crate::backend::{Keep, Pruned, Pruning};
use crate::error::{Error, Result};

impl Core {
    /// Deletes the segments that hold nothing which is to be kept.
    pub(super) fn prune(&self, keep: Keep, how: Pruning) -> Result<Pruned> {
        let in_journal = |error| Error::from_io(error, "the journal");
        let locked = match how {
            Pruning::Planned => None,
            Pruning::Done => Some(self.lock_fresh_segment()?),
        };
        let current = locked.as_ref().map_or(u64::MAX, |(_, current)| *current);
        let mut all = segments(&*self.state).map_err(in_journal)?;
        all.retain(|segment| *segment < current);
        // A displaced file that an editor still has open is named after the change that displaced it.
        let names = self.tree.names("", usize::MAX).unwrap_or_default();
        let temps = Temps::read(&*self.state).map_err(in_journal)?;
        let numbers = names.iter().filter_map(|name| Some(temps.as_ref()?.numbers(name)?.0));
        let open = numbers.filter(|seq| *seq > 0).min().unwrap_or(u64::MAX);
        let (mut newer, mut pruned, mut old) = (0, Pruned::default(), Vec::new());
        for segment in all.into_iter().rev() {
            let headers = self.segment_headers(segment).map_err(in_journal)?;
            let is_open = headers.last().is_some_and(|last| last.seq >= open);
            let is_kept = is_open
                || match keep {
                    // An empty segment was just begun, or left by a process that died while beginning it.
                    Keep::Since(since) => {
                        headers.is_empty() || headers.iter().any(|header| header.time >= since)
                    }
                    Keep::Changes(count) => newer < count,
                };
            newer += headers.len();
            // Everything older than a removed segment is removed too.
            if !is_kept || !old.is_empty() {
                let size = self.state.stat(&segment_name(segment)).map_err(in_journal)?.size;
                pruned = Pruned { changes: pruned.changes + headers.len(), bytes: pruned.bytes + size };
                old.push(segment);
            }
        }
        if how == Pruning::Done {
            for segment in old.into_iter().rev() {
                self.state.remove_file(&segment_name(segment)).map_err(in_journal)?;
                self.state.sync_dir(FOLDER).map_err(in_journal)?;
            }
        }
        drop(locked);
        Ok(pruned)
    }
}
