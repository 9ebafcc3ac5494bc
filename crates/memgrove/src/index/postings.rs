//! Which documents have a term: blocks of entries, each block for a range of document numbers, so
//! that a new document changes one small block of each of its terms.

use std::collections::BTreeMap;

use crate::error::{Error, Kind, Result};

/// How many document numbers share a block.
pub(crate) const BLOCK: i64 = 4096;

/// How a document has a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Entry {
    /// How often in the text; 15 stands for more.
    pub(crate) text: u8,
    /// How often in the title; 3 stands for more.
    pub(crate) title: u8,
    /// Whether among the tags or as the kind.
    pub(crate) tag: bool,
    /// Whether in the subject.
    pub(crate) subject: bool,
    /// The terms of the whole document.
    pub(crate) length: u32,
}

impl Entry {
    /// How often outside the text: in the title, among the tags, or as the subject alone.
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

/// The bytes of a block of these entries.
pub(crate) fn encoded(block: i64, entries: &BTreeMap<i64, Entry>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * 3);
    let mut last = block * BLOCK - 1;
    for (id, entry) in entries {
        put(&mut bytes, u32::try_from(id - last - 1).unwrap_or(u32::MAX));
        bytes.push(entry.packed());
        put(&mut bytes, entry.length);
        last = *id;
    }
    bytes
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
    Error::new(Kind::Corrupt, "the index has a damaged block").hint("it is made anew by itself")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_as_they_were() {
        let entry = |text, length| Entry { text, title: 2, tag: text == 1, subject: text == 2, length };
        let entries = BTreeMap::from([(4096, entry(1, 7)), (4097, entry(2, 300)), (8191, entry(15, 0))]);
        let bytes = encoded(1, &entries);
        let mut back = BTreeMap::new();
        each(1, &bytes, |id, entry| {
            back.insert(id, entry);
        })
        .expect("our own block");
        assert_eq!(back, entries);
    }

    #[test]
    fn garbage_is_refused() {
        for bytes in [&[0x80][..], &[1], &[255, 255, 255, 255, 255, 255], &[0xff, 0x7f, 0, 0]] {
            assert_eq!(each(0, bytes, |_, _| ()).map_err(|error| error.kind()), Err(Kind::Corrupt));
        }
    }
}
