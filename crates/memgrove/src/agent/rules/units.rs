//! Which blocks move together: a section with its heading, or a block by itself.

use crate::agent::{NoteView, Numbered};
use crate::text::blocks::{heading, leading_date};
use crate::text::dates::written_date;

/// Blocks that move together.
#[derive(Debug, Clone, Default)]
pub(super) struct Unit {
    /// Their numbers.
    pub(super) blocks: Vec<usize>,
    /// What they say.
    pub(super) text: String,
    /// Their heading, if it moves with them.
    pub(super) heading: Option<String>,
}

impl Unit {
    fn of(block: &Numbered) -> Self {
        Unit { blocks: vec![block.number], text: block.text.clone(), heading: None }
    }

    /// Returns the date that it begins with, as `YYYY-MM-DD`.
    pub(super) fn date(&self) -> Option<String> {
        let mut lines = self.text.lines();
        let first = lines.next()?;
        let date = leading_date(first).map(str::to_owned);
        if self.heading.is_none() {
            return date;
        }
        // A heading may spell its date out, or stand above a dated line.
        date.or_else(|| written_date(first)).or_else(|| {
            let next = lines.find(|line| !line.trim().is_empty())?;
            leading_date(next).map(str::to_owned)
        })
    }

    /// Its size in a file.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + 2
    }
}

/// The words of a heading block.
pub(super) fn heading_words(block: &Numbered) -> &str {
    heading(&block.text).map_or("", |(_, words)| words)
}

/// Returns the sections of a note at the highest level with at least two headings, and the blocks outside
/// of them. Without such a level every block is a unit, and headings stay.
pub(super) fn units(note: &NoteView) -> Vec<Unit> {
    let mut counts = [0_usize; 7];
    for block in &note.blocks {
        counts[usize::from(block.level.min(6))] += 1;
    }
    let level = (1..7_u8).find(|level| counts[usize::from(*level)] >= 2);
    let mut units: Vec<Unit> = Vec::new();
    let mut inside = false;
    for block in &note.blocks {
        match (block.level, level) {
            (0, _) if inside => {
                if let Some(unit) = units.last_mut() {
                    extend(unit, block);
                }
            }
            (0, _) => units.push(Unit::of(block)),
            (here, Some(level)) if here == level => {
                inside = true;
                let heading = Some(heading_words(block).to_owned());
                units.push(Unit { heading, ..Unit::of(block) });
            }
            (here, Some(level)) if here > level && inside => {
                if let Some(unit) = units.last_mut() {
                    extend(unit, block);
                }
            }
            // A heading above that level, or the only one of its level, stays.
            (here, Some(level)) if here < level => inside = false,
            _ => {}
        }
    }
    units
}

fn extend(unit: &mut Unit, block: &Numbered) {
    unit.blocks.push(block.number);
    unit.text.push_str("\n\n");
    unit.text.push_str(&block.text);
}
