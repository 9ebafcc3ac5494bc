//! Which parts of a document decide how it is found, and a digest of them, which shows whether a document
//! has changed or its row is damaged.

use rusqlite::Row;

use super::embedding::{DIMENSIONS, Embedder, Vector};
use super::postings;
use crate::clock::Timestamp;
use crate::document::{Document, Shape};
use crate::error::Result;

/// Returns the meaning of a document: that of its text, with its heading at half the weight. An entity
/// without observations has none, and is found only by its name.
pub(super) fn embed(embedder: &dyn Embedder, document: &Document) -> Vector {
    if document.shape == Shape::Entities && document.text.is_empty() {
        return [0; DIMENSIONS];
    }
    let heading = document.title.rsplit(" > ").next().unwrap_or(&document.title);
    embedder.embed(&[(&document.text, 1.0), (heading, 0.5)])
}

/// Everything that the index keeps of a document, as it keeps it.
pub(super) struct Kept<'a> {
    /// Kind, title, subject, text, name, tags: what decides its terms and its meaning.
    terms: [&'a str; 6],
    /// Address, group, shape, links.
    others: [&'a str; 4],
    date: Option<i64>,
    importance: i64,
    uses: i64,
    hidden: bool,
    holds: Option<[i64; 2]>,
    span: [i64; 2],
}

/// The columns of `Kept::read`, of a document `d` and its body `b`.
macro_rules! kept {
    () => {
        "d.kind, d.title, b.subject, b.body, d.name, b.tags, d.address, d.grp, d.shape, b.links, d.date, \
         d.importance, d.uses, d.hidden, d.begins, d.ends, b.start, b.stop, d.terms, d.whole"
    };
}
pub(super) use kept;

/// The number of those columns.
pub(super) const COLUMNS: usize = 20;

/// The digest of what decides a document's terms, and that of everything.
pub(super) type Digests = ([u8; 16], [u8; 16]);

impl<'a> Kept<'a> {
    /// Reads it from the first columns of a row, as `kept!` names them.
    fn read(row: &'a Row<'_>) -> rusqlite::Result<Self> {
        let text = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        let holds: Option<i64> = row.get(14)?;
        Ok(Kept {
            terms: [text(0)?, text(1)?, text(2)?, text(3)?, text(4)?, text(5)?],
            others: [text(6)?, text(7)?, text(8)?, text(9)?],
            date: row.get(10)?,
            importance: row.get(11)?,
            uses: row.get(12)?,
            hidden: row.get(13)?,
            holds: holds.map(|begins| Ok::<_, rusqlite::Error>([begins, row.get(15)?])).transpose()?,
            span: [row.get(16)?, row.get(17)?],
        })
    }

    fn digests(&self) -> Digests {
        let mut hasher = blake3::Hasher::new();
        let add = |hasher: &mut blake3::Hasher, text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        let short = |hasher: &blake3::Hasher| -> [u8; 16] {
            hasher.finalize().as_bytes()[..16].try_into().expect("sixteen of thirty-two bytes")
        };
        self.terms.iter().for_each(|part| add(&mut hasher, part));
        let terms = short(&hasher);
        self.others.iter().for_each(|part| add(&mut hasher, part));
        let numbers = [self.date.unwrap_or(i64::MIN), self.importance, self.uses, self.hidden.into()];
        for number in numbers.into_iter().chain(self.span).chain(self.holds.into_iter().flatten()) {
            hasher.update(&number.to_le_bytes());
        }
        (terms, short(&hasher))
    }
}

/// Returns the two digests of a document.
pub(super) fn digests(document: &Document) -> Digests {
    let Document { kind, title, subject, text, name, address, group, .. } = document;
    let [tags, links] = [&document.tags, &document.links].map(|list| list.join("\n"));
    let kept = Kept {
        terms: [kind, title, subject, text, name, &tags],
        others: [address, group, document.shape.name(), &links],
        date: document.date.map(Timestamp::as_millisecond),
        importance: document.importance.points(),
        uses: uses(document),
        hidden: document.hidden,
        holds: document.holds.map(|(from, until)| [from, until].map(Timestamp::as_millisecond)),
        span: span(document),
    };
    kept.digests()
}

/// How often a document was read, as the index stores it.
pub(super) fn uses(document: &Document) -> i64 {
    i64::try_from(document.uses).unwrap_or(i64::MAX)
}

pub(super) fn span(document: &Document) -> [i64; 2] {
    [document.span.start, document.span.end].map(|at| i64::try_from(at).unwrap_or(i64::MAX))
}

/// Whether a row still holds what was written into it.
pub(super) fn is_sound(row: &Row<'_>) -> rusqlite::Result<bool> {
    let (terms, whole) = Kept::read(row)?.digests();
    Ok(row.get_ref(18)?.as_blob()? == terms && row.get_ref(19)?.as_blob()? == whole)
}

/// Refuses a damaged row.
pub(super) fn check(row: &Row<'_>) -> Result<()> {
    match is_sound(row).map_err(super::database::meant)? {
        true => Ok(()),
        false => Err(postings::broken()),
    }
}
