//! What was edited by hand in the files of a store: found by comparing listings and leaving out what the
//! history explains.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use memgrove::backend::{FileKind, HistoryQuery, Version};
use memgrove::{Locator, Memory, Result};
use serde_json::{Value, json};

use crate::address::{address_of, is_memory};
use crate::context::Context;

/// How soon an edit by hand is noticed; where listing is slow it takes longer, so that looking costs at most
/// a twentieth of one core.
const LOOK_EVERY: Duration = Duration::from_millis(1_500);
const REST: u32 = 20;
/// How many changes are compared with what is seen. If there were more, every difference counts as explained.
const CHANGES_MAX: usize = 512;
/// The most places that one event names.
const NAMED_MAX: usize = 100;

/// What a listing says of each file.
type Seen = BTreeMap<Locator, (u64, u64)>;
/// The files that changes touched, each with the version that the last of them left, if known.
type Touched = BTreeMap<Locator, Option<Version>>;

/// The places that one change touched, each with the version that it left there, if known.
type Edits = Vec<(Locator, Option<Version>)>;

/// What is known of the files of one store.
pub(crate) struct Outside {
    seen: Seen,
    newest: Option<String>,
    /// What changed before the last look: some of it may have been placed only afterwards.
    before: Touched,
    next: Instant,
}

impl Outside {
    /// Lists the files for the first time; `None` for a bucket, which has no files to edit by hand.
    ///
    /// # Errors
    /// As listing the store.
    pub(crate) fn of(cx: &Context) -> Result<Option<Self>> {
        if cx.place().is_none_or(|place| place.is_url()) {
            return Ok(None);
        }
        let memory = cx.reading()?;
        let newest = changes(&memory, 1)?.pop().map(|(change, _)| change);
        let next = Instant::now() + LOOK_EVERY;
        Ok(Some(Outside { seen: listed(&memory)?, newest, before: Touched::new(), next }))
    }

    /// What was edited by hand since the last look, in the form of a change in the history; `None` if nothing
    /// was, or if it is too early to look again.
    ///
    /// # Errors
    /// As listing the store.
    pub(crate) fn look(&mut self, cx: &Context) -> Result<Option<Value>> {
        let started = Instant::now();
        if started < self.next {
            return Ok(None);
        }
        let memory = cx.reading()?;
        let now = listed(&memory)?;
        let recent = changes(&memory, CHANGES_MAX)?;
        let known = self.newest.as_ref().is_none_or(|last| recent.iter().any(|(change, _)| change == last));
        let all_told = !known && recent.len() >= CHANGES_MAX;
        let mut touched = Touched::new();
        let fresh = recent.iter().take_while(|(change, _)| Some(change) != self.newest.as_ref());
        for (at, version) in fresh.flat_map(|(_, edits)| edits) {
            touched.entry(at.clone()).or_insert_with(|| version.clone());
        }
        let mut by_hand = BTreeSet::new();
        let differs = |at: &&Locator| self.seen.get(*at) != now.get(*at);
        for at in self.seen.keys().chain(now.keys()).filter(differs) {
            if !all_told && !told(&memory, at, now.contains_key(at), [&touched, &self.before])? {
                by_hand.insert(at.clone());
            }
        }
        let edits: Vec<Value> = by_hand
            .iter()
            .take(NAMED_MAX)
            .map(|at| {
                let op = match (self.seen.contains_key(at), now.contains_key(at)) {
                    (true, false) => "delete",
                    _ => "write",
                };
                json!({"op": op, "at": address_of(cx, at)})
            })
            .collect();
        self.newest = recent.into_iter().next().map(|(change, _)| change).or(self.newest.take());
        (self.seen, self.before) = (now, touched);
        self.next = Instant::now() + LOOK_EVERY.max(started.elapsed() * REST);
        let count = by_hand.len();
        Ok((count > 0).then(|| json!({"verb": "edit", "by": "hand", "edits": edits, "count": count})))
    }
}

fn listed(memory: &Memory) -> Result<Seen> {
    let all = memory.store().list_all(&Locator::root())?;
    let files = all.into_iter().filter(|info| info.kind == FileKind::File && is_memory(&info.locator));
    Ok(files.map(|info| (info.locator, (info.size, info.stamp))).collect())
}

/// The last changes, newest first, each with the places that it touched and what it left there.
fn changes(memory: &Memory, limit: usize) -> Result<Vec<(String, Edits)>> {
    let past = memory.history(&HistoryQuery { limit, ..HistoryQuery::default() })?;
    let told = past.into_iter().map(|past| {
        let edits = past.edits.into_iter().flat_map(|edit| {
            let to = edit.to.map(|to| (to, None));
            [Some((edit.at, edit.new)), to].into_iter().flatten()
        });
        (past.change.as_str().to_owned(), edits.collect())
    });
    Ok(told.collect())
}

/// Whether changes explain why a file differs or is gone.
fn told(memory: &Memory, at: &Locator, is_there: bool, changes: [&Touched; 2]) -> Result<bool> {
    for touched in changes {
        match touched.get(at) {
            // The last change left something there.
            Some(Some(_)) if !is_there => return Ok(false),
            Some(Some(left)) => {
                let there = memory.store().info_optional(at)?.and_then(|info| info.version);
                return Ok(there.is_none_or(|there| there == *left));
            }
            Some(None) => return Ok(true),
            None => {}
        }
        // A moved or deleted folder explains what happened to everything in it.
        if touched.keys().any(|place| at.is_within(place)) {
            return Ok(true);
        }
    }
    Ok(false)
}
