//! What is counted, for `/metrics`, and how many requests there are at once.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The upper bounds of the histogram, in microseconds.
const BOUNDS: [u64; 10] = [500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 1_000_000, 10_000_000];

/// What is counted since the start.
pub(crate) struct Metrics {
    turns: Arc<Semaphore>,
    turns_max: usize,
    /// By method (safe, not safe) and by the first digit of the status.
    answers: [[AtomicU64; 6]; 2],
    buckets: [AtomicU64; BOUNDS.len()],
    micros: AtomicU64,
}

impl Metrics {
    /// Counts for a server that takes so many requests at once.
    pub(crate) fn new(turns_max: usize) -> Self {
        Metrics {
            turns: Arc::new(Semaphore::new(turns_max)),
            turns_max,
            answers: Default::default(),
            buckets: Default::default(),
            micros: AtomicU64::new(0),
        }
    }

    /// A place among the requests that are answered at once, unless there is none.
    pub(crate) fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.turns).try_acquire_owned().ok()
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, method: &Method, status: StatusCode, took: Duration) {
        let row = &self.answers[usize::from(!method.is_safe())];
        row[usize::from(status.as_u16() / 100).min(5)].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        if let Some(bucket) = BOUNDS.iter().position(|bound| micros <= *bound) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Everything in the words of Prometheus.
    pub(crate) fn told(&self) -> String {
        let mut text = String::from("# TYPE memgrove_http_requests_total counter\n");
        let mut total = 0;
        for (row, method) in self.answers.iter().zip(["read", "write"]) {
            for (status, count) in row.iter().enumerate().skip(1) {
                let count = count.load(Ordering::Relaxed);
                total += count;
                let _ = writeln!(
                    text,
                    "memgrove_http_requests_total{{method=\"{method}\",status=\"{status}xx\"}} {count}"
                );
            }
        }
        text.push_str("# TYPE memgrove_http_request_duration_seconds histogram\n");
        let mut sum = 0;
        for (bound, count) in BOUNDS.iter().zip(&self.buckets) {
            sum += count.load(Ordering::Relaxed);
            let seconds = *bound as f64 / 1e6;
            let _ = writeln!(text, "memgrove_http_request_duration_seconds_bucket{{le=\"{seconds}\"}} {sum}");
        }
        let seconds = self.micros.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(text, "memgrove_http_request_duration_seconds_bucket{{le=\"+Inf\"}} {total}");
        let _ = writeln!(text, "memgrove_http_request_duration_seconds_sum {seconds}");
        let _ = writeln!(text, "memgrove_http_request_duration_seconds_count {total}");
        let busy = self.turns_max - self.turns.available_permits();
        let _ = writeln!(
            text,
            "# TYPE memgrove_http_requests_in_flight gauge\nmemgrove_http_requests_in_flight {busy}"
        );
        text
    }
}
