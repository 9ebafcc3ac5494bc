//! The records as verbs.

mod add;
mod change;
mod find;
mod keep;

pub(crate) use add::{Add, AddMany};
pub(crate) use change::{Archive, Delete, Restore, Update};
pub(crate) use find::{Due, Get, List, Stats};
pub(crate) use keep::{Migrate, RestoreBackup};

use std::collections::BTreeMap;
use std::io;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use memgrove::address::Scheme;
use memgrove::backend::Finding;
use memgrove::clock::TimeZone;
use memgrove::shapes::records::{Got, Guarded, Record, Records};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::context::{Context, Guard, Input};
use crate::mounts;
use crate::page::{Ink, Page};
use crate::zone::clock_of;

/// The names of the types, for a schema.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
#[allow(dead_code)] // Only its schema is used.
enum TypeName {
    Core,
    Learning,
    Task,
}

/// The names of the importances, for a schema.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
#[allow(dead_code)] // Only its schema is used.
pub(super) enum ImportanceName {
    High,
    Medium,
    Low,
}

/// The names of a task's statuses, for a schema.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", inline)]
#[allow(dead_code)] // Only its schema is used.
enum StatusName {
    Completed,
    InProgress,
    Blocked,
}

/// A record, for a schema.
type RecordSchema = BTreeMap<String, Value>;

/// What a change of one record did.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RecordChanged {
    done: &'static str,
    #[schemars(with = "RecordSchema")]
    record: Record,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    /// The key was applied before; nothing was done now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

impl RecordChanged {
    fn show(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.put(&format!("{} ", self.done))?;
        page.ink(Ink::Strong, &Scheme::Record.address(&self.record.id))?;
        super::show_facts(page, self.version.as_deref(), self.change.as_deref(), self.replayed)
    }
}

/// Parses one of a few names: an error lists them, and shells complete them.
pub(super) fn chosen<T>(names: impl IntoIterator<Item = &'static str>) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = Error> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

/// Shows a record as people read it.
fn show_record(record: &Record, zone: &TimeZone, page: &mut Page<'_>) -> io::Result<()> {
    page.ink(Ink::Strong, &Scheme::Record.address(&record.id))?;
    page.ink(Ink::Dim, &format!("  {}\n", facts(record, zone)))?;
    for line in record.content.lines() {
        page.line(&format!("  {line}"))?;
    }
    Ok(())
}

/// What is said of a record beside its content.
fn facts(record: &Record, zone: &TimeZone) -> String {
    let mut facts = vec![format!("{}, {}", record.kind, record.importance)];
    facts.extend(record.task_metadata.iter().map(|task| task.status.to_string()));
    facts.extend(record.category.iter().cloned());
    facts.extend((!record.tags.is_empty()).then(|| format!("#{}", record.tags.join(" #"))));
    facts.extend(record.archived.then(|| "archived".to_owned()));
    facts.push(clock_of(zone, &record.updated_at));
    facts.join(", ")
}

/// The id of a record that is given by its id or its address.
fn id_of(given: &str) -> String {
    Scheme::Record.bare(given).to_owned()
}

fn guarded(given: &str, guard: &Guard) -> Guarded {
    Guarded { id: id_of(given), expect: guard.expect.clone() }
}

/// Refuses an expected version where no one record is meant.
fn refuse_version(guard: &Guard) -> Result<()> {
    match &guard.expect {
        None => Ok(()),
        Some(_) => Err(Error::new(Kind::Invalid, "no single record is named, so no version can be expected")
            .hint("leave the expected version out, or name a record")),
    }
}

/// Reports the warnings that came up.
fn tell(records: &Records) {
    records.take_warnings().iter().for_each(|warning| crate::notice(warning));
}

/// Does the upkeep that is due after a change; if that fails, the change stands.
pub(super) fn settle(records: &Records) {
    if let Err(error) = records.settle_if_due() {
        crate::notice(&format!("the index of the records is not up to date: {error}"));
    }
    tell(records);
}

/// Reads a record by its id. Counts the reading, unless the reader may change nothing, and saves the count at
/// once where the process ends after this.
pub(super) fn got(cx: &Context, id: &str) -> Result<Got> {
    let records = cx.reading_records()?;
    if cx.may_write().is_err() {
        return records.view(id);
    }
    let got = records.get(id)?;
    if cx.input == Input::Terminal
        && let Err(error) = records.flush()
    {
        crate::notice(&format!("this read is not counted: {error}"));
    }
    tell(&records);
    Ok(got)
}

/// What is wrong with the records, and what was mended first.
pub(super) fn examine(cx: &Context, fix: bool) -> Result<(Vec<Finding>, Vec<String>)> {
    let records = cx.reading_records()?;
    let mended = match fix && records.memory().store().exists(records.root())? {
        true => records.mend(cx.note("doctor", &Guard::default()))?.outcome.done,
        false => Vec::new(),
    };
    let mut findings = records.check()?;
    tell(&records);
    let Some(folder) = mounts::folder(cx)? else { return Ok((findings, mended)) };
    let placed = |at: &str| format!("{}/{at}", folder.display());
    findings.iter_mut().for_each(|finding| finding.at = placed(&finding.at));
    Ok((findings, mended.iter().map(|done| placed(done)).collect()))
}
