//! Anthropic's memory stores API at `/v1/memory_stores`, so that the official SDKs work against a
//! store of one's own. A memory store is a folder beneath `/memories`; a memory is a file in it; a
//! version is a change in the history. `docs/memory-stores.md` tells where it differs.

mod memories;
mod paths;
mod stores;
mod versions;

use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use memgrove::clock::Timestamp;
use memgrove::error::code;
use memgrove::{Error, Kind, Result};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::problem::RETRY_AFTER_SECONDS;
use super::route::{Call, Route, Voice};
use super::{READ, WRITE};
use crate::context::random_id;
use crate::memory_stores::invalid;

/// Where the API is.
pub(super) const ROOT: &str = "/v1/";

/// The code of the error for redacting a version that the memory still holds.
const CURRENT: &str = "CURRENT_VERSION";

/// The routes.
pub(super) fn routes() -> Vec<Route> {
    const STORES: &str = "/v1/memory_stores";
    const STORE: &str = "/v1/memory_stores/{store}";
    const MEMORIES: &str = "/v1/memory_stores/{store}/memories";
    const MEMORY: &str = "/v1/memory_stores/{store}/memories/{memory}";
    const VERSIONS: &str = "/v1/memory_stores/{store}/memory_versions";
    const VERSION: &str = "/v1/memory_stores/{store}/memory_versions/{version}";
    let routes = vec![
        Route::new(Method::GET, STORES, READ, stores::list),
        Route::new(Method::POST, STORES, WRITE, stores::create),
        Route::new(Method::GET, STORE, READ, stores::retrieve),
        Route::new(Method::POST, STORE, WRITE, stores::update),
        Route::new(Method::DELETE, STORE, WRITE, stores::delete),
        Route::new(Method::POST, format!("{STORE}/archive"), WRITE, stores::archive),
        Route::new(Method::GET, MEMORIES, READ, memories::list),
        Route::new(Method::POST, MEMORIES, WRITE, memories::create),
        Route::new(Method::GET, MEMORY, READ, memories::retrieve),
        Route::new(Method::POST, MEMORY, WRITE, memories::update),
        Route::new(Method::DELETE, MEMORY, WRITE, memories::delete),
        Route::new(Method::GET, VERSIONS, READ, versions::list),
        Route::new(Method::GET, VERSION, READ, versions::retrieve),
        Route::new(Method::POST, format!("{VERSION}/redact"), WRITE, versions::redact),
    ];
    routes.into_iter().map(|route| route.speaking_to(Voice::Anthropic)).collect()
}

/// An error as Anthropic's clients read it.
pub(super) fn failure(error: &Error) -> Response {
    let folder = [code::IS_DIRECTORY, code::NOT_DIRECTORY, code::DIRECTORY_NOT_EMPTY];
    let (status, kind) = match (error.kind(), error.code_name()) {
        (Kind::Invalid, Some(code)) if folder.contains(&code) => (409, "memory_path_conflict_error"),
        (Kind::Exists, _) => (409, "memory_path_conflict_error"),
        (Kind::Conflict, Some(CURRENT)) => (409, "conflict_error"),
        (Kind::Conflict, _) => (409, "memory_precondition_failed_error"),
        (Kind::NotFound, _) => (404, "not_found_error"),
        (Kind::Denied, _) => (403, "permission_error"),
        (Kind::Busy, _) => (529, "overloaded_error"),
        (Kind::Full, _) => (413, "invalid_request_error"),
        (Kind::Invalid | Kind::Unsupported, _) => (400, "invalid_request_error"),
        (Kind::Corrupt | Kind::Io, _) => (500, "api_error"),
    };
    told_as(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), kind, error)
}

/// A refusal at the door.
pub(super) fn refusal(status: StatusCode, error: &Error) -> Response {
    let kind = match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
        status if status.is_client_error() => "invalid_request_error",
        _ => "api_error",
    };
    let mut response = told_as(status, kind, error);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
    }
    response
}

fn told_as(status: StatusCode, kind: &str, error: &Error) -> Response {
    let hint = error.hint_text().map_or(String::new(), |hint| format!("; {hint}"));
    let id = format!("req_{}", random_id().replace('-', ""));
    let message = format!("{}{hint}", error.message());
    let text = json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": id});
    let mut response =
        (status, [(header::CONTENT_TYPE, "application/json")], text.to_string()).into_response();
    response.headers_mut().extend(
        HeaderValue::try_from(id).ok().map(|id| (axum::http::HeaderName::from_static("request-id"), id)),
    );
    response
}

/// An answer.
fn answered(answer: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}

/// Reads the body as JSON of this type; an empty one counts as `{}`.
async fn sent<T: DeserializeOwned>(call: &Call) -> Result<T> {
    let body = call.body().await?;
    let body: &[u8] = if body.is_empty() { b"{}" } else { &body };
    serde_json::from_slice(body).map_err(|error| invalid(format!("invalid body: {error}")))
}

/// One page of a list: at most `limit` items, after the last one of the previous page.
struct Page<T> {
    data: Vec<T>,
    next: Option<String>,
}

/// How a list is ordered by its keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Rising,
    Falling,
}

impl<T> Page<T> {
    /// Orders a list by its keys and takes a page from it. The last item of the previous page may be gone by
    /// now.
    ///
    /// # Errors
    /// `Invalid` if `page` is not where a previous page ended.
    fn of(
        mut all: Vec<T>,
        order: Order,
        limit: usize,
        page: Option<&str>,
        key: impl Fn(&T) -> String,
    ) -> Result<Self> {
        let after = page.map(key_in).transpose()?;
        all.sort_by_cached_key(&key);
        if order == Order::Falling {
            all.reverse();
        }
        let seen = |item: &T| match (after.as_deref(), order) {
            (None, _) => false,
            (Some(after), Order::Rising) => key(item).as_str() <= after,
            (Some(after), Order::Falling) => key(item).as_str() >= after,
        };
        let mut rest = all.into_iter().skip_while(seen).peekable();
        let data: Vec<T> = rest.by_ref().take(limit).collect();
        let next = rest.peek().and(data.last()).map(|last| cursor(&key(last)));
        Ok(Page { data, next })
    }
}

/// What every cursor begins with.
const CURSOR: &str = "page_";

/// The name of the page behind the item with this key.
fn cursor(key: &str) -> String {
    format!("{CURSOR}{}", URL_SAFE_NO_PAD.encode(key))
}

/// The key in a cursor.
fn key_in(page: &str) -> Result<String> {
    let key = page.strip_prefix(CURSOR).and_then(|rest| URL_SAFE_NO_PAD.decode(rest).ok());
    let key = key.and_then(|key| String::from_utf8(key).ok()).filter(|key| !key.is_empty());
    key.ok_or_else(|| {
        let message = format!("`page` is `{}`, which is no page of this list", page.escape_default());
        invalid(message).hint("pass the `next_page` of the page before it, or leave it out")
    })
}

/// A time as a key that sorts as times do.
fn moment(time: Timestamp) -> String {
    format!("{:024}", time.as_nanosecond())
}

/// How many items a page may have.
fn limit(given: Option<usize>, most: usize) -> Result<usize> {
    match given {
        None => Ok(20),
        Some(limit) if (1..=100).contains(&limit) => Ok(limit.min(most)),
        Some(limit) => Err(invalid(format!("`limit` is {limit}, and must be from 1 to 100"))),
    }
}
