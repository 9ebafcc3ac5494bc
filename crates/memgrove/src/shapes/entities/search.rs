//! Finding entities: ranked by words, by the whole query as it stands, and by the plain scores
//! 100, 50 and 25 for the name and the type.

use std::sync::Arc;

use super::Entity;
use super::catalog::{Card, Shelf};
use super::phrase::Phrase;
use super::words::Index;
use crate::locator::Locator;
use crate::text::words::{asked, overlap};

/// How many entities a plain search gives.
pub const SEARCH_HITS_MAX: usize = 30;
/// For how many hits the best observation is looked for.
const EXPLAINED_MAX: usize = 50;
/// What the whole query is worth where it stands in an entity.
const PHRASE: f32 = 4.0;
/// What one point of the plain score is worth.
const POINT: f32 = 0.1;
/// What part of this it is worth where the query only stands within longer words, as `7` in `1789`.
const WITHIN_WORDS: f32 = 0.25;

/// One entity that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its file.
    pub path: Locator,
    /// The entity, with what holds of it.
    pub entity: Arc<Entity>,
    /// Its plain score: 100 for the name itself, 50 for a part of it, and 25 for the type.
    pub score: u32,
    /// How well it answers, to be compared with the other hits of the same search.
    pub rank: f32,
    /// Whether the whole query stands in its name, its type or an observation.
    pub whole: bool,
    /// The observation that answers best, by its number from 0.
    pub best: Option<usize>,
}

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct Match {
    /// The words, or the beginning of a question; empty for everything, newest first.
    pub query: String,
    /// Only entities of this type.
    pub kind: Option<String>,
    /// What held on this date, instead of now.
    pub as_of: Option<String>,
}

/// A query, ready to be compared with many names.
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

    /// The plain score of a thing with this name and of this kind.
    pub fn score(&self, name: &str, kind: &str) -> u32 {
        // A question is longer than most names, which then need no other look.
        let fits = name.len() >= self.lower.len() || !name.is_ascii();
        let by_name = if fits { named(&name.to_lowercase(), &self.lower) } else { 0 };
        by_name + typed(kind, self.query)
    }
}

/// The plain score of an entity for a query.
pub fn score(name: &str, kind: &str, query: &str) -> u32 {
    Named::by(query).score(name, kind)
}

/// The part of the plain score that is for the name; both in lower case.
fn named(name: &str, query: &str) -> u32 {
    match name == query {
        true => 100,
        false if name.contains(query) => 50,
        false => 0,
    }
}

/// The part of the plain score that is for the type.
fn typed(kind: &str, query: &str) -> u32 {
    if !kind.is_empty() && query.contains(kind) { 25 } else { 0 }
}

/// The entities that match, best first.
pub(super) fn ranked(shelf: &Shelf, wanted: &Match, today: &str) -> Vec<Hit> {
    let fits = |entity: &Entity| {
        wanted.kind.as_ref().is_none_or(|kind| entity.kind.to_lowercase() == kind.to_lowercase())
    };
    let query = wanted.query.trim();
    if query.is_empty() {
        let mut all: Vec<_> =
            shelf.cards.iter().filter(|(_, card)| !card.loose && fits(&card.entity)).collect();
        all.sort_by(|a, b| (&b.1.entity.updated, a.0).cmp(&(&a.1.entity.updated, b.0)));
        let hit = |at: &Locator, entity: Arc<Entity>| {
            let best = entity.observations.len().checked_sub(1);
            Hit { path: at.clone(), entity, score: 0, rank: 0.0, whole: false, best }
        };
        return all.into_iter().map(|(at, card)| hit(at, seen(card, wanted, today))).collect();
    }
    let mut found = match &wanted.as_of {
        None => present(shelf, query),
        Some(_) => past(shelf, wanted, query, today),
    };
    found.retain(|scored| fits(&scored.entity));
    found.sort_by(|a, b| b.rank.total_cmp(&a.rank).then_with(|| a.at.cmp(b.at)));
    let words = asked(query);
    let hits = found.into_iter().enumerate().map(|(index, Scored { at, entity, points, rank, whole })| {
        let best = if index < EXPLAINED_MAX { best(&entity, query, &words) } else { None };
        Hit { path: at.clone(), entity, score: points, rank, whole, best }
    });
    hits.collect()
}

/// A file, what is seen of its entity, its plain score, its rank, and whether the whole query stands in it.
struct Scored<'a> {
    at: &'a Locator,
    entity: Arc<Entity>,
    points: u32,
    rank: f32,
    whole: bool,
}

fn present<'a>(shelf: &'a Shelf, query: &str) -> Vec<Scored<'a>> {
    let scores = shelf.index.scores(query);
    let lower = query.to_lowercase();
    let phrase = Phrase::new(&lower);
    let mut found = Vec::new();
    for (at, card) in shelf.cards.iter().filter(|(_, card)| !card.loose) {
        let (words, whole) = (scores.of(card.id), phrase.stands_in(card));
        if words.is_some() || whole {
            let entity = Arc::clone(&card.present);
            // What does not stand in the entity does not stand in its name.
            let named = if whole { named(card.lower_name(), &lower) } else { 0 };
            let points = named + typed(&entity.kind, query);
            found.push(Scored { at, entity, points, rank: rank(points, words, whole), whole });
        }
    }
    found
}

/// As [`present`], over what held on a date. Slower: nothing is prepared for it.
fn past<'a>(shelf: &'a Shelf, wanted: &Match, query: &str, today: &str) -> Vec<Scored<'a>> {
    let (mut index, mut all) = (Index::default(), Vec::new());
    for (at, card) in shelf.cards.iter().filter(|(_, card)| !card.loose) {
        let entity = seen(card, wanted, today);
        index.add(u32::try_from(all.len()).unwrap_or(u32::MAX), &entity);
        all.push((at, entity));
    }
    let scores = index.scores(query);
    let lower = query.to_lowercase();
    let scored = all.into_iter().zip(0u32..).filter_map(|((at, entity), id)| {
        let (words, whole) = (scores.of(id), holds_phrase(&entity, &lower));
        let points = score(&entity.name, &entity.kind, query);
        let rank = rank(points, words, whole);
        (words.is_some() || whole).then_some(Scored { at, entity, points, rank, whole })
    });
    scored.collect()
}

fn seen(card: &Card, wanted: &Match, today: &str) -> Arc<Entity> {
    match &wanted.as_of {
        None => Arc::clone(&card.present),
        Some(date) => Arc::new(Entity::clone(&card.entity).holding(today, Some(date))),
    }
}

fn rank(points: u32, words: Option<f32>, whole: bool) -> f32 {
    let points = points as f32 * POINT + if whole { PHRASE } else { 0.0 };
    match words {
        Some(words) => words + points,
        None => points * WITHIN_WORDS,
    }
}

/// Whether the whole query, in lower case, stands in the name, the type or an observation.
pub(super) fn holds_phrase(entity: &Entity, lower: &str) -> bool {
    let fields = [&entity.name, &entity.kind].into_iter();
    fields
        .chain(entity.observations.iter().map(|o| &o.text))
        .any(|field| field.to_lowercase().contains(lower))
}

/// The observation that answers best: of several, the last, because it is the freshest.
fn best(entity: &Entity, query: &str, words: &[String]) -> Option<usize> {
    let lower = query.to_lowercase();
    let fit =
        |text: &str| overlap(words, text) + if text.to_lowercase().contains(&lower) { 1_000 } else { 0 };
    entity.observations.iter().enumerate().max_by_key(|(_, o)| fit(&o.text)).map(|(at, _)| at)
}
