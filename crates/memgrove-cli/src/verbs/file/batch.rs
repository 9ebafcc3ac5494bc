//! Several file operations as one change.

use std::io;

use memgrove::Result;
use memgrove::shapes::files::{self, Limits, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Changed;
use crate::address::{file_at, in_memories};
use crate::context::Context;
use crate::page::{Ink, Page};
use crate::verbs::several::{Kin, Several};
use crate::verbs::{Effect, On, Verb};

/// Apply several file operations as one change: all or none
///
/// Each operation is an object with `type` (create, write, str_replace, insert, delete, rename) and its
/// fields: `path` and `content` (or `content_base64`), `old_str` and `new_str`, `insert_line` and `new_str`, or
/// `old_path` and `new_path`; all but create may have `expect`.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Batch {
    /// Objects such as {"type":"create","path":…,"content":…} or content_base64; also write, str_replace (old_str, new_str), insert (insert_line, new_str), delete, rename (old_path, new_path)
    #[arg(skip)]
    operations: Vec<Value>,
    #[command(flatten)]
    #[serde(flatten)]
    several: Several,
}

const OPERATIONS: Kin =
    Kin { name: "operations", example: r#"{"type":"create","path":"/memories/a.md","content":"…"}"# };

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
        let operations = self.several.each(cx, &OPERATIONS, self.operations, |value| operation(cx, value))?;
        let done = cx
            .writing()?
            .apply(cx.note(Self::NAME, &self.several.guard()), |store| {
                files::batch(store, &operations, &Limits::default())
            })
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
            Some(change) if answer.replayed => {
                page.ink(Ink::Dim, &format!("all in change {change}, done before with this key\n"))
            }
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
    serde_json::from_value(value).map_err(|error| OPERATIONS.unfit(&error))
}
