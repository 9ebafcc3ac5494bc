//! Which words a note has: how often each occurs, in how many places, and which of them are names.

use std::collections::{BTreeMap, HashMap};

use crate::text::links::links_in;
use crate::text::words;

/// How long a description may be.
const DESCRIPTION_BYTES_MAX: usize = 160;

/// Words that are capitalized only because they often begin a sentence.
const STARTERS: &str = " add after all also always ask avoid before call check close create delete do don does each \
 ensure every fix for get give go if install just keep let look make maybe must need never new next no not note now \
 once one only open please prefer put read remember remove run see send set should since skip some start stop store \
 take test then these they this those todo try turn update use user verify wait watch we when while work write you ";

/// Whether a lower-case word often begins sentences without being a name.
pub(super) fn is_starter(word: &str) -> bool {
    STARTERS.split_ascii_whitespace().any(|starter| starter == word)
}

/// Returns the words of a text that are written as names, in order.
pub(super) fn capitals(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let named = |word: &&str| word.starts_with(char::is_uppercase) && !is_starter(&word.to_lowercase());
    words.filter(named).collect::<Vec<_>>().join(" ")
}

/// Returns a text without the targets of links and without URLs; the words that a link shows stay.
fn spoken(text: &str) -> String {
    let mut said = String::new();
    let mut end = 0;
    for link in links_in(text) {
        said.push_str(&text[end..link.at.start]);
        said.push_str(link.alias.unwrap_or(""));
        end = link.at.end;
    }
    said.push_str(&text[end..]);
    match said.contains("://") {
        true => said.split_inclusive(char::is_whitespace).filter(|word| !word.contains("://")).collect(),
        false => said,
    }
}

/// What is known of one word.
#[derive(Debug, Default, Clone)]
struct Word {
    places: usize,
    capital: usize,
    /// How often it is capitalized where no sentence begins.
    inside: usize,
    small: usize,
    surface: String,
}

/// The words of several texts.
#[derive(Debug, Default)]
pub(super) struct Lexicon {
    words: HashMap<String, Word>,
    texts: usize,
}

/// The words of one text, in the order of their first occurrence.
#[derive(Debug, Clone, Default)]
pub(super) struct Bag {
    /// Stems, each once.
    pub(super) stems: Vec<String>,
    counts: HashMap<String, usize>,
}

impl Bag {
    /// Collects the words of a text, without stop words.
    pub(super) fn of(text: &str) -> Self {
        let mut bag = Bag::default();
        words::each_raw_word(text, |raw, stem| {
            if words::is_plain(raw) || is_number(raw) {
                return;
            }
            let count = bag.counts.entry(stem.to_owned()).or_default();
            *count += 1;
            if *count == 1 {
                bag.stems.push(stem.to_owned());
            }
        });
        bag
    }

    /// Whether a word is in it.
    pub(super) fn has(&self, stem: &str) -> bool {
        self.counts.contains_key(stem)
    }
}

impl Lexicon {
    /// Collects the words of several texts, with the bag of each.
    pub(super) fn of<'a>(texts: impl Iterator<Item = &'a str>) -> (Self, Vec<Bag>) {
        let mut lexicon = Lexicon::default();
        let bags = texts.map(|text| lexicon.add(text)).collect();
        (lexicon, bags)
    }

    fn add(&mut self, text: &str) -> Bag {
        self.texts += 1;
        let text = spoken(text);
        let bag = Bag::of(&text);
        for stem in &bag.stems {
            self.words.entry(stem.clone()).or_default().places += 1;
        }
        let mut end = 0;
        for token in text.split(|c: char| !c.is_alphanumeric()).filter(|token| !token.is_empty()) {
            let start = end + text[end..].find(token).unwrap_or(0);
            let begins = end == 0 || text[end..start].contains(['\n', '.', '!', '?', ':', '"']);
            end = start + token.len();
            let capital = token.starts_with(char::is_uppercase);
            words::each_raw_word(token, |_, stem| {
                let Some(word) = self.words.get_mut(stem) else { return };
                *(if capital { &mut word.capital } else { &mut word.small }) += 1;
                word.inside += usize::from(capital && !begins);
                if word.surface.is_empty() || (!capital && word.small == 1) {
                    word.surface = token.to_owned();
                }
            });
        }
        bag
    }

    /// Returns how many texts have a word.
    pub(super) fn places(&self, stem: &str) -> usize {
        self.words.get(stem).map_or(0, |word| word.places)
    }

    /// Whether a word is always written as a name. A name may begin every sentence it is in, so a capital
    /// there counts too, except for words that are known to begin sentences.
    pub(super) fn is_name(&self, stem: &str) -> bool {
        self.words.get(stem).is_some_and(|word| {
            let begins = word.inside == 0 && is_starter(&word.surface.to_lowercase());
            word.capital > 0 && word.small == 0 && !begins
        }) && stem.chars().count() > 1
    }

    /// Returns a word as it is written in the texts.
    pub(super) fn surface<'a>(&'a self, stem: &'a str) -> &'a str {
        self.words.get(stem).map_or(stem, |word| word.surface.as_str())
    }

    /// How rare a word is among the texts.
    pub(super) fn rarity(&self, stem: &str) -> f64 {
        (1.0 + self.texts as f64 / self.places(stem).max(1) as f64).ln()
    }

    /// Returns the words that set these texts apart from the others, the most telling first.
    pub(super) fn telling<'b>(&self, bags: impl Iterator<Item = &'b Bag>) -> Vec<String> {
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for bag in bags {
            for (stem, count) in &bag.counts {
                *counts.entry(stem).or_default() += 1.0 + (*count as f64).ln();
            }
        }
        let weight = |stem: &str, count: f64| {
            // A word that is capitalized once may only begin a sentence.
            let named = if self.is_name(stem) && self.places(stem) > 1 { 1.6 } else { 1.0 };
            // A word in nearly every block tells none apart.
            let common = self.texts >= 6 && self.places(stem) * 10 > self.texts * 6;
            let named = if common { named * 0.1 } else { named };
            // A word of several blocks is likelier to be asked for than one said in passing.
            let passing = if count < 1.5 && self.texts >= 6 { 0.5 } else { 1.0 };
            count.powf(0.7) * self.rarity(stem) * named * passing
        };
        let mut ranked: Vec<(f64, &str)> = counts
            .into_iter()
            .filter(|(stem, _)| stem.chars().count() > 2 || self.is_name(stem) || !stem.is_ascii())
            .map(|(stem, count)| (weight(stem, count), stem))
            .collect();
        ranked.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(two.1)));
        ranked.into_iter().map(|(_, stem)| stem.to_owned()).collect()
    }

    /// Describes what some of the texts are about, for the link that leads to them.
    pub(super) fn description<'b>(&self, bags: impl Iterator<Item = &'b Bag>, without: &str) -> String {
        let known = Bag::of(without);
        let mut told = String::new();
        for stem in self.telling(bags).iter().filter(|stem| !known.has(stem)) {
            let surface = self.surface(stem);
            if told.len() + surface.len() + 2 > DESCRIPTION_BYTES_MAX {
                break;
            }
            if !told.is_empty() {
                told.push_str(", ");
            }
            told.push_str(surface);
        }
        told
    }
}

fn is_number(raw: &str) -> bool {
    raw.bytes().all(|byte| byte.is_ascii_digit())
}
