//! What every search asks of a document beside its text, remembered by the process that has asked
//! once: a search weighs hundreds of documents and shows a few.

use std::hash::{DefaultHasher, Hash, Hasher};

use rusqlite::{OptionalExtension, Row};

use super::database::meant;
use super::{State, write};
use crate::error::Result;

/// What is known of a document.
pub(super) struct Fact {
    pub(super) file: i64,
    pub(super) ord: i64,
    /// What it belongs with: equal for the documents of one group.
    pub(super) group: u64,
    /// When it is from, or else its file.
    pub(super) date: i64,
    pub(super) importance: i64,
    pub(super) uses: i64,
    pub(super) kind: Box<str>,
    pub(super) title: Box<str>,
    /// The documents before and after it in its file, once they were asked for.
    beside: Option<[Option<u32>; 2]>,
}

/// The facts that this process remembers, by the numbers of their documents.
#[derive(Default)]
pub(super) struct Facts(Vec<Option<Fact>>);

impl Facts {
    /// Forgets the documents of one block, which have changed.
    pub(super) fn forget(&mut self, block: i64) {
        let Ok(start) = usize::try_from(block.saturating_mul(write::VECTORS)) else { return };
        let end = (start + write::VECTORS as usize).min(self.0.len());
        if start < end {
            self.0[start..end].fill_with(|| None);
        }
    }

    /// Whether nothing was ever asked.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn put(&mut self, id: usize, fact: Fact) {
        if self.0.len() <= id {
            self.0.resize_with(id + 1, || None);
        }
        self.0[id] = Some(fact);
    }
}

const FACT: &str =
    "SELECT d.file, d.ord, d.grp, coalesce(d.date, f.mtime), d.importance, d.uses, d.kind, d.title, d.id
                    FROM docs d JOIN files f ON f.id = d.file";

impl State {
    /// Says what is known of a document; `None` for one that is gone.
    pub(super) fn fact<T>(&self, id: usize, told: impl FnOnce(&Fact) -> T) -> Result<Option<T>> {
        let mut facts = self.facts.borrow_mut();
        if facts.0.get(id).is_none_or(Option::is_none) {
            let mut statement =
                self.connection().prepare_cached(&format!("{FACT} WHERE d.id = ?1")).map_err(meant)?;
            let found = statement.query_row([id as i64], fact).optional().map_err(meant)?;
            let Some(found) = found else { return Ok(None) };
            facts.put(id, found);
        }
        Ok(facts.0.get(id).and_then(Option::as_ref).map(told))
    }

    /// The documents before and after one in its file.
    pub(super) fn beside(&self, id: usize) -> Result<[Option<u32>; 2]> {
        let Some((file, ord, known)) = self.fact(id, |fact| (fact.file, fact.ord, fact.beside))? else {
            return Ok([None; 2]);
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let sql = "SELECT ord, id FROM docs WHERE file = ?1 AND ord BETWEEN ?2 - 1 AND ?2 + 1";
        let mut statement = self.connection().prepare_cached(sql).map_err(meant)?;
        let mut rows = statement.query([file, ord]).map_err(meant)?;
        let mut beside = [None; 2];
        while let Some(row) = rows.next().map_err(meant)? {
            let (at, near): (i64, u32) = (row.get(0).map_err(meant)?, row.get(1).map_err(meant)?);
            match at - ord {
                -1 => beside[0] = Some(near),
                1 => beside[1] = Some(near),
                _ => {}
            }
        }
        if let Some(Some(fact)) = self.facts.borrow_mut().0.get_mut(id) {
            fact.beside = Some(beside);
        }
        Ok(beside)
    }

    /// Reads the facts of all documents at once, for a process that stays.
    pub(super) fn read_facts(&self) -> Result<()> {
        let mut facts = self.facts.borrow_mut();
        let sql = format!("{FACT} ORDER BY d.file, d.ord");
        let mut statement = self.connection().prepare(&sql).map_err(meant)?;
        let mut rows = statement.query([]).map_err(meant)?;
        let mut last: Option<(usize, i64, i64)> = None;
        while let Some(row) = rows.next().map_err(meant)? {
            let id = usize::try_from(row.get::<_, i64>(8).map_err(meant)?).unwrap_or(0);
            let mut fact = fact(row).map_err(meant)?;
            let before = last.filter(|(_, file, ord)| (*file, ord + 1) == (fact.file, fact.ord));
            let before = before.map(|(before, ..)| before);
            if let Some(Some(before)) = before.and_then(|before| facts.0.get_mut(before)) {
                before.beside = before.beside.map(|[first, _]| [first, u32::try_from(id).ok()]);
            }
            fact.beside = Some([before.and_then(|before| u32::try_from(before).ok()), None]);
            last = Some((id, fact.file, fact.ord));
            facts.put(id, fact);
        }
        Ok(())
    }
}

fn fact(row: &Row<'_>) -> rusqlite::Result<Fact> {
    let mut group = DefaultHasher::new();
    row.get_ref(2)?.as_str()?.hash(&mut group);
    Ok(Fact {
        file: row.get(0)?,
        ord: row.get(1)?,
        group: group.finish(),
        date: row.get(3)?,
        importance: row.get(4)?,
        uses: row.get(5)?,
        kind: row.get_ref(6)?.as_str()?.into(),
        title: row.get_ref(7)?.as_str()?.into(),
        beside: None,
    })
}
