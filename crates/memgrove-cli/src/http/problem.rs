//! Errors as problem documents (RFC 9457), with the kind, code and hint that every surface tells.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use memgrove::error::code;
use memgrove::{Error, Kind};
use serde::Serialize;

use crate::status as told;

/// How long a client that came at a bad moment should wait, in seconds.
pub(crate) const RETRY_AFTER_SECONDS: &str = "1";

#[derive(Serialize)]
struct Problem<'a> {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    detail: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

/// An error as an answer.
pub(crate) fn answer(error: &Error) -> Response {
    refusal(status(error), error)
}

/// The status that an error has.
pub(crate) fn status(error: &Error) -> StatusCode {
    let status = match error.code_name() {
        Some(code::TOO_LARGE) => 413,
        Some(super::content::STALLED) => 408,
        _ => told::http_status(error.kind()),
    };
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// An error as an answer with a status of its own.
pub(crate) fn refusal(status: StatusCode, error: &Error) -> Response {
    let problem = Problem {
        r#type: "about:blank",
        title: status.canonical_reason().unwrap_or_default(),
        status: status.as_u16(),
        detail: error.message(),
        kind: error.kind().name(),
        code: error.code_name(),
        hint: error.hint_text(),
    };
    let text = serde_json::to_string(&problem).expect("a problem is plain data");
    let mut response = (status, text).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    match status {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
        }
        StatusCode::UNAUTHORIZED => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        _ => {}
    }
    response
}

/// The error for a path that no route has.
pub(crate) fn nowhere(path: &str) -> Error {
    Error::new(Kind::NotFound, format!("there is nothing at `{}`", path.escape_default()))
        .hint("the API is described at /api/openapi.json; pages are under Browse")
}
