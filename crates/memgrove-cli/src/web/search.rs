//! The search page: hits as one types, dated, with what they cost.

use axum::response::Response;
use maud::{Markup, html};
use memgrove::Result;
use memgrove::address::Scheme;
use serde::Deserialize;

use super::frame::{Frame, Live, base, dated, url};
use super::lookup::{Found, Hit, lookup, words};
use super::{browse, timeline, told};
use crate::http::Call;

/// The most recent changes that are shown before anything is searched for.
const RECENT: usize = 8;

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    q: String,
}

/// The page.
pub(super) async fn page(call: Call) -> Result<Response> {
    let Asked { q } = call.query()?;
    let results = if q.trim().is_empty() { welcome(&call).await? } else { found(&call, &q).await? };
    let title = if q.is_empty() { "memgrove".to_owned() } else { format!("{q} · Search") };
    let body = html! {
        h1.hidden { "Search" }
        div #results { (results) }
    };
    let live = if q.is_empty() { Live::Anew } else { Live::Tell };
    let frame = Frame { title: &title, tab: "/", query: &q, live, script: Some("/web/search.js") };
    Ok(frame.around(&call, &body))
}

/// The hits alone, for the page that asks as one types.
pub(super) async fn hits(call: Call) -> Result<Response> {
    let Asked { q } = call.query()?;
    let results = if q.trim().is_empty() { welcome(&call).await? } else { found(&call, &q).await? };
    Ok(told(html! { div #results { (results) } }))
}

/// What is there before anything is searched for.
async fn welcome(call: &Call) -> Result<Markup> {
    let counts = browse::counts(call).await?;
    let changes = timeline::changes(call, String::new(), RECENT).await?;
    Ok(html! {
        (browse::cards(call, &counts))
        @if changes.past.is_empty() {
            p.empty {
                "Nothing is remembered yet. Whatever an agent or a person writes appears here at once."
            }
        } @else {
            h2 { "Lately" }
            (timeline::rows(call, &changes))
        }
    })
}

async fn found(call: &Call, query: &str) -> Result<Markup> {
    let asked = query.to_owned();
    let Found { hits, total } = call.work(move |cx| lookup(cx, &asked)).await?;
    let words = words(query);
    let tokens: usize = hits.iter().map(|hit| hit.tokens).sum();
    let base = base(call);
    Ok(html! {
        p.count role="status" {
            @match total {
                0 => { "Nothing found." }
                1 => { "1 hit" }
                total => { (total) " hits" }
            }
            @if total > hits.len() { ", the best " (hits.len()) " shown" }
            @if total > 0 { span.dim { " · about " (tokens) " tokens to read them all" } }
        }
        ol.hits { @for hit in &hits { (one(&base, hit, &words)) } }
        @if total == 0 {
            p.dim { "Try fewer words, or " a href=(url(call, "/browse", &[])) { "browse" } "." }
        }
    })
}

fn one(base: &str, hit: &Hit, words: &[String]) -> Markup {
    let name = if Scheme::Record.of(&hit.at).is_some() { "address" } else { "at" };
    let to = super::frame::at_base(base, "/read", &[(name, &hit.at)]);
    html! {
        li.hit data-item="" {
            a.title href=(to) { (marked(&hit.title, words)) }
            @for said in &hit.said { p { (marked(said, words)) } }
            p.facts {
                span.kind { (hit.kind) }
                (dated(&hit.date))
                span { "≈ " (hit.tokens) " tokens" }
                code { (hit.at) }
            }
        }
    }
}

/// A text with the words marked.
fn marked(text: &str, words: &[String]) -> Markup {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let lower: Vec<String> = chars.iter().map(|(_, c)| c.to_lowercase().collect()).collect();
    let mut lit = vec![false; chars.len()];
    for word in words.iter().filter(|word| !word.is_empty()) {
        for start in 0..chars.len() {
            let mut rest = word.as_str();
            let mut end = start;
            while let Some(after) = lower.get(end).and_then(|c| rest.strip_prefix(c.as_str())) {
                (rest, end) = (after, end + 1);
                if rest.is_empty() {
                    lit[start..end].fill(true);
                    break;
                }
            }
        }
    }
    let mut parts: Vec<(bool, String)> = Vec::new();
    for ((_, c), lit) in chars.iter().zip(lit) {
        match parts.last_mut() {
            Some((same, part)) if *same == lit => part.push(*c),
            _ => parts.push((lit, c.to_string())),
        }
    }
    html! { @for (lit, part) in &parts { @if *lit { mark { (part) } } @else { (part) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_marked_whatever_their_case() {
        let check = |text: &str, query: &str, expected: &str| {
            assert_eq!(marked(text, &words(query)).into_string(), expected);
        };
        check("Alice likes <tea>", "ALICE tea", "<mark>Alice</mark> likes &lt;<mark>tea</mark>&gt;");
        check("aaa", "aa", "<mark>aaa</mark>");
        check("İstanbul", "istanbul", "İstanbul");
        check("no match", "x", "no match");
    }
}
