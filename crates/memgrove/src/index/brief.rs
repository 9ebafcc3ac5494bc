//! What matters in a store, for whoever begins to work with it.

use std::collections::HashMap;

use super::analysis::Analysis;
use super::database::meant;
use super::recall::{SNIPPET_TOKENS_MIN, Snippet, snippet};
use super::wordpiece::tokens;
use super::{Index, View};
use crate::document::Shape;
use crate::error::Result;

/// How many documents of one group get a place before documents of other groups.
const GROUP_MAX: usize = 2;
/// How many documents are looked at.
const LOOKED_AT: i64 = 400;
/// After how many days the weight of a document's age halves.
const DAYS: f64 = 30.0;

/// What the lines around a brief cost, and what each shape and tag costs beside its name.
const FRAME_TOKENS: usize = 24;
const ITEM_TOKENS: usize = 5;
/// Tags take at most one part in this many of what is left.
const TAGS_SHARE: usize = 4;

/// What matters in a store.
#[derive(Debug, Clone, Default)]
pub struct Brief {
    /// How many documents each shape has, for those that have any.
    pub shapes: Vec<(&'static str, usize)>,
    /// How many files.
    pub files: usize,
    /// The tags that most documents have.
    pub tags: Vec<(String, usize)>,
    /// What matters most: important, then often used, then recent.
    pub snippets: Vec<Snippet>,
    /// What all this costs, including the line that says what is not shown.
    pub tokens: usize,
    /// How many documents are not shown.
    pub left_out: usize,
}

impl Index {
    /// Says what matters in the store, within a budget of tokens.
    ///
    /// # Errors
    /// As [`Index::sync`].
    pub fn brief(&self, budget: usize) -> Result<Brief> {
        let now = self.clock.now().as_millisecond();
        self.with(&mut |_, _| (), |view, _| {
            let connection = view.connection();
            let mut brief = Brief { files: view.files()?, ..Brief::default() };
            let mut all = 0;
            for shape in Shape::ALL {
                let sql = format!("SELECT count(*) FROM docs d WHERE shape = ?2 AND {SEEN}");
                let count: i64 = connection
                    .query_row(&sql, rusqlite::params![now, shape.name()], |row| row.get(0))
                    .map_err(meant)?;
                let count = usize::try_from(count).unwrap_or(0);
                all += count;
                brief.shapes.extend((count > 0).then_some((shape.name(), count)));
            }
            brief.tokens =
                FRAME_TOKENS + brief.shapes.iter().map(|(name, _)| tokens(name) + ITEM_TOKENS).sum::<usize>();
            brief.tags = tags(connection, now)?;
            brief.tokens += brief.keep_tags(budget.saturating_sub(brief.tokens) / TAGS_SHARE);
            brief.tell(view, &self.analysis, worthy(connection, now)?, budget)?;
            let told = brief.snippets.iter().map(|snippet| 1 + snippet.hit.alike.len()).sum();
            brief.left_out = all.saturating_sub(told);
            Ok(brief)
        })
    }
}

/// A document that may be worth a place.
struct Worthy {
    id: usize,
    group: String,
    address: String,
    worth: f64,
    important: bool,
}

/// The documents that may be worth a place, the best first.
fn worthy(connection: &rusqlite::Connection, now: i64) -> Result<Vec<Worthy>> {
    let sql = format!(
        "SELECT d.id, d.grp, d.address, {MATTERS}, d.uses, coalesce(d.date, f.mtime)
         FROM docs d JOIN files f ON f.id = d.file JOIN bodies b ON b.id = d.id
         WHERE {SEEN} AND b.body <> ''
         ORDER BY {MATTERS} DESC, d.uses DESC, coalesce(d.date, f.mtime) DESC, d.address LIMIT ?2"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(meant)?;
    let read = |row: &rusqlite::Row<'_>| {
        let (id, importance, uses, date): (i64, i64, i64, i64) =
            (row.get(0)?, row.get(3)?, row.get(4)?, row.get(5)?);
        let days = now.saturating_sub(date).max(0) as f64 / 86_400_000.0;
        let worth = importance as f64 + 0.1 * (uses.max(0) as f64 + 1.0).log2() + (-days / DAYS).exp2();
        let (id, important) = (usize::try_from(id).unwrap_or(0), importance > 0);
        Ok(Worthy { id, group: row.get(1)?, address: row.get(2)?, worth, important })
    };
    let rows = statement.query_map([now, LOOKED_AT], read).map_err(meant)?;
    let mut worthy: Vec<Worthy> = rows.collect::<Result<_, _>>().map_err(meant)?;
    worthy.sort_by(|a, b| b.worth.total_cmp(&a.worth).then_with(|| a.address.cmp(&b.address)));
    Ok(worthy)
}

impl Brief {
    /// Adds the snippets: first important documents and a few of each group, then, while there is room,
    /// the others. Documents that say the same are told once.
    fn tell(
        &mut self,
        view: &View<'_>,
        analysis: &Analysis,
        worthy: Vec<Worthy>,
        budget: usize,
    ) -> Result<()> {
        let mut groups: HashMap<String, usize> = HashMap::new();
        let (first, others): (Vec<Worthy>, Vec<Worthy>) = worthy.into_iter().partition(|document| {
            let of_group = groups.entry(document.group.clone()).or_default();
            *of_group += 1;
            document.important || *of_group <= GROUP_MAX
        });
        let mut told: Vec<i64> = Vec::new();
        for document in first.into_iter().chain(others) {
            // A brief names many things, so it shows only the beginning of each.
            let spend = budget.saturating_sub(self.tokens).min((budget / 8).max(60));
            if spend < SNIPPET_TOKENS_MIN {
                break;
            }
            let Some(hit) = view.by_id(document.id)? else { continue };
            if view.only_lists(&hit)? {
                continue;
            }
            let Some(says) = view.fact(document.id)?.map(|fact| fact.says) else { continue };
            if let Some(twin) = told.iter().position(|known| *known == says) {
                self.snippets[twin].hit.alike.push(hit.address);
                continue;
            }
            let Some(snippet) = snippet(hit, &HashMap::new(), analysis, spend) else { continue };
            self.tokens += snippet.tokens;
            self.snippets.push(snippet);
            told.push(says);
        }
        Ok(())
    }

    /// Keeps as many tags as fit into `spend`, and returns what they cost.
    fn keep_tags(&mut self, spend: usize) -> usize {
        let mut spent = 0;
        let fits = |(tag, _): &&(String, usize)| {
            spent += tokens(tag) + ITEM_TOKENS;
            spent <= spend
        };
        let kept = self.tags.iter().take_while(fits).count();
        self.tags.truncate(kept);
        self.tags.iter().map(|(tag, _)| tokens(tag) + ITEM_TOKENS).sum()
    }
}

/// How much a document still matters: a completed task counts no more than an ordinary document.
const MATTERS: &str =
    "CASE WHEN d.kind = 'task' AND instr(char(10) || b.tags || char(10), char(10) || 'completed' || char(10))
                       THEN min(d.importance, 0) ELSE d.importance END";

/// Which documents are seen at the moment `?1`.
const SEEN: &str = "d.hidden = 0 AND (d.begins IS NULL OR (d.begins <= ?1 AND d.ends > ?1))";

/// The tags that most documents have.
fn tags(connection: &rusqlite::Connection, now: i64) -> Result<Vec<(String, usize)>> {
    let sql = format!("SELECT b.tags FROM bodies b JOIN docs d ON d.id = b.id WHERE b.tags <> '' AND {SEEN}");
    let mut statement = connection.prepare_cached(&sql).map_err(meant)?;
    let rows = statement.query_map([now], |row| row.get::<_, String>(0)).map_err(meant)?;
    let mut counted: HashMap<String, usize> = HashMap::new();
    for tags in rows {
        for tag in tags.map_err(meant)?.lines() {
            *counted.entry(tag.to_owned()).or_default() += 1;
        }
    }
    let mut sorted: Vec<_> = counted.into_iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sorted.truncate(12);
    Ok(sorted)
}
