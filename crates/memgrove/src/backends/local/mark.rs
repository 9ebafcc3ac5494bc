//! The mark: where the journal ends, and how far it is placed and synced. It is shared by all
//! processes through the page cache and written in place, so it holds only while the machine runs;
//! after a stop of the machine, or when it is damaged, the journal itself is read instead.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::vfs::{Open, Vfs, VfsFile};

pub(super) const NAME: &str = ".journal/mark";
const MAGIC: &str = "MGM2";
const LINE_BYTES: usize = 192;
/// Counters that lie outside the mark's line, because each is written on its own.
const APPENDS_OFFSET: u64 = 256;
const CROWD_OFFSET: u64 = 264;
const BEGUN_OFFSET: u64 = 272;

/// A position in the journal: a segment, by the number of its first record, and an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Place {
    pub(super) segment: u64,
    pub(super) offset: u64,
}

/// How far things are in the last segment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Mark {
    /// The run of the machine in which this was written; empty if unknown.
    pub(super) boot: String,
    /// The last segment.
    pub(super) segment: u64,
    /// The inode of the segment's file: a copy has another one, and nothing is certain about a copy.
    pub(super) inode: u64,
    /// Everything before this is placed and synced, whatever happens to the machine.
    pub(super) checkpoint: u64,
    /// Everything before this is placed, as long as the machine runs.
    pub(super) placed: u64,
    /// Where the next record goes.
    pub(super) end: u64,
    /// The next record's number.
    pub(super) next_seq: u64,
    /// The last change that could not be placed and did not happen; 0 if there is none.
    pub(super) aborted: u64,
}

impl Mark {
    /// The end of the journal.
    pub(super) fn here(&self) -> Place {
        Place { segment: self.segment, offset: self.end }
    }

    /// Whether the record that ends there is placed.
    pub(super) fn has_placed(&self, place: Place) -> bool {
        self.segment != place.segment || self.placed >= place.offset
    }
}

/// The file that the mark stands in.
pub(super) struct MarkFile {
    file: Box<dyn VfsFile>,
    /// The line that was last read or written here, and the mark in it: mostly the file still has it.
    last: Mutex<Option<(Vec<u8>, Mark)>>,
}

impl MarkFile {
    pub(super) fn open(state: &dyn Vfs, how: Open) -> io::Result<Self> {
        Ok(MarkFile { file: state.open(NAME, how)?, last: Mutex::default() })
    }

    /// Reads the mark; `None` if its line is damaged.
    pub(super) fn read(&self) -> io::Result<Option<Mark>> {
        let line = self.file.read_at(0, LINE_BYTES)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_none_or(|(known, _)| *known != line) {
            *last = parse(&line).map(|mark| (line, mark));
        }
        Ok(last.as_ref().map(|(_, mark)| mark.clone()))
    }

    pub(super) fn write(&self, mark: &Mark) -> io::Result<()> {
        let line = print(mark);
        self.file.write_at(0, &line)?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((line, mark.clone()));
        Ok(())
    }

    /// When the mark file was last written, in nanoseconds since the epoch.
    pub(super) fn time_ns(&self) -> io::Result<i128> {
        Ok(self.file.stat()?.mtime_ns)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Waits for the turn to sync the journal and place what is in it; dropping the result ends the turn.
    /// Returns `None` if `needless` says that someone else has done the work meanwhile.
    pub(super) fn turn_unless(
        &self,
        wait: Duration,
        needless: &dyn Fn() -> bool,
    ) -> io::Result<Option<Turn<'_>>> {
        Ok(self.file.lock_unless(wait, needless)?.then(|| Turn { file: &*self.file, served: 0 }))
    }

    /// How often an append in place has begun or ended: odd while one is under way.
    pub(super) fn appends(&self) -> io::Result<u64> {
        self.word(APPENDS_OFFSET)
    }

    pub(super) fn set_appends(&self, count: u64) -> io::Result<()> {
        self.file.write_at(APPENDS_OFFSET, &count.to_le_bytes())
    }

    /// How many changes the last sync made durable at once; counted only where syncs take long.
    pub(super) fn crowd(&self) -> io::Result<u64> {
        self.word(CROWD_OFFSET)
    }

    pub(super) fn set_crowd(&self, count: u64) -> io::Result<()> {
        self.file.write_at(CROWD_OFFSET, &count.to_le_bytes())
    }

    /// The last change that someone has begun to place, of those that cannot be placed twice.
    pub(super) fn begun(&self) -> io::Result<u64> {
        self.word(BEGUN_OFFSET)
    }

    pub(super) fn set_begun(&self, seq: u64) -> io::Result<()> {
        self.file.write_at(BEGUN_OFFSET, &seq.to_le_bytes())
    }

    fn word(&self, offset: u64) -> io::Result<u64> {
        let bytes = self.file.read_at(offset, 8)?;
        Ok(bytes.try_into().map_or(0, u64::from_le_bytes))
    }
}

/// The turn to sync the journal and to place what is in it, among all processes.
pub(super) struct Turn<'a> {
    file: &'a dyn VfsFile,
    /// How many changes were placed in it.
    pub(super) served: u32,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // If unlocking fails, closing the handle releases it. It wakes one, who may have the turn next.
        let _ = self.file.unlock();
        // Waiters sleep in the order of their changes, so the first `served` of them are those just served.
        self.file.ring(self.served);
    }
}

fn print(mark: &Mark) -> Vec<u8> {
    let Mark { boot, segment, inode, checkpoint, placed, end, next_seq, aborted } = mark;
    let numbers = [segment, inode, checkpoint, placed, end, next_seq, aborted];
    // Formatted by hand for speed: every change prints a mark, and every reader prints one to compare.
    let mut line = Vec::with_capacity(LINE_BYTES);
    line.extend_from_slice(MAGIC.as_bytes());
    line.push(b' ');
    line.extend(boot.bytes().chain(std::iter::repeat(b' ')).take(36));
    line.push(b' ');
    for number in numbers {
        let digit = |shift: u32| b"0123456789abcdef"[(number >> shift & 15) as usize];
        line.extend((0..16).rev().map(|place| digit(place * 4)));
        line.push(b' ');
    }
    let hash = blake3::hash(&line).to_hex();
    line.extend_from_slice(&hash.as_bytes()[..LINE_BYTES - 1 - line.len()]);
    line.push(b'\n');
    line
}

fn parse(bytes: &[u8]) -> Option<Mark> {
    let line = std::str::from_utf8(bytes).ok()?;
    let mut fields = line.strip_prefix(MAGIC)?.split_ascii_whitespace().rev();
    fields.next()?;
    let mut numbers = [0; 7];
    for number in numbers.iter_mut().rev() {
        *number = u64::from_str_radix(fields.next()?, 16).ok()?;
    }
    let [segment, inode, checkpoint, placed, end, next_seq, aborted] = numbers;
    let boot = fields.next().unwrap_or_default().to_owned();
    let mark = Mark { boot, segment, inode, checkpoint, placed, end, next_seq, aborted };
    (print(&mark) == bytes).then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn printing_then_parsing_is_the_identity(boot in "([0-9a-f-]{1,36})?", numbers in any::<[u64; 7]>()) {
            let [segment, inode, checkpoint, placed, end, next_seq, aborted] = numbers;
            let mark = Mark { boot, segment, inode, checkpoint, placed, end, next_seq, aborted };
            prop_assert_eq!(print(&mark).len(), LINE_BYTES);
            prop_assert_eq!(parse(&print(&mark)), Some(mark));
        }
    }

    #[test]
    fn a_damaged_mark_is_none() {
        let good = print(&Mark { boot: "b".into(), ..Mark::default() });
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_eq!(parse(&bad), None, "byte {at}");
        }
        assert_eq!(parse(b""), None);
    }
}
