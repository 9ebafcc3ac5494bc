//! The web page: rendered here, without a build step, without anything of another site.
//!
//! # How a page is added
//! 1. Write `async fn page(call: Call) -> Result<Response>` in a file of `web/`. It gets at memories by
//!    running verbs in this process: `call.verb("find", json!({"text": "x"})).await?.json()` is what
//!    `POST /api/find` would answer, for the same asker and with the same rights. Work of its own on
//!    the store goes into `call.work(|cx| ...)`. `call.param("name")`, `call.query::<T>()?` and
//!    `call.body().await?` read the request; `call.space.name` is the space.
//! 2. Add one line to [`routes`]: `page("/notes", notes::list)`, or `form("/notes", notes::save)` for
//!    what changes something. Every page is also beneath `/s/<space>/`, so links are relative to
//!    [`base`].
//! 3. Scripts, styles and images are files of `web/`, embedded with `include_str!`, each a line
//!    in [`ASSETS`]. The policy of `http/gate.rs` allows no inline script and no inline style.
//!
//! An error that a page returns is shown by [`failure`]. The test that tries every route finds new
//! ones by itself. Live updates: `new EventSource(base + "/api/events")`.

use axum::http::{Method, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use memgrove::{Error, Result};
use serde_json::json;

use crate::http::{Call, Need, Route, Scope, Voice};
use crate::status;

/// What the pages load: path, type, content.
const ASSETS: &[(&str, &str, &str)] = &[];

/// The pages.
pub(crate) fn routes() -> Vec<Route> {
    let mut routes = vec![page("/", index)];
    routes.extend(ASSETS.iter().map(|(path, kind, text)| asset(path, kind, text)));
    routes
}

/// A page that shows something.
fn page<F>(path: &str, handle: impl Fn(Call) -> F + Send + Sync + 'static) -> Route
where
    F: Future<Output = Result<Response>> + Send + 'static,
{
    Route::new(Method::GET, path, Need::Scope(Scope::Read), handle).speaking_to(Voice::Person)
}

/// What a page loads. It tells nothing about memories, so it needs no token.
fn asset(path: &str, kind: &'static str, text: &'static str) -> Route {
    let answer = move |_: Call| async move {
        let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")];
        Ok((headers, text).into_response())
    };
    Route::new(Method::GET, path, Need::Nothing, answer).of_server()
}

/// What stands before the path of every link, so that it stays in the space: empty at the root.
pub(crate) fn base(call: &Call) -> String {
    match call.param("space") {
        "" => String::new(),
        space => format!("/s/{space}"),
    }
}

async fn index(call: Call) -> Result<Response> {
    let base = base(&call);
    let past = call.verb("history", json!({"limit": 1})).await?.json();
    let last = past["changes"][0]["time"].as_str().map_or("none yet".to_owned(), escaped);
    let text = format!(
        "<p>Last change: {last}.</p>\n<p>This server has no pages yet. Its API is described at <a \
         href=\"{base}/api/openapi.json\">{base}/api/openapi.json</a>.</p>"
    );
    Ok(Html(framed("memgrove", &text)).into_response())
}

/// An error as a page.
pub(crate) fn failure(error: &Error) -> Response {
    let status = StatusCode::from_u16(status::http_status(error.kind()));
    refusal(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), error)
}

/// An error as a page with a status of its own.
pub(crate) fn refusal(status: StatusCode, error: &Error) -> Response {
    let hint = error.hint_text().map_or(String::new(), |hint| format!("<p>{}</p>", escaped(hint)));
    let text = format!("<p>{}</p>{hint}", escaped(error.message()));
    (status, Html(framed("memgrove", &text))).into_response()
}

fn framed(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{title}</title>\n<h1>{title}</h1>\n{body}\n</html>\n"
    )
}

/// Text that is safe between tags and in quoted attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}
