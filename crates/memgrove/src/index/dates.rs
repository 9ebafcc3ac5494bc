//! Dates as people write them: in front of a memory, and in a question about it.

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;

use crate::clock::Timestamp;
use crate::text::dates::MONTHS;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// What happened is told afterwards: so much longer, at least and at most, a time is looked for.
const TOLD_MS: (i64, i64) = (7 * DAY_MS, 31 * DAY_MS);

/// When a memory is from, if its date says so: RFC 3339, `2024-05-01`, `8 May, 2023`, `May 8, 2023`.
pub fn written(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    if let Some(day) = text.split(|c: char| !c.is_ascii_digit() && c != '-').find_map(iso_day) {
        let clock = text.split(['T', ' ']).find_map(|part| part.parse::<jiff::civil::Time>().ok());
        return moment(day.at(0, 0, 0, 0).date(), clock);
    }
    let named = named(&words(text))?;
    let day = Date::new(named.year?, named.month?, named.day.unwrap_or(1)).ok()?;
    moment(day, None)
}

fn moment(day: Date, clock: Option<jiff::civil::Time>) -> Option<Timestamp> {
    let time = day.to_datetime(clock.unwrap_or_default());
    time.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

fn iso_day(text: &str) -> Option<Date> {
    (text.len() == 10).then(|| text.parse().ok()).flatten()
}

/// The start of a day or moment, in milliseconds, as `since:` and `before:` take it.
pub(crate) fn start_ms(text: &str, now: Timestamp) -> Option<i64> {
    if let Some(moment) = written(text) {
        return Some(moment.as_millisecond());
    }
    if let Some(first) = format!("{}-01", text.trim()).parse::<Date>().ok().filter(|_| text.trim().len() == 7)
    {
        return moment(first, None).map(Timestamp::as_millisecond);
    }
    let text = text.to_lowercase().replace(['-', '_'], " ");
    if let Some((count, unit)) = ago(&text) {
        return now.as_millisecond().checked_sub(count.checked_mul(unit)?);
    }
    let today = now.to_zoned(TimeZone::UTC).date();
    if text == "tomorrow" {
        return moment(today.tomorrow().ok()?, None).map(Timestamp::as_millisecond);
    }
    if let Some(spoken) = relative(&words(&text), now) {
        return Some(spoken.1.from);
    }
    if let Some(month) = month_named(&text) {
        let begun = month <= today.month();
        let year = if begun { today.year() } else { today.year().checked_sub(1)? };
        return month_of(year, month).map(|span| span.from);
    }
    let year: i16 = text.parse().ok().filter(|year| (1000..=9999).contains(year))?;
    moment(date(year, 1, 1), None).map(Timestamp::as_millisecond)
}

/// `7d`, `2w`, `3 months`: how many of what.
fn ago(text: &str) -> Option<(i64, i64)> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let count: i64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim().trim_end_matches(" ago").trim_end_matches('s') {
        "h" | "hour" => DAY_MS / 24,
        "d" | "day" => DAY_MS,
        "w" | "week" => 7 * DAY_MS,
        "m" | "month" => 30 * DAY_MS,
        "y" | "year" => 365 * DAY_MS,
        _ => return None,
    };
    Some((count, unit))
}

/// A time that a question speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Seen from now, such as `last week`: what is from then comes first.
    Relative(Span),
    /// By name, such as `July 2023`: what is from then, or soon after, is preferred.
    Named(Span),
    /// A month of any year.
    Month(i8),
}

/// From one moment until before another, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: i64,
    pub(crate) to: i64,
}

impl Asked {
    /// Whether a memory of this moment may be meant.
    pub(crate) fn covers(&self, ms: i64) -> bool {
        match self {
            Asked::Relative(span) => (span.from..span.to).contains(&ms),
            Asked::Named(span) => {
                let after = (span.to - span.from).clamp(TOLD_MS.0, TOLD_MS.1);
                (span.from..span.to + after).contains(&ms)
            }
            Asked::Month(month) => {
                let Ok(moment) = Timestamp::from_millisecond(ms) else { return false };
                let there = moment.to_zoned(TimeZone::UTC).month();
                there == *month || there == *month % 12 + 1
            }
        }
    }
}

/// The time that a question speaks of, and the words that say so.
pub(crate) fn asked(query: &str, now: Timestamp) -> Option<(Asked, Vec<String>)> {
    let words = words(query);
    if let Some((used, span)) = relative(&words, now) {
        return Some((Asked::Relative(span), used));
    }
    if let Some(day) = query.split(|c: char| !c.is_ascii_digit() && c != '-').find_map(iso_day) {
        return Some((Asked::Named(days(day, 1)?), Vec::new()));
    }
    let named = named(&words)?;
    let asked = match (named.year, named.month, named.day) {
        (Some(year), Some(month), Some(day)) => Asked::Named(days(Date::new(year, month, day).ok()?, 1)?),
        (Some(year), Some(month), None) => Asked::Named(month_of(year, month)?),
        (Some(year), None, _) => {
            let from = moment(date(year, 1, 1), None)?.as_millisecond();
            Asked::Named(Span { from, to: moment(date(year.checked_add(1)?, 1, 1), None)?.as_millisecond() })
        }
        (None, Some(month), _) => Asked::Month(month),
        (None, None, _) => return None,
    };
    Some((asked, Vec::new()))
}

fn days(first: Date, count: i64) -> Option<Span> {
    let from = moment(first, None)?.as_millisecond();
    Some(Span { from, to: from + count * DAY_MS })
}

fn month_of(year: i16, month: i8) -> Option<Span> {
    let first = Date::new(year, month, 1).ok()?;
    days(first, first.days_in_month().into())
}

/// A time that is told from now, and the words that tell it.
fn relative(words: &[String], now: Timestamp) -> Option<(Vec<String>, Span)> {
    let today = now.to_zoned(TimeZone::UTC).date();
    (0..words.len()).find_map(|at| {
        let (used, span) = told_from(today, &words[at..])?;
        Some((words[at..at + used].to_vec(), span))
    })
}

/// The time that words begin with, told from a day, and how many of them tell it.
fn told_from(today: Date, words: &[String]) -> Option<(usize, Span)> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let unit = |at: usize| Some(word(at).trim_end_matches('s')).filter(|unit| UNITS.contains(unit));
    match (word(0), word(1), word(2)) {
        ("today", ..) => Some((1, days(today, 1)?)),
        ("yesterday", ..) => Some((1, before(today, "day", 1)?)),
        ("this", "week" | "month" | "year", _) => Some((2, before(today, word(1), 0)?)),
        ("last" | "past", "week" | "month" | "year", _) => Some((2, before(today, word(1), 1)?)),
        ("last" | "past", count, _) => {
            let (count, unit) = (number(count)?, unit(2)?);
            // So many days until now: today is one of them.
            let Span { from, .. } = before(today, unit, count)?;
            let first = if unit == "day" { from + DAY_MS } else { same_day(today, unit, count)? };
            Some((3, Span { from: first, to: days(today, 1)?.to }))
        }
        (count, _, "ago") => Some((3, before(today, unit(1)?, number(count)?)?)),
        _ => None,
    }
}

/// What time is counted in.
const UNITS: [&str; 4] = ["day", "week", "month", "year"];
/// Numbers as they are spoken, from one on.
const NUMBERS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
/// Further back than this nobody counts.
const BACK_MAX: i64 = 5_000;

fn number(word: &str) -> Option<i64> {
    let spoken = NUMBERS.iter().position(|number| *number == word).and_then(|at| i64::try_from(at + 1).ok());
    spoken
        .or_else(|| matches!(word, "a" | "an").then_some(1))
        .or_else(|| word.parse().ok().filter(|count| (1..=BACK_MAX).contains(count)))
}

/// The day so many days, weeks, months or years before one.
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

fn same_day(today: Date, unit: &str, count: i64) -> Option<i64> {
    Some(moment(back(today, unit, count)?, None)?.as_millisecond())
}

/// The whole day, week from Monday on, month or year so many before the one that a day is in.
fn before(today: Date, unit: &str, count: i64) -> Option<Span> {
    let there = back(today, unit, count)?;
    match unit {
        "day" => days(there, 1),
        "week" => days(back(there, "day", there.weekday().to_monday_zero_offset().into())?, 7),
        "month" => month_of(there.year(), there.month()),
        _ => days(there.first_of_year(), there.days_in_year().into()),
    }
}

/// The number of a month that a word names.
fn month_named(word: &str) -> Option<i8> {
    let named = |month: &&str| *month == word || (word.len() == 3 && month.starts_with(word));
    MONTHS.iter().position(named).and_then(|at| i8::try_from(at + 1).ok())
}

#[derive(Default)]
struct Named {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
}

/// A date by the names of its parts. `may` is a month only beside a number or `in`.
fn named(words: &[String]) -> Option<Named> {
    let mut named = Named::default();
    let number = |at: Option<usize>| {
        let word = at.and_then(|at| words.get(at))?;
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        digits.parse::<i16>().ok()
    };
    for (at, word) in words.iter().enumerate() {
        if let Some(month) = month_named(word)
            && named.month.is_none()
        {
            let beside = [number(at.checked_sub(1)), number(Some(at + 1))];
            let spoken = at > 0
                && matches!(words[at - 1].as_str(), "in" | "of" | "during" | "since" | "early" | "late");
            if (word == "may" || word == "march" || word.len() == 3) && !spoken && beside == [None, None] {
                continue;
            }
            named.month = Some(month);
            let day = beside.into_iter().flatten().find(|day| (1..=31).contains(day));
            named.day = day.and_then(|day| i8::try_from(day).ok());
        }
        if word.len() == 4
            && let Some(year) = word.parse().ok().filter(|year| (1900..2200).contains(year))
        {
            named.year = named.year.or(Some(year));
        }
    }
    (named.month.is_some() || named.year.is_some()).then_some(named)
}

fn words(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-16T12:00:00Z".parse().expect("a moment")
    }

    #[test]
    fn dates_are_read_as_people_write_them() {
        for (text, day) in [
            ("2024-05-01", "2024-05-01T00:00:00Z"),
            ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00Z"),
            ("Meeting 2024-05-01, later", "2024-05-01T00:00:00Z"),
            ("1:56 pm on 8 May, 2023", "2023-05-08T00:00:00Z"),
            ("July 12th, 2022", "2022-07-12T00:00:00Z"),
        ] {
            assert_eq!(written(text).map(|moment| moment.to_string()).as_deref(), Some(day), "{text}");
        }
        assert_eq!(written("you may go"), None);
        assert_eq!(written("99999-99-99"), None);
    }

    #[test]
    fn questions_speak_of_times() {
        let covers = |query: &str, day: &str| {
            let moment: Timestamp = format!("{day}T09:00:00Z").parse().expect("a moment");
            asked(query, now()).is_some_and(|(asked, _)| asked.covers(moment.as_millisecond()))
        };
        assert!(covers("what did I do last week", "2026-11-10") && !covers("last week", "2026-11-16"));
        assert!(covers("6 days ago", "2026-11-10") && !covers("6 days ago", "2026-11-11"));
        assert!(covers("in the last 7 days", "2026-11-10") && covers("last seven days", "2026-11-16"));
        assert!(!covers("last 7 days", "2026-11-09") && covers("last 2 weeks", "2026-11-02"));
        assert!(covers("what was two weeks ago", "2026-11-02") && !covers("2 weeks ago", "2026-11-09"));
        assert!(covers("a year ago", "2025-02-01") && covers("3 months ago", "2026-08-31"));
        assert!(!covers("long ago", "2026-11-10") && !covers("99999999999 days ago", "2026-11-10"));
        assert!(covers("yesterday", "2026-11-15") && !covers("yesterday", "2026-11-14"));
        assert!(covers("in July 2023", "2023-07-30") && covers("in July 2023", "2023-08-05"));
        assert!(!covers("in July 2023", "2022-07-05") && !covers("in July 2023", "2023-10-05"));
        assert!(covers("camping in July", "2020-07-01") && !covers("may we go", "2020-05-01"));
        assert!(covers("on 31 October, 2022", "2022-11-02"));
        assert_eq!(asked("nothing of the kind", now()), None);
    }

    #[test]
    fn filters_take_days_and_spans() {
        let start = |text: &str| {
            start_ms(text, now()).map(|ms| Timestamp::from_millisecond(ms).expect("ok").to_string())
        };
        assert_eq!(start("2024-05-01").as_deref(), Some("2024-05-01T00:00:00Z"));
        assert_eq!(start("2024").as_deref(), Some("2024-01-01T00:00:00Z"));
        assert_eq!(start("7d").as_deref(), Some("2026-11-09T12:00:00Z"));
        assert_eq!(start("yesterday").as_deref(), Some("2026-11-15T00:00:00Z"));
        assert_eq!(start("last-week").as_deref(), Some("2026-11-09T00:00:00Z"));
        assert_eq!(start("2024-05").as_deref(), Some("2024-05-01T00:00:00Z"));
        assert_eq!(start("May").as_deref(), Some("2026-05-01T00:00:00Z"));
        assert_eq!(start("december").as_deref(), Some("2025-12-01T00:00:00Z"));
        assert_eq!(start("tomorrow").as_deref(), Some("2026-11-17T00:00:00Z"));
        for wrong in ["whenever", "999999999999999999d", "2024-13", "99999999999999999999d"] {
            assert_eq!(start(wrong), None, "{wrong}");
        }
    }
}
