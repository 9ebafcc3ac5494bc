//! Which notes there are, with their sizes, titles and links. For unchanged notes this is taken from
//! `.metadata/graph.json`, so a survey of a thousand notes reads few of them.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::known::{Entry, Index};
use super::page::{LAST_UPDATED, Page, SPLIT_FROM};
use super::paths::{METADATA, ROOT, path_of, resolved};
use crate::backend::{Edit, Expect, FileKind};
use crate::error::Result;
use crate::locator::Locator;
use crate::memory::Plan;
use crate::store::Store;

/// The file of the graph, beside the notes.
const GRAPH: &str = "graph.json";

/// One note, as the list of all notes shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteInfo {
    /// Its path.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// When it was last changed, according to its metadata or else its file.
    pub last_updated: String,
    /// The notes that it leads to.
    pub links_to: Vec<String>,
    /// The notes that lead to it.
    pub linked_from: Vec<String>,
}

/// The graph of all notes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Graph {
    /// The notes.
    pub nodes: Vec<Node>,
    /// The links between them.
    pub edges: Vec<Edge>,
}

/// A note in the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its path.
    pub id: String,
    /// Its size.
    pub size: u64,
    /// Its title.
    pub label: String,
}

/// A link in the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// The note that it is in.
    pub from: String,
    /// The note that it leads to.
    pub to: String,
    /// Its description or alias.
    pub label: String,
}

/// A note whose split-off notes have stayed small.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The note.
    pub path: String,
    /// The notes that could be merged back into it.
    pub children: Vec<String>,
}

/// What is stored of a note between two surveys.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Seen {
    size: u64,
    stamp: u64,
    title: String,
    updated: Option<String>,
    split_from: Option<String>,
    /// The targets of its links as they are written, with their labels.
    links: Vec<(String, String)>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Cache {
    #[serde(flatten)]
    graph: Graph,
    /// What the graph was made from, so that only changed notes are read again.
    #[serde(default)]
    seen: BTreeMap<String, Seen>,
}

/// All notes, as far as lists and links need them.
pub(super) struct Survey {
    notes: BTreeMap<String, Seen>,
    dates: HashMap<String, String>,
    /// The index entries of the notes that were read for this survey.
    fresh: BTreeMap<String, Entry>,
}

impl Survey {
    /// Surveys all notes beneath a folder.
    pub(super) fn of(store: &Store, root: &Locator) -> Result<Self> {
        let mut known = cached(store, root)?.seen;
        let (mut notes, mut dates, mut fresh) = (BTreeMap::new(), HashMap::new(), BTreeMap::new());
        for info in store.list_all(root)? {
            let Some(path) = path_of(root, &info.locator).filter(|_| info.kind == FileKind::File) else {
                continue;
            };
            dates.insert(path.clone(), format!("{:.0}", info.mtime));
            let same = |seen: &Seen| seen.size == info.size && seen.stamp == info.stamp;
            let seen = match known.remove(&path).filter(same) {
                Some(seen) => seen,
                None => {
                    let Some(content) = store.read_optional(&info.locator)? else { continue };
                    let text = String::from_utf8_lossy(&content.bytes);
                    let page = Page::parse(&text);
                    fresh.insert(path.clone(), Entry::of(&path, &info, &page));
                    Seen {
                        size: content.bytes.len() as u64,
                        stamp: info.stamp,
                        title: page.title(&path),
                        updated: page.meta(LAST_UPDATED).map(str::to_owned),
                        split_from: page.meta(SPLIT_FROM).map(str::to_owned),
                        links: page.edges(),
                    }
                }
            };
            notes.insert(path, seen);
        }
        Ok(Survey { notes, dates, fresh })
    }

    /// Returns the graph: every link that leads to a note, each once.
    pub(super) fn graph(&self) -> Graph {
        let paths = self.paths();
        let label =
            |path: &str, seen: &Seen| if path == ROOT { "Root".to_owned() } else { seen.title.clone() };
        let nodes = self.notes.iter().map(|(path, seen)| Node {
            id: path.clone(),
            size: seen.size,
            label: label(path, seen),
        });
        let mut edges: Vec<Edge> = Vec::new();
        for (path, seen) in &self.notes {
            let first = edges.len();
            for (target, label) in &seen.links {
                let Some(to) = self.leads(target, path, &paths).filter(|to| to != path) else { continue };
                match edges[first..].iter_mut().find(|edge| edge.to == to) {
                    Some(edge) if edge.label.is_empty() => edge.label.clone_from(label),
                    Some(_) => {}
                    None => edges.push(Edge { from: path.clone(), to: to.to_owned(), label: label.clone() }),
                }
            }
        }
        Graph { nodes: nodes.collect(), edges }
    }

    /// Returns where a link in a note leads.
    pub(super) fn leads<'p>(&self, target: &str, from: &str, paths: &'p [String]) -> Option<&'p str> {
        resolved(target, from, paths, &mut |path| self.notes.get(path)?.split_from.clone())
    }

    /// Returns the notes with a link to one of the notes that `is_one` selects.
    pub(super) fn linking_to(&self, is_one: impl Fn(&str) -> bool) -> Vec<String> {
        let paths = self.paths();
        let leads = |path: &str, target: &str| self.leads(target, path, &paths).is_some_and(&is_one);
        let links =
            |(path, seen): &(&String, &Seen)| seen.links.iter().any(|(target, _)| leads(path, target));
        self.notes.iter().filter(links).map(|(path, _)| path.clone()).collect()
    }

    /// The list of all notes.
    pub(super) fn list(&self) -> Vec<NoteInfo> {
        let graph = self.graph();
        let mut to: HashMap<&str, Vec<String>> = HashMap::new();
        let mut from: HashMap<&str, Vec<String>> = HashMap::new();
        for edge in &graph.edges {
            to.entry(&edge.from).or_default().push(edge.to.clone());
            from.entry(&edge.to).or_default().push(edge.from.clone());
        }
        let info = |(path, seen): (&String, &Seen)| NoteInfo {
            path: path.clone(),
            size_bytes: seen.size,
            last_updated: seen.updated.clone().or_else(|| self.dates.get(path).cloned()).unwrap_or_default(),
            links_to: to.get(path.as_str()).cloned().unwrap_or_default(),
            linked_from: from.get(path.as_str()).cloned().unwrap_or_default(),
        };
        self.notes.iter().map(info).collect()
    }

    /// Returns the notes that would fill less than half a note together with those split from them.
    pub(super) fn proposals(&self, bytes_max: usize) -> Vec<Proposal> {
        let mut children: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (path, seen) in &self.notes {
            if let Some(from) = seen.split_from.as_deref() {
                children.entry(from).or_default().push(path);
            }
        }
        let size = |path: &str| self.notes.get(path).map_or(0, |seen| seen.size as usize);
        let mut found = Vec::new();
        for (path, below) in &children {
            let leaves = below.iter().all(|child| !children.contains_key(child));
            let all = size(path) + below.iter().map(|child| size(child)).sum::<usize>();
            if leaves && self.notes.contains_key(*path) && all * 2 <= bytes_max {
                let children = below.iter().map(|child| (*child).to_owned()).collect();
                found.push(Proposal { path: (*path).to_owned(), children });
            }
        }
        found
    }

    /// The paths of all notes.
    pub(super) fn paths(&self) -> Vec<String> {
        self.notes.keys().cloned().collect()
    }

    /// Returns the edits that bring `.metadata/` up to date, where it is outdated.
    pub(super) fn kept(self, store: &Store, root: &Locator) -> Result<Plan<()>> {
        let graph = self.graph();
        let Survey { notes, fresh, .. } = self;
        let seen = notes.iter().map(|(path, seen)| (path, seen.size, seen.stamp));
        let mut edits: Vec<Edit> = Index::kept(store, root, seen, fresh)?.into_iter().collect();
        if cached(store, root)?.graph != graph {
            let cache = Cache { graph, seen: notes };
            let text = serde_json::to_string(&cache).unwrap_or_default() + "\n";
            let at = root.child(METADATA)?.child(GRAPH)?;
            edits.push(Edit::Write { at, bytes: text.into(), expect: Expect::Any });
        }
        Ok(Plan { edits, outcome: () })
    }
}

/// Reads the stored graph. It is empty if it is missing or damaged, because it is only derived.
fn cached(store: &Store, root: &Locator) -> Result<Cache> {
    let at = root.child(METADATA)?.child(GRAPH)?;
    let content = store.read_optional(&at)?;
    Ok(content.and_then(|content| serde_json::from_slice(&content.bytes).ok()).unwrap_or_default())
}
