//! How notes that resulted from a split are merged again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::advice::Decided;
use super::decisions::{Decision, Part};
use super::draft::Draft;
use super::page::{Page, Piece, Role, SPLIT_FROM, TITLE_ADDED};
use super::relink::{Gone, relink};
use super::split::Census;
use super::survey::Proposal;
use crate::agent::Advice;
use crate::error::{Error, Kind, Result};

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeResult {
    /// The note that took in the others.
    pub path: String,
    /// The notes that were merged into it, and are gone.
    pub merged: Vec<String>,
    /// Other notes whose links to the merged ones were changed.
    #[serde(default)]
    pub relinked: Vec<String>,
    /// The size of the note now.
    pub size_bytes: usize,
}

/// Merges the children of a note back into it: those that are named, or all that were split from it.
pub(super) fn merge(
    draft: &mut Draft<'_>,
    path: &str,
    children: &[String],
    bytes_max: Option<usize>,
) -> Result<MergeResult> {
    let missing = || Error::new(Kind::NotFound, format!("there is no note `{path}`"));
    if !draft.exists(path)? {
        return Err(missing());
    }
    let chosen = chosen(draft, path, children)?;
    let gone = Gone::into(draft, path, &chosen)?;
    let relinked = relink(draft, &gone)?;
    let mut page = draft.page(path)?.cloned().ok_or_else(missing)?;
    let mut aside = BTreeSet::new();
    for child in &chosen {
        let taken = draft.page(child)?.ok_or_else(missing)?;
        if page.line_of(child).is_some_and(|at| taken.is_listed_as(&page.pieces[at].text)) {
            aside.insert(child.as_str());
        }
    }
    let mut given = Census::default();
    given.count(&page, &aside);
    let mut parts = Vec::new();
    for child in &chosen {
        let mut taken = draft.page(child)?.cloned().ok_or_else(missing)?;
        know_added_title(&mut taken);
        given.count(&taken, &aside);
        let blocks = absorb(draft, &mut page, taken, path, child)?;
        parts.push(Part { path: child.clone(), blocks });
        draft.delete(child)?;
    }
    page.drop_empty_links();
    let mut kept = Census::default();
    kept.count(&page, &aside);
    if given != kept || !page.reads_back() {
        let message = format!("merging into `{path}` would not keep every block, so nothing was changed");
        return Err(Error::new(Kind::Unsupported, message).hint("look for unclosed code fences"));
    }
    draft.put(path, page)?;
    let size_bytes = draft.bytes(path)?;
    if let Some(most) = bytes_max.filter(|most| size_bytes > *most) {
        let message = format!("`{path}` would have {size_bytes} bytes, more than {most}");
        return Err(Error::new(Kind::Full, message).hint("name some of its notes, or allow any size"));
    }
    let asked = Decided { advice: Advice::free((), "asked for"), agent: "rules".to_owned(), refused: None };
    let decision = Decision::new("merge", path, draft.now, &asked);
    draft.decisions.push(Decision { parts, ..decision });
    Ok(MergeResult { path: path.to_owned(), merged: chosen, relinked, size_bytes })
}

/// Returns the notes that a note lists and that were split from it: those that are named, or all.
fn chosen(draft: &mut Draft<'_>, path: &str, children: &[String]) -> Result<Vec<String>> {
    let mut chosen: Vec<String> = Vec::new();
    let listed = draft.page(path)?.map(Page::links).unwrap_or_default();
    for (_, target, _) in listed {
        let Some(child) = draft.linked(&target, path)?.filter(|child| child != path) else { continue };
        let ours = draft.page(&child)?.is_some_and(|page| page.meta(SPLIT_FROM) == Some(path));
        if ours && !chosen.contains(&child) && (children.is_empty() || children.contains(&child)) {
            chosen.push(child);
        }
    }
    if let Some(other) = children.iter().find(|child| !chosen.contains(child)) {
        let message = format!("`{other}` was not split from `{path}`");
        return Err(Error::new(Kind::Invalid, message).hint("`memgrove note list` shows what was"));
    }
    if chosen.is_empty() {
        let message = format!("no notes were split from `{path}`");
        return Err(Error::new(Kind::NotFound, message).hint("`memgrove note list` shows what was split"));
    }
    Ok(chosen)
}

/// Proposes a merge after a write: of the notes that were split from a note, or from the note above it, if
/// all of them together fill less than half a note.
pub(super) fn proposed(draft: &mut Draft<'_>, path: &str, bytes_max: usize) -> Result<Option<Proposal>> {
    let above = draft.origin(path)?;
    for parent in [Some(path.to_owned()), above].into_iter().flatten() {
        let Some(page) = draft.page(&parent)? else { continue };
        let listed: Vec<String> = page.links().into_iter().map(|(_, target, _)| target).collect();
        let mut room = (bytes_max / 2).checked_sub(draft.bytes(&parent)?);
        let mut children = Vec::new();
        for target in listed {
            // Most families are too large, which a few of their notes already show.
            let Some(left) = room else { break };
            let Some(child) = draft.linked_by_path(&target, &parent)?.filter(|child| *child != parent) else {
                continue;
            };
            room = left.checked_sub(draft.bytes(&child)?);
            let Some(page) = draft.page(&child)? else { continue };
            if page.meta(SPLIT_FROM) == Some(parent.as_str()) {
                let leaf = page.links().is_empty();
                room = room.filter(|_| leaf);
                children.push(child);
            }
        }
        if room.is_some() && !children.is_empty() {
            return Ok(Some(Proposal { path: parent, children }));
        }
    }
    Ok(None)
}

/// Recognizes the title that a split gave a note, unless someone has changed it.
fn know_added_title(page: &mut Page) {
    let added = page.meta(TITLE_ADDED).map(str::to_owned);
    if let Some(title) = page.pieces.iter_mut().find(|piece| piece.role == Role::Title) {
        title.added = title.heading() == added.as_deref();
    }
}

/// Whether a note has sections, so that further content needs a heading.
fn has_sections(page: &Page) -> bool {
    page.pieces.iter().any(|piece| piece.role == Role::Body && piece.kind.level().is_some())
}

impl Gone {
    /// Determines where the content of notes goes when another note takes them in.
    fn into(draft: &mut Draft<'_>, path: &str, children: &[String]) -> Result<Self> {
        let mut sections = draft.page(path)?.is_some_and(has_sections);
        let mut headings = BTreeMap::new();
        for child in children {
            let Some(mut taken) = draft.page(child)?.cloned() else { continue };
            know_added_title(&mut taken);
            let content = content(&taken, sections);
            sections |= content.iter().any(|piece| piece.kind.level().is_some());
            headings.insert(child.clone(), content.first().and_then(Piece::heading).map(str::to_owned));
        }
        Ok(Gone { to: path.to_owned(), headings })
    }
}

/// Returns what a note contributes besides its links. A title that a split gave it becomes a section
/// heading if there are sections, and lines that people added to its metadata become content.
fn content(child: &Page, sections: bool) -> Vec<Piece> {
    let mut content = Vec::new();
    for piece in &child.pieces {
        match piece.role {
            Role::Title if piece.added && sections => {
                let words = piece.heading().unwrap_or_default();
                content.push(Piece::added(format!("## {words}"), Role::Body));
            }
            Role::Title if piece.added => {}
            Role::Front | Role::Title | Role::Body | Role::Aside => {
                content.push(Piece { role: Role::Body, ..piece.clone() });
            }
            Role::Link | Role::LinksHead | Role::MetaHead | Role::Meta => {}
        }
    }
    let foreign = child.foreign_meta();
    if !foreign.is_empty() {
        content.push(Piece::new(foreign, Role::Body));
    }
    content
}

/// Adds the blocks of a child to the end of a page, and returns how many.
fn absorb(draft: &mut Draft<'_>, page: &mut Page, child: Page, path: &str, name: &str) -> Result<usize> {
    // A line that someone has written or changed stays, and will lead to the merged content.
    if let Some(at) = page.line_of(name).filter(|at| child.is_listed_as(&page.pieces[*at].text)) {
        page.remove(at);
    }
    let content = content(&child, has_sections(page));
    let blocks = content.iter().filter(|piece| !piece.added).count();
    for piece in content {
        page.insert(page.body_end(), piece);
    }
    let links = child.pieces.into_iter().filter(|piece| piece.role == Role::Link);
    let mut listed = 0;
    for piece in links {
        let target = crate::text::links::listed(&piece.text).map(|(link, _)| link.target.to_owned());
        page.add_link(piece);
        listed += 1;
        if let Some(target) = target
            && let Some(below) = draft.linked(&target, name)?
            && draft.page(&below)?.is_some_and(|page| page.meta(SPLIT_FROM) == Some(name))
        {
            draft.change(&below)?.set_meta(SPLIT_FROM, path);
        }
    }
    Ok(blocks + listed)
}
