//! `memgrove memory-tool`: Anthropic's Memory Tool over lines of JSON, for any client that runs
//! its own tools.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use memgrove::{Error, Kind, Result};
use serde::Serialize;
use serde_json::Value;

use crate::context::Context;
use crate::ending;
use crate::verbs::Verb;
use crate::verbs::memory::{MemoryAnswer, MemoryCommand, refusal};

/// The longest line that is read: the largest file fits, even with each byte written as `\u0000`.
const LINE_BYTES_MAX: usize = 6 * 64 * 1024 * 1024 + 64 * 1024;
/// How much of a longer line is kept, to learn whom to answer.
const HEAD_BYTES: usize = 4096;

/// Run commands of Anthropic's Memory Tool, one JSON object per line
///
/// Reads commands such as {"command":"view","path":"/memories"} from standard input and answers each
/// with {"content":…,"is_error":…} on standard output, until the input ends or it is stopped. A whole
/// tool_use block of the API is answered with its tool_result block.
#[derive(Debug, clap::Args)]
pub(crate) struct MemoryTool {
    /// Use this folder itself as /memories; nothing else is kept in it
    ///
    /// A process that is killed may leave a `.mtmp-…` file in it, which the next one to write there removes.
    #[arg(long, value_name = "DIR")]
    memories: Option<PathBuf>,
}

impl MemoryTool {
    /// Answers until standard input ends, or a signal says so.
    pub(crate) fn run(self, cx: &Context) -> Result<()> {
        let cx = match &self.memories {
            Some(folder) => &cx.in_folder(folder)?,
            None => cx,
        };
        match answer_all(cx, lines().into_iter().map_while(Heard::line), &mut io::stdout().lock()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => {
                Err(Error::new(Kind::Io, format!("standard input or output failed: {error}"))
                    .caused_by(error))
            }
            Ok(()) => Ok(()),
        }
    }
}

/// What the threads behind [`lines`] report.
enum Heard {
    /// A line that was read, or the error that ended the reading.
    Line(io::Result<(LineRead, Vec<u8>)>),
    /// The end of the input, or a signal to end the program.
    End,
}

impl Heard {
    fn line(self) -> Option<io::Result<(LineRead, Vec<u8>)>> {
        match self {
            Heard::Line(line) => Some(line),
            Heard::End => None,
        }
    }
}

/// The lines of standard input, read by another thread, so that a signal ends the program between two lines
/// and the store is closed.
fn lines() -> Receiver<Heard> {
    let (said, heard) = mpsc::sync_channel(0);
    let (told, (listening, is_listening)) = (said.clone(), mpsc::channel());
    thread::spawn(move || {
        if ending::wait_for_end(|| drop(listening)).is_ok() {
            let _ = told.send(Heard::End);
        }
    });
    // Waits until signals are handled, so that none cuts an answer off: then the sender is dropped.
    let _: Result<(), _> = is_listening.recv();
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = next_line(&mut input, &mut line, LINE_BYTES_MAX).transpose();
            let next = read.map_or(Heard::End, |read| Heard::Line(read.map(|read| (read, line))));
            let is_last = !matches!(next, Heard::Line(Ok(_)));
            if said.send(next).is_err() || is_last {
                return;
            }
        }
    });
    heard
}

fn answer_all(
    cx: &Context,
    lines: impl Iterator<Item = io::Result<(LineRead, Vec<u8>)>>,
    out: &mut impl Write,
) -> io::Result<()> {
    for line in lines {
        let (read, line) = line?;
        let answer = match read {
            LineRead::Whole if line.trim_ascii().is_empty() => continue,
            LineRead::Whole => answer(cx, &line),
            LineRead::TooLong => refused(
                &line,
                format!("a command has at most {LINE_BYTES_MAX} bytes; it was not carried out"),
            ),
        };
        let mut told = serde_json::to_string(&answer)?;
        // Some readers take these for the end of a line. They occur only within texts.
        for (end, escaped) in [('\u{85}', "\\u0085"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")] {
            if told.contains(end) {
                told = told.replace(end, escaped);
            }
        }
        writeln!(out, "{told}")?;
        out.flush()?;
    }
    Ok(())
}

/// The answer to one line: a result block for a `tool_use` block, else the bare answer.
#[derive(Debug, Serialize)]
struct Answer {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<Value>,
    #[serde(flatten)]
    said: MemoryAnswer,
}

impl From<MemoryAnswer> for Answer {
    fn from(said: MemoryAnswer) -> Self {
        Answer { kind: None, tool_use_id: None, said }
    }
}

fn answer(cx: &Context, line: &[u8]) -> Answer {
    let mut command: Value = match serde_json::from_slice(line) {
        Ok(command) => command,
        Err(error) => return refused(line, format!("the line is not JSON: {error}")),
    };
    let run = |command: Value| MemoryCommand::from(command).run(cx).unwrap_or_else(|error| refusal(&error));
    match command.get("type").and_then(Value::as_str) {
        Some("tool_use") => Answer {
            kind: Some("tool_result"),
            tool_use_id: command.get("id").cloned(),
            said: run(command["input"].take()),
        },
        _ => run(command).into(),
    }
}

/// Answers a line that cannot be read, or not whole; with a result block if it seems to be a block.
fn refused(line: &[u8], why: String) -> Answer {
    let (said, line) = (refusal(&Error::new(Kind::Invalid, why)), String::from_utf8_lossy(line));
    let value = |name: &str| {
        let (_, rest) = line.split_once(&format!("\"{name}\""))?;
        let rest = rest.trim_start().strip_prefix(':')?;
        serde_json::Deserializer::from_str(rest).into_iter::<String>().next()?.ok()
    };
    match value("type").as_deref() {
        Some("tool_use") => {
            Answer { kind: Some("tool_result"), tool_use_id: value("id").map(Value::String), said }
        }
        _ => said.into(),
    }
}

/// What was read of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineRead {
    /// All of it, without its newline.
    Whole,
    /// More than is allowed; all but its beginning was skipped.
    TooLong,
}

/// Reads the next line without ever holding more than `bytes_max` of it; `None` at the end.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>, bytes_max: usize) -> io::Result<Option<LineRead>> {
    line.clear();
    let (mut read, mut any) = (LineRead::Whole, false);
    loop {
        let available = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            available => available?,
        };
        if available.is_empty() {
            return Ok(any.then_some(read));
        }
        any = true;
        let newline = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..newline.unwrap_or(available.len())];
        if read == LineRead::Whole && line.len() + part.len() > bytes_max {
            read = LineRead::TooLong;
            line.truncate(HEAD_BYTES);
        } else if read == LineRead::Whole {
            line.extend_from_slice(part);
        }
        let used = newline.map_or(part.len(), |at| at + 1);
        input.consume(used);
        if newline.is_some() {
            return Ok(Some(read));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_a_long_one_spoils_no_other() {
        let text = format!("one\n\n{}\ntwo\nlast", "x".repeat(100));
        let mut input = io::BufReader::with_capacity(7, text.as_bytes());
        let (mut line, mut seen) = (Vec::new(), Vec::new());
        while let Some(read) = next_line(&mut input, &mut line, 10).expect("a slice can be read") {
            seen.push((read, String::from_utf8(line.clone()).expect("text")));
        }
        let whole = |text: &str| (LineRead::Whole, text.to_owned());
        let expected =
            [whole("one"), whole(""), (LineRead::TooLong, "x".repeat(9)), whole("two"), whole("last")];
        assert_eq!(seen, expected);
    }
}
