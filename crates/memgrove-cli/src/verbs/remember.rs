//! Keeping a fact and letting go of it, wherever it belongs.

mod fact;

use std::io;
use std::ops::Range;

use memgrove::address::Scheme;
use memgrove::backend::{ChangeId, Edit, Expect, Note, Version};
use memgrove::memory::Plan;
use memgrove::shapes::files;
use memgrove::shapes::graph::{ContentEdit, META, Removal};
use memgrove::shapes::notes::Guarded as NoteGuarded;
use memgrove::shapes::records::{Guarded, Importance};
use memgrove::{Error, Kind, Locator, Result, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::more::More;
use super::read::names_part;
use super::recall::is_zero;
use super::record::{ImportanceName, chosen, settle};
use super::{Effect, On, Verb, show_facts};
use crate::address::{by_words, called, entity_named, gone, in_memories, memory_at};
use crate::context::{Context, Guard};
use crate::journals::name_of;
use crate::page::{Ink, Page, counted};
use fact::Fact;

/// Remember a fact: one sentence that makes sense on its own later
///
/// A fact about someone or something (`about`) becomes an observation of that entity; any other becomes
/// a record. Both are dated and searchable at once. `forget` removes them; the history keeps them, so
/// `undo` can restore them, until `redact`.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Remember {
    /// The fact [default: standard input]
    #[schemars(required)]
    text: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    more: More,
    /// Who or what it is about, by name
    #[arg(long, value_name = "NAME")]
    about: Option<String>,
    /// Tags to find it by
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    #[serde(default)]
    tags: Vec<String>,
    /// high, medium or low
    #[arg(long, value_parser = chosen::<Importance>(Importance::ALL.map(Importance::name)), hide_possible_values = true)]
    #[serde(default)]
    #[schemars(with = "Option<ImportanceName>")]
    importance: Option<Importance>,
    /// Idempotency key
    #[arg(long)]
    #[schemars(skip)]
    #[serde(default)]
    key: Option<String>,
    /// Why, for the history
    #[arg(long, allow_hyphen_values = true)]
    #[schemars(skip)]
    #[serde(default)]
    reason: Option<String>,
}

/// Where a fact is now.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RememberAnswer {
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    /// It was known already, and is not kept twice.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    known: bool,
    /// The key was applied before; nothing was done now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    /// How many older facts were archived to make room for it.
    #[serde(skip_serializing_if = "is_zero")]
    archived: usize,
    /// What else was done, or could not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl RememberAnswer {
    fn at(address: String) -> Self {
        RememberAnswer { address, change: None, known: false, replayed: false, archived: 0, note: None }
    }
}

impl Verb for Remember {
    const NAME: &'static str = "remember";
    const TITLE: &'static str = "Remember a fact";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli, On::Core];
    const TEXT_ONLY: bool = true;
    type Answer = RememberAnswer;

    fn run(self, cx: &Context) -> Result<RememberAnswer> {
        let Remember { text, more, about, tags, importance, key, reason } = self;
        let fact = Fact { text: cx.fact(more.behind_any(text))?, tags, importance };
        if fact.text.trim().is_empty() {
            return Err(Error::new(Kind::Invalid, "there is nothing to remember")
                .hint("give a fact as an argument, or on standard input"));
        }
        cx.writing()?;
        let note = cx.note(Self::NAME, &Guard { key, reason, ..Guard::default() });
        match &about {
            Some(name) => fact.observe(cx, name, note),
            None => fact.record(cx, note),
        }
    }

    fn show(answer: &RememberAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put(if answer.known { "known already: " } else { "remembered " })?;
        page.ink(Ink::Strong, &answer.address)?;
        show_facts(page, None, answer.change.as_deref(), answer.replayed)?;
        if answer.archived > 0 {
            let facts = counted(answer.archived, "fact", "facts");
            page.ink(Ink::Warning, &format!("[archived {facts} least recently read, to make room]\n"))?;
        }
        answer.note.as_ref().map_or(Ok(()), |note| page.ink(Ink::Dim, &format!("[{note}]\n")))
    }
}

/// Forget a memory: a record, file, entity, section or observation (undo restores it)
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Forget {
    /// As given by recall
    address: String,
    #[command(flatten)]
    #[serde(flatten)]
    #[schemars(skip)]
    guard: Guard,
}

/// What was forgotten.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ForgetAnswer {
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    /// The key was applied before; nothing was done now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

impl Verb for Forget {
    const NAME: &'static str = "forget";
    const TITLE: &'static str = "Forget a memory";
    const EFFECT: Effect = Effect::Remove;
    const ON: &'static [On] = &[On::Cli, On::Core];
    const TEXT_ONLY: bool = true;
    type Answer = ForgetAnswer;

    fn run(self, cx: &Context) -> Result<ForgetAnswer> {
        self.forget(cx).map_err(by_words)
    }

    fn show(answer: &ForgetAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put("forgot ")?;
        page.ink(Ink::Strong, &answer.address)?;
        show_facts(page, None, answer.change.as_deref(), answer.replayed)
    }
}

impl Forget {
    fn forget(self, cx: &Context) -> Result<ForgetAnswer> {
        let note = cx.note(Self::NAME, &self.guard);
        let address = self.address;
        if !cx.is_made()? {
            return Err(Error::new(Kind::NotFound, "there is no store yet, so there is nothing to forget"));
        }
        // A repeat is answered first, because what was forgotten can no longer be looked up.
        if let Some(before) = cx.changing()?.repeated(&note)? {
            return Ok(ForgetAnswer { address, change: Some(before.change.to_string()), replayed: true });
        }
        cx.check_shown(&address)?;
        let change = if let Some(id) = Scheme::Record.of(&address) {
            let records = cx.writing_records()?;
            let which = Guarded { id: id.to_owned(), expect: self.guard.expect.clone() };
            let done = records.delete(note, &which)?;
            settle(&records);
            done.change.map(|change| ChangeId::new(name_of(&records, &change)))
        } else if let Some(id) = graph_id(&address, Scheme::Node) {
            cx.writing_graph()?.delete(note, id, Removal::Refuse, self.guard.expect.as_deref())?.change
        } else if let Some(id) = graph_id(&address, Scheme::Connection) {
            cx.writing_graph()?.disconnect(note, id, self.guard.expect.as_deref())?.change
        } else if let Some(named) = Scheme::Entity.of(&address) {
            let (folder, name) = entity_named(named)?;
            let expect = self.guard.expecting();
            cx.writing_knowledge()?.forget(note, folder, name, expect.as_deref())?.change
        } else if let Some(part) = part_of(cx, &address)? {
            forget_part(cx, note, &Locator::new(&part.file)?, &address, &self.guard)?
        } else {
            let at = memory_at(cx, &address)?;
            let memory = cx.writing()?;
            let expect = self.guard.expected(memory.store(), &at)?;
            let done = memory.apply(note, |store| files::delete(store, &at, expect.as_ref()));
            done.map_err(|error| match error.kind() == Kind::NotFound && !at.is_within(&cx.files()) {
                true => gone(cx, &called(cx, &address, &at), &at),
                false => in_memories(cx, error),
            })?
            .change
        };
        Ok(ForgetAnswer { address, change: change.map(|change| change.to_string()), replayed: false })
    }
}

/// The part of a file that an address names with a `#`.
fn part_of(cx: &Context, address: &str) -> Result<Option<memgrove::index::Hit>> {
    if !names_part(cx, address) {
        return Ok(None);
    }
    match cx.index()?.document(address)? {
        Some(hit) => Ok(Some(hit)),
        None => Err(Error::new(Kind::NotFound, format!("there is nothing at `{}`", address.escape_debug()))
            .hint("`memgrove recall` finds addresses by words")),
    }
}

/// Removes the part of a file that an address names.
fn forget_part(
    cx: &Context,
    note: Note,
    at: &Locator,
    address: &str,
    guard: &Guard,
) -> Result<Option<ChangeId>> {
    if let Some((kind, id)) = graph_part(address) {
        return forget_section(cx, note, at, (kind, id), address, guard);
    }
    if Scheme::Note.of(address).is_some() {
        let notes = cx.writing_notes()?;
        if let Some(path) = notes.path_of(at) {
            let guarded = NoteGuarded { expect: guard.expected(notes.memory().store(), at)? };
            let edit = |text: &str| -> Result<String> {
                let span = span_of(at, text.as_bytes(), address)?;
                Ok([&text[..span.start], &text[span.end..]].concat())
            };
            return Ok(notes.edit(note, &path, &edit, &guarded)?.change);
        }
    }
    let planned = |store: &Store| without(store, at, address, guard.expected(store, at)?);
    Ok(cx.writing()?.apply(note, planned).map_err(|error| in_memories(cx, error))?.change)
}

/// The id in an address that names a whole node or connection.
fn graph_id(address: &str, kind: Scheme) -> Option<&str> {
    kind.of(address).filter(|id| !id.contains('#'))
}

/// The kind and id in an address that names a part of a node or connection.
fn graph_part(address: &str) -> Option<(Scheme, &str)> {
    let (kind, named) = Scheme::split(address)?;
    let (id, _) = named.split_once('#')?;
    matches!(kind, Scheme::Node | Scheme::Connection).then_some((kind, id))
}

/// Removes one section from the content of a node or connection, through the graph, which keeps track of
/// contents. Properties are not sections.
fn forget_section(
    cx: &Context,
    note: Note,
    at: &Locator,
    (kind, id): (Scheme, &str),
    address: &str,
    guard: &Guard,
) -> Result<Option<ChangeId>> {
    if at.name().ends_with(META) {
        let kind = kind.name();
        let what =
            format!("`{}` holds all properties of the {kind}, and stays with it", address.escape_debug());
        return Err(Error::new(Kind::Invalid, what).hint(format!(
            "remove a property with `memgrove {kind} update {id} --unset NAME`, or forget all of `{kind}:{id}`"
        )));
    }
    let graph = cx.writing_graph()?;
    let edits = without(graph.memory().store(), at, address, None)?.edits;
    let [Edit::Write { bytes, expect: Expect::At(read), .. }] = &edits[..] else { return Ok(None) };
    let edit = ContentEdit::Write { content: bytes.clone(), format: None };
    let (graph, expect) = (graph.resting_on(at.clone(), read.clone()), guard.expect.as_deref());
    Ok(match kind {
        Scheme::Node => graph.edit(note, id, edit, expect)?.change,
        _ => graph.edit_connection(note, id, &edit, expect)?.change,
    })
}

/// A file without one of its sections.
fn without(store: &Store, at: &Locator, address: &str, expect: Option<Version>) -> Result<Plan<()>> {
    let content = store.read_bytes(at)?;
    expect.map_or(Expect::Any, Expect::At).check(at, Some(&content.version))?;
    let span = span_of(at, &content.bytes, address)?;
    let bytes = [&content.bytes[..span.start], &content.bytes[span.end..]].concat();
    let edits =
        vec![Edit::Write { at: at.clone(), bytes: bytes.into(), expect: Expect::At(content.version) }];
    Ok(Plan { edits, outcome: () })
}

/// Where the part of a file is that an address names, with its heading.
fn span_of(at: &Locator, bytes: &[u8], address: &str) -> Result<Range<usize>> {
    let documents = memgrove::index::documents(at.key(), bytes);
    let Some(found) = documents.iter().find(|document| document.address == address) else {
        return Err(Error::new(Kind::NotFound, format!("`{}` is gone", address.escape_debug())));
    };
    let mut span = found.span.clone();
    // A section takes its heading along, but one of several passages leaves it.
    let alone = !documents.iter().any(|other| other.address.starts_with(&format!("{address}~")));
    if alone && !address.contains('~') {
        let line_before = |at: usize| {
            let before = bytes[..at].strip_suffix(b"\n").unwrap_or(&bytes[..at]);
            before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1)
        };
        let start = line_before(span.start);
        span.start = match bytes[start..span.start].first() {
            Some(b'#') => start,
            // Underlining makes the line above it a heading.
            Some(b'=' | b'-') => line_before(start),
            _ => span.start,
        };
    }
    Ok(span)
}
