//! The text that a verb works on: from an argument, a file, or standard input.

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::sync::PoisonError;

use memgrove::backend::Version;
use memgrove::{Error, Kind, Result};

use super::{Context, Input};

/// What names standard input where a file is asked for.
const STANDARD_INPUT: &str = "-";
/// The largest text that is taken from standard input or a file.
const INPUT_BYTES_MAX: u64 = 256 * 1024 * 1024;

impl Context {
    /// Text from an argument, a file, or standard input, in this order.
    pub(crate) fn text(&self, given: Option<String>, from: Option<&Path>) -> Result<Vec<u8>> {
        match (given, from, self.input) {
            (Some(text), ..) => Ok(text.into_bytes()),
            (None, from, Input::Terminal) => {
                let bytes = read_from(from.filter(|path| *path != Path::new(STANDARD_INPUT)))?;
                if let Some(asked) = &self.request {
                    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
                    asked.push_str(Version::of(&bytes).as_str());
                }
                Ok(bytes)
            }
            (None, _, Input::None) => Err(Error::new(Kind::Invalid, "`text` is missing")),
        }
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
        let hint = "name a file of this machine, or - for standard input";
        Error::from_io(error, path.display()).hint(hint)
    })?;
    // Room for all of it at once: a content is not to be moved as it grows.
    let size = file.metadata().map_or(0, |about| about.len());
    bounded(file, size, &path.display().to_string())
}

fn bounded(source: impl Read, size: u64, what: &str) -> Result<Vec<u8>> {
    let room = usize::try_from(size.min(INPUT_BYTES_MAX)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(room);
    source.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| Error::from_io(error, what))?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(Error::new(Kind::Invalid, format!("`{what}` is larger than 256 MiB"))
            .code(memgrove::error::code::TOO_LARGE)
            .hint("split it into several files"));
    }
    Ok(bytes)
}
