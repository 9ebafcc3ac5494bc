//! Changing, archiving and deleting records.

use std::io;

use memgrove::address::Scheme;
use memgrove::memory::Done;
use memgrove::shapes::records::{Changed, Guarded, Importance, Patch, Records, Status};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ImportanceName, RecordChanged, StatusName, chosen, guarded, id_of, refuse_version, settle};
use crate::context::{Context, Guard};
use crate::journals::name_of;
use crate::page::{Ink, Page};
use crate::verbs::{Effect, On, Verb};

/// Update a record; what is not given stays as it is
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Update {
    /// Record id
    id: String,
    /// New content
    ///
    /// Pass - to read it from standard input.
    #[arg(long, allow_hyphen_values = true)]
    content: Option<String>,
    /// Topic; empty removes it
    #[arg(long)]
    category: Option<String>,
    /// Replace all tags; an empty one removes them
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    tags: Option<Vec<String>>,
    /// high, medium or low
    #[arg(long, value_parser = chosen::<Importance>(Importance::ALL.map(Importance::name)), hide_possible_values = true)]
    #[schemars(with = "Option<ImportanceName>")]
    importance: Option<Importance>,
    /// Task status
    #[arg(long, value_parser = chosen::<Status>(Status::ALL.map(Status::name)), hide_possible_values = true)]
    #[schemars(with = "Option<StatusName>")]
    status: Option<Status>,
    /// What blocks the task
    #[arg(long = "blocker", value_name = "BLOCKER")]
    blockers: Option<Vec<String>>,
    /// Outcome of the completed task
    #[arg(long)]
    outcome: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

fn change(
    cx: &Context,
    done: &'static str,
    act: impl FnOnce(&Records) -> Result<Done<Changed>>,
) -> Result<RecordChanged> {
    let records = cx.changing_records()?;
    let Done { outcome, change, replayed, .. } = act(&records)?;
    settle(&records);
    Ok(RecordChanged {
        done,
        record: outcome.record,
        version: outcome.version.map(|version| version.as_str().to_owned()),
        change: change.map(|change| name_of(&records, &change)),
        replayed,
    })
}

/// A list as it is given at a command line, where an empty text stands for an empty list.
fn cleared(list: Option<Vec<String>>) -> Option<Vec<String>> {
    list.map(|list| if list.iter().all(String::is_empty) { Vec::new() } else { list })
}

impl Verb for Update {
    const NAME: &'static str = "record_update";
    const TITLE: &'static str = "Change a record";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Records];
    type Answer = RecordChanged;

    fn run(self, cx: &Context) -> Result<RecordChanged> {
        let which = guarded(&self.id, &self.guard);
        let patch = Patch {
            content: self.content.map(|content| cx.fact(Some(content))).transpose()?,
            category: self.category,
            tags: cleared(self.tags),
            add_tags: Vec::new(),
            importance: self.importance,
            status: self.status,
            blockers: cleared(self.blockers),
            outcome: self.outcome,
        };
        if patch == Patch::default() {
            return Err(Error::new(Kind::Invalid, "there is nothing to change")
                .hint("name what to change, such as content or tags"));
        }
        let note = cx.note(Self::NAME, &self.guard);
        change(cx, "updated", |records| records.update(note, &which, &patch))
    }

    fn show(answer: &RecordChanged, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Archive records
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Archive {
    /// Record ids
    #[arg(value_name = "ID")]
    #[serde(default)]
    ids: Vec<String>,
    /// Archive everything that is due instead
    #[arg(long, conflicts_with = "ids")]
    #[serde(default)]
    due: bool,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

/// What was archived.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ArchiveAnswer {
    archived: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    /// The key was applied before; nothing was done now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

impl Verb for Archive {
    const NAME: &'static str = "record_archive";
    const TITLE: &'static str = "Archive records";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Records];
    type Answer = ArchiveAnswer;

    fn run(self, cx: &Context) -> Result<ArchiveAnswer> {
        if self.ids.is_empty() != self.due {
            return Err(Error::new(Kind::Invalid, "name the records to archive, or pass --due (`due`)"));
        }
        if self.due {
            refuse_version(&self.guard)?;
        }
        let records = cx.changing_records()?;
        let note = cx.note(Self::NAME, &self.guard);
        let done = match self.due {
            true => records.archive_due(note)?,
            false => {
                let which: Vec<Guarded> = self
                    .ids
                    .iter()
                    .map(|id| Guarded { id: id_of(id), expect: self.guard.expect.clone() })
                    .collect();
                records.archive(note, &which)?
            }
        };
        settle(&records);
        let change = done.change.map(|change| name_of(&records, &change));
        Ok(ArchiveAnswer { archived: done.outcome.archived, change, replayed: done.replayed })
    }

    fn show(answer: &ArchiveAnswer, page: &mut Page<'_>) -> io::Result<()> {
        for id in &answer.archived {
            page.put("archived ")?;
            page.ink(Ink::Strong, &Scheme::Record.address(id))?;
            crate::verbs::show_facts(page, None, answer.change.as_deref(), answer.replayed)?;
        }
        if answer.archived.is_empty() { page.ink(Ink::Dim, "nothing is due\n") } else { Ok(()) }
    }
}

/// Restore a record from the archive
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Restore {
    /// Record id
    id: String,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for Restore {
    const NAME: &'static str = "record_restore";
    const TITLE: &'static str = "Restore a record";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli, On::Records];
    type Answer = RecordChanged;

    fn run(self, cx: &Context) -> Result<RecordChanged> {
        let which = guarded(&self.id, &self.guard);
        let note = cx.note(Self::NAME, &self.guard);
        change(cx, "restored", |records| records.restore(note, &which))
    }

    fn show(answer: &RecordChanged, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}

/// Delete a record; backups and the history keep it
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Delete {
    /// Record id
    id: String,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

impl Verb for Delete {
    const NAME: &'static str = "record_delete";
    const TITLE: &'static str = "Delete a record";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Records];
    type Answer = RecordChanged;

    fn run(self, cx: &Context) -> Result<RecordChanged> {
        let which = guarded(&self.id, &self.guard);
        let note = cx.note(Self::NAME, &self.guard);
        change(cx, "deleted", |records| records.delete(note, &which))
    }

    fn show(answer: &RecordChanged, page: &mut Page<'_>) -> io::Result<()> {
        answer.show(page)
    }
}
