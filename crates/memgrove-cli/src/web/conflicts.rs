//! What two machines changed at once: conflict copies with buttons to merge them, and what only a person can
//! settle.

use axum::response::Response;
use maud::{Markup, html};
use memgrove::backend::{Content, Version};
use memgrove::error::code;
use memgrove::locator::copies::Family;
use memgrove::shapes::merging::{self, Conflict, Side};
use memgrove::{Kind, Locator, Result};
use serde::Deserialize;

use super::compare::{Sides, side_by_side};
use super::edit::sent;
use super::frame::{Frame, Live, done, may_write, sentence, url};
use super::{led_to, place};
use crate::context::{Context, Guard};
use crate::http::Call;

/// The largest texts that are compared on the page.
const TEXT_BYTES_MAX: usize = 256 * 1024;

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    done: String,
    /// The copy that could not be merged.
    #[serde(default)]
    left: String,
    /// The copy that had changed since it was looked at, or whose file had.
    #[serde(default)]
    changed: String,
}

/// The page.
pub(super) async fn page(call: Call) -> Result<Response> {
    let Asked { done: said, left, changed } = call.query()?;
    let found = call.work(found).await?;
    let body = html! {
        (done(&said))
        @if !left.is_empty() {
            p.warning role="status" {
                "Both sides of " code { (left) } " changed the same, or have no common version. Look at both, then take one; the history keeps the other."
            }
        }
        @if !changed.is_empty() {
            p.warning role="status" {
                code { (changed) } " or its file was changed since you looked, so nothing was done. Look at both again."
            }
        }
        div.heading { h1 { "Conflicts" } }
        @if found.is_empty() { p.well { "No file has been changed by two machines at once." } }
        ul.findings { @for found in &found { (one(&call, found)) } }
    };
    let frame = Frame { title: "Conflicts", tab: "/doctor", live: Live::Tell, ..Frame::default() };
    Ok(frame.around(&call, &body))
}

/// A conflict with what can be shown of it.
struct Found {
    conflict: Conflict,
    /// The file and its copy, where both are texts.
    texts: Option<(String, String)>,
    /// The versions of the copy and of its file.
    seen: [Option<Version>; 2],
    /// Whether the copy has a page of its own as a memory.
    is_memory: bool,
}

fn found(cx: &Context) -> Result<Vec<Found>> {
    let (all, memories) = (cx.with_copies()?, cx.reading()?);
    let read = |at: &str| all.store().read_bytes(&Locator::new(at).ok()?).ok();
    let text = |content: &Content| match content.bytes.len() <= TEXT_BYTES_MAX {
        true => String::from_utf8(content.bytes.clone()).ok(),
        false => None,
    };
    let shown = |conflict: Conflict| {
        let (at, of) = match &conflict {
            Conflict::Copy { at, of, .. } | Conflict::Perhaps { at, of, .. } => (at, of),
            _ => return Found { conflict, texts: None, seen: [None, None], is_memory: true },
        };
        let (copy, file) = (read(at), read(of));
        let is_copy = matches!(conflict, Conflict::Copy { .. });
        let is_memory =
            !is_copy || place::located(at).is_ok_and(|at| memories.store().exists(&at).unwrap_or(false));
        let texts = file.as_ref().and_then(text).zip(copy.as_ref().and_then(text)).filter(|_| is_copy);
        let seen = [copy, file].map(|content| content.map(|content| content.version));
        Found { conflict, texts, seen, is_memory }
    };
    Ok(merging::find(all.store())?.into_iter().map(shown).collect())
}

fn one(call: &Call, Found { conflict, texts, seen, is_memory }: &Found) -> Markup {
    let link = |at: &str| {
        html! {
            @match place::located(at) {
                Ok(_) if *is_memory => { a href=(url(call, "/read", &[("at", at)])) { (at) } }
                _ => { code { (at) } }
            }
        }
    };
    html! {
        @match conflict {
            Conflict::Copy { at, of, by, .. } if *by == Family::CaseClash.name() => {
                li data-item="" data-level="warning" {
                    p { span.level { "name" } " " (link(at)) }
                    p.dim {
                        "It is not a copy, but another file: its name differed from " code { (of) }
                        " in case alone. Give it a name of its own, or delete it."
                    }
                }
            }
            Conflict::Copy { at, of, base_exists, by } => {
                li data-item="" data-level="warning" {
                    p { span.level { "copy" } " " (link(at)) }
                    p.dim {
                        "Made by " (by) ", of " (link(of))
                        @if !base_exists { ", which is gone" }
                        "."
                    }
                    @if let Some((ours, theirs)) = texts {
                        details {
                            summary { "Compare" }
                            (side_by_side(ours, theirs, &Sides { left: "The file", right: "The copy" }))
                        }
                    }
                    (choices(call, at, of, seen, true))
                }
            }
            Conflict::Perhaps { at, of, by } => {
                li data-item="" data-level="info" {
                    p { span.level { "perhaps" } " " (link(at)) }
                    p.dim { "It is named like a copy of " (link(of)) " by " (by) ", or is a file of its own." }
                    (choices(call, at, of, seen, false))
                }
            }
            Conflict::Markers { at, lines } => {
                li data-item="" data-level="warning" {
                    p { span.level { "markers" } " " (link(at)) }
                    p.dim { "It has git's conflict markers, from line " (numbers(lines)) ". Settle them by hand." }
                }
            }
            Conflict::Placeholder { at, of } => {
                li data-item="" data-level="info" {
                    p { span.level { "away" } " " code { (at) } }
                    p.dim { (sentence(&format!("{of} is not on this machine; open it in the sync tool to fetch it"))) }
                }
            }
        }
    }
}

/// The choices for a copy: take one of the two, or merge both where that is known to be right.
fn choices(call: &Call, at: &str, of: &str, seen: &[Option<Version>; 2], merge: bool) -> Markup {
    let [copy, file] = seen.each_ref().map(|seen| seen.as_ref().map_or("", Version::as_str));
    html! {
        @if may_write(call) {
            form.actions method="post" action=(url(call, "/conflicts", &[])) {
                input type="hidden" name="at" value=(at);
                input type="hidden" name="of" value=(of);
                input type="hidden" name="copy" value=(copy);
                input type="hidden" name="file" value=(file);
                @if merge { button.main { "Merge" } }
                button name="take" value="ours" { "Keep the file" }
                button name="take" value="theirs" { "Take the copy" }
            }
        }
    }
}

fn numbers(lines: &[usize]) -> String {
    lines.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

#[derive(Deserialize)]
struct Chosen {
    at: String,
    of: String,
    /// The versions of both that were looked at; none of a file that was gone.
    copy: String,
    file: String,
    take: Option<String>,
}

/// Merges a copy into its file, or takes one of the two, if both are still what was seen.
pub(super) async fn merge(call: Call) -> Result<Response> {
    let Chosen { at, of, copy, file, take } = sent(&call).await?;
    let side = match take.as_deref() {
        Some("ours") => Some(Side::Ours),
        Some("theirs") => Some(Side::Theirs),
        _ => None,
    };
    let place = at.clone();
    let merged = call.work(move |cx| {
        cx.may_write()?;
        let note = cx.note("conflicts_merge", &Guard::default());
        let version = |seen: String| Some(seen).filter(|seen| !seen.is_empty()).map(Version::new);
        let at = Locator::new(&place)?;
        let seen = [(at.clone(), version(copy)), (Locator::new(&of)?, version(file))];
        merging::merge_seen(&cx.with_copies()?, note, &at, side, &seen).map(drop)
    });
    let said = match merged.await {
        Ok(()) => ("done", "merged"),
        Err(error) if error.code_name() == Some(code::VERSION_MISMATCH) => ("changed", at.as_str()),
        Err(error) if error.kind() == Kind::Conflict => ("left", at.as_str()),
        Err(error) => return Err(error),
    };
    led_to(&url(&call, "/conflicts", &[said]))
}
