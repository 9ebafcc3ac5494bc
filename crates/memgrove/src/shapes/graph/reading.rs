//! How the graph is read: nodes with their content, lists, and paths.

use std::sync::{Arc, PoisonError};

use serde::Serialize;

use super::catalog::Catalog;
use super::draft::{Desk, Draft};
use super::entry::{Connection, Node, Storage, read_connection, read_node};
use super::export::{Held, Snapshot};
use super::ontology::Ontology;
use super::place::{Layout, Thing};
use super::query::Query;
use super::shelf::Glance;
use super::walk::{self, Part, Step, Ways};
use super::{Graph, mending, wrapped};
use crate::backend::{Content, Version};
use crate::error::{Error, Kind, Result, code};
use crate::locator::Locator;
use crate::store::Store;
use crate::text::content;

/// A node or connection that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Got<T> {
    /// The node or connection.
    pub it: T,
    /// The version of its entry's file; `None` if only the registry has it.
    pub version: Option<Version>,
    /// Whether its content was edited by hand since memgrove last wrote it.
    pub edited: bool,
}

/// What a snapshot holds in addition to entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// All contents.
    Whole,
    /// Nothing.
    None,
}

/// The result of a list.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Found<T> {
    /// Those that were selected.
    pub found: Vec<T>,
    /// How many there are in all.
    pub total: usize,
}

impl Graph {
    /// Brings the catalog up to date, and calls `look` with it. A lost or damaged registry is first
    /// rebuilt from the files, which [`Graph::take_report`] tells; a caller who may not write gets what
    /// the files say.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Catalog) -> Result<T>) -> Result<T> {
        let mut shelf = self.shelf();
        let refreshed = shelf.refresh(self.store(), &self.layout);
        refreshed.map_err(|error| wrapped(error, "reading the registry"))?;
        if self.only_reads {
            let (catalog, loss) = shelf.believable(self.store(), &self.layout)?;
            if let Some(loss) = loss {
                self.warn(format!("the registry of the graph cannot be used ({loss}): the files were read"));
            }
            return look(catalog);
        }
        if shelf.loss.is_some() {
            drop(shelf);
            let done = self.rebuild(mending())?;
            *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(done.outcome);
            shelf = self.shelf();
            shelf.refresh(self.store(), &self.layout)?;
        }
        look(&shelf.catalog)
    }

    /// The ontology; `None` where there is none.
    ///
    /// # Errors
    /// `Corrupt` (`ONTOLOGY_RULE`) for one that cannot be read.
    pub fn ontology(&self) -> Result<Option<Arc<Ontology>>> {
        let seen = Glance::of(self.store(), &self.layout)?;
        self.shelf().ontology(self.store(), &self.layout, &seen)
    }

    /// Returns the ontology for reading: one that cannot be read counts as none, with a warning.
    fn understood(&self) -> Result<Option<Arc<Ontology>>> {
        match self.ontology() {
            Err(error) if error.kind() == Kind::Corrupt => {
                self.warn(format!("{}: read as if there were none", error.message()));
                Ok(None)
            }
            other => other,
        }
    }

    fn warn(&self, warning: String) {
        *self.warning.lock().unwrap_or_else(PoisonError::into_inner) = Some(warning);
    }

    /// Returns, once, what a person should know of what was read.
    pub fn take_warning(&self) -> Option<String> {
        self.warning.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn draft<T>(&self, read: impl FnOnce(&mut Draft<'_>) -> Result<T>) -> Result<T> {
        let mut shelf = self.shelf();
        let (store, ids, now) = (self.store(), &*self.ids, String::new());
        let desk = Desk { store, layout: &self.layout, shelf: &mut shelf, ids, now, attempt: 0 };
        read(&mut Draft::reading(desk))
    }

    /// A node.
    ///
    /// # Errors
    /// `NotFound` (`NODE_NOT_FOUND`); `Corrupt` if its file cannot be read.
    pub fn node(&self, id: &str) -> Result<Got<Node>> {
        let doing = format!("reading the node `{id}`");
        let (it, version) =
            self.draft(|draft| draft.got(Thing::Node, id)).map_err(|error| wrapped(error, &doing))?;
        let it = it.node()?;
        Ok(Got { version, edited: is_edited(self.store(), &self.layout, it.storage.as_ref())?, it })
    }

    /// A connection.
    ///
    /// # Errors
    /// `NotFound` (`CONNECTION_NOT_FOUND`); `Corrupt` if its file cannot be read.
    pub fn connection(&self, id: &str) -> Result<Got<Connection>> {
        let (it, version) = self.draft(|draft| draft.got(Thing::Connection, id))?;
        let it = it.connection()?;
        Ok(Got { version, edited: is_edited(self.store(), &self.layout, it.storage.as_ref())?, it })
    }

    /// Returns the file of a node's content, or of its entry if it has no content.
    ///
    /// # Errors
    /// As [`Graph::node`].
    pub fn locate(&self, id: &str) -> Result<Locator> {
        match self.node(id)?.it.storage {
            Some(storage) => self.layout.content(&storage.path),
            None => self.layout.meta(Thing::Node, id),
        }
    }

    /// Returns the file of a connection's content, or of its entry if it has no content.
    ///
    /// # Errors
    /// As [`Graph::connection`].
    pub fn locate_connection(&self, id: &str) -> Result<Locator> {
        match self.connection(id)?.it.storage {
            Some(storage) => self.layout.content(&storage.path),
            None => self.layout.meta(Thing::Connection, id),
        }
    }

    /// Reads the content that a storage names.
    ///
    /// # Errors
    /// `NotFound` (`FILE_NOT_FOUND`) where it is missing.
    pub fn content(&self, id: &str, storage: &Storage) -> Result<Content> {
        let at = self.layout.content(&storage.path)?;
        self.store().read_bytes(&at).map_err(|error| match error.kind() {
            Kind::NotFound => Error::new(Kind::NotFound, format!("the content of `{id}` is gone: `{at}`"))
                .code(code::FILE_NOT_FOUND)
                .hint("`memgrove history` shows who removed it; give it another with the operation `write`"),
            _ => wrapped(error, &format!("reading the content of `{id}`")),
        })
    }

    /// Returns the nodes that a query selects.
    ///
    /// # Errors
    /// As the store says.
    pub fn list(&self, query: &Query) -> Result<Found<Node>> {
        let ontology = self.understood()?;
        self.look(|catalog| {
            let mut found = Found { found: Vec::new(), total: 0 };
            for (id, kind, text) in catalog.nodes() {
                if !is_kind(ontology.as_deref(), query.kind.as_deref(), kind) {
                    continue;
                }
                if query.filters.is_empty() {
                    found.total += 1;
                    if query.shows(found.total) {
                        found.found.push(read_node(id, text)?);
                    }
                    continue;
                }
                let node = read_node(id, text)?;
                if query.filters.iter().all(|filter| filter.fits(&node.properties)) {
                    found.total += 1;
                    found.found.extend(query.shows(found.total).then_some(node));
                }
            }
            Ok(found)
        })
    }

    /// Returns the connections that a query selects. The inverse of a type selects those of the type, read
    /// from end to start.
    ///
    /// # Errors
    /// As the store says.
    pub fn connections(&self, query: &Query) -> Result<Found<Connection>> {
        let ontology = self.understood()?;
        let meant = query.kind.as_ref().map(|kind| walk::meant(ontology.as_deref(), kind));
        self.look(|catalog| {
            let mut found = Found { found: Vec::new(), total: 0 };
            for (row, text) in catalog.connections() {
                let end = |wanted: &Option<String>, there: u32| {
                    wanted.as_ref().is_none_or(|wanted| catalog.node_id(there) == wanted)
                };
                let kind = catalog.connection_kind(row);
                let ends = |turned: bool| {
                    let (from, to) = if turned { (row.to, row.from) } else { (row.from, row.to) };
                    end(&query.from, from) && end(&query.to, to)
                };
                let fits = match &meant {
                    None => ends(false),
                    Some(meant) => meant.iter().any(|(one, turned)| one == kind && ends(*turned)),
                };
                if !fits {
                    continue;
                }
                let connection = read_connection(&row.id, text)?;
                if query.filters.iter().all(|filter| filter.fits(&connection.properties)) {
                    found.total += 1;
                    found.found.extend(query.shows(found.total).then_some(connection));
                }
            }
            Ok(found)
        })
    }

    /// Returns how many nodes and connections there are.
    ///
    /// # Errors
    /// As the store says.
    pub fn counts(&self) -> Result<(usize, usize)> {
        self.look(|catalog| Ok(catalog.counts()))
    }

    /// Returns the connections that lead to nodes at most `depth` steps away, nearest first.
    ///
    /// # Errors
    /// `NotFound` (`NODE_NOT_FOUND`).
    pub fn neighbours(&self, from: &str, depth: usize, ways: &Ways) -> Result<Vec<Step>> {
        let ways = ways.resolved(self.understood()?.as_deref());
        self.look(|catalog| walk::neighbours(catalog, from, depth, &ways))
    }

    /// Returns a shortest path from one node to another with at most `depth` steps; `None` if there is
    /// none.
    ///
    /// # Errors
    /// `NotFound` (`NODE_NOT_FOUND`).
    pub fn route(&self, from: &str, to: &str, depth: usize, ways: &Ways) -> Result<Option<Vec<Step>>> {
        let ways = ways.resolved(self.understood()?.as_deref());
        self.look(|catalog| walk::route(catalog, from, to, depth, &ways))
    }

    /// Returns the nodes at most `depth` steps from any of these, and the connections between them.
    ///
    /// # Errors
    /// `NotFound` (`NODE_NOT_FOUND`).
    pub fn part(&self, from: &[String], depth: usize, ways: &Ways) -> Result<Part> {
        let ways = ways.resolved(self.understood()?.as_deref());
        self.look(|catalog| walk::part(catalog, from, depth, &ways))
    }

    /// Returns the whole graph, or a part of it, for an export.
    ///
    /// # Errors
    /// As the store says. A missing content is left out.
    pub fn snapshot(&self, part: Option<&Part>, contents: Contents) -> Result<Snapshot> {
        let mut snapshot = self.look(|catalog| selected(catalog, part))?;
        if contents == Contents::Whole {
            for held in &mut snapshot.nodes {
                (held.content, held.content_base64) = self.exported(held.it.storage.as_ref())?;
            }
            for held in &mut snapshot.connections {
                (held.content, held.content_base64) = self.exported(held.it.storage.as_ref())?;
            }
        }
        Ok(snapshot)
    }

    fn exported(&self, storage: Option<&Storage>) -> Result<(Option<String>, Option<String>)> {
        // An entry without a valid path has no content.
        let at = storage.and_then(|storage| self.layout.content(&storage.path).ok());
        let content = at.map(|at| self.store().read_optional(&at)).transpose()?.flatten();
        Ok(content.map(|content| content::told(content.bytes)).unwrap_or_default())
    }
}

fn selected(catalog: &Catalog, part: Option<&Part>) -> Result<Snapshot> {
    let node = |id: &str, text: &str| Ok(Held::of(read_node(id, text)?, id, text));
    let connection = |id: &str, text: &str| Ok(Held::of(read_connection(id, text)?, id, text));
    match part {
        None => Ok(Snapshot {
            nodes: catalog.nodes().map(|(id, _, text)| node(id, text)).collect::<Result<_>>()?,
            connections: (catalog.connections())
                .map(|(row, text)| connection(&row.id, text))
                .collect::<Result<_>>()?,
        }),
        Some(part) => {
            let nodes = part.nodes.iter().filter_map(|id| Some(node(id, catalog.node_text(id)?)));
            let connections =
                part.connections.iter().filter_map(|id| Some(connection(id, catalog.connection_text(id)?)));
            Ok(Snapshot {
                nodes: nodes.collect::<Result<_>>()?,
                connections: connections.collect::<Result<_>>()?,
            })
        }
    }
}

fn is_kind(ontology: Option<&Ontology>, wanted: Option<&str>, kind: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == kind || ontology.is_some_and(|ontology| ontology.is_a(kind, wanted)))
}

/// Whether a content differs from what memgrove last wrote.
pub(super) fn is_edited(store: &Store, layout: &Layout, storage: Option<&Storage>) -> Result<bool> {
    let Some(storage) = storage.filter(|storage| !storage.hash.is_empty()) else { return Ok(false) };
    let Ok(at) = layout.content(&storage.path) else { return Ok(false) };
    let info = store.info_optional(&at)?;
    Ok(info.is_none_or(|info| {
        let by_content =
            info.version.as_ref().is_some_and(|version| version.as_str().len() == storage.hash.len());
        let other = info.version.is_none_or(|version| version.as_str() != storage.hash);
        info.size != storage.size || (by_content && other)
    }))
}
