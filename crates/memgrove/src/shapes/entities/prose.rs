//! How ordinary Markdown is read that someone put into the folder without knowing of entities: its front
//! matter, headings and paragraphs.

use super::format::{Piece, What};

/// What a front matter says about an entity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Front {
    pub(super) name: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) created: Option<String>,
    pub(super) updated: Option<String>,
}

/// The most lines of a front matter that are read.
const LINES_MAX: usize = 1_000;

/// Reads the front matter at the start of a file, and how many lines it has.
pub(super) fn front(lines: &[&str]) -> Option<(Front, usize)> {
    let dashes = |line: &&str| line.trim_end() == "---";
    lines.first().filter(|line| line.trim_start_matches('\u{feff}').trim_end() == "---")?;
    let end = lines.iter().take(LINES_MAX).skip(1).position(dashes)? + 1;
    let mut front = Front::default();
    let mut key = "";
    for line in &lines[1..end] {
        let line = line.trim_end();
        if let Some(item) = line.trim_start().strip_prefix("- ") {
            if key == "tags" {
                front.tags.push(unquoted(item));
            }
            continue;
        }
        let Some((name, value)) = entry(line) else { continue };
        key = field(&name);
        let text = || (!value.is_empty()).then(|| unquoted(value));
        match (name.as_str(), key) {
            ("name", _) => front.name = text(),
            ("title", _) => front.name = front.name.take().or_else(text),
            (_, "type") => front.kind = front.kind.take().or_else(text),
            (_, "created") => front.created = front.created.take().or_else(text),
            (_, "updated") => front.updated = front.updated.take().or_else(text),
            (_, "tags") => front.tags = listed(value),
            _ => {}
        }
    }
    Some((front, end + 1))
}

/// Returns the name, in lower case, and the value of a line at the top level.
fn entry(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.split_once(':').filter(|_| !line.starts_with([' ', '\t', '#', '-']))?;
    Some((name.trim().to_lowercase(), value.trim()))
}

/// Returns the field that a key of a front matter stands for; empty if none.
fn field(name: &str) -> &'static str {
    match name {
        "type" | "kind" | "entitytype" => "type",
        "created" | "date" => "created",
        "updated" | "modified" => "updated",
        "tags" => "tags",
        _ => "",
    }
}

/// Splits a list on one line into its items. A comma within quotes does not separate.
fn listed(value: &str) -> Vec<String> {
    let inside = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(value);
    let (mut items, mut start, mut quote, mut escaped) = (Vec::new(), 0, None, false);
    for (at, c) in inside.char_indices() {
        match quote {
            Some('"') if c == '\\' && !escaped => {
                escaped = true;
                continue;
            }
            Some(open) if c == open && !escaped => quote = None,
            None if c == ',' => {
                items.push(&inside[start..at]);
                start = at + 1;
            }
            None if matches!(c, '"' | '\'') && inside[start..at].trim().is_empty() => quote = Some(c),
            _ => {}
        }
        escaped = false;
    }
    items.push(&inside[start..]);
    items.into_iter().map(unquoted).filter(|item| !item.is_empty()).collect()
}

fn unquoted(value: &str) -> String {
    let value = value.trim();
    let inside = |quote| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    if let Some(text) = inside('"') {
        return serde_json::from_str(value).unwrap_or_else(|_| text.to_owned());
    }
    inside('\'').map_or_else(|| value.to_owned(), |text| text.replace("''", "'"))
}

/// Writes a value for a front matter, in quotes if it needs them.
pub(super) fn scalar(value: &str) -> String {
    let signs = "!&*-?|>@`\"'%#{}[],:";
    let plain = !value.is_empty()
        && value.trim() == value
        && !value.starts_with(|c| signs.contains(c))
        && !value.ends_with(':')
        && ![": ", " #"].iter().any(|sign| value.contains(sign))
        && !value.contains(char::is_control);
    if plain { value.to_owned() } else { serde_json::to_string(value).expect("text is plain data") }
}

/// Writes values for a front matter, on one line.
pub(super) fn list(values: &[String]) -> String {
    let item = |value: &String| match value.contains([',', '[', ']', '{', '}']) {
        true => serde_json::to_string(value).expect("text is plain data"),
        false => scalar(value),
    };
    format!("[{}]", values.iter().map(item).collect::<Vec<_>>().join(", "))
}

/// Sets one line of a front matter, and leaves the others as they are.
pub(super) fn set(piece: &mut Piece, key: &'static str, value: Option<String>, newline: &str) {
    let key = key.to_lowercase();
    let mut lines: Vec<String> = piece.raw.split_inclusive('\n').map(str::to_owned).collect();
    let named = |line: &String| entry(line).map(|(name, _)| name).filter(|name| field(name) == key);
    let there = lines.iter().position(|line| named(line).is_some());
    let name = there.and_then(|at| named(&lines[at])).unwrap_or(key.clone());
    if let Some(at) = there {
        lines.remove(at);
        // A list beneath the key is removed with it.
        while lines.get(at).is_some_and(|line| line.trim_start().starts_with("- ")) {
            lines.remove(at);
        }
    }
    if let Some(value) = value {
        let at = there.unwrap_or(lines.len().saturating_sub(1)).max(1);
        lines.insert(at, format!("{name}: {value}{newline}"));
    }
    piece.raw = lines.concat();
    let read: Vec<&str> = piece.raw.split_inclusive('\n').collect();
    if let Some((front, _)) = front(&read) {
        piece.what = What::Front(Box::new(front));
    }
}

/// Returns the words of a heading.
pub(super) fn heading(line: &str) -> Option<&str> {
    let marks = line.len() - line.trim_start_matches('#').len();
    let words = line[marks..].strip_prefix(' ')?;
    (1..=6).contains(&marks).then(|| words.trim())
}

/// Counts the lines of the paragraph or list item at the start.
pub(super) fn block<'a>(lines: impl Iterator<Item = &'a str>) -> usize {
    let mut used = 0;
    let mut fenced = false;
    for line in lines {
        let fence = line.trim_start().starts_with("```");
        let ends =
            !fenced && (line.trim().is_empty() || heading(line).is_some() || (is_item(line) && used > 0));
        if used > 0 && ends {
            break;
        }
        fenced ^= fence;
        used += 1;
        if used > 1 && fence && !fenced {
            break;
        }
    }
    used
}

fn is_item(line: &str) -> bool {
    let line = line.trim_end();
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ")
        || line.starts_with("* ")
        || (numbered.len() < line.len() && numbered.starts_with(". "))
}

/// Returns the text of a block without its list marker.
pub(super) fn said(lines: &[&str]) -> String {
    let text = lines.join("\n");
    let line = text.trim();
    if !is_item(line) {
        return line.to_owned();
    }
    line.split_once(' ').map_or(line, |(_, words)| words.trim()).to_owned()
}
