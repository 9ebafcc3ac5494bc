//! How a change of a file of lines is undone after other lines of it were changed.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Line, lines, spliced, value};

/// The members of a record that change when it is read.
pub const READINGS: [&str; 2] = ["access_count", "accessed_at"];

/// Returns an object without the members that change when it is read.
pub fn beside_readings(object: &str) -> String {
    spliced(object, &READINGS.map(|member| (member, None)))
}

/// What identifies a line: its id or, without one, its content; and its number among equal ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key<'a> {
    id: Option<Cow<'a, str>>,
    says: &'a [u8],
    nth: usize,
}

/// The lines of a file, in order and by their keys.
struct Lines<'a> {
    bytes: &'a [u8],
    order: Vec<(Key<'a>, Line)>,
    by_key: HashMap<Key<'a>, &'a [u8]>,
}

impl<'a> Lines<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let mut counts: HashMap<Key<'a>, usize> = HashMap::new();
        let (mut order, mut by_key) = (Vec::new(), HashMap::new());
        for line in lines(bytes) {
            let body = &bytes[line.body.clone()];
            let id = id_of(body);
            let says = if id.is_some() { &[][..] } else { body };
            let mut key = Key { id, says, nth: 0 };
            let count = counts.entry(key.clone()).or_default();
            key.nth = *count;
            *count += 1;
            by_key.insert(key.clone(), body);
            order.push((key, line));
        }
        Lines { bytes, order, by_key }
    }
}

/// Returns the present content of a file without one earlier change: what the change did to its lines is
/// undone, whatever has happened to other lines since. `None` if those lines themselves have changed
/// since, other than by being read.
///
/// ```
/// use memgrove::text::jsonl::taken_back;
///
/// let (before, after) = (b"1\n2\n", b"1\ntwo\n");
/// assert_eq!(taken_back(before, after, b"1\ntwo\n3\n").as_deref(), Some(&b"1\n2\n3\n"[..]));
/// assert_eq!(taken_back(before, after, b"1\nII\n3\n"), None);
/// ```
pub fn taken_back<'a>(before: &'a [u8], after: &'a [u8], now: &'a [u8]) -> Option<Vec<u8>> {
    let (before, after, now) = (Lines::of(before), Lines::of(after), Lines::of(now));
    // Every line that the change wrote must still be as the change left it.
    let says = |lines: &Lines<'a>, key: &Key<'a>, line: &[u8]| {
        lines.by_key.get(key).is_some_and(|there| same(there, line))
    };
    if after.by_key.iter().any(|(key, line)| !says(&before, key, line) && !says(&now, key, line)) {
        return None;
    }
    // The removed lines, by the line that each of them comes after.
    let mut returning: HashMap<Option<&Key<'a>>, Vec<&[u8]>> = HashMap::new();
    let mut behind = None;
    for (key, line) in &before.order {
        match (after.by_key.get(key), now.by_key.get(key)) {
            (None, Some(_)) => return None,
            (None, None) => {
                returning.entry(behind).or_default().push(&before.bytes[line.body.clone()]);
            }
            (Some(_), Some(_)) => behind = Some(key),
            (Some(_), None) => {}
        }
    }
    let mut bytes = Vec::with_capacity(now.bytes.len());
    put(&mut bytes, returning.remove(&None));
    for (key, line) in &now.order {
        let there = &now.bytes[line.body.clone()];
        let became = match (after.by_key.get(key), before.by_key.get(key)) {
            (Some(_), None) => None,
            (Some(left), Some(was)) if !same(left, was) => Some(with_readings(was, left, there)),
            _ => Some(Cow::Borrowed(there)),
        };
        if let Some(became) = became {
            if bytes.last().is_some_and(|last| *last != b'\n') {
                bytes.push(b'\n');
            }
            bytes.extend_from_slice(&now.bytes[line.whole.start..line.body.start]);
            bytes.extend_from_slice(&became);
            bytes.extend_from_slice(&now.bytes[line.body.end..line.whole.end]);
        }
        put(&mut bytes, returning.remove(&Some(key)));
    }
    Some(bytes)
}

fn put(bytes: &mut Vec<u8>, lines: Option<Vec<&[u8]>>) {
    for line in lines.into_iter().flatten() {
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
    }
}

fn id_of(body: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(body).ok()?;
    serde_json::from_str(value(text, "id")?).ok().map(Cow::Owned)
}

/// Whether two lines have the same content, however it is written and however often it was read.
fn same(one: &[u8], other: &[u8]) -> bool {
    let object = |line| serde_json::from_slice::<Map<String, Value>>(line).ok();
    let without_readings = |mut object: Map<String, Value>| {
        READINGS.iter().for_each(|member| drop(object.remove(*member)));
        object
    };
    one == other
        || match (object(one), object(other)) {
            (Some(one), Some(other)) => without_readings(one) == without_readings(other),
            _ => false,
        }
}

/// Returns a line as it was, with the count of reads that it has now.
fn with_readings<'a>(was: &'a [u8], left: &[u8], there: &[u8]) -> Cow<'a, [u8]> {
    let texts = (std::str::from_utf8(was), std::str::from_utf8(there));
    let (Ok(text), Ok(there)) = texts else { return Cow::Borrowed(was) };
    if left == there.as_bytes() {
        return Cow::Borrowed(was);
    }
    let counted = |name: &'static str| Some((name, Some(value(there, name)?.to_owned())));
    let readings: Vec<_> = READINGS.into_iter().filter_map(counted).collect();
    Cow::Owned(spliced(text, &readings).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words such as `a=1` are records, with `a=1+2` read twice; others are plain lines.
    #[track_caller]
    fn check(before: &str, after: &str, now: &str, wanted: Option<&str>) {
        let line = |word: &str| match word.split_once('=') {
            Some((id, rest)) => {
                let (content, count) = rest.split_once('+').unwrap_or((rest, "0"));
                format!("{{\"id\":\"{id}\",\"content\":\"{content}\",\"access_count\":{count}}}\n")
            }
            None => format!("{word}\n"),
        };
        let file = |text: &str| text.split_whitespace().map(line).collect::<String>();
        let done = taken_back(file(before).as_bytes(), file(after).as_bytes(), file(now).as_bytes());
        let done = done.map(|bytes| String::from_utf8(bytes).expect("text"));
        assert_eq!(done, wanted.map(file), "{before} | {after} | {now}");
    }

    #[test]
    fn a_change_of_one_line_is_taken_back_whatever_became_of_others() {
        check("a=1 b=1", "a=2 b=1", "a=2 b=3 c=1", Some("a=1 b=3 c=1"));
        check("a=1 b=1", "b=1", "b=1 c=1", Some("a=1 b=1 c=1"));
        check("a=1 b=1 c=1", "a=1 c=1", "a=1 c=2 d=1", Some("a=1 b=1 c=2 d=1"));
        check("a=1", "a=1 b=1", "b=1 c=1", Some("c=1"));
        check("x a=1", "x y a=1", "z x y a=2", Some("z x a=2"));
    }

    #[test]
    fn what_was_changed_again_is_not_taken_back() {
        check("a=1", "a=2", "a=3", None);
        check("a=1 b=1", "a=2 b=1", "b=1", None);
        check("a=1", "a=1 b=1", "a=1", None);
        check("a=1 b=1", "a=1", "a=1 b=2", None);
    }

    #[test]
    fn another_spelling_is_no_change() {
        let respelled = b"{\"access_count\": 0, \"content\": \"\\u0032\", \"id\": \"a\"}\n";
        let [was, left] = [1, 2].map(|content| {
            format!("{{\"id\":\"a\",\"content\":\"{content}\",\"access_count\":0}}\n").into_bytes()
        });
        assert_eq!(taken_back(&was, &left, respelled), Some(was.clone()));
        assert_eq!(
            taken_back(&was, &left, &respelled.map(|byte| if byte == b'2' { b'3' } else { byte })),
            None
        );
    }

    #[test]
    fn readings_are_no_change() {
        check("a=1", "a=2", "a=2+5", Some("a=1+5"));
        check("a=1 b=1", "a=2 b=1+1", "a=2 b=9+3", Some("a=1 b=9+3"));
    }
}
