//! Which documents a query lets pass.

use std::collections::HashSet;

use rusqlite::{OptionalExtension, Row};

use super::analysis::{folded, is_east_asian};
use super::border::Border;
use super::database::meant;
use super::query::{Filter, Phrase, Query};
use super::scoring::Set;
use super::search::Search;
use crate::document::Shape;
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
            self.view.having(term, |id, _| allowed.remove(id))?;
        }
        for prefix in without_prefixes {
            self.beginning(prefix)?.each(self.view, |id, _| allowed.remove(id))?;
        }
        for filter in unwanted {
            self.filtered(filter, next)?.ids().for_each(|id| allowed.remove(id));
        }
        for phrase in phrases {
            allowed = self.with_phrase(&allowed, phrase)?;
        }
        for phrase in without_phrases {
            self.with_phrase(&allowed, phrase)?.ids().for_each(|id| allowed.remove(id));
        }
        Ok(Some(allowed))
    }

    /// Returns the places of a filter beneath which there is no document.
    pub(super) fn nowhere(&self, filter: &Filter) -> Result<Vec<String>> {
        let next = usize::try_from(self.view.known.statistics.next).unwrap_or(0);
        let mut found = Vec::new();
        for place in &filter.within {
            let there = Filter { within: vec![place.clone()], ..Filter::default() };
            if self.filtered(&there, next)?.ids().next().is_none() {
                found.push(place.clone());
            }
        }
        Ok(found)
    }

    /// Returns the documents of a set that contain a phrase.
    pub(super) fn with_phrase(&self, set: &Set, phrase: &Phrase) -> Result<Set> {
        let mut found = set.clone();
        for term in &phrase.terms {
            let mut having = self.set(std::iter::empty());
            self.view.having(term, |id, _| having.insert(id))?;
            found.keep(&having);
        }
        let sql =
            "SELECT d.title || char(10) || b.body FROM docs d JOIN bodies b ON b.id = d.id WHERE d.id = ?1";
        let mut statement = self.view.connection().prepare_cached(sql).map_err(meant)?;
        let has = Sequence::of(&phrase.words);
        for id in found.ids().collect::<Vec<_>>() {
            let text: Option<String> =
                statement.query_row([id as i64], |row| row.get(0)).optional().map_err(meant)?;
            if !text.is_some_and(|text| has.stands_in(&folded(&text))) {
                found.remove(id);
            }
        }
        Ok(found)
    }

    fn filtered(&self, filter: &Filter, next: usize) -> Result<Set> {
        let sql = "SELECT d.id, d.address, f.key, b.tags, d.shape, d.kind, d.importance, coalesce(d.date, f.mtime), d.grp
                   FROM docs d JOIN files f ON f.id = d.file JOIN bodies b ON b.id = d.id
                   WHERE coalesce(d.date, f.mtime) >= ?1 AND coalesce(d.date, f.mtime) < ?2 OR d.shape = 'graph'";
        let mut statement = self.view.connection().prepare_cached(sql).map_err(meant)?;
        let since = filter.since.map_or(i64::MIN, Border::earliest);
        let span = [since, filter.before.map_or(i64::MAX, Border::latest)];
        let mut rows = statement.query(span).map_err(meant)?;
        let mut found = Set::none(next);
        // The content of a node has the kind, tags and importance of the node, which are stored in another
        // file and may have another date.
        let (mut held, mut told) = (Vec::new(), HashSet::new());
        while let Some(row) = rows.next().map_err(meant)? {
            let id = usize::try_from(row.get::<_, i64>(0).map_err(meant)?).unwrap_or(0);
            let lies_there = lies_there(filter, row).map_err(meant)?;
            let is_such = is_such(filter, row).map_err(meant)?;
            if lies_there && is_such {
                found.insert(id);
            }
            if text(row, 4).map_err(meant)? == Shape::Graph.name() {
                let group = text(row, 8).map_err(meant)?.to_owned();
                match is_such {
                    true => drop(told.insert(group)),
                    false if lies_there => held.push((id, group)),
                    false => {}
                }
            }
        }
        held.iter().filter(|(_, group)| told.contains(group)).for_each(|(id, _)| found.insert(*id));
        Ok(found)
    }
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a str> {
    row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)
}

/// Whether a filter lets a document pass by its place, its shape and its date.
fn lies_there(filter: &Filter, row: &Row<'_>) -> rusqlite::Result<bool> {
    let Filter { shapes, within, since, before, .. } = filter;
    let date: i64 = row.get(7)?;
    Ok(since.is_none_or(|since| since.is_reached(date))
        && before.is_none_or(|before| !before.is_reached(date))
        && (shapes.is_empty() || {
            let shape = text(row, 4)?;
            shapes.iter().any(|wanted| wanted.name() == shape)
        })
        && (within.is_empty() || {
            let (address, key) = (text(row, 1)?, text(row, 2)?);
            within.iter().any(|place| lies_in(address, key, place))
        }))
}

/// Whether a filter lets a document pass by its kind, its tags and its importance.
fn is_such(filter: &Filter, row: &Row<'_>) -> rusqlite::Result<bool> {
    let Filter { kinds, tags, importances, .. } = filter;
    let importance: i64 = row.get(6)?;
    Ok((importances.is_empty() || importances.iter().any(|wanted| wanted.points() == importance))
        && (kinds.is_empty() || kinds.contains(&folded(text(row, 5)?)))
        && (tags.is_empty() || {
            let there: Vec<String> = text(row, 3)?.lines().map(folded).collect();
            tags.iter().all(|tag| there.contains(tag))
        }))
}

/// Whether an address or a key lies at or beneath a place, as people write places.
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

/// Words in a row, whatever signs stand between them: `green tea` in `**green** tea`.
enum Sequence {
    Words(String),
    /// A phrase without any letter or digit, searched for as it is written.
    Signs(String),
}

impl Sequence {
    fn of(phrase: &str) -> Self {
        let words = spaced(phrase);
        if words.trim().is_empty() {
            return Sequence::Signs(phrase.to_owned());
        }
        // In scripts without spaces a word may begin or end anywhere.
        let first = words.trim_start().starts_with(is_east_asian);
        let last = words.trim_end().ends_with(is_east_asian);
        let words = if first { words.trim_start() } else { &words };
        Sequence::Words(if last { words.trim_end() } else { words }.to_owned())
    }

    fn stands_in(&self, text: &str) -> bool {
        match self {
            Sequence::Words(words) => spaced(text).contains(words),
            Sequence::Signs(signs) => text.contains(signs),
        }
    }
}

/// The words of a text, with a space before, between and behind them.
pub(super) fn spaced(text: &str) -> String {
    let mut found = String::with_capacity(text.len() + 2);
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        found.push(' ');
        found.push_str(word);
    }
    found.push(' ');
    found
}
