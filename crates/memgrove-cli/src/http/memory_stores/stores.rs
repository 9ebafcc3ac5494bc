//! The memory stores themselves: each a small file that says what it is called and which folder it is.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use axum::response::Response;
use memgrove::backend::{Edit, Expect, Finding, HistoryQuery, Level, Moment, Version};
use memgrove::clock::Timestamp;
use memgrove::memory::Plan;
use memgrove::{Error, Kind, Locator, Result, Store};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::folders::{self, CHOSEN};
use super::{Order, Page, absent, answered, invalid, limit, moment, note, sent};
use crate::address::file_at;
use crate::context::{Context, random_id};
use crate::http::route::Call;

/// The folder of a store that tells of its memory stores.
const FOLDER: &str = "memory_stores";

/// Whose turn it is in this process to make a memory store.
static MAKING: Mutex<()> = Mutex::new(());

/// What is known of a memory store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MemoryStore {
    pub(super) id: String,
    pub(super) name: String,
    description: String,
    pub(super) metadata: BTreeMap<String, String>,
    created_at: Timestamp,
    updated_at: Timestamp,
    archived_at: Option<Timestamp>,
    /// Where its memories are, such as `/memories/notes`.
    folder: String,
}

impl MemoryStore {
    /// The memory store of an id.
    pub(super) fn find(cx: &Context, id: &str) -> Result<MemoryStore> {
        Ok(read(cx.reading()?.store(), id)?.0)
    }

    /// The memory store of an id, or what the history holds of it and when it was deleted.
    pub(super) fn find_past(cx: &Context, id: &str) -> Result<(MemoryStore, Option<Timestamp>)> {
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

    /// Since when what happens in its folder is its own: from the beginning, if it was made over a
    /// folder that was there, and else from when it was made, because there may have been another.
    pub(super) fn since(&self) -> Option<Timestamp> {
        (!self.metadata.contains_key(CHOSEN)).then_some(self.created_at)
    }

    /// Where its memories are.
    pub(super) fn root(&self, cx: &Context) -> Result<Locator> {
        file_at(cx, &self.folder)
    }

    /// Refuses changes of an archived one.
    pub(super) fn check_open(&self) -> Result<()> {
        match self.archived_at {
            None => Ok(()),
            Some(_) => Err(invalid(format!("the memory store `{}` is archived", self.id))),
        }
    }

    fn told(&self) -> Value {
        json!({"type": "memory_store", "id": self.id, "name": self.name, "description": self.description,
            "metadata": self.metadata, "created_at": self.created_at, "updated_at": self.updated_at,
            "archived_at": self.archived_at})
    }

    fn check(&self) -> Result<()> {
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

    fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("a memory store is plain data")
    }
}

/// Where it is told what a memory store is.
pub(super) fn place(id: &str) -> Result<Locator> {
    let plain =
        id.strip_prefix("memstore_").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_alphanumeric()));
    if !plain {
        return Err(absent("memory store", id));
    }
    Locator::new(format!("{FOLDER}/{id}.json"))
}

fn read(store: &Store, id: &str) -> Result<(MemoryStore, Version)> {
    let at = place(id)?;
    let there = store.read_optional(&at)?.ok_or_else(|| absent("memory store", id))?;
    let found = serde_json::from_slice(&there.bytes).map_err(|error| {
        Error::new(Kind::Corrupt, format!("`{at}` cannot be understood: {error}")).hint("fix it by hand")
    })?;
    Ok((found, there.version))
}

fn all(store: &Store) -> Result<Vec<MemoryStore>> {
    let mut found = Vec::new();
    for at in store.list(&Locator::new(FOLDER)?)? {
        if let Some(id) = at.name().strip_suffix(".json") {
            // One that somebody removes meanwhile, or has spoiled, does not hide the others.
            found.extend(read(store, id).ok().map(|(found, _)| found));
        }
    }
    Ok(found)
}

/// What is wrong with what is told of memory stores.
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
pub(super) fn roots(cx: &Context, store: &Store) -> Result<Vec<Locator>> {
    Ok(all(store)?.iter().filter_map(|one| one.root(cx).ok()).collect())
}

#[derive(Deserialize)]
struct Listed {
    limit: Option<usize>,
    page: Option<String>,
    #[serde(default)]
    include_archived: bool,
    #[serde(rename = "created_at[gte]")]
    created_at_gte: Option<Timestamp>,
    #[serde(rename = "created_at[lte]")]
    created_at_lte: Option<Timestamp>,
}

pub(super) async fn list(call: Call) -> Result<Response> {
    let asked: Listed = call.query()?;
    let limit = limit(asked.limit, 100)?;
    let found = call.work(|cx| all(cx.reading()?.store())).await?;
    let wanted = found.into_iter().filter(|store| {
        (asked.include_archived || store.archived_at.is_none())
            && asked.created_at_gte.is_none_or(|from| store.created_at >= from)
            && asked.created_at_lte.is_none_or(|upto| store.created_at <= upto)
    });
    let key = |store: &MemoryStore| format!("{} {}", moment(store.created_at), store.id);
    let page = Page::of(wanted.collect(), Order::Falling, limit, asked.page.as_deref(), key);
    let data: Vec<Value> = page.data.iter().map(MemoryStore::told).collect();
    Ok(answered(&json!({"data": data, "next_page": page.next})))
}

#[derive(Deserialize)]
struct New {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
}

pub(super) async fn create(call: Call) -> Result<Response> {
    let (key, New { name, description, metadata }) = (call.key(), sent(&call).await?);
    let id = format!("memstore_{}", random_id().replace('-', ""));
    let made = move |cx: &Context| {
        let memory = cx.writing()?;
        let now = memory.clock().now();
        let mut made = MemoryStore {
            folder: String::new(),
            id,
            name,
            description,
            metadata,
            created_at: now,
            updated_at: now,
            archived_at: None,
        };
        made.check()?;
        // Those that are made at once do not wear each other out; other processes meet in the claims.
        let _turn = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let done = memory.apply(note(cx, "memory_store_create", key), |store| {
            let (folder, mut edits) = folders::claimed(cx, store, &made)?;
            made.folder = folder;
            let (at, bytes) = (place(&made.id)?, made.bytes().into());
            // Edits are placed in their order, and others read meanwhile: a claim that is seen before whose it is
            // would be taken for one that was given up.
            edits.insert(0, Edit::Write { at, bytes, expect: Expect::Absent });
            Ok(Plan { edits, outcome: made.clone() })
        })?;
        Ok(done.outcome.told())
    };
    Ok(answered(&call.work(made).await?))
}

pub(super) async fn retrieve(call: Call) -> Result<Response> {
    let id = call.param("store").to_owned();
    Ok(answered(&call.work(move |cx| Ok(MemoryStore::find(cx, &id)?.told())).await?))
}

#[derive(Deserialize)]
struct Changes {
    name: Option<String>,
    description: Option<String>,
    metadata: Option<BTreeMap<String, Option<String>>>,
}

pub(super) async fn update(call: Call) -> Result<Response> {
    let given: Changes = sent(&call).await?;
    changed(call, "memory_store_update", move |store, _| {
        store.check_open()?;
        let chosen = given.metadata.as_ref().and_then(|metadata| metadata.get(CHOSEN));
        if chosen.is_some_and(|chosen| chosen.as_ref() != store.metadata.get(CHOSEN)) {
            return Err(invalid(format!("`{CHOSEN}` is chosen when a memory store is made, once")));
        }
        store.name = given.name.clone().unwrap_or_else(|| store.name.clone());
        store.description = given.description.clone().unwrap_or_else(|| store.description.clone());
        for (key, value) in given.metadata.iter().flatten() {
            match value {
                Some(value) => store.metadata.insert(key.clone(), value.clone()),
                None => store.metadata.remove(key),
            };
        }
        store.check()
    })
    .await
}

pub(super) async fn archive(call: Call) -> Result<Response> {
    changed(call, "memory_store_archive", |store, now| {
        store.archived_at = store.archived_at.or(Some(now));
        Ok(())
    })
    .await
}

async fn changed(
    call: Call,
    verb: &'static str,
    mut change: impl FnMut(&mut MemoryStore, Timestamp) -> Result<()> + Send + 'static,
) -> Result<Response> {
    let (key, id) = (call.key(), call.param("store").to_owned());
    let changed = move |cx: &Context| {
        let memory = cx.writing()?;
        let now = memory.clock().now();
        let done = memory.apply(note(cx, verb, key), |store| {
            let (mut found, version) = read(store, &id)?;
            let before = found.clone();
            change(&mut found, now)?;
            if found == before {
                return Ok(Plan { edits: Vec::new(), outcome: found });
            }
            found.updated_at = now;
            let edit =
                Edit::Write { at: place(&id)?, bytes: found.bytes().into(), expect: Expect::At(version) };
            Ok(Plan { edits: vec![edit], outcome: found })
        })?;
        Ok(done.outcome.told())
    };
    Ok(answered(&call.work(changed).await?))
}

/// Deletes a memory store with all its memories. The history still holds them: `memgrove undo` brings
/// them back, and redaction takes them out.
pub(super) async fn delete(call: Call) -> Result<Response> {
    let (key, id) = (call.key(), call.param("store").to_owned());
    let deleted = move |cx: &Context| {
        cx.writing()?.apply(note(cx, "memory_store_delete", key), |store| {
            let (found, version) = read(store, &id)?;
            let root = found.root(cx)?;
            let mut edits: Vec<Edit> = store
                .list_all(&root)?
                .into_iter()
                .rev()
                .map(|info| Edit::Delete { at: info.locator, expect: Expect::Any })
                .collect();
            edits.extend(folders::unclaimed(cx, store, &root, &id)?);
            if root != cx.files() && store.exists(&root)? {
                edits.push(Edit::Delete { at: root, expect: Expect::Any });
            }
            edits.push(Edit::Delete { at: place(&id)?, expect: Expect::At(version) });
            Ok(Plan { edits, outcome: () })
        })?;
        Ok(json!({"type": "memory_store_deleted", "id": id}))
    };
    Ok(answered(&call.work(deleted).await?))
}
