//! Finding memories for the search page: one question, hits of every shape.

use memgrove::backend::FileKind;
use memgrove::shapes::entities::Match;
use memgrove::shapes::records::Query;
use memgrove::{Locator, Result};

use super::browse::SHAPES;
use crate::context::Context;
use crate::portion;

/// The most hits that are shown.
const HITS_MAX: usize = 40;
/// The most files that are looked into, and the largest.
const FILES_MAX: usize = 20_000;
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// How much of a text a hit shows, in characters.
const SNIPPET_CHARS_MAX: usize = 220;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The hits, best first.
    pub(super) hits: Vec<Hit>,
    /// All hits, shown or not.
    pub(super) total: usize,
}

/// One memory that was found.
#[derive(Debug)]
pub(super) struct Hit {
    /// Where it is: its place in the store, or `record:` and its id.
    pub(super) at: String,
    /// What it is called.
    pub(super) title: String,
    /// What kind of memory it is.
    pub(super) kind: String,
    /// When it was last changed.
    pub(super) date: String,
    /// What it says where the words stand.
    pub(super) snippet: String,
    /// What it costs an agent to read it whole.
    pub(super) tokens: usize,
    rank: f32,
}

/// The words of a question, in small letters.
pub(super) fn words(query: &str) -> Vec<String> {
    query.split_whitespace().map(str::to_lowercase).collect()
}

/// Looks a question up in all memories.
///
/// # Errors
/// As reading the store.
pub(super) fn lookup(cx: &Context, query: &str) -> Result<Found> {
    let words = words(query);
    if words.is_empty() {
        return Ok(Found::default());
    }
    let mut hits = in_entities(cx, query, &words)?;
    hits.extend(in_records(cx, query, &words)?);
    hits.extend(in_files(cx, &words)?);
    hits.sort_by(|a, b| b.rank.total_cmp(&a.rank).then_with(|| b.date.cmp(&a.date)));
    let total = hits.len();
    hits.truncate(HITS_MAX);
    Ok(Found { hits, total })
}

fn in_entities(cx: &Context, query: &str, words: &[String]) -> Result<Vec<Hit>> {
    let wanted = Match { query: query.to_owned(), ..Match::default() };
    let found = cx.reading_knowledge()?.search(&wanted)?;
    let best = found.first().map_or(1.0, |hit| hit.rank.max(0.1));
    let hits = found.into_iter().map(|hit| {
        let entity = &hit.entity;
        let said = hit.best.and_then(|best| entity.observations.get(best)).or(entity.observations.first());
        let date = said.and_then(|said| said.facts.date.clone()).or_else(|| entity.updated.clone());
        let all: usize = entity.observations.iter().map(|said| portion::tokens(&said.text) + 2).sum();
        Hit {
            at: hit.path.key().to_owned(),
            title: entity.name.clone(),
            kind: entity.kind.clone(),
            date: date.or_else(|| entity.created.clone()).unwrap_or_default(),
            snippet: said.map_or(String::new(), |said| snippet(&said.text, words)),
            tokens: all + portion::tokens(&entity.name) + 8,
            rank: 2.0 * hit.rank / best,
        }
    });
    Ok(hits.take(HITS_MAX).collect())
}

fn in_records(cx: &Context, query: &str, words: &[String]) -> Result<Vec<Hit>> {
    let wanted = Query { text: Some(query.to_owned()), limit: HITS_MAX, ..Query::default() };
    let found = cx.records()?.list(&wanted)?.records;
    let hits = found.into_iter().map(|record| Hit {
        at: format!("record:{}", record.id),
        title: first_words(&record.content),
        kind: record.kind.to_string(),
        date: record.updated_at.clone(),
        snippet: snippet(&record.content, words),
        tokens: portion::tokens(&record.content) + 14,
        rank: worth(&record.content, "", words),
    });
    Ok(hits.collect())
}

fn in_files(cx: &Context, words: &[String]) -> Result<Vec<Hit>> {
    let memory = cx.reading()?;
    let store = memory.store();
    let mut hits = Vec::new();
    for shape in SHAPES.iter().filter(|shape| shape.texts) {
        for info in store.list_all(&Locator::new(shape.folder)?)?.into_iter().take(FILES_MAX) {
            if info.kind != FileKind::File || info.size > FILE_BYTES_MAX || info.locator.key().contains("/.")
            {
                continue;
            }
            let Some(content) = store.read_optional(&info.locator)? else { continue };
            let Ok(text) = String::from_utf8(content.bytes) else { continue };
            let rank = worth(&text, info.locator.name(), words);
            if rank > 0.0 {
                hits.push(Hit {
                    at: info.locator.key().to_owned(),
                    title: info.locator.name().trim_end_matches(".md").to_owned(),
                    kind: shape.one.to_owned(),
                    date: info.mtime.to_string(),
                    snippet: snippet(&text, words),
                    tokens: portion::tokens(&text),
                    rank,
                });
            }
        }
    }
    Ok(hits)
}

/// How well a text answers: nothing if a word is missing, more where the words stand in its name.
fn worth(text: &str, name: &str, words: &[String]) -> f32 {
    let (text, name) = (text.to_lowercase(), name.to_lowercase());
    let mut worth = 1.0;
    for word in words {
        match (name.contains(word), text.contains(word)) {
            (true, _) => worth += 0.8,
            (false, true) => worth += 0.2,
            (false, false) => return 0.0,
        }
    }
    worth
}

fn first_words(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    match line.char_indices().nth(70) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// The part of a text where the first of the words stands, on one line.
fn snippet(text: &str, words: &[String]) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lower = line.to_lowercase();
    let stands = words.iter().filter_map(|word| lower.find(word.as_str())).min().unwrap_or(0);
    let chars = line.chars().count();
    // Small letters may take another number of bytes: characters are counted instead.
    let before = lower.get(..stands).map_or(0, |before| before.chars().count());
    let start = before.saturating_sub(SNIPPET_CHARS_MAX / 3).min(chars.saturating_sub(SNIPPET_CHARS_MAX));
    let part: String = line.chars().skip(start).take(SNIPPET_CHARS_MAX).collect();
    let (head, tail) = (start > 0, start + SNIPPET_CHARS_MAX < chars);
    format!("{}{}{}", if head { "…" } else { "" }, part.trim(), if tail { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_shows_where_the_words_stand() {
        let text = format!("{} the needle {}", "hay ".repeat(200), "hay ".repeat(200));
        let shown = snippet(&text, &words("Needle"));
        assert!(shown.contains("needle") && shown.starts_with('…') && shown.ends_with('…'), "{shown}");
        assert_eq!(snippet("short\ntext", &words("nothing")), "short text");
    }
}
