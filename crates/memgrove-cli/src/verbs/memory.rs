//! Anthropic's Memory Tool as a verb.

use std::borrow::Cow;
use std::io;

use memgrove::backend::Version;
use memgrove::shapes::memory_tool;
use memgrove::{Error, Kind, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Effect, On, Verb};
use crate::context::{Context, Guard};
use crate::page::Page;

/// One command of Anthropic's Memory Tool, as the model sent it. On the command line it is
/// `memgrove memory-tool`, which takes many.
#[derive(Debug, clap::Args, Deserialize)]
pub(crate) struct MemoryCommand {
    /// Beside the command: the schema is the tool's own, and does not tell of it.
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
    #[arg(skip)]
    #[serde(flatten)]
    command: Value,
}

/// A command with nothing beside it, as the tool's own clients send it.
impl From<Value> for MemoryCommand {
    fn from(command: Value) -> Self {
        MemoryCommand { guard: Guard::default(), command }
    }
}

/// What the Memory Tool answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MemoryAnswer {
    pub(crate) content: String,
    pub(crate) is_error: bool,
}

impl Verb for MemoryCommand {
    const NAME: &'static str = "memory";
    const TITLE: &'static str = "Memory";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Files];
    type Answer = MemoryAnswer;

    fn run(self, cx: &Context) -> Result<MemoryAnswer> {
        let memory = match self.command.get("command").and_then(Value::as_str) {
            Some("view") => cx.reading()?,
            Some("str_replace" | "insert" | "delete" | "rename") => cx.changing()?,
            _ => cx.writing()?,
        };
        let note = cx.note(Self::NAME, &self.guard);
        let expect = self.guard.expect.map(Version::new);
        let reply = memory_tool::run_at(&memory, &cx.files(), note, &self.command, expect.as_ref());
        let memory_tool::Reply { content, is_error } = reply;
        Ok(MemoryAnswer { content, is_error })
    }

    fn show(answer: &MemoryAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put(&answer.content)
    }

    fn failed(answer: &MemoryAnswer) -> Option<Kind> {
        answer.is_error.then_some(Kind::Invalid)
    }
}

impl JsonSchema for MemoryCommand {
    fn schema_name() -> Cow<'static, str> {
        "MemoryCommand".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Keep notes in files under /memories: view, create, str_replace, insert, delete, rename",
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "enum": ["view", "create", "str_replace", "insert", "delete", "rename"],
                },
                "path": {"type": "string"},
                "view_range": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
                "file_text": {"type": "string"},
                "old_str": {"type": "string"},
                "new_str": {"type": "string"},
                "insert_line": {"type": "integer", "description": "After this line; 0 is the start"},
                "insert_text": {"type": "string"},
                "old_path": {"type": "string"},
                "new_path": {"type": "string"},
            },
            "required": ["command"],
        })
    }
}

/// The answer to something that is no command at all.
pub(crate) fn refusal(error: &Error) -> MemoryAnswer {
    let content = match error.hint_text() {
        Some(hint) if error.kind() != Kind::Invalid => format!("{}. {hint}", error.message()),
        _ => error.message().to_owned(),
    };
    MemoryAnswer { content, is_error: true }
}
