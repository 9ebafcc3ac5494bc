//! How the file of the MCP memory server is used in place: JSON lines, entities first, without a final
//! newline. A line that is damaged or not understood is kept and reported, and stops nothing.

mod fields;

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::fields::Fields;
use super::kg::{Answer, Call, Edge, Graph, Node};
use crate::backend::{Edit, Expect};
use crate::error::Result;
use crate::locator::Locator;
use crate::memory::Plan;
use crate::store::Store;

/// The result of a call, and which lines could not be read.
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
    /// The graph that its lines describe.
    pub graph: Graph,
    /// The damaged lines, by number from 1.
    pub damaged: Vec<usize>,
    entities: Vec<(Node, Kept)>,
    relations: Vec<(Edge, Kept)>,
    /// Lines that are neither entity nor relation, as they were found.
    others: Vec<Vec<u8>>,
    /// The numbers, from 1, of those of them that are not damaged.
    strange: Vec<usize>,
    /// Whether the file begins with a byte order mark.
    marked: bool,
}

const MARK: &[u8] = "\u{feff}".as_bytes();

/// What a line has in addition to what the server writes.
#[derive(Debug, Clone, PartialEq, Default)]
struct Kept {
    /// The line itself, if the server would have written it differently.
    raw: Option<Vec<u8>>,
    extra: Fields,
}

impl GraphFile {
    /// Reads a file.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut file = GraphFile::default();
        let inside = bytes.strip_prefix(MARK);
        file.marked = inside.is_some();
        for (line, number) in inside.unwrap_or(bytes).split(|byte| *byte == b'\n').zip(1..) {
            let text = std::str::from_utf8(line);
            if text.is_ok_and(|text| {
                text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').is_empty()
            }) {
                continue;
            }
            match serde_json::from_slice::<Fields>(line) {
                Ok(fields) => file.take_in(line, fields, None, number),
                Err(_) if serde_json::from_slice::<IgnoredAny>(line).is_ok() => file.put_aside(line, number),
                Err(_) => file.put_aside_damaged(line, number),
            }
        }
        file.tell()
    }

    /// Reads a file, or a graph that was saved in the form of the server's answer.
    pub fn parse_any(bytes: &[u8]) -> Self {
        let whole = serde_json::from_slice::<Fields>(bytes.strip_prefix(MARK).unwrap_or(bytes));
        let Some(mut fields) = whole.ok().filter(|fields| !fields.has("type")) else {
            return Self::parse(bytes);
        };
        let lists = ["entities", "relations"].map(|key| fields.taken::<Vec<Box<RawValue>>>(key));
        if lists.iter().all(Option::is_none) {
            return Self::parse(bytes);
        }
        let mut file = GraphFile::default();
        let things = ["entity", "relation"].into_iter().zip(lists.into_iter().map(Option::unwrap_or_default));
        let things = things.flat_map(|(what, list)| list.into_iter().map(move |raw| (what, raw)));
        for ((what, raw), number) in things.zip(1..) {
            let line = raw.get().as_bytes();
            match serde_json::from_slice::<Fields>(line) {
                Ok(fields) => file.take_in(line, fields, Some(what), number),
                Err(_) => file.put_aside_damaged(line, number),
            }
        }
        file.tell()
    }

    fn tell(mut self) -> Self {
        self.graph.entities = self.entities.iter().map(|(node, _)| node.clone()).collect();
        self.graph.relations = self.relations.iter().map(|(edge, _)| edge.clone()).collect();
        self
    }

    /// Takes in a line. Its type is `what`, or else what the line says.
    fn take_in(&mut self, line: &[u8], mut fields: Fields, what: Option<&str>, number: usize) {
        let said: Option<String> = fields.taken("type");
        match what.or(said.as_deref()) {
            Some("entity") => match fields.node() {
                Some(node) => {
                    let kept = Kept::of(line, &print_entity(&node, &Fields::default()), fields);
                    self.entities.push((node, kept));
                }
                None => self.put_aside_damaged(line, number),
            },
            Some("relation") => match fields.edge() {
                Some(edge) => {
                    let kept = Kept::of(line, &print_relation(&edge, &Fields::default()), fields);
                    self.relations.push((edge, kept));
                }
                None => self.put_aside_damaged(line, number),
            },
            _ => self.put_aside(line, number),
        }
    }

    fn put_aside(&mut self, line: &[u8], number: usize) {
        self.others.push(line.to_vec());
        self.strange.push(number);
    }

    fn put_aside_damaged(&mut self, line: &[u8], number: usize) {
        self.others.push(line.to_vec());
        self.damaged.push(number);
    }

    /// Describes what has no place in an entity file.
    pub fn left_out(&self) -> Vec<String> {
        let strange =
            self.strange.iter().map(|number| format!("line {number} is neither an entity nor a relation"));
        let all =
            self.entities.iter().map(|(_, kept)| kept).chain(self.relations.iter().map(|(_, kept)| kept));
        let mut fields: BTreeMap<&str, usize> = BTreeMap::new();
        for (key, _) in all.flat_map(|kept| &kept.extra.0) {
            *fields.entry(key).or_default() += 1;
        }
        let fields = fields.into_iter().map(|(key, count)| match count {
            1 => format!("the field `{}` of 1 line", key.escape_debug()),
            _ => format!("the field `{}` of {count} lines", key.escape_debug()),
        });
        strange.chain(fields).collect()
    }

    /// Writes the file with another graph. Lines whose content is unchanged stay as they are.
    pub fn print(&self, graph: &Graph) -> Vec<u8> {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        let mut known = self.entities.iter();
        for node in &graph.entities {
            // Entities keep their order, so the next one with this name is the same.
            let mut ahead = known.clone();
            let there = ahead.by_ref().find(|(there, _)| there.name == node.name);
            if there.is_some() {
                known = ahead;
            }
            lines.push(match there {
                Some((there, kept)) => {
                    kept.line((there == node).then_some(()), |extra| print_entity(node, extra))
                }
                None => print_entity(node, &Fields::default()),
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
                None => print_relation(edge, &Fields::default()),
            });
        }
        lines.extend(self.others.iter().cloned());
        let mark = if self.marked { MARK } else { &[] };
        [mark, &lines.join(&b'\n')].concat()
    }
}

impl Kept {
    fn of(line: &[u8], printed: &[u8], extra: Fields) -> Self {
        Kept { raw: (line != printed).then(|| line.to_vec()), extra }
    }

    fn line(&self, same: Option<()>, print: impl FnOnce(&Fields) -> Vec<u8>) -> Vec<u8> {
        match (&self.raw, same) {
            (Some(raw), Some(())) if !self.extra.0.is_empty() => raw.clone(),
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
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RelationLine<'a> {
    #[serde(rename = "type")]
    what: &'static str,
    from: &'a str,
    to: &'a str,
    relation_type: &'a str,
}

fn print_entity(node: &Node, extra: &Fields) -> Vec<u8> {
    let Node { name, entity_type, observations } = node;
    extra.behind(&EntityLine { what: "entity", name, entity_type, observations })
}

fn print_relation(edge: &Edge, extra: &Fields) -> Vec<u8> {
    let Edge { from, to, relation_type } = edge;
    extra.behind(&RelationLine { what: "relation", from, to, relation_type })
}

/// Plans a call on such a file. If nothing changes, nothing is written.
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
        // Of an append, the history stores only the added bytes.
        Some(added) => Edit::Append { at: at.clone(), bytes: added.to_vec().into(), expect },
        None => Edit::Write { at: at.clone(), bytes: printed.into(), expect },
    };
    Ok(Plan { edits: vec![edit], outcome })
}
