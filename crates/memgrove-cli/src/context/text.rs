//! The text that a verb works on: from an argument, a file, or standard input.

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::sync::PoisonError;

use memgrove::backend::Version;
use memgrove::error::code;
use memgrove::{Error, Kind, Result};

use super::{Context, Input};

/// Names standard input in place of a text or a file.
const STANDARD_INPUT: &str = "-";
/// The largest text that is taken from standard input or a file.
const INPUT_BYTES_MAX: u64 = 256 * 1024 * 1024;

impl Context {
    /// Text from an argument, a file, or standard input, in this order. At a command line `-` alone is
    /// standard input, whether it stands for the text or for the file.
    pub(crate) fn text(&self, given: Option<String>, from: Option<&Path>) -> Result<Vec<u8>> {
        match (given.filter(|text| !self.is_piped(text)), from, self.input) {
            (Some(text), ..) => Ok(text.into_bytes()),
            (None, from, Input::Terminal) => {
                let bytes = read_from(from.filter(|path| *path != Path::new(STANDARD_INPUT)))?;
                if let Some(asked) = &self.request {
                    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
                    asked.push_str(Version::of(&bytes).as_str());
                }
                Ok(bytes)
            }
            (None, _, Input::None) => {
                Err(Error::new(Kind::Invalid, "`text` is missing").hint("send it with the request"))
            }
        }
    }

    /// One fact, from an argument or standard input.
    pub(crate) fn fact(&self, given: Option<String>) -> Result<String> {
        let piped = given.as_deref().is_none_or(|text| self.is_piped(text));
        let mut fact = Context::utf8("what is to be remembered", self.text(given, None)?)?;
        if piped {
            // The final newline comes from the program that printed the text, and is no part of it.
            fact.truncate(fact.trim_end_matches(['\r', '\n']).len());
        }
        Ok(fact)
    }

    /// What was given for something that can only be text.
    pub(crate) fn utf8(what: &str, given: Vec<u8>) -> Result<String> {
        String::from_utf8(given).map_err(|error| {
            let offset = error.utf8_error().valid_up_to();
            Error::new(Kind::Invalid, format!("{what} is not UTF-8 text (byte {offset})"))
                .code(code::NOT_TEXT)
                .hint("convert it to UTF-8; `memgrove file create` keeps bytes of any kind")
        })
    }

    fn is_piped(&self, text: &str) -> bool {
        self.input == Input::Terminal && text == STANDARD_INPUT
    }
}

/// What a file holds, or standard input.
fn read_from(file: Option<&Path>) -> Result<Vec<u8>> {
    let Some(path) = file else {
        let stdin = std::io::stdin();
        if stdin.is_terminal() {
            crate::notice("reading the text from standard input; end it with Ctrl-D");
        }
        return bounded(stdin.lock(), 0, "standard input");
    };
    let file = std::fs::File::open(path).map_err(|error| {
        let hint = "name a file on this machine, or - for standard input";
        Error::from_io(error, path.display()).hint(hint)
    })?;
    // Reserves room for all of it, so that the content is not moved while it grows.
    let size = file.metadata().map_or(0, |about| about.len());
    bounded(file, size, &path.display().to_string())
}

fn bounded(source: impl Read, size: u64, what: &str) -> Result<Vec<u8>> {
    let room = usize::try_from(size.min(INPUT_BYTES_MAX)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(room);
    source.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| Error::from_io(error, what))?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(Error::new(Kind::Invalid, format!("`{what}` is larger than 256 MiB"))
            .code(code::TOO_LARGE)
            .hint("split it into several files"));
    }
    Ok(bytes)
}
