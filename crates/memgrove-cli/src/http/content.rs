//! The bytes of a memory, as they are and in pieces: what is too large for JSON.

use std::ops::Range;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use memgrove::backend::{Content, Expect, Version};
use memgrove::shapes::files::{self, Limits};
use memgrove::shapes::graph::ContentEdit;
use memgrove::{Error, Kind, Result};
use serde_json::json;

use super::route::Call;
use crate::address::{file_at, in_memories, memory_at};
use crate::context::{Context, Guard};

/// How much is handed on at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// What a browser may show as it is; anything else is text or unknown bytes, never a page.
const SHOWN: &[(&str, &str)] = &[
    (".png", "image/png"),
    (".jpg", "image/jpeg"),
    (".jpeg", "image/jpeg"),
    (".gif", "image/gif"),
    (".webp", "image/webp"),
    (".pdf", "application/pdf"),
];

#[derive(serde::Deserialize)]
struct Which {
    address: String,
}

/// Streams the bytes of a memory.
pub(crate) async fn get(call: Call) -> Result<Response> {
    let Which { address } = call.query()?;
    let kind_of = address.to_ascii_lowercase();
    let Content { bytes, version } = call
        .work(move |cx| {
            let at = memory_at(cx, &address)?;
            cx.reading()?.store().read_bytes(&at).map_err(|error| in_memories(cx, error))
        })
        .await?;
    let etag = format!("\"{version}\"");
    if call.header(header::IF_NONE_MATCH.as_str()).is_some_and(|known| known.contains(&etag)) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, etag)]).into_response());
    }
    let kind = match SHOWN.iter().find(|(end, _)| kind_of.ends_with(end)) {
        Some((_, kind)) => kind,
        None if str::from_utf8(&bytes).is_ok() => "text/plain; charset=utf-8",
        None => "application/octet-stream",
    };
    let total = bytes.len();
    let bytes = Bytes::from(bytes);
    let (status, range) = match call.header(header::RANGE.as_str()).and_then(|range| asked(range, total)) {
        Some(Some(range)) => (StatusCode::PARTIAL_CONTENT, range),
        Some(None) => {
            let range = format!("bytes */{total}");
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, [(header::CONTENT_RANGE, range)]).into_response());
        }
        None => (StatusCode::OK, 0..total),
    };
    let told = format!("bytes {}-{}/{total}", range.start, range.end.saturating_sub(1));
    let length = range.len();
    let body = Body::from_stream(stream::iter(pieces(bytes.slice(range)).map(Ok::<_, std::io::Error>)));
    let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.extend(HeaderValue::try_from(etag).ok().map(|etag| (header::ETAG, etag)));
    if status == StatusCode::PARTIAL_CONTENT {
        headers.extend(HeaderValue::try_from(told).ok().map(|told| (header::CONTENT_RANGE, told)));
    }
    Ok(response)
}

fn pieces(bytes: Bytes) -> impl Iterator<Item = Bytes> + Send {
    (0..bytes.len()).step_by(PIECE_BYTES).map(move |at| bytes.slice(at..bytes.len().min(at + PIECE_BYTES)))
}

/// The one range that was asked for; `None` inside if there is nothing there. What is not one plain
/// range is answered whole, as HTTP allows.
fn asked(range: &str, total: usize) -> Option<Option<Range<usize>>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first.trim(), last.trim()) {
        ("", last) => total.saturating_sub(last.parse().ok()?)..total,
        (first, "") => first.parse().ok()?..total,
        (first, last) => first.parse().ok()?..last.parse::<usize>().ok()?.saturating_add(1).min(total),
    };
    Some((range.start < range.end).then_some(range))
}

/// Makes a file, or a node, hold the bytes of the body.
pub(crate) async fn put(call: Call) -> Result<Response> {
    let Which { address } = call.query()?;
    let bare = |text: &str| text.trim().trim_matches('"').to_owned();
    let expect = match (call.header(header::IF_MATCH.as_str()), call.header(header::IF_NONE_MATCH.as_str())) {
        (Some(version), _) => Expect::At(Version::new(bare(version))),
        (None, Some("*")) => Expect::Absent,
        _ => Expect::Any,
    };
    let key = call.header("idempotency-key").map(bare);
    let bytes = call.large_body().await?.to_vec();
    if let Some(id) = address.strip_prefix("node:") {
        let id = id.to_owned();
        let (version, change, replayed) = call.work(move |cx| put_node(cx, &id, bytes, &expect, key)).await?;
        return Ok(written(version, change, replayed));
    }
    let done = call
        .work(move |cx| {
            let path = address.strip_prefix("file:").unwrap_or(&address);
            if let Some((kind, _)) = path.split_once(':').filter(|(kind, _)| !kind.contains(['/', '.'])) {
                let what = format!("the bytes of a memory `{}:` cannot be put", kind.escape_debug());
                return Err(Error::new(Kind::Invalid, what).hint("put those of a `file:` or a `node:`"));
            }
            let at = file_at(cx, path)?;
            let note = cx.note("file_create", &Guard { key, ..Guard::default() });
            let limits = Limits::default();
            let plan = |store: &memgrove::Store| match &expect {
                Expect::Absent => files::create(store, &at, bytes.clone(), &limits),
                Expect::At(version) => files::write(store, &at, bytes.clone(), Some(version), &limits),
                Expect::Any => files::write(store, &at, bytes.clone(), None, &limits),
            };
            cx.writing()?.apply(note, plan).map_err(|error| in_memories(cx, error))
        })
        .await?;
    let version = done.versions.into_iter().flatten().last().map(|version| version.as_str().to_owned());
    let change = done.change.map(|change| change.as_str().to_owned());
    Ok(written(version, change, done.replayed))
}

/// Makes a node hold the bytes of the body. Versions are those of its content, as it is got.
fn put_node(
    cx: &Context,
    id: &str,
    bytes: Vec<u8>,
    expect: &Expect,
    key: Option<String>,
) -> Result<(Option<String>, Option<String>, bool)> {
    let graph = cx.graph()?;
    let got = graph.node(id)?;
    let store = graph.memory().store();
    let at = graph.locate(id)?;
    let there = if got.it.storage.is_some() { store.info_optional(&at)? } else { None };
    expect.check(&at, there.and_then(|info| info.version).as_ref())?;
    // What was seen is still there when it is written: the node says what it holds.
    let guarded = !matches!(expect, Expect::Any) && !got.edited;
    let seen = got.version.as_ref().filter(|_| guarded).map(|version| version.as_str().to_owned());
    let note = cx.note("node_edit", &Guard { key, ..Guard::default() });
    let edit = ContentEdit::Write { content: bytes, format: None };
    let done = graph.edit(note, id, edit, seen.as_deref())?;
    let version = store.info_optional(&graph.locate(id)?)?.and_then(|info| info.version);
    let told = |text: &str| text.to_owned();
    Ok((
        version.map(|version| told(version.as_str())),
        done.change.map(|change| told(change.as_str())),
        done.replayed,
    ))
}

/// What is answered when something was written.
fn written(version: Option<String>, change: Option<String>, replayed: bool) -> Response {
    let told = json!({"version": version, "change": change, "replayed": replayed}).to_string();
    let mut response = ([(header::CONTENT_TYPE, "application/json")], told).into_response();
    let etag = version.and_then(|version| HeaderValue::try_from(format!("\"{version}\"")).ok());
    response.headers_mut().extend(etag.map(|etag| (header::ETAG, etag)));
    response
}

/// The error for a body that is too large.
pub(crate) fn too_large(limit: usize) -> Error {
    Error::new(Kind::Full, format!("the body is larger than {limit} bytes, or broke off"))
        .code(memgrove::error::code::TOO_LARGE)
        .hint("send less at once")
}
