//! Server-sent events of changes.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use memgrove::{Error, Kind, Result};
use serde::Deserialize;
use tokio::sync::broadcast;

use super::route::Call;
use crate::changes::{Heard, newest, since};

#[derive(Deserialize)]
struct Since {
    /// As `Last-Event-ID`, for whoever cannot send headers.
    since: Option<String>,
}

/// Server-sent events of changes: first `listening` with the id of the newest, then `change` with what
/// the history tells (or, without an id, what was edited by hand), `missed` when the listener should
/// look at everything again. `Last-Event-ID` or `?since=ID` catches up.
pub(crate) async fn stream(call: Call) -> Result<Response> {
    if call.space.changes.listeners() >= call.served.limits.streams_max {
        return Err(Error::new(Kind::Busy, "too many clients are listening").hint("close a page, or wait"));
    }
    let Since { since: last } = call.query()?;
    let last = call.header("last-event-id").map(str::to_owned).or(last).filter(|last| !last.is_empty());
    // It is sent back as the id of an event, which must be one line.
    if last.as_deref().is_some_and(|last| last.contains(char::is_control)) {
        return Err(Error::new(Kind::Invalid, "`since` is not a change").hint("give the id of an event"));
    }
    let receiver = call.space.changes.listen().await;
    let hello = match &last {
        Some(last) => Some(last.clone()),
        None => call.work(newest).await.unwrap_or_default(),
    };
    let caught_up = match last {
        Some(last) => {
            call.work(move |cx| since(cx, Some(&last))).await?.map_or(vec![Heard::Missed], |told| {
                told.into_iter().map(|told| Heard::Change(Arc::new(told))).collect()
            })
        }
        None => Vec::new(),
    };
    let seen: HashSet<String> =
        caught_up.iter().filter_map(Heard::change).map(|told| told.change.clone()).collect();
    let live = stream::unfold(receiver, |mut receiver| async move {
        match receiver.recv().await {
            Ok(heard) => Some((heard, receiver)),
            Err(broadcast::error::RecvError::Lagged(_)) => Some((Heard::Missed, receiver)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    });
    let live = live.filter(move |heard| {
        std::future::ready(!heard.change().is_some_and(|told| seen.contains(&told.change)))
    });
    let until = call.served.ending.clone().cancelled_owned();
    let events = stream::iter(caught_up).chain(live).map(|heard| Ok::<_, Infallible>(event(&heard)));
    let hello = Event::default().event("listening").id(hello.unwrap_or_default()).data("{}");
    let hello = stream::once(std::future::ready(Ok(hello)));
    let events = hello.chain(events).take_until(until);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response())
}

fn event(heard: &Heard) -> Event {
    match heard {
        Heard::Change(told) => Event::default().event("change").id(&told.change).data(told.data.to_string()),
        Heard::Outside(edits) => Event::default().event("change").data(edits.to_string()),
        Heard::Missed => Event::default().event("missed").data("{}"),
    }
}
