//! How a model's server is asked: bounded in time, in size and in attempts.

use std::time::Duration;

use serde_json::Value;

use super::Spent;
use crate::error::{Error, Kind, Result};
use crate::wire::{Carries, client};

/// The largest answer that is read.
const ANSWER_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The longest wait that a server may ask for.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// How long to wait for a model, and how often to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For one answer, from the first byte sent to the last received.
    pub timeout: Duration,
    /// How many more attempts are made when the server is busy or the network fails.
    pub retries: u32,
    /// The pause between two attempts, unless the server names one; it doubles each time.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { timeout: Duration::from_secs(60), retries: 2, pause: Duration::from_millis(500) }
    }
}

/// What tokens cost, in dollars for a million.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Tokens that the model reads.
    pub input: f64,
    /// Tokens that it writes.
    pub output: f64,
}

impl Price {
    /// What some tokens cost.
    pub(super) fn of(self, spent: &Spent) -> f64 {
        (self.input * spent.input_tokens as f64 + self.output * spent.output_tokens as f64) / 1e6
    }
}

/// What a server said: JSON, or the events of a stream.
pub(super) enum Heard {
    Whole(Value),
    Events(Vec<Value>),
}

/// A client for one endpoint.
pub(super) struct Wire {
    client: ureq::Agent,
    url: String,
    headers: Vec<(&'static str, String)>,
    patience: Patience,
}

impl Wire {
    /// Makes a client that sends these headers. A key is sent only over TLS or to this machine.
    pub(super) fn new(url: String, headers: Vec<(&'static str, String)>, patience: Patience) -> Result<Self> {
        let secret = headers.iter().any(|(name, _)| matches!(*name, "x-api-key" | "authorization"));
        let carries = if secret { Carries::Key } else { Carries::Nothing };
        Ok(Wire { client: client(&url, carries, patience.timeout)?, url, headers, patience })
    }

    /// Sends a question until it is answered or the attempts are used up, and counts the calls.
    pub(super) fn post(&self, body: &Value, spent: &mut Spent) -> Result<Heard> {
        let text = body.to_string();
        let mut pause = self.patience.pause;
        loop {
            spent.calls += 1;
            let (error, wait) = match self.once(&text) {
                Ok(heard) => return Ok(heard),
                Err(failed) => failed,
            };
            if spent.calls > self.patience.retries || error.kind() != Kind::Busy {
                return Err(error);
            }
            std::thread::sleep(wait.unwrap_or(pause).min(WAIT_MAX));
            pause *= 2;
        }
    }

    /// Makes one attempt. The error is `Busy` if another may help, with the wait that the server asks for.
    fn once(&self, text: &str) -> std::result::Result<Heard, (Error, Option<Duration>)> {
        let request = self.headers.iter().fold(self.client.post(&self.url), |request, (name, value)| {
            request.header(*name, value.as_str())
        });
        let unreached = |error: ureq::Error| {
            let late = matches!(error, ureq::Error::Timeout(_));
            let what = if late { "the model did not answer in time" } else { "the model cannot be reached" };
            (Error::new(Kind::Busy, format!("{what}: {error}")), None)
        };
        let mut response =
            request.header("content-type", "application/json").send(text).map_err(unreached)?;
        let status = response.status().as_u16();
        let header = |name: &str| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let wait = header("retry-after")
            .and_then(|value| value.parse().ok())
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let stream = header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let read = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        let body = read.map_err(unreached)?;
        if !(200..300).contains(&status) {
            return Err((refusal(status, &body), wait));
        }
        let malformed = |error: serde_json::Error| {
            (Error::new(Kind::Invalid, format!("the model's answer is not JSON: {error}")), None)
        };
        if !stream {
            return serde_json::from_str(&body).map(Heard::Whole).map_err(malformed);
        }
        let data = body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        let events = data.filter(|data| *data != "[DONE]" && !data.is_empty()).map(serde_json::from_str);
        events.collect::<std::result::Result<_, _>>().map(Heard::Events).map_err(malformed)
    }
}

/// Returns the error for a server that refused, with what it said.
fn refusal(status: u16, body: &str) -> Error {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let said = value["error"]["message"].as_str().or(value["error"].as_str()).unwrap_or("");
    let said: String = said.chars().take(200).collect();
    let kind = match status {
        401 | 403 => Kind::Denied,
        408 | 409 | 429 | 500..=599 => Kind::Busy,
        _ => Kind::Invalid,
    };
    Error::new(
        kind,
        format!("the model's server answered {status}{}{said}", if said.is_empty() { "" } else { ": " }),
    )
}
