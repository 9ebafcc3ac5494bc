//! Which documents a query lets pass.

use rusqlite::{OptionalExtension, Row};

use super::analysis::folded;
use super::database::meant;
use super::lookup::{self, Set};
use super::query::{Filter, Phrase, Query};
use super::search::Search;
use crate::error::Result;

impl Search<'_> {
    /// Which documents may be found; `None` for all.
    pub(super) fn allowed(&self, query: &Query) -> Result<Option<Set>> {
        let next = usize::try_from(self.view.known.statistics.next).unwrap_or(0);
        let hidden = || self.view.known.hidden_at(self.now.as_millisecond());
        let Query { phrases, without, without_prefixes, without_phrases, unwanted, .. } = query;
        let mut allowed = match query.filter.is_open() {
            true if hidden().next().is_none()
                && phrases.is_empty()
                && without.is_empty()
                && without_prefixes.is_empty()
                && without_phrases.is_empty()
                && unwanted.is_empty() =>
            {
                return Ok(None);
            }
            true => {
                let mut all = Set::none(next);
                (0..next).for_each(|id| all.insert(id));
                all
            }
            false => self.filtered(&query.filter, next)?,
        };
        if !query.filter.hidden {
            hidden().for_each(|id| allowed.remove(id));
        }
        for term in without {
            lookup::having(self.view.connection(), term, |id, _| allowed.remove(id))?;
        }
        for prefix in without_prefixes {
            self.beginning(prefix)?.each(self.view.connection(), |id, _| allowed.remove(id))?;
        }
        for filter in unwanted {
            self.filtered(filter, next)?.ids().for_each(|id| allowed.remove(id));
        }
        for phrase in phrases {
            allowed = self.with_phrase(&allowed, phrase, next)?;
        }
        for phrase in without_phrases {
            self.with_phrase(&allowed, phrase, next)?.ids().for_each(|id| allowed.remove(id));
        }
        Ok(Some(allowed))
    }

    /// Those documents of a set that have these words in a row.
    fn with_phrase(&self, set: &Set, phrase: &Phrase, next: usize) -> Result<Set> {
        let mut found = set.clone();
        for term in &phrase.terms {
            let mut having = Set::none(next);
            lookup::having(self.view.connection(), term, |id, _| having.insert(id))?;
            found.keep(&having);
        }
        let sql =
            "SELECT d.title || char(10) || b.body FROM docs d JOIN bodies b ON b.id = d.id WHERE d.id = ?1";
        let mut statement = self.view.connection().prepare_cached(sql).map_err(meant)?;
        let words = spaced(&phrase.words);
        for id in found.ids().collect::<Vec<_>>() {
            let text: Option<String> =
                statement.query_row([id as i64], |row| row.get(0)).optional().map_err(meant)?;
            if !text.is_some_and(|text| spaced(&folded(&text)).contains(&words)) {
                found.remove(id);
            }
        }
        Ok(found)
    }

    fn filtered(&self, filter: &Filter, next: usize) -> Result<Set> {
        let sql = "SELECT d.id, d.address, f.key, b.tags, d.shape, d.kind, d.importance
                   FROM docs d JOIN files f ON f.id = d.file JOIN bodies b ON b.id = d.id
                   WHERE coalesce(d.date, f.mtime) >= ?1 AND coalesce(d.date, f.mtime) < ?2";
        let mut statement = self.view.connection().prepare_cached(sql).map_err(meant)?;
        let span = [filter.since.unwrap_or(i64::MIN), filter.before.unwrap_or(i64::MAX)];
        let mut rows = statement.query(span).map_err(meant)?;
        let mut found = Set::none(next);
        while let Some(row) = rows.next().map_err(meant)? {
            if lets_pass(filter, row).map_err(meant)? {
                found.insert(usize::try_from(row.get::<_, i64>(0).map_err(meant)?).unwrap_or(0));
            }
        }
        Ok(found)
    }
}

/// Whether a filter lets a document pass: its address, key, tags, shape, kind and importance.
fn lets_pass(filter: &Filter, row: &Row<'_>) -> rusqlite::Result<bool> {
    let text = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
    let Filter { shapes, kinds, tags, importances, within, .. } = filter;
    let (shape, importance): (&str, i64) = (text(4)?, row.get(6)?);
    Ok((shapes.is_empty() || shapes.iter().any(|wanted| wanted.name() == shape))
        && (importances.is_empty() || importances.iter().any(|wanted| wanted.points() == importance))
        && (kinds.is_empty() || kinds.contains(&folded(text(5)?)))
        && (within.is_empty() || {
            let (address, key) = (text(1)?, text(2)?);
            within.iter().any(|place| lies_in(address, key, place))
        })
        && (tags.is_empty() || {
            let there: Vec<String> = text(3)?.lines().map(folded).collect();
            tags.iter().all(|tag| there.contains(tag))
        }))
}

/// Whether an address or a key lies at or beneath a place as people name it.
fn lies_in(address: &str, key: &str, place: &str) -> bool {
    let place = place.trim_matches('/').trim_end_matches(".md");
    let path = address.split_once(':').map_or(address, |(_, path)| path);
    let beneath = |text: &str| {
        let rest = text.trim_start_matches('/').strip_prefix(place);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '#', '.', '~']))
    };
    let inside = path.trim_start_matches("/memories/");
    [address, path, inside, key].into_iter().any(beneath)
}

fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
