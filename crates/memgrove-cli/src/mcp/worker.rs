//! Threads that may wait: the store is not asynchronous, and the protocol is.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use memgrove::Result;
use rmcp::model::ErrorData;
use tokio::sync::oneshot;

use crate::context::Context;

/// After how much idle time upkeep is done, and the longest that steady work may delay it.
const REST: Duration = Duration::from_secs(30);

type Work = Box<dyn FnOnce() + Send>;

/// Where the work is done. A client on standard input gets one thread, so that calls sent ahead of their
/// answers take effect in the order sent.
#[derive(Clone)]
pub(crate) enum Worker {
    /// One thread, in the order sent.
    Thread(mpsc::Sender<Work>),
    /// The threads of a server, where requests are independent of each other.
    Pool,
}

impl Worker {
    /// Starts the thread. The receiver that is returned disconnects when the thread has ended.
    pub(super) fn start(cx: Context) -> (Self, mpsc::Receiver<()>) {
        let (work, queue) = mpsc::channel::<Work>();
        let (end, ended) = mpsc::channel();
        thread::spawn(move || {
            serve(&queue, REST, || cx.settle());
            drop(end);
        });
        (Worker::Thread(work), ended)
    }

    /// Has work done, and waits for its result.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        let gone = |_| ErrorData::internal_error("the store's thread is gone: start memgrove again", None);
        let (answer, answered) = oneshot::channel();
        // A client that cancelled no longer waits for the answer, but the change stands.
        let work = Box::new(move || drop(answer.send(work())));
        match self {
            Worker::Thread(queue) => queue.send(work).map_err(|_| gone(()))?,
            Worker::Pool => drop(tokio::task::spawn_blocking(work)),
        }
        answered.await.map_err(|_| gone(()))
    }
}

/// Does the work that arrives until no more can. Settles after `rest` without work, after `rest` of steady
/// work, and at the end.
fn serve(queue: &mpsc::Receiver<Work>, rest: Duration, settle: impl Fn()) {
    let mut settled = Instant::now();
    loop {
        match queue.recv_timeout(rest) {
            Ok(work) => {
                work();
                if settled.elapsed() < rest {
                    continue;
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
        settle();
        settled = Instant::now();
    }
    settle();
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn who_never_rests_is_settled_too() {
        let (work, queue) = mpsc::channel::<Work>();
        for _ in 0..3 {
            work.send(Box::new(|| {})).expect("it is served");
        }
        drop(work);
        let settled = Cell::new(0);
        serve(&queue, Duration::ZERO, || settled.set(settled.get() + 1));
        assert_eq!(settled.get(), 4, "after each, and at the end");
    }
}
