//! Which documents have a term: blocks of entries, each block for a range of document numbers, so
//! that a new document changes one small block of each of its terms.

use std::collections::BTreeMap;

use crate::error::{Error, Kind, Result};

/// How many document numbers share a block.
pub(crate) const BLOCK: i64 = 4096;

/// Where and how often a document has a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Entry {
    /// How often in the text; 15 stands for more.
    pub(crate) text: u8,
    /// How often in the title; 3 stands for more.
    pub(crate) title: u8,
    /// Whether it is among the tags or the kind.
    pub(crate) tag: bool,
    /// Whether it is in the subject.
    pub(crate) subject: bool,
    /// How many terms the whole document has.
    pub(crate) length: u32,
}

impl Entry {
    /// How often it stands in the title or the tags; the subject counts if it stands nowhere else.
    pub(crate) fn heads(self) -> u8 {
        let beside = self.title + u8::from(self.tag);
        if beside == 0 && self.text == 0 { u8::from(self.subject) } else { beside }
    }

    fn packed(self) -> u8 {
        self.text.min(15) | self.title.min(3) << 4 | u8::from(self.tag) << 6 | u8::from(self.subject) << 7
    }

    fn unpacked(byte: u8, length: u32) -> Self {
        Entry { text: byte & 15, title: byte >> 4 & 3, tag: byte & 64 != 0, subject: byte & 128 != 0, length }
    }
}

/// Calls back with every entry of a block: the document's number, and how it has the term.
///
/// # Errors
/// `Corrupt` for bytes that are no block.
pub(crate) fn each(block: i64, bytes: &[u8], mut found: impl FnMut(i64, Entry)) -> Result<()> {
    let mut rest = bytes;
    let mut id = block * BLOCK - 1;
    while !rest.is_empty() {
        let gap = number(&mut rest)?;
        let (&byte, after) = rest.split_first().ok_or_else(broken)?;
        rest = after;
        let length = number(&mut rest)?;
        id += i64::from(gap) + 1;
        if id >= (block + 1) * BLOCK {
            return Err(broken());
        }
        found(id, Entry::unpacked(byte, length));
    }
    Ok(())
}

/// Returns the bytes of a block with some entries changed; `None` removes an entry.
///
/// # Errors
/// `Corrupt` for bytes that are no block.
pub(crate) fn changed(block: i64, old: &[u8], changes: &BTreeMap<i64, Option<Entry>>) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(old.len() + changes.len() * 4);
    let mut last = block * BLOCK - 1;
    let mut add = |id: i64, entry: Entry| {
        put(&mut bytes, u32::try_from(id - last - 1).unwrap_or(u32::MAX));
        bytes.push(entry.packed());
        put(&mut bytes, entry.length);
        last = id;
    };
    let mut left = changes.iter().peekable();
    each(block, old, |id, entry| {
        let mut kept = Some(entry);
        while let Some((at, change)) = left.next_if(|(at, _)| **at <= id) {
            match *at == id {
                true => kept = *change,
                false => change.iter().for_each(|entry| add(*at, *entry)),
            }
        }
        kept.into_iter().for_each(|entry| add(id, entry));
    })?;
    left.for_each(|(at, change)| change.iter().for_each(|entry| add(*at, *entry)));
    Ok(bytes)
}

fn put(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn number(bytes: &mut &[u8]) -> Result<u32> {
    let (mut value, mut shift) = (0u32, 0);
    loop {
        let (&byte, rest) = bytes.split_first().ok_or_else(broken)?;
        *bytes = rest;
        value |= u32::from(byte & 127).checked_shl(shift).ok_or_else(broken)?;
        if byte < 128 {
            return Ok(value);
        }
        shift += 7;
    }
}

pub(crate) fn broken() -> Error {
    Error::new(Kind::Corrupt, "the index has a damaged block").hint("it is rebuilt automatically")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: u8, length: u32) -> Entry {
        Entry { text, title: 2, tag: text == 1, subject: text == 2, length }
    }

    fn entries(bytes: &[u8]) -> Vec<(i64, Entry)> {
        let mut found = Vec::new();
        each(1, bytes, |id, entry| found.push((id, entry))).expect("our own block");
        found
    }

    #[test]
    fn blocks_come_back_as_they_were() {
        let first = BTreeMap::from([(4096, entry(1, 7)), (4097, entry(2, 300)), (8191, entry(15, 0))]);
        let all = first.iter().map(|(id, entry)| (*id, Some(*entry))).collect();
        let bytes = changed(1, &[], &all).expect("our own block");
        assert_eq!(entries(&bytes), first.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn blocks_change_in_their_places() {
        let all = [4097, 4100, 4200].map(|id| (id, Some(entry(3, 5))));
        let bytes = changed(1, &[], &BTreeMap::from(all)).expect("our own block");
        let changes = [
            (4096, Some(entry(1, 1))),
            (4100, None),
            (4150, Some(entry(4, 4))),
            (4160, None),
            (4200, Some(entry(5, 5))),
            (8000, Some(entry(6, 6))),
        ];
        let bytes = changed(1, &bytes, &BTreeMap::from(changes)).expect("our own block");
        let left = [
            (4096, entry(1, 1)),
            (4097, entry(3, 5)),
            (4150, entry(4, 4)),
            (4200, entry(5, 5)),
            (8000, entry(6, 6)),
        ];
        assert_eq!(entries(&bytes), left);
    }

    #[test]
    fn garbage_is_refused() {
        for bytes in [&[0x80][..], &[1], &[255, 255, 255, 255, 255, 255], &[0xff, 0x7f, 0, 0]] {
            assert_eq!(each(0, bytes, |_, _| ()).map_err(|error| error.kind()), Err(Kind::Corrupt));
        }
    }
}
