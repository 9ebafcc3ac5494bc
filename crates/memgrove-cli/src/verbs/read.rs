//! Getting memories back: `read` by address, `find` by words.

use std::io;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use memgrove::backend::FileKind;
use memgrove::error::code;
use memgrove::shapes::files::{self, Viewed};
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::undo::point;
use super::{Effect, On, Verb};
use crate::address::{address_of, entity_named, in_memories, memory_at};
use crate::context::{Context, Input};
use crate::page::{Ink, Page};
use crate::portion::{self, LineRange};

/// What a read answers an agent with, in tokens, unless it asks for more.
const READ_TOKENS_MAX: usize = 8_000;
/// What a search answers with, in tokens, unless it is asked for more.
const FIND_TOKENS_MAX: usize = 1_500;
/// The longest line that a hit shows, in characters.
const HIT_CHARS_MAX: usize = 200;
/// The largest file that a search looks into.
const FIND_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Read a memory by its address, exactly as it is
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Read {
    /// As recall gives it, or file:/memories/notes.md
    address: String,
    /// As it was after this change, or at this version
    #[arg(long, value_name = "CHANGE")]
    at: Option<String>,
    /// With so many sections before and after it
    #[arg(long)]
    around: Option<usize>,
    /// At most so many tokens
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
        let budget = self.budget.unwrap_or(match cx.input {
            Input::None => READ_TOKENS_MAX,
            Input::Terminal => usize::MAX,
        });
        if self.at.is_none()
            && let Some(part) = read_part(cx, &self.address, self.around.unwrap_or(0), budget)?
        {
            return Ok(part);
        }
        if let Some(id) = self.address.strip_prefix("record:") {
            return read_record(cx, id, self.at.as_deref(), budget);
        }
        let at = memory_at(cx, &self.address)?;
        let address = address_of(cx, &at);
        let memory = cx.reading()?;
        let (bytes, version) = match &self.at {
            None => match files::view(memory.store(), &at).map_err(|error| in_memories(cx, error))? {
                Viewed::File { bytes, version } => (bytes, Some(version.as_str().to_owned())),
                Viewed::Folder { .. } => return Err(folder(&address)),
            },
            Some(change) => {
                let there = memory.read_past(&at, &point(change));
                let bytes = there.map_err(|error| in_memories(cx, error))?.ok_or_else(|| {
                    Error::new(Kind::NotFound, format!("`{address}` was not there at {change}"))
                        .hint(format!("`memgrove history {address}` shows when it was"))
                })?;
                (bytes, None)
            }
        };
        Ok(ReadAnswer { version, ..read(address, bytes, budget) })
    }

    fn show(answer: &ReadAnswer, page: &mut Page<'_>) -> io::Result<()> {
        match (&answer.text, &answer.base64) {
            (Some(text), _) => page.bytes(text.as_bytes())?,
            (None, Some(Binary(bytes))) => page.bytes(bytes)?,
            (None, None) => {}
        }
        match &answer.left_out {
            Some(left_out) => page.ink(Ink::Warning, &format!("\n[{left_out}]\n")),
            None => Ok(()),
        }
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
        match address.strip_prefix("entity:") {
            Some(named) if address.contains('#') => return read_observation(cx, address, named, budget),
            None if names_part(cx, address) => {}
            _ => return Ok(None),
        }
    }
    let parts = cx.index()?.around(address, around)?;
    let text: Vec<String> = match parts.as_slice() {
        [] => return Ok(None),
        [only] => vec![only.text.clone()],
        parts => parts.iter().map(|part| format!("[{}]\n{}", part.address, part.text)).collect(),
    };
    Ok(Some(read(address.to_owned(), format!("{}\n", text.join("\n\n")).into_bytes(), budget)))
}

/// A record, as its line is written.
fn read_record(cx: &Context, id: &str, at: Option<&str>, budget: usize) -> Result<ReadAnswer> {
    if at.is_some() {
        return Err(Error::new(Kind::Invalid, "a record has no past of its own")
            .hint("`memgrove history` shows that of its file"));
    }
    let got = super::record::got(cx, id)?;
    let version = Some(got.version.as_str().to_owned());
    let text = format!("{}\n", got.text).into_bytes();
    Ok(ReadAnswer { version, ..read(format!("record:{}", got.record.id), text, budget) })
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

/// Find text in all memories, ignoring case
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Find {
    /// The text
    text: String,
    /// At most so many tokens
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
        if self.text.trim().is_empty() {
            return Err(Error::new(Kind::Invalid, "there is nothing to look for").hint("name a word or two"));
        }
        let memory = cx.reading()?;
        let store = memory.store();
        let wanted = self.text.to_lowercase();
        let (mut hits, mut total, mut spent, mut unread) = (Vec::new(), 0, 0, 0);
        for info in store.list_all(&cx.files())? {
            if info.kind != FileKind::File {
                continue;
            }
            if info.size > FIND_BYTES_MAX {
                unread += 1;
                continue;
            }
            let Some(content) = store.read_optional(&info.locator)? else { continue };
            let Ok(text) = String::from_utf8(content.bytes) else {
                unread += 1;
                continue;
            };
            let address = address_of(cx, &info.locator);
            for (line, number) in text.lines().zip(1..) {
                if !line.to_lowercase().contains(&wanted) {
                    continue;
                }
                total += 1;
                let hit = Hit { address: address.clone(), line: number, text: clipped(line.trim()) };
                let cost = portion::tokens(&hit.text) + portion::tokens(&hit.address) + 4;
                if spent + cost <= self.budget {
                    spent += cost;
                    hits.push(hit);
                }
            }
        }
        let left_out = left_out(total - hits.len(), unread);
        Ok(FindAnswer { hits, total, left_out })
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
        match &answer.left_out {
            Some(left_out) => page.ink(Ink::Warning, &format!("[{left_out}]\n")),
            None => Ok(()),
        }
    }
}

fn clipped(line: &str) -> String {
    match line.char_indices().nth(HIT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn left_out(hits: usize, unread: usize) -> Option<String> {
    let hits = (hits > 0).then(|| format!("{hits} more hits: raise the budget, or look for more words"));
    let unread = (unread > 0).then(|| format!("{unread} files are not text, or over 16 MiB"));
    let parts: Vec<String> = hits.into_iter().chain(unread).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
