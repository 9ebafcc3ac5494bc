//! Keeping a fact and letting go of it, wherever it belongs.

use std::io;

use memgrove::backend::{ChangeId, Edit, Expect, Note, Version};
use memgrove::index::analysis::folded;
use memgrove::memory::{Done, Plan};
use memgrove::shapes::entities::{Entity, How, Knowledge, Loaded, Observation};
use memgrove::shapes::files;
use memgrove::shapes::graph::{ContentEdit, META, Removal};
use memgrove::shapes::records::{Guarded, Importance, NewRecord, Patch, RecordType};
use memgrove::{Error, Kind, Locator, Result, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::read::names_part;
use super::record::{ImportanceName, chosen, settle};
use super::{Effect, On, Verb, show_facts};
use crate::address::{entity_named, in_memories, memory_at};
use crate::context::{Context, Guard};
use crate::journals::name_of;
use crate::page::{Ink, Page};

/// The type of an entity that is first heard of here.
const NEW_TYPE: &str = "general";

/// How many memories are compared with a fact.
const HITS_MAX: usize = 5;

/// Remember a fact: one sentence that will make sense on its own later
///
/// A fact about someone or something (`about`) becomes an observation of that entity; any other
/// becomes a record. Both are dated and can be found by the next search. `forget` takes them away;
/// the history keeps them, so that `undo` can bring them back, until `redact`.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Remember {
    /// The fact [default: standard input]
    #[schemars(required)]
    text: Option<String>,
    /// Whom or what it is about, by name
    #[arg(long, value_name = "NAME")]
    about: Option<String>,
    /// Words to find it by
    #[arg(long = "tag", value_name = "TAG")]
    #[serde(default)]
    tags: Vec<String>,
    /// high, medium or low
    #[arg(long, value_parser = chosen::<Importance>)]
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

/// What is to be remembered, wherever it belongs.
struct Fact {
    text: String,
    tags: Vec<String>,
    importance: Option<Importance>,
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
    /// What else was done, or could not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl RememberAnswer {
    fn at(address: String) -> Self {
        RememberAnswer { address, change: None, known: false, replayed: false, note: None }
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
        let Remember { text, about, tags, importance, key, reason } = self;
        let fact = Fact { text: cx.fact(text)?, tags, importance };
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
        show_facts(page, None, None, answer.replayed)?;
        answer.note.as_ref().map_or(Ok(()), |note| page.ink(Ink::Dim, &format!("[{note}]\n")))
    }
}

impl Fact {
    fn record(self, cx: &Context, note: Note) -> Result<RememberAnswer> {
        let known = if note.key.is_none() { self.known(cx) } else { Ok(None) };
        // Where that cannot be looked up, the fact is kept all the same.
        let known = known.unwrap_or_else(|error| {
            crate::notice(&format!("it cannot be told whether this is known already: {error}"));
            None
        });
        if let Some(address) = known {
            match address.strip_prefix("record:") {
                Some(id) => return self.add_to(cx, id, note),
                None if self.tags.is_empty() && self.importance.is_none() => {
                    return Ok(RememberAnswer { known: true, ..RememberAnswer::at(address) });
                }
                None => {}
            }
        }
        let records = cx.records_writing()?;
        let new = NewRecord {
            tags: self.tags,
            importance: self.importance.unwrap_or_default(),
            ..NewRecord::new(RecordType::Learning, self.text)
        };
        let done = records.add(note, &[new])?;
        settle(&records);
        let id = done.outcome.records.first().map(|record| record.id.clone()).unwrap_or_default();
        let change = done.change.map(|change| name_of(&records, &change));
        let address = format!("record:{id}");
        Ok(RememberAnswer { change, replayed: done.replayed, ..RememberAnswer::at(address) })
    }

    /// The address of a memory that says exactly this, of nobody in particular: of a record, if
    /// there is one, because it can take what else is said of it.
    fn known(&self, cx: &Context) -> Result<Option<String>> {
        // Signs of the query language are plain characters in a fact.
        let words: String = self.text.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
        if words.trim().is_empty() {
            return Ok(None);
        }
        let (index, wanted) = (cx.index()?, bare(&self.text));
        let mut same = Vec::new();
        for hit in index.search(&words, HITS_MAX)?.hits {
            for address in hit.alike {
                let says = index.document(&address)?.is_some_and(|other| bare(&other.text) == wanted);
                same.extend(says.then_some(address));
            }
            same.extend((bare(&hit.text) == wanted).then_some(hit.address));
        }
        same.retain(|address| !address.starts_with("entity:"));
        same.sort_by_key(|address| !address.starts_with("record:"));
        Ok(same.into_iter().next())
    }

    /// Adds what is said of a fact to the record that is there.
    fn add_to(&self, cx: &Context, id: &str, note: Note) -> Result<RememberAnswer> {
        let records = cx.records_writing()?;
        let there = records.view(id)?.record;
        let new = self.tags.iter().filter(|tag| !there.tags.contains(tag)).cloned();
        let tags: Vec<String> = there.tags.iter().cloned().chain(new).collect();
        let patch = Patch {
            tags: (tags.len() > there.tags.len()).then_some(tags),
            importance: self.importance.filter(|importance| *importance != there.importance),
            ..Patch::default()
        };
        let told = (patch.tags.is_some() || patch.importance.is_some())
            .then(|| "tags and importance are as said now".to_owned());
        let mut change = None;
        if told.is_some() {
            let done = records.update(note, &Guarded { id: id.to_owned(), expect: None }, &patch)?;
            change = done.change.map(|change| name_of(&records, &change));
            settle(&records);
        }
        Ok(RememberAnswer { change, known: true, note: told, ..RememberAnswer::at(format!("record:{id}")) })
    }

    fn observe(&self, cx: &Context, name: &str, note: Note) -> Result<RememberAnswer> {
        let knowledge = cx.knowledge()?;
        let there = knowledge.load(name, None)?;
        let mut told =
            self.importance.map(|_| "an observation has no importance: it was not kept".to_owned());
        let same = there.as_ref().and_then(|loaded| Some((loaded, said_in(loaded, &self.text)?)));
        if let Some((loaded, number)) = same
            && note.key.is_none()
            && self.tags.iter().all(|tag| loaded.entity.tags.contains(tag))
        {
            let at = RememberAnswer::at(address_in(loaded, number));
            return Ok(RememberAnswer { known: true, note: told, ..at });
        }
        let (name, kind) = match &there {
            Some(loaded) => (loaded.entity.name.clone(), loaded.entity.kind.clone()),
            None => (name.to_owned(), NEW_TYPE.to_owned()),
        };
        if there.is_none()
            && let Some(twin) = twin(&knowledge, &name)?
        {
            told = Some(format!("this is another than {twin}: if it is the same, undo, and name it so"));
        }
        // As it stands there already, so that it is not kept twice.
        let said =
            same.map_or(self.text.as_str(), |(loaded, number)| &loaded.entity.observations[number - 1].text);
        let entity = Entity {
            name: name.clone(),
            kind: kind.clone(),
            tags: self.tags.clone(),
            observations: vec![Observation::from(said)],
            ..Entity::default()
        };
        let Done { change, replayed, .. } = knowledge.store(note, &[entity], How::Merge)?;
        let stored = knowledge.load(&name, Some(&kind))?;
        let address = stored.and_then(|loaded| Some(address_in(&loaded, said_in(&loaded, &self.text)?)));
        let folder = memgrove::shapes::entities::folder_name(&kind);
        let address = address.unwrap_or(format!("entity:{folder}/{name}"));
        let change = change.map(|change| change.to_string());
        Ok(RememberAnswer { address, change, known: same.is_some(), replayed, note: told })
    }
}

/// The entity whose name differs from a new one only in how it is written.
fn twin(knowledge: &Knowledge, name: &str) -> Result<Option<String>> {
    let found = knowledge.load_from_memory(name)?;
    let found = found.filter(|found| bare(&found.entity.name) == bare(name));
    Ok(found.and_then(|twin| Some(format!("entity:{}/{}", twin.path.parent()?.name(), twin.entity.name))))
}

/// Which observation of an entity says exactly this, counted from 1.
fn said_in(loaded: &Loaded, text: &str) -> Option<usize> {
    let says = |observation: &Observation| {
        observation.facts.superseded_by.is_none() && bare(&observation.text) == bare(text)
    };
    Some(loaded.entity.observations.iter().position(says)? + 1)
}

/// The address of an observation of an entity.
fn address_in(loaded: &Loaded, number: usize) -> String {
    let folder = loaded.path.parent().map(|folder| folder.name().to_owned()).unwrap_or_default();
    format!("entity:{folder}/{}#{number}", loaded.entity.name)
}

/// A text as far as it matters whether two are the same.
fn bare(text: &str) -> String {
    folded(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Forget a memory: a record, a file, an entity, or one section or observation (undo brings it back)
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Forget {
    /// As recall gives it
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
        let note = cx.note(Self::NAME, &self.guard);
        let address = self.address;
        if !cx.is_made()? {
            return Err(Error::new(Kind::NotFound, "there is no store yet, so there is nothing to forget"));
        }
        // What was forgotten is not there to be looked up again.
        if let Some(before) = cx.changing()?.repeated(&note)? {
            return Ok(ForgetAnswer { address, change: Some(before.change.to_string()), replayed: true });
        }
        let change = if let Some(id) = address.strip_prefix("record:") {
            let records = cx.records_writing()?;
            let which = Guarded { id: id.to_owned(), expect: self.guard.expect.clone() };
            let done = records.delete(note, &which)?;
            settle(&records);
            done.change.map(|change| ChangeId::new(name_of(&records, &change)))
        } else if let Some(id) = graph_id(&address, "node:") {
            cx.graph()?.delete(note, id, Removal::Refuse, self.guard.expect.as_deref())?.change
        } else if let Some(id) = graph_id(&address, "connection:") {
            cx.graph()?.disconnect(note, id, self.guard.expect.as_deref())?.change
        } else if let Some(named) = address.strip_prefix("entity:") {
            let (folder, name) = entity_named(named)?;
            let expect = self.guard.expecting();
            cx.knowledge()?.forget(note, folder, name, expect.as_deref())?.change
        } else if let Some(part) = part_of(cx, &address)? {
            let at = Locator::new(&part.file)?;
            if let Some((kind, id)) = graph_part(&address) {
                forget_section(cx, note, &at, (kind, id), &address, &self.guard)?
            } else {
                let planned = |store: &Store| without(store, &at, &address, self.guard.expected(store, &at)?);
                cx.writing()?.apply(note, planned).map_err(|error| in_memories(cx, error))?.change
            }
        } else {
            let at = memory_at(cx, &address)?;
            let memory = cx.writing()?;
            let expect = self.guard.expected(memory.store(), &at)?;
            let done = memory.apply(note, |store| files::delete(store, &at, expect.as_ref()));
            done.map_err(|error| in_memories(cx, error))?.change
        };
        Ok(ForgetAnswer { address, change: change.map(|change| change.to_string()), replayed: false })
    }

    fn show(answer: &ForgetAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put("forgot ")?;
        page.ink(Ink::Strong, &answer.address)?;
        show_facts(page, None, answer.change.as_deref(), answer.replayed)
    }
}

/// The part of a file that an address names with a `#`.
fn part_of(cx: &Context, address: &str) -> Result<Option<memgrove::index::Hit>> {
    if !names_part(cx, address) {
        return Ok(None);
    }
    match cx.index()?.document(address)? {
        Some(hit) => Ok(Some(hit)),
        None => Err(Error::new(Kind::NotFound, format!("nothing is at `{}`", address.escape_debug()))
            .hint("`memgrove recall` finds addresses by words")),
    }
}

/// The id of a node or connection as a whole.
fn graph_id<'a>(address: &'a str, kind: &str) -> Option<&'a str> {
    address.strip_prefix(kind).filter(|id| !id.contains('#'))
}

/// The kind and the id of a node or connection of which an address names a part.
fn graph_part(address: &str) -> Option<(&str, &str)> {
    let (kind, named) = address.split_once(':')?;
    let (id, _) = named.split_once('#')?;
    ["node", "connection"].contains(&kind).then_some((kind, id))
}

/// Takes one section out of the content of a node or connection, by way of the graph, which knows what it
/// holds. What is said of it is no section.
fn forget_section(
    cx: &Context,
    note: Note,
    at: &Locator,
    (kind, id): (&str, &str),
    address: &str,
    guard: &Guard,
) -> Result<Option<ChangeId>> {
    if at.name().ends_with(META) {
        let what =
            format!("`{}` is all that is known of the {kind}, and stays with it", address.escape_debug());
        return Err(Error::new(Kind::Invalid, what).hint(format!(
            "take a property away with `memgrove {kind} update {id} --unset NAME`, or forget `{kind}:{id}` whole"
        )));
    }
    let graph = cx.graph()?;
    let (version, edited) = match kind {
        "node" => graph.node(id).map(|got| (got.version, got.edited))?,
        _ => graph.connection(id).map(|got| (got.version, got.edited))?,
    };
    let edits = without(graph.memory().store(), at, address, None)?.edits;
    let [Edit::Write { bytes, .. }] = &edits[..] else { return Ok(None) };
    let edit = ContentEdit::Write { content: bytes.to_vec(), format: None };
    let seen = version.as_ref().filter(|_| !edited).map(|version| version.as_str());
    let expect = guard.expect.as_deref().or(seen);
    Ok(match kind {
        "node" => graph.edit(note, id, edit, expect)?.change,
        _ => graph.edit_connection(note, id, &edit, expect)?.change,
    })
}

/// A file without one of its sections.
fn without(store: &Store, at: &Locator, address: &str, expect: Option<Version>) -> Result<Plan<()>> {
    let content = store.read_bytes(at)?;
    expect.map_or(Expect::Any, Expect::At).check(at, Some(&content.version))?;
    let documents = memgrove::index::documents(at.key(), &content.bytes);
    let Some(found) = documents.iter().find(|document| document.address == address) else {
        return Err(Error::new(Kind::NotFound, format!("`{}` is gone", address.escape_debug())));
    };
    let mut span = found.span.clone();
    // A section goes with its heading; one passage of several leaves it.
    let alone = !documents.iter().any(|other| other.address.starts_with(&format!("{address}~")));
    if alone && !address.contains('~') {
        let before = &content.bytes[..span.start];
        let line = before.strip_suffix(b"\n").unwrap_or(before);
        let start = line.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        if content.bytes[start..].starts_with(b"#") {
            span.start = start;
        }
    }
    let bytes = [&content.bytes[..span.start], &content.bytes[span.end..]].concat();
    let edits =
        vec![Edit::Write { at: at.clone(), bytes: bytes.into(), expect: Expect::At(content.version) }];
    Ok(Plan { edits, outcome: () })
}
