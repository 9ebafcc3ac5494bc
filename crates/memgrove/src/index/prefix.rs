//! Which documents have words that begin with a prefix. The index knows only stems, which may be shorter
//! than the prefix; where a stem could belong to such a word, the text of its documents decides.

use rusqlite::OptionalExtension;

use super::analysis::folded;
use super::database::meant;
use super::scoring::{self, Group, Set};
use super::search::Search;
use crate::error::Result;

/// The shortest stem that is tried for a longer prefix.
const STEM_CHARS_MIN: usize = 3;

impl Search<'_> {
    /// Returns the terms and documents that stand for the words with a prefix.
    pub(super) fn beginning(&self, prefix: &str) -> Result<Group> {
        let next = usize::try_from(self.view.known.statistics.next).unwrap_or(0);
        let terms = scoring::beginning(self.view.connection(), prefix)?;
        let mut group = Group { terms, stems: Vec::new(), having: Set::none(next), within: None };
        if !self.analysis.stems() {
            return Ok(group);
        }
        group.stems = stems(prefix);
        group.stems.extend(self.analysis.term(prefix));
        group.stems.sort();
        group.stems.dedup();
        group.stems.retain(|stem| !group.terms.contains(stem));
        let mut perhaps = Set::none(next);
        for stem in &group.stems {
            self.view.having(stem, |id, _| perhaps.insert(id))?;
        }
        let sql = "SELECT d.title || char(10) || b.body || char(10) || b.tags || char(10) || b.subject
                   FROM docs d JOIN bodies b ON b.id = d.id WHERE d.id = ?1";
        let mut statement = self.view.connection().prepare_cached(sql).map_err(meant)?;
        for id in perhaps.ids() {
            let text: Option<String> =
                statement.query_row([id as i64], |row| row.get(0)).optional().map_err(meant)?;
            let begins = |text: String| {
                folded(&text).split(|c: char| !c.is_alphanumeric()).any(|word| word.starts_with(prefix))
            };
            if text.is_some_and(begins) {
                group.having.insert(id);
            }
        }
        Ok(group)
    }
}

/// Returns the stems, no longer than the prefix, that a word with this prefix may have.
fn stems(prefix: &str) -> Vec<String> {
    let ends: Vec<usize> = prefix.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
    let mut found = Vec::new();
    for end in ends.into_iter().skip(STEM_CHARS_MIN - 1) {
        let start = &prefix[..end];
        // Some stemmers write `happi` for `happy`.
        found.extend(start.strip_suffix('y').map(|start| format!("{start}i")));
        if end < prefix.len() {
            found.push(start.to_owned());
        }
    }
    found
}
