//! Taking back: a difference to look at, a memory as it was, a change undone.

use std::io;

use memgrove::backend::{ChangeId, HistoryQuery, Moment, Past, Version};
use memgrove::memory::{Done, Point, Restored, UndoOutcome, UndoScope};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::short;
use super::{Effect, On, Verb};
use crate::address::{address_of, in_memories, memory_at, past_at, path_of};
use crate::context::{Context, Guard};
use crate::journals::{Journal, Journals};
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
        let journals = Journals::reading(cx)?;
        let (journal, inside) = journals.of_place(&at);
        let memory = &journal.memory;
        let from = match &self.from {
            Some(from) => journal.point(from)?,
            None => {
                let query = HistoryQuery { at: Some(inside.clone()), before: None, limit: 1 };
                let latest = memory.history(&query)?.into_iter().next().ok_or_else(|| {
                    Error::new(Kind::NotFound, format!("`{address}` has no history"))
                        .hint("`memgrove history` shows what has one")
                })?;
                Point::Moment(Moment::Before(latest.change))
            }
        };
        let to = self.to.as_deref().map(|to| journal.point(to)).transpose()?;
        let diff = memory.diff(&inside, &from, to.as_ref()).map_err(|error| in_memories(cx, error))?;
        let (path, key) = (path_of(cx, &at), inside.key());
        let diff = diff.replacen(&format!("--- a/{key}\t"), &format!("--- {path}\t"), 1).replacen(
            &format!("+++ b/{key}\t"),
            &format!("+++ {path}\t"),
            1,
        );
        let cut = portion::lines(&diff, LineRange::default(), self.budget);
        let more = |_| format!("{} more lines: raise the budget", cut.lines - cut.to);
        let left_out = cut.left_out().map(|told| if cut.to < cut.lines { more(told) } else { told });
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

impl RestoreAnswer {
    fn new(address: String, done: Done<Restored>, change: Option<String>) -> Self {
        let what = match done.outcome {
            Restored::Written => "restored",
            Restored::Deleted => "deleted",
            Restored::Unchanged => "unchanged",
        };
        let version = done.versions.into_iter().flatten().last().map(|version| version.as_str().to_owned());
        RestoreAnswer { done: what, address, version, change, replayed: done.replayed }
    }
}

impl Verb for Restore {
    const NAME: &'static str = "restore";
    const TITLE: &'static str = "Restore a memory";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::All];
    type Answer = RestoreAnswer;

    fn run(self, cx: &Context) -> Result<RestoreAnswer> {
        let note = cx.note(Self::NAME, &self.guard);
        if let Some((kind @ ("node" | "connection"), id)) = self.address.split_once(':') {
            let (graph, point, expect) = (cx.graph()?, point(&self.to), self.guard.expect.as_deref());
            let done = match kind {
                "node" => graph.restore(note, id, &point, expect)?,
                _ => graph.restore_connection(note, id, &point, expect)?,
            };
            let change = done.change.as_ref().map(|change| change.as_str().to_owned());
            return Ok(RestoreAnswer::new(self.address.clone(), done, change));
        }
        let at = memory_at(cx, &self.address)?;
        let journals = Journals::writing(cx)?;
        let (journal, inside) = journals.of_place(&at);
        let expect = self.guard.expected(journal.memory.store(), &inside)?;
        let done = journal
            .restore(note, &inside, &journal.point(&self.to)?, expect.as_ref())
            .map_err(|error| in_memories(cx, error))?;
        let change = done.change.as_ref().map(|change| journal.name(change));
        cx.touched([&at])?;
        Ok(RestoreAnswer::new(address_of(cx, &at), done, change))
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
#[derive(Debug, Default, Serialize, JsonSchema)]
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
        let journals = if self.dry_run { Journals::rehearsing(cx)? } else { Journals::writing(cx)? };
        let told = |error| in_memories(cx, error);
        let guard = Guard { expect: None, key: self.key.clone(), reason: self.reason.clone() };
        let note = cx.note(Self::NAME, &guard);
        let meant = self.meant(cx, &journals).map_err(told)?;
        if meant.len() > 1 {
            // Each journal is changed for itself: what one refuses shall not be half done.
            for (journal, scope) in &meant {
                rehearsed(&journal.memory).undo(note.clone(), scope).map_err(told)?;
            }
        }
        let (mut answer, mut made) =
            (UndoAnswer { planned: self.dry_run, ..UndoAnswer::default() }, Vec::new());
        for (journal, scope) in meant {
            let done = journal.undo(note.clone(), &scope).map_err(told)?;
            let Done { outcome: UndoOutcome { changes, places }, change, replayed, .. } = done;
            if !self.dry_run {
                cx.touched(&places)?;
            }
            answer.undone.extend(changes.iter().map(|change| journal.name(change)));
            answer.touched.extend(places.iter().map(|at| address_of(cx, &journal.place(at))));
            made.extend(change.filter(|_| !self.dry_run).map(|change| journal.name(&change)));
            answer.replayed |= replayed;
        }
        answer.change = (!made.is_empty()).then(|| made.join(", "));
        Ok(answer)
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
    /// What is to be undone, and in which journals.
    fn meant<'a>(&self, cx: &Context, journals: &'a Journals) -> Result<Vec<(&'a Journal, UndoScope)>> {
        let scopes = [&self.change, &self.session, &self.source, &self.memory];
        if scopes.iter().filter(|scope| scope.is_some()).count() > 1 {
            return Err(Error::new(
                Kind::Invalid,
                "only one of change, session, source and memory can be undone",
            )
            .hint("undo one after the other"));
        }
        let scope = match scopes {
            [Some(change), ..] => {
                let (journal, change) = journals.of_change(change);
                return Ok(vec![(journal, UndoScope::Change(change))]);
            }
            [.., Some(address)] => {
                let (journal, at) = journals.of_place(&past_at(cx, address)?);
                return Ok(vec![(journal, UndoScope::Memory(at))]);
            }
            [_, Some(session), ..] => UndoScope::Session(session.clone()),
            [_, _, Some(source), _] => UndoScope::Source(source.clone()),
            // With several agents on one store, the latest of all may be somebody else's.
            _ => match &cx.actor.session {
                None => UndoScope::Last,
                Some(session) => UndoScope::LastOf(session.clone()),
            },
        };
        // A repeat of a key is answered whatever there is to undo by now.
        if let Some(key) = &self.key {
            for journal in journals.iter() {
                if journal.memory.store().backend().applied(key)?.is_some() {
                    return Ok(vec![(journal, scope)]);
                }
            }
        }
        let mut found = Vec::new();
        let mut nothing = None;
        for journal in journals.iter() {
            match journal.memory.undoable(&scope) {
                Ok(past) => found.push((journal, past)),
                Err(error) if error.kind() == Kind::NotFound => nothing = nothing.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        if let (true, Some(error)) = (found.is_empty(), nothing) {
            return Err(error);
        }
        if matches!(scope, UndoScope::Last | UndoScope::LastOf(_)) {
            let newest = |(_, past): &(&Journal, Vec<Past>)| past.first().map(|past| past.time);
            // Of two at one time the store's own, which is first.
            found.sort_by_key(|found| std::cmp::Reverse(newest(found)));
            found.truncate(1);
        }
        Ok(found.into_iter().map(|(journal, _)| (journal, scope.clone())).collect())
    }
}
