//! The search page: hits while one types, with dates and with what they cost.

use axum::response::Response;
use maud::{Markup, html};
use memgrove::Result;
use memgrove::address::Scheme;
use memgrove::index::analysis::{folded, is_east_asian};
use memgrove::index::sought;
use serde::Deserialize;

use super::frame::{Frame, Live, base, dated, sentence, url, with_code};
use super::lookup::{Found, Hit, lookup};
use super::{browse, timeline, told};
use crate::http::Call;
use crate::page::counted;

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

/// The hits alone, for the page that asks while one types.
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
    let Found { hits, total, problem } = call.work(move |cx| lookup(cx, &asked)).await?;
    let words = sought(query);
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
            @if total > 0 { span.dim { " · about " (counted(tokens, "token", "tokens")) " to read them all" } }
        }
        ol.hits { @for hit in &hits { (one(&base, hit, &words)) } }
        @if let Some(problem) = problem {
            p.dim { (with_code(&sentence(problem.message()))) " " (with_code(&sentence(problem.hint_text().unwrap_or_default()))) }
        } @else if total == 0 {
            p.dim { "Try fewer words, or " a href=(url(call, "/browse", &[])) { "browse" } "." }
        }
    })
}

fn one(base: &str, hit: &Hit, words: &[String]) -> Markup {
    let name = if Scheme::Record.of(&hit.at).is_some() { "address" } else { "at" };
    let to = super::frame::at_base(base, "/read", &[(name, &hit.at)]);
    html! {
        li.hit data-item="" {
            a.title dir="auto" href=(to) { (marked(&hit.title, words)) }
            @for said in &hit.said { p dir="auto" { (marked(said, words)) } }
            p.facts {
                span.kind { (hit.kind) }
                (dated(&hit.date))
                span { "≈ " (counted(hit.tokens, "token", "tokens")) }
                code { (hit.at) }
            }
        }
    }
}

/// A text with the words marked wherever one of its words begins with them, regardless of case and accents,
/// as the index compares them.
fn marked(text: &str, words: &[String]) -> Markup {
    let chars: Vec<char> = text.chars().collect();
    let plain: Vec<String> = chars.iter().map(|c| folded(c.encode_utf8(&mut [0; 4]))).collect();
    let mut lit = vec![false; chars.len()];
    for word in words {
        for start in (0..chars.len()).filter(|start| is_beginning(&chars, *start)) {
            let (mut rest, mut end) = (word.as_str(), start);
            while let Some(after) = plain.get(end).and_then(|c| rest.strip_prefix(c.as_str())) {
                (rest, end) = (after, end + 1);
                if rest.is_empty() {
                    // A combining accent belongs to its letter.
                    end += plain[end..].iter().take_while(|c| c.is_empty()).count();
                    lit[start..end].fill(true);
                    break;
                }
            }
        }
    }
    let mut parts: Vec<(bool, String)> = Vec::new();
    for (c, lit) in chars.iter().zip(lit) {
        match parts.last_mut() {
            Some((same, part)) if *same == lit => part.push(*c),
            _ => parts.push((lit, c.to_string())),
        }
    }
    html! { @for (lit, part) in &parts { @if *lit { mark { (part) } } @else { (part) } } }
}

/// Whether a word, or a part of one that the index knows, may begin here.
fn is_beginning(chars: &[char], at: usize) -> bool {
    let here = chars[at];
    at.checked_sub(1).map(|before| chars[before]).is_none_or(|before| {
        !before.is_alphanumeric()
            || is_east_asian(here)
            || (before.is_lowercase() && here.is_uppercase())
            || before.is_numeric() != here.is_numeric()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_marked_whatever_their_case() {
        let check = |text: &str, query: &str, expected: &str| {
            assert_eq!(marked(text, &sought(query)).into_string(), expected, "{query}");
        };
        check("Alice likes <tea>", "ALICE tea", "<mark>Alice</mark> likes &lt;<mark>tea</mark>&gt;");
        check("İstanbul", "istanbul", "<mark>İstanbul</mark>");
        check("no match", "x", "no match");
        check("a cat at sea", "a", "<mark>a</mark> cat <mark>a</mark>t sea");
        check("the tea", "\"The TEA\" shape:records -cake", "the <mark>tea</mark>");
        check("cake, cupcake", "cak* in:files", "<mark>cak</mark>e, cupcake");
        check(
            "Cafe\u{301} Café CAFE",
            "café",
            "<mark>Cafe\u{301}</mark> <mark>Café</mark> <mark>CAFE</mark>",
        );
        check("parseHttpHeader node7", "http 7", "parse<mark>Http</mark>Header node<mark>7</mark>");
        check("東京都", "京都", "東<mark>京都</mark>");
    }
}
