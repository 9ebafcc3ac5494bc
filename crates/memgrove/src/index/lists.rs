//! Which lists of links say nothing new: memgrove keeps lists of the notes that a note leads to, and they
//! repeat what those notes say. A line that says more, in someone's own words, is a memory.

use super::View;
use super::analysis::folded;
use super::database::meant;
use super::filter::spaced;
use super::hit::Hit;
use super::rank::Candidate;
use super::search::Search;
use crate::document::Shape;
use crate::error::Result;
use crate::text::links::{are_words, is_links_heading, listed};

impl Search<'_> {
    /// Leaves out lists that only repeat what notes say, and returns how many there were.
    pub(super) fn leave_lists(&self, candidates: &mut Vec<Candidate>) -> Result<usize> {
        let mut lists = Vec::new();
        for candidate in candidates.iter() {
            let Some(fact) = self.view.fact(candidate.id)? else { continue };
            if is_called_so(&fact.title)
                && let Some(hit) = self.view.by_id(candidate.id)?
                && self.view.only_lists(&hit)?
            {
                lists.push(candidate.id);
            }
        }
        candidates.retain(|candidate| !lists.contains(&candidate.id));
        Ok(lists.len())
    }
}

impl View<'_> {
    /// Whether a document is a list of notes that says nothing of them which the notes do not say
    /// themselves.
    pub(super) fn only_lists(&self, hit: &Hit) -> Result<bool> {
        if hit.shape != Shape::Notes.name() || !is_called_so(&hit.title) {
            return Ok(false);
        }
        for line in hit.text.lines().filter(|line| !line.trim().is_empty()) {
            let Some((link, told)) = listed(line) else { return Ok(false) };
            if !are_words(told) && !self.says(link.target, told)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a note says these words, in its title or its text.
    fn says(&self, note: &str, words: &str) -> Result<bool> {
        let sql = "SELECT d.title || char(10) || b.body FROM docs n JOIN docs d ON d.file = n.file
                   JOIN bodies b ON b.id = d.id WHERE n.name = ?1 AND n.shape = 'notes'";
        let mut statement = self.connection().prepare_cached(sql).map_err(meant)?;
        let mut rows = statement.query([folded(note)]).map_err(meant)?;
        let words = spaced(&folded(words));
        while let Some(row) = rows.next().map_err(meant)? {
            let text: String = row.get(0).map_err(meant)?;
            if spaced(&folded(&text)).contains(&words) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn is_called_so(title: &str) -> bool {
    title.rsplit(" > ").next().is_some_and(is_links_heading)
}
