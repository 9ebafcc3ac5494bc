//! Where a path of the tool is in the store, and how the store's places are called to the model.

use super::{REFUSED, refused};
use crate::error::{Error, Result};
use crate::locator::Locator;

/// What the model calls the root.
const TOP: &str = "memories";

/// A path as the model wrote it, and where that is.
pub(super) struct Place {
    /// As it was written: the answers repeat it.
    pub(super) shown: String,
    pub(super) at: Locator,
    pub(super) is_root: bool,
}

impl Place {
    /// Resolves a path by its letters alone, before anything is looked up.
    pub(super) fn new(root: &Locator, path: &str) -> Result<Self> {
        let rest = path.strip_prefix("/memories").filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let Some(rest) = rest else {
            return Err(refused(format!("Path must start with /memories, got: {path}")));
        };
        let escape = || refused(format!("Path {path} would escape /memories directory"));
        let mut parts = vec![TOP];
        for part in rest.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or_else(escape)?;
                }
                part => parts.push(part),
            }
        }
        if parts.first() != Some(&TOP) {
            return Err(escape());
        }
        let named = |error: Error| refused(sentence(&error, str::to_owned));
        Locator::new(format!("/{}", parts.join("/"))).map_err(named)?;
        let at = root.child(parts[1..].join("/")).map_err(named)?;
        Ok(Place { shown: path.to_owned(), is_root: parts.len() == 1, at })
    }
}

/// The text that an error is answered with: a refusal as it stands, and anything else as
/// sentences, in which the store's places have the names that the model knows.
pub(super) fn told(error: &Error, root: &Locator, exists: impl Fn(&Locator) -> Result<bool>) -> String {
    if error.code_name() == Some(REFUSED) {
        return error.message().to_owned();
    }
    sentence(error, |quoted| {
        let Ok(at) = Locator::new(quoted) else { return quoted.to_owned() };
        match at.relative_to(root) {
            Some("") if !root.is_root() => format!("/{TOP}"),
            Some(rest) if !root.is_root() || is_place(&at, &exists) => format!("/{TOP}/{rest}"),
            _ => quoted.to_owned(),
        }
    })
}

/// Whether a quoted word of a message is a place: it exists, or could be made in a folder that does.
fn is_place(at: &Locator, exists: impl Fn(&Locator) -> Result<bool>) -> bool {
    let is_there = |at: &Locator| exists(at).unwrap_or(false);
    !at.is_root() && (is_there(at) || at.key().contains(['/', '.']) || at.ancestors().any(|at| is_there(&at)))
}

/// An error as sentences, its quoted words as `rename` calls them.
fn sentence(error: &Error, rename: impl Fn(&str) -> String) -> String {
    let finished = |text: &str| {
        let words = text.split('`').enumerate().map(|(n, part)| match n % 2 {
            0 => part.to_owned(),
            _ => format!("`{}`", rename(part)),
        });
        let mut text: String = words.collect();
        if let Some(first) = text.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        if !text.ends_with(['.', '?', '!']) {
            text.push('.');
        }
        text
    };
    match error.hint_text() {
        Some(hint) => format!("{} {}", finished(error.message()), finished(hint)),
        None => finished(error.message()),
    }
}
