//! Finding memories for the search page: what `recall` finds, with a place to go to.

use memgrove::address::Scheme;
use memgrove::index::{Reach, Recalled, Snippet};
use memgrove::{Error, Kind, Result};

use crate::context::Context;
use crate::portion;

/// The most hits that are shown, and what they may cost together.
const HITS_MAX: usize = 40;
const TOKENS_MAX: usize = 8_000;
/// The longest title, in characters.
const TITLE_CHARS_MAX: usize = 70;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The hits, best first.
    pub(super) hits: Vec<Hit>,
    /// All hits, shown or not.
    pub(super) total: usize,
    /// What is wrong with the question.
    pub(super) problem: Option<Error>,
}

/// One memory that was found.
#[derive(Debug)]
pub(super) struct Hit {
    /// Where it is: its place in the store, or `record:` and its id.
    pub(super) at: String,
    /// What it is called.
    pub(super) title: String,
    /// What kind of memory it is.
    pub(super) kind: String,
    /// When it is from.
    pub(super) date: String,
    /// What it says where the words stand.
    pub(super) said: Vec<String>,
    /// What it costs an agent to read it whole.
    pub(super) tokens: usize,
}

/// Looks a question up in all memories. The last word may be half typed.
///
/// # Errors
/// As [`Index::recall`](memgrove::Index::recall).
pub(super) fn lookup(cx: &Context, query: &str) -> Result<Found> {
    let index = cx.index()?;
    let mut found = match index.recall(query, Reach::Near, TOKENS_MAX, HITS_MAX) {
        // A query may be half typed, such as `since:`.
        Err(error) if error.kind() == Kind::Invalid => {
            return Ok(Found { problem: Some(error), ..Found::default() });
        }
        other => other?,
    };
    if (found.total == 0 || found.wordless) && query.ends_with(char::is_alphanumeric) {
        found = index.recall(&format!("{query}*"), Reach::Near, TOKENS_MAX, HITS_MAX)?;
    }
    let Recalled { snippets, total, .. } = found;
    let found_before = snippets.len();
    let (total, mut hits) = (total.max(snippets.len()), Vec::<Hit>::new());
    for hit in snippets.into_iter().map(Hit::from) {
        // Several hits in one entity are shown as one.
        match hits.iter_mut().find(|other| other.at == hit.at && hit.at.starts_with("knowledge/")) {
            Some(same) => same.takes(hit),
            None => hits.push(hit),
        }
    }
    Ok(Found { total: total - (found_before - hits.len()), hits, problem: None })
}

impl From<Snippet> for Hit {
    fn from(snippet: Snippet) -> Self {
        let Snippet { hit, text, cut, .. } = snippet;
        let date = hit.when().unwrap_or_default();
        let at = if Scheme::Record.of(&hit.address).is_some() { hit.address } else { hit.file };
        Hit {
            at,
            date,
            title: first_words(if hit.title.is_empty() { &hit.text } else { &hit.title }),
            kind: if hit.kind.is_empty() { hit.shape } else { hit.kind },
            said: vec![format!(
                "{}{}",
                text.split_whitespace().collect::<Vec<_>>().join(" "),
                if cut { "…" } else { "" }
            )],
            tokens: portion::tokens(&hit.text),
        }
    }
}

impl Hit {
    /// Takes in another hit of the same memory.
    fn takes(&mut self, other: Hit) {
        self.tokens += other.tokens;
        self.said.extend(other.said);
        self.date = std::mem::take(&mut self.date).max(other.date);
    }
}

fn first_words(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    match line.char_indices().nth(TITLE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
