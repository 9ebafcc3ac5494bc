//! Taking over a graph from JSON: what was exported, or a registry of another program.

use base64::Engine;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::draft::{ContentEdit, NewConnection, NewNode, Update};
use super::entry::{Connection, Node};
use super::export::Held;
use super::place::Thing;
use super::{Draft, Graph};
use crate::backend::Note;
use crate::error::{Error, Kind, Result};

/// How many nodes or connections are imported in one change.
const IMPORT_BATCH: usize = 500;

/// What becomes of what is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Existing {
    /// It stays as it is, so an import that was cut off can be repeated.
    #[default]
    Skip,
    /// It becomes what the import says.
    Replace,
    /// It is an error.
    Refuse,
}

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Imported {
    /// Nodes that were made.
    pub nodes: usize,
    /// Connections that were made.
    pub connections: usize,
    /// What was there already and was replaced.
    pub replaced: usize,
    /// What was there already and stayed.
    pub skipped: usize,
    /// What could not be imported, and why.
    pub errors: Vec<String>,
}

/// What an import says, taken apart.
struct Given {
    nodes: Vec<Held<Node>>,
    connections: Vec<Held<Connection>>,
    errors: Vec<String>,
}

impl Given {
    fn read(bytes: &[u8]) -> Result<Self> {
        let wrong = |why: String| {
            Error::new(Kind::Invalid, format!("this is no graph: {why}"))
                .hint("a graph is {\"nodes\": [{id, type, properties, content}], \"connections\": [{type, from, to}]}")
        };
        let whole: Value = serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
        let Value::Object(mut whole) = whole else { return Err(wrong("it is not an object".to_owned())) };
        if !whole.contains_key("nodes") && !whole.contains_key("connections") {
            return Err(wrong("it has neither nodes nor connections".to_owned()));
        }
        let mut given = Given { nodes: Vec::new(), connections: Vec::new(), errors: Vec::new() };
        for (name, value) in listed(whole.remove("nodes")).map_err(wrong)? {
            match serde_json::from_value(value) {
                Ok(node) => given.nodes.push(node),
                Err(error) => given.errors.push(format!("node {name}: {error}")),
            }
        }
        for (name, value) in listed(whole.remove("connections")).map_err(wrong)? {
            match serde_json::from_value(value) {
                Ok(connection) => given.connections.push(connection),
                Err(error) => given.errors.push(format!("connection {name}: {error}")),
            }
        }
        Ok(given)
    }
}

/// Things in a list, or by id as in a registry, each with what to call it.
fn listed(value: Option<Value>) -> Result<Vec<(String, Value)>, String> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(all)) => {
            Ok(all.into_iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect())
        }
        Some(Value::Object(all)) => Ok(all
            .into_iter()
            .map(|(id, mut value)| {
                if let Value::Object(entry) = &mut value {
                    entry.insert("id".to_owned(), Value::from(id.as_str()));
                }
                (id, value)
            })
            .collect()),
        Some(_) => Err("its nodes or connections are neither a list nor an object".to_owned()),
    }
}

impl Graph {
    /// Takes over a graph: ids stay, what has none gets one. Each part of 500 is one change.
    ///
    /// # Errors
    /// `Invalid` for bytes that are no graph; `Exists` where something is there and that is an error.
    /// What is wrong with a single node or connection is told in the answer, and the rest is taken.
    pub fn import(&self, note: &Note, bytes: &[u8], existing: Existing) -> Result<Imported> {
        let given = Given::read(bytes)?;
        let mut imported = Imported { errors: given.errors, ..Imported::default() };
        for part in given.nodes.chunks(IMPORT_BATCH) {
            let done = self.change(note.clone(), "importing nodes", |draft| {
                let mut done = Imported::default();
                for node in part {
                    let taken = take_node(draft, node, existing, &mut done);
                    told(taken, "node", &node.it.id, &mut done)?;
                }
                Ok(done)
            })?;
            imported.add(done.outcome);
        }
        for part in given.connections.chunks(IMPORT_BATCH) {
            let done = self.change(note.clone(), "importing connections", |draft| {
                let mut done = Imported::default();
                for one in part {
                    let taken = take_connection(draft, one, existing, &mut done);
                    told(taken, "connection", &one.it.id, &mut done)?;
                }
                Ok(done)
            })?;
            imported.add(done.outcome);
        }
        Ok(imported)
    }
}

impl Imported {
    fn add(&mut self, part: Imported) {
        self.nodes += part.nodes;
        self.connections += part.connections;
        self.replaced += part.replaced;
        self.skipped += part.skipped;
        self.errors.extend(part.errors);
    }
}

/// What is wrong with one thing is told; what is wrong with the storage ends the import.
fn told(taken: Result<()>, noun: &str, id: &str, done: &mut Imported) -> Result<()> {
    match taken {
        Err(error) if matches!(error.kind(), Kind::Invalid | Kind::NotFound | Kind::Corrupt) => {
            done.errors.push(format!("{noun} {}: {}", id.escape_debug(), error.message()));
            Ok(())
        }
        other => other,
    }
}

fn contents<T>(held: &Held<T>) -> Result<Option<Vec<u8>>> {
    match (&held.content, &held.content_base64) {
        (Some(text), _) => Ok(Some(text.clone().into_bytes())),
        (None, Some(text)) => base64::engine::general_purpose::STANDARD
            .decode(text)
            .map(Some)
            .map_err(|error| Error::new(Kind::Invalid, format!("its content is not base64: {error}"))),
        (None, None) => Ok(None),
    }
}

fn take_node(
    draft: &mut Draft<'_>,
    held: &Held<Node>,
    existing: Existing,
    done: &mut Imported,
) -> Result<()> {
    let node = &held.it;
    let format =
        node.storage.as_ref().map(|storage| storage.format.clone()).filter(|format| !format.is_empty());
    let content = contents(held)?;
    let id = Some(node.id.clone()).filter(|id| !id.is_empty());
    if let Some(id) = &id
        && existing != Existing::Refuse
        && draft.is_there(Thing::Node, id)?
    {
        if existing == Existing::Skip {
            done.skipped += 1;
            return Ok(());
        }
        let old = draft.node(id)?.properties;
        let unset = old.keys().filter(|name| !node.properties.contains_key(*name)).cloned().collect();
        let update = Update { kind: Some(node.kind.clone()), set: node.properties.clone(), unset };
        draft.update_node(id, &update, None)?;
        if let Some(content) = content {
            draft.edit(Thing::Node, id, ContentEdit::Write { content, format }, None)?;
        }
        done.replaced += 1;
        return Ok(());
    }
    draft.create(NewNode {
        id,
        kind: node.kind.clone(),
        properties: node.properties.clone(),
        format,
        content,
    })?;
    done.nodes += 1;
    Ok(())
}

fn take_connection(
    draft: &mut Draft<'_>,
    held: &Held<Connection>,
    existing: Existing,
    done: &mut Imported,
) -> Result<()> {
    let one = &held.it;
    let format =
        one.storage.as_ref().map(|storage| storage.format.clone()).filter(|format| !format.is_empty());
    let content = contents(held)?;
    let id = Some(one.id.clone()).filter(|id| !id.is_empty());
    if let Some(id) = &id
        && existing != Existing::Refuse
        && draft.is_there(Thing::Connection, id)?
    {
        if existing == Existing::Skip {
            done.skipped += 1;
            return Ok(());
        }
        draft.disconnect(id, None)?;
        done.replaced += 1;
    } else {
        done.connections += 1;
    }
    let new = NewConnection {
        id,
        kind: one.kind.clone(),
        from: one.from.clone(),
        to: one.to.clone(),
        properties: one.properties.clone(),
        format,
        content,
    };
    draft.connect(new).map(drop)
}
