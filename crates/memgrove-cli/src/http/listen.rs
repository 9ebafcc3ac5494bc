//! Connections: how many there may be, how slow they may be, and how they end.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The most connections at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 2_048;
/// How long a client may take to say what it wants.
const HEAD_WAIT: Duration = Duration::from_secs(10);
/// How long requests may go on after the server was told to end.
const END_WAIT: Duration = Duration::from_secs(10);
/// How long to wait when the machine has no room for another connection.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until it is told to end, then finishes the requests in progress.
pub(super) async fn serve(listener: TcpListener, app: Router, ending: &CancellationToken) {
    let (graceful, room) = (GracefulShutdown::new(), Arc::new(Semaphore::new(CONNECTIONS_MAX)));
    loop {
        let next = async {
            let place = Arc::clone(&room).acquire_owned().await.expect("it is never closed");
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! { next = next => next, () = ending.cancelled() => break };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Holding an answer back for a later packet would gain nothing.
        let _ = stream.set_nodelay(true);
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT);
        let service = TowerToHyperService::new(app.clone());
        let connection = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // A client that breaks off is no failure of the server.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    tokio::select! { () = graceful.shutdown() => {}, () = tokio::time::sleep(END_WAIT) => {} }
}
