//! What is wrong with the store, and mending it.

use axum::response::Response;
use maud::{Markup, html};
use memgrove::Result;
use serde::Deserialize;
use serde_json::{Value, json};

use super::frame::{Frame, done, may_write, sentence, url};
use super::{led_to, place};
use crate::http::Call;

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
                    button.main { "Mend what is safe to mend" }
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
        ul.findings { @for finding in findings { (one(&call, finding)) } }
    };
    let frame = Frame { title: "Health", tab: "/doctor", ..Frame::default() };
    Ok(frame.around(&call, &body))
}

fn one(call: &Call, finding: &Value) -> Markup {
    let text = |name: &str| finding[name].as_str().unwrap_or_default();
    let at = text("at");
    html! {
        li data-item="" data-level=(text("level")) {
            p { span.level { (text("level")) } " " (sentence(text("what"))) }
            p.dim { (sentence(text("hint"))) }
            p.facts {
                @match place::located(at) {
                    Ok(_) => {
                        a href=(url(call, "/read", &[("at", at)])) { (at) } a href=(url(call, "/history", &[("at", at)])) {
                            "history"
                        }
                    }
                    Err(_) => { code { (at) } }
                }
            }
        }
    }
}

/// Mends what is safe to mend.
pub(super) async fn mend(call: Call) -> Result<Response> {
    call.verb("doctor", json!({"fix": true})).await?;
    led_to(&url(&call, "/doctor", &[("done", "mended")]))
}
