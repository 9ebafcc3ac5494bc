//! Getting memories back: `read` by address, `find` by words.

use std::io;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use memgrove::address::Scheme;
use memgrove::backend::FileKind;
use memgrove::error::code;
use memgrove::index;
use memgrove::shapes::files::{self, Viewed};
use memgrove::text::nearly::nearly_text;
use memgrove::{Error, Kind, Locator, Result, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::more::More;
use super::{Effect, On, Verb};
use crate::address::{Addresses, called, entity_named, holds_memories, in_memories, memory_at, past_at};
use crate::context::{Context, Input};
use crate::journals::Journals;
use crate::mounts::RECORDS;
use crate::page::{Ink, Page, counted, quoted};
use crate::portion::{self, LineRange};

/// What a read answers an agent with, in tokens, unless it asks for more.
const READ_TOKENS_MAX: usize = 8_000;
/// What a search answers with, in tokens, unless it is asked for more.
const FIND_TOKENS_MAX: usize = 1_500;
/// The longest line that a hit shows, in characters.
const HIT_CHARS_MAX: usize = 200;
/// How much of a longer line stands before what was found.
const HIT_CHARS_BEFORE: usize = 60;
/// The largest file that a search looks into.
const FIND_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Read a memory by its address, exactly as stored
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Read {
    /// As given by recall, or file:/memories/notes.md
    address: String,
    /// The state after this change, or at this version
    #[arg(long, value_name = "CHANGE")]
    at: Option<String>,
    /// Sections of context before and after it
    #[arg(long)]
    around: Option<usize>,
    /// Token budget
    #[arg(long)]
    budget: Option<usize>,
}

/// The content of a memory.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReadAnswer {
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The content of what is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    base64: Option<Binary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
}

/// Bytes that become base64 only as they are written, so that there is no second copy of them.
#[derive(Debug)]
struct Binary(Vec<u8>);

impl Binary {
    fn tokens(&self) -> usize {
        portion::tokens_of(self.0.len().div_ceil(3) * 4)
    }
}

impl Serialize for Binary {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(&self.0, &STANDARD))
    }
}

impl Verb for Read {
    const NAME: &'static str = "read";
    const TITLE: &'static str = "Read a memory";
    const EFFECT: Effect = Effect::Read;
    const ON: &'static [On] = &[On::Cli, On::Core];
    type Answer = ReadAnswer;

    fn run(self, cx: &Context) -> Result<ReadAnswer> {
        self.found(cx).map_err(crate::address::by_words)
    }

    fn show(answer: &ReadAnswer, page: &mut Page<'_>) -> io::Result<()> {
        match (&answer.text, &answer.base64) {
            (Some(text), _) => page.bytes(text.as_bytes())?,
            (None, Some(Binary(bytes))) => page.bytes(bytes)?,
            (None, None) => {}
        }
        answer.left_out.iter().try_for_each(|left_out| page.ink(Ink::Warning, &format!("\n[{left_out}]\n")))
    }
}

impl Read {
    fn found(self, cx: &Context) -> Result<ReadAnswer> {
        let budget = self.budget.unwrap_or(match cx.input {
            Input::None => READ_TOKENS_MAX,
            Input::Terminal => usize::MAX,
        });
        if self.at.is_none()
            && let Some(part) = read_part(cx, &self.address, self.around.unwrap_or(0), budget)?
        {
            return Ok(part);
        }
        if let Some(id) = Scheme::Record.of(&self.address) {
            return read_record(cx, id, self.at.as_deref(), budget);
        }
        let at = past_at(cx, &self.address)?;
        let address = called(cx, &self.address, &at);
        let journals = Journals::reading_at(cx, &at)?;
        let (journal, inside) = journals.of_place(&at);
        let memory = &journal.memory;
        let told = |error| in_memories(cx, journal.told_error(error));
        let Some(change) = &self.at else {
            return match files::view(memory.store(), &inside) {
                Ok(Viewed::File { bytes, version }) => {
                    let version = Some(version.as_str().to_owned());
                    Ok(ReadAnswer { version, ..read(address, bytes, budget) })
                }
                Ok(Viewed::Folder { .. }) => Err(folder(&address)),
                Err(error) if error.kind() == Kind::NotFound && !at.is_within(&cx.files()) => {
                    Err(gone(&address))
                }
                Err(error) if error.kind() == Kind::NotFound => Err(match meant(cx, &self.address) {
                    Some(meant) => told(error).hint(format!("did you mean `{meant}`?")),
                    None => told(error),
                }),
                Err(error) => Err(told(error)),
            };
        };
        let point = journal.point(&inside, change).map_err(told)?;
        let there = memory.read_past(&inside, &point).map_err(told)?;
        Ok(read(address.clone(), there.ok_or_else(|| not_there(&address, change))?, budget))
    }
}

/// Whether an address names a part of a memory, behind a `#`: the sign may be in a name too.
pub(super) fn names_part(cx: &Context, address: &str) -> bool {
    let whole = || memory_at(cx, address).and_then(|at| cx.reading()?.store().exists(&at));
    address.contains('#') && !whole().unwrap_or(false)
}

/// One observation of an entity, if an address names one.
fn read_observation(cx: &Context, address: &str, named: &str, budget: usize) -> Result<Option<ReadAnswer>> {
    let (folder, name) = entity_named(named)?;
    let knowledge = cx.reading_knowledge()?;
    let Some((at, Some(number))) = knowledge.resolve(folder, name)? else { return Ok(None) };
    let said = knowledge.observation(&at, number)?;
    Ok(said.map(|said| read(address.to_owned(), format!("{}\n", said.text).into_bytes(), budget)))
}

/// A part of a file, as search finds it, with what stands around it.
fn read_part(cx: &Context, address: &str, around: usize, budget: usize) -> Result<Option<ReadAnswer>> {
    if around == 0 {
        match Scheme::Entity.of(address) {
            Some(named) if address.contains('#') => return read_observation(cx, address, named, budget),
            None if names_part(cx, address) => {}
            _ => return Ok(None),
        }
    }
    let parts = cx.index()?.around(address, around)?;
    let text: Vec<String> = match parts.as_slice() {
        [] => return Ok(None),
        [only] => vec![only.text.clone()],
        parts => parts.iter().map(told).collect(),
    };
    Ok(Some(read(address.to_owned(), format!("{}\n", text.join("\n\n")).into_bytes(), budget)))
}

/// A part among others, with its address. What no longer counts says so.
fn told(part: &index::Hit) -> String {
    let hidden = part.hidden.map(|why| format!(" ({why})")).unwrap_or_default();
    format!("[{}]{hidden}\n{}", part.address, part.text)
}

/// A record, as its line is written.
fn read_record(cx: &Context, id: &str, at: Option<&str>, budget: usize) -> Result<ReadAnswer> {
    if let Some(change) = at {
        let address = Scheme::Record.address(id);
        let journals = Journals::reading(cx)?;
        let (journal, _) = journals.of_place(&Locator::new(RECORDS)?);
        let line = cx.reading_records()?.read_past(id, &journal.point_of_record(change)?);
        let line = line.map_err(|error| journal.told_error(error))?;
        let line = line.ok_or_else(|| not_there(&address, change))?;
        return Ok(read(address, format!("{line}\n").into_bytes(), budget));
    }
    let got = super::record::got(cx, id)?;
    let version = Some(got.version.as_str().to_owned());
    let text = format!("{}\n", got.text).into_bytes();
    Ok(ReadAnswer { version, ..read(Scheme::Record.address(&got.record.id), text, budget) })
}

/// The record or entity whose bare id or name was given.
fn meant(cx: &Context, given: &str) -> Option<String> {
    if let Ok(got) = cx.reading_records().and_then(|records| records.view(given)) {
        return Some(Scheme::Record.address(&got.record.id));
    }
    let loaded = cx.reading_knowledge().ok()?.load(given, None).ok()??;
    Some(super::entity::address_of(&loaded))
}

fn not_there(address: &str, change: &str) -> Error {
    Error::new(Kind::NotFound, format!("`{address}` was not there at {change}"))
        .hint(format!("`memgrove history {}` shows when it was", quoted(address)))
}

fn gone(address: &str) -> Error {
    Error::new(Kind::NotFound, format!("`{address}` does not exist"))
        .code(Scheme::split(address).map_or(code::FILE_NOT_FOUND, |(kind, _)| kind.missing()))
        .hint(format!("`memgrove history {}` shows what became of it", quoted(address)))
}

fn folder(address: &str) -> Error {
    Error::new(Kind::Invalid, format!("`{address}` is a folder"))
        .code(code::IS_DIRECTORY)
        .hint("`memgrove file view` lists it")
}

fn read(address: String, bytes: Vec<u8>, budget: usize) -> ReadAnswer {
    let blank = ReadAnswer { address, version: None, text: None, base64: None, left_out: None };
    match String::from_utf8(bytes) {
        Ok(text) if portion::tokens(&text) <= budget => ReadAnswer { text: Some(text), ..blank },
        Ok(text) => {
            let (kept, left_out) = portion::lines_of(text, LineRange::default(), budget);
            ReadAnswer { left_out, text: Some(kept), ..blank }
        }
        Err(error) => {
            let binary = Binary(error.into_bytes());
            match binary.tokens() <= budget {
                true => ReadAnswer { base64: Some(binary), ..blank },
                false => {
                    let left_out = Some(format!("{} bytes that are not text", binary.0.len()));
                    ReadAnswer { left_out, ..blank }
                }
            }
        }
    }
}

/// Find text in all memories, line by line, ignoring case
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
    /// Looks into every file of a store that holds memories; a store that is mounted lies in a folder
    /// of the one that mounts it.
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
                Some(text) => self.look_at(&Addresses::of(cx, &at, text.as_bytes()), &text),
                None => self.unread += 1,
            }
        }
        Ok(())
    }

    fn look_at(&mut self, addresses: &Addresses, text: &str) {
        let mut start = 0;
        for (line, number) in text.split_inclusive('\n').zip(1..) {
            let at = start;
            start += line.len();
            if !line.to_lowercase().contains(&self.wanted) {
                continue;
            }
            self.total += 1;
            let (address, said) = addresses.at(at..start);
            let said = said.filter(|said| said.to_lowercase().contains(&self.wanted));
            let text = clipped(said.unwrap_or(line).trim(), &self.wanted);
            let hit = Hit { address: address.to_owned(), line: number, text };
            let cost = portion::tokens(&hit.text) + portion::tokens(&hit.address) + 4;
            if self.spent + cost <= self.budget {
                self.spent += cost;
                self.hits.push(hit);
            }
        }
    }
}

/// A line, or of a long one the part around what was wanted.
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
