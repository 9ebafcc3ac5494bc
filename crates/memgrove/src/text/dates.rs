//! Which date a line begins with, written out: `Friday, 14 March 2025`, `March 3rd 2025`, `2025/03/14`,
//! `14.03.2025`. An ambiguous one such as `03/04/2025` is not read.

use jiff::civil::Date;

use super::blocks::bullet;

/// The English names of the months, in lower case.
pub(crate) const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
/// The English names of the days of the week, in lower case.
pub(crate) const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Reads the date at the start of a line, after marks and a weekday, as `YYYY-MM-DD`.
pub fn written_date(line: &str) -> Option<String> {
    let rest = line[bullet(line).unwrap_or(0)..].trim_start_matches(['#', ' ', '[', '*', '_', '(']);
    let parts = rest.split(|c: char| c.is_whitespace() || c == ',').filter(|part| !part.is_empty());
    let mut words =
        parts.map(|part| part.trim_end_matches(|c: char| !c.is_alphanumeric()).to_lowercase()).peekable();
    words.next_if(|word| is_weekday(word));
    words.next_if(|word| word == "the");
    let first = words.next()?;
    if let Some(date) = in_numbers(&first) {
        return Some(date.to_string());
    }
    let (day, month) = match (day(&first), month(&first)) {
        (Some(day), _) => {
            words.next_if(|word| word == "of");
            (day, month(&words.next()?)?)
        }
        (None, Some(month)) => (day(&words.next()?)?, month),
        (None, None) => return None,
    };
    Date::new(year(&words.next()?)?, month, day).ok().map(|date| date.to_string())
}

/// Whether a lower-case word is an English weekday or its abbreviation.
pub fn is_weekday(word: &str) -> bool {
    let short = |name: &str| (3..=5).contains(&word.len()) && name.starts_with(word);
    WEEKDAYS.contains(&word) || WEEKDAYS.iter().any(|name| short(name))
}

/// Reads a date in digits: year first, or day first between dots.
fn in_numbers(word: &str) -> Option<Date> {
    let between = |mark: char| {
        let parts: Vec<&str> = word.split(mark).collect();
        <[&str; 3]>::try_from(parts).ok()
    };
    let dated = |[one, two, three]: [&str; 3]| {
        Date::new(year(one)?, two.parse().ok()?, day(three).filter(|_| is_number(three))?).ok()
    };
    ['-', '/', '.'].into_iter().find_map(|mark| between(mark).and_then(dated)).or_else(|| {
        let [one, two, three] = between('.')?;
        dated([three, two, one])
    })
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn day(word: &str) -> Option<i8> {
    let number = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    is_number(number).then(|| number.parse().ok()).flatten()
}

fn month(word: &str) -> Option<i8> {
    let short =
        |name: &str| (word.len() == 3 && name.starts_with(word)) || (word == "sept" && name == "september");
    let at = MONTHS.iter().position(|name| *name == word || short(name))?;
    i8::try_from(at + 1).ok()
}

fn year(word: &str) -> Option<i16> {
    let digits = word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| word.parse().ok()).flatten().filter(|year| (1900..2200).contains(year))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_people_write_them() {
        for line in [
            "## Friday, 14 March 2025",
            "Fri 14 Mar 2025",
            "Friday the 14th of March, 2025: a walk",
            "# March 14th 2025",
            "- **Mar. 14, 2025** a walk",
            "Thurs., March 14, 2025 - a walk",
            "2025/03/14",
            "2025/3/14 a walk",
            "[2025.03.14]",
            "Friday 2025-03-14",
            "14.03.2025",
            "14.3.2025: a walk",
        ] {
            assert_eq!(written_date(line).as_deref(), Some("2025-03-14"), "{line}");
        }
        assert_eq!(written_date("### March 3rd 2025").as_deref(), Some("2025-03-03"));
        assert_eq!(written_date("3 Mar 2025").as_deref(), Some("2025-03-03"));
    }

    #[test]
    fn what_is_no_date_or_can_be_two_is_none() {
        for line in [
            "",
            "Friday",
            "Friday prayers",
            "March",
            "March 2025",
            "14 March",
            "03/04/2025",
            "14/03/2025",
            "04-03-2025",
            "31 February 2025",
            "14.13.2025",
            "3 Mars 2025",
            "May 1 have 2025 of them",
            "3.11.2 is the version",
            "2025",
            "日本語の文章です",
            "Maybe 3 2025",
        ] {
            assert_eq!(written_date(line), None, "{line}");
        }
    }
}
