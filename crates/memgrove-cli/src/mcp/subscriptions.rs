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

use crate::changes::{Changes, Heard};

/// Resources, each with what the history calls its files.
type Watched = BTreeMap<String, Vec<String>>;

/// What one connection listens to.
pub(super) struct Subscriptions {
    changes: Changes,
    watched: Arc<Mutex<Watched>>,
    started: AtomicBool,
    ended: CancellationToken,
    /// With the connection ends its listening.
    _ends: DropGuard,
}

impl Subscriptions {
    pub(super) fn new(changes: Changes) -> Self {
        let ended = CancellationToken::new();
        let _ends = ended.clone().drop_guard();
        Subscriptions { changes, watched: Arc::default(), started: AtomicBool::new(false), ended, _ends }
    }

    /// Looks for changes now, if anybody listens.
    pub(super) fn look(&self) {
        self.changes.look();
    }

    /// Listens to a resource.
    pub(super) async fn add(&self, uri: String, places: Vec<String>, peer: Peer<RoleServer>) {
        locked(&self.watched).insert(uri, places);
        if self.started.swap(true, Ordering::SeqCst) {
            return;
        }
        let (mut receiver, watched) = (self.changes.listen().await, Arc::clone(&self.watched));
        let ended = self.ended.clone();
        tokio::spawn(async move {
            loop {
                let heard =
                    tokio::select! { heard = receiver.recv() => heard, () = ended.cancelled() => return };
                let Some(heard) = understood(heard) else { return };
                let uris: Vec<String> = {
                    let watched = locked(&watched);
                    let touched = watched.iter().filter(|(_, places)| touches(&heard, places));
                    touched.map(|(uri, _)| uri.clone()).collect()
                };
                for uri in uris {
                    let _ = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
                }
            }
        });
    }

    /// Listens no more.
    pub(super) fn remove(&self, uri: &str) {
        locked(&self.watched).remove(uri);
    }

    /// Tells of changes on the stream of one request, until it is over.
    pub(super) async fn tell(&self, watched: &[(Vec<String>, String)], context: &SubscriptionContext) {
        let mut receiver = self.changes.listen().await;
        loop {
            let heard =
                tokio::select! { heard = receiver.recv() => heard, () = context.cancelled() => return };
            let Some(heard) = understood(heard) else { return };
            for (_, uri) in watched.iter().filter(|(places, _)| touches(&heard, places)) {
                let told = context.sink().notify_resource_updated(uri.clone()).await;
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

/// Whether a change touched what the history calls so, or so. After changes that were missed, anything may
/// have been.
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
