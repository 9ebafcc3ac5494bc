//! Which files have changed since they were last read into the index.
//!
//! All files are listed, unless watchers report what has changed (see `watch`; `patrol` checks the
//! watchers).

use std::collections::{HashMap, HashSet};

use super::patrol::Rests;
use super::sync::{Files, Seen, Source, is_settled, is_unreadable};
use super::watch::{Look, SINGLE_FILES_MAX};
use super::{Index, extract};
use crate::backend::{Depth, FileKind, Info};
use crate::error::{Kind, Result};
use crate::locator::Locator;
use crate::store::Store;

/// A file that a listing shows.
pub(super) struct Listed<'a> {
    pub(super) store: &'a Store,
    pub(super) key: String,
    pub(super) info: Info,
}

/// The work that brings the index up to date.
#[derive(Default)]
pub(super) struct Work<'a> {
    pub(super) stale: Vec<Listed<'a>>,
    pub(super) gone: Vec<String>,
    /// Files whose content is unchanged, and which cannot change any more without a new stamp.
    pub(super) sound: Vec<(String, u64)>,
    pub(super) unreadable: Vec<String>,
    /// What is remembered of this comparison once the work is done.
    pub(super) look: Look,
}

/// Everything that is there.
#[derive(Default)]
pub(super) struct Listing<'a> {
    /// The files that have documents.
    pub(super) files: Vec<Listed<'a>>,
    pub(super) unreadable: Vec<String>,
    pub(super) look: Look,
}

impl Index {
    /// Finds the work: from what watchers report, or, if they cannot tell, from a listing of all files.
    pub(super) fn work(&self, files: &mut Files) -> Result<Work<'_>> {
        let now = self.clock.now().as_millisecond();
        // If the work fails, what watchers reported is lost; an empty look makes the next search list all
        // files.
        let look = std::mem::take(&mut files.look);
        let Some(noticed) = self.noticed(look, now, files.seen.len()) else {
            return self.listing_work(files);
        };
        let later = files.doubts.len().saturating_sub(SINGLE_FILES_MAX);
        let doubts = files.doubts.split_off(later);
        let mut work = Work { look, ..Work::default() };
        for (source, at) in noticed.into_iter().chain(doubts) {
            let source = &self.sources[source];
            let key = joined(&source.under, &at);
            if !self.indexes(source, &key) {
                continue;
            }
            match source.store.info(&at) {
                // The version was read after the stamp, so it does not belong to it for certain.
                Ok(info) if info.kind == FileKind::File => {
                    work.consider(&source.store, key, Info { version: None, ..info }, files);
                }
                Err(error) if error.kind() != Kind::NotFound => return self.listing_work(files),
                _ => work.gone.extend(files.seen.contains_key(&key).then_some(key)),
            }
        }
        let mut work = work.sift(&files.seen, now);
        // Noting these needs a write, which takes place anyway.
        if work.writes() {
            let first = files.settled.len().saturating_sub(SINGLE_FILES_MAX);
            work.sound.extend(files.settled.drain(first..));
        }
        Ok(work)
    }

    /// Finds the work from a listing of all files.
    pub(super) fn listing_work(&self, files: &mut Files) -> Result<Work<'_>> {
        let listing = self.listed(None)?;
        files.doubts.clear();
        let mut work = Work { unreadable: listing.unreadable, look: listing.look, ..Work::default() };
        let mut there = HashSet::with_capacity(listing.files.len());
        for Listed { store, key, info } in listing.files {
            there.insert(key.clone());
            work.consider(store, key, info, files);
        }
        let lost = |key: &&String| {
            !there.contains(*key) && !work.unreadable.iter().any(|folder| within(key, folder))
        };
        work.gone = files.seen.keys().filter(lost).cloned().collect();
        work.gone.sort();
        Ok(work.sift(&files.seen, self.clock.now().as_millisecond()))
    }

    /// Lists all files, and notes whether watchers would have noticed a change meanwhile.
    pub(super) fn listed(&self, mut rests: Option<&mut Rests<'_>>) -> Result<Listing<'_>> {
        let began = self.clock.now().as_millisecond();
        let (mut listing, mut folders) = (Listing::default(), Vec::new());
        for source in &self.sources {
            let mut inside = vec![Locator::root()];
            for info in listing_of(source, &mut listing.unreadable, rests.as_deref_mut())? {
                let key = joined(&source.under, &info.locator);
                if info.is_dir() {
                    inside.push(info.locator);
                } else if info.kind == FileKind::File && self.indexes(source, &key) {
                    listing.files.push(Listed { store: &source.store, key, info });
                }
            }
            folders.push(inside);
        }
        let covered = listing.unreadable.is_empty() && self.attend(&folders);
        let rested = rests.map_or(0, |rests| rests.rested.as_millis() as i64);
        listing.look = Look::listed(began, self.clock.now().as_millisecond() - rested, covered);
        Ok(listing)
    }

    /// Whether the index reads a file of this storage: it has documents, and no other storage is mounted
    /// over it.
    pub(super) fn indexes(&self, source: &Source, key: &str) -> bool {
        let elsewhere = |other: &Source| other.under != source.under && within(key, &other.under);
        extract::wants(key) && !self.sources.iter().any(elsewhere)
    }
}

impl<'a> Work<'a> {
    /// Adds a file to the stale ones, unless it is as it was when it was read.
    fn consider(&mut self, store: &'a Store, key: String, info: Info, files: &Files) {
        if files.seen.get(&key).is_none_or(|seen| seen.stamp != info.stamp || !seen.settled) {
            self.stale.push(Listed { store, key, info });
        }
    }

    /// Whether something is to be written into the index.
    pub(super) fn writes(&self) -> bool {
        !(self.stale.is_empty() && self.gone.is_empty() && self.sound.is_empty())
    }

    /// Takes out the stale files whose content is unchanged, though they were modified too shortly before
    /// they were read for the stamp to prove it. Noting that they are settled is left for later: a search
    /// with nothing to write waits for nobody.
    pub(super) fn sift(mut self, seen: &HashMap<String, Seen>, now: i64) -> Self {
        let sound = &mut self.sound;
        self.stale.retain(|file| {
            let Some(before) = seen.get(&file.key).filter(|before| before.stamp == file.info.stamp) else {
                return true;
            };
            let same = file.store.read_bytes(&file.info.locator);
            let same = same.is_ok_and(|content| content.version.as_str() == before.version);
            if same && is_settled(&file.info, now) {
                sound.push((file.key.clone(), file.info.stamp));
            }
            !same
        });
        self
    }
}

/// Lists everything in a storage. A folder that cannot be read does not stop the others, and its files
/// stay in the index, because nothing says that they are gone.
fn listing_of(
    source: &Source,
    unreadable: &mut Vec<String>,
    mut rests: Option<&mut Rests<'_>>,
) -> Result<Vec<Info>> {
    if rests.is_none() {
        match source.store.list_all(&Locator::root()) {
            Err(error) if is_unreadable(&error) => {}
            listed => return listed,
        }
    }
    let (mut found, mut folders) = (Vec::new(), vec![Locator::root()]);
    while let Some(folder) = folders.pop() {
        match source.store.backend().list(&folder, Depth::Children) {
            Ok(children) => {
                folders.extend(children.iter().filter(|info| info.is_dir()).map(|info| info.locator.clone()));
                found.extend(children);
            }
            Err(error) if is_unreadable(&error) && !folder.is_root() => {
                unreadable.push(joined(&source.under, &folder));
            }
            Err(error) => return Err(error),
        }
        if let Some(rests) = &mut rests {
            rests.rest();
        }
    }
    Ok(found)
}

pub(super) fn joined(under: &str, at: &Locator) -> String {
    if under.is_empty() { at.key().to_owned() } else { format!("{under}/{at}") }
}

fn within(key: &str, folder: &str) -> bool {
    !folder.is_empty()
        && key.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
