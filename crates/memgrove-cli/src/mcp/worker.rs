//! Threads that may wait: the store is not asynchronous, and the protocol is.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use memgrove::Result;
use rmcp::model::ErrorData;
use tokio::sync::oneshot;

use crate::context::Context;

/// After how much rest the indexes are brought up to date.
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
            loop {
                match queue.recv_timeout(REST) {
                    Ok(work) => work(),
                    Err(mpsc::RecvTimeoutError::Timeout) => cx.settle(),
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
            }
            cx.settle();
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
