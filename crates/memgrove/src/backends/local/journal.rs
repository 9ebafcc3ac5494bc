//! The journal: segments of records, read forward, appended at the end. The commit point of every
//! change, and the history.
//!
//! A segment is named after its first record. A new one begins only when everything in the one
//! before is placed and synced, so recovery never looks further back than the last segment.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::Arc;

use super::mark::{Mark, MarkFile, Place};
use super::record::{Decoded, Entry, HEAD_BYTES, Record, What, decode, encode, resync};
use crate::backend::Version;
use crate::locator::Locator;
use crate::vfs::{Open, Vfs, VfsFile};

pub(super) const FOLDER: &str = ".journal";

/// The open journal of one process. Valid only while the store's lock is held, and brought up to
/// date by [`Journal::catch_up`] first.
pub(super) struct Journal {
    state: Arc<dyn Vfs>,
    /// The number of the last segment's first record, which is its name.
    pub(super) segment: u64,
    pub(super) file: Arc<dyn VfsFile>,
    /// Where the next record goes.
    pub(super) end: u64,
    /// Up to here the segment is filled with NUL bytes ahead of time, so that a sync has no new
    /// size to write.
    reserved: u64,
    pub(super) next_seq: u64,
    pub(super) mark_file: MarkFile,
    pub(super) mark: Mark,
    /// The last version of each file that this segment holds in full.
    pub(super) known: HashMap<Locator, Version>,
    /// Records that are not placed yet, and where each ends.
    pub(super) pending: VecDeque<(u64, Arc<Record>)>,
    /// What was changed since the last checkpoint, and where each record ends.
    pub(super) unsynced: VecDeque<(u64, Vec<Entry>)>,
    /// Changes that could not be placed and did not happen.
    pub(super) aborted: HashSet<u64>,
    /// Idempotency keys and the change each belongs to, once someone asked.
    pub(super) keys: Option<HashMap<String, u64>>,
    /// Whether damaged bytes were met at the end: what a crash left of a record.
    torn: bool,
}

pub(super) fn segment_name(first_seq: u64) -> String {
    format!("{FOLDER}/{first_seq:016}.log")
}

/// The first numbers of all segments, oldest first; none where there is no journal.
pub(super) fn segments(state: &dyn Vfs) -> io::Result<Vec<u64>> {
    let names = match state.names(FOLDER, usize::MAX) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found: Vec<u64> =
        names.iter().filter_map(|name| name.strip_suffix(".log")?.parse().ok()).collect();
    found.sort_unstable();
    Ok(found)
}

/// Every whole record of a segment from an offset on, each with where it ends, the end of the last
/// one, and the spans that are damaged.
pub(super) struct Scan {
    pub(super) records: Vec<(u64, Arc<Record>)>,
    pub(super) end: u64,
    pub(super) damaged: Vec<std::ops::Range<u64>>,
}

/// Reads a segment. Damage with whole records behind it is stepped over; damage at the very end
/// is what a crash left of a record that was never answered.
pub(super) fn scan(file: &dyn VfsFile, from: u64, drop_bad: bool) -> io::Result<Scan> {
    let size = file.stat()?.size;
    let bytes = file.read_at(from, usize::try_from(size.saturating_sub(from)).map_err(io::Error::other)?)?;
    let mut found = Scan { records: Vec::new(), end: from, damaged: Vec::new() };
    let mut at = 0;
    loop {
        match decode(&bytes[at..]) {
            Decoded::Record(record, len) => {
                at += len;
                found.end = from + at as u64;
                found.records.push((found.end, Arc::from(record)));
            }
            Decoded::End => return Ok(found),
            Decoded::Damaged => match resync(&bytes[at..]) {
                Some(skip) if !drop_bad => {
                    found.damaged.push(from + at as u64..from + (at + skip) as u64);
                    at += skip;
                }
                _ => {
                    found.damaged.push(from + at as u64..from + bytes.len() as u64);
                    return Ok(found);
                }
            },
        }
    }
}

impl Journal {
    /// Opens the journal; `None` where there is none yet.
    pub(super) fn open(state: &Arc<dyn Vfs>, drop_bad: bool) -> io::Result<Option<Self>> {
        let Some(segment) = segments(&**state)?.last().copied() else { return Ok(None) };
        let mark_file = match MarkFile::open(&**state, Open::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                MarkFile::open(&**state, Open::CreateNew)?
            }
            other => other?,
        };
        let mark = match mark_file.read()? {
            Some(mark) if mark.checkpoint.segment == segment => mark,
            other => {
                // Its maker died before the mark told of the segment: its name may not be durable.
                state.sync_dir(FOLDER)?;
                state.sync_dir("")?;
                let start = Place { segment, offset: 0 };
                Mark { boot: other.unwrap_or_default().boot, checkpoint: start, placed: start }
            }
        };
        let file: Arc<dyn VfsFile> = state.open(&segment_name(segment), Open::Write)?.into();
        let mut journal = Journal {
            state: Arc::clone(state),
            segment,
            file,
            end: 0,
            reserved: 0,
            next_seq: segment,
            mark_file,
            mark,
            known: HashMap::new(),
            pending: VecDeque::new(),
            unsynced: VecDeque::new(),
            aborted: HashSet::new(),
            keys: None,
            torn: false,
        };
        journal.load(drop_bad)?;
        Ok(Some(journal))
    }

    /// Starts a journal in a store that has none, durably.
    pub(super) fn create(state: &Arc<dyn Vfs>, boot: String) -> io::Result<Self> {
        match state.mkdir(FOLDER) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        state.open(&segment_name(1), Open::CreateNew)?.sync_data()?;
        state.sync_dir(FOLDER)?;
        state.sync_dir("")?;
        // Last, so that a mark tells of a segment only when its name is durable.
        let place = Place { segment: 1, offset: 0 };
        let mark_file = MarkFile::open(&**state, Open::WriteOrCreate)?;
        mark_file.write(&Mark { boot, checkpoint: place, placed: place })?;
        mark_file.sync()?;
        Ok(Journal::open(state, false)?.expect("the segment was just made"))
    }

    /// Reads the whole segment: what it knows, what is not placed or synced yet.
    fn load(&mut self, drop_bad: bool) -> io::Result<()> {
        let found = scan(&*self.file, 0, drop_bad)?;
        for (end, record) in found.records {
            self.learn(end, record);
        }
        self.end = found.end;
        self.reserved = self.file.stat()?.size;
        self.torn = found.damaged.last().is_some_and(|span| span.start >= self.end);
        Ok(())
    }

    /// Takes note of a record that stands in the journal.
    fn learn(&mut self, end: u64, record: Arc<Record>) {
        let header = &record.header;
        self.next_seq = self.next_seq.max(header.seq + 1);
        for entry in &header.edits {
            self.know(entry);
        }
        if let (Some(keys), Some(key)) = (&mut self.keys, &header.note.key) {
            keys.insert(key.clone(), header.seq);
        }
        if let What::Abort(seq) = header.what {
            self.aborted.insert(seq);
            self.pending.retain(|(_, pending)| pending.header.seq != seq);
            if let Some(keys) = &mut self.keys {
                keys.retain(|_, known| *known != seq);
            }
        }
        if header.what == What::Change && end > self.mark.checkpoint.offset {
            self.unsynced.push_back((end, header.edits.clone()));
            if end > self.mark.placed.offset {
                self.pending.push_back((end, record));
            }
        }
    }

    fn know(&mut self, entry: &Entry) {
        match entry {
            Entry::Write { at, new, .. } => {
                self.known.insert(at.clone(), new.clone());
            }
            Entry::Append { at, .. } | Entry::Delete { at, .. } => {
                self.known.remove(at);
            }
            Entry::Rename { at, to, folder: false } => {
                if let Some(version) = self.known.remove(at) {
                    self.known.insert(to.clone(), version);
                }
            }
            Entry::Rename { at, folder: true, .. } => self.known.retain(|known, _| !known.is_within(at)),
        }
    }

    /// Learns what other processes have done since. To be called with the lock in hand.
    pub(super) fn catch_up(&mut self) -> io::Result<()> {
        if let Some(mark) = self.mark_file.read()? {
            if mark.placed.segment != self.segment {
                // Its keys go too: those of a segment that we missed would be missing.
                *self = Journal::open(&self.state, false)?.ok_or(io::ErrorKind::NotFound)?;
                return Ok(());
            }
            self.mark = mark;
            let (placed, synced) = (self.mark.placed.offset, self.mark.checkpoint.offset);
            self.pending.retain(|(end, _)| *end > placed);
            self.unsynced.retain(|(end, _)| *end > synced);
        }
        let head = self.file.read_at(self.end, HEAD_BYTES)?;
        if head.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let found = scan(&*self.file, self.end, false)?;
        for (end, record) in found.records {
            self.learn(end, record);
        }
        self.end = found.end;
        self.reserved = self.reserved.max(self.end);
        self.torn = !found.damaged.is_empty();
        Ok(())
    }

    /// Appends a record and gives back where it ends. Not synced.
    pub(super) fn append(&mut self, record: &Arc<Record>, ahead: u64) -> io::Result<u64> {
        let frame = encode(record);
        let end = self.end + frame.len() as u64;
        self.write_frame(&frame, end, ahead).inspect_err(|_| {
            // What half a record leaves behind must not look like one. If this fails too, the
            // bytes are damage at the end, which every reader ignores.
            self.torn = self.file.set_len(self.end).is_err();
            self.reserved = self.end;
        })?;
        self.end = end;
        self.learn(end, Arc::clone(record));
        Ok(end)
    }

    fn write_frame(&mut self, frame: &[u8], end: u64, ahead: u64) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.end)?;
            self.reserved = self.end;
            self.torn = false;
        }
        self.file.write_at(self.end, frame)?;
        self.reserve(end, ahead)
    }

    fn reserve(&mut self, end: u64, ahead: u64) -> io::Result<()> {
        if end > self.reserved && ahead > 0 {
            self.file.write_at(end, &vec![0; usize::try_from(ahead).map_err(io::Error::other)?])?;
            self.reserved = end + ahead;
        }
        Ok(())
    }

    /// Whether the segment is still the file of that name: someone may have deleted the journal.
    pub(super) fn is_current(&self) -> bool {
        let named = self.state.stat(&segment_name(self.segment)).map(|stat| stat.inode).ok();
        named.is_some() && named == self.file.stat().map(|stat| stat.inode).ok()
    }

    /// Where the journal ends.
    pub(super) fn here(&self) -> Place {
        Place { segment: self.segment, offset: self.end }
    }

    /// Begins a new segment, when everything in this one is placed and synced.
    pub(super) fn rotate(&mut self) -> io::Result<()> {
        let place = Place { segment: self.next_seq, offset: 0 };
        let name = segment_name(place.segment);
        let file = self.state.open(&name, Open::CreateNew)?;
        file.sync_data()?;
        self.state.sync_dir(FOLDER)?;
        self.mark = Mark { checkpoint: place, placed: place, ..self.mark.clone() };
        self.mark_file.write(&self.mark)?;
        self.mark_file.sync()?;
        self.segment = place.segment;
        self.file = file.into();
        self.end = 0;
        self.reserved = 0;
        self.known.clear();
        Ok(())
    }
}
