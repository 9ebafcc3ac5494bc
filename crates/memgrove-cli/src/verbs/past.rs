//! The past of memories: what happened, what it changed, and taking it back.

use std::io;

use memgrove::address::Scheme;
use memgrove::backend::{Op, Origin, Past, not_in_history};
use memgrove::clock::TimeZone;
use memgrove::shapes::records::RecordPast;
use memgrove::{Locator, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, On, Verb};
use crate::address::{address_of, changes_at, in_memories, is_memory};
use crate::context::Context;
use crate::deeds::Teller;
use crate::journals::Journals;
use crate::mounts::RECORDS;
use crate::page::{Ink, Page};
use crate::zone::clock;

/// Show the history, newest first
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct History {
    /// Only changes to this memory or folder
    address: Option<String>,
    /// Changes at most; 0 shows all
    #[arg(long, default_value_t = LIMIT)]
    #[serde(default = "limit")]
    limit: usize,
    /// Only before this change
    #[arg(long, value_name = "CHANGE")]
    before: Option<String>,
    /// Include automatic maintenance
    #[arg(long)]
    #[serde(default)]
    all: bool,
}

const LIMIT: usize = 20;

fn limit() -> usize {
    LIMIT
}

/// Past changes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HistoryAnswer {
    changes: Vec<PastChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
    /// What to give as `before` to see older changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_before: Option<String>,
    /// The memory that was asked about.
    #[serde(skip)]
    of: Option<String>,
}

/// One past change.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PastChange {
    change: String,
    time: String,
    /// What the user's clock showed.
    #[serde(skip)]
    clock: String,
    verb: String,
    by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    edits: Vec<PastEdit>,
}

/// What one edit did.
#[derive(Debug, Serialize, JsonSchema)]
struct PastEdit {
    op: &'static str,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// The memory that was touched, where that can be told from its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<String>,
    /// What it says, in its first words.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Whether it only follows from what else was done.
    #[serde(skip)]
    aside: bool,
}

impl PastEdit {
    fn name(&self) -> &str {
        self.memory.as_ref().unwrap_or(&self.at)
    }
}

/// The most edits of one change that are shown.
const EDITS_MAX: usize = 20;

impl Verb for History {
    const NAME: &'static str = "history";
    const TITLE: &'static str = "Show the history";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Files];
    type Answer = HistoryAnswer;

    fn run(self, cx: &Context) -> Result<HistoryAnswer> {
        let journals = Journals::reading(cx)?;
        let (mut past, cut) = self.past(cx, &journals)?;
        let more = self.limit > 0 && past.len() > self.limit;
        if more {
            past.truncate(self.limit);
        }
        let last = past.last().map(|change| change.change.as_str().to_owned());
        let next_before = last.filter(|_| more);
        let left_out = match &next_before {
            Some(last) => Some(format!("older changes: {} {last}", cx.option("before"))),
            None => cut.then(|| "older changes of its file were not searched".to_owned()),
        };
        let changes = told_all(cx, &journals, past);
        Ok(HistoryAnswer { changes, left_out, next_before, of: self.address })
    }

    fn show(answer: &HistoryAnswer, page: &mut Page<'_>) -> io::Result<()> {
        for change in &answer.changes {
            change.show(page)?;
        }
        if answer.changes.is_empty() {
            let nothing = match &answer.of {
                Some(address) => format!("no changes to `{}` are known", one_line(address)),
                None => "no changes yet".to_owned(),
            };
            page.ink(Ink::Dim, &format!("{nothing}\n"))?;
        }
        match &answer.left_out {
            Some(left_out) => page.ink(Ink::Warning, &format!("[{left_out}]\n")),
            None => Ok(()),
        }
    }
}

impl History {
    /// The changes asked for plus one, which tells whether there are more; and whether the search was cut
    /// short.
    fn past(&self, cx: &Context, journals: &Journals) -> Result<(Vec<Past>, bool)> {
        let limit = if self.limit == 0 { 0 } else { self.limit.saturating_add(1) };
        if let Some(id) = self.address.as_deref().and_then(|address| Scheme::Record.of(address)) {
            return past_of_record(cx, journals, id, self.before.as_deref(), limit);
        }
        let at = self.address.as_deref().map(|address| changes_at(cx, address)).transpose()?;
        let past = journals.history(at.as_ref(), self.before.as_deref(), limit, self.all);
        Ok((past.map_err(|error| in_memories(cx, error))?, false))
    }
}

/// The changes of a record before `before`, at most `limit` (0, or any with `before`, is no limit), and
/// whether the search was cut short.
pub(crate) fn past_of_record(
    cx: &Context,
    journals: &Journals,
    id: &str,
    before: Option<&str>,
    limit: usize,
) -> Result<(Vec<Past>, bool)> {
    let (journal, _) = journals.of_place(&Locator::new(RECORDS)?);
    let limit = if before.is_some() { 0 } else { limit };
    let RecordPast { changes, cut } = cx.reading_records()?.history_of(id, limit)?;
    let mut changes: Vec<Past> = changes.into_iter().map(|past| journal.told(past)).collect();
    if let Some(before) = before {
        let newer = changes.iter().position(|past| past.change.as_str() == before);
        let newer = newer.ok_or_else(|| not_in_history(format!("a change `{before}` of `record:{id}`")))?;
        changes.drain(..=newer);
    }
    Ok((changes, cut))
}

/// Describes changes as the history shows them.
pub(crate) fn told_all(cx: &Context, journals: &Journals, past: Vec<Past>) -> Vec<PastChange> {
    let (mut teller, zone) = (Teller::new(cx, journals), cx.environment().zone.zone());
    past.into_iter().map(|change| told(cx, &zone, &mut teller, change)).collect()
}

fn told(cx: &Context, zone: &TimeZone, teller: &mut Teller<'_>, past: Past) -> PastChange {
    let mut edits: Vec<PastEdit> = Vec::new();
    for edit in &past.edits {
        let at = address_of(cx, &edit.at);
        for deed in teller.deeds(&past, edit) {
            edits.push(PastEdit {
                op: op_name(deed.op),
                memory: Some(deed.address).filter(|address| *address != at),
                at: at.clone(),
                to: edit.to.as_ref().map(|to| address_of(cx, to)),
                text: deed.words,
                version: edit.new.as_ref().map(|version| version.as_str().to_owned()),
                aside: !is_memory(&edit.at),
            });
        }
    }
    let actor = past.note.actor;
    let by = match (actor.origin, actor.client) {
        (origin, Some(client)) => format!("{} {client}", origin_name(origin)),
        (origin, None) => origin_name(origin).to_owned(),
    };
    PastChange {
        change: past.change.as_str().to_owned(),
        time: past.time.to_string(),
        clock: clock(zone, past.time),
        verb: past.note.verb,
        by,
        session: actor.session,
        reason: past.note.reason,
        edits,
    }
}

impl PastChange {
    fn show(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.ink(Ink::Strong, &self.change)?;
        page.ink(Ink::Dim, &format!("  {}  ", self.clock))?;
        page.put(&format!("{} by {}", self.verb, one_line(&self.by)))?;
        if let Some(session) = &self.session {
            page.ink(Ink::Dim, &format!(" in {}", one_line(session)))?;
        }
        if let Some(reason) = &self.reason {
            page.put(&format!(": {}", one_line(reason)))?;
        }
        page.put("\n")?;
        let all_aside = self.edits.iter().all(|edit| edit.aside);
        let mut shown: Vec<&PastEdit> = self.edits.iter().filter(|edit| all_aside || !edit.aside).collect();
        shown.dedup_by(|next, edit| (next.op, next.name()) == (edit.op, edit.name()));
        for edit in shown.iter().take(EDITS_MAX) {
            let to = edit.to.as_ref().map_or(String::new(), |to| format!(" to {to}"));
            page.put(&format!("    {} {}{to}", edit.op, edit.name()))?;
            let words = edit.text.as_ref().map_or(String::new(), |text| format!("  {}", one_line(text)));
            page.ink(Ink::Dim, &format!("{words}\n"))?;
        }
        match shown.len().checked_sub(EDITS_MAX) {
            Some(more) if more > 0 => page.ink(Ink::Dim, &format!("    and {more} more\n")),
            _ => Ok(()),
        }
    }
}

/// A text on one line: a newline in it must not look like another change.
fn one_line(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

fn op_name(op: Op) -> &'static str {
    match op {
        Op::Write => "write",
        Op::Append => "append",
        Op::Delete => "delete",
        Op::Rename => "rename",
    }
}

fn origin_name(origin: Origin) -> String {
    origin.name().replace('_', " ")
}
