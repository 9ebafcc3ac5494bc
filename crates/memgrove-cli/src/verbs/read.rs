//! Getting memories back: `read` by address, `find` by words.

mod find;

use std::io;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use memgrove::address::Scheme;
use memgrove::error::code;
use memgrove::index;
use memgrove::shapes::files::{self, Viewed};
use memgrove::{Error, Kind, Locator, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::{Effect, On, Verb};
use crate::address::{address_of, called, entity_named, gone, in_memories, memory_at, past_at};
use crate::context::{Context, Input};
use crate::journals::Journals;
use crate::mounts::RECORDS;
use crate::page::{Ink, Page, quoted};
use crate::portion;

pub(crate) use find::Find;

/// What a read answers an agent with, in tokens, unless it asks for more.
const READ_TOKENS_MAX: usize = 8_000;

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
                    Err(gone(cx, &address, &at))
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

/// Whether an address names a part of a memory after a `#`, which may also be in a memory's own name.
pub(super) fn names_part(cx: &Context, address: &str) -> bool {
    let whole = || memory_at(cx, address).and_then(|at| cx.reading()?.store().exists(&at));
    address.contains('#') && !whole().unwrap_or(false)
}

/// An address as the index spells it, which has one spelling of each file and note.
pub(super) fn as_indexed(cx: &Context, address: &str) -> Result<String> {
    let anchor = if names_part(cx, address) { address.rfind('#') } else { None };
    let (whole, part) = address.split_at(anchor.unwrap_or(address.len()));
    Ok(match Scheme::split(whole) {
        Some((Scheme::Record | Scheme::Entity | Scheme::Node | Scheme::Connection, _)) => address.to_owned(),
        _ => format!("{}{part}", address_of(cx, &memory_at(cx, whole)?)),
    })
}

/// One observation of an entity, if the address names one.
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

/// One of several parts, with its address, and with the reason if it is normally hidden.
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
            let (kept, left_out) = portion::start_of(text, budget);
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
