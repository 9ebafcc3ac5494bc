//! Making the history shorter.

use std::io;

use clap::ArgGroup;
use jiff::civil::Date;
use memgrove::backend::{Keep, Pruned, Pruning};
use memgrove::clock::{TimeZone, Timestamp};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::consent::Consent;
use super::{Effect, On, Verb};
use crate::context::Context;
use crate::journals::Journals;
use crate::memory_stores::keep_ids;
use crate::page::{Ink, Page, counted};

/// Remove the oldest changes from the history for good, to free space
///
/// The memories stay as they are, but their pruned versions can no longer be read or restored, and
/// idempotency keys from that time are forgotten. Changes are removed by the megabyte, so somewhat more
/// may be kept than asked for.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
#[command(group = ArgGroup::new("kept").required(true))]
pub(crate) struct HistoryPrune {
    /// Keep changes since this date, such as 2026-01-31
    #[arg(long, value_name = "DATE", group = "kept")]
    before: Option<String>,
    /// Keep this many of the newest changes
    #[arg(long, value_name = "COUNT", group = "kept")]
    keep: Option<usize>,
    #[command(flatten)]
    #[serde(flatten)]
    consent: Consent,
}

/// What went, or would go.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PruneAnswer {
    /// Whether it was only planned.
    planned: bool,
    changes: usize,
    bytes: u64,
}

impl Verb for HistoryPrune {
    const NAME: &'static str = "history_prune";
    const TITLE: &'static str = "Shorten the history";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Http];
    type Answer = PruneAnswer;

    fn run(self, cx: &Context) -> Result<PruneAnswer> {
        self.consent.check("pruned")?;
        let how = if self.consent.is_planned() { Pruning::Planned } else { Pruning::Done };
        let keep = match (self.keep, &self.before) {
            (Some(count), _) => Keep::Changes(count),
            (None, before) => {
                Keep::Since(since(before.as_deref().unwrap_or_default(), &cx.environment().zone.zone())?)
            }
        };
        if how == Pruning::Done {
            keep_ids(cx)?;
        }
        let guard = self.consent.guard();
        let mut answer = PruneAnswer { planned: self.consent.is_planned(), changes: 0, bytes: 0 };
        for journal in Journals::writing(cx)?.iter() {
            let Pruned { changes, bytes } = journal.memory.prune(cx.note(Self::NAME, &guard), keep, how)?;
            answer.changes += changes;
            answer.bytes += bytes;
        }
        Ok(answer)
    }

    fn show(answer: &PruneAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put(if answer.planned { "would prune " } else { "pruned " })?;
        page.ink(Ink::Strong, &counted(answer.changes, "change", "changes"))?;
        page.line(&format!(", {} bytes", answer.bytes))
    }
}

/// The moment that is given, or the beginning of the given day in the user's zone.
fn since(given: &str, zone: &TimeZone) -> Result<Timestamp> {
    let day = || Some(given).filter(|given| given.len() == 10)?.parse::<Date>().ok();
    let begins = || zone.to_timestamp(day()?.at(0, 0, 0, 0)).ok();
    given.parse::<Timestamp>().ok().or_else(begins).ok_or_else(|| {
        Error::new(Kind::Invalid, format!("`{}` is not a date", given.escape_debug()))
            .hint("dates look like 2026-01-31")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_where_the_user_is() {
        let zone = TimeZone::posix("NZST-12").expect("a zone");
        let told = |given: &str| since(given, &zone).map(|moment| moment.to_string()).ok();
        assert_eq!(told("2026-01-31").as_deref(), Some("2026-01-30T12:00:00Z"));
        assert_eq!(told("2026-01-31T10:00:00Z").as_deref(), Some("2026-01-31T10:00:00Z"));
        assert_eq!((told("2026-01-31 late"), told("yesterday"), told("")), (None, None, None));
    }
}
