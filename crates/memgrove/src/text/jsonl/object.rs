//! Where the members of one JSON object are, and how to change one of them alone.

use std::borrow::Cow;
use std::ops::Range;

/// One member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its name, unescaped.
    pub key: Cow<'a, str>,
    /// Name, colon and value.
    pub whole: Range<usize>,
    /// The value.
    pub value: Range<usize>,
}

/// Returns the members of an object in the order in which they are written, duplicates included; of a
/// malformed object, those before the fault.
pub fn members(object: &str) -> Vec<Member<'_>> {
    let bytes = object.as_bytes();
    let mut found = Vec::new();
    let mut at = skip_blank(bytes, 0);
    if bytes.get(at) != Some(&b'{') {
        return found;
    }
    at = skip_blank(bytes, at + 1);
    while bytes.get(at) == Some(&b'"') {
        let start = at;
        let key_end = skip_string(bytes, at);
        let colon = skip_blank(bytes, key_end);
        if bytes.get(colon) != Some(&b':') {
            break;
        }
        let value = skip_blank(bytes, colon + 1);
        let end = skip_value(bytes, value);
        if end == value {
            break;
        }
        let Some(key) = object.get(start..key_end).and_then(unescaped) else { break };
        found.push(Member { key, whole: start..end, value: value..end });
        at = skip_blank(bytes, end);
        if bytes.get(at) != Some(&b',') {
            break;
        }
        at = skip_blank(bytes, at + 1);
    }
    found
}

/// Returns the value of a member as it is written. Of duplicates the last counts.
pub fn value<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    members(object).into_iter().rfind(|member| member.key == key).map(|member| &object[member.value])
}

/// Returns the object with members set (`Some`, as JSON) or removed (`None`). All other bytes stay: an
/// existing member keeps its place, of duplicates the last is set, and a new member comes last.
pub fn spliced(object: &str, changes: &[(&str, Option<String>)]) -> String {
    let mut text = object.to_owned();
    for (key, value) in changes {
        match value {
            Some(value) => set(&mut text, key, value),
            None => while remove(&mut text, key) {},
        }
    }
    text
}

fn set(text: &mut String, key: &str, value: &str) {
    let found = members(text);
    if let Some(member) = found.iter().rfind(|member| member.key == key) {
        let at = member.value.clone();
        text.replace_range(at, value);
        return;
    }
    let (at, comma) = match found.last() {
        Some(last) => (last.whole.end, ","),
        None => (text.find('{').map_or(0, |brace| brace + 1), ""),
    };
    let key = serde_json::to_string(key).expect("a string is JSON");
    text.insert_str(at, &format!("{comma}{key}:{value}"));
}

/// Removes one member of that name with its comma, and returns whether there was one.
fn remove(text: &mut String, key: &str) -> bool {
    let found = members(text);
    let Some(index) = found.iter().position(|member| member.key == key) else { return false };
    let at = match (index, found.get(index + 1)) {
        (0, Some(next)) => found[0].whole.start..next.whole.start,
        (0, None) => found[0].whole.clone(),
        _ => found[index - 1].whole.end..found[index].whole.end,
    };
    text.replace_range(at, "");
    true
}

fn unescaped(quoted: &str) -> Option<Cow<'_, str>> {
    let inner = quoted.get(1..quoted.len().checked_sub(1)?)?;
    match inner.contains('\\') {
        false => Some(Cow::Borrowed(inner)),
        true => serde_json::from_str(quoted).ok().map(Cow::Owned),
    }
}

fn skip_blank(bytes: &[u8], at: usize) -> usize {
    at + bytes.get(at..).unwrap_or(&[]).iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// The end of the string that begins at a quote.
fn skip_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn skip_value(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = skip_string(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            b',' if depth == 0 => return at,
            byte if depth == 0 && byte.is_ascii_whitespace() => return at,
            _ => at += 1,
        }
        if depth == 0 && matches!(bytes.get(at - 1), Some(b'"' | b'}' | b']')) {
            return at;
        }
    }
    at.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_lie_where_they_are_written() {
        let text =
            r#" { "a" : 1 , "b\u0041":{"x":[1,"}"]}, "a":"\"" , "n": 123456789012345678901234567890 } "#;
        let found: Vec<(String, &str)> =
            members(text).into_iter().map(|member| (member.key.into_owned(), &text[member.value])).collect();
        let expected = [
            ("a", "1"),
            ("bA", r#"{"x":[1,"}"]}"#),
            ("a", r#""\"""#),
            ("n", "123456789012345678901234567890"),
        ];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value)));
        assert!(members("{}").is_empty() && members("[1]").is_empty() && members("{\"a\"").is_empty());
    }

    #[test]
    fn a_splice_touches_its_member_alone() {
        let check = |text: &str, key: &str, value: Option<&str>, expected: &str| {
            assert_eq!(spliced(text, &[(key, value.map(str::to_owned))]), expected);
        };
        check(r#"{ "a":1 , "b":2 }"#, "a", Some("9"), r#"{ "a":9 , "b":2 }"#);
        check(r#"{"a":1,"a":2}"#, "a", Some("9"), r#"{"a":1,"a":9}"#);
        check(r#"{"a":1}"#, "b", Some("[]"), r#"{"a":1,"b":[]}"#);
        check("{}", "b", Some("2"), r#"{"b":2}"#);
        check(r#"{"a":1,"b":2,"c":3}"#, "a", None, r#"{"b":2,"c":3}"#);
        check(r#"{"a":1,"b":2,"c":3}"#, "b", None, r#"{"a":1,"c":3}"#);
        check(r#"{"a":1,"a":2}"#, "a", None, "{}");
        check(r#"{"a":1}"#, "x", None, r#"{"a":1}"#);
    }
}
