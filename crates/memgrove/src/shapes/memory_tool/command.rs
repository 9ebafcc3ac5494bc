//! What the model asks for: the command and its parameters, checked.

use serde_json::{Map, Value};

use super::place::Place;
use super::refused;
use crate::error::Result;
use crate::locator::Locator;

/// One command, its paths resolved.
pub(super) enum Command {
    View { path: Place, range: Option<(i64, i64)> },
    Create { path: Place, file_text: String },
    StrReplace { path: Place, old_str: String, new_str: String },
    Insert { path: Place, insert_line: i64, insert_text: String },
    Delete { path: Place },
    Rename { old_path: Place, new_path: Place },
}

impl Command {
    /// The command's name on the wire.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Command::View { .. } => "view",
            Command::Create { .. } => "create",
            Command::StrReplace { .. } => "str_replace",
            Command::Insert { .. } => "insert",
            Command::Delete { .. } => "delete",
            Command::Rename { .. } => "rename",
        }
    }

    /// The paths that the command names.
    pub(super) fn places(&self) -> Vec<&Place> {
        match self {
            Command::View { path, .. }
            | Command::Create { path, .. }
            | Command::StrReplace { path, .. }
            | Command::Insert { path, .. }
            | Command::Delete { path } => vec![path],
            Command::Rename { old_path, new_path } => vec![old_path, new_path],
        }
    }

    /// Reads a command; a refusal names the parameter that is wrong. What the tool does not know
    /// is ignored.
    pub(super) fn parse(root: &Locator, given: &Value) -> Result<Self> {
        let Value::Object(map) = given else {
            return Err(refused("A command must be a JSON object with the parameter `command`"));
        };
        let given = Parameters { root, map, command: "" };
        let command = given.text("command")?;
        let given = Parameters { command, ..given };
        match command {
            "view" => Ok(Command::View { range: given.range("view_range")?, path: given.place("path")? }),
            "create" => {
                let file_text = given.text("file_text")?.to_owned();
                Ok(Command::Create { path: given.place("path")?, file_text })
            }
            "str_replace" => {
                let old_str = given.text("old_str")?.to_owned();
                let new_str = given.text_or_empty("new_str")?.to_owned();
                Ok(Command::StrReplace { path: given.place("path")?, old_str, new_str })
            }
            "insert" => {
                let insert_line = given.integer("insert_line", given.required("insert_line")?)?;
                let insert_text = given.text("insert_text")?.to_owned();
                Ok(Command::Insert { path: given.place("path")?, insert_line, insert_text })
            }
            "delete" => Ok(Command::Delete { path: given.place("path")? }),
            "rename" => {
                given.text("new_path")?;
                Ok(Command::Rename { old_path: given.place("old_path")?, new_path: given.place("new_path")? })
            }
            _ => Err(refused(format!(
                "Unknown command: {command}. The commands are view, create, str_replace, insert, delete and rename"
            ))),
        }
    }
}

#[derive(Clone, Copy)]
struct Parameters<'a> {
    root: &'a Locator,
    map: &'a Map<String, Value>,
    /// For the refusals; empty while it is not known.
    command: &'a str,
}

impl<'a> Parameters<'a> {
    /// A parameter that is there and not null.
    fn optional(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    fn required(&self, name: &str) -> Result<&'a Value> {
        self.optional(name).ok_or_else(|| match self.command {
            "" => refused(format!("Missing parameter `{name}`")),
            command => refused(format!("Missing parameter `{name}` for the command {command}")),
        })
    }

    fn text(&self, name: &str) -> Result<&'a str> {
        string(name, self.required(name)?)
    }

    fn text_or_empty(&self, name: &str) -> Result<&'a str> {
        self.optional(name).map_or(Ok(""), |value| string(name, value))
    }

    fn place(&self, name: &str) -> Result<Place> {
        Place::new(self.root, self.text(name)?)
    }

    /// A range of lines. One that has not exactly two ends is no range, as in the SDK.
    fn range(&self, name: &str) -> Result<Option<(i64, i64)>> {
        let Some(value) = self.optional(name) else { return Ok(None) };
        match value.as_array().map(Vec::as_slice) {
            Some([start, end]) => Ok(Some((self.integer(name, start)?, self.integer(name, end)?))),
            Some(_) => Ok(None),
            None => Err(ill_typed(name, "a list of two line numbers", value)),
        }
    }

    /// A whole number. `"1"` and `1.0` are whole numbers too, as models write them.
    fn integer(&self, name: &str, value: &Value) -> Result<i64> {
        let whole = match value {
            Value::Number(number) => number.as_i64().or_else(|| {
                // Past the ends of i64 the cast stops at the end, which is as far out of any file.
                number.as_f64().filter(|float| float.fract() == 0.0).map(|float| float as i64)
            }),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let wanted = if name == "view_range" { "a list of two line numbers" } else { "a whole number" };
        whole.ok_or_else(|| ill_typed(name, wanted, value))
    }
}

fn string<'a>(name: &str, value: &'a Value) -> Result<&'a str> {
    value.as_str().ok_or_else(|| ill_typed(name, "a string", value))
}

fn ill_typed(name: &str, wanted: &str, value: &Value) -> crate::Error {
    let mut shown = value.to_string();
    if let Some((end, _)) = shown.char_indices().nth(40) {
        shown.truncate(end);
        shown.push('…');
    }
    refused(format!("Invalid `{name}` parameter: {shown}. It should be {wanted}"))
}
