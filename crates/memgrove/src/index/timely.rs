//! Documents by their time: the newest, and those of a time that a query speaks of.

use super::database::meant;
use super::rank::{self, WEIGHED};
use super::search::{Scores, Search};
use super::spoken::Asked;
use crate::error::Result;

/// So many of a time are enough: others of it are not looked for.
const ENOUGH: usize = WEIGHED / 2;

/// Those of a span, in no order: by their own date, or else that of their file.
const OF_SPAN: &str = "SELECT id, date FROM docs WHERE date >= ?1 AND date < ?2
    UNION ALL SELECT d.id, f.mtime FROM files f JOIN docs d ON d.file = f.id
    WHERE f.mtime >= ?1 AND f.mtime < ?2 AND d.date IS NULL";
/// As above, the newest first, and those of one time as they stand in their files.
const NEWEST_OF_SPAN: &str = "SELECT d.id, d.date, f.key, d.ord FROM docs d JOIN files f ON f.id = d.file
    WHERE d.date >= ?1 AND d.date < ?2
    UNION ALL SELECT d.id, f.mtime, f.key, d.ord FROM files f JOIN docs d ON d.file = f.id
    WHERE f.mtime >= ?1 AND f.mtime < ?2 AND d.date IS NULL ORDER BY 2 DESC, 3, 4";
const NEWEST: &str = "SELECT d.id, coalesce(d.date, f.mtime) FROM docs d JOIN files f ON f.id = d.file
    ORDER BY coalesce(d.date, f.mtime) DESC, f.key, d.ord";

impl Search<'_> {
    /// The newest that may be found, for a query that names no words, and how many there are: those
    /// of the time that it speaks of, if it does.
    pub(super) fn newest(
        &self,
        scores: &Scores,
        asked: Option<&Asked>,
        limit: usize,
    ) -> Result<(Vec<usize>, usize)> {
        let mut ids = self.of_that_time(NEWEST_OF_SPAN, scores, asked)?;
        if ids.is_empty() && asked.is_none_or(|asked| !asked.firm) {
            ids = self.ids(NEWEST, [], scores, |_| true)?;
        }
        let all = ids.len();
        ids.truncate(limit.max(WEIGHED));
        Ok((ids, all))
    }

    /// Adds the best of what is from the time that a query speaks of, even if there is much else
    /// that has the words. `false` if there is more of it.
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

    /// What is from the time that a query speaks of; nothing if it speaks of none.
    fn of_that_time(&self, sql: &str, scores: &Scores, asked: Option<&Asked>) -> Result<Vec<usize>> {
        let mut found = Vec::new();
        for span in asked.iter().flat_map(|asked| &asked.spans) {
            let bounds = [span.from.earliest(), span.until.latest()];
            found.extend(self.ids(sql, bounds, scores, |date| span.has(date))?);
        }
        Ok(found)
    }

    fn ids(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        scores: &Scores,
        is_of: impl Fn(i64) -> bool,
    ) -> Result<Vec<usize>> {
        let mut statement = self.view.connection().prepare_cached(sql).map_err(meant)?;
        let mut rows = statement.query(values).map_err(meant)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(meant)? {
            let (id, date): (i64, i64) = (row.get(0).map_err(meant)?, row.get(1).map_err(meant)?);
            let id = usize::try_from(id).unwrap_or(0);
            if scores.allows(id) && is_of(date) {
                found.push(id);
            }
        }
        Ok(found)
    }
}
