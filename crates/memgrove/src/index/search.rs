//! One search: from a query to ranked documents.

use std::collections::{HashMap, HashSet};

use super::analysis::{Analysis, folded};
use super::database::meant;
use super::embedding::{DIMENSIONS, Embedder, Vector, likenesses};
use super::hit::Hit;
use super::lookup::{self, Group, Lexical, PREFIX_TERMS_MAX, Set};
use super::query::Query;
use super::rank::{self, Candidate, Fusion, Scale, WEIGHED};
use super::{Index, View, write};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::shapes::entities;

/// For how many of the best their neighbours, and for how many their links, are looked at.
const NEIGHBOURED: usize = 60;
const LINKED: usize = 10;
/// How many parts of a thing say what it is about.
const SAID_MAX: usize = 8;

/// What a search found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The documents, best first.
    pub hits: Vec<Hit>,
    /// How many more there are: neither among the hits nor said to be like one of them.
    pub more: usize,
    /// How many documents fit.
    pub total: usize,
    /// Whether even more fit, which were not counted.
    pub at_least: bool,
    /// Whether none of the words stands anywhere: then hits only mean something like it.
    pub wordless: bool,
    /// Words that nothing has, and those that were looked for instead.
    pub corrected: Vec<(String, String)>,
    /// Folders and files that could not be read: what is known of them may be old.
    pub unreadable: Vec<String>,
    /// The terms that were looked for.
    pub terms: HashSet<String>,
}

impl Index {
    /// Finds documents.
    ///
    /// # Errors
    /// `Invalid` for a query that cannot be understood; else as [`Index::sync`].
    pub fn search(&self, text: &str, limit: usize) -> Result<Found> {
        self.search_with(text, |search| search(limit, &mut |_, _| true))
    }

    /// Finds documents as long as they are taken.
    pub(super) fn search_with<T>(
        &self,
        text: &str,
        mut with: impl FnMut(&mut dyn FnMut(usize, Take<'_>) -> Result<Found>) -> Result<T>,
    ) -> Result<T> {
        let now = self.clock.now();
        let query = Query::parse(text, &self.analysis, now)?;
        self.with(&mut |_, _| (), |view, synced| {
            let search = Search { view, analysis: &self.analysis, embedder: self.embedder.as_deref(), now };
            with(&mut |limit, take| {
                let unreadable = synced.unreadable.clone();
                Ok(Found { unreadable, ..search.run(&query, limit, take)? })
            })
        })
    }

    /// Finds documents that say something like the document of an address.
    ///
    /// # Errors
    /// `NotFound` for an address without a document; else as [`Index::sync`].
    pub fn similar(&self, address: &str, limit: usize) -> Result<Found> {
        self.similar_with(address, |search| search(limit, &mut |_, _| true))
    }

    /// Finds documents as long as they are taken. What the address stands for is none of them.
    pub(super) fn similar_with<T>(
        &self,
        address: &str,
        mut with: impl FnMut(&mut dyn FnMut(usize, Take<'_>) -> Result<Found>) -> Result<T>,
    ) -> Result<T> {
        let now = self.clock.now();
        self.with(&mut |_, _| (), |view, synced| {
            let except = view.at(address)?;
            let mut said = String::new();
            for id in except.iter().take(SAID_MAX) {
                let hit = view.by_id(*id)?.unwrap_or_default();
                said.extend([" ", &hit.title, " ", &hit.text]);
            }
            if except.is_empty() {
                return Err(super::keep::no_document(address));
            }
            let terms = self.analysis.terms(&said);
            let words = terms.into_iter().map(|term| (term.clone(), vec![term])).collect();
            let query = Query { words, except, ..Query::default() };
            let search = Search { view, analysis: &self.analysis, embedder: self.embedder.as_deref(), now };
            with(&mut |limit, take| {
                let unreadable = synced.unreadable.clone();
                Ok(Found { unreadable, ..search.run(&query, limit, take)? })
            })
        })
    }
}

/// Takes a document that was found for these terms; `false` if it is enough.
pub(super) type Take<'a> = &'a mut dyn FnMut(&Hit, &HashSet<String>) -> bool;

pub(super) struct Search<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) analysis: &'a Analysis,
    embedder: Option<&'a dyn Embedder>,
    pub(super) now: Timestamp,
}

/// The scores of all documents, and which may be found.
pub(super) struct Scores {
    lexical: Lexical,
    meaning: Vec<f32>,
    allowed: Option<Set>,
    fusion: Fusion,
}

impl Scores {
    pub(super) fn allows(&self, id: usize) -> bool {
        self.allowed.as_ref().is_none_or(|set| set.has(id))
    }

    /// What a document is worth by its words and meaning.
    pub(super) fn fused(&self, id: usize) -> f32 {
        let (words, meaning) = self.fusion.parts(self.words(id), self.means(id));
        words + meaning
    }

    fn words(&self, id: usize) -> f32 {
        self.lexical.scores.get(id).copied().unwrap_or(0.0)
    }

    fn means(&self, id: usize) -> f32 {
        self.meaning.get(id).copied().unwrap_or(0.0)
    }
}

impl Search<'_> {
    fn run(&self, query: &Query, limit: usize, take: Take<'_>) -> Result<Found> {
        let mut groups: Vec<Group> = query.terms().into_iter().map(Group::of).collect();
        for prefix in &query.prefixes {
            groups.push(self.beginning(prefix)?);
        }
        let mut lexical = lookup::lexical(self.view.connection(), &groups, self.view.known.statistics)?;
        let mut corrected = Vec::new();
        if lexical.touched.is_empty() && !groups.is_empty() {
            corrected = self.corrected(query)?;
            let terms: Vec<Group> = corrected.iter().map(|(_, to)| Group::of(to)).collect();
            lexical = lookup::lexical(self.view.connection(), &terms, self.view.known.statistics)?;
        }
        let allowed = self.allowed(query)?;
        let asked = query.asked.as_ref();
        let allows = |id: &u32| allowed.as_ref().is_none_or(|set| set.has(*id as usize));
        let having = lexical.touched.iter().filter(|id| allows(id)).count();
        let wordless = having == 0 && !groups.is_empty();
        // One word that stands somewhere is looked for as it stands, not for what is like it.
        let exact = having > 0 && query.is_one_word();
        let most = if exact { WEIGHED.max(limit.min(having)) } else { WEIGHED };
        let (scores, weighed) = self.scores(query, lexical, allowed, &corrected, (exact, most));
        // All that have one word, or pass a filter, are counted; what fits a question is not.
        let (ids, counted) = match groups.is_empty() {
            true => self.newest(&scores, asked, limit).map(|(ids, all)| (ids, Some(all)))?,
            false if exact => (weighed, Some(having)),
            false => {
                let mut ids = self.around(&weighed, &scores)?;
                self.add_timely(&mut ids, &scores, asked)?;
                (ids, None)
            }
        };
        let mut candidates = self.described(&ids, &scores, query)?;
        rank::fuse(&mut candidates, scores.fusion);
        if !exact {
            self.link(&mut candidates, &scores, query)?;
        }
        rank::settle(&mut candidates, asked, self.now.as_millisecond());
        candidates.retain(|hit| !query.except.contains(&hit.id));
        if !groups.is_empty() {
            rank::keep_fitting(&mut candidates, asked, wordless);
        }
        let total = counted.unwrap_or(candidates.len());
        let at_least = groups.iter().any(|group| group.terms.len() == PREFIX_TERMS_MAX)
            || (counted.is_none()
                && !wordless
                && rank::not_all(&candidates, having.saturating_sub(query.except.len())));
        let looked_for = groups.iter().flat_map(Group::all).chain(corrected.iter().map(|(_, to)| to));
        let terms = looked_for.cloned().collect();
        let hits = self.distinct(candidates, limit, &terms, take)?;
        let shown: usize = hits.iter().map(|hit| 1 + hit.alike.len()).sum();
        let more = total.saturating_sub(shown);
        Ok(Found { hits, more, total, at_least, wordless, corrected, unreadable: Vec::new(), terms })
    }

    /// What misspelled words were probably meant to be.
    fn corrected(&self, query: &Query) -> Result<Vec<(String, String)>> {
        let mut found = Vec::new();
        for (word, terms) in &query.words {
            for term in terms {
                if let Some(near) = lookup::nearest(self.view.connection(), term)? {
                    found.push((word.clone(), near));
                }
            }
        }
        Ok(found)
    }

    /// Scores everything, and picks those that are weighed against each other.
    fn scores(
        &self,
        query: &Query,
        lexical: Lexical,
        allowed: Option<Set>,
        corrected: &[(String, String)],
        (exact, most): (bool, usize),
    ) -> (Scores, Vec<usize>) {
        let allows = |id: usize| allowed.as_ref().is_none_or(|set| set.has(id));
        let by_words = rank::best(
            lexical
                .touched
                .iter()
                .map(|id| *id as usize)
                .filter(|id| allows(*id))
                .map(|id| (id, lexical.scores[id])),
            most,
        );
        let embedder = self.embedder.filter(|_| !exact);
        let vector = embedder.and_then(|embedder| self.meant(embedder, query, &lexical, corrected));
        let meaning = vector.map_or_else(Vec::new, |vector| {
            likenesses(&vector, &self.view.known.vectors, write::VECTORS as usize)
        });
        let by_meaning = rank::best(
            meaning.iter().copied().enumerate().filter(|(id, score)| *score > 0.0 && allows(*id)),
            WEIGHED,
        );
        let mut weighed = by_words;
        let known = self.set(weighed.iter().copied());
        weighed.extend(by_meaning.into_iter().filter(|id| !known.has(*id)));
        let words = Scale::of(weighed.iter().map(|id| lexical.scores.get(*id).copied().unwrap_or(0.0)));
        let likeness = weighed.iter().map(|id| meaning.get(*id).copied().unwrap_or(0.0));
        let meaning_scale = (!meaning.is_empty()).then(|| Scale::of(likeness));
        let fusion = Fusion { words, meaning: meaning_scale };
        (Scores { lexical, meaning, allowed, fusion }, weighed)
    }

    /// The meaning of a query: its words, each as much as it tells. A name that half of the
    /// documents have would otherwise drown what is asked about it.
    fn meant(
        &self,
        embedder: &dyn Embedder,
        query: &Query,
        lexical: &Lexical,
        corrected: &[(String, String)],
    ) -> Option<Vector> {
        let rarest = self.view.known.statistics.weight(0);
        let weight = |terms: &[String]| {
            let known = terms.iter().filter_map(|term| lexical.weights.get(term));
            known
                .copied()
                .fold(None, |least: Option<f32>, weight| {
                    Some(least.map_or(weight, |least| least.min(weight)))
                })
                .unwrap_or(rarest)
        };
        let words = query.words.iter().map(|(word, terms)| (word.as_str(), weight(terms)));
        let phrases = query.phrases.iter().map(|phrase| (phrase.words.as_str(), weight(&phrase.terms)));
        let meant: Vec<(&str, f32)> = match corrected {
            [] => words.chain(phrases).collect(),
            corrected => corrected.iter().map(|(_, to)| (to.as_str(), 1.0)).collect(),
        };
        let vector = embedder.embed(&meant);
        (vector != [0; DIMENSIONS]).then_some(vector)
    }

    /// The best, and what stands beside them.
    fn around(&self, weighed: &[usize], scores: &Scores) -> Result<Vec<usize>> {
        let centre = rank::best(weighed.iter().map(|id| (*id, scores.fused(*id))), NEIGHBOURED);
        let mut ids = weighed.to_vec();
        let mut known = self.set(ids.iter().copied());
        for id in centre {
            for near in self.view.beside(id)? {
                if scores.allows(near) && !known.has(near) {
                    known.insert(near);
                    ids.push(near);
                }
            }
        }
        Ok(ids)
    }

    pub(super) fn set(&self, ids: impl Iterator<Item = usize>) -> Set {
        let mut set = Set::none(usize::try_from(self.view.known.statistics.next).unwrap_or(0));
        ids.for_each(|id| set.insert(id));
        set
    }

    /// What is known of these documents.
    fn described(&self, ids: &[usize], scores: &Scores, query: &Query) -> Result<Vec<Candidate>> {
        let named = entities::Named::by(&query.plain);
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let Some(fact) = self.view.fact(*id)? else { continue };
            found.push(Candidate {
                id: *id,
                file: fact.file,
                ord: fact.ord.into(),
                group: fact.group,
                date: fact.date,
                importance: fact.importance.into(),
                uses: fact.uses.into(),
                words: scores.words(*id),
                meaning: scores.means(*id),
                subject: scores.lexical.subjects.has(*id),
                named: if named.is_empty() { 0 } else { named.score(&fact.title, &fact.kind) },
                ..Candidate::default()
            });
        }
        Ok(found)
    }

    /// Follows the links of the best, one step.
    fn link(&self, candidates: &mut Vec<Candidate>, scores: &Scores, query: &Query) -> Result<()> {
        let own = |candidate: &Candidate| candidate.parts.words + candidate.parts.meaning;
        let order =
            rank::best(candidates.iter().enumerate().map(|(at, candidate)| (at, own(candidate))), LINKED);
        let mut gifts: HashMap<usize, f32> = HashMap::new();
        let mut links =
            self.view.connection().prepare_cached("SELECT links FROM bodies WHERE id = ?1").map_err(meant)?;
        let mut named = self
            .view
            .connection()
            .prepare_cached("SELECT id FROM docs WHERE name = ?1 AND name <> '' LIMIT 4")
            .map_err(meant)?;
        for at in order {
            let from = &candidates[at];
            let text: String = links.query_row([from.id as i64], |row| row.get(0)).map_err(meant)?;
            for link in write::listed(&text) {
                let rows =
                    named.query_map([linked_name(&link)], |row| row.get::<_, i64>(0)).map_err(meant)?;
                for id in rows {
                    let id = usize::try_from(id.map_err(meant)?).unwrap_or(0);
                    if id != from.id && scores.allows(id) {
                        let gift = gifts.entry(id).or_default();
                        *gift = gift.max(own(from));
                    }
                }
            }
        }
        if gifts.is_empty() {
            return Ok(());
        }
        let known = self.set(candidates.iter().map(|candidate| candidate.id));
        let mut new: Vec<usize> = gifts.keys().copied().filter(|id| !known.has(*id)).collect();
        new.sort_unstable();
        let mut more = self.described(&new, scores, query)?;
        rank::fuse(&mut more, scores.fusion);
        candidates.extend(more);
        for candidate in candidates {
            candidate.linked = gifts.get(&candidate.id).copied().unwrap_or(0.0);
        }
        Ok(())
    }
}

/// The name by which a linked thing is known: an address without its kind, a path without dots.
fn linked_name(link: &str) -> String {
    let name =
        link.split_once(':').map_or(link, |(_, name)| name.rsplit_once('/').map_or(name, |(_, last)| last));
    folded(name.trim_start_matches("./").trim_start_matches("/memories/").trim_end_matches(".md"))
}
