//! What every search needs in memory: the index as it was at one moment.
//!
//! It is shared by all searches of the process. A change is applied to a copy, which shares everything
//! that has not changed, while searches that use the old one finish.

use std::sync::Arc;

use rusqlite::Connection;

use super::database::meant;
use super::embedding::DIMENSIONS;
use super::facts::Facts;
use super::hit::Row;
use super::recent::Recent;
use super::scoring::{Posted, Statistics};
use super::wordpiece::Quickly;
use super::{postings, write};
use crate::error::Result;

/// What is known of the index after a given number of changes.
#[derive(Clone, Default)]
pub(super) struct Known {
    pub(super) change: i64,
    pub(super) statistics: Statistics,
    /// The vectors of all documents, by their numbers.
    pub(super) vectors: Vec<Arc<[u8]>>,
    pub(super) hidden: Arc<[usize]>,
    /// Documents that hold from one moment until before another, in milliseconds.
    pub(super) timed: Arc<[(usize, std::ops::Range<i64>)]>,
    pub(super) facts: Facts,
    /// The last change of each block of documents.
    since: Vec<i64>,
    pub(super) lately: Arc<Lately>,
}

/// How many bytes of rows, and of postings, are kept of what was read lately.
const ROWS_BYTES: usize = 8 << 20;
const POSTED_BYTES: usize = 4 << 20;

/// What was read lately: documents, by number and by the change that last touched them, and the postings
/// of terms.
pub(super) struct Lately {
    pub(super) rows: Recent<(usize, i64), Arc<Row>, Quickly>,
    pub(super) posted: Recent<String, Arc<Posted>>,
}

impl Default for Lately {
    fn default() -> Self {
        Lately { rows: Recent::new(ROWS_BYTES), posted: Recent::new(POSTED_BYTES) }
    }
}

impl Known {
    /// The last change of the block that a document is in.
    pub(super) fn since(&self, id: usize) -> i64 {
        self.since.get(id / write::VECTORS as usize).copied().unwrap_or(0)
    }

    /// Whether the postings of a block may differ from what they were after a change.
    pub(super) fn posted_after(&self, block: usize, change: i64) -> bool {
        const BLOCKS: usize = (postings::BLOCK / write::VECTORS) as usize;
        self.since.iter().skip(block * BLOCKS).take(BLOCKS).any(|since| *since > change)
    }

    /// The vector of a document.
    pub(super) fn vector(&self, id: usize) -> Option<&[u8]> {
        let (block, row) = (id / write::VECTORS as usize, id % write::VECTORS as usize);
        self.vectors.get(block)?.get(row * DIMENSIONS..(row + 1) * DIMENSIONS)
    }

    /// The documents that are found only when asked for: put away, no longer true, or not true yet.
    pub(super) fn hidden_at(&self, now: i64) -> impl Iterator<Item = usize> + '_ {
        let untimely = self.timed.iter().filter(move |(_, holds)| !holds.contains(&now)).map(|(id, _)| *id);
        self.hidden.iter().copied().chain(untimely)
    }

    /// Reads what has changed, from a connection that sees the index after `change` changes. A long-lived
    /// process reads all facts the first time.
    pub(super) fn follow(
        known: &mut Arc<Known>,
        connection: &Connection,
        change: i64,
        stays: bool,
    ) -> Result<()> {
        if change < known.change {
            // Someone has put another file in its place.
            *known = Arc::default();
        }
        if change != known.change {
            let known = Arc::make_mut(known);
            // If reading fails halfway, everything is read again next time.
            let before = std::mem::take(known);
            let is_first = before.change == 0;
            *known = before.read(connection, change)?;
            if is_first && stays {
                known.facts.read_all(connection)?;
            }
        }
        Ok(())
    }

    fn read(mut self, connection: &Connection, change: i64) -> Result<Self> {
        let [documents, length, next, _] = write::counts(connection)?;
        self.statistics = Statistics { documents, length, next };
        let room = usize::try_from(next).map_err(|_| postings::broken())?.div_ceil(write::VECTORS as usize);
        self.facts.make_room(room);
        let sql = "SELECT block, data, change FROM vectors WHERE change > ?1";
        let mut statement = connection.prepare_cached(sql).map_err(meant)?;
        let mut rows = statement.query([self.change]).map_err(meant)?;
        while let Some(row) = rows.next().map_err(meant)? {
            let block: i64 = row.get(0).map_err(meant)?;
            let data = row.get_ref(1).map_err(meant)?;
            let data = data.as_blob().map_err(|_| postings::broken())?;
            let block = usize::try_from(block).ok().filter(|block| *block < room);
            let block = block.filter(|_| data.len() <= write::VECTORS as usize * DIMENSIONS);
            let block = block.ok_or_else(postings::broken)?;
            if self.vectors.len() <= block {
                self.vectors.resize_with(block + 1, Arc::default);
                self.since.resize(block + 1, 0);
            }
            self.vectors[block] = data.into();
            self.since[block] = row.get(2).map_err(meant)?;
            self.facts.forget(block);
        }
        let mut statement =
            connection.prepare_cached("SELECT id FROM docs WHERE hidden = 1").map_err(meant)?;
        let ids = statement.query_map([], |row| row.get::<_, i64>(0)).map_err(meant)?;
        let ids = ids.map(|id| id.map(|id| usize::try_from(id).unwrap_or(0)));
        self.hidden = ids.collect::<Result<_, _>>().map_err(meant)?;
        let sql = "SELECT id, begins, ends FROM docs WHERE begins IS NOT NULL";
        let mut statement = connection.prepare_cached(sql).map_err(meant)?;
        let timed = statement
            .query_map([], |row| {
                let (id, begins, ends): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok((usize::try_from(id).unwrap_or(0), begins..ends))
            })
            .map_err(meant)?;
        self.timed = timed.collect::<Result<_, _>>().map_err(meant)?;
        self.change = change;
        Ok(self)
    }
}
