//! What every page has around it: the head, the search box, the tabs, the help; and how links are made.

use std::sync::Arc;

use axum::response::Response;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use memgrove::Error;
use memgrove::clock::Timestamp;

use super::told;
use crate::http::{Call, Scope, Served, Space};

/// The tabs: title and path.
const TABS: &[(&str, &str)] = &[
    ("Search", "/"),
    ("Browse", "/browse"),
    ("Graph", "/graph"),
    ("Timeline", "/timeline"),
    ("Decisions", "/decisions"),
    ("Statistics", "/statistics"),
    ("Health", "/doctor"),
];

/// What the keys do.
const KEYS: &[(&str, &str)] = &[
    ("/", "search"),
    ("j  k", "next, previous"),
    ("Enter", "open"),
    ("e", "edit"),
    ("h", "history"),
    ("Esc", "leave"),
    ("t", "light or dark"),
    ("?", "this help"),
];

/// The space that a page is about, and the links around it.
pub(crate) struct Site {
    /// The space that it is about.
    pub(crate) space: Arc<Space>,
    base: String,
    /// The spaces that whoever asks may open, where there are several.
    spaces: Vec<String>,
}

impl Site {
    /// The site of the page that answers a call.
    pub(crate) fn of(call: &Call) -> Self {
        let is_bound = call.asker.as_ref().is_none_or(|asker| asker.space.is_some());
        let spaces = call.served.spaces().filter(|_| !is_bound).map(str::to_owned).collect();
        Site { space: Arc::clone(&call.space), base: base(call), spaces }
    }

    /// The site of a page that belongs to no space: the root, as anyone may see it.
    pub(crate) fn of_root(served: &Arc<Served>) -> Option<Self> {
        let (space, base) = (served.space(None)?, String::new());
        Some(Site { space, base, spaces: Vec::new() })
    }
}

/// What varies around a page.
pub(super) struct Frame<'a> {
    /// Its title.
    pub(super) title: &'a str,
    /// The path of its tab.
    pub(super) tab: &'static str,
    /// What was searched for.
    pub(super) query: &'a str,
    /// What a change does to it.
    pub(super) live: Live,
    /// A script of its own.
    pub(super) script: Option<&'static str>,
}

/// What a page does when something has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Live {
    /// Nothing.
    Still,
    /// It refreshes, whatever changed.
    Anew,
    /// It refreshes if this place changed.
    Of(String),
    /// It warns if this place changed, and refreshes nothing.
    Warn(String),
    /// It says that something changed, and shows it on request.
    Tell,
}

impl Default for Frame<'_> {
    fn default() -> Self {
        Frame { title: "memgrove", tab: "", query: "", live: Live::Still, script: None }
    }
}

impl Frame<'_> {
    /// The page around a body.
    pub(super) fn around(&self, call: &Call, body: &Markup) -> Response {
        self.at(&Site::of(call), body)
    }

    fn at(&self, site: &Site, body: &Markup) -> Response {
        let (live, of) = match &self.live {
            Live::Still => ("still", ""),
            Live::Anew => ("anew", ""),
            Live::Of(address) => ("of", address.as_str()),
            Live::Warn(address) => ("warn", address.as_str()),
            Live::Tell => ("tell", ""),
        };
        told(html! {
            (DOCTYPE)
            html lang="en" data-base=(site.base) {
                (head(self.title))
                body {
                    a.skip href="#main" { "Skip to the content" }
                    (self.header(site))
                    main #main data-live=(live) data-of=(of) tabindex="-1" { (body) }
                    div #news role="status" aria-live="polite" {}
                    (help())
                    script type="module" src="/web/app.js" {}
                    @if let Some(script) = self.script { script type="module" src=(script) {} }
                }
            }
        })
    }

    fn header(&self, site: &Site) -> Markup {
        let base = &site.base;
        let root = format!("{base}/");
        html! {
            header.top {
                a.brand href=(root) aria-label="memgrove" { (leaf()) span { "memgrove" } }
                form.find role="search" action=(root) method="get" {
                    input #q type="search" name="q" value=(self.query) placeholder="Search memories"
                        aria-label="Search memories" autocomplete="off" spellcheck="false"
                        autofocus[self.tab == "/"];
                    kbd aria-hidden="true" { "/" }
                }
                button #theme.plain type="button" title="Light or dark (t)" aria-label="Light or dark" { "◐" }
                button #keys.plain type="button" title="Keys (?)" aria-label="Keys" { "?" }
                div.ways {
                    nav aria-label="Pages" {
                        @for (title, path) in TABS {
                            @let here = (self.tab == *path).then_some("page");
                            a href=(format!("{base}{path}")) aria-current=[here] { (title) }
                        }
                    }
                    @if site.spaces.len() > 1 {
                        nav.spaces aria-label="Spaces" {
                            @for space in &site.spaces {
                                @let here = (*space == site.space.name).then_some("true");
                                a href=(format!("/s/{space}/")) aria-current=[here] { (space) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) @if title != "memgrove" { " · memgrove" } }
            script src="/web/theme.js" {}
            link rel="stylesheet" href="/web/style.css";
            link rel="icon" href="/favicon.ico" type="image/svg+xml";
        }
    }
}

fn help() -> Markup {
    html! {
        dialog #help aria-labelledby="help-title" {
            h2 #help-title { "Keys" }
            dl {
                @for (key, what) in KEYS {
                    dt { @for key in key.split("  ") { kbd { (key) } " " } } dd { (what) }
                }
            }
            form method="dialog" { button { "Close" } }
        }
    }
}

fn leaf() -> Markup {
    const LEAF: &str = concat!(
        "<svg viewBox=\"0 0 16 16\" width=\"18\" height=\"18\" aria-hidden=\"true\">",
        "<path d=\"M8 15V8M8 10C3 10 2 6 2 2c4 0 6 2 6 6M8 8c0-3 2-5 6-5 0 4-2 6-6 6\" ",
        "fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.5\"/></svg>"
    );
    PreEscaped(LEAF.to_owned())
}

/// An error as a page with links to other pages.
pub(super) fn failed(error: &Error, site: &Site) -> Response {
    let to = |path: &str| format!("{}{path}", site.base);
    let body = html! {
        div.error {
            (said_of(error))
            p.actions {
                a.button href=(to("/")) { "Search" } a.button href=(to("/browse")) { "Browse" }
                a.button href=(to("/timeline")) { "What happened" }
            }
        }
    };
    Frame { title: "That did not work", ..Frame::default() }.at(site, &body)
}

/// What went wrong, and what to do.
pub(super) fn said_of(error: &Error) -> Markup {
    html! {
        h1 { "That did not work" }
        p { (with_code(&sentence(error.message()))) }
        @if let Some(hint) = error.hint_text() { p.dim { (with_code(&sentence(hint))) } }
    }
}

/// A text with the parts between backticks shown as code.
pub(super) fn with_code(text: &str) -> Markup {
    html! {
        @for (part, is_code) in text.split('`').zip([false, true].into_iter().cycle()) {
            @if is_code { code { (part) } } @else { (part) }
        }
    }
}

/// An error on a page of its own, without links.
pub(super) fn bare(error: &Error) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head("memgrove"))
            body {
                main #main { div.error { (said_of(error)) p { a href="/" { "Back to the search" } } } }
            }
        }
    }
}

/// A message as a sentence of its own.
pub(super) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let end = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}

/// What precedes the path of every link, so that it stays in the space; empty at the root.
pub(crate) fn base(call: &Call) -> String {
    match call.param("space") {
        "" => String::new(),
        space => format!("/s/{space}"),
    }
}

/// A link to a page of the same space.
pub(super) fn url(call: &Call, path: &str, query: &[(&str, &str)]) -> String {
    at_base(&base(call), path, query)
}

/// A link beneath a base.
pub(super) fn at_base(base: &str, path: &str, query: &[(&str, &str)]) -> String {
    let query = serde_urlencoded::to_string(query).unwrap_or_default();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{base}{path}{mark}{query}")
}

/// Whether whoever looks may change something.
pub(super) fn may_write(call: &Call) -> bool {
    call.scope() == Scope::Write
}

/// A moment; the script tells it in the zone of whoever reads.
pub(super) fn moment(time: Timestamp) -> Markup {
    dated(&time.to_string())
}

/// A moment or a day as it is written.
pub(super) fn dated(text: &str) -> Markup {
    let shown = text.get(..16).filter(|start| start.is_ascii()).unwrap_or(text).replace('T', " ");
    html! { time datetime=(text) { (shown) } }
}

/// The noun of a count.
pub(super) fn noun<'a>(count: usize, one: &'a str, several: &'a str) -> &'a str {
    if count == 1 { one } else { several }
}

/// What was just done, told once at the top of a page.
pub(super) fn done(word: &str) -> Markup {
    let said = match word {
        "saved" => "Saved.",
        "same" => "Nothing had changed.",
        "deleted" => "Deleted. The timeline can restore it.",
        "restored" => "Restored.",
        "undone" => "Undone. Redo brings it back.",
        "redone" => "Done again.",
        "added" => "Added as a new record.",
        "archived" => "Archived.",
        "merged" => "Merged. The history keeps what was there.",
        "mended" => "Fixed what was safe to fix.",
        "unmended" => "There was nothing that is safe to fix.",
        _ => return html! {},
    };
    html! { p.done role="status" { (said) } }
}
