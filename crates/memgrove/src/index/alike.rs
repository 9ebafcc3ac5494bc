//! Ten copies of one fact are one hit.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::analysis::{Analysis, negations};
use super::database::meant;
use super::hit::Hit;
use super::rank::Candidate;
use super::search::{Found, Search, Take};
use crate::error::Result;

/// From which share of their terms on two texts are one fact told twice.
const ALIKE: f32 = 0.9;
/// After how many that were not taken, because they are too long, no shorter one is tried.
const REFUSED_MAX: usize = 3;

impl Search<'_> {
    /// The best hits, several that say the same as one.
    pub(super) fn distinct(
        &self,
        mut candidates: Vec<Candidate>,
        limit: usize,
        found: &Found,
        take: Take<'_>,
    ) -> Result<Vec<Hit>> {
        self.order_equals(&mut candidates)?;
        let mut refused = 0;
        let mut hits: Vec<(Hit, Signature)> = Vec::new();
        for candidate in candidates {
            let Some(mut hit) = self.view.by_id(candidate.id)? else { continue };
            hit.parts = candidate.parts;
            let signed = Signature::of(&hit, self.analysis);
            match hits.iter().position(|(_, known)| known.is_alike(&signed)) {
                Some(twin) => hits[twin].0.alike.push(hit.address),
                None if hits.len() == limit || refused > REFUSED_MAX => break,
                None if take(&hit, found) => hits.push((hit, signed)),
                None => refused += 1,
            }
        }
        Ok(hits.into_iter().map(|(hit, _)| hit).collect())
    }

    /// Puts those that are equally good in an order of their own, the newest first, then as they
    /// stand in their files: which numbers documents have must not decide.
    fn order_equals(&self, candidates: &mut [Candidate]) -> Result<()> {
        let equal = |a: &Candidate, b: &Candidate| a.parts.total().total_cmp(&b.parts.total()).is_eq();
        let sql = "SELECT f.key FROM docs d JOIN files f ON f.id = d.file WHERE d.id = ?1";
        let mut statement = self.view.connection().prepare_cached(sql).map_err(meant)?;
        for equals in candidates.chunk_by_mut(equal).filter(|equals| equals.len() > 1) {
            let mut named = Vec::with_capacity(equals.len());
            for candidate in equals.iter() {
                let row = statement.query_row([candidate.id as i64], |row| row.get::<_, String>(0));
                named.push((row.map_err(meant)?, candidate.clone()));
            }
            named.sort_by(|(a, left), (b, right)| {
                right.date.cmp(&left.date).then_with(|| a.cmp(b)).then(left.ord.cmp(&right.ord))
            });
            equals.iter_mut().zip(named).for_each(|(to, (_, candidate))| *to = candidate);
        }
        Ok(())
    }
}

/// What decides whether two documents say the same.
pub(super) struct Signature {
    /// The terms of the text, each once, in order.
    terms: Vec<u64>,
    /// Whom it is about, what stands above it, its numbers, how often it says no: in this, those
    /// that say the same are equal.
    decides: u64,
}

impl Signature {
    /// What a document says, as numbers that are quickly compared.
    pub(super) fn of(hit: &Hit, analysis: &Analysis) -> Signature {
        let mut terms = Vec::with_capacity(hit.text.len() / 6);
        let mut decides = negations(&hit.text) as u64;
        analysis.each_term(&hit.text, &mut |term| {
            let number = hashed(term);
            if term.bytes().any(|byte| byte.is_ascii_digit()) {
                decides = decides.wrapping_add(number);
            }
            terms.push(number);
        });
        terms.sort_unstable();
        terms.dedup();
        // Two files may say the same; what stands beneath two headings is two facts.
        let file = hit.file.rsplit('/').next().and_then(|name| name.strip_prefix(&hit.title));
        let is_file = file.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let title = if is_file { "" } else { hit.title.as_str() };
        for (part, weight) in [(&*hit.subject, 3), (title, 5)] {
            analysis.each_term(part, &mut |term| {
                decides = decides.wrapping_add(hashed(term).wrapping_mul(weight));
            });
        }
        Signature { terms, decides }
    }

    pub(super) fn is_alike(&self, other: &Signature) -> bool {
        let (a, b) = (&self.terms, &other.terms);
        let (less, more) = (a.len().min(b.len()), a.len().max(b.len()));
        if self.decides != other.decides || (less as f32) < ALIKE * more as f32 {
            return false;
        }
        let all = union(a, b);
        // Of short texts, only those with the very same words are one fact.
        if all < 10 {
            a == b && !a.is_empty()
        } else {
            (a.len() + b.len() - all) as f32 >= ALIKE * all as f32
        }
    }
}

fn hashed(term: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    term.hash(&mut hasher);
    hasher.finish()
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
