//! What two machines have changed at once: conflict copies, each with buttons to merge it, and what only a
//! person can settle.

use axum::response::Response;
use maud::{Markup, html};
use memgrove::locator::copies::Family;
use memgrove::shapes::merging::{self, Conflict, Side};
use memgrove::{Kind, Locator, Result};
use serde::Deserialize;

use super::compare::{Sides, side_by_side};
use super::edit::sent;
use super::frame::{Frame, done, may_write, sentence, url};
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
}

/// The page.
pub(super) async fn page(call: Call) -> Result<Response> {
    let Asked { done: said, left } = call.query()?;
    let found = call.work(found).await?;
    let body = html! {
        (done(&said))
        @if !left.is_empty() {
            p.warning role="status" {
                "Both sides of " code { (left) } " changed the same, or have no common version. Look at both, then take one; the history keeps the other."
            }
        }
        div.heading { h1 { "Conflicts" } }
        @if found.is_empty() { p.well { "No file has been changed by two machines at once." } }
        ul.findings { @for found in &found { (one(&call, found)) } }
    };
    let frame = Frame { title: "Conflicts", tab: "/doctor", ..Frame::default() };
    Ok(frame.around(&call, &body))
}

/// A conflict with what can be shown of it.
struct Found {
    conflict: Conflict,
    /// The file and its copy, where both are texts.
    texts: Option<(String, String)>,
    /// Whether the copy can be read as a memory, and not only merged.
    is_memory: bool,
}

fn found(cx: &Context) -> Result<Vec<Found>> {
    let (all, memories) = (cx.with_copies()?, cx.reading()?);
    let text =
        |at: &str| all.store().read(&Locator::new(at).ok()?).ok().filter(|text| text.len() <= TEXT_BYTES_MAX);
    let shown = |conflict: Conflict| {
        let (texts, is_memory) = match &conflict {
            Conflict::Copy { at, of, .. } => {
                let is_memory =
                    place::located(at).is_ok_and(|at| memories.store().exists(&at).unwrap_or(false));
                (text(of).zip(text(at)), is_memory)
            }
            _ => (None, true),
        };
        Found { conflict, texts, is_memory }
    };
    Ok(merging::find(all.store())?.into_iter().map(shown).collect())
}

fn one(call: &Call, Found { conflict, texts, is_memory }: &Found) -> Markup {
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
                        "It is no copy, but another file: its name differed from " code { (of) }
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
                    (choices(call, at, true))
                }
            }
            Conflict::Perhaps { at, of, by } => {
                li data-item="" data-level="info" {
                    p { span.level { "perhaps" } " " (link(at)) }
                    p.dim { "It is named like a copy of " (link(of)) " by " (by) ", or is a file of its own." }
                    (choices(call, at, false))
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

/// What may be done about a copy: one of the two is taken, or both are merged where that is known to be right.
fn choices(call: &Call, at: &str, merge: bool) -> Markup {
    html! {
        @if may_write(call) {
            form.actions method="post" action=(url(call, "/conflicts", &[])) {
                input type="hidden" name="at" value=(at);
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
    take: Option<String>,
}

/// Merges a copy into its file, or takes one of the two.
pub(super) async fn merge(call: Call) -> Result<Response> {
    let Chosen { at, take } = sent(&call).await?;
    let side = match take.as_deref() {
        Some("ours") => Some(Side::Ours),
        Some("theirs") => Some(Side::Theirs),
        _ => None,
    };
    let copy = at.clone();
    let merged = call
        .work(move |cx| {
            cx.may_write()?;
            let note = cx.note("conflicts_merge", &Guard::default());
            match merging::merge_copy(&cx.with_copies()?, note, &Locator::new(&copy)?, side) {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == Kind::Conflict => Ok(false),
                Err(error) => Err(error),
            }
        })
        .await?;
    let said = if merged { [("done", "merged")] } else { [("left", at.as_str())] };
    led_to(&url(&call, "/conflicts", &said))
}
