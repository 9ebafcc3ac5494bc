//! What happened to the store, by whom and when, with a way to take it back.

use std::collections::HashSet;

use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use memgrove::backend::{ChangeId, OUTSIDE, Op, Origin, Past, PastEdit};
use memgrove::memory::undone;
use memgrove::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::json;

use super::browse::shape_of;
use super::edit::sent;
use super::frame::{Frame, Live, at_base, base, done, may_write, moment, said_of, url};
use super::led_to;
use crate::address::is_memory;
use crate::http::Call;
use crate::journals::Journals;
use crate::verbs::Verb;
use crate::verbs::undo::Undo;

/// How many changes a page shows.
const CHANGES: usize = 60;
/// How many edits of one change are told.
const EDITS_MAX: usize = 5;

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    before: String,
    #[serde(default)]
    done: String,
}

/// The page.
pub(super) async fn page(call: Call) -> Result<Response> {
    let Asked { before, done: said } = call.query()?;
    let changes = changes(&call, before, CHANGES).await?;
    let past = &changes.past;
    let older = past.last().filter(|_| past.len() == CHANGES).map(|past| past.change.as_str());
    let body = html! {
        (done(&said))
        h1 { "Timeline" }
        @if past.is_empty() { p.empty { "Nothing has happened yet." } }
        (rows(&call, &changes))
        @if let Some(older) = older {
            p { a href=(url(&call, "/timeline", &[("before", older)])) { "Older changes" } }
        }
    };
    let frame = Frame { title: "Timeline", tab: "/timeline", live: Live::Anew, ..Frame::default() };
    Ok(frame.around(&call, &body))
}

/// Changes, newest first, and which of them are undone.
pub(super) struct Changes {
    pub(super) past: Vec<Past>,
    undone: HashSet<ChangeId>,
}

/// The last changes before one, also those of records that are mounted.
///
/// # Errors
/// As reading the history.
pub(super) async fn changes(call: &Call, before: String, limit: usize) -> Result<Changes> {
    call.work(move |cx| {
        let journals = Journals::reading(cx)?;
        let before = (!before.is_empty()).then_some(before.as_str());
        let past = journals.history(None, before, limit, true)?;
        let undone = match before {
            None => undone(&past),
            // What undid them may have come after.
            Some(_) => undone(&journals.history(None, None, 0, true)?),
        };
        Ok(Changes { past, undone })
    })
    .await
}

/// Changes, under the days on which they happened.
pub(super) fn rows(call: &Call, Changes { past, undone }: &Changes) -> Markup {
    let base = base(call);
    let day = |past: &Past| past.time.to_string().get(..10).unwrap_or_default().to_owned();
    html! {
        @for changes in past.chunk_by(|a, b| day(a) == day(b)) {
            h3.day { (day(&changes[0])) }
            ol.changes {
                @for change in changes { (row(call, &base, change, undone.contains(&change.change))) }
            }
        }
    }
}

fn row(call: &Call, base: &str, change: &Past, is_undone: bool) -> Markup {
    let more = change.edits.len().saturating_sub(EDITS_MAX);
    // What only brings an index up to date is nothing that anyone did.
    let is_upkeep = change.edits.iter().all(|edit| !is_memory(&edit.at));
    html! {
        li.upkeep[is_upkeep] data-item=(change.change.as_str()) {
            div.what {
                strong { (verb_of(change)) } " by " (by(change)) " "
                @if let Some(reason) = &change.note.reason { q { (reason) } }
            }
            ul.edits {
                @for edit in change.edits.iter().take(EDITS_MAX) { li { (edited(base, change, edit)) } }
                @if more > 0 { li.dim { "and " (more) " more" } }
            }
            div.facts {
                (moment(change.time))
                span { "change " (change.change.as_str()) }
                @if let Some(session) = &change.note.actor.session {
                    span.session title=(session) { "session " (session.chars().take(8).collect::<String>()) }
                }
            }
            @if is_undone { p.dim.undone { "undone" } }
            @else if may_write(call) && !is_upkeep && change.note.verb != OUTSIDE { (take_back(base, change)) }
        }
    }
}

/// The button that undoes a change. What an undo took away comes back by undoing it.
fn take_back(base: &str, change: &Past) -> Markup {
    let (does, done) = if change.note.verb == Undo::NAME { ("Redo", "redone") } else { ("Undo", "undone") };
    html! {
        form method="post" action=(at_base(base, "/undo", &[])) {
            input type="hidden" name="change" value=(change.change.as_str());
            input type="hidden" name="done" value=(done);
            button aria-label=(format!("{does} change {}", change.change.as_str())) { (does) }
        }
    }
}

fn edited(base: &str, change: &Past, edit: &PastEdit) -> Markup {
    let did = match edit.op {
        Op::Write => "wrote",
        Op::Append => "added to",
        Op::Delete => "deleted",
        Op::Rename => "moved",
    };
    let key = edit.at.key();
    let to = at_base(base, "/diff", &[("at", key), ("change", change.change.as_str())]);
    html! {
        span.dim { (did) " " }
        @if shape_of(&edit.at).is_some() { a href=(to) { (key) } } @else { (key) }
        @if let Some(to) = &edit.to { span.dim { " to " } (to) }
    }
}

/// What was done, as people say it.
pub(super) fn verb_of(change: &Past) -> String {
    match change.note.verb.as_str() {
        "" => "changed".to_owned(),
        verb => verb.replace('_', " "),
    }
}

/// Who did it.
pub(super) fn by(change: &Past) -> Markup {
    let actor = &change.note.actor;
    let (class, origin) = match actor.origin {
        Origin::User => ("user", "you"),
        Origin::Agent => ("agent", "agent"),
        Origin::Tool => ("tool", "tool"),
        Origin::Import => ("import", "import"),
        Origin::FileEdit => ("edit", "an editor"),
    };
    // Whoever looks at this page has written through it.
    let client = actor.client.as_deref().filter(|client| *client != "web");
    html! {
        span.who data-origin=(class) { (origin) @if let Some(client) = client { " " (client) } }
    }
}

#[derive(Deserialize)]
struct Wanted {
    change: String,
    /// What the timeline says then.
    #[serde(default)]
    done: String,
}

/// Takes a change back.
pub(super) async fn undo(call: Call) -> Result<Response> {
    let Wanted { change, done } = sent(&call).await?;
    let said = if done == "redone" { "redone" } else { "undone" };
    match call.verb("undo", json!({"change": change})).await {
        Err(error) if error.kind() == Kind::Conflict => overwritten(&call, change, &error).await,
        done => done.and_then(|_| led_to(&url(&call, "/timeline", &[("done", said)]))),
    }
}

/// What was changed since cannot be taken back as a whole: the history of each place shows the way.
async fn overwritten(call: &Call, change: String, error: &Error) -> Result<Response> {
    let edits = call.work(move |cx| {
        let all = Journals::reading(cx)?.history(None, None, 0, true)?;
        Ok(all
            .into_iter()
            .find(|past| past.change.as_str() == change)
            .map(|past| past.edits)
            .unwrap_or_default())
    });
    let edits = edits.await?;
    let body = html! {
        div.error {
            (said_of(error))
            @for edit in edits.iter().filter(|edit| is_memory(&edit.at)).take(EDITS_MAX) {
                p { a href=(url(call, "/history", &[("at", edit.at.key())])) { "History of " (edit.at) } }
            }
        }
    };
    let frame = Frame { title: "That did not work", tab: "/timeline", ..Frame::default() };
    Ok((crate::http::status(error), frame.around(call, &body)).into_response())
}
