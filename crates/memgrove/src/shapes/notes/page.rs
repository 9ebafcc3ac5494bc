//! How a note is read and written: as a row of pieces, each of which can be changed without touching a
//! byte of the others.
//!
//! `## Links` and `## Metadata` have a meaning; everything else is the note's own content. An unchanged
//! page is rendered exactly as it was read.

use std::ops::Range;

use super::paths::is_linkable;
use crate::agent::rules::title_of;
use crate::agent::{LinkLine, NoteView, Numbered};
use crate::text::blocks::{self, BYTE_ORDER_MARK, BlockKind};
use crate::text::links::{links_in, listed, listing};
pub(super) use crate::text::metadata::{LAST_UPDATED, SIZE_BYTES, SPLIT_FROM, TITLE_ADDED};

/// The role of a piece in its note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// The front matter.
    Front,
    /// The first heading, if it is of the first level.
    Title,
    /// The note's own content.
    Body,
    /// `## Links`.
    LinksHead,
    /// A line of the list of links.
    Link,
    /// Anything else under `## Links`.
    Aside,
    /// `## Metadata`.
    MetaHead,
    /// The lines of the metadata.
    Meta,
}

/// One block of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) kind: BlockKind,
    pub(super) role: Role,
    /// The text between it and the piece before it, if that piece is still the same.
    pub(super) gap: Option<String>,
    /// Whether memgrove wrote it, not the user.
    pub(super) added: bool,
}

impl Piece {
    /// Makes a piece that is new to a page.
    pub(super) fn new(text: impl Into<String>, role: Role) -> Self {
        let text = text.into();
        let kind = blocks::blocks(&text).first().map_or(BlockKind::Paragraph, |block| block.kind);
        Piece { text, kind, role, gap: None, added: false }
    }

    /// Makes a piece that memgrove writes.
    pub(super) fn added(text: impl Into<String>, role: Role) -> Self {
        Piece { added: true, ..Piece::new(text, role) }
    }

    /// Returns the words of a heading.
    pub(super) fn heading(&self) -> Option<&str> {
        self.kind.level().and_then(|_| blocks::heading(&self.text)).map(|(_, words)| words)
    }
}

/// A note.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Page {
    pub(super) pieces: Vec<Piece>,
    tail: String,
    /// Whether its lines end as on Windows.
    crlf: bool,
}

impl Page {
    /// Reads a note. Any text is valid.
    pub(super) fn parse(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut end = 0;
        for block in blocks::blocks(text) {
            let gap = Some(text[end..block.body.start].to_owned());
            end = block.body.end;
            let role = if block.kind == BlockKind::Front { Role::Front } else { Role::Body };
            pieces.push(Piece {
                text: text[block.body].to_owned(),
                kind: block.kind,
                role,
                gap,
                added: false,
            });
        }
        let crlf = text.find('\n').is_some_and(|at| text[..at].ends_with('\r'));
        let mut page = Page { pieces, tail: text[end..].to_owned(), crlf };
        page.find_roles();
        page
    }

    /// Makes a new note with a title.
    pub(super) fn titled(title: &str) -> Self {
        let title = Piece::added(format!("# {title}"), Role::Title);
        Page { pieces: vec![title], tail: "\n".to_owned(), crlf: false }
    }

    fn find_roles(&mut self) {
        if let Some(first) = self.pieces.iter().position(|piece| piece.role != Role::Front)
            && self.pieces[first].kind == BlockKind::Heading(1)
        {
            self.pieces[first].role = Role::Title;
        }
        let head = |piece: &Piece, words: &str| {
            piece.kind == BlockKind::Heading(2)
                && piece.heading().is_some_and(|own| own.eq_ignore_ascii_case(words))
        };
        if let Some(at) = self.pieces.iter().rposition(|piece| head(piece, "Links")) {
            self.pieces[at].role = Role::LinksHead;
            for piece in self.pieces[at + 1..].iter_mut().take_while(|piece| piece.kind.level().is_none()) {
                piece.role = if listed(&piece.text).is_some() { Role::Link } else { Role::Aside };
            }
        }
        if let Some(at) = self.pieces.iter().rposition(|piece| head(piece, "Metadata")) {
            self.find_metadata(at);
        }
    }

    /// Returns the note as text.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        let mut before: Option<BlockKind> = None;
        for piece in &self.pieces {
            match (&piece.gap, before) {
                (Some(gap), _) => text.push_str(gap),
                (None, Some(before)) => text.push_str(&self.ended(blocks::gap(before, piece.kind))),
                (None, None) => {}
            }
            text.push_str(&piece.text);
            before = Some(piece.kind);
        }
        text.push_str(&self.tail);
        text
    }

    /// Returns the size of the note.
    pub(super) fn bytes(&self) -> usize {
        self.render().len()
    }

    /// Returns a text with the line ends of the note.
    pub(super) fn ended(&self, text: &str) -> String {
        match self.crlf && !text.contains('\r') {
            true => text.replace('\n', "\r\n"),
            false => text.to_owned(),
        }
    }

    /// Inserts a piece before the one at an index.
    pub(super) fn insert(&mut self, at: usize, mut piece: Piece) {
        piece.gap = self.mark_before(at);
        if let Some(next) = self.pieces.get_mut(at) {
            next.gap = None;
        } else if self.tail.trim_matches(['\n', '\r']).is_empty() {
            self.tail = self.ended("\n");
        }
        self.pieces.insert(at, piece);
    }

    /// Removes a piece.
    pub(super) fn remove(&mut self, at: usize) -> Piece {
        let mark = self.mark_before(at);
        if let Some(next) = self.pieces.get_mut(at + 1) {
            next.gap = mark;
        }
        self.pieces.remove(at)
    }

    /// Returns the byte order mark if the piece at an index is first: the mark must stay at the beginning.
    fn mark_before(&self, at: usize) -> Option<String> {
        let gap = self.pieces.get(at).filter(|_| at == 0)?.gap.as_deref()?;
        gap.starts_with(BYTE_ORDER_MARK).then(|| BYTE_ORDER_MARK.to_string())
    }

    /// Returns the title: the first heading, or the last name of the path.
    pub(super) fn title(&self, path: &str) -> String {
        let own = self.pieces.iter().filter(|piece| matches!(piece.role, Role::Title | Role::Body));
        let first = own.take(1).find_map(Piece::heading).filter(|words| !words.is_empty());
        first.map_or_else(|| title_of(path), str::to_owned)
    }

    /// Returns all of the note's own content.
    pub(super) fn own_text(&self) -> String {
        let own = self.pieces.iter().filter(|piece| matches!(piece.role, Role::Title | Role::Body));
        own.map(|piece| piece.text.as_str()).collect::<Vec<_>>().join("\n\n")
    }

    /// Its front matter.
    pub(super) fn front(&self) -> Option<&Piece> {
        self.pieces.first().filter(|piece| piece.role == Role::Front)
    }

    /// Turns its front matter into content: a block of code beneath the first heading. In the middle of a
    /// note it would be read as text, and its last line as a heading.
    pub(super) fn show_front(&mut self) {
        if self.front().is_none() {
            return;
        }
        let front = self.remove(0);
        let lines: Vec<&str> = front.text.lines().collect();
        let inside = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default().join("\n");
        let fence = if inside.contains("```") { "~~~~" } else { "```" };
        let at = usize::from(self.pieces.first().is_some_and(|piece| piece.kind.level().is_some()));
        self.insert(at, Piece::new(format!("{fence}yaml\n{inside}\n{fence}"), Role::Body));
    }

    /// Returns where new content goes: after everything that is the note's own.
    pub(super) fn body_end(&self) -> usize {
        let own = |piece: &Piece| matches!(piece.role, Role::Front | Role::Title | Role::Body);
        self.pieces.iter().rposition(own).map_or(0, |at| at + 1)
    }

    /// Returns where content without a section goes: before the first heading of the content.
    pub(super) fn top_end(&self) -> usize {
        let heads = |piece: &Piece| {
            let own = piece.role == Role::Body && piece.kind.level().is_some();
            own || matches!(piece.role, Role::LinksHead | Role::MetaHead)
        };
        let start = usize::from(self.begins_with_heading());
        let first = self.pieces.iter().skip(start).position(heads).map(|at| at + start);
        first.unwrap_or_else(|| self.body_end())
    }

    /// Whether its first piece is a heading of the content, which serves as its title.
    fn begins_with_heading(&self) -> bool {
        self.pieces.first().is_some_and(|first| first.role == Role::Body && first.kind.level().is_some())
    }

    /// Returns the end of the section with its heading at an index, without subsections.
    pub(super) fn section_end(&self, heading: usize) -> usize {
        let outside = |piece: &Piece| piece.role != Role::Body || piece.kind.level().is_some();
        let rest = self.pieces[heading + 1..].iter().position(outside);
        rest.map_or(self.pieces.len(), |count| heading + 1 + count)
    }

    /// Returns its list of links: for each the piece, the path and the description.
    pub(super) fn links(&self) -> Vec<(usize, String, String)> {
        let of = |(at, piece): (usize, &Piece)| {
            let (link, told) = listed(&piece.text).filter(|_| piece.role == Role::Link)?;
            Some((at, link.target.to_owned(), told.to_owned()))
        };
        self.pieces.iter().enumerate().filter_map(of).collect()
    }

    /// Returns every link of the note with a label: the description of a listed one, the alias of another.
    pub(super) fn edges(&self) -> Vec<(String, String)> {
        let mut edges = Vec::new();
        for piece in self.pieces.iter().filter(|piece| piece.kind != BlockKind::Code) {
            let told = listed(&piece.text).filter(|_| piece.role == Role::Link);
            if let Some((link, told)) = told {
                edges.push((link.target.to_owned(), told.to_owned()));
                continue;
            }
            let inside = links_in(&piece.text).into_iter().filter(|link| !link.target.is_empty());
            edges.extend(inside.map(|link| (link.target.to_owned(), link.alias.unwrap_or("").to_owned())));
        }
        edges
    }

    /// Returns the line that lists a note.
    pub(super) fn line_of(&self, path: &str) -> Option<usize> {
        self.links().into_iter().find(|(_, own, _)| own == path).map(|(at, ..)| at)
    }

    /// Lists a note, or updates its description, unless no link can hold its path.
    pub(super) fn list_link(&mut self, path: &str, description: &str) {
        if !is_linkable(path) {
            return;
        }
        let line = listing(path, description);
        match self.line_of(path) {
            Some(_) if description.is_empty() => {}
            Some(at) => self.pieces[at].text = line,
            None => self.add_link(Piece::added(line, Role::Link)),
        }
    }

    /// Adds a line to the end of the list of links, which is made if it is missing.
    pub(super) fn add_link(&mut self, piece: Piece) {
        let listed = |piece: &Piece| matches!(piece.role, Role::LinksHead | Role::Link);
        let at = match self.pieces.iter().rposition(listed) {
            Some(last) => last + 1,
            None => {
                let meta = self.pieces.iter().position(|piece| piece.role == Role::MetaHead);
                let at = meta.unwrap_or(self.pieces.len());
                self.insert(at, Piece::added("## Links", Role::LinksHead));
                at + 1
            }
        };
        self.insert(at, piece);
    }

    /// Removes `## Links` if nothing is left under it.
    pub(super) fn drop_empty_links(&mut self) {
        let listed = |piece: &Piece| matches!(piece.role, Role::Link | Role::Aside);
        if !self.pieces.iter().any(listed)
            && let Some(at) = self.pieces.iter().position(|piece| piece.role == Role::LinksHead)
        {
            self.remove(at);
        }
    }

    /// Returns the note as an agent sees it: the blocks that may be moved, numbered.
    pub(super) fn view(&self, path: &str) -> NoteView {
        NoteView { links: self.link_lines(), ..self.view_of(path, 0..self.pieces.len()) }
    }

    /// Returns some pieces of the note as an agent sees them, without its links.
    pub(super) fn view_of(&self, path: &str, pieces: Range<usize>) -> NoteView {
        let block = |number: usize| Numbered {
            number,
            level: self.pieces[number].kind.level().unwrap_or(0),
            text: self.pieces[number].text.clone(),
        };
        let own = pieces.filter(|number| self.pieces[*number].role == Role::Body);
        NoteView {
            path: path.to_owned(),
            title: self.title(path),
            blocks: own.map(block).collect(),
            links: Vec::new(),
        }
    }

    /// Returns the list of links as an agent sees it.
    pub(super) fn link_lines(&self) -> Vec<LinkLine> {
        let line = |(number, path, description)| LinkLine { number, path, description };
        self.links().into_iter().map(line).collect()
    }

    /// Whether the rendered text, when it is read again, has the same links and the same metadata.
    pub(super) fn reads_back(&self) -> bool {
        let again = Page::parse(&self.render());
        let meta =
            |page: &Page| page.pieces.iter().find(|piece| piece.role == Role::Meta).map(|p| p.text.clone());
        let paths =
            |page: &Page| page.links().into_iter().map(|(_, path, told)| (path, told)).collect::<Vec<_>>();
        paths(self) == paths(&again) && meta(self) == meta(&again)
    }
}
