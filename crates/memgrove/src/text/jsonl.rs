//! How JSON lines are read as they are found on disk, damage included: where each line and each object is,
//! and how to change one member of an object without touching another byte.
//!
//! Nothing here fails on any input. The lines of a file, put together again, are the file.

mod back;
mod holding;
mod object;

pub use back::{READINGS, beside_readings, taken_back};
pub use holding::holds_id;
pub use object::{Member, members, spliced, value};

use std::fmt;
use std::ops::Range;

/// A longer line is not parsed.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;
/// The byte order mark, which some editors put in front of a file.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// In how many places of a damaged line the start of an object is tried.
const CANDIDATES_MAX: usize = 64;

/// One line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1.
    pub number: usize,
    /// All of it, with its newline and, in the first line, the byte order mark.
    pub whole: Range<usize>,
    /// Its content: without byte order mark, newline and carriage return.
    pub body: Range<usize>,
}

/// Returns the lines of a file. A newline ends a line; after the last newline there is another line only
/// if it has bytes.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = Line> + '_ {
    lines_from(bytes, 0, 1)
}

/// Returns the lines from an offset on, which must be the start of the line with this number.
pub fn lines_from(bytes: &[u8], offset: usize, number: usize) -> impl Iterator<Item = Line> + '_ {
    let (mut start, mut number) = (offset, number);
    std::iter::from_fn(move || {
        let rest = bytes.get(start..).filter(|rest| !rest.is_empty())?;
        let (mut stop, end) = match rest.iter().position(|byte| *byte == b'\n') {
            Some(newline) => (start + newline, start + newline + 1),
            None => (bytes.len(), bytes.len()),
        };
        let mut body = start;
        if start == 0 && bytes.starts_with(BYTE_ORDER_MARK) {
            body = BYTE_ORDER_MARK.len();
        }
        if end > stop && stop > body && bytes[stop - 1] == b'\r' {
            stop -= 1;
        }
        let line = Line { number, whole: start..end, body: body..stop };
        (start, number) = (end, number + 1);
        Some(line)
    })
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A whole JSON object.
    Object(Range<usize>),
    /// Bytes that are no object, and why.
    Damaged(Range<usize>, Damage),
}

/// What is wrong with bytes that should be an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// They are not UTF-8.
    NotUtf8,
    /// They are NUL bytes, which a power cut leaves behind.
    Nul,
    /// They are JSON, but no object.
    NotAnObject,
    /// The line is over [`LINE_BYTES_MAX`].
    TooLong,
    /// They end before the object does.
    Torn,
    /// They are not JSON; in the parser's words.
    Syntax(String),
}

impl Damage {
    /// Returns the damage that an error of the parser stands for.
    pub fn of(error: &serde_json::Error) -> Self {
        match error.is_eof() {
            true => Damage::Torn,
            false => Damage::Syntax(without_place(&error.to_string())),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::NotUtf8 => f.write_str("it is not UTF-8 text"),
            Damage::Nul => f.write_str("it is NUL bytes, as a power cut leaves them"),
            Damage::NotAnObject => f.write_str("it is not a JSON object"),
            Damage::TooLong => write!(f, "it is longer than {LINE_BYTES_MAX} bytes"),
            Damage::Torn => f.write_str("it is cut off"),
            Damage::Syntax(why) => write!(f, "it is not JSON: {why}"),
        }
    }
}

/// Returns what a line's body holds, in order, as ranges of the body. A blank line holds nothing; a line
/// may hold several objects, or an object after the remains of another.
pub fn pieces(body: &[u8]) -> Vec<Piece> {
    let mut found = Vec::new();
    if body.len() > LINE_BYTES_MAX {
        return vec![Piece::Damaged(0..body.len(), Damage::TooLong)];
    }
    let mut at = 0;
    while at < body.len() {
        let rest = &body[at..];
        let nuls = rest.iter().take_while(|byte| **byte == 0).count();
        if nuls > 0 {
            found.push(Piece::Damaged(at..at + nuls, Damage::Nul));
            at += nuls;
            continue;
        }
        if rest[0].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        match object_at(rest) {
            Ok(len) => {
                found.push(Piece::Object(at..at + len));
                at += len;
            }
            Err(damage) => {
                let spoilt = &rest[..next_record(rest).unwrap_or(rest.len())];
                // NULs at the end are reported apart from the text before them.
                let text = spoilt.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
                let damage = object_at(&rest[..text]).err().unwrap_or(damage);
                found.push(Piece::Damaged(trimmed(body, at..at + text), damage));
                at += text;
            }
        }
    }
    found
}

/// The length of the object at the start of these bytes.
fn object_at(bytes: &[u8]) -> Result<usize, Damage> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
    };
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    match values.next() {
        Some(Ok(_)) if bytes[0] == b'{' => Ok(values.byte_offset()),
        Some(Ok(_)) => Err(Damage::NotAnObject),
        _ if text.len() < bytes.len() => Err(Damage::NotUtf8),
        Some(Err(error)) => Err(Damage::of(&error)),
        None => Err(Damage::Torn),
    }
}

/// Finds where a whole record begins after damage: an object with an `id` and a `content`, so that an
/// inner object of a torn record is not taken for a record.
fn next_record(bytes: &[u8]) -> Option<usize> {
    let begins = (1..bytes.len().saturating_sub(1)).filter(|at| bytes[*at] == b'{' && bytes[at + 1] == b'"');
    begins.take(CANDIDATES_MAX).find(|at| {
        let Ok(len) = object_at(&bytes[*at..]) else { return false };
        let Ok(text) = std::str::from_utf8(&bytes[*at..at + len]) else { return false };
        let has = |key: &str| members(text).iter().any(|member| member.key == key);
        has("id") && has("content")
    })
}

fn trimmed(body: &[u8], range: Range<usize>) -> Range<usize> {
    let kept = body[range.clone()].trim_ascii_end().len();
    range.start..range.start + kept
}

/// Returns the parser's message without its line and column, which do not refer to the file.
fn without_place(message: &str) -> String {
    message.split(" at line ").next().unwrap_or(message).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_kind() {
        let check = |text: &str, bodies: &[&str]| {
            let bytes = text.as_bytes();
            let found: Vec<&str> = lines(bytes).map(|line| &text[line.body]).collect();
            assert_eq!(found, bodies, "{text:?}");
            let whole: String = lines(bytes).map(|line| &text[line.whole]).collect();
            assert_eq!(whole, text);
        };
        check("", &[]);
        check("a", &["a"]);
        check("a\nb\n", &["a", "b"]);
        check("a\r\n\r\nb", &["a", "", "b"]);
        check("\u{feff}a\nb\r", &["a", "b\r"]);
        check("\n\n", &["", ""]);
    }

    #[test]
    fn pieces_of_every_kind() {
        let whole = r#"{"id":"a","content":"b"}"#;
        let check = |body: &str, expected: &[&str]| {
            let found: Vec<String> = pieces(body.as_bytes())
                .into_iter()
                .map(|piece| match piece {
                    Piece::Object(at) => format!("object {}", &body[at]),
                    Piece::Damaged(at, damage) => format!("{damage:?} {}", body[at].replace('\0', "0")),
                })
                .collect();
            assert_eq!(found, expected, "{body:?}");
        };
        check("", &[]);
        check("  \t", &[]);
        check(whole, &[&format!("object {whole}")]);
        check(&format!("{whole} {whole}"), &[&format!("object {whole}"), &format!("object {whole}")]);
        check(
            &format!("{{\"id\":\"x\",\"con{whole}"),
            &["Torn {\"id\":\"x\",\"con", &format!("object {whole}")],
        );
        check(&format!("\0\0{whole}"), &["Nul 00", &format!("object {whole}")]);
        check("{\"id\":\"x\0\0", &["Torn {\"id\":\"x", "Nul 00"]);
        check("{\"id\":\"x\",\"content\":\"to", &["Torn {\"id\":\"x\",\"content\":\"to"]);
        check("[1]", &["NotAnObject [1]"]);
        check("{\"a\":{\"b\":1},\"c\":", &["Torn {\"a\":{\"b\":1},\"c\":"]);
        assert!(matches!(&pieces(b"{\"a\":\"\xff\"}")[..], [Piece::Damaged(_, Damage::NotUtf8)]));
    }
}
