//! MCP messages as lines of standard input and output. A line that is no message is answered here, because
//! its sender waits for an answer to it.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{CancelledNotification, CancelledNotificationParam, ErrorData, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Stdin, Stdout};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::outline::Outline;
use super::pending::{Pending, answers};

/// The longest message that is read, in bytes.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long the end of the input waits for each further answer. The protocol's crate would allow five seconds
/// for all of them together.
const ANSWER_WAIT: Duration = Duration::from_secs(20);
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Where answers go, until the connection is closed.
type Output = Arc<Mutex<Option<Stdout>>>;

/// Standard input and output as a connection.
pub(super) struct Lines {
    input: BufReader<Stdin>,
    output: Output,
    line: Line,
    /// The task that answers a line that was no message.
    answering: Option<JoinHandle<io::Result<()>>>,
    greeted: Arc<AtomicBool>,
    pending: Arc<Pending>,
    /// When the input ended.
    ended: Option<Instant>,
}

impl Lines {
    /// The connection of this process.
    pub(super) fn new() -> Self {
        Lines {
            input: BufReader::new(tokio::io::stdin()),
            output: Arc::new(Mutex::new(Some(tokio::io::stdout()))),
            line: Line::default(),
            answering: None,
            greeted: Arc::default(),
            pending: Arc::default(),
            ended: None,
        }
    }

    /// Set once the client has introduced itself. Until then only requests are passed on: anything else has
    /// no meaning yet, and the protocol's crate would end the connection over it.
    pub(super) fn greeted(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.greeted)
    }

    /// The requests that the client still waits for.
    pub(super) fn pending(&self) -> Arc<Pending> {
        Arc::clone(&self.pending)
    }

    /// What follows the last line: cancellations of requests that would listen for ever, then the end, once
    /// everything is answered.
    async fn end(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        if let Some(id) = self.pending.next_listening() {
            let cancelled = CancelledNotification::new(CancelledNotificationParam::new(Some(id), None));
            return Some(JsonRpcMessage::notification(cancelled.into()));
        }
        let since = *self.ended.get_or_insert_with(Instant::now);
        self.pending.settled(since, ANSWER_WAIT).await;
        None
    }

    /// Reads the next complete line. What was read of it so far is kept if this call is dropped half-way.
    async fn next_line(&mut self) -> Option<Line> {
        loop {
            let available = self.input.fill_buf().await.ok()?;
            if available.is_empty() {
                return None;
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            self.line.add(&available[..end.unwrap_or(available.len())]);
            let used = end.map_or(available.len(), |at| at + 1);
            self.input.consume(used);
            if end.is_some() {
                return Some(std::mem::take(&mut self.line));
            }
        }
    }
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (output, pending) = (Arc::clone(&self.output), Arc::clone(&self.pending));
        async move {
            let written = write(output, serde_json::to_vec(&message)?).await;
            if let Some(id) = answers(&message) {
                pending.answered(&id, written.is_ok());
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // Written by a task, because this call is dropped whenever there is something else to do. The
            // next line waits for it, so that a client that does not read cannot pile up answers.
            if let Some(answering) = &mut self.answering {
                let _ = answering.await;
                self.answering = None;
            }
            let line = match self.ended {
                None => self.next_line().await,
                Some(_) => None,
            };
            let Some(line) = line else { return self.end().await };
            match line.message() {
                Ok(Some(message)) => {
                    let is_request = matches!(message, JsonRpcMessage::Request(_));
                    if is_request || self.greeted.load(Ordering::SeqCst) {
                        self.pending.came(&message);
                        return Some(message);
                    }
                }
                Ok(None) => {}
                Err((id, error)) => {
                    let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
                    let written = write(Arc::clone(&self.output), answer.to_string().into_bytes());
                    self.answering = Some(tokio::spawn(written));
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Whoever is still writing now writes to a client that does not read.
        if let Ok(mut output) = self.output.try_lock() {
            drop(output.take());
        }
        Ok(())
    }
}

async fn write(output: Output, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut output = output.lock().await;
    let output = output.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    output.write_all(&line).await?;
    output.flush().await
}

/// A line as it comes: all of it, or only the outline of one that is too long.
#[derive(Debug, Default)]
struct Line {
    whole: Vec<u8>,
    too_long: Option<Outline>,
}

impl Line {
    fn add(&mut self, piece: &[u8]) {
        if self.too_long.is_none() && self.whole.len() + piece.len() <= LINE_BYTES_MAX {
            self.whole.extend_from_slice(piece);
            return;
        }
        let whole = std::mem::take(&mut self.whole);
        let outline = self.too_long.get_or_insert_default();
        outline.add(&whole);
        outline.add(piece);
    }

    /// Returns the message; nothing if nobody waits for an answer; or the error and the id to answer with.
    fn message(self) -> Result<Option<RxJsonRpcMessage<RoleServer>>, (Value, ErrorData)> {
        if let Some(outline) = self.too_long {
            let message = format!("a message has at most {LINE_BYTES_MAX} bytes; this one was not processed");
            return Err((outline.id(), ErrorData::invalid_request(message, None)));
        }
        let text = self.whole.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.whole).trim_ascii();
        if text.is_empty() {
            return Ok(None);
        }
        if let Ok(message) = serde_json::from_slice(text) {
            return Ok(Some(message));
        }
        misread(text).map_or(Ok(None), Err)
    }
}

/// What is wrong with a text that is not a message, and the id to answer with; nothing if nobody waits for an
/// answer.
pub(crate) fn misread(text: &[u8]) -> Option<(Value, ErrorData)> {
    let wrong = match serde_json::from_slice::<Value>(text) {
        Ok(value) if value.get("method").is_some() && value.get("id").is_none() => return None,
        Ok(value) => no_message(&value),
        Err(error) => ErrorData::parse_error(unreadable(text, &error), None),
    };
    let mut outline = Outline::default();
    outline.add(text);
    Some((outline.id(), wrong))
}

/// What is wrong with JSON that is not a message.
fn no_message(value: &Value) -> ErrorData {
    let is_object = |value: &Value| value.is_object() || value.is_null();
    let method = value["method"].as_str().unwrap_or_default().escape_default();
    if !is_object(&value["params"]) {
        let message = format!("`params` of `{method}` is not an object; give the parameters by name");
        return ErrorData::invalid_params(message, None);
    }
    if !is_object(&value["params"]["_meta"]) {
        return ErrorData::invalid_params(format!("`_meta` of `{method}` is not an object"), None);
    }
    let message = "a message is one JSON object, and in a request `jsonrpc` is \"2.0\", `id` a text or a \
                   whole number, and `method` a text";
    ErrorData::invalid_request(message, None)
}

/// Why a line is not JSON, and what to do about it.
fn unreadable(text: &[u8], error: &serde_json::Error) -> String {
    if std::str::from_utf8(text).is_err() {
        return "the message is not in UTF-8; encode it as UTF-8 and send it again".to_owned();
    }
    // The crate says what is wrong only in its sentence.
    let said = error.to_string();
    let is = |words: &str| said.starts_with(words);
    if is("lone leading surrogate") || is("unexpected end of hex escape") {
        return format!(
            "the message has half of a surrogate pair such as `\\ud83d`, which is no text ({said}); \
             send the whole character or leave it out"
        );
    }
    if is("recursion limit exceeded") {
        return format!("the message is nested too deeply ({said}); send it with fewer levels");
    }
    format!("the message is not JSON that can be read ({said}); mend it and send it again")
}
