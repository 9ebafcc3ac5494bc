//! How well the words of an entity match a query: BM25 over names, types, tags and observations.

use std::collections::HashMap;

use super::Entity;
use crate::text::words::{asked, each_word};

/// The usual BM25 parameters: how fast a repeated word saturates, and how much long entities are
/// penalized.
const K1: f32 = 1.2;
const B: f32 = 0.6;
const NAME_WEIGHT: u16 = 4;
const TAG_WEIGHT: u16 = 2;
/// Which entities have a word, and how often.
#[derive(Debug, Default)]
pub(super) struct Index {
    postings: HashMap<Box<str>, Vec<(u32, u16)>>,
    /// How many words each entity has, by its number; `None` for an unused number.
    lengths: Vec<Option<u32>>,
    entities: usize,
    total: u64,
}

impl Index {
    pub(super) fn add(&mut self, id: u32, entity: &Entity) {
        let mut counts: HashMap<String, u16> = HashMap::new();
        let mut count = |text: &str, weight: u16| {
            each_word(text, |word| {
                let seen = counts.entry(word.to_owned()).or_default();
                *seen = seen.saturating_add(weight);
            });
        };
        count(&entity.name, NAME_WEIGHT);
        count(&entity.kind, 1);
        entity.tags.iter().for_each(|tag| count(tag, TAG_WEIGHT));
        entity.observations.iter().for_each(|observation| count(&observation.text, 1));
        entity.relations.iter().for_each(|relation| count(&relation.to, 1));
        let length: u32 = counts.values().map(|count| u32::from(*count)).sum();
        self.total += u64::from(length);
        if self.lengths.len() <= id as usize {
            self.lengths.resize(id as usize + 1, None);
        }
        self.lengths[id as usize] = Some(length);
        self.entities += 1;
        for (word, count) in counts {
            match self.postings.get_mut(word.as_str()) {
                Some(list) => list.push((id, count)),
                None => drop(self.postings.insert(word.into(), vec![(id, count)])),
            }
        }
    }

    /// Removes an entity, which must be as it was when it was added.
    pub(super) fn remove(&mut self, id: u32, entity: &Entity) {
        let Some(length) = self.lengths.get_mut(id as usize).and_then(Option::take) else { return };
        self.entities -= 1;
        self.total -= u64::from(length);
        let texts = [&entity.name, &entity.kind].into_iter().chain(&entity.tags);
        let texts = texts.chain(entity.observations.iter().map(|observation| &observation.text));
        for text in texts.chain(entity.relations.iter().map(|relation| &relation.to)) {
            each_word(text, |word| {
                if let Some(list) = self.postings.get_mut(word) {
                    list.retain(|(there, _)| *there != id);
                }
            });
        }
    }

    /// Returns how well each entity matches, by its number.
    pub(super) fn scores(&self, query: &str) -> Scores {
        let mut scores = vec![0.0; self.lengths.len()];
        let all = self.entities as f32;
        let mean = self.total as f32 / all.max(1.0);
        for word in asked(query) {
            let Some(list) = self.postings.get(word.as_str()) else { continue };
            let holders = list.len() as f32;
            let rarity = (1.0 + (all - holders + 0.5) / (holders + 0.5)).ln();
            for (id, count) in list {
                let (count, length) = (f32::from(*count), self.lengths[*id as usize].unwrap_or(0) as f32);
                let held = K1 * (1.0 - B + B * length / mean.max(1.0));
                scores[*id as usize] += rarity * count * (K1 + 1.0) / (count + held);
            }
        }
        Scores(scores)
    }
}

/// How well entities match a query.
pub(super) struct Scores(Vec<f32>);

impl Scores {
    /// Returns the score of an entity, if it matches at all.
    pub(super) fn of(&self, id: u32) -> Option<f32> {
        self.0.get(id as usize).copied().filter(|score| *score > 0.0)
    }
}
