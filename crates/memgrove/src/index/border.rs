//! Times as they are compared with the dates of memories.
//!
//! A memory is of a moment, or of a day: `2024-05-01` in a heading is that day wherever whoever asks is.
//! The index keeps a day as the moment at which it begins in UTC, and asks no zone: one index serves
//! processes of several. Nothing is written at just such a millisecond by a clock, but for one in a day's
//! worth of milliseconds.

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::dates::DAY_MS;
use crate::clock::Timestamp;

/// A border between what is earlier and what is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Border {
    /// When it is.
    moment: i64,
    /// What calendar and clock show then where one asks, as if they showed UTC: for days.
    shown: i64,
}

impl Border {
    /// The border at a moment, for whoever asks in a zone.
    pub(crate) fn at(moment: i64, zone: &TimeZone) -> Self {
        let offset = |time| i64::from(zone.to_offset(time).seconds()) * 1000;
        let shown = Timestamp::from_millisecond(moment).map_or(moment, |time| moment + offset(time));
        Border { moment, shown }
    }

    /// Whether what is of a date is not earlier.
    pub(crate) fn is_reached(self, date: i64) -> bool {
        date >= self.beside(date)
    }

    /// The border among dates of the kind of this one.
    fn beside(self, date: i64) -> i64 {
        if is_day(date) { self.shown } else { self.moment }
    }

    /// No date before this has reached it.
    pub(crate) fn earliest(self) -> i64 {
        self.moment.min(self.shown)
    }

    /// Every date from here on has reached it.
    pub(crate) fn latest(self) -> i64 {
        self.moment.max(self.shown)
    }
}

/// A time from one border until before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: Border,
    pub(crate) until: Border,
}

impl Span {
    pub(crate) fn has(&self, date: i64) -> bool {
        self.from.is_reached(date) && !self.until.is_reached(date)
    }

    /// Whether a date follows within a time that is as long as this one, but neither shorter nor longer
    /// than these.
    pub(crate) fn is_followed_by(&self, date: i64, (least, most): (i64, i64)) -> bool {
        let (start, end) = (self.from.beside(date), self.until.beside(date));
        let after = end.saturating_sub(start).clamp(least, most);
        (end..end.saturating_add(after)).contains(&date)
    }
}

/// Whether a date is a day, and not a moment.
pub(super) fn is_day(date: i64) -> bool {
    date % DAY_MS == 0
}

/// The day of a date, for whoever asks in a zone.
pub(super) fn day_of(date: Timestamp, zone: &TimeZone) -> Date {
    let zone = if is_day(date.as_millisecond()) { &TimeZone::UTC } else { zone };
    zone.to_datetime(date).date()
}
