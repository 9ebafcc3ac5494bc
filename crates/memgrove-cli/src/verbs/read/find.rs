//! Finding memories by the text that they contain: `find`.

use std::io;
use std::ops::Range;

use memgrove::backend::FileKind;
use memgrove::text::nearly::nearly_text;
use memgrove::{Error, Kind, Locator, Result, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::address::{Addresses, holds_memories};
use crate::context::Context;
use crate::mounts::RECORDS;
use crate::page::{Ink, Page, counted};
use crate::portion;
use crate::verbs::more::More;
use crate::verbs::{Effect, On, Verb};

/// How many tokens a search may answer with, unless more are asked for.
const FIND_TOKENS_MAX: usize = 1_500;
/// The longest line that a hit shows, in characters.
const HIT_CHARS_MAX: usize = 200;
/// How much of a longer line stands before what was found.
const HIT_CHARS_BEFORE: usize = 60;
/// The largest file that a search looks into.
const FIND_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Find lines of all memories by text, ignoring case
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Find {
    /// Text to find
    text: String,
    #[command(flatten)]
    #[serde(skip)]
    more: More,
    /// Token budget
    #[arg(long, default_value_t = FIND_TOKENS_MAX)]
    #[serde(default = "find_tokens_max")]
    budget: usize,
}

fn find_tokens_max() -> usize {
    FIND_TOKENS_MAX
}

/// Where a text was found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FindAnswer {
    hits: Vec<Hit>,
    /// All hits, shown or not.
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Hit {
    address: String,
    line: usize,
    text: String,
}

impl Verb for Find {
    const NAME: &'static str = "find";
    const TITLE: &'static str = "Find text in memories";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Files];
    type Answer = FindAnswer;

    fn run(self, cx: &Context) -> Result<FindAnswer> {
        let text = self.more.behind(self.text);
        if text.trim().is_empty() {
            return Err(Error::new(Kind::Invalid, "the query is empty").hint("give a word or two"));
        }
        let memory = cx.reading()?;
        let mut search = Search { wanted: text.to_lowercase(), budget: self.budget, ..Search::default() };
        search.look_into(cx, memory.store(), "")?;
        let records = cx.reading_records()?;
        if records.root().is_root() {
            search.look_into(cx, records.memory().store(), RECORDS)?;
        }
        let left_out = left_out(search.total - search.hits.len(), search.unread);
        Ok(FindAnswer { hits: search.hits, total: search.total, left_out })
    }

    fn show(answer: &FindAnswer, page: &mut Page<'_>) -> io::Result<()> {
        for hit in &answer.hits {
            page.ink(Ink::Strong, &hit.address)?;
            page.ink(Ink::Dim, &format!(":{}: ", hit.line))?;
            page.line(&hit.text)?;
        }
        if answer.total == 0 {
            page.ink(Ink::Dim, "nothing found\n")?;
        }
        answer.left_out.iter().try_for_each(|left_out| page.ink(Ink::Warning, &format!("[{left_out}]\n")))
    }
}

/// A search under way.
#[derive(Default)]
struct Search {
    wanted: String,
    budget: usize,
    hits: Vec<Hit>,
    total: usize,
    spent: usize,
    unread: usize,
}

impl Search {
    /// Searches every file of a store that holds memories; `under` is the folder at which it is mounted, if
    /// it is.
    fn look_into(&mut self, cx: &Context, store: &Store, under: &str) -> Result<()> {
        for info in store.list_all(&Locator::root())? {
            let at = Locator::new(format!("{under}/{}", info.locator))?;
            if info.kind != FileKind::File || !holds_memories(cx, &at) {
                continue;
            }
            if info.size > FIND_BYTES_MAX {
                self.unread += 1;
                continue;
            }
            let Some(content) = store.read_optional(&info.locator)? else { continue };
            match nearly_text(&content.bytes) {
                Some(text) => self.look_at(&Addresses::of(cx, &at, &text), &text),
                None => self.unread += 1,
            }
        }
        Ok(())
    }

    /// Searches each line of a file: its embedded texts if it has any, else the line as it is written.
    fn look_at(&mut self, addresses: &Addresses, text: &str) {
        let mut line = Range::default();
        for (written, number) in text.split_inclusive('\n').zip(1..) {
            line = line.end..line.end + written.len();
            match addresses.parts_on(&line) {
                Some(parts) => {
                    for part in parts {
                        if let Some(said) = part.having(&self.wanted) {
                            self.take(&part.address, number, &said);
                        }
                    }
                }
                None if written.to_lowercase().contains(&self.wanted) => {
                    self.take(addresses.whole(), number, written);
                }
                None => {}
            }
        }
    }

    /// Counts a hit, and keeps it if it fits the budget.
    fn take(&mut self, address: &str, line: usize, said: &str) {
        self.total += 1;
        let hit = Hit { address: address.to_owned(), line, text: clipped(said.trim(), &self.wanted) };
        let cost = portion::tokens(&hit.text) + portion::tokens(&hit.address) + 4;
        if self.spent + cost <= self.budget {
            self.spent += cost;
            self.hits.push(hit);
        }
    }
}

/// A line, or the part of a long one around what was wanted.
fn clipped(line: &str, wanted: &str) -> String {
    let chars = line.chars().count();
    if chars <= HIT_CHARS_MAX {
        return line.to_owned();
    }
    let lower = line.to_lowercase();
    let found = lower.find(wanted).map_or(0, |at| lower[..at].chars().count());
    let start = found.saturating_sub(HIT_CHARS_BEFORE).min(chars - HIT_CHARS_MAX);
    let part: String = line.chars().skip(start).take(HIT_CHARS_MAX).collect();
    let (before, behind) = (start > 0, start + HIT_CHARS_MAX < chars);
    format!("{}{part}{}", if before { "…" } else { "" }, if behind { "…" } else { "" })
}

fn left_out(hits: usize, unread: usize) -> Option<String> {
    let hits = (hits > 0).then(|| {
        format!("{}: raise the budget, or search for more words", counted(hits, "more hit", "more hits"))
    });
    let unread =
        (unread > 0).then(|| format!("{} not text, or over 16 MiB", counted(unread, "file is", "files are")));
    let parts: Vec<String> = hits.into_iter().chain(unread).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
