//! How text becomes terms: folded, split, stemmed, and the same for documents and queries.
//!
//! | text | terms |
//! |---|---|
//! | `Café`, `CAFE` | `cafe` |
//! | `running` | `run` (by the language's stemmer) |
//! | `parseHttpHeader` | `pars`, `http`, `header`, and `parsehttphead`, the stem of the whole |
//! | `src/index_file.rs` | `src`, `index`, `file`, `rs`, and `src/index_file.rs` |
//! | `v1.2.3` | `v1`, `2`, `3`, `v1.2.3`, and `1.2.3`, as others write it |
//! | `node7` | `node`, `7`, and `node7` |
//! | `C#`, `C++` | `c`, and `c#` or `c++` |
//! | `東京都` | `東京`, `京都`, and each character; a query has only the pairs |
//! | `the`, `what`, `did` | nothing: every question has them |
//! | `IT`, `US`, `May` | `it`, `us`, `may`: written so, they are names |

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, OnceLock, PoisonError};

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;

use super::wordpiece::Quickly;

/// A term longer than this is cut: nobody types it, and it may be a page of base64.
const TERM_BYTES_MAX: usize = 64;
/// How many words and stems are remembered: finding a stem takes longer than all else that is done
/// with a word, and few words make up most of every text.
const STEMS_MAX: usize = 16_384;
/// Longer words are hardly ever seen twice.
const STEMMED_BYTES_MAX: usize = 24;
/// A word that is another one with a sign behind it is not longer.
const SIGNED_BYTES_MAX: usize = 8;

/// Words that say nothing of what is asked: those of questions above all.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "aren", "as", "at", "be", "been",
    "before", "being", "between", "both", "but", "by", "can", "could", "couldn", "d", "did", "didn", "do",
    "does", "doesn", "doing", "don", "done", "during", "each", "for", "from", "had", "hadn", "has", "hasn",
    "have", "haven", "having", "he", "her", "here", "hers", "him", "his", "how", "i", "if", "in", "into",
    "is", "isn", "it", "its", "just", "ll", "m", "may", "me", "might", "mine", "more", "most", "must", "my",
    "no", "nor", "not", "of", "on", "only", "onto", "or", "other", "our", "ours", "over", "own", "re", "s",
    "same", "shall", "she", "should", "shouldn", "so", "some", "such", "t", "than", "that", "the", "their",
    "theirs", "them", "then", "there", "these", "they", "this", "those", "to", "too", "under", "us", "ve",
    "very", "was", "wasn", "we", "were", "weren", "what", "when", "where", "which", "who", "whom", "whose",
    "why", "will", "with", "won", "would", "wouldn", "you", "your", "yours",
];

/// None of them is longer.
const STOP_BYTES_MAX: usize = 7;

/// The languages that have a stemmer.
const LANGUAGES: &[(&str, Algorithm)] = &[
    ("arabic", Algorithm::Arabic),
    ("danish", Algorithm::Danish),
    ("dutch", Algorithm::Dutch),
    ("english", Algorithm::English),
    ("finnish", Algorithm::Finnish),
    ("french", Algorithm::French),
    ("german", Algorithm::German),
    ("greek", Algorithm::Greek),
    ("hungarian", Algorithm::Hungarian),
    ("italian", Algorithm::Italian),
    ("norwegian", Algorithm::Norwegian),
    ("portuguese", Algorithm::Portuguese),
    ("romanian", Algorithm::Romanian),
    ("russian", Algorithm::Russian),
    ("spanish", Algorithm::Spanish),
    ("swedish", Algorithm::Swedish),
    ("tamil", Algorithm::Tamil),
    ("turkish", Algorithm::Turkish),
];

/// Told one term.
type Tell<'a> = &'a mut dyn FnMut(&str);

/// Words and their stems.
type Stems = HashMap<Box<str>, Box<str>>;

/// Turns text into terms.
pub struct Analysis {
    language: &'static str,
    stemmer: Option<Stemmer>,
    stems: Mutex<Stems>,
}

impl Analysis {
    /// The analysis for a language; `None` for one that has no stemmer. `none` stems nothing.
    ///
    /// English is the default, and a safe one: its rules leave words of other languages alone, or
    /// treat documents and queries in the same way.
    pub fn of(language: &str) -> Option<Analysis> {
        if language == "none" {
            return Some(Analysis { language: "none", stemmer: None, stems: Mutex::default() });
        }
        let (language, algorithm) = LANGUAGES.iter().find(|(name, _)| *name == language)?;
        Some(Analysis { language, stemmer: Some(Stemmer::create(*algorithm)), stems: Mutex::default() })
    }

    /// The language's name.
    pub fn language(&self) -> &'static str {
        self.language
    }

    /// The names of all languages.
    pub fn languages() -> impl Iterator<Item = &'static str> {
        LANGUAGES.iter().map(|(name, _)| *name).chain(["none"])
    }

    /// Returns the terms of a text's words, without those of whole identifiers: what every text has that
    /// contains these words, even as part of something longer.
    pub(crate) fn parts(&self, text: &str) -> Vec<String> {
        let mut parts = Vec::new();
        let mut stems = self.stems.lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in chunks(text) {
            self.parts_of(chunk, &mut stems, &mut |term| parts.push(term.to_owned()));
        }
        keep_pairs(&mut parts);
        parts
    }

    /// Returns the terms that a word of a query asks for. They are those of a text, but of Chinese,
    /// Japanese and Korean only the pairs, where there are any: a single character stands in too many
    /// words.
    pub(crate) fn asked(&self, word: &str) -> Vec<String> {
        let mut terms = self.terms(word);
        keep_pairs(&mut terms);
        terms
    }

    /// Whether words are indexed by their stems, and not as they are written.
    pub(crate) fn stems(&self) -> bool {
        self.stemmer.is_some()
    }

    /// The terms of a text, in order.
    pub fn terms(&self, text: &str) -> Vec<String> {
        let mut terms = Vec::with_capacity(text.len() / 6);
        self.each_term(text, &mut |term| terms.push(term.to_owned()));
        terms
    }

    /// Tells every term of a text, in order.
    pub(crate) fn each_term(&self, text: &str, tell: Tell<'_>) {
        let mut stems = self.stems.lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in chunks(text) {
            self.chunk(chunk, &mut stems, tell);
        }
    }

    /// Returns the term of one folded word; `None` for a stop word.
    pub fn term(&self, word: &str) -> Option<String> {
        let mut found = None;
        let mut stems = self.stems.lock().unwrap_or_else(PoisonError::into_inner);
        self.folded_word(word, &mut stems, &mut |term| found = Some(term.to_owned()));
        found
    }

    fn folded_word(&self, word: &str, stems: &mut Stems, tell: Tell<'_>) {
        if is_stop_word(word) {
            return;
        }
        let Some(stemmer) = &self.stemmer else { return tell_cut(word, tell) };
        if word.len() > STEMMED_BYTES_MAX {
            return tell_cut(&stemmer.stem(word), tell);
        }
        if let Some(stem) = stems.get(word) {
            return tell_cut(stem, tell);
        }
        let stem: Box<str> = stemmer.stem(word).into();
        tell_cut(&stem, tell);
        if stems.len() >= STEMS_MAX {
            stems.clear();
        }
        stems.insert(word.into(), stem);
    }

    fn chunk(&self, chunk: &str, stems: &mut Stems, tell: Tell<'_>) {
        let parts = self.parts_of(chunk, stems, tell);
        let whole = chunk.trim_matches(|c: char| !c.is_alphanumeric());
        // Possessives and contractions are no identifiers.
        if parts < 2 || whole.len() > TERM_BYTES_MAX || whole.contains(['\'', '\u{2019}']) {
            return;
        }
        let number =
            whole.strip_prefix(['v', 'V']).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if let Some(number) = number {
            tell(&folded(number));
        }
        match whole.chars().all(char::is_alphanumeric) {
            // Folded, it looks like any other word, and is searched for as one.
            true => self.folded_word(&folded(whole), stems, tell),
            false => tell(&folded(whole)),
        }
    }

    /// Tells the terms of each part of a chunk, and returns how many parts there are.
    fn parts_of(&self, chunk: &str, stems: &mut Stems, tell: Tell<'_>) -> usize {
        let mut parts = 0;
        let has_signs = chunk.contains(['#', '+']);
        for part in chunk.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()) {
            for hump in humps(part) {
                parts += 1;
                self.word(hump, stems, tell);
            }
            if has_signs && let Some(signed) = signed(chunk, part) {
                tell(&folded(signed));
            }
        }
        parts
    }

    fn word(&self, word: &str, stems: &mut Stems, tell: Tell<'_>) {
        if word.is_ascii() {
            if !word.bytes().any(|byte| byte.is_ascii_uppercase()) {
                return self.folded_word(word, stems, tell);
            }
            let lower = word.to_ascii_lowercase();
            return match is_named_so(word) && is_stop_word(&lower) {
                true => tell(&lower),
                false => self.folded_word(&lower, stems, tell),
            };
        }
        let word = folded(word);
        let mut run: Vec<char> = Vec::new();
        let mut plain = String::new();
        for c in word.chars().chain(['\0']) {
            if !run.is_empty() && !is_east_asian(c) {
                run.windows(2).for_each(|pair| tell(&pair.iter().collect::<String>()));
                run.drain(..).for_each(|c| tell(c.encode_utf8(&mut [0; 4])));
            }
            if is_east_asian(c) || c == '\0' {
                if !plain.is_empty() {
                    self.folded_word(&plain, stems, tell);
                    plain.clear();
                }
                run.extend((c != '\0').then_some(c));
            } else {
                plain.push(c);
            }
        }
    }
}

/// Drops single characters of scripts without spaces where there are pairs of them.
fn keep_pairs(terms: &mut Vec<String>) {
    let count = |term: &String| term.chars().take_while(|c| is_east_asian(*c)).count();
    if terms.iter().any(|term| count(term) == 2) {
        terms.retain(|term| count(term) != 1 || term.chars().nth(1).is_some());
    }
}

/// Tells a stem, cut if it is too long.
fn tell_cut(stem: &str, tell: Tell<'_>) {
    let mut end = stem.len().min(TERM_BYTES_MAX);
    while !stem.is_char_boundary(end) {
        end -= 1;
    }
    if end > 0 {
        tell(&stem[..end]);
    }
}

/// Whether a word is too common to say what is asked for.
pub(crate) fn is_stop_word(word: &str) -> bool {
    static WORDS: OnceLock<HashSet<&str, Quickly>> = OnceLock::new();
    word.len() <= STOP_BYTES_MAX && WORDS.get_or_init(|| STOP_WORDS.iter().copied().collect()).contains(word)
}

/// Whether a stop word written like this is a name: in capitals, or a month.
fn is_named_so(word: &str) -> bool {
    word == "May" || (word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase()))
}

/// Returns a part of a chunk with the sign behind it that makes it another word: `C#`, `C++`.
fn signed<'a>(chunk: &'a str, part: &str) -> Option<&'a str> {
    let start = part.as_ptr() as usize - chunk.as_ptr() as usize;
    let rest = &chunk[start + part.len()..];
    let sign = match rest.strip_prefix('#') {
        Some(behind) => usize::from(!behind.starts_with(char::is_alphanumeric)),
        None => 2 * usize::from(rest.starts_with("++")),
    };
    let is_word = part.len() <= SIGNED_BYTES_MAX && part.starts_with(char::is_alphabetic);
    (sign > 0 && is_word).then(|| &chunk[start..start + part.len() + sign])
}

/// A text without what spelling may vary in: letter case, accents, width.
pub fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let lower = text.nfkd().filter(|c| !('\u{300}'..='\u{36f}').contains(c)).flat_map(char::to_lowercase);
    lower.flat_map(|c| if c == 'ß' { ['s', 's'] } else { [c, '\0'] }).filter(|c| *c != '\0').nfc().collect()
}

/// The pieces between white space and brackets: words, paths, versions.
fn chunks(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| {
        c.is_whitespace()
            || "()[]{}<>\"`|,;!?*=".contains(c)
            || (!c.is_ascii() && !c.is_alphanumeric() && c != '\u{2019}')
    })
    .filter(|chunk| !chunk.is_empty())
}

/// The fewest letters that are split from the digits beside them.
const LETTERS_MIN: usize = 3;

/// The parts of a word that capital letters and digits mark: `parseHttpHeader` has three,
/// `HTTPServer` and `node7` two; `v1` and `3f9a` are one.
fn humps(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let plain = |byte: u8| !byte.is_ascii_uppercase() && !byte.is_ascii_digit();
        if rest.is_ascii() && rest.bytes().skip(1).all(plain) {
            return Some(std::mem::take(&mut rest));
        }
        let chars: Vec<(usize, char)> = rest.char_indices().collect();
        let are_letters = |from: usize| {
            let word = chars.get(from..from + LETTERS_MIN);
            word.is_some_and(|word| word.iter().all(|(_, c)| c.is_alphabetic()))
        };
        let border = (1..chars.len()).find(|&at| {
            let (before, here) = (chars[at - 1].1, chars[at].1);
            let after = chars.get(at + 1).map(|(_, c)| *c);
            (before.is_lowercase() && here.is_uppercase())
                || (before.is_uppercase() && here.is_uppercase() && after.is_some_and(char::is_lowercase))
                || (here.is_numeric() && at.checked_sub(LETTERS_MIN).is_some_and(are_letters))
                || (before.is_numeric() && are_letters(at))
        });
        let (hump, left) = rest.split_at(border.map_or(rest.len(), |at| chars[at].0));
        rest = left;
        Some(hump)
    })
}

/// Whether a character is of a script that has no spaces between words.
pub fn is_east_asian(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{2fdf}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, terms: &[&str]) {
        assert_eq!(Analysis::of("english").expect("it is known").terms(text), terms, "{text}");
    }

    #[test]
    fn the_table_of_terms_holds() {
        assert!(STOP_WORDS.is_sorted() && STOP_WORDS.iter().all(|word| is_stop_word(word)));
        check("Café CAFE", &["cafe", "cafe"]);
        check("She was running to the shops", &["run", "shop"]);
        check("parseHttpHeader", &["pars", "http", "header", "parsehttphead"]);
        check("HTTPServer", &["http", "server", "httpserver"]);
        check("src/index_file.rs", &["src", "index", "file", "rs", "src/index_file.rs"]);
        check("v1.2.3", &["v1", "2", "3", "1.2.3", "v1.2.3"]);
        check("1.2.3 v2 V3.4-rc", &["1", "2", "3", "1.2.3", "v2", "v3", "4", "rc", "3.4-rc", "v3.4-rc"]);
        check("node7 handleLogin397", &["node", "7", "node7", "handl", "login", "397", "handlelogin397"]);
        check("3f9a2bc8 30min 100km", &["3f9a2bc8", "30", "min", "30min", "100km"]);
        check("SQLiteConnectionPools", &["sq", "lite", "connect", "pool", "sqliteconnectionpool"]);
        check("sqliteconnectionpools", &["sqliteconnectionpool"]);
        check("C# or C++17, F#.", &["c", "c#", "c", "c++", "17", "c++17", "f", "f#"]);
        check("issue#12 a.md#tea D#", &["issu", "12", "issue#12", "md", "tea", "a.md#tea", "d#"]);
        check("is IT done by the US, or by us? May they see it in May?", &["it", "us", "may", "see", "may"]);
        check("Alice's don't", &["alic"]);
        check("東京都", &["東京", "京都", "東", "京", "都"]);
        check("Straße ﬁne", &["strass", "fine"]);
        check("end. Start", &["end", "start"]);
        check("", &[]);
    }

    #[test]
    fn parts_are_what_any_text_with_these_words_has() {
        let analysis = Analysis::of("english").expect("known");
        assert_eq!(analysis.parts("index_file.rs running"), ["index", "file", "rs", "run"]);
        assert_eq!(analysis.parts("東京都 a7"), ["東京", "京都", "a7"]);
        assert_eq!((analysis.asked("東京"), analysis.asked("東")), (vec!["東京".into()], vec!["東".into()]));
    }

    #[test]
    fn every_language_has_a_stemmer() {
        assert!(Analysis::languages().all(|language| Analysis::of(language).is_some()));
        assert!(Analysis::of("klingon").is_none());
        assert_eq!(Analysis::of("german").expect("known").terms("Häusern"), ["haus"]);
        assert_eq!(Analysis::of("none").expect("known").terms("running"), ["running"]);
    }
}
