//! What one file of records contains: where each record is, what it can be found by, and what is wrong.

use std::collections::HashMap;
use std::ops::Range;

use super::limits::Limits;
use super::reading::{self, Reading};
use super::schema::{Importance, Record, RecordType, Status, moment};
use crate::backend::Version;
use crate::clock::Timestamp;
use crate::text::jsonl::{self, BYTE_ORDER_MARK, Line, Piece};

/// What is known of a record without parsing its line again.
#[derive(Debug, Clone)]
pub struct Row {
    /// The number of its line, from 1.
    pub line: usize,
    /// Where its object is in the file's bytes.
    pub span: Range<usize>,
    /// What is removed with it: its line with the newline, or only its object if others share the line.
    pub removal: Range<usize>,
    /// Its id.
    pub id: Box<str>,
    /// What it is about.
    pub category: Option<Box<str>>,
    /// Its tags.
    pub tags: Box<[Box<str>]>,
    /// How much it matters.
    pub importance: Importance,
    /// Whether it is archived.
    pub archived: bool,
    /// The status of the task.
    pub status: Option<Status>,
    /// When it was made, in milliseconds since the epoch, as all times here.
    pub created: i64,
    /// When it was last changed.
    pub updated: i64,
    /// When it was last read.
    pub accessed: i64,
    /// When the task was completed.
    pub completed: Option<i64>,
    /// How often it was read.
    pub count: u64,
    /// Whether reading it makes corrections.
    pub corrected: bool,
}

/// Something wrong in a file of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, as the rest of a sentence that begins with the line.
    pub what: String,
    /// What is done about it.
    pub fate: Fate,
}

/// What is done about a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The bytes are skipped, and only a person can repair them.
    Skipped,
    /// The bytes are skipped until they are repaired.
    Mendable,
    /// The record is used with a correction, which a repair writes to the file.
    Corrected,
    /// The record is used as it is.
    Kept,
}

/// One file of records.
#[derive(Debug, Clone)]
pub struct Table {
    /// The type of its records.
    pub kind: RecordType,
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// Its version; `None` if there is no file.
    pub version: Option<Version>,
    /// Its records in order; of several with one id, only the first.
    pub rows: Vec<Row>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
    /// How many lines have been read, and where the next one begins.
    pub(super) read: (usize, usize),
    /// Bytes that are not used as a record, each with the reason.
    pub skipped: Vec<(Range<usize>, Skip)>,
    pub(super) by_id: HashMap<Box<str>, u32>,
    pub(super) by_tag: HashMap<Box<str>, Vec<u32>>,
    pub(super) by_category: HashMap<Box<str>, Vec<u32>>,
}

/// Why bytes are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// They are damaged.
    Damaged,
    /// They are NUL bytes.
    Nul,
    /// They are an object with a content but without an id.
    Nameless,
    /// They are an object that cannot be a record.
    Unfit,
    /// They are a record with an id that an earlier record has.
    Duplicate,
}

impl Table {
    /// Reads a file. No content makes this fail.
    pub fn parse(
        kind: RecordType,
        bytes: Vec<u8>,
        version: Option<Version>,
        limits: &Limits,
        now: Timestamp,
    ) -> Self {
        let mut table = Table {
            kind,
            bytes: Vec::new(),
            version: version.clone(),
            rows: Vec::new(),
            problems: Vec::new(),
            read: (0, 0),
            skipped: Vec::new(),
            by_id: HashMap::new(),
            by_tag: HashMap::new(),
            by_category: HashMap::new(),
        };
        table.grow(bytes, version, limits, now);
        table
    }

    /// Whether these bytes are the file with more lines at the end.
    pub fn is_grown(&self, bytes: &[u8]) -> bool {
        self.read.1 == self.bytes.len() && bytes.starts_with(&self.bytes)
    }

    /// Adds a row with an id that no earlier row has.
    fn put(&mut self, row: Row) {
        let at = u32::try_from(self.rows.len()).expect("a file has fewer than four milliard lines");
        self.list_row(&row, at);
        self.rows.push(row);
    }

    /// Adds a row to the lists that rows are found by.
    pub(super) fn list_row(&mut self, row: &Row, at: u32) {
        self.by_id.insert(folded(&row.id), at);
        if row.archived {
            return;
        }
        for tag in &row.tags {
            push(&mut self.by_tag, tag, at);
        }
        if let Some(category) = &row.category {
            push(&mut self.by_category, category, at);
        }
    }

    /// Reads the lines that were added to the file.
    pub fn grow(&mut self, bytes: Vec<u8>, version: Option<Version>, limits: &Limits, now: Timestamp) {
        self.read_lines(&bytes, limits, now);
        (self.bytes, self.version) = (bytes, version);
    }

    /// Reads the lines that have not been read yet.
    pub(super) fn read_lines(&mut self, bytes: &[u8], limits: &Limits, now: Timestamp) {
        if self.read.1 == 0 && bytes.starts_with(BYTE_ORDER_MARK) {
            let what = "a byte order mark stands before the first record".to_owned();
            self.problems.push(Problem { line: 1, what, fate: Fate::Corrected });
        }
        for line in jsonl::lines_from(bytes, self.read.1, self.read.0 + 1) {
            // A last line without a newline may still grow, so it is read again next time.
            if bytes.get(line.whole.end - 1) == Some(&b'\n') {
                self.read = (line.number, line.whole.end);
            }
            self.take_line(bytes, &line, limits, now);
        }
    }

    fn take_line(&mut self, bytes: &[u8], line: &Line, limits: &Limits, now: Timestamp) {
        let body = &bytes[line.body.clone()];
        let removal = line.body.start..line.whole.end;
        // Nearly every line is one valid object, which parsing it shows directly.
        if body.len() <= jsonl::LINE_BYTES_MAX
            && body.first() == Some(&b'{')
            && let Ok(text) = std::str::from_utf8(body)
            && let Ok(reading) = reading::read(text, self.kind, limits, now)
        {
            return self.take(bytes, line, line.body.clone(), removal, reading);
        }
        let pieces = jsonl::pieces(body);
        let several = pieces.len() > 1;
        if pieces.iter().filter(|piece| matches!(piece, Piece::Object(_))).count() > 1 {
            self.problem(line, "it holds several objects".to_owned(), Fate::Corrected);
        }
        for piece in pieces {
            match piece {
                Piece::Object(at) => {
                    let span = line.body.start + at.start..line.body.start + at.end;
                    let text = std::str::from_utf8(&body[at]).expect("an object is text");
                    let removal = if several { span.clone() } else { removal.clone() };
                    match reading::read(text, self.kind, limits, now) {
                        Ok(reading) => self.take(bytes, line, span, removal, reading),
                        Err(why) => {
                            let nameless = why == "it has no `id`";
                            let skip = if nameless { Skip::Nameless } else { Skip::Unfit };
                            let fate = if nameless { Fate::Mendable } else { Fate::Skipped };
                            self.problem(line, why, fate);
                            self.skipped.push((span, skip));
                        }
                    }
                }
                Piece::Damaged(at, damage) => {
                    let span = line.body.start + at.start..line.body.start + at.end;
                    let nul = damage == jsonl::Damage::Nul;
                    let (skip, fate) = match nul {
                        true => (Skip::Nul, Fate::Mendable),
                        false => (Skip::Damaged, Fate::Skipped),
                    };
                    self.problem(line, damage.to_string(), fate);
                    self.skipped.push((span, skip));
                }
            }
        }
    }

    fn problem(&mut self, line: &Line, what: String, fate: Fate) {
        self.problems.push(Problem { line: line.number, what, fate });
    }

    fn take(
        &mut self,
        bytes: &[u8],
        line: &Line,
        span: Range<usize>,
        removal: Range<usize>,
        reading: Reading,
    ) {
        let Reading { record, moments, corrections, remarks } = reading;
        if let Some(first) = self.find(&record.id) {
            let what = format!("its id {} came before", record.id);
            let copy = bytes[self.rows[first].span.clone()] == bytes[span.clone()];
            self.problem(line, what, if copy { Fate::Mendable } else { Fate::Skipped });
            self.skipped.push((span, Skip::Duplicate));
            return;
        }
        for correction in &corrections {
            self.problem(line, correction.what.clone(), Fate::Corrected);
        }
        for remark in remarks {
            self.problem(line, remark, Fate::Kept);
        }
        let mut row = row_of(line.number, span, removal, record, moments);
        row.corrected = !corrections.is_empty();
        self.put(row);
    }

    /// Returns the row with an id, ignoring case.
    pub fn find(&self, id: &str) -> Option<usize> {
        let found = match self.by_id.get(id) {
            Some(at) => Some(at),
            None if id.bytes().any(|byte| byte.is_ascii_uppercase()) => self.by_id.get(&folded(id)),
            None => None,
        };
        found.map(|at| *at as usize)
    }

    /// Returns the rows with a tag that are not archived.
    pub fn tagged(&self, tag: &str) -> &[u32] {
        self.by_tag.get(tag).map_or(&[], Vec::as_slice)
    }

    /// Returns the rows in a category that are not archived.
    pub fn of_category(&self, category: &str) -> &[u32] {
        self.by_category.get(category).map_or(&[], Vec::as_slice)
    }

    /// The object of a row, as it is written.
    pub fn object(&self, row: &Row) -> &str {
        std::str::from_utf8(&self.bytes[row.span.clone()]).expect("a row is text")
    }

    /// The record of a row.
    pub fn reading(&self, row: &Row, limits: &Limits) -> Reading {
        let now = Timestamp::from_millisecond(row.created).unwrap_or(Timestamp::UNIX_EPOCH);
        reading::read(self.object(row), self.kind, limits, now).expect("it was read before")
    }

    /// Whether the file is damaged and has no record that can be read or repaired.
    pub fn is_ruined(&self) -> bool {
        let has = |wanted: &[Skip]| self.skipped.iter().any(|(_, skip)| wanted.contains(skip));
        self.rows.is_empty() && has(&[Skip::Damaged, Skip::Nul]) && !has(&[Skip::Nameless])
    }
}

fn row_of(line: usize, span: Range<usize>, removal: Range<usize>, record: Record, moments: [i64; 3]) -> Row {
    let ms = |text: &str| moment(text).map_or(0, Timestamp::as_millisecond);
    let task = record.task_metadata.as_ref();
    let [created, updated, accessed] = moments;
    Row {
        line,
        span,
        removal,
        created,
        updated,
        accessed,
        completed: task.and_then(|task| task.completed_at.as_deref()).map(ms),
        status: task.map(|task| task.status),
        count: record.access_count,
        id: record.id.into(),
        category: record.category.map(Into::into),
        tags: record.tags.into_iter().map(Into::into).collect(),
        importance: record.importance,
        archived: record.archived,
        corrected: false,
    }
}

/// Adds a row to the list of a key, which is in the order of rows.
fn push(index: &mut HashMap<Box<str>, Vec<u32>>, key: &str, at: u32) {
    match index.get_mut(key) {
        Some(rows) if rows.last().is_some_and(|last| *last < at) => rows.push(at),
        Some(rows) => match rows.binary_search(&at) {
            // A record may have the same tag twice.
            Ok(_) => {}
            Err(place) => rows.insert(place, at),
        },
        None => drop(index.insert(key.into(), vec![at])),
    }
}

pub(super) fn folded(id: &str) -> Box<str> {
    id.to_ascii_lowercase().into()
}
