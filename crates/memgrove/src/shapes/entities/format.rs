//! The file of one entity: parsed into pieces that remember their bytes, so that an update
//! changes only what it is about and keeps everything that it does not understand.
//!
//! Parsing and printing are inverse for every string. A value on a line of its own has its
//! newlines written as character references, as markdown knows them (`&#10;`); a further line of
//! an observation is indented beneath its first.

use super::escape::{escaped, escaped_list, escaped_text, unescaped, unescaped_list, unescaped_text};
use super::prose;
use super::{Entity, Facts, Observation, Relation};

const TITLE: &str = "# Entity:";
const OBSERVATIONS: &str = "Observations";
const RELATIONS: &str = "Relations";

/// One entity's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pieces: Vec<Piece>,
    newline: &'static str,
    /// Markdown that nobody wrote for us: its prose counts as observations.
    ordinary: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) raw: String,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    Title(String),
    Field(&'static str, String),
    Section(String),
    Observation(Observation),
    Relation(Relation),
    /// What a front matter says: name, type, tags, created, updated.
    Front(Box<prose::Front>),
    /// A heading of ordinary markdown.
    Heading(String),
    /// Text that is kept as it is.
    Other,
}

const FIELDS: [&str; 4] = ["Type", "Created", "Updated", "Tags"];

impl Document {
    /// A file for a new entity.
    pub fn new(entity: &Entity) -> Self {
        let piece = |raw: String, what| Piece { raw, what };
        let mut pieces =
            vec![piece(format!("{TITLE} {}\n", escaped(&entity.name)), What::Title(entity.name.clone()))];
        let tags = (!entity.tags.is_empty()).then(|| escaped_list(&entity.tags));
        let created = entity.created.as_deref().map(escaped);
        let updated = entity.updated.as_deref().map(escaped);
        let values = [Some(escaped(&entity.kind)), created, updated, tags];
        for (key, value) in FIELDS.into_iter().zip(values) {
            if let Some(value) = value {
                pieces.push(field(key, value, "\n"));
            }
        }
        let mut document = Document { pieces, newline: "\n", ordinary: false };
        document.begin(OBSERVATIONS);
        document.set_observations(&entity.observations);
        document.set_relations(&entity.relations);
        document
    }

    /// A file for relations that start at an entity that does not exist.
    pub fn loose(name: &str) -> Self {
        let raw = format!("{TITLE} {}\n", escaped(name));
        let pieces = vec![Piece { raw, what: What::Title(name.to_owned()) }];
        Document { pieces, newline: "\n", ordinary: false }
    }

    /// Reads a file. Every text is one: what is not understood is kept.
    pub fn parse(text: &str) -> Self {
        let newline = match text.split_once('\n') {
            Some((first, _)) if first.ends_with('\r') => "\r\n",
            _ => "\n",
        };
        let ordinary = !text.trim_start_matches('\u{feff}').lines().any(|line| line.starts_with(TITLE));
        let mut reader =
            Reader { lines: lines(text), at: 0, pieces: Vec::new(), section: String::new(), ordinary };
        reader.read();
        Document { pieces: reader.pieces, newline, ordinary }
    }

    /// The file's text.
    pub fn print(&self) -> String {
        self.pieces.iter().map(|piece| piece.raw.as_str()).collect()
    }

    /// What the file says, `stem` and `folder` standing in for a name and a type that it omits.
    pub fn entity(&self, folder: &str, stem: &str) -> Entity {
        let mut entity = Entity::default();
        let (mut name, mut kind) = (None, None);
        for piece in &self.pieces {
            match &piece.what {
                What::Title(title) => name = name.or(Some(title.clone())),
                What::Heading(title) => name = name.or(Some(title.clone())),
                What::Field("Type", value) => kind = kind.or(Some(unescaped(value))),
                What::Field("Created", value) => {
                    entity.created.get_or_insert_with(|| unescaped(value));
                }
                What::Field("Updated", value) => {
                    entity.updated.get_or_insert_with(|| unescaped(value));
                }
                What::Field(_, value) if entity.tags.is_empty() => entity.tags = unescaped_list(value),
                What::Front(front) => {
                    name = front.name.clone();
                    kind.clone_from(&front.kind);
                    entity.tags.clone_from(&front.tags);
                    entity.created.clone_from(&front.created);
                    entity.updated.clone_from(&front.updated);
                }
                What::Observation(observation) => entity.observations.push(observation.clone()),
                What::Relation(relation) => entity.relations.push(relation.clone()),
                _ => {}
            }
        }
        entity.name = name.unwrap_or_else(|| stem.to_owned());
        entity.kind = kind.unwrap_or_else(|| folder.to_owned());
        entity
    }

    /// Makes the file say this, touching as few bytes as it can. The name stays.
    pub fn update(&mut self, to: &Entity) {
        let now = self.entity("", "");
        if now.kind != to.kind {
            self.set_field("Type", Some(escaped(&to.kind)));
        }
        if now.created != to.created {
            self.set_field("Created", to.created.as_deref().map(escaped));
        }
        if now.updated != to.updated {
            self.set_field("Updated", to.updated.as_deref().map(escaped));
        }
        if now.tags != to.tags {
            self.set_field("Tags", (!to.tags.is_empty()).then(|| escaped_list(&to.tags)));
        }
        self.set_observations(&to.observations);
        self.set_relations(&to.relations);
    }

    fn set_field(&mut self, key: &'static str, value: Option<String>) {
        if let Some(at) = self.pieces.iter().position(|piece| matches!(piece.what, What::Front(_))) {
            // Beneath a front matter, the fields of ours would not be seen: it speaks first.
            prose::set(&mut self.pieces[at], key, value.as_deref().map(unescaped), self.newline);
            return;
        }
        let there = self.pieces.iter().position(|piece| matches!(piece.what, What::Field(k, _) if k == key));
        match (there, value) {
            (Some(at), Some(value)) => self.pieces[at] = field(key, value, self.newline),
            (Some(at), None) => drop(self.pieces.remove(at)),
            (None, Some(value)) => {
                let header = self
                    .pieces
                    .iter()
                    .rposition(|piece| matches!(piece.what, What::Title(_) | What::Field(..)));
                let at = header.map_or(0, |at| at + 1);
                self.end_line_before(at);
                self.pieces.insert(at, field(key, value, self.newline));
            }
            (None, None) => {}
        }
    }

    fn set_observations(&mut self, to: &[Observation]) {
        let is = |piece: &Piece| matches!(piece.what, What::Observation(_));
        let now: Vec<&Observation> = self.pieces.iter().filter_map(Piece::observation).collect();
        if now.iter().copied().eq(to) {
            return;
        }
        let same = now.iter().zip(to).take_while(|(a, b)| **a == *b).count();
        let kept = self.keep_prefix(is, same, now.len());
        let newline = self.newline;
        let made = to[kept..].iter().zip(kept + 1..).map(|(observation, number)| Piece {
            raw: print_observation(observation, number, newline),
            what: What::Observation(observation.clone()),
        });
        let made: Vec<Piece> = made.collect();
        self.add(OBSERVATIONS, made);
    }

    fn set_relations(&mut self, to: &[Relation]) {
        let is = |piece: &Piece| matches!(piece.what, What::Relation(_));
        let now: Vec<&Relation> = self.pieces.iter().filter_map(Piece::relation).collect();
        if now.iter().copied().eq(to) {
            return;
        }
        let same = now.iter().zip(to).take_while(|(a, b)| **a == *b).count();
        let kept = self.keep_prefix(is, same, now.len());
        let newline = self.newline;
        let made = to[kept..].iter().map(|relation| Piece {
            raw: print_relation(relation, newline),
            what: What::Relation(relation.clone()),
        });
        let made: Vec<Piece> = made.collect();
        self.add(RELATIONS, made);
    }

    /// Removes the items behind those that stay, and gives back how many do.
    fn keep_prefix(&mut self, is: impl Fn(&Piece) -> bool, same: usize, all: usize) -> usize {
        if same < all {
            let mut met = 0;
            self.pieces.retain(|piece| {
                let item = is(piece);
                met += usize::from(item);
                !item || met <= same
            });
        }
        same
    }

    /// Adds items to the end of a section's items, and the section if there is none.
    fn add(&mut self, section: &str, made: Vec<Piece>) {
        if made.is_empty() {
            return;
        }
        let head = |piece: &Piece| matches!(&piece.what, What::Section(name) if name == section);
        if !self.pieces.iter().any(head) {
            self.begin(section);
        }
        let start = self.pieces.iter().position(head).expect("it was just made sure of") + 1;
        let next = self.pieces[start..].iter().position(|piece| matches!(piece.what, What::Section(_)));
        let end = next.map_or(self.pieces.len(), |next| start + next);
        // Behind the last item; text of others that follows it stays behind.
        let item =
            self.pieces[start..end].iter().rposition(Piece::is_item).map_or(start, |at| start + at + 1);
        self.end_line_before(item);
        self.pieces.splice(item..item, made);
    }

    fn begin(&mut self, section: &str) {
        let end = self.pieces.len();
        self.end_line_before(end);
        if self.pieces.last().is_some_and(|piece| !piece.raw.trim().is_empty()) {
            self.pieces.push(Piece { raw: self.newline.to_owned(), what: What::Other });
        }
        let raw = format!("## {section}{}", self.newline);
        self.pieces.push(Piece { raw, what: What::Section(section.to_owned()) });
    }

    /// What is put behind a last line without a newline must not become part of it.
    fn end_line_before(&mut self, at: usize) {
        let newline = self.newline;
        if let Some(before) = at.checked_sub(1).and_then(|before| self.pieces.get_mut(before))
            && !before.raw.is_empty()
            && !before.raw.ends_with('\n')
        {
            before.raw.push_str(newline);
        }
    }

    /// Whether it was written for another purpose.
    pub fn is_ordinary(&self) -> bool {
        self.ordinary
    }
}

impl Piece {
    fn observation(&self) -> Option<&Observation> {
        match &self.what {
            What::Observation(observation) => Some(observation),
            _ => None,
        }
    }

    fn relation(&self) -> Option<&Relation> {
        match &self.what {
            What::Relation(relation) => Some(relation),
            _ => None,
        }
    }

    fn is_item(&self) -> bool {
        matches!(self.what, What::Observation(_) | What::Relation(_))
    }
}

fn field(key: &'static str, value: String, newline: &str) -> Piece {
    Piece { raw: format!("**{key}:** {value}{newline}"), what: What::Field(key, value) }
}

fn print_observation(observation: &Observation, number: usize, newline: &str) -> String {
    let mark = format!("{number}. ");
    let indent = " ".repeat(mark.len());
    let mut raw = mark;
    for (index, line) in observation.text.split('\n').enumerate() {
        if index > 0 {
            raw.push_str(&indent);
        }
        raw.push_str(&escaped_text(line));
        raw.push_str(newline);
    }
    raw + &print_facts(&observation.facts, &indent, newline)
}

fn print_relation(relation: &Relation, newline: &str) -> String {
    let kind = escaped(&relation.kind).replace(":**", "&#58;**");
    let line = format!("- **{kind}:** {}{newline}", escaped(&relation.to));
    line + &print_facts(&relation.facts, "  ", newline)
}

fn print_facts(facts: &Facts, indent: &str, newline: &str) -> String {
    let lines = facts.entries().into_iter().filter_map(|(key, value)| Some((key, value?)));
    lines.map(|(key, value)| format!("{indent}- {key}: {}{newline}", escaped(value))).collect()
}

/// The lines of a text, each with its newline.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// A line without its newline.
fn bare(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
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

    /// The title and the fields.
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
        let (mut facts, mut used, mut blank) = (Facts::default(), 1, 0);
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
        self.push(used, What::Observation(Observation { text, facts }));
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
        self.push(used, What::Relation(Relation { kind, to, facts }));
    }

    /// A heading or a paragraph of ordinary markdown.
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
        let text = prose::said(&block);
        self.push(used, What::Observation(Observation { text, facts: Facts::default() }));
    }

    fn push(&mut self, used: usize, what: What) {
        let raw = self.lines[self.at..self.at + used].concat();
        self.at += used;
        self.pieces.push(Piece { raw, what });
    }
}

/// How wide the number or bullet in front of an observation is, the space included.
fn marker(line: &str) -> Option<usize> {
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
    /// Takes a line that states one, and says whether it did.
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
