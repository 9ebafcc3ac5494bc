//! Making, changing and deleting nodes.

use std::io;
use std::path::PathBuf;

use memgrove::address::Scheme;
use memgrove::memory::Done;
use memgrove::shapes::graph::{ContentEdit, NewNode, Node, Removal, Removed, Update, format_of};
use memgrove::text::content;
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Changed, Given, Pair, id_of, properties, refuse_expect};
use crate::context::{Context, Guard, Input};
use crate::page::Page;
use crate::verbs::{Effect, On, Verb};

fn changed(done: &'static str, outcome: Done<Node>) -> Changed {
    let address = Scheme::Node.address(&outcome.outcome.id);
    Changed::new(done, address, &outcome.outcome, outcome.change, outcome.replayed)
}

/// Create a node with a type, properties and any content
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct NodeCreate {
    /// Node type, such as project
    #[serde(rename = "type")]
    kind: String,
    /// Properties to set
    #[arg(long, value_name = "JSON")]
    properties: Option<Given>,
    /// One property; the value may be JSON
    #[arg(long = "property", short = 'p', value_name = "NAME=VALUE")]
    #[serde(skip)]
    pairs: Vec<Pair>,
    /// Content
    #[arg(long, allow_hyphen_values = true)]
    content: Option<String>,
    /// Binary content
    #[arg(skip)]
    content_base64: Option<String>,
    /// Read the content from a file; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "content")]
    #[serde(skip)]
    from: Option<PathBuf>,
    /// markdown, json, text, or an extension such as pdf
    #[arg(long)]
    format: Option<String>,
    /// Id to use instead of the next free one
    #[arg(long)]
    id: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for NodeCreate {
    const NAME: &'static str = "node_create";
    const TITLE: &'static str = "Create a node";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli, On::Graph];
    const TEXT_ONLY: bool = true;
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        refuse_expect(&self.guard, "node")?;
        let by_name = self.from.as_ref().and_then(|path| format_of(&path.file_name()?.to_string_lossy()));
        let text = match (self.content, &self.from) {
            (None, None) => None,
            (text, from) => Some(cx.text(text, from.as_deref())?),
        };
        let content = content::given("content", text, self.content_base64.as_deref())?;
        let new = NewNode {
            id: self.id,
            kind: self.kind,
            properties: properties(self.properties, self.pairs),
            format: self.format.or(by_name),
            content: content.map(Into::into),
            said: None,
        };
        Ok(changed("created", cx.writing_graph()?.create(cx.note(Self::NAME, &self.guard), new)?))
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Set or remove properties of a node, or change its type
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct NodeUpdate {
    /// Node id
    id: String,
    /// Properties to set
    #[arg(long, value_name = "JSON")]
    properties: Option<Given>,
    /// One property to set
    #[arg(long = "property", short = 'p', value_name = "NAME=VALUE")]
    #[serde(skip)]
    pairs: Vec<Pair>,
    /// Properties to remove
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    unset: Vec<String>,
    /// New type
    #[arg(long = "type", value_name = "TYPE")]
    #[serde(rename = "type")]
    kind: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for NodeUpdate {
    const NAME: &'static str = "node_update";
    const TITLE: &'static str = "Update a node";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Graph];
    const TEXT_ONLY: bool = true;
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let note = cx.note(Self::NAME, &self.guard);
        let update = Update {
            kind: self.kind,
            set: properties(self.properties, self.pairs),
            unset: self.unset,
            said: None,
        };
        let expect = self.guard.expect.as_deref();
        Ok(changed("updated", cx.changing_graph()?.update(note, id_of(&self.id), &update, expect)?))
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// What can be done to a content.
const OPERATIONS: [&str; 6] = ["create", "write", "str_replace", "insert", "delete", "rename"];

/// How a content is to be edited, as nodes and connections take it.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(in crate::verbs) struct Editing {
    /// create, write (replace all), str_replace, insert, delete, or rename (change format)
    #[arg(value_parser = OPERATIONS, hide_possible_values = true)]
    operation: String,
    /// For str_replace: text that occurs exactly once
    #[arg(long, allow_hyphen_values = true, value_name = "TEXT")]
    old_str: Option<String>,
    /// For str_replace and insert: the new text
    #[arg(long, allow_hyphen_values = true, value_name = "TEXT")]
    new_str: Option<String>,
    /// For insert: line to insert before, from 1
    #[arg(long, value_name = "LINE")]
    insert_line: Option<usize>,
    /// For create and write [default: standard input]
    #[arg(long, allow_hyphen_values = true)]
    content: Option<String>,
    /// For write: binary content
    #[arg(skip)]
    content_base64: Option<String>,
    /// Read the content from a file
    #[arg(long, value_name = "FILE", conflicts_with = "content")]
    #[serde(skip)]
    from: Option<PathBuf>,
    /// For create, write and rename
    #[arg(long)]
    format: Option<String>,
}

impl Editing {
    /// The edit that is meant.
    pub(in crate::verbs) fn edit(&self, cx: &Context) -> Result<ContentEdit> {
        let missing = |name: &str| {
            Error::new(
                Kind::Invalid,
                format!("the operation `{}` needs `{name}`", self.operation.escape_debug()),
            )
        };
        let text = |text: &Option<String>, name: &str| text.clone().ok_or_else(|| missing(name));
        let content = || match (&self.content, &self.content_base64, &self.from, cx.input) {
            (text, Some(base64), ..) => {
                Ok(content::given("content", text.clone(), Some(base64))?.unwrap_or_default())
            }
            (None, None, _, Input::None) => Err(missing("content")),
            // An empty standard input is most often one that was forgotten.
            (None, None, None, Input::Terminal) => match cx.text(None, None)? {
                bytes if bytes.is_empty() => {
                    Err(Error::new(Kind::Invalid, "the content is empty: nothing was written")
                        .hint("empty it with `--content ''`, or remove it with the operation `delete`"))
                }
                bytes => Ok(bytes),
            },
            (given, _, from, _) => cx.text(given.clone(), from.as_deref()),
        };
        Ok(match self.operation.as_str() {
            "create" => ContentEdit::Create {
                content: String::from_utf8(content()?).map_err(|_| {
                    Error::new(Kind::Invalid, "the content is not text").hint("use the operation `write`")
                })?,
                format: self.format.clone(),
            },
            "write" => ContentEdit::Write { content: content()?.into(), format: self.format.clone() },
            "str_replace" | "replace" => ContentEdit::Replace {
                old_str: text(&self.old_str, "old_str")?,
                new_str: self.new_str.clone().unwrap_or_default(),
            },
            "insert" => ContentEdit::Insert {
                insert_line: self.insert_line.ok_or_else(|| missing("insert_line"))?,
                new_str: text(&self.new_str, "new_str")?,
            },
            "delete" => ContentEdit::Delete,
            "rename" => ContentEdit::Rename { format: text(&self.format, "format")? },
            other => {
                return Err(Error::new(
                    Kind::Invalid,
                    format!("`{}` is not an operation", other.escape_debug()),
                )
                .hint("choose from: create, write, str_replace, insert, delete, rename"));
            }
        })
    }
}

/// Edit a node's content: create, write, str_replace, insert, delete or rename
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct NodeEdit {
    /// Node id
    id: String,
    #[command(flatten)]
    #[serde(flatten)]
    editing: Editing,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for NodeEdit {
    const NAME: &'static str = "node_edit";
    const TITLE: &'static str = "Edit a node's content";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Graph];
    const TEXT_ONLY: bool = true;
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let (edit, note) = (self.editing.edit(cx)?, cx.note(Self::NAME, &self.guard));
        let expect = self.guard.expect.as_deref();
        Ok(changed("edited", cx.changing_graph()?.edit(note, id_of(&self.id), edit, expect)?))
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Delete a node (undo restores it)
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct NodeDelete {
    /// Node id
    id: String,
    /// Also delete its connections; else refused if it has any
    #[arg(long)]
    #[serde(default)]
    cascade: bool,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for NodeDelete {
    const NAME: &'static str = "node_delete";
    const TITLE: &'static str = "Delete a node";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Graph];
    const TEXT_ONLY: bool = true;
    type Answer = Changed;

    fn run(self, cx: &Context) -> Result<Changed> {
        let note = cx.note(Self::NAME, &self.guard);
        let how = if self.cascade { Removal::Cascade } else { Removal::Refuse };
        let done = cx.changing_graph()?.delete(note, id_of(&self.id), how, self.guard.expect.as_deref())?;
        let Removed { id, connections } = &done.outcome;
        let answer = Changed::new(
            "deleted",
            Scheme::Node.address(id),
            &done.outcome,
            done.change.clone(),
            done.replayed,
        );
        Ok(Changed { connections: connections.clone(), ..answer })
    }

    fn show(answer: &Changed, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}
