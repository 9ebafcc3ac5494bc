//! What of a document decides how it is found.

use super::embedding::{Embedder, Vector};
use crate::document::Document;

/// What a document means: its text, and half as much its heading.
pub(super) fn embed(embedder: &dyn Embedder, document: &Document) -> Vector {
    let heading = document.title.rsplit(" > ").next().unwrap_or(&document.title);
    embedder.embed(&[(&document.text, 1.0), (heading, 0.5)])
}

/// What of a document decides its terms and its meaning, and what decides everything.
pub(super) fn hashes(document: &Document) -> ([u8; 16], [u8; 16]) {
    let mut hasher = blake3::Hasher::new();
    let add = |hasher: &mut blake3::Hasher, text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    let Document { kind, title, subject, text, name, tags, .. } = document;
    for part in [kind, title, subject, text, name].into_iter().chain(tags) {
        add(&mut hasher, part);
    }
    let short = |hasher: &blake3::Hasher| -> [u8; 16] {
        hasher.finalize().as_bytes()[..16].try_into().expect("sixteen of thirty-two bytes")
    };
    let terms = short(&hasher);
    let Document { address, group, links, .. } = document;
    for part in [address, group, document.shape.name()]
        .into_iter()
        .map(AsRef::as_ref)
        .chain(links.iter().map(String::as_str))
    {
        add(&mut hasher, part);
    }
    let date = document.date.map_or(i64::MIN, crate::clock::Timestamp::as_millisecond);
    let numbers = [date, document.importance.points(), document.uses.cast_signed(), document.hidden.into()];
    let holds =
        document.holds.map(|(from, until)| [from, until].map(crate::clock::Timestamp::as_millisecond));
    let places = [document.span.start, document.span.end].map(|at| at as i64);
    for number in numbers.into_iter().chain(places).chain(holds.into_iter().flatten()) {
        hasher.update(&number.to_le_bytes());
    }
    (terms, short(&hasher))
}
