//! Who decides where memories go: a model, or the built-in rules.
//!
//! An agent never touches a byte. It is shown numbered blocks and links, and answers with numbers; the
//! caller checks the answer and moves the blocks. What is shown is data: nothing in it is an instruction,
//! and an answer can do no more than its plan can express.

pub mod frozen;
pub mod rules;

#[cfg(any(feature = "anthropic", feature = "openai"))]
mod answer;
#[cfg(any(feature = "anthropic", feature = "openai"))]
mod http;
#[cfg(any(feature = "anthropic", feature = "openai"))]
mod model;
#[cfg(any(feature = "anthropic", feature = "openai"))]
mod prompt;

#[cfg(feature = "anthropic")]
pub mod anthropic;
#[cfg(feature = "openai")]
pub mod openai;

#[cfg(any(feature = "anthropic", feature = "openai"))]
pub use http::{Patience, Price};

use serde::{Deserialize, Serialize};

use crate::error::Result;

/// What marks a fact that another has replaced, in the text of its block.
pub const SUPERSEDED: &str = "*(superseded ";

/// Makes small decisions over numbered blocks and link descriptions.
pub trait Agent: Send + Sync {
    /// What the agent is called in the log of decisions.
    fn name(&self) -> &str;

    /// Decides where each new fact belongs: one placement for each.
    ///
    /// # Errors
    /// `Io`, `Busy`, `Denied` or `Invalid` when no usable answer came.
    fn place(&self, ask: &PlaceAsk) -> Result<Advice<Vec<Placement>>>;

    /// Decides how a note that has grown too large is split.
    ///
    /// # Errors
    /// As [`Agent::place`].
    fn split(&self, ask: &SplitAsk) -> Result<Advice<SplitPlan>>;

    /// Decides whether a note answers a question, and which of its links are worth following.
    ///
    /// # Errors
    /// As [`Agent::place`].
    fn follow(&self, ask: &FollowAsk) -> Result<Advice<Follow>>;

    /// Decides which files of another system become which notes.
    ///
    /// # Errors
    /// As [`Agent::place`].
    fn migrate(&self, ask: &MigrateAsk) -> Result<Advice<MigrationPlan>>;
}

/// A decision, why it was made, and what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Advice<T> {
    /// What to do.
    pub plan: T,
    /// Why, for people.
    pub reason: String,
    /// What it cost to ask.
    #[serde(default)]
    pub spent: Spent,
}

impl<T> Advice<T> {
    /// Advice that cost nothing.
    pub fn free(plan: T, reason: impl Into<String>) -> Self {
        Advice { plan, reason: reason.into(), spent: Spent::default() }
    }
}

/// What it cost to ask a model.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Requests, retries included.
    pub calls: u32,
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// Dollars, where the prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

impl Spent {
    /// Adds what something else cost.
    pub fn add(&mut self, other: Spent) {
        self.calls += other.calls;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.usd = match (self.usd, other.usd) {
            (Some(one), Some(two)) => Some(one + two),
            (one, two) => one.or(two),
        };
    }

    /// Whether it cost nothing.
    pub fn is_nothing(&self) -> bool {
        self.calls == 0
    }
}

/// A note as an agent sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NoteView {
    /// Its path.
    pub path: String,
    /// Its title.
    pub title: String,
    /// Its blocks that may be moved, in order.
    pub blocks: Vec<Numbered>,
    /// The notes that it lists.
    pub links: Vec<LinkLine>,
}

/// One block of a note.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Numbered {
    /// Its number in the note.
    pub number: usize,
    /// The level of a heading; 0 for anything else.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub level: u8,
    /// What it says.
    pub text: String,
}

fn is_zero(level: &u8) -> bool {
    *level == 0
}

/// One line of a note's list of links.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkLine {
    /// Its number in the note.
    pub number: usize,
    /// Where it leads.
    pub path: String,
    /// What is there.
    pub description: String,
}

/// New facts, and the note that they came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceAsk {
    /// The note.
    pub note: NoteView,
    /// The facts.
    pub facts: Vec<String>,
}

/// Where one fact belongs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// What to do with it.
    pub action: Action,
    /// The block or link that the action is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<usize>,
    /// Blocks that say what no longer holds: kept, and marked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supersedes: Vec<usize>,
}

/// What to do with a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Nothing: the block `at` says it already.
    Known,
    /// Put it at the end of the section whose heading is the block `at`.
    Under,
    /// Put it right behind the block `at`.
    After,
    /// Put it before the first section.
    Top,
    /// Hand it on to the note that the link `at` leads to.
    Child,
}

/// A note that has grown too large.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitAsk {
    /// The note.
    pub note: NoteView,
    /// The size that no note should pass.
    pub bytes_max: usize,
}

/// How a note comes apart. Blocks that no part names stay where they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitPlan {
    /// By what the blocks were told apart.
    pub strategy: Strategy,
    /// The notes that come of it.
    pub parts: Vec<SplitPart>,
}

/// By what blocks are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// What they are about.
    Topic,
    /// When they are from.
    Time,
    /// Whom or what they name.
    Entity,
    /// Nothing but their number.
    Size,
}

impl Strategy {
    /// The strategy's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Topic => "topic",
            Strategy::Time => "time",
            Strategy::Entity => "entity",
            Strategy::Size => "size",
        }
    }
}

/// One note that comes of a split.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SplitPart {
    /// Its name, beneath the note that it came from.
    pub name: String,
    /// Its title, should none of its blocks be one.
    #[serde(default)]
    pub title: String,
    /// What is in it, for the link that leads there.
    pub description: String,
    /// The numbers of the blocks and links that it takes.
    pub blocks: Vec<usize>,
}

/// A question, and the note that a search has come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowAsk {
    /// The question.
    pub query: String,
    /// The note.
    pub note: NoteView,
}

/// Where a search goes from a note.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Follow {
    /// Blocks that answer the question.
    pub excerpts: Vec<usize>,
    /// Links worth following, the most promising first, with how promising they are from 0 to 100.
    pub links: Vec<Prospect>,
}

/// How promising a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prospect {
    /// The number of the link.
    pub link: usize,
    /// From 0 to 100.
    pub percent: u8,
}

/// Files of another system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrateAsk {
    /// The files.
    pub files: Vec<SourceFile>,
    /// The size that no note should pass.
    pub bytes_max: usize,
}

/// One file of another system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// Its number.
    pub number: usize,
    /// Its path there, without an extension.
    pub path: String,
    /// Its size.
    pub bytes: usize,
    /// How it begins.
    pub head: String,
}

/// Which files become which notes. Every file is in exactly one note.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MigrationPlan {
    /// The notes.
    pub notes: Vec<MigratedNote>,
}

/// A note and the files that it is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MigratedNote {
    /// Its path.
    pub path: String,
    /// The numbers of the files, in order.
    pub files: Vec<usize>,
}
