//! Which time a question names: relative to now (`last week`, `since yesterday`), or as a date (`in July
//! 2023`).

use std::ops::Range;

use jiff::Zoned;
use jiff::civil::{Date, date};

use super::border::{Border, Span};
use super::dates::{DAY_MS, beginning, days, iso_day, month_of, named, words};
use crate::text::dates::WEEKDAYS;

const HOUR_MS: i64 = 60 * 60 * 1000;
/// People write about an event afterwards, so dates just after the time in question count too, for as long
/// again within these limits, and with this share.
const TOLD_MS: (i64, i64) = (7 * DAY_MS, 31 * DAY_MS);
const TOLD: f32 = 0.5;
/// A month without a year may be of any of so many past years.
const YEARS_BACK: i16 = 30;
/// What `recently` means.
const RECENT_MS: i64 = 30 * DAY_MS;

/// A time that a question names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The spans that are meant, newest first: one, unless the year is open.
    pub(crate) spans: Vec<Span>,
    /// Whether documents from that time come before all others, and are not merely preferred.
    pub(crate) firm: bool,
    /// Whether it is a date such as `July 2023`, which may also stand in a text.
    pub(crate) named: bool,
    /// Whether the question asks for nothing else.
    pub(crate) alone: bool,
}

impl Asked {
    /// Whether it has a beginning and an end, as a month has, and `since May` has not.
    pub(crate) fn is_bounded(&self) -> bool {
        let ends = |span: &Span| span.from.earliest() > i64::MIN && span.until.latest() < i64::MAX;
        self.spans.iter().all(ends)
    }

    /// The dates, or more, that count for some of that time.
    pub(crate) fn reaches(&self) -> impl Iterator<Item = [i64; 2]> + '_ {
        let (_, told) = TOLD_MS;
        self.spans.iter().map(move |span| [span.from.earliest(), span.until.latest().saturating_add(told)])
    }

    /// Whether a date falls into that time.
    pub(crate) fn is_then(&self, date: i64) -> bool {
        self.spans.iter().any(|span| span.has(date))
    }

    /// Returns how much of that time a date counts for: 1 within it, and a share shortly after it.
    pub(crate) fn share(&self, date: i64) -> f32 {
        match self.is_then(date) {
            true => 1.0,
            false if !self.firm && self.spans.iter().any(|span| span.is_followed_by(date, TOLD_MS)) => TOLD,
            false => 0.0,
        }
    }
}

/// Finds the time that a question names, and the words that name it. A full date wins over a relative
/// time: `last Friday, 23 January 2022` is about that date. Days are those of the asker's zone.
pub(crate) fn asked(query: &str, now: &Zoned) -> Option<(Asked, Vec<String>)> {
    let words = words(query);
    let border = |moment: i64| Border::at(moment, now.time_zone());
    let span = |span: Range<i64>| Span { from: border(span.start), until: border(span.end) };
    let told_by = |at: Vec<usize>| at.into_iter().filter_map(|at| words.get(at).cloned()).collect();
    let by_name = by_name(query, &words, now);
    if let Some((at, told)) = told(&words, now)
        && by_name.as_ref().is_none_or(|named| named.precision < Precision::Month)
    {
        let (bound, before) = bound(&words, at.start);
        let asked = Asked { spans: vec![span(bound.of(told))], firm: true, named: false, alone: false };
        return Some((asked, told_by(before.into_iter().chain(at).collect())));
    }
    let recently = || words.iter().position(|word| matches!(word.as_str(), "recently" | "lately"));
    let (spans, at) = match by_name {
        Some(ByName { at, spans, precision }) => {
            // With a single day a preposition is no bound: `before` a day means shortly before it.
            let first = at.iter().copied().min().filter(|_| precision != Precision::Day);
            let (bound, before) = first.map_or((Bound::None, None), |first| bound(&words, first));
            let last = || spans.iter().find(|span| span.start <= now_ms(now)).cloned();
            let spans = match before {
                // `since May` means since the most recent May.
                Some(_) => last().into_iter().map(|span| bound.of(span)).collect(),
                None => spans,
            };
            (spans, before.into_iter().chain(at).collect())
        }
        None => {
            let (at, recent) = (recently()?, now_ms(now) - RECENT_MS..i64::MAX);
            (vec![recent], vec![at])
        }
    };
    let spans = spans.into_iter().map(span).collect();
    Some((Asked { spans, firm: false, named: true, alone: false }, told_by(at)))
}

fn now_ms(now: &Zoned) -> i64 {
    now.timestamp().as_millisecond()
}

/// A preposition that makes a time a bound.
#[derive(Clone, Copy)]
enum Bound {
    None,
    Since,
    After,
    Before,
    Until,
}

impl Bound {
    fn of(self, span: Range<i64>) -> Range<i64> {
        match self {
            Bound::None => span,
            Bound::Since => span.start..i64::MAX,
            Bound::After => span.end..i64::MAX,
            Bound::Before => i64::MIN..span.start,
            Bound::Until => i64::MIN..span.end,
        }
    }
}

/// Returns the preposition before the word at a place, and its own place.
fn bound(words: &[String], at: usize) -> (Bound, Option<usize>) {
    let before = words[..at].iter().rposition(|word| word != "the");
    match before.and_then(|at| bound_by(&words[at])) {
        Some(bound) => (bound, before),
        None => (Bound::None, None),
    }
}

fn bound_by(word: &str) -> Option<Bound> {
    match word {
        "since" => Some(Bound::Since),
        "after" => Some(Bound::After),
        "before" => Some(Bound::Before),
        "until" | "till" => Some(Bound::Until),
        _ => None,
    }
}

/// Whether a word is a preposition that makes a time a bound.
pub(super) fn is_bound(word: &str) -> bool {
    bound_by(word).is_some()
}

/// How precise a date in words is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precision {
    /// A year alone, or a month or day without a year.
    Part,
    Month,
    Day,
}

/// The times that a date in words may mean, and the places of those words.
struct ByName {
    at: Vec<usize>,
    spans: Vec<Range<i64>>,
    precision: Precision,
}

fn by_name(query: &str, words: &[String], now: &Zoned) -> Option<ByName> {
    let zone = now.time_zone();
    let parts = query.split(|c: char| !c.is_ascii_digit() && c != '-');
    if let Some((day, written)) = parts.into_iter().find_map(|part| Some((iso_day(part)?, part))) {
        let parts = super::dates::words(written);
        let at = words.windows(parts.len()).position(|there| there == parts)?;
        let at = (at..at + parts.len()).collect();
        return Some(ByName { at, spans: vec![days(day, 1, zone)?], precision: Precision::Day });
    }
    let named = named(words)?;
    let (spans, precision) = match (named.year, named.month, named.day) {
        (Some(year), Some(month), Some(day)) => {
            (vec![days(Date::new(year, month, day).ok()?, 1, zone)?], Precision::Day)
        }
        (Some(year), Some(month), None) => (vec![month_of(year, month, zone)?], Precision::Month),
        (Some(year), None, _) => {
            let first = |year: i16| beginning(date(year, 1, 1), zone);
            let span = first(year)?..first(year + 1)?;
            (vec![span], Precision::Part)
        }
        (None, Some(month), day) => {
            let this = now.year();
            let of = |year: i16| match day {
                Some(day) => days(Date::new(year, month, day).ok()?, 1, zone),
                None => month_of(year, month, zone),
            };
            ((this - YEARS_BACK..=this).rev().filter_map(of).collect(), Precision::Part)
        }
        (None, None, _) => return None,
    };
    Some(ByName { at: named.at, spans, precision })
}

/// Finds a time relative to now, and the place of the words that name it.
pub(super) fn told(words: &[String], now: &Zoned) -> Option<(Range<usize>, Range<i64>)> {
    (0..words.len()).find_map(|at| {
        let (used, span) = told_from(now, &words[at..])?;
        Some((at..at + used, span))
    })
}

/// Reads a relative time at the beginning of some words; returns how many words it takes, and the time.
fn told_from(now: &Zoned, words: &[String]) -> Option<(usize, Range<i64>)> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    match [word(0), word(1), word(2)] {
        ["today" | "tonight", ..] => Some((1, before(now, "day", 0)?)),
        ["this", "morning" | "afternoon" | "evening", _] => Some((2, before(now, "day", 0)?)),
        ["yesterday", ..] => Some((1, before(now, "day", 1)?)),
        ["day", "before", "yesterday"] => Some((3, before(now, "day", 2)?)),
        ["this", unit @ ("week" | "month" | "year"), _] => Some((2, before(now, unit, 0)?)),
        ["last" | "past", "night", _] => {
            let Range { start, end } = before(now, "day", 1)?;
            Some((2, start..end + 6 * HOUR_MS))
        }
        ["last" | "past", "weekend", _] => {
            let monday = back(now.date(), "day", now.weekday().to_monday_zero_offset().into())?;
            Some((2, days(back(monday, "day", 2)?, 2, now.time_zone())?))
        }
        ["last" | "past", unit @ ("week" | "month" | "year"), _] => Some((2, before(now, unit, 1)?)),
        ["last" | "past", "couple", "of"] => Some((4, until_now(now, 2, unit(word(3))?)?)),
        ["last" | "past", next, _] => match WEEKDAYS.iter().position(|day| *day == next) {
            Some(day) => {
                let ago =
                    (i64::from(now.weekday().to_monday_zero_offset()) - day as i64 + 6).rem_euclid(7) + 1;
                Some((2, before(now, "day", ago)?))
            }
            None => Some((3, until_now(now, number(next)?, unit(word(2))?)?)),
        },
        ["few", _, "ago"] => {
            let unit = unit(word(1))?;
            Some((3, until_now(now, 2 * FEW, unit)?.start..until_now(now, 1, unit)?.start))
        }
        [count, _, "ago"] => match unit(word(1))? {
            "hour" => {
                let ago = |count: i64| now_ms(now) - count * HOUR_MS;
                Some((3, ago(number(count)? + 1)..ago(number(count)? - 1)))
            }
            unit => Some((3, before(now, unit, number(count)?)?)),
        },
        _ => None,
    }
}

/// The units of relative times.
const UNITS: [&str; 5] = ["hour", "day", "week", "month", "year"];

fn unit(word: &str) -> Option<&str> {
    Some(word.trim_end_matches('s')).filter(|unit| UNITS.contains(unit))
}

/// Number words, from one on.
const NUMBERS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
const FEW: i64 = 3;
/// A larger number is not read as a count.
const BACK_MAX: i64 = 5_000;

fn number(word: &str) -> Option<i64> {
    let spoken = NUMBERS.iter().position(|number| *number == word).and_then(|at| i64::try_from(at + 1).ok());
    match word {
        "a" | "an" => Some(1),
        "few" | "several" => Some(FEW),
        _ => spoken.or_else(|| word.parse().ok().filter(|count| (1..=BACK_MAX).contains(count))),
    }
}

/// Returns the day that is `count` days, weeks, months or years before another.
fn back(today: Date, unit: &str, count: i64) -> Option<Date> {
    let span = jiff::Span::new();
    let span = match unit {
        "day" => span.days(count),
        "week" => span.weeks(count),
        "month" => span.months(count),
        _ => span.years(count),
    };
    today.checked_sub(span).ok()
}

/// Returns the time from `count` hours, days and so on ago to the end of today, which is one of the days.
fn until_now(now: &Zoned, count: i64, unit: &str) -> Option<Range<i64>> {
    let start = match unit {
        "hour" => now_ms(now) - count * HOUR_MS,
        "day" => before(now, unit, count)?.end,
        _ => beginning(back(now.date(), unit, count)?, now.time_zone())?,
    };
    Some(start..before(now, "day", 0)?.end)
}

/// Returns the whole day, week (from Monday), month or year that lies `count` units before the current
/// one.
fn before(now: &Zoned, unit: &str, count: i64) -> Option<Range<i64>> {
    let (there, zone) = (back(now.date(), unit, count)?, now.time_zone());
    match unit {
        "day" => days(there, 1, zone),
        "week" => days(back(there, "day", there.weekday().to_monday_zero_offset().into())?, 7, zone),
        "month" => month_of(there.year(), there.month(), zone),
        _ => days(there.first_of_year(), there.days_in_year().into(), zone),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::{TimeZone, offset};

    use super::*;
    use crate::clock::Timestamp;

    fn now() -> Zoned {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().expect("a moment");
        now.to_zoned(TimeZone::UTC)
    }

    /// How much of a memory of this day is from the time that a question speaks of.
    fn share(query: &str, day: &str) -> f32 {
        let moment: Timestamp = format!("{day}T09:00:00Z").parse().expect("a moment");
        asked(query, &now()).map_or(-1.0, |(asked, _)| asked.share(moment.as_millisecond()))
    }

    #[test]
    fn questions_speak_of_times() {
        for (query, then, not_then) in [
            ("what did I do last week", "2026-11-10", "2026-11-16"),
            ("6 days ago", "2026-11-10", "2026-11-11"),
            ("in the last 7 days", "2026-11-10", "2026-11-09"),
            ("last seven days", "2026-11-16", "2026-11-17"),
            ("last 2 weeks", "2026-11-02", "2026-11-01"),
            ("what was two weeks ago", "2026-11-02", "2026-11-09"),
            ("a year ago", "2025-02-01", "2026-02-01"),
            ("3 months ago", "2026-08-31", "2026-09-01"),
            ("yesterday's talk", "2026-11-15", "2026-11-14"),
            ("the day before yesterday", "2026-11-14", "2026-11-15"),
            ("before yesterday", "2026-11-14", "2026-11-15"),
            ("since yesterday", "2026-11-16", "2026-11-14"),
            ("after last week", "2026-11-16", "2026-11-15"),
            ("until last Friday", "2026-11-13", "2026-11-14"),
            ("last friday", "2026-11-13", "2026-11-06"),
            ("last monday", "2026-11-09", "2026-11-16"),
            ("last night", "2026-11-15", "2026-11-16"),
            ("this morning", "2026-11-16", "2026-11-15"),
            ("last 24 hours", "2026-11-16", "2026-11-15"),
            ("past few days", "2026-11-14", "2026-11-13"),
            ("the last couple of days", "2026-11-15", "2026-11-14"),
            ("a few days ago", "2026-11-12", "2026-11-16"),
            ("last weekend", "2026-11-14", "2026-11-13"),
            ("recently", "2026-11-01", "2026-10-01"),
            ("in July 2023", "2023-07-30", "2022-07-05"),
            ("since July 2023", "2024-07-30", "2023-06-05"),
            ("since May", "2026-07-30", "2026-04-30"),
            ("since December", "2025-12-30", "2025-11-30"),
            ("before 2024", "2023-07-30", "2024-02-05"),
            ("camping in July", "2020-07-01", "2020-09-01"),
            ("on 31 October, 2022", "2022-10-31", "2022-10-30"),
            ("2026-10-20", "2026-10-20", "2026-10-19"),
            ("the weekend before 4 October, 2023", "2023-10-04", "2023-10-03"),
            ("last Friday, 23 January 2022", "2022-01-23", "2026-11-13"),
            ("the 2023 budget of last week", "2026-11-10", "2023-11-10"),
        ] {
            assert_eq!((share(query, then), share(query, not_then)), (1.0, 0.0), "{query}");
        }
        // What happened is told afterwards.
        assert_eq!((share("in July 2023", "2023-08-05"), share("in July 2023", "2023-10-05")), (0.5, 0.0));
        assert_eq!(share("on 31 October, 2022", "2022-11-02"), 0.5);
        for query in
            ["nothing of the kind", "long ago", "99999999999 days ago", "may we go", "the last straw"]
        {
            assert_eq!(share(query, "2026-05-10"), -1.0, "{query}");
        }
    }

    #[test]
    fn the_words_that_speak_of_it_are_told() {
        let told = |query: &str| asked(query, &now()).map(|(_, words)| words).unwrap_or_default();
        assert_eq!(told("tea since the last 3 weeks"), ["since", "last", "3", "weeks"]);
        assert_eq!(told("what on 20 Oct 2026"), ["oct", "20", "2026"]);
        assert_eq!(told("what on 2026-10-20?"), ["2026", "10", "20"]);
    }

    #[test]
    fn days_are_those_of_whoever_asks() {
        let share = |hours: i8, query: &str, date: &str| {
            let now = now().with_time_zone(TimeZone::fixed(offset(hours)));
            let date: Timestamp = date.parse().expect("a moment");
            asked(query, &now).map_or(-1.0, |(asked, _)| asked.share(date.as_millisecond()))
        };
        // At noon in London it is the 16th in New York, and the 17th in Auckland.
        for (hours, query, then, not_then) in [
            (-5, "today", "2026-11-17T04:59:00Z", "2026-11-16T04:59:00Z"),
            (13, "today", "2026-11-16T11:01:00Z", "2026-11-16T10:59:00Z"),
            (13, "yesterday", "2026-11-15T11:01:00Z", "2026-11-16T11:01:00Z"),
            (-5, "yesterday", "2026-11-16T04:59:00Z", "2026-11-15T04:59:00Z"),
            (-5, "last Friday", "2026-11-14T01:00:00Z", "2026-11-13T01:00:00Z"),
            (-5, "last week", "2026-11-16T01:00:00Z", "2026-11-09T01:00:00Z"),
            (-5, "in July 2023", "2023-08-01T03:00:00Z", "2023-07-01T03:00:00Z"),
            (-5, "last 24 hours", "2026-11-15T12:30:00Z", "2026-11-15T11:30:00Z"),
            // What is of a day, and of no moment, is of that day everywhere.
            (-5, "today", "2026-11-16T00:00:00Z", "2026-11-17T00:00:00Z"),
            (13, "today", "2026-11-17T00:00:00Z", "2026-11-16T00:00:00Z"),
            (-5, "in July 2023", "2023-07-01T00:00:00Z", "2023-06-30T00:00:00Z"),
        ] {
            let shares = (share(hours, query, then), share(hours, query, not_then));
            assert_eq!(shares, (1.0, 0.0), "{query} at {hours}");
        }
    }
}
