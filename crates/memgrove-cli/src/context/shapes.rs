//! The shapes of a store, each opened once, and the upkeep that they put off.

use std::sync::{Arc, OnceLock};

use memgrove::ids::{Ids, SystemIds};
use memgrove::shapes::entities::Knowledge;
use memgrove::shapes::graph::{Graph, kept_true};
use memgrove::shapes::notes::Notes;
use memgrove::shapes::records::Records;
use memgrove::{Index, Locator, Memory, Result};

use super::Context;
use crate::agents;
use crate::mounts;
use crate::rehearsal::rehearsed;
use crate::repository;
use crate::searching;

/// The folder of a store that holds entities.
pub(crate) const KNOWLEDGE: &str = "knowledge";
/// The folder of a store that holds the graph.
pub(crate) const GRAPH: &str = "graph";
/// The folder of a store that holds notes.
const NOTES: &str = "notes";

impl Context {
    /// Opens something once and keeps it; but not while the store does not exist yet, because then it would
    /// belong to an empty stand-in.
    fn once<T: Clone>(&self, kept: &OnceLock<T>, open: impl FnOnce() -> Result<T>) -> Result<T> {
        if let Some(known) = kept.get() {
            return Ok(known.clone());
        }
        let opened = open()?;
        Ok(if self.shared.opened.get().is_some() { kept.get_or_init(|| opened).clone() } else { opened })
    }

    /// The records, to read.
    pub(crate) fn reading_records(&self) -> Result<Arc<Records>> {
        self.records_in(self.reading()?)
    }

    /// The records, to change.
    pub(crate) fn writing_records(&self) -> Result<Arc<Records>> {
        self.records_in(self.writing()?)
    }

    /// The records, to change those that are there.
    pub(crate) fn changing_records(&self) -> Result<Arc<Records>> {
        self.records_in(self.changing()?)
    }

    fn records_in(&self, memory: Memory) -> Result<Arc<Records>> {
        self.once(&self.shared.records, || Ok(Arc::new(mounts::records(self, memory)?)))
    }

    /// The entities, to read.
    pub(crate) fn reading_knowledge(&self) -> Result<Knowledge> {
        self.knowledge_over(self.reading()?)
    }

    /// The entities, to change.
    pub(crate) fn writing_knowledge(&self) -> Result<Knowledge> {
        self.knowledge_over(self.writing()?)
    }

    /// The entities, to change those that are there.
    pub(crate) fn changing_knowledge(&self) -> Result<Knowledge> {
        self.knowledge_over(self.changing()?)
    }

    fn knowledge_over(&self, memory: Memory) -> Result<Knowledge> {
        self.once(&self.shared.knowledge, || Ok(Knowledge::new(memory, Locator::new(KNOWLEDGE)?)))
    }

    /// Notes places that were changed by no verb of their shape, so that their indexes are updated later.
    pub(crate) fn touched<'a>(&self, places: impl IntoIterator<Item = &'a Locator>) -> Result<()> {
        let root = Locator::new(KNOWLEDGE)?;
        let mut ours = places.into_iter().filter(|at| at.is_within(&root)).peekable();
        if ours.peek().is_some() {
            self.writing_knowledge()?.note_changed(ours);
        }
        Ok(())
    }

    /// The graph, to read.
    pub(crate) fn reading_graph(&self) -> Result<Graph> {
        self.graph_over(self.reading()?)
    }

    /// Where ids come from: if branches are merged, another branch may give out the same number.
    fn ids(&self) -> Arc<dyn Ids> {
        if self.place().is_some_and(|place| repository::merges(&place.root)) {
            Arc::new(mounts::Branching)
        } else {
            Arc::new(SystemIds)
        }
    }

    /// The graph, to change.
    pub(crate) fn writing_graph(&self) -> Result<Graph> {
        self.graph_over(self.writing()?)
    }

    /// The graph, to change what is there.
    pub(crate) fn changing_graph(&self) -> Result<Graph> {
        self.graph_over(self.changing()?)
    }

    fn graph_over(&self, memory: Memory) -> Result<Graph> {
        let open = || Ok(Graph::new(memory, Locator::new(GRAPH)?, self.ids()));
        let graph = self.once(&self.shared.graph, open)?;
        Ok(if self.may_write().is_ok() { graph } else { graph.only_reading() })
    }

    /// A memory in which undo and restore also update what the graph derives from its files.
    pub(super) fn kept_true(memory: Memory) -> Result<Memory> {
        kept_true(memory, &Locator::new(GRAPH)?)
    }

    /// Brings the registry of the graph up to date, and reports it if it had to be rebuilt.
    fn settle_graph(&self) {
        let Some(graph) = self.shared.graph.get() else { return };
        if let Some(report) = graph.take_report() {
            let (nodes, connections) = (report.nodes, report.connections);
            crate::notice(&format!(
                "the registry of the graph was rebuilt from {nodes} nodes and {connections} connections: {}",
                report.registry.as_deref().unwrap_or("it was out of date")
            ));
        }
        if let Err(error) = graph.settle() {
            crate::notice(&format!(
                "the registry of the graph is not up to date ({error}): run `memgrove doctor`"
            ));
        }
    }

    /// The notes, to read.
    pub(crate) fn reading_notes(&self) -> Result<Notes> {
        self.notes_over(self.reading()?)
    }

    /// The notes, to change.
    pub(crate) fn writing_notes(&self) -> Result<Notes> {
        self.notes_over(self.writing()?)
    }

    /// The notes, to change those that are there.
    pub(crate) fn changing_notes(&self) -> Result<Notes> {
        self.notes_over(self.changing()?)
    }

    /// The notes, with every change planned and none made.
    pub(crate) fn rehearsing_notes(&self) -> Result<Notes> {
        let notes = self.changing_notes()?;
        Ok(notes.over(rehearsed(notes.memory())))
    }

    fn notes_over(&self, memory: Memory) -> Result<Notes> {
        self.once(&self.shared.notes, || {
            let notes = Notes::new(memory, Locator::new(NOTES)?)
                .with_agent(agents::chosen(&self.shared.environment.agent)?);
            Ok(match self.settings()?.and_then(|settings| settings.notes.bytes_max) {
                Some(bytes_max) => notes.with_bytes_max(bytes_max),
                None => notes,
            })
        })
    }

    /// The index of the store.
    pub(crate) fn index(&self) -> Result<Arc<Index>> {
        self.once(&self.shared.index, || searching::index(self, self.reading()?))
    }

    /// Does the upkeep that was put off. What was answered stands, even if this fails.
    pub(crate) fn settle(&self) {
        if let Some(trouble) = self.shared.index.get().and_then(|index| index.trouble()) {
            let hint = trouble.hint_text().map_or(String::new(), |hint| format!(" ({hint})"));
            crate::notice(&format!("the index is rebuilt in memory every time: {trouble}{hint}"));
        }
        if let Some(warning) = self.shared.graph.get().and_then(Graph::take_warning) {
            crate::notice(&warning);
        }
        if self.may_write().is_err() {
            return;
        }
        self.settle_graph();
        if let Some(records) = self.shared.records.get()
            && let Err(error) = records.settle_behind()
        {
            crate::notice(&format!("the index of the records is not up to date: {error}"));
        }
        if let Some(knowledge) = self.shared.knowledge.get()
            && let Err(error) = knowledge.settle()
        {
            crate::notice(&format!(
                "the indexes of entities are not up to date ({error}): run `memgrove doctor`"
            ));
        }
        if let Some(notes) = self.shared.notes.get()
            && let Err(error) = notes.settle()
        {
            crate::notice(&format!("the graph of notes is not up to date ({error}); the next read fixes it"));
        }
    }
}
