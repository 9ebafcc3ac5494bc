//! Requests that wait for their answers: a client that has closed its end of the input still reads them.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientNotification, ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// What one connection owes its client.
#[derive(Default)]
pub(super) struct Pending {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
struct State {
    unanswered: HashSet<RequestId>,
    /// Requests that last as long as the connection.
    listening: HashSet<RequestId>,
    /// When the last answer was written.
    answered: Option<Instant>,
    /// Answers can be written no more.
    gone: bool,
}

impl Pending {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what the client sent.
    pub(super) fn came(&self, message: &RxJsonRpcMessage<RoleServer>) {
        let mut state = self.state();
        match message {
            JsonRpcMessage::Request(asked) => {
                let listens = matches!(asked.request, ClientRequest::SubscriptionsListenRequest(_));
                let waiting = if listens { &mut state.listening } else { &mut state.unanswered };
                waiting.insert(asked.id.clone());
            }
            JsonRpcMessage::Notification(told) => {
                // A cancelled request gets no answer.
                if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    state.unanswered.remove(id);
                    state.listening.remove(id);
                }
            }
            _ => {}
        }
    }

    /// Notes that an answer was written, or could not be.
    pub(super) fn answered(&self, id: &RequestId, is_written: bool) {
        let mut state = self.state();
        if is_written {
            state.unanswered.remove(id);
            state.answered = Some(Instant::now());
        } else {
            state.gone = true;
        }
        self.news.notify_one();
    }

    /// Takes a request that would last for ever, so that it can be cancelled.
    pub(super) fn next_listening(&self) -> Option<RequestId> {
        let mut state = self.state();
        let id = state.listening.iter().next().cloned()?;
        state.listening.take(&id)
    }

    /// How many requests have no answer yet.
    pub(super) fn left(&self) -> usize {
        self.state().unanswered.len()
    }

    /// Waits until everything is answered, no answer can be written, or none was for as long as `patience`.
    pub(super) async fn settled(&self, since: Instant, patience: Duration) {
        loop {
            let news = self.news.notified();
            let until = {
                let state = self.state();
                if state.unanswered.is_empty() || state.gone {
                    return;
                }
                state.answered.map_or(since, |answered| answered.max(since)) + patience
            };
            if timeout_at(until, news).await.is_err() {
                return;
            }
        }
    }
}

/// The request that a message answers.
pub(super) fn answers(message: &TxJsonRpcMessage<RoleServer>) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Response(answer) => Some(answer.id.clone()),
        JsonRpcMessage::Error(answer) => answer.id.clone(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(id: i64) -> RxJsonRpcMessage<RoleServer> {
        let request = serde_json::json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        serde_json::from_value(request).expect("a request")
    }

    #[tokio::test]
    async fn it_waits_as_long_as_answers_come() {
        let (pending, patience) = (Pending::default(), Duration::from_millis(300));
        let begun = Instant::now();
        pending.settled(begun, patience).await;
        assert!(begun.elapsed() < patience, "nothing was owed");
        (1..=4).for_each(|id| pending.came(&asks(id)));
        let answering = async {
            for id in 1..=3 {
                tokio::time::sleep(Duration::from_millis(200)).await;
                pending.answered(&RequestId::Number(id), true);
            }
        };
        tokio::join!(answering, pending.settled(begun, patience));
        assert_eq!(pending.left(), 1, "it has waited for three, each in time");
        assert!(begun.elapsed() >= Duration::from_millis(900), "and then for the fourth");
        pending.answered(&RequestId::Number(4), false);
        let begun = Instant::now();
        pending.settled(begun, patience).await;
        assert!(begun.elapsed() < patience, "nobody reads the answer");
        assert_eq!(pending.left(), 1);
    }
}
