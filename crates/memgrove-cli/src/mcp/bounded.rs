//! A limit on the length of a message: a line that is too long is answered, not buffered.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// The method that stands in for a request that was too long.
pub(super) const TOO_LONG_METHOD: &str = "memgrove/too_long";
/// How much of a line's beginning and end is searched for its id.
const END_BYTES: usize = 512;
const CHUNK_BYTES: usize = 16 * 1024;

/// Passes lines on as they come. Of one that is too long it stops passing bytes on at the limit,
/// ends it there, so that it is no valid message, and adds a short request with the same id, which
/// the server answers with the reason.
pub(super) struct Bounded<R> {
    inner: R,
    bytes_max: usize,
    chunk: Box<[u8]>,
    /// What is to be passed on, and how much of it has been.
    ready: Vec<u8>,
    passed: usize,
    line: Line,
}

#[derive(Default)]
struct Line {
    bytes: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl<R> Bounded<R> {
    /// Limits the lines of a stream.
    pub(super) fn new(inner: R, bytes_max: usize) -> Self {
        let chunk = vec![0; CHUNK_BYTES].into_boxed_slice();
        Bounded { inner, bytes_max, chunk, ready: Vec::new(), passed: 0, line: Line::default() }
    }

    /// Takes what was read and decides what of it is passed on.
    fn take(&mut self, filled: usize) {
        self.ready.clear();
        self.passed = 0;
        for part in self.chunk[..filled].split_inclusive(|byte| *byte == b'\n') {
            let (body, ended) = match part.strip_suffix(b"\n") {
                Some(body) => (body, true),
                None => (part, false),
            };
            let room = self.bytes_max.saturating_sub(self.line.bytes);
            self.ready.extend_from_slice(&body[..body.len().min(room)]);
            self.line.add(body);
            if !ended {
                continue;
            }
            self.ready.push(b'\n');
            let line = std::mem::take(&mut self.line);
            if line.bytes > self.bytes_max {
                self.ready.extend_from_slice(line.stand_in().as_bytes());
            }
        }
    }
}

impl Line {
    fn add(&mut self, body: &[u8]) {
        self.bytes += body.len();
        let room = END_BYTES.saturating_sub(self.head.len());
        self.head.extend_from_slice(&body[..body.len().min(room)]);
        self.tail.extend_from_slice(&body[body.len().saturating_sub(END_BYTES)..]);
        let surplus = self.tail.len().saturating_sub(END_BYTES);
        self.tail.drain(..surplus);
    }

    fn stand_in(&self) -> String {
        let id = id_after(&self.head, End::First).or_else(|| id_after(&self.tail, End::Last));
        let id = id.unwrap_or("null".to_owned());
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{TOO_LONG_METHOD}\"}}\n")
    }
}

enum End {
    First,
    Last,
}

/// The id of a request, from the beginning or the end of its text: clients write it before the
/// parameters or after them.
fn id_after(text: &[u8], end: End) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let at = match end {
        End::First => text.find("\"id\"").filter(|at| !text[..*at].contains("\"params\""))?,
        End::Last => text.rfind("\"id\"")?,
    };
    let value = text[at + 4..].trim_start().strip_prefix(':')?;
    let mut values = serde_json::Deserializer::from_str(value).into_iter::<serde_json::Value>();
    match values.next()?.ok()? {
        id @ (serde_json::Value::Number(_) | serde_json::Value::String(_)) => Some(id.to_string()),
        _ => None,
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.passed == this.ready.len() {
            let mut chunk = ReadBuf::new(&mut this.chunk);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut chunk))?;
            match chunk.filled().len() {
                0 => return Poll::Ready(Ok(())),
                filled => this.take(filled),
            }
        }
        let part = &this.ready[this.passed..];
        let part = &part[..part.len().min(out.remaining())];
        out.put_slice(part);
        this.passed += part.len();
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    fn passed(text: &str, bytes_max: usize) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let mut out = String::new();
        runtime
            .block_on(Bounded::new(text.as_bytes(), bytes_max).read_to_string(&mut out))
            .expect("a slice can be read");
        out
    }

    #[test]
    fn short_lines_pass_untouched() {
        let text = "{\"id\":1}\n\n{\"id\":2}\r\nrest";
        assert_eq!(passed(text, 10), text);
    }

    #[test]
    fn a_long_line_is_ended_and_answered_by_its_id() {
        let check = |line: &str, id: &str| {
            let got = passed(&format!("before\n{line}\nafter\n"), 200);
            let stand_in = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"memgrove/too_long\"}}");
            assert_eq!(got, format!("before\n{}\n{stand_in}\nafter\n", &line[..200]));
        };
        let long = "x".repeat(60_000);
        check(&format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":\"{long}\"}}"), "7");
        check(
            &format!("{{\"method\":\"m\",\"params\":\"{long}\",\"jsonrpc\":\"2.0\",\"id\":\"a\"}}"),
            "\"a\"",
        );
        check(&format!("{{\"params\":{{\"id\":3,\"x\":\"{long}\"}},\"id\" : 4}}"), "4");
        check(&long, "null");
    }
}
