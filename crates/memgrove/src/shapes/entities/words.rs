//! The words of entities, and how well they answer a query: BM25 over names, types, tags and
//! observations.

use std::collections::HashMap;

use super::Entity;

/// How a word's frequency saturates, and how much long entities are held back.
const K1: f32 = 1.2;
const B: f32 = 0.6;
const NAME_WEIGHT: u16 = 4;
const TAG_WEIGHT: u16 = 2;
/// Words that say nothing about what is looked for.
const STOP_WORDS: &str = " a about an and any are as at be been by can did do does for from get had has have \
 he her him his how i in is it its know many me much my of on or our she should tell that the their them there \
 they this to us was we were what when where which who whom whose why will with would you your ";

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

/// The words of a query, each once, without those that say nothing unless there are no others.
pub(super) fn asked(query: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut plain = Vec::new();
    each_raw_word(query, |raw, word| {
        if !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
            plain.push(STOP_WORDS.contains(&format!(" {raw} ")));
        }
    });
    if plain.iter().all(|plain| *plain) {
        return words;
    }
    let mut plain = plain.into_iter();
    words.retain(|_| !plain.next().unwrap_or(false));
    words
}

/// How many of the words are in a text.
pub(super) fn overlap(words: &[String], text: &str) -> usize {
    let mut met: Vec<&str> = Vec::new();
    each_word(text, |word| {
        if let Some(known) = words.iter().find(|known| *known == word)
            && !met.contains(&known.as_str())
        {
            met.push(known);
        }
    });
    met.len()
}

fn each_word(text: &str, mut visit: impl FnMut(&str)) {
    each_raw_word(text, |_, word| visit(word));
}

/// Hands over every word, as it stands and reduced to its stem. Scripts that put no spaces between
/// words give overlapping pairs of characters.
fn each_raw_word(text: &str, mut visit: impl FnMut(&str, &str)) {
    let lower = text.to_lowercase();
    for run in lower.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        if run.is_ascii() {
            visit(run, stem(run));
            continue;
        }
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let joined = is_joined(first);
            let end = rest.find(|c| is_joined(c) != joined).unwrap_or(rest.len());
            let part = &rest[..end];
            rest = &rest[end..];
            if !joined {
                visit(part, stem(part));
                continue;
            }
            let starts: Vec<usize> = part.char_indices().map(|(at, _)| at).chain([part.len()]).collect();
            if starts.len() == 2 {
                visit(part, part);
            }
            for pair in starts.windows(3) {
                visit(&part[pair[0]..pair[2]], &part[pair[0]..pair[2]]);
            }
        }
    }
}

fn is_joined(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// A word without the endings that English gives it.
fn stem(word: &str) -> &str {
    const ENDINGS: [(&str, usize); 8] =
        [("ings", 3), ("ing", 3), ("edly", 4), ("ies", 3), ("ed", 3), ("es", 3), ("ly", 4), ("s", 3)];
    if !word.is_ascii() || word.ends_with("ss") {
        return word;
    }
    for (ending, least) in ENDINGS {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.len() >= least
        {
            return stem.strip_suffix('e').filter(|stem| stem.len() >= least).unwrap_or(stem);
        }
    }
    word.strip_suffix('e').filter(|stem| stem.len() >= 3).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn words_are_reduced_to_stems() {
        assert_eq!(words("Likes liking liked like"), ["lik", "lik", "lik", "lik"]);
        assert_eq!(words("user_preferences, TypeScript-5"), ["user", "preferenc", "typescript", "5"]);
        assert_eq!(words("class"), ["class"]);
        assert_eq!(words("東京タワー"), ["東京", "京タ", "タワ", "ワー"]);
        assert_eq!(words("茶"), ["茶"]);
    }

    #[test]
    fn questions_are_reduced_to_what_they_ask_for() {
        assert_eq!(asked("What does Alice like about the tea?"), ["alic", "lik", "tea"]);
        assert_eq!(asked("who is it"), ["who", "is", "it"]);
    }
}
