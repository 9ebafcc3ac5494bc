//! How a question is answered in a given number of tokens: snippets around what matched, best first, each
//! with its date, title and address, and a receipt that says what was left out.

use std::collections::HashMap;
use std::ops::Range;

use jiff::civil::Date;

use super::Index;
use super::analysis::{Analysis, is_east_asian};
use super::hit::{Hit, Tokens};
use super::search::{Found, Reach, Take};
use super::wordpiece::tokens;
use crate::error::Result;

/// What one snippet may cost before it is cut around what matched.
const SNIPPET_TOKENS_MAX: usize = 180;
/// A shorter snippet says nothing, and is left out instead.
pub(super) const SNIPPET_TOKENS_MIN: usize = 24;
/// What the line above a snippet costs beside its words.
const HEAD_TOKENS: usize = 4;
/// What the brackets around a notice cost.
const NOTICE_TOKENS: usize = 2;
/// How many words or places a notice names.
const NAMED_MAX: usize = 3;

/// The length in bytes from which a word may be cut; paths and addresses stay whole up to the second.
const LONG_WORD: usize = 36;
const LONG_ASCII_WORD: usize = 120;
/// The length of the pieces that such a word is cut into.
const PIECE_CHARS: usize = 8;

/// One piece of an answer.
#[derive(Debug, Clone)]
pub struct Snippet {
    /// The document.
    pub hit: Hit,
    /// What is shown of its text.
    pub text: String,
    /// Whether its text goes on.
    pub cut: bool,
    /// What it costs, its head included.
    pub tokens: usize,
}

/// An answer and its receipt.
#[derive(Debug, Clone, Default)]
pub struct Recalled {
    /// The pieces, best first.
    pub snippets: Vec<Snippet>,
    /// What else the asker should know, as sentences.
    pub notices: Vec<String>,
    /// What all this costs together.
    pub tokens: usize,
    /// How many fitting documents are neither shown nor listed as like one that is.
    pub left_out: usize,
    /// How many documents fit.
    pub total: usize,
    /// Whether `total` is a lower bound.
    pub at_least: bool,
    /// How many more fit only faintly, and were left out.
    pub faint: usize,
    /// Whether no document has any of the words.
    pub wordless: bool,
    /// Words that no document has, each with the word that was searched for instead.
    pub corrected: Vec<(String, String)>,
    /// What could not be read.
    pub unreadable: Vec<String>,
}

impl Index {
    /// Finds what answers a question, within a budget of tokens.
    ///
    /// # Errors
    /// As [`Index::search`].
    pub fn recall(&self, query: &str, reach: Reach, budget: usize, limit: usize) -> Result<Recalled> {
        self.search_with(query, reach, |search| self.told(budget, |take| search(limit, take)))
    }

    /// As [`Index::recall`], for what is like the document of an address.
    ///
    /// # Errors
    /// As [`Index::similar`].
    pub fn recall_similar(&self, at: &str, reach: Reach, budget: usize, limit: usize) -> Result<Recalled> {
        self.similar_with(at, reach, |search| self.told(budget, |take| search(limit, take)))
    }

    /// Runs a search, and makes snippets of its hits within a budget.
    fn told(&self, budget: usize, search: impl FnOnce(Take<'_>) -> Result<Found>) -> Result<Recalled> {
        let mut teller =
            Teller { analysis: &self.analysis, left: budget, notices: None, pieces: Vec::new(), day: None };
        let found = search(&mut |hit, found| teller.takes(hit, found))?;
        Ok(teller.told(budget, found))
    }
}

/// Takes hits as snippets while there is budget left.
struct Teller<'a> {
    analysis: &'a Analysis,
    left: usize,
    /// The notices, once they are known.
    notices: Option<Vec<String>>,
    /// What is shown of each hit that was taken.
    pieces: Vec<Piece>,
    /// The day of the last hit, which is often that of the next, and what it costs.
    day: Option<(Date, usize)>,
}

impl Teller<'_> {
    fn takes(&mut self, hit: &Hit, found: &Found) -> bool {
        self.note(found);
        self.day = hit.day.map(|day| match self.day {
            Some(known) if known.0 == day => known,
            _ => (day, tokens(&day.to_string())),
        });
        let day = self.day.map_or(0, |(_, cost)| cost);
        let Some(piece) = Piece::of(hit, day, &found.terms, self.analysis, self.left) else { return false };
        self.left -= piece.tokens;
        self.pieces.push(piece);
        true
    }

    /// Reserves what the notices cost, before any snippet. Notices that cost too much are dropped.
    fn note(&mut self, found: &Found) {
        if self.notices.is_some() {
            return;
        }
        let mut notices = notices(found);
        notices.retain(|notice| {
            let cost = tokens(notice) + NOTICE_TOKENS;
            let fits = cost <= self.left;
            self.left -= if fits { cost } else { 0 };
            fits
        });
        self.notices = Some(notices);
    }

    fn told(mut self, budget: usize, found: Found) -> Recalled {
        self.note(&found);
        let snippets = self.pieces.into_iter().zip(found.hits).map(|(piece, hit)| piece.from(hit));
        Recalled {
            tokens: budget - self.left,
            snippets: snippets.collect(),
            notices: self.notices.unwrap_or_default(),
            left_out: found.more,
            total: found.total,
            at_least: found.at_least,
            faint: found.faint,
            wordless: found.wordless,
            corrected: found.corrected,
            unreadable: found.unreadable,
        }
    }
}

/// Returns the notices that go with the hits of a search.
fn notices(found: &Found) -> Vec<String> {
    let mut told = Vec::new();
    let (words, instead): (Vec<&str>, Vec<&str>) =
        found.corrected.iter().map(|(word, instead)| (word.as_str(), instead.as_str())).unzip();
    if !words.is_empty() {
        told.push(format!("nothing has {}: looked for {}", few(&words), few(&instead)));
    }
    if !found.unreadable.is_empty() {
        let places: Vec<&str> = found.unreadable.iter().map(String::as_str).collect();
        told.push(format!("{} cannot be read: what is known of it may be outdated", few(&places)));
    }
    if !found.nowhere.is_empty() {
        let places: Vec<&str> = found.nowhere.iter().map(String::as_str).collect();
        told.push(format!("nothing is in {}", few(&places)));
    }
    let sentences = [
        (found.barred && found.nowhere.is_empty(), "nothing passes the filters"),
        (found.untimely && !found.barred, "nothing is from that time"),
        (found.newest && found.total > 0, "no words to search for: these are the newest"),
        (found.wordless && found.total > 0, "no memory has these words; these are similar in meaning"),
    ];
    told.extend(sentences.into_iter().filter(|(so, _)| *so).map(|(_, sentence)| sentence.to_owned()));
    if found.hidden > 0 {
        told.push(format!("{} hidden: `is:hidden` finds what was superseded or archived", found.hidden));
    }
    told
}

/// Joins the first few names, and says how many more there are.
fn few(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(NAMED_MAX).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(NAMED_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// What is shown of a hit.
struct Piece {
    /// A part of its text; `None` for the whole.
    part: Option<String>,
    tokens: usize,
}

impl Piece {
    /// Takes as much of a hit as fits into `spend`, when its day costs `day`; `None` if that is too little
    /// to say anything.
    fn of(
        hit: &Hit,
        day: usize,
        terms: &HashMap<String, f32>,
        analysis: &Analysis,
        spend: usize,
    ) -> Option<Self> {
        // The line above the text: date, address, title, and whether the document is hidden.
        let Tokens { head, text: whole } = hit.tokens();
        let top = head + day + hit.hidden.map_or(0, tokens) + HEAD_TOKENS;
        let left = spend.checked_sub(top)?;
        if whole <= left.min(SNIPPET_TOKENS_MAX) {
            return Some(Piece { part: None, tokens: top + whole });
        }
        if left < SNIPPET_TOKENS_MIN {
            return None;
        }
        let text = around(&hit.text, terms, analysis, left.min(SNIPPET_TOKENS_MAX));
        let tokens = top + tokens(&text);
        (tokens <= spend).then_some(Piece { part: Some(text), tokens })
    }

    fn from(self, hit: Hit) -> Snippet {
        let cut = self.part.is_some();
        Snippet { text: self.part.unwrap_or_else(|| hit.text.clone()), cut, tokens: self.tokens, hit }
    }
}

/// Takes as much of a hit as fits into `spend`; `None` if that is too little to say anything.
pub(super) fn snippet(
    hit: Hit,
    terms: &HashMap<String, f32>,
    analysis: &Analysis,
    spend: usize,
) -> Option<Snippet> {
    let day = hit.day.map_or(0, |day| tokens(&day.to_string()));
    Piece::of(&hit, day, terms, analysis, spend).map(|piece| piece.from(hit))
}

/// Returns the part of a text with the most telling terms, cut at whole words where there are any. A
/// statement mostly follows the name it is about, so more is shown after the terms than before.
fn around(text: &str, terms: &HashMap<String, f32>, analysis: &Analysis, budget: usize) -> String {
    let words: Vec<(usize, &str)> = text
        .split_whitespace()
        .flat_map(pieces)
        .map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
        .collect();
    // A piece may cost more within its word than alone.
    let cost: Vec<usize> = words.iter().map(|(_, word)| tokens(word).max(word.len().div_ceil(3))).collect();
    let worth = worths(text, &words, terms, analysis);
    // The ellipses before and after the part cost up to four tokens.
    let budget = budget.saturating_sub(4);
    // A third is reserved for what follows the words, unless they need all of it.
    let spends = [budget - budget / 3, budget];
    let best = spends.into_iter().map(|spend| best_part(&cost, &worth, spend)).find(|part| !part.is_empty());
    let shown = widened(best.unwrap_or_default(), &cost, budget);
    let Some((from, to)) = words.get(shown.start).zip(words.get(shown.end.wrapping_sub(1))) else {
        return String::new();
    };
    let part = &text[from.0..to.0 + to.1.len()];
    let before = if from.0 > 0 { "… " } else { "" };
    let behind = if to.0 + to.1.len() < text.trim_end().len() { " …" } else { "" };
    format!("{before}{part}{behind}")
}

/// Returns what each word is worth by the terms it has: more for rare terms, and less the more often the
/// text repeats one. A whole identifier has terms that its parts do not have.
fn worths(
    text: &str,
    words: &[(usize, &str)],
    terms: &HashMap<String, f32>,
    analysis: &Analysis,
) -> Vec<u64> {
    const SCALE: f32 = 1_000_000.0;
    // Words worth less than this part of the best one count nothing, so that they take no room from its
    // context.
    const FAINT: u64 = 10;
    let has = |(at, word): &(usize, &str)| -> Vec<String> {
        // A pair of characters may fall into two pieces; it counts in the one where it ends.
        let before = text[..*at].chars().next_back().filter(|c| is_east_asian(*c));
        let whole = &text[at - before.map_or(0, char::len_utf8)..at + word.len()];
        analysis.terms(whole).into_iter().filter(|term| terms.contains_key(term)).collect()
    };
    let having: Vec<Vec<String>> = words.iter().map(has).collect();
    let mut times: HashMap<&str, f32> = HashMap::new();
    having.iter().flatten().for_each(|term| *times.entry(term).or_default() += 1.0);
    let worth = |term: &String| (terms[term] * SCALE / times[term.as_str()]).max(1.0) as u64;
    let mut worths: Vec<u64> = having.iter().map(|having| having.iter().map(worth).sum()).collect();
    let most = worths.iter().copied().max().unwrap_or(0);
    worths.iter_mut().filter(|worth| **worth < most / FAINT).for_each(|worth| *worth = 0);
    worths
}

/// Returns the most valuable run of words that fits the budget, from its first to its last word of worth.
fn best_part(cost: &[usize], worth: &[u64], budget: usize) -> Range<usize> {
    let (mut best, mut start, mut spent, mut value) = ((0, 0..0), 0, 0, 0);
    for end in 0..cost.len() {
        spent += cost[end];
        value += worth[end];
        while start <= end && (spent > budget || worth[start] == 0) {
            spent -= cost[start];
            value -= worth[start];
            start += 1;
        }
        if value > best.0 {
            best = (value, start..end + 1);
        }
    }
    best.1
}

/// Widens a part as far as the budget allows: a third of the room before it, the rest after it.
fn widened(part: Range<usize>, cost: &[usize], budget: usize) -> Range<usize> {
    let Range { mut start, mut end } = part;
    let mut left = budget.saturating_sub(cost[start..end].iter().sum());
    let keep = left - left / 3;
    let before = |start: &mut usize, left: &mut usize, keep: usize| {
        while *start > 0 && *left >= keep + cost[*start - 1] {
            *start -= 1;
            *left -= cost[*start];
        }
    };
    before(&mut start, &mut left, keep);
    while end < cost.len() && left >= cost[end] {
        left -= cost[end];
        end += 1;
    }
    // Room left at the end of the text goes to what stands before the part.
    if end == cost.len() {
        before(&mut start, &mut left, 0);
    }
    start..end
}

/// Splits a word into pieces that may be cut apart. A word stays whole unless it is as long as a sentence,
/// as all Chinese text is.
fn pieces(word: &str) -> Vec<&str> {
    if word.len() <= LONG_WORD || (word.is_ascii() && word.len() <= LONG_ASCII_WORD) {
        return vec![word];
    }
    let (mut found, mut rest) = (Vec::new(), word);
    while let Some((end, _)) = rest.char_indices().nth(PIECE_CHARS) {
        let (piece, left) = rest.split_at(end);
        found.push(piece);
        rest = left;
    }
    found.push(rest);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippets_are_cut_around_what_matched() {
        let analysis = Analysis::of("english").expect("known");
        let terms = |words: &str| -> HashMap<String, f32> {
            analysis.terms(words).into_iter().map(|term| (term, 1.0)).collect()
        };
        let hay = "straw ".repeat(200);
        let rows: String =
            (100..200).map(|row| format!("| row{row} | value {row} of this row |\n")).collect();
        for (text, asked, shown) in [
            (format!("{hay}the needle is here {hay}"), "needle", "needle is here straw straw"),
            // What is said of it stands behind it, even at the end.
            (format!("{hay}vault {hay}the vault passphrase is correct horse"), "vault passphrase", "horse"),
            (format!("{hay}the passphrase {}", "is hidden here ".repeat(4)), "passphrase", "hidden here"),
            (
                format!("a vault {}the vault passphrase is correct horse {hay}", "straw ".repeat(22)),
                "vault passphrase",
                "passphrase is correct horse",
            ),
            // A part that every row has is worth little beside the whole.
            (rows.clone(), "row150", "row150 | value 150 of this row"),
            (format!("needle {hay}"), "needle", "needle straw"),
        ] {
            let cut = around(&text, &terms(asked), &analysis, 40);
            assert!(cut.contains(shown) && tokens(&cut) <= 40, "{asked}: {cut}");
        }
        let cut = around(&format!("{hay}the needle is here {hay}"), &terms("needle"), &analysis, 40);
        assert!(cut.starts_with("… straw") && cut.ends_with("straw …"), "{cut}");
        assert_eq!(around("short", &terms("needle"), &analysis, 40), "short");
        assert!(around(&hay, &HashMap::new(), &analysis, 40).starts_with("straw"));
    }

    #[test]
    fn a_budget_is_never_exceeded_and_something_is_said() {
        let analysis = Analysis::of("english").expect("known");
        for text in ["many words here ", "\u{6211}\u{559c}\u{6b22}\u{7eff}\u{8336}\u{3002}", "q7Zx"] {
            for spend in 0..200 {
                let address = "file:/memories/a.md".into();
                let hit = Hit { address, text: text.repeat(200), ..Hit::default() };
                match snippet(hit, &HashMap::new(), &analysis, spend) {
                    Some(snippet) => assert!(snippet.tokens <= spend && snippet.text.len() > 8, "{spend}"),
                    None => assert!(spend < 60, "{text} {spend}"),
                }
            }
        }
    }
}
