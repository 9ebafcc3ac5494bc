//! What happens to a space, as it happens: whoever changed it, this server or another process.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use memgrove::{Error, Kind, Result};
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast};

use super::route::Call;
use crate::context::Context;
use crate::verbs;

/// How soon a change of another process is noticed, while anybody listens.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// How far a listener may fall behind before it is told that it missed something.
const BEHIND_MAX: usize = 1_024;

/// One change, as the history tells it.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    /// Its name in the history.
    pub(crate) change: String,
    /// What the verb `history` says of it.
    pub(crate) data: Value,
}

/// What a listener hears.
#[derive(Debug, Clone)]
pub(crate) enum Heard {
    /// A change.
    Change(Arc<Told>),
    /// Changes were missed: look at everything again.
    Missed,
}

/// The changes of one space.
#[derive(Clone)]
pub(crate) struct Changes(Arc<Watch>);

struct Watch {
    cx: Context,
    sender: broadcast::Sender<Heard>,
    wake: Notify,
    watching: AtomicBool,
    last: Mutex<Option<String>>,
}

impl Changes {
    /// The changes of a store.
    pub(crate) fn of(cx: Context) -> Self {
        let (sender, _) = broadcast::channel(BEHIND_MAX);
        let watching = AtomicBool::new(false);
        Changes(Arc::new(Watch { cx, sender, wake: Notify::new(), watching, last: Mutex::new(None) }))
    }

    /// Looks now: something may have changed.
    pub(crate) fn look(&self) {
        self.0.wake.notify_one();
    }

    /// How many listen.
    pub(crate) fn listeners(&self) -> usize {
        self.0.sender.receiver_count()
    }

    /// Listens to what happens from now on.
    pub(crate) async fn listen(&self) -> broadcast::Receiver<Heard> {
        let receiver = self.0.sender.subscribe();
        if !self.0.watching.swap(true, Ordering::SeqCst) {
            let watch = Arc::clone(&self.0);
            // What happened before is not news.
            let newest = blocking(&watch, |watch| newest(&watch.cx)).await.unwrap_or_default();
            *watch.last() = newest;
            tokio::spawn(watching(watch));
        }
        receiver
    }
}

impl Watch {
    fn last(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks again and again while anybody listens.
async fn watching(watch: Arc<Watch>) {
    loop {
        let _ = tokio::time::timeout(LOOK_EVERY, watch.wake.notified()).await;
        if watch.sender.receiver_count() == 0 {
            watch.watching.store(false, Ordering::SeqCst);
            // Whoever came in between found it watching, so it must go on.
            if watch.sender.receiver_count() == 0 || watch.watching.swap(true, Ordering::SeqCst) {
                return;
            }
        }
        let last = watch.last().clone();
        let news = blocking(&watch, move |watch| since(&watch.cx, last.as_deref())).await;
        // A journal that cannot be read now is read next time.
        let Ok(news) = news else { continue };
        let told: Vec<Heard> = match news {
            Some(changes) => changes.into_iter().map(|told| Heard::Change(Arc::new(told))).collect(),
            None => {
                let newest = blocking(&watch, |watch| newest(&watch.cx)).await.unwrap_or_default();
                *watch.last() = newest;
                vec![Heard::Missed]
            }
        };
        for heard in told {
            if let Heard::Change(told) = &heard {
                *watch.last() = Some(told.change.clone());
            }
            let _ = watch.sender.send(heard);
        }
    }
}

async fn blocking<T: Send + 'static>(
    watch: &Arc<Watch>,
    work: impl FnOnce(&Watch) -> Result<T> + Send + 'static,
) -> Result<T> {
    let watch = Arc::clone(watch);
    let gone = |_| Error::new(Kind::Io, "the server is ending");
    tokio::task::spawn_blocking(move || work(&watch)).await.map_err(gone)?
}

fn newest(cx: &Context) -> Result<Option<String>> {
    Ok(history(cx, 1)?.pop().map(|told| told.change))
}

/// The last changes, newest first.
fn history(cx: &Context, limit: usize) -> Result<Vec<Told>> {
    let entry = verbs::TABLE.iter().find(|entry| entry.name == "history").expect("history is a verb");
    let mut answer = (entry.run_json)(json!({"limit": limit}), cx)?.json();
    let changes = match answer["changes"].take() {
        Value::Array(changes) => changes,
        _ => Vec::new(),
    };
    let told = |data: Value| Told { change: data["change"].as_str().unwrap_or_default().to_owned(), data };
    Ok(changes.into_iter().map(told).collect())
}

/// What happened since a change, oldest first; `None` if that is too long ago to tell.
pub(crate) fn since(cx: &Context, last: Option<&str>) -> Result<Option<Vec<Told>>> {
    for limit in [8, 128, BEHIND_MAX] {
        let mut changes = history(cx, limit)?;
        let whole = changes.len() < limit;
        let seen = last.and_then(|last| changes.iter().position(|told| told.change == last));
        if let Some(seen) = seen.or_else(|| (whole && last.is_none()).then_some(changes.len())) {
            changes.truncate(seen);
            changes.reverse();
            return Ok(Some(changes));
        }
    }
    Ok(None)
}

/// Server-sent events of changes: `change` with what the history tells, `missed` when the listener
/// should look at everything again. `Last-Event-ID` catches up.
pub(crate) async fn stream(call: Call) -> Result<Response> {
    if call.space.changes.listeners() >= call.served.limits.streams_max {
        return Err(Error::new(Kind::Busy, "too many listen already").hint("close a page, or wait"));
    }
    let receiver = call.space.changes.listen().await;
    let last = call.header("last-event-id").map(str::to_owned);
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
    let hello = stream::once(std::future::ready(Ok(Event::default().comment("listening"))));
    let events = hello.chain(events).take_until(until);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response())
}

impl Heard {
    fn change(&self) -> Option<&Told> {
        match self {
            Heard::Change(told) => Some(told),
            Heard::Missed => None,
        }
    }
}

fn event(heard: &Heard) -> Event {
    match heard {
        Heard::Change(told) => Event::default().event("change").id(&told.change).data(told.data.to_string()),
        Heard::Missed => Event::default().event("missed").data("{}"),
    }
}
