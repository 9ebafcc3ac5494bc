//! What the verbs that take several things at once have in common.

use std::path::PathBuf;

use memgrove::text::jsonl::BYTE_ORDER_MARK;
use memgrove::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::node::exact;
use crate::context::{Context, Guard, Input, Marks};

/// Where they come from at a command line, and what the change is to be known by.
#[derive(Debug, Default, clap::Args, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Several {
    /// A JSON array, or one object per line [default: standard input]
    #[arg(long, allow_hyphen_values = true)]
    #[serde(skip)]
    text: Option<String>,
    /// Read them from a file
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    #[serde(skip)]
    from: Option<PathBuf>,
    #[command(flatten)]
    #[serde(flatten)]
    marks: Marks,
}

/// What a verb takes several of.
pub(crate) struct Kin {
    /// The name of its field.
    pub(crate) name: &'static str,
    /// An example of one.
    pub(crate) example: &'static str,
}

impl Kin {
    pub(crate) fn unfit(&self, error: &serde_json::Error) -> Error {
        Error::new(Kind::Invalid, format!("invalid input: {error}"))
            .hint(format!("one looks like {}", self.example))
    }
}

impl Several {
    /// Reads each item: those that a program handed over, or those in the text at the command line.
    pub(crate) fn each<T>(
        &self,
        cx: &Context,
        kin: &Kin,
        handed: Vec<Value>,
        read: impl Fn(Value) -> Result<T>,
    ) -> Result<Vec<T>> {
        let given = match cx.input {
            Input::None => handed,
            Input::Terminal => {
                let mut text = cx.text(self.text.clone(), self.from.as_deref())?;
                if text.starts_with(BYTE_ORDER_MARK) {
                    text.drain(..BYTE_ORDER_MARK.len());
                }
                exact(&String::from_utf8_lossy(&text)).map_err(|why| Error::new(Kind::Invalid, why))?;
                objects(&text).map_err(|error| kin.unfit(&error).while_doing(kin.name))?
            }
        };
        if given.is_empty() {
            return Err(Error::new(Kind::Invalid, format!("there are no {}", kin.name))
                .hint(format!("one looks like {}", kin.example)));
        }
        let read = |(index, value)| {
            read(value).map_err(|error| error.while_doing(format_args!("{}[{index}]", kin.name)))
        };
        given.into_iter().enumerate().map(read).collect()
    }

    /// Takes a text that was given under another name.
    pub(crate) fn or_text(self, text: Option<String>) -> Self {
        Several { text: self.text.or(text), ..self }
    }

    pub(crate) fn guard(self) -> Guard {
        self.marks.into()
    }
}

/// The objects in an array, or in a text that lists them one after the other.
fn objects(text: &[u8]) -> serde_json::Result<Vec<Value>> {
    let values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    let values = values.collect::<serde_json::Result<Vec<Value>>>()?;
    Ok(match <[Value; 1]>::try_from(values) {
        Ok([Value::Array(values)]) => values,
        Ok([value]) => vec![value],
        Err(values) => values,
    })
}
