//! Where a path of the tool is in the store, and which path the model sees for a place.

use super::{REFUSED, refused};
use crate::error::{Error, Result};
use crate::locator::Locator;
use crate::store::Store;

/// The model's name for the root.
const TOP: &str = "memories";

/// A path as the model wrote it, and its place.
pub(super) struct Place {
    /// As it was written, because the answers repeat it.
    pub(super) shown: String,
    pub(super) at: Locator,
    pub(super) is_root: bool,
}

impl Place {
    /// Resolves a path by its text alone, before anything is looked up.
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

/// Returns the answer to an error: a refusal as it is, any other error as sentences with the paths that
/// the model knows.
pub(super) fn told(store: &Store, root: &Locator, asked: &[&Place], error: &Error) -> String {
    if error.code_name() == Some(REFUSED) {
        return error.message().to_owned();
    }
    let is_asked = |quoted: &str| {
        let is_it = |at: &Locator| at.key() == quoted || at.key().escape_debug().to_string() == quoted;
        let leads_to = |at: &Locator| Locator::new(quoted).is_ok_and(|quoted| quoted.is_within(at));
        asked
            .iter()
            .any(|place| is_it(&place.at) || place.at.ancestors().any(|at| is_it(&at)) || leads_to(&place.at))
    };
    sentence(error, |quoted| {
        let Ok(at) = Locator::new(quoted) else { return quoted.to_owned() };
        match at.relative_to(root) {
            Some("") if !root.is_root() => format!("/{TOP}"),
            // A quoted word may also be a setting or a command, so only words that are places are renamed.
            Some(rest) if is_asked(quoted) || store.exists(&at).unwrap_or(false) => format!("/{TOP}/{rest}"),
            _ => quoted.to_owned(),
        }
    })
}

/// Writes an error as sentences, with its quoted words renamed.
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
