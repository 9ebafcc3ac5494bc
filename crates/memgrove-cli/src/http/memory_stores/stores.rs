//! The memory stores themselves: made, listed, changed and deleted.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use axum::response::Response;
use memgrove::Result;
use memgrove::backend::{Edit, Expect};
use memgrove::clock::Timestamp;
use memgrove::memory::Plan;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Order, Page, answered, limit, moment, sent};
use crate::context::{Context, random_id};
use crate::http::route::Call;
use crate::memory_stores::{CHOSEN, MemoryStore, all, claimed, invalid, note, place, read, unclaimed};

/// Lets one thread of this process make a memory store at a time.
static MAKING: Mutex<()> = Mutex::new(());

/// A memory store as clients read it.
fn told(store: &MemoryStore) -> Value {
    json!({"type": "memory_store", "id": store.id, "name": store.name, "description": store.description,
        "metadata": store.metadata, "created_at": store.created_at, "updated_at": store.updated_at,
        "archived_at": store.archived_at})
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
    let page = Page::of(wanted.collect(), Order::Falling, limit, asked.page.as_deref(), key)?;
    let data: Vec<Value> = page.data.iter().map(told).collect();
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
        // Threads of this process wait here instead of conflicting; other processes conflict over the claims.
        let _turn = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let done = memory.apply(note(cx, "memory_store_create", key), |store| {
            let (folder, mut edits) = claimed(cx, store, &made)?;
            made.folder = folder;
            let (at, bytes) = (place(&made.id)?, made.bytes().into());
            // The store's own file comes first: edits are placed in order, and a reader who saw the claim
            // before its owner would take it for abandoned.
            edits.insert(0, Edit::Write { at, bytes, expect: Expect::Absent });
            Ok(Plan { edits, outcome: made.clone() })
        })?;
        Ok(told(&done.outcome))
    };
    Ok(answered(&call.work(made).await?))
}

pub(super) async fn retrieve(call: Call) -> Result<Response> {
    let id = call.param("store").to_owned();
    Ok(answered(&call.work(move |cx| Ok(told(&MemoryStore::find(cx, &id)?))).await?))
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
        Ok(told(&done.outcome))
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
            edits.extend(unclaimed(cx, store, &root, &id)?);
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
