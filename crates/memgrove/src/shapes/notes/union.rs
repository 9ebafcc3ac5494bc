//! How two copies of a note become one, block by block: what either side added stays, what one side
//! removed or replaced goes, and what both replaced differently is kept twice rather than lost.

use std::collections::HashMap;

use super::page::{LAST_UPDATED, Page, Piece, Role, SIZE_BYTES};
use crate::text::links::{listed, listing};

/// What identifies a block in both copies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// A block of the note's own: its text, and how often that text occurs before it.
    Own(String, usize),
    /// A line of the list of links, by its target.
    Link(String),
    /// `## Links` or `## Metadata`.
    Head(Role),
}

fn keys(page: &Page) -> Vec<Option<Key>> {
    let mut times: HashMap<&str, usize> = HashMap::new();
    let key = |piece: &'_ Piece, time: usize| match piece.role {
        Role::Front | Role::Meta => None,
        Role::LinksHead | Role::MetaHead => Some(Key::Head(piece.role)),
        Role::Link => listed(&piece.text).map(|(link, _)| Key::Link(link.target.to_owned())),
        Role::Title | Role::Body | Role::Aside => Some(Key::Own(piece.text.clone(), time)),
    };
    let mut found = Vec::new();
    for piece in &page.pieces {
        let time = times.entry(&piece.text).or_default();
        found.push(key(piece, *time));
        *time += 1;
    }
    found
}

/// Merges two copies of a note; `None` if the result would divide into other blocks.
pub(in crate::shapes) fn union(base: Option<&str>, ours: &str, theirs: &str) -> Option<String> {
    let base = base.map(Page::parse).unwrap_or_default();
    let (mut page, theirs) = (Page::parse(ours), Page::parse(theirs));
    if let Some(front) = chosen(front(&base), front(&page), front(&theirs))? {
        set_front(&mut page, front);
    }
    drop_removed(&mut page, &keys(&base), &keys(&theirs));
    add_new(&mut page, &keys(&base), &theirs);
    unite_links(&mut page, &base, &theirs);
    unite_meta(&mut page, &base, &theirs);
    let text = page.render();
    let same = |again: &Page| {
        again.pieces.iter().map(|piece| &piece.text).eq(page.pieces.iter().map(|piece| &piece.text))
    };
    same(&Page::parse(&text)).then_some(text)
}

/// Returns theirs if it counts: `Some(None)` keeps ours, and `None` means that both were changed
/// differently.
fn chosen<'a>(base: Option<&str>, ours: Option<&str>, theirs: Option<&'a str>) -> Option<Option<&'a str>> {
    match ours == theirs || theirs == base {
        true => Some(None),
        false if ours == base => Some(theirs),
        false => None,
    }
}

fn front(page: &Page) -> Option<&str> {
    page.pieces.first().filter(|piece| piece.role == Role::Front).map(|piece| piece.text.as_str())
}

fn set_front(page: &mut Page, text: &str) {
    match page.pieces.first_mut().filter(|piece| piece.role == Role::Front) {
        Some(piece) => text.clone_into(&mut piece.text),
        None => page.insert(0, Piece::new(text, Role::Front)),
    }
}

/// Removes what they removed. A block that we have changed since is another block, and stays.
fn drop_removed(page: &mut Page, base: &[Option<Key>], theirs: &[Option<Key>]) {
    let own = keys(page);
    for (at, key) in own.iter().enumerate().rev() {
        let removable = key.is_some() && !matches!(key, Some(Key::Head(_)));
        if removable && base.contains(key) && !theirs.contains(key) {
            page.remove(at);
        }
    }
}

/// Inserts what they added after the block that it follows there.
fn add_new(page: &mut Page, base: &[Option<Key>], theirs: &Page) {
    let mut own = keys(page);
    let top = page.pieces.iter().take_while(|piece| matches!(piece.role, Role::Front | Role::Title)).count();
    let mut next = top;
    for (piece, key) in theirs.pieces.iter().zip(keys(theirs)) {
        if let Some(there) = own.iter().position(|own| own.is_some() && *own == key) {
            next = there + 1;
            continue;
        }
        if matches!(key, Some(Key::Own(..))) && !base.contains(&key) {
            let at = next.min(page.pieces.len());
            page.insert(at, Piece { gap: None, ..piece.clone() });
            own.insert(at, key);
            next = at + 1;
        }
    }
}

/// Adds the lines that only they list, and takes over those that only they have changed.
fn unite_links(page: &mut Page, base: &Page, theirs: &Page) {
    let line = |page: &Page, path: &str| page.line_of(path).map(|at| page.pieces[at].text.clone());
    for (at, path, told) in theirs.links() {
        let (before, text) = (line(base, &path), &theirs.pieces[at].text);
        let Some(own) = page.line_of(&path) else {
            if before.is_none() {
                page.add_link(Piece { gap: None, ..theirs.pieces[at].clone() });
            }
            continue;
        };
        let ours = page.pieces[own].text.clone();
        if before.as_ref() == Some(&ours) || text.contains(&ours) {
            page.pieces[own].text.clone_from(text);
        } else if before.as_ref() == Some(text) || ours.contains(text) {
        } else if is_plain(&ours, &path) && is_plain(text, &path) {
            // Both describe it, each in its own words.
            let own = listed(&ours).map_or("", |(_, told)| told);
            page.list_link(&path, &format!("{own}, {told}"));
        } else {
            page.add_link(Piece { gap: None, ..theirs.pieces[at].clone() });
        }
    }
    page.drop_empty_links();
}

/// Whether a line has only a link and its description.
fn is_plain(line: &str, path: &str) -> bool {
    listed(line).is_some_and(|(_, told)| listing(path, told) == line)
}

/// Takes the later time and the present size, and every other value from whoever changed it.
fn unite_meta(page: &mut Page, base: &Page, theirs: &Page) {
    let lines = theirs.pieces.iter().find(|piece| piece.role == Role::Meta).map_or("", |piece| &piece.text);
    for (key, told) in lines.lines().filter_map(|line| line.split_once(':')) {
        let (key, told) = (key.trim(), told.trim());
        let later = key == LAST_UPDATED && page.meta(key).is_some_and(|ours| ours < told);
        if later || page.meta(key) == base.meta(key) {
            page.set_meta(key, told);
        }
    }
    if page.meta(SIZE_BYTES).is_some() {
        // The number is itself part of the size.
        for _ in 0..4 {
            page.set_meta(SIZE_BYTES, &page.bytes().to_string());
        }
    }
}
