//! How a changed file is read again by its changed lines alone, so that after a change of one record one
//! line is read, not all.

use std::collections::HashMap;
use std::ops::Range;

use super::limits::Limits;
use super::table::{Row, Table, folded};
use crate::backend::Version;
use crate::clock::Timestamp;

/// How many bytes are compared at once.
const BLOCK_BYTES: usize = 4096;

/// The lines in which two contents differ; those before and after are the same.
struct Difference {
    /// Where the differing lines start, in both.
    head: usize,
    /// Where they end in the old content.
    old_end: usize,
    /// Where they end in the new content.
    new_end: usize,
}

impl Difference {
    fn between(old: &[u8], new: &[u8]) -> Self {
        let same = alike(old, new);
        let head = old[..same].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let same = alike_at_end(&old[head..], &new[head..]);
        let tail = &old[old.len() - same..];
        let tail = memchr::memchr(b'\n', tail).map_or(0, |newline| same - newline - 1);
        Difference { head, old_end: old.len() - tail, new_end: new.len() - tail }
    }
}

impl Table {
    /// Turns this into the table of other bytes, keeping the rows of unchanged lines. Returns `false`,
    /// with nothing changed, if reading the whole file is simpler.
    pub fn follow(
        &mut self,
        bytes: &mut Vec<u8>,
        version: Option<Version>,
        limits: &Limits,
        now: Timestamp,
    ) -> bool {
        if self.is_grown(bytes) {
            self.grow(std::mem::take(bytes), version, limits, now);
            return true;
        }
        if self.read.1 != self.bytes.len() || !self.problems.is_empty() || bytes.last() != Some(&b'\n') {
            return false;
        }
        let Difference { head, old_end, new_end } = Difference::between(&self.bytes, bytes);
        let first = self.rows.partition_point(|row| row.removal.end <= head);
        let last = first + self.rows[first..].partition_point(|row| row.span.start < old_end);
        let lines_before = count_lines(&self.bytes[..head]);
        let old_lines = lines_before + count_lines(&self.bytes[head..old_end]);
        let mut middle = Table::parse(self.kind, Vec::new(), None, limits, now);
        middle.read = (lines_before, head);
        middle.read_lines(&bytes[..new_end], limits, now);
        let is_elsewhere = |row: &Row| self.find(&row.id).is_some_and(|at| !(first..last).contains(&at));
        if !middle.problems.is_empty() || middle.rows.iter().any(is_elsewhere) {
            return false;
        }
        for row in &mut self.rows[last..] {
            row.line = row.line - old_lines + middle.read.0;
            for span in [&mut row.span, &mut row.removal] {
                *span = span.start - old_end + new_end..span.end - old_end + new_end;
            }
        }
        self.read = (self.read.0 - old_lines + middle.read.0, bytes.len());
        self.exchange_rows(first..last, middle.rows);
        (self.bytes, self.version) = (std::mem::take(bytes), version);
        true
    }

    /// Replaces rows by others, here and in the lists that rows are found by.
    fn exchange_rows(&mut self, old: Range<usize>, new: Vec<Row>) {
        let number = |at: usize| u32::try_from(at).expect("a file has fewer than four milliard lines");
        for at in old.clone() {
            let row = &self.rows[at];
            self.by_id.remove(&folded(&row.id));
            for tag in &row.tags {
                take_out(&mut self.by_tag, tag, number(at));
            }
            if let Some(category) = &row.category {
                take_out(&mut self.by_category, category, number(at));
            }
        }
        let (from, to) = (number(old.end), number(old.start + new.len()));
        let lists = self.by_tag.values_mut().chain(self.by_category.values_mut()).flatten();
        for at in self.by_id.values_mut().chain(lists).filter(|at| **at >= from && from != to) {
            *at = *at - from + to;
        }
        for (at, row) in (number(old.start)..).zip(&new) {
            self.list_row(row, at);
        }
        self.rows.splice(old, new);
    }
}

/// Removes a row from the list of a key.
fn take_out(index: &mut HashMap<Box<str>, Vec<u32>>, key: &str, at: u32) {
    let Some(rows) = index.get_mut(key) else { return };
    if let Ok(found) = rows.binary_search(&at) {
        rows.remove(found);
    }
    if rows.is_empty() {
        index.remove(key);
    }
}

/// Returns how many bytes two contents have in common at the beginning.
fn alike(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks_exact(BLOCK_BYTES).zip(b.chunks_exact(BLOCK_BYTES));
    let same = blocks.take_while(|(a, b)| a == b).count() * BLOCK_BYTES;
    same + a[same..].iter().zip(&b[same..]).take_while(|(a, b)| a == b).count()
}

/// Returns how many bytes two contents have in common at the end.
fn alike_at_end(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.rchunks_exact(BLOCK_BYTES).zip(b.rchunks_exact(BLOCK_BYTES));
    let same = blocks.take_while(|(a, b)| a == b).count() * BLOCK_BYTES;
    let (a, b) = (&a[..a.len() - same], &b[..b.len() - same]);
    same + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

fn count_lines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}
