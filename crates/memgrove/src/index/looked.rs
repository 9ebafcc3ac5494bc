//! Which documents have the words of a query: as they are typed, as they were probably meant, and
//! one word as a whole.

use super::analysis::is_east_asian;
use super::lookup::{self, Group, Lexical, Set};
use super::query::{Phrase, Query};
use super::search::Search;
use crate::error::Result;

/// What the words of a query found.
pub(super) struct LookedUp {
    pub(super) groups: Vec<Group>,
    pub(super) lexical: Lexical,
    pub(super) corrected: Vec<(String, String)>,
    pub(super) allowed: Option<Set>,
}

impl Search<'_> {
    /// Looks up the words of a query: others in their place, if nothing has any of them.
    pub(super) fn looked_up(&self, query: &Query) -> Result<LookedUp> {
        let (connection, statistics) = (self.view.connection(), self.view.known.statistics);
        let mut groups: Vec<Group> = query.terms().into_iter().map(Group::of).collect();
        for prefix in &query.prefixes {
            groups.push(self.beginning(prefix)?);
        }
        let allowed = self.allowed(query)?;
        let mut lexical = lookup::lexical(connection, &groups, statistics)?;
        let mut corrected = Vec::new();
        if lexical.touched.is_empty() && !groups.is_empty() {
            corrected = self.corrected(query)?;
            let terms: Vec<Group> = corrected.iter().map(|(_, to)| Group::of(to)).collect();
            lexical = lookup::lexical(connection, &terms, statistics)?;
        }
        if let Some(whole) = self.having_whole(query, allowed.as_ref())? {
            lexical.touched.retain(|id| whole.has(*id as usize));
        }
        Ok(LookedUp { groups, lexical, corrected, allowed })
    }

    /// For one word that has parts, such as `handleInvoice118` or `v1.2.3`: the documents that have
    /// it, or all of its parts, in a row where it has signs between them. `None` for another query,
    /// or if there are none: then any part will do.
    fn having_whole(&self, query: &Query, allowed: Option<&Set>) -> Result<Option<Set>> {
        let [(word, terms)] = query.words.as_slice() else { return Ok(None) };
        if terms.len() < 2 || !query.is_one_word() {
            return Ok(None);
        }
        let phrase = Phrase::new(word, self.analysis);
        let having = |term: &String| {
            let mut set = self.set(std::iter::empty());
            lookup::having(self.view.connection(), term, |id, _| set.insert(id)).map(|()| set)
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

    /// How many of these documents are hidden now.
    pub(super) fn hidden_among(&self, ids: &[u32]) -> usize {
        let hidden = self.set(self.view.known.hidden_at(self.now.as_millisecond()));
        ids.iter().filter(|id| hidden.has(**id as usize)).count()
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
}
