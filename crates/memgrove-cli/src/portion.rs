//! How much of an answer fits: budgets in tokens, ranges of lines, sizes for people.

use std::borrow::Cow;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;

/// How many bytes of text are about one token.
const BYTES_PER_TOKEN: usize = 4;

/// About how many tokens a text is.
pub(crate) fn tokens(text: &str) -> usize {
    tokens_of(text.len())
}

/// About how many tokens a text of so many bytes is.
pub(crate) fn tokens_of(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// A range of lines, counted from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct LineRange {
    from: usize,
    to: usize,
}

impl Default for LineRange {
    fn default() -> Self {
        LineRange { from: 1, to: usize::MAX }
    }
}

impl FromStr for LineRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a range of lines such as 10:20, 10: or 10");
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|line| *line > 0);
        let (from, to) = match text.split_once(':') {
            None => (number(text), number(text)),
            Some((from, "")) => (number(from), Some(usize::MAX)),
            Some(("", to)) => (Some(1), number(to)),
            Some((from, to)) => (number(from), number(to)),
        };
        match (from, to) {
            (Some(from), Some(to)) if from <= to => Ok(LineRange { from, to }),
            _ => Err(wrong()),
        }
    }
}

impl TryFrom<String> for LineRange {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl JsonSchema for LineRange {
    fn schema_name() -> Cow<'static, str> {
        "LineRange".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

/// The part of a text that was asked for and fits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cut<'a> {
    /// The part, without its last newline.
    pub(crate) text: &'a str,
    /// The number of its first line.
    pub(crate) from: usize,
    /// The number of its last line.
    pub(crate) to: usize,
    /// The lines of the whole text.
    pub(crate) lines: usize,
    wanted_to: usize,
    /// How many bytes of its last line did not fit.
    rest: usize,
}

impl Cut<'_> {
    /// What did not fit, and how to get it.
    pub(crate) fn left_out(&self) -> Option<String> {
        self.told(&format!("view with lines \"{}:\"", self.to + 1))
    }

    /// What did not fit, and how to get lines that were left out.
    fn told(&self, how: &str) -> Option<String> {
        let wanted = self.wanted_to.min(self.lines);
        let after = self.to + 1;
        match (self.rest, self.to < wanted) {
            (0, false) => None,
            (0, true) => Some(format!("lines {after} to {wanted} left out: {how}")),
            (rest, false) => Some(format!("line {} has {rest} more bytes: raise the budget", self.to)),
            (rest, true) => Some(format!(
                "line {} has {rest} more bytes, and lines {after} to {wanted} are left out: raise the budget",
                self.to
            )),
        }
    }
}

/// Cuts a range of lines out of a text, as many as fit the budget. If not even the first fits, cuts that line
/// short.
pub(crate) fn lines(text: &str, range: LineRange, budget: usize) -> Cut<'_> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let bytes_max = budget.saturating_mul(BYTES_PER_TOKEN);
    let (mut at, mut part, mut to) = (0, body.len()..body.len(), range.from - 1);
    for (line, number) in body.split('\n').zip(1..) {
        let end = at + line.len();
        let first = number == range.from;
        if number > range.to || (!first && number > range.from && end - part.start > bytes_max) {
            break;
        }
        if number >= range.from {
            part = if first { at..end } else { part.start..end };
            to = number;
        }
        at = end + 1;
    }
    let lines = body.split('\n').count();
    let mut end = part.end.min(part.start.saturating_add(bytes_max));
    while !body.is_char_boundary(end) {
        end -= 1;
    }
    let rest = part.end - end;
    Cut { text: &body[part.start..end], from: range.from, to, lines, wanted_to: range.to, rest }
}

/// As [`lines`], but takes the text, so that a part at its start need not be copied. Also says what did not
/// fit and how to get it.
pub(crate) fn lines_of(mut text: String, range: LineRange, budget: usize) -> (String, Option<String>) {
    let cut = lines(&text, range, budget);
    let left_out = cut.left_out();
    if range.from > 1 {
        return (cut.text.to_owned(), left_out);
    }
    let len = cut.text.len();
    text.truncate(len);
    (text, left_out)
}

/// As [`lines_of`] with all lines, for verbs that take none: only a larger budget gets more.
pub(crate) fn start_of(mut text: String, budget: usize) -> (String, Option<String>) {
    let cut = lines(&text, LineRange::default(), budget);
    let (len, left_out) = (cut.text.len(), cut.told("raise the budget"));
    text.truncate(len);
    (text, left_out)
}

/// A size as people read it: 0B, 1023B, 1.5K, 2M.
pub(crate) fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "K", "M", "G"] {
        if value < 1024.0 || unit == "G" {
            let text = format!("{value:.1}");
            return format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text));
        }
        value /= 1024.0;
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_lines() {
        let check = |text: &str, range: Option<(usize, usize)>| {
            assert_eq!(text.parse().ok(), range.map(|(from, to)| LineRange { from, to }), "{text}");
        };
        check("3", Some((3, 3)));
        check("3:5", Some((3, 5)));
        check("3:", Some((3, usize::MAX)));
        check(":5", Some((1, 5)));
        check("0", None);
        check("5:3", None);
        check("", None);
        check("a:b", None);
    }

    #[test]
    fn cuts() {
        let check = |text: &str, range: &str, budget: usize, part: &str, left_out: Option<&str>| {
            let cut = lines(text, range.parse().expect("a range"), budget);
            assert_eq!((cut.text, cut.left_out().as_deref()), (part, left_out), "{text:?} {range}");
        };
        check("a\nb\nc\n", "1:", 99, "a\nb\nc", None);
        check("a\nb\nc", "2:", 99, "b\nc", None);
        check("a\nb\nc", "2", 99, "b", None);
        check("a\nb\nc", "9:", 99, "", None);
        check("", "1:", 99, "", None);
        check("\n\n", "1:", 99, "\n", None);
        check("aaaa\nbbbb\ncccc\n", "1:", 2, "aaaa", Some("lines 2 to 3 left out: view with lines \"2:\""));
        check(
            "a very long first line\nb\n",
            "1:",
            1,
            "a ve",
            Some("line 1 has 18 more bytes, and lines 2 to 2 are left out: raise the budget"),
        );
        check(
            "\u{e9}\u{e9}\u{e9}",
            "1:",
            1,
            "\u{e9}\u{e9}",
            Some("line 1 has 2 more bytes: raise the budget"),
        );
    }

    #[test]
    fn what_takes_no_lines_does_not_tell_of_them() {
        let check = |text: &str, budget: usize, part: &str, left_out: Option<&str>| {
            let (kept, told) = start_of(text.to_owned(), budget);
            assert_eq!((kept.as_str(), told.as_deref()), (part, left_out), "{text:?}");
        };
        check("a\nb\n", 99, "a\nb", None);
        check("aaaa\nbbbb\ncccc\n", 2, "aaaa", Some("lines 2 to 3 left out: raise the budget"));
        check("aaaabbbb", 1, "aaaa", Some("line 1 has 4 more bytes: raise the budget"));
    }

    #[test]
    fn sizes() {
        let sizes = [0, 1023, 1024, 1536, 1 << 20, 5 << 30].map(size);
        assert_eq!(sizes, ["0B", "1023B", "1K", "1.5K", "1M", "5G"]);
    }
}
