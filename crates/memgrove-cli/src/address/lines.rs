//! What the lines of one file say and under which address, in the words of their author instead of the syntax
//! of a format.

use std::ops::Range;

use memgrove::Locator;
use memgrove::document::Document;
use memgrove::index;
use memgrove::shapes::graph::META;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::address_of;
use crate::context::Context;

/// The addresses of the lines of one file, and what they say.
pub(crate) struct Addresses {
    /// The address of the file as a whole.
    whole: String,
    /// Texts that are embedded in a format, in the order of the file.
    parts: Vec<Part>,
    /// Whether all but the parts is syntax of the format.
    only_parts: bool,
}

/// A text that is embedded in a format, at one place of a file.
pub(crate) struct Part {
    /// Where it begins.
    start: usize,
    /// The memory that it belongs to.
    pub(crate) address: String,
    text: String,
    /// What else it can be found by: a category, tags.
    marks: Vec<String>,
}

impl Addresses {
    /// The addresses of what a file holds.
    pub(crate) fn of(cx: &Context, at: &Locator, text: &str) -> Self {
        let whole = address_of(cx, at);
        let lines = |whole| Addresses { whole, parts: Vec::new(), only_parts: false };
        if whole != at.key() {
            return lines(whole);
        }
        let documents = index::documents(at.key(), text.as_bytes());
        let first = documents.first().map(|one| one.address.as_str());
        let entity = documents.first().map(|one| one.group.clone());
        match at.parts().next() {
            Some("records") => {
                let parts = documents.into_iter().map(Part::of_record).collect();
                Addresses { whole, parts, only_parts: false }
            }
            Some("graph") => {
                let thing = first.and_then(|first| first.split('#').next()).map_or(whole, str::to_owned);
                let parts = at.name().ends_with(META).then(|| said_of(&thing, text)).flatten();
                match parts {
                    Some(parts) => Addresses { whole: thing, parts, only_parts: true },
                    None => lines(thing),
                }
            }
            Some("knowledge") => lines(entity.unwrap_or(whole)),
            _ => lines(first.map_or(whole, str::to_owned)),
        }
    }

    /// The address of lines without parts.
    pub(crate) fn whole(&self) -> &str {
        &self.whole
    }

    /// The parts that begin on a line; `None` for a line that is to be read as it is.
    pub(crate) fn parts_on(&self, line: &Range<usize>) -> Option<&[Part]> {
        let before = |border: usize| self.parts.partition_point(|part| part.start < border);
        let parts = &self.parts[before(line.start)..before(line.end)];
        (self.only_parts || !parts.is_empty()).then_some(parts)
    }
}

impl Part {
    fn of_record(one: Document) -> Self {
        let category = Some(one.title).filter(|category| !category.is_empty());
        let marks = category.into_iter().chain(one.tags).collect();
        Part { start: one.span.start, address: one.address, text: one.text, marks }
    }

    /// Its text if that contains `wanted` (in lower case); with its marks if only they do.
    pub(crate) fn having(&self, wanted: &str) -> Option<String> {
        let has = |text: &str| text.to_lowercase().contains(wanted);
        let said = self.text.replace('\n', " ");
        match has(&said) {
            true => Some(said),
            false if self.marks.iter().any(|mark| has(mark)) => {
                Some(format!("[{}] {said}", self.marks.join(", ")))
            }
            false => None,
        }
    }
}

/// What a file says of a node or connection, for people to read.
#[derive(Deserialize)]
struct Said {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    from: String,
    #[serde(default)]
    to: String,
    #[serde(default)]
    properties: Map<String, Value>,
}

/// The parts of a file that describes a node or connection, one for each property; `None` if it is damaged.
fn said_of(thing: &str, text: &str) -> Option<Vec<Part>> {
    let Said { kind, from, to, properties } = serde_json::from_str(text).ok()?;
    let place = |behind: usize, name: &str| {
        let name = format!("{}:", Value::from(name));
        text[behind..].find(&name).map_or(behind, |at| behind + at)
    };
    let part = |start, text| Part { start, address: thing.to_owned(), text, marks: Vec::new() };
    let whole = if from.is_empty() { format!("type: {kind}") } else { format!("{from} {kind} {to}") };
    let inside = place(0, "properties");
    let property =
        |(name, value): (&String, &Value)| part(place(inside, name), format!("{name}: {}", told(value)));
    let mut parts: Vec<Part> = properties.iter().map(property).collect();
    parts.push(part(place(0, "type"), whole));
    parts.sort_by_key(|part| part.start);
    Some(parts)
}

/// A value as plain words.
fn told(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(told).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
