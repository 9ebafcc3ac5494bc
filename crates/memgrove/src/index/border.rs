//! How a moment is compared with the dates of memories, which may be whole days.
//!
//! A memory is dated to a moment or to a day. `2024-05-01` in a heading means that day in the time zone of
//! whoever asks, so the index stores a day as midnight UTC, and one index serves processes in several
//! zones. A clock time passes for a day only if it falls on exactly that millisecond.

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::dates::DAY_MS;
use crate::clock::Timestamp;

/// A moment that separates earlier dates from later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Border {
    /// The moment, for dates that are moments.
    moment: i64,
    /// What a clock shows at that moment in the asker's zone, read as if it were UTC: for dates that are
    /// days.
    shown: i64,
}

impl Border {
    /// Returns the border at a moment, for someone who asks in a zone.
    pub(crate) fn at(moment: i64, zone: &TimeZone) -> Self {
        let offset = |time| i64::from(zone.to_offset(time).seconds()) * 1000;
        let shown = Timestamp::from_millisecond(moment).map_or(moment, |time| moment + offset(time));
        Border { moment, shown }
    }

    /// Whether a date is at the border or after it.
    pub(crate) fn is_reached(self, date: i64) -> bool {
        date >= self.beside(date)
    }

    /// Returns the border as it compares with this date: as a day or as a moment.
    fn beside(self, date: i64) -> i64 {
        if is_day(date) { self.shown } else { self.moment }
    }

    /// The first date that can have reached the border.
    pub(crate) fn earliest(self) -> i64 {
        self.moment.min(self.shown)
    }

    /// The date from which on every date has reached the border.
    pub(crate) fn latest(self) -> i64 {
        self.moment.max(self.shown)
    }
}

/// The time from one border up to, but without, another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: Border,
    pub(crate) until: Border,
}

impl Span {
    pub(crate) fn has(&self, date: i64) -> bool {
        self.from.is_reached(date) && !self.until.is_reached(date)
    }

    /// Whether a date falls into the time just after this span, which counts for as long as the span is,
    /// within these limits.
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
