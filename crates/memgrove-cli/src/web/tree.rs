//! A shape whose memories are files in folders, as a tree with sizes.

use std::collections::{BTreeMap, HashMap};

use axum::response::Response;
use maud::{Markup, html};
use memgrove::backend::{FileKind, Info};
use memgrove::{Locator, Result};
use serde::Deserialize;

use super::browse::{Shape, crumbs};
use super::frame::{Frame, Live, at_base, base, done, may_write, moment, url};
use super::listing::pager;
use crate::address::is_memory;
use crate::context::Context;
use crate::http::Call;
use crate::page::counted;
use crate::portion;

/// The most entries on a page; a larger tree is shown folder by folder.
const ENTRIES_MAX: usize = 400;
/// The most pages of one folder: a number that is typed may be any.
const PAGES_MAX: usize = 10_000;

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    under: String,
    #[serde(default)]
    done: String,
    #[serde(default)]
    page: String,
}

/// Something in a folder: a file, a folder, or a note with notes beneath it.
#[derive(Default)]
struct Branch {
    file: Option<Info>,
    inside: BTreeMap<String, Branch>,
}

impl Branch {
    fn grow(&mut self, path: &[&str], info: Info) {
        match path {
            [] => self.file = Some(info),
            [first, rest @ ..] => self.inside.entry((*first).to_owned()).or_default().grow(rest, info),
        }
    }

    /// Bytes and files, of it and all beneath it.
    fn sum(&self) -> (u64, usize) {
        let own = self.file.as_ref().map_or((0, 0), |info| (info.size, 1));
        let sums = self.inside.values().map(Branch::sum);
        sums.fold(own, |(bytes, files), (more, others)| (bytes + more, files + others))
    }
}

/// The page.
pub(super) async fn page(shape: &'static Shape, call: Call) -> Result<Response> {
    let Asked { under, done: said, page } = call.query()?;
    let page = page.parse::<usize>().unwrap_or(1).clamp(1, PAGES_MAX);
    let root = match under.as_str() {
        "" => Locator::new(shape.folder)?,
        under => super::place::located(under)?,
    };
    let listed = root.clone();
    let is_notes = shape.name == "notes";
    let (all, told) = call
        .work(move |cx| {
            let all = cx.reading()?.store().list_all(&listed)?;
            Ok((all, if is_notes { told_of_notes(cx)? } else { HashMap::new() }))
        })
        .await?;
    let mut top = Branch::default();
    let shown = |info: &Info| info.kind == FileKind::File && is_memory(&info.locator);
    let total = all.iter().filter(|info| shown(info)).count();
    for info in all.into_iter().filter(shown) {
        let inside = info.locator.relative_to(&root).unwrap_or_default().to_owned();
        // A note and the folder of its notes are shown as one.
        let inside = if is_notes { inside.trim_end_matches(".md") } else { &inside };
        top.grow(&inside.split('/').collect::<Vec<_>>(), info);
    }
    let list = format!("/browse/{}", shape.name);
    let other = |number: usize| url(&call, &list, &[("under", root.key()), ("page", &number.to_string())]);
    let leaves = Leaves { base: base(&call), list: &list, shape, deep: total <= ENTRIES_MAX, told };
    let (bytes, files) = top.sum();
    let title = if under.is_empty() { shape.title.to_owned() } else { root.name().to_owned() };
    let body = html! {
        (done(&said))
        @if !under.is_empty() { (crumbs(&call, &root)) }
        div.heading {
            h1 { (title) }
            p.facts { (counted(files, "file", "files")) ", " (portion::size(bytes)) }
            @if may_write(&call) && shape.name == "files" {
                a.button href=(url(&call, "/edit", &[("under", root.key())])) { "New file" }
            }
        }
        @if files == 0 { p.empty { "Nothing here yet." } }
        ul.tree { (leaves.of(&top, root.key(), page)) }
        (pager(page, top.inside.len(), ENTRIES_MAX, other))
    };
    let frame = Frame { title: &title, tab: "/browse", live: Live::Anew, ..Frame::default() };
    Ok(frame.around(&call, &body))
}

/// The descriptions in links that lead to notes, by the note's place.
fn told_of_notes(cx: &Context) -> Result<HashMap<String, String>> {
    let notes = cx.reading_notes()?;
    let mut told = HashMap::new();
    for edge in notes.graph()?.edges.into_iter().filter(|edge| !edge.label.is_empty()) {
        told.entry(notes.locate(&edge.to)?.key().to_owned()).or_insert(edge.label);
    }
    Ok(told)
}

struct Leaves<'a> {
    base: String,
    list: &'a str,
    shape: &'static Shape,
    /// Whether nested entries are shown with their parents.
    deep: bool,
    /// Descriptions of some of the entries.
    told: HashMap<String, String>,
}

impl Leaves<'_> {
    fn of(&self, branch: &Branch, at: &str, page: usize) -> Markup {
        html! {
            @for (name, branch) in branch.inside.iter().skip(ENTRIES_MAX * (page - 1)).take(ENTRIES_MAX) {
                (self.one(name, branch, &format!("{at}/{name}")))
            }
        }
    }

    /// The link to what lies beneath an entry that is a file itself.
    fn beneath(&self, branch: &Branch, at: &str) -> Markup {
        let files: usize = branch.inside.values().map(|inside| inside.sum().1).sum();
        let several = self.shape.title.to_lowercase();
        html! {
            @if !self.deep && files > 0 {
                a.folder href=(at_base(&self.base, self.list, &[("under", at)])) {
                    (counted(files, self.shape.one, &several)) " beneath"
                }
            }
        }
    }

    fn one(&self, name: &str, branch: &Branch, at: &str) -> Markup {
        let row = html! {
            @match &branch.file {
                Some(info) => {
                    a dir="auto" href=(at_base(&self.base, "/read", &[("at", info.locator.key())])) { (name) }
                    @if let Some(told) = self.told.get(info.locator.key()).filter(|told| !says_the_same(told, name)) {
                        span.told { (told) }
                    }
                    (self.beneath(branch, at))
                    span.facts { (portion::size(info.size)) (moment(info.mtime)) }
                }
                None => {
                    a.folder href=(at_base(&self.base, self.list, &[("under", at)])) { (name) "/" }
                    span.facts { (counted(branch.sum().1, "file", "files")) ", " (portion::size(branch.sum().0)) }
                }
            }
        };
        html! {
            li {
                div.row data-item="" { (row) }
                @if self.deep && !branch.inside.is_empty() { ul { (self.of(branch, at, 1)) } }
            }
        }
    }
}

/// Whether a note's description says no more than its name.
fn says_the_same(told: &str, name: &str) -> bool {
    let letters = |text: &str| {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>()
    };
    letters(told) == letters(name)
}
