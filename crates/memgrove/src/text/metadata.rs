//! Which lines under `## Metadata` of a note are memgrove's own, and which people have written.

use std::ops::Range;

/// When memgrove last changed the note.
pub const LAST_UPDATED: &str = "last_updated";
/// How large the note is.
pub const SIZE_BYTES: &str = "size_bytes";
/// The note that this one was split from.
pub const SPLIT_FROM: &str = "split_from";
/// The title that a split gave the note, so that a merge can remove it again.
pub const TITLE_ADDED: &str = "title_added";
/// A digest of the line that lists the note, as memgrove wrote it: a line that someone has changed stays.
pub const LINK_ADDED: &str = "link_added";

const KEYS: [&str; 5] = [LAST_UPDATED, SIZE_BYTES, SPLIT_FROM, TITLE_ADDED, LINK_ADDED];

/// Whether a line is memgrove's own.
pub fn is_own(line: &str) -> bool {
    key(line).is_some_and(|key| KEYS.contains(&key))
}

/// Returns the key of a line of metadata: one lower-case word.
fn key(line: &str) -> Option<&str> {
    let (key, value) = line.split_once(':')?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    let begins = key.starts_with(|c: char| c.is_ascii_lowercase());
    (begins && key.chars().all(fits) && (value.trim().is_empty() || value.starts_with([' ', '\t'])))
        .then_some(key)
}

/// Finds the metadata in a text: the adjacent lines of `key: value` among which the first of memgrove's
/// own is. Whatever stands before or after them was written by people.
pub fn metadata(text: &str) -> Option<Range<usize>> {
    let mut found: Option<Range<usize>> = None;
    let (mut at, mut own) = (0, false);
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\n', '\r']);
        if key(bare).is_some() {
            let start = found.map_or(at, |lines| lines.start);
            found = Some(start..at + bare.len());
            own |= is_own(bare);
        } else if own {
            break;
        } else {
            found = None;
        }
        at += line.len();
    }
    found.filter(|_| own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_told_from_what_people_write() {
        let check = |text: &str, lines: Option<&str>| {
            assert_eq!(metadata(text).map(|lines| &text[lines]), lines, "{text:?}");
        };
        check("size_bytes: 1", Some("size_bytes: 1"));
        check("mood: good\r\nsize_bytes: 1\r\nmore\r\n", Some("mood: good\r\nsize_bytes: 1"));
        check(
            "a remark\nsize_bytes: 1\nowner: Bob\nThe deadline is in May",
            Some("size_bytes: 1\nowner: Bob"),
        );
        check("size_bytes: 1\nDeadline: May\nsplit_from: a", Some("size_bytes: 1"));
        check("author: Bob\nlicense: MIT", None);
        check("", None);
    }
}
