//! Two texts side by side.

use maud::{Markup, html};
use similar::{DiffOp, TextDiff};

/// How many equal lines are shown around a difference.
const AROUND: usize = 3;
/// The most lines that are compared.
const LINES_MAX: usize = 20_000;
/// The most rows that are shown.
const ROWS_MAX: usize = 2_000;

/// What the two sides are called.
pub(super) struct Sides<'a> {
    pub(super) left: &'a str,
    pub(super) right: &'a str,
}

/// One row: the line on either side, if there is one, with its number.
enum Row<'a> {
    Same(usize, usize, &'a str),
    Different(Option<(usize, &'a str)>, Option<(usize, &'a str)>),
    Gap,
}

/// Two texts, their differences side by side.
pub(super) fn side_by_side(old: &str, new: &str, sides: &Sides<'_>) -> Markup {
    let (left, right) = (lines(old), lines(new));
    if old == new {
        return html! { p.empty { "No difference." } };
    }
    if left.len().max(right.len()) > LINES_MAX {
        return html! { p.warning { "More than " (LINES_MAX) " lines: too long to compare here." } };
    }
    let rows = rows(&left, &right);
    html! {
        // If one text is empty, one side is enough.
        table.compare.one[left.is_empty() || right.is_empty()] {
            caption.hidden { "Differences, line by line" }
            colgroup { col.line; col; col.line; col; }
            thead {
                tr {
                    th.nothing[left.is_empty()] colspan="2" scope="colgroup" { (sides.left) }
                    th.nothing[right.is_empty()] colspan="2" scope="colgroup" { (sides.right) }
                }
            }
            tbody { @for row in rows.iter().take(ROWS_MAX) { (row.shown()) } }
        }
        @if rows.iter().all(|row| !matches!(row, Row::Different(..))) {
            p.dim { "Only line endings differ." }
        }
        @if rows.len() > ROWS_MAX { p.warning { (rows.len() - ROWS_MAX) " more rows are not shown." } }
    }
}

/// The lines of a text without their line ends, LF or CR LF.
pub(super) fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    lines
}

fn rows<'a>(left: &[&'a str], right: &[&'a str]) -> Vec<Row<'a>> {
    let diff = TextDiff::from_slices(left, right);
    let mut rows = Vec::new();
    for group in diff.grouped_ops(AROUND) {
        if !rows.is_empty() {
            rows.push(Row::Gap);
        }
        for op in group {
            match op {
                DiffOp::Equal { old_index, new_index, len } => rows.extend(
                    (0..len).map(|n| Row::Same(old_index + n + 1, new_index + n + 1, left[old_index + n])),
                ),
                op => {
                    let (old, new) = (op.old_range(), op.new_range());
                    for n in 0..old.len().max(new.len()) {
                        let at = |lines: &[&'a str], range: &std::ops::Range<usize>| {
                            (n < range.len()).then(|| (range.start + n + 1, lines[range.start + n]))
                        };
                        rows.push(Row::Different(at(left, &old), at(right, &new)));
                    }
                }
            }
        }
    }
    rows
}

impl Row<'_> {
    fn shown(&self) -> Markup {
        match self {
            Row::Gap => html! { tr.gap { td colspan="4" { "⋯" } } },
            Row::Same(old, new, line) => html! {
                tr.same { td.line { (old) } td { (line) } td.line { (new) } td { (line) } }
            },
            Row::Different(old, new) => {
                let other =
                    |side: &Option<(usize, &str)>| side.map_or(String::new(), |(_, line)| line.to_owned());
                let (left, right) = (other(old), other(new));
                html! {
                    tr {
                        (half(old, &right, "removed"))
                        (half(new, &left, "added"))
                    }
                }
            }
        }
    }
}

fn half(side: &Option<(usize, &str)>, other: &str, class: &str) -> Markup {
    match side {
        None => html! { td.line.nothing {} td.nothing {} },
        Some((number, line)) => {
            let (start, end) = differing(line, other);
            html! {
                td.line { (number) }
                td class=(class) {
                    (&line[..start])
                    @if start < end { strong { (&line[start..end]) } }
                    (&line[end..])
                }
            }
        }
    }
}

/// Where a line differs from another: between their common beginning and their common end.
fn differing(line: &str, other: &str) -> (usize, usize) {
    if other.is_empty() {
        return (0, 0);
    }
    let shared = |a: &mut dyn Iterator<Item = char>, b: &mut dyn Iterator<Item = char>| -> usize {
        a.zip(b).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
    };
    let start = shared(&mut line.chars(), &mut other.chars());
    let (rest, others) = (&line[start..], &other[start..]);
    let end = shared(&mut rest.chars().rev(), &mut others.chars().rev());
    (start, line.len() - end)
}

/// Gives a text from a browser the line ends of the old text: equal lines keep theirs, and the others get the
/// most common one.
pub(super) fn with_ends_of(old: &str, new: &str) -> String {
    let unix = new.replace("\r\n", "\n").replace('\r', "\n");
    if !old.contains('\r') {
        return unix;
    }
    let old_lines = broken(old);
    let windows = old_lines.iter().filter(|(_, end)| *end == "\r\n").count();
    let usual = if windows * 2 > old_lines.len() { "\r\n" } else { "\n" };
    let bare: Vec<&str> = old_lines.iter().map(|(line, _)| *line).collect();
    let new_lines: Vec<&str> = unix.split_inclusive('\n').collect();
    let new_bare: Vec<&str> = new_lines.iter().map(|line| line.trim_end_matches('\n')).collect();
    let mut made = String::with_capacity(new.len());
    for op in TextDiff::from_slices(&bare, &new_bare).ops() {
        let (from, range) = (op.old_range(), op.new_range());
        for n in 0..range.len() {
            let line = new_lines[range.start + n];
            let kept = matches!(op, DiffOp::Equal { .. }) && line.ends_with('\n');
            let end = kept.then(|| old_lines[from.start + n].1).filter(|end| !end.is_empty());
            made.push_str(new_bare[range.start + n]);
            made.push_str(if line.ends_with('\n') { end.unwrap_or(usual) } else { "" });
        }
    }
    made
}

/// The lines of a text with their line ends, split as browsers do: at CR LF, CR and LF.
fn broken(text: &str) -> Vec<(&str, &str)> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\r', '\n']) {
        let len = if rest[at..].starts_with("\r\n") { 2 } else { 1 };
        lines.push((&rest[..at], &rest[at..at + len]));
        rest = &rest[at + len..];
    }
    if !rest.is_empty() {
        lines.push((rest, ""));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_differs() {
        assert_eq!(differing("one two three", "one 2 three"), (4, 7));
        assert_eq!(differing("äb", "äc"), (2, 3));
        assert_eq!(differing("aa", "aaa"), (2, 2));
    }

    #[test]
    fn line_ends_stay_as_they_were() {
        let check = |old: &str, sent: &str, kept: &str| assert_eq!(with_ends_of(old, sent), kept, "{old:?}");
        check("a\nb\n", "a\r\nc\r\n", "a\nc\n");
        check("a\r\nb\r\n", "a\r\nc\r\n", "a\r\nc\r\n");
        check("a\r\nb\nc\n", "a\r\nb\r\nd\r\n", "a\r\nb\nd\n");
        check("", "a\r\nb", "a\nb");
        check("a\r\nb", "a\r\nb", "a\r\nb");
        check("a\rb\nc\nd\n", "a\r\nb\r\nc\r\nd\r\n", "a\rb\nc\nd\n");
        check("a\r\r\nb\r\n", "a\r\n\r\nb\r\n", "a\r\r\nb\r\n");
    }

    #[test]
    fn rows_stand_side_by_side() {
        let shown =
            side_by_side("a\nb\nc\n", "a\nx\nc\nd\n", &Sides { left: "old", right: "new" }).into_string();
        assert!(
            shown.contains("<td class=\"removed\">") && shown.contains("<td class=\"added\">"),
            "{shown}"
        );
        let made = side_by_side("", "a\n", &Sides { left: "old", right: "new" }).into_string();
        assert!(made.contains("<th class=\"nothing\"") && made.contains("class=\"compare one\""), "{made}");
    }
}
