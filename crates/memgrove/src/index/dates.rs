//! Dates as people write them: in front of a memory, as a filter, and in a question.

use std::ops::Range;

use jiff::Zoned;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;

use super::border::Border;
use super::spoken;
use crate::clock::Timestamp;
use crate::text::dates::MONTHS;

pub(super) const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Reads the date of a memory: RFC 3339, `2024-05-01`, `8 May, 2023`, `May 8, 2023`. A date without a zone
/// is taken as UTC.
pub fn written(text: &str) -> Option<Timestamp> {
    written_in(&TimeZone::UTC, text)
}

/// As [`written`], but a date without a zone is in this zone.
fn written_in(zone: &TimeZone, text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    if let Some(day) = text.split(|c: char| !c.is_ascii_digit() && c != '-').find_map(iso_day) {
        let clock = text.split(['T', ' ']).find_map(|part| part.parse::<jiff::civil::Time>().ok());
        return moment(day, clock, zone);
    }
    let named = named(&words(text))?;
    let day = Date::new(named.year?, named.month?, named.day.unwrap_or(1)).ok()?;
    moment(day, None, zone)
}

fn moment(day: Date, clock: Option<jiff::civil::Time>, zone: &TimeZone) -> Option<Timestamp> {
    let time = day.to_datetime(clock.unwrap_or_default());
    zone.to_timestamp(time).ok()
}

/// When a day begins, in milliseconds.
pub(super) fn beginning(day: Date, zone: &TimeZone) -> Option<i64> {
    moment(day, None, zone).map(Timestamp::as_millisecond)
}

pub(super) fn iso_day(text: &str) -> Option<Date> {
    (text.len() == 10).then(|| text.parse().ok()).flatten()
}

/// Returns the start of a day or moment as `since:` and `before:` take it. Days are those of the asker's
/// zone.
pub fn start(text: &str, now: &Zoned) -> Option<Timestamp> {
    Timestamp::from_millisecond(start_ms(text, now)?).ok()
}

/// As [`start`], returned as a border.
pub(crate) fn border(text: &str, now: &Zoned) -> Option<Border> {
    start_ms(text, now).map(|moment| Border::at(moment, now.time_zone()))
}

fn start_ms(text: &str, now: &Zoned) -> Option<i64> {
    let zone = now.time_zone();
    if let Some(moment) = written_in(zone, text) {
        return Some(moment.as_millisecond());
    }
    if let Some(first) = format!("{}-01", text.trim()).parse::<Date>().ok().filter(|_| text.trim().len() == 7)
    {
        return beginning(first, zone);
    }
    let text = text.to_lowercase().replace(['-', '_'], " ");
    if let Some((count, unit)) = ago(&text) {
        return now.timestamp().as_millisecond().checked_sub(count.checked_mul(unit)?);
    }
    let today = now.date();
    if text == "tomorrow" {
        return beginning(today.tomorrow().ok()?, zone);
    }
    if let Some((_, span)) = spoken::told(&words(&text), now) {
        return Some(span.start);
    }
    if let Some(month) = month_named(&text) {
        let begun = month <= today.month();
        let year = if begun { today.year() } else { today.year().checked_sub(1)? };
        return month_of(year, month, zone).map(|span| span.start);
    }
    let year: i16 = text.parse().ok().filter(|year| (1000..=9999).contains(year))?;
    beginning(date(year, 1, 1), zone)
}

/// Reads how many of which unit: `7d`, `2w`, `3 months`.
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

/// The time of `count` days, beginning with `first`.
pub(super) fn days(first: Date, count: i64, zone: &TimeZone) -> Option<Range<i64>> {
    let end = first.checked_add(jiff::Span::new().try_days(count).ok()?).ok()?;
    Some(beginning(first, zone)?..beginning(end, zone)?)
}

/// All of a month.
pub(super) fn month_of(year: i16, month: i8, zone: &TimeZone) -> Option<Range<i64>> {
    let first = Date::new(year, month, 1).ok()?;
    days(first, first.days_in_month().into(), zone)
}

/// The number of a month that a word names.
fn month_named(word: &str) -> Option<i8> {
    let named = |month: &&str| *month == word || (word.len() == 3 && month.starts_with(word));
    MONTHS.iter().position(named).and_then(|at| i8::try_from(at + 1).ok())
}

/// A date as its parts are named in words; some may be missing.
#[derive(Default)]
pub(super) struct Named {
    pub(super) year: Option<i16>,
    pub(super) month: Option<i8>,
    pub(super) day: Option<i8>,
    /// The places of the words that name it.
    pub(super) at: Vec<usize>,
}

/// Finds a date that is named in words. `may` is a month only beside a number or after a word such as
/// `in`.
pub(super) fn named(words: &[String]) -> Option<Named> {
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
            let beside = [at.checked_sub(1), Some(at + 1)];
            let numbers = beside.map(number);
            let spoken = at > 0
                && matches!(words[at - 1].as_str(), "in" | "of" | "during" | "since" | "early" | "late");
            if (word == "may" || word == "march" || word.len() == 3) && !spoken && numbers == [None, None] {
                continue;
            }
            named.month = Some(month);
            named.at.push(at);
            let day = numbers.iter().position(|day| day.is_some_and(|day| (1..=31).contains(&day)));
            if let Some((day, place)) = day.and_then(|side| numbers[side].zip(beside[side])) {
                named.day = i8::try_from(day).ok();
                named.at.push(place);
            }
        }
        if word.len() == 4
            && named.year.is_none()
            && let Some(year) = word.parse().ok().filter(|year| (1900..2200).contains(year))
        {
            named.year = Some(year);
            named.at.push(at);
        }
    }
    (named.month.is_some() || named.year.is_some()).then_some(named)
}

/// Returns for each part of a date how it may be written: a month by its name or its number, a day with a
/// zero or an ending.
pub(super) fn spellings(parts: &[String]) -> Vec<Vec<String>> {
    let number = |part: &str, most: usize| -> Option<usize> {
        let digits = part.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        digits.parse().ok().filter(|number| (1..=most).contains(number))
    };
    // As in `2026-04-22`.
    let is_in_digits = parts.len() == 3 && parts.iter().all(|part| number(part, 9_999).is_some());
    let spelled = |(at, part): (usize, &String)| {
        let named = month_named(part).and_then(|month| usize::try_from(month).ok());
        if let Some(month) = named.or_else(|| number(part, 12).filter(|_| is_in_digits && at == 1)) {
            let name = MONTHS[month - 1];
            return vec![name.to_owned(), name[..3].to_owned(), month.to_string(), format!("{month:02}")];
        }
        match number(part, 31) {
            Some(day) => {
                let endings = ["st", "nd", "rd", "th"].map(|ending| format!("{day}{ending}"));
                [day.to_string(), format!("{day:02}")].into_iter().chain(endings).collect()
            }
            None => vec![part.clone()],
        }
    };
    parts.iter().enumerate().map(spelled).collect()
}

/// The words of a text, in lower case.
pub(super) fn words(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(zone: &TimeZone) -> Zoned {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().expect("a moment");
        now.to_zoned(zone.clone())
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
    fn parts_of_dates_are_spelled_in_several_ways() {
        let spelled =
            |text: &str| spellings(&words(text)).iter().map(|ways| ways.join(" ")).collect::<Vec<_>>();
        let (april, second) = ("april apr 4 04", "2 02 2st 2nd 2rd 2th");
        assert_eq!(spelled("2026-04-02"), ["2026", april, second]);
        assert_eq!(spelled("2nd Apr 2026"), [second, april, "2026"]);
        assert_eq!(spelled("recently"), ["recently"]);
    }

    #[test]
    fn filters_take_days_and_spans() {
        let start = |text: &str| {
            start_ms(text, &now(&TimeZone::UTC))
                .map(|ms| Timestamp::from_millisecond(ms).expect("ok").to_string())
        };
        assert_eq!(start("2024-05-01").as_deref(), Some("2024-05-01T00:00:00Z"));
        assert_eq!(start("2024").as_deref(), Some("2024-01-01T00:00:00Z"));
        assert_eq!(start("7d").as_deref(), Some("2026-11-09T12:00:00Z"));
        assert_eq!(start("yesterday").as_deref(), Some("2026-11-15T00:00:00Z"));
        assert_eq!(start("last-week").as_deref(), Some("2026-11-09T00:00:00Z"));
        assert_eq!(start("last-friday").as_deref(), Some("2026-11-13T00:00:00Z"));
        assert_eq!(start("2024-05").as_deref(), Some("2024-05-01T00:00:00Z"));
        assert_eq!(start("May").as_deref(), Some("2026-05-01T00:00:00Z"));
        assert_eq!(start("december").as_deref(), Some("2025-12-01T00:00:00Z"));
        assert_eq!(start("tomorrow").as_deref(), Some("2026-11-17T00:00:00Z"));
        for wrong in ["whenever", "999999999999999999d", "2024-13", "99999999999999999999d"] {
            assert_eq!(start(wrong), None, "{wrong}");
        }
        let east = TimeZone::fixed(jiff::tz::offset(13));
        let start = |text: &str| super::start(text, &now(&east)).expect("a moment").to_string();
        assert_eq!(start("yesterday"), "2026-11-15T11:00:00Z");
        assert_eq!(start("2024-05-01"), "2024-04-30T11:00:00Z");
        assert_eq!(start("2024-05-01T10:00:00Z"), "2024-05-01T10:00:00Z");
        assert_eq!(start("2024"), "2023-12-31T11:00:00Z");
        assert_eq!(start("12h"), "2026-11-16T00:00:00Z");
    }
}
