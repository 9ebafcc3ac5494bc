//! Which part of a note is its metadata: the lines that memgrove maintains, and those that people added.

use super::page::{Page, Piece, Role};
use crate::clock::Timestamp;
use crate::text::blocks::BlockKind;
use crate::text::metadata::{LAST_UPDATED, LINK_ADDED, SIZE_BYTES, is_own, metadata};

impl Page {
    /// Finds the metadata beneath a heading. A section without a line of memgrove's own is content, and so
    /// is what people have written right before or after such lines.
    pub(super) fn find_metadata(&mut self, head: usize) {
        let inside = |piece: &&Piece| piece.kind.level().is_none();
        let section = self.pieces[head + 1..].iter().take_while(inside);
        let text = section.enumerate().filter(|(_, piece)| piece.kind != BlockKind::Code);
        let found = { text }.find_map(|(at, piece)| Some((head + 1 + at, metadata(&piece.text)?)));
        let Some((at, lines)) = found else {
            if self.pieces.get(head + 1).filter(inside).is_none() {
                self.pieces[head].role = Role::MetaHead;
            }
            return;
        };
        self.pieces[head].role = Role::MetaHead;
        let whole = self.pieces.remove(at);
        let before = whole.text[..lines.start].trim_end_matches(['\n', '\r']);
        let after = whole.text[lines.end..].trim_start_matches(['\n', '\r']);
        let mut parts = Vec::new();
        let mut gap = whole.gap.clone();
        if !before.is_empty() {
            parts.push(Piece { text: before.to_owned(), gap, ..whole.clone() });
            gap = Some(whole.text[before.len()..lines.start].to_owned());
        }
        let text = whole.text[lines.clone()].to_owned();
        parts.push(Piece { gap, ..Piece::new(text, Role::Meta) });
        if !after.is_empty() {
            let gap = Some(whole.text[lines.end..whole.text.len() - after.len()].to_owned());
            parts.push(Piece { gap, ..Piece::new(after, Role::Body) });
        }
        self.pieces.splice(at..at, parts);
    }

    fn meta_lines(&self) -> impl Iterator<Item = &str> {
        let found = self.pieces.iter().find(|piece| piece.role == Role::Meta);
        found.map_or("", |piece| piece.text.as_str()).lines()
    }

    /// Returns a value of the metadata.
    pub(super) fn meta(&self, key: &str) -> Option<&str> {
        let mut lines = self.meta_lines().filter_map(|line| line.split_once(':'));
        lines.find(|(own, _)| own.trim() == key).map(|(_, value)| value.trim())
    }

    /// Returns the lines of the metadata that are not memgrove's own.
    pub(super) fn foreign_meta(&self) -> String {
        self.meta_lines().filter(|line| !is_own(line)).collect::<Vec<_>>().join("\n")
    }

    /// Sets a value of the metadata; the other lines stay as they are.
    pub(super) fn set_meta(&mut self, key: &str, value: &str) {
        let line = format!("{key}: {value}");
        let newline = self.ended("\n");
        if let Some(meta) = self.pieces.iter_mut().find(|piece| piece.role == Role::Meta) {
            let mut lines: Vec<&str> = meta.text.lines().collect();
            let own =
                lines.iter().position(|old| old.split_once(':').is_some_and(|(own, _)| own.trim() == key));
            match own {
                Some(at) => lines[at] = &line,
                None => lines.push(&line),
            }
            meta.text = lines.join(&newline);
            return;
        }
        let head = self.pieces.iter().position(|piece| piece.role == Role::MetaHead);
        let at = head.unwrap_or_else(|| {
            self.insert(self.pieces.len(), Piece::added("## Metadata", Role::MetaHead));
            self.pieces.len() - 1
        });
        self.insert(at + 1, Piece::added(line, Role::Meta));
    }

    /// Records when the note was changed, and how large it is.
    pub(super) fn stamp(&mut self, now: Timestamp) {
        self.set_meta(LAST_UPDATED, &format!("{now:.0}"));
        self.stamp_size();
    }

    /// Records how large the note is.
    pub(super) fn stamp_size(&mut self) {
        self.set_meta(SIZE_BYTES, "0");
        // The number is itself part of the size.
        for _ in 0..4 {
            let bytes = self.bytes().to_string();
            if self.meta(SIZE_BYTES) == Some(bytes.as_str()) {
                break;
            }
            self.set_meta(SIZE_BYTES, &bytes);
        }
    }

    /// Records how this note was listed, so that memgrove can recognize the line.
    pub(super) fn listed_as(&mut self, line: &str) {
        self.set_meta(LINK_ADDED, &mark(line));
    }

    /// Whether a line lists this note exactly as memgrove wrote it.
    pub(super) fn is_listed_as(&self, line: &str) -> bool {
        self.meta(LINK_ADDED) == Some(mark(line).as_str())
    }
}

/// Returns a short hash of a line.
fn mark(line: &str) -> String {
    blake3::hash(line.as_bytes()).to_hex()[..8].to_owned()
}
