//! How a note is written to: new facts find their place, and older ones are kept.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::advice::{Advisor, Decided};
use super::beneath::{Sorted, sorted};
use super::decisions::Decision;
use super::draft::Draft;
use super::facts::{Content, Given};
use super::filing::put;
use super::merge::proposed;
use super::page::{Page, Piece, Role};
use super::paths::check_linkable;
use super::split::{When, split};
use super::survey::Proposal;
use crate::agent::rules::{may_replace, may_say, says, title_of};
use crate::agent::{Action, PlaceAsk, Placement, Spent};
use crate::error::{Error, Kind, Result};
use crate::text::blocks::blocks;
use crate::text::links::listed;

/// How many notes a fact is handed on through at most.
const HANDED_MAX: usize = 12;

/// How a note is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Facts find their place in the note or in one beneath it.
    #[default]
    Update,
    /// The text is added to the end of the note.
    Append,
    /// The text replaces the note's own; its links stay, unless the text has links.
    Replace,
}

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WriteResult {
    /// Always `true`: a failed write is an error.
    pub success: bool,
    /// The note that was written to, which may be beneath the one that was named.
    pub path: String,
    /// Its size now.
    pub size_bytes: usize,
    /// Whether a note had grown too large.
    pub split_triggered: bool,
    /// The new notes.
    pub new_files: Vec<String>,
    /// Whether a note was changed; a fact that is already known changes nothing.
    #[serde(default)]
    pub changed: bool,
    /// How many facts were already known.
    pub already_known: usize,
    /// How many older facts were marked as superseded.
    pub superseded: usize,
    /// Who decided.
    pub agent: String,
    /// Why the facts were put there.
    pub reason: String,
    /// Split-off notes that have stayed so small that merging them would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_proposed: Option<Proposal>,
    /// What it cost to ask.
    #[serde(default, skip_serializing_if = "Spent::is_nothing")]
    pub spent: Spent,
}

/// Plans a write.
pub(super) fn write(
    draft: &mut Draft<'_>,
    advisor: &Advisor<'_>,
    path: &str,
    content: &str,
    mode: Mode,
    bytes_max: usize,
) -> Result<WriteResult> {
    if content.trim().is_empty() && mode != Mode::Replace {
        return Err(nothing());
    }
    let new = !draft.exists(path)?;
    if new {
        check_linkable(path)?;
    }
    let mut written = Written { path: path.to_owned(), ..Written::default() };
    match mode {
        Mode::Update => update(draft, advisor, path, content, &mut written)?,
        Mode::Append => append(draft.change(path)?, content),
        Mode::Replace => replace(draft, path, content)?,
    }
    if mode != Mode::Update {
        written.touched.insert(path.to_owned());
    }
    if new && !written.touched.is_empty() {
        let description = first_words(content);
        written.touched.insert(draft.link_from_above(path, &description)?);
    }
    let mut new_files = BTreeSet::new();
    for path in &written.touched {
        new_files.extend(split(draft, advisor, path, bytes_max, When::TooLarge)?);
    }
    let merge_proposed = match new_files.is_empty() {
        true => proposed(draft, &written.path, bytes_max)?,
        false => None,
    };
    Ok(WriteResult {
        success: true,
        changed: !written.touched.is_empty(),
        merge_proposed,
        size_bytes: draft.bytes(&written.path)?,
        path: written.path,
        split_triggered: !new_files.is_empty(),
        new_files: new_files.into_iter().collect(),
        already_known: written.known,
        superseded: written.superseded,
        agent: written.agent,
        reason: written.reason,
        spent: draft.spent(),
    })
}

fn nothing() -> Error {
    Error::new(Kind::Invalid, "there is nothing to write").hint("give the content")
}

#[derive(Default)]
struct Written {
    path: String,
    touched: BTreeSet<String>,
    known: usize,
    superseded: usize,
    agent: String,
    reason: String,
}

/// Adds what a text says to a note, or to those beneath it that fit better.
fn update(
    draft: &mut Draft<'_>,
    advisor: &Advisor<'_>,
    path: &str,
    content: &str,
    written: &mut Written,
) -> Result<()> {
    let content = Content::of(content);
    if content.is_empty() {
        return Err(nothing());
    }
    let facts: Vec<Given> = head(draft, path, &content, written)?.into_iter().chain(content.facts).collect();
    let mut pending = vec![(path.to_owned(), facts, 0)];
    let mut visited = BTreeSet::new();
    while let Some((path, facts, depth)) = pending.pop() {
        visited.insert(path.clone());
        let page = draft.page(&path)?.cloned().unwrap_or_else(|| Page::titled(&title_of(&path)));
        let title = page.title(&path);
        let facts: Vec<Given> = facts.into_iter().flat_map(|fact| fact.opened(&page, &title)).collect();
        let Sorted { facts, mut below, known } = sorted(draft, &path, &page, facts, &visited)?;
        written.known += known;
        if !facts.is_empty() {
            let ask = PlaceAsk { note: page.view(&path), facts: facts.iter().map(Given::text).collect() };
            let decided = advisor.ask(|agent| agent.place(&ask), |plan| check(&page, plan, &ask.facts))?;
            let links: BTreeMap<usize, String> =
                page.links().into_iter().map(|(at, path, _)| (at, path)).collect();
            let mut here = Vec::new();
            for (fact, placement) in facts.into_iter().zip(&decided.advice.plan) {
                let is_handed = placement.action == Action::Child && !fact.stays();
                let target = placement.at.and_then(|at| links.get(&at)).filter(|_| is_handed);
                let child = match target {
                    Some(target) if depth < HANDED_MAX => draft.linked(target, &path)?,
                    _ => None,
                };
                match child.filter(|child| !visited.contains(child)) {
                    Some(child) => below.entry(child).or_default().push(fact.handed_on()),
                    None if target.is_some() || !fact.under.is_empty() => here.push((fact, TOP)),
                    None => here.push((fact, placement.clone())),
                }
            }
            keep(draft, &path, page, here, &decided, written)?;
        }
        pending.extend(below.into_iter().rev().map(|(path, facts)| (path, facts, depth + 1)));
    }
    Ok(())
}

/// Puts facts into a note, and notes down who decided that.
fn keep(
    draft: &mut Draft<'_>,
    path: &str,
    page: Page,
    here: Vec<(Given, Placement)>,
    decided: &Decided<Vec<Placement>>,
    written: &mut Written,
) -> Result<()> {
    if here.is_empty() {
        return Ok(());
    }
    let unsaid = here.iter().filter(|(fact, placement)| is_unsaid(&page, fact, placement));
    let known = unsaid.map(|(fact, _)| fact.text()).collect();
    let put = put(draft, path, page, here)?;
    written.known += put.known;
    written.superseded += put.superseded;
    if put.changed {
        written.touched.insert(path.to_owned());
    }
    // The first decision is the one that is told.
    if written.agent.is_empty() {
        path.clone_into(&mut written.path);
        (written.agent, written.reason) = (decided.agent.clone(), decided.advice.reason.clone());
    }
    let decision = Decision::new("place", path, draft.now, decided);
    draft.decisions.push(Decision { known, ..decision });
    Ok(())
}

/// Puts the front matter and the list of links of a text where the note has its own. Returns the front
/// matter to be filed like any other fact, if the note already has another.
fn head(
    draft: &mut Draft<'_>,
    path: &str,
    content: &Content,
    written: &mut Written,
) -> Result<Option<Given>> {
    let mut page = draft.page(path)?.cloned().unwrap_or_else(|| Page::titled(&title_of(path)));
    let before = page.clone();
    let mut other = None;
    if let Some(front) = &content.front {
        match page.pieces.first().filter(|piece| piece.role == Role::Front) {
            Some(own) if own.text == front.text => written.known += 1,
            Some(_) => other = Some(Given { blocks: vec![front.text.clone()], ..Given::default() }),
            None => page.insert(0, front.clone()),
        }
    }
    for line in &content.links {
        let target = listed(&line.text).map_or("", |(link, _)| link.target);
        match page.line_of(target) {
            Some(_) => written.known += 1,
            None => page.add_link(line.clone()),
        }
    }
    if page != before {
        written.touched.insert(path.to_owned());
        draft.put(path, page)?;
    }
    Ok(other)
}

/// Before the first section.
const TOP: Placement = Placement { action: Action::Top, at: None, supersedes: Vec::new() };

/// Whether a fact was taken for known although no block says it in the same words.
fn is_unsaid(page: &Page, fact: &Given, placement: &Placement) -> bool {
    let block = placement.at.and_then(|at| page.pieces.get(at));
    placement.action == Action::Known && block.is_none_or(|block| !says(&block.text, &fact.text()))
}

/// Checks placements: there is one for each fact, they name existing blocks and links, and no block is
/// taken as known or superseded that has little to do with the fact.
fn check(page: &Page, placements: &[Placement], facts: &[String]) -> Result<()> {
    let refused = |why: String| Err(Error::new(Kind::Unsupported, why));
    if placements.len() != facts.len() {
        return refused(format!("there are {} placements for {} facts", placements.len(), facts.len()));
    }
    for (placement, fact) in placements.iter().zip(facts) {
        let piece = placement.at.and_then(|at| page.pieces.get(at));
        let fits = match placement.action {
            Action::Top => true,
            Action::Child => piece.is_some_and(|piece| piece.role == Role::Link),
            Action::Under => {
                piece.is_some_and(|piece| piece.role == Role::Body && piece.kind.level().is_some())
            }
            Action::Known | Action::After => piece.is_some_and(|piece| piece.role == Role::Body),
        };
        if !fits {
            let place = placement.at.map_or("no block".to_owned(), |at| format!("block {at}"));
            return refused(format!("a fact was placed by {place}, which does not fit"));
        }
        if placement.action == Action::Known && !piece.is_some_and(|piece| may_say(&piece.text, fact)) {
            return refused("a fact is said to be known, and the block says something else".to_owned());
        }
        let marked = |at: &usize| {
            page.pieces.get(*at).is_some_and(|piece| {
                piece.role == Role::Body && piece.kind.level().is_none() && may_replace(&piece.text, fact)
            })
        };
        if !placement.supersedes.iter().all(marked) {
            return refused("a placement supersedes what is no fact, or one about something else".to_owned());
        }
    }
    Ok(())
}

fn append(page: &mut Page, content: &str) {
    for block in blocks(content) {
        let at = page.body_end();
        let text = page.ended(&content[block.body]);
        page.insert(at, Piece { kind: block.kind, ..Piece::new(text, Role::Body) });
    }
}

fn replace(draft: &mut Draft<'_>, path: &str, content: &str) -> Result<()> {
    let old = draft.page(path)?.cloned();
    let mut page = Page::parse(content);
    if page.links().is_empty()
        && let Some(old) = &old
    {
        for (at, ..) in old.links() {
            page.add_link(old.pieces[at].clone());
        }
    }
    if let Some(from) = old.as_ref().and_then(|old| old.meta(super::page::SPLIT_FROM)) {
        page.set_meta(super::page::SPLIT_FROM, from);
    }
    draft.put(path, page)
}

/// Returns the beginning of a text, for the link that leads to it.
fn first_words(content: &str) -> String {
    const CHARS_MAX: usize = 100;
    let line = content
        .lines()
        .map(|line| line.trim_start_matches(['#', '-', '*', ' ']))
        .find(|line| !line.is_empty());
    let line = line.unwrap_or("");
    match line.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}
