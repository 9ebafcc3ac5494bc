//! Which version a copy was made from, as far as the history can prove it.
//!
//! A copy does not name the version it was made from, and the most similar version proves nothing: what
//! the copy lacks may have been removed there, or may never have been there. So a version is the base of a
//! merge only if the copy contains all of it. Then nothing of ours is mistaken for something that they
//! removed, and what that version has and ours lacks we removed ourselves. Of several such versions the
//! latest is used: bringing back something deleted is better than losing something. Without a base nothing
//! is removed.

use std::collections::HashMap;

use super::{MERGERS, Merged, Texts, by_lines, by_meaning};
use crate::backend::{HistoryQuery, Moment};
use crate::error::{Kind, Result};
use crate::locator::Locator;
use crate::store::Store;
use crate::text::merge::three_way;

/// How many past changes are looked at, and how many bytes. A search beyond that would take longer, and
/// without a base nothing is lost.
const CHANGES_MAX: usize = 200;
const BYTES_MAX: usize = 64 << 20;
/// Lines of a note that a merge writes itself: when it was changed, and how large it is.
const SET_BY_MERGES: [&str; 2] = ["last_updated:", "size_bytes:"];

/// Merges a copy into its file.
///
/// # Errors
/// As the storage says; `Conflict` if lines differ and no version is proved to be common.
pub(super) fn merge_with_history(store: &Store, at: &Locator, ours: &str, theirs: &str) -> Result<Merged> {
    let past = Versions::of(store, at, ours)?;
    let texts = |base| Texts { base, ours, theirs };
    let adds_nothing = |version: &str| {
        let united = by_meaning(at, &Texts { base: None, ours: theirs, theirs: version });
        united.is_some_and(|united| united.text == theirs)
    };
    let by_text = MERGERS.iter().any(|merger| merger.by_text && (merger.fits)(at));
    let united = |base: &str| {
        let texts = Texts { base: Some(base), ours, theirs };
        by_meaning(at, &texts).map(|merged| merged.text)
    };
    let base = past.latest(adds_nothing);
    let base = base.or_else(|| by_text.then(|| past.safe(ours, theirs, united)).flatten());
    if let Some(merged) = by_meaning(at, &texts(base)) {
        return Ok(merged);
    }
    let base = past.latest(|version| !version.is_empty() && holds_lines(theirs, version));
    let lines = |base: &str| Some(three_way(base, ours, theirs).text);
    by_lines(at, &texts(base.or_else(|| past.safe(ours, theirs, lines))))
}

/// Whether a text has every line of another, in the same order.
fn holds_lines(text: &str, other: &str) -> bool {
    let mut lines = text.split_inclusive('\n');
    other.split_inclusive('\n').all(|wanted| lines.any(|line| line == wanted))
}

/// The past texts of a file, newest first, and its present text at the end.
struct Versions {
    texts: Vec<String>,
    /// Whether the history goes back to when the file was created.
    whole: bool,
}

impl Versions {
    fn of(store: &Store, at: &Locator, now: &str) -> Result<Self> {
        let query = HistoryQuery { at: Some(at.clone()), before: None, limit: CHANGES_MAX };
        let past = match store.backend().history(&query) {
            Ok(past) => past,
            Err(error) if error.kind() == Kind::Unsupported => Vec::new(),
            Err(error) => return Err(error),
        };
        let moments = past
            .iter()
            .flat_map(|past| [Moment::After(past.change.clone()), Moment::Before(past.change.clone())]);
        let (mut texts, mut bytes_read, mut known, mut absent) = (Vec::<String>::new(), 0, 0, Vec::new());
        for moment in moments {
            match store.backend().read_past(at, &moment) {
                Ok(None) => absent.push(known),
                Ok(Some(bytes)) => {
                    bytes_read += bytes.len();
                    let Ok(text) = String::from_utf8(bytes) else { break };
                    if text != now && texts.last() != Some(&text) {
                        texts.push(text);
                    }
                }
                Err(_) => break,
            }
            known += 1;
            if bytes_read > BYTES_MAX {
                break;
            }
        }
        // The file was created at the beginning of its history, and only once.
        let whole =
            past.len() < CHANGES_MAX && known == 2 * past.len() && absent == [known.saturating_sub(1)];
        texts.push(now.to_owned());
        Ok(Versions { texts, whole })
    }

    fn latest(&self, fits: impl Fn(&str) -> bool) -> Option<&str> {
        self.texts.iter().map(String::as_str).find(|version| fits(version))
    }

    /// Returns the version most like the copy, if a merge from it removes none of our lines, except those
    /// that every version of the file has had: then the copy was made from a version with them.
    fn safe(&self, ours: &str, theirs: &str, merge: impl Fn(&str) -> Option<String>) -> Option<&str> {
        let past = match &self.texts[..] {
            // The file was never changed.
            [_] => &self.texts[..],
            [past @ .., _] => past,
            [] => return None,
        };
        let first = past.last().filter(|_| self.whole)?;
        let like = |version: &str| similar::TextDiff::from_lines(version, theirs).ratio();
        // Two machines that independently created a file of this name have little in common.
        if like(first) < 0.5 {
            return None;
        }
        let base = past.iter().max_by(|one, other| like(one).total_cmp(&like(other)))?;
        let merged = merge(base)?;
        let (had, has) = (counted(ours), counted(&merged));
        let versions: Vec<_> = past.iter().map(|version| counted(version)).collect();
        let times = |lines: &HashMap<&str, usize>, line: &str| lines.get(line).copied().unwrap_or(0);
        let safe = |(line, count): (&&str, &usize)| {
            times(&has, line) >= *count
                || SET_BY_MERGES.iter().any(|name| line.starts_with(name))
                || versions.iter().all(|version| times(version, line) >= *count)
        };
        had.iter().all(safe).then_some(base)
    }
}

/// Counts how often each line occurs.
fn counted(text: &str) -> HashMap<&str, usize> {
    let mut lines = HashMap::new();
    text.lines().for_each(|line| *lines.entry(line).or_default() += 1);
    lines
}
