//! Ordinary markdown, dropped into the folder by someone who has not heard of entities: its front
//! matter, its headings and its paragraphs.

use super::format::{Piece, What};

/// What a front matter says of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Front {
    pub(super) name: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) created: Option<String>,
    pub(super) updated: Option<String>,
}

/// The largest front matter that is looked at, in lines.
const LINES_MAX: usize = 1_000;

/// The front matter at the start of a file, and how many lines it has.
pub(super) fn front(lines: &[&str]) -> Option<(Front, usize)> {
    let dashes = |line: &&str| line.trim_end() == "---";
    lines.first().filter(|line| line.trim_start_matches('\u{feff}').trim_end() == "---")?;
    let end = lines.iter().take(LINES_MAX).skip(1).position(dashes)? + 1;
    let mut front = Front::default();
    let mut key = String::new();
    for line in &lines[1..end] {
        let line = line.trim_end();
        if let Some(item) = line.trim_start().strip_prefix("- ") {
            if key == "tags" {
                front.tags.push(unquoted(item));
            }
            continue;
        }
        let Some((name, value)) = line.split_once(':').filter(|_| !line.starts_with([' ', '\t', '#'])) else {
            continue;
        };
        key = name.trim().to_lowercase();
        let value = value.trim();
        let text = || (!value.is_empty()).then(|| unquoted(value));
        match key.as_str() {
            "name" => front.name = text(),
            "title" => front.name = front.name.take().or_else(text),
            "type" | "kind" | "entitytype" => front.kind = text(),
            "created" | "date" => front.created = front.created.take().or_else(text),
            "updated" | "modified" => front.updated = text(),
            "tags" => front.tags = listed(value),
            _ => {}
        }
    }
    Some((front, end + 1))
}

fn listed(value: &str) -> Vec<String> {
    let inside = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(value);
    inside.split(',').map(|item| unquoted(item.trim())).filter(|item| !item.is_empty()).collect()
}

fn unquoted(value: &str) -> String {
    let value = value.trim();
    let inside = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    inside.unwrap_or(value).to_owned()
}

/// Sets one line of a front matter, and leaves the others as they are.
pub(super) fn set(piece: &mut Piece, field: &'static str, value: Option<String>, newline: &str) {
    let key = field.to_lowercase();
    let mut lines: Vec<String> = piece.raw.split_inclusive('\n').map(str::to_owned).collect();
    let names_key =
        |line: &String| line.split_once(':').is_some_and(|(name, _)| name.trim().to_lowercase() == key);
    let at = lines.iter().position(names_key);
    if let Some(at) = at {
        lines.remove(at);
        // A list beneath the key goes with it.
        while lines.get(at).is_some_and(|line| line.trim_start().starts_with("- ")) {
            lines.remove(at);
        }
    }
    if let Some(value) = value {
        let plain = value.replace(['\n', '\r'], " ");
        let shown = match field {
            "Tags" => format!("[{plain}]"),
            _ => plain,
        };
        let at = at.unwrap_or(lines.len().saturating_sub(1)).max(1);
        lines.insert(at, format!("{key}: {shown}{newline}"));
    }
    piece.raw = lines.concat();
    let read: Vec<&str> = piece.raw.split_inclusive('\n').collect();
    if let Some((front, _)) = front(&read) {
        piece.what = What::Front(Box::new(front));
    }
}

/// The words of a heading.
pub(super) fn heading(line: &str) -> Option<&str> {
    let marks = line.len() - line.trim_start_matches('#').len();
    let words = line[marks..].strip_prefix(' ')?;
    (1..=6).contains(&marks).then(|| words.trim())
}

/// How many lines the paragraph or list item at the start has.
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

/// What a block says, without the mark of a list in front.
pub(super) fn said(lines: &[&str]) -> String {
    let text = lines.join("\n");
    let line = text.trim();
    if !is_item(line) {
        return line.to_owned();
    }
    line.split_once(' ').map_or(line, |(_, words)| words.trim()).to_owned()
}
