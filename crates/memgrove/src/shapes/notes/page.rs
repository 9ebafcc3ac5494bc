//! A note as a row of pieces, which can be changed without touching a byte of the others.
//!
//! `## Links` and `## Metadata` are known; everything else is the note's own. A page that is not
//! changed is rendered exactly as it was read.

use std::ops::Range;

use super::paths::is_linkable;
use crate::agent::rules::title_of;
use crate::agent::{LinkLine, NoteView, Numbered};
use crate::text::blocks::{self, BYTE_ORDER_MARK, BlockKind};
use crate::text::links::{links_in, listed, listing};
pub(super) use crate::text::metadata::{LAST_UPDATED, SIZE_BYTES, SPLIT_FROM, TITLE_ADDED};

/// What a piece is to the note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// The head of the file.
    Front,
    /// The first heading, if it is of the first level.
    Title,
    /// The note's own content.
    Body,
    /// `## Links`.
    LinksHead,
    /// A line of the list of links.
    Link,
    /// Something else under `## Links`.
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
    /// What stood before it, if what stands before it is still the same.
    pub(super) gap: Option<String>,
    /// Whether memgrove wrote it, not the user.
    pub(super) added: bool,
}

impl Piece {
    /// A piece that is new to a page.
    pub(super) fn new(text: impl Into<String>, role: Role) -> Self {
        let text = text.into();
        let kind = blocks::blocks(&text).first().map_or(BlockKind::Paragraph, |block| block.kind);
        Piece { text, kind, role, gap: None, added: false }
    }

    /// A piece that memgrove writes.
    pub(super) fn added(text: impl Into<String>, role: Role) -> Self {
        Piece { added: true, ..Piece::new(text, role) }
    }

    /// The words of a heading.
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
    /// Reads a note. Any text is one.
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

    /// A new note with a title.
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

    /// The note as text.
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

    /// How many bytes it is.
    pub(super) fn bytes(&self) -> usize {
        self.render().len()
    }

    /// A text with lines that end as those of the note do.
    pub(super) fn ended(&self, text: &str) -> String {
        match self.crlf && !text.contains('\r') {
            true => text.replace('\n', "\r\n"),
            false => text.to_owned(),
        }
    }

    /// Puts a piece before the one at an index.
    pub(super) fn insert(&mut self, at: usize, mut piece: Piece) {
        piece.gap = self.mark_before(at);
        if let Some(next) = self.pieces.get_mut(at) {
            next.gap = None;
        } else if self.tail.trim_matches(['\n', '\r']).is_empty() {
            self.tail = self.ended("\n");
        }
        self.pieces.insert(at, piece);
    }

    /// Takes a piece out.
    pub(super) fn remove(&mut self, at: usize) -> Piece {
        let mark = self.mark_before(at);
        if let Some(next) = self.pieces.get_mut(at + 1) {
            next.gap = mark;
        }
        self.pieces.remove(at)
    }

    /// The mark that stays before whatever is first.
    fn mark_before(&self, at: usize) -> Option<String> {
        let gap = self.pieces.get(at).filter(|_| at == 0)?.gap.as_deref()?;
        gap.starts_with(BYTE_ORDER_MARK).then(|| BYTE_ORDER_MARK.to_string())
    }

    /// The title: the first heading, or the last name of the path.
    pub(super) fn title(&self, path: &str) -> String {
        let own = self.pieces.iter().filter(|piece| matches!(piece.role, Role::Title | Role::Body));
        let first = own.take(1).find_map(Piece::heading).filter(|words| !words.is_empty());
        first.map_or_else(|| title_of(path), str::to_owned)
    }

    /// All of the note's own content.
    pub(super) fn own_text(&self) -> String {
        let own = self.pieces.iter().filter(|piece| matches!(piece.role, Role::Title | Role::Body));
        own.map(|piece| piece.text.as_str()).collect::<Vec<_>>().join("\n\n")
    }

    /// Its front matter.
    pub(super) fn front(&self) -> Option<&Piece> {
        self.pieces.first().filter(|piece| piece.role == Role::Front)
    }

    /// Makes its front matter content: a block of code beneath the first heading. In the middle of a note it
    /// would be taken for text, and its last line for a heading.
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

    /// Where new content goes: behind all that is the note's own.
    pub(super) fn body_end(&self) -> usize {
        let own = |piece: &Piece| matches!(piece.role, Role::Front | Role::Title | Role::Body);
        self.pieces.iter().rposition(own).map_or(0, |at| at + 1)
    }

    /// Where what belongs to no section goes: before the first heading of the content.
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

    /// Behind the last piece of the section whose heading is at an index, subsections aside.
    pub(super) fn section_end(&self, heading: usize) -> usize {
        let outside = |piece: &Piece| piece.role != Role::Body || piece.kind.level().is_some();
        let rest = self.pieces[heading + 1..].iter().position(outside);
        rest.map_or(self.pieces.len(), |count| heading + 1 + count)
    }

    /// The lines of its list of links: piece, path, description.
    pub(super) fn links(&self) -> Vec<(usize, String, String)> {
        let of = |(at, piece): (usize, &Piece)| {
            let (link, told) = listed(&piece.text).filter(|_| piece.role == Role::Link)?;
            Some((at, link.target.to_owned(), told.to_owned()))
        };
        self.pieces.iter().enumerate().filter_map(of).collect()
    }

    /// Every link of the note with a label: the description of a listed one, the alias of another.
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

    /// The line that lists a note.
    pub(super) fn line_of(&self, path: &str) -> Option<usize> {
        self.links().into_iter().find(|(_, own, _)| own == path).map(|(at, ..)| at)
    }

    /// Lists a note, or describes it anew: unless it has a name, by someone else, that no link can hold.
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

    /// Puts a line at the end of the list of links, which is made if it is missing.
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

    /// Takes `## Links` away once nothing is under it.
    pub(super) fn drop_empty_links(&mut self) {
        let listed = |piece: &Piece| matches!(piece.role, Role::Link | Role::Aside);
        if !self.pieces.iter().any(listed)
            && let Some(at) = self.pieces.iter().position(|piece| piece.role == Role::LinksHead)
        {
            self.remove(at);
        }
    }

    /// The note as an agent sees it: what may be moved, numbered.
    pub(super) fn view(&self, path: &str) -> NoteView {
        NoteView { links: self.link_lines(), ..self.view_of(path, 0..self.pieces.len()) }
    }

    /// Some pieces of the note as an agent sees them, without its links.
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

    /// The list of links as an agent sees it.
    pub(super) fn link_lines(&self) -> Vec<LinkLine> {
        let line = |(number, path, description)| LinkLine { number, path, description };
        self.links().into_iter().map(line).collect()
    }

    /// Whether the text reads back as what was meant: the same links and the same metadata.
    pub(super) fn reads_back(&self) -> bool {
        let again = Page::parse(&self.render());
        let meta =
            |page: &Page| page.pieces.iter().find(|piece| piece.role == Role::Meta).map(|p| p.text.clone());
        let paths =
            |page: &Page| page.links().into_iter().map(|(_, path, told)| (path, told)).collect::<Vec<_>>();
        paths(self) == paths(&again) && meta(self) == meta(&again)
    }
}
