//! One journal record: its bytes on disk and back. `docs/format.md` describes them byte by byte.
//!
//! A record is a frame of a 64-byte head, a JSON header, a newline, the bodies of its edits one
//! after another, and a newline:
//!
//! ```text
//! MGJ1 <header length, 8 hex> <body length, 16 hex> <hash of header and body, 32 hex>\n
//! ```

use std::collections::HashSet;
use std::io;
use std::ops::Range;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::backend::{ChangeId, Note, Op, Past, PastEdit, Version};
use crate::clock::Timestamp;
use crate::locator::Locator;

pub(super) const HEAD_BYTES: usize = 64;
pub(super) const MAGIC: &str = "MGJ1";
/// A body of at least this many bytes is written and read on its own, and never copied.
const LARGE_BYTES: usize = 64 * 1024;
/// How many bytes of a body are hashed at a time where only the header is wanted.
const PIECE_BYTES: u64 = 1024 * 1024;

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// Its number: one more than the record before it.
    pub(super) seq: u64,
    pub(super) time: Timestamp,
    #[serde(default, skip_serializing_if = "What::is_change")]
    pub(super) what: What,
    #[serde(flatten)]
    pub(super) note: Note,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) edits: Vec<Entry>,
}

impl Header {
    /// The record as the history shows it.
    pub(super) fn past(&self) -> Past {
        let edits = self.edits.iter().map(|entry| {
            let (op, old, new) = match entry {
                Entry::Write { old, new, .. } => (Op::Write, old.clone(), Some(new.clone())),
                Entry::Append { .. } => (Op::Append, None, None),
                Entry::Delete { old, .. } => (Op::Delete, old.clone(), None),
                Entry::Rename { old, .. } => (Op::Rename, old.clone(), None),
            };
            PastEdit { op, at: entry.at().clone(), to: entry.to().cloned(), old, new }
        });
        Past { change: change_id(self.seq), time: self.time, note: self.note.clone(), edits: edits.collect() }
    }
}

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    /// A change through memgrove.
    #[default]
    Change,
    /// Content that someone else wrote, met when it had just been replaced, and kept.
    Outside,
    /// The change with this number could not be placed and did not happen.
    Abort(u64),
}

impl What {
    fn is_change(&self) -> bool {
        *self == What::Change
    }
}

/// One edit as the journal keeps it. `len` and `before` are lengths of bodies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Entry {
    Write {
        at: Locator,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<Version>,
        new: Version,
        len: u64,
        /// The length of the old bytes, which follow the new ones; only where this segment lacks them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<u64>,
    },
    Append {
        at: Locator,
        /// The size of the file before.
        offset: u64,
        len: u64,
        #[serde(default, skip_serializing_if = "is_false")]
        created: bool,
    },
    Delete {
        at: Locator,
        /// `None` for a folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<Version>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<u64>,
    },
    Rename {
        at: Locator,
        to: Locator,
        #[serde(default, skip_serializing_if = "is_false")]
        folder: bool,
        /// The file or folder that moves, so that it is never moved twice; unknown for one that
        /// the same change writes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inode: Option<u64>,
        /// What the file held: someone may have edited it since the last record of its content.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<Version>,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The form that serde asks for.
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Entry {
    /// Where the edit starts.
    pub(super) fn at(&self) -> &Locator {
        match self {
            Entry::Write { at, .. }
            | Entry::Append { at, .. }
            | Entry::Delete { at, .. }
            | Entry::Rename { at, .. } => at,
        }
    }

    /// The far end of a rename.
    pub(super) fn to(&self) -> Option<&Locator> {
        match self {
            Entry::Rename { to, .. } => Some(to),
            _ => None,
        }
    }

    /// The version that the edit left behind, where it is known.
    pub(super) fn new_version(&self) -> Option<&Version> {
        match self {
            Entry::Write { new, .. } => Some(new),
            _ => None,
        }
    }

    /// The version that the edit takes away, where it is known.
    pub(super) fn old_version(&self) -> Option<&Version> {
        match self {
            Entry::Write { old, .. } | Entry::Delete { old, .. } => old.as_ref(),
            _ => None,
        }
    }

    fn bodies(&self) -> [u64; 2] {
        match self {
            Entry::Write { len, before, .. } => [*len, before.unwrap_or(0)],
            Entry::Append { len, .. } => [*len, 0],
            Entry::Delete { before, .. } => [0, before.unwrap_or(0)],
            Entry::Rename { .. } => [0, 0],
        }
    }
}

/// What an edit puts there, and what it takes away, where the record keeps it.
pub(super) type Bodies = [Bytes; 2];

/// A record in memory. Its bytes are shared with the change that it is of, or with the part of the
/// journal that it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) header: Header,
    /// The bodies of each edit.
    pub(super) bodies: Vec<Bodies>,
}

impl Record {
    /// Whether it moves things.
    pub(super) fn moves(&self) -> bool {
        self.header.edits.iter().any(|entry| matches!(entry, Entry::Rename { .. }))
    }

    /// Whether it moves things or removes folders. Unlike content, names do not show afterwards whether that
    /// was done, unless nothing else is in doubt at the same time.
    pub(super) fn is_fenced(&self) -> bool {
        let fenced = |entry: &Entry| matches!(entry, Entry::Rename { .. } | Entry::Delete { old: None, .. });
        self.header.edits.iter().any(fenced)
    }

    /// Whether its edits depend on each other, so that what is there does not tell which of them were placed.
    pub(super) fn is_entangled(&self) -> bool {
        let mut places = HashSet::new();
        self.is_fenced() || self.header.edits.iter().any(|entry| !places.insert(entry.at()))
    }

    pub(super) fn new(header: Header, bodies: Vec<Bodies>) -> Self {
        debug_assert_eq!(header.edits.len(), bodies.len());
        Record { header, bodies }
    }

    /// A record whose bodies follow each other in `body`, as long as its header says.
    fn read(header: Header, mut body: Bytes) -> Self {
        let bodies = header.edits.iter().map(|entry| entry.bodies().map(|len| body.split_to(len as usize)));
        let bodies = bodies.collect();
        Record { header, bodies }
    }

    /// The new bytes of edit `index`; empty for deletions and renames.
    pub(super) fn after(&self, index: usize) -> &[u8] {
        &self.bodies[index][0]
    }

    /// The old bytes of edit `index`, where this record keeps them.
    pub(super) fn before(&self, index: usize) -> Option<&[u8]> {
        match &self.header.edits[index] {
            Entry::Write { before: Some(_), .. } | Entry::Delete { before: Some(_), .. } => {
                Some(&self.bodies[index][1])
            }
            _ => None,
        }
    }
}

/// The name of a change in the history: its number.
pub(super) fn change_id(seq: u64) -> ChangeId {
    ChangeId::new(seq.to_string())
}

/// The record's bytes on disk, in pieces that follow each other: mostly one, but what is large is
/// shared instead of copied.
pub(super) fn encode(record: &Record) -> Vec<Bytes> {
    let json = serde_json::to_vec(&record.header).expect("a header is always JSON");
    let bodies = || record.bodies.iter().flatten();
    let body_len: usize = bodies().map(Bytes::len).sum();
    let hash = checksum(&json, bodies());
    let mut pieces = Vec::new();
    let mut piece = format!("{MAGIC} {:08x} {body_len:016x} {hash}\n", json.len()).into_bytes();
    piece.extend_from_slice(&json);
    piece.push(b'\n');
    for body in bodies() {
        if body.len() < LARGE_BYTES {
            piece.extend_from_slice(body);
        } else {
            pieces.extend([std::mem::take(&mut piece).into(), body.clone()]);
        }
    }
    piece.push(b'\n');
    pieces.push(piece.into());
    pieces
}

fn checksum<'a>(json: &[u8], bodies: impl Iterator<Item = &'a Bytes>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(json);
    for body in bodies {
        hasher.update(body);
    }
    shortened(&hasher)
}

fn shortened(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..32].to_owned()
}

/// What stands at an offset of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// A whole record, and how many bytes it takes.
    Record(Box<Record>, usize),
    /// The end: nothing, or only NUL bytes, follow.
    End,
    /// Bytes that are no whole record.
    Damaged,
}

/// Reads the record at the start of `bytes`, and shares them.
pub(super) fn decode(bytes: &Bytes) -> Decoded {
    let Some((json_len, body_len, hash)) = head(bytes) else {
        return if bytes.iter().all(|byte| *byte == 0) { Decoded::End } else { Decoded::Damaged };
    };
    let Some(total) = total(json_len, body_len).filter(|total| *total <= bytes.len()) else {
        return Decoded::Damaged;
    };
    let json = &bytes[HEAD_BYTES..HEAD_BYTES + json_len];
    let body = bytes.slice(HEAD_BYTES + json_len + 1..total - 1);
    if checksum(json, std::iter::once(&body)) != hash {
        return Decoded::Damaged;
    }
    match header(json, body_len) {
        Some(header) => Decoded::Record(Box::new(Record::read(header, body)), total),
        None => Decoded::Damaged,
    }
}

/// How many bytes a record takes, by the lengths that its head tells.
fn total(json_len: usize, body_len: usize) -> Option<usize> {
    json_len.checked_add(body_len)?.checked_add(HEAD_BYTES + 2)
}

/// How many bytes the record at the start of `bytes` takes, as its head says.
pub(super) fn told_len(bytes: &[u8]) -> Option<usize> {
    let (json_len, body_len, _) = head(bytes)?;
    total(json_len, body_len)
}

/// The header of a record as it is written.
pub(super) fn json_of(frame: &[u8]) -> Option<&[u8]> {
    let (json_len, ..) = head(frame)?;
    frame.get(HEAD_BYTES..HEAD_BYTES.checked_add(json_len)?)
}

/// Parses a header; `None` unless the lengths in it add up to the body's.
fn header(json: &[u8], body_len: usize) -> Option<Header> {
    let header: Header = serde_json::from_slice(json).ok()?;
    let told = header.edits.iter().flat_map(Entry::bodies).try_fold(0u64, u64::checked_add);
    (told == Some(body_len as u64)).then_some(header)
}

/// Decodes the header of the record that starts with `bytes`, and the record's length, without holding its
/// body in memory. `read` returns the bytes of a span; no span may end after `max`.
pub(super) fn decode_header(
    bytes: &[u8],
    max: u64,
    read: impl Fn(Range<u64>) -> io::Result<Vec<u8>>,
) -> io::Result<Option<(Header, u64)>> {
    let Some((json_len, body_len, hash)) = head(bytes) else { return Ok(None) };
    let start = (HEAD_BYTES + json_len) as u64 + 1;
    let Some(end) = start.checked_add(body_len as u64).filter(|end| *end < max) else { return Ok(None) };
    let json = read(HEAD_BYTES as u64..start - 1)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&json);
    let mut at = start;
    while at < end {
        let piece = read(at..end.min(at + PIECE_BYTES))?;
        if piece.is_empty() {
            return Ok(None);
        }
        hasher.update(&piece);
        at += piece.len() as u64;
    }
    let whole = shortened(&hasher) == hash;
    Ok(header(&json, body_len).filter(|_| whole).map(|header| (header, end + 1)))
}

fn head(bytes: &[u8]) -> Option<(usize, usize, &str)> {
    let line = std::str::from_utf8(bytes.get(..HEAD_BYTES)?).ok()?;
    let rest = line.strip_prefix(MAGIC)?.strip_prefix(' ')?.strip_suffix('\n')?;
    let mut fields = rest.split(' ');
    let json_len = usize::from_str_radix(fields.next()?, 16).ok()?;
    let body_len = usize::from_str_radix(fields.next()?, 16).ok()?;
    let hash = fields.next().filter(|hash| hash.len() == 32)?;
    Some((json_len, body_len, hash))
}

/// The number of the record at the start of `bytes`, and how many bytes it takes, where its header is whole and
/// tells of as many as its head does: whatever became of its body, so much of it is sure.
pub(super) fn sure_len(bytes: &[u8]) -> Option<(u64, usize)> {
    let (json_len, body_len, _) = head(bytes)?;
    let header = header(json_of(bytes)?, body_len)?;
    Some((header.seq, total(json_len, body_len)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn locator() -> impl Strategy<Value = Locator> {
        "[a-zA-Z0-9é ._-]{1,12}(/[a-z]{1,8}){0,2}"
            .prop_filter_map("a valid key", |key| Locator::new(key).ok().filter(|at| !at.is_root()))
    }

    fn entry() -> impl Strategy<Value = (Entry, Bodies)> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
        prop_oneof![
            (locator(), bytes(), proptest::option::of(bytes())).prop_map(|(at, new, old)| {
                let (version, len) = (Version::of(&new), new.len() as u64);
                let before = old.as_ref().map(|old| old.len() as u64);
                let old_version = old.as_deref().map(Version::of);
                let entry = Entry::Write { at, old: old_version, new: version, len, before };
                (entry, [new.into(), old.unwrap_or_default().into()])
            }),
            (locator(), bytes(), any::<u32>(), any::<bool>()).prop_map(|(at, new, offset, created)| {
                (
                    Entry::Append { at, offset: offset.into(), len: new.len() as u64, created },
                    [new.into(), Bytes::new()],
                )
            }),
            (locator(), bytes()).prop_map(|(at, old)| {
                let entry =
                    Entry::Delete { at, old: Some(Version::of(&old)), before: Some(old.len() as u64) };
                (entry, [Bytes::new(), old.into()])
            }),
            (locator(), locator(), any::<Option<u64>>(), bytes()).prop_map(|(at, to, inode, held)| {
                let old = (!held.is_empty()).then(|| Version::of(&held));
                (Entry::Rename { at, to, folder: old.is_none(), inode, old }, Bodies::default())
            }),
        ]
    }

    proptest! {
        #[test]
        fn printing_then_parsing_is_the_identity(
            seq in 1..u64::MAX,
            ms in 0..4_000_000_000_000i64,
            verb in ".{0,20}",
            reason in proptest::option::of(".{0,40}"),
            edits in proptest::collection::vec(entry(), 0..5),
        ) {
            let (entries, bodies): (Vec<_>, Vec<_>) = edits.into_iter().unzip();
            let header = Header {
                seq,
                time: Timestamp::from_millisecond(ms).unwrap(),
                what: What::Change,
                note: Note { verb, reason, ..Note::default() },
                edits: entries,
            };
            let record = Record::new(header.clone(), bodies);
            let mut frame = encode(&record).concat();
            let total = frame.len();
            frame.extend_from_slice(b"what comes after");
            let read = |span: Range<u64>| Ok(frame[span.start as usize..span.end as usize].to_vec());
            let glance = decode_header(&frame, frame.len() as u64, read).unwrap();
            prop_assert_eq!(glance, Some((header, total as u64)));
            prop_assert_eq!(decode(&frame.into()), Decoded::Record(Box::new(record), total));
        }

        #[test]
        fn a_cut_or_flipped_record_is_never_taken_for_whole(cut in 0usize..200, flip in 0usize..200) {
            let header = Header {
                seq: 7,
                time: Timestamp::from_millisecond(0).unwrap(),
                what: What::Change,
                note: Note::default(),
                edits: vec![Entry::Append { at: Locator::new("a").unwrap(), offset: 0, len: 3, created: true }],
            };
            let frame = Bytes::from(encode(&Record::new(header, vec![[b"abc".to_vec().into(), Bytes::new()]])).concat());
            let cut = cut.min(frame.len() - 1);
            prop_assert!(!matches!(decode(&frame.slice(..cut)), Decoded::Record(..)));
            let mut flipped = frame.to_vec();
            // The two newlines after header and body carry nothing; every other byte matters.
            let at = flip.min(frame.len() - 6);
            flipped[at] ^= 0x10;
            let separator = frame.len() - 5;
            prop_assert!(at == separator || !matches!(decode(&flipped.into()), Decoded::Record(..)));
        }
    }

    #[test]
    fn what_is_large_is_a_piece_of_its_own() {
        let large = Bytes::from(vec![7; LARGE_BYTES]);
        let at = Locator::new("a").unwrap();
        let (new, len) = (Version::of(&large), LARGE_BYTES as u64);
        let write = Entry::Write { at, old: None, new, len, before: None };
        let header = Header {
            seq: 7,
            time: Timestamp::from_millisecond(0).unwrap(),
            what: What::Change,
            note: Note::default(),
            edits: vec![write],
        };
        let record = Record::new(header.clone(), vec![[large.clone(), Bytes::new()]]);
        let pieces = encode(&record);
        assert_eq!(pieces.iter().filter(|piece| piece.as_ptr() == large.as_ptr()).count(), 1);
        let mut frame = pieces.concat();
        let glance = |frame: &[u8], max: usize| {
            let read = |span: Range<u64>| Ok(frame[span.start as usize..span.end as usize].to_vec());
            decode_header(frame, max as u64, read).unwrap()
        };
        assert_eq!(glance(&frame, frame.len()), Some((header, frame.len() as u64)));
        assert_eq!(glance(&frame, frame.len() - 1), None, "a record that is cut short is not whole");
        let middle = frame.len() / 2;
        frame[middle] ^= 1;
        assert_eq!(glance(&frame, frame.len()), None, "a record that was damaged is not whole");
    }

    #[test]
    fn nul_bytes_are_an_end_and_noise_is_damage() {
        assert_eq!(decode(&Bytes::new()), Decoded::End);
        assert_eq!(decode(&vec![0; 300].into()), Decoded::End);
        assert_eq!(decode(&b"MGJ1 00000".to_vec().into()), Decoded::Damaged);
        assert_eq!(decode(&[[0; 64].as_slice(), b"x"].concat().into()), Decoded::Damaged);
    }
}
