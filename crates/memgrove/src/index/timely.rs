//! Documents by their time: the newest, and those of a time that a query tells from now.

use super::database::meant;
use super::dates::{Asked, Span};
use super::rank::{self, WEIGHED};
use super::search::{Scores, Search};
use crate::error::Result;

impl Search<'_> {
    /// The newest that may be found, for a query that names no words, and how many there are: those
    /// of the time that it tells from now, if there are any.
    pub(super) fn newest(
        &self,
        scores: &Scores,
        asked: Option<&Asked>,
        limit: usize,
    ) -> Result<(Vec<usize>, usize)> {
        let mut ids = self.of_that_time(scores, asked)?;
        if ids.is_empty() {
            let sql = "SELECT d.id FROM docs d JOIN files f ON f.id = d.file ORDER BY coalesce(d.date, f.mtime) DESC, d.address";
            ids = self.ids(sql, [], scores)?;
        }
        let all = ids.len();
        ids.truncate(limit.max(WEIGHED));
        Ok((ids, all))
    }

    /// Adds what is from the time that a query tells from now: it shall come first, even if there
    /// is much else that has the words.
    pub(super) fn add_timely(
        &self,
        ids: &mut Vec<usize>,
        scores: &Scores,
        asked: Option<&Asked>,
    ) -> Result<()> {
        let then = self.of_that_time(scores, asked)?;
        let known = self.set(ids.iter().copied());
        let best = rank::best(then.into_iter().map(|id| (id, scores.fused(id))), WEIGHED);
        ids.extend(best.into_iter().filter(|id| !known.has(*id)));
        Ok(())
    }

    /// What is from the time that a query tells from now, newest first; nothing if it tells none.
    fn of_that_time(&self, scores: &Scores, asked: Option<&Asked>) -> Result<Vec<usize>> {
        let Some(Asked::Relative(Span { from, to })) = asked else { return Ok(Vec::new()) };
        let sql = "SELECT id, date, address FROM docs WHERE date >= ?1 AND date < ?2
                   UNION ALL SELECT d.id, f.mtime, d.address FROM files f JOIN docs d ON d.file = f.id
                   WHERE f.mtime >= ?1 AND f.mtime < ?2 AND d.date IS NULL ORDER BY 2 DESC, 3";
        self.ids(sql, [*from, *to], scores)
    }

    fn ids(&self, sql: &str, values: impl rusqlite::Params, scores: &Scores) -> Result<Vec<usize>> {
        let mut statement = self.view.connection().prepare_cached(sql).map_err(meant)?;
        let rows = statement.query_map(values, |row| row.get::<_, i64>(0)).map_err(meant)?;
        let ids = rows.map(|id| id.map(|id| usize::try_from(id).unwrap_or(0)).map_err(meant));
        ids.filter(|id| id.as_ref().map_or(true, |id| scores.allows(*id))).collect()
    }
}
