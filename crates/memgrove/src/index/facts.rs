//! What every search needs to know of a document besides its text. A search weighs hundreds of documents
//! and shows a few, so the process remembers these facts once it has read them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use rusqlite::{Connection, OptionalExtension, Row};

use super::database::meant;
use super::{View, write};
use crate::document::Shape;
use crate::error::Result;

/// The most uses that are counted.
const USES_MAX: i64 = 1_000;

/// The query for the columns of a [`Fact`], in the order in which `fact` reads them.
macro_rules! fact {
    ($rest:literal) => {
        concat!(
            "SELECT d.file, d.ord, d.grp, coalesce(d.date, f.mtime), d.importance, d.uses, d.kind, d.title, d.id, d.says, d.linking, d.shape, f.key ",
            "FROM docs d JOIN files f ON f.id = d.file ",
            $rest
        )
    };
}

/// What is known of a document.
pub(super) struct Fact {
    pub(super) file: i64,
    /// The key of its file, shared by the documents of the file that were read together.
    pub(super) key: Arc<str>,
    /// What it belongs with: equal for the documents of one group.
    pub(super) group: u64,
    /// The date of the document, or else of its file.
    pub(super) date: i64,
    pub(super) kind: Box<str>,
    pub(super) title: Box<str>,
    /// Whether it links to anything.
    pub(super) links: bool,
    /// Whether it is an observation of an entity.
    pub(super) observed: bool,
    /// Equal for documents that say the same.
    pub(super) says: i64,
    pub(super) ord: i32,
    pub(super) importance: i16,
    pub(super) uses: u16,
    /// The documents before and after it in its file, once they have been looked up.
    beside: OnceLock<Beside>,
}

/// The numbers of the documents before and after one; 0 for none.
type Beside = [u32; 2];

/// The documents that share a block, each filled in when it is first needed.
type Block = [OnceLock<Fact>; write::VECTORS as usize];

/// The facts that a process remembers, by the numbers of their documents.
#[derive(Clone, Default)]
pub(super) struct Facts(Vec<Arc<Block>>);

impl Facts {
    /// Makes room for so many blocks.
    pub(super) fn make_room(&mut self, blocks: usize) {
        if self.0.len() < blocks {
            self.0.resize_with(blocks, empty);
        }
    }

    /// Forgets the documents of one block, which have changed.
    pub(super) fn forget(&mut self, block: usize) {
        if let Some(block) = self.0.get_mut(block) {
            *block = empty();
        }
    }

    /// Reads the facts of all documents at once, for a process that stays.
    pub(super) fn read_all(&self, connection: &Connection) -> Result<()> {
        let mut statement = connection.prepare(fact!("ORDER BY d.file, d.ord")).map_err(meant)?;
        let mut rows = statement.query([]).map_err(meant)?;
        // Handled one row late: what follows a document is known only when the next is read.
        let (mut first, mut last): (u32, Option<(u32, Fact)>) = (0, None);
        loop {
            let next = match rows.next().map_err(meant)? {
                Some(row) => {
                    let key = last.as_ref().map(|(_, last)| &last.key);
                    Some((row.get(8).map_err(meant)?, fact(row, key).map_err(meant)?))
                }
                None => None,
            };
            let follows = |a: &Fact, b: &Fact| (a.file, a.ord + 1) == (b.file, b.ord);
            let beside =
                last.as_ref().zip(next.as_ref()).filter(|((_, last), (_, next))| follows(last, next));
            let [before, after] = beside.map_or([0; 2], |((before, _), (after, _))| [*before, *after]);
            if let Some((id, fact)) = last {
                fact.beside.get_or_init(|| [first, after]);
                self.of(id as usize).map(|place| place.set(fact));
            }
            let Some(next) = next else { return Ok(()) };
            (first, last) = (before, Some(next));
        }
    }

    fn of(&self, id: usize) -> Option<&OnceLock<Fact>> {
        let rows = write::VECTORS as usize;
        self.0.get(id / rows).map(|block| &block[id % rows])
    }
}

fn empty() -> Arc<Block> {
    Arc::new([const { OnceLock::new() }; write::VECTORS as usize])
}

impl View<'_> {
    /// What is known of a document; `None` for one that is gone.
    pub(super) fn fact(&self, id: usize) -> Result<Option<&Fact>> {
        let Some(place) = self.known.facts.of(id) else { return Ok(None) };
        if let Some(known) = place.get() {
            return Ok(Some(known));
        }
        let mut statement = self.connection().prepare_cached(fact!("WHERE d.id = ?1")).map_err(meant)?;
        let found = statement.query_row([id as i64], |row| fact(row, None)).optional().map_err(meant)?;
        Ok(found.map(|found| place.get_or_init(|| found)))
    }

    /// The documents before and after one in its file.
    pub(super) fn beside(&self, id: usize) -> Result<impl Iterator<Item = usize>> {
        let beside = match self.fact(id)? {
            Some(fact) => match fact.beside.get() {
                Some(known) => *known,
                None => {
                    let found = self.look_beside(fact)?;
                    *fact.beside.get_or_init(|| found)
                }
            },
            None => [0; 2],
        };
        Ok(beside.into_iter().filter(|near| *near > 0).map(|near| near as usize))
    }

    fn look_beside(&self, fact: &Fact) -> Result<Beside> {
        let sql = "SELECT ord, id FROM docs WHERE file = ?1 AND ord BETWEEN ?2 - 1 AND ?2 + 1";
        let mut statement = self.connection().prepare_cached(sql).map_err(meant)?;
        let mut rows = statement.query((fact.file, fact.ord)).map_err(meant)?;
        let mut beside = [0; 2];
        while let Some(row) = rows.next().map_err(meant)? {
            let (at, near): (i32, u32) = (row.get(0).map_err(meant)?, row.get(1).map_err(meant)?);
            match at - fact.ord {
                -1 => beside[0] = near,
                1 => beside[1] = near,
                _ => {}
            }
        }
        Ok(beside)
    }
}

/// Reads a row. `known` is the key of the row before, shared if it is the same.
fn fact(row: &Row<'_>, known: Option<&Arc<str>>) -> rusqlite::Result<Fact> {
    let mut group = DefaultHasher::new();
    row.get_ref(2)?.as_str()?.hash(&mut group);
    let key = row.get_ref(12)?.as_str()?;
    Ok(Fact {
        file: row.get(0)?,
        key: known.filter(|known| &***known == key).map_or_else(|| key.into(), Arc::clone),
        ord: row.get(1)?,
        group: group.finish(),
        date: row.get(3)?,
        importance: row.get(4)?,
        uses: row.get::<_, i64>(5)?.clamp(0, USES_MAX) as u16,
        kind: row.get_ref(6)?.as_str()?.into(),
        title: row.get_ref(7)?.as_str()?.into(),
        says: row.get(9)?,
        links: row.get(10)?,
        observed: row.get_ref(11)?.as_str()? == Shape::Entities.name(),
        beside: OnceLock::new(),
    })
}
