//! How entities are found and ranked: by words, by the whole query as written, and by the plain scores
//! 100, 50 and 25 for name and type.

use std::collections::HashSet;
use std::sync::Arc;

use super::catalog::{Card, Shelf};
use super::names::folder_name;
use super::phrase::Phrase;
use super::words::Index;
use super::{Entity, Observation, When};
use crate::clock::Timestamp;
use crate::locator::Locator;
use crate::text::words::{asked, overlap};

/// How many entities a plain search returns.
pub const SEARCH_HITS_MAX: usize = 30;
/// The share of the best hit's rank that another hit must reach to be worth showing.
const RANK_MIN: f32 = 0.5;
/// What it adds to the rank that an entity contains the whole query.
const PHRASE: f32 = 4.0;
/// What one point of the plain score is worth.
const POINT: f32 = 0.1;
/// The share of this that counts if the query occurs only within longer words, as `7` in `1789`.
const WITHIN_WORDS: f32 = 0.25;

/// One entity that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its file.
    pub path: Locator,
    /// The entity, reduced to what holds.
    pub entity: Arc<Entity>,
    /// Its plain score: 100 for the name itself, 50 for a part of it, and 25 for the type.
    pub score: u32,
    /// How well it matches, comparable with other hits of the same search.
    pub rank: f32,
    /// Whether the whole query is in its name, its type or an observation.
    pub whole: bool,
}

impl Hit {
    /// Returns the observation that matches best; of equals the last, because it is the newest.
    pub fn best(&self, query: &str) -> Option<&Observation> {
        let (words, lower) = (asked(query), query.trim().to_lowercase());
        let fit = |text: &str| {
            let whole = !lower.is_empty() && text.to_lowercase().contains(&lower);
            overlap(&words, text) + if whole { 1_000 } else { 0 }
        };
        self.entity.observations.iter().max_by_key(|observation| fit(&observation.text))
    }
}

/// The hits that are worth showing: those that contain the whole query, or if there are none, those that
/// are not much worse than the best.
#[derive(Debug, Clone, PartialEq)]
pub struct Strong {
    /// The best of them, best first.
    pub hits: Vec<Hit>,
    /// How many are worth showing.
    pub worth: usize,
    /// How many match at all.
    pub matching: usize,
}

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct Match {
    /// The words, or the beginning of a question; empty for everything, newest first.
    pub query: String,
    /// Only entities of this type.
    pub kind: Option<String>,
    /// Search what held at this moment, instead of now.
    pub as_of: Option<Timestamp>,
}

/// A query, prepared for comparison with many names.
pub struct Named<'a> {
    query: &'a str,
    lower: String,
}

impl<'a> Named<'a> {
    /// A query as it was typed.
    pub fn by(query: &'a str) -> Self {
        Named { query, lower: query.to_lowercase() }
    }

    /// Whether nothing was typed.
    pub fn is_empty(&self) -> bool {
        self.query.is_empty()
    }

    /// Returns the plain score for a name.
    pub fn of_name(&self, name: &str) -> u32 {
        // A question is longer than most ASCII names, which cannot match then.
        let fits = name.len() >= self.lower.len() || !name.is_ascii();
        if fits { named(&name.to_lowercase(), &self.lower) } else { 0 }
    }

    /// Returns the plain score for a type.
    pub fn of_kind(&self, kind: &str) -> u32 {
        typed(kind, self.query)
    }
}

/// The plain score of an entity for a query.
pub fn score(name: &str, kind: &str, query: &str) -> u32 {
    let named = Named::by(query);
    named.of_name(name) + named.of_kind(kind)
}

/// The part of the plain score for the name; both are in lower case.
fn named(name: &str, query: &str) -> u32 {
    match name == query {
        true => 100,
        false if name.contains(query) => 50,
        false => 0,
    }
}

/// The part of the plain score for the type.
fn typed(kind: &str, query: &str) -> u32 {
    if !kind.is_empty() && query.contains(kind) { 25 } else { 0 }
}

/// Returns the entities that match, best first.
pub(super) fn all(shelf: &Shelf, wanted: &Match) -> Vec<Hit> {
    let mut found = scored(shelf, wanted);
    let len = found.len();
    opened(shelf, best_first(&mut found, len), wanted)
}

/// Returns the best of those that are worth showing.
pub(super) fn strong(shelf: &Shelf, wanted: &Match, most: usize) -> Strong {
    let mut found = scored(shelf, wanted);
    let matching = found.len();
    if found.iter().any(|scored| scored.whole) {
        found.retain(|scored| scored.whole);
    } else {
        let least = found.iter().map(|scored| scored.rank).fold(0.0, f32::max) * RANK_MIN;
        found.retain(|scored| scored.rank >= least);
    }
    let worth = found.len();
    Strong { hits: opened(shelf, best_first(&mut found, most), wanted), worth, matching }
}

/// Returns everything that matches, unordered; without a query, everything.
fn scored<'a>(shelf: &'a Shelf, wanted: &Match) -> Vec<Scored<'a>> {
    let kinds = kinds(shelf, wanted);
    let fits = |kind: &str| kinds.as_ref().is_none_or(|kinds| kinds.contains(kind));
    let query = wanted.query.trim();
    if query.is_empty() {
        let all = shelf.cards.iter().filter(|(_, card)| !card.loose && fits(&card.entity.kind));
        let newest = |card: &'a Card| card.entity.updated.as_deref();
        let scored =
            all.map(|(at, card)| Scored { at, newest: newest(card), points: 0, rank: 0.0, whole: false });
        return scored.collect();
    }
    match &wanted.as_of {
        None => present(shelf, query, fits),
        Some(_) => past(shelf, wanted, query, fits),
    }
}

/// Returns every spelling of the wanted type, or `None` for any type. Types with the same folder are one.
fn kinds(shelf: &Shelf, wanted: &Match) -> Option<HashSet<String>> {
    let folder = folder_name(wanted.kind.as_ref()?);
    let same = shelf.roll.by_kind(|kind| (folder_name(kind) == folder).then(|| kind.to_owned()));
    Some(same.into_iter().flatten().collect())
}

/// An entity that matches, not yet opened.
struct Scored<'a> {
    at: &'a Locator,
    /// When it was last changed, if nothing else ranks it.
    newest: Option<&'a str>,
    points: u32,
    rank: f32,
    whole: bool,
}

/// Sorts the best `most` to the front, and returns them.
fn best_first<'a, 'b>(found: &'b mut [Scored<'a>], most: usize) -> &'b [Scored<'a>] {
    let order = |a: &Scored<'_>, b: &Scored<'_>| {
        b.rank.total_cmp(&a.rank).then_with(|| (b.newest, a.at).cmp(&(a.newest, b.at)))
    };
    let most = most.min(found.len());
    if most < found.len() {
        found.select_nth_unstable_by(most, order);
    }
    found[..most].sort_unstable_by(order);
    &found[..most]
}

fn opened(shelf: &Shelf, found: &[Scored<'_>], wanted: &Match) -> Vec<Hit> {
    let hit = |scored: &Scored<'_>| {
        let entity = seen(&shelf.cards[scored.at], wanted);
        Hit { path: scored.at.clone(), entity, score: scored.points, rank: scored.rank, whole: scored.whole }
    };
    found.iter().map(hit).collect()
}

fn present<'a>(shelf: &'a Shelf, query: &str, fits: impl Fn(&str) -> bool) -> Vec<Scored<'a>> {
    let scores = shelf.index.scores(query);
    let lower = query.to_lowercase();
    let phrase = Phrase::new(&lower);
    let kinds = shelf.roll.by_kind(|kind| fits(kind).then(|| typed(kind, query)));
    let mut found = Vec::new();
    for (id, entry, may) in shelf.roll.look_for(&phrase) {
        let words = scores.of(id);
        let Some(typed) = *entry.of_kind(&kinds) else { continue };
        let card = may.then(|| &shelf.cards[&entry.at]).filter(|card| phrase.stands_in(card));
        if words.is_some() || card.is_some() {
            // A query that is not in the entity is not in its name either.
            let points = typed + card.map_or(0, |card| named(card.lower_name(), &lower));
            let rank = rank(points, words, card.is_some());
            found.push(Scored { at: &entry.at, newest: None, points, rank, whole: card.is_some() });
        }
    }
    found
}

/// As [`present`], over what held at an earlier moment. It is slower, because nothing is prepared for it.
fn past<'a>(shelf: &'a Shelf, wanted: &Match, query: &str, fits: impl Fn(&str) -> bool) -> Vec<Scored<'a>> {
    let (mut index, mut all) = (Index::default(), Vec::new());
    for (at, card) in shelf.cards.iter().filter(|(_, card)| !card.loose) {
        let entity = seen(card, wanted);
        index.add(u32::try_from(all.len()).unwrap_or(u32::MAX), &entity);
        all.push((at, entity));
    }
    let scores = index.scores(query);
    let lower = query.to_lowercase();
    let scored = all.into_iter().zip(0u32..).filter_map(|((at, entity), id)| {
        let (words, whole) = (scores.of(id), holds_phrase(&entity, &lower));
        let points = score(&entity.name, &entity.kind, query);
        let rank = rank(points, words, whole);
        let found = (words.is_some() || whole) && fits(&entity.kind);
        found.then_some(Scored { at, newest: None, points, rank, whole })
    });
    scored.collect()
}

fn seen(card: &Card, wanted: &Match) -> Arc<Entity> {
    match wanted.as_of {
        None => Arc::clone(&card.present),
        Some(moment) => Arc::new(card.entity.holding(When::Past(moment))),
    }
}

fn rank(points: u32, words: Option<f32>, whole: bool) -> f32 {
    let points = points as f32 * POINT + if whole { PHRASE } else { 0.0 };
    match words {
        Some(words) => words + points,
        None => points * WITHIN_WORDS,
    }
}

/// Whether the whole lower-case query is in the name, the type or an observation.
pub(super) fn holds_phrase(entity: &Entity, lower: &str) -> bool {
    let fields = [&entity.name, &entity.kind].into_iter();
    fields
        .chain(entity.observations.iter().map(|o| &o.text))
        .any(|field| field.to_lowercase().contains(lower))
}
