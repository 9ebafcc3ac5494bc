//! How a file is read into pieces. Every text is valid: what is not understood is kept.

use super::{FIELDS, OBSERVATIONS, Piece, RELATIONS, TITLE, What};
use crate::shapes::entities::escape::{unescaped, unescaped_text};
use crate::shapes::entities::{Facts, Observation, Relation, prose};

/// The lines of a text, each with its newline.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// A line without its newline.
fn bare(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Reads a text into pieces.
pub(super) fn pieces(text: &str, ordinary: bool) -> Vec<Piece> {
    let mut reader =
        Reader { lines: lines(text), at: 0, pieces: Vec::new(), section: String::new(), ordinary };
    reader.read();
    reader.pieces
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
    pieces: Vec<Piece>,
    section: String,
    ordinary: bool,
}

impl Reader<'_> {
    fn read(&mut self) {
        if let Some((front, used)) = prose::front(&self.lines) {
            self.push(used, What::Front(Box::new(front)));
        }
        while let Some(line) = self.lines.get(self.at) {
            let line = bare(line);
            let line = if self.at == 0 { line.trim_start_matches('\u{feff}') } else { line };
            if let Some(name) = line.strip_prefix("## ") {
                self.section = name.trim().to_owned();
                self.push(1, What::Section(self.section.clone()));
            } else if self.section.is_empty() && self.header(line) {
            } else if self.section == OBSERVATIONS && marker(line).is_some() {
                self.observation(line);
            } else if self.section == RELATIONS && relation(line).is_some() {
                self.relation(line);
            } else if self.ordinary {
                self.prose(line);
            } else {
                self.push(1, What::Other);
            }
        }
    }

    /// Reads a line that is the title or a field.
    fn header(&mut self, line: &str) -> bool {
        let titled = self.pieces.iter().any(|piece| matches!(piece.what, What::Title(_)));
        if let Some(name) = line.strip_prefix(TITLE).filter(|_| !titled) {
            self.push(1, What::Title(unescaped(name.strip_prefix(' ').unwrap_or(name))));
            return true;
        }
        let found = FIELDS.iter().find_map(|key| {
            let value = line.strip_prefix("**")?.strip_prefix(key)?.strip_prefix(":**")?;
            Some((*key, value.strip_prefix(' ').unwrap_or(value).to_owned()))
        });
        let met = |key| self.pieces.iter().any(|piece| matches!(piece.what, What::Field(k, _) if k == key));
        match found {
            Some((key, value)) if !met(key) => {
                self.push(1, What::Field(key, value));
                true
            }
            _ => false,
        }
    }

    fn observation(&mut self, first: &str) {
        let width = marker(first).expect("it was just seen");
        let mut text = unescaped_text(&first[width.min(first.len())..]);
        let (mut facts, mut used, mut blank, mut said) = (Facts::default(), 1, 0, None);
        while let Some(line) = self.lines.get(self.at + used + blank).map(|line| bare(line)) {
            let indent = line.len() - line.trim_start_matches(' ').len();
            if line.is_empty() {
                blank += 1;
                continue;
            }
            if indent < 2 {
                break;
            }
            let content = &line[indent.min(width)..];
            if facts.read(content) {
                said = said.or(Some(used + blank));
                used += blank + 1;
                blank = 0;
                continue;
            }
            if facts != Facts::default() {
                break;
            }
            for _ in 0..blank {
                text.push('\n');
            }
            text.push('\n');
            text.push_str(&unescaped_text(content));
            used += blank + 1;
            blank = 0;
        }
        self.push_item(said.unwrap_or(used), used, What::Observation(Observation { text, facts }));
    }

    fn relation(&mut self, first: &str) {
        let (kind, to) = relation(first).expect("it was just seen");
        let (mut facts, mut used) = (Facts::default(), 1);
        while let Some(line) = self.lines.get(self.at + used).map(|line| bare(line)) {
            let content = line.trim_start_matches(' ');
            if content.len() == line.len() || !facts.read(content) {
                break;
            }
            used += 1;
        }
        self.push_item(1, used, What::Relation(Relation { kind, to, facts }));
    }

    /// Reads a heading or a paragraph of ordinary Markdown.
    fn prose(&mut self, line: &str) {
        if line.trim().is_empty() {
            return self.push(1, What::Other);
        }
        if let Some(heading) = prose::heading(line) {
            let first = self.section.is_empty()
                && !self.pieces.iter().any(|piece| matches!(piece.what, What::Heading(_)));
            return match first && line.starts_with("# ") {
                true => self.push(1, What::Heading(heading.to_owned())),
                false => self.push(1, What::Other),
            };
        }
        let used = prose::block(self.lines[self.at..].iter().map(|line| bare(line)));
        let block: Vec<&str> = self.lines[self.at..self.at + used].iter().map(|line| bare(line)).collect();
        let (mut facts, mut said) = (Facts::default(), used);
        while said > 1 && indented(block[said - 1]).is_some_and(|content| facts.read(content)) {
            said -= 1;
        }
        let text = prose::said(&block[..said]);
        self.push_item(said, used, What::Observation(Observation { text, facts }));
    }

    /// Adds an item of `used` lines, of which the first `said` are the statement and the others its facts.
    fn push_item(&mut self, said: usize, used: usize, what: What) {
        let said = self.lines[self.at..self.at + said].iter().map(|line| line.len()).sum();
        self.push(used, what);
        self.pieces.last_mut().expect("it was just pushed").said = said;
    }

    fn push(&mut self, used: usize, what: What) {
        let raw = self.lines[self.at..self.at + used].concat();
        self.at += used;
        self.pieces.push(Piece::new(raw, what));
    }
}

/// Returns the content of a line that is indented far enough to belong to an item.
fn indented(line: &str) -> Option<&str> {
    let content = line.trim_start_matches(' ');
    (line.len() - content.len() >= 2).then_some(content)
}

/// Returns the width of the number or bullet before an observation, including the space.
pub(super) fn marker(line: &str) -> Option<usize> {
    if line.starts_with("- ") || line.starts_with("* ") {
        return Some(2);
    }
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = line[digits..].strip_prefix('.')?;
    (digits > 0 && (rest.is_empty() || rest.starts_with(' '))).then_some(digits + 2)
}

fn relation(line: &str) -> Option<(String, String)> {
    let (kind, to) = line.strip_prefix("- **")?.split_once(":**")?;
    let to = match to.is_empty() {
        true => "",
        false => to.strip_prefix(' ')?,
    };
    Some((unescaped(kind), unescaped(to)))
}

impl Facts {
    /// Reads a line that states a fact, and returns whether it did.
    fn read(&mut self, content: &str) -> bool {
        let Some(stated) = content.strip_prefix("- ") else { return false };
        for (key, value) in self.entries_mut() {
            if let Some(given) = stated.strip_prefix(key).and_then(|rest| rest.strip_prefix(':'))
                && value.is_none()
            {
                *value = Some(unescaped(given.strip_prefix(' ').unwrap_or(given)));
                return true;
            }
        }
        false
    }
}
