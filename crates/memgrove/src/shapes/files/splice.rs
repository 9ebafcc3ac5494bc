//! How a text is edited without touching anything outside the edited span.

use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;

/// How many line numbers an error names.
const LINES_SHOWN_MAX: usize = 20;
/// How many matches are counted before there are simply too many.
pub(crate) const PLACES_MAX: usize = 1000;
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A text after an edit.
pub(crate) struct Spliced {
    pub(crate) bytes: Vec<u8>,
    /// The first line that changed, from 1.
    pub(crate) line: usize,
}

/// Counts the newlines.
pub(super) fn newlines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// Returns the text with the only occurrence of `old` replaced by `new`.
pub(crate) fn replaced(at: &Locator, text: &str, old: &str, new: &str) -> Result<Spliced> {
    let invalid = |what: String| Error::new(Kind::Invalid, what);
    if old.is_empty() {
        return Err(invalid(format!("the text to replace in `{at}` is empty"))
            .code(code::STRING_NOT_FOUND)
            .hint("give the exact text that is there, or insert at a line"));
    }
    let lines = places(text, old);
    match lines[..] {
        [] => Err(invalid(format!("`{at}` does not contain the text to replace"))
            .code(code::STRING_NOT_FOUND)
            .hint(if text.contains(&old.replace('\n', "\r\n")) {
                "the file's lines end in CRLF: write `\\r\\n` where the text to replace has `\\n`"
            } else {
                "the match is exact, whitespace included: read the file again and copy the text from it"
            })),
        [(start, line)] => {
            let bytes = [&text[..start], new, &text[start + old.len()..]].concat().into_bytes();
            Ok(Spliced { bytes, line })
        }
        _ => {
            let times = match lines.len() {
                PLACES_MAX => format!("{PLACES_MAX} times or more"),
                count => format!("{count} times"),
            };
            let mut lines: Vec<String> = lines.iter().map(|(_, line)| line.to_string()).collect();
            lines.dedup();
            let noun = if lines.len() == 1 { "line" } else { "lines" };
            if lines.len() > LINES_SHOWN_MAX {
                lines.truncate(LINES_SHOWN_MAX);
                lines.push("…".to_owned());
            }
            let lines = lines.join(", ");
            Err(invalid(format!("`{at}` contains the text to replace {times}, on {noun} {lines}"))
                .code(code::STRING_NOT_UNIQUE)
                .hint("add the text around it until it is unique"))
        }
    }
}

/// Returns the text with `new` inserted before a line, counted from 1.
pub(crate) fn inserted(at: &Locator, text: &str, line: usize, new: &str) -> Result<Spliced> {
    let lines = newlines(text.as_bytes()) + 1;
    if line == 0 || line > lines + 1 {
        let end = lines + usize::from(!text.ends_with('\n'));
        return Err(Error::new(Kind::Invalid, format!("`{at}` has no line {line} to insert at"))
            .code(code::INVALID_LINE)
            .hint(format!("lines are counted from 1: use 1 to {end} (the end)")));
    }
    let ends = text.match_indices('\n').map(|(end, _)| end + 1);
    let start = match line {
        1 if text.starts_with(BYTE_ORDER_MARK) => BYTE_ORDER_MARK.len(),
        1 => 0,
        _ => ends.clone().nth(line - 2).unwrap_or(text.len()),
    };
    let is_crlf = ends.clone().all(|end| text[..end].ends_with("\r\n")) && lines > 1;
    // With mixed newlines, the line above decides, or for the first line that line itself.
    let neighbour = ends.clone().nth(line.saturating_sub(2)).or(ends.clone().next_back());
    let newline = if neighbour.is_some_and(|end| text[..end].ends_with("\r\n")) { "\r\n" } else { "\n" };
    let new = if is_crlf { new.replace("\r\n", "\n").replace('\n', "\r\n") } else { new.to_owned() };
    let new = if line == lines + 1 {
        format!("{newline}{new}")
    } else if new.ends_with('\n') {
        new
    } else {
        format!("{new}{newline}")
    };
    Ok(Spliced { bytes: [&text[..start], &new, &text[start..]].concat().into_bytes(), line })
}

/// Returns where a text occurs, with overlapping matches: the offset and the line, from 1. It stops at
/// [`PLACES_MAX`], so that a text that occurs everywhere costs no more than that.
pub(crate) fn places(text: &str, wanted: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let (mut from, mut counted, mut line) = (0, 0, 1);
    while from <= text.len() && found.len() < PLACES_MAX {
        let Some(start) = text[from..].find(wanted).map(|offset| from + offset) else { break };
        line += newlines(&text.as_bytes()[counted..start]);
        counted = start;
        found.push((start, line));
        from = start + text[start..].chars().next().map_or(1, char::len_utf8);
    }
    found
}
