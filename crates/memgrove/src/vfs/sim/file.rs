//! What a simulated file holds: what programs see, what the platter has, and what lies between.

use std::sync::Arc;

use super::rng::Rng;

/// The unit that reaches the platter whole or not at all.
const SECTOR_BYTES: usize = 512;

/// A file's content. `kept` is what the platter surely has; `unsynced` leads from there to `now`, each with
/// its time.
#[derive(Debug, Clone, Default)]
pub(super) struct FileNode {
    now: Arc<Vec<u8>>,
    kept: Arc<Vec<u8>>,
    unsynced: Vec<(u64, Arc<Touch>)>,
    /// When `kept` was modified last: the time of a file is where its size is.
    kept_mtime: u64,
    /// A sync failed, so that `now` holds bytes that no later sync will write.
    forgot: bool,
    pub(super) mtime: u64,
    pub(super) links: u64,
    pub(super) mode: u32,
}

/// One modification that has not been synced.
#[derive(Debug)]
enum Touch {
    Write { offset: usize, bytes: Vec<u8> },
    Resize { len: usize },
}

/// How much of what was not synced survives a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Survival {
    Nothing,
    Everything,
    /// The modifications up to some point in time.
    Prefix,
    /// The size of the file, but none of the bytes.
    SizeOnly,
    /// Any sectors, each in any of its states, and any size that the file had on its way.
    Sectors,
}

impl FileNode {
    pub(super) fn new(mtime: u64) -> Self {
        FileNode { mtime, kept_mtime: mtime, mode: 0o600, ..FileNode::default() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.now
    }

    /// Whether a power cut would leave exactly what programs see.
    pub(super) fn is_settled(&self) -> bool {
        self.unsynced.is_empty() && !self.forgot
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8], time: u64) {
        self.touch(Touch::Write { offset, bytes: bytes.to_vec() }, time);
    }

    pub(super) fn resize(&mut self, len: usize, time: u64) {
        self.touch(Touch::Resize { len }, time);
    }

    fn touch(&mut self, touch: Touch, time: u64) {
        touch.apply(Arc::make_mut(&mut self.now));
        self.unsynced.push((time, Arc::new(touch)));
        self.mtime = time;
    }

    /// Brings everything since the last sync to the platter.
    pub(super) fn sync(&mut self) {
        if !self.forgot {
            self.kept = Arc::clone(&self.now);
        } else if !self.unsynced.is_empty() {
            let kept = Arc::make_mut(&mut self.kept);
            self.unsynced.iter().for_each(|(_, touch)| touch.apply(kept));
        }
        self.unsynced.clear();
        self.kept_mtime = self.mtime;
    }

    /// What a failed sync does on ext4, XFS and Btrfs: programs still see the bytes, but they
    /// count as written, and no later sync brings them to the platter.
    pub(super) fn fail_sync(&mut self) {
        self.forgot |= !self.unsynced.is_empty();
        self.unsynced.clear();
    }

    /// The file as it is found after a power cut, under one name.
    pub(super) fn after_cut(&self, survival: Survival, rng: &mut Rng) -> FileNode {
        let (left, mtime) = match survival {
            Survival::Nothing => (Arc::clone(&self.kept), self.kept_mtime),
            Survival::Everything if !self.forgot => (Arc::clone(&self.now), self.mtime),
            Survival::Everything => (Arc::new(self.replayed(self.unsynced.len())), self.mtime),
            Survival::Prefix => {
                let count = rng.below(self.unsynced.len() + 1);
                (Arc::new(self.replayed(count)), self.time_after(count))
            }
            Survival::SizeOnly => {
                let mut left = (*self.kept).clone();
                left.resize(self.now.len(), 0);
                (Arc::new(left), self.mtime)
            }
            Survival::Sectors => {
                let (left, mtime) = self.scattered(rng);
                (Arc::new(left), mtime)
            }
        };
        let kept = Arc::clone(&left);
        let (unsynced, mode) = (Vec::new(), self.mode);
        FileNode { now: left, kept, unsynced, kept_mtime: mtime, forgot: false, mtime, links: 1, mode }
    }

    /// When it was modified last, after so many of its modifications.
    fn time_after(&self, count: usize) -> u64 {
        count.checked_sub(1).map_or(self.kept_mtime, |last| self.unsynced[last].0)
    }

    fn replayed(&self, count: usize) -> Vec<u8> {
        let mut left = (*self.kept).clone();
        self.unsynced[..count].iter().for_each(|(_, touch)| touch.apply(&mut left));
        left
    }

    /// Lets every sector stop at a point of its own. A sector that has a modification has all the
    /// earlier ones to that sector too, because the page cache writes it as it is.
    fn scattered(&self, rng: &mut Rng) -> (Vec<u8>, u64) {
        let mut sizes = vec![self.kept.len()];
        for (_, touch) in &self.unsynced {
            let before = *sizes.last().expect("the list starts with the kept size");
            sizes.push(touch.size_after(before));
        }
        let largest = *sizes.iter().max().expect("the list starts with the kept size");
        let mut left = (*self.kept).clone();
        left.resize(largest, 0);
        for (sector, bytes) in left.chunks_mut(SECTOR_BYTES).enumerate() {
            let start = sector * SECTOR_BYTES;
            let touches = || self.unsynced.iter().map(|(_, touch)| touch);
            let touching = || touches().filter(|touch| touch.reaches(start, bytes.len()));
            let count = touching().count();
            if count == 0 {
                continue;
            }
            let stop = rng.below(count + 1);
            let reached: Vec<_> = touching().take(stop).collect();
            reached.iter().for_each(|touch| touch.apply_within(start, bytes));
        }
        let count = match rng.below(4) {
            0 => self.unsynced.len(),
            _ => rng.below(sizes.len()),
        };
        left.truncate(sizes[count]);
        (left, self.time_after(count))
    }
}

impl Touch {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Touch::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset..end].copy_from_slice(bytes);
            }
            Touch::Resize { len } => content.resize(*len, 0),
        }
    }

    fn size_after(&self, before: usize) -> usize {
        match self {
            Touch::Write { offset, bytes } => before.max(offset + bytes.len()),
            Touch::Resize { len } => *len,
        }
    }

    /// Whether it changes any byte of `len` bytes from `start`. What is cut off becomes zero.
    fn reaches(&self, start: usize, len: usize) -> bool {
        match self {
            Touch::Write { offset, bytes } => *offset < start + len && start < offset + bytes.len(),
            Touch::Resize { len: size } => *size < start + len,
        }
    }

    fn apply_within(&self, start: usize, window: &mut [u8]) {
        match self {
            Touch::Write { offset, bytes } => {
                let from = (*offset).max(start);
                let to = (offset + bytes.len()).min(start + window.len());
                window[from - start..to - start].copy_from_slice(&bytes[from - offset..to - offset]);
            }
            Touch::Resize { len } => window[len.saturating_sub(start)..].fill(0),
        }
    }
}
