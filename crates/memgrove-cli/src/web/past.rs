//! The past of one memory: its changes, what each did, and going back to one.

use axum::response::Response;
use maud::html;
use memgrove::backend::{Moment, Past, Version};
use memgrove::error::code;
use memgrove::memory::Point;
use memgrove::{Locator, Result};
use serde::Deserialize;
use serde_json::json;

use super::browse::crumbs;
use super::compare::{Sides, side_by_side};
use super::edit::sent;
use super::frame::{Frame, Live, done, may_write, moment, url};
use super::read::file_meant;
use super::timeline::{by, verb_of};
use super::{led_to, place};
use crate::address::address_of;
use crate::context::{Context, Guard};
use crate::http::Call;
use crate::journals::Journals;

/// How many changes a page shows.
const CHANGES: usize = 50;

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    before: String,
    #[serde(default)]
    done: String,
}

/// The changes of one memory.
pub(super) async fn history(call: Call) -> Result<Response> {
    let Asked { before, done: said } = call.query()?;
    let at = match file_meant(&call, "").await? {
        Ok(at) => at,
        Err(elsewhere) => return Ok(elsewhere),
    };
    let there = at.clone();
    let (past, version, address) = call
        .work(move |cx| {
            let journals = Journals::reading(cx)?;
            let (journal, inside) = journals.of_place(&there);
            let version = journal.memory.store().info_optional(&inside)?.and_then(|info| info.version);
            let before = (!before.is_empty()).then_some(before.as_str());
            Ok((journals.history(Some(&there), before, CHANGES, true)?, version, address_of(cx, &there)))
        })
        .await?;
    let key = at.key();
    let older = past.last().filter(|_| past.len() == CHANGES).map(|past| past.change.as_str());
    let version = version.as_ref().map_or("", Version::as_str);
    let body = html! {
        (done(&said))
        (crumbs(&call, &at))
        div.heading {
            h1 { "History of " (at.name()) }
            p.actions { a.button href=(url(&call, "/read", &[("at", key)])) data-key="Escape" { "Back" } }
        }
        @if past.is_empty() { p.empty { "Nothing is known of its past: it was written past memgrove." } }
        ol.changes {
            @for (index, change) in past.iter().enumerate() {
                li data-item="" {
                    div.what {
                        a href=(url(&call, "/diff", &[("at", key), ("change", change.change.as_str())])) {
                            (verb_of(change))
                        }
                        " by " (by(change)) " "
                        @if let Some(reason) = &change.note.reason { q { (reason) } }
                    }
                    div.facts { (moment(change.time)) span { "change " (change.change.as_str()) } }
                    @if index > 0 && may_write(&call) {
                        form method="post" action=(url(&call, "/restore", &[])) {
                            input type="hidden" name="at" value=(key);
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
            p { a href=(url(&call, "/history", &[("at", key), ("before", older)])) { "Older changes" } }
        }
    };
    let title = format!("History of {}", at.name());
    let frame = Frame { title: &title, tab: "/timeline", live: Live::Of(address), ..Frame::default() };
    Ok(frame.around(&call, &body))
}

#[derive(Deserialize)]
struct Compared {
    at: String,
    change: String,
    /// Against what is there now, rather than what was there before.
    #[serde(default)]
    now: String,
}

/// What a change did to one memory.
pub(super) async fn diff(call: Call) -> Result<Response> {
    let Compared { at, change, now } = call.query()?;
    let at = place::located(&at)?;
    let (there, id, is_now) = (at.clone(), change.clone(), !now.is_empty());
    let (old, new, past) = call.work(move |cx| sides(cx, &there, &id, is_now)).await?;
    let key = at.key();
    let query = [("at", key), ("change", change.as_str()), ("now", "yes")];
    let names = match is_now {
        true => Sides { left: "After that change", right: "Now" },
        false => Sides { left: "Before", right: "After" },
    };
    let body = html! {
        (crumbs(&call, &at))
        div.heading {
            h1 { "Change " (change) " of " (at.name()) }
            p.actions {
                @if is_now { a.button href=(url(&call, "/diff", &query[..2])) { "What it changed" } }
                @else { a.button href=(url(&call, "/diff", &query)) { "Compare with now" } }
                a.button href=(url(&call, "/history", &[("at", key)])) data-key="Escape" { "History" }
            }
        }
        @if let Some(past) = &past {
            p.facts {
                span { (verb_of(past)) " by " (by(past)) } (moment(past.time)) @if let Some(reason) = &past.note.reason {
                    q { (reason) }
                }
            }
        }
        @match (&old, &new) {
            (Side::Text(old), Side::Text(new)) => (side_by_side(old, new, &names)),
            (Side::Redacted, Side::Text(text)) | (Side::Text(text), Side::Redacted) => {
                p.warning { "One side was taken out of the history for good. The other:" }
                pre { (text) }
            },
            (Side::Redacted, _) | (_, Side::Redacted) => {
                p.warning { "What was there was taken out of the history for good." }
            },
            _ => p.empty { "Bytes that are not text cannot be shown side by side." },
        }
    };
    let title = format!("Change {change} of {}", at.name());
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

fn sides(cx: &Context, at: &Locator, change: &str, now: bool) -> Result<(Side, Side, Option<Past>)> {
    let journals = Journals::reading(cx)?;
    let past = journals.history(Some(at), None, 0, true)?;
    let past = past.into_iter().find(|past| past.change.as_str() == change);
    let ((journal, id), (_, at)) = (journals.of_change(change), journals.of_place(at));
    let memory = &journal.memory;
    let after = Side::then(memory.read_past(&at, &Point::Moment(Moment::After(id.clone()))))?;
    let (old, new) = match now {
        true => (after, Side::of(memory.store().read_optional(&at)?.map(|content| content.bytes))),
        false => (Side::then(memory.read_past(&at, &Point::Moment(Moment::Before(id))))?, after),
    };
    Ok((old, new, past))
}

#[derive(Deserialize)]
struct Wanted {
    at: String,
    to: String,
    #[serde(default)]
    version: String,
}

/// Makes a memory what it was after a change.
pub(super) async fn restore(call: Call) -> Result<Response> {
    let Wanted { at, to, version } = sent(&call).await?;
    let at = place::located(&at)?;
    if let Some(thing) = place::in_graph(&at) {
        let (address, there) = (thing.clone(), at.clone());
        // What is gone has no version to be checked.
        let seen = match version.is_empty() {
            true => None,
            false => call.work(move |cx| place::seen_in_graph(cx, &address, &there, &version)).await?,
        };
        call.verb("restore", json!({"address": thing, "to": to, "expect": seen})).await?;
    } else {
        let there = at.clone();
        call.work(move |cx| {
            let expect = (!version.is_empty()).then(|| Version::new(version));
            let note = cx.note("restore", &Guard::default());
            let journals = Journals::writing(cx)?;
            let ((journal, change), (_, inside)) = (journals.of_change(&to), journals.of_place(&there));
            let point = Point::Moment(Moment::After(change));
            journal.restore(note, &inside, &point, expect.as_ref())?;
            cx.touched([&there])
        })
        .await?;
    }
    led_to(&url(&call, "/history", &[("at", at.key()), ("done", "restored")]))
}
