//! `memgrove memory-tool`: Anthropic's Memory Tool over lines of JSON, for any client that runs
//! its own tools.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;

use memgrove::{Error, Kind, Result};
use serde::Serialize;
use serde_json::Value;

use crate::context::Context;
use crate::verbs::Verb;
use crate::verbs::memory::{MemoryAnswer, MemoryCommand, refusal};

/// The longest line that is read.
pub(crate) const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Answer commands of Anthropic's Memory Tool, one JSON object per line
///
/// Reads commands such as {"command":"view","path":"/memories"} from standard input and answers each
/// with {"content":…,"is_error":…} on standard output, until the input ends. A whole tool_use block of
/// the API is answered with its tool_result block.
#[derive(Debug, clap::Args)]
pub(crate) struct MemoryTool {
    /// Use this folder itself as /memories; nothing else is written into it
    #[arg(long, value_name = "DIR")]
    memories: Option<PathBuf>,
}

impl MemoryTool {
    /// Answers until standard input ends.
    pub(crate) fn run(self, cx: &Context) -> Result<()> {
        let cx = match &self.memories {
            Some(folder) => &cx.in_folder(folder)?,
            None => cx,
        };
        match answer_all(cx, &mut io::stdin().lock(), &mut io::stdout().lock()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => {
                Err(Error::new(Kind::Io, format!("standard input or output failed: {error}")).source(error))
            }
            Ok(()) => Ok(()),
        }
    }
}

fn answer_all(cx: &Context, input: &mut impl BufRead, out: &mut impl Write) -> io::Result<()> {
    let mut line = Vec::new();
    while let Some(read) = next_line(input, &mut line, LINE_BYTES_MAX)? {
        let answer = match read {
            LineRead::Whole if line.trim_ascii().is_empty() => continue,
            LineRead::Whole => answer(cx, &line),
            LineRead::TooLong => Answer::from(refusal(&Error::new(
                Kind::Invalid,
                format!("a command has at most {LINE_BYTES_MAX} bytes; it was not carried out"),
            ))),
        };
        serde_json::to_writer(&mut *out, &answer)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

/// What is answered to one line: a block of the API to a block, else only what it says.
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
        Err(error) => {
            return refusal(&Error::new(Kind::Invalid, format!("the line is not JSON: {error}"))).into();
        }
    };
    let run = |command| MemoryCommand(command).run(cx).unwrap_or_else(|error| refusal(&error));
    match command.get("type").and_then(Value::as_str) {
        Some("tool_use") => Answer {
            kind: Some("tool_result"),
            tool_use_id: command.get("id").cloned(),
            said: run(command["input"].take()),
        },
        _ => run(command).into(),
    }
}

/// What was read of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineRead {
    /// All of it, without its newline.
    Whole,
    /// More than is allowed; it was skipped.
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
        if line.len() + part.len() > bytes_max {
            read = LineRead::TooLong;
            line.clear();
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
            [whole("one"), whole(""), (LineRead::TooLong, String::new()), whole("two"), whole("last")];
        assert_eq!(seen, expected);
    }
}
