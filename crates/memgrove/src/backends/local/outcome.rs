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
    /// What was there, and these pieces, in their order.
    Grown(Vec<Piece>),
    /// Nothing.
    Absent,
}

/// What was added to a file, and where it began.
pub(super) struct Piece {
    pub(super) offset: u64,
    pub(super) tail: Vec<u8>,
}

/// The last edit of a file: the number of its record, its own, and when it was made.
#[derive(Clone, Copy)]
struct Last {
    seq: u64,
    index: usize,
    time_ns: i128,
}

/// What the records since the last checkpoint say of the files they name.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) finals: BTreeMap<Locator, Final>,
    /// Versions that each file had meanwhile.
    versions: HashMap<Locator, Vec<Version>>,
    /// Contents that were written, and may lie there torn.
    contents: HashMap<Locator, Vec<Vec<u8>>>,
    lasts: HashMap<Locator, Last>,
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
        let (seq, time_ns) = (record.header.seq, record.header.time.as_nanosecond());
        self.lasts.insert(record.header.edits[index].at().clone(), Last { seq, index, time_ns });
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
                    Some(Final::Grown(pieces)) => Final::Grown(grown(pieces, *offset, added)),
                    Some(Final::Absent) | None if *created => Final::Bytes(added.to_vec()),
                    _ => Final::Grown(grown(Vec::new(), *offset, added)),
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
            self.lasts.extend(self.lasts.get(&at).map(|last| (moved.clone(), *last)));
            self.finals.insert(moved, wanted);
            self.finals.insert(at, Final::Absent);
        }
    }

    /// The number of the last record that edits a file, and which of its edits that is.
    pub(super) fn last_edit(&self, at: &Locator) -> Option<(u64, usize)> {
        self.lasts.get(at).map(|last| (last.seq, last.index))
    }

    /// When the last record that edits a file was made.
    pub(super) fn time_of(&self, at: &Locator) -> i128 {
        self.lasts.get(at).map_or(self.time_ns, |last| last.time_ns)
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

/// The pieces that a file has grown by, with one more. What begins elsewhere than where the last one ends came behind
/// what others had written.
fn grown(mut pieces: Vec<Piece>, offset: u64, added: &[u8]) -> Vec<Piece> {
    match pieces.last_mut().filter(|last| last.offset + last.tail.len() as u64 == offset) {
        Some(last) => last.tail.extend_from_slice(added),
        None => pieces.push(Piece { offset, tail: added.to_vec() }),
    }
    pieces
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
