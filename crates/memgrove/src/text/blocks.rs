//! How Markdown divides into blocks: headings, list items, paragraphs, code. Between two blocks there is
//! only white space, so a text can be taken apart and put together again without loss.
//!
//! Nothing here fails on any input, and nothing is interpreted that moving a block could break.

use std::ops::Range;

/// A longer paragraph is divided at its lines: it may be a log without blank lines, whose entries could
/// otherwise not be moved.
const PARAGRAPH_BYTES_MAX: usize = 2048;

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// The `---` fenced head of a file.
    Front,
    /// A heading of a level from 1 to 6.
    Heading(u8),
    /// An item of a list, with all that is indented beneath it.
    Item,
    /// A line that begins with a date, with the lines that follow it.
    Entry,
    /// Anything else, up to a blank line.
    Paragraph,
    /// Fenced code.
    Code,
}

impl BlockKind {
    /// The level of a heading.
    pub fn level(self) -> Option<u8> {
        match self {
            BlockKind::Heading(level) => Some(level),
            _ => None,
        }
    }
}

/// One block of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub kind: BlockKind,
    /// Where it is: whole lines, without the last newline.
    pub body: Range<usize>,
}

/// Returns what separates two blocks that were not adjacent before.
pub fn gap(before: BlockKind, after: BlockKind) -> &'static str {
    match (before, after) {
        (BlockKind::Item, BlockKind::Item) | (BlockKind::Entry, BlockKind::Entry) => "\n",
        _ => "\n\n",
    }
}

/// The words of a heading, or `None` for any other line.
pub fn heading(line: &str) -> Option<(u8, &str)> {
    let text = line.trim_end();
    let level = text.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &text[level..];
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let words = rest.trim();
    // A closing row of `#` is decoration.
    let bare = words.trim_end_matches('#');
    let words = if bare.is_empty() || bare.ends_with(' ') { bare.trim_end() } else { words };
    Some((u8::try_from(level).unwrap_or(6), words))
}

/// The length of the bullet or number that begins a list item, with the space behind it.
pub fn bullet(line: &str) -> Option<usize> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let rest = &line[indent..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let mark = match rest.as_bytes().get(digits) {
        Some(b'-' | b'*' | b'+') if digits == 0 => 1,
        Some(b'.' | b')') if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    let behind = &rest[mark..];
    (indent < 2 && (behind.starts_with([' ', '\t'])) && !is_rule(rest)).then_some(indent + mark + 1)
}

/// Returns the date at the start of a line, after a bullet, bracket or emphasis, as `YYYY-MM-DD`.
pub fn leading_date(line: &str) -> Option<&str> {
    let rest = line[bullet(line).unwrap_or(0)..].trim_start_matches(['#', ' ', '[', '*', '_', '(']);
    let date = rest.get(..10)?;
    is_date(date).then_some(date)
}

/// Whether ten characters are a date such as `2025-01-31`.
pub fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits =
        |range: Range<usize>| bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit));
    let number = |range: Range<usize>| text.get(range).and_then(|part| part.parse::<u8>().ok()).unwrap_or(0);
    bytes.len() == 10
        && (bytes[4], bytes[7]) == (b'-', b'-')
        && digits(0..4)
        && digits(5..7)
        && digits(8..10)
        && (1..=12).contains(&number(5..7))
        && (1..=31).contains(&number(8..10))
}

/// The mark that some editors put at the start of a file; it belongs to no block.
pub const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the blocks of a text, in order. Outside of them there is only white space, and perhaps a byte
/// order mark.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut scan = Scan { text, lines: lines(text), at: 0, unclosed: [usize::MAX; 2], found: Vec::new() };
    scan.front();
    while scan.at < scan.lines.len() {
        if scan.is_blank(scan.at) {
            scan.at += 1;
            continue;
        }
        scan.block();
    }
    scan.found
}

struct Scan<'a> {
    text: &'a str,
    lines: Vec<Range<usize>>,
    at: usize,
    /// For backticks and tildes, the fence length from which on no closing fence exists.
    unclosed: [usize; 2],
    found: Vec<Block>,
}

impl<'a> Scan<'a> {
    fn line(&self, at: usize) -> &'a str {
        &self.text[self.lines[at].clone()]
    }

    fn is_blank(&self, at: usize) -> bool {
        self.line(at).trim().is_empty()
    }

    fn push(&mut self, kind: BlockKind, end: usize) {
        let body = self.lines[self.at].start..self.lines[end - 1].end;
        self.found.push(Block { kind, body });
        self.at = end;
    }

    fn front(&mut self) {
        if self.lines.is_empty() || self.line(0).trim_end() != "---" {
            return;
        }
        if let Some(close) = (1..self.lines.len()).find(|at| self.line(*at).trim_end() == "---") {
            self.push(BlockKind::Front, close + 1);
        }
    }

    fn block(&mut self) {
        let line = self.line(self.at);
        if let Some((level, _)) = heading(line) {
            return self.push(BlockKind::Heading(level), self.at + 1);
        }
        if let Some(end) = self.fence_end(self.at) {
            return self.push(BlockKind::Code, end);
        }
        if bullet(line).is_some() {
            let end = self.item_end();
            return self.push(BlockKind::Item, end);
        }
        let kind = if leading_date(line).is_some() { BlockKind::Entry } else { BlockKind::Paragraph };
        let mut end = self.at + 1;
        while end < self.lines.len() && !self.is_blank(end) && !self.begins(end) {
            end += 1;
        }
        let whole = self.lines[end - 1].end - self.lines[self.at].start;
        if whole > PARAGRAPH_BYTES_MAX {
            let start = self.lines[self.at].start;
            let fits = |at: &usize| self.lines[*at].end - start <= PARAGRAPH_BYTES_MAX;
            end = (self.at + 1..end).take_while(fits).last().map_or(self.at + 1, |last| last + 1);
        }
        self.push(kind, end);
    }

    /// Whether a line ends the paragraph before it.
    fn begins(&mut self, at: usize) -> bool {
        let line = self.line(at);
        heading(line).is_some()
            || bullet(line).is_some()
            || leading_date(line).is_some()
            || self.fence_end(at).is_some()
    }

    fn item_end(&mut self) -> usize {
        let mut end = self.at + 1;
        while end < self.lines.len() {
            if self.is_blank(end) {
                let next = (end..self.lines.len()).find(|at| !self.is_blank(*at));
                match next {
                    Some(next) if is_indented(self.line(next)) => end = next,
                    _ => break,
                }
            } else if is_indented(self.line(end)) || !self.begins(end) {
                end += 1;
            } else {
                break;
            }
        }
        end
    }

    /// Returns where the fenced code that begins at a line ends; `None` if none begins there, or it never
    /// ends.
    fn fence_end(&mut self, at: usize) -> Option<usize> {
        let (mark, length) = fence(self.line(at))?;
        let known = &mut self.unclosed[usize::from(mark == '~')];
        if length >= *known {
            return None;
        }
        let closes = |line: &str| {
            let line = line.trim();
            line.len() >= length && line.chars().all(|c| c == mark)
        };
        let (text, lines) = (self.text, &self.lines);
        let close = (at + 1..lines.len()).find(|at| closes(&text[lines[*at].clone()]));
        if close.is_none() {
            *known = length;
        }
        close.map(|close| close + 1)
    }
}

/// The mark and the length of a code fence that opens at a line.
fn fence(line: &str) -> Option<(char, usize)> {
    let rest = line.trim_start_matches(' ');
    let mark = rest.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = rest.chars().take_while(|c| *c == mark).count();
    let info = &rest[length..];
    (line.len() - rest.len() < 4 && length >= 3 && !(mark == '`' && info.contains('`')))
        .then_some((mark, length))
}

fn is_indented(line: &str) -> bool {
    line.starts_with("  ") || line.starts_with('\t')
}

fn is_rule(line: &str) -> bool {
    let mut marks = line.chars().filter(|c| !c.is_whitespace());
    let Some(first) = marks.next().filter(|c| matches!(c, '-' | '*' | '_')) else { return false };
    let rest: Vec<char> = marks.collect();
    rest.len() >= 2 && rest.iter().all(|c| *c == first)
}

/// The lines of a text, without their newlines.
fn lines(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = text.len() - text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text).len();
    while start < text.len() {
        let newline = memchr::memchr(b'\n', &text.as_bytes()[start..]);
        let next = newline.map_or(text.len(), |at| start + at + 1);
        let mut end = newline.map_or(text.len(), |at| start + at);
        if newline.is_some() && end > start && text.as_bytes()[end - 1] == b'\r' {
            end -= 1;
        }
        found.push(start..end);
        start = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let found: Vec<(String, &str)> = blocks(text)
            .into_iter()
            .map(|block| (format!("{:?}", block.kind).to_lowercase(), &text[block.body]))
            .collect();
        let found: Vec<(&str, &str)> = found.iter().map(|(kind, body)| (kind.as_str(), *body)).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn blocks_of_every_kind() {
        check("", &[]);
        check(" \n\n", &[]);
        check(
            "# A\ntext\nmore\n\nlast",
            &[("heading(1)", "# A"), ("paragraph", "text\nmore"), ("paragraph", "last")],
        );
        check(
            "- a\n- b\n  under b\n\n  still b\nlazy\n\nafter",
            &[("item", "- a"), ("item", "- b\n  under b\n\n  still b\nlazy"), ("paragraph", "after")],
        );
        check("1. a\r\n2) b\r\n", &[("item", "1. a"), ("item", "2) b")]);
        check("---\na: b\n---\n\nx", &[("front", "---\na: b\n---"), ("paragraph", "x")]);
        check("\u{feff}---\na: b\n---\n# A", &[("front", "---\na: b\n---"), ("heading(1)", "# A")]);
        check(
            "x\n```\n# no\n\n```\ny",
            &[("paragraph", "x"), ("code", "```\n# no\n\n```"), ("paragraph", "y")],
        );
        check("```\nnever closed\n\n# A", &[("paragraph", "```\nnever closed"), ("heading(1)", "# A")]);
        check("- - -\n---\n***bold***", &[("paragraph", "- - -\n---\n***bold***")]);
        check(
            "2025-01-02 a\nmore\n2025-01-03 b",
            &[("entry", "2025-01-02 a\nmore"), ("entry", "2025-01-03 b")],
        );
        check("#no heading\n####### nor this", &[("paragraph", "#no heading\n####### nor this")]);
    }

    #[test]
    fn long_paragraphs_come_apart_at_their_lines() {
        let text = "a line of a log without blank lines between its entries\n".repeat(200);
        let found = blocks(&text);
        assert!(found.len() > 4 && found.iter().all(|block| block.body.len() <= PARAGRAPH_BYTES_MAX));
    }

    #[test]
    fn parts_of_lines() {
        assert_eq!(heading("## A b ##"), Some((2, "A b")));
        assert_eq!(heading("# C#"), Some((1, "C#")));
        assert_eq!(heading("#"), Some((1, "")));
        assert_eq!(
            (bullet("- a"), bullet("12. a"), bullet("-a"), bullet("   - a")),
            (Some(2), Some(4), None, None)
        );
        assert_eq!(leading_date("- **2025-01-31** x"), Some("2025-01-31"));
        assert_eq!(leading_date("2025-13-01 x"), None);
        assert_eq!(leading_date("日本語の文章です"), None);
    }
}
