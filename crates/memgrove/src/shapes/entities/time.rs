//! Whether a statement holds: now, or at a moment of the past.
//!
//! A date is a day, a month, a year or a moment, as people write them. A date that cannot be read is
//! ignored: a typing error must not hide what is known.

use jiff::ToSpan;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use super::{Entity, Facts, Observation, Relation};
use crate::clock::Timestamp;
use crate::error::{Error, Kind, Result, code};
use crate::text::dates::written_date;

/// The moment that a question refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The present.
    Now(Timestamp),
    /// A moment of the past.
    Past(Timestamp),
}

/// Returns the last moment of a date that someone asks about.
///
/// # Errors
/// `Invalid` if it is not a date.
pub fn as_of(date: &str) -> Result<Timestamp> {
    Written::read(date).map(|written| written.last).ok_or_else(|| misdated(date))
}

pub(super) fn misdated(date: &str) -> Error {
    Error::new(Kind::Invalid, format!("`{}` is not a date", date.escape_debug()))
        .code(code::INVALID_ENTITY)
        .hint("dates look like 2026-06-01, or 2026-06-01T12:00:00Z")
}

/// A date as it was read.
struct Written {
    first: Timestamp,
    last: Timestamp,
    /// The same date in its usual spelling.
    normal: String,
}

impl Written {
    fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let zoneless = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok();
        let moment =
            text.parse().ok().or_else(|| Some(zoneless().filter(|_| text.contains(':'))?.timestamp()));
        if let Some(moment) = moment {
            return Some(Written { first: moment, last: moment, normal: moment.to_string() });
        }
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (first, next, normal) = match text.split('-').collect::<Vec<_>>()[..] {
            [year] if year.len() == 4 && digits(year) => {
                let first: Date = format!("{year}-01-01").parse().ok()?;
                (first, first.checked_add(1.year()).ok()?, text.to_owned())
            }
            [year, month] if (year.len(), month.len()) == (4, 2) && digits(year) => {
                let first: Date = format!("{text}-01").parse().ok()?;
                (first, first.checked_add(1.month()).ok()?, text.to_owned())
            }
            _ => {
                let day: Date = text.parse().ok().or_else(|| written_date(text)?.parse().ok())?;
                (day, day.tomorrow().ok()?, day.to_string())
            }
        };
        let start = |day: Date| day.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
        let last = start(next)?.checked_sub(1.microsecond()).ok()?;
        Some(Written { first: start(first)?, last, normal })
    }
}

/// The first moment of a date.
fn first(date: Option<&String>) -> Option<Timestamp> {
    Written::read(date?).map(|written| written.first)
}

impl Facts {
    /// Returns its dates, with their names in a file.
    fn dates_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut String)> {
        let [_, date, from, until, _] = self.entries_mut();
        [date, from, until].into_iter().filter_map(|(key, date)| Some((key, date.as_mut()?)))
    }

    /// Rewrites its dates in their usual spelling.
    pub(super) fn normalise(&mut self) {
        for (_, date) in self.dates_mut() {
            if let Some(written) = Written::read(date) {
                *date = written.normal;
            }
        }
    }

    /// Returns the first value that should be a date and is not.
    pub(super) fn misdated(&self) -> Option<String> {
        let mut facts = self.clone();
        let mut wrong = facts.dates_mut().filter(|(_, date)| Written::read(date).is_none());
        wrong.next().map(|(key, date)| format!("{key}: {date}"))
    }

    /// Whether it holds at present.
    pub fn holds_at(&self, now: Timestamp) -> bool {
        self.superseded_by.is_none()
            && first(self.valid_from.as_ref()).is_none_or(|from| from <= now)
            && first(self.valid_until.as_ref()).is_none_or(|until| until > now)
    }

    /// Returns from when until (exclusively) when it holds, if it gives either.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        let [from, until] = [&self.valid_from, &self.valid_until].map(|date| first(date.as_ref()));
        let timed = from.is_some() || until.is_some();
        timed.then(|| (from.unwrap_or(Timestamp::MIN), until.unwrap_or(Timestamp::MAX)))
    }

    /// Whether it held at a past moment. It began when it says, or else when it was recorded, and ended
    /// when it says, or else when its successor began. If it had already ended when it was recorded, its
    /// beginning is unknown.
    fn held_at(&self, at: Timestamp, created: Option<&String>, successor: Option<&Facts>) -> bool {
        let begun = |facts: &Facts| first(facts.valid_from.as_ref()).or_else(|| first(facts.date.as_ref()));
        let until = first(self.valid_until.as_ref()).or_else(|| begun(successor?));
        if self.superseded_by.is_some() && until.is_none() {
            return false;
        }
        let recorded = || first(self.date.as_ref()).or_else(|| first(created));
        let before = |recorded: &Timestamp| until.is_none_or(|until| *recorded < until);
        let from = first(self.valid_from.as_ref()).or_else(|| recorded().filter(before));
        from.is_none_or(|from| from <= at) && until.is_none_or(|until| until > at)
    }
}

impl Entity {
    /// Returns the entity with only the observations and relations that hold, now or at a past moment.
    #[must_use]
    pub fn holding(&self, when: When) -> Self {
        let observations = self.observed(when).map(|(_, one)| one.clone()).collect();
        let relations = self.relations.iter().filter(|one| self.relates(one, when)).cloned().collect();
        let (created, updated, tags) = (self.created.clone(), self.updated.clone(), self.tags.clone());
        let (name, kind) = (self.name.clone(), self.kind.clone());
        Entity { name, kind, created, updated, tags, observations, relations }
    }

    /// Returns the observations that hold, now or at a past moment, each with its number from 1 among all
    /// of them, which addresses use.
    pub fn observed(&self, when: When) -> impl Iterator<Item = (usize, &Observation)> {
        (1..).zip(&self.observations).filter(move |(_, one)| self.observes(one, when))
    }

    fn observes(&self, one: &Observation, when: When) -> bool {
        self.holds(&one.facts, when, |next| {
            Some(&self.observations.iter().rfind(|other| other.text == next)?.facts)
        })
    }

    /// Whether a relation holds, now or at a past moment.
    pub(super) fn relates(&self, one: &Relation, when: When) -> bool {
        self.holds(&one.facts, when, |next| {
            let same = |other: &&Relation| other.kind == one.kind && other.to == next;
            Some(&self.relations.iter().rfind(same)?.facts)
        })
    }

    fn holds<'a>(&self, facts: &'a Facts, when: When, named: impl Fn(&str) -> Option<&'a Facts>) -> bool {
        match when {
            When::Now(now) => facts.holds_at(now),
            When::Past(at) => {
                let successor = facts.superseded_by.as_deref().and_then(named);
                facts.held_at(at, self.created.as_ref(), successor)
            }
        }
    }

    fn facts(&self) -> impl Iterator<Item = &Facts> {
        let observations = self.observations.iter().map(|observation| &observation.facts);
        observations.chain(self.relations.iter().map(|relation| &relation.facts))
    }

    /// Whether every observation and relation holds at present.
    pub(super) fn holds_whole(&self, now: Timestamp) -> bool {
        self.facts().all(|facts| facts.holds_at(now))
    }

    /// The next moment at which something begins or ceases to hold.
    pub(super) fn turns(&self, now: Timestamp) -> Option<Timestamp> {
        let current = self.facts().filter(|facts| facts.superseded_by.is_none());
        let dates = current.flat_map(|facts| [&facts.valid_from, &facts.valid_until]);
        dates.filter_map(|date| first(date.as_ref())).filter(|moment| *moment > now).min()
    }

    /// Returns the first date of an observation or relation that cannot be read.
    pub(super) fn misdated(&self) -> Option<String> {
        self.facts().find_map(Facts::misdated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_written_as_everyone_does() {
        for (given, normal, last) in [
            ("2026-06-01", "2026-06-01", "2026-06-01T23:59:59.999999Z"),
            (" 2026-6-1 ", "2026-06-01", "2026-06-01T23:59:59.999999Z"),
            ("1 June 2026", "2026-06-01", "2026-06-01T23:59:59.999999Z"),
            ("2026-02", "2026-02", "2026-02-28T23:59:59.999999Z"),
            ("1066", "1066", "1066-12-31T23:59:59.999999Z"),
            ("1066-10-14", "1066-10-14", "1066-10-14T23:59:59.999999Z"),
            ("2026-06-01T12:00:00+02:00", "2026-06-01T10:00:00Z", "2026-06-01T10:00:00Z"),
            ("2026-06-01 12:30", "2026-06-01T12:30:00Z", "2026-06-01T12:30:00Z"),
        ] {
            let read = Written::read(given).expect(given);
            assert_eq!((read.normal.as_str(), read.last.to_string().as_str()), (normal, last), "{given}");
        }
        for none in ["", "garbage", "2026-13-45", "2026-13", "soon", "12", "2026-06-01T99:00:00Z"] {
            assert!(Written::read(none).is_none(), "{none}");
            assert_eq!(as_of(none).expect_err(none).kind(), Kind::Invalid);
        }
    }
}
