//! One memory, to be read.

use std::borrow::Cow;

use axum::response::Response;
use maud::{Markup, html};
use memgrove::address::Scheme;
use memgrove::backend::{Content, Info};
use memgrove::{Kind, Locator, Result};
use serde::Deserialize;

use super::browse::{crumbs, shape_of};
use super::entities;
use super::frame::{Frame, Live, at_base, base, dated, done, may_write, moment, url};
use super::led_to;
use super::markdown::{Here, rendered};
use super::nodes;
use super::place::{Meant, Which};
use super::relations;
use crate::address::{address_of, was_ever};
use crate::context::Context;
use crate::http::Call;
use crate::page::counted;
use crate::portion;

/// How much of a text is shown.
const SHOWN_BYTES_MAX: usize = 512 * 1024;

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    done: String,
}

/// A memory with what is known of it.
struct Memory {
    at: Locator,
    address: String,
    info: Info,
    content: Content,
    about: About,
}

/// What is known of a memory beside its text.
enum About {
    Nothing,
    Entity(entities::Around),
    Node(nodes::Around),
}

impl About {
    fn of(cx: &Context, at: &Locator) -> Result<Self> {
        let entity = match at.key().starts_with("knowledge/entities/") {
            true => entities::around(cx, at)?.map(About::Entity),
            false => nodes::around(cx, at)?.map(About::Node),
        };
        Ok(entity.unwrap_or(About::Nothing))
    }

    /// Its relations to others.
    fn relations(&self, call: &Call) -> Markup {
        match self {
            About::Nothing => html! {},
            About::Entity(around) => relations::shown(call, &around.relations, around.total),
            About::Node(around) => relations::shown(call, &around.relations, around.total),
        }
    }
}

/// The file that a page is asked about, or a redirect if it is no file; the page of a record gets `done`.
pub(super) async fn file_meant(call: &Call, done: &str) -> Result<std::result::Result<Locator, Response>> {
    let which: Which = call.query()?;
    let led = match call.work(move |cx| which.meant(cx)).await? {
        Meant::File(at) => return Ok(Ok(at)),
        Meant::Record(id) if done.is_empty() => led_to(&url(call, "/record", &[("id", &id)])),
        Meant::Record(id) => led_to(&url(call, "/record", &[("id", &id), ("done", done)])),
        Meant::Folder(at) => {
            let list = shape_of(&at).map_or("/browse".to_owned(), |shape| format!("/browse/{}", shape.name));
            led_to(&url(call, &list, &[("under", at.key())]))
        }
    };
    led.map(Err)
}

/// The page.
pub(super) async fn page(call: Call) -> Result<Response> {
    let Said { done: said } = call.query()?;
    let at = match file_meant(&call, "").await? {
        Ok(at) => at,
        Err(elsewhere) => return Ok(elsewhere),
    };
    let past = url(&call, "/history", &[("at", at.key())]);
    let memory = call
        .work(move |cx| {
            let store = cx.reading()?;
            let content = match store.store().read_bytes(&at) {
                Err(error) if error.kind() == Kind::NotFound && was_ever(cx, &at)? => return Ok(None),
                content => content?,
            };
            let info = store.store().info(&at)?;
            let about = About::of(cx, &at)?;
            Ok(Some(Memory { address: address_of(cx, &at), at, info, content, about }))
        })
        .await?;
    // A deleted memory can be restored from its history.
    let Some(memory) = memory else { return led_to(&past) };
    let title = memory.title();
    let body = html! {
        (done(&said))
        (crumbs(&call, &memory.at))
        div.heading { h1 dir="auto" { (title) } (memory.actions(&call)) }
        (memory.facts())
        div.columns {
            article dir="auto" {
                @if let About::Node(around) = &memory.about { (around.properties()) }
                (memory.shown(&base(&call)))
            }
            (memory.about.relations(&call))
        }
    };
    let live = match memory.about {
        About::Nothing => Live::Of(memory.address.clone()),
        // What others say of it is shown too.
        _ => Live::Anew,
    };
    let frame = Frame { title: &title, tab: "/browse", live, ..Frame::default() };
    Ok(frame.around(&call, &body))
}

impl Memory {
    fn title(&self) -> String {
        match &self.about {
            About::Entity(around) => around.entity.name.clone(),
            About::Node(around) => nodes::title(&around.node),
            About::Nothing => self.at.name().trim_end_matches(".md").to_owned(),
        }
    }

    fn actions(&self, call: &Call) -> Markup {
        let at = self.at.key();
        let is_text = str::from_utf8(&self.content.bytes).is_ok_and(|text| !text.contains('\0'));
        html! {
            p.actions {
                @if may_write(call) && is_text {
                    a.button href=(url(call, "/edit", &[("at", at)])) data-key="e" { "Edit" }
                }
                a.button href=(url(call, "/history", &[("at", at)])) data-key="h" { "History" }
                @if Scheme::File.of(&self.address).is_some() {
                    a.button href=(url(call, "/api/content", &[("address", &self.address)])) { "Raw" }
                }
            }
        }
    }

    fn facts(&self) -> Markup {
        let text = str::from_utf8(&self.content.bytes).ok();
        html! {
            p.facts {
                @match &self.about {
                    About::Entity(around) => {
                        span.kind { (around.entity.kind) }
                        @for tag in &around.entity.tags { span.tag { "#" (tag) } }
                    }
                    About::Node(around) => { span.kind { (around.node.kind) } code { (around.node.id) } }
                    About::Nothing => {}
                }
                (moment(self.info.mtime))
                span { (portion::size(self.info.size)) }
                @if let Some(text) = text { span { "≈ " (counted(portion::tokens(text), "token", "tokens")) } }
                code { (self.at) }
                span title=(self.content.version) {
                    "version " (crate::verbs::file::short(self.content.version.as_str()))
                }
            }
        }
    }

    fn shown(&self, base: &str) -> Markup {
        let name = self.at.name().to_ascii_lowercase();
        let is_image = [".png", ".jpg", ".jpeg", ".gif", ".webp"].iter().any(|end| name.ends_with(end));
        match str::from_utf8(&self.content.bytes) {
            Err(_) if is_image && Scheme::File.of(&self.address).is_some() => {
                let from = at_base(base, "/api/content", &[("address", &self.address)]);
                html! { img src=(from) alt=(self.at.name()); }
            }
            Err(_) => html! { p.empty { "These bytes are not text." } },
            Ok(text) => {
                let here = Here { base, at: self.at.key() };
                match &self.about {
                    About::Entity(around) => observations(around, &here),
                    About::Node(_) if nodes::is_said_in(&self.at) => html! {},
                    About::Node(_) => text_shown(text, &name, &here),
                    About::Nothing => text_shown(text, &name, &here),
                }
            }
        }
    }
}

/// What is known of an entity.
fn observations(around: &entities::Around, here: &Here<'_>) -> Markup {
    html! {
        ol.observations {
            @for (number, observation) in &around.observed {
                li value=(number) {
                    (rendered(&observation.text, here))
                    p.facts {
                        @if let Some(date) = &observation.facts.date { (dated(date)) }
                        @if let Some(source) = &observation.facts.source { span { "from " (source) } }
                        @if let Some(from) = &observation.facts.valid_from { span { "since " (from) } }
                        @if let Some(until) = &observation.facts.valid_until { span { "until " (until) } }
                    }
                }
            }
        }
    }
}

fn text_shown(text: &str, name: &str, here: &Here<'_>) -> Markup {
    let mut end = text.len().min(SHOWN_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let is_markdown =
        [".md", ".markdown", ".mdx", ".txt"].iter().any(|end| name.ends_with(end)) || !name.contains('.');
    html! {
        @if end < text.len() {
            p.warning {
                "This is the beginning: " (portion::size(text.len() as u64)) " is more than a page can show."
            }
        }
        @if text.is_empty() { p.empty { "Empty." } }
        @else if is_markdown { (rendered(&lines_of_metadata(&text[..end], here), here)) }
        @else { pre { (&text[..end]) } }
    }
}

/// A note whose metadata keeps its lines, which in markdown would be one paragraph.
fn lines_of_metadata<'a>(text: &'a str, here: &Here<'_>) -> Cow<'a, str> {
    const HEAD: &str = "\n## Metadata\n";
    match text.rfind(HEAD).filter(|_| here.at.starts_with("notes/")) {
        None => text.into(),
        Some(at) => {
            let (before, after) = text.split_at(at + HEAD.len());
            format!("{before}{}", after.replace('\n', "  \n")).into()
        }
    }
}
