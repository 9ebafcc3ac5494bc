//! The journal: segments of records, read forward, appended at the end. The commit point of every
//! change, and the history.
//!
//! A segment is named after its first record. A new one begins only when everything in the one
//! before is placed and synced, so recovery never looks further back than the last segment.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::mark::{Mark, MarkFile};
use super::pending::Pending;
use super::prepare::Prepared;
use super::record::{Record, What, encode};
use super::scan::{ends_at, frames, scan, scan_after};
use super::temps::Temps;
use crate::backend::Version;
use crate::clock::Timestamp;
use crate::locator::Locator;
use crate::vfs::{Open, Vfs, VfsFile};

/// The folder of the journal.
pub const FOLDER: &str = ".journal";

/// The open journal of one process. Valid only while the store's lock is held, and brought up to
/// date by [`Journal::catch_up`] first.
pub(super) struct Journal {
    state: Arc<dyn Vfs>,
    pub(super) file: Arc<dyn VfsFile>,
    pub(super) mark_file: Arc<MarkFile>,
    pub(super) mark: Mark,
    /// What its temporary files are called.
    pub(super) temps: Temps,
    /// Up to here the segment is filled with NUL bytes ahead of time, so that a sync has no new
    /// size to write.
    reserved: u64,
    /// Versions that this process has written to this segment in full, the last of each file.
    pub(super) known: HashMap<Locator, Version>,
    /// Records that are not placed yet.
    pub(super) pending: VecDeque<Pending>,
    /// The pending records of this process, and what was prepared for them.
    pub(super) own: HashMap<u64, Prepared>,
    /// Temporary names that are of no use any more, to be removed when the lock is free again.
    pub(super) spent: Vec<String>,
    /// When the journal was last looked for by its name, in milliseconds.
    looked_ms: i64,
    /// Idempotency keys, the change each belongs to, and the segment that was the last when they were read.
    pub(super) keys: HashMap<String, u64>,
    pub(super) keys_from: u64,
    /// Whether a record that was taken back may still be in the file, because cutting it off failed.
    pub(super) doubtful: bool,
}

/// A record that is in the journal, but that the mark does not tell other processes of yet.
#[must_use]
pub(super) struct Begun {
    record: Arc<Record>,
    before: Mark,
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

/// Room for the record that takes a change back, which must fit on a full disk.
const ABORT_BYTES_MAX: u64 = 512;

/// How long the segment is assumed to keep its own name, as long as it has any.
const LOOK_AGAIN_MS: i64 = 1_000;

/// Whether a mark matches the segment on the disk and where that ends. It does not in a copied store, where a
/// mark or segment was restored, or after a process died before it could tell what it had appended.
pub(super) fn fits(state: &dyn Vfs, mark: &Mark) -> io::Result<bool> {
    match state.open(&segment_name(mark.segment), Open::Read) {
        Ok(file) => Ok(file.inode()? == mark.inode && ends_at(&*file, mark.end)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Journal {
    /// Opens the journal as its mark says; `None` where there is none yet, or its mark is not to be
    /// trusted.
    pub(super) fn open(state: &Arc<dyn Vfs>) -> io::Result<Option<Self>> {
        let mark_file = match MarkFile::open(&**state, Open::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let Some(mark) = mark_file.read()? else { return Ok(None) };
        let Some(temps) = Temps::read(&**state)? else { return Ok(None) };
        match Journal::at(state, mark_file, temps, mark) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(mut journal) => Ok(journal.catch_up()?.then_some(journal)),
        }
    }

    fn at(state: &Arc<dyn Vfs>, mark_file: MarkFile, temps: Temps, mark: Mark) -> io::Result<Self> {
        let file: Arc<dyn VfsFile> = state.open(&segment_name(mark.segment), Open::Write)?.into();
        Ok(Journal {
            state: Arc::clone(state),
            reserved: file.stat()?.size,
            mark: Mark { inode: file.inode()?, ..mark },
            file,
            mark_file: Arc::new(mark_file),
            temps,
            known: HashMap::new(),
            pending: VecDeque::new(),
            own: HashMap::new(),
            spent: Vec::new(),
            looked_ms: i64::MIN,
            keys: HashMap::new(),
            keys_from: 0,
            doubtful: false,
        })
    }

    /// Opens the journal for recovery by reading its last segment whole: if the machine has stopped,
    /// everything after the last checkpoint counts as not placed. Starts one where there is none.
    pub(super) fn rebuild(state: &Arc<dyn Vfs>, boot: &str, drop_bad: bool) -> io::Result<Self> {
        let all = segments(&**state)?;
        let Some(newest) = all.last().copied() else { return Journal::create(state) };
        let mark_file = MarkFile::open(&**state, Open::WriteOrCreate)?;
        let temps = Temps::read_or_make(&**state)?;
        // Whoever made these names may have died before they were durable.
        state.sync_dir(FOLDER)?;
        state.sync_dir("")?;
        // A process that died while it began a segment may have left it empty, or the mark not durable. Once
        // a segment holds a record, everything before it is placed and synced.
        let filled = |segment: &u64| state.stat(&segment_name(*segment)).is_ok_and(|stat| stat.size > 0);
        let filled = all.iter().copied().rfind(filled);
        let old = mark_file.read()?.filter(|mark| all.contains(&mark.segment));
        let old = old.filter(|mark| filled.is_none_or(|filled| mark.segment >= filled));
        let segment = old.as_ref().map_or(filled.unwrap_or(newest), |mark| mark.segment);
        let old = old.unwrap_or_default();
        let mut journal = Journal::at(state, mark_file, temps, Mark { segment, ..Mark::default() })?;
        let found = scan_after(segment.checked_sub(1), &*journal.file, 0..u64::MAX, drop_bad)?;
        if found.damaged.last().is_some_and(|damaged| damaged.start >= found.end) {
            // What a crash left of a record that was never answered.
            journal.file.set_len(found.end)?;
            journal.reserved = found.end;
        }
        // Everything before a record that moves things was made durable, so that much is sure even without
        // the mark.
        let starts = std::iter::once(0).chain(found.records.iter().map(|(end, _)| *end));
        let fences = found.records.iter().zip(starts).filter(|((_, record), _)| record.moves());
        let fence = fences.last().map_or(0, |(_, start)| start);
        let checkpoint = old.checkpoint.max(fence).min(found.end);
        let last = found.records.iter().map(|(_, record)| record.header.seq).max();
        // In the same run of the machine only a process can have died, so what was placed is still there, or
        // someone has changed it. Unless the disk was gone meanwhile: then the mark lags behind the journal
        // by more than the one record that a dead process may not have told of.
        let untold = found.records.iter().filter(|(end, _)| *end > old.end).count();
        let is_same = !boot.is_empty() && old.boot == boot && old.inode == journal.mark.inode;
        let is_sure = is_same && untold <= 1;
        let placed = if is_sure { old.placed.clamp(checkpoint, found.end) } else { checkpoint };
        journal.mark = Mark {
            checkpoint,
            placed,
            end: found.end,
            next_seq: last
                .map_or(Some(segment), |seq| seq.checked_add(1))
                .ok_or(io::ErrorKind::InvalidData)?,
            aborted: old.aborted,
            ..journal.mark
        };
        journal.note_records(found.records);
        Ok(journal)
    }

    /// Starts a journal in a store that has none, durably.
    fn create(state: &Arc<dyn Vfs>) -> io::Result<Self> {
        match state.mkdir(FOLDER) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let mark_file = MarkFile::open(&**state, Open::WriteOrCreate)?;
        let temps = Temps::read_or_make(&**state)?;
        state.open(&segment_name(1), Open::CreateNew)?.sync_data()?;
        state.sync_dir(FOLDER)?;
        state.sync_dir("")?;
        Journal::at(state, mark_file, temps, Mark { segment: 1, next_seq: 1, ..Mark::default() })
    }

    /// Notes which of the records read are not placed yet and were not aborted.
    fn note_records(&mut self, records: Vec<(u64, Arc<Record>)>) {
        for (end, record) in records {
            match record.header.what {
                What::Abort(seq) => {
                    self.mark.aborted = seq;
                    self.pending.retain(|pending| pending.seq != seq);
                }
                What::Change if end > self.mark.placed => self.pending.push_back(Pending::read(end, record)),
                _ => {}
            }
        }
    }

    /// Learns what other processes have done since; the caller holds the lock. Returns `false` if the journal
    /// was replaced or does not match its mark, so that it must be opened again or rebuilt.
    pub(super) fn catch_up(&mut self) -> io::Result<bool> {
        let Some(mark) = self.mark_file.read()? else { return Ok(false) };
        let which = |mark: &Mark| (mark.segment, mark.inode, mark.boot.clone());
        if which(&mark) != which(&self.mark) || !ends_at(&*self.file, mark.end)? {
            return Ok(false);
        }
        if mark.aborted != self.mark.aborted {
            // What is known may come from a change that another process took back.
            self.known.clear();
        }
        self.mark = mark;
        let Mark { placed, end, .. } = self.mark;
        self.pending.retain(|pending| pending.end > placed && pending.end <= end);
        let first = self.pending.front().map_or(u64::MAX, |pending| pending.seq);
        self.own.retain(|seq, _| *seq >= first);
        let known_upto = self.pending.back().map_or(placed, |pending| pending.end);
        if known_upto < self.mark.end {
            self.note_told(known_upto)?;
        }
        Ok(true)
    }

    /// Notes what others appended without decoding it: mostly they place it before it is needed here.
    fn note_told(&mut self, from: u64) -> io::Result<()> {
        let end = self.mark.end;
        let Some(told) = frames(&*self.file, from..end)? else {
            let found = scan(&*self.file, from..end, false)?;
            self.note_records(found.records.into_iter().filter(|(at, _)| *at <= end).collect());
            return Ok(());
        };
        let first = self.mark.next_seq.saturating_sub(told.len() as u64);
        for ((end, frame), seq) in told.into_iter().zip(first..) {
            let pending = Pending::told(end, seq, frame);
            if pending.may_be_special() {
                self.note_records(pending.record().map(|record| (end, record)).into_iter().collect());
            } else {
                self.pending.push_back(pending);
            }
        }
        Ok(())
    }

    /// Appends a record without syncing it, and reserves up to `ahead` bytes after it if the disk has them.
    pub(super) fn append(&mut self, record: &Arc<Record>, ahead: u64) -> io::Result<()> {
        let begun = self.begin(record, ahead)?;
        self.tell(begun)
    }

    /// As [`Journal::append`], but the mark does not tell of it yet. The disk may already begin to write it.
    pub(super) fn begin(&mut self, record: &Arc<Record>, ahead: u64) -> io::Result<Begun> {
        let frame = encode(record);
        let start = self.mark.end;
        let end = start + frame.iter().map(|piece| piece.len() as u64).sum::<u64>();
        let begun = Begun { record: Arc::clone(record), before: self.mark.clone() };
        self.mark.end = end;
        self.mark.next_seq = record.header.seq + 1;
        if let What::Abort(seq) = record.header.what {
            self.mark.aborted = seq;
        }
        if let Err(error) = self.write_frame(&frame, start, ahead) {
            self.forget(begun);
            return Err(error);
        }
        // If others are waiting, whoever has the turn syncs this record along with theirs.
        if self.pending.is_empty() {
            self.file.start_sync(start, end - start);
        }
        Ok(begun)
    }

    /// Tells all processes of a record, by way of the mark.
    pub(super) fn tell(&mut self, begun: Begun) -> io::Result<()> {
        if let Err(error) = self.mark_file.write(&self.mark) {
            self.forget(begun);
            return Err(error);
        }
        if begun.record.header.what == What::Change {
            self.pending.push_back(Pending::read(self.mark.end, begun.record));
        }
        Ok(())
    }

    /// Cuts off a record that nobody was told of: it may be whole in the file, and must not come to life
    /// after a power cut.
    pub(super) fn forget(&mut self, begun: Begun) {
        let start = begun.before.end;
        self.doubtful = self.file.set_len(start).and_then(|()| self.file.sync_data()).is_err();
        self.reserved = start;
        self.mark = begun.before;
    }

    fn write_frame(&mut self, frame: &[Bytes], start: u64, ahead: u64) -> io::Result<()> {
        let mut end = start;
        for piece in frame {
            self.file.write_at(end, piece)?;
            end += piece.len() as u64;
        }
        let least = ahead.min(ABORT_BYTES_MAX);
        if end + least > self.reserved && self.fill(end, ahead).is_err() {
            // On a nearly full disk the record may fit although the reserve does not.
            self.file.set_len(end)?;
            self.fill(end, least)?;
        }
        Ok(())
    }

    /// Fills the next `ahead` bytes with NUL.
    fn fill(&mut self, from: u64, ahead: u64) -> io::Result<()> {
        self.file.write_at(from, &vec![0; usize::try_from(ahead).map_err(io::Error::other)?])?;
        self.reserved = from + ahead;
        Ok(())
    }

    /// Whether the segment is still the file of that name: someone may have deleted the journal.
    pub(super) fn is_current(&mut self, now: Timestamp) -> bool {
        if !self.file.links().is_ok_and(|links| links > 0) {
            return false;
        }
        // It may also have been moved away, which is checked less often.
        let now_ms = now.as_millisecond();
        if (self.looked_ms..self.looked_ms.saturating_add(LOOK_AGAIN_MS)).contains(&now_ms) {
            return true;
        }
        self.looked_ms = now_ms;
        let named = self.state.stat(&segment_name(self.mark.segment)).map(|stat| stat.inode).ok();
        named.is_some() && named == self.file.inode().ok()
    }

    /// Begins a new segment, when everything in this one is placed and synced.
    pub(super) fn rotate(&mut self) -> io::Result<()> {
        let segment = self.mark.next_seq;
        let file = self.state.open(&segment_name(segment), Open::WriteOrCreate)?;
        file.sync_data()?;
        self.state.sync_dir(FOLDER)?;
        let inode = file.inode()?;
        self.mark = Mark { segment, inode, checkpoint: 0, placed: 0, end: 0, ..self.mark.clone() };
        self.mark_file.write(&self.mark)?;
        self.mark_file.sync()?;
        self.file = file.into();
        self.reserved = 0;
        self.known.clear();
        self.pending.clear();
        self.own.clear();
        Ok(())
    }
}
