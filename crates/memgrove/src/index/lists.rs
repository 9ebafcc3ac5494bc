//! The lists that memgrove keeps of the notes that one leads to: what they say of a note, the note says
//! itself. What someone says of one in words of their own is a memory.

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
    /// Leaves out lists that only repeat what notes say, and tells how many those were.
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
    /// Whether a document is a list of notes, and says nothing of any that the note does not say itself.
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

    /// Whether a note, or its title, has these words in a row.
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
