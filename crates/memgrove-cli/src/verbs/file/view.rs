//! Looking at a file or a folder.

use std::io;

use memgrove::backend::{FileKind, Version};
use memgrove::error::code;
use memgrove::shapes::files::{self, Viewed};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::short;
use crate::address::{MEMORIES, file_at, in_memories, path_of};
use crate::context::{Context, Input};
use crate::page::{Ink, Page};
use crate::portion::{self, LineRange};
use crate::verbs::{Effect, On, Verb};

/// What a view answers an agent with, in tokens, unless it asks for more.
const VIEW_TOKENS_MAX: usize = 8_000;

/// Show a file with line numbers, or list a folder
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct View {
    /// Such as /memories/notes.md
    #[arg(default_value = MEMORIES)]
    #[serde(default = "memories")]
    path: String,
    /// Only these lines, such as 10: or 10:20
    #[arg(long, value_name = "FROM:TO")]
    lines: Option<LineRange>,
    /// Token budget
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
    const ON: &'static [On] = &[On::Cli, On::All];
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
        if cut.from > cut.lines {
            let (path, lines) = (&answer.path, cut.lines);
            let message = format!("`{path}` ends at line {lines}, before line {}", cut.from);
            return Err(Error::new(Kind::Invalid, message)
                .code(code::INVALID_LINE)
                .hint(format!("ask for lines from 1 to {lines}")));
        }
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
