//! The bytes of a memory, as they are and in pieces: what is too large for JSON.

use std::ops::Range;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use memgrove::address::Scheme;
use memgrove::backend::{Content, Expect, Version, exists};
use memgrove::shapes::files::{self, Limits};
use memgrove::shapes::graph::ContentEdit;
use memgrove::{Error, Kind, Locator, Result};
use serde_json::json;

use super::api::{names, tags};
use super::route::Call;
use crate::address::{changes_at, file_at, in_memories, memory_at};
use crate::context::{Context, Guard};

/// How much is handed on at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// The types that a browser may display; all else is sent as text or unknown bytes, never as a page.
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
    let known = call.header(header::IF_NONE_MATCH.as_str());
    if known.is_some_and(|known| names(known, version.as_str())) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, etag)]).into_response());
    }
    let kind = match SHOWN.iter().find(|(end, _)| kind_of.ends_with(end)) {
        Some((_, kind)) => kind,
        None if str::from_utf8(&bytes).is_ok() => "text/plain; charset=utf-8",
        None => "application/octet-stream",
    };
    let total = bytes.len();
    let bytes = Bytes::from(bytes);
    // A part of changed content would not fit what the client already has.
    let fits = call.header(header::IF_RANGE.as_str()).is_none_or(|known| known.trim() == etag);
    let range = call.header(header::RANGE.as_str()).filter(|_| fits);
    let (status, range) = match range.and_then(|range| asked(range, total)) {
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

/// The one range that was asked for; the inner `None` means that nothing is there. Anything but one plain
/// range is answered with the whole content, as HTTP allows.
fn asked(range: &str, total: usize) -> Option<Option<Range<usize>>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first.trim(), last.trim()) {
        ("", last) => total.saturating_sub(last.parse().ok()?)..total,
        (first, "") => first.parse().ok()?..total,
        (first, last) => first.parse().ok()?..last.parse::<usize>().ok()?.saturating_add(1).min(total),
    };
    Some((range.start < range.end).then_some(range))
}

/// What must be there before the bytes are written.
enum Before {
    Nothing,
    Anything,
    /// Content at one of these versions.
    OneOf(Vec<String>),
}

/// Makes a file, a node or a connection hold the bytes of the body.
pub(crate) async fn put(call: Call) -> Result<Response> {
    let Which { address } = call.query()?;
    let versions = |header: &str| tags(header).map(str::to_owned).collect::<Vec<_>>();
    let is_new = call.header(header::IF_NONE_MATCH.as_str()).is_some_and(|header| header.trim() == "*");
    let before = match call.header(header::IF_MATCH.as_str()) {
        _ if is_new => Before::Nothing,
        Some(header) => Before::OneOf(versions(header)),
        None => Before::Anything,
    };
    let key = call.key();
    if let Some(refused) = not_whole(&call) {
        return Ok(refused);
    }
    let _turn = if is_large(&call) { call.served.large_bodies.acquire().await.ok() } else { None };
    let bytes = Vec::from(call.large_body().await?);
    let done = match Scheme::split(&address) {
        Some((Scheme::Node | Scheme::Connection, _)) => {
            call.work(move |cx| put_in_graph(cx, &address, bytes, &before, key)).await
        }
        _ => call.work(move |cx| put_file(cx, &address, bytes, &before, key)).await,
    };
    match done {
        // Something is there, which `If-None-Match: *` forbids.
        Err(error) if is_new && error.kind() == Kind::Exists => {
            Ok(super::problem::refusal(StatusCode::PRECONDITION_FAILED, &error))
        }
        done => done.map(Written::told),
    }
}

/// Refuses a body that is encoded or only a part of the content.
fn not_whole(call: &Call) -> Option<Response> {
    let refused = |status, what: &str, hint: &str| {
        let error = Error::new(Kind::Invalid, what).hint(hint);
        Some(super::problem::refusal(status, &error))
    };
    let coded = call.header(header::CONTENT_ENCODING.as_str()).map(str::trim);
    if coded.is_some_and(|coded| !coded.eq_ignore_ascii_case("identity")) {
        let what = "the body is encoded, and would be stored that way";
        return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, what, "send it without Content-Encoding");
    }
    if call.head.headers.contains_key(header::CONTENT_RANGE) {
        return refused(StatusCode::BAD_REQUEST, "a part cannot replace the whole", "send the whole content");
    }
    None
}

/// Whether a body may be larger than that of any other request, or does not say how large it is.
fn is_large(call: &Call) -> bool {
    let length = call.header(header::CONTENT_LENGTH.as_str()).and_then(|length| length.parse().ok());
    length.is_none_or(|length: usize| length > call.served.limits.body_bytes_max)
}

/// What came of putting bytes somewhere.
struct Written {
    version: Option<String>,
    change: Option<String>,
    replayed: bool,
}

impl Written {
    fn told(self) -> Response {
        let Written { version, change, replayed } = self;
        let told = json!({"version": version, "change": change, "replayed": replayed}).to_string();
        let mut response = ([(header::CONTENT_TYPE, "application/json")], told).into_response();
        let etag = version.and_then(|version| HeaderValue::try_from(format!("\"{version}\"")).ok());
        response.headers_mut().extend(etag.map(|etag| (header::ETAG, etag)));
        response
    }
}

fn put_file(
    cx: &Context,
    address: &str,
    bytes: Vec<u8>,
    before: &Before,
    key: Option<String>,
) -> Result<Written> {
    let path = Scheme::File.bare(address);
    if let Some((kind, _)) = path.split_once(':').filter(|(kind, _)| !kind.contains(['/', '.'])) {
        let what = format!("the bytes of a memory `{}:` cannot be written", kind.escape_debug());
        return Err(
            Error::new(Kind::Invalid, what).hint("write those of a `file:`, a `node:` or a `connection:`")
        );
    }
    let at = file_at(cx, path)?;
    let note = cx.note("file_create", &Guard { key, ..Guard::default() });
    let limits = Limits::default();
    let plan = |store: &memgrove::Store| match before {
        Before::Nothing => files::create(store, &at, bytes.clone(), &limits),
        Before::OneOf(wanted) => {
            let there = wanted_version(store, &at, wanted)?;
            files::write(store, &at, bytes.clone(), Some(&there), &limits)
        }
        Before::Anything => files::write(store, &at, bytes.clone(), None, &limits),
    };
    let done = cx.writing()?.apply(note, plan).map_err(|error| in_memories(cx, error))?;
    let version = done.versions.into_iter().flatten().last().map(|version| version.as_str().to_owned());
    let change = done.change.map(|change| change.as_str().to_owned());
    Ok(Written { version, change, replayed: done.replayed })
}

/// Makes a node or connection hold the bytes of the body. Versions are those of its content.
fn put_in_graph(
    cx: &Context,
    address: &str,
    bytes: Vec<u8>,
    before: &Before,
    key: Option<String>,
) -> Result<Written> {
    let graph = cx.writing_graph()?;
    let (is_node, id) = match Scheme::Node.of(address) {
        Some(id) => (true, id),
        None => (false, Scheme::Connection.bare(address)),
    };
    let (storage, said) = match is_node {
        true => graph.node(id).map(|got| (got.it.storage, got.version))?,
        false => graph.connection(id).map(|got| (got.it.storage, got.version))?,
    };
    let mut resting = graph.clone();
    // The write is bound to what was just read: it fails if that changes first.
    match (before, storage, said) {
        (Before::Nothing, Some(_), _) => return Err(exists(&memory_at(cx, address)?)),
        (Before::Nothing, None, Some(said)) => resting = resting.resting_on(changes_at(cx, address)?, said),
        (Before::OneOf(wanted), ..) => {
            let at = memory_at(cx, address)?;
            let there = wanted_version(graph.memory().store(), &at, wanted)?;
            resting = resting.resting_on(at, there);
        }
        (Before::Nothing, None, None) | (Before::Anything, ..) => {}
    }
    let note =
        cx.note(if is_node { "node_edit" } else { "connection_edit" }, &Guard { key, ..Guard::default() });
    let edit = ContentEdit::Write { content: bytes.into(), format: None };
    let (change, replayed) = match is_node {
        true => resting.edit(note, id, edit, None).map(|done| (done.change, done.replayed))?,
        false => resting.edit_connection(note, id, &edit, None).map(|done| (done.change, done.replayed))?,
    };
    let version =
        graph.memory().store().info_optional(&memory_at(cx, address)?)?.and_then(|info| info.version);
    let version = version.map(|version| version.as_str().to_owned());
    let change = change.map(|change| change.as_str().to_owned());
    Ok(Written { version, change, replayed })
}

/// Returns the version that is there, if it is one of those wanted; `*` stands for any.
fn wanted_version(store: &memgrove::Store, at: &Locator, wanted: &[String]) -> Result<Version> {
    let there = store.info_optional(at)?.and_then(|info| info.version);
    let one = there.as_ref().filter(|there| wanted.iter().any(|one| one == "*" || one == there.as_str()));
    match (one, wanted.first()) {
        (Some(one), _) => Ok(one.clone()),
        (None, Some(first)) if first != "*" => {
            let first = Version::new(first.as_str());
            Expect::At(first.clone()).check(at, there.as_ref()).map(|()| first)
        }
        (None, _) => Err(Error::new(Kind::Conflict, format!("there is no `{at}`")).hint("create it")),
    }
}

/// The error for a body that is too large.
pub(crate) fn too_large(limit: usize) -> Error {
    Error::new(Kind::Full, format!("the body is larger than {limit} bytes"))
        .code(memgrove::error::code::TOO_LARGE)
        .hint("send less at once")
}

/// Said of a body that did not come.
pub(crate) const STALLED: &str = "STALLED";

/// The error for a body that does not come.
pub(crate) fn stalled() -> Error {
    Error::new(Kind::Busy, "the rest of the body did not arrive")
        .code(STALLED)
        .hint("send it again without pausing")
}
