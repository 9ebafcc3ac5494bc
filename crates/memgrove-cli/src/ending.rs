//! When a program that serves is told to end: then it closes its stores, so that nothing is left to do.

use std::pin::pin;

/// Waits until someone wants the program to end.
pub(crate) async fn asked_to_end() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        let mut told = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
            .expect("a signal can be waited for");
        tokio::select! { _ = interrupted => {}, _ = told.recv() => {} }
    }
    #[cfg(not(unix))]
    let _ = interrupted.await;
}

/// As [`asked_to_end`], for a thread of its own, which says when it has begun to listen.
///
/// # Errors
/// Where signals cannot be waited for: then they end the program at once.
pub(crate) fn wait_for_end(listening: impl FnOnce()) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut end = pin!(asked_to_end());
        // It listens from the first time that it is asked.
        tokio::select! { biased; () = &mut end => return, () = async {} => listening() }
        end.await;
    });
    Ok(())
}
