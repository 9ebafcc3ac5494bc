//! Taking notes apart and putting them together.

use std::io;

use memgrove::Result;
use memgrove::address::Scheme;
use memgrove::shapes::notes::{MergeResult, MergeSize, SplitResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{cost, guarded};
use crate::context::{Context, Guard};
use crate::page::{Ink, Page};
use crate::verbs::show_change;
use crate::verbs::{Effect, On, Verb};

/// Split a note into linked notes, keeping every block
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct NoteSplit {
    /// The note; the root memory by default
    path: Option<String>,
    /// Show the plan, but change nothing
    #[arg(long)]
    #[serde(default)]
    dry_run: bool,
    #[command(flatten)]
    #[serde(flatten)]
    #[schemars(skip)]
    guard: Guard,
}

/// What came of a split.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SplitAnswer {
    #[serde(flatten)]
    #[schemars(with = "Divided")]
    result: SplitResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

/// The part of a result that has a schema.
#[derive(JsonSchema)]
#[allow(dead_code)] // Its schema is all that is wanted.
struct Divided {
    path: String,
    new_files: Vec<String>,
    size_bytes: usize,
    reasons: Vec<String>,
}

impl Verb for NoteSplit {
    const NAME: &'static str = "note_split";
    const TOOL: &'static str = "split_memory";
    const TITLE: &'static str = "Split a note";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli, On::Notes];
    type Answer = SplitAnswer;

    fn run(self, cx: &Context) -> Result<SplitAnswer> {
        let notes = if self.dry_run { cx.rehearsing_notes()? } else { cx.changing_notes()? };
        let guarded = guarded(&notes, &self.guard, self.path.as_deref())?;
        let done = notes.split(cx.note(Self::NAME, &self.guard), self.path.as_deref(), &guarded)?;
        let change = done.change.filter(|_| !self.dry_run).map(|change| change.as_str().to_owned());
        Ok(SplitAnswer { result: done.outcome, change, replayed: done.replayed, dry_run: self.dry_run })
    }

    fn show(answer: &SplitAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let result = &answer.result;
        page.put(if answer.dry_run { "would split " } else { "split " })?;
        page.ink(Ink::Strong, &Scheme::Note.address(&result.path))?;
        page.ink(Ink::Dim, &format!(" ({} bytes now){}\n", result.size_bytes, cost(&result.spent)))?;
        result.reasons.iter().try_for_each(|reason| page.ink(Ink::Dim, &format!("{reason}\n")))?;
        result.new_files.iter().try_for_each(|path| page.line(&format!("  note:{path}")))?;
        show_change(answer.change.as_deref(), answer.replayed, page)
    }
}

/// Merge notes back into the one they were split from
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct NoteMerge {
    /// The note to merge into; the root memory by default
    path: Option<String>,
    /// Which notes to merge; all by default
    #[arg(long = "child", value_name = "PATH")]
    #[serde(default)]
    children: Vec<String>,
    /// Even if the note becomes too large
    #[arg(long)]
    #[serde(default)]
    any_size: bool,
    /// Show what would happen, but change nothing
    #[arg(long)]
    #[serde(default)]
    dry_run: bool,
    #[command(flatten)]
    #[serde(flatten)]
    #[schemars(skip)]
    guard: Guard,
}

/// What came of a merge.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MergeAnswer {
    #[serde(flatten)]
    #[schemars(with = "Merged")]
    result: MergeResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

/// The part of a result that has a schema.
#[derive(JsonSchema)]
#[allow(dead_code)] // Its schema is all that is wanted.
struct Merged {
    path: String,
    merged: Vec<String>,
    relinked: Vec<String>,
    size_bytes: usize,
}

impl Verb for NoteMerge {
    const NAME: &'static str = "note_merge";
    const TOOL: &'static str = "merge_memory";
    const TITLE: &'static str = "Merge notes";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Notes];
    type Answer = MergeAnswer;

    fn run(self, cx: &Context) -> Result<MergeAnswer> {
        let notes = if self.dry_run { cx.rehearsing_notes()? } else { cx.changing_notes()? };
        let size = if self.any_size { MergeSize::Any } else { MergeSize::Fitting };
        let note = cx.note(Self::NAME, &self.guard);
        let guarded = guarded(&notes, &self.guard, self.path.as_deref())?;
        let done = notes.merge(note, self.path.as_deref(), &self.children, size, &guarded)?;
        let change = done.change.filter(|_| !self.dry_run).map(|change| change.as_str().to_owned());
        Ok(MergeAnswer { result: done.outcome, change, replayed: done.replayed, dry_run: self.dry_run })
    }

    fn show(answer: &MergeAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let result = &answer.result;
        page.put(if answer.dry_run { "would merge into " } else { "merged into " })?;
        page.ink(Ink::Strong, &Scheme::Note.address(&result.path))?;
        page.ink(Ink::Dim, &format!(" ({} bytes)\n", result.size_bytes))?;
        result.merged.iter().try_for_each(|path| page.line(&format!("  note:{path}")))?;
        if !result.relinked.is_empty() {
            page.line(&format!("links changed in: {}", result.relinked.join(", ")))?;
        }
        show_change(answer.change.as_deref(), answer.replayed, page)
    }
}
