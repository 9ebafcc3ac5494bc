//! How content travels in JSON, which holds only text: other bytes are given in base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::error::{Error, Kind, Result};

/// Returns the content given as text under `name`, or as `content_base64`; `None` if neither is given.
///
/// # Errors
/// `Invalid` if both are given, and for what is not base64.
pub fn given(name: &str, text: Option<impl Into<Vec<u8>>>, base64: Option<&str>) -> Result<Option<Vec<u8>>> {
    let wrong = |message: String, hint: &str| Err(Error::new(Kind::Invalid, message).hint(hint));
    match (text, base64.map(|base64| STANDARD.decode(base64))) {
        (Some(_), Some(_)) => {
            wrong(format!("`{name}` and `content_base64` are both given"), "give one of them")
        }
        (None, Some(Err(error))) => wrong(
            format!("`content_base64` is not base64: {error}"),
            "use the standard alphabet, with padding and without line ends",
        ),
        (None, Some(Ok(bytes))) => Ok(Some(bytes)),
        (text, None) => Ok(text.map(Into::into)),
    }
}

/// Returns a content as text, or in base64 if it is not text.
pub fn told(bytes: Vec<u8>) -> (Option<String>, Option<String>) {
    match String::from_utf8(bytes) {
        Ok(text) => (Some(text), None),
        Err(error) => (None, Some(STANDARD.encode(error.as_bytes()))),
    }
}
