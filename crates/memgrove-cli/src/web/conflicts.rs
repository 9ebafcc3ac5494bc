//! What two machines have changed at once: conflict copies, each with buttons to merge it, and what only a
//! person can settle.

use axum::response::Response;
use maud::{Markup, html};
use memgrove::shapes::merging::{self, Conflict, Side};
use memgrove::{Kind, Locator, Result};
use serde::Deserialize;

use super::edit::sent;
use super::frame::{Frame, done, may_write, sentence, url};
use super::{led_to, place};
use crate::context::Guard;
use crate::http::Call;

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
    let found = call.work(|cx| merging::find(cx.with_copies()?.store())).await?;
    let body = html! {
        (done(&said))
        @if !left.is_empty() {
            p.warning role="status" {
                "Both sides of " code { (left) } " changed the same, or have no common version. Look at both, then take one; the history keeps the other."
            }
        }
        div.heading { h1 { "Conflicts" } }
        @if found.is_empty() { p.well { "No file has been changed by two machines at once." } }
        ul.findings { @for conflict in &found { (one(&call, conflict)) } }
    };
    let frame = Frame { title: "Conflicts", tab: "/doctor", ..Frame::default() };
    Ok(frame.around(&call, &body))
}

fn one(call: &Call, conflict: &Conflict) -> Markup {
    let link = |at: &str| {
        html! {
            @match place::located(at) {
                Ok(_) => { a href=(url(call, "/read", &[("at", at)])) { (at) } }
                Err(_) => { code { (at) } }
            }
        }
    };
    html! {
        @match conflict {
            Conflict::Copy { at, of, base_exists, by } => {
                li data-item="" data-level="warning" {
                    p { span.level { "copy" } " " code { (at) } }
                    p.dim {
                        "Made by " (by) ", of " (link(of))
                        @if !base_exists { ", which is gone" }
                        "."
                    }
                    @if may_write(call) {
                        form.actions method="post" action=(url(call, "/conflicts", &[])) {
                            input type="hidden" name="at" value=(at);
                            button.main { "Merge" }
                            button name="take" value="ours" { "Keep the file" }
                            button name="take" value="theirs" { "Take the copy" }
                        }
                    }
                }
            }
            Conflict::Perhaps { at, of, by } => {
                li data-item="" data-level="info" {
                    p { span.level { "perhaps" } " " (link(at)) }
                    p.dim { "It is named like a copy of " (link(of)) " by " (by) ", or is a file of its own." }
                    @if may_write(call) {
                        form.actions method="post" action=(url(call, "/conflicts", &[])) {
                            input type="hidden" name="at" value=(at);
                            button name="take" value="ours" { "Keep the file" }
                            button name="take" value="theirs" { "Take the copy" }
                        }
                    }
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
