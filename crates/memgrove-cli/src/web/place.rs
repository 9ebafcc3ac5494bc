//! Which memory a page is about: by its place in the store, by its address, or by a link to it.

use memgrove::address::Scheme;
use memgrove::backend::FileKind;
use memgrove::text::links::joined;
use memgrove::{Error, Kind, Locator, Result};
use serde::Deserialize;

use super::browse;
use crate::address::memory_at;
use crate::context::Context;
use crate::mcp::percent_decoded;

/// Names the memory that a page is about, in one of three ways.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Which {
    /// The place in the store.
    pub(super) at: String,
    /// The address, as verbs give it.
    pub(super) address: String,
    /// What a link says.
    pub(super) link: String,
    /// The place of the link.
    pub(super) from: String,
}

/// What was meant.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meant {
    /// A file.
    File(Locator),
    /// A folder.
    Folder(Locator),
    /// A record, by its id.
    Record(String),
}

impl Which {
    /// Whether nothing is named.
    pub(super) fn is_none(&self) -> bool {
        [&self.at, &self.address, &self.link].iter().all(|named| named.is_empty())
    }

    /// What is meant.
    ///
    /// # Errors
    /// `NotFound` for what is not there; `Invalid` for what can be no memory.
    pub(super) fn meant(&self, cx: &Context) -> Result<Meant> {
        let named = if self.address.is_empty() { &self.link } else { &self.address };
        if let Some(id) = Scheme::Record.of(named) {
            return Ok(Meant::Record(id.to_owned()));
        }
        let at = match (self.at.as_str(), self.address.as_str(), self.link.as_str()) {
            ("", "", link) => linked(cx, link, &self.from)?,
            ("", address, _) => addressed(cx, address)?,
            (at, ..) => located(at)?,
        };
        match cx.reading()?.store().info_optional(&at)? {
            Some(info) if info.kind == FileKind::Folder => Ok(Meant::Folder(at)),
            _ => Ok(Meant::File(at)),
        }
    }
}

/// The place with this name in the store, if it is in a folder that holds memories.
///
/// # Errors
/// `NotFound` for any other.
pub(super) fn located(at: &str) -> Result<Locator> {
    let place = Locator::new(at)?;
    match browse::shape_of(&place) {
        Some(_) => Ok(place),
        None => {
            Err(Error::new(Kind::NotFound, format!("`{}` is not a place for memories", at.escape_debug()))
                .hint("choose one from the pages under Browse"))
        }
    }
}

/// The place with this name in the store, or with this name among agents.
///
/// # Errors
/// As [`memory_at`].
pub(super) fn addressed(cx: &Context, address: &str) -> Result<Locator> {
    // What is not in `files` is named by its place.
    located(address).or_else(|_| memory_at(cx, address))
}

/// What a link leads to: an address, a path beside the linking memory, a note, a node, a connection, an
/// entity.
fn linked(cx: &Context, link: &str, from: &str) -> Result<Locator> {
    let link = link.split('#').next().unwrap_or_default().trim();
    if Scheme::split(link).is_some() {
        return memory_at(cx, link);
    }
    let memory = cx.reading()?;
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let root = from.split('/').next().unwrap_or_default();
    // Markdown links may be percent-encoded.
    let spelled = percent_decoded(link).filter(|spelled| spelled != link);
    let folders = [folder, root, "notes", "files", "graph/_content/nodes", ""];
    let paths = folders.iter().flat_map(|folder| {
        [Some(link), spelled.as_deref()].into_iter().flatten().filter_map(|link| joined(folder, link))
    });
    for path in paths {
        for end in ["", ".md"] {
            let Ok(at) = located(&format!("{path}{end}")) else { continue };
            if memory.store().info_optional(&at)?.is_some_and(|info| info.kind == FileKind::File) {
                return Ok(at);
            }
        }
    }
    let notes = cx.reading_notes()?;
    let here = Locator::new(from).ok().and_then(|at| notes.path_of(&at)).unwrap_or_default();
    if let Some(path) = notes.linked(link.trim_end_matches(".md"), &here)? {
        return notes.locate(&path);
    }
    if let Some(loaded) = cx.reading_knowledge()?.load(link, None)? {
        return Ok(loaded.path);
    }
    Err(Error::new(Kind::NotFound, format!("nothing is called `{}`", link.escape_debug()))
        .hint("the link points nowhere yet: write it, or search for it"))
}
