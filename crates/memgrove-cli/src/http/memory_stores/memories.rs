//! Memories: files in the folder of a memory store.

use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::response::Response;
use memgrove::backend::{ChangeId, Content, Edit, Expect, FileKind, Moment, Version, not_found};
use memgrove::clock::Timestamp;
use memgrove::error::code;
use memgrove::memory::Plan;
use memgrove::shapes::files::{self, Limits};
use memgrove::{Error, Kind, Locator, Result, Store};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::paths::{path_of, place};
use super::{Order, Page, answered, limit, sent};
use crate::context::Context;
use crate::http::route::Call;
use crate::memory_stores::{Catalog, Lineage, MemoryStore, absent, invalid, note, unrecorded};

/// The largest content of a memory.
const CONTENT_BYTES_MAX: usize = 102_400;

/// Whether an answer includes content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum View {
    Basic,
    Full,
}

#[derive(Deserialize)]
pub(super) struct Viewed {
    pub(super) view: Option<View>,
}

/// The bytes' hash, as the API tells it.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A memory store, with the catalog of what the history tells of its memories.
pub(super) struct Desk<'a> {
    pub(super) cx: &'a Context,
    pub(super) of: MemoryStore,
    pub(super) root: Locator,
    /// When it was deleted, if it was.
    pub(super) until: Option<Timestamp>,
    catalog: &'a Mutex<Catalog>,
}

/// Works on a memory store.
pub(super) async fn at_desk<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(&Desk<'_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    at_desk_of(call, |cx, id| Ok((MemoryStore::find(cx, id)?, None)), work).await
}

/// As [`at_desk`], also for a memory store that was deleted and lives on in the history.
pub(super) async fn at_old_desk<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(&Desk<'_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    at_desk_of(call, MemoryStore::find_past, work).await
}

async fn at_desk_of<T: Send + 'static>(
    call: &Call,
    find: impl FnOnce(&Context, &str) -> Result<(MemoryStore, Option<Timestamp>)> + Send + 'static,
    work: impl FnOnce(&Desk<'_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (id, space) = (call.param("store").to_owned(), call.space.clone());
    call.work(move |cx| {
        let (of, until) = find(cx, &id)?;
        let root = of.root(cx)?;
        let desk = Desk { cx, of, root, until, catalog: &space.catalog };
        desk.catalog().refresh(cx)?;
        let done = work(&desk);
        // The caller knows only paths within the memory store.
        done.map_err(|error| error.reworded(|text| text.replace(&format!("`{}/", desk.root), "`/")))
    })
    .await
}

impl Desk<'_> {
    /// The catalog. Must not be held while something is written, because others wait for it.
    pub(super) fn catalog(&self) -> MutexGuard<'_, Catalog> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the place of the memory with this id.
    fn find(&self, store: &Store, id: &str) -> Result<Locator> {
        if let Some((_, at)) = self.catalog().by_id(id) {
            let here = at.filter(|at| at.is_within(&self.root));
            return here.cloned().ok_or_else(|| absent("memory", id));
        }
        // Memories from before the history began have ids of their own kind.
        let files = store.list_all(&self.root)?.into_iter().filter(|info| info.kind == FileKind::File);
        let mut places = files.map(|info| info.locator);
        places.find(|at| unrecorded(at) == id).ok_or_else(|| absent("memory", id))
    }

    fn told_as(
        &self,
        (id, version): (&str, &str),
        (at, bytes): (&Locator, &[u8]),
        view: View,
        (created, updated): (Option<Timestamp>, Option<Timestamp>),
    ) -> Value {
        json!({
            "type": "memory",
            "id": id,
            "memory_store_id": self.of.id,
            "memory_version_id": version,
            "path": path_of(&self.root, at),
            "content": str::from_utf8(bytes).ok().filter(|_| view == View::Full),
            "content_sha256": sha256(bytes),
            "content_size_bytes": bytes.len(),
            "created_at": created,
            "updated_at": updated,
        })
    }

    /// A memory as a change left it. For a repeat of a key, it may by now be elsewhere, gone or changed.
    fn told_after(
        &self,
        (at, left): (&Locator, Vec<u8>),
        view: View,
        (change, replayed): (Option<ChangeId>, bool),
    ) -> Result<Value> {
        // No change was needed.
        let Some(change) = change else { return self.told_now(at, view) };
        let moment = Moment::After(change);
        let mut catalog = self.catalog();
        catalog.refresh(self.cx)?;
        let Some((lineage, version)) = catalog.left_by(&moment, at) else {
            drop(catalog);
            return self.told_now(at, view);
        };
        let held = match replayed {
            true => self.cx.reading()?.store().backend().read_past(at, &moment)?.unwrap_or_default(),
            false => left,
        };
        let times = (lineage.made(), Some(version.time));
        Ok(self.told_as((&lineage.id, &version.id), (at, &held), view, times))
    }

    /// A memory as it is now.
    fn told_now(&self, at: &Locator, view: View) -> Result<Value> {
        self.told_if_there(at, view)?.ok_or_else(|| not_found(at))
    }

    fn told_if_there(&self, at: &Locator, view: View) -> Result<Option<Value>> {
        let store = self.cx.reading()?;
        let Some(there) = store.store().read_optional(at)? else { return Ok(None) };
        let now = store.store().info_optional(at)?.map(|info| info.mtime);
        let mut catalog = self.catalog();
        if catalog.holding(at, &there.version).is_none() {
            // Whoever wrote it meanwhile recorded it in the history first.
            catalog.refresh(self.cx)?;
        }
        if let Some((lineage, version)) = catalog.holding(at, &there.version) {
            let times = (lineage.made(), Some(version.time));
            return Ok(Some(self.told_as((&lineage.id, &version.id), (at, &there.bytes), view, times)));
        }
        // Someone wrote it past memgrove.
        let lineage = catalog.at(at);
        let id = lineage.map_or_else(|| unrecorded(at), |lineage| lineage.id.clone());
        let times = (lineage.and_then(Lineage::made).or(now), now);
        Ok(Some(self.told_as((&id, &edited(&there.version)), (at, &there.bytes), view, times)))
    }
}

/// The id of a version that someone wrote past memgrove.
fn edited(version: &Version) -> String {
    format!("memver_e{version}")
}

#[derive(Deserialize)]
struct Listed {
    depth: Option<usize>,
    limit: Option<usize>,
    page: Option<String>,
    path_prefix: Option<String>,
    view: Option<View>,
}

/// What a list is made of.
enum Item {
    Memory(Locator, String),
    Prefix(String),
}

impl Item {
    fn path(&self) -> String {
        match self {
            Item::Memory(_, path) | Item::Prefix(path) => path.clone(),
        }
    }
}

pub(super) async fn list(call: Call) -> Result<Response> {
    let asked: Listed = call.query()?;
    let view = asked.view.unwrap_or(View::Basic);
    let limit = limit(asked.limit, if view == View::Full { 20 } else { 100 })?;
    let prefix = asked.path_prefix.unwrap_or_else(|| "/".to_owned());
    if !prefix.starts_with('/') || !prefix.ends_with('/') {
        return Err(invalid("`path_prefix` must begin and end with `/`"));
    }
    let depth = asked.depth.unwrap_or(0);
    let listed = at_desk(&call, move |desk| {
        let memory = desk.cx.reading()?;
        let files =
            memory.store().list_all(&desk.root)?.into_iter().filter(|info| info.kind == FileKind::File);
        let mut items: Vec<Item> = Vec::new();
        for info in files {
            let Some(path) = path_of(&desk.root, &info.locator) else { continue };
            let Some(rest) = path.strip_prefix(&prefix) else { continue };
            let deep = depth > 0 && rest.split('/').count() > depth;
            if !deep {
                items.push(Item::Memory(info.locator, path));
                continue;
            }
            let folder: Vec<&str> = rest.split('/').take(depth).collect();
            let folder = format!("{prefix}{}/", folder.join("/"));
            if !items.iter().any(|item| matches!(item, Item::Prefix(known) if *known == folder)) {
                items.push(Item::Prefix(folder));
            }
        }
        let page = Page::of(items, Order::Rising, limit, asked.page.as_deref(), Item::path)?;
        let mut data = Vec::new();
        for item in &page.data {
            match item {
                Item::Prefix(path) => data.push(json!({"type": "memory_prefix", "path": path})),
                Item::Memory(at, _) => data.extend(desk.told_if_there(at, view)?),
            }
        }
        Ok(json!({"data": data, "next_page": page.next}))
    });
    Ok(answered(&listed.await?))
}

#[derive(Deserialize)]
struct New {
    path: String,
    content: Option<String>,
}

fn checked(content: String) -> Result<Vec<u8>> {
    match content.len() <= CONTENT_BYTES_MAX {
        true => Ok(content.into_bytes()),
        false => {
            Err(invalid(format!("the content has {} bytes, and at most 102,400 are allowed", content.len()))
                .code(code::TOO_LARGE))
        }
    }
}

pub(super) async fn create(call: Call) -> Result<Response> {
    let view = call.query::<Viewed>()?.view.unwrap_or(View::Basic);
    let (key, New { path, content }) = (call.key(), sent(&call).await?);
    let bytes = checked(content.unwrap_or_default())?;
    let made = at_desk(&call, move |desk| {
        desk.of.check_open()?;
        let at = place(&desk.root, &path)?;
        let limits = Limits::default();
        let note = note(desk.cx, "memory_create", key);
        let done =
            desk.cx.writing()?.apply(note, |store| files::create(store, &at, bytes.clone(), &limits))?;
        desk.told_after((&at, bytes), view, (done.change, done.replayed))
    });
    Ok(answered(&made.await?))
}

pub(super) async fn retrieve(call: Call) -> Result<Response> {
    let view = call.query::<Viewed>()?.view.unwrap_or(View::Full);
    let id = call.param("memory").to_owned();
    let found = at_desk(&call, move |desk| {
        let at = desk.find(desk.cx.reading()?.store(), &id)?;
        desk.told_now(&at, view)
    });
    Ok(answered(&found.await?))
}

#[derive(Deserialize)]
struct Changes {
    content: Option<String>,
    path: Option<String>,
    precondition: Option<Precondition>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Precondition {
    ContentSha256 { content_sha256: String },
}

pub(super) async fn update(call: Call) -> Result<Response> {
    let view = call.query::<Viewed>()?.view.unwrap_or(View::Basic);
    let (key, id) = (call.key(), call.param("memory").to_owned());
    let Changes { content, path, precondition } = sent(&call).await?;
    let bytes = content.map(checked).transpose()?;
    let expected = precondition.map(|Precondition::ContentSha256 { content_sha256 }| content_sha256);
    let changed = at_desk(&call, move |desk| {
        desk.of.check_open()?;
        let to = path.map(|path| place(&desk.root, &path)).transpose()?;
        let note = note(desk.cx, "memory_update", key);
        let done = desk.cx.writing()?.apply(note, |store| {
            let from = desk.find(store, &id)?;
            let to = to.as_ref().unwrap_or(&from).clone();
            let there = held(store, &from, &id, expected.as_deref())?;
            let left = bytes.clone().unwrap_or_else(|| there.bytes.clone());
            let mut edits = Vec::new();
            if to != from {
                let expect = Expect::At(there.version.clone());
                edits.push(Edit::Rename { from: from.clone(), to: to.clone(), expect });
            }
            if left != there.bytes {
                edits.push(Edit::Write {
                    at: to.clone(),
                    bytes: left.clone().into(),
                    expect: Expect::At(there.version),
                });
            }
            Ok(Plan { edits, outcome: (to, left) })
        })?;
        let (at, left) = done.outcome;
        desk.told_after((&at, left), view, (done.change, done.replayed))
    });
    Ok(answered(&changed.await?))
}

/// Returns what a memory holds, if its hash is the expected one.
fn held(store: &Store, at: &Locator, id: &str, expected: Option<&str>) -> Result<Content> {
    let there = store.read_optional(at)?.ok_or_else(|| absent("memory", id))?;
    match expected.is_none_or(|expected| sha256(&there.bytes).eq_ignore_ascii_case(expected)) {
        true => Ok(there),
        false => Err(Error::new(Kind::Conflict, "the content is not what the precondition says")
            .code(code::VERSION_MISMATCH)
            .hint("retrieve it again, then redo the change on the current version")),
    }
}

#[derive(Deserialize)]
struct Deleted {
    expected_content_sha256: Option<String>,
}

pub(super) async fn delete(call: Call) -> Result<Response> {
    let expected = call.query::<Deleted>()?.expected_content_sha256;
    let (key, id) = (call.key(), call.param("memory").to_owned());
    let deleted = at_desk(&call, move |desk| {
        desk.of.check_open()?;
        let note = note(desk.cx, "memory_delete", key);
        desk.cx.writing()?.apply(note, |store| {
            let at = desk.find(store, &id)?;
            let there = held(store, &at, &id, expected.as_deref())?;
            let edit = Edit::Delete { at, expect: Expect::At(there.version) };
            Ok(Plan { edits: vec![edit], outcome: () })
        })?;
        Ok(json!({"type": "memory_deleted", "id": id}))
    });
    Ok(answered(&deleted.await?))
}
