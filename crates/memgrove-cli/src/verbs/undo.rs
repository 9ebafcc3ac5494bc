//! Taking back: a memory as it was, a change undone.

use std::io;

use memgrove::address::Scheme;
use memgrove::backend::{ChangeId, HistoryQuery, Moment, Note, Past, Version, not_in_history};
use memgrove::memory::{Done, Point, Restored, UndoOutcome, UndoScope};
use memgrove::shapes::records::Guarded;
use memgrove::{Error, Kind, Locator, Memory, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, On, Verb, show_facts};
use crate::address::{address_of, called, changes_at, in_memories, past_at};
use crate::context::{Context, Guard};
use crate::deeds::Teller;
use crate::journals::{Journal, Journals};
use crate::mounts::RECORDS;
use crate::page::{Ink, Page};
use crate::rehearsal::rehearsed;

/// Resolves a point in the past of a place: the first characters of a version, at least 8, or else the name
/// of a change.
pub(crate) fn point(memory: &Memory, at: &Locator, name: &str) -> Result<Point> {
    let Some(start) = version_from(name) else { return Ok(after(name)) };
    let mut found = memory.versions_from(at, &start)?.into_iter();
    match (found.next(), found.next()) {
        (Some(version), None) => Ok(Point::Version(version)),
        (Some(_), Some(_)) => {
            Err(Error::new(Kind::Invalid, format!("several versions of `{at}` start with `{start}`"))
                .hint("give more characters of it"))
        }
        // A version may be whole but unknown to the history, which does not name what appends leave.
        _ if start.len() == VERSION_CHARS => Ok(Point::Version(Version::new(start))),
        _ if is_number(name) => Ok(after(name)),
        _ => Err(not_in_history(format!("a version `{start}` of `{at}`"))),
    }
}

/// As [`point`], for a record, whose versions are found only in its lines.
pub(crate) fn point_of_record(name: &str) -> Point {
    match version_from(name).filter(|_| !is_number(name)) {
        Some(start) => Point::Version(Version::new(start)),
        None => after(name),
    }
}

/// How many characters a version has.
const VERSION_CHARS: usize = 32;

fn version_from(name: &str) -> Option<String> {
    let fits = (Version::PREFIX_MIN..=VERSION_CHARS).contains(&name.len());
    (fits && name.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| name.to_ascii_lowercase())
}

fn is_number(name: &str) -> bool {
    name.len() < VERSION_CHARS && name.bytes().all(|byte| byte.is_ascii_digit())
}

fn after(change: &str) -> Point {
    Point::Moment(Moment::After(ChangeId::new(change)))
}

/// Restore a memory to what it was after a change
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Restore {
    /// Such as file:/memories/notes.md
    address: String,
    /// Change or version to restore
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
        let told = |error| in_memories(cx, error);
        let expect = self.guard.expect.as_deref();
        let journals = Journals::writing(cx)?;
        match Scheme::split(&self.address) {
            Some((Scheme::Record, id)) => {
                let (records, (journal, _)) =
                    (cx.reading_records()?, journals.of_place(&Locator::new(RECORDS)?));
                let which = Guarded { id: id.to_owned(), expect: expect.map(str::to_owned) };
                let done = records.restore_past(note, &which, &journal.point_of_record(&self.to)?);
                let done = done.map_err(|error| journal.told_error(error))?;
                super::record::settle(&records);
                let change = done.change.as_ref().map(|change| journal.name(change));
                let version = records.view(id).ok().map(|got| got.version.as_str().to_owned());
                Ok(RestoreAnswer { version, ..RestoreAnswer::new(self.address.clone(), done, change) })
            }
            Some((kind @ (Scheme::Node | Scheme::Connection), id)) => {
                let (graph, at) = (cx.changing_graph()?, changes_at(cx, &self.address)?);
                let point = point(graph.memory(), &at, &self.to).map_err(told)?;
                let done = match kind {
                    Scheme::Node => graph.restore(note, id, &point, expect)?,
                    _ => graph.restore_connection(note, id, &point, expect)?,
                };
                let change = done.change.as_ref().map(|change| change.as_str().to_owned());
                Ok(RestoreAnswer::new(self.address.clone(), done, change))
            }
            _ => {
                let at = past_at(cx, &self.address)?;
                let (journal, inside) = journals.of_place(&at);
                let expect = self.guard.expected(journal.memory.store(), &inside)?;
                let point = journal.point(&inside, &self.to).map_err(told)?;
                let done = journal.restore(note, &inside, &point, expect.as_ref()).map_err(told)?;
                let change = done.change.as_ref().map(|change| journal.name(change));
                cx.touched([&at])?;
                Ok(RestoreAnswer::new(called(cx, &self.address, &at), done, change))
            }
        }
    }

    fn show(answer: &RestoreAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put(&format!("{} ", answer.done))?;
        page.ink(Ink::Strong, &answer.address)?;
        show_facts(page, answer.version.as_deref(), answer.change.as_deref(), answer.replayed)
    }
}

/// Undo the latest change, or the one given
///
/// In a session (over MCP, or with MEMGROVE_SESSION), that is the session's latest change. An import or
/// a copy is undone whole, unless one of its changes is given. An undo is itself a change, and can be
/// undone by its number.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Undo {
    /// Change to undo
    #[arg(group = "scope")]
    change: Option<String>,
    /// All changes of this session
    #[arg(long, group = "scope")]
    session: Option<String>,
    /// All changes by this client or origin
    #[arg(long, group = "scope", value_name = "NAME")]
    source: Option<String>,
    /// The latest change to this memory
    #[arg(long, group = "scope", value_name = "ADDRESS")]
    memory: Option<String>,
    /// Only show what would be done
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
    const ON: &'static [On] =
        &[On::Cli, On::Core, On::Files, On::Records, On::Entities, On::Notes, On::Graph];
    type Answer = UndoAnswer;

    fn run(self, cx: &Context) -> Result<UndoAnswer> {
        let journals = if self.dry_run { Journals::rehearsing(cx)? } else { Journals::writing(cx)? };
        let told = |error| in_memories(cx, error);
        let guard = Guard { expect: None, key: self.key.clone(), reason: self.reason.clone() };
        let note = cx.note(Self::NAME, &guard);
        let meant = self.meant(cx, &journals, &note).map_err(told)?;
        if meant.len() > 1 {
            // Journals change separately, so all are tried first: what one refuses must not be done by half.
            for (journal, scope) in &meant {
                rehearsed(&journal.memory).undo(note.clone(), scope).map_err(told)?;
            }
        }
        let (mut answer, mut made) =
            (UndoAnswer { planned: self.dry_run, ..UndoAnswer::default() }, Vec::new());
        let mut teller = Teller::new(cx, &journals);
        for (journal, scope) in meant {
            let past = journal.memory.undoable(&scope).unwrap_or_default();
            let done = journal.undo(note.clone(), &scope).map_err(told)?;
            let Done { outcome: UndoOutcome { changes, places }, change, replayed, .. } = done;
            if !self.dry_run {
                cx.touched(&places)?;
            }
            answer.undone.extend(changes.iter().map(|change| journal.name(change)));
            let past = match past.iter().map(|past| &past.change).eq(&changes) {
                true => past,
                // They were undone before, so they are no longer among those that can be.
                false => named(&journal.memory, &changes)?,
            };
            match past.len() == changes.len() {
                true => answer.touched.extend(teller.touched(journal, &past)),
                false => answer.touched.extend(places.iter().map(|at| address_of(cx, &journal.place(at)))),
            }
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
        show_facts(page, None, answer.change.as_deref(), answer.replayed)?;
        answer.touched.iter().try_for_each(|address| page.line(&format!("    {address}")))
    }
}

/// The changes with these names, newest first, as far as the history still holds them.
fn named(memory: &Memory, changes: &[ChangeId]) -> Result<Vec<Past>> {
    let mut all = memory.history(&HistoryQuery::default())?;
    all.retain(|past| changes.contains(&past.change));
    Ok(all)
}

impl Undo {
    /// What is to be undone, and in which journals.
    fn meant<'a>(
        &self,
        cx: &Context,
        journals: &'a Journals,
        note: &Note,
    ) -> Result<Vec<(&'a Journal, UndoScope)>> {
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
                if let Some(id) = Scheme::Record.of(address) {
                    let (journal, _) = journals.of_place(&Locator::new(RECORDS)?);
                    let changes = cx.reading_records()?.history_of(id, 0)?.changes;
                    return Ok(vec![(journal, UndoScope::Change(latest_live(&journal.memory, changes)?))]);
                }
                let (journal, at) = journals.of_place(&changes_at(cx, address)?);
                return Ok(vec![(journal, UndoScope::Memory(at))]);
            }
            [_, Some(session), ..] => UndoScope::Session(session.clone()),
            [_, _, Some(source), _] => UndoScope::Source(source.clone()),
            // With several agents on one store, the latest change of all may be someone else's.
            _ => match &cx.actor.session {
                None => UndoScope::Last,
                Some(session) => UndoScope::LastOf(session.clone()),
            },
        };
        // A repeat of a key gets its answer, whatever there is to undo now.
        for journal in journals.iter() {
            if journal.memory.repeated(note)?.is_some() {
                return Ok(vec![(journal, scope)]);
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
            // If two are of the same time, the store's own journal wins, because it is first.
            found.sort_by_key(|found| std::cmp::Reverse(newest(found)));
            found.truncate(1);
        }
        Ok(found.into_iter().map(|(journal, _)| (journal, scope.clone())).collect())
    }
}

/// The latest of some changes that has not been undone yet.
fn latest_live(memory: &Memory, changes: Vec<Past>) -> Result<ChangeId> {
    let planned = rehearsed(memory);
    for past in changes.into_iter().filter(|past| past.note.verb != Undo::NAME) {
        let scope = UndoScope::Change(past.change.clone());
        match planned.undo(Note::default(), &scope) {
            // Undone before.
            Err(error) if error.kind() == Kind::Invalid => {}
            _ => return Ok(past.change),
        }
    }
    Err(Error::new(Kind::NotFound, "there is nothing left to undo")
        .hint("another change can be undone by its number; `memgrove history` lists them"))
}
