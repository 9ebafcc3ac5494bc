//! What a file says, as documents: one function for each shape, in one table.
//!
//! Adding a shape is one line in [`SHAPES`] and one function from a place and its bytes to
//! documents. It must depend on nothing else, so that an index of the same files is the same.

mod entities;
mod graph;
mod markdown;
mod passages;
mod records;

use crate::document::{Document, Shape};

/// A file to make documents of.
pub(crate) struct Source<'a> {
    /// Its key in the store.
    pub(crate) key: &'a str,
    /// Its key in the folder of its shape.
    pub(crate) inside: &'a str,
    /// What it holds.
    pub(crate) bytes: &'a [u8],
}

/// How one shape's files become documents.
struct Extractor {
    /// The folder of the store that the shape lives in.
    folder: &'static str,
    /// Whether a file in it is worth reading.
    wants: fn(&str) -> bool,
    /// The documents of a file, in its order.
    documents: fn(&Source<'_>) -> Vec<Document>,
}

/// Every shape that can be found.
const SHAPES: &[Extractor] = &[
    Extractor {
        folder: "files",
        wants: visible,
        documents: |source| markdown::documents(source, Shape::Files),
    },
    Extractor { folder: "records", wants: records::wants, documents: records::documents },
    Extractor { folder: "knowledge", wants: entities::wants, documents: entities::documents },
    Extractor { folder: "graph", wants: graph::wants, documents: graph::documents },
    Extractor {
        folder: "notes",
        wants: visible,
        documents: |source| markdown::documents(source, Shape::Notes),
    },
];

/// The largest file that is read for its text; of a larger one only the name is known.
pub(crate) const BYTES_MAX: u64 = 32 << 20;

fn extractor(key: &str) -> Option<(&'static Extractor, &str)> {
    let (folder, inside) = key.split_once('/')?;
    let found = SHAPES.iter().find(|extractor| extractor.folder == folder)?;
    (found.wants)(inside).then_some((found, inside))
}

/// Whether a file of the store has documents.
pub(crate) fn wants(key: &str) -> bool {
    extractor(key).is_some()
}

/// Whether what people write in a file of the store is looked at by no shape but this search.
pub(crate) fn has_plain_text(key: &str) -> bool {
    ["files/", "graph/"].iter().any(|folder| key.starts_with(folder)) && !key.ends_with(graph::META)
}

/// The documents of a file, each with an address of its own.
pub(crate) fn documents(key: &str, bytes: &[u8]) -> Vec<Document> {
    let Some((found, inside)) = extractor(key) else { return Vec::new() };
    (found.documents)(&Source { key, inside, bytes })
}

fn visible(inside: &str) -> bool {
    !inside.split('/').any(|part| part.starts_with('.'))
}

/// Who speaks, if a text begins as a line of a conversation does: `Caroline: I went …`.
fn speaker(text: &str) -> Option<&str> {
    let (name, rest) = text.split_once(':')?;
    let name = name.trim_matches(|c: char| c == '*' || c == '_' || c.is_whitespace());
    let is_name = |word: &str| {
        word.chars().next().is_some_and(char::is_uppercase)
            && word.chars().all(|c| c.is_alphanumeric() || "-'.".contains(c))
    };
    let words = name.split_whitespace().count();
    ((1..=3).contains(&words)
        && name.len() <= 40
        && name.split_whitespace().all(is_name)
        && rest.starts_with([' ', '*', '\n']))
    .then_some(name)
}

/// What a text refers to: `[[name]]`, and markdown links that lead to no web page.
fn links(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        rest = &rest[at + 1..];
        let target = if let Some(inner) = rest.strip_prefix('[') {
            inner.split_once("]]").map(|(name, _)| name.split(['|', '#']).next().unwrap_or(name))
        } else {
            let linked = rest.split_once("](").filter(|(label, _)| !label.contains(['\n', '[', ']']));
            linked
                .and_then(|(_, rest)| rest.split_once(')'))
                .map(|(target, _)| target)
                .filter(|target| !target.contains("://") && !target.contains('\n'))
        };
        let target = target.map(str::trim).filter(|target| !target.is_empty() && target.len() <= 256);
        if let Some(target) = target
            && !found.iter().any(|known| known == target)
        {
            found.push(target.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speakers_are_names_before_a_colon() {
        assert_eq!(speaker("Caroline: I went"), Some("Caroline"));
        assert_eq!(speaker("**Mary Ann:** yes"), Some("Mary Ann"));
        assert_eq!(speaker("note: this"), None);
        assert_eq!(speaker("See Https://x"), None);
        assert_eq!(speaker("No colon"), None);
    }

    #[test]
    fn links_name_what_is_here() {
        assert_eq!(
            links("a [[One|1]] b [two](notes/two.md) [web](https://x.y) [[One]] [broken"),
            ["One", "notes/two.md"]
        );
    }
}
