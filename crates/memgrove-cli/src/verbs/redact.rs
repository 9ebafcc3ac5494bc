//! Taking what a memory was out of the history for good.

use std::collections::BTreeSet;
use std::io;

use memgrove::address::Scheme;
use memgrove::backend::{ChangeId, HistoryQuery, Moment, Note, Past, PastEdit, Version, not_in_history};
use memgrove::error::code;
use memgrove::{Error, Kind, Locator, Memory, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::consent::Consent;
use super::read::names_part;
use super::{Effect, On, Verb};
use crate::address::{called, in_memories, past_at};
use crate::context::Context;
use crate::journals::{Journal, Journals};
use crate::mounts::RECORDS;
use crate::page::{Ink, Page};

/// Remove past versions of a memory from the history for good
///
/// Removes every version but the current one from the journal, the backups beside it and the index;
/// `forget` it first to remove that one too. That changes were made, by whom, when and why,
/// stays. Redacting a record removes every version of its file that held it: the other records stay as they are, but lose
/// those past versions. This cannot be undone.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Redact {
    /// Such as file:/memories/notes.md, or a forgotten record
    address: String,
    /// Only the version after this change
    #[arg(long)]
    change: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    consent: Consent,
}

/// What was taken out, or would be.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct RedactAnswer {
    address: String,
    /// Whether it was only planned.
    planned: bool,
    /// The changes whose content is gone.
    changes: Vec<String>,
    /// What could not be taken out, or was not to be, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left: Vec<String>,
    #[serde(skip)]
    failed: Option<Kind>,
}

impl Verb for Redact {
    const NAME: &'static str = "redact";
    const TITLE: &'static str = "Redact a memory";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Http];
    type Answer = RedactAnswer;

    fn run(self, cx: &Context) -> Result<RedactAnswer> {
        self.consent.check("redacted")?;
        let mut answer = match Scheme::split(&self.address) {
            Some((Scheme::Record, id)) => self.record(cx, id)?,
            _ if names_part(cx, &self.address) || self.address.contains('#') => {
                let whole = self.address.split('#').next().unwrap_or_default();
                let message = format!("`{}` is a part of a memory", self.address.escape_debug());
                return Err(Error::new(Kind::Invalid, message)
                    .hint(format!("forget it, then redact the whole: `memgrove redact {whole}`")));
            }
            Some((thing @ (Scheme::Node | Scheme::Connection), id)) => self.in_graph(cx, thing, id)?,
            _ => self.place(cx).map_err(|error| in_memories(cx, error))?,
        };
        if !self.consent.is_planned()
            && !answer.changes.is_empty()
            && let Err(error) = cx.index().and_then(|index| index.scrub())
        {
            answer.left.push(format!("the index may still hold it: {error}"));
            answer.failed = Some(error.kind());
        }
        Ok(answer)
    }

    fn show(answer: &RedactAnswer, page: &mut Page<'_>) -> io::Result<()> {
        match (answer.changes.as_slice(), answer.planned) {
            ([], _) => page.put("nothing is left to redact of ")?,
            (_, true) => page.put("would redact ")?,
            (_, false) => page.put("redacted ")?,
        }
        page.ink(Ink::Strong, &answer.address)?;
        match answer.changes.as_slice() {
            [] => page.put("\n")?,
            [one] => page.ink(Ink::Dim, &format!(" in change {one}\n"))?,
            several => page.ink(Ink::Dim, &format!(" in changes {}\n", several.join(", ")))?,
        }
        answer.left.iter().try_for_each(|left| page.ink(Ink::Warning, &format!("[{left}]\n")))
    }

    fn failed(answer: &RedactAnswer) -> Option<Kind> {
        answer.failed
    }
}

/// One version of a place, and when it was there.
struct Held {
    at: Locator,
    moment: Moment,
    change: ChangeId,
    version: Version,
}

impl Redact {
    fn record(&self, cx: &Context, id: &str) -> Result<RedactAnswer> {
        if self.change.is_some() {
            return Err(Error::new(Kind::Invalid, "a record is redacted whole").hint("leave out --change"));
        }
        let journals = Journals::writing(cx)?;
        let (journal, _) = journals.of_place(&Locator::new(RECORDS)?);
        let records = cx.reading_records()?;
        let changes = records.history_of(id, 0)?.changes;
        let changes: Vec<_> = changes.iter().map(|past| journal.name(&past.change)).collect();
        let address = Scheme::Record.address(id);
        if changes.is_empty() {
            return Err(never_there(&address));
        }
        match self.consent.is_planned() {
            true => records.check_forgotten(id)?,
            false => records.redact(self.note(cx, || address.clone()), id).map(drop)?,
        }
        Ok(RedactAnswer { address, planned: self.consent.is_planned(), changes, ..RedactAnswer::default() })
    }

    fn place(&self, cx: &Context) -> Result<RedactAnswer> {
        let at = past_at(cx, &self.address)?;
        self.places(cx, called(cx, &self.address, &at), &[at])
    }

    /// Redacts a node or connection: its description, its content, and what the registry knew of it.
    fn in_graph(&self, cx: &Context, thing: Scheme, id: &str) -> Result<RedactAnswer> {
        let graph = cx.changing_graph()?;
        let places = match thing {
            Scheme::Connection => graph.places_of_connection(id)?,
            _ => graph.places_of(id)?,
        };
        let mut answer = self.places(cx, self.address.clone(), &places)?;
        if !self.consent.is_planned() {
            let kept = graph.redact_registered(id)?;
            let kept = kept.iter().map(|at| format!("`{at}` was damaged, and keeps it: delete that file"));
            answer.left.extend(kept);
        }
        Ok(answer)
    }

    /// Redacts the past of the files that make up one memory.
    fn places(&self, cx: &Context, address: String, places: &[Locator]) -> Result<RedactAnswer> {
        let planned = self.consent.is_planned();
        let mut answer = RedactAnswer { address, planned, ..RedactAnswer::default() };
        let (journals, mut is_there, mut is_known) = (Journals::writing(cx)?, false, false);
        for at in places {
            let (journal, inside) = journals.of_place(at);
            let past = PastOf::read(&journal.memory, &inside)?;
            is_there |= past.now.is_some();
            is_known |= past.is_known;
            let wanted = match &self.change {
                Some(change) => Some(left_by(&journals, journal, &inside, change)?),
                None => None,
            };
            let is_wanted =
                |held: &Held| wanted.as_ref().is_none_or(|wanted| *wanted == Some(held.version.clone()));
            past.versions
                .into_iter()
                .filter(is_wanted)
                .for_each(|held| self.take_out(cx, journal, &held, &mut answer));
        }
        if !is_known {
            return Err(never_there(&answer.address));
        }
        if is_there {
            let stays = "the current version stays: forget or change it first to redact that too";
            answer.left.insert(0, stays.to_owned());
        }
        Ok(answer)
    }

    /// Redacts one version.
    fn take_out(&self, cx: &Context, journal: &Journal, held: &Held, answer: &mut RedactAnswer) {
        let name = journal.name(&held.change);
        let done = match self.consent.is_planned() {
            true => Ok(()),
            false => {
                let note = self.note(cx, || format!("{} in change {name}", answer.address));
                journal.memory.redact(note, &held.at, &held.moment)
            }
        };
        match done {
            Ok(()) if answer.changes.contains(&name) => {}
            Ok(()) => answer.changes.push(name),
            Err(error) => {
                answer.left.push(format!("change {name} still holds it: {error}"));
                answer.failed = Some(error.kind());
            }
        }
    }

    /// The note for the history, with the reason that was given or else what was redacted.
    fn note(&self, cx: &Context, what: impl FnOnce() -> String) -> Note {
        let note = cx.note(Self::NAME, &self.consent.guard());
        Note { reason: note.reason.or_else(|| Some(what())), ..note }
    }
}

fn never_there(address: &str) -> Error {
    Error::new(Kind::NotFound, format!("`{}` is not in the history", address.escape_debug()))
        .hint("`memgrove history` shows what has changed")
}

/// What a change left at a place, under the name it had then; `None` if nothing, or if it is redacted.
fn left_by(journals: &Journals, journal: &Journal, at: &Locator, change: &str) -> Result<Option<Version>> {
    let (its, id) = journals.of_change(change);
    if !std::ptr::eq(its, journal) {
        return Err(not_in_history(format!("a change `{}`", change.escape_debug())));
    }
    match journal.memory.read_past(at, &Moment::After(id).into()) {
        Err(error) if error.code_name() == Some(code::REDACTED) => Ok(None),
        held => Ok(held.map_err(|error| journal.told_error(error))?.map(|bytes| Version::of(&bytes))),
    }
}

/// The past of a place.
struct PastOf {
    /// The version that is there now.
    now: Option<Version>,
    /// Whether anything is or ever was there.
    is_known: bool,
    /// The versions that were there, except the current one, each once: newest first, those that changes
    /// left, then those that changes found there.
    versions: Vec<Held>,
}

impl PastOf {
    fn read(memory: &Memory, at: &Locator) -> Result<Self> {
        let now = memory.store().info_optional(at)?.and_then(|info| info.version);
        let query = HistoryQuery { at: Some(at.clone()), ..HistoryQuery::default() };
        let (mut left, mut found_before, mut name) = (Vec::new(), Vec::new(), at.clone());
        for past in memory.history(&query)? {
            let earlier = earlier_name(&name, &past);
            left.push((name, Moment::After(past.change.clone()), past.change.clone()));
            found_before.push((earlier.clone(), Moment::Before(past.change.clone()), past.change));
            name = earlier;
        }
        let is_known = now.is_some() || !left.is_empty();
        let mut seen: BTreeSet<Version> = now.iter().cloned().collect();
        let mut versions = Vec::new();
        for (at, moment, change) in left.into_iter().chain(found_before) {
            let held = match memory.store().backend().read_past(&at, &moment) {
                Err(error) if error.kind() == Kind::NotFound => None,
                held => held?,
            };
            let version = held.map(|bytes| Version::of(&bytes));
            if let Some(version) = version.filter(|version| seen.insert(version.clone())) {
                versions.push(Held { at, moment, change, version });
            }
        }
        Ok(PastOf { now, is_known, versions })
    }
}

/// The name that `name` had before a change.
fn earlier_name(name: &Locator, past: &Past) -> Locator {
    let moved = |edit: &PastEdit| name.rebased(edit.to.as_ref()?, &edit.at);
    past.edits.iter().rev().find_map(moved).unwrap_or_else(|| name.clone())
}
