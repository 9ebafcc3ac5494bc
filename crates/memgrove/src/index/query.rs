//! What is asked: plain words, and a few signs for those who want to be exact.
//!
//! | sign | meaning |
//! |---|---|
//! | `"exact words"` | they stand there, in this order |
//! | `word*` | a word that begins so |
//! | `-word` `-"exact words"` `-word*` `-tag:tea` | without this |
//! | `shape:records` `type:task` `tag:"green tea"` `importance:high` | only these |
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
    /// Words in a row.
    pub(crate) phrases: Vec<Phrase>,
    /// What must not be there: terms, beginnings of words, words in a row.
    pub(crate) without: Vec<String>,
    pub(crate) without_prefixes: Vec<String>,
    pub(crate) without_phrases: Vec<Phrase>,
    /// Which documents may be found at all, and which of them may not.
    pub(crate) filter: Filter,
    pub(crate) unwanted: Vec<Filter>,
    /// The numbers of documents that are known already.
    pub(crate) except: Vec<usize>,
    /// The time that the words name.
    pub(crate) asked: Option<Asked>,
}

/// Words in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phrase {
    /// As they are written, folded.
    pub(crate) words: String,
    /// The terms that a text with these words has.
    pub(crate) terms: Vec<String>,
}

impl Phrase {
    fn new(text: &str, analysis: &Analysis) -> Self {
        Phrase { words: folded(text.trim()), terms: analysis.parts(text) }
    }
}

/// Which documents may be found: of several shapes, kinds, importances or places, any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) shapes: Vec<Shape>,
    pub(crate) kinds: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) importances: Vec<Weight>,
    pub(crate) since: Option<i64>,
    pub(crate) before: Option<i64>,
    pub(crate) within: Vec<String>,
    pub(crate) hidden: bool,
}

impl Filter {
    /// Whether it lets everything pass that is not hidden.
    pub(crate) fn is_open(&self) -> bool {
        *self == Filter { hidden: self.hidden, ..Filter::default() }
    }

    /// Takes a condition. `false` for what is none.
    fn takes(&mut self, key: &str, value: &str, now: Timestamp) -> Result<bool> {
        let wrong = |what: &str, hint: String| {
            Err(Error::new(Kind::Invalid, format!("`{}` is not {what}", value.escape_debug())).hint(hint))
        };
        match key {
            "shape" => match Shape::named(value) {
                Some(shape) => self.shapes.push(shape),
                None => {
                    let names = Shape::ALL.map(Shape::name).join(", ");
                    return wrong("a shape", format!("choose from: {names}"));
                }
            },
            "importance" => match Weight::named(value) {
                Some(weight) => self.importances.push(weight),
                None => return wrong("an importance", "choose from: low, medium, high".to_owned()),
            },
            "since" | "before" => match (key, dates::start_ms(value, now)) {
                ("since", Some(ms)) => self.since = self.since.max(Some(ms)),
                (_, Some(ms)) => self.before = Some(self.before.map_or(ms, |before| before.min(ms))),
                (_, None) => {
                    let such = "such as 2024-05-01, 2024-05, May, 7d, yesterday or last-week";
                    return wrong("a date", such.to_owned());
                }
            },
            "type" => self.kinds.push(folded(value)),
            "tag" => self.tags.push(folded(value)),
            "in" => self.within.push(value.to_owned()),
            "is" if value == "hidden" => self.hidden = true,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// What a query is made of: `-tag:"green tea"` is one piece.
struct Piece<'a> {
    negated: bool,
    key: &'a str,
    value: &'a str,
    quoted: bool,
    /// As it was typed, up to where the next may begin.
    typed: &'a str,
}

/// The signs that take a value.
const KEYS: [&str; 8] = ["shape", "type", "tag", "importance", "since", "before", "in", "is"];

/// The first piece of a text, and what follows. What stands in quotes may lack its end.
fn piece(text: &str) -> Option<(Piece<'_>, &str)> {
    let text = text.trim_start();
    let signed =
        text.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || c == '"'));
    let bare = signed.unwrap_or(text);
    let has_value = |rest: &&str| !rest.is_empty() && !rest.starts_with(char::is_whitespace);
    let keyed =
        |key: &&'static str| Some((*key, bare.strip_prefix(*key)?.strip_prefix(':').filter(has_value)?));
    let (key, rest) = KEYS.iter().find_map(keyed).unwrap_or(("", bare));
    let (value, quoted, rest) = match rest.strip_prefix('"') {
        Some(inside) => {
            let (value, rest) = inside.split_once('"').unwrap_or((inside, ""));
            (value.trim(), true, rest)
        }
        None => {
            let end = rest.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(rest.len());
            (&rest[..end], false, &rest[end..])
        }
    };
    let typed = &text[..text.len() - rest.len()];
    (!text.is_empty()).then_some((Piece { negated: signed.is_some(), key, value, quoted, typed }, rest))
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
        let (mut plain, mut spoken): (Vec<&str>, Vec<&str>) = Default::default();
        let mut rest = text;
        while let Some((piece, after)) = piece(rest) {
            rest = after;
            if piece.value.is_empty() || query.sign(&piece, analysis, now)? {
                continue;
            }
            plain.push(if piece.quoted { piece.value } else { piece.typed });
            if piece.quoted {
                query.phrases.push(Phrase::new(piece.value, analysis));
            } else {
                spoken.push(piece.typed);
            }
        }
        query.plain = plain.join(" ");
        let mut told = Vec::new();
        if let Some((asked, words)) = dates::asked(&spoken.join(" "), now) {
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

    /// Takes a piece that is a sign.
    fn sign(&mut self, piece: &Piece<'_>, analysis: &Analysis, now: Timestamp) -> Result<bool> {
        let Piece { negated, key, value, quoted, .. } = *piece;
        if !key.is_empty() {
            if negated && matches!(key, "since" | "before" | "is") {
                let said = format!("`-{key}:` means nothing");
                return Err(
                    Error::new(Kind::Invalid, said).hint("since: and before: are each other's opposite")
                );
            }
            let mut filter = if negated { Filter::default() } else { std::mem::take(&mut self.filter) };
            let taken = filter.takes(key, value, now)?;
            match negated {
                true => self.unwanted.push(filter),
                false => self.filter = filter,
            }
            return Ok(taken);
        }
        let start = value.strip_suffix('*').filter(|start| !quoted && start.contains(char::is_alphanumeric));
        if let Some(start) = start {
            let prefixes = if negated { &mut self.without_prefixes } else { &mut self.prefixes };
            prefixes.push(folded(start));
        } else if negated {
            let phrase = Phrase::new(value, analysis);
            match phrase.terms.as_slice() {
                // Whoever names an identifier means all of it, and not each of its parts.
                [term] if !quoted => self.without.push(term.clone()),
                [] if !quoted => {}
                _ => self.without_phrases.push(phrase),
            }
        }
        Ok(negated || start.is_some())
    }

    /// Every term that is looked up, each once.
    pub(crate) fn terms(&self) -> Vec<&str> {
        let words = self.words.iter().flat_map(|(_, terms)| terms);
        let phrases = self.phrases.iter().flat_map(|phrase| &phrase.terms);
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
        let phrase = |words: &str, terms: [&str; 2]| Phrase {
            words: words.to_owned(),
            terms: terms.map(str::to_owned).to_vec(),
        };
        assert_eq!(query.phrases, [phrase("green tea", ["green", "tea"])]);
        let Filter { shapes, kinds, tags, .. } = &query.filter;
        assert_eq!(
            (&shapes[..], &kinds[..], &tags[..]),
            (&[Shape::Records][..], &["task".into()][..], &["hot".into()][..])
        );
        assert!(query.filter.since.is_some() && !query.filter.is_open());
        let query =
            parsed("x -\"green tea\" -src/a.rs -tag:bug in:\"My Folder\" tag:\"a b\" -dep* any:\"c d")
                .expect("good");
        assert_eq!(query.without_phrases[0], phrase("green tea", ["green", "tea"]));
        assert_eq!((query.without_phrases[1].words.as_str(), query.without.len()), ("src/a.rs", 0));
        assert_eq!(
            (query.unwanted[0].tags.as_slice(), query.without_prefixes.as_slice()),
            (&["bug".to_owned()][..], &["dep".to_owned()][..])
        );
        assert_eq!(
            (query.filter.within.as_slice(), query.filter.tags.as_slice()),
            (&["My Folder".to_owned()][..], &["a b".to_owned()][..])
        );
        assert_eq!((query.plain.as_str(), query.phrases.len()), ("x any: c d", 1));
    }

    #[test]
    fn wrong_values_are_told() {
        let told = |text: &str| parsed(text).map(drop).map_err(|error| error.message().to_owned());
        assert_eq!(told("shape:cube"), Err("`cube` is not a shape".to_owned()));
        assert_eq!(told("importance:huge"), Err("`huge` is not an importance".to_owned()));
        assert_eq!(told("since:whenever"), Err("`whenever` is not a date".to_owned()));
        assert_eq!(told("-since:2024"), Err("`-since:` means nothing".to_owned()));
        assert_eq!(told("any:thing else: is:odd -is"), Ok(()));
    }

    #[test]
    fn plain_words_name_times() {
        let query = parsed("what happened last week").expect("good");
        assert!(query.asked.is_some());
        assert_eq!(query.terms(), ["happen"]);
        assert!(parsed("tea since:yesterday").expect("good").asked.is_none());
    }
}
