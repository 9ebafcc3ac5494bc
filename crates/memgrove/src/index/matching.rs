//! Which documents have the words of a query: as typed, with spelling corrected, or as one whole
//! identifier.

use std::collections::HashSet;

use super::analysis::{folded, is_east_asian, is_stop_word};
use super::query::{Phrase, Query};
use super::scoring::{self, Group, Lexical, Near, Set};
use super::search::Search;
use super::wordpiece::is_word;
use crate::error::Result;

/// What the words of a query found.
pub(super) struct LookedUp {
    pub(super) groups: Vec<Group>,
    pub(super) lexical: Lexical,
    pub(super) corrected: Vec<Corrected>,
    pub(super) allowed: Option<Set>,
    /// The documents that have all words of the time that the query names.
    pub(super) telling: Option<Set>,
}

/// A word that no document has.
pub(super) struct Corrected {
    pub(super) word: String,
    /// What was searched for instead, as some document writes it, and its term.
    pub(super) instead: String,
    pub(super) term: String,
}

/// How many similar terms are considered for a misspelled word, and in how many documents of each its
/// spelling is looked up.
const NEAR_MAX: usize = 16;
const WRITTEN_MAX: usize = 8;

impl Search<'_> {
    /// Looks up the words of a query, with spelling corrected if no document has any of them.
    pub(super) fn looked_up(&self, query: &Query) -> Result<LookedUp> {
        let mut groups: Vec<Group> = query.terms().into_iter().map(Group::of).collect();
        for prefix in &query.prefixes {
            groups.push(self.beginning(prefix)?);
        }
        let telling = self.telling(query)?;
        if let Some(telling) = telling.as_ref().filter(|_| query.time_parts.len() > 1) {
            let (within, of_time) = (self.or_from_then(telling, query)?, query.terms_of_time());
            let is_of_time = |group: &&mut Group| group.terms.iter().any(|term| of_time.contains(&&**term));
            groups.iter_mut().filter(is_of_time).for_each(|group| group.within = Some(within.clone()));
        }
        let allowed = self.allowed(query)?;
        let mut lexical = scoring::lexical(self.view, &groups)?;
        let mut corrected = Vec::new();
        if lexical.touched.is_empty() && !groups.is_empty() {
            corrected = self.corrected(query)?;
            let terms: Vec<Group> = corrected.iter().map(|one| Group::of(&one.term)).collect();
            lexical = scoring::lexical(self.view, &terms)?;
        }
        if let Some(whole) = self.having_whole(query, allowed.as_ref())? {
            lexical.touched.retain(|id| whole.has(*id as usize));
        }
        Ok(LookedUp { groups, lexical, corrected, allowed, telling })
    }

    /// For a query of one word with several parts, such as `handleInvoice118` or `v1.2.3`, returns the
    /// documents that have the whole word or all of its parts, in a row if it has signs between them.
    /// `None` for another query or if there are none: then any part will do.
    fn having_whole(&self, query: &Query, allowed: Option<&Set>) -> Result<Option<Set>> {
        let [(word, terms)] = query.words.as_slice() else { return Ok(None) };
        if terms.len() < 2 || !query.is_one_word() {
            return Ok(None);
        }
        let phrase = Phrase::new(word, self.analysis);
        let having = |term: &String| {
            let mut set = self.set(std::iter::empty());
            self.view.having(term, |id, _| set.insert(id)).map(|()| set)
        };
        let mut found: Option<Set> = None;
        for part in &phrase.terms {
            let set = having(part)?;
            match &mut found {
                Some(found) => found.keep(&set),
                None => found = Some(set),
            }
        }
        let mut found = found.unwrap_or_else(|| self.set(std::iter::empty()));
        if word.contains(|c: char| !c.is_alphanumeric() || is_east_asian(c)) {
            found = self.with_phrase(&found, &phrase)?;
        }
        for whole in terms.iter().filter(|term| !phrase.terms.contains(term)) {
            having(whole)?.ids().for_each(|id| found.insert(id));
        }
        let any = found.ids().any(|id| allowed.is_none_or(|set| set.has(id)));
        Ok(any.then_some(found))
    }

    /// Counts the hidden documents that have more of what was asked than any that may be shown.
    pub(super) fn hidden_better(
        &self,
        query: &Query,
        lexical: &Lexical,
        allowed: Option<&Set>,
    ) -> Result<usize> {
        let Some(allowed) = allowed else { return Ok(0) };
        let touched = || lexical.touched.iter().map(|id| *id as usize);
        let best = touched().filter(|id| allowed.has(*id)).map(|id| lexical.covered[id]).fold(0.0, f32::max);
        let hidden = self.set(self.view.known.hidden_at(self.now.as_millisecond()));
        let mut better: Vec<usize> =
            touched().filter(|id| hidden.has(*id) && lexical.covered[*id] > best).collect();
        if !better.is_empty() {
            let mut asking = query.clone();
            asking.filter.hidden = true;
            let shown = self.allowed(&asking)?;
            better.retain(|id| shown.as_ref().is_none_or(|set| set.has(*id)));
        }
        Ok(better.len())
    }

    /// Returns the documents that have the rarest name in the query. A name is a word with a capital
    /// letter that does not begin the query.
    pub(super) fn having_name(&self, query: &Query, lexical: &Lexical) -> Result<Set> {
        let is_name = |word: &String| {
            let is_first = query.plain.starts_with(word.as_str());
            word.starts_with(char::is_uppercase) && !is_first && !query.of_time.contains(word)
        };
        let nowhere = self.view.known.statistics.weight(0);
        let names = query.words.iter().filter(|(word, _)| is_name(word)).flat_map(|(_, terms)| terms);
        let told = names.filter_map(|name| Some((lexical.weights.get(name)?, name)));
        let rarest = told.filter(|(told, _)| **told < nowhere).max_by(|a, b| a.0.total_cmp(b.0));
        let mut found = self.set(std::iter::empty());
        if let Some((_, name)) = rarest {
            self.view.having(name, |id, _| found.insert(id))?;
        }
        Ok(found)
    }

    /// Returns corrections for misspelled words. A word that the model knows, or that names a time, counts
    /// as spelled right even if no document has it.
    fn corrected(&self, query: &Query) -> Result<Vec<Corrected>> {
        let mut found = Vec::new();
        for (word, terms) in query.words.iter().filter(|(word, _)| !query.of_time.contains(word)) {
            let bare = folded(word.trim_matches(|c: char| !c.is_alphanumeric()));
            if is_word(&bare) || is_stop_word(&bare) || bare.contains(|c: char| c.is_ascii_digit()) {
                continue;
            }
            for term in terms {
                let written = if terms.len() == 1 { &bare } else { term };
                if let Some((instead, near)) = self.spelled(written)? {
                    found.push(Corrected { word: word.clone(), instead, term: near });
                }
            }
        }
        Ok(found)
    }

    /// Returns the indexed word that a misspelled one most likely means, and its term.
    fn spelled(&self, word: &str) -> Result<Option<(String, String)>> {
        let Some(far) = scoring::far(word) else { return Ok(None) };
        let near = scoring::nearest(self.view.connection(), word, far)?;
        let mut best: Option<(Near, String)> = None;
        for near in near.into_iter().take(NEAR_MAX) {
            let words = self.written(&near.term)?;
            // A part of an identifier may nowhere be written as a word of its own.
            let as_written = match words.is_empty() {
                true => {
                    scoring::distance(word, &near.term, far).map(|distance| (distance, near.term.clone()))
                }
                false => {
                    let far_off = |written: String| Some((scoring::distance(word, &written, far)?, written));
                    words.into_iter().filter_map(far_off).min()
                }
            };
            let Some((distance, written)) = as_written else { continue };
            let near = Near { distance, ..near };
            if best.as_ref().is_none_or(|(known, _)| near.order() < known.order()) {
                best = Some((near, written));
            }
        }
        Ok(best.map(|(near, written)| (written, near.term)))
    }

    /// Returns the folded words that documents write for a term.
    fn written(&self, term: &str) -> Result<HashSet<String>> {
        let mut ids = Vec::new();
        self.view.having(term, |id, _| {
            ids.extend((ids.len() < WRITTEN_MAX).then_some(id));
        })?;
        let mut words = HashSet::new();
        for id in ids {
            let Some(hit) = self.view.by_id(id)? else { continue };
            for text in [&hit.title, &hit.subject, &hit.text, &hit.kind].into_iter().chain(&hit.tags) {
                let parts = text.split(|c: char| !c.is_alphanumeric()).map(folded);
                words.extend(parts.filter(|word| self.analysis.term(word).as_deref() == Some(term)));
            }
        }
        Ok(words)
    }
}
