//! Which units belong together: by date, by the names in them, by shared words, or only by their order.

use std::collections::{BTreeMap, BTreeSet};

use super::lexicon::{Bag, Lexicon, is_starter};
use super::units::Unit;
use crate::agent::Strategy;
use crate::text::dates::is_weekday;

/// The fewest units that are worth a note of their own.
const UNITS_MIN: usize = 3;
/// The most notes that one split makes by names or words.
const GROUPS_MAX: usize = 16;

/// Some units, and the name of the note that they will be in.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) name: String,
    /// The indices of the units.
    pub(super) units: Vec<usize>,
}

/// How units were grouped, and why.
#[derive(Debug, Clone)]
pub(super) struct Grouping {
    pub(super) strategy: Strategy,
    pub(super) reason: String,
    pub(super) groups: Vec<Group>,
}

/// Groups units by the first way that fits them.
pub(super) fn grouped(units: &[Unit], lexicon: &Lexicon, bags: &[Bag]) -> Option<Grouping> {
    let all: usize = units.iter().map(Unit::bytes).sum();
    by_time(units)
        .or_else(|| by_name(units, lexicon, bags, all))
        .or_else(|| by_words(units, lexicon, bags, all))
}

/// How a date is shortened to a period.
type Period = fn(&str) -> String;

const PERIODS: [(&str, Period); 4] = [
    ("year", |date| date[..4].to_owned()),
    ("quarter", |date| format!("{}-q{}", &date[..4], (date[5..7].parse::<usize>().unwrap_or(1) - 1) / 3 + 1)),
    ("month", |date| date[..7].to_owned()),
    ("day", |date| date.to_owned()),
];

/// Returns the names of the periods that a date is in, from the year to the day.
pub(super) fn periods(date: &str) -> [String; 4] {
    PERIODS.map(|(_, period)| period(date))
}

/// Groups units by the coarsest period that tells them apart; a note that is still too large is later
/// split by a finer one. A unit without a date goes with the one before it.
fn by_time(units: &[Unit]) -> Option<Grouping> {
    let dated = units.iter().filter(|unit| unit.date().is_some()).count();
    if dated < UNITS_MIN || dated * 5 < units.len() * 3 {
        return None;
    }
    let mut best = None;
    for (word, period) in PERIODS {
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut current: Option<String> = None;
        for (index, unit) in units.iter().enumerate() {
            current = unit.date().as_deref().map(period).or(current);
            if let Some(name) = &current {
                groups.entry(name.clone()).or_default().push(index);
            }
        }
        if groups.len() > 1 {
            best = Some((word, groups));
            break;
        }
    }
    let (word, groups) = best?;
    let reason = format!("{dated} of {} parts begin with a date: one note for each {word}", units.len());
    let groups = groups.into_iter().map(|(name, units)| Group { name, units }).collect();
    Some(Grouping { strategy: Strategy::Time, reason, groups })
}

/// Groups units by the first name in each that others have too.
fn by_name(units: &[Unit], lexicon: &Lexicon, bags: &[Bag], all: usize) -> Option<Grouping> {
    let most = units.len() * 3 / 5;
    let fits = |stem: &str| {
        let places = lexicon.places(stem);
        lexicon.is_name(stem) && places >= UNITS_MIN && places <= most && !names_a_day(lexicon, stem)
    };
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, bag) in bags.iter().enumerate() {
        if let Some(name) = bag.stems.iter().find(|stem| fits(stem)) {
            groups.entry(name).or_default().push(index);
        }
    }
    let groups = largest(groups, units);
    let names: Vec<&str> = groups.iter().map(|(stem, _)| lexicon.surface(stem)).collect();
    let reason = format!("the blocks speak of {}", listed(&names));
    accepted(Strategy::Entity, reason, groups, lexicon, units, all)
}

/// Groups units by words that several share and most do not have, the most telling word first.
fn by_words(units: &[Unit], lexicon: &Lexicon, bags: &[Bag], all: usize) -> Option<Grouping> {
    let mut free: BTreeSet<usize> = (0..units.len()).collect();
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    while groups.len() < GROUPS_MAX && free.len() * 5 > units.len() {
        let mut holders: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for index in &free {
            for stem in &bags[*index].stems {
                holders.entry(stem).or_default().push(*index);
            }
        }
        let telling = |stem: &str, count: usize| {
            let rare = (units.len() as f64 / lexicon.places(stem).max(1) as f64).ln();
            count as f64 * rare
        };
        let fits = |stem: &str, count: usize| {
            let common = lexicon.places(stem) * 2 > units.len();
            let telling = stem.chars().count() > 3 || !stem.is_ascii();
            let telling = telling && !is_starter(&lexicon.surface(stem).to_lowercase());
            count >= UNITS_MIN && !common && telling && !names_a_day(lexicon, stem)
        };
        let best = holders.into_iter().filter(|(stem, held)| fits(stem, held.len())).max_by(|one, two| {
            let (first, second) = (telling(one.0, one.1.len()), telling(two.0, two.1.len()));
            first.total_cmp(&second).then(two.0.cmp(one.0))
        });
        let Some((stem, held)) = best else { break };
        free.retain(|index| !held.contains(index));
        groups.insert(stem, held);
    }
    let groups = largest(groups, units);
    let names: Vec<&str> = groups.iter().map(|(stem, _)| lexicon.surface(stem)).collect();
    let reason = format!("groups of blocks share words: {}", listed(&names));
    accepted(Strategy::Topic, reason, groups, lexicon, units, all)
}

/// Whether a word is a day of the week: what happened on a Friday has nothing else in common.
fn names_a_day(lexicon: &Lexicon, stem: &str) -> bool {
    is_weekday(&lexicon.surface(stem).to_lowercase())
}

/// Groups units in their order, as many in each group as fit one note.
pub(super) fn by_size(units: &[Unit], goal: usize, taken: usize) -> Grouping {
    let mut groups: Vec<Group> = Vec::new();
    let mut filled = usize::MAX;
    for (index, unit) in units.iter().enumerate() {
        if filled.saturating_add(unit.bytes()) > goal {
            groups.push(Group { name: format!("part_{}", taken + groups.len() + 1), units: Vec::new() });
            filled = 0;
        }
        filled += unit.bytes();
        if let Some(group) = groups.last_mut() {
            group.units.push(index);
        }
    }
    let reason = "nothing sets the blocks apart but their order".to_owned();
    Grouping { strategy: Strategy::Size, reason, groups }
}

type Named<'a> = Vec<(&'a str, Vec<usize>)>;

/// Returns the groups that are worth a note; if there are too many, only the largest.
fn largest<'a>(groups: BTreeMap<&'a str, Vec<usize>>, units: &[Unit]) -> Named<'a> {
    let size = |group: &[usize]| group.iter().map(|index| units[*index].bytes()).sum::<usize>();
    let mut groups: Named<'a> = groups.into_iter().filter(|(_, held)| held.len() >= UNITS_MIN).collect();
    groups.sort_by_key(|(name, held)| (std::cmp::Reverse(size(held)), *name));
    groups.truncate(GROUPS_MAX);
    groups
}

/// Returns the grouping if it has at least two groups that hold half of all bytes.
fn accepted(
    strategy: Strategy,
    reason: String,
    groups: Named<'_>,
    lexicon: &Lexicon,
    units: &[Unit],
    all: usize,
) -> Option<Grouping> {
    let inside: usize = groups.iter().flat_map(|(_, held)| held).map(|index| units[*index].bytes()).sum();
    if groups.len() < 2 || inside * 2 < all {
        return None;
    }
    let named = |(stem, units): (&str, Vec<usize>)| Group { name: lexicon.surface(stem).to_owned(), units };
    Some(Grouping { strategy, reason, groups: groups.into_iter().map(named).collect() })
}

/// Joins the first few names, and says how many more there are.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names[..names.len() - more].join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}
