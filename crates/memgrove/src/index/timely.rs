//! Which documents are the newest, or from the time that a query names.

use super::database::meant;
use super::query::Query;
use super::rank::{self, WEIGHED};
use super::scoring::Set;
use super::search::{Scores, Search};
use super::spoken::Asked;
use crate::error::Result;

/// With this many documents from the time in question, no more are looked for.
const ENOUGH: usize = WEIGHED / 2;

/// The documents of a span, unordered, by their own date or else that of their file.
const OF_SPAN: &str = "SELECT id, date FROM docs WHERE date >= ?1 AND date < ?2
    UNION ALL SELECT d.id, f.mtime FROM files f JOIN docs d ON d.file = f.id
    WHERE f.mtime >= ?1 AND f.mtime < ?2 AND d.date IS NULL";
/// As above, the newest first; with equal dates, by file and place in it.
const NEWEST_OF_SPAN: &str = "SELECT d.id, d.date, f.key, d.ord FROM docs d JOIN files f ON f.id = d.file
    WHERE d.date >= ?1 AND d.date < ?2
    UNION ALL SELECT d.id, f.mtime, f.key, d.ord FROM files f JOIN docs d ON d.file = f.id
    WHERE f.mtime >= ?1 AND f.mtime < ?2 AND d.date IS NULL ORDER BY 2 DESC, 3, 4";
const NEWEST: &str = "SELECT d.id, coalesce(d.date, f.mtime) FROM docs d JOIN files f ON f.id = d.file
    ORDER BY coalesce(d.date, f.mtime) DESC, f.key, d.ord";

impl Search<'_> {
    /// Returns the documents that have all words of the time that a query names, or the month as a number.
    /// `None` if it names no time.
    pub(super) fn telling(&self, query: &Query) -> Result<Option<Set>> {
        let mut found: Option<Set> = None;
        for part in &query.time_parts {
            let mut having = self.set(std::iter::empty());
            for term in part {
                self.view.having(term, |id, _| having.insert(id))?;
            }
            match &mut found {
                Some(found) => found.keep(&having),
                None => found = Some(having),
            }
        }
        Ok(found)
    }

    /// Adds the documents from the time that a query names, or from soon after it, to others.
    pub(super) fn or_from_then(&self, others: &Set, query: &Query) -> Result<Set> {
        let mut found = others.clone();
        let Some(asked) = &query.asked else { return Ok(found) };
        for bounds in asked.reaches() {
            let then = self.ids(OF_SPAN, bounds, |_, date| asked.share(date) > 0.0)?;
            then.into_iter().for_each(|id| found.insert(id));
        }
        Ok(found)
    }

    /// Returns the newest documents and their total number, for a query without words: of the time that it
    /// names, if it names one.
    pub(super) fn newest(
        &self,
        scores: &Scores,
        asked: Option<&Asked>,
        limit: usize,
    ) -> Result<(Vec<usize>, usize)> {
        let mut ids = self.of_that_time(NEWEST_OF_SPAN, scores, asked)?;
        if ids.is_empty() && asked.is_none_or(|asked| !asked.firm) {
            ids = self.ids(NEWEST, [], |id, _| scores.allows(id))?;
        }
        let all = ids.len();
        ids.truncate(limit.max(WEIGHED));
        Ok((ids, all))
    }

    /// Adds the best documents from the time that a query names, which other documents with its words
    /// would crowd out. Returns `false` if there are more of them.
    pub(super) fn add_timely(
        &self,
        ids: &mut Vec<usize>,
        scores: &Scores,
        asked: Option<&Asked>,
    ) -> Result<bool> {
        let Some(asked) = asked else { return Ok(true) };
        let mut there = 0;
        for id in ids.iter() {
            there += usize::from(self.view.fact(*id)?.is_some_and(|fact| asked.is_then(fact.date)));
        }
        if there >= ENOUGH {
            return Ok(false);
        }
        let mut then = self.of_that_time(OF_SPAN, scores, Some(asked))?;
        let are_all = then.len() <= WEIGHED;
        if !are_all {
            let saying = then.into_iter().map(|id| (id, scores.fused(id))).filter(|(_, worth)| *worth > 0.0);
            then = rank::best(saying, WEIGHED);
        }
        if then.is_empty() && asked.firm {
            then = self.of_that_time(NEWEST_OF_SPAN, scores, Some(asked))?;
            then.truncate(WEIGHED);
        }
        let known = self.set(ids.iter().copied());
        ids.extend(then.into_iter().filter(|id| !known.has(*id)));
        Ok(are_all)
    }

    /// Returns the documents from the time that a query names; none if it names no time.
    fn of_that_time(&self, sql: &str, scores: &Scores, asked: Option<&Asked>) -> Result<Vec<usize>> {
        let mut found = Vec::new();
        for span in asked.iter().flat_map(|asked| &asked.spans) {
            let bounds = [span.from.earliest(), span.until.latest()];
            found.extend(self.ids(sql, bounds, |id, date| scores.allows(id) && span.has(date))?);
        }
        Ok(found)
    }

    fn ids(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        is_wanted: impl Fn(usize, i64) -> bool,
    ) -> Result<Vec<usize>> {
        let mut statement = self.view.connection().prepare_cached(sql).map_err(meant)?;
        let mut rows = statement.query(values).map_err(meant)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(meant)? {
            let (id, date): (i64, i64) = (row.get(0).map_err(meant)?, row.get(1).map_err(meant)?);
            let id = usize::try_from(id).unwrap_or(0);
            if is_wanted(id, date) {
                found.push(id);
            }
        }
        Ok(found)
    }
}
