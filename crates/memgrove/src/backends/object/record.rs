//! One change in the log: a header of JSON, a newline, and the bytes of its edits.

use serde::{Deserialize, Serialize};

use crate::backend::{Change, ChangeId, Edit, Note, Op, Past, PastEdit, Version};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result};
use crate::locator::Locator;

/// What is known of a change without its bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) seq: u64,
    /// Made up by the writer, so that it knows its own record again when the answer was lost.
    pub(super) id: String,
    pub(super) time: Timestamp,
    /// A folder was made: no part of the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mkdir: Option<Locator>,
    #[serde(flatten)]
    pub(super) note: Note,
    #[serde(default)]
    pub(super) edits: Vec<Step>,
}

/// One edit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) op: Op,
    pub(super) at: Locator,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<Locator>,
    /// How many bytes of the body are its own; they follow those of the edits before it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) len: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) old: Option<Version>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) new: Option<Version>,
    /// The tag of what was written, where the bucket keeps no marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tag: Option<String>,
}

fn is_zero(len: &u64) -> bool {
    *len == 0
}

impl Step {
    /// The step of an edit, and its bytes.
    pub(super) fn of(edit: &Edit) -> (Step, &[u8]) {
        let none: &[u8] = &[];
        let (op, to, bytes, new) = match edit {
            Edit::Write { bytes, .. } => (Op::Write, None, &**bytes, Some(Version::of(bytes))),
            Edit::Append { bytes, .. } => (Op::Append, None, &**bytes, None),
            Edit::Delete { .. } => (Op::Delete, None, none, None),
            Edit::Rename { to, .. } => (Op::Rename, Some(to.clone()), none, None),
        };
        (Step { op, at: edit.at().clone(), to, len: bytes.len() as u64, old: None, new, tag: None }, bytes)
    }
}

impl Header {
    /// The header of a change, and its body.
    pub(super) fn of(change: &Change, seq: u64, id: String, time: Timestamp) -> (Header, Vec<u8>) {
        let mut body = Vec::new();
        let step = |edit| {
            let (step, bytes) = Step::of(edit);
            body.extend_from_slice(bytes);
            step
        };
        let edits = change.edits.iter().map(step).collect();
        (Header { seq, id, time, mkdir: None, note: change.note.clone(), edits }, body)
    }

    /// The change as the history tells it.
    pub(super) fn past(&self) -> Past {
        let edit = |step: &Step| PastEdit {
            op: step.op,
            at: step.at.clone(),
            to: step.to.clone(),
            old: step.old.clone(),
            new: step.new.clone(),
        };
        Past {
            change: ChangeId::new(self.seq.to_string()),
            time: self.time,
            note: self.note.clone(),
            edits: self.edits.iter().map(edit).collect(),
        }
    }

    /// The beginning of its name, for marks.
    pub(super) fn short_id(&self) -> u32 {
        self.id.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default()
    }

    pub(super) fn line(&self) -> String {
        serde_json::to_string(self).expect("a header is plain data")
    }

    pub(super) fn parse(line: &str) -> Result<Header> {
        serde_json::from_str(line).map_err(|error| damaged(&error.to_string()))
    }
}

/// The object of a record.
pub(super) fn encode(header: &Header, body: &[u8]) -> Vec<u8> {
    [header.line().as_bytes(), b"\n", body].concat()
}

/// The header and the body of the object that is the record of this number.
pub(super) fn decode(number: u64, bytes: &[u8]) -> Result<(Header, &[u8])> {
    let damaged = |why: &str| damaged(&format!("number {number}: {why}"));
    let end = memchr::memchr(b'\n', bytes).ok_or_else(|| damaged("it has no header"))?;
    let line = std::str::from_utf8(&bytes[..end]).map_err(|_| damaged("its header is not text"))?;
    let header: Header = serde_json::from_str(line).map_err(|error| damaged(&error.to_string()))?;
    match header.seq == number {
        true => Ok((header, &bytes[end + 1..])),
        false => Err(damaged(&format!("it says that it is number {}", header.seq))),
    }
}

pub(super) fn damaged(why: &str) -> Error {
    Error::new(Kind::Corrupt, format!("a record of the log in the bucket is damaged: {why}"))
        .hint("restore `.memgrove/log/` in the bucket; the files themselves are plain objects beside it")
}
