//! Putting notes that came of a split back together.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::decisions::{Decision, Part};
use super::draft::Draft;
use super::page::{Page, Piece, Role, SPLIT_FROM, TITLE_ADDED};
use super::split::Census;
use super::survey::Proposal;
use crate::error::{Error, Kind, Result};

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeResult {
    /// The note that took the others in.
    pub path: String,
    /// The notes that are gone.
    pub merged: Vec<String>,
    /// The size of the note now.
    pub size_bytes: usize,
}

/// Takes the children of a note back in: those that are named, or all that came of splitting it.
pub(super) fn merge(
    draft: &mut Draft<'_>,
    path: &str,
    children: &[String],
    bytes_max: Option<usize>,
) -> Result<MergeResult> {
    let missing = || Error::new(Kind::NotFound, format!("there is no note `{path}`"));
    let mut page = draft.page(path)?.cloned().ok_or_else(missing)?;
    let listed: Vec<String> = page.links().into_iter().map(|(_, target, _)| target).collect();
    let mut chosen = Vec::new();
    for child in listed {
        let ours = draft.page(&child)?.is_some_and(|page| page.meta(SPLIT_FROM) == Some(path));
        if ours && child != path && (children.is_empty() || children.contains(&child)) {
            chosen.push(child);
        }
    }
    if let Some(other) = children.iter().find(|child| !chosen.contains(child)) {
        let message = format!("`{other}` did not come of splitting `{path}`");
        return Err(Error::new(Kind::Invalid, message).hint("`memgrove note list` shows what did"));
    }
    if chosen.is_empty() {
        let message = format!("`{path}` has no notes that came of splitting it");
        return Err(Error::new(Kind::NotFound, message).hint("`memgrove note list` shows what has"));
    }
    let aside: BTreeSet<&str> = chosen.iter().map(String::as_str).collect();
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
        return Err(Error::new(Kind::Unsupported, message).hint("look for code fences that never end"));
    }
    draft.put(path, page)?;
    let size_bytes = draft.bytes(path)?;
    if let Some(most) = bytes_max.filter(|most| size_bytes > *most) {
        let message = format!("`{path}` would have {size_bytes} bytes, more than {most}");
        return Err(Error::new(Kind::Full, message).hint("name some of its notes, or allow any size"));
    }
    draft.decisions.push(Decision {
        time: format!("{:.0}", draft.now),
        what: "merge".to_owned(),
        path: path.to_owned(),
        agent: "rules".to_owned(),
        reason: "asked for".to_owned(),
        strategy: None,
        parts,
        refused: None,
        spent: Default::default(),
    });
    Ok(MergeResult { path: path.to_owned(), merged: chosen, size_bytes })
}

/// What to merge after a write to a note: what was split off it, or off the note that it was split from,
/// if all of that together fills less than half a note.
pub(super) fn proposed(draft: &mut Draft<'_>, path: &str, bytes_max: usize) -> Result<Option<Proposal>> {
    let above = draft.page(path)?.and_then(|page| page.meta(SPLIT_FROM)).map(str::to_owned);
    for parent in [Some(path.to_owned()), above].into_iter().flatten() {
        let Some(page) = draft.page(&parent)? else { continue };
        let listed: Vec<String> = page.links().into_iter().map(|(_, target, _)| target).collect();
        let mut room = (bytes_max / 2).checked_sub(draft.bytes(&parent)?);
        let mut children = Vec::new();
        for child in listed.into_iter().filter(|child| *child != parent) {
            // Most families are too large, and that is known after a few of them.
            room = match room {
                Some(room) => room.checked_sub(draft.bytes(&child)?),
                None => break,
            };
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

/// Knows the title that a split gave a note again, unless someone has changed it since.
fn know_added_title(page: &mut Page) {
    let added = page.meta(TITLE_ADDED).map(str::to_owned);
    if let Some(title) = page.pieces.iter_mut().find(|piece| piece.role == Role::Title) {
        title.added = title.heading() == added.as_deref();
    }
}

/// Puts the blocks of a child at the end of a page; gives back how many.
fn absorb(draft: &mut Draft<'_>, page: &mut Page, child: Page, path: &str, name: &str) -> Result<usize> {
    if let Some((at, ..)) = page.links().into_iter().find(|(_, target, _)| target == name) {
        page.remove(at);
    }
    let sections = page.pieces.iter().any(|piece| piece.role == Role::Body && piece.kind.level().is_some());
    let mut blocks = 0;
    for piece in child.pieces {
        match piece.role {
            Role::Link => {
                let target = crate::text::links::listed(&piece.text).map(|(link, _)| link.target.to_owned());
                page.add_link(piece);
                blocks += 1;
                if let Some(target) = target
                    && draft.page(&target)?.is_some_and(|page| page.meta(SPLIT_FROM) == Some(name))
                {
                    draft.change(&target)?.set_meta(SPLIT_FROM, path);
                }
            }
            Role::Title if piece.added && sections => {
                let words = piece.heading().unwrap_or_default().to_owned();
                let end = page.body_end();
                page.insert(end, Piece::added(format!("## {words}"), Role::Body));
            }
            Role::Title if piece.added => {}
            Role::Front | Role::Title | Role::Body | Role::Aside => {
                let end = page.body_end();
                page.insert(end, Piece { role: Role::Body, ..piece });
                blocks += 1;
            }
            Role::LinksHead | Role::MetaHead | Role::Meta => {}
        }
    }
    Ok(blocks)
}
