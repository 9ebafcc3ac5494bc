//! What the records since the last checkpoint say of the files that they name, and what a power cut can have
//! left of that.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::record::{Entry, Record};
use crate::backend::Version;
use crate::locator::Locator;

/// The smallest piece that a disk writes whole.
const SECTOR_BYTES: usize = 512;

/// What the records say a file should be.
pub(super) enum Final {
    /// Exactly these bytes.
    Bytes(Vec<u8>),
    /// What was there, up to the offset, and then these bytes.
    Grown { offset: u64, tail: Vec<u8> },
    /// Nothing.
    Absent,
}

/// What the records since the last checkpoint say of the files they name.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) finals: BTreeMap<Locator, Final>,
    /// Versions that each file had meanwhile.
    versions: HashMap<Locator, Vec<Version>>,
    /// Contents that were written, and may lie there torn.
    contents: HashMap<Locator, Vec<Vec<u8>>>,
    /// When the last of the records was made, in nanoseconds since the epoch.
    pub(super) time_ns: i128,
}

impl Outcome {
    pub(super) fn of(records: &[Arc<Record>]) -> Self {
        let mut outcome = Outcome::default();
        for record in records {
            outcome.time_ns = outcome.time_ns.max(record.header.time.as_nanosecond());
            for index in 0..record.header.edits.len() {
                outcome.follow(record, index);
            }
        }
        outcome
    }

    fn follow(&mut self, record: &Record, index: usize) {
        match &record.header.edits[index] {
            // The content was redacted, so there is nothing to restore.
            Entry::Write { at, new, .. } if new.is_redacted() => drop(self.finals.remove(at)),
            Entry::Write { at, old, new, .. } => {
                self.versions.entry(at.clone()).or_default().extend(old.iter().chain([new]).cloned());
                self.replaced(at, record, index);
                self.set(at, Final::Bytes(record.after(index).to_vec()));
            }
            Entry::Append { at, offset, created, .. } => {
                let added = record.after(index);
                let grown = match self.finals.remove(at) {
                    Some(Final::Bytes(bytes)) => Final::Bytes([&bytes, added].concat()),
                    Some(Final::Grown { offset, tail }) => {
                        Final::Grown { offset, tail: [&tail, added].concat() }
                    }
                    Some(Final::Absent) | None if *created => Final::Bytes(added.to_vec()),
                    _ => Final::Grown { offset: *offset, tail: added.to_vec() },
                };
                self.set(at, grown);
            }
            Entry::Delete { at, old: Some(old), .. } => {
                self.versions.entry(at.clone()).or_default().push(old.clone());
                self.replaced(at, record, index);
                self.finals.insert(at.clone(), Final::Absent);
            }
            Entry::Delete { .. } => {}
            Entry::Rename { at, to, .. } => self.rename(at, to),
        }
    }

    /// Remembers the content that an edit removed: a power cut may have left it without the bytes that were
    /// added to it shortly before.
    fn replaced(&mut self, at: &Locator, record: &Record, index: usize) {
        if let Some(bytes) = record.before(index) {
            self.contents.entry(at.clone()).or_default().push(bytes.to_vec());
        }
    }

    fn set(&mut self, at: &Locator, wanted: Final) {
        if let Final::Bytes(bytes) = &wanted {
            self.versions.entry(at.clone()).or_default().push(Version::of(bytes));
            self.contents.entry(at.clone()).or_default().push(bytes.clone());
        }
        self.finals.insert(at.clone(), wanted);
    }

    fn rename(&mut self, from: &Locator, to: &Locator) {
        // What was at the target is gone, and the records may not hold what was moved there.
        self.finals.retain(|at, _| !at.is_within(to));
        let within = |at: &&Locator| at.is_within(from);
        for at in self.finals.keys().filter(within).cloned().collect::<Vec<_>>() {
            let moved = at.rebased(from, to).expect("it lies within");
            let wanted = self.finals.remove(&at).expect("it was just seen");
            let versions = self.versions.get(&at).cloned().unwrap_or_default();
            let contents = self.contents.get(&at).cloned().unwrap_or_default();
            self.versions.entry(moved.clone()).or_default().extend(versions);
            self.contents.entry(moved.clone()).or_default().extend(contents);
            self.finals.insert(moved, wanted);
            self.finals.insert(at, Final::Absent);
        }
    }

    /// Whether the file had exactly this content at some time.
    pub(super) fn knows(&self, at: &Locator, found: &[u8]) -> bool {
        let version = Version::of(found);
        self.versions.get(at).is_some_and(|known| known.contains(&version))
    }

    /// Whether a power cut can have left this, so that nobody else has written it.
    pub(super) fn explains(&self, at: &Locator, found: &[u8]) -> bool {
        let torn = || {
            self.contents.get(at).is_some_and(|known| known.iter().any(|content| is_torn(found, content, 0)))
        };
        self.knows(at, found) || torn()
    }
}

/// Whether `found` is what a power cut can leave of `whole`, which stands at `offset` in its file:
/// no longer than it, and each sector written, or not, or as it was before the last bytes were
/// added to it.
pub(super) fn is_torn(found: &[u8], whole: &[u8], offset: u64) -> bool {
    let into_sector = usize::try_from(offset % SECTOR_BYTES as u64).expect("less than a sector");
    let first = (SECTOR_BYTES - into_sector).min(found.len());
    let is_torn_sector = |range: std::ops::Range<usize>| {
        let written = found[range.clone()].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        whole[range.start..].starts_with(&found[range.start..range.start + written])
    };
    let mut starts = (first..found.len()).step_by(SECTOR_BYTES);
    found.len() <= whole.len()
        && is_torn_sector(0..first)
        && starts.all(|at| is_torn_sector(at..found.len().min(at + SECTOR_BYTES)))
}
