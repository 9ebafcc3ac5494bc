//! What a text written to a note says: single facts, and sections of facts.

use super::page::{Page, Piece, Role};
use crate::text::blocks::{self, BlockKind};

/// A fact, or a section of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    /// The heading of a section; `None` for a fact.
    pub(super) heading: Option<String>,
    /// The blocks right beneath the heading, or the fact itself.
    pub(super) blocks: Vec<String>,
    /// The sections within it.
    pub(super) below: Vec<Given>,
    /// The headings above it, outermost first, of sections that the note has: it goes beneath them.
    pub(super) under: Vec<String>,
}

/// A text, divided into what goes where in a note.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) front: Option<Piece>,
    pub(super) facts: Vec<Given>,
    /// Lines of its list of links.
    pub(super) links: Vec<Piece>,
}

impl Content {
    /// Reads a text, without the metadata that memgrove itself maintains.
    pub(super) fn of(text: &str) -> Self {
        let page = Page::parse(text);
        let mut content = Content::default();
        let mut open: Vec<Given> = Vec::new();
        for piece in &page.pieces {
            match piece.role {
                Role::Front => content.front = Some(piece.clone()),
                Role::Link => content.links.push(piece.clone()),
                Role::LinksHead | Role::MetaHead => {}
                Role::Meta if page.foreign_meta().is_empty() => {}
                Role::Meta => content.facts.push(Given::fact(&page.foreign_meta())),
                Role::Aside => content.facts.push(Given::fact(&piece.text)),
                Role::Title | Role::Body => content.add(&mut open, piece),
            }
        }
        content.close(&mut open, 0);
        content
    }

    pub(super) fn is_empty(&self) -> bool {
        self.front.is_none() && self.facts.is_empty() && self.links.is_empty()
    }

    fn add(&mut self, open: &mut Vec<Given>, piece: &Piece) {
        match (piece.kind.level(), open.last_mut()) {
            (Some(level), _) => {
                self.close(open, level);
                open.push(Given { heading: Some(piece.text.clone()), ..Given::default() });
            }
            (None, Some(section)) => section.blocks.push(piece.text.clone()),
            (None, None) => self.facts.push(Given::fact(&piece.text)),
        }
    }

    /// Closes the open sections whose level is at least `level`.
    fn close(&mut self, open: &mut Vec<Given>, level: u8) {
        while let Some(section) = open.pop_if(|section| section.level() >= level) {
            match open.last_mut() {
                Some(above) => join(&mut above.below, section),
                None => join(&mut self.facts, section),
            }
        }
    }
}

/// Adds a section to others; two with the same heading are combined.
fn join(others: &mut Vec<Given>, section: Given) {
    match others.iter_mut().find(|other| other.words().is_some() && other.words() == section.words()) {
        Some(other) => {
            other.blocks.extend(section.blocks);
            section.below.into_iter().for_each(|below| join(&mut other.below, below));
        }
        None => others.push(section),
    }
}

impl Given {
    fn fact(text: &str) -> Self {
        Given { blocks: vec![text.to_owned()], ..Given::default() }
    }

    /// Returns the level of its heading; 0 for a fact.
    pub(super) fn level(&self) -> u8 {
        self.heading.as_deref().and_then(blocks::heading).map_or(0, |(level, _)| level)
    }

    /// Returns the words of its heading, in lower case.
    pub(super) fn words(&self) -> Option<String> {
        let (_, words) = blocks::heading(self.heading.as_deref()?)?;
        Some(words.to_lowercase())
    }

    /// Returns its whole text, block by block.
    pub(super) fn all(&self) -> Vec<&str> {
        let own = self.heading.iter().chain(&self.blocks).map(String::as_str);
        own.chain(self.below.iter().flat_map(Given::all)).collect()
    }

    /// Returns its whole text, for an agent.
    pub(super) fn text(&self) -> String {
        self.all().join("\n\n")
    }

    /// Opens a section for the note that it has come to. If its heading is the title of the note, its parts
    /// are placed one by one. If the note has the section, but may have been split, so are the sections
    /// within it, because each may be in another note by now.
    pub(super) fn opened(self, page: &Page, title: &str) -> Vec<Given> {
        let parts: Vec<Given> = match self.words().is_some_and(|words| words == title.to_lowercase()) {
            true => self.blocks.iter().map(|block| Given::fact(block)).chain(self.below.clone()).collect(),
            false => vec![self],
        };
        if page.links().is_empty() {
            return parts;
        }
        let mut opened = Vec::new();
        for part in parts {
            part.take_apart(page, 0, page.pieces.len(), &mut opened);
        }
        opened
    }

    /// Takes a section apart whose heading is among the pieces from one to another.
    fn take_apart(self, page: &Page, from: usize, to: usize, parts: &mut Vec<Given>) {
        let Some(at) = page.section_of(&self, from, to) else { return parts.push(self) };
        let Given { heading, blocks, below, mut under } = self;
        under.extend(heading);
        if !blocks.is_empty() {
            parts.push(Given { blocks, under: under.clone(), ..Given::default() });
        }
        let end = page.whole_section_end(at);
        for section in below {
            Given { under: under.clone(), ..section }.take_apart(page, at + 1, end, parts);
        }
    }

    /// Whether it goes right beneath a heading of the note, and to no other note.
    pub(super) fn stays(&self) -> bool {
        self.heading.is_none() && !self.under.is_empty()
    }

    /// Returns it inside the sections that it goes beneath.
    pub(super) fn enclosed(self) -> Self {
        let Given { heading, blocks, below, under } = self;
        let mut whole = Given { heading, blocks, below, ..Given::default() };
        for heading in under.into_iter().rev() {
            // Blocks without a heading are those right beneath the innermost one.
            whole = match whole.heading.is_none() {
                true => Given { heading: Some(heading), ..whole },
                false => Given { heading: Some(heading), below: vec![whole], ..Given::default() },
            };
        }
        whole
    }

    /// Returns it as it goes on to another note.
    pub(super) fn handed_on(self) -> Self {
        Given { under: Vec::new(), ..self }
    }
}

impl Page {
    /// Finds, in a range of pieces, a heading with the same words as that of a section.
    pub(super) fn section_of(&self, section: &Given, from: usize, to: usize) -> Option<usize> {
        let words = section.words()?;
        let same = |piece: &Piece| {
            piece.role == Role::Body && piece.heading().is_some_and(|own| own.to_lowercase() == words)
        };
        (from..to.min(self.pieces.len())).find(|at| same(&self.pieces[*at]))
    }

    /// Returns the end of the section with its heading at an index, subsections included.
    pub(super) fn whole_section_end(&self, heading: usize) -> usize {
        let level = self.pieces[heading].kind.level().unwrap_or(0);
        let outside = |piece: &Piece| {
            piece.role != Role::Body || piece.kind.level().is_some_and(|other| other <= level)
        };
        let rest = self.pieces[heading + 1..].iter().position(outside);
        rest.map_or(self.pieces.len(), |count| heading + 1 + count)
    }

    /// Inserts a fact into a page. A plain line becomes a list item where the others are list items.
    pub(super) fn insert_fact(&mut self, at: usize, fact: &str) {
        let before = at.checked_sub(1).and_then(|before| self.pieces.get(before));
        let listed =
            before.is_none_or(|before| before.kind == BlockKind::Item || before.kind.level().is_some());
        let piece = Piece::new(self.ended(fact), Role::Body);
        let plain = matches!(piece.kind, BlockKind::Paragraph | BlockKind::Entry) && !fact.contains('\n');
        let item = listed && plain && !fact.starts_with(['>', '|']);
        let piece = if item { Piece::new(format!("- {}", fact.trim_start()), Role::Body) } else { piece };
        self.insert(at, piece);
    }
}
