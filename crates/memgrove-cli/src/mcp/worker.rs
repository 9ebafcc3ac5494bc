//! Threads that may wait: the store is not asynchronous, and the protocol is.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use memgrove::Result;
use rmcp::model::ErrorData;
use tokio::sync::oneshot;

use crate::context::Context;

/// After how much rest the indexes are brought up to date; and how long they wait for one at most.
const REST: Duration = Duration::from_secs(30);

type Work = Box<dyn FnOnce() + Send>;

/// Where the work is done. A client on standard input has one thread, so that calls that it sends
/// ahead take effect in the order sent.
#[derive(Clone)]
pub(crate) enum Worker {
    /// One thread, in the order sent.
    Thread(mpsc::Sender<Work>),
    /// The threads of a server, where each request stands for itself.
    Pool,
}

impl Worker {
    /// Starts it. What is returned beside it tells when it has ended.
    pub(super) fn start(cx: Context) -> (Self, mpsc::Receiver<()>) {
        let (work, queue) = mpsc::channel::<Work>();
        let (end, ended) = mpsc::channel();
        thread::spawn(move || {
            serve(&queue, REST, || cx.settle());
            drop(end);
        });
        (Worker::Thread(work), ended)
    }

    /// Has it done, and waits for the outcome.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        let gone = |_| ErrorData::internal_error("the store's thread is gone: start memgrove again", None);
        let (answer, answered) = oneshot::channel();
        // A client that cancelled does not wait for the answer; the change stands.
        let work = Box::new(move || drop(answer.send(work())));
        match self {
            Worker::Thread(queue) => queue.send(work).map_err(|_| gone(()))?,
            Worker::Pool => drop(tokio::task::spawn_blocking(work)),
        }
        answered.await.map_err(|_| gone(()))
    }
}

/// Does the work that comes, until no more can come, and settles after a rest, or once there was none
/// for as long.
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
