//! What the server tells of itself on standard error: for people, or a line of JSON each.

use std::io::Write;
use std::sync::OnceLock;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use memgrove::clock::{Clock, SystemClock};
use serde_json::json;

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Format {
    /// Only what a person needs to know
    #[default]
    Text,
    /// Every request, as one line of JSON
    Json,
}

static FORMAT: OnceLock<Format> = OnceLock::new();

/// Chooses how the log is written, once.
pub(crate) fn choose(format: Format) {
    let _ = FORMAT.set(format);
}

/// Tells of one request. Neither what was asked nor any header is told: both may hold secrets.
pub(crate) fn request(method: &Method, path: &str, status: StatusCode, took: Duration) {
    if FORMAT.get() == Some(&Format::Json) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        line(json!({"event": "request", "method": method.as_str(), "path": path,
            "status": status.as_u16(), "micros": micros}));
    }
}

/// Tells of something that happened to the server.
pub(crate) fn event(event: &str, words: &str) {
    match FORMAT.get() {
        Some(Format::Json) => line(json!({"event": event, "message": words})),
        // Whoever closed standard error does not want to know.
        _ => drop(writeln!(std::io::stderr(), "memgrove: {words}")),
    }
}

fn line(mut told: serde_json::Value) {
    told["time"] = SystemClock.now().to_string().into();
    // Whoever closed standard error does not want to know.
    let _ = std::io::stderr().lock().write_all(format!("{told}\n").as_bytes());
}
