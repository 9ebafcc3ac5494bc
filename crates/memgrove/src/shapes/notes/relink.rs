//! How links to merged notes are kept alive: they lead to where the content is now, and show what they
//! showed.

use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization;

use super::draft::Draft;
use super::page::{Page, Role};
use super::paths::is_linkable;
use crate::error::Result;
use crate::text::blocks::BlockKind;
use crate::text::links::{WikiLink, links_in, listed};

/// Notes that another one takes in, each with the heading that its content is under from now on.
pub(super) struct Gone {
    pub(super) to: String,
    pub(super) headings: BTreeMap<String, Option<String>>,
}

/// Changes every link to a merged note, and returns the other notes that this changed.
pub(super) fn relink(draft: &mut Draft<'_>, gone: &Gone) -> Result<Vec<String>> {
    if !is_linkable(&gone.to) {
        return Ok(Vec::new());
    }
    let survey = draft.survey()?;
    let paths = survey.paths();
    let mut changed = Vec::new();
    for path in survey.linking_to(|to| gone.headings.contains_key(to)) {
        let Some(mut page) = draft.page(&path)?.cloned() else { continue };
        let before = page.clone();
        let ours = our_lines(draft, &page, gone)?;
        let texts = page.pieces.iter_mut().enumerate().filter(|(_, piece)| piece.kind != BlockKind::Code);
        for (_, piece) in texts.filter(|(at, _)| !ours.contains(at)) {
            // A link to a note that had been merged before already shows its old name.
            let leads = |link: &WikiLink<'_>| {
                survey.leads(link.target, &path, &paths).filter(|to| is_named(to, link.target))
            };
            let moved = |link: &WikiLink<'_>| {
                gone.headings.get(leads(link)?).map(|heading| (gone.to.as_str(), heading.as_deref()))
            };
            piece.text = rewritten(&piece.text, moved);
        }
        if page != before {
            draft.put(&path, page)?;
            changed.push(path);
        }
    }
    changed.retain(|path| *path != gone.to && !gone.headings.contains_key(path));
    Ok(changed)
}

/// Returns the lines that memgrove wrote to list the merged notes, which are removed with them.
fn our_lines(draft: &mut Draft<'_>, page: &Page, gone: &Gone) -> Result<Vec<usize>> {
    let mut ours = Vec::new();
    for (at, piece) in page.pieces.iter().enumerate().filter(|(_, piece)| piece.role == Role::Link) {
        let Some((link, _)) = listed(&piece.text) else { continue };
        if gone.headings.contains_key(link.target)
            && draft.page(link.target)?.is_some_and(|child| child.is_listed_as(&piece.text))
        {
            ours.push(at);
        }
    }
    Ok(ours)
}

/// Returns a text with its links to merged notes replaced by links to where their content is: a note, and
/// a heading in it.
pub(super) fn rewritten<'g>(
    text: &str,
    moved: impl Fn(&WikiLink<'_>) -> Option<(&'g str, Option<&'g str>)>,
) -> String {
    let mut made = String::new();
    let mut end = 0;
    for link in links_in(text).into_iter().filter(|link| !link.target.is_empty()) {
        let Some((to, heading)) = moved(&link) else { continue };
        made.push_str(&text[end..link.at.start]);
        let inside = &text[link.at.start + 2..link.at.end - 2];
        let line = text[..link.at.start].rsplit('\n').next().unwrap_or("");
        // In a table, a plain bar would end the cell.
        let bar = if line.trim_start().starts_with('|') { "\\|" } else { "|" };
        let heading = link.heading.or(heading).filter(|heading| is_part(heading));
        let heading = heading.map_or(String::new(), |heading| format!("#{heading}"));
        let shown = link.alias.map_or_else(|| inside.trim().replace('#', " > "), str::to_owned);
        made.push_str(&format!("[[{to}{heading}{bar}{shown}]]"));
        end = link.at.end;
    }
    made.push_str(&text[end..]);
    made
}

/// Whether a link names a note, ignoring case and folders.
pub(super) fn is_named(path: &str, target: &str) -> bool {
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).nfc().collect::<String>().to_lowercase();
    name(path) == name(target)
}

/// Whether a link can hold a heading, or the id of a block.
fn is_part(heading: &str) -> bool {
    !heading.is_empty() && is_linkable(heading.strip_prefix('^').unwrap_or(heading))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_show_what_they_showed() {
        let gone = [
            ("projects".to_owned(), Some("Projects".to_owned())),
            ("odd".to_owned(), Some("a#b".to_owned())),
        ];
        let check = |text: &str, expected: &str| {
            let moved = |link: &WikiLink<'_>| {
                let found = gone.iter().find(|(path, _)| path == link.target);
                found.map(|(_, heading)| ("memory", heading.as_deref()))
            };
            assert_eq!(rewritten(text, moved), expected);
        };
        check("see [[projects]], `[[projects]]`", "see [[memory#Projects|projects]], `[[projects]]`");
        check("![[projects.md#Deep|deep]] [[other]]", "![[memory#Deep|deep]] [[other]]");
        check("[[projects#Deep]] [[#Own]]", "[[memory#Deep|projects > Deep]] [[#Own]]");
        check("[[projects#^b1]] [[odd]]", "[[memory#^b1|projects > ^b1]] [[memory|odd]]");
        check(
            "x\n| [[projects]] | [[projects\\|p]] |",
            "x\n| [[memory#Projects\\|projects]] | [[memory#Projects\\|p]] |",
        );
    }
}
