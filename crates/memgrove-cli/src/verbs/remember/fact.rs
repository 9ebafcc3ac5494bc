//! Where a fact belongs, and whether it is known there already.

use memgrove::address::Scheme;
use memgrove::backend::Note;
use memgrove::index::analysis::folded;
use memgrove::memory::Done;
use memgrove::shapes::entities::{Entity, How, Knowledge, Loaded, Observation};
use memgrove::shapes::records::{Guarded, Importance, NewRecord, Patch, RecordType};
use memgrove::{Error, Kind, Result};

use super::RememberAnswer;
use crate::context::Context;
use crate::journals::name_of;
use crate::verbs::entity;
use crate::verbs::record::settle;

/// The type of an entity that is new.
const NEW_TYPE: &str = "general";

/// How many memories are compared with a fact.
const HITS_MAX: usize = 5;

/// What is to be remembered, wherever it belongs.
pub(super) struct Fact {
    pub(super) text: String,
    pub(super) tags: Vec<String>,
    pub(super) importance: Option<Importance>,
}

impl Fact {
    /// Keeps it as a record.
    pub(super) fn record(self, cx: &Context, note: Note) -> Result<RememberAnswer> {
        let known = if note.key.is_none() { self.known(cx) } else { Ok(None) };
        // Where that cannot be looked up, the fact is kept all the same.
        let known = known.unwrap_or_else(|error| {
            crate::notice(&format!("cannot tell whether this is already known: {error}"));
            None
        });
        if let Some(address) = known {
            match Scheme::Record.of(&address) {
                Some(id) => return self.add_to(cx, id, note),
                None if self.tags.is_empty() && self.importance.is_none() => {
                    return Ok(RememberAnswer { known: true, ..RememberAnswer::at(address) });
                }
                None => {}
            }
        }
        let records = cx.writing_records()?;
        let new = NewRecord {
            tags: self.tags,
            importance: self.importance.unwrap_or_default(),
            ..NewRecord::new(RecordType::Learning, self.text)
        };
        let done = records.add(note, &[new])?;
        settle(&records);
        let id = done.outcome.records.first().map(|record| record.id.clone()).unwrap_or_default();
        let change = done.change.map(|change| name_of(&records, &change));
        let (replayed, archived) = (done.replayed, done.outcome.archived.len());
        Ok(RememberAnswer { change, replayed, archived, ..RememberAnswer::at(Scheme::Record.address(&id)) })
    }

    /// The address of a memory that says exactly this, but not about an entity: preferably of a record, which
    /// can take on tags and importance too.
    fn known(&self, cx: &Context) -> Result<Option<String>> {
        // A fact has no query syntax, so its signs count as blanks.
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
        same.retain(|address| Scheme::Entity.of(address).is_none());
        same.sort_by_key(|address| Scheme::Record.of(address).is_none());
        Ok(same.into_iter().next())
    }

    /// Adds tags and importance to the record that says this already.
    fn add_to(&self, cx: &Context, id: &str, note: Note) -> Result<RememberAnswer> {
        let records = cx.writing_records()?;
        let there = records.view(id)?.record;
        let patch = Patch {
            add_tags: self.tags.iter().filter(|tag| !there.tags.contains(tag)).cloned().collect(),
            importance: self.importance.filter(|importance| *importance != there.importance),
            ..Patch::default()
        };
        let told = (!patch.add_tags.is_empty() || patch.importance.is_some())
            .then(|| "tags and importance are updated".to_owned());
        let mut change = None;
        if told.is_some() {
            let done = records.update(note, &Guarded { id: id.to_owned(), expect: None }, &patch)?;
            change = done.change.map(|change| name_of(&records, &change));
            settle(&records);
        }
        Ok(RememberAnswer {
            change,
            known: true,
            note: told,
            ..RememberAnswer::at(Scheme::Record.address(id))
        })
    }

    /// Keeps it as an observation of the entity that it is about.
    pub(super) fn observe(&self, cx: &Context, name: &str, note: Note) -> Result<RememberAnswer> {
        let knowledge = cx.writing_knowledge()?;
        // White space around a name would make another entity, which looks the same.
        let name = name.trim();
        let there = about(&knowledge, name)?;
        let mut told = self.importance.map(|_| "an observation has no importance: it was ignored".to_owned());
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
            None => first_heard(&knowledge, name)?,
        };
        if there.is_none()
            && let Some(twin) = twin(&knowledge, &name)?
        {
            told = Some(format!(
                "this is a different entity from {twin}: if you meant that one, undo and use its name"
            ));
        }
        // Uses the existing wording, so that the fact is not kept twice.
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
        let address = address.unwrap_or(entity::address(&kind, &name));
        cx.note_shown(&address, said);
        let change = change.map(|change| change.to_string());
        Ok(RememberAnswer {
            change,
            known: same.is_some(),
            replayed,
            note: told,
            ..RememberAnswer::at(address)
        })
    }
}

/// The entity that a name means, which may say its type: `person/Alice`.
///
/// # Errors
/// `Invalid` where several types have the name.
fn about(knowledge: &Knowledge, name: &str) -> Result<Option<Loaded>> {
    let named = knowledge.namesakes(name)?;
    if named.len() > 1 {
        let message = format!("several types have an entity `{}`", name.escape_debug());
        let hint = format!("say which, with its type: {}", named.join(", "));
        return Err(Error::new(Kind::Invalid, message).hint(hint));
    }
    let typed = Scheme::Entity.bare(name).split_once('/').filter(|_| named.is_empty());
    match typed {
        None => knowledge.load(name, None),
        Some((folder, name)) => knowledge.locate(folder, name)?.map_or(Ok(None), |at| knowledge.at(&at)),
    }
}

/// The name and type of a new entity. `entity:person/Alice` gives both, and so does `person/Alice` if there
/// are entities of that type; otherwise it is a name, like `TCP/IP`.
fn first_heard(knowledge: &Knowledge, given: &str) -> Result<(String, String)> {
    let bare = Scheme::Entity.bare(given);
    match bare.split_once('/').filter(|(kind, name)| !kind.is_empty() && !name.is_empty()) {
        Some((kind, name)) if bare.len() < given.len() || knowledge.has_type(kind)? => {
            Ok((name.to_owned(), kind.to_owned()))
        }
        _ => Ok((bare.to_owned(), NEW_TYPE.to_owned())),
    }
}

/// An entity whose name differs from a new one only in case, accents or spaces.
fn twin(knowledge: &Knowledge, name: &str) -> Result<Option<String>> {
    let found = knowledge.load_from_memory(name)?;
    let found = found.filter(|found| bare(&found.entity.name) == bare(name));
    Ok(found.map(|twin| entity::address_of(&twin)))
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
    format!("{}#{number}", entity::address_of(loaded))
}

/// A text reduced to what counts when two are compared.
fn bare(text: &str) -> String {
    folded(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}
