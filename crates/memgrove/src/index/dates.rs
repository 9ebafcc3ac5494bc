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
    let text = text.to_lowercase().replace(['-', '_'], " ");
    if let Some((count, unit)) = ago(&text) {
        return Some(now.as_millisecond() - count * unit);
    }
    if let Some(spoken) = relative(&words(&text), now) {
        return Some(spoken.1.from);
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
    let back = |count: i64| today.checked_sub(jiff::Span::new().days(count)).ok();
    for (at, word) in words.iter().enumerate() {
        let used = |count: usize| words[at..at + count].to_vec();
        let next = words.get(at + 1).map_or("", String::as_str);
        let monday = i64::from(today.weekday().to_monday_zero_offset());
        let span = match (word.as_str(), next) {
            ("today", _) => (1, days(today, 1)?),
            ("yesterday", _) => (1, days(back(1)?, 1)?),
            ("this", "week") => (2, days(back(monday)?, 7)?),
            ("last" | "past", "week") => (2, days(back(monday + 7)?, 7)?),
            ("this", "month") => (2, month_of(today.year(), today.month())?),
            ("last" | "past", "month") => {
                let before = today.first_of_month().yesterday().ok()?;
                (2, month_of(before.year(), before.month())?)
            }
            ("this", "year") => (2, days(today.first_of_year(), today.days_in_year().into())?),
            ("last" | "past", "year") => {
                let before = today.first_of_year().yesterday().ok()?;
                (2, days(before.first_of_year(), before.days_in_year().into())?)
            }
            _ => continue,
        };
        return Some((used(span.0), span.1));
    }
    None
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
        let month = MONTHS
            .iter()
            .position(|month| month == word || (word.len() == 3 && month.starts_with(word.as_str())));
        if let Some(month) = month
            && named.month.is_none()
        {
            let beside = [number(at.checked_sub(1)), number(Some(at + 1))];
            let spoken = at > 0
                && matches!(words[at - 1].as_str(), "in" | "of" | "during" | "since" | "early" | "late");
            if (word == "may" || word == "march" || word.len() == 3) && !spoken && beside == [None, None] {
                continue;
            }
            named.month = i8::try_from(month + 1).ok();
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
        assert_eq!(start("whenever"), None);
    }
}
