//! What happens to a store, as it happens: changed by this process, another, or a person in an editor.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use memgrove::{Error, Kind, Result};
use serde_json::Value;
use tokio::sync::{Notify, broadcast, watch};

use crate::context::Context;
use crate::journals::Journals;
use crate::outside::Outside;
use crate::verbs::past::{PastChange, told_all};

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

impl Told {
    fn of(change: &PastChange) -> Self {
        let data = serde_json::to_value(change).expect("a change is plain data");
        Told { change: data["change"].as_str().unwrap_or_default().to_owned(), data }
    }
}

/// What a listener hears.
#[derive(Debug, Clone)]
pub(crate) enum Heard {
    /// A change.
    Change(Arc<Told>),
    /// Files were edited by hand: told like a change, but the history does not have it.
    Outside(Arc<Value>),
    /// Changes were missed: look at everything again.
    Missed,
}

/// The changes of one store.
#[derive(Clone)]
pub(crate) struct Changes(Arc<Watch>);

struct Watch {
    cx: Context,
    sender: broadcast::Sender<Heard>,
    wake: Notify,
    watching: AtomicBool,
    /// Whether the newest change is known, so that any later one is news.
    begun: watch::Sender<bool>,
    last: Mutex<Option<String>>,
}

impl Changes {
    /// The changes of a store.
    pub(crate) fn of(cx: Context) -> Self {
        let (sender, _) = broadcast::channel(BEHIND_MAX);
        let (watching, begun) = (AtomicBool::new(false), watch::Sender::new(false));
        Changes(Arc::new(Watch { cx, sender, wake: Notify::new(), watching, begun, last: Mutex::new(None) }))
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
            // A separate task, because the first listener may leave before it has begun.
            tokio::spawn(begin(Arc::clone(&self.0)));
        }
        // The channel closes only when the program ends.
        let _ = self.0.begun.subscribe().wait_for(|begun| *begun).await;
        receiver
    }
}

impl Watch {
    fn last(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes the newest change, because what happened before it is not news, and watches from then on.
async fn begin(watch: Arc<Watch>) {
    let newest = blocking(&watch, |watch| newest(&watch.cx)).await.unwrap_or_default();
    *watch.last() = newest;
    let outside = blocking(&watch, |watch| Outside::of(&watch.cx)).await.unwrap_or_default();
    watch.begun.send_replace(true);
    watching(watch, outside).await;
}

/// Looks again and again while anybody listens.
async fn watching(watch: Arc<Watch>, mut outside: Option<Outside>) {
    loop {
        let _ = tokio::time::timeout(LOOK_EVERY, watch.wake.notified()).await;
        if watch.sender.receiver_count() == 0 {
            watch.begun.send_replace(false);
            watch.watching.store(false, Ordering::SeqCst);
            // Whoever came in between found the watch running, so it must go on.
            if watch.sender.receiver_count() == 0 || watch.watching.swap(true, Ordering::SeqCst) {
                return;
            }
            watch.begun.send_replace(true);
        }
        let last = watch.last().clone();
        let news = blocking(&watch, move |watch| since(&watch.cx, last.as_deref())).await;
        // A journal that cannot be read now is read in the next round.
        let Ok(news) = news else { continue };
        let told: Vec<Heard> = match news {
            Some(changes) => changes.into_iter().map(|told| Heard::Change(Arc::new(told))).collect(),
            None => {
                let newest = blocking(&watch, |watch| newest(&watch.cx)).await.unwrap_or_default();
                *watch.last() = newest;
                vec![Heard::Missed]
            }
        };
        let by_hand = match outside.take() {
            Some(mut known) => {
                let looked = blocking(&watch, move |watch| {
                    let edits = known.look(&watch.cx);
                    Ok((known, edits))
                });
                looked.await.ok().and_then(|(known, edits)| {
                    outside = Some(known);
                    // Files that cannot be listed now are listed in the next round.
                    edits.unwrap_or_default()
                })
            }
            None => None,
        };
        for heard in told.into_iter().chain(by_hand.map(|edits| Heard::Outside(Arc::new(edits)))) {
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

/// The newest change.
pub(crate) fn newest(cx: &Context) -> Result<Option<String>> {
    let mut past = Journals::reading(cx)?.history(None, None, 1, true)?;
    Ok(past.pop().map(|past| past.change.as_str().to_owned()))
}

/// What happened since a change, oldest first; `None` if that is too long ago to tell.
pub(crate) fn since(cx: &Context, last: Option<&str>) -> Result<Option<Vec<Told>>> {
    let journals = Journals::reading(cx)?;
    for limit in [8, 128, BEHIND_MAX] {
        let mut past = journals.history(None, None, limit, true)?;
        let whole = past.len() < limit;
        let seen = last.and_then(|last| past.iter().position(|past| past.change.as_str() == last));
        if let Some(seen) = seen.or_else(|| (whole && last.is_none()).then_some(past.len())) {
            // Only new changes are resolved to the memories that they touched, because this is asked often.
            past.truncate(seen);
            past.reverse();
            return Ok(Some(told_all(cx, &journals, past).iter().map(Told::of).collect()));
        }
    }
    Ok(None)
}

impl Heard {
    /// The change, if it is one of the history.
    pub(crate) fn change(&self) -> Option<&Told> {
        match self {
            Heard::Change(told) => Some(told),
            Heard::Outside(_) | Heard::Missed => None,
        }
    }

    /// What is told of it; `None` if changes were missed.
    pub(crate) fn data(&self) -> Option<&Value> {
        match self {
            Heard::Change(told) => Some(&told.data),
            Heard::Outside(edits) => Some(edits),
            Heard::Missed => None,
        }
    }
}
