//! What the model asks for: the command and its checked parameters.

use serde_json::{Map, Value};

use super::place::Place;
use super::refused;
use crate::error::Result;
use crate::locator::Locator;

/// The first and the last line of a part of a file.
pub(super) type Range = (i64, i64);

/// One command, with its paths resolved.
pub(super) enum Command {
    View { path: Place, range: Wanted<Option<Range>> },
    Create { path: Place, file_text: Wanted<String> },
    StrReplace { path: Place, old_str: Wanted<String>, new_str: Wanted<String> },
    Insert { path: Place, insert_line: Wanted<Line>, insert_text: Wanted<String> },
    Delete { path: Place },
    Rename { old_path: Place, new_path: Place },
}

/// A parameter, or why it is wrong. As in the SDK, the path is looked up before a wrong parameter is
/// reported.
pub(super) struct Wanted<T>(std::result::Result<T, String>);

impl<T: Clone> Wanted<T> {
    pub(super) fn get(&self) -> Result<T> {
        self.0.clone().map_err(refused)
    }
}

impl<T> From<Result<T>> for Wanted<T> {
    fn from(given: Result<T>) -> Self {
        Wanted(given.map_err(|error| error.message().to_owned()))
    }
}

/// A line number, and how it was written.
#[derive(Clone)]
pub(super) struct Line {
    /// A number too large for this type is clamped; it is beyond the end of any file anyway.
    pub(super) number: i64,
    pub(super) shown: String,
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

    /// Reads a command. A refusal names the wrong parameter; unknown parameters are ignored.
    pub(super) fn parse(root: &Locator, given: &Value) -> Result<Self> {
        let Value::Object(map) = given else {
            return Err(refused("A command must be a JSON object with the parameter `command`"));
        };
        let given = Parameters { root, map, command: "" };
        let command = given.text("command")?;
        let given = Parameters { command, ..given };
        match command {
            "view" => {
                Ok(Command::View { path: given.place("path")?, range: given.range("view_range").into() })
            }
            "create" => {
                Ok(Command::Create { path: given.place("path")?, file_text: given.owned("file_text").into() })
            }
            "str_replace" => Ok(Command::StrReplace {
                path: given.place("path")?,
                old_str: given.owned("old_str").into(),
                new_str: given.text_or_empty("new_str").map(str::to_owned).into(),
            }),
            "insert" => Ok(Command::Insert {
                path: given.place("path")?,
                insert_line: given.line("insert_line").into(),
                insert_text: given.owned("insert_text").into(),
            }),
            "delete" => Ok(Command::Delete { path: given.place("path")? }),
            "rename" => {
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
    /// The command's name, for refusals; empty until it is known.
    command: &'a str,
}

impl<'a> Parameters<'a> {
    /// Returns a parameter that is given and not null.
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

    fn owned(&self, name: &str) -> Result<String> {
        self.text(name).map(str::to_owned)
    }

    /// Reads a range of lines. As in the SDK, a list without exactly two ends counts as no range, and so
    /// does any value that Python takes as false. If its end is null, it goes to the last line.
    fn range(&self, name: &str) -> Result<Option<Range>> {
        let wanted = "a list of two line numbers";
        let Some(value) = self.optional(name).filter(|value| !is_nothing(value)) else { return Ok(None) };
        let number =
            |value| whole(value).map(|line| line.number).ok_or_else(|| ill_typed(name, wanted, value));
        match value.as_array().map(Vec::as_slice) {
            Some([start, Value::Null]) => Ok(Some((number(start)?, -1))),
            Some([start, end]) => Ok(Some((number(start)?, number(end)?))),
            Some(_) => Ok(None),
            None => Err(ill_typed(name, wanted, value)),
        }
    }

    fn line(&self, name: &str) -> Result<Line> {
        let value = self.required(name)?;
        whole(value).ok_or_else(|| ill_typed(name, "a whole number", value))
    }
}

/// Whether Python would take a value as false.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Reads a whole number, also from `"1"`, `1.0` and `true`, as models write them.
fn whole(value: &Value) -> Option<Line> {
    let exact = |number: i64| Line { number, shown: number.to_string() };
    let float = |float: f64| {
        let is_whole = float.is_finite() && float.fract() == 0.0;
        is_whole.then(|| Line { number: float as i64, shown: float.to_string() })
    };
    match value {
        Value::Bool(truth) => Some(exact((*truth).into())),
        Value::Number(number) => number.as_i64().map(exact).or_else(|| float(number.as_f64()?)),
        Value::String(text) => {
            let text = text.trim();
            text.parse().map(exact).ok().or_else(|| float(text.parse().ok()?))
        }
        _ => None,
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
