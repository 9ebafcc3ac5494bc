//! Taking back: a difference to look at, a memory as it was, a change undone.

use std::io;

use memgrove::backend::{ChangeId, HistoryQuery, Moment, Version};
use memgrove::memory::{Done, Point, Restored, UndoOutcome, UndoScope};
use memgrove::{Error, Kind, Memory, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::short;
use super::{Effect, On, Verb};
use crate::address::{address_of, in_memories, memory_at, path_of};
use crate::context::{Context, Guard};
use crate::page::{Ink, Page};
use crate::portion::{self, LineRange};
use crate::rehearsal::rehearsed;

/// What a difference answers with, in tokens, unless it is asked for more.
const DIFF_TOKENS_MAX: usize = 4_000;

/// Show how a memory changed, by default in its latest change
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Diff {
    /// Such as file:/memories/notes.md
    address: String,
    /// Since this change or version
    from: Option<String>,
    /// Up to this change or version [default: now]
    to: Option<String>,
    /// At most so many tokens
    #[arg(long, default_value_t = DIFF_TOKENS_MAX)]
    #[serde(default = "diff_tokens_max")]
    budget: usize,
}

fn diff_tokens_max() -> usize {
    DIFF_TOKENS_MAX
}

/// A difference.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DiffAnswer {
    address: String,
    /// As a unified diff; empty if there is none.
    diff: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
}

impl Verb for Diff {
    const NAME: &'static str = "diff";
    const TITLE: &'static str = "Show how a memory changed";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::All];
    type Answer = DiffAnswer;

    fn run(self, cx: &Context) -> Result<DiffAnswer> {
        let at = memory_at(cx, &self.address)?;
        let address = address_of(cx, &at);
        let memory = cx.reading()?;
        let from = match &self.from {
            Some(from) => point(from),
            None => {
                let query = HistoryQuery { at: Some(at.clone()), before: None, limit: 1 };
                let latest = memory.history(&query)?.into_iter().next().ok_or_else(|| {
                    Error::new(Kind::NotFound, format!("`{address}` has no history"))
                        .hint("`memgrove history` shows what has one")
                })?;
                Point::Moment(Moment::Before(latest.change))
            }
        };
        let to = self.to.as_deref().map(point);
        let diff = memory.diff(&at, &from, to.as_ref()).map_err(|error| in_memories(cx, error))?;
        let (path, key) = (path_of(cx, &at), at.key());
        let diff = diff.replacen(&format!("--- a/{key}\t"), &format!("--- {path}\t"), 1).replacen(
            &format!("+++ b/{key}\t"),
            &format!("+++ {path}\t"),
            1,
        );
        let cut = portion::lines(&diff, LineRange::default(), self.budget);
        let left_out =
            (cut.to < cut.lines).then(|| format!("{} more lines: raise the budget", cut.lines - cut.to));
        let diff = if left_out.is_some() { format!("{}\n", cut.text) } else { diff };
        Ok(DiffAnswer { address, diff, left_out })
    }

    fn show(answer: &DiffAnswer, page: &mut Page<'_>) -> io::Result<()> {
        for line in answer.diff.split_inclusive('\n') {
            match line.as_bytes().first() {
                Some(b'+') => page.ink(Ink::Added, line)?,
                Some(b'-') => page.ink(Ink::Removed, line)?,
                Some(b'@') => page.ink(Ink::Dim, line)?,
                _ => page.put(line)?,
            }
        }
        if answer.diff.is_empty() {
            page.ink(Ink::Dim, "no difference\n")?;
        }
        answer.left_out.iter().try_for_each(|left_out| page.ink(Ink::Warning, &format!("[{left_out}]\n")))
    }
}

/// A point in the past by its name: 32 hexadecimal digits are a version, anything else a change.
pub(crate) fn point(name: &str) -> Point {
    if name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Point::Version(Version::new(name))
    } else {
        Point::Moment(Moment::After(ChangeId::new(name)))
    }
}

/// Make a memory what it was after a change
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Restore {
    /// Such as file:/memories/notes.md
    address: String,
    /// The change or version
    #[arg(long, value_name = "CHANGE")]
    to: String,
    #[command(flatten)]
    #[serde(flatten)]
    guard: Guard,
}

/// What restoring did.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RestoreAnswer {
    done: &'static str,
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

impl Verb for Restore {
    const NAME: &'static str = "restore";
    const TITLE: &'static str = "Restore a memory";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::All];
    type Answer = RestoreAnswer;

    fn run(self, cx: &Context) -> Result<RestoreAnswer> {
        let at = memory_at(cx, &self.address)?;
        let memory = cx.writing()?;
        let expect = self.guard.expected(memory.store(), &at)?;
        let done = memory
            .restore(cx.note(Self::NAME, &self.guard), &at, &point(&self.to), expect.as_ref())
            .map_err(|error| in_memories(cx, error))?;
        let Done { outcome, change, versions, replayed } = done;
        cx.touched([&at])?;
        let done = match outcome {
            Restored::Written => "restored",
            Restored::Deleted => "deleted",
            Restored::Unchanged => "unchanged",
        };
        let version = versions.into_iter().flatten().last().map(|version| version.as_str().to_owned());
        let change = change.map(|change| change.as_str().to_owned());
        Ok(RestoreAnswer { done, address: address_of(cx, &at), version, change, replayed })
    }

    fn show(answer: &RestoreAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put(&format!("{} ", answer.done))?;
        page.ink(Ink::Strong, &answer.address)?;
        let version = answer.version.iter().map(|version| format!("version {}", short(version)));
        let change = answer.change.iter().map(|change| format!("change {change}"));
        let facts: Vec<String> = version.chain(change).collect();
        page.ink(
            Ink::Dim,
            &if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) },
        )?;
        page.put("\n")
    }
}

/// Take back the latest change, or the one named
///
/// In a session (over MCP, or with MEMGROVE_SESSION) the latest change of that session. An undo is a
/// change itself, and can be undone by its name.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Undo {
    /// The change
    #[arg(group = "scope")]
    change: Option<String>,
    /// All changes of this session
    #[arg(long, group = "scope")]
    session: Option<String>,
    /// All changes of this client or origin
    #[arg(long, group = "scope", value_name = "NAME")]
    source: Option<String>,
    /// The latest change of this memory
    #[arg(long, group = "scope", value_name = "ADDRESS")]
    memory: Option<String>,
    /// Only tell what would be done
    #[arg(long)]
    #[serde(default)]
    dry_run: bool,
    /// Idempotency key
    #[arg(long)]
    key: Option<String>,
    /// Why, for the history
    #[arg(long, allow_hyphen_values = true)]
    reason: Option<String>,
}

/// What was undone, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UndoAnswer {
    /// Whether it was only planned.
    planned: bool,
    /// The changes that were taken back.
    undone: Vec<String>,
    /// The memories that they had touched.
    touched: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

impl Verb for Undo {
    const NAME: &'static str = "undo";
    const TITLE: &'static str = "Undo a change";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Core, On::Files];
    type Answer = UndoAnswer;

    fn run(self, cx: &Context) -> Result<UndoAnswer> {
        let memory = if self.dry_run { rehearsed(&cx.reading()?) } else { cx.writing()? };
        let told = |error| in_memories(cx, error);
        let scope = self.scope(cx, &memory).map_err(told)?;
        let guard = Guard { expect: None, key: self.key, reason: self.reason };
        let done = memory.undo(cx.note(Self::NAME, &guard), &scope).map_err(told)?;
        let Done { outcome: UndoOutcome { changes, places }, change, replayed, .. } = done;
        if !self.dry_run {
            cx.touched(&places)?;
        }
        Ok(UndoAnswer {
            planned: self.dry_run,
            undone: changes.iter().map(|change| change.as_str().to_owned()).collect(),
            touched: places.iter().map(|at| address_of(cx, at)).collect(),
            change: change.filter(|_| !self.dry_run).map(|change| change.as_str().to_owned()),
            replayed,
        })
    }

    fn show(answer: &UndoAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put(if answer.planned { "would undo " } else { "undid " })?;
        page.put(if answer.undone.len() == 1 { "change " } else { "changes " })?;
        page.ink(Ink::Strong, &answer.undone.join(", "))?;
        if let Some(change) = &answer.change {
            page.ink(Ink::Dim, &format!(" (change {change})"))?;
        }
        page.put("\n")?;
        answer.touched.iter().try_for_each(|address| page.line(&format!("    {address}")))
    }
}

impl Undo {
    fn scope(&self, cx: &Context, memory: &Memory) -> Result<UndoScope> {
        let scopes = [&self.change, &self.session, &self.source, &self.memory];
        if scopes.iter().filter(|scope| scope.is_some()).count() > 1 {
            return Err(Error::new(
                Kind::Invalid,
                "only one of change, session, source and memory can be undone",
            )
            .hint("undo one after the other"));
        }
        Ok(match scopes {
            [Some(change), ..] => UndoScope::Change(ChangeId::new(change.as_str())),
            [_, Some(session), ..] => UndoScope::Session(session.clone()),
            [_, _, Some(source), _] => UndoScope::Source(source.clone()),
            [.., Some(address)] => UndoScope::Memory(memory_at(cx, address)?),
            _ => match &cx.actor.session {
                None => UndoScope::Last,
                // A repeat of a key is answered whatever there is to undo by now.
                Some(_) if self.key.is_some() && self.was_applied(memory)? => UndoScope::Last,
                Some(session) => UndoScope::Change(latest_of(memory, session)?),
            },
        })
    }

    fn was_applied(&self, memory: &Memory) -> Result<bool> {
        let key = self.key.as_deref().unwrap_or_default();
        Ok(memory.store().backend().applied(key)?.is_some())
    }
}

/// The latest change of a session that can be undone: with several agents on one store, the latest
/// of all may be somebody else's.
fn latest_of(memory: &Memory, session: &str) -> Result<ChangeId> {
    let planned = rehearsed(memory);
    let own = memory
        .history(&HistoryQuery::default())?
        .into_iter()
        .filter(|past| past.note.actor.session.as_deref() == Some(session) && past.note.verb != Undo::NAME);
    for past in own {
        let scope = UndoScope::Change(past.change.clone());
        match planned.undo(memgrove::backend::Note::default(), &scope) {
            // Undone before.
            Err(error) if error.kind() == Kind::Invalid => {}
            _ => return Ok(past.change),
        }
    }
    Err(Error::new(Kind::NotFound, "nothing of this session is left to undo")
        .hint("name a change: the history shows them all"))
}
