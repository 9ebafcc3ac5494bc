//! The file of the MCP memory server, used in place: lines of JSON, entities first, no newline at
//! the end. A line that is damaged or not understood is kept and reported, and stops nothing.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::kg::{Answer, Call, Edge, Graph, Node};
use crate::backend::{Edit, Expect};
use crate::error::Result;
use crate::locator::Locator;
use crate::memory::Plan;
use crate::store::Store;

/// What came of a call, and which lines could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// The damaged lines, by number from 1.
    pub damaged: Vec<usize>,
}

/// The content of such a file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GraphFile {
    /// What its lines say.
    pub graph: Graph,
    /// The damaged lines, by number from 1.
    pub damaged: Vec<usize>,
    entities: Vec<(Node, Kept)>,
    relations: Vec<(Edge, Kept)>,
    /// Lines that are neither entity nor relation, as they are.
    others: Vec<Vec<u8>>,
}

/// What a line has beyond what the server writes.
#[derive(Debug, Clone, PartialEq, Default)]
struct Kept {
    /// The line itself, where the server would have written another.
    raw: Option<Vec<u8>>,
    extra: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
struct Line<T> {
    #[serde(rename = "type")]
    what: String,
    #[serde(flatten)]
    thing: T,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl GraphFile {
    /// Reads a file.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut file = GraphFile::default();
        for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
            let text = std::str::from_utf8(line);
            if text.is_ok_and(|text| {
                text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').is_empty()
            }) {
                continue;
            }
            if !file.take_in(line) {
                file.damaged.push(number);
                file.others.push(line.to_vec());
            }
        }
        file.graph.entities = file.entities.iter().map(|(node, _)| node.clone()).collect();
        file.graph.relations = file.relations.iter().map(|(edge, _)| edge.clone()).collect();
        file
    }

    /// Takes a line in; `false` if it is damaged.
    fn take_in(&mut self, line: &[u8]) -> bool {
        let Ok(value) = serde_json::from_slice::<Value>(line) else { return false };
        match value.get("type").and_then(Value::as_str) {
            Some("entity") => match serde_json::from_value::<Line<Node>>(value) {
                Ok(read) => {
                    let kept = Kept::of(line, &print_entity(&read.thing, &Map::new()), read.extra);
                    self.entities.push((read.thing, kept));
                    true
                }
                Err(_) => false,
            },
            Some("relation") => match serde_json::from_value::<Line<Edge>>(value) {
                Ok(read) => {
                    let kept = Kept::of(line, &print_relation(&read.thing, &Map::new()), read.extra);
                    self.relations.push((read.thing, kept));
                    true
                }
                Err(_) => false,
            },
            _ => {
                self.others.push(line.to_vec());
                true
            }
        }
    }

    /// The file with another graph: lines that say the same stay as they are.
    pub fn print(&self, graph: &Graph) -> Vec<u8> {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        let mut known = self.entities.iter();
        for node in &graph.entities {
            // Entities keep their order, so the next of this name is this one.
            let mut ahead = known.clone();
            let there = ahead.by_ref().find(|(there, _)| there.name == node.name);
            if there.is_some() {
                known = ahead;
            }
            lines.push(match there {
                Some((there, kept)) => {
                    kept.line((there == node).then_some(()), |extra| print_entity(node, extra))
                }
                None => print_entity(node, &Map::new()),
            });
        }
        let mut known = self.relations.iter();
        for edge in &graph.relations {
            let mut ahead = known.clone();
            let there = ahead.by_ref().find(|(there, _)| there == edge);
            if there.is_some() {
                known = ahead;
            }
            lines.push(match there {
                Some((_, kept)) => kept.line(Some(()), |extra| print_relation(edge, extra)),
                None => print_relation(edge, &Map::new()),
            });
        }
        lines.extend(self.others.iter().cloned());
        lines.join(&b'\n')
    }
}

impl Kept {
    fn of(line: &[u8], printed: &[u8], extra: Map<String, Value>) -> Self {
        Kept { raw: (line != printed).then(|| line.to_vec()), extra }
    }

    fn line(&self, same: Option<()>, print: impl FnOnce(&Map<String, Value>) -> Vec<u8>) -> Vec<u8> {
        match (&self.raw, same) {
            (Some(raw), Some(())) if !self.extra.is_empty() => raw.clone(),
            _ => print(&self.extra),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntityLine<'a> {
    #[serde(rename = "type")]
    what: &'static str,
    name: &'a str,
    entity_type: &'a str,
    observations: &'a [String],
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RelationLine<'a> {
    #[serde(rename = "type")]
    what: &'static str,
    from: &'a str,
    to: &'a str,
    relation_type: &'a str,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

fn print_entity(node: &Node, extra: &Map<String, Value>) -> Vec<u8> {
    let Node { name, entity_type, observations } = node;
    let line = EntityLine { what: "entity", name, entity_type, observations, extra };
    serde_json::to_vec(&line).expect("an entity is plain data")
}

fn print_relation(edge: &Edge, extra: &Map<String, Value>) -> Vec<u8> {
    let Edge { from, to, relation_type } = edge;
    let line = RelationLine { what: "relation", from, to, relation_type, extra };
    serde_json::to_vec(&line).expect("a relation is plain data")
}

/// Plans a call on such a file. A change of nothing writes nothing.
///
/// # Errors
/// As [`Graph::perform`].
pub fn plan(store: &Store, at: &Locator, call: &Call) -> Result<Plan<Answered>> {
    let content = store.read_optional(at)?;
    let bytes = content.as_ref().map_or(&[][..], |content| &content.bytes);
    let file = GraphFile::parse(bytes);
    let mut graph = file.graph.clone();
    let answer = graph.perform(call)?;
    let outcome = Answered { answer, damaged: file.damaged.clone() };
    if call.reads() || graph == file.graph {
        return Ok(Plan { edits: Vec::new(), outcome });
    }
    let printed = file.print(&graph);
    let expect = content.as_ref().map_or(Expect::Absent, |content| Expect::At(content.version.clone()));
    let edit = match printed.strip_prefix(bytes).filter(|_| !bytes.is_empty()) {
        // What only grows costs the history only what is new.
        Some(added) => Edit::Append { at: at.clone(), bytes: added.to_vec().into(), expect },
        None => Edit::Write { at: at.clone(), bytes: printed.into(), expect },
    };
    Ok(Plan { edits: vec![edit], outcome })
}
