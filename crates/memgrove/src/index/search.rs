//! One search: from a query to ranked documents.

use std::collections::HashMap;

use super::analysis::Analysis;
use super::embedding::{DIMENSIONS, Embedder, Vector, likenesses};
use super::hit::Hit;
use super::matching::{Corrected, LookedUp};
use super::query::Query;
use super::rank::{self, Candidate, Fusion, Scale, WEIGHED};
use super::scoring::{Lexical, PREFIX_TERMS_MAX, Set};
use super::sync::Synced;
use super::{Index, View, write};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::shapes::entities;

/// How many of the best have their neighbours looked at.
const NEIGHBOURED: usize = 60;
/// How many documents of an address are read to learn what it is about.
const SAID_MAX: usize = 8;

/// What a search found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The documents, best first.
    pub hits: Vec<Hit>,
    /// How many more there are: neither among the hits nor listed as like one of them.
    pub more: usize,
    /// How many documents fit.
    pub total: usize,
    /// Whether even more fit, which were not counted.
    pub at_least: bool,
    /// How many more fit only faintly compared with the best, and were left out.
    pub faint: usize,
    /// Whether no document has any of the words: then hits are only similar in meaning.
    pub wordless: bool,
    /// Whether nothing is from the time that was asked for.
    pub untimely: bool,
    /// Whether there was no word to look for: then hits are the newest.
    pub newest: bool,
    /// Whether nothing passes the filters.
    pub barred: bool,
    /// The places that were asked for and are empty, if nothing passes the filters.
    pub nowhere: Vec<String>,
    /// How many hidden documents have more of the words than any that was found.
    pub hidden: usize,
    /// Words that no document has, each with the word that was searched for instead.
    pub corrected: Vec<(String, String)>,
    /// Folders and files that could not be read; what the index holds of them may be outdated.
    pub unreadable: Vec<String>,
    /// The terms that were searched for, and their weights.
    pub terms: HashMap<String, f32>,
}

impl Index {
    /// Finds documents.
    ///
    /// # Errors
    /// `Invalid` for a query that cannot be understood; else as [`Index::sync`].
    pub fn search(&self, text: &str, limit: usize) -> Result<Found> {
        self.search_with(text, Reach::All, |search| search(limit, &mut |_, _| true))
    }

    /// Searches, and hands the hits to the caller as long as they are taken.
    pub(super) fn search_with<T>(
        &self,
        text: &str,
        reach: Reach,
        mut with: impl FnMut(&mut dyn FnMut(usize, Take<'_>) -> Result<Found>) -> Result<T>,
    ) -> Result<T> {
        let now = self.clock.now();
        let query = Query::parse(text, &self.analysis, &now.to_zoned(self.zone.clone()))?;
        self.with(&mut |_, _| (), |view, synced| {
            let search = self.searching(view, synced, now, reach);
            with(&mut |limit, take| search.run(&query, limit, take))
        })
    }

    fn searching<'a>(
        &'a self,
        view: &'a View<'a>,
        synced: Synced,
        now: Timestamp,
        reach: Reach,
    ) -> Search<'a> {
        let (analysis, embedder) = (&*self.analysis, self.embedder.as_deref());
        Search { view, analysis, embedder, now, reach, unreadable: synced.unreadable }
    }

    /// Finds documents that are similar to those at an address.
    ///
    /// # Errors
    /// `NotFound` for an address without a document; else as [`Index::sync`].
    pub fn similar(&self, address: &str, limit: usize) -> Result<Found> {
        self.similar_with(address, Reach::All, |search| search(limit, &mut |_, _| true))
    }

    /// As [`Index::search_with`], for documents similar to those at an address, which are not found
    /// themselves.
    pub(super) fn similar_with<T>(
        &self,
        address: &str,
        reach: Reach,
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
            let search = self.searching(view, synced, now, reach);
            with(&mut |limit, take| search.run(&query, limit, take))
        })
    }
}

/// Takes a hit, with what else is known of the search; `false` if there is no room for it.
pub(super) type Take<'a> = &'a mut dyn FnMut(&Hit, &Found) -> bool;

/// How far a search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// To documents that fit more than faintly.
    Near,
    /// To all documents that fit at all.
    All,
}

pub(super) struct Search<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) analysis: &'a Analysis,
    embedder: Option<&'a dyn Embedder>,
    pub(super) now: Timestamp,
    reach: Reach,
    unreadable: Vec<String>,
}

/// The scores of all documents, and which may be found.
pub(super) struct Scores {
    lexical: Lexical,
    meaning: Vec<f32>,
    allowed: Option<Set>,
    pub(super) fusion: Fusion,
}

impl Scores {
    pub(super) fn allows(&self, id: usize) -> bool {
        self.allowed.as_ref().is_none_or(|set| set.has(id))
    }

    /// Returns the score of a document by words and meaning alone.
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
        if query.is_unspeakable() {
            return Ok(Found { unreadable: self.unreadable.clone(), ..Found::default() });
        }
        let LookedUp { groups, lexical, corrected, allowed, telling } = self.looked_up(query)?;
        if query.is_stop_word && lexical.touched.is_empty() {
            return self.run(&query.without_words(), limit, take);
        }
        let asked = query.asked.as_ref();
        let allows = |id: &&u32| allowed.as_ref().is_none_or(|set| set.has(**id as usize));
        let having = lexical.touched.iter().filter(allows).count();
        // What the query stands for has its own words, and is not looked for.
        let own = self.set(query.except.iter().copied());
        let others = lexical.touched.iter().filter(allows).filter(|id| !own.has(**id as usize)).count();
        let wordless = having == 0 && !groups.is_empty() && asked.is_none_or(|asked| !asked.alone);
        // A single word that some document has is searched for as it is, not for what is similar.
        let exact = others > 0 && query.is_one_word();
        let mut found = Found {
            wordless,
            newest: query.is_open(),
            barred: allowed.as_ref().is_some_and(|set| set.ids().next().is_none()),
            hidden: self.hidden_better(query, &lexical, allowed.as_ref())?,
            terms: lexical.weights.clone(),
            unreadable: self.unreadable.clone(),
            ..Found::default()
        };
        if found.barred {
            found.nowhere = self.nowhere(&query.filter)?;
        }
        let most =
            if exact { WEIGHED.max(limit.saturating_add(query.except.len()).min(having)) } else { WEIGHED };
        let (scores, weighed) = self.scores(query, lexical, allowed, &corrected, (exact, most));
        found.corrected = corrected.into_iter().map(|one| (one.word, one.instead)).collect();
        // Documents with a single word, or that pass a filter, can be counted exactly; those that fit a
        // question cannot.
        let (ids, counted, are_all) = match groups.is_empty() {
            true => {
                let (ids, all) = self.newest(&scores, asked, limit)?;
                let known = query.except.iter().filter(|id| scores.allows(**id)).count();
                (ids, Some(all.saturating_sub(known)), true)
            }
            false if exact => (weighed, Some(others), true),
            false => {
                let mut ids = self.around(&weighed, &scores)?;
                let are_all = self.add_timely(&mut ids, &scores, asked)?;
                (ids, None, are_all)
            }
        };
        let mut candidates = self.weighed(&ids, &scores, query, exact)?;
        candidates.retain(|hit| !query.except.contains(&hit.id));
        let lists = self.leave_lists(&mut candidates)?;
        found.untimely = match groups.is_empty() {
            true => candidates.is_empty() && asked.is_some_and(|asked| asked.firm),
            false => !rank::keep_fitting(&mut candidates, asked, telling.as_ref(), wordless),
        };
        found.at_least = groups.iter().any(|group| group.terms.len() == PREFIX_TERMS_MAX)
            || (counted.is_none()
                && !wordless
                && (!are_all || rank::not_all(&candidates, others.saturating_sub(lists))));
        if self.reach == Reach::Near && counted.is_none() && !wordless {
            let named = self.having_name(query, &scores.lexical)?;
            found.faint = rank::leave_faint(&mut candidates, asked, &named);
        }
        found.total = counted.map_or(candidates.len(), |counted| counted.saturating_sub(lists));
        found.hits = self.distinct(&candidates, limit, &found, take)?;
        let shown: usize = found.hits.iter().map(|hit| 1 + hit.alike.len()).sum();
        found.more = found.total.saturating_sub(shown);
        Ok(found)
    }

    /// Returns these documents with all parts of their scores, best first.
    fn weighed(&self, ids: &[usize], scores: &Scores, query: &Query, exact: bool) -> Result<Vec<Candidate>> {
        let mut candidates = self.described(ids, scores, query)?;
        rank::fuse(&mut candidates, scores.fusion);
        if !exact {
            self.link(&mut candidates, scores, query)?;
        }
        rank::settle(&mut candidates, query.asked.as_ref(), self.now.as_millisecond());
        Ok(candidates)
    }

    /// Scores all documents, and picks those to weigh against each other.
    fn scores(
        &self,
        query: &Query,
        lexical: Lexical,
        allowed: Option<Set>,
        corrected: &[Corrected],
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
        let by_meaning = rank::best_of(&meaning, WEIGHED, allows);
        let mut weighed = by_words;
        let known = self.set(weighed.iter().copied());
        weighed.extend(by_meaning.into_iter().filter(|id| !known.has(*id)));
        let words = Scale::of(weighed.iter().map(|id| lexical.scores.get(*id).copied().unwrap_or(0.0)));
        let likeness = weighed.iter().map(|id| meaning.get(*id).copied().unwrap_or(0.0));
        let meaning_scale = (!meaning.is_empty()).then(|| Scale::of(likeness));
        let fusion = Fusion { words, meaning: meaning_scale };
        (Scores { lexical, meaning, allowed, fusion }, weighed)
    }

    /// Returns the meaning of a query, with its words weighed by their rarity. Otherwise a name that half
    /// of the documents have would drown what is asked about it.
    fn meant(
        &self,
        embedder: &dyn Embedder,
        query: &Query,
        lexical: &Lexical,
        corrected: &[Corrected],
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
        let instead =
            corrected.iter().map(|one| (one.instead.as_str(), weight(std::slice::from_ref(&one.term))));
        let meant: Vec<(&str, f32)> = words.chain(phrases).chain(instead).collect();
        let vector = embedder.embed(&meant);
        (vector != [0; DIMENSIONS]).then_some(vector)
    }

    /// Returns the weighed documents, with the neighbours of the best.
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

    /// Collects what is known of these documents.
    pub(super) fn described(&self, ids: &[usize], scores: &Scores, query: &Query) -> Result<Vec<Candidate>> {
        let named = entities::Named::by(&query.plain);
        // Most documents are of the same kind as the one before.
        let mut last: Option<(&str, u32)> = None;
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
                has_all: scores.lexical.has_all(*id),
                has_known: scores.lexical.has_known(*id),
                subject: scores.lexical.subjects.has(*id),
                observed: fact.observed,
                named: match named.is_empty() {
                    true => 0,
                    false => {
                        let known = last.filter(|(kind, _)| *kind == &*fact.kind);
                        let (_, of_kind) =
                            *last.insert(known.unwrap_or_else(|| (&fact.kind, named.of_kind(&fact.kind))));
                        named.of_name(&fact.title) + of_kind
                    }
                },
                ..Candidate::default()
            });
        }
        Ok(found)
    }
}
