//! Which documents a query lets pass.

use rusqlite::{OptionalExtension, params_from_iter};

use super::analysis::folded;
use super::database::meant;
use super::lookup::{self, Set};
use super::query::{Filter, Query};
use super::search::Search;
use crate::error::Result;

impl Search<'_> {
    /// Which documents may be found; `None` for all.
    pub(super) fn allowed(&self, query: &Query) -> Result<Option<Set>> {
        let next = usize::try_from(self.view.known.statistics.next).unwrap_or(0);
        let hidden = || self.view.known.hidden_at(self.now.as_millisecond());
        let mut allowed = match query.filter.is_open() {
            true if hidden().next().is_none() && query.without.is_empty() && query.phrases.is_empty() => {
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
        for term in &query.without {
            lookup::having(self.view.connection(), term, |id, _| allowed.remove(id))?;
        }
        for (words, terms) in &query.phrases {
            self.keep_phrase(&mut allowed, words, terms, next)?;
        }
        Ok(Some(allowed))
    }

    /// Keeps the documents that have these words in a row.
    fn keep_phrase(&self, allowed: &mut Set, words: &str, terms: &[String], next: usize) -> Result<()> {
        for term in terms {
            let mut having = Set::none(next);
            lookup::having(self.view.connection(), term, |id, _| having.insert(id))?;
            allowed.keep(&having);
        }
        let sql =
            "SELECT d.title || char(10) || b.body FROM docs d JOIN bodies b ON b.id = d.id WHERE d.id = ?1";
        let mut statement = self.view.connection().prepare_cached(sql).map_err(meant)?;
        let words = spaced(words);
        for id in allowed.ids().collect::<Vec<_>>() {
            let text: Option<String> =
                statement.query_row([id as i64], |row| row.get(0)).optional().map_err(meant)?;
            if !text.is_some_and(|text| spaced(&folded(&text)).contains(&words)) {
                allowed.remove(id);
            }
        }
        Ok(())
    }

    fn filtered(&self, filter: &Filter, next: usize) -> Result<Set> {
        let mut sql =
            "SELECT d.id FROM docs d JOIN files f ON f.id = d.file JOIN bodies b ON b.id = d.id WHERE 1"
                .to_owned();
        let mut values: Vec<rusqlite::types::Value> = Vec::new();
        let mut only = |condition: &str, value: rusqlite::types::Value| {
            sql.push_str(condition);
            values.push(value);
        };
        if let Some(shape) = filter.shape {
            only(" AND d.shape = ?", shape.name().to_owned().into());
        }
        if let Some(kind) = &filter.kind {
            only(" AND lower(d.kind) = ?", kind.clone().into());
        }
        if let Some(weight) = filter.importance {
            only(" AND d.importance = ?", weight.points().into());
        }
        if let Some(since) = filter.since {
            only(" AND coalesce(d.date, f.mtime) >= ?", since.into());
        }
        if let Some(before) = filter.before {
            only(" AND coalesce(d.date, f.mtime) < ?", before.into());
        }
        let select = sql.replacen("d.id", "d.id, d.address, f.key, b.tags", 1);
        let mut statement = self.view.connection().prepare(&select).map_err(meant)?;
        let mut rows = statement.query(params_from_iter(values)).map_err(meant)?;
        let mut found = Set::none(next);
        while let Some(row) = rows.next().map_err(meant)? {
            let (id, address, key, tags): (i64, String, String, String) = (
                row.get(0).map_err(meant)?,
                row.get(1).map_err(meant)?,
                row.get(2).map_err(meant)?,
                row.get(3).map_err(meant)?,
            );
            let tags: Vec<String> = tags.lines().map(folded).collect();
            let within = filter.within.as_deref().is_none_or(|place| lies_in(&address, &key, place));
            if within && filter.tags.iter().all(|tag| tags.contains(tag)) {
                found.insert(usize::try_from(id).unwrap_or(0));
            }
        }
        Ok(found)
    }
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
