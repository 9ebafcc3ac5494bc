//! Whether the watchers are right: from time to time a listing checks what they report, in a thread of its
//! own that nobody waits for and that yields to searches.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use super::Index;
use super::listing::Listed;
use super::sync::{Seen, is_settled};
use super::watch::Look;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::locator::Locator;

/// While searches run, the patrol rests after each step for this many times as long as the step took.
const RESTS: u32 = 9;
const REST_MAX: Duration = Duration::from_millis(100);
/// How many files are read in one step.
const STEP_FILES: usize = 32;

impl Index {
    /// Starts a patrol if one is due. If it fails, the first search that no longer trusts the watchers
    /// lists all files itself.
    pub(super) fn list_again(&self) {
        let due = self.held().files.look.taken_if_due(self.clock.now().as_millisecond());
        if let Some((due, index)) = due.zip(self.myself.upgrade()) {
            let patrol = thread::Builder::new().name("patrol".into());
            drop(patrol.spawn(move || index.patrol(due)));
        }
    }

    /// Lists all files, and notes which are in doubt. The index is not locked meanwhile, and searches may
    /// learn of changes that this listing missed, so each doubt is only a reason to look at the file
    /// again.
    fn patrol(&self, due: Look) -> Result<()> {
        let mut rests = Rests::of(self);
        let listing = self.listed(Some(&mut rests))?;
        let there: HashSet<&str> = listing.files.iter().map(|file| file.key.as_str()).collect();
        let (mut doubts, mut unsure) = (Vec::new(), Vec::new());
        let mut held = self.held();
        let files = &mut held.files;
        // A search had to list all files meanwhile, and its listing is newer.
        if files.look != due {
            return Ok(());
        }
        for file in &listing.files {
            match files.seen.get(&file.key).filter(|seen| seen.stamp == file.info.stamp) {
                Some(seen) if seen.settled => {}
                Some(seen) => unsure.push((file, seen.clone())),
                None => doubts.extend(self.placed(&file.key)),
            }
        }
        let lost = files.seen.keys().filter(|key| !there.contains(key.as_str()));
        doubts.extend(lost.filter_map(|key| self.placed(key)));
        files.doubts = doubts;
        files.look = if listing.unreadable.is_empty() { listing.look } else { Look::default() };
        drop(held);
        for step in unsure.chunks(STEP_FILES) {
            rests.rest();
            self.settle(step);
        }
        Ok(())
    }

    /// Reads again the files that were modified too shortly before they were indexed for their stamp to be
    /// sure.
    fn settle(&self, unsure: &[(&Listed<'_>, Seen)]) {
        let now = self.clock.now().as_millisecond();
        let same = |(file, seen): &(&Listed<'_>, Seen)| {
            let content = file.store.read_bytes(&file.info.locator);
            content.is_ok_and(|content| content.version.as_str() == seen.version)
        };
        let are_same: Vec<bool> = unsure.iter().map(same).collect();
        let files = &mut self.held().files;
        for ((file, before), same) in unsure.iter().zip(are_same) {
            match files.seen.get_mut(&file.key).filter(|seen| *seen == before) {
                Some(seen) if same && is_settled(&file.info, now) => {
                    seen.settled = true;
                    files.settled.push((file.key.clone(), seen.stamp));
                }
                Some(_) if !same => files.doubts.extend(self.placed(&file.key)),
                _ => {}
            }
        }
    }

    /// Returns the number of the storage that a key belongs to, and its place in it.
    fn placed(&self, key: &str) -> Option<(usize, Locator)> {
        let inside = |source: &super::Source| match source.under.is_empty() {
            true => Locator::new(key).ok().filter(|_| self.indexes(source, key)),
            false => Locator::new(key.strip_prefix(&source.under)?.strip_prefix('/')?).ok(),
        };
        self.sources.iter().enumerate().find_map(|(number, source)| Some((number, inside(source)?)))
    }
}

/// The rests of a patrol that runs beside searches.
pub(super) struct Rests<'a> {
    index: &'a Index,
    since: Timestamp,
    pub(super) rested: Duration,
}

impl<'a> Rests<'a> {
    fn of(index: &'a Index) -> Self {
        Rests { index, since: index.clock.now(), rested: Duration::ZERO }
    }

    /// Rests if searches are running.
    pub(super) fn rest(&mut self) {
        if self.index.turns.are_taken() {
            let took = self.index.clock.now().duration_since(self.since).unsigned_abs();
            let rest = took.saturating_mul(RESTS).min(REST_MAX);
            thread::sleep(rest);
            self.rested += rest;
        }
        self.since = self.index.clock.now();
    }
}
