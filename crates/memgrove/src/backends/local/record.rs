//! One journal record: its bytes on disk and back. `docs/format.md` describes them byte by byte.
//!
//! A record is a frame of a 64-byte head, a JSON header, a newline, the bodies of its edits one
//! after another, and a newline:
//!
//! ```text
//! MGJ1 <header length, 8 hex> <body length, 16 hex> <hash of header and body, 32 hex>\n
//! ```

use serde::{Deserialize, Serialize};

use crate::backend::{ChangeId, Note, Op, Past, PastEdit, Version};
use crate::clock::Timestamp;
use crate::locator::Locator;

pub(super) const HEAD_BYTES: usize = 64;
const MAGIC: &str = "MGJ1";

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
                Entry::Rename { .. } => (Op::Rename, None, None),
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
        /// The old bytes follow the new ones, because no record of this segment holds them.
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

    fn bodies(&self) -> [u64; 2] {
        match self {
            Entry::Write { len, before, .. } => [*len, before.unwrap_or(0)],
            Entry::Append { len, .. } => [*len, 0],
            Entry::Delete { before, .. } => [0, before.unwrap_or(0)],
            Entry::Rename { .. } => [0, 0],
        }
    }
}

/// A record in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) header: Header,
    /// The bodies of all edits.
    body: Vec<u8>,
    /// Where in the body each edit's bytes start.
    starts: Vec<usize>,
}

impl Record {
    /// Whether it moves things.
    pub(super) fn moves(&self) -> bool {
        self.header.edits.iter().any(|entry| matches!(entry, Entry::Rename { .. }))
    }

    /// Whether it moves things or removes folders. Names are not content: whether that has been
    /// done cannot be told afterwards, unless nothing else is in doubt at the same time.
    pub(super) fn is_fenced(&self) -> bool {
        let fenced = |entry: &Entry| matches!(entry, Entry::Rename { .. } | Entry::Delete { old: None, .. });
        self.header.edits.iter().any(fenced)
    }

    pub(super) fn new(header: Header, body: Vec<u8>) -> Self {
        let mut start = 0;
        let starts = header.edits.iter().map(|entry| {
            let here = start;
            start += entry.bodies().iter().sum::<u64>() as usize;
            here
        });
        let starts = starts.collect();
        Record { header, body, starts }
    }

    /// The new bytes of edit `index`; empty for deletions and renames.
    pub(super) fn after(&self, index: usize) -> &[u8] {
        let start = self.starts[index];
        &self.body[start..start + self.header.edits[index].bodies()[0] as usize]
    }

    /// The old bytes of edit `index`, where this record keeps them.
    pub(super) fn before(&self, index: usize) -> Option<&[u8]> {
        match &self.header.edits[index] {
            Entry::Write { before: Some(_), .. } | Entry::Delete { before: Some(_), .. } => {}
            _ => return None,
        }
        let [len, before] = self.header.edits[index].bodies();
        let start = self.starts[index] + len as usize;
        Some(&self.body[start..start + before as usize])
    }
}

/// The name of a change in the history: its number.
pub(super) fn change_id(seq: u64) -> ChangeId {
    ChangeId::new(seq.to_string())
}

/// The record's bytes on disk.
pub(super) fn encode(record: &Record) -> Vec<u8> {
    let body = &record.body;
    let json = serde_json::to_vec(&record.header).expect("a header is always JSON");
    let hash = checksum(&json, body);
    let mut frame = Vec::with_capacity(HEAD_BYTES + json.len() + body.len() + 2);
    frame.extend_from_slice(format!("{MAGIC} {:08x} {:016x} {hash}\n", json.len(), body.len()).as_bytes());
    frame.extend_from_slice(&json);
    frame.push(b'\n');
    frame.extend_from_slice(body);
    frame.push(b'\n');
    frame
}

fn checksum(json: &[u8], body: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(json);
    hasher.update(body);
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

/// Reads the record at the start of `bytes`.
pub(super) fn decode(bytes: &[u8]) -> Decoded {
    let Some((json_len, body_len, hash)) = head(bytes) else {
        return if bytes.iter().all(|byte| *byte == 0) { Decoded::End } else { Decoded::Damaged };
    };
    let total = json_len.checked_add(body_len).and_then(|sum| sum.checked_add(HEAD_BYTES + 2));
    let Some(frame) = total.and_then(|total| bytes.get(..total)) else { return Decoded::Damaged };
    let json = &frame[HEAD_BYTES..HEAD_BYTES + json_len];
    let body = &frame[HEAD_BYTES + json_len + 1..frame.len() - 1];
    if checksum(json, body) != hash {
        return Decoded::Damaged;
    }
    let Ok(header) = serde_json::from_slice::<Header>(json) else { return Decoded::Damaged };
    if header.edits.iter().flat_map(Entry::bodies).try_fold(0u64, u64::checked_add) != Some(body_len as u64) {
        return Decoded::Damaged;
    }
    Decoded::Record(Box::new(Record::new(header, body.to_vec())), frame.len())
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

/// Where, past damaged bytes, the next whole record starts.
pub(super) fn resync(bytes: &[u8]) -> Option<usize> {
    let magic = MAGIC.as_bytes();
    let mut from = 1;
    while let Some(found) = bytes.get(from..)?.windows(magic.len()).position(|window| window == magic) {
        let start = from + found;
        if matches!(decode(&bytes[start..]), Decoded::Record(..)) {
            return Some(start);
        }
        from = start + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn locator() -> impl Strategy<Value = Locator> {
        "[a-zA-Z0-9é ._-]{1,12}(/[a-z]{1,8}){0,2}"
            .prop_filter_map("a valid key", |key| Locator::new(key).ok().filter(|at| !at.is_root()))
    }

    fn entry() -> impl Strategy<Value = (Entry, Vec<u8>)> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
        prop_oneof![
            (locator(), bytes(), proptest::option::of(bytes())).prop_map(|(at, new, old)| {
                let (version, len) = (Version::of(&new), new.len() as u64);
                let before = old.as_ref().map(|old| old.len() as u64);
                let entry =
                    Entry::Write { at, old: old.as_deref().map(Version::of), new: version, len, before };
                (entry, [new, old.unwrap_or_default()].concat())
            }),
            (locator(), bytes(), any::<u32>(), any::<bool>()).prop_map(|(at, new, offset, created)| {
                (Entry::Append { at, offset: offset.into(), len: new.len() as u64, created }, new)
            }),
            (locator(), bytes()).prop_map(|(at, old)| {
                (Entry::Delete { at, old: Some(Version::of(&old)), before: Some(old.len() as u64) }, old)
            }),
            (locator(), locator(), any::<bool>(), any::<Option<u64>>())
                .prop_map(|(at, to, folder, inode)| (Entry::Rename { at, to, folder, inode }, Vec::new())),
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
            let body = bodies.concat();
            let record = Record::new(header, body);
            let mut frame = encode(&record);
            let total = frame.len();
            frame.extend_from_slice(b"what comes after");
            prop_assert_eq!(decode(&frame), Decoded::Record(Box::new(record), total));
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
            let frame = encode(&Record::new(header, b"abc".to_vec()));
            let cut = cut.min(frame.len() - 1);
            prop_assert!(!matches!(decode(&frame[..cut]), Decoded::Record(..)));
            let mut flipped = frame.clone();
            // The two newlines after header and body carry nothing; every other byte matters.
            let at = flip.min(frame.len() - 6);
            flipped[at] ^= 0x10;
            let separator = frame.len() - 5;
            prop_assert!(at == separator || !matches!(decode(&flipped), Decoded::Record(..)));
        }
    }

    #[test]
    fn nul_bytes_are_an_end_and_noise_is_damage() {
        assert_eq!(decode(&[]), Decoded::End);
        assert_eq!(decode(&[0; 300]), Decoded::End);
        assert_eq!(decode(b"MGJ1 00000"), Decoded::Damaged);
        assert_eq!(decode(&[[0; 64].as_slice(), b"x"].concat()), Decoded::Damaged);
    }
}
