//! How two copies of a file of records become one: by the union of both, by id for records and by line for
//! anything else.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Texts, united};
use crate::clock::Timestamp;
use crate::locator::Locator;
use crate::text::jsonl::{READINGS, spliced, value};

const BYTE_ORDER_MARK: char = '\u{feff}';
const UPDATED: &str = "updated_at";
const CONTENT: &str = "content";

pub(super) fn fits(at: &Locator) -> bool {
    at.name().ends_with(".jsonl")
}

/// A line and, if it is a record, its object.
struct Entry<'a> {
    line: &'a str,
    id: Option<String>,
    value: Value,
}

impl Entry<'_> {
    fn time(&self, name: &str) -> Option<Timestamp> {
        self.value.get(name).and_then(time_in)
    }

    /// Compares by a time: `Greater` if the other's is later.
    fn compared_with(&self, other: &Entry<'_>, name: &str) -> Ordering {
        other.time(name).cmp(&self.time(name))
    }
}

fn time_in(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

fn entries(text: &str) -> Vec<Entry<'_>> {
    let entry = |line| {
        let value: Value = serde_json::from_str(line).unwrap_or(Value::Null);
        let id = value.get("id").and_then(Value::as_str).map(str::to_owned);
        Entry { line, id, value }
    };
    let lines = text.trim_start_matches(BYTE_ORDER_MARK).lines();
    lines.filter(|line| !line.trim().is_empty()).map(entry).collect()
}

fn by_id<'a>(entries: &'a [Entry<'a>]) -> BTreeMap<&'a str, &'a Entry<'a>> {
    entries.iter().filter_map(|entry| Some((entry.id.as_deref()?, entry))).collect()
}

/// Returns the lines that are not records.
fn plain<'a>(entries: &[Entry<'a>]) -> BTreeSet<&'a str> {
    entries.iter().filter(|entry| entry.id.is_none()).map(|entry| entry.line).collect()
}

/// Merges both files: ours in our order, then what only they have. Lines that are not records are kept
/// unless one side removed them. `None` if both sides changed a record and nothing decides between them.
pub(super) fn merge(texts: &Texts<'_>) -> Option<String> {
    let (base, ours, theirs) =
        (entries(texts.base.unwrap_or("")), entries(texts.ours), entries(texts.theirs));
    let (in_base, in_ours, in_theirs) = (by_id(&base), by_id(&ours), by_id(&theirs));
    let [plain_base, plain_ours, plain_theirs] = [&base, &ours, &theirs].map(|entries| plain(entries));
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    for entry in &ours {
        let Some(id) = entry.id.as_deref() else {
            if plain_theirs.contains(entry.line) || !plain_base.contains(entry.line) {
                lines.push(entry.line.into());
            }
            continue;
        };
        match (in_base.get(id), in_theirs.get(id)) {
            (before, Some(other)) => lines.push(one_of(before.copied(), entry, other)?),
            // They removed it, so it goes unless we have changed it since.
            (Some(before), None) if before.value == entry.value => {}
            _ => lines.push(entry.line.into()),
        }
    }
    for entry in &theirs {
        let take = match entry.id.as_deref() {
            None => !plain_ours.contains(entry.line) && !plain_base.contains(entry.line),
            Some(id) if in_ours.contains_key(id) => false,
            // We removed it, so it comes back only if they have changed it since.
            Some(id) => in_base.get(id).is_none_or(|before| before.value != entry.value),
        };
        if take {
            lines.push(entry.line.into());
        }
    }
    let mark = if texts.ours.starts_with(BYTE_ORDER_MARK) { "\u{feff}" } else { "" };
    Some(lines.iter().fold(mark.to_owned(), |text, line| text + line + "\n"))
}

/// Merges two lines with one id. If one side changed the record, that line is taken; if both did, their
/// changes are combined; without a base, the line that was changed last is taken.
fn one_of<'a>(base: Option<&Entry<'_>>, ours: &Entry<'a>, theirs: &Entry<'a>) -> Option<Cow<'a, str>> {
    if ours.value == theirs.value {
        return Some(ours.line.into());
    }
    match base {
        Some(base) if base.value == ours.value => Some(theirs.line.into()),
        Some(base) if base.value == theirs.value => Some(ours.line.into()),
        Some(base) => {
            let later = ours.compared_with(theirs, UPDATED);
            by_members(base.line, ours.line, theirs.line, later).map(Cow::Owned)
        }
        None => newer(ours, theirs).map(Cow::Borrowed),
    }
}

/// Returns our object with their changes. `None` if both changed the content, or both changed another
/// member and neither is later.
fn by_members(base: &str, ours: &str, theirs: &str, later: Ordering) -> Option<String> {
    let object = |text: &str| serde_json::from_str::<Map<String, Value>>(text).ok();
    let (was, mine, yours) = (object(base)?, object(ours)?, object(theirs)?);
    let names: BTreeSet<&String> = mine.keys().chain(yours.keys()).collect();
    let mut changes = Vec::new();
    for name in names {
        let (before, here, there) = (was.get(name), mine.get(name), yours.get(name));
        if here == there || there == before {
            continue;
        }
        let written = |object| value(object, name).map(str::to_owned);
        let becomes = match (here, there) {
            _ if here == before => written(theirs),
            (Some(here), Some(there)) if name == UPDATED || READINGS.contains(&&**name) => {
                written(if is_beyond(there, here) { theirs } else { ours })
            }
            (Some(Value::Array(here)), Some(Value::Array(there))) => {
                let before = before.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                Some(Value::Array(united(before, here, there)).to_string())
            }
            (Some(Value::Object(_)), Some(Value::Object(_))) => {
                let before = value(base, name).unwrap_or("{}");
                let (here, there) = (value(ours, name)?, value(theirs, name)?);
                Some(by_members(before, here, there, later)?)
            }
            _ if name == CONTENT => return None,
            _ => match later {
                Ordering::Greater => written(theirs),
                Ordering::Less => continue,
                Ordering::Equal => return None,
            },
        };
        changes.push((name.as_str(), becomes));
    }
    Some(spliced(ours, &changes))
}

/// Whether a time is later than another, or a number is greater.
fn is_beyond(one: &Value, other: &Value) -> bool {
    (time_in(one), one.as_f64()).partial_cmp(&(time_in(other), other.as_f64())) == Some(Ordering::Greater)
}

/// Returns the line that was changed last. `None` if neither is later and they differ in more than reads
/// and archiving.
fn newer<'a>(ours: &Entry<'a>, theirs: &Entry<'a>) -> Option<&'a str> {
    let order = match ours.compared_with(theirs, UPDATED) {
        Ordering::Equal if said(ours) == said(theirs) => ours.compared_with(theirs, "accessed_at"),
        Ordering::Equal => return None,
        order => order,
    };
    Some(if order == Ordering::Greater { theirs.line } else { ours.line })
}

/// Returns a record without the members that reading or archiving changes.
fn said(entry: &Entry<'_>) -> Value {
    let mut value = entry.value.clone();
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| name != "archived" && !READINGS.contains(&name.as_str()));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base: Option<&str>, ours: &str, theirs: &str, wanted: &str) {
        let line = |word: &str| match word.split_once('=') {
            Some((id, rest)) => {
                let (content, day) = rest.split_once('@').unwrap_or((rest, "1"));
                format!(
                    "{{\"id\":\"{id}\",\"content\":\"{content}\",\"updated_at\":\"2026-01-0{day}T00:00:00Z\"}}\n"
                )
            }
            None => format!("{word}\n"),
        };
        let file = |text: &str| text.split_whitespace().map(line).collect::<String>();
        let (base, ours, theirs) = (base.map(file), file(ours), file(theirs));
        let texts = Texts { base: base.as_deref(), ours: &ours, theirs: &theirs };
        assert_eq!(merge(&texts), Some(file(wanted)));
    }

    #[test]
    fn records_are_united_by_id() {
        check(None, "a=1 b=1", "a=1 c=1", "a=1 b=1 c=1");
        check(None, "a=old@1", "a=new@2", "a=new@2");
        check(None, "a=new@2", "a=old@1", "a=new@2");
        check(Some("a=1"), "a=1", "a=2@1", "a=2@1");
        check(Some("a=1 b=1"), "a=1 b=1", "b=1", "b=1");
        check(Some("a=1 b=1"), "a=2@2 b=1", "b=1", "a=2@2 b=1");
        check(Some("a=1 b=1"), "b=1", "a=1 b=1 c=1", "b=1 c=1");
        check(Some("a=1"), "", "a=2@2", "a=2@2");
    }

    #[test]
    fn a_record_that_both_changed_at_one_time_is_left_to_a_person() {
        let line = |content: &str, accessed: u8| {
            format!(
                "{{\"id\":\"a\",\"content\":\"{content}\",\"updated_at\":\"2026-01-01T00:00:00Z\",\"accessed_at\":\"2026-01-0{accessed}T00:00:00Z\"}}\n"
            )
        };
        let merged = |ours: &str, theirs: &str| merge(&Texts { base: None, ours, theirs });
        assert_eq!(merged(&line("x", 1), &line("y", 1)), None);
        assert_eq!(merged(&line("x", 1), &line("x", 2)), Some(line("x", 2)), "it was only read");
    }

    #[test]
    fn damaged_lines_are_kept_once() {
        check(None, "a=1 torn", "torn {half a=1", "a=1 torn {half");
        check(Some("a=1 torn {half"), "a=1 torn b=1", "a=1 {half c=1", "a=1 b=1 c=1");
        let (plain, marked) = ("{\"id\":\"a\"}\n", "\u{feff}{\"id\":\"a\"}\n");
        let merged = |ours, theirs| merge(&Texts { base: None, ours, theirs });
        assert_eq!(merged(plain, marked).as_deref(), Some(plain), "a mark makes no twin");
        assert_eq!(merged(marked, plain).as_deref(), Some(marked));
    }

    #[test]
    fn what_either_side_changed_in_a_record_is_in_it() {
        let line = |members: &str| {
            let (day, rest) = members.split_once(' ').unwrap_or((members, ""));
            format!("{{\"id\":\"a\",\"own\":1.0,\"updated_at\":\"2026-01-0{day}T00:00:00Z\",{rest}}}\n")
        };
        let base = line(r#"1 "content":"x","importance":"low","tags":["a","b"],"access_count":1"#);
        let check = |ours: &str, theirs: &str, wanted: Option<&str>| {
            let (ours, theirs, wanted) = (line(ours), line(theirs), wanted.map(line));
            assert_eq!(merge(&Texts { base: Some(&base), ours: &ours, theirs: &theirs }), wanted);
        };
        check(
            r#"2 "content":"y","importance":"low","tags":["a","c"],"access_count":4"#,
            r#"3 "content":"x","importance":"high","tags":["b","d"],"access_count":3"#,
            Some(r#"3 "content":"y","importance":"high","tags":["c","d"],"access_count":4"#),
        );
        check(
            r#"3 "content":"y","importance":"high","tags":[],"access_count":1"#,
            r#"2 "content":"x","importance":"medium","tags":["a","b"],"access_count":1,"archived":true"#,
            Some(r#"3 "content":"y","importance":"high","tags":[],"access_count":1,"archived":true"#),
        );
        check(
            r#"3 "content":"y","importance":"low","tags":["a","b"],"access_count":1"#,
            r#"2 "content":"z","importance":"low","tags":["a","b"],"access_count":1"#,
            None,
        );
    }
}
