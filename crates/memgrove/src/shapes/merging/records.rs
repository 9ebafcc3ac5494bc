//! Records: the union of both files, line by line and id by id.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Texts;
use crate::locator::Locator;
use crate::text::jsonl::READINGS;

pub(super) fn fits(at: &Locator) -> bool {
    at.name().ends_with(".jsonl")
}

/// A line and, if it is a record, what it says.
struct Entry<'a> {
    line: &'a str,
    id: Option<String>,
    value: Value,
}

fn entries(text: &str) -> Vec<Entry<'_>> {
    let entry = |line| {
        let value: Value = serde_json::from_str(line).unwrap_or(Value::Null);
        let id = value.get("id").and_then(Value::as_str).map(str::to_owned);
        Entry { line, id, value }
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(entry).collect()
}

fn by_id<'a>(entries: &'a [Entry<'a>]) -> BTreeMap<&'a str, &'a Entry<'a>> {
    entries.iter().filter_map(|entry| Some((entry.id.as_deref()?, entry))).collect()
}

/// Ours in our order, then what only they have. Lines that are no records are all kept. `None` if a record
/// was changed on both sides and nothing says where later.
pub(super) fn merge(texts: &Texts<'_>) -> Option<String> {
    let (base, ours, theirs) =
        (entries(texts.base.unwrap_or("")), entries(texts.ours), entries(texts.theirs));
    let (in_base, in_ours, in_theirs) = (by_id(&base), by_id(&ours), by_id(&theirs));
    let mut lines: Vec<&str> = Vec::new();
    for entry in &ours {
        let Some(id) = entry.id.as_deref() else {
            lines.push(entry.line);
            continue;
        };
        match (in_base.get(id), in_theirs.get(id)) {
            (_, Some(other)) => lines.push(newer(in_base.get(id).copied(), entry, other)?),
            // They removed it; it goes if we have not changed it since.
            (Some(before), None) if before.value == entry.value => {}
            _ => lines.push(entry.line),
        }
    }
    let plain: BTreeSet<&str> =
        ours.iter().filter(|entry| entry.id.is_none()).map(|entry| entry.line).collect();
    for entry in &theirs {
        let take = match entry.id.as_deref() {
            None => !plain.contains(entry.line),
            Some(id) if in_ours.contains_key(id) => false,
            // We removed it; it comes back only if they have changed it since.
            Some(id) => in_base.get(id).is_none_or(|before| before.value != entry.value),
        };
        if take {
            lines.push(entry.line);
        }
    }
    Some(lines.iter().map(|line| format!("{line}\n")).collect())
}

/// Of two lines with one id: the one that was changed, else the one that was changed last. `None` if they differ
/// in more than in how often they were read and whether they are put away, and neither is later.
fn newer<'a>(base: Option<&Entry<'_>>, ours: &Entry<'a>, theirs: &Entry<'a>) -> Option<&'a str> {
    if base.is_some_and(|base| base.value == ours.value) {
        return Some(theirs.line);
    }
    if ours.value == theirs.value || base.is_some_and(|base| base.value == theirs.value) {
        return Some(ours.line);
    }
    let time = |entry: &Entry<'_>, name: &str| {
        let text = entry.value.get(name).and_then(Value::as_str)?;
        text.parse::<crate::clock::Timestamp>().ok()
    };
    let later = |name| time(theirs, name).cmp(&time(ours, name));
    let order = match later("updated_at") {
        Ordering::Equal if said(ours) == said(theirs) => later("accessed_at"),
        Ordering::Equal => return None,
        order => order,
    };
    Some(if order == Ordering::Greater { theirs.line } else { ours.line })
}

/// What a record says, without what reading it and putting it away change.
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
    }
}
