//! A difference to look at, before something is taken back.

use std::io;

use memgrove::address::Scheme;
use memgrove::backend::{HistoryQuery, Moment, Past};
use memgrove::memory::{Point, difference};
use memgrove::{Error, Kind, Locator, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, On, Verb};
use crate::address::{called, in_memories, past_at, path_of};
use crate::context::Context;
use crate::journals::{Journal, Journals};
use crate::mounts::RECORDS;
use crate::page::{Ink, Page};
use crate::portion::{self, LineRange};

/// How many tokens a difference may take, unless more are asked for.
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
    /// Token budget
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
        let (address, diff) = match Scheme::Record.of(&self.address) {
            Some(id) => (self.address.clone(), self.of_record(cx, id)?),
            None => self.of_file(cx).map_err(|error| in_memories(cx, error))?,
        };
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

impl Diff {
    fn of_file(&self, cx: &Context) -> Result<(String, String)> {
        let at = past_at(cx, &self.address)?;
        let address = called(cx, &self.address, &at);
        let journals = Journals::reading(cx)?;
        let (journal, inside) = journals.of_place(&at);
        let from = match &self.from {
            Some(from) => journal.point(&inside, from)?,
            None => {
                let query = HistoryQuery { at: Some(inside.clone()), before: None, limit: 1 };
                before_latest(&address, journal.memory.history(&query)?)?
            }
        };
        let to = self.to.as_deref().map(|to| journal.point(&inside, to)).transpose()?;
        let then = |point| {
            let bytes = journal.memory.read_past(&inside, point);
            bytes.map_err(|error| journal.told_error(error))
        };
        let old = then(&from)?;
        let new = match &to {
            Some(to) => then(to)?,
            None => journal.memory.store().read_optional(&inside)?.map(|content| content.bytes),
        };
        Ok((address, told(journal, &path_of(cx, &at), (&from, old), (to.as_ref(), new))))
    }

    fn of_record(&self, cx: &Context, id: &str) -> Result<String> {
        let (records, journals) = (cx.reading_records()?, Journals::reading(cx)?);
        let (journal, _) = journals.of_place(&Locator::new(RECORDS)?);
        let from = match &self.from {
            Some(from) => journal.point_of_record(from)?,
            None => before_latest(&self.address, records.history_of(id, 1)?.changes)?,
        };
        let to = self.to.as_deref().map(|to| journal.point_of_record(to)).transpose()?;
        let now = || match records.view(id) {
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            got => got.map(|got| Some(got.text)),
        };
        let then = |point| records.read_past(id, point).map_err(|error| journal.told_error(error));
        let (old, new) = (then(&from)?, to.as_ref().map_or_else(now, then)?);
        let [old, new] = [old, new].map(|line| line.map(|line| format!("{line}\n").into_bytes()));
        Ok(told(journal, &self.address, (&from, old), (to.as_ref(), new)))
    }
}

/// A difference in the words of the store.
fn told(
    journal: &Journal,
    name: &str,
    (from, old): (&Point, Option<Vec<u8>>),
    (to, new): (Option<&Point>, Option<Vec<u8>>),
) -> String {
    let (from, to) = (journal.told_point(from), to.map(|to| journal.told_point(to)));
    difference(name, (Some(&from), old.as_deref()), (to.as_ref(), new.as_deref()))
}

fn before_latest(address: &str, latest: Vec<Past>) -> Result<Point> {
    let latest = latest.into_iter().next().ok_or_else(|| {
        Error::new(Kind::NotFound, format!("`{address}` has no history"))
            .hint("it was only written by hand, or never existed; `memgrove history` shows what has changed")
    })?;
    Ok(Point::Moment(Moment::Before(latest.change)))
}
