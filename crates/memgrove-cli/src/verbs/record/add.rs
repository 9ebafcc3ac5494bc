//! Adding records.

use std::io;

use memgrove::Result;
use memgrove::address::Scheme;
use memgrove::memory::Done;
use memgrove::shapes::records::{Added, Importance, NewRecord, Record, RecordType, Records, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ImportanceName, RecordSchema, StatusName, TypeName, chosen, settle};
use crate::context::{Context, Guard};
use crate::journals::name_of;
use crate::page::{Ink, Page};
use crate::verbs::more::More;
use crate::verbs::several::{Kin, Several};
use crate::verbs::show_change;
use crate::verbs::{Effect, On, Verb};

/// Add a record: a core memory, a learning or a task
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Add {
    /// The memory, up to 5000 characters [default: standard input]
    #[schemars(required)]
    content: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    more: More,
    /// core, learning or task
    #[arg(long = "type", value_name = "TYPE", default_value = "learning", value_parser = chosen::<RecordType>(RecordType::ALL.map(RecordType::name)), hide_possible_values = true)]
    #[serde(rename = "type", default = "learning")]
    #[schemars(with = "TypeName")]
    kind: RecordType,
    /// Topic, in one word
    #[arg(long)]
    category: Option<String>,
    /// Tags to find it by
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    #[serde(default)]
    tags: Vec<String>,
    /// high, medium or low
    #[arg(long, default_value = "medium", value_parser = chosen::<Importance>(Importance::ALL.map(Importance::name)), hide_possible_values = true)]
    #[serde(default)]
    #[schemars(with = "ImportanceName")]
    importance: Importance,
    /// Task status: completed, in-progress or blocked
    #[arg(long, value_parser = chosen::<Status>(Status::ALL.map(Status::name)), hide_possible_values = true)]
    #[schemars(with = "Option<StatusName>")]
    status: Option<Status>,
    /// What blocks the task
    #[arg(long = "blocker", value_name = "BLOCKER")]
    #[serde(default)]
    blockers: Vec<String>,
    /// Outcome of the completed task
    #[arg(long)]
    outcome: Option<String>,
    /// Idempotency key
    ///
    /// A change whose key was used before is not made again: the first answer is returned. Reusing a key
    /// for a different request is an error.
    #[arg(long)]
    key: Option<String>,
    /// Why, for the history
    #[arg(long, allow_hyphen_values = true)]
    reason: Option<String>,
}

fn learning() -> RecordType {
    RecordType::Learning
}

/// What an addition did.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AddAnswer {
    #[schemars(with = "Vec<RecordSchema>")]
    records: Vec<Record>,
    /// What was archived to make room.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    archived: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    /// The key was applied before; nothing was done now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

impl AddAnswer {
    fn new(records: &Records, done: Done<Added>) -> Self {
        let change = done.change.map(|change| name_of(records, &change));
        let Added { records, archived, warnings } = done.outcome;
        AddAnswer { records, archived, warnings, change, replayed: done.replayed }
    }

    fn show(&self, page: &mut Page<'_>) -> io::Result<()> {
        for record in &self.records {
            page.put("added ")?;
            page.ink(Ink::Strong, &Scheme::Record.address(&record.id))?;
            page.ink(Ink::Dim, &format!(" ({})\n", record.kind))?;
        }
        for warning in &self.warnings {
            page.ink(Ink::Warning, &format!("warning: {warning}\n"))?;
        }
        show_change(self.change.as_deref(), self.replayed, page)
    }
}

fn add(cx: &Context, verb: &str, guard: &Guard, new: &[NewRecord]) -> Result<AddAnswer> {
    let records = cx.writing_records()?;
    let done = records.add(cx.note(verb, guard), new)?;
    settle(&records);
    Ok(AddAnswer::new(&records, done))
}

impl Verb for Add {
    const NAME: &'static str = "record_add";
    const TITLE: &'static str = "Add a record";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli, On::Records];
    type Answer = AddAnswer;

    fn run(self, cx: &Context) -> Result<AddAnswer> {
        let new = NewRecord {
            kind: self.kind,
            content: cx.fact(self.more.behind_any(self.content))?,
            category: self.category,
            tags: self.tags,
            importance: self.importance,
            status: self.status,
            blockers: self.blockers,
            outcome: self.outcome,
        };
        let guard = Guard { key: self.key, reason: self.reason, expect: None };
        add(cx, Self::NAME, &guard, &[new])
    }

    fn show(answer: &AddAnswer, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Add several records at once, all or none
///
/// A record is an object with `type`, `content`, and optionally `category`, `tags`, `importance`,
/// `status`, `blockers` and `outcome`.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct AddMany {
    /// Objects such as {"type":"core","content":…}; also category, tags, importance, status, blockers, outcome
    #[arg(skip)]
    records: Vec<Value>,
    #[command(flatten)]
    #[serde(flatten)]
    several: Several,
}

const RECORDS: Kin = Kin { name: "records", example: r#"{"type":"core","content":"…"}"# };

impl Verb for AddMany {
    const NAME: &'static str = "record_add_many";
    const TITLE: &'static str = "Add several records";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli, On::Records];
    type Answer = AddAnswer;

    fn run(self, cx: &Context) -> Result<AddAnswer> {
        let read = |value| serde_json::from_value::<NewRecord>(value).map_err(|error| RECORDS.unfit(&error));
        let new = self.several.each(cx, &RECORDS, self.records, read)?;
        add(cx, Self::NAME, &self.several.guard(), &new)
    }

    fn show(answer: &AddAnswer, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}
