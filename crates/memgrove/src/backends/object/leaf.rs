//! What is known of a file: which bytes of which records of the log it is made of.

use std::sync::{Arc, OnceLock};

use crate::backend::Version;
use crate::clock::Timestamp;

/// A file, as a chain: what the last record added, and what was there before it.
pub(super) struct Leaf {
    /// What was there before, if this was appended.
    before: Option<Arc<Leaf>>,
    /// The record that holds the bytes, and where in its body they are.
    pub(super) seq: u64,
    pub(super) index: usize,
    /// The beginning of that record's id, for marks.
    id: u32,
    pub(super) offset: u64,
    pub(super) added: u64,
    /// How many bytes the whole file has.
    pub(super) len: u64,
    /// How many links the chain has.
    pub(super) links: u32,
    pub(super) mtime: Timestamp,
    /// The version, once it has been computed.
    pub(super) version: OnceLock<Version>,
    /// The tag that a bucket without marks gives to these bytes, once it is known.
    pub(super) tag: OnceLock<String>,
}

/// Where the bytes of one edit are.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) seq: u64,
    pub(super) index: usize,
    pub(super) id: u32,
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Leaf {
    pub(super) fn written(place: Place, mtime: Timestamp, version: Option<Version>) -> Arc<Leaf> {
        let leaf = Leaf {
            before: None,
            seq: place.seq,
            index: place.index,
            id: place.id,
            offset: place.offset,
            added: place.len,
            len: place.len,
            links: 1,
            mtime,
            version: OnceLock::new(),
            tag: OnceLock::new(),
        };
        if let Some(version) = version {
            let _ = leaf.version.set(version);
        }
        Arc::new(leaf)
    }

    pub(super) fn appended(before: Option<&Arc<Leaf>>, place: Place, mtime: Timestamp) -> Arc<Leaf> {
        let Some(before) = before else { return Leaf::written(place, mtime, None) };
        Arc::new(Leaf {
            before: Some(Arc::clone(before)),
            seq: place.seq,
            index: place.index,
            id: place.id,
            offset: place.offset,
            added: place.len,
            len: before.len + place.len,
            links: before.links + 1,
            mtime,
            version: OnceLock::new(),
            tag: OnceLock::new(),
        })
    }

    /// Names this state of this file, so that a plain object can say that it holds it. The id tells records
    /// apart from those of another store's log with the same numbers.
    pub(super) fn mark(&self) -> String {
        format!("{}.{}.{:08x}", self.seq, self.index, self.id)
    }

    /// A cheap token of this state.
    pub(super) fn stamp(&self) -> u64 {
        self.seq.wrapping_mul(1 << 20).wrapping_add(self.index as u64 + 1) ^ (u64::from(self.id) << 32)
    }

    /// Where in the body of its record the bytes are.
    pub(super) fn range(&self) -> std::ops::Range<usize> {
        self.offset as usize..(self.offset + self.added) as usize
    }

    /// Returns an owning handle to this link of the chain that ends in `end`.
    pub(super) fn itself(&self, end: &Arc<Leaf>) -> Arc<Leaf> {
        let mut link = end;
        while let Some(before) = link.before.as_ref().filter(|_| link.links > self.links) {
            link = before;
        }
        Arc::clone(link)
    }

    /// This state and the ones before it, newest first.
    pub(super) fn chain(&self) -> impl Iterator<Item = &Leaf> {
        std::iter::successors(Some(self), |leaf| leaf.before.as_deref())
    }
}

impl Drop for Leaf {
    /// Drops link by link without recursion: a log of a million lines is a chain of a million links.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(leaf) = next {
            next = Arc::into_inner(leaf).and_then(|mut leaf| leaf.before.take());
        }
    }
}
