//! The whole memory as things and links between them; if a screen cannot hold them, as clusters.

use std::collections::{BTreeMap, HashMap};

use memgrove::address::Scheme;
use memgrove::backend::{FileKind, Info};
use memgrove::text::links::joined;
use memgrove::{Locator, Result, Store};
use pulldown_cmark::{Event, Parser, Tag};
use serde::Serialize;
use serde_json::Value;

use super::browse::SHAPES;
use super::entities;
use super::markdown::inward;
use crate::address::is_memory;
use crate::context::Context;
use crate::mcp::percent_decoded;

/// The most things that are shown one by one.
const THINGS_MAX: usize = 2_000;
/// How many stay single when the others are clustered.
const LEADERS: usize = 1_200;
/// The most links that are shown.
const LINKS_MAX: usize = 8_000;
/// The most files of a shape that are read for their links, and the largest.
const FILES_MAX: usize = 20_000;
const FILE_BYTES_MAX: u64 = 512 * 1024;

/// Something that can be linked.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Thing {
    /// Its place; empty for a cluster, and for what is only mentioned.
    pub(super) at: String,
    /// What it is called.
    pub(super) label: String,
    /// What it is: `note`, `file`, `node`, or the type of an entity.
    pub(super) kind: String,
    /// The shape it belongs to.
    pub(super) shape: &'static str,
    /// How many things it stands for.
    pub(super) count: usize,
    /// How many links it has.
    pub(super) links: usize,
}

/// Things and links.
#[derive(Debug, Default, Serialize)]
pub(super) struct Web {
    pub(super) things: Vec<Thing>,
    /// From, to, and the kind of link.
    pub(super) links: Vec<(usize, usize, String)>,
    /// All things, shown or clustered.
    pub(super) total: usize,
    /// All links, shown or not.
    pub(super) total_links: usize,
}

/// Gathers the whole memory.
///
/// # Errors
/// As reading the store.
pub(super) fn gather(cx: &Context) -> Result<Web> {
    let mut loom = Loom::default();
    loom.entities(cx)?;
    let memory = cx.reading()?;
    for shape in SHAPES.iter().filter(|shape| shape.texts) {
        let all = memory.store().list_all(&Locator::new(shape.folder)?)?;
        let files = all.into_iter().filter(|info| info.kind == FileKind::File && is_memory(&info.locator));
        let files: Vec<Info> = files.take(FILES_MAX).collect();
        match shape.name {
            "graph" => loom.nodes(memory.store(), &files)?,
            _ => loom.texts(memory.store(), shape.name, shape.one, &files)?,
        }
    }
    Ok(loom.woven().clustered())
}

#[derive(Default)]
struct Loom {
    web: Web,
    /// The things by place, and by name or id.
    places: HashMap<String, usize>,
    names: HashMap<String, usize>,
    /// The starting node of each connection: a link to a connection leads there.
    starts: HashMap<String, String>,
    /// Links not resolved yet: from, to, kind, and the place of the linking file.
    loose: Vec<(usize, String, String, String)>,
}

impl Loom {
    fn thing(&mut self, at: &str, label: &str, kind: &str, shape: &'static str) -> usize {
        let index = self.web.things.len();
        let (at, label, kind) = (at.to_owned(), label.to_owned(), kind.to_owned());
        self.places.insert(at.clone(), index);
        self.web.things.push(Thing { at, label, kind, shape, count: 1, links: 0 });
        index
    }

    fn entities(&mut self, cx: &Context) -> Result<()> {
        for hit in entities::all(cx)? {
            let (entity, at) = (&hit.entity, hit.path.key());
            let index = self.thing(at, &entity.name, &entity.kind, "entities");
            self.names.insert(entity.name.to_lowercase(), index);
            for relation in &entity.relations {
                self.loose.push((index, relation.to.clone(), relation.kind.clone(), at.to_owned()));
            }
            for link in entity.observations.iter().flat_map(|said| wiki_links(&said.text)) {
                self.loose.push((index, link.to_owned(), "mentions".to_owned(), at.to_owned()));
            }
        }
        Ok(())
    }

    fn texts(&mut self, store: &Store, shape: &'static str, one: &str, files: &[Info]) -> Result<()> {
        for info in files {
            let at = info.locator.key();
            let label = info.locator.name().trim_end_matches(".md");
            let index = self.thing(at, label, one, shape);
            if info.size > FILE_BYTES_MAX || !at.ends_with(".md") {
                continue;
            }
            let Some(content) = store.read_optional(&info.locator)? else { continue };
            let text = String::from_utf8_lossy(&content.bytes);
            let links = wiki_links(&text).into_iter().map(str::to_owned);
            for link in links.chain(markdown_links(&text)) {
                self.loose.push((index, link, "links to".to_owned(), at.to_owned()));
            }
        }
        Ok(())
    }

    fn nodes(&mut self, store: &Store, files: &[Info]) -> Result<()> {
        for info in files {
            let at = info.locator.key();
            let Some(id) = info.locator.name().strip_suffix(".meta.json") else { continue };
            let Some(content) = store.read_optional(&info.locator)? else { continue };
            let Ok(said) = serde_json::from_slice::<Value>(&content.bytes) else { continue };
            let text = |value: &Value| value.as_str().map(str::to_owned);
            if at.contains("/nodes/") {
                let named =
                    ["title", "name", "label"].iter().find_map(|name| text(&said["properties"][name]));
                let kind = text(&said["type"]).unwrap_or_else(|| "node".to_owned());
                let shown = text(&said["storage"]["path"]).map(|path| format!("graph/{path}"));
                let index = self.thing(
                    &shown.unwrap_or(at.to_owned()),
                    &named.unwrap_or(id.to_owned()),
                    &kind,
                    "graph",
                );
                self.names.insert(id.to_lowercase(), index);
            } else if let (Some(from), Some(to)) = (text(&said["from"]), text(&said["to"])) {
                let kind = text(&said["type"]).unwrap_or_default();
                self.starts.insert(Scheme::Connection.address(id), from.clone());
                // A connection may be met before its nodes.
                self.loose.push((usize::MAX, format!("{from}\n{to}"), kind, at.to_owned()));
            }
        }
        Ok(())
    }

    /// The web with all links resolved; an end that is only mentioned becomes a thing without a place.
    fn woven(mut self) -> Web {
        for (from, to, kind, place) in std::mem::take(&mut self.loose) {
            let (from, to) = match (from, to.split_once('\n')) {
                (usize::MAX, Some((from, to))) => (self.end(from, &place), self.end(to, &place)),
                _ => (from, self.end(&to, &place)),
            };
            if from != to {
                self.web.links.push((from, to, kind));
            }
        }
        for (from, to, _) in &self.web.links {
            self.web.things[*from].links += 1;
            self.web.things[*to].links += 1;
        }
        self.web.total = self.web.things.len();
        self.web.total_links = self.web.links.len();
        self.web
    }

    fn end(&mut self, named: &str, from: &str) -> usize {
        let bare = named.split(['#', '|']).next().unwrap_or_default().trim();
        let start = self.starts.get(bare).cloned();
        let bare = start.as_deref().unwrap_or(bare);
        let bare = ["note:", "node:", "connection:", "file:/memories/"]
            .iter()
            .find_map(|kind| bare.strip_prefix(kind))
            .unwrap_or(bare);
        let bare = bare
            .strip_prefix("entity:")
            .and_then(|named| named.split_once('/'))
            .map_or(bare, |(_, name)| name);
        let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
        let root = from.split('/').next().unwrap_or_default();
        let places = [folder, root, "notes", "files"].into_iter().filter_map(|folder| joined(folder, bare));
        let known = places.flat_map(|place| [place.clone(), format!("{place}.md")]);
        let known: Vec<usize> = known.filter_map(|place| self.places.get(&place).copied()).take(1).collect();
        match known.first().or_else(|| self.names.get(&bare.to_lowercase())) {
            Some(index) => *index,
            None => {
                let index = self.thing("", bare, "not written yet", "");
                self.names.insert(bare.to_lowercase(), index);
                index
            }
        }
    }
}

impl Web {
    /// Reduces the web to what a screen can hold: the most linked things, and the others as clusters by kind.
    fn clustered(mut self) -> Web {
        if self.things.len() > THINGS_MAX {
            let mut order: Vec<usize> = (0..self.things.len()).collect();
            order.sort_by_key(|index| std::cmp::Reverse(self.things[*index].links));
            let mut place = vec![0; self.things.len()];
            let mut kept: Vec<Thing> = Vec::new();
            let mut clusters: BTreeMap<(&str, String), usize> = BTreeMap::new();
            for (rank, index) in order.into_iter().enumerate() {
                let thing = self.things[index].clone();
                place[index] = match rank < LEADERS {
                    true => {
                        kept.push(thing);
                        kept.len() - 1
                    }
                    false => {
                        let cluster =
                            *clusters.entry((thing.shape, thing.kind.clone())).or_insert_with(|| {
                                let blank = Thing {
                                    at: String::new(),
                                    label: String::new(),
                                    count: 0,
                                    links: 0,
                                    ..thing
                                };
                                kept.push(blank);
                                kept.len() - 1
                            });
                        kept[cluster].count += 1;
                        cluster
                    }
                };
            }
            for thing in kept.iter_mut().filter(|thing| thing.label.is_empty() && thing.at.is_empty()) {
                thing.label = format!("{} × {}", thing.kind, thing.count);
            }
            let mut seen: HashMap<(usize, usize), String> = HashMap::new();
            for (from, to, kind) in self.links.drain(..) {
                let ends = (place[from], place[to]);
                if ends.0 != ends.1 {
                    seen.entry(ends).or_insert(kind);
                }
            }
            self.links = seen.into_iter().map(|((from, to), kind)| (from, to, kind)).collect();
            self.links.sort();
            self.things = kept;
        }
        self.links.truncate(LINKS_MAX);
        self
    }
}

/// The targets of `[[…]]` links in a text, except in code.
fn wiki_links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for (part, quoted) in line.split('`').zip([false, true].into_iter().cycle()) {
            let starts = part.split("[[").skip(1).filter(|_| !quoted);
            found.extend(
                starts.filter_map(|rest| Some(rest.split_once("]]")?.0)).filter(|to| !to.trim().is_empty()),
            );
        }
    }
    found
}

/// The targets of `[…](…)` links within the store: not other sites, nor headings of the same text.
fn markdown_links(text: &str) -> Vec<String> {
    // Few texts have any.
    if !text.contains("](") && !text.contains("]:") {
        return Vec::new();
    }
    let leads = |event| match event {
        Event::Start(Tag::Link { dest_url, .. }) => {
            let to = inward(&dest_url)?;
            let path = to.split(['#', '?']).next().unwrap_or_default();
            Some(percent_decoded(path).unwrap_or_else(|| path.to_owned()))
        }
        _ => None,
    };
    Parser::new(text).filter_map(leads).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stand_in_text_and_not_in_code() {
        let text = "see [[a]] and [[b|c]]\n```\n[[no]]\n```\n`[[no]]` then [[d#e]] [[unclosed";
        assert_eq!(wiki_links(text), ["a", "b|c", "d#e"]);
    }

    #[test]
    fn links_of_markdown_lead_to_files() {
        let text = "[b](b.md) [c](../c%20d.md#x) [e](https://e.example/e.md) [f](#f) `[no](no.md)` [g][g]\n\n[g]: g.md\n";
        assert_eq!(markdown_links(text), ["b.md", "../c d.md", "g.md"]);
    }

    #[test]
    fn what_is_too_much_is_clustered_and_counted() {
        let thing = |n: usize| Thing {
            at: format!("files/{n}"),
            label: n.to_string(),
            kind: if n.is_multiple_of(2) { "even" } else { "odd" }.to_owned(),
            shape: "files",
            count: 1,
            links: if n == 0 { 99 } else { 0 },
        };
        let things: Vec<Thing> = (0..5_000).map(thing).collect();
        let web = Web { total: things.len(), things, links: vec![(0, 4_999, "x".into())], total_links: 1 };
        let shown = web.clustered();
        assert_eq!(shown.things.len(), LEADERS + 2);
        assert_eq!(shown.things.iter().map(|thing| thing.count).sum::<usize>(), 5_000);
        assert_eq!(shown.things[0].label, "0");
        assert_eq!(shown.links.len(), 1);
    }
}
