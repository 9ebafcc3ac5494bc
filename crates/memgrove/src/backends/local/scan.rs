//! Reading a segment of the journal: its records or their headers, and what is damaged in between.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem;

use super::record::{Decoded, HEAD_BYTES, Header, MAGIC, Record, decode, decode_header, sure_len, told_len};
use crate::vfs::VfsFile;

/// How much of a segment is read at once where only headers are wanted.
const WINDOW_BYTES: u64 = 1024 * 1024;
/// How many times over damaged bytes are hashed in search of a record, at most: someone may have filled them
/// with what looks like the beginnings of many.
const HASHED_TIMES_MAX: usize = 16;
/// No record takes fewer bytes.
const RECORD_BYTES_MIN: usize = HEAD_BYTES + 2;
/// No store has made so many changes.
const NUMBER_MAX: u64 = u64::MAX / 2;

/// What was found in a part of a segment: each whole record, or its header, with its end; the end of the last
/// one; and the damaged spans.
pub(super) struct Scan<T> {
    pub(super) records: Vec<(u64, Arc<T>)>,
    pub(super) end: u64,
    pub(super) damaged: Vec<Range<u64>>,
}

/// Splits a part of a segment into records by the lengths in their heads, without decoding them. Returns
/// `None` if the records do not fill that part exactly.
pub(super) fn frames(file: &dyn VfsFile, within: Range<u64>) -> io::Result<Option<Vec<(u64, Bytes)>>> {
    let mut rest = Bytes::from(read_span(file, within.clone())?);
    let mut at = within.start;
    let mut found = Vec::new();
    while let Some(len) = told_len(&rest).filter(|len| *len <= rest.len()) {
        at += len as u64;
        found.push((at, rest.split_to(len)));
    }
    Ok((at == within.end).then_some(found))
}

/// Reads a part of a segment. Damage with whole records behind it is stepped over; damage at the very end
/// is what a crash left of a record that was never answered.
pub(super) fn scan(file: &dyn VfsFile, within: Range<u64>, drop_bad: bool) -> io::Result<Scan<Record>> {
    scan_after(None, file, within, drop_bad)
}

/// As [`scan`], behind the record with the number `last`.
pub(super) fn scan_after(
    mut last: Option<u64>,
    file: &dyn VfsFile,
    within: Range<u64>,
    drop_bad: bool,
) -> io::Result<Scan<Record>> {
    let from = within.start;
    let size = file.stat()?.size.min(within.end);
    let bytes = Bytes::from(read_span(file, from..size)?);
    let mut found = Scan { records: Vec::new(), end: from, damaged: Vec::new() };
    let mut at = 0;
    loop {
        match decode(&bytes.slice(at..)) {
            Decoded::Record(record, len) => {
                at += len;
                last = Some(record.header.seq);
                found.end = from + at as u64;
                found.records.push((found.end, Arc::from(record)));
            }
            Decoded::End => return Ok(found),
            Decoded::Damaged => match past_damage(&bytes.slice(at..), last) {
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

/// As [`scan`], for the headers alone: no body is held in memory, however large.
pub(super) fn scan_headers(file: &dyn VfsFile, within: Range<u64>) -> io::Result<Scan<Header>> {
    let size = file.stat()?.size.min(within.end);
    let mut found = Scan { records: Vec::new(), end: within.start, damaged: Vec::new() };
    while found.end < size {
        let at = found.end;
        let window = Bytes::from(read_span(file, at..size.min(at + WINDOW_BYTES))?);
        let mut used = 0;
        while let Decoded::Record(record, len) = decode(&window.slice(used..)) {
            used += len;
            found.end = at + used as u64;
            found.records.push((found.end, Arc::new(record.header)));
        }
        if used > 0 {
            continue;
        }
        let read = |span: Range<u64>| read_span(file, at + span.start..at + span.end);
        if let Some((header, len)) = decode_header(&window, size - at, read)? {
            found.end = at + len;
            found.records.push((found.end, Arc::new(header)));
            continue;
        }
        let last = found.records.last().map(|(_, header)| header.seq);
        let rest = scan_after(last, file, at..size, false)?;
        let headers = rest.records.into_iter().map(|(end, record)| (end, Arc::new(record.header.clone())));
        found.records.extend(headers);
        return Ok(Scan { end: rest.end, damaged: rest.damaged, ..found });
    }
    Ok(found)
}

/// How many damaged bytes stand before the next record, behind the record with the number `last`; `None` if none
/// follows. What a record holds is never taken for records: content may be anything, also a journal.
pub(super) fn past_damage(bytes: &Bytes, last: Option<u64>) -> Option<usize> {
    let mut at = 0;
    while let Some(len) = damaged_len(bytes, at, last) {
        // Of one that is longer than what is there, nobody has written the end yet.
        at = at.checked_add(len).filter(|end| *end < bytes.len())?;
        match decode(&bytes.slice(at..)) {
            Decoded::Record(..) => return Some(at),
            Decoded::End => return None,
            Decoded::Damaged => {}
        }
    }
    search(bytes, at, last)
}

/// How many bytes a damaged record takes, if that is sure: by its header, or because another begins where its
/// head says.
fn damaged_len(bytes: &[u8], at: usize, last: Option<u64>) -> Option<usize> {
    let rest = &bytes[at..];
    let is_followed = |len: &usize| {
        let next = rest.get(*len..).and_then(sure_len);
        next.is_some_and(|(seq, _)| may_follow(seq, last, at + len))
    };
    sure_len(rest).map(|(_, len)| len).or_else(|| told_len(rest).filter(is_followed))
}

/// Where behind `from` a record begins that may follow the one with the number `last`.
fn search(bytes: &Bytes, from: usize, last: Option<u64>) -> Option<usize> {
    let mut hashed = 0;
    let first = from + 1;
    memmem::find_iter(bytes.get(first..)?, MAGIC).map(|found| first + found).find(|start| {
        let told = sure_len(&bytes[*start..]);
        let fits = |(seq, len): &(u64, usize)| may_follow(*seq, last, *start) && *len <= bytes.len() - start;
        let Some((_, len)) = told.filter(fits) else { return false };
        hashed += len;
        hashed <= bytes.len().saturating_mul(HASHED_TIMES_MAX)
            && matches!(decode(&bytes.slice(*start..)), Decoded::Record(..))
    })
}

/// Whether a record can have this number, if so many bytes lie between it and the last one.
fn may_follow(seq: u64, last: Option<u64>, gap: usize) -> bool {
    let between = (gap / RECORD_BYTES_MIN) as u64 + 1;
    seq < NUMBER_MAX && last.is_none_or(|last| seq > last && seq - last <= between)
}

fn read_span(file: &dyn VfsFile, span: Range<u64>) -> io::Result<Vec<u8>> {
    file.read_at(span.start, usize::try_from(span.end.saturating_sub(span.start)).map_err(io::Error::other)?)
}

/// Whether the records of a segment end there: the newline of the last one before, and nothing behind.
pub(super) fn ends_at(file: &dyn VfsFile, end: u64) -> io::Result<bool> {
    let start = end.saturating_sub(1);
    let bytes = file.read_at(start, HEAD_BYTES)?;
    let (last, behind) = bytes.split_at(bytes.len().min(usize::from(start < end)));
    let is_after_record = end == 0 || last == b"\n";
    Ok(is_after_record && behind.iter().all(|byte| *byte == 0))
}

#[cfg(test)]
mod tests {
    use super::super::record::{Entry, What, encode};
    use super::*;
    use crate::backend::{Note, Version};
    use crate::clock::Timestamp;
    use crate::locator::Locator;
    use crate::vfs::{Open, SimFs, Vfs};
    use proptest::prelude::*;

    fn header(seq: u64, body: &[u8]) -> Header {
        let (at, len) = (Locator::new("a").unwrap(), body.len() as u64);
        let write = Entry::Write { at, old: None, new: Version::of(body), len, before: None };
        let (time, note) = (Timestamp::UNIX_EPOCH, Note::default());
        Header { seq, time, what: What::Change, note, edits: vec![write] }
    }

    fn frame(seq: u64, body: &[u8]) -> Vec<u8> {
        encode(&Record::new(header(seq, body), vec![[body.to_vec().into(), Bytes::new()]])).concat()
    }

    /// The numbers that are read of a segment, by both readers, and where the last one ends.
    fn read(bytes: &[u8]) -> (Vec<u64>, u64) {
        let disk = SimFs::new();
        let file = disk.open("segment", Open::CreateNew).unwrap();
        file.write_at(0, bytes).unwrap();
        let records = scan(&*file, 0..u64::MAX, false).unwrap();
        let headers = scan_headers(&*file, 0..u64::MAX).unwrap();
        let seqs: Vec<u64> = records.records.iter().map(|(_, record)| record.header.seq).collect();
        let others: Vec<u64> = headers.records.iter().map(|(_, header)| header.seq).collect();
        assert_eq!((&seqs, records.end, &records.damaged), (&others, headers.end, &headers.damaged));
        (seqs, records.end)
    }

    /// A process that was killed before it had written the end of a record leaves nothing of what that holds: content
    /// may be a journal.
    #[test]
    fn what_an_unfinished_record_holds_is_not_read() {
        let planted = [frame(2, b"planted"), frame(u64::MAX, b"planted"), frame(3, b"planted")].concat();
        let whole = [frame(1, b"one"), frame(2, &planted)].concat();
        let end = frame(1, b"one").len();
        // The newline at its end says nothing.
        for cut in end + 1..whole.len() - 1 {
            assert_eq!(read(&whole[..cut]), (vec![1], end as u64), "cut at {cut}");
            let reserved = [&whole[..cut], &[0; 700]].concat();
            assert_eq!(read(&reserved), (vec![1], end as u64), "cut at {cut}, with room behind it");
        }
    }

    #[test]
    fn what_a_damaged_record_holds_is_stepped_over() {
        let planted = [b"x".to_vec(), frame(2, b"planted"), frame(3, b"planted")].concat();
        let pieces = [frame(1, b"one"), frame(2, &planted), frame(3, &planted), frame(4, b"four")];
        let (first, second) = (pieces[0].len(), pieces[0].len() + pieces[1].len());
        let mut bytes = pieces.concat();
        let body = second - planted.len() - 1;
        bytes[body] ^= 1;
        assert_eq!(read(&bytes).0, [1, 3, 4]);
        bytes[second + pieces[2].len() - planted.len() - 1] ^= 1;
        assert_eq!(read(&bytes).0, [1, 4]);
        // Its header is damaged, and its head is not.
        bytes[first + HEAD_BYTES] ^= 1;
        assert_eq!(read(&bytes).0, [1, 4]);
    }

    /// Where a head is damaged too, only what can follow is a record.
    #[test]
    fn a_number_that_cannot_follow_is_none() {
        let planted = [frame(u64::MAX, b"planted"), frame(1, b"planted"), frame(900, b"planted")].concat();
        let pieces = [frame(7, b"one"), frame(8, &planted), frame(9, b"three")];
        let mut bytes = pieces.concat();
        bytes[pieces[0].len()] = b'?';
        assert_eq!(read(&bytes).0, [7, 9]);
    }

    /// Content may be full of what looks like the beginnings of records.
    #[test]
    fn damage_is_searched_in_a_time_that_grows_with_its_size() {
        let json = serde_json::to_string(&header(2, &[0; 600_000])).unwrap();
        let fake = format!("{MAGIC} {:08x} {:016x} {}\n{json}\n", json.len(), 600_000, "0".repeat(32));
        let mut bytes = [frame(1, b"one"), fake.repeat(8_000).into_bytes()].concat();
        bytes[frame(1, b"one").len()] = b'?';
        // Hashing what each of them claims to hold would take hours.
        assert_eq!(read(&bytes).0, [1]);
    }

    proptest! {
        /// Whatever becomes of some of the bytes, what is read was written, in its order, and what was not hit is
        /// read.
        #[test]
        fn only_what_was_written_is_read(
            bodies in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..90)), 1..7),
            hits in proptest::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 0..4),
            cut in proptest::option::of(any::<prop::sample::Index>()),
        ) {
            let body = |(seq, (nested, body)): (u64, &(bool, Vec<u8>))| match nested {
                true => [body.clone(), frame(seq + 400, body)].concat(),
                false => body.clone(),
            };
            let more = (2..).zip(&bodies).map(|(seq, one)| frame(seq, &body((seq, one))));
            let frames: Vec<_> = std::iter::once(frame(1, b"one")).chain(more).collect();
            let mut bytes = frames.concat();
            let first = frames[0].len();
            let cut = cut.map_or(bytes.len(), |cut| first + cut.index(bytes.len() - first));
            let mut hit = vec![false; bytes.len()];
            for (at, mask) in hits {
                let at = first + at.index(bytes.len() - first);
                (bytes[at], hit[at]) = (bytes[at] ^ mask, true);
            }
            bytes.truncate(cut);
            let (found, _) = read(&bytes);
            let mut start = 0;
            for (seq, frame) in (1..).zip(&frames) {
                let end = start + frame.len();
                let is_whole = end <= cut && !hit[start..end].contains(&true);
                prop_assert!(!is_whole || found.contains(&seq), "{seq} of {found:?} is missing");
                start = end;
            }
            prop_assert!(found.iter().all(|seq| (1..=frames.len() as u64).contains(seq)), "{found:?}");
            prop_assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
        }
    }
}
