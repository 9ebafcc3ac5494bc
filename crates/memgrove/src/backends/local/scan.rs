//! Reading a segment of the journal: its records or their headers, and what is damaged in between.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::record::{Decoded, HEAD_BYTES, Header, Record, decode, decode_header, resync, told_len};
use crate::vfs::VfsFile;

/// How much of a segment is read at once where only headers are wanted.
const WINDOW_BYTES: u64 = 1024 * 1024;

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
    let from = within.start;
    let size = file.stat()?.size.min(within.end);
    let bytes = Bytes::from(read_span(file, from..size)?);
    let mut found = Scan { records: Vec::new(), end: from, damaged: Vec::new() };
    let mut at = 0;
    loop {
        match decode(&bytes.slice(at..)) {
            Decoded::Record(record, len) => {
                at += len;
                found.end = from + at as u64;
                found.records.push((found.end, Arc::from(record)));
            }
            Decoded::End => return Ok(found),
            Decoded::Damaged => match resync(&bytes.slice(at..)) {
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
        let rest = scan(file, at..size, false)?;
        let headers = rest.records.into_iter().map(|(end, record)| (end, Arc::new(record.header.clone())));
        found.records.extend(headers);
        return Ok(Scan { end: rest.end, damaged: rest.damaged, ..found });
    }
    Ok(found)
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
