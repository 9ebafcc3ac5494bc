//! Which hits say the same: ten copies of one fact become one hit.

use std::cmp::Reverse;

use super::hit::Hit;
use super::rank::Candidate;
use super::search::{Found, Search, Take};
use crate::document::Document;
use crate::error::Result;

/// After this many hits were refused as too long for the budget, no shorter one is tried.
const REFUSED_MAX: usize = 3;

impl Search<'_> {
    /// Returns the best hits, with those that say the same merged into one.
    pub(super) fn distinct(
        &self,
        candidates: &[Candidate],
        limit: usize,
        found: &Found,
        take: Take<'_>,
    ) -> Result<Vec<Hit>> {
        let mut refused = 0;
        let mut hits: Vec<(Hit, i64)> = Vec::new();
        let are_equal = |a: &Candidate, b: &Candidate| a.score.total_cmp(&b.score).is_eq();
        // Most that are found are not shown, and need no order.
        for candidate in candidates.chunk_by(are_equal).flat_map(|equals| self.ordered(equals)) {
            let Some(fact) = self.view.fact(candidate.id)? else { continue };
            let twin = hits.iter().position(|(_, says)| *says == fact.says);
            if twin.is_none() && (hits.len() == limit || refused > REFUSED_MAX) {
                break;
            }
            let Some(mut hit) = self.view.by_id(candidate.id)? else { continue };
            hit.parts = candidate.parts;
            match twin {
                Some(twin) => hits[twin].0.alike.push(hit.address),
                None if take(&hit, found) => hits.push((hit, fact.says)),
                None => refused += 1,
            }
        }
        Ok(hits.into_iter().map(|(hit, _)| hit).collect())
    }

    /// Orders candidates with equal scores: the newest first, then by file and place in it. The numbers of
    /// documents must not decide.
    fn ordered<'c>(&self, equals: &'c [Candidate]) -> Vec<&'c Candidate> {
        let mut ordered: Vec<&Candidate> = equals.iter().collect();
        if let [_, _, ..] = equals {
            // A document that is gone is not shown, so its place does not matter.
            let key =
                |candidate: &Candidate| self.view.fact(candidate.id).ok().flatten().map(|fact| &*fact.key);
            ordered.sort_by_cached_key(|candidate| (Reverse(candidate.date), key(candidate), candidate.ord));
        }
        ordered
    }
}

/// Returns a number that is equal for documents that say the same: the same subject, the same heading, and
/// the same words and signs in the same order. Another order, `may` for `must` or `C++` for `C` is another
/// fact; letter case, white space and a final full stop do not count.
///
/// A text without words says nothing, and equals no other.
pub(super) fn says(file: &str, document: &Document) -> i64 {
    let Document { title, subject, text, address, .. } = document;
    // A title that is only the file's name does not count; one text beneath two headings is two facts.
    let name = file.rsplit('/').next().and_then(|name| name.strip_prefix(title.as_str()));
    let is_file = name.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let alone = if text.contains(char::is_alphanumeric) { "" } else { address.as_str() };
    let mut hasher = blake3::Hasher::new();
    for part in [subject.as_str(), if is_file { "" } else { title }, text, alone] {
        let lower = part.to_lowercase();
        for word in lower.trim_end_matches(is_last).split_whitespace() {
            hasher.update(word.as_bytes());
            hasher.update(b" ");
        }
        hasher.update(b"\n");
    }
    let [a, b, c, d, e, f, g, h, ..] = *hasher.finalize().as_bytes();
    i64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Whether a sign at the end of a text carries no meaning. A question mark does carry one.
fn is_last(c: char) -> bool {
    c.is_whitespace() || ".,;:!\u{2026}\u{3002}\u{ff01}".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_says_the_same_is_alike() {
        let said = |text: &str| {
            says("files/a.md", &Document { text: text.into(), title: "a".into(), ..Document::default() })
        };
        for (one, other) in [
            ("Tea at five.", "tea  at\nFive"),
            ("Uses C++", "uses c++!"),
            ("\u{8336}\u{5f88}\u{597d}\u{3002}", "\u{8336}\u{5f88}\u{597d}"),
        ] {
            assert_eq!(said(one), said(other), "{one}");
        }
        let host =
            |name: &str| format!("{} on {name} says the team", "the export of the shop runs ".repeat(9));
        for (one, other) in [
            ("prefers tabs over spaces", "prefers spaces over tabs"),
            ("moved from Jenkins to GitHub", "moved from GitHub to Jenkins"),
            ("call before noon", "call after noon"),
            ("must sign", "may sign"),
            ("Ann manages Bob", "Bob manages Ann"),
            ("over 30", "under 30"),
            ("-1", "1"),
            (">=3.11", "<3.11"),
            ("written in C", "written in C++"),
            ("written in C#", "written in C++"),
            ("it works", "it works?"),
            (&host("production"), &host("staging")),
        ] {
            assert_ne!(said(one), said(other), "{one}");
        }
    }
}
