//! Putting facts and sections into a page, where it was decided that they belong.

use std::collections::BTreeSet;

use super::draft::Draft;
use super::facts::Given;
use super::page::{Page, Piece, Role};
use crate::agent::rules::Rules;
use crate::agent::{Action, Agent, PlaceAsk, Placement, SUPERSEDED};
use crate::error::Result;

/// What came of putting facts into a page.
#[derive(Default)]
pub(super) struct Put {
    pub(super) known: usize,
    pub(super) superseded: usize,
    pub(super) changed: bool,
}

/// What goes into a page, by its places before any of it is put in.
struct Places<'p> {
    page: &'p Page,
    known: usize,
    superseded: BTreeSet<usize>,
    facts: Vec<(usize, String)>,
    /// Whole sections, with their levels: what is under one must not come behind one that is above it.
    sections: Vec<(usize, u8, Given)>,
}

impl Places<'_> {
    fn put(&mut self, given: Given, placement: Placement) {
        if placement.action == Action::Known {
            self.known += 1;
            return;
        }
        self.superseded.extend(placement.supersedes);
        if given.heading.is_some() {
            return self.put_section(given, 0, self.page.pieces.len(), self.page.body_end());
        }
        let at = match (placement.action, placement.at) {
            (Action::Under, Some(heading)) => self.page.section_end(heading),
            (Action::After, Some(block)) => block + 1,
            _ => self.page.top_end(),
        };
        self.facts.extend(given.blocks.into_iter().map(|fact| (at, fact)));
    }

    /// A section whose heading is there between two places goes under it, block by block; any other is put
    /// in whole.
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
    // From the last place to the first; at one place facts come first, and of sections the deeper ones.
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
