//! How facts and sections are put into a page, at the places that were decided.

use std::collections::BTreeSet;

use super::draft::Draft;
use super::facts::Given;
use super::page::{Page, Piece, Role};
use crate::agent::rules::Rules;
use crate::agent::{Action, Agent, PlaceAsk, Placement, SUPERSEDED};
use crate::error::Result;

/// The result of putting facts into a page.
#[derive(Default)]
pub(super) struct Put {
    pub(super) known: usize,
    pub(super) superseded: usize,
    pub(super) changed: bool,
}

/// What is to be put into a page, by place, before any of it is.
struct Places<'p> {
    page: &'p Page,
    known: usize,
    superseded: BTreeSet<usize>,
    facts: Vec<(usize, String)>,
    /// Whole sections with their places and levels: at one place, a deeper section must come first.
    sections: Vec<(usize, u8, Given)>,
}

impl Places<'_> {
    fn put(&mut self, given: Given, placement: Placement) {
        if placement.action == Action::Known {
            self.known += 1;
            return;
        }
        self.superseded.extend(placement.supersedes);
        if given.heading.is_some() || !given.under.is_empty() {
            return self.put_section(given.enclosed(), 0, self.page.pieces.len(), self.page.body_end());
        }
        let at = match (placement.action, placement.at) {
            (Action::Under, Some(heading)) => self.page.section_end(heading),
            (Action::After, Some(block)) => block + 1,
            _ => self.page.top_end(),
        };
        self.facts.extend(given.blocks.into_iter().map(|fact| (at, fact)));
    }

    /// Puts a section block by block under its heading, if that exists in the range; otherwise as a whole.
    fn put_section(&mut self, given: Given, from: usize, to: usize, new: usize) {
        let Some(heading) = self.page.section_of(&given, from, to) else {
            return self.sections.push((new, given.level(), given));
        };
        let end = self.page.section_end(heading);
        let view = self.page.view_of("", heading..end);
        let ask = PlaceAsk { note: view, facts: given.blocks };
        let plan = Rules.place(&ask).map(|advice| advice.plan).unwrap_or_default();
        for (fact, placement) in ask.facts.into_iter().zip(plan) {
            let placement = match placement.action {
                Action::Known | Action::After => placement,
                _ => Placement { action: Action::Under, at: Some(heading), ..placement },
            };
            self.put(Given { blocks: vec![fact], ..Given::default() }, placement);
        }
        let whole_end = self.page.whole_section_end(heading);
        for below in given.below {
            self.put_section(below, heading + 1, whole_end, whole_end);
        }
    }
}

/// Puts facts into a page.
pub(super) fn put(
    draft: &mut Draft<'_>,
    path: &str,
    page: Page,
    facts: Vec<(Given, Placement)>,
) -> Result<Put> {
    let mut places = Places {
        page: &page,
        known: 0,
        superseded: BTreeSet::new(),
        facts: Vec::new(),
        sections: Vec::new(),
    };
    facts.into_iter().for_each(|(given, placement)| places.put(given, placement));
    let Places { known, superseded, mut facts, mut sections, .. } = places;
    if facts.is_empty() && sections.is_empty() {
        return Ok(Put { known, ..Put::default() });
    }
    let mut page = page.clone();
    let day = format!("{:.10}", draft.now.to_string());
    superseded.iter().for_each(|at| mark(&mut page.pieces[*at], &day));
    // From the last place to the first; at one place facts precede sections, and deeper sections the
    // others.
    facts.sort_by_key(|(at, _)| *at);
    sections.sort_by_key(|(at, level, _)| (*at, std::cmp::Reverse(*level)));
    while let Some(at) = facts.last().map(|(at, _)| *at).max(sections.last().map(|(at, ..)| *at)) {
        while let Some((_, _, section)) = sections.pop_if(|(own, ..)| *own == at) {
            for block in section.all().into_iter().rev() {
                let text = page.ended(block);
                page.insert(at, Piece::new(text, Role::Body));
            }
        }
        let start = facts.partition_point(|(own, _)| *own < at);
        for (count, (_, fact)) in facts.split_off(start).into_iter().enumerate() {
            page.insert_fact(at + count, &fact);
        }
    }
    draft.put(path, page)?;
    Ok(Put { known, superseded: superseded.len(), changed: true })
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
