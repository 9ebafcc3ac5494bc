//! What is known of Anthropic memory stores: which folders they are, as written down in the store, and which
//! memory is which. The API over them is in `http/memory_stores.rs`.

mod catalog;
mod folders;
mod ids;

use std::collections::BTreeMap;

use memgrove::backend::{Finding, HistoryQuery, Level, Moment, Note, Version};
use memgrove::clock::Timestamp;
use memgrove::{Error, Kind, Locator, Result, Store};
use serde::{Deserialize, Serialize};

use crate::address::file_at;
use crate::context::{Context, Guard};

pub(crate) use catalog::{Catalog, Digest, Lineage, Operation, Redaction, VersionOf, unrecorded};
pub(crate) use folders::{CHOSEN, claimed, unclaimed};
pub(crate) use ids::keep_ids;

/// The folder of a store that describes its memory stores.
const FOLDER: &str = "memory_stores";

/// What is known of a memory store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemoryStore {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) archived_at: Option<Timestamp>,
    /// Where its memories are, such as `/memories/notes`.
    pub(crate) folder: String,
}

impl MemoryStore {
    /// The memory store of an id.
    pub(crate) fn find(cx: &Context, id: &str) -> Result<MemoryStore> {
        Ok(read(cx.reading()?.store(), id)?.0)
    }

    /// The memory store with this id; if it was deleted, as the history holds it, with the time of deletion.
    pub(crate) fn find_past(cx: &Context, id: &str) -> Result<(MemoryStore, Option<Timestamp>)> {
        let missing = match Self::find(cx, id) {
            Err(error) if error.kind() == Kind::NotFound => error,
            found => return found.map(|found| (found, None)),
        };
        let (memory, at) = (cx.reading()?, place(id)?);
        let query = HistoryQuery { at: Some(at.clone()), limit: 1, ..HistoryQuery::default() };
        let Some(last) = memory.history(&query)?.into_iter().next() else { return Err(missing) };
        let held = memory.read_past(&at, &Moment::Before(last.change).into())?;
        let found = held.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        found.map(|found| (found, Some(last.time))).ok_or(missing)
    }

    /// From when on changes in its folder are its own: always, if it was made over an existing folder, else
    /// since it was made, because another memory store may have had the folder before.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        (!self.metadata.contains_key(CHOSEN)).then_some(self.created_at)
    }

    /// Where its memories are.
    pub(crate) fn root(&self, cx: &Context) -> Result<Locator> {
        file_at(cx, &self.folder)
    }

    /// Refuses changes of an archived one.
    pub(crate) fn check_open(&self) -> Result<()> {
        match self.archived_at {
            None => Ok(()),
            Some(_) => Err(invalid(format!("the memory store `{}` is archived", self.id))),
        }
    }

    /// Refuses what the API does not allow it to say.
    pub(crate) fn check(&self) -> Result<()> {
        let chars = |text: &str| text.chars().count();
        if !(1..=255).contains(&chars(&self.name)) || self.name.chars().any(char::is_control) {
            return Err(invalid("`name` must have 1 to 255 characters, and no control characters"));
        }
        if chars(&self.description) > 1_024 {
            return Err(invalid("`description` has at most 1,024 characters"));
        }
        let fits = |(key, value): (&String, &String)| (1..=64).contains(&chars(key)) && chars(value) <= 512;
        match self.metadata.len() <= 16 && self.metadata.iter().all(fits) {
            true => Ok(()),
            false => Err(invalid(
                "`metadata` has at most 16 keys of 1 to 64 characters, with values of at most 512",
            )),
        }
    }

    /// As it is written down.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("a memory store is plain data")
    }
}

/// The file that describes a memory store.
pub(crate) fn place(id: &str) -> Result<Locator> {
    let plain =
        id.strip_prefix("memstore_").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_alphanumeric()));
    if !plain {
        return Err(absent("memory store", id));
    }
    Locator::new(format!("{FOLDER}/{id}.json"))
}

/// The memory store with this id, and the version of the file that describes it.
pub(crate) fn read(store: &Store, id: &str) -> Result<(MemoryStore, Version)> {
    let at = place(id)?;
    let there = store.read_optional(&at)?.ok_or_else(|| absent("memory store", id))?;
    let found = serde_json::from_slice(&there.bytes).map_err(|error| {
        Error::new(Kind::Corrupt, format!("`{at}` cannot be understood: {error}")).hint("fix it by hand")
    })?;
    Ok((found, there.version))
}

/// All memory stores that can be read.
pub(crate) fn all(store: &Store) -> Result<Vec<MemoryStore>> {
    let mut found = Vec::new();
    for at in store.list(&Locator::new(FOLDER)?)? {
        if let Some(id) = at.name().strip_suffix(".json") {
            // A file that was just removed, or is damaged, must not hide the others.
            found.extend(read(store, id).ok().map(|(found, _)| found));
        }
    }
    Ok(found)
}

/// What is wrong with the files that describe memory stores.
///
/// # Errors
/// As [`Store::list`].
pub(crate) fn check(cx: &Context) -> Result<Vec<Finding>> {
    let memory = cx.reading()?;
    let places = memory.store().list(&Locator::new(FOLDER)?)?;
    let named = |at: &Locator| Some((at.to_string(), at.name().strip_suffix(".json")?.to_owned()));
    let told = places.iter().filter_map(named).filter(|(_, id)| place(id).is_ok());
    let wrong = told.filter_map(|(at, id)| Some((at, read(memory.store(), &id).err()?)));
    let finding = |(at, error): (String, Error)| Finding {
        level: Level::Error,
        at,
        what: format!("a memory store is not served: {}", error.message()),
        hint: "fix it by hand, or restore it with `memgrove restore`".to_owned(),
    };
    Ok(wrong.filter(|(_, error)| error.kind() != Kind::NotFound).map(finding).collect())
}

/// The folders of all memory stores.
pub(crate) fn roots(cx: &Context, store: &Store) -> Result<Vec<Locator>> {
    Ok(all(store)?.iter().filter_map(|one| one.root(cx).ok()).collect())
}

pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(Kind::Invalid, message)
}

pub(crate) fn absent(what: &str, id: &str) -> Error {
    Error::new(Kind::NotFound, format!("there is no {what} `{}`", id.escape_default()))
}

/// What the history is to remember of a change.
pub(crate) fn note(cx: &Context, verb: &str, key: Option<String>) -> Note {
    cx.note(verb, &Guard { key, ..Guard::default() })
}
