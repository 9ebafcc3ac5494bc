//! Several file operations as one change.

use std::io;
use std::path::PathBuf;

use memgrove::shapes::files::{self, Limits, Operation};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Changed;
use crate::address::{file_at, in_memories};
use crate::context::{Context, Guard, Input};
use crate::page::{Ink, Page};
use crate::verbs::{Effect, On, Verb};

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
