//! A graph of nodes and connections: typed, with properties, and with content of any kind.
//!
//! | where | what |
//! |---|---|
//! | `_content/nodes/<id>.<ext>` | the content of a node, exactly as it was given |
//! | `_content/nodes/<id>.meta.json` | what is said of the node: the truth |
//! | `_content/connections/<id>.meta.json` | what is said of a connection, and `<id>.md` its content |
//! | `_system/registry.json` | every node and connection by id, for any reader; derived |
//! | `_system/registry.tail.jsonl` | what came since the registry was written |
//! | `_system/ontology.yaml` | what there may be; none: anything |
//!
//! A change writes the files of what it changes and adds a line to the tail, so it costs the same
//! however large the graph is. The tail is folded into the registry behind. Reading a node reads its
//! own files; only what concerns the graph as a whole reads the registry, once, and then follows
//! the tail.

mod account;
mod catalog;
mod draft;
mod entry;
mod export;
mod fold;
mod heads;
mod id;
mod import;
mod json;
pub mod ontology;
mod operation;
mod past;
mod place;
mod query;
mod reading;
mod redact;
mod registry;
mod report;
mod resting;
mod shelf;
mod survey;
mod tail;
mod upkeep;
mod walk;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use super::entities::Direction;
pub use account::kept_true;
pub use draft::{ContentEdit, NewConnection, NewNode, Removal, Removed, Update};
pub use entry::{Connection, Node, Properties, Storage};
pub use export::{Form, Held, Snapshot};
pub use import::{Existing, Imported};
pub use json::inexact_number;
pub use ontology::Ontology;
pub use operation::{Operation, Outcome};
pub use place::{META, extension, format_of};
pub use query::{Filter, Query};
pub use reading::{Contents, Found, Got};
pub use report::Report;
pub use upkeep::Misfit;
pub use walk::{Part, Step, Ways};

use crate::backend::upkeep::GRAPH_MEND;
use crate::backend::{Note, Version};
use crate::error::{Error, Kind, Result, code};
use crate::ids::Ids;
use crate::locator::Locator;
use crate::memory::{Done, Memory};
use crate::store::Store;
use draft::{Desk, Draft, Registered};
use operation::Names;
use place::{Layout, Thing};
use shelf::Shelf;

/// How often a change is planned again because the registry had to be repaired first.
const MENDED_MAX: usize = 8;

/// The graph in a folder of a memory. Clones share what they have read.
#[derive(Clone)]
pub struct Graph {
    memory: Memory,
    layout: Layout,
    ids: Arc<dyn Ids>,
    shelf: Arc<Mutex<Shelf>>,
    /// The report of the last rebuilding that nobody asked for.
    report: Arc<Mutex<Option<Report>>>,
    /// What could not be read and was left out.
    warning: Arc<Mutex<Option<String>>>,
    /// Whether nothing may be written, not even derived files.
    only_reads: bool,
    /// A file and its version that every change expects.
    rests_on: Option<(Locator, Version)>,
}

impl Graph {
    /// The graph beneath a folder of a memory.
    pub fn new(memory: Memory, root: Locator, ids: Arc<dyn Ids>) -> Self {
        let memory = kept_true(memory.clone(), &root).unwrap_or(memory);
        let (shelf, report, warning) = (Arc::default(), Arc::default(), Arc::default());
        let (only_reads, rests_on) = (false, None);
        Graph { memory, layout: Layout { root }, ids, shelf, report, warning, only_reads, rests_on }
    }

    /// Returns the graph for someone who may not write: a lost registry is not rebuilt, and answers come
    /// from the files.
    #[must_use]
    pub fn only_reading(self) -> Self {
        Graph { only_reads: true, ..self }
    }

    /// The memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    fn store(&self) -> &Store {
        self.memory.store()
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> String {
        format!("{:.6}", self.memory.clock().now())
    }

    /// Plans and applies a change. `doing` is added to errors of the storage.
    fn change<T>(
        &self,
        note: Note,
        doing: &str,
        mut plan: impl FnMut(&mut Draft<'_>) -> Result<T>,
    ) -> Result<Done<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let (mut attempt, mut mended, now) = (0, 0, self.now());
        loop {
            let mut unfiled = Vec::new();
            let done =
                self.memory.apply(note.clone(), |store| {
                    let mut shelf = self.shelf();
                    let (ids, now) = (&*self.ids, now.clone());
                    let desk = Desk { store, layout: &self.layout, shelf: &mut shelf, ids, now, attempt };
                    attempt += 1;
                    let mut draft = Draft::new(desk)?;
                    if let Some((at, seen)) = &self.rests_on {
                        draft.rest_on(at, seen)?;
                    }
                    let outcome = plan(&mut draft)?;
                    unfiled = draft.unfiled();
                    let plan = draft.into_plan(outcome)?;
                    match unfiled.is_empty() {
                        true => Ok(plan),
                        false => Err(Error::new(Kind::Busy, "the registry knows more than the files")
                            .hint("try again")),
                    }
                });
            let lost = done.as_ref().is_err_and(|error| error.code_name() == Some(code::REGISTRY_LOST));
            match mended < MENDED_MAX {
                true if lost => self.look(|_| Ok(()))?,
                true if !unfiled.is_empty() => self.file(&unfiled)?,
                _ => return done.map_err(|error| wrapped(error, doing)),
            }
            // No other writer was faster, so the attempts begin anew.
            (attempt, mended) = (0, mended + 1);
        }
    }

    /// Writes files for what only the registry knows, in a change of its own, so that undoing the change
    /// that needs them does not remove them.
    fn file(&self, registered: &[Registered]) -> Result<()> {
        self.change(mending(), "writing what the registry knows", |draft| draft.file(registered))?;
        Ok(())
    }

    /// Makes a node.
    ///
    /// # Errors
    /// `Invalid` for what the ontology does not allow (`ONTOLOGY_RULE`); `Exists` (`NODE_EXISTS`)
    /// for a chosen id that is taken.
    pub fn create(&self, note: Note, new: NewNode) -> Result<Done<Node>> {
        let doing = format!("creating a node of the type `{}`", new.kind.escape_debug());
        self.change(note, &doing, |draft| draft.create(new.clone()))
    }

    /// Connects two nodes.
    ///
    /// # Errors
    /// `NotFound` (`NODE_NOT_FOUND`) for an end that does not exist; `Invalid` for what the ontology
    /// does not allow (`ONTOLOGY_RULE`).
    pub fn connect(&self, note: Note, new: &NewConnection) -> Result<Done<Connection>> {
        let doing = format!("connecting `{}` to `{}`", new.from.escape_debug(), new.to.escape_debug());
        self.change(note, &doing, |draft| draft.connect(new.clone()))
    }

    /// Changes what is known of a node.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` where `expect` is not its version; `Invalid` for a rule of the ontology
    /// that was not broken before.
    pub fn update(&self, note: Note, id: &str, update: &Update, expect: Option<&str>) -> Result<Done<Node>> {
        self.change(note, &format!("updating the node `{id}`"), |draft| draft.update_node(id, update, expect))
    }

    /// Changes what is known of a connection.
    ///
    /// # Errors
    /// As [`Graph::update`].
    pub fn update_connection(
        &self,
        note: Note,
        id: &str,
        update: &Update,
        expect: Option<&str>,
    ) -> Result<Done<Connection>> {
        let doing = format!("updating the connection `{id}`");
        self.change(note, &doing, |draft| draft.update_connection(id, update, expect))
    }

    /// Changes a node's content.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` where `expect` is not its version; else as the operation on a file.
    pub fn edit(&self, note: Note, id: &str, edit: ContentEdit, expect: Option<&str>) -> Result<Done<Node>> {
        let doing = format!("editing the content of the node `{id}`");
        self.change(note, &doing, |draft| draft.edit(Thing::Node, id, edit.clone(), expect)?.node())
    }

    /// Changes a connection's content.
    ///
    /// # Errors
    /// As [`Graph::edit`].
    pub fn edit_connection(
        &self,
        note: Note,
        id: &str,
        edit: &ContentEdit,
        expect: Option<&str>,
    ) -> Result<Done<Connection>> {
        let doing = format!("editing the content of the connection `{id}`");
        self.change(note, &doing, |draft| {
            draft.edit(Thing::Connection, id, edit.clone(), expect)?.connection()
        })
    }

    /// Removes a node.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` (`NODE_CONNECTED`) if it has connections that are not to be removed with it.
    pub fn delete(&self, note: Note, id: &str, how: Removal, expect: Option<&str>) -> Result<Done<Removed>> {
        self.change(note, &format!("deleting the node `{id}`"), |draft| draft.delete(id, how, expect))
    }

    /// Removes a connection.
    ///
    /// # Errors
    /// `NotFound` (`CONNECTION_NOT_FOUND`).
    pub fn disconnect(&self, note: Note, id: &str, expect: Option<&str>) -> Result<Done<Connection>> {
        self.change(note, &format!("deleting the connection `{id}`"), |draft| draft.disconnect(id, expect))
    }

    /// Does several things as one change: all of them or none. Each sees what the earlier ones did.
    ///
    /// # Errors
    /// Those of the step that fails, with its index, from 0, in front of the message.
    pub fn batch(&self, note: Note, operations: &[Operation]) -> Result<Done<Vec<Outcome>>> {
        self.change(note, "changing the graph", |draft| {
            let mut names = Names::default();
            let perform = |(index, operation): (usize, &Operation)| {
                let done = operation.perform(draft, &mut names);
                done.map_err(|error| error.while_doing(format_args!("operations[{index}]")))
            };
            operations.iter().enumerate().map(perform).collect()
        })
    }
}

/// Returns the note of a change that nobody asked for: it repairs what others rely on.
fn mending() -> Note {
    Note { verb: GRAPH_MEND.into(), ..Note::default() }
}

/// Adds what was being done to errors of the storage; those of the graph say it themselves.
fn wrapped(error: Error, doing: &str) -> Error {
    match error.kind() {
        Kind::Io | Kind::Denied | Kind::Full | Kind::Busy | Kind::Unsupported => error.while_doing(doing),
        _ => error,
    }
}
