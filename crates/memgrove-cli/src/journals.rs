//! The journals of a store: its own, and that of a mounted folder of records. A change of the mounted folder
//! has a prefix, as in `records:3`, so that no name means two changes.

use std::sync::Arc;

use memgrove::backend::{ChangeId, HistoryQuery, Moment, Note, Past, Version};
use memgrove::clock::Timestamp;
use memgrove::memory::{Done, FOLDER_KEEPER, Point, Restored, UNDO_OF, UndoOutcome, UndoScope};
use memgrove::shapes::records::Records;
use memgrove::{Error, Kind, Locator, Memory, Result};

use crate::context::Context;
use crate::mounts::{self, RECORDS};
use crate::rehearsal::rehearsed;
use crate::verbs::Verb;
use crate::verbs::undo::{Undo, point, point_of_record};

/// One journal.
pub(crate) struct Journal {
    /// The memory whose journal it is.
    pub(crate) memory: Memory,
    /// The records that are mounted, if it is theirs.
    mounted: Option<Arc<Records>>,
}

/// All journals of a store, its own first.
pub(crate) struct Journals(Vec<Journal>);

impl Journals {
    /// Opens the journals to read. A mounted folder that cannot be reached is left out, with a notice.
    pub(crate) fn reading(cx: &Context) -> Result<Self> {
        let mounted = mounts::mounted(cx).unwrap_or_else(|error| {
            crate::notice(&format!("the mounted records are left out: {error}"));
            None
        });
        Ok(Self::of(cx.reading()?, mounted))
    }

    /// Opens the journals to read about one place: a mounted folder only if the place lies in it.
    pub(crate) fn reading_at(cx: &Context, at: &Locator) -> Result<Self> {
        match at.parts().next() == Some(RECORDS) {
            true => Self::reading(cx),
            false => Ok(Self::of(cx.reading()?, None)),
        }
    }

    /// Opens the journals to change something; does not make a store that is missing.
    pub(crate) fn writing(cx: &Context) -> Result<Self> {
        let own = cx.changing()?;
        Ok(Self::of(own, mounts::mounted(cx)?))
    }

    /// As [`Journals::writing`], with every change planned and none made.
    pub(crate) fn rehearsing(cx: &Context) -> Result<Self> {
        let mut all = Self::of(cx.reading()?, mounts::mounted(cx)?);
        all.0.iter_mut().for_each(|journal| journal.memory = rehearsed(&journal.memory));
        Ok(all)
    }

    fn of(own: Memory, mounted: Option<Arc<Records>>) -> Self {
        let theirs =
            mounted.map(|records| Journal { memory: records.memory().clone(), mounted: Some(records) });
        Journals([Journal { memory: own, mounted: None }].into_iter().chain(theirs).collect())
    }

    /// Every journal.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Journal> {
        self.0.iter()
    }

    /// The journal of a place of the store, and what the place is called there.
    pub(crate) fn of_place(&self, at: &Locator) -> (&Journal, Locator) {
        let inside = self.0.iter().find_map(|journal| Some((journal, journal.inside(at)?)));
        inside.unwrap_or((&self.0[0], at.clone()))
    }

    /// The journal of a change, and what the change is called there.
    pub(crate) fn of_change(&self, name: &str) -> (&Journal, ChangeId) {
        let named = self.0.iter().find_map(|journal| Some((journal, journal.own_name(name)?)));
        named.unwrap_or((&self.0[0], ChangeId::new(name)))
    }

    /// What happened, newest first: to a place, before a change, at most `limit` times (0 is no limit), and
    /// including upkeep if wanted. Changes and places have the store's names.
    pub(crate) fn history(
        &self,
        at: Option<&Locator>,
        before: Option<&str>,
        limit: usize,
        upkeep: bool,
    ) -> Result<Vec<Past>> {
        let mark = before.map(|name| self.of_change(name));
        let mut merged = Vec::new();
        for journal in &self.0 {
            let query = HistoryQuery { at: None, before: None, limit };
            let query = match at.map(|at| self.of_place(at)) {
                Some((its, _)) if !std::ptr::eq(its, journal) => continue,
                placed => HistoryQuery { at: placed.map(|(_, at)| at), ..query },
            };
            let past = match &mark {
                None => listed(&journal.memory, query, upkeep)?,
                Some((its, change)) if std::ptr::eq(*its, journal) => {
                    listed(&journal.memory, HistoryQuery { before: Some(change.clone()), ..query }, upkeep)?
                }
                Some((its, change)) => {
                    let then = its.time_of(change)?;
                    let mut past = listed(&journal.memory, HistoryQuery { limit: 0, ..query }, upkeep)?;
                    past.retain(|past| past.time <= then);
                    past
                }
            };
            merge(&mut merged, past.into_iter().map(|past| journal.told(past)));
        }
        if limit > 0 {
            merged.truncate(limit);
        }
        Ok(merged)
    }
}

impl Journal {
    /// What a change is called in the store.
    pub(crate) fn name(&self, change: &ChangeId) -> String {
        self.mounted.as_ref().map_or_else(|| change.to_string(), |records| name_of(records, change))
    }

    /// What a place is called in the store.
    pub(crate) fn place(&self, at: &Locator) -> Locator {
        self.mounted.as_ref().map_or_else(|| at.clone(), |records| mounts::place_of(records, at))
    }

    /// A change in the words of the store.
    pub(crate) fn told(&self, mut past: Past) -> Past {
        past.change = ChangeId::new(self.name(&past.change));
        if let Some(list) = past.note.reason.as_deref().and_then(|reason| reason.strip_prefix(UNDO_OF))
            && past.note.verb == Undo::NAME
        {
            let (names, rest) = list.split_at(list.find(':').unwrap_or(list.len()));
            let names: Vec<String> = names.split(", ").map(|name| self.name(&ChangeId::new(name))).collect();
            past.note.reason = Some(format!("{UNDO_OF}{}{rest}", names.join(", ")));
        }
        past.edits.retain(|edit| edit.at.name() != FOLDER_KEEPER);
        for edit in &mut past.edits {
            edit.at = self.place(&edit.at);
            edit.to = edit.to.as_ref().map(|to| self.place(to));
        }
        past
    }

    /// A point in the words of the store.
    pub(crate) fn told_point(&self, point: &Point) -> Point {
        let named = |change: &ChangeId| ChangeId::new(self.name(change));
        match point {
            Point::Moment(Moment::Before(change)) => Point::Moment(Moment::Before(named(change))),
            Point::Moment(Moment::After(change)) => Point::Moment(Moment::After(named(change))),
            version @ Point::Version(_) => version.clone(),
        }
    }

    /// An error in the words of the store.
    pub(crate) fn told_error(&self, error: Error) -> Error {
        if self.mounted.is_none() {
            return error;
        }
        let mut told = Error::new(error.kind(), in_mount(error.message()));
        if let Some(hint) = error.hint_text() {
            told = told.hint(in_mount(hint));
        }
        if let Some(code) = error.code_name() {
            told = told.code(code);
        }
        told.caused_by(error)
    }

    fn inside(&self, at: &Locator) -> Option<Locator> {
        self.mounted.as_ref()?;
        at.rebased(&Locator::new(RECORDS).ok()?, &Locator::root())
    }

    fn own_name(&self, name: &str) -> Option<ChangeId> {
        self.mounted.as_ref()?;
        name.strip_prefix(RECORDS)?.strip_prefix(':').map(ChangeId::new)
    }

    /// A point in the past of a place of this journal.
    pub(crate) fn point(&self, at: &Locator, name: &str) -> Result<Point> {
        self.own_point(name, || point(&self.memory, at, name))
    }

    /// A point in the past of a record of this journal.
    pub(crate) fn point_of_record(&self, name: &str) -> Result<Point> {
        self.own_point(name, || Ok(point_of_record(name)))
    }

    /// Resolves the store's name of a change, which in a mounted folder is not its name in the journal.
    fn own_point(&self, name: &str, plain: impl FnOnce() -> Result<Point>) -> Result<Point> {
        match (self.own_name(name), &self.mounted) {
            (Some(change), _) => Ok(Point::Moment(Moment::After(change))),
            (None, None) => plain(),
            (None, Some(_)) => match plain()? {
                version @ Point::Version(_) => Ok(version),
                Point::Moment(_) => {
                    let message = format!("change {name} is not one of the mounted records");
                    Err(Error::new(Kind::NotFound, message).hint(format!("those are named {RECORDS}:…")))
                }
            },
        }
    }

    /// Takes changes of this journal back.
    pub(crate) fn undo(&self, note: Note, scope: &UndoScope) -> Result<Done<UndoOutcome>> {
        self.while_locked(|memory| memory.undo(note, scope))
    }

    /// Makes a place what it was.
    pub(crate) fn restore(
        &self,
        note: Note,
        at: &Locator,
        point: &Point,
        expected: Option<&Version>,
    ) -> Result<Done<Restored>> {
        self.while_locked(|memory| memory.restore(note, at, point, expected))
    }

    /// Locks a mounted folder first, because other programs may be using it.
    fn while_locked<T>(&self, act: impl FnOnce(&Memory) -> Result<T>) -> Result<T> {
        match &self.mounted {
            Some(records) => {
                records.while_locked(|_| act(&self.memory)).map_err(|error| self.told_error(error))
            }
            None => act(&self.memory),
        }
    }

    fn time_of(&self, change: &ChangeId) -> Result<Timestamp> {
        let past = self.memory.history(&HistoryQuery::default())?;
        past.into_iter().find(|past| past.change == *change).map(|past| past.time).ok_or_else(|| {
            Error::new(Kind::NotFound, format!("the history has no change `{}`", self.name(change)))
        })
    }
}

/// Rewords a sentence about a mounted folder to the store's names: `change 3` becomes `change records:3`, and
/// `tasks.jsonl` becomes `records/tasks.jsonl`.
fn in_mount(text: &str) -> String {
    let mut told: Vec<String> = Vec::new();
    let mut before = "";
    for word in text.split(' ') {
        let name = word.trim_matches(|sign: char| !sign.is_ascii_alphanumeric());
        let is_change = (["change", "--to", "`change"].contains(&before) || before.ends_with(".jsonl"))
            && !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_digit());
        let is_place =
            (word.starts_with('`') || ["restore", "diff"].contains(&before)) && name.ends_with(".jsonl");
        told.push(match () {
            () if is_change => word.replacen(name, &format!("{RECORDS}:{name}"), 1),
            () if is_place => word.replacen(name, &format!("{RECORDS}/{name}"), 1),
            () => word.to_owned(),
        });
        before = word;
    }
    told.join(" ")
}

/// What a change of records is called in the store.
pub(crate) fn name_of(records: &Records, change: &ChangeId) -> String {
    match mounts::is_mounted(records) {
        true => format!("{RECORDS}:{change}"),
        false => change.to_string(),
    }
}

/// The changes of one journal; those that are upkeep only if they are wanted.
fn listed(memory: &Memory, mut query: HistoryQuery, upkeep: bool) -> Result<Vec<Past>> {
    let wanted = query.limit;
    let mut found = Vec::new();
    loop {
        let page = memory.history(&query)?;
        let ended = wanted == 0 || page.len() < wanted;
        query.before = page.last().map(|past| past.change.clone());
        found.extend(page.into_iter().filter(|past| upkeep || !past.note.is_upkeep()));
        if ended || found.len() >= wanted {
            return Ok(found);
        }
    }
}

/// Puts the changes of another journal between those that are there, by time.
fn merge(into: &mut Vec<Past>, others: impl Iterator<Item = Past>) {
    let mut there = std::mem::take(into).into_iter().peekable();
    for other in others {
        while let Some(later) = there.next_if(|there| there.time >= other.time) {
            into.push(later);
        }
        into.push(other);
    }
    into.extend(there);
}
