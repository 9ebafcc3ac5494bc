//! Finding memories by what they say: `recall`, `similar`, and `brief` for a start.

mod similar;

use std::io;

use memgrove::index::{self, Brief, Reach, Recalled, Snippet};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::more::More;
use super::{Effect, On, Verb};
use crate::context::Context;
use crate::page::{Ink, Page, counted};

pub(crate) use similar::Similar;

/// How many tokens an answer may take, unless more are asked for.
const TOKENS_MAX: usize = 1_000;
/// Tokens set aside for the line at the end of an answer; a smaller budget gets just that line.
const RECEIPT_TOKENS: usize = 40;
/// The answer of a store without memories.
const NOTHING_YET: &str = "nothing is remembered here yet";
/// How many memories are considered for an answer.
const HITS_MAX: usize = 50;

/// Find memories by question or keywords, best first, within a token budget
///
/// Query syntax: "exact words", word*, -word, -tag:x, shape:records, type:task, tag:x, importance:high,
/// since:7d, before:2024-05-01, in:FOLDER, is:hidden, and plain phrases such as last week.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Recall {
    /// Words, or filters such as tag:x type:task since:7d in:folder
    query: String,
    #[command(flatten)]
    #[serde(skip)]
    more: More,
    /// Token budget
    #[arg(long, default_value_t = TOKENS_MAX)]
    #[serde(default = "tokens_max")]
    budget: usize,
    /// Maximum number of memories
    #[arg(long, default_value_t = HITS_MAX)]
    #[serde(default = "hits_max")]
    #[schemars(skip)]
    limit: usize,
    /// Also show weak matches
    #[arg(long)]
    #[serde(default)]
    #[schemars(skip)]
    all: bool,
    /// Explain each score (not counted in the budget)
    #[arg(long)]
    #[serde(default)]
    #[schemars(skip)]
    explain: bool,
}

fn tokens_max() -> usize {
    TOKENS_MAX
}

fn hits_max() -> usize {
    HITS_MAX
}

/// What was found, and what it cost.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RecallAnswer {
    hits: Vec<HitAnswer>,
    receipt: Receipt,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HitAnswer {
    address: String,
    shape: String,
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    kind: String,
    title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    date: String,
    /// Why it is shown only to who asks for it, if so: it was superseded, archived, or is not true now.
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<&'static str>,
    text: String,
    /// The text goes on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    importance: &'static str,
    /// How often it was read.
    uses: u64,
    /// What it refers to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<String>,
    /// Its file in the store, and where it stands there, in bytes.
    file: String,
    span: [usize; 2],
    /// Others that say the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    alike: Vec<String>,
    score: f32,
    /// What the score is made of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    explain: Vec<(String, f32)>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Receipt {
    shown: usize,
    /// Others that say the same as one that is shown.
    #[serde(skip_serializing_if = "is_zero")]
    alike: usize,
    left_out: usize,
    matching: usize,
    /// Others that fit only faintly: `all` finds them.
    #[serde(skip_serializing_if = "is_zero")]
    faint: usize,
    /// Even more match.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    at_least: bool,
    /// No memory has any of the words.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    no_word: bool,
    tokens: usize,
    budget: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    corrected: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
    /// What is to be known of all this.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    next: String,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // As serde asks.
pub(super) fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// How much of a budget is left for the memories themselves.
fn for_memories(budget: usize) -> usize {
    budget.saturating_sub(RECEIPT_TOKENS)
}

impl RecallAnswer {
    fn new(cx: &Context, recalled: Recalled, budget: usize, limit: usize, explain: bool) -> Result<Self> {
        let (shown, left_out) = (recalled.snippets.len(), recalled.left_out);
        let bound = if shown == limit { "limit" } else { "budget" };
        let mut next = match (shown, left_out) {
            (0, 0) if !recalled.notices.is_empty() => Vec::new(),
            (0, 0) if cx.index()?.status()?.documents == 0 => vec![NOTHING_YET.to_owned()],
            (0, 0) => vec!["other words may find more".to_owned()],
            (_, 0) => vec!["`read ADDRESS` shows all of it".to_owned()],
            (0, left) => vec![format!("{left} match: raise the {bound}")],
            (_, left) => {
                vec![format!("{left} more: raise the {bound}"), "`read ADDRESS` shows all of it".to_owned()]
            }
        };
        if recalled.faint > 0 {
            let weak = counted(recalled.faint, "weak match", "weak matches");
            next.insert(0, format!("{weak} (`{}`)", cx.option("all")));
        }
        let mut receipt = Receipt {
            shown,
            alike: recalled.snippets.iter().map(|snippet| snippet.hit.alike.len()).sum(),
            left_out,
            matching: recalled.total,
            faint: recalled.faint,
            at_least: recalled.at_least,
            no_word: recalled.wordless,
            tokens: budget,
            budget,
            corrected: recalled.corrected,
            unreadable: recalled.unreadable,
            notices: recalled.notices,
            next: next.join("; "),
        };
        receipt.tokens = recalled.tokens + index::tokens(&receipt.line());
        let hits =
            recalled.snippets.into_iter().map(|snippet| HitAnswer::new(cx, snippet, explain)).collect();
        Ok(RecallAnswer { hits, receipt })
    }

    fn show(&self, page: &mut Page<'_>) -> io::Result<()> {
        self.hits.iter().try_for_each(|hit| hit.show(page))?;
        for notice in &self.receipt.notices {
            page.ink(Ink::Warning, &format!("[{notice}]\n"))?;
        }
        page.ink(Ink::Dim, &self.receipt.line())
    }
}

impl Receipt {
    /// What was shown, what it cost, and how to get the rest.
    fn line(&self) -> String {
        let Receipt { shown, alike, left_out, tokens, budget, next, .. } = self;
        if *shown == 0 && *left_out == 0 {
            let next = if next.is_empty() { String::new() } else { format!("; {next}") };
            return format!("nothing found{next}\n");
        }
        let at_least = if self.at_least { "at least " } else { "" };
        let all = shown + alike + left_out;
        let alike = if *alike == 0 { String::new() } else { format!(" and {alike} alike") };
        format!("[{shown} of {at_least}{all} shown{alike}, {tokens} of {budget} tokens; {next}]\n")
    }
}

impl HitAnswer {
    fn new(cx: &Context, snippet: Snippet, explain: bool) -> Self {
        let Snippet { hit, text, cut, .. } = snippet;
        cx.note_shown(&hit.address, &hit.text);
        let round = |value: f32| (value * 1000.0).round() / 1000.0;
        let parts = hit.parts.entries().into_iter().filter(|(_, value)| explain && *value != 0.0);
        HitAnswer {
            explain: parts.map(|(name, value)| (name.to_owned(), round(value))).collect(),
            date: hit.day.map(|day| day.to_string()).unwrap_or_default(),
            address: hit.address,
            shape: hit.shape,
            kind: hit.kind,
            title: hit.title,
            text,
            cut,
            tags: hit.tags,
            hidden: hit.hidden,
            importance: hit.importance.name(),
            uses: hit.uses,
            links: hit.links,
            file: hit.file,
            span: [hit.span.start, hit.span.end],
            alike: hit.alike,
            score: round(hit.parts.total()),
        }
    }

    fn show(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.ink(Ink::Strong, &self.address)?;
        let facts = [self.date.as_str(), &self.title].into_iter().filter(|fact| !fact.is_empty());
        let facts = facts.collect::<Vec<_>>().join(" · ");
        let alike = match self.alike.len() {
            0 => String::new(),
            more => format!(" (+{more} alike)"),
        };
        let hidden = self.hidden.map(|why| format!(" ({why})")).unwrap_or_default();
        page.ink(Ink::Dim, &format!("  {facts}{hidden}{alike}\n"))?;
        for line in self.text.lines().filter(|line| !line.trim().is_empty()) {
            page.line(&format!("  {line}"))?;
        }
        if !self.explain.is_empty() {
            let parts: Vec<String> =
                self.explain.iter().map(|(name, value)| format!("{name} {value}")).collect();
            page.ink(Ink::Dim, &format!("  = {}: {}\n", self.score, parts.join(", ")))?;
        }
        Ok(())
    }
}

/// How far to search.
fn reach(all: bool) -> Reach {
    if all { Reach::All } else { Reach::Near }
}

impl Verb for Recall {
    const NAME: &'static str = "recall";
    const TITLE: &'static str = "Recall memories";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Core];
    const TEXT_ONLY: bool = true;
    const SEARCHES: bool = true;
    type Answer = RecallAnswer;

    fn run(self, cx: &Context) -> Result<RecallAnswer> {
        let query = self.more.behind(self.query);
        if query.trim().is_empty() {
            return Err(
                Error::new(Kind::Invalid, "the query is empty").hint("ask a question, or give a word or two")
            );
        }
        let (index, spend) = (cx.index()?, for_memories(self.budget));
        let recalled = index.recall(&query, reach(self.all), spend, self.limit)?;
        RecallAnswer::new(cx, recalled, self.budget, self.limit, self.explain)
    }

    fn show(answer: &RecallAnswer, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Show what matters in this store; use before starting work
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct BriefVerb {
    /// Token budget
    #[arg(long, default_value_t = TOKENS_MAX)]
    #[serde(default = "tokens_max")]
    budget: usize,
}

/// What matters in a store.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BriefAnswer {
    shapes: Vec<(String, usize)>,
    files: usize,
    tags: Vec<(String, usize)>,
    hits: Vec<HitAnswer>,
    left_out: usize,
    tokens: usize,
}

impl Verb for BriefVerb {
    const NAME: &'static str = "brief";
    const TITLE: &'static str = "Brief me";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Core];
    const TEXT_ONLY: bool = true;
    const SEARCHES: bool = true;
    type Answer = BriefAnswer;

    fn run(self, cx: &Context) -> Result<BriefAnswer> {
        let Brief { shapes, files, tags, snippets, tokens, left_out } = cx.index()?.brief(self.budget)?;
        Ok(BriefAnswer {
            shapes: shapes.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
            files,
            tags,
            hits: snippets.into_iter().map(|snippet| HitAnswer::new(cx, snippet, false)).collect(),
            left_out,
            tokens,
        })
    }

    fn show(answer: &BriefAnswer, page: &mut Page<'_>) -> io::Result<()> {
        if answer.shapes.is_empty() {
            return page.ink(Ink::Dim, &format!("{NOTHING_YET}\n"));
        }
        let shapes: Vec<String> =
            answer.shapes.iter().map(|(name, count)| format!("{count} in {name}")).collect();
        let all: usize = answer.shapes.iter().map(|(_, count)| count).sum();
        page.line(&format!("{all} memories: {}", shapes.join(", ")))?;
        if !answer.tags.is_empty() {
            let tags: Vec<String> =
                answer.tags.iter().map(|(tag, count)| format!("{tag} ({count})")).collect();
            page.line(&format!("tags: {}", tags.join(", ")))?;
        }
        answer.hits.iter().try_for_each(|hit| hit.show(page))?;
        match answer.left_out {
            0 => Ok(()),
            more => page.ink(Ink::Dim, &format!("[{more} more: `recall` finds them by words]\n")),
        }
    }
}
