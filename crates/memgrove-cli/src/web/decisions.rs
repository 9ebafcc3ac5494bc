//! What agents decided about notes, and why: the log beside them, newest first.

use axum::response::Response;
use maud::{Markup, html};
use memgrove::Result;
use memgrove::shapes::notes::Decision;
use serde_json::json;

use super::frame::{Frame, Live, dated, url};
use crate::http::Call;

/// How many are shown.
const SHOWN_MAX: usize = 200;

/// The page.
pub(super) async fn page(call: Call) -> Result<Response> {
    let (decisions, damaged) = call.work(|cx| cx.reading_notes()?.decisions()).await?;
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

fn one(call: &Call, decision: &Decision) -> Markup {
    let note = |path: &str| url(call, "/read", &[("at", &format!("notes/{path}.md"))]);
    let spent = json!(decision.spent);
    html! {
        li data-item="" {
            div.what {
                strong { (decision.what) } " " a href=(note(&decision.path)) { (decision.path) }
                " by " span.who data-origin="agent" { (decision.agent) }
                @if let Some(strategy) = decision.strategy { " " span.tag { (strategy.name()) } }
            }
            p { (decision.reason) }
            @if !decision.parts.is_empty() {
                ul.edits {
                    @for part in &decision.parts {
                        li { a href=(note(&part.path)) { (part.path) } span.dim { " " (part.blocks) " blocks" } }
                    }
                }
            }
            @if let Some(refused) = &decision.refused {
                p.warning { "Refused the answer of " (refused.agent) ": " (refused.reason) }
            }
            div.facts {
                (dated(&decision.time))
                @for (name, value) in spent.as_object().into_iter().flatten().filter(|(_, value)| *value != 0) {
                    span { (name.replace('_', " ")) " " (value) }
                }
            }
        }
    }
}
