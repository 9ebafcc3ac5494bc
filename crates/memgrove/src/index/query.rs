//! What is asked: plain words, and a few signs for those who want to be exact.
//!
//! | sign | meaning |
//! |---|---|
//! | `"exact words"` | they stand there, in this order |
//! | `word*` | a word that begins so |
//! | `-word` | without this word |
//! | `shape:records` `type:task` `tag:tea` `importance:high` | only these |
//! | `since:2024-05-01` `since:7d` `before:yesterday` | by date |
//! | `in:projects` | only beneath this address or folder |
//! | `is:hidden` | what was superseded, has ended or not begun, or was archived, too |
//! | `last week`, `in July 2023` | plain words that name a time |

use super::analysis::{Analysis, folded, is_stop_word};
use super::dates::{self, Asked};
use crate::clock::Timestamp;
use crate::document::{Shape, Weight};
use crate::error::{Error, Kind, Result};

/// A query, understood.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    /// What was typed, without the signs: for names and phrases.
    pub(crate) plain: String,
    /// The words with their terms, without those that say nothing.
    pub(crate) words: Vec<(String, Vec<String>)>,
    /// Beginnings of words.
    pub(crate) prefixes: Vec<String>,
    /// Words in a row, folded, with their terms.
    pub(crate) phrases: Vec<(String, Vec<String>)>,
    /// Terms that must not be there.
    pub(crate) without: Vec<String>,
    /// Which documents may be found at all.
    pub(crate) filter: Filter,
    /// The time that the words name.
    pub(crate) asked: Option<Asked>,
}

/// Which documents may be found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) shape: Option<Shape>,
    pub(crate) kind: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) importance: Option<Weight>,
    pub(crate) since: Option<i64>,
    pub(crate) before: Option<i64>,
    pub(crate) within: Option<String>,
    pub(crate) hidden: bool,
}

impl Filter {
    /// Whether it lets everything pass that is not hidden.
    pub(crate) fn is_open(&self) -> bool {
        *self == Filter { hidden: self.hidden, ..Filter::default() }
    }
}

impl Query {
    /// Whether it is one word and no question: who types that looks for the word itself.
    pub(crate) fn is_one_word(&self) -> bool {
        self.words.len() + self.prefixes.len() == 1 && self.phrases.is_empty() && !self.plain.contains(' ')
    }

    /// Understands a query.
    ///
    /// # Errors
    /// `Invalid` for a sign with a value that it does not take.
    pub(crate) fn parse(text: &str, analysis: &Analysis, now: Timestamp) -> Result<Query> {
        let mut query = Query::default();
        let mut plain: Vec<&str> = Vec::new();
        for (index, part) in text.split('"').enumerate() {
            // Every second part stands in quotes; the last one may lack its end.
            if index % 2 == 1 {
                let words = folded(part.trim());
                if !words.is_empty() {
                    plain.push(part.trim());
                    query.phrases.push((words, analysis.terms(part)));
                }
                continue;
            }
            for word in part.split_whitespace() {
                if !query.sign(word, analysis, now)? {
                    plain.push(word);
                }
            }
        }
        query.plain = plain.join(" ");
        let unquoted: String = text.split('"').step_by(2).collect::<Vec<_>>().join(" ");
        let mut told = Vec::new();
        if let Some((asked, words)) = dates::asked(&unquoted, now) {
            query.asked = Some(asked);
            told = words;
        }
        for word in plain {
            let bare = folded(word.trim_matches(|c: char| !c.is_alphanumeric()));
            if is_stop_word(&bare) || told.contains(&bare) {
                continue;
            }
            let terms = analysis.terms(word);
            if !terms.is_empty() {
                query.words.push((word.to_owned(), terms));
            }
        }
        Ok(query)
    }

    /// Takes a word that is a sign.
    fn sign(&mut self, word: &str, analysis: &Analysis, now: Timestamp) -> Result<bool> {
        if let Some(rest) = word.strip_prefix('-').filter(|rest| rest.starts_with(char::is_alphanumeric)) {
            self.without.extend(analysis.terms(rest));
            return Ok(true);
        }
        if let Some(start) = word.strip_suffix('*').filter(|start| start.chars().any(char::is_alphanumeric)) {
            self.prefixes.push(folded(start));
            return Ok(true);
        }
        let Some((key, value)) = word.split_once(':').filter(|(_, value)| !value.is_empty()) else {
            return Ok(false);
        };
        let wrong = |what: &str, hint: String| {
            Err(Error::new(Kind::Invalid, format!("`{}` is not {what}", value.escape_debug())).hint(hint))
        };
        let when = || dates::start_ms(value, now);
        match key {
            "shape" => match Shape::named(value) {
                Some(shape) => self.filter.shape = Some(shape),
                None => {
                    return wrong(
                        "a shape",
                        format!("choose from: {}", Shape::ALL.map(Shape::name).join(", ")),
                    );
                }
            },
            "importance" => match Weight::named(value) {
                Some(weight) => self.filter.importance = Some(weight),
                None => return wrong("an importance", "choose from: low, medium, high".to_owned()),
            },
            "since" | "before" => match (key, when()) {
                ("since", Some(ms)) => self.filter.since = Some(ms),
                (_, Some(ms)) => self.filter.before = Some(ms),
                (_, None) => {
                    return wrong("a date", "such as 2024-05-01, 7d, yesterday or last-week".to_owned());
                }
            },
            "type" => self.filter.kind = Some(value.to_lowercase()),
            "tag" => self.filter.tags.push(folded(value)),
            "in" => self.filter.within = Some(value.to_owned()),
            "is" if value == "hidden" => self.filter.hidden = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Every term that is looked up, each once.
    pub(crate) fn terms(&self) -> Vec<&str> {
        let words = self.words.iter().flat_map(|(_, terms)| terms);
        let phrases = self.phrases.iter().flat_map(|(_, terms)| terms);
        let mut found: Vec<&str> = Vec::new();
        for term in words.chain(phrases) {
            if !found.contains(&term.as_str()) {
                found.push(term);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Query> {
        let now = "2026-11-16T12:00:00Z".parse().expect("a moment");
        Query::parse(text, &Analysis::of("english").expect("known"), now)
    }

    #[test]
    fn signs_are_taken_out_and_words_stay() {
        let query = parsed("What teas -coffee does Ann drink? shape:record tag:Hot type:Task since:2024 \"green tea\" oolo* http://x").expect("good");
        assert_eq!(query.terms(), ["tea", "ann", "drink", "green", "http", "x", "http://x"]);
        assert_eq!(query.without, ["coffe"]);
        assert_eq!(query.prefixes, ["oolo"]);
        assert_eq!(query.phrases, [("green tea".to_owned(), vec!["green".to_owned(), "tea".to_owned()])]);
        assert_eq!(
            (query.filter.shape, query.filter.kind.as_deref(), query.filter.tags.as_slice()),
            (Some(Shape::Records), Some("task"), &["hot".to_owned()][..])
        );
        assert!(query.filter.since.is_some() && !query.filter.is_open());
    }

    #[test]
    fn wrong_values_are_told() {
        let told = |text: &str| parsed(text).map(drop).map_err(|error| error.message().to_owned());
        assert_eq!(told("shape:cube"), Err("`cube` is not a shape".to_owned()));
        assert_eq!(told("importance:huge"), Err("`huge` is not an importance".to_owned()));
        assert_eq!(told("since:whenever"), Err("`whenever` is not a date".to_owned()));
        assert_eq!(told("any:thing else:"), Ok(()));
    }

    #[test]
    fn plain_words_name_times() {
        let query = parsed("what happened last week").expect("good");
        assert!(query.asked.is_some());
        assert_eq!(query.terms(), ["happen"]);
    }
}
