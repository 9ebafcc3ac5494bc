//! What agents decided about notes, and why: the log beside them, newest first.

use axum::response::Response;
use maud::{Markup, html};
use memgrove::{Locator, Result};
use serde_json::Value;

use super::frame::{Frame, Live, dated, url};
use crate::http::Call;

/// The log of decisions.
const LOG: &str = "notes/.metadata/decisions.jsonl";
/// How many are shown.
const SHOWN_MAX: usize = 200;

/// The page.
pub(super) async fn page(call: Call) -> Result<Response> {
    let bytes = call
        .work(|cx| Ok(cx.reading()?.store().read_optional(&Locator::new(LOG)?)?.map(|content| content.bytes)))
        .await?
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let decisions: Vec<Value> =
        lines.iter().rev().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let damaged = lines.len() - decisions.len();
    let body = html! {
        div.heading { h1 { "Decisions" } p.facts { (decisions.len()) } }
        @if decisions.is_empty() {
            p.empty {
                "No agent has decided anything yet: where notes are placed, split and merged, the reasons appear here."
            }
        }
        @if damaged > 0 { p.warning { (damaged) " lines of the log cannot be read; they are kept." } }
        ol.changes { @for decision in decisions.iter().take(SHOWN_MAX) { (one(&call, decision)) } }
    };
    let frame = Frame { title: "Decisions", tab: "/decisions", live: Live::Anew, ..Frame::default() };
    Ok(frame.around(&call, &body))
}

fn one(call: &Call, decision: &Value) -> Markup {
    let text = |name: &str| decision[name].as_str().unwrap_or_default();
    let note = |path: &str| url(call, "/read", &[("at", &format!("notes/{path}.md"))]);
    let parts = decision["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let spent = decision["spent"].as_object();
    html! {
        li data-item="" {
            div.what {
                strong { (text("what")) } " " a href=(note(text("path"))) { (text("path")) }
                " by " span.who data-origin="agent" { (text("agent")) }
                @if let Some(strategy) = decision["strategy"].as_str() { " " span.tag { (strategy) } }
            }
            p { (text("reason")) }
            @if !parts.is_empty() {
                ul.edits {
                    @for part in parts {
                        @let path = part["path"].as_str().unwrap_or_default();
                        li { a href=(note(path)) { (path) } span.dim { " " (part["blocks"]) " blocks" } }
                    }
                }
            }
            @if let Some(refused) = decision["refused"].as_object() {
                p.warning {
                    "Refused the answer of " (refused.get("agent").and_then(Value::as_str).unwrap_or("an agent")) ": "
                    (refused.get("reason").and_then(Value::as_str).unwrap_or_default())
                }
            }
            div.facts {
                (dated(text("time")))
                @for (name, value) in spent.into_iter().flatten() {
                    span { (name.replace('_', " ")) " " (value) }
                }
            }
        }
    }
}
