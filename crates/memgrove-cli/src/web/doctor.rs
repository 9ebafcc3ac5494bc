//! What is wrong with the store, and mending it.

use axum::response::Response;
use maud::{Markup, html};
use memgrove::Result;
use serde::Deserialize;
use serde_json::{Value, json};

use super::frame::{Frame, Live, done, may_write, sentence, url, with_code};
use super::{led_to, place};
use crate::http::Call;
use crate::page::counted;

/// How many places of the same finding are named.
const PLACES_MAX: usize = 12;

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    done: String,
}

/// The page.
pub(super) async fn page(call: Call) -> Result<Response> {
    let Asked { done: said } = call.query()?;
    let answer = call.verb("doctor", json!({})).await?.json();
    let findings = answer["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let backend = &answer["selection"];
    let body = html! {
        (done(&said))
        div.heading {
            h1 { "Health" }
            @if may_write(&call) {
                form.actions method="post" action=(url(&call, "/doctor", &[])) {
                    button.main { "Fix what is safe to fix" }
                }
            }
        }
        p.facts {
            code { (answer["store"].as_str().unwrap_or_default()) }
            span { (answer["found"].as_str().unwrap_or_default()) }
            @if let Some(name) = backend["backend"].as_str() { span { "backend " (name) } }
            a href=(url(&call, "/conflicts", &[])) { "conflicts" }
        }
        @if let Some(problem) = backend["problem"].as_str() { p.warning { (sentence(problem)) } }
        @if findings.is_empty() { p.well { "All is well." } }
        ul.findings { @for group in grouped(findings) { (one(&call, &group)) } }
    };
    let frame = Frame { title: "Health", tab: "/doctor", live: Live::Tell, ..Frame::default() };
    Ok(frame.around(&call, &body))
}

/// Findings that say the same of several places.
struct Group<'a> {
    level: &'a str,
    what: &'a str,
    hint: &'a str,
    places: Vec<&'a str>,
}

/// What was found, the worst first, each thing once.
fn grouped(findings: &[Value]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for finding in findings {
        let text = |name: &str| finding[name].as_str().unwrap_or_default();
        let (level, what, hint, at) = (text("level"), text("what"), text("hint"), text("at"));
        match groups.iter_mut().find(|group| (group.level, group.what, group.hint) == (level, what, hint)) {
            Some(group) => group.places.push(at),
            None => groups.push(Group { level, what, hint, places: vec![at] }),
        }
    }
    let order = |level: &str| ["error", "warning", "info"].iter().position(|one| *one == level);
    groups.sort_by_key(|group| order(group.level));
    groups
}

fn one(call: &Call, group: &Group<'_>) -> Markup {
    let more = group.places.len().saturating_sub(PLACES_MAX);
    html! {
        li data-item="" data-level=(group.level) {
            p { span.level { (group.level) } " " (with_code(&sentence(group.what))) }
            p.dim { (with_code(&sentence(group.hint))) }
            p.facts {
                @for at in group.places.iter().take(PLACES_MAX) {
                    @match place::located(at) {
                        Ok(_) => { a href=(url(call, "/read", &[("at", at)])) { (at) } }
                        Err(_) => { code { (at) } }
                    }
                }
                @if more > 0 { span { "and " (counted(more, "other place", "other places")) } }
            }
        }
    }
}

/// Mends what is safe to mend.
pub(super) async fn mend(call: Call) -> Result<Response> {
    let answer = call.verb("doctor", json!({"fix": true})).await?.json();
    let lists = ["mended_records", "mended_notes"].iter().filter_map(|name| answer[name].as_array());
    let count = answer["mended"].as_u64().unwrap_or_default() as usize + lists.map(Vec::len).sum::<usize>();
    let said = if count > 0 { "mended" } else { "unmended" };
    led_to(&url(&call, "/doctor", &[("done", said)]))
}
