//! Telling clients that a memory changed, whoever changed it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionContext};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::resources::{self, Places};
use crate::changes::{Changes, Heard};
use crate::context::Context;

/// Resources, each with its files.
type Watched = BTreeMap<String, Places>;

/// What one connection listens to.
pub(super) struct Subscriptions {
    cx: Context,
    changes: Changes,
    watched: Arc<Mutex<Watched>>,
    started: AtomicBool,
    ended: CancellationToken,
    /// Stops the listening when the connection ends.
    _ends: DropGuard,
}

impl Subscriptions {
    pub(super) fn new(cx: Context, changes: Changes) -> Self {
        let ended = CancellationToken::new();
        let _ends = ended.clone().drop_guard();
        let (watched, started) = (Arc::default(), AtomicBool::new(false));
        Subscriptions { cx, changes, watched, started, ended, _ends }
    }

    /// Looks for changes now, if anybody listens.
    pub(super) fn look(&self) {
        self.changes.look();
    }

    /// Listens to a resource.
    pub(super) async fn add(&self, uri: String, places: Places, peer: Peer<RoleServer>) {
        locked(&self.watched).insert(uri, places);
        if self.started.swap(true, Ordering::SeqCst) {
            return;
        }
        let (mut receiver, watched) = (self.changes.listen().await, Arc::clone(&self.watched));
        let (cx, ended) = (self.cx.clone(), self.ended.clone());
        tokio::spawn(async move {
            loop {
                let heard =
                    tokio::select! { heard = receiver.recv() => heard, () = ended.cancelled() => return };
                let Some(heard) = understood(heard) else { return };
                for uri in touched(&cx, &watched, &heard).await {
                    let _ = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
                }
            }
        });
    }

    /// Listens no more.
    pub(super) fn remove(&self, uri: &str) {
        locked(&self.watched).remove(uri);
    }

    /// Tells of changes on the stream of one request, until that ends.
    pub(super) async fn tell(&self, watched: Watched, context: &SubscriptionContext) {
        let (mut receiver, watched) = (self.changes.listen().await, Mutex::new(watched));
        loop {
            let heard =
                tokio::select! { heard = receiver.recv() => heard, () = context.cancelled() => return };
            let Some(heard) = understood(heard) else { return };
            for uri in touched(&self.cx, &watched, &heard).await {
                let told = context.sink().notify_resource_updated(uri).await;
                if told.is_err() {
                    return;
                }
            }
        }
    }
}

fn locked(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

fn understood(heard: Result<Heard, RecvError>) -> Option<Heard> {
    match heard {
        Ok(heard) => Some(heard),
        Err(RecvError::Lagged(_)) => Some(Heard::Missed),
        Err(RecvError::Closed) => None,
    }
}

/// The resources that a change touched. Those touched, and those not found before, are located anew, because
/// they may have moved or appeared.
async fn touched(cx: &Context, watched: &Mutex<Watched>, heard: &Heard) -> Vec<String> {
    let again: Vec<(String, bool)> = locked(watched)
        .iter()
        .map(|(uri, places)| (uri, touches(heard, &places.names), places.found))
        .filter(|(_, touched, found)| *touched || !found)
        .map(|(uri, touched, _)| (uri.clone(), touched))
        .collect();
    if again.is_empty() {
        return Vec::new();
    }
    let cx = cx.clone();
    let look = move |(uri, touched): (String, bool)| (resources::watched(&cx, &uri), uri, touched);
    let looked = tokio::task::spawn_blocking(move || again.into_iter().map(look).collect::<Vec<_>>()).await;
    let mut watched = locked(watched);
    let mut news = Vec::new();
    for (places, uri, touched) in looked.unwrap_or_default() {
        // It may have been unsubscribed meanwhile.
        let Some(known) = watched.get_mut(&uri) else { continue };
        if touched || touches(heard, &places.names) {
            news.push(uri);
        }
        *known = places;
    }
    news
}

/// Whether a change touched one of these places, as the history names them. After missed changes, any may
/// have been touched.
fn touches(heard: &Heard, places: &[String]) -> bool {
    let named = |told: &Value| {
        let edits = told["edits"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is = |edit: &Value, end: &str| {
            edit[end].as_str().is_some_and(|at| places.iter().any(|place| place == at))
        };
        edits.iter().any(|edit| is(edit, "at") || is(edit, "to"))
    };
    heard.data().is_none_or(named)
}
