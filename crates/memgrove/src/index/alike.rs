//! Ten copies of one fact are one hit.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::database::meant;
use super::hit::Hit;
use super::rank::Candidate;
use super::search::{Search, Take};
use crate::error::Result;

/// From which share of their terms on two texts are one fact told twice.
const ALIKE: f32 = 0.9;

impl Search<'_> {
    /// The best hits, several that say the same as one.
    /// `true` beside them if there were enough.
    pub(super) fn distinct(
        &self,
        mut candidates: Vec<Candidate>,
        limit: usize,
        asked: &HashSet<String>,
        take: Take<'_>,
    ) -> Result<(Vec<Hit>, bool)> {
        let mut enough = false;
        self.order_equals(&mut candidates)?;
        let mut hits: Vec<(Hit, Vec<u64>)> = Vec::new();
        for candidate in candidates {
            let Some(mut hit) = self.view.by_id(candidate.id)? else { continue };
            hit.parts = candidate.parts;
            let terms = self.signature(&hit.text);
            match hits.iter().position(|(_, known)| is_alike(known, &terms)) {
                Some(twin) => hits[twin].0.alike.push(hit.address),
                None if hits.len() == limit => break,
                None if !take(&hit, asked) => {
                    enough = true;
                    break;
                }
                None => hits.push((hit, terms)),
            }
        }
        Ok((hits.into_iter().map(|(hit, _)| hit).collect(), enough))
    }

    /// Puts those that are equally good in the order of their addresses: which numbers documents
    /// have must not decide.
    fn order_equals(&self, candidates: &mut [Candidate]) -> Result<()> {
        let equal = |a: &Candidate, b: &Candidate| a.parts.total().total_cmp(&b.parts.total()).is_eq();
        let sql = "SELECT address FROM docs WHERE id = ?1";
        let mut statement = self.view.connection().prepare_cached(sql).map_err(meant)?;
        for equals in candidates.chunk_by_mut(equal).filter(|equals| equals.len() > 1) {
            let mut named = Vec::with_capacity(equals.len());
            for candidate in equals.iter() {
                let row = statement.query_row([candidate.id as i64], |row| row.get::<_, String>(0));
                named.push((row.map_err(meant)?, candidate.clone()));
            }
            named.sort_by(|a, b| a.0.cmp(&b.0));
            equals.iter_mut().zip(named).for_each(|(to, (_, candidate))| *to = candidate);
        }
        Ok(())
    }

    /// The terms of a text, each once, as numbers that are quickly compared.
    fn signature(&self, text: &str) -> Vec<u64> {
        let mut numbers = Vec::with_capacity(text.len() / 6);
        self.analysis.each_term(text, &mut |term| {
            let mut hasher = DefaultHasher::new();
            term.hash(&mut hasher);
            numbers.push(hasher.finish());
        });
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

fn is_alike(a: &[u64], b: &[u64]) -> bool {
    let (less, more) = (a.len().min(b.len()), a.len().max(b.len()));
    if (less as f32) < ALIKE * more as f32 {
        return false;
    }
    let all = union(a, b);
    // Of short texts, only those with the very same words are one fact.
    if all < 10 { a == b && !a.is_empty() } else { (a.len() + b.len() - all) as f32 >= ALIKE * all as f32 }
}

/// How many numbers two sorted lists have together.
fn union(a: &[u64], b: &[u64]) -> usize {
    let (mut left, mut right, mut both) = (0, 0, 0);
    while left < a.len() && right < b.len() {
        match a[left].cmp(&b[right]) {
            Ordering::Less => left += 1,
            Ordering::Greater => right += 1,
            Ordering::Equal => (left, right, both) = (left + 1, right + 1, both + 1),
        }
    }
    a.len() + b.len() - both
}
