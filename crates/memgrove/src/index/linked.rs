//! What is linked with what was found.

use std::collections::HashMap;

use super::analysis::folded;
use super::database::meant;
use super::query::Query;
use super::rank::{self, Candidate};
use super::search::{Scores, Search};
use super::write;
use crate::error::Result;

/// How many of the best candidates have their links followed.
const LINKED: usize = 10;

impl Search<'_> {
    /// Follows the links of the best candidates, one step.
    pub(super) fn link(&self, candidates: &mut Vec<Candidate>, scores: &Scores, query: &Query) -> Result<()> {
        let own = |candidate: &Candidate| candidate.parts.words + candidate.parts.meaning;
        let order =
            rank::best(candidates.iter().enumerate().map(|(at, candidate)| (at, own(candidate))), LINKED);
        let mut gifts: HashMap<usize, f32> = HashMap::new();
        let mut links =
            self.view.connection().prepare_cached("SELECT links FROM bodies WHERE id = ?1").map_err(meant)?;
        let mut named = self
            .view
            .connection()
            .prepare_cached("SELECT id FROM docs WHERE name = ?1 AND name <> '' LIMIT 4")
            .map_err(meant)?;
        for at in order {
            let from = &candidates[at];
            if !self.view.fact(from.id)?.is_some_and(|fact| fact.links) {
                continue;
            }
            let text: String = links.query_row([from.id as i64], |row| row.get(0)).map_err(meant)?;
            for link in write::listed(&text) {
                let rows =
                    named.query_map([linked_name(&link)], |row| row.get::<_, i64>(0)).map_err(meant)?;
                for id in rows {
                    let id = usize::try_from(id.map_err(meant)?).unwrap_or(0);
                    if id != from.id && scores.allows(id) {
                        let gift = gifts.entry(id).or_default();
                        *gift = gift.max(own(from));
                    }
                }
            }
        }
        if gifts.is_empty() {
            return Ok(());
        }
        let known = self.set(candidates.iter().map(|candidate| candidate.id));
        let mut new: Vec<usize> = gifts.keys().copied().filter(|id| !known.has(*id)).collect();
        new.sort_unstable();
        let mut more = self.described(&new, scores, query)?;
        rank::fuse(&mut more, scores.fusion);
        candidates.extend(more);
        for candidate in candidates {
            candidate.linked = gifts.get(&candidate.id).copied().unwrap_or(0.0);
        }
        Ok(())
    }
}

/// Returns the name that a link leads to: of an address without its kind, of a path without `./` and
/// `.md`.
fn linked_name(link: &str) -> String {
    let name =
        link.split_once(':').map_or(link, |(_, name)| name.rsplit_once('/').map_or(name, |(_, last)| last));
    folded(name.trim_start_matches("./").trim_start_matches("/memories/").trim_end_matches(".md"))
}
