//! The words of entities, and how well they answer a query: BM25 over names, types, tags and
//! observations.

use std::collections::HashMap;

use super::Entity;
use crate::text::words::{asked, each_word};

/// How a word's frequency saturates, and how much long entities are held back.
const K1: f32 = 1.2;
const B: f32 = 0.6;
const NAME_WEIGHT: u16 = 4;
const TAG_WEIGHT: u16 = 2;
/// Which word is in which entity, and how often.
#[derive(Debug, Default)]
pub(super) struct Index {
    postings: HashMap<Box<str>, Vec<(u32, u16)>>,
    lengths: HashMap<u32, u32>,
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
        self.lengths.insert(id, length);
        for (word, count) in counts {
            match self.postings.get_mut(word.as_str()) {
                Some(list) => list.push((id, count)),
                None => drop(self.postings.insert(word.into(), vec![(id, count)])),
            }
        }
    }

    /// Forgets an entity as it was added.
    pub(super) fn remove(&mut self, id: u32, entity: &Entity) {
        let Some(length) = self.lengths.remove(&id) else { return };
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

    /// How well each entity answers, for those that answer at all.
    pub(super) fn scores(&self, query: &str) -> HashMap<u32, f32> {
        let mut scores = HashMap::new();
        let all = self.lengths.len() as f32;
        let mean = self.total as f32 / all.max(1.0);
        for word in asked(query) {
            let Some(list) = self.postings.get(word.as_str()) else { continue };
            let holders = list.len() as f32;
            let rarity = (1.0 + (all - holders + 0.5) / (holders + 0.5)).ln();
            for (id, count) in list {
                let (count, length) = (f32::from(*count), self.lengths[id] as f32);
                let held = K1 * (1.0 - B + B * length / mean.max(1.0));
                *scores.entry(*id).or_default() += rarity * count * (K1 + 1.0) / (count + held);
            }
        }
        scores
    }
}
