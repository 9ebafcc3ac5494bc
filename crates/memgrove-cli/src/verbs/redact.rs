//! Taking what a memory was out of the history for good.

use std::collections::BTreeSet;
use std::io;

use memgrove::address::Scheme;
use memgrove::backend::{ChangeId, HistoryQuery, Moment, Past, PastEdit, Version};
use memgrove::{Error, Kind, Locator, Memory, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::consent::Consent;
use super::read::names_part;
use super::{Effect, On, Verb};
use crate::address::{called, in_memories, past_at};
use crate::context::Context;
use crate::journals::Journals;
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

/// One version that is to be taken out.
struct Held {
    at: Locator,
    moment: Moment,
    change: ChangeId,
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
        let changes = changes.iter().map(|past| journal.name(&past.change)).collect();
        if !self.consent.is_planned() {
            records.redact(cx.note(Self::NAME, &self.consent.guard()), id)?;
        }
        let address = Scheme::Record.address(id);
        Ok(RedactAnswer { address, planned: self.consent.is_planned(), changes, ..RedactAnswer::default() })
    }

    fn place(&self, cx: &Context) -> Result<RedactAnswer> {
        let at = past_at(cx, &self.address)?;
        self.places(cx, called(cx, &self.address, &at), &[at])
    }

    /// A node or connection: what was said of it, its content, and what the registry knew of it.
    fn in_graph(&self, cx: &Context, thing: Scheme, id: &str) -> Result<RedactAnswer> {
        let graph = cx.writing_graph()?;
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

    /// Redacts what files were that make up one memory.
    fn places(&self, cx: &Context, address: String, places: &[Locator]) -> Result<RedactAnswer> {
        let planned = self.consent.is_planned();
        let mut answer = RedactAnswer { address, planned, ..RedactAnswer::default() };
        let (journals, mut is_there) = (Journals::writing(cx)?, false);
        for at in places {
            is_there |= self.file(cx, &journals, at, &mut answer)?;
        }
        if is_there {
            let stays = "the current version stays: forget or change it first to redact that too";
            answer.left.insert(0, stays.to_owned());
        }
        Ok(answer)
    }

    /// Redacts what a file was; whether it is there.
    fn file(
        &self,
        cx: &Context,
        journals: &Journals,
        at: &Locator,
        answer: &mut RedactAnswer,
    ) -> Result<bool> {
        let (journal, inside) = journals.of_place(at);
        let (versions, is_there) = versions(&journal.memory, &inside)?;
        let wanted = self.change.as_deref().map(|change| journals.of_change(change).1);
        for version in versions {
            if wanted.as_ref().is_some_and(|wanted| *wanted != version.change) {
                continue;
            }
            let name = journal.name(&version.change);
            let done = match self.consent.is_planned() {
                true => Ok(()),
                false => {
                    let note = cx.note(Self::NAME, &self.consent.guard());
                    journal.memory.redact(note, &version.at, &version.moment)
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
        Ok(is_there)
    }
}

/// The versions of a place that are not what it is now, newest first, each once; and whether it is there.
fn versions(memory: &Memory, at: &Locator) -> Result<(Vec<Held>, bool)> {
    let backend = memory.store().backend();
    let now = memory.store().info_optional(at)?.and_then(|info| info.version);
    let mut seen: BTreeSet<Version> = now.iter().cloned().collect();
    let (mut found, mut name) = (Vec::new(), at.clone());
    let query = HistoryQuery { at: Some(at.clone()), ..HistoryQuery::default() };
    for past in memory.history(&query)? {
        let earlier = earlier_name(&name, &past);
        for (at, moment) in
            [(&name, Moment::After(past.change.clone())), (&earlier, Moment::Before(past.change.clone()))]
        {
            let held = match backend.read_past(at, &moment) {
                Err(error) if error.kind() == Kind::NotFound => None,
                held => held?,
            };
            if held.is_some_and(|bytes| seen.insert(Version::of(&bytes))) {
                found.push(Held { at: at.clone(), moment, change: past.change.clone() });
            }
        }
        name = earlier;
    }
    Ok((found, now.is_some()))
}

/// What was called `name` after a change, as it was called before it.
fn earlier_name(name: &Locator, past: &Past) -> Locator {
    let moved = |edit: &PastEdit| name.rebased(edit.to.as_ref()?, &edit.at);
    past.edits.iter().rev().find_map(moved).unwrap_or_else(|| name.clone())
}
