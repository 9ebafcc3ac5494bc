//! What the head of the log holds: headers, one to a line, and the body of the last record.

use serde::Deserialize;

use super::service::Memory;
use crate::error::{Error, Kind, Result};

/// The largest piece of a body: what is left of a memory after any header.
const PIECE_BYTES_MAX: usize = 96 * 1024;

/// What the head held when it was last seen.
pub(super) struct Head {
    pub(super) id: String,
    pub(super) sha256: String,
    pub(super) lines: Vec<String>,
    pub(super) body: Body,
}

/// The header and the body of a record.
pub(super) type Record = (String, Body);

#[derive(Clone)]
pub(super) enum Body {
    Here(String),
    /// In these versions, one after the other.
    Elsewhere(Vec<String>),
}

/// What of a header is needed here.
#[derive(Deserialize)]
pub(super) struct Numbered {
    pub(super) seq: u64,
    /// The paths of the memories that hold it, if it is too large.
    #[serde(default)]
    pub(super) within: Vec<String>,
}

pub(super) fn numbered(line: &str) -> Result<Numbered> {
    serde_json::from_str(line).map_err(|error| spoiled(&error.to_string()))
}

pub(super) fn number(line: &str) -> Result<u64> {
    Ok(numbered(line)?.seq)
}

pub(super) fn spoiled(why: &str) -> Error {
    Error::new(Kind::Corrupt, format!("the log of the memory store cannot be read: {why}")).hint(
        "restore `/.memgrove/log/head` from its versions, or delete it: the files then begin a new history",
    )
}

/// Cuts a text into pieces that each fit into a memory.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = (0..=PIECE_BYTES_MAX.min(rest.len())).rev().find(|end| rest.is_char_boundary(*end))?;
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The headers and the body in the content of a head.
pub(super) fn parse(content: &str) -> Result<(Vec<String>, Body)> {
    let mut lines = Vec::new();
    let mut rest = content;
    loop {
        let (line, after) = rest.split_once('\n').ok_or_else(|| spoiled("it has no end"))?;
        rest = after;
        if line.is_empty() {
            break Ok((lines, Body::Here(rest.to_owned())));
        }
        if let Some(versions) = line.strip_prefix('@') {
            break Ok((lines, Body::Elsewhere(versions.split(' ').map(str::to_owned).collect())));
        }
        lines.push(line.to_owned());
    }
}

impl Head {
    pub(super) fn of(memory: &Memory) -> Result<Head> {
        let content = memory.content.as_deref().ok_or_else(|| spoiled("it has no content"))?;
        let (lines, body) = parse(content)?;
        let (id, sha256) = (memory.id.clone(), memory.content_sha256.clone());
        Ok(Head { id, sha256, lines, body })
    }

    /// The number of the last record.
    pub(super) fn seq(&self) -> Result<u64> {
        number(self.lines.last().ok_or_else(|| spoiled("it has no record"))?)
    }
}
