//! Keeping a fact and letting go of it, wherever it belongs.

use std::io;

use memgrove::backend::{Edit, Expect, Note};
use memgrove::index::analysis::folded;
use memgrove::memory::Plan;
use memgrove::shapes::entities::{Entity, How, Observation};
use memgrove::shapes::records::{Guarded, Importance, NewRecord, RecordType};
use memgrove::shapes::{entities::kg, files};
use memgrove::{Error, Index, Kind, Locator, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::record::{ImportanceName, settle};
use super::{Effect, On, Verb, show_facts};
use crate::address::{in_memories, memory_at};
use crate::context::{Context, Guard};
use crate::page::{Ink, Page};

/// The type of an entity that is first heard of here.
const NEW_TYPE: &str = "general";

/// Remember a fact: one sentence that will make sense on its own later
///
/// A fact about someone or something (`about`) becomes an observation of that entity; any other
/// becomes a record. Both are dated, can be found by the next search, and are gone with `forget`.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
pub(crate) struct Remember {
    /// The fact
    text: String,
    /// Whom or what it is about, by name
    #[arg(long, value_name = "NAME")]
    about: Option<String>,
    /// Words to find it by
    #[arg(long = "tag", value_name = "TAG")]
    #[serde(default)]
    tags: Vec<String>,
    /// high, medium or low
    #[arg(long, default_value = "medium")]
    #[serde(default)]
    #[schemars(with = "ImportanceName")]
    importance: Importance,
    /// Idempotency key
    #[arg(long)]
    #[schemars(skip)]
    #[serde(default)]
    key: Option<String>,
}

/// Where a fact is now.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RememberAnswer {
    address: String,
    /// It was known already; nothing was done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    known: bool,
    /// The key was applied before; nothing was done now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

impl Verb for Remember {
    const NAME: &'static str = "remember";
    const TITLE: &'static str = "Remember a fact";
    const EFFECT: Effect = Effect::Add;
    const ON: &'static [On] = &[On::Cli, On::Core];
    const TEXT_ONLY: bool = true;
    type Answer = RememberAnswer;

    fn run(self, cx: &Context) -> Result<RememberAnswer> {
        cx.writing()?;
        let note = cx.note(Self::NAME, &Guard { key: self.key.clone(), ..Guard::default() });
        if note.key.is_none()
            && let Some(address) = known(&*cx.index()?, &self.text)?
        {
            return Ok(RememberAnswer { address, known: true, replayed: false });
        }
        match &self.about {
            Some(name) => self.observe(cx, name, note),
            None => self.record(cx, note),
        }
    }

    fn show(answer: &RememberAnswer, page: &mut Page<'_>) -> io::Result<()> {
        page.put(if answer.known { "known already: " } else { "remembered " })?;
        page.ink(Ink::Strong, &answer.address)?;
        show_facts(page, None, None, answer.replayed)
    }
}

impl Remember {
    fn record(self, cx: &Context, note: Note) -> Result<RememberAnswer> {
        let records = cx.records_writing()?;
        let new = NewRecord {
            tags: self.tags,
            importance: self.importance,
            ..NewRecord::new(RecordType::Learning, self.text)
        };
        let done = records.add(note, &[new])?;
        settle(&records);
        let id = done.outcome.records.first().map(|record| record.id.clone()).unwrap_or_default();
        Ok(RememberAnswer { address: format!("record:{id}"), known: false, replayed: done.replayed })
    }

    fn observe(&self, cx: &Context, name: &str, note: Note) -> Result<RememberAnswer> {
        let knowledge = cx.knowledge()?;
        let there = knowledge.load(name, None)?;
        let (name, kind) = match &there {
            Some(loaded) => (loaded.entity.name.clone(), loaded.entity.kind.clone()),
            None => (name.to_owned(), NEW_TYPE.to_owned()),
        };
        let entity = Entity {
            name: name.clone(),
            kind: kind.clone(),
            tags: self.tags.clone(),
            observations: vec![Observation::from(self.text.as_str())],
            ..Entity::default()
        };
        let replayed = knowledge.store(note, &[entity], How::Merge)?.replayed;
        let address = known(&*cx.index()?, &self.text)?;
        let folder = memgrove::shapes::entities::folder_name(&kind);
        let address = address.unwrap_or(format!("entity:{folder}/{name}"));
        Ok(RememberAnswer { address, known: false, replayed })
    }
}

/// The address of a memory that says exactly this.
fn known(index: &Index, text: &str) -> Result<Option<String>> {
    // Signs of the query language are plain characters in a fact.
    let words: String = text.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    if words.trim().is_empty() {
        return Ok(None);
    }
    let wanted = folded(text.trim());
    let found = index.search(&words, 5)?;
    Ok(found.hits.into_iter().find(|hit| folded(hit.text.trim()) == wanted).map(|hit| hit.address))
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
        // What was forgotten is not there to be looked up again.
        if let Some(before) = cx.changing()?.repeated(&note)? {
            return Ok(ForgetAnswer { address, change: Some(before.change.to_string()), replayed: true });
        }
        let change = if let Some(id) = address.strip_prefix("record:") {
            let records = cx.records_writing()?;
            let which = Guarded { id: id.to_owned(), expect: self.guard.expect.clone() };
            let done = records.delete(note, &which)?;
            settle(&records);
            done.change
        } else if let Some(part) = part_of(cx, &address)? {
            match address.strip_prefix("entity:") {
                Some(named) => {
                    let name = named.split_once('/').map_or(named, |(_, name)| name);
                    let name = name.rsplit_once('#').map_or(name, |(name, _)| name).to_owned();
                    let deletion = kg::Deletion { entity_name: name, observations: vec![part.text] };
                    cx.knowledge()?.kg(note, &kg::Call::DeleteObservations(vec![deletion]))?.change
                }
                None => cx.writing()?.apply(note, |store| without(store, &part.file, &address))?.change,
            }
        } else if let Some(named) = address.strip_prefix("entity:") {
            let (folder, name) = named.split_once('/').unwrap_or(("", named));
            let at = memory_at(cx, &address)?;
            let kind = cx.knowledge()?.load(name, None)?.map(|loaded| loaded.entity.kind.clone());
            debug_assert!(at.key().contains(folder));
            cx.knowledge()?.delete(note, name, kind.as_deref())?.change
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

/// The part of a file or an entity that an address names with a `#`.
fn part_of(cx: &Context, address: &str) -> Result<Option<memgrove::index::Hit>> {
    if !address.contains('#') {
        return Ok(None);
    }
    match cx.index()?.document(address)? {
        Some(hit) => Ok(Some(hit)),
        // A name may have the sign in it too.
        None if memory_at(cx, address)
            .is_ok_and(|at| cx.reading().is_ok_and(|m| m.store().exists(&at).unwrap_or(false))) =>
        {
            Ok(None)
        }
        None => Err(Error::new(Kind::NotFound, format!("nothing is at `{}`", address.escape_debug()))
            .hint("`memgrove recall` finds addresses by words")),
    }
}

/// A file without one of its sections.
fn without(store: &memgrove::Store, key: &str, address: &str) -> Result<Plan<()>> {
    let at = Locator::new(key)?;
    let content = store.read_bytes(&at)?;
    let documents = memgrove::index::documents(key, &content.bytes);
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
    let edits = vec![Edit::Write { at, bytes: bytes.into(), expect: Expect::At(content.version) }];
    Ok(Plan { edits, outcome: () })
}
