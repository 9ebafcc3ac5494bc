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
//! | `is:hidden` | also what is hidden: superseded, ended, not yet begun, or archived |
//! | `last week`, `since yesterday`, `in July 2023` | plain words that speak of a time |
//!
//! The names of signs may be written in capital letters, and quotes as printers set them.

use super::analysis::{Analysis, folded, is_stop_word};
use super::border::Border;
use super::dates;
use super::spoken::{self, Asked};
use crate::document::{Shape, Weight};
use crate::error::{Error, Kind, Result};

/// A parsed query.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    /// What was typed, without the signs: for names and phrases.
    pub(crate) plain: String,
    /// The words that carry meaning, with their terms.
    pub(crate) words: Vec<(String, Vec<String>)>,
    /// Beginnings of words.
    pub(crate) prefixes: Vec<String>,
    /// Words in a row.
    pub(crate) phrases: Vec<Phrase>,
    /// What must not be there: terms, beginnings of words, words in a row.
    pub(crate) without: Vec<String>,
    pub(crate) without_prefixes: Vec<String>,
    pub(crate) without_phrases: Vec<Phrase>,
    /// Which documents may be found at all, and which are excluded.
    pub(crate) filter: Filter,
    pub(crate) unwanted: Vec<Filter>,
    /// The numbers of documents that the asker already knows.
    pub(crate) except: Vec<usize>,
    /// The time that the words name, and the words that name it.
    pub(crate) asked: Option<Asked>,
    pub(crate) of_time: Vec<String>,
    /// The terms by which a text may name each part of that time: any of them will do.
    pub(crate) time_parts: Vec<Vec<String>>,
    /// Whether it is a stop word and nothing else: a name, if some document has it.
    pub(crate) is_stop_word: bool,
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
    pub(crate) fn new(text: &str, analysis: &Analysis) -> Self {
        let mut terms = analysis.parts(text);
        // A phrase is not about capital letters.
        terms.retain(|term| !is_stop_word(term));
        Phrase { words: folded(text.trim()), terms }
    }
}

/// Which documents may be found. Several shapes, kinds, importances or places are alternatives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) shapes: Vec<Shape>,
    pub(crate) kinds: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) importances: Vec<Weight>,
    pub(crate) since: Option<Border>,
    pub(crate) before: Option<Border>,
    pub(crate) within: Vec<String>,
    pub(crate) hidden: bool,
}

impl Filter {
    /// Whether it lets every document pass that is not hidden.
    pub(crate) fn is_open(&self) -> bool {
        *self == Filter { hidden: self.hidden, ..Filter::default() }
    }

    /// Adds a condition.
    fn take(&mut self, key: &str, value: &str, now: &jiff::Zoned) -> Result<()> {
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
            "since" | "before" => match (key, dates::border(value, now)) {
                ("since", Some(border)) => self.since = self.since.max(Some(border)),
                (_, Some(border)) => self.before = self.before.into_iter().chain([border]).min(),
                (_, None) => {
                    let such = "such as 2024-05-01, 2024-05, May, 7d, yesterday or last-week";
                    return wrong("a date", such.to_owned());
                }
            },
            "type" => self.kinds.push(folded(value)),
            "tag" => self.tags.push(folded(value)),
            "in" => self.within.push(value.to_owned()),
            _ if value.eq_ignore_ascii_case("hidden") => self.hidden = true,
            _ => return wrong("what something can be", "only `is:hidden` exists".to_owned()),
        }
        Ok(())
    }
}

/// What a query is made of: `-tag:"green tea"` is one piece.
struct Piece<'a> {
    negated: bool,
    key: &'a str,
    value: &'a str,
    quoted: bool,
    /// The piece as typed, up to where the next one may begin.
    typed: &'a str,
}

/// Words that ask for nothing but whatever is from a time.
const ANYTHING: [&str; 9] =
    ["anything", "everything", "happen", "happened", "happening", "happens", "new", "news", "something"];

/// Stop words that name nothing beside other words, however they are written.
const NAMELESS: [&str; 4] = ["and", "may", "not", "or"];

/// Words that say only that something is asked, behind one of the others: `what do we use`, `what is used`.
const ASKING: [&str; 4] = ["know", "use", "used", "using"];
const BEFORE_ASKING: [&str; 8] = ["are", "be", "been", "i", "is", "was", "we", "you"];

/// The signs that take a value.
const KEYS: [&str; 8] = ["shape", "type", "tag", "importance", "since", "before", "in", "is"];

/// Splits off the first piece of a text, and returns what follows. A closing quote may be missing.
fn piece(text: &str) -> Option<(Piece<'_>, &str)> {
    let text = text.trim_start();
    let signed =
        text.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || c == '"'));
    let bare = signed.unwrap_or(text);
    let has_value = |rest: &&str| !rest.is_empty() && !rest.starts_with(char::is_whitespace);
    let keyed = |key: &&'static str| {
        let (typed, rest) = bare.split_once(':')?;
        (typed.eq_ignore_ascii_case(key) && has_value(&rest)).then_some((*key, rest))
    };
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

/// Returns the folded words that a query asks for: without excluded words, conditions and stop words,
/// unless all are stop words.
pub fn sought(text: &str) -> Vec<String> {
    let text = text.replace(['\u{201c}', '\u{201d}', '\u{201e}'], "\"");
    let (mut words, mut rest) = (Vec::new(), text.as_str());
    while let Some((piece, after)) = piece(rest) {
        rest = after;
        if !piece.negated && piece.key.is_empty() {
            let value = folded(piece.value);
            let parts = value.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
            words.extend(parts.map(str::to_owned));
        }
    }
    if words.iter().any(|word| !is_stop_word(word)) {
        words.retain(|word| !is_stop_word(word));
    }
    words
}

/// Returns the places of words that carry no meaning in a question, because it asks for others.
fn asking(plain: &[&str]) -> Vec<usize> {
    let bare = |word: &&str| folded(word.trim_matches(|c: char| !c.is_alphanumeric()));
    let words: Vec<String> = plain.iter().map(bare).collect();
    let is_asking = |at: &usize| match at.checked_sub(1) {
        Some(before) => ASKING.contains(&&*words[*at]) && BEFORE_ASKING.contains(&&*words[before]),
        None => words[*at] == "tell" && words.get(1).is_some_and(|word| is_stop_word(word)),
    };
    let (asking, others): (Vec<usize>, Vec<usize>) = (0..words.len()).partition(is_asking);
    if others.iter().all(|at| is_stop_word(&words[*at])) { Vec::new() } else { asking }
}

impl Query {
    /// Whether it is a single word and no time: then the word itself is looked for.
    pub(crate) fn is_one_word(&self) -> bool {
        self.words.len() + self.prefixes.len() == 1
            && self.phrases.is_empty()
            && !self.plain.contains(' ')
            && self.asked.is_none()
    }

    /// Whether it asks for nothing in particular, so that the newest documents are the answer.
    pub(crate) fn is_open(&self) -> bool {
        self.terms().is_empty()
            && self.prefixes.is_empty()
            && self.phrases.is_empty()
            && self.asked.is_none()
            && self.filter.is_open()
            && self.unwanted.is_empty()
    }

    /// Whether it asks for something without letters or digits, such as an emoji.
    pub(crate) fn is_unspeakable(&self) -> bool {
        self.is_open() && !self.plain.is_empty() && !self.plain.contains(char::is_alphanumeric)
    }

    /// Parses a query.
    ///
    /// # Errors
    /// `Invalid` for a sign with a value that it does not take.
    pub(crate) fn parse(text: &str, analysis: &Analysis, now: &jiff::Zoned) -> Result<Query> {
        let mut query = Query::default();
        let (mut plain, mut spoken): (Vec<&str>, Vec<&str>) = Default::default();
        let text = text.replace(['\u{201c}', '\u{201d}', '\u{201e}'], "\"");
        let mut rest = text.as_str();
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
        query.take_words(&plain, &spoken.join(" "), analysis, now);
        Ok(query)
    }

    /// Takes the words that carry meaning, and the time that they name.
    fn take_words(&mut self, plain: &[&str], spoken: &str, analysis: &Analysis, now: &jiff::Zoned) {
        // A number alone is searched for as a number, though it may be a year.
        let is_number = spoken.bytes().all(|byte| byte.is_ascii_digit());
        let asked = spoken::asked(spoken, now).filter(|_| !is_number);
        let (mut asked, told) = asked.map_or((None, Vec::new()), |(asked, told)| (Some(asked), told));
        let is_named = asked.as_ref().is_some_and(|asked| asked.named);
        let (mut of_time, mut others) = (Vec::new(), Vec::new());
        let passed_over = asking(plain);
        // Where all is in capitals, they mark no names.
        let marks_names = plain.len() == 1 || plain.iter().any(|word| word.contains(char::is_lowercase));
        for (at, word) in plain.iter().enumerate() {
            let bare = folded(word.trim_matches(|c: char| !c.is_alphanumeric()));
            let mut parts = dates::words(word);
            parts.retain(|part| part != "s");
            let is_told = !parts.is_empty() && parts.iter().all(|part| told.contains(part));
            let is_name = marks_names && !NAMELESS.contains(&bare.as_str());
            let terms = match is_told {
                true if !is_named || spoken::is_bound(&bare) => Vec::new(),
                true => self.take_time(word, parts, analysis),
                false if is_stop_word(&bare) && !is_name => Vec::new(),
                false if passed_over.contains(&at) => Vec::new(),
                false => analysis.asked(word),
            };
            if !terms.is_empty() {
                let words = if is_told { &mut of_time } else { &mut others };
                words.push((self.words.len(), bare));
                self.words.push(((*word).to_owned(), terms));
            }
        }
        if let Some(asked) = &mut asked
            && self.prefixes.is_empty()
            && self.phrases.is_empty()
            && others.iter().all(|(_, word)| ANYTHING.contains(&word.as_str()))
        {
            asked.alone = true;
            asked.firm |= asked.named;
            let mut at = 0..;
            self.words.retain(|_| at.next().is_some_and(|at| of_time.iter().any(|(place, _)| *place == at)));
        }
        self.asked = asked;
        if let ([word], None, []) = (plain, &self.asked, &self.prefixes[..]) {
            let bare = folded(word.trim_matches(|c: char| !c.is_alphanumeric()));
            if is_stop_word(&bare) && self.words.iter().all(|(_, terms)| *terms == [&*bare]) {
                self.words = vec![((*word).to_owned(), vec![bare])];
                self.is_stop_word = true;
            }
        }
    }

    /// Takes a word that names a time, and returns its terms. `may` is a stop word elsewhere.
    fn take_time(&mut self, word: &str, parts: Vec<String>, analysis: &Analysis) -> Vec<String> {
        let asked = |word: &str, else_: &[String]| {
            let terms = analysis.asked(word);
            if terms.is_empty() { else_.to_vec() } else { terms }
        };
        self.of_time.push(word.to_owned());
        for spellings in dates::spellings(&parts) {
            let terms = spellings.iter().flat_map(|part| asked(part, std::slice::from_ref(part)));
            self.time_parts.push(terms.collect());
        }
        asked(word, &parts)
    }

    /// Takes a piece that is a sign, and returns whether it was one.
    fn sign(&mut self, piece: &Piece<'_>, analysis: &Analysis, now: &jiff::Zoned) -> Result<bool> {
        let Piece { negated, key, value, quoted, .. } = *piece;
        if !key.is_empty() {
            if negated && matches!(key, "since" | "before" | "is") {
                let said = format!("`-{key}:` has no meaning");
                return Err(Error::new(Kind::Invalid, said)
                    .hint("since: and before: are opposites: use the other one"));
            }
            let mut filter = if negated { Filter::default() } else { std::mem::take(&mut self.filter) };
            filter.take(key, value, now)?;
            match negated {
                true => self.unwanted.push(filter),
                false => self.filter = filter,
            }
            return Ok(true);
        }
        let start = value.strip_suffix('*').filter(|start| !quoted && start.contains(char::is_alphanumeric));
        if let Some(start) = start {
            let prefixes = if negated { &mut self.without_prefixes } else { &mut self.prefixes };
            prefixes.push(folded(start));
        } else if negated {
            let phrase = Phrase::new(value, analysis);
            match phrase.terms.as_slice() {
                // Excluding an identifier excludes all of it, not each of its parts.
                [term] if !quoted => self.without.push(term.clone()),
                [] if !quoted => {}
                _ => self.without_phrases.push(phrase),
            }
        }
        Ok(negated || start.is_some())
    }

    /// The same without its words.
    pub(crate) fn without_words(&self) -> Query {
        Query { words: Vec::new(), is_stop_word: false, ..self.clone() }
    }

    /// Returns the terms that stand only in words that name a time.
    pub(crate) fn terms_of_time(&self) -> Vec<&str> {
        let (of_time, others): (Vec<_>, Vec<_>) =
            self.words.iter().partition(|(word, _)| self.of_time.contains(word));
        let others = || others.iter().flat_map(|(_, terms)| terms.iter());
        let phrases = || self.phrases.iter().flat_map(|phrase| phrase.terms.iter());
        let terms = of_time.iter().flat_map(|(_, terms)| terms.iter());
        let terms = terms.filter(|term| !others().chain(phrases()).any(|other| other == *term));
        terms.map(String::as_str).collect()
    }

    /// Returns every term to look up, each once.
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
        let now: jiff::Timestamp = "2026-11-16T12:00:00Z".parse().expect("a moment");
        let now = now.to_zoned(jiff::tz::TimeZone::UTC);
        Query::parse(text, &Analysis::of("english").expect("known"), &now)
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
        assert_eq!(told("-since:2024"), Err("`-since:` has no meaning".to_owned()));
        assert_eq!(told("is:archived"), Err("`archived` is not what something can be".to_owned()));
        assert_eq!(told("any:thing else: -is"), Ok(()));
    }

    #[test]
    fn plain_words_name_times() {
        let query = parsed("what happened last week").expect("good");
        assert!(query.asked.is_some());
        assert!(query.terms().is_empty(), "nothing else is asked");
        assert!(parsed("tea since:yesterday").expect("good").asked.is_none());
        let told = |text: &str| {
            let query = parsed(text).expect("good");
            let asked = query.asked.clone().expect("a time");
            (asked.firm, asked.alone, query.terms().join(" "))
        };
        assert_eq!(told("what did I do in October?"), (true, true, "octob".to_owned()));
        assert_eq!(told("camping in October 2023"), (false, false, "camp octob 2023".to_owned()));
        assert_eq!(told("yesterday's tea"), (true, false, "tea".to_owned()));
        assert_eq!(told("tea recently"), (false, false, "tea recent".to_owned()));
        assert!(parsed("2023").expect("good").asked.is_none(), "a number alone");
    }

    #[test]
    fn words_that_only_ask_are_passed_over() {
        for (text, terms) in [
            ("which library do we use in the frontend?", "librari frontend"),
            ("tell me about Ann", "ann"),
            ("what do we know of Ann in April 2026", "ann april 2026"),
            ("what do we use?", "use"),
            ("what did I use in October", "octob"),
            ("which tool is used for tests", "tool test"),
            ("what did Ann use", "ann use"),
            ("use cases", "use case"),
            ("who leads IT?", "lead it"),
            ("WHO LEADS IT", "lead"),
            ("tea AND coffee", "tea coffe"),
            ("IT", "it"),
            ("us", "us"),
            ("meetings since May 2024", "meet may 2024"),
            ("May I drink tea", "drink tea"),
        ] {
            assert_eq!(parsed(text).expect("good").terms().join(" "), terms, "{text}");
        }
    }

    #[test]
    fn signs_may_be_written_in_other_ways() {
        let query = parsed("Tag:drink SINCE:3d \u{201c}green tea\u{201d}").expect("good");
        assert_eq!((query.filter.tags.as_slice(), query.phrases.len()), (&["drink".to_owned()][..], 1));
        assert!(query.filter.since.is_some());
        let open =
            |text: &str| parsed(text).map(|query| (query.is_open(), query.is_unspeakable())).expect("good");
        assert_eq!(
            (open("of the"), open("\u{1f389}"), open("tag:x")),
            ((true, false), (true, true), (false, false))
        );
    }
}
