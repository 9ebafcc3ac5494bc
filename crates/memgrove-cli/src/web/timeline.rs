//! What happened to the store, by whom and when, with a way to take it back.

use std::collections::HashSet;

use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use memgrove::backend::{ChangeId, OUTSIDE, Op, Origin, Past, PastEdit};
use memgrove::memory::undone;
use memgrove::{Error, Kind, Locator, Result};
use serde::Deserialize;
use serde_json::json;

use super::browse::shape_of;
use super::edit::sent;
use super::frame::{Frame, Live, at_base, base, done, may_write, moment, said_of, url};
use super::led_to;
use crate::address::{address_of, is_memory};
use crate::context::Context;
use crate::deeds::Teller;
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

/// Changes, newest first, what each of them did, and which of them are undone.
pub(super) struct Changes {
    pub(super) past: Vec<Past>,
    did: Vec<Did>,
    undone: HashSet<ChangeId>,
}

/// What one change did.
struct Did {
    edits: Vec<Edited>,
    /// How many more edits there are.
    more: usize,
}

/// What one edit did to one memory, or to a file where that cannot be told.
struct Edited {
    op: Op,
    at: Locator,
    to: Option<Locator>,
    /// The address of the memory, if it is not all of its file.
    memory: Option<String>,
    words: Option<String>,
}

impl Did {
    /// What else follows from a change is left out, unless it is all of it.
    fn told(cx: &Context, teller: &mut Teller<'_>, change: &Past) -> Self {
        let all_aside = change.edits.iter().all(|edit| !is_memory(&edit.at));
        let of_memories: Vec<&PastEdit> =
            change.edits.iter().filter(|edit| all_aside || is_memory(&edit.at)).collect();
        let mut edits = Vec::new();
        for edit in of_memories.iter().take(EDITS_MAX) {
            let file = address_of(cx, &edit.at);
            edits.extend(teller.deeds(change, edit).into_iter().map(|deed| Edited {
                op: deed.op,
                at: edit.at.clone(),
                to: edit.to.clone(),
                memory: Some(deed.address).filter(|address| *address != file),
                words: deed.words,
            }));
        }
        // A node and what it holds are two files.
        edits.dedup_by(|next, edit| {
            next.memory.is_some() && (next.op, &next.memory) == (edit.op, &edit.memory)
        });
        let more = of_memories.len().saturating_sub(EDITS_MAX) + edits.len().saturating_sub(EDITS_MAX);
        edits.truncate(EDITS_MAX);
        Did { edits, more }
    }
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
            // The changes that undid them may be newer than those listed.
            Some(_) => undone(&journals.history(None, None, 0, true)?),
        };
        let mut teller = Teller::new(cx, &journals);
        let did = past.iter().map(|change| Did::told(cx, &mut teller, change)).collect();
        Ok(Changes { past, did, undone })
    })
    .await
}

/// Changes, under the days on which they happened.
pub(super) fn rows(call: &Call, Changes { past, did, undone }: &Changes) -> Markup {
    let base = base(call);
    let day = |past: &Past| past.time.to_string().get(..10).unwrap_or_default().to_owned();
    let changes: Vec<(&Past, &Did)> = past.iter().zip(did).collect();
    html! {
        @for changes in changes.chunk_by(|(a, _), (b, _)| day(a) == day(b)) {
            h3.day { (day(changes[0].0)) }
            ol.changes {
                @for (change, did) in changes {
                    (row(call, &base, change, did, undone.contains(&change.change)))
                }
            }
        }
    }
}

fn row(call: &Call, base: &str, change: &Past, did: &Did, is_undone: bool) -> Markup {
    // A change that only updates an index is nobody's doing.
    let is_upkeep = change.edits.iter().all(|edit| !is_memory(&edit.at));
    html! {
        li.upkeep[is_upkeep] data-item=(change.change.as_str()) {
            div.what {
                strong { (verb_of(change)) } " by " (by(change)) " "
                @if let Some(reason) = &change.note.reason { q { (reason) } }
            }
            ul.edits {
                @for edit in &did.edits { li { (edited(base, change, edit)) } }
                @if did.more > 0 { li.dim { "and " (did.more) " more" } }
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

/// The button that undoes a change. Undoing an undo redoes what that took back.
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

fn edited(base: &str, change: &Past, edit: &Edited) -> Markup {
    let did = match (edit.op, &edit.memory) {
        (Op::Write, _) => "wrote",
        (Op::Append, Some(_)) => "added",
        (Op::Append, None) => "added to",
        (Op::Delete, _) => "deleted",
        (Op::Rename, _) => "moved",
    };
    let key = edit.at.key();
    let to = at_base(base, "/diff", &[("at", key), ("change", change.change.as_str())]);
    let name = edit.memory.as_deref().unwrap_or(key);
    let shown = edit.words.as_deref().unwrap_or(name);
    html! {
        span.dim { (did) " " }
        @if shape_of(&edit.at).is_some() { a href=(to) dir="auto" { (shown) } } @else { (shown) }
        @if let Some(to) = &edit.to { span.dim { " to " } (to) }
        @if edit.words.is_some() { " " span.dim { (name) } }
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
    // The name `web` would say nothing here, because this page is where it comes from.
    let client = actor.client.as_deref().filter(|client| *client != "web");
    html! {
        span.who data-origin=(class) { (origin) @if let Some(client) = client { " " (client) } }
    }
}

#[derive(Deserialize)]
struct Wanted {
    change: String,
    /// The message that the timeline shows afterwards.
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

/// Explains that a change cannot be undone whole, because what it touched has changed since.
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
