//! Which nodes and connections the whole graph has, in memory, and which connections touch each node.
//!
//! Entries are kept as they are written in the registry, and parsed when they are needed. When the graph
//! is opened, only their types and ends are read.

use std::collections::HashMap;

use super::entry::Connection;
use super::heads::{Line, connection_head, node_head};
use super::id::Numbers;
use super::place::Thing;
use super::registry::{Read, Text};

/// One node of the catalog.
pub(super) struct NodeRow {
    pub(super) id: Box<str>,
    kind: u32,
    /// `None` for a node that connections name and that does not exist.
    text: Option<Text>,
}

/// One connection of the catalog. Its ends are numbers of nodes.
pub(super) struct ConnectionRow {
    pub(super) id: Box<str>,
    kind: u32,
    pub(super) from: u32,
    pub(super) to: u32,
    /// `None` if it was deleted.
    text: Option<Text>,
}

/// Everything in the registry and its tail.
#[derive(Default)]
pub(super) struct Catalog {
    base: String,
    kinds: Vec<Box<str>>,
    kind_at: HashMap<Box<str>, u32>,
    nodes: Vec<NodeRow>,
    node_at: HashMap<Box<str>, u32>,
    connections: Vec<ConnectionRow>,
    connection_at: HashMap<Box<str>, u32>,
    /// The connections that touch each node, deleted ones included.
    around: Vec<Vec<u32>>,
    live: (usize, usize),
    /// The mark of the registry, which its tail begins with too; old ones have none.
    pub(super) mark: Option<String>,
    /// Members of the registry that this version does not know.
    pub(super) strange: Vec<(String, Text)>,
    /// Entries that cannot be read, kept as they are.
    pub(super) unread_nodes: Vec<(String, Text)>,
    pub(super) unread_connections: Vec<(String, Text)>,
    pub(super) numbers: Numbers,
}

impl Catalog {
    /// Reads the text of a registry.
    ///
    /// # Errors
    /// The parser's message if the text is not a registry.
    pub(super) fn read(base: String) -> Result<Self, String> {
        let mut catalog = Catalog::default();
        let Read { nodes, connections, strange, mark } = Read::of(&base)?;
        catalog.node_at.reserve(nodes.len());
        catalog.connection_at.reserve(connections.len());
        for (id, text) in nodes {
            catalog.take_node(&id, text, &base);
        }
        for (id, text) in connections {
            catalog.take_connection(&id, text, &base);
        }
        (catalog.strange, catalog.mark) = (strange, mark);
        catalog.base = base;
        Ok(catalog)
    }

    fn take_node(&mut self, id: &str, text: Text, base: &str) {
        match node_head(text.get(base)) {
            Some(head) => {
                let kind = self.kind_number(&head.kind);
                self.put_node(id, kind, text);
            }
            None => self.unread_nodes.push((id.to_owned(), text)),
        }
    }

    fn take_connection(&mut self, id: &str, text: Text, base: &str) {
        match connection_head(text.get(base)) {
            Some(head) => {
                let kind = self.kind_number(&head.kind);
                let ends = (self.node_number(&head.from), self.node_number(&head.to));
                self.put_connection(id, kind, ends, text);
            }
            None => self.unread_connections.push((id.to_owned(), text)),
        }
    }

    /// Takes in one line of the tail. Returns `false` if it cannot be read.
    pub(super) fn follow(&mut self, line: &str) -> bool {
        let Ok(said) = serde_json::from_str::<Line<'_>>(line) else { return false };
        match said {
            Line { node: Some(raw), .. } => self.take(Thing::Node, None, raw.get()),
            Line { connection: Some(raw), .. } => self.take(Thing::Connection, None, raw.get()),
            Line { deleted_node: Some(id), .. } => {
                self.drop_node(&id);
                true
            }
            Line { deleted_connection: Some(id), .. } => {
                self.drop_connection(&id);
                true
            }
            Line { continues, .. } => continues.is_some(),
        }
    }

    /// Takes in an entry with this id, or else with the id that it contains. Returns `false` if it cannot
    /// be read.
    pub(super) fn take(&mut self, thing: Thing, id: Option<&str>, entry: &str) -> bool {
        let text = Text::Own(entry.into());
        match thing {
            Thing::Node => {
                let Some(head) = node_head(entry) else { return false };
                let id = id.unwrap_or(&head.id);
                if id.is_empty() {
                    return false;
                }
                let kind = self.kind_number(&head.kind);
                self.unread_nodes.retain(|(known, _)| known != id);
                self.put_node(id, kind, text);
            }
            Thing::Connection => {
                let Some(head) = connection_head(entry) else { return false };
                let id = id.unwrap_or(&head.id);
                if id.is_empty() {
                    return false;
                }
                let kind = self.kind_number(&head.kind);
                let ends = (self.node_number(&head.from), self.node_number(&head.to));
                self.unread_connections.retain(|(known, _)| known != id);
                self.put_connection(id, kind, ends, text);
            }
        }
        true
    }

    fn kind_number(&mut self, kind: &str) -> u32 {
        if let Some(number) = self.kind_at.get(kind) {
            return *number;
        }
        let number = index(self.kinds.len());
        self.kinds.push(kind.into());
        self.kind_at.insert(kind.into(), number);
        number
    }

    /// Returns the number of a node, which need not exist.
    fn node_number(&mut self, id: &str) -> u32 {
        if let Some(number) = self.node_at.get(id) {
            return *number;
        }
        let number = index(self.nodes.len());
        self.nodes.push(NodeRow { id: id.into(), kind: 0, text: None });
        self.around.push(Vec::new());
        self.node_at.insert(id.into(), number);
        number
    }

    pub(super) fn put_node(&mut self, id: &str, kind: u32, text: Text) {
        self.numbers.note(id);
        let number = self.node_number(id) as usize;
        let row = &mut self.nodes[number];
        self.live.0 += usize::from(row.text.is_none());
        (row.kind, row.text) = (kind, Some(text));
    }

    fn put_connection(&mut self, id: &str, kind: u32, ends: (u32, u32), text: Text) {
        self.numbers.note(id);
        let known = self.connection_at.get(id).copied();
        if let Some(number) = known {
            let row = &mut self.connections[number as usize];
            let old = (row.from, row.to);
            self.live.1 += usize::from(row.text.is_none());
            (row.kind, row.from, row.to, row.text) = (kind, ends.0, ends.1, Some(text));
            if old != ends {
                for end in [old.0, old.1] {
                    self.around[end as usize].retain(|touching| *touching != number);
                }
                self.touch(number, ends);
            }
            return;
        }
        let number = index(self.connections.len());
        self.connections.push(ConnectionRow {
            id: id.into(),
            kind,
            from: ends.0,
            to: ends.1,
            text: Some(text),
        });
        self.connection_at.insert(id.into(), number);
        self.live.1 += 1;
        self.touch(number, ends);
    }

    fn touch(&mut self, connection: u32, (from, to): (u32, u32)) {
        self.around[from as usize].push(connection);
        if to != from {
            self.around[to as usize].push(connection);
        }
    }

    fn drop_node(&mut self, id: &str) {
        self.numbers.note(id);
        if let Some(number) = self.node_at.get(id) {
            let gone = self.nodes[*number as usize].text.take();
            self.live.0 -= usize::from(gone.is_some());
        }
        self.unread_nodes.retain(|(known, _)| known != id);
    }

    fn drop_connection(&mut self, id: &str) {
        self.numbers.note(id);
        if let Some(number) = self.connection_at.get(id) {
            let gone = self.connections[*number as usize].text.take();
            self.live.1 -= usize::from(gone.is_some());
        }
        self.unread_connections.retain(|(known, _)| known != id);
    }

    /// Returns how many nodes and connections there are.
    pub(super) fn counts(&self) -> (usize, usize) {
        self.live
    }

    pub(super) fn is_node(&self, number: u32) -> bool {
        self.nodes[number as usize].text.is_some()
    }

    pub(super) fn node_id(&self, number: u32) -> &str {
        &self.nodes[number as usize].id
    }

    pub(super) fn node_kind(&self, number: u32) -> &str {
        &self.kinds[self.nodes[number as usize].kind as usize]
    }

    pub(super) fn number_of(&self, id: &str) -> Option<u32> {
        self.node_at.get(id).copied()
    }

    /// Returns the entry of a node or connection.
    pub(super) fn text(&self, thing: Thing, id: &str) -> Option<&str> {
        match thing {
            Thing::Node => self.node_text(id),
            Thing::Connection => self.connection_text(id),
        }
    }

    /// Returns all entries, nodes first, in their order of arrival.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Thing, &str, &str)> {
        let nodes = self.nodes().map(|(id, _, text)| (Thing::Node, id, text));
        nodes.chain(self.connections().map(|(row, text)| (Thing::Connection, &*row.id, text)))
    }

    /// Returns all entries that cannot be read.
    pub(super) fn unread(&self) -> impl Iterator<Item = (Thing, &str, &str)> {
        let nodes = self.unread_nodes.iter().map(|row| (Thing::Node, row));
        let connections = self.unread_connections.iter().map(|row| (Thing::Connection, row));
        nodes.chain(connections).map(|(thing, (id, text))| (thing, id.as_str(), text.get(&self.base)))
    }

    /// The entry of a node.
    pub(super) fn node_text(&self, id: &str) -> Option<&str> {
        let row = &self.nodes[self.number_of(id)? as usize];
        Some(row.text.as_ref()?.get(&self.base))
    }

    /// The entry of a connection.
    pub(super) fn connection_text(&self, id: &str) -> Option<&str> {
        let row = &self.connections[*self.connection_at.get(id)? as usize];
        Some(row.text.as_ref()?.get(&self.base))
    }

    /// Returns all nodes with their types and entries, in their order of arrival.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.nodes.iter().filter_map(|row| {
            Some((&*row.id, &*self.kinds[row.kind as usize], row.text.as_ref()?.get(&self.base)))
        })
    }

    /// Returns all connections with their entries, in their order of arrival.
    pub(super) fn connections(&self) -> impl Iterator<Item = (&ConnectionRow, &str)> {
        self.connections.iter().filter_map(|row| Some((row, row.text.as_ref()?.get(&self.base))))
    }

    /// The connections that touch a node.
    pub(super) fn around(&self, node: u32) -> impl Iterator<Item = &ConnectionRow> {
        let touching = self.around.get(node as usize).into_iter().flatten();
        touching.map(|number| &self.connections[*number as usize]).filter(|row| row.text.is_some())
    }

    /// Returns the types and ends of the connections that touch a node.
    pub(super) fn touching(&self, id: &str) -> Vec<Connection> {
        let around = self.number_of(id).into_iter().flat_map(|number| self.around(number));
        let told = around.map(|row| Connection {
            id: row.id.to_string(),
            kind: self.connection_kind(row).to_owned(),
            from: self.node_id(row.from).to_owned(),
            to: self.node_id(row.to).to_owned(),
            ..Connection::default()
        });
        told.collect()
    }

    pub(super) fn connection_kind(&self, row: &ConnectionRow) -> &str {
        &self.kinds[row.kind as usize]
    }

    pub(super) fn entry<'a>(&'a self, text: &'a Text) -> &'a str {
        text.get(&self.base)
    }
}

fn index(len: usize) -> u32 {
    u32::try_from(len).expect("a graph in memory has fewer than four thousand million parts")
}
