//! The journal read backwards: what happened, and what a file held at any moment.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

use super::Core;
use super::journal::{segment_name, segments};
use super::mark::MarkFile;
use super::record::{Entry, Header, Record, What};
use super::scan::{scan, scan_headers};
use super::search::{Search, State};
use crate::backend::{ChangeId, HistoryQuery, Moment, Past, Version, not_in_history};
use crate::backends::trail::Trail;
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::vfs::Open;

/// How many segments are remembered, and how many edits of each.
const REMEMBERED_SEGMENTS: usize = 3;
const REMEMBERED_EDITS_MAX: usize = 50_000;

/// The largest record, in bytes, that is remembered after it was read.
const REMEMBERED_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// What was read of the history.
#[derive(Default)]
pub(super) struct Remembered {
    /// The headers of the newest segment and of those read last. As segments only grow, the next reader needs
    /// to read only what was added.
    headers: VecDeque<Headers>,
    /// The record that was read last, because undoing a change of many files asks for it once per file.
    record: Option<(Arc<Located>, Arc<Record>)>,
}

/// A record whose bytes are not read yet.
struct Located {
    segment: u64,
    /// The bytes from the end of the record before it to its own end, with any damage in between.
    span: Range<u64>,
    header: Arc<Header>,
}

#[derive(Default)]
struct Headers {
    segment: u64,
    inode: u64,
    /// How far the segment was read, and where its last record ends.
    upto: u64,
    end: u64,
    headers: Vec<Arc<Located>>,
}

impl Core {
    /// Returns where the mark says that a segment's records end. There may be one more record, of a process
    /// that is about to tell of it or died first; whoever opens the store next sees to that one.
    fn end_of(&self, segment: u64, inode: u64) -> Option<u64> {
        let mark = MarkFile::open(&*self.state, Open::Read).and_then(|file| file.read()).ok().flatten()?;
        ((mark.segment, mark.inode) == (segment, inode) && mark.boot == self.boot).then_some(mark.end)
    }

    /// All records of a segment, oldest first.
    pub(super) fn segment_records(&self, segment: u64) -> Result<Vec<Arc<Record>>> {
        let read = || {
            let file = self.state.open(&segment_name(segment), Open::Read)?;
            let end = self.end_of(segment, file.inode()?).unwrap_or(u64::MAX);
            scan(&*file, 0..end, false)
        };
        let found = read().map_err(|error| Error::from_io(error, "the journal"))?;
        Ok(found.records.into_iter().map(|(_, record)| record).collect())
    }

    /// The headers of all records of a segment, oldest first.
    pub(super) fn segment_headers(&self, segment: u64) -> io::Result<Vec<Arc<Header>>> {
        Ok(self.located(segment)?.iter().map(|located| Arc::clone(&located.header)).collect())
    }

    /// Locates all records of a segment, oldest first, so that each can be read when it is needed.
    fn located(&self, segment: u64) -> io::Result<Vec<Arc<Located>>> {
        let file = self.state.open(&segment_name(segment), Open::Read)?;
        let stat = file.stat()?;
        let upto = self.end_of(segment, stat.inode).unwrap_or(stat.size);
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let known = remembered.headers.iter().position(|known| known.segment == segment);
        let known = known.and_then(|at| remembered.headers.remove(at));
        let mut known = match known.filter(|known| known.inode == stat.inode && known.upto <= upto) {
            Some(known) => known,
            None => Headers { segment, inode: stat.inode, ..Headers::default() },
        };
        if known.upto < upto {
            let (found, mut start) = (scan_headers(&*file, known.end..upto)?, known.end);
            for (end, header) in found.records {
                known.headers.push(Arc::new(Located { segment, span: start..end, header }));
                start = end;
            }
            (known.upto, known.end) = (upto, found.end);
        }
        let headers = known.headers.clone();
        if headers.iter().map(|located| located.header.edits.len()).sum::<usize>() <= REMEMBERED_EDITS_MAX {
            let held = &mut remembered.headers;
            held.push_front(known);
            // Keeps the newest segment, which is asked for most, and of the others those read last.
            let newest = held.iter().map(|known| known.segment).max();
            if held.len() > REMEMBERED_SEGMENTS {
                let oldest = held.iter().rposition(|known| Some(known.segment) != newest);
                oldest.and_then(|oldest| held.remove(oldest));
            }
        }
        Ok(headers)
    }

    /// Forgets the record that was read last: it may be large, or hold what is redacted now.
    pub(super) fn forget_record(&self) {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).record = None;
    }

    fn read_located(&self, located: &Arc<Located>) -> Result<Option<Arc<Record>>> {
        let remembered = || self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, record)) = &remembered().record
            && Arc::ptr_eq(known, located)
        {
            return Ok(Some(Arc::clone(record)));
        }
        let file = self.state.open(&segment_name(located.segment), Open::Read);
        let found = file.and_then(|file| scan(&*file, located.span.clone(), false));
        let found = found.map_err(|error| Error::from_io(error, "the journal"))?.records.pop();
        let found = found.map(|(_, record)| record).filter(|record| record.header.seq == located.header.seq);
        let fits = located.span.end - located.span.start <= REMEMBERED_BYTES_MAX;
        remembered().record = found.clone().filter(|_| fits).map(|record| (Arc::clone(located), record));
        Ok(found)
    }

    /// Hands every record that happened to `visit`, newest first, until it says to stop.
    fn backwards(&self, visit: impl FnMut(&Arc<Record>) -> Result<Visit>) -> Result<()> {
        self.walk_back(u64::MAX, |segment| self.segment_records(segment), |record| &record.header, visit)
    }

    /// As [`Core::backwards`], starting at record `seq` and reading one record at a time: for callers that do
    /// not go far.
    fn backwards_from(&self, seq: u64, mut visit: impl FnMut(&Arc<Record>) -> Result<Visit>) -> Result<()> {
        let read = |segment| self.located(segment).map_err(|error| Error::from_io(error, "the journal"));
        self.walk_back(
            seq,
            read,
            |located| &located.header,
            |located| {
                if located.header.seq > seq {
                    return Ok(Visit::On);
                }
                self.read_located(located)?.map_or(Ok(Visit::On), |record| visit(&record))
            },
        )
    }

    /// As [`Core::backwards`], without the bytes.
    fn headers_backwards(&self, visit: impl FnMut(&Arc<Header>) -> Result<Visit>) -> Result<()> {
        self.headers_from(u64::MAX, visit)
    }

    /// As [`Core::backwards_from`], without the bytes.
    fn headers_from(&self, seq: u64, visit: impl FnMut(&Arc<Header>) -> Result<Visit>) -> Result<()> {
        let read =
            |segment| self.segment_headers(segment).map_err(|error| Error::from_io(error, "the journal"));
        self.walk_back(seq, read, |header| header, visit)
    }

    fn walk_back<T>(
        &self,
        from: u64,
        read: impl Fn(u64) -> Result<Vec<Arc<T>>>,
        header: impl Fn(&T) -> &Header,
        mut visit: impl FnMut(&Arc<T>) -> Result<Visit>,
    ) -> Result<()> {
        let mut aborted = Vec::new();
        let all = segments(&*self.state).map_err(|error| Error::from_io(error, "the journal"))?;
        // The abort of a record follows soon after it, perhaps in the next segment.
        let end = (all.partition_point(|first| *first <= from) + 1).min(all.len());
        for segment in all[..end].iter().rev().copied() {
            let items = match read(segment) {
                // It was pruned just now, and so was all before it.
                Err(error) if error.kind() == Kind::NotFound => return Ok(()),
                items => items?,
            };
            for item in items.iter().rev() {
                let header = header(item);
                if let What::Abort(seq) = header.what {
                    aborted.push(seq);
                } else if !aborted.contains(&header.seq) && visit(item)? == Visit::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The header of the record of that number, if it happened.
    pub(super) fn header(&self, seq: u64) -> Result<Option<Arc<Header>>> {
        let mut found = None;
        self.headers_from(seq, |header| {
            if header.seq == seq {
                found = Some(Arc::clone(header));
            }
            Ok(if header.seq <= seq { Visit::Stop } else { Visit::On })
        })?;
        Ok(found)
    }

    /// Whether a record after that number left this version there.
    pub(super) fn was_left(&self, at: &Locator, version: &Version, seq: u64) -> Result<bool> {
        let mut found = false;
        self.headers_backwards(|header| {
            let mut edits = header.edits.iter();
            found |= edits.any(|entry| entry.at() == at && entry.new_version() == Some(version));
            Ok(if found || header.seq <= seq { Visit::Stop } else { Visit::On })
        })?;
        Ok(found)
    }

    pub(super) fn history(&self, query: &HistoryQuery) -> Result<Vec<Past>> {
        let before = query.before.as_ref().map(|change| self.known(change)).transpose()?;
        let mut trail = query.at.as_ref().map(Trail::of);
        let mut found = Vec::new();
        self.headers_backwards(|header| {
            let past = header.past();
            let touched = trail.as_mut().is_none_or(|trail| trail.touched_by(&past.edits));
            if touched && before.is_none_or(|before| header.seq < before) {
                found.push(past);
            }
            Ok(if query.limit > 0 && found.len() >= query.limit { Visit::Stop } else { Visit::On })
        })?;
        Ok(found)
    }

    /// The number of a change that the journal holds.
    fn known(&self, change: &ChangeId) -> Result<u64> {
        let seq = change.as_str().parse().ok();
        let held = seq.map(|seq| self.header(seq)).transpose()?.flatten();
        held.map(|header| header.seq).ok_or_else(|| not_in_history(format!("a change `{change}`")))
    }

    pub(super) fn read_past(&self, at: &Locator, moment: &Moment) -> Result<Option<Vec<u8>>> {
        let (change, inclusive) = match moment {
            Moment::Before(change) => (change, false),
            Moment::After(change) => (change, true),
        };
        let seq = self.known(change)?;
        let mut search = Search::of(at);
        let mut found = None;
        self.backwards_from(seq, |record| {
            let is_asked = record.header.seq == seq;
            let wanted = record.header.seq < seq || (is_asked && inclusive);
            if record.header.what == What::Outside && !(is_asked && inclusive) {
                // What someone wrote into a displaced file was never at its place.
                return Ok(Visit::On);
            }
            if is_asked && !inclusive {
                // What the change itself replaced, if it says so.
                found = search.replaced_by(record);
            } else if wanted {
                found = search.step(record);
            }
            Ok(if found.is_some() { Visit::Stop } else { Visit::On })
        })?;
        match found.filter(|state| search.moved_as(state)) {
            Some(State::Held(base)) => Ok(Some(search.grown(&base, 0))),
            Some(State::Absent) => Ok(None),
            Some(State::Redacted) => Err(redacted(at)),
            Some(State::Unknown) | None => {
                search.forget_before_move();
                let told = self.told_by_later(at, seq, inclusive, &search)?;
                match search.could_be(told.as_deref()) {
                    true => Ok(told),
                    false => Err(too_old(at)),
                }
            }
        }
    }

    /// The change whose append made a file what it was at a moment; `None` if it was written whole.
    pub(super) fn grown_by(&self, at: &Locator, moment: &Moment) -> Result<Option<u64>> {
        let (Moment::Before(change) | Moment::After(change)) = moment;
        let seq = self.known(change)?;
        let last = seq - u64::from(matches!(moment, Moment::Before(_)));
        let mut search = Search::of(at);
        let mut found = None;
        self.backwards_from(last, |record| {
            let told = record.header.what != What::Outside && search.step(record).is_some();
            found = (search.added() > 0).then_some(record.header.seq);
            Ok(if told || found.is_some() { Visit::Stop } else { Visit::On })
        })?;
        Ok(found)
    }

    /// The bytes of a version that was written under a name, in that change or before it.
    fn written(&self, name: &Locator, version: &Version, seq: u64) -> Result<Option<Vec<u8>>> {
        let mut search = Search::for_version(name, version);
        let mut found = None;
        self.backwards_from(seq, |record| {
            found = (record.header.seq <= seq).then(|| search.step(record)).flatten();
            Ok(if found.is_some() { Visit::Stop } else { Visit::On })
        })?;
        Ok(match found {
            Some(State::Held(bytes)) => Some(bytes),
            _ => None,
        })
    }

    /// Reconstructs a state that no earlier record holds in full from what came after it: the first later
    /// record that keeps it, or else the file itself, minus what was appended since.
    fn told_by_later(
        &self,
        at: &Locator,
        seq: u64,
        inclusive: bool,
        search: &Search,
    ) -> Result<Option<Vec<u8>>> {
        let mut later = Vec::new();
        self.backwards(|record| {
            if record.header.seq > seq || (record.header.seq == seq && !inclusive) {
                later.push(Arc::clone(record));
                return Ok(Visit::On);
            }
            Ok(Visit::Stop)
        })?;
        let mut name = at.clone();
        // Only the bytes before the first append have to be found: the appended ones are in the journal.
        let mut size = search.offset;
        let told = |bytes: Vec<u8>, size| search.grown(&cut(bytes, size), 0);
        for record in later.iter().rev() {
            for (index, entry) in record.header.edits.iter().enumerate() {
                match entry {
                    // A folder, which holds no bytes.
                    Entry::Delete { at, old: None, .. } if *at == name => return Ok(None),
                    Entry::Write { at, old: None, .. }
                        if *at == name && record.header.what == What::Change =>
                    {
                        return Ok(None);
                    }
                    Entry::Append { at, created: true, .. } if *at == name => return Ok(None),
                    Entry::Write { at, old: Some(old), .. } | Entry::Delete { at, old: Some(old), .. }
                        if *at == name && record.header.what == What::Change =>
                    {
                        let kept = match record.before(index) {
                            Some(bytes) => Some(bytes.to_vec()),
                            None => self.written(&name, old, record.header.seq)?,
                        };
                        return kept.map(|bytes| Some(told(bytes, size))).ok_or_else(|| too_old(&name));
                    }
                    Entry::Append { at, offset, .. } if *at == name => size = Some(size.unwrap_or(*offset)),
                    // Before something was moved here, nothing was.
                    Entry::Rename { to, .. } if name.is_within(to) => return Ok(None),
                    Entry::Rename { at, to, .. } => name = name.rebased(at, to).unwrap_or(name),
                    _ => {}
                }
            }
        }
        match self.read_file(&name) {
            Ok(bytes) if size.is_none_or(|size| size <= bytes.len() as u64) => Ok(Some(told(bytes, size))),
            Ok(_) => Err(too_old(&name)),
            Err(error) if error.kind() == Kind::NotFound || error.code_name() == Some(code::IS_DIRECTORY) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn cut(mut bytes: Vec<u8>, size: Option<u64>) -> Vec<u8> {
    if let Some(size) = size.and_then(|size| usize::try_from(size).ok()) {
        bytes.truncate(size);
    }
    bytes
}

fn redacted(at: &Locator) -> Error {
    Error::new(Kind::NotFound, format!("what `{at}` was at that moment has been redacted"))
        .code(code::REDACTED)
        .hint("it cannot be brought back")
}

fn too_old(at: &Locator) -> Error {
    not_in_history(format!("what `{at}` was at that moment"))
}

#[derive(PartialEq, Eq)]
enum Visit {
    On,
    Stop,
}
