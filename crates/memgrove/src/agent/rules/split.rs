//! How a note is split: by its headings if it has them, else by what its blocks have in common.

use super::groups::{self, Group, Grouping};
use super::lexicon::{Bag, Lexicon};
use super::names::{slug, title_of};
use super::units::{Unit, units};
use crate::agent::{Advice, LinkLine, NoteView, SplitAsk, SplitPart, SplitPlan, Strategy};

/// The most sections that become notes of their own in one split.
const SECTIONS_MAX: usize = 24;
/// With fewer links than this the list of links is never the part that is too long.
const LINKS_MIN: usize = 12;
/// If sections are smaller than this on average, a note is not split by its headings.
const SECTION_BYTES_MIN: usize = 300;

/// Decides how a note is split.
pub(super) fn split(ask: &SplitAsk) -> Advice<SplitPlan> {
    let note = &ask.note;
    // New notes get room to grow; a note that is small already is halved.
    let whole: usize = note.blocks.iter().map(|block| block.text.len() + 2).sum();
    let goal = (ask.bytes_max * 7 / 10).min(whole / 2 + 1);
    let link_bytes: usize = note.links.iter().map(|line| line.path.len() + line.description.len() + 10).sum();
    if link_bytes * 2 > ask.bytes_max && note.links.len() >= LINKS_MIN {
        let few = link_bytes * 4 / note.links.len();
        return links(note, few.max(ask.bytes_max / 4));
    }
    let units = units(note);
    let (lexicon, bags) = Lexicon::of(units.iter().map(|unit| unit.text.as_str()));
    let desk = Desk { note, units: &units, lexicon: &lexicon, bags: &bags };
    let grouping = by_headings(&units, ask.bytes_max)
        .or_else(|| groups::grouped(&units, &lexicon, &bags))
        .unwrap_or_else(|| groups::by_size(&units, goal, parts_taken(note)));
    desk.plan(grouping)
}

/// Returns the highest number among the notes already called `part_…`.
fn parts_taken(note: &NoteView) -> usize {
    let number = |line: &LinkLine| {
        let (_, number) = line.path.rsplit_once("part_")?;
        number.parse::<usize>().ok()
    };
    note.links.iter().filter_map(number).max().unwrap_or(0)
}

struct Desk<'a> {
    note: &'a NoteView,
    units: &'a [Unit],
    lexicon: &'a Lexicon,
    bags: &'a [Bag],
}

impl Desk<'_> {
    fn plan(&self, grouping: Grouping) -> Advice<SplitPlan> {
        let Grouping { strategy, reason, groups } = grouping;
        let mut parts: Vec<SplitPart> = Vec::new();
        for group in groups {
            let part = self.part(strategy, &group);
            // Two headings may give the same name.
            match parts.iter_mut().find(|there| there.name == part.name) {
                Some(there) => there.blocks.extend(part.blocks),
                None => parts.push(part),
            }
        }
        parts.iter_mut().for_each(|part| part.blocks.sort_unstable());
        Advice::free(SplitPlan { strategy, parts }, reason)
    }

    fn part(&self, strategy: Strategy, group: &Group) -> SplitPart {
        let name = slug(&group.name);
        let bags = group.units.iter().map(|index| &self.bags[*index]);
        let description = self.lexicon.description(bags, &group.name);
        let title = match strategy {
            Strategy::Size => format!("{} ({})", self.note.title, group.name.replace('_', " ")),
            Strategy::Time => format!("{} {}", self.note.title, group.name),
            Strategy::Topic | Strategy::Entity => title_of(&name),
        };
        let blocks = group.units.iter().flat_map(|index| self.units[*index].blocks.iter().copied()).collect();
        SplitPart { name, title, description, blocks }
    }
}

/// Makes a note of each section that is large enough, until what stays is small.
fn by_headings(units: &[Unit], bytes_max: usize) -> Option<Grouping> {
    let mut headed: Vec<usize> = (0..units.len()).filter(|index| units[*index].heading.is_some()).collect();
    let all: usize = units.iter().map(Unit::bytes).sum();
    let inside: usize = headed.iter().map(|index| units[*index].bytes()).sum();
    let dated = headed.iter().filter(|index| units[**index].date().is_some()).count();
    let small = headed.len() > SECTIONS_MAX || inside < headed.len() * SECTION_BYTES_MIN;
    if headed.len() < 2 || inside * 2 < all || small || dated * 5 >= headed.len() * 3 {
        return None;
    }
    headed.sort_by_key(|index| (std::cmp::Reverse(units[*index].bytes()), *index));
    // If no section is large for the limit, the note's own size is the measure.
    let chosen = [bytes_max, all].into_iter().map(|most| large_enough(units, &headed, most));
    let chosen = chosen.into_iter().find(|chosen| !chosen.is_empty())?;
    let named = |index: usize| units[index].heading.clone().unwrap_or_default();
    let itself = |index: &usize| {
        let (name, text) = (named(*index).to_lowercase(), units[*index].text.to_lowercase());
        !name.is_empty() && text.matches(&name).count() > 2
    };
    let strategy = match chosen.iter().filter(|index| itself(index)).count() * 2 > chosen.len() {
        true => Strategy::Entity,
        false => Strategy::Topic,
    };
    let reason =
        format!("it has {} sections, and {} of them are large enough", units_headed(units), chosen.len());
    let groups = chosen.into_iter().map(|index| Group { name: named(index), units: vec![index] }).collect();
    Some(Grouping { strategy, reason, groups })
}

/// Picks the sections to move, the largest first, until what stays is small compared with `most`.
fn large_enough(units: &[Unit], largest_first: &[usize], most: usize) -> Vec<usize> {
    let mut rest: usize = units.iter().map(Unit::bytes).sum();
    let mut chosen = Vec::new();
    for index in largest_first {
        let bytes = units[*index].bytes();
        if rest * 5 > most * 2 || bytes * 8 > most {
            rest -= bytes;
            chosen.push(*index);
        }
    }
    chosen.sort_unstable();
    chosen
}

fn units_headed(units: &[Unit]) -> usize {
    units.iter().filter(|unit| unit.heading.is_some()).count()
}

/// Splits a note whose list of links is too long: new notes in between list the linked ones.
fn links(note: &NoteView, goal: usize) -> Advice<SplitPlan> {
    let unit = |line: &LinkLine| Unit {
        blocks: vec![line.number],
        text: format!("{} {}", line.path, line.description),
        heading: None,
    };
    let units: Vec<Unit> = note.links.iter().map(unit).collect();
    let mut grouping = groups::by_size(&units, goal, 0);
    for group in &mut grouping.groups {
        let at = |index: Option<&usize>| index.map_or("", |index| note.links[*index].path.as_str());
        let short = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let (first, last) = (short(at(group.units.first())), short(at(group.units.last())));
        group.name = format!("{first} to {last}");
    }
    // The latest links stay in the note itself.
    grouping.groups.pop();
    grouping.reason = format!("it lists {} notes: notes in between list them", note.links.len());
    let (lexicon, bags) = Lexicon::of(units.iter().map(|unit| unit.text.as_str()));
    let desk = Desk { note, units: &units, lexicon: &lexicon, bags: &bags };
    let mut advice = desk.plan(grouping);
    for part in &mut advice.plan.parts {
        part.title = title_of(&part.name);
    }
    advice
}
