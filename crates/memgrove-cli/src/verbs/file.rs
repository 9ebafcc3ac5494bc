//! The file operations as verbs.

use std::io;
use std::path::PathBuf;

use memgrove::backend::{FileKind, Version};
use memgrove::error::code;
use memgrove::memory::{Done, Plan};
use memgrove::shapes::files::{self, Limits, Operation, Outcome, Viewed};
use memgrove::{Error, Kind, Result, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Effect, On, Verb};
use crate::address::{MEMORIES, file_at, in_memories, path_of};
use crate::context::{Context, Guard, Input};
use crate::page::{Ink, Page};
use crate::portion::{self, LineRange};

/// What a view answers an agent with, in tokens, unless it asks for more.
const VIEW_TOKENS_MAX: usize = 8_000;

/// Show a file with line numbers, or list a folder
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct View {
    /// Such as /memories/notes.md
    #[arg(default_value = MEMORIES)]
    #[serde(default = "memories")]
    path: String,
    /// Only these lines, such as 10:20 or 10:
    #[arg(long, value_name = "FROM:TO")]
    lines: Option<LineRange>,
    /// At most so many tokens
    #[arg(long)]
    budget: Option<usize>,
}

fn memories() -> String {
    MEMORIES.to_owned()
}

/// A file's content or a folder's entries.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ViewAnswer {
    path: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Lines in the whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<usize>,
    /// The number of the first line in `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<Vec<FolderEntry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FolderEntry {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    size: u64,
}

impl Verb for View {
    const NAME: &'static str = "file_view";
    const TITLE: &'static str = "View a file or folder";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Core];
    type Answer = ViewAnswer;

    fn run(self, cx: &Context) -> Result<ViewAnswer> {
        let at = file_at(cx, &self.path)?;
        let path = path_of(cx, &at);
        let memory = cx.reading()?;
        let viewed = match files::view(memory.store(), &at) {
            // The root is there even before the first memory is.
            Err(error) if error.kind() == Kind::NotFound && at == cx.files() => {
                Viewed::Folder { entries: Vec::new() }
            }
            viewed => viewed.map_err(|error| in_memories(cx, error))?,
        };
        match viewed {
            Viewed::Folder { entries } => {
                let entries = entries
                    .into_iter()
                    .map(|info| FolderEntry {
                        name: info.locator.name().to_owned(),
                        kind: kind_name(info.kind),
                        size: info.size,
                    })
                    .collect();
                Ok(ViewAnswer { entries: Some(entries), ..ViewAnswer::of(path, "folder") })
            }
            Viewed::File { bytes, version } => self.file(cx, path, bytes, &version),
        }
    }

    fn show(answer: &ViewAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.ink(Ink::Strong, &answer.path)?;
        if let Some(version) = &answer.version {
            page.ink(Ink::Dim, &format!("  version {}", short(version)))?;
        }
        page.put("\n")?;
        for (line, number) in
            answer.text.iter().flat_map(|text| text.split('\n')).zip(answer.from.unwrap_or(1)..)
        {
            page.ink(Ink::Dim, &format!("{number:>6}\t"))?;
            page.line(line)?;
        }
        for entry in answer.entries.iter().flatten() {
            let slash = if entry.kind == "folder" { "/" } else { "" };
            let size = if slash.is_empty() { portion::size(entry.size) } else { String::new() };
            page.ink(Ink::Dim, &format!("{size:>6}\t"))?;
            page.line(&format!("{}{slash}", entry.name))?;
        }
        match &answer.left_out {
            Some(left_out) => page.ink(Ink::Warning, &format!("[{left_out}]\n")),
            None if answer.entries.as_ref().is_some_and(Vec::is_empty) => page.ink(Ink::Dim, "(empty)\n"),
            None => Ok(()),
        }
    }
}

impl View {
    fn file(self, cx: &Context, path: String, bytes: Vec<u8>, version: &Version) -> Result<ViewAnswer> {
        let size = Some(bytes.len());
        let version = Some(version.as_str().to_owned());
        let answer = ViewAnswer { size, version, ..ViewAnswer::of(path, "file") };
        let Ok(text) = String::from_utf8(bytes) else {
            let left_out = Some("not text: `memgrove read` gives the bytes".to_owned());
            return Ok(ViewAnswer { left_out, ..answer });
        };
        let budget = match (self.budget, cx.input) {
            (Some(budget), _) => budget,
            (None, Input::None) => VIEW_TOKENS_MAX,
            (None, Input::Terminal) => usize::MAX,
        };
        let cut = portion::lines(&text, self.lines.unwrap_or_default(), budget);
        Ok(ViewAnswer {
            lines: Some(cut.lines),
            from: Some(cut.from),
            left_out: cut.left_out(),
            text: Some(cut.text.to_owned()),
            ..answer
        })
    }
}

impl ViewAnswer {
    fn of(path: String, kind: &'static str) -> Self {
        ViewAnswer {
            path,
            kind,
            size: None,
            version: None,
            lines: None,
            from: None,
            text: None,
            entries: None,
            left_out: None,
        }
    }
}

fn kind_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Folder => "folder",
        FileKind::Other => "other",
    }
}

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
        let version = self.version.iter().map(|version| format!("version {}", short(version)));
        let change = self.change.iter().map(|change| format!("change {change}"));
        let replayed = self.replayed.then(|| "done before with this key".to_owned());
        let facts: Vec<String> = version.chain(change).chain(replayed).collect();
        if !facts.is_empty() {
            page.ink(Ink::Dim, &format!(" ({})", facts.join(", ")))?;
        }
        page.put("\n")
    }
}

/// The beginning of a version, enough to name it.
pub(crate) fn short(version: &str) -> &str {
    version.get(..12).unwrap_or(version)
}

/// Plans and applies one file operation.
fn change(
    cx: &Context,
    verb: &str,
    guard: &Guard,
    plan: impl FnMut(&Store) -> Result<Plan<Outcome>>,
) -> Result<Changed> {
    let done = cx.writing()?.apply(cx.note(verb, guard), plan).map_err(|error| in_memories(cx, error))?;
    let Done { outcome, change, versions, replayed } = done;
    let version = versions.into_iter().flatten().last().map(|version| version.as_str().to_owned());
    let change = change.map(|change| change.as_str().to_owned());
    Ok(Changed { version, change, replayed, ..Changed::new(cx, outcome) })
}

/// Create a file; with `expect`, replace its whole content
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Create {
    /// Such as /memories/notes.md
    path: String,
    /// The content [default: standard input]
    #[arg(long, allow_hyphen_values = true)]
    #[schemars(required)]
    text: Option<String>,
    /// A file whose bytes are the content
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
    const ON: &'static [On] = &[On::Cli, On::Core];
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let at = file_at(cx, &self.path)?;
        let bytes = cx.text(self.text, self.from.as_deref())?;
        let limits = Limits::default();
        change(cx, Self::NAME, &self.guard, |store| match self.guard.expected(store, &at)? {
            Some(version) => files::write(store, &at, bytes.clone(), Some(&version), &limits),
            None => files::create(store, &at, bytes.clone(), &limits),
        })
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Replace text that is in a file exactly once
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Replace {
    /// The file
    path: String,
    /// The text that is there, exactly
    #[arg(long, allow_hyphen_values = true)]
    old: String,
    /// The text instead; none deletes
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
    const ON: &'static [On] = &[On::Cli, On::Core];
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let at = file_at(cx, &self.path)?;
        change(cx, Self::NAME, &self.guard, |store| {
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
    /// The line, from 1; one past the last appends
    line: usize,
    /// The text [default: standard input]
    #[arg(long, allow_hyphen_values = true)]
    #[schemars(required)]
    text: Option<String>,
    /// A file whose content is the text
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
    const ON: &'static [On] = &[On::Cli, On::Core];
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let at = file_at(cx, &self.path)?;
        let text = String::from_utf8(cx.text(self.text, self.from.as_deref())?)
            .map_err(|_| Error::new(Kind::Invalid, "the text to insert is not UTF-8").code(code::NOT_TEXT))?;
        change(cx, Self::NAME, &self.guard, |store| {
            let expect = self.guard.expected(store, &at)?;
            files::insert(store, &at, self.line, &text, expect.as_ref(), &Limits::default())
        })
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Delete a file or an empty folder (undo brings it back)
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
    const ON: &'static [On] = &[On::Cli, On::Core];
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let at = file_at(cx, &self.path)?;
        change(cx, Self::NAME, &self.guard, |store| {
            let expect = self.guard.expected(store, &at)?;
            files::delete(store, &at, expect.as_ref())
        })
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Move a file or folder to a free place
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Rename {
    /// Where it is
    old_path: String,
    /// Where it shall be
    new_path: String,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for Rename {
    const NAME: &'static str = "file_rename";
    const TITLE: &'static str = "Move a file or folder";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli, On::Core];
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let from = file_at(cx, &self.old_path)?;
        let to = file_at(cx, &self.new_path)?;
        change(cx, Self::NAME, &self.guard, |store| {
            let expect = self.guard.expected(store, &from)?;
            files::rename(store, &from, &to, expect.as_ref())
        })
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Do several file operations as one change: all of them or none
///
/// Each is an object with `type` (create, write, str_replace, insert, delete, rename) and its
/// fields: `path` and `content`, `old_str` and `new_str`, `insert_line` and `new_str`, or
/// `old_path` and `new_path`; any but create may have `expect`.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Batch {
    /// Objects such as {"type":"create","path":…,"content":…}; also write, str_replace (old_str, new_str), insert (insert_line, new_str), delete, rename (old_path, new_path)
    #[arg(skip)]
    operations: Vec<Value>,
    /// A JSON array of operations [default: standard input]
    #[arg(long)]
    #[serde(skip)]
    text: Option<String>,
    /// A file with the JSON array
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    #[serde(skip)]
    from: Option<PathBuf>,
    /// Idempotency key
    ///
    /// A change with a key that was used before is not made again; the first answer is given again.
    #[arg(long)]
    key: Option<String>,
    /// Why, for the history
    #[arg(long, allow_hyphen_values = true)]
    reason: Option<String>,
}

/// What a batch did, operation by operation.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BatchAnswer {
    results: Vec<Changed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

impl Verb for Batch {
    const NAME: &'static str = "file_batch";
    const TITLE: &'static str = "Change several files at once";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::All];
    type Answer = BatchAnswer;

    fn run(self, cx: &Context) -> Result<BatchAnswer> {
        let given = match cx.input {
            Input::None => self.operations,
            Input::Terminal => serde_json::from_slice(&cx.text(self.text, self.from.as_deref())?)
                .map_err(|error| unfit(format!("the operations are not a JSON array: {error}")))?,
        };
        let operations = (given.into_iter().enumerate())
            .map(|(index, value)| {
                operation(cx, value).map_err(|error| error.while_doing(format_args!("operations[{index}]")))
            })
            .collect::<Result<Vec<_>>>()?;
        let guard = Guard { key: self.key, reason: self.reason, expect: None };
        let done = cx
            .writing()?
            .apply(cx.note(Self::NAME, &guard), |store| files::batch(store, &operations, &Limits::default()))
            .map_err(|error| in_memories(cx, error))?;
        Ok(BatchAnswer {
            results: done.outcome.into_iter().map(|outcome| Changed::new(cx, outcome)).collect(),
            change: done.change.map(|change| change.as_str().to_owned()),
            replayed: done.replayed,
        })
    }

    fn show(answer: &BatchAnswer, page: &mut Page<'_>) -> io::Result<()> {
        answer.results.iter().try_for_each(|result| result.show(page))?;
        match &answer.change {
            Some(change) => page.ink(Ink::Dim, &format!("all in change {change}\n")),
            None => page.line("nothing to do"),
        }
    }
}

/// One operation with its paths resolved as those of the other verbs are.
fn operation(cx: &Context, mut value: Value) -> Result<Operation> {
    for name in ["path", "old_path", "new_path"] {
        if let Some(path) = value.get_mut(name)
            && let Some(given) = path.as_str()
        {
            *path = Value::from(file_at(cx, given)?.key());
        }
    }
    serde_json::from_value(value).map_err(|error| unfit(format!("it does not fit: {error}")))
}

fn unfit(message: String) -> Error {
    Error::new(Kind::Invalid, message)
        .hint("an operation looks like {\"type\":\"create\",\"path\":\"/memories/a.md\",\"content\":\"…\"}")
}
