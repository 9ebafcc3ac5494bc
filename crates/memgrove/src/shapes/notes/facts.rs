//! What a text that is written to a note says: facts by themselves, and sections of facts.

use super::page::{Page, Piece, Role};
use crate::text::blocks::{self, BlockKind};

/// A fact, or a section of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    /// The heading of a section; a fact has none.
    pub(super) heading: Option<String>,
    /// The blocks right beneath it; of a fact, the fact.
    pub(super) blocks: Vec<String>,
    /// The sections within it.
    pub(super) below: Vec<Given>,
}

/// A text, as it goes into a note.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) front: Option<Piece>,
    pub(super) facts: Vec<Given>,
    /// Lines of its list of links.
    pub(super) links: Vec<Piece>,
}

impl Content {
    /// Reads a text. What memgrove itself keeps of a note is no part of what it says.
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

    /// Closes the open sections from a level on.
    fn close(&mut self, open: &mut Vec<Given>, level: u8) {
        while let Some(section) = open.pop_if(|section| section.level() >= level) {
            match open.last_mut() {
                Some(above) => join(&mut above.below, section),
                None => join(&mut self.facts, section),
            }
        }
    }
}

/// Puts a section among others; two of the same heading are one.
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

    /// The level of its heading; 0 for a fact.
    pub(super) fn level(&self) -> u8 {
        self.heading.as_deref().and_then(blocks::heading).map_or(0, |(level, _)| level)
    }

    /// The words of its heading, in lower case.
    pub(super) fn words(&self) -> Option<String> {
        let (_, words) = blocks::heading(self.heading.as_deref()?)?;
        Some(words.to_lowercase())
    }

    /// All that it says, block by block.
    pub(super) fn all(&self) -> Vec<&str> {
        let own = self.heading.iter().chain(&self.blocks).map(String::as_str);
        own.chain(self.below.iter().flat_map(Given::all)).collect()
    }

    /// All that it says, for an agent.
    pub(super) fn text(&self) -> String {
        self.all().join("\n\n")
    }

    /// What is in it, if its heading is the title of the note that it has come to; else itself.
    pub(super) fn opened(self, title: &str) -> Vec<Given> {
        if self.words().is_none_or(|words| words != title.to_lowercase()) {
            return vec![self];
        }
        let facts = self.blocks.iter().map(|block| Given::fact(block));
        facts.chain(self.below.iter().cloned()).collect()
    }
}

impl Page {
    /// The heading, among the pieces from one to another, that says the same as that of a section.
    pub(super) fn section_of(&self, section: &Given, from: usize, to: usize) -> Option<usize> {
        let words = section.words()?;
        let same = |piece: &Piece| {
            piece.role == Role::Body && piece.heading().is_some_and(|own| own.to_lowercase() == words)
        };
        (from..to.min(self.pieces.len())).find(|at| same(&self.pieces[*at]))
    }

    /// Behind the last piece of the section whose heading is at an index, with its subsections.
    pub(super) fn whole_section_end(&self, heading: usize) -> usize {
        let level = self.pieces[heading].kind.level().unwrap_or(0);
        let outside = |piece: &Piece| {
            piece.role != Role::Body || piece.kind.level().is_some_and(|other| other <= level)
        };
        let rest = self.pieces[heading + 1..].iter().position(outside);
        rest.map_or(self.pieces.len(), |count| heading + 1 + count)
    }

    /// Puts a fact into a page: a plain line becomes an item where the others are items.
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
