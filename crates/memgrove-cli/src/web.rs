//! The web page: rendered here, without a build step, without anything of another site.
//!
//! # How a page is added
//! 1. Write `async fn page(call: Call) -> Result<Response>` in a file of `web/`. It gets at memories by
//!    running verbs in this process: `call.verb("find", json!({"text": "x"})).await?.json()` is what
//!    `POST /api/find` would answer, for the same asker and with the same rights. Work of its own on
//!    the store goes into `call.work(|cx| ...)`. `call.param("name")`, `call.query::<T>()?` and
//!    `call.body().await?` read the request; `call.space.name` is the space.
//! 2. Add one line to [`routes`]: `page("/notes", notes::list)`, or `form("/notes", notes::save)` for
//!    what changes something. Every page is also beneath `/s/<space>/`, so links are made by
//!    [`frame::url`].
//! 3. Scripts, styles and images are files of `web/assets/`, embedded with `include_str!`, each a line
//!    in [`ASSETS`]. The policy of `http/gate.rs` allows no inline script and no inline style.
//!
//! Markup is written with `maud`, which escapes whatever is put into it; the only text that goes out
//! unescaped is made by `markdown.rs`. An error that a page returns is shown by [`failure`].

mod browse;
mod charts;
mod compare;
mod conflicts;
mod decisions;
mod doctor;
mod edit;
mod entities;
mod frame;
mod graph;
mod in_graph;
mod listing;
mod lookup;
mod markdown;
mod nodes;
mod past;
mod place;
mod read;
mod record;
mod records;
mod relations;
mod search;
mod statistics;
mod timeline;
mod tree;
mod web_of_links;

use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use memgrove::{Error, Result};

pub(crate) use frame::{Site, base};

use crate::http::{Call, Need, Route, Scope, Voice};

/// What the pages load: path, type, content.
const ASSETS: &[(&str, &str, &str)] = &[
    ("/web/style.css", "text/css; charset=utf-8", include_str!("web/assets/style.css")),
    ("/web/theme.js", SCRIPT, include_str!("web/assets/theme.js")),
    ("/web/app.js", SCRIPT, include_str!("web/assets/app.js")),
    ("/web/live.js", SCRIPT, include_str!("web/assets/live.js")),
    ("/web/search.js", SCRIPT, include_str!("web/assets/search.js")),
    ("/web/graph.js", SCRIPT, include_str!("web/assets/graph.js")),
    ("/web/forces.js", SCRIPT, include_str!("web/assets/forces.js")),
    ("/favicon.ico", "image/svg+xml", include_str!("web/assets/icon.svg")),
];
/// How long a browser keeps them: across pages, but not across versions of the program.
const ASSETS_KEPT: &str = "private, max-age=120";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The pages.
pub(crate) fn routes() -> Vec<Route> {
    let mut routes = vec![
        page("/", search::page),
        page("/search", search::hits),
        page("/browse", browse::overview),
        page("/browse/{shape}", browse::shape),
        page("/read", read::page),
        page("/record", record::one),
        form("/record", record::save),
        page("/edit", edit::page),
        form("/edit", edit::save),
        form("/delete", edit::delete),
        page("/history", past::history),
        page("/diff", past::diff),
        form("/restore", past::restore),
        page("/timeline", timeline::page),
        form("/undo", timeline::undo),
        page("/graph", graph::page),
        page("/graph/data", graph::data),
        page("/decisions", decisions::page),
        page("/statistics", statistics::page),
        page("/doctor", doctor::page),
        form("/doctor", doctor::mend),
        page("/conflicts", conflicts::page),
        form("/conflicts", conflicts::merge),
    ];
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

/// A form that changes something.
fn form<F>(path: &str, handle: impl Fn(Call) -> F + Send + Sync + 'static) -> Route
where
    F: Future<Output = Result<Response>> + Send + 'static,
{
    Route::new(Method::POST, path, Need::Scope(Scope::Write), handle).speaking_to(Voice::Person)
}

/// A file that pages load. It tells nothing about memories, so it needs no token.
fn asset(path: &str, kind: &'static str, text: &'static str) -> Route {
    let answer = move |_: Call| async move {
        let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, ASSETS_KEPT)];
        Ok((headers, text).into_response())
    };
    Route::new(Method::GET, path, Need::Nothing, answer).of_server()
}

/// An error as a page, with links to other pages if the site is known.
pub(crate) fn failure(error: &Error, site: Option<&Site>) -> Response {
    match site {
        Some(site) => (crate::http::status(error), frame::failed(error, site)).into_response(),
        None => refusal(crate::http::status(error), error),
    }
}

/// An error as a page with a status of its own.
pub(crate) fn refusal(status: StatusCode, error: &Error) -> Response {
    (status, told(frame::bare(error))).into_response()
}

/// A page as an answer. Its policy lets forms tell where they come from, which browsers would leave out under
/// the stricter policy of other answers.
fn told(page: maud::Markup) -> Response {
    let mut response = axum::response::Html(page.into_string()).into_response();
    let policy = HeaderName::from_static("referrer-policy");
    response.headers_mut().insert(policy, HeaderValue::from_static("same-origin"));
    response
}

/// Redirects to another page after something was done.
fn led_to(address: &str) -> Result<Response> {
    let at = HeaderValue::try_from(address)
        .map_err(|_| Error::new(memgrove::Kind::Invalid, "the address does not fit into a header"))?;
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, at)]).into_response())
}
