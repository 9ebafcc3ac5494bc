//! The past of one memory: its changes, what each did, and going back to one.

use axum::response::Response;
use maud::html;
use memgrove::address::Scheme;
use memgrove::backend::{Moment, Past, Version};
use memgrove::error::code;
use memgrove::memory::Point;
use memgrove::{Kind, Locator, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::browse::crumbs;
use super::compare::{Sides, side_by_side};
use super::edit::sent;
use super::frame::{Frame, Live, done, may_write, moment, url};
use super::in_graph::Thing;
use super::place::Which;
use super::read::file_meant;
use super::timeline::{by, verb_of};
use super::{led_to, place};
use crate::address::address_of;
use crate::context::{Context, Guard};
use crate::http::Call;
use crate::journals::Journals;
use crate::mounts::RECORDS;
use crate::verbs::past::past_of_record;

/// How many changes a page shows.
const CHANGES: usize = 50;

/// Whose past a page shows.
#[derive(Clone)]
enum Subject {
    /// That of a file.
    File(Locator),
    /// That of one record in its file, by its id.
    Record(String),
}

impl Subject {
    /// What is named by its place, or a record by its address.
    fn named(at: &str, address: &str) -> Result<Self> {
        match Scheme::Record.of(address) {
            Some(id) => Ok(Subject::Record(id.to_owned())),
            None => place::located(at).map(Subject::File),
        }
    }

    /// The query parameter that names it to pages.
    fn pair(&self) -> (&'static str, String) {
        match self {
            Subject::File(at) => ("at", at.key().to_owned()),
            Subject::Record(id) => ("address", Scheme::Record.address(id)),
        }
    }

    /// A page about it.
    fn url(&self, call: &Call, path: &str, more: &[(&str, &str)]) -> String {
        let (name, value) = self.pair();
        url(call, path, &[&[(name, value.as_str())], more].concat())
    }

    fn name(&self) -> String {
        match self {
            Subject::File(at) => at.name().to_owned(),
            Subject::Record(id) => format!("record {}", id.get(..8).unwrap_or(id)),
        }
    }

    /// The place of its file.
    fn place(&self) -> Result<Locator> {
        match self {
            Subject::File(at) => Ok(at.clone()),
            Subject::Record(_) => Locator::new(RECORDS),
        }
    }

    /// Whether it holds many memories, all of which a restore would take back at once.
    fn is_of_many(&self) -> bool {
        matches!(self, Subject::File(at) if at.key().starts_with("records/") && at.name().ends_with(".jsonl"))
    }

    /// Its changes before `before`, its version now, and where the history knows its changes.
    fn past(&self, cx: &Context, before: &str) -> Result<(Vec<Past>, Option<Version>, String)> {
        let journals = Journals::reading(cx)?;
        let before = (!before.is_empty()).then_some(before);
        match self {
            Subject::File(at) => {
                let (journal, inside) = journals.of_place(at);
                let version = journal.memory.store().info_optional(&inside)?.and_then(|info| info.version);
                Ok((journals.history(Some(at), before, CHANGES, true)?, version, address_of(cx, at)))
            }
            Subject::Record(id) => {
                let (mut past, _) = past_of_record(cx, &journals, id, before, CHANGES)?;
                past.truncate(CHANGES);
                let version = match cx.reading_records()?.view(id) {
                    Err(error) if error.kind() == Kind::NotFound => None,
                    got => Some(got?.version),
                };
                Ok((past, version, self.pair().1))
            }
        }
    }

    /// Its state before and after a change, or after it and now.
    fn sides(&self, cx: &Context, change: &str, now: bool) -> Result<(Side, Side, Option<Past>)> {
        let journals = Journals::reading(cx)?;
        let past = match self {
            Subject::File(at) => journals.history(Some(at), None, 0, true)?,
            Subject::Record(id) => past_of_record(cx, &journals, id, None, 0)?.0,
        };
        let past = past.into_iter().find(|past| past.change.as_str() == change);
        let (journal, change) = journals.of_change(change);
        let (_, inside) = journals.of_place(&self.place()?);
        let then = |moment| {
            Side::then(match self {
                Subject::File(_) => journal.memory.read_past(&inside, &Point::Moment(moment)),
                Subject::Record(id) => {
                    let line = cx.reading_records()?.read_past(id, &Point::Moment(moment));
                    line.map(|line| line.map(|line| told(&line).into_bytes()))
                }
            })
        };
        let present = || match self {
            Subject::File(_) => {
                let content = journal.memory.store().read_optional(&inside)?;
                Ok(Side::of(content.map(|content| content.bytes)))
            }
            Subject::Record(id) => match cx.reading_records()?.view(id) {
                Err(error) if error.kind() == Kind::NotFound => Ok(Side::of(None)),
                got => got.map(|got| Side::Text(told(&got.text))),
            },
        };
        let after = then(Moment::After(change.clone()))?;
        let (old, new) = match now {
            true => (after, present()?),
            false => (then(Moment::Before(change))?, after),
        };
        Ok((old, new, past))
    }
}

/// The line of a record as people read it: what it says, and then what else is known.
fn told(line: &str) -> String {
    let Ok(mut record) = serde_json::from_str::<Map<String, Value>>(line) else { return line.to_owned() };
    let said = match record.remove("content") {
        Some(Value::String(text)) => text,
        other => other.map(|other| other.to_string()).unwrap_or_default(),
    };
    let known = record.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}: {text}\n"),
        value => format!("{name}: {value}\n"),
    });
    format!("{}\n\n{}", said.trim_end(), known.collect::<String>())
}

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    before: String,
    #[serde(default)]
    done: String,
    /// Whether what was to be restored had changed.
    #[serde(default)]
    changed: String,
}

/// The changes of one memory.
pub(super) async fn history(call: Call) -> Result<Response> {
    let Asked { before, done: said, changed } = call.query()?;
    let which: Which = call.query()?;
    let subject = match Scheme::Record.of(&which.address) {
        Some(id) => Subject::Record(id.to_owned()),
        None => match file_meant(&call, "").await? {
            Ok(at) => Subject::File(at),
            Err(elsewhere) => return Ok(elsewhere),
        },
    };
    let of = subject.clone();
    let (past, version, address) = call.work(move |cx| of.past(cx, &before)).await?;
    let (name, value) = subject.pair();
    let older = past.last().filter(|_| past.len() == CHANGES).map(|past| past.change.as_str());
    let version = version.as_ref().map_or("", Version::as_str);
    let title = format!("History of {}", subject.name());
    let body = html! {
        (done(&said))
        @if !changed.is_empty() {
            p.warning role="status" { "It was changed since you looked, so nothing was restored. This is its history now." }
        }
        (crumbs(&call, &subject.place()?))
        div.heading {
            h1 { (title) }
            p.actions { a.button href=(subject.url(&call, "/read", &[])) data-key="Escape" { "Back" } }
        }
        @if past.is_empty() { p.empty { "It has no history: it was written outside memgrove." } }
        @else if subject.is_of_many() && may_write(&call) {
            p.warning {
                "This file holds many records: Restore takes back every later change of all of them, and every later record. One record alone goes back on its own page."
            }
        }
        ol.changes {
            @for (index, change) in past.iter().enumerate() {
                li data-item=(change.change.as_str()) {
                    div.what {
                        a href=(subject.url(&call, "/diff", &[("change", change.change.as_str())])) {
                            (verb_of(change))
                        }
                        " by " (by(change)) " "
                        @if let Some(reason) = &change.note.reason { q { (reason) } }
                    }
                    div.facts { (moment(change.time)) span { "change " (change.change.as_str()) } }
                    @if index > 0 && may_write(&call) {
                        form method="post" action=(url(&call, "/restore", &[])) {
                            input type="hidden" name=(name) value=(value);
                            input type="hidden" name="to" value=(change.change.as_str());
                            input type="hidden" name="version" value=(version);
                            button aria-label=(format!("Restore to change {}", change.change.as_str())) {
                                "Restore"
                            }
                        }
                    }
                }
            }
        }
        @if let Some(older) = older {
            p { a href=(subject.url(&call, "/history", &[("before", older)])) { "Older changes" } }
        }
    };
    let frame = Frame { title: &title, tab: "/timeline", live: Live::Of(address), ..Frame::default() };
    Ok(frame.around(&call, &body))
}

#[derive(Deserialize)]
struct Compared {
    #[serde(default)]
    at: String,
    #[serde(default)]
    address: String,
    change: String,
    /// Whether to compare with what is there now, rather than with what was there before.
    #[serde(default)]
    now: String,
}

/// What a change did to one memory.
pub(super) async fn diff(call: Call) -> Result<Response> {
    let Compared { at, address, change, now } = call.query()?;
    let subject = Subject::named(&at, &address)?;
    let (of, id, is_now) = (subject.clone(), change.clone(), !now.is_empty());
    let (old, new, past) = call.work(move |cx| of.sides(cx, &id, is_now)).await?;
    let query = [("change", change.as_str()), ("now", "yes")];
    let names = match is_now {
        true => Sides { left: "After that change", right: "Now" },
        false => Sides { left: "Before", right: "After" },
    };
    let place = subject.place()?;
    let edits = past.iter().flat_map(|past| &past.edits);
    let moved = edits
        .filter(|edit| edit.at == place || edit.to.as_ref() == Some(&place))
        .find_map(|edit| Some((&edit.at, edit.to.as_ref()?)));
    let title = format!("Change {change} of {}", subject.name());
    let body = html! {
        (crumbs(&call, &subject.place()?))
        div.heading {
            h1 { (title) }
            p.actions {
                @if is_now { a.button href=(subject.url(&call, "/diff", &query[..1])) { "What it changed" } }
                @else { a.button href=(subject.url(&call, "/diff", &query)) { "Compare with now" } }
                a.button href=(subject.url(&call, "/history", &[])) data-key="Escape" { "History" }
            }
        }
        @if let Some(past) = &past {
            p.facts {
                span { (verb_of(past)) " by " (by(past)) } (moment(past.time)) @if let Some(reason) = &past.note.reason {
                    q { (reason) }
                }
            }
        }
        @if let Some((from, to)) = moved { p { "Moved from " code { (from) } " to " code { (to) } "." } }
        @match (&old, &new) {
            (Side::Text(old), Side::Text(new)) if old == new && moved.is_some() => {},
            (Side::Text(old), Side::Text(new)) => (side_by_side(old, new, &names)),
            (Side::Redacted, Side::Text(text)) | (Side::Text(text), Side::Redacted) => {
                p.warning { "One side was removed from the history for good. The other:" }
                pre { (text) }
            },
            (Side::Redacted, _) | (_, Side::Redacted) => {
                p.warning { "What was there was removed from the history for good." }
            },
            _ => p.empty { "Bytes that are not text cannot be shown side by side." },
        }
    };
    let frame = Frame { title: &title, tab: "/timeline", ..Frame::default() };
    Ok(frame.around(&call, &body))
}

enum Side {
    Text(String),
    Bytes,
    Redacted,
}

impl Side {
    fn of(bytes: Option<Vec<u8>>) -> Self {
        String::from_utf8(bytes.unwrap_or_default()).map_or(Side::Bytes, Side::Text)
    }

    fn then(read: Result<Option<Vec<u8>>>) -> Result<Self> {
        match read {
            Err(error) if error.code_name() == Some(code::REDACTED) => Ok(Side::Redacted),
            bytes => Ok(Side::of(bytes?)),
        }
    }
}

#[derive(Deserialize)]
struct Wanted {
    #[serde(default)]
    at: String,
    #[serde(default)]
    address: String,
    to: String,
    #[serde(default)]
    version: String,
}

/// Makes a memory what it was after a change.
pub(super) async fn restore(call: Call) -> Result<Response> {
    let Wanted { at, address, to, version } = sent(&call).await?;
    let subject = Subject::named(&at, &address)?;
    // A deleted memory has no version to check.
    let seen = Some(version).filter(|version| !version.is_empty());
    let said = match restored(&call, subject.clone(), to, seen).await {
        Ok(()) => ("done", "restored"),
        Err(error) if error.kind() == Kind::Conflict => ("changed", "yes"),
        Err(error) => return Err(error),
    };
    led_to(&subject.url(&call, "/history", &[said]))
}

async fn restored(call: &Call, subject: Subject, to: String, seen: Option<String>) -> Result<()> {
    let at = match subject {
        Subject::Record(_) => {
            let address = subject.pair().1;
            return call
                .verb("restore", json!({"address": address, "to": to, "expect": seen}))
                .await
                .map(drop);
        }
        Subject::File(at) => at,
    };
    call.work(move |cx| {
        let expect = seen.map(Version::new);
        if let Some(thing) = Thing::named(&at) {
            return thing.restore(cx, &to, expect);
        }
        let note = cx.note("restore", &Guard::default());
        let journals = Journals::writing(cx)?;
        let ((journal, change), (_, inside)) = (journals.of_change(&to), journals.of_place(&at));
        let point = Point::Moment(Moment::After(change));
        journal.restore(note, &inside, &point, expect.as_ref())?;
        cx.touched([&at])
    })
    .await
}
