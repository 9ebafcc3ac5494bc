//! Finding and counting records.

use std::io;

use memgrove::address::Scheme;
use memgrove::clock::{TimeZone, Timestamp};
use memgrove::shapes::records::{
    Archived, DueRecord, Importance, Query, Record, RecordType, Sort, Statistics, Status,
};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ImportanceName, RecordSchema, StatusName, TypeName, chosen, got, id_of, show_record, tell};
use crate::context::{Context, Input};
use crate::mounts;
use crate::page::{Ink, Page, counted};
use crate::portion;
use crate::verbs::more::More;
use crate::verbs::{Effect, On, Verb};

/// What a listing answers with, in tokens, unless it is asked for more.
const LIST_TOKENS_MAX: usize = 1_500;

/// What a listing costs a program beside its records.
const FRAME_TOKENS: usize = 50;

/// What records are sorted by.
const SORTS: [&str; 6] = ["updated", "created", "oldest", "accessed", "used", "importance"];

/// Get a record by its id; counts as an access
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Get {
    /// Record id, or its address `record:ID`
    id: String,
}

/// A record and its version.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GetAnswer {
    #[schemars(with = "RecordSchema")]
    record: Record,
    version: String,
    file: String,
    line: usize,
    #[serde(skip)]
    zone: TimeZone,
}

impl Verb for Get {
    const NAME: &'static str = "record_get";
    const TITLE: &'static str = "Get a record";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Records];
    type Answer = GetAnswer;

    fn run(self, cx: &Context) -> Result<GetAnswer> {
        let got = got(cx, &id_of(&self.id))?;
        let version = got.version.as_str().to_owned();
        let file = mounts::place_of(&*cx.reading_records()?, &got.file).to_string();
        let zone = cx.environment().zone.zone();
        Ok(GetAnswer { record: got.record, version, file, line: got.line, zone })
    }

    fn show(answer: &GetAnswer, page: &mut Page<'_>) -> io::Result<()> {
        show_record(&answer.record, &answer.zone, page)?;
        let record = &answer.record;
        if let Some(task) = &record.task_metadata {
            task.blockers.iter().flatten().try_for_each(|text| page.line(&format!("  waits for: {text}")))?;
            task.outcome.iter().try_for_each(|text| page.line(&format!("  outcome: {text}")))?;
        }
        let read = counted(record.access_count, "time", "times");
        let version = crate::verbs::file::short(&answer.version);
        let text = format!("  read {read}, {} line {}, version {version}\n", answer.file, answer.line);
        page.ink(Ink::Dim, &text)
    }
}

/// List records by type, tag, category, importance, time or words
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct List {
    /// Words in the content, category, tags, blockers or outcome
    text: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    more: More,
    /// core, learning or task
    #[arg(long = "type", value_name = "TYPE", value_parser = chosen::<RecordType>(RecordType::ALL.map(RecordType::name)), hide_possible_values = true)]
    #[serde(rename = "type")]
    #[schemars(with = "Option<TypeName>")]
    kind: Option<RecordType>,
    /// Only with all of these tags
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    #[serde(default)]
    tags: Vec<String>,
    /// Only this category
    #[arg(long)]
    category: Option<String>,
    /// high, medium or low
    #[arg(long, value_parser = chosen::<Importance>(Importance::ALL.map(Importance::name)), hide_possible_values = true)]
    #[schemars(with = "Option<ImportanceName>")]
    importance: Option<Importance>,
    /// Only tasks with this status
    #[arg(long, value_parser = chosen::<Status>(Status::ALL.map(Status::name)), hide_possible_values = true)]
    #[schemars(with = "Option<StatusName>")]
    status: Option<Status>,
    /// Changed since, such as 2026-01-31, 7d, yesterday or a timestamp
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Changed before
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Archived records: no, only or any
    #[arg(long, default_value = "no", value_parser = ["no", "only", "any"], hide_possible_values = true)]
    #[serde(default = "no")]
    archived: String,
    /// Sort by updated, created, oldest, accessed, used or importance
    #[arg(long, default_value = "updated", value_parser = SORTS, hide_possible_values = true)]
    #[serde(default = "updated")]
    sort: String,
    /// Maximum number of records
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    #[serde(default)]
    limit: usize,
    /// Token budget
    #[arg(long, default_value_t = LIST_TOKENS_MAX)]
    #[serde(default = "list_tokens_max")]
    budget: usize,
}

fn no() -> String {
    "no".to_owned()
}

fn updated() -> String {
    "updated".to_owned()
}

fn list_tokens_max() -> usize {
    LIST_TOKENS_MAX
}

/// The records that were found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListAnswer {
    #[schemars(with = "Vec<RecordSchema>")]
    records: Vec<Record>,
    /// All that fit the question, shown or not.
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
    #[serde(skip)]
    zone: TimeZone,
}

impl Verb for List {
    const NAME: &'static str = "record_list";
    const TITLE: &'static str = "List records";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Records];
    type Answer = ListAnswer;

    fn run(self, cx: &Context) -> Result<ListAnswer> {
        let records = cx.reading_records()?;
        let zone = cx.environment().zone.zone();
        let now = records.memory().clock().now().to_zoned(zone.clone());
        let query = Query {
            kinds: self.kind.into_iter().collect(),
            since: self.since.as_deref().map(|text| moment(text, &now)).transpose()?,
            until: self.until.as_deref().map(|text| moment(text, &now)).transpose()?,
            archived: named(&self.archived, "archived", "no, only, any", Archived::No)?,
            sort: named(&self.sort, "sort", &SORTS.join(", "), Sort::Updated)?,
            tags: self.tags,
            category: self.category,
            importance: self.importance,
            status: self.status,
            text: self.more.behind_any(self.text),
            limit: self.limit,
        };
        let found = records.list(&query)?;
        tell(&records);
        // Programs are sent the records themselves too, and what is around them.
        let to_program = cx.input == Input::None;
        let mut spent = if to_program { FRAME_TOKENS } else { 0 };
        let mut shown: Vec<Record> = Vec::new();
        for record in found.records {
            let mut cost =
                portion::tokens(&record.content) + portion::tokens(&super::facts(&record, &zone)) + 14;
            if to_program {
                cost += portion::tokens(&record.line());
            }
            // The first is worth its length; a long one behind it does not hide the short ones.
            if shown.is_empty() || spent + cost <= self.budget {
                spent += cost;
                shown.push(record);
            }
        }
        let rest = found.total - shown.len();
        let left_out = (rest > 0).then(|| {
            let total = counted(found.total, "record", "records");
            format!("{rest} of {total} left out: raise limit or budget, or narrow the query")
        });
        Ok(ListAnswer { records: shown, total: found.total, left_out, zone })
    }

    fn show(answer: &ListAnswer, page: &mut Page<'_>) -> io::Result<()> {
        answer.records.iter().try_for_each(|record| show_record(record, &answer.zone, page))?;
        if answer.total == 0 {
            page.ink(Ink::Dim, "no records\n")?;
        }
        match &answer.left_out {
            Some(left_out) => page.ink(Ink::Warning, &format!("[{left_out}]\n")),
            None => Ok(()),
        }
    }
}

/// A moment, as `since:` and `before:` of a question take it.
fn moment(text: &str, now: &jiff::Zoned) -> Result<Timestamp> {
    memgrove::index::dates::start(text, now).ok_or_else(|| {
        Error::new(Kind::Invalid, format!("`{}` is not a time", text.escape_default()))
            .hint("write 2026-01-31, 2026-01-31T10:00:00Z, 7d or yesterday")
    })
}

fn named<T: serde::de::DeserializeOwned>(text: &str, argument: &str, names: &str, _: T) -> Result<T> {
    serde_json::from_value(text.into()).map_err(|_| {
        Error::new(Kind::Invalid, format!("`{}` is not a value of `{argument}`", text.escape_default()))
            .hint(format!("choose from: {names}"))
    })
}

/// Show what is due to be archived, and why
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Due {}

/// What is due to be archived.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DueAnswer {
    #[schemars(with = "Vec<RecordSchema>")]
    due: Vec<DueRecord>,
}

impl Verb for Due {
    const NAME: &'static str = "record_due";
    const TITLE: &'static str = "Show what is due to be archived";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Records];
    type Answer = DueAnswer;

    fn run(self, cx: &Context) -> Result<DueAnswer> {
        let records = cx.reading_records()?;
        let due = records.due()?.records;
        tell(&records);
        Ok(DueAnswer { due })
    }

    fn show(answer: &DueAnswer, page: &mut Page<'_>) -> io::Result<()> {
        for due in &answer.due {
            page.ink(Ink::Strong, &Scheme::Record.address(&due.id))?;
            page.line(&format!("  {}, {}", due.kind, due.why))?;
        }
        if answer.due.is_empty() { page.ink(Ink::Dim, "nothing is due\n") } else { Ok(()) }
    }
}

/// Count records
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Stats {}

/// Counts of records.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatsAnswer {
    #[schemars(with = "RecordSchema")]
    statistics: Statistics,
}

impl Verb for Stats {
    const NAME: &'static str = "record_stats";
    const TITLE: &'static str = "Count the records";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Records];
    type Answer = StatsAnswer;

    fn run(self, cx: &Context) -> Result<StatsAnswer> {
        let records = cx.reading_records()?;
        let statistics = records.statistics()?;
        tell(&records);
        Ok(StatsAnswer { statistics })
    }

    fn show(answer: &StatsAnswer, page: &mut Page<'_>) -> io::Result<()> {
        let Statistics { total_memories, by_type, archived_count, total_storage_bytes } = &answer.statistics;
        page.line(&format!(
            "{}: {} core, {}, {}",
            counted(*total_memories, "record", "records"),
            by_type.core,
            counted(by_type.learning, "learning", "learnings"),
            counted(by_type.task, "task", "tasks")
        ))?;
        page.line(&format!("{archived_count} archived, {} in all", portion::size(*total_storage_bytes)))
    }
}
