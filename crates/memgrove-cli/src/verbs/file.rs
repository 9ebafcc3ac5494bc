//! The file operations as verbs.

mod batch;
mod view;

pub(crate) use batch::Batch;
pub(crate) use view::View;

use std::io;
use std::path::PathBuf;

use memgrove::backend::{FileKind, Note, Version};
use memgrove::memory::{Done, Plan};
use memgrove::shapes::files::{self, Limits, Outcome};
use memgrove::text::content;
use memgrove::{Kind, Locator, Memory, Result, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, On, Verb, show_facts};
use crate::address::{file_at, in_memories, path_of};
use crate::context::{Context, Guard};
use crate::page::{Ink, Page};

/// What a change of files did.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Changed {
    done: &'static str,
    path: String,
    /// Where it was before a rename.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// The first line that changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    /// The key was applied before; nothing was done now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

impl Changed {
    fn new(cx: &Context, outcome: Outcome) -> Self {
        let blank = |done, path| Changed {
            done,
            path: path_of(cx, path),
            old_path: None,
            size: None,
            line: None,
            version: None,
            change: None,
            replayed: false,
        };
        match outcome {
            Outcome::Created { path, size } => Changed { size: Some(size), ..blank("created", &path) },
            Outcome::Edited { path, size, line } => {
                Changed { size: Some(size), line: Some(line), ..blank("edited", &path) }
            }
            Outcome::Deleted { path } => blank("deleted", &path),
            Outcome::Renamed { old_path, new_path } => {
                Changed { old_path: Some(path_of(cx, &old_path)), ..blank("renamed", &new_path) }
            }
        }
    }

    fn show(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.put(self.done)?;
        page.put(" ")?;
        if let Some(old) = &self.old_path {
            page.put(&format!("{old} to "))?;
        }
        page.ink(Ink::Strong, &self.path)?;
        if let Some(line) = self.line {
            page.put(&format!(" at line {line}"))?;
        }
        show_facts(page, self.version.as_deref(), self.change.as_deref(), self.replayed)
    }
}

/// The beginning of a version, enough to name it.
pub(crate) fn short(version: &str) -> &str {
    version.get(..12).unwrap_or(version)
}

/// Plans and applies one file operation.
fn change(
    cx: &Context,
    memory: &Memory,
    note: Note,
    plan: impl FnMut(&Store) -> Result<Plan<Outcome>>,
) -> Result<Changed> {
    let done = memory.apply(note, plan).map_err(|error| in_memories(cx, error))?;
    let Done { outcome, change, versions, replayed } = done;
    let named = |version: Version| version.as_str().to_owned();
    let change = change.map(|change| change.as_str().to_owned());
    if let Outcome::Edited { path, size, .. } = &outcome
        && versions.is_empty()
    {
        // The file already has this content.
        let version = memory.store().info_optional(path)?.and_then(|info| info.version).map(named);
        let created = Changed::new(cx, Outcome::Created { path: path.clone(), size: *size });
        return Ok(Changed { done: "unchanged", version, change, replayed, ..created });
    }
    let version = versions.into_iter().flatten().last().map(named);
    Ok(Changed { version, change, replayed, ..Changed::new(cx, outcome) })
}

/// Create a file; with an expected version, replace its whole content
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Create {
    /// Such as /memories/notes.md
    path: String,
    /// The content [default: standard input]
    #[arg(long, allow_hyphen_values = true)]
    text: Option<String>,
    /// Binary content
    #[arg(skip)]
    content_base64: Option<String>,
    /// Read the content from a file
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    #[serde(skip)]
    from: Option<PathBuf>,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for Create {
    const NAME: &'static str = "file_create";
    const TITLE: &'static str = "Create a file";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli, On::All];
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let at = file_at(cx, &self.path)?;
        let bytes = match self.content_base64.as_deref() {
            None => cx.text(self.text, self.from.as_deref())?,
            bytes => content::given("text", self.text, bytes)?.unwrap_or_default(),
        };
        let limits = Limits::default();
        let note = cx.note(Self::NAME, &self.guard);
        change(cx, &cx.writing()?, note, |store| match self.guard.expected(store, &at)? {
            Some(version) => files::write(store, &at, bytes.clone(), Some(&version), &limits),
            None => files::create(store, &at, bytes.clone(), &limits),
        })
        .map_err(|error| match error.kind() {
            Kind::Exists if holds_file(cx, &at) => error
                .hint("choose another name, or pass its version (`expect`, --expect VERSION) to replace it"),
            Kind::Exists => error.hint("choose another name"),
            _ => error,
        })
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Whether a regular file of exactly this name is there: nothing else can be replaced.
fn holds_file(cx: &Context, at: &Locator) -> bool {
    let there = cx.reading().and_then(|memory| memory.store().info_optional(at));
    there.is_ok_and(|info| info.is_some_and(|info| info.kind == FileKind::File))
}

/// Replace text that occurs exactly once in a file
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Replace {
    /// The file
    path: String,
    /// Exact text to replace
    #[arg(long, allow_hyphen_values = true)]
    old: String,
    /// Replacement; omit to delete the text
    #[arg(long, allow_hyphen_values = true, default_value = "", hide_default_value = true)]
    #[serde(default)]
    new: String,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for Replace {
    const NAME: &'static str = "file_replace";
    const TITLE: &'static str = "Replace text in a file";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::All];
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let at = file_at(cx, &self.path)?;
        let note = cx.note(Self::NAME, &self.guard);
        change(cx, &cx.changing()?, note, |store| {
            let expect = self.guard.expected(store, &at)?;
            files::replace(store, &at, &self.old, &self.new, expect.as_ref(), &Limits::default())
        })
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Insert lines before a line of a file
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Insert {
    /// The file
    path: String,
    /// Line number, from 1; one past the last appends
    line: usize,
    /// The text [default: standard input]
    #[arg(long, allow_hyphen_values = true)]
    #[schemars(required)]
    text: Option<String>,
    /// Read the text from a file
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    #[serde(skip)]
    from: Option<PathBuf>,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for Insert {
    const NAME: &'static str = "file_insert";
    const TITLE: &'static str = "Insert lines into a file";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli, On::All];
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let at = file_at(cx, &self.path)?;
        let text = Context::utf8("the text to insert", cx.text(self.text, self.from.as_deref())?)?;
        let note = cx.note(Self::NAME, &self.guard);
        change(cx, &cx.changing()?, note, |store| {
            let expect = self.guard.expected(store, &at)?;
            files::insert(store, &at, self.line, &text, expect.as_ref(), &Limits::default())
        })
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Delete a file or an empty folder (undo restores it)
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Delete {
    /// The file or folder
    path: String,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for Delete {
    const NAME: &'static str = "file_delete";
    const TITLE: &'static str = "Delete a file";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::All];
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let at = file_at(cx, &self.path)?;
        let note = cx.note(Self::NAME, &self.guard);
        change(cx, &cx.changing()?, note, |store| {
            let expect = self.guard.expected(store, &at)?;
            files::delete(store, &at, expect.as_ref())
        })
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Move a file or folder; never overwrites
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Rename {
    /// Current path
    old_path: String,
    /// New path
    new_path: String,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for Rename {
    const NAME: &'static str = "file_rename";
    const TITLE: &'static str = "Move a file or folder";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli, On::All];
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let from = file_at(cx, &self.old_path)?;
        let to = file_at(cx, &self.new_path)?;
        let note = cx.note(Self::NAME, &self.guard);
        change(cx, &cx.changing()?, note, |store| {
            let expect = self.guard.expected(store, &from)?;
            files::rename(store, &from, &to, expect.as_ref())
        })
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}
