//! Writing notes.

use std::io;
use std::path::PathBuf;

use memgrove::Result;
use memgrove::address::Scheme;
use memgrove::shapes::notes::{Mode, WriteResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{cost, guarded};
use crate::context::{Context, Guard};
use crate::page::{Ink, Page, counted};
use crate::verbs::more::More;
use crate::verbs::show_change;
use crate::verbs::{Effect, On, Verb};

/// Remember something; it is filed where it fits, and oversized notes are split
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct NoteWrite {
    /// What to remember [default: standard input]
    #[schemars(required)]
    content: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    more: More,
    /// The note; the root memory by default
    #[arg(long)]
    #[serde(default)]
    path: Option<String>,
    /// update (default), append or replace
    #[arg(long, value_enum, default_value_t, hide_default_value = true, hide_possible_values = true)]
    #[serde(default)]
    mode: WriteMode,
    /// Read the content from a file
    #[arg(long, value_name = "FILE", conflicts_with = "content")]
    #[serde(skip)]
    from: Option<PathBuf>,
    /// Show what would happen, but change nothing
    #[arg(long)]
    #[serde(skip)]
    dry_run: bool,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WriteMode {
    #[default]
    Update,
    Append,
    Replace,
}

impl From<WriteMode> for Mode {
    fn from(mode: WriteMode) -> Self {
        match mode {
            WriteMode::Update => Mode::Update,
            WriteMode::Append => Mode::Append,
            WriteMode::Replace => Mode::Replace,
        }
    }
}

/// What came of a write.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WriteAnswer {
    #[serde(flatten)]
    #[schemars(with = "Written")]
    result: WriteResult,
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
struct Written {
    success: bool,
    path: String,
    size_bytes: usize,
    split_triggered: bool,
    new_files: Vec<String>,
}

impl Verb for NoteWrite {
    const NAME: &'static str = "note_write";
    const TOOL: &'static str = "write_memory";
    const TITLE: &'static str = "Write memory";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Notes];
    type Answer = WriteAnswer;

    fn run(self, cx: &Context) -> Result<WriteAnswer> {
        let bytes = cx.text(self.more.behind_any(self.content), self.from.as_deref())?;
        let content = Context::utf8("the content", bytes)?;
        let notes = if self.dry_run { cx.rehearsing_notes()? } else { cx.writing_notes()? };
        let guarded = guarded(&notes, &self.guard, self.path.as_deref())?;
        let note = cx.note(Self::NAME, &self.guard);
        let done = notes.write(note, self.path.as_deref(), &content, self.mode.into(), &guarded)?;
        let change = done.change.filter(|_| !self.dry_run).map(|change| change.as_str().to_owned());
        Ok(WriteAnswer { result: done.outcome, change, replayed: done.replayed, dry_run: self.dry_run })
    }

    fn show(answer: &WriteAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let result = &answer.result;
        let done = match (result.changed, answer.dry_run) {
            (true, true) => "would write ",
            (true, false) => "wrote ",
            (false, _) => "already known in ",
        };
        page.put(done)?;
        page.ink(Ink::Strong, &Scheme::Note.address(&result.path))?;
        page.ink(Ink::Dim, &format!(" ({} bytes)\n", result.size_bytes))?;
        if !result.reason.is_empty() {
            page.ink(Ink::Dim, &format!("{}: {}{}\n", result.agent, result.reason, cost(&result.spent)))?;
        }
        if result.superseded > 0 {
            let facts = counted(result.superseded, "older fact", "older facts");
            page.line(&format!("{facts} marked as superseded"))?;
        }
        if result.split_triggered {
            page.line(&format!("split into: {}", result.new_files.join(", ")))?;
        }
        if let Some(proposed) = &result.merge_proposed {
            let (path, children) = (&proposed.path, proposed.children.join(", "));
            page.ink(
                Ink::Dim,
                &format!("{children} stayed small: `memgrove note merge {path}` merges them back\n"),
            )?;
        }
        show_change(answer.change.as_deref(), answer.replayed, page)
    }
}
