//! Where a new fact belongs: into a child, under a heading, or in place of what it replaces.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::groups::periods;
use super::lexicon::{Bag, capitals};
use super::same::{plain_words, replaces, says};
use super::units::heading_words;
use crate::agent::{Action, Advice, NoteView, PlaceAsk, Placement};
use crate::text::blocks::leading_date;
use crate::text::dates::written_date;

/// The least score for a place, and what its name or period adds to the score.
const SCORE_MIN: f64 = 1.5;
const NAME_WEIGHT: f64 = 3.0;
const PERIOD_WEIGHT: f64 = 6.0;
/// How many reasons are listed for facts that were placed together.
const REASONS_MAX: usize = 5;

/// Places each fact by itself.
pub(super) fn place(ask: &PlaceAsk) -> Advice<Vec<Placement>> {
    let places = Places::of(&ask.note);
    let decided: Vec<(Placement, String)> = ask.facts.iter().map(|fact| places.decide(fact)).collect();
    let reason = told(decided.iter().map(|(_, reason)| reason.as_str()));
    Advice::free(decided.into_iter().map(|(placement, _)| placement).collect(), reason)
}

/// Joins the reasons of several decisions into one sentence, each once, the most frequent first.
fn told<'r>(reasons: impl Iterator<Item = &'r str>) -> String {
    let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
    let mut all = 0;
    for (at, reason) in reasons.enumerate() {
        counts.entry(reason).or_insert((0, at)).0 += 1;
        all += 1;
    }
    let mut counted: Vec<(&str, (usize, usize))> = counts.into_iter().collect();
    counted.sort_by_key(|(_, (count, first))| (Reverse(*count), *first));
    let more = counted.len().saturating_sub(REASONS_MAX);
    let several =
        |count: usize| if count == 1 || count == all { String::new() } else { format!("{count} × ") };
    let mut parts: Vec<String> = counted
        .into_iter()
        .take(REASONS_MAX)
        .map(|(reason, (count, _))| format!("{}{reason}", several(count)))
        .collect();
    if more > 0 {
        parts.push(format!("and {more} other reasons"));
    }
    let facts = if all == 1 { String::new() } else { format!("{all} facts: ") };
    format!("{facts}{}", parts.join("; "))
}

/// A place that a fact can go to, with the words that name it and the words found there.
struct Place {
    number: usize,
    shown: String,
    names: Bag,
    /// Words that its description writes as names.
    mentions: Bag,
    words: Bag,
}

struct Places<'a> {
    note: &'a NoteView,
    children: Vec<Place>,
    sections: Vec<Place>,
}

impl<'a> Places<'a> {
    fn of(note: &'a NoteView) -> Self {
        let child = |line: &crate::agent::LinkLine| Place {
            number: line.number,
            shown: line.path.clone(),
            names: Bag::of(line.path.rsplit('/').next().unwrap_or("")),
            mentions: Bag::of(&capitals(&line.description)),
            words: Bag::of(&format!("{} {}", line.path, line.description)),
        };
        let mut sections = Vec::new();
        for (index, block) in note.blocks.iter().enumerate().filter(|(_, block)| block.level > 0) {
            let below = note.blocks[index + 1..].iter().take_while(|other| other.level == 0);
            let text: Vec<&str> = below.map(|other| other.text.as_str()).collect();
            let shown = heading_words(block).to_owned();
            let (names, mentions) = (Bag::of(&shown), Bag::default());
            let words = Bag::of(&text.join(" "));
            sections.push(Place { number: block.number, shown, names, mentions, words });
        }
        Places { note, children: note.links.iter().map(child).collect(), sections }
    }

    fn decide(&self, fact: &str) -> (Placement, String) {
        let words = plain_words(fact);
        let plain = self.note.blocks.iter().filter(|block| block.level == 0);
        if let Some(block) = plain.clone().find(|block| says(&block.text, &words)) {
            return (placed(Action::Known, Some(block.number)), "it is there already".to_owned());
        }
        let bag = Bag::of(fact);
        let child = best(&self.children, &bag, fact);
        let section = best(&self.sections, &bag, fact);
        let old =
            plain.filter(|block| replaces(&block.text, fact, &words)).map(|block| block.number).collect();
        if let Some(old) = self.only(old, section.map(|(_, section)| section.number)) {
            let placement = Placement { action: Action::After, at: Some(old), supersedes: vec![old] };
            return (placement, "it replaces an older fact, which is kept and marked".to_owned());
        }
        match (child, section) {
            (Some((score, child)), section) if section.is_none_or(|(other, _)| score.beats(other)) => (
                placed(Action::Child, Some(child.number)),
                format!("it shares words with [[{}]]", child.shown),
            ),
            (_, Some((_, section))) => {
                let reason = format!("it shares words with the section “{}”", section.shown);
                (placed(Action::Under, Some(section.number)), reason)
            }
            _ => (placed(Action::Top, None), "no other note fits better".to_owned()),
        }
    }

    /// Returns the one block that a fact replaces: the only candidate, or the only one in the fact's own
    /// section. If several remain, nobody can tell which is meant.
    fn only(&self, mut old: Vec<usize>, section: Option<usize>) -> Option<usize> {
        let heading = |number: usize| {
            let before = self.sections.iter().take_while(|section| section.number < number);
            before.last().map(|section| section.number)
        };
        if old.len() > 1 {
            old.retain(|number| section.is_some() && heading(*number) == section);
        }
        if let [only] = old[..] { Some(only) } else { None }
    }
}

/// How well a place fits: a name outweighs any number of common words.
#[derive(Debug, Clone, Copy)]
struct Score {
    named: bool,
    all: f64,
}

impl Score {
    fn beats(self, other: Score) -> bool {
        (self.named, self.all) > (other.named, other.all)
    }
}

fn placed(action: Action, at: Option<usize>) -> Placement {
    Placement { action, at, supersedes: Vec::new() }
}

/// Returns the place that fits a fact's words best. A word that names several places counts less.
fn best<'p>(places: &'p [Place], fact: &Bag, text: &str) -> Option<(Score, &'p Place)> {
    let written = Bag::of(&capitals(text));
    let names =
        |place: &Place, stem: &str| place.names.has(stem) || (place.mentions.has(stem) && written.has(stem));
    let mut named: HashMap<&str, usize> = HashMap::new();
    let mut found: HashMap<&str, usize> = HashMap::new();
    for stem in &fact.stems {
        named.insert(stem, places.iter().filter(|place| names(place, stem)).count());
        found.insert(stem, places.iter().filter(|place| place.words.has(stem)).count());
    }
    let date = leading_date(text).map(str::to_owned).or_else(|| written_date(text));
    let when = date.as_deref().map(periods);
    let mut best: Option<(Score, &Place)> = None;
    let name = |place: &Place| place.shown.rsplit('/').next().unwrap_or("").to_owned();
    let dated = when.is_some() && places.iter().any(|place| is_period(&name(place)));
    for place in places {
        let (mut by_name, mut by_words) = (0.0, 0.0);
        // Among places named after dates, only the date decides.
        let stems = if dated { &[][..] } else { &fact.stems[..] };
        for stem in stems {
            if names(place, stem) {
                by_name += NAME_WEIGHT / named[stem.as_str()] as f64;
            } else if place.words.has(stem) {
                by_words += 1.0 / found[stem.as_str()] as f64;
            }
        }
        if let Some(when) = &when {
            by_name += if when.contains(&name(place)) { PERIOD_WEIGHT } else { 0.0 };
        }
        let score = Score { named: by_name >= SCORE_MIN, all: by_name + by_words };
        if score.all >= SCORE_MIN && best.is_none_or(|(other, _)| score.beats(other)) {
            best = Some((score, place));
        }
    }
    best
}

/// Whether a name is a year, a quarter, a month or a day.
fn is_period(name: &str) -> bool {
    let year = name.get(..4).is_some_and(|year| year.bytes().all(|byte| byte.is_ascii_digit()));
    let rest = name.get(4..).unwrap_or("");
    year && rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | 'q'))
        && (rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_told_once() {
        assert_eq!(told(["a"].into_iter()), "a");
        assert_eq!(told(["a"; 100].into_iter()), "100 facts: a");
        assert_eq!(told(["b", "a", "a", "c"].into_iter()), "4 facts: 2 × a; b; c");
        let many: Vec<String> = (0..9).map(|at| at.to_string()).collect();
        let all = told(many.iter().map(String::as_str));
        assert_eq!(all, "9 facts: 0; 1; 2; 3; 4; and 4 other reasons");
    }
}
