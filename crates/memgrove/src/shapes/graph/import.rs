//! How a graph is imported from JSON: an export, or the registry of another program.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::draft::{ContentEdit, NewConnection, NewNode, Update};
use super::entry::{Connection, Node, Storage};
use super::export::Held;
use super::place::Thing;
use super::registry::Rows;
use super::{Draft, Graph};
use crate::backend::Note;
use crate::error::{Error, Kind, Result};
use crate::text::blocks::BYTE_ORDER_MARK;
use crate::text::content;

/// How many nodes or connections are imported in one change.
const IMPORT_BATCH: usize = 500;

/// What happens to nodes and connections that already exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Existing {
    /// They stay as they are, so that an interrupted import can be repeated.
    #[default]
    Skip,
    /// They are replaced by the imported ones.
    Replace,
    /// They are an error.
    Refuse,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Imported {
    /// Nodes that were made.
    pub nodes: usize,
    /// Connections that were made.
    pub connections: usize,
    /// How many existed and were replaced.
    pub replaced: usize,
    /// How many existed and stayed as they were.
    pub skipped: usize,
    /// Ids of those that name a content which the import does not contain, and that have none now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_content: Vec<String>,
    /// What could not be imported, and why.
    pub errors: Vec<String>,
}

/// The nodes and connections of an import, each with its name for messages.
struct Given {
    nodes: Vec<(String, Held<Node>)>,
    connections: Vec<(String, Held<Connection>)>,
    errors: Vec<String>,
}

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow, default)]
    nodes: Option<&'a RawValue>,
    #[serde(borrow, default)]
    connections: Option<&'a RawValue>,
}

impl Given {
    fn read(bytes: &[u8]) -> Result<Self> {
        let wrong = |why: String| {
            Error::new(Kind::Invalid, format!("this is not a graph: {why}"))
                .hint("a graph is {\"nodes\": [{id, type, properties, content}], \"connections\": [{type, from, to}]}")
        };
        let text = str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8 text".to_owned()))?;
        let text = text.trim_start_matches(BYTE_ORDER_MARK);
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if !raw.get().starts_with('{') {
            return Err(wrong("it is not an object".to_owned()));
        }
        let whole: Whole<'_> = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if whole.nodes.is_none() && whole.connections.is_none() {
            return Err(wrong("it has neither nodes nor connections".to_owned()));
        }
        let mut given = Given { nodes: Vec::new(), connections: Vec::new(), errors: Vec::new() };
        for (name, is_id, raw) in listed(whole.nodes).map_err(wrong)? {
            match held::<Node>(raw) {
                Ok(mut node) => {
                    if is_id {
                        node.it.id.clone_from(&name);
                    }
                    given.nodes.push((called(&node.it.id, name), node));
                }
                Err(why) => given.errors.push(format!("node {name}: {why}")),
            }
        }
        for (name, is_id, raw) in listed(whole.connections).map_err(wrong)? {
            match held::<Connection>(raw) {
                Ok(mut one) => {
                    if is_id {
                        one.it.id.clone_from(&name);
                    }
                    given.connections.push((called(&one.it.id, name), one));
                }
                Err(why) => given.errors.push(format!("connection {name}: {why}")),
            }
        }
        Ok(given)
    }

    /// Refuses nodes and connections that already exist, before anything is written.
    fn refuse_existing(&self, draft: &mut Draft<'_>) -> Result<()> {
        let nodes = self.nodes.iter().map(|(_, held)| (Thing::Node, &held.it.id));
        let connections = self.connections.iter().map(|(_, held)| (Thing::Connection, &held.it.id));
        for (thing, id) in nodes.chain(connections).filter(|(_, id)| !id.is_empty()) {
            draft.refuse_taken(thing, id)?;
        }
        Ok(())
    }
}

/// Reads a node or connection with its content, and keeps its text.
fn held<T: DeserializeOwned>(raw: &str) -> Result<Held<T>, String> {
    if !raw.starts_with('{') {
        return Err("it is not an object".to_owned());
    }
    let held = serde_json::from_str::<Held<T>>(raw).map_err(|error| error.to_string())?;
    Ok(Held { said: raw.to_owned(), ..held })
}

/// Returns the name of a thing in a message: its id, else its place.
fn called(id: &str, place: String) -> String {
    if id.is_empty() { place } else { id.escape_debug().to_string() }
}

/// Returns the things of a list, or of an object by id as in a registry, each with its name, whether that
/// is its id, and its text.
fn listed(raw: Option<&RawValue>) -> Result<Vec<(String, bool, &str)>, String> {
    let text = raw.map_or("null", RawValue::get);
    match text.as_bytes().first() {
        Some(b'n') => Ok(Vec::new()),
        Some(b'[') => {
            let all: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| error.to_string())?;
            let numbered = all.into_iter().enumerate();
            Ok(numbered.map(|(index, raw)| (index.to_string(), false, raw.get())).collect())
        }
        Some(b'{') => {
            let Rows(all) = serde_json::from_str(text).map_err(|error| error.to_string())?;
            Ok(all.into_iter().map(|(id, raw)| (id.into_owned(), true, raw.get())).collect())
        }
        _ => Err("its nodes or connections are neither a list nor an object".to_owned()),
    }
}

impl Graph {
    /// Imports a graph. Ids stay, and what has none gets one. Every 500 are one change, and all of them
    /// are undone together. What is replaced keeps its content if the import has none for it.
    ///
    /// # Errors
    /// `Invalid` if the bytes are not a graph; `Exists` if something exists and that is an error. Faults
    /// of a single node or connection are in the answer, and the rest is imported.
    pub fn import(&self, note: &Note, bytes: &[u8], existing: Existing) -> Result<Imported> {
        let (mut given, note) = (Given::read(bytes)?, note.of_job());
        let mut imported = Imported { errors: std::mem::take(&mut given.errors), ..Imported::default() };
        if existing == Existing::Refuse {
            self.draft(|draft| given.refuse_existing(draft))?;
        }
        for part in given.nodes.chunks(IMPORT_BATCH) {
            let done = self.change(note.clone(), "importing nodes", |draft| {
                let mut done = Imported::default();
                for (name, node) in part {
                    let taken = draft.attempt(|draft| take_node(draft, node, existing));
                    let taken = told(taken, existing)?;
                    done.nodes += usize::from(matches!(taken, Ok((Taken::Made, _))));
                    done.count(Thing::Node, name, &node.it.storage, taken);
                }
                Ok(done)
            })?;
            imported.add(done.outcome);
        }
        for part in given.connections.chunks(IMPORT_BATCH) {
            let done = self.change(note.clone(), "importing connections", |draft| {
                let mut done = Imported::default();
                for (name, one) in part {
                    let taken = draft.attempt(|draft| take_connection(draft, one, existing));
                    let taken = told(taken, existing)?;
                    done.connections += usize::from(matches!(taken, Ok((Taken::Made, _))));
                    done.count(Thing::Connection, name, &one.it.storage, taken);
                }
                Ok(done)
            })?;
            imported.add(done.outcome);
        }
        Ok(imported)
    }
}

impl Imported {
    fn count(&mut self, thing: Thing, name: &str, named: &Option<Storage>, taken: Became) {
        match taken {
            Err(why) => self.errors.push(format!("{} {name}: {why}", thing.noun())),
            Ok((Taken::Skipped, _)) => self.skipped += 1,
            Ok((taken, holds)) => {
                self.replaced += usize::from(matches!(taken, Taken::Replaced));
                self.without_content.extend((named.is_some() && !holds).then(|| name.to_owned()));
            }
        }
    }

    fn add(&mut self, part: Imported) {
        self.nodes += part.nodes;
        self.connections += part.connections;
        self.replaced += part.replaced;
        self.skipped += part.skipped;
        self.without_content.extend(part.without_content);
        self.errors.extend(part.errors);
    }
}

/// What happened to one node or connection.
#[derive(Clone, Copy)]
enum Taken {
    Made,
    Replaced,
    Skipped,
}

/// What happened and whether it has content now; or why it was not imported.
type Became = Result<(Taken, bool), String>;

/// Turns a fault of one node or connection into a message. An error of the storage ends the import, and so
/// does an existing one if that is an error.
fn told(taken: Result<(Taken, bool)>, existing: Existing) -> Result<Became> {
    match taken {
        Ok(taken) => Ok(Ok(taken)),
        Err(error) => match error.kind() {
            Kind::Invalid | Kind::NotFound | Kind::Corrupt => Ok(Err(error.message().to_owned())),
            Kind::Exists if existing != Existing::Refuse => Ok(Err(error.message().to_owned())),
            _ => Err(error),
        },
    }
}

fn contents<T>(held: &Held<T>) -> Result<Option<Vec<u8>>> {
    content::given("content", held.content.clone(), held.content_base64.as_deref())
}

fn format(storage: Option<&Storage>) -> Option<String> {
    storage.map(|storage| storage.format.clone()).filter(|format| !format.is_empty())
}

fn take_node(draft: &mut Draft<'_>, held: &Held<Node>, existing: Existing) -> Result<(Taken, bool)> {
    let node = &held.it;
    let (format, content) = (format(node.storage.as_ref()), contents(held)?);
    let id = Some(node.id.clone()).filter(|id| !id.is_empty());
    let said = Some(held.said.clone());
    if let Some(id) = &id
        && existing != Existing::Refuse
        && draft.is_there(Thing::Node, id)?
    {
        if existing == Existing::Skip {
            return Ok((Taken::Skipped, false));
        }
        if let Some(content) = content {
            draft.edit(Thing::Node, id, ContentEdit::Write { content: content.into(), format }, None)?;
        }
        let old = draft.node(id)?.properties;
        let unset = old.keys().filter(|name| !node.properties.contains_key(*name)).cloned().collect();
        let update = Update { kind: Some(node.kind.clone()), set: node.properties.clone(), unset, said };
        let node = draft.update_node(id, &update, None)?;
        return Ok((Taken::Replaced, node.storage.is_some()));
    }
    let (kind, properties) = (node.kind.clone(), node.properties.clone());
    let node =
        draft.create(NewNode { id, kind, properties, format, content: content.map(Into::into), said })?;
    Ok((Taken::Made, node.storage.is_some()))
}

fn take_connection(
    draft: &mut Draft<'_>,
    held: &Held<Connection>,
    existing: Existing,
) -> Result<(Taken, bool)> {
    let one = &held.it;
    let (mut format, mut content) = (format(one.storage.as_ref()), contents(held)?);
    let id = Some(one.id.clone()).filter(|id| !id.is_empty());
    let mut taken = Taken::Made;
    if let Some(id) = &id
        && existing != Existing::Refuse
        && draft.is_there(Thing::Connection, id)?
    {
        if existing == Existing::Skip {
            return Ok((Taken::Skipped, false));
        }
        if content.is_none()
            && let Some((old, bytes)) = draft.held(Thing::Connection, id)?
        {
            (format, content) = (Some(old.format).filter(|format| !format.is_empty()), Some(bytes));
        }
        draft.disconnect(id, None)?;
        taken = Taken::Replaced;
    }
    let new = NewConnection {
        id,
        kind: one.kind.clone(),
        from: one.from.clone(),
        to: one.to.clone(),
        properties: one.properties.clone(),
        format,
        content: content.map(Into::into),
        said: Some(held.said.clone()),
    };
    let connection = draft.connect(new)?;
    Ok((taken, connection.storage.is_some()))
}
