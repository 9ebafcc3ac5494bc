//! Files of nodes and connections. Those that the graph knows are changed through it, because it keeps track
//! of them, and only if the file is still as it was seen.

use memgrove::backend::{ChangeId, Moment, Version};
use memgrove::memory::Point;
use memgrove::shapes::graph::{ContentEdit, Graph, META, Removal};
use memgrove::{Kind, Locator, Result};

use crate::context::{Context, Guard};

/// A node or connection, as the place of one of its files names it.
#[derive(Debug, Clone)]
pub(super) struct Thing {
    is_node: bool,
    id: String,
    /// The file.
    at: Locator,
    /// Whether the file describes the thing, rather than being its content.
    is_said: bool,
}

impl Thing {
    /// The node or connection that a file with this name would belong to.
    pub(super) fn named(at: &Locator) -> Option<Self> {
        let (folder, name) = at.key().rsplit_once('/')?;
        let is_node = match folder {
            "graph/_content/nodes" => true,
            "graph/_content/connections" => false,
            _ => return None,
        };
        let said = name.strip_suffix(META);
        let id = said.unwrap_or(name.split('.').next().unwrap_or(name)).to_owned();
        Some(Thing { is_node, id, at: at.clone(), is_said: said.is_some() })
    }

    /// The node or connection whose file this is, as far as the graph knows.
    ///
    /// # Errors
    /// As reading the graph.
    pub(super) fn known(cx: &Context, at: &Locator) -> Result<Option<Self>> {
        let Some(thing) = Self::named(at) else { return Ok(None) };
        let graph = cx.reading_graph()?;
        let place = match thing.is_node {
            true => graph.locate(&thing.id),
            false => graph.locate_connection(&thing.id),
        };
        let is_its_own = match place {
            Err(error) if matches!(error.kind(), Kind::NotFound | Kind::Invalid) => false,
            // A damaged description is mended through the graph too.
            Err(error) if error.kind() == Kind::Corrupt => thing.is_said,
            place => thing.is_said || place? == thing.at,
        };
        Ok(Some(thing).filter(|_| is_its_own))
    }

    fn graph(&self, cx: &Context, seen: Option<Version>) -> Result<Graph> {
        let graph = cx.writing_graph()?;
        Ok(match seen {
            Some(seen) => graph.resting_on(self.at.clone(), seen),
            None => graph,
        })
    }

    /// Makes the file say this.
    ///
    /// # Errors
    /// `Conflict` where it is not at the version that was seen; else as the graph's.
    pub(super) fn write(&self, cx: &Context, guard: &Guard, text: String, seen: Version) -> Result<()> {
        let (graph, id) = (self.graph(cx, Some(seen))?, &self.id);
        let noted = |node, connection| cx.note(if self.is_node { node } else { connection }, guard);
        if self.is_said {
            let note = noted("node_update", "connection_update");
            return match self.is_node {
                true => graph.resay(note, id, &text).map(drop),
                false => graph.resay_connection(note, id, &text).map(drop),
            };
        }
        let note = noted("node_edit", "connection_edit");
        let edit = ContentEdit::Write { content: text.into(), format: None };
        match self.is_node {
            true => graph.edit(note, id, edit, None).map(drop),
            false => graph.edit_connection(note, id, &edit, None).map(drop),
        }
    }

    /// Deletes the thing.
    ///
    /// # Errors
    /// As [`Thing::write`]; `Invalid` (`NODE_CONNECTED`) for a node with connections that are to stay.
    pub(super) fn delete(&self, cx: &Context, how: Removal, seen: Version) -> Result<()> {
        let graph = self.graph(cx, Some(seen))?;
        match self.is_node {
            true => graph.delete(cx.note("node_delete", &Guard::default()), &self.id, how, None).map(drop),
            false => {
                let note = cx.note("connection_delete", &Guard::default());
                graph.disconnect(note, &self.id, None).map(drop)
            }
        }
    }

    /// Makes the thing what it was after a change.
    ///
    /// # Errors
    /// As [`Thing::write`].
    pub(super) fn restore(&self, cx: &Context, to: &str, seen: Option<Version>) -> Result<()> {
        let (graph, note) = (self.graph(cx, seen)?, cx.note("restore", &Guard::default()));
        let point = Point::Moment(Moment::After(ChangeId::new(to)));
        match self.is_node {
            true => graph.restore(note, &self.id, &point, None).map(drop),
            false => graph.restore_connection(note, &self.id, &point, None).map(drop),
        }
    }
}
