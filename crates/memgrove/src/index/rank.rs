//! Which of the documents comes first, and why: every part of a score has a name.
//!
//! The scores by words and by meaning are brought to one scale (from the least to the most among the best
//! hundred of each) and added about half and half. Then come the surroundings: neighbours, the group,
//! links. What else is known (whom a document is about, when it is from, how much it matters) adds a
//! little.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use super::scoring::Set;
use super::spoken::Asked;
use super::wordpiece::Quickly;

/// How many of the best by words, and of the best by meaning, are weighed against each other.
pub(crate) const WEIGHED: usize = 100;
/// The share of the words; the rest is the share of the meaning.
const WORDS: f32 = 0.55;
/// What a neighbour, and the best of the group, give to a document.
const NEIGHBOUR: f32 = 0.25;
const GROUP: f32 = 0.3;
/// What a document gives to those that it links to, or that link to it.
pub(crate) const LINK: f32 = 0.3;
/// What it adds that the query names the subject of a document.
const SUBJECT: f32 = 0.25;
/// What it adds that a document is from the time in the query; more if that time comes first.
const TIME: f32 = 0.15;
const TIME_FIRM: f32 = 1.0;
/// What a point of the plain score of names (100, 50, 25) is worth.
const NAME_POINT: f32 = 0.005;
/// Small terms, which decide between equals.
const RECENT: f32 = 0.04;
const RECENT_DAYS: f32 = 60.0;
const IMPORTANT: f32 = 0.05;
const USED: f32 = 0.01;

/// The least likeness of meaning for a document with none of the words.
const LIKENESS_MIN: f32 = 0.2;
/// Where no document has any of the words, only those with this likeness are shown, and at most so many.
const LIKENESS_ALONE: f32 = 0.3;
const ALONE_MAX: usize = 5;
/// A document fits only faintly below this share of the best score: with one of the words, and with none.
const FAINT: f32 = 0.5;
const FAINT_WORDLESS: f32 = 0.7;
/// How many of the best with the rarest name of the query are never faint, and of those from a named time.
const NAMED: usize = 3;

/// What is known of a document that may be found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Candidate {
    pub(crate) id: usize,
    pub(crate) file: i64,
    pub(crate) ord: i64,
    pub(crate) group: u64,
    pub(crate) date: i64,
    pub(crate) importance: i64,
    pub(crate) uses: i64,
    /// Its score by words, and by meaning.
    pub(crate) words: f32,
    pub(crate) meaning: f32,
    /// Whether it has all words of the query, or all of them that any document has.
    pub(crate) has_all: bool,
    pub(crate) has_known: bool,
    pub(crate) subject: bool,
    /// Whether it is an observation of an entity.
    pub(crate) observed: bool,
    /// The plain score of its name.
    pub(crate) named: u32,
    /// The best score of what is linked with it.
    pub(crate) linked: f32,
    /// How well it fits by words and meaning alone.
    pub(crate) own: f32,
    /// What its score is made of, and the score, once it is settled.
    pub(crate) parts: Parts,
    pub(crate) score: f32,
}

/// What a score is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Parts {
    /// The words of the query.
    pub words: f32,
    /// The meaning of the query.
    pub meaning: f32,
    /// What stands beside it.
    pub neighbours: f32,
    /// The best of what it belongs with.
    pub group: f32,
    /// What is linked with it.
    pub links: f32,
    /// That the query names whom it is about.
    pub subject: f32,
    /// That it is from the time that the query names.
    pub time: f32,
    /// That it is called so.
    pub name: f32,
    /// That it is recent.
    pub recency: f32,
    /// That it matters.
    pub importance: f32,
    /// That it is often read.
    pub usage: f32,
}

impl Parts {
    /// The parts with their names.
    pub fn entries(&self) -> [(&'static str, f32); 11] {
        [
            ("words", self.words),
            ("meaning", self.meaning),
            ("neighbours", self.neighbours),
            ("group", self.group),
            ("links", self.links),
            ("subject", self.subject),
            ("time", self.time),
            ("name", self.name),
            ("recency", self.recency),
            ("importance", self.importance),
            ("use", self.usage),
        ]
    }

    /// The score.
    pub fn total(&self) -> f32 {
        self.entries().iter().map(|(_, value)| value).sum()
    }
}

/// The least and the most of a score among those that are weighed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    least: f32,
    most: f32,
}

impl Scale {
    pub(crate) fn of(values: impl Iterator<Item = f32>) -> Self {
        let start = Scale { least: f32::INFINITY, most: 0.0 };
        values
            .fold(start, |scale, value| Scale { least: scale.least.min(value), most: scale.most.max(value) })
    }

    fn place(self, value: f32) -> f32 {
        match self.most > self.least {
            true => ((value - self.least) / (self.most - self.least)).max(0.0),
            // With one value, or all alike, whatever was found counts fully.
            false => f32::from(value > 0.0 && value >= self.most),
        }
    }
}

/// How words and meaning are brought together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fusion {
    pub(crate) words: Scale,
    /// `None` where meaning is switched off, or the query has none.
    pub(crate) meaning: Option<Scale>,
}

impl Fusion {
    /// The two parts of one document.
    pub(crate) fn parts(self, words: f32, meaning: f32) -> (f32, f32) {
        match self.meaning {
            Some(scale) => (WORDS * self.words.place(words), (1.0 - WORDS) * scale.place(meaning)),
            None => (self.words.place(words), 0.0),
        }
    }

    /// The most that words can count.
    fn words_max(self) -> f32 {
        if self.meaning.is_some() { WORDS } else { 1.0 }
    }
}

/// Fills in the parts that need only words and meaning.
pub(crate) fn fuse(candidates: &mut [Candidate], fusion: Fusion) {
    for candidate in candidates {
        let (words, meaning) = fusion.parts(candidate.words, candidate.meaning);
        // What is known of an entity does not repeat its name, and comes before texts that mention it. It
        // fits no better for that if the query asks for more than the name.
        let is_known = candidate.observed && candidate.subject && candidate.has_known;
        candidate.parts.words = if is_known { fusion.words_max() } else { words };
        candidate.own = meaning + if candidate.has_all { candidate.parts.words } else { words };
        candidate.parts.meaning = meaning;
    }
}

/// Fills in the other parts and sorts the best to the front. The order of equal scores is not decided yet.
pub(crate) fn settle(candidates: &mut [Candidate], asked: Option<&Asked>, now: i64) {
    let own = |candidate: &Candidate| candidate.parts.words + candidate.parts.meaning;
    let mut places: HashMap<_, _, Quickly> =
        HashMap::with_capacity_and_hasher(candidates.len(), Quickly::new());
    let mut groups: HashMap<u64, f32, Quickly> = HashMap::default();
    for candidate in candidates.iter() {
        let there = (own(candidate), candidate.group, candidate.words > 0.0);
        places.insert((candidate.file, candidate.ord), there);
        let best = groups.entry(candidate.group).or_default();
        *best = best.max(own(candidate));
    }
    for candidate in candidates.iter_mut() {
        let beside = [candidate.ord - 1, candidate.ord + 1];
        let near = beside.iter().filter_map(|ord| places.get(&(candidate.file, *ord)));
        // Of two neighbours without any of the words, neither supports the other.
        let has_words = candidate.words > 0.0;
        let near = near.filter(|(_, group, words)| *group == candidate.group && (has_words || *words));
        let near: f32 = near.map(|(score, ..)| score).sum();
        let parts = &mut candidate.parts;
        parts.neighbours = NEIGHBOUR * near;
        parts.group = GROUP * groups.get(&candidate.group).copied().unwrap_or(0.0);
        parts.links = LINK * candidate.linked;
        parts.subject = if candidate.subject { SUBJECT } else { 0.0 };
        parts.time = asked
            .map_or(0.0, |asked| asked.share(candidate.date) * if asked.firm { TIME_FIRM } else { TIME });
        parts.name = NAME_POINT * candidate.named as f32;
        let days = (now.saturating_sub(candidate.date)).max(0) as f32 / 86_400_000.0;
        parts.recency = RECENT * (-days / RECENT_DAYS).exp2();
        parts.importance = IMPORTANT * candidate.importance as f32;
        parts.usage = USED * (candidate.uses.clamp(0, 1_000) as f32 + 1.0).log2();
        candidate.score = parts.total();
    }
    candidates.sort_by_cached_key(|candidate| Reverse(Ordered(candidate.score)));
    // Documents with none of the words come after all that have all of them.
    let last = candidates.iter().rposition(|hit| hit.has_all).map_or(0, |last| last + 1);
    candidates[..last].sort_by_key(|hit| hit.words == 0.0);
}

/// A score that can be sorted by.
#[derive(PartialEq)]
struct Ordered(f32);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Whether a document is from the time that the query puts first.
fn is_then(hit: &Candidate, asked: Option<&Asked>) -> bool {
    asked.is_some_and(|asked| asked.firm && asked.is_then(hit.date))
}

/// Whether a document is from a time that the query names beside other words, such as `April 2026`.
fn is_named_then(hit: &Candidate, asked: Option<&Asked>) -> bool {
    asked.is_some_and(|asked| !asked.firm && asked.is_bounded() && asked.is_then(hit.date))
}

/// Keeps the candidates, best first, that fit what was asked. Those from a time that comes first precede
/// all others. Returns `false` if there is such a time, and nothing is from it or among those `telling` it.
pub(crate) fn keep_fitting(
    candidates: &mut Vec<Candidate>,
    asked: Option<&Asked>,
    telling: Option<&Set>,
    wordless: bool,
) -> bool {
    // The words that name a time mean nothing outside that time.
    let alone = asked.is_some_and(|asked| asked.alone);
    let says = |hit: &Candidate| hit.words > 0.0 || (hit.meaning >= LIKENESS_MIN && !alone);
    // If nothing from that time fits the words, everything from it is an answer.
    let any_then = alone || !candidates.iter().any(|hit| is_then(hit, asked) && says(hit));
    // Of a time that is only preferred, the best are.
    let unsaid = !candidates.iter().any(|hit| is_named_then(hit, asked) && says(hit));
    let mut few = ALONE_MAX;
    let mut spared = if unsaid { NAMED } else { 0 };
    candidates.retain(|hit| {
        let fits = match wordless {
            true => hit.meaning >= LIKENESS_ALONE && few > 0,
            false => says(hit) || (hit.parts.neighbours + hit.parts.links > 0.0 && !alone),
        };
        few -= usize::from(fits && wordless);
        let is_spared = !fits && spared > 0 && is_named_then(hit, asked);
        spared -= usize::from(is_spared);
        fits || is_spared || (any_then && is_then(hit, asked))
    });
    candidates.sort_by_key(|hit| !(is_then(hit, asked) && (any_then || says(hit))));
    let is_told = |hit: &Candidate| is_then(hit, asked) || telling.is_some_and(|set| set.has(hit.id));
    asked.is_none_or(|asked| !asked.firm) || candidates.iter().any(is_told)
}

/// Leaves out what fits only faintly compared with the best, and returns how many that were.
pub(crate) fn leave_faint(candidates: &mut Vec<Candidate>, asked: Option<&Asked>, named: &Set) -> usize {
    let before = candidates.len();
    let best = |worth: fn(&Candidate) -> f32| candidates.iter().map(worth).fold(0.0, f32::max);
    let (best, best_own) = (best(|hit| hit.score), best(|hit| hit.own));
    let (mut spared, mut spared_then) = (NAMED, NAMED);
    candidates.retain(|hit| {
        let share = if hit.words > 0.0 { FAINT } else { FAINT_WORDLESS };
        // All observations of an entity share the bonus that the query names it, so it does not count
        // here.
        let is_near = match hit.subject && hit.observed {
            true => hit.own >= share * best_own,
            false => hit.score >= share * best,
        };
        let is_spared = spared > 0 && named.has(hit.id);
        spared -= usize::from(is_spared);
        let is_spared_then = spared_then > 0 && is_named_then(hit, asked);
        spared_then -= usize::from(is_spared_then);
        is_near || is_spared || is_spared_then || is_then(hit, asked)
    });
    before - candidates.len()
}

/// Whether more documents may fit than were weighed, when `having` of them have one of the words.
pub(crate) fn not_all(weighed: &[Candidate], having: usize) -> bool {
    let count = |fits: fn(&Candidate) -> bool| weighed.iter().filter(|hit| fits(hit)).count();
    count(|hit| hit.words > 0.0) < having || count(|hit| hit.meaning >= LIKENESS_MIN) >= WEIGHED
}

/// Returns the numbers of the best documents, with all that equal the last of them: the numbers of
/// documents must not decide.
pub(crate) fn best(scores: impl Iterator<Item = (usize, f32)>, count: usize) -> Vec<usize> {
    let mut best = Best::new(count);
    scores.for_each(|(id, score)| best.add(id, score));
    best.ids()
}

/// How many scores are skipped together if none of them is good enough.
const STRIDE: usize = 16;

/// As [`best`], with the scores in the order of document numbers, of those above zero that `allows` lets
/// pass.
pub(crate) fn best_of(scores: &[f32], count: usize, allows: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut best = Best::new(count);
    for (stride, scores) in scores.chunks(STRIDE).enumerate() {
        // Written so that the compiler can compare many at once.
        let least = best.least.max(f32::MIN_POSITIVE);
        if scores.iter().fold(0, |good, score| good | u32::from(*score >= least)) == 0 {
            continue;
        }
        for (at, score) in scores.iter().enumerate() {
            if *score >= least && allows(stride * STRIDE + at) {
                best.add(stride * STRIDE + at, *score);
            }
        }
    }
    best.ids()
}

/// The best so far.
struct Best {
    count: usize,
    kept: Vec<(f32, usize)>,
    /// Lower scores are not among the best.
    least: f32,
    room: usize,
}

impl Best {
    fn new(count: usize) -> Self {
        let kept = Vec::with_capacity(count * 4 + 1);
        Best { count, kept, least: f32::NEG_INFINITY, room: count * 4 }
    }

    fn add(&mut self, id: usize, score: f32) {
        if score < self.least {
            return;
        }
        self.kept.push((score, id));
        if self.kept.len() > self.room {
            self.narrow();
            self.room = self.room.max(self.kept.len() * 2);
        }
    }

    fn narrow(&mut self) {
        if self.kept.len() > self.count {
            let (_, last, _) = self.kept.select_nth_unstable_by(self.count - 1, |a, b| b.0.total_cmp(&a.0));
            self.least = last.0;
            self.kept.retain(|(score, _)| *score >= self.least);
        }
    }

    fn ids(mut self) -> Vec<usize> {
        self.narrow();
        self.kept.truncate(self.count * 4);
        self.kept.into_iter().map(|(_, id)| id).collect()
    }
}
