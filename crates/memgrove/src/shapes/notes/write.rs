//! Writing to a note: new facts find their place, older ones are kept.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::advice::Advisor;
use super::decisions::Decision;
use super::draft::Draft;
use super::merge::proposed;
use super::page::{Page, Piece, Role};
use super::paths::check_linkable;
use super::split::{When, split};
use super::survey::Proposal;
use crate::agent::{Action, PlaceAsk, Placement, SUPERSEDED, Spent};
use crate::error::{Error, Kind, Result};
use crate::text::blocks::{BlockKind, blocks, bullet};

/// How many notes deep a fact is handed on.
const HANDED_MAX: usize = 12;

/// How a note is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Facts find their place in the note or in one beneath it.
    #[default]
    Update,
    /// The text is put at the end of the note.
    Append,
    /// The text takes the place of the note's own; its links stay, unless the text has links.
    Replace,
}

/// What came of a write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WriteResult {
    /// Whether it was written; an error says more than `false` could.
    pub success: bool,
    /// The note that was written to, which may be one beneath the note that was named.
    pub path: String,
    /// Its size now.
    pub size_bytes: usize,
    /// Whether a note had grown too large.
    pub split_triggered: bool,
    /// The notes that came of it.
    pub new_files: Vec<String>,
    /// Facts that were there already.
    pub already_known: usize,
    /// Older facts that were marked as superseded.
    pub superseded: usize,
    /// Who decided, and why.
    pub agent: String,
    /// Why it was put there.
    pub reason: String,
    /// Notes that were split off once and have stayed so small that a merge would do them good.
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
        return Err(Error::new(Kind::Invalid, "there is nothing to write").hint("give the content"));
    }
    let new = !draft.exists(path)?;
    if new {
        check_linkable(path)?;
    }
    let mut written = Written { path: path.to_owned(), ..Written::default() };
    match mode {
        Mode::Update => update(draft, advisor, path, chunks(content), &mut written)?,
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

#[derive(Default)]
struct Written {
    path: String,
    touched: BTreeSet<String>,
    known: usize,
    superseded: usize,
    agent: String,
    reason: String,
}

/// What a text says, one fact each: its blocks, or its sections if it has headings.
fn chunks(content: &str) -> Vec<String> {
    let mut chunks: Vec<String> = Vec::new();
    let mut headed = false;
    for block in blocks(content) {
        let text = &content[block.body.clone()];
        match chunks.last_mut() {
            Some(last) if headed && block.kind.level().is_none() => {
                let end = content[..block.body.start].trim_end().len();
                last.push_str(&content[end..block.body.start]);
                last.push_str(text);
            }
            _ => {
                headed = block.kind.level().is_some();
                chunks.push(text.to_owned());
            }
        }
    }
    chunks
}

fn update(
    draft: &mut Draft<'_>,
    advisor: &Advisor<'_>,
    path: &str,
    facts: Vec<String>,
    written: &mut Written,
) -> Result<()> {
    let mut pending = vec![(path.to_owned(), facts)];
    let mut visited = BTreeSet::new();
    let mut first = true;
    while let Some((path, facts)) = pending.pop() {
        visited.insert(path.clone());
        let page = draft
            .page(&path)?
            .cloned()
            .unwrap_or_else(|| Page::titled(&crate::agent::rules::title_of(&path)));
        let ask = PlaceAsk { note: page.view(&path), facts };
        let decided = advisor.ask(|agent| agent.place(&ask), |plan| check(&page, plan, ask.facts.len()))?;
        let links: BTreeMap<usize, String> =
            page.links().into_iter().map(|(at, path, _)| (at, path)).collect();
        let mut here = Vec::new();
        let mut below: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (fact, placement) in ask.facts.into_iter().zip(&decided.advice.plan) {
            let child =
                placement.at.and_then(|at| links.get(&at)).filter(|_| placement.action == Action::Child);
            match child {
                Some(child)
                    if visited.len() < HANDED_MAX && !visited.contains(child) && draft.exists(child)? =>
                {
                    below.entry(child.clone()).or_default().push(fact);
                }
                Some(_) => {
                    here.push((fact, Placement { action: Action::Top, at: None, supersedes: Vec::new() }))
                }
                None => here.push((fact, placement.clone())),
            }
        }
        if !here.is_empty() {
            let day = format!("{:.10}", draft.now.to_string());
            let (known, superseded) = put(draft, &path, page, here, &day)?;
            written.known += known.0;
            written.superseded += superseded;
            if known.1 {
                written.touched.insert(path.clone());
            }
            if std::mem::take(&mut first) {
                written.path.clone_from(&path);
                (written.agent, written.reason) = (decided.agent.clone(), decided.advice.reason.clone());
            }
            draft.decisions.push(Decision {
                time: format!("{:.0}", draft.now),
                what: "place".to_owned(),
                path: path.clone(),
                agent: decided.agent,
                reason: decided.advice.reason,
                strategy: None,
                parts: Vec::new(),
                refused: decided.refused,
                spent: decided.advice.spent,
            });
        }
        pending.extend(below.into_iter().rev());
    }
    Ok(())
}

/// Checks placements: one for each fact, and only about blocks and links that are there.
fn check(page: &Page, placements: &[Placement], facts: usize) -> Result<()> {
    let refused = |why: String| Err(Error::new(Kind::Unsupported, why));
    if placements.len() != facts {
        return refused(format!("there are {} placements for {facts} facts", placements.len()));
    }
    for placement in placements {
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
            return refused(format!("{:?} does not fit what is at {:?}", placement.action, placement.at));
        }
        let marked = |at: &usize| {
            page.pieces.get(*at).is_some_and(|piece| piece.role == Role::Body && piece.kind.level().is_none())
        };
        if !placement.supersedes.iter().all(marked) {
            return refused("a placement supersedes what is no fact".to_owned());
        }
    }
    Ok(())
}

/// Puts facts into a page; gives back how many were known and whether anything changed, and how
/// many older ones were marked.
fn put(
    draft: &mut Draft<'_>,
    path: &str,
    mut page: Page,
    facts: Vec<(String, Placement)>,
    day: &str,
) -> Result<((usize, bool), usize)> {
    let (mut known, mut superseded) = (0, BTreeSet::new());
    // By their places before any of them is put in, from the last to the first.
    let mut places = Vec::new();
    for (order, (fact, placement)) in facts.into_iter().enumerate() {
        if placement.action == Action::Known {
            known += 1;
            continue;
        }
        superseded.extend(placement.supersedes);
        let section = own_section(&page, &fact);
        let at = match (section, placement.action, placement.at) {
            (Some(heading), ..) => page.section_end(heading),
            // A section of its own must not swallow what follows it.
            (None, ..) if blocks(&fact).first().is_some_and(|block| block.kind.level().is_some()) => {
                page.body_end()
            }
            (None, Action::Under, Some(heading)) => page.section_end(heading),
            (None, Action::After, Some(block)) => block + 1,
            _ => page.top_end(),
        };
        places.push((at, order, fact, section.is_some()));
    }
    let changed = !places.is_empty();
    if !changed {
        return Ok(((known, false), 0));
    }
    for at in &superseded {
        mark(&mut page.pieces[*at], day);
    }
    places.sort_by_key(|(at, order, ..)| std::cmp::Reverse((*at, *order)));
    for (at, _, fact, merged) in places {
        insert(&mut page, at, &fact, merged);
    }
    draft.put(path, page)?;
    Ok(((known, true), superseded.len()))
}

/// The heading of the page that a fact's own heading repeats.
fn own_section(page: &Page, fact: &str) -> Option<usize> {
    let first = Piece::new(fact, Role::Body);
    let words = first.heading()?.to_lowercase();
    let same = |piece: &Piece| {
        piece.role == Role::Body && piece.heading().is_some_and(|own| own.to_lowercase() == words)
    };
    page.pieces.iter().position(same)
}

/// Puts the blocks of a fact into a page: a plain line becomes an item where the others are items.
fn insert(page: &mut Page, mut at: usize, fact: &str, merged: bool) {
    let parts = blocks(fact);
    for block in parts.iter().skip(usize::from(merged)) {
        let text = &fact[block.body.clone()];
        let before = at.checked_sub(1).and_then(|before| page.pieces.get(before));
        let listed =
            before.is_none_or(|before| before.kind == BlockKind::Item || before.kind.level().is_some());
        let plain = matches!(block.kind, BlockKind::Paragraph | BlockKind::Entry) && !text.contains('\n');
        let item =
            listed && plain && parts.len() == 1 && bullet(text).is_none() && !text.starts_with(['>', '|']);
        let piece = match item {
            true => Piece::new(format!("- {}", text.trim_start()), Role::Body),
            false => Piece { kind: block.kind, ..Piece::new(text, Role::Body) },
        };
        page.insert(at, piece);
        at += 1;
    }
}

/// Marks a fact as superseded, at the end of its first line.
fn mark(piece: &mut Piece, day: &str) {
    if piece.text.contains(SUPERSEDED) {
        return;
    }
    let end = piece.text.find('\n').unwrap_or(piece.text.len());
    let end = piece.text[..end].trim_end().len();
    piece.text.insert_str(end, &format!(" {SUPERSEDED}{day})*"));
}

fn append(page: &mut Page, content: &str) {
    for block in blocks(content) {
        let at = page.body_end();
        let text = &content[block.body];
        page.insert(at, Piece { kind: block.kind, ..Piece::new(text, Role::Body) });
    }
}

fn replace(draft: &mut Draft<'_>, path: &str, content: &str) -> Result<()> {
    let old = draft.page(path)?.cloned();
    let mut page = Page::parse(content);
    if page.links().is_empty()
        && let Some(old) = &old
    {
        for (_, target, description) in old.links() {
            page.list_link(&target, &description);
        }
    }
    if let Some(from) = old.as_ref().and_then(|old| old.meta(super::page::SPLIT_FROM)) {
        page.set_meta(super::page::SPLIT_FROM, from);
    }
    draft.put(path, page)
}

/// How a text begins, for the link that leads to it.
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
