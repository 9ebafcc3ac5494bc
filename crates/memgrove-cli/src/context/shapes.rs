//! The shapes of a store, each opened once, and what is written behind.

use std::sync::Arc;

use memgrove::shapes::entities::Knowledge;
use memgrove::shapes::graph::{Graph, kept_true};
use memgrove::shapes::notes::Notes;
use memgrove::shapes::records::{Ids, Records};
use memgrove::{Index, Locator, Memory, Result};

use super::Context;
use crate::settings::Settings;
use crate::{agents, mounts, repository, searching};

/// The folder of a store that holds entities.
pub(crate) const KNOWLEDGE: &str = "knowledge";
/// The folder of a store that holds the graph.
pub(crate) const GRAPH: &str = "graph";
/// The folder of a store that holds notes.
const NOTES: &str = "notes";

impl Context {
    /// The records, to read.
    pub(crate) fn records(&self) -> Result<Arc<Records>> {
        self.records_in(self.reading()?)
    }

    /// The records, to change.
    pub(crate) fn records_writing(&self) -> Result<Arc<Records>> {
        self.records_in(self.writing()?)
    }

    fn records_in(&self, memory: Memory) -> Result<Arc<Records>> {
        if let Some(records) = self.shared.records.get() {
            return Ok(Arc::clone(records));
        }
        let records = Arc::new(mounts::records(self, memory)?);
        match self.shared.opened.get() {
            Some(_) => Ok(Arc::clone(self.shared.records.get_or_init(|| records))),
            // A store that is not made yet is another one when it is.
            None => Ok(records),
        }
    }

    /// The entities, to read.
    pub(crate) fn reading_knowledge(&self) -> Result<Knowledge> {
        let memory = self.reading()?;
        match self.shared.opened.get() {
            Some(_) => self.knowledge_over(memory),
            None => Ok(Knowledge::new(memory, Locator::new(KNOWLEDGE)?)),
        }
    }

    /// The entities, to change.
    pub(crate) fn knowledge(&self) -> Result<Knowledge> {
        self.knowledge_over(self.writing()?)
    }

    fn knowledge_over(&self, memory: Memory) -> Result<Knowledge> {
        let root = Locator::new(KNOWLEDGE)?;
        Ok(self.shared.knowledge.get_or_init(|| Knowledge::new(memory, root)).clone())
    }

    /// Takes note of places that were changed by no verb of their shape, for what is written behind.
    pub(crate) fn touched<'a>(&self, places: impl IntoIterator<Item = &'a Locator>) -> Result<()> {
        let root = Locator::new(KNOWLEDGE)?;
        let mut ours = places.into_iter().filter(|at| at.is_within(&root)).peekable();
        if ours.peek().is_some() {
            self.knowledge()?.note_changed(ours);
        }
        Ok(())
    }

    /// The graph, to read.
    pub(crate) fn reading_graph(&self) -> Result<Graph> {
        let memory = self.reading()?;
        match self.shared.opened.get() {
            Some(_) => self.graph_over(memory),
            None => Ok(Graph::new(memory, Locator::new(GRAPH)?, self.ids())),
        }
    }

    /// What ids are made of: within a repository another branch may give the same number.
    fn ids(&self) -> Arc<dyn Ids> {
        let within = self.place().is_some_and(|place| repository::around(&place.root).is_some());
        if within { Arc::new(mounts::Branching) } else { Arc::new(mounts::Random) }
    }

    /// The graph, to change.
    pub(crate) fn graph(&self) -> Result<Graph> {
        self.graph_over(self.writing()?)
    }

    fn graph_over(&self, memory: Memory) -> Result<Graph> {
        let root = Locator::new(GRAPH)?;
        let graph = self.shared.graph.get_or_init(|| Graph::new(memory, root, self.ids())).clone();
        Ok(if self.may_write().is_ok() { graph } else { graph.only_reading() })
    }

    /// A memory in which undoing and restoring keep true what shapes make of their files.
    pub(super) fn kept_true(memory: Memory) -> Result<Memory> {
        kept_true(memory, &Locator::new(GRAPH)?)
    }

    /// Brings the registry of the graph up to date, and tells if it had to be made anew.
    fn settle_graph(&self) {
        let Some(graph) = self.shared.graph.get() else { return };
        if let Some(report) = graph.take_report() {
            let (nodes, connections) = (report.nodes, report.connections);
            crate::notice(&format!(
                "the registry of the graph was made anew from {nodes} nodes and {connections} connections: {}",
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
    pub(crate) fn notes(&self) -> Result<Notes> {
        self.notes_over(self.writing()?)
    }

    fn notes_over(&self, memory: Memory) -> Result<Notes> {
        if let Some(notes) = self.shared.notes.get() {
            return Ok(notes.clone());
        }
        let settings = self.place().map(|place| Settings::read(&place.root)).transpose()?.flatten();
        let mut notes = Notes::new(memory, Locator::new(NOTES)?)
            .with_agent(agents::chosen(&self.shared.environment.agent)?);
        if let Some(bytes_max) = settings.and_then(|settings| settings.notes.bytes_max) {
            notes = notes.with_bytes_max(bytes_max);
        }
        match self.shared.opened.get() {
            Some(_) => Ok(self.shared.notes.get_or_init(|| notes).clone()),
            // A store that is not made yet is another one when it is.
            None => Ok(notes),
        }
    }

    /// The index of the store.
    pub(crate) fn index(&self) -> Result<Arc<Index>> {
        if let Some(index) = self.shared.index.get() {
            return Ok(Arc::clone(index));
        }
        let memory = self.reading()?;
        let index = Arc::new(searching::index(self, memory)?);
        match self.shared.opened.get() {
            Some(_) => Ok(Arc::clone(self.shared.index.get_or_init(|| index))),
            // A store that is not made yet is another one when it is.
            None => Ok(index),
        }
    }

    /// Brings up to date what is written behind. What was answered stands, whatever comes of it.
    pub(crate) fn settle(&self) {
        if let Some(trouble) = self.shared.index.get().and_then(|index| index.trouble()) {
            let hint = trouble.hint_text().map_or(String::new(), |hint| format!(" ({hint})"));
            crate::notice(&format!("the index is made in memory, every time anew: {trouble}{hint}"));
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
            crate::notice(&format!("the graph of notes is not up to date ({error}); the next look mends it"));
        }
    }
}
