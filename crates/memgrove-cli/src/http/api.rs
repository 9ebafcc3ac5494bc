//! The table of verbs as an API: `POST /api/<verb>` with the arguments as JSON, and for verbs that
//! only read also `GET` with the arguments as a query.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use memgrove::{Error, Kind, Result};
use serde_json::{Map, Value};
use tokio::runtime::Handle as Threads;

use super::access::Scope;
use super::route::{Call, Need, Route};
use crate::context::{Context, Input};
use crate::status;
use crate::verbs::{Effect, Entry, On, TABLE, not_taken};

/// The verbs that are offered over HTTP: those that are offered to agents, and those that say so.
/// A verb that works on paths of the machine is offered on the command line alone.
pub(crate) fn offered() -> impl Iterator<Item = &'static Entry> {
    TABLE.iter().filter(|entry| entry.on.iter().any(|on| *on != On::Cli))
}

/// A size that most answers fit into.
const BODY_BYTES: usize = 16 * 1024;

/// A route for every verb, two for those that only read.
pub(crate) fn routes() -> Vec<Route> {
    offered().flat_map(of_verb).collect()
}

fn of_verb(entry: &'static Entry) -> Vec<Route> {
    let path = format!("/api/{}", entry.name);
    match entry.effect {
        Effect::Read => {
            let need = Need::Scope(Scope::Read);
            vec![
                Route::new(Method::POST, path.clone(), need, move |call| posted(entry, call)),
                Route::new(Method::GET, path, need, move |call| asked(entry, call)),
            ]
        }
        Effect::Add | Effect::Remove => {
            let need = Need::Scope(Scope::Write);
            vec![Route::new(Method::POST, path, need, move |call| posted(entry, call))]
        }
    }
}

/// A verb with its arguments in the body.
async fn posted(entry: &'static Entry, call: Call) -> Result<Response> {
    let typed = call.header(header::CONTENT_TYPE.as_str()).unwrap_or_default();
    // A form of another site cannot send this type.
    if typed.split(';').next().is_none_or(|kind| !kind.trim().eq_ignore_ascii_case("application/json")) {
        let error = Error::new(Kind::Invalid, "the body is not `application/json`");
        let error = error.hint("send the arguments as a JSON object with that Content-Type");
        return Ok(super::problem::refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, &error));
    }
    let guard = Guards::of(&call);
    if entry.effect != Effect::Read && call.header(header::IF_NONE_MATCH.as_str()).is_some() {
        let message = format!("`{}` does not take If-None-Match", entry.name);
        return Err(Error::new(Kind::Invalid, message)
            .hint("leave the header out; `PUT /api/content` takes it to create a new file"));
    }
    let body = call.body().await?;
    let arguments = match body.is_empty() {
        true => Value::Object(Map::new()),
        false => serde_json::from_slice(&body)
            .map_err(|error| Error::new(Kind::Invalid, format!("the body is not JSON: {error}")))?,
    };
    let arguments = taken(entry, arguments)?;
    run(entry, call, guard?.added(entry, arguments)?).await
}

/// Returns the arguments if the verb takes them all: a misspelled one must not be ignored silently.
fn taken(entry: &Entry, arguments: Value) -> Result<Value> {
    let Value::Object(given) = &arguments else {
        return Err(Error::new(Kind::Invalid, "the body is not a JSON object")
            .hint("name the arguments: {\"name\": …}"));
    };
    match given.keys().find(|name| !takes(entry, name)) {
        None => Ok(arguments),
        Some(name) => Err(not_taken(entry.name, name, properties(entry).as_object())),
    }
}

/// Whether a verb takes an argument.
fn takes(entry: &Entry, name: &str) -> bool {
    properties(entry).get(name).is_some()
}

/// What a verb takes, by name.
fn properties(entry: &Entry) -> &'static Value {
    &input(entry)["properties"]
}

/// The schema of what a verb takes. They are made once, because every request asks for one.
pub(super) fn input(entry: &Entry) -> &'static Value {
    static SCHEMAS: LazyLock<BTreeMap<&str, Value>> =
        LazyLock::new(|| offered().map(|entry| (entry.name, entry.whole_input())).collect());
    &SCHEMAS[entry.name]
}

/// A verb that only reads, with its arguments in the address.
async fn asked(entry: &'static Entry, call: Call) -> Result<Response> {
    let given: Vec<(String, String)> = call.query()?;
    if let Some((name, _)) = given.iter().find(|(name, _)| entry.changes_by.contains(&name.as_str())) {
        let message = format!("GET is read-only, and with `{name}` `{}` changes the store", entry.name);
        return Err(Error::new(Kind::Invalid, message).hint("send it with POST"));
    }
    // A key is harmless here, but an expected version would not be checked, so it is refused.
    let guard = Guards { key: None, ..Guards::of(&call)? };
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in given {
        values.entry(name).or_default().push(value);
    }
    let arguments: Map<String, Value> = values
        .into_iter()
        .map(|(name, values)| Ok((name.clone(), typed(&properties(entry)[&name], &name, values)?)))
        .collect::<Result<_>>()?;
    let arguments = taken(entry, Value::Object(arguments))?;
    run(entry, call, guard.added(entry, arguments)?).await
}

/// Types the values of a query under one name as the verb's schema says: a list is given by repeating the
/// name, or as JSON.
fn typed(schema: &Value, name: &str, mut values: Vec<String>) -> Result<Value> {
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |wanted: &[&str]| kinds.iter().any(|kind| wanted.contains(kind));
    let parsed = |value: &str| serde_json::from_str::<Value>(value).ok();
    let one = if values.len() == 1 { values.pop() } else { None };
    match one {
        Some(value) if is(&["array"]) => {
            Ok(parsed(&value).filter(Value::is_array).unwrap_or_else(|| vec![value].into()))
        }
        Some(value) if is(&["integer", "number", "boolean", "object"]) => {
            Ok(parsed(&value).unwrap_or(Value::String(value)))
        }
        Some(value) => Ok(Value::String(value)),
        None if is(&["array"]) => Ok(values.into()),
        None => Err(Error::new(Kind::Invalid, format!("`{}` is given several times", name.escape_default()))),
    }
}

async fn run(entry: &'static Entry, call: Call, arguments: Value) -> Result<Response> {
    let known = call.header(header::IF_NONE_MATCH.as_str());
    let is_whole = entry.effect == Effect::Read && !entry.tells_more;
    let known = known.filter(|_| is_whole).map(str::to_owned);
    let threads = if entry.searches { call.space.searchers.threads() } else { Threads::current() };
    let work = move |cx: &Context| (entry.run_json)(arguments, &cx.clone().taking(Input::None));
    let reply = call.work_by(&threads, work).await?;
    let mut body = Vec::with_capacity(BODY_BYTES);
    reply.write_json(&mut body).map_err(|error| Error::from_io(error, "the answer"))?;
    if body.len() > call.served.limits.reply_bytes_max {
        let message = format!("the answer has {} bytes, too many to send at once", body.len());
        return Err(Error::new(Kind::Full, message).hint("ask for less, or stream it from /api/content"));
    }
    let failed = reply.failed().filter(|_| !entry.reports);
    Ok(told(failed, body, known.as_deref()))
}

/// The answer of a verb, with the version of the memory as its ETag.
fn told(failed: Option<Kind>, body: Vec<u8>, known: Option<&str>) -> Response {
    let status = failed.map_or(200, status::http_status);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // Most answers have no version, which shows without parsing them.
    let may_have = str::from_utf8(&body).is_ok_and(|body| body.contains("\"version\""));
    let versioned: Versioned =
        may_have.then(|| serde_json::from_slice(&body).ok()).flatten().unwrap_or_default();
    let etag = versioned.version.as_str().map(|version| format!("\"{version}\""));
    if let (Some(etag), Some(known)) = (&etag, known)
        && names(known, etag.trim_matches('"'))
    {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, etag.clone())]).into_response();
    }
    let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    if let Some(etag) = etag.and_then(|etag| HeaderValue::try_from(etag).ok()) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    response
}

/// The versions that a header names, weak or not.
pub(super) fn tags(header: &str) -> impl Iterator<Item = &str> {
    header.split(',').map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'))
}

/// Whether a header names a version, or any with `*`.
pub(super) fn names(header: &str, version: &str) -> bool {
    header.trim() == "*" || tags(header).any(|tag| tag == version)
}

/// The part of an answer that becomes its ETag.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Versioned {
    version: Value,
}

/// What the headers of a request demand of its change.
struct Guards {
    expect: Option<String>,
    key: Option<String>,
}

impl Guards {
    fn of(call: &Call) -> Result<Self> {
        let expected: Option<Vec<&str>> =
            call.header(header::IF_MATCH.as_str()).map(|header| tags(header).collect());
        let expect = match expected.as_deref() {
            None => None,
            Some([version]) if *version != "*" => Some((*version).to_owned()),
            Some(_) => {
                let message = "If-Match must name exactly one version";
                return Err(Error::new(Kind::Invalid, message).hint("send the ETag you last read"));
            }
        };
        Ok(Guards { expect, key: call.key() })
    }

    /// Adds what the headers demand to the arguments; refused if the verb does not take it.
    fn added(self, entry: &Entry, mut arguments: Value) -> Result<Value> {
        if self.expect.is_none() && self.key.is_none() {
            return Ok(arguments);
        }
        for (name, header, value) in
            [("expect", "If-Match", self.expect), ("key", "Idempotency-Key", self.key)]
        {
            let (Some(value), Value::Object(given)) = (value, &mut arguments) else { continue };
            if !takes(entry, name) {
                let message = format!("`{}` does not take {header}", entry.name);
                return Err(Error::new(Kind::Invalid, message).hint("leave the header out"));
            }
            match given.get(name).filter(|given| !given.is_null()) {
                Some(given) if *given != value => {
                    let message = format!("{header} and `{name}` contradict each other");
                    return Err(Error::new(Kind::Invalid, message).hint("leave one of them out"));
                }
                _ => given.insert(name.to_owned(), Value::String(value)),
            };
        }
        Ok(arguments)
    }
}
