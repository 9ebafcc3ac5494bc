//! How any string fits on one line: newlines and whatever else would be misread become character
//! references, as in Markdown, and nothing else changes.

use super::Facts;

/// Escapes a value so that it stands on one line.
pub(super) fn escaped(value: &str) -> String {
    let last = value.char_indices().next_back().map_or(0, |(at, _)| at);
    let mut text = String::with_capacity(value.len());
    for (at, c) in value.char_indices() {
        match c {
            '\n' | '\r' | '\u{feff}' => reference(&mut text, c),
            // Editors strip trailing white space.
            ' ' | '\t' if at == last => reference(&mut text, c),
            '&' if refers(&value[at + 1..]) => text.push_str("&amp;"),
            _ => text.push(c),
        }
    }
    text
}

/// Returns the value that [`escaped`] was given.
pub(super) fn unescaped(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        value.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some((c, after)) = referred(rest) {
            value.push(c);
            rest = after;
        } else {
            value.push('&');
            if let Some(after) = rest.strip_prefix("amp;").filter(|after| refers(after)) {
                rest = after;
            }
        }
    }
    value.push_str(rest);
    value
}

/// Escapes one line of an observation so that it is never read as a fact.
pub(super) fn escaped_text(line: &str) -> String {
    let mut text = escaped(line);
    if states_a_fact(line.trim_start_matches('\\')) {
        text.insert(0, '\\');
    }
    text
}

/// Returns the line that [`escaped_text`] was given.
pub(super) fn unescaped_text(text: &str) -> String {
    match text.strip_prefix('\\') {
        Some(line) if states_a_fact(line.trim_start_matches('\\')) => unescaped(line),
        _ => unescaped(text),
    }
}

/// Escapes values so that they stand on one line, with commas between them.
pub(super) fn escaped_list(values: &[String]) -> String {
    let item = |value: &String| {
        let mut text = escaped(value).replace(',', "&#44;");
        if let Some(c) = text.chars().next().filter(|c| matches!(c, ' ' | '\t')) {
            let mut first = String::new();
            reference(&mut first, c);
            text.replace_range(..1, &first);
        }
        text
    };
    values.iter().map(item).collect::<Vec<_>>().join(", ")
}

/// Returns the values that [`escaped_list`] was given.
pub(super) fn unescaped_list(text: &str) -> Vec<String> {
    text.split(',')
        .map(|value| value.trim_matches([' ', '\t']))
        .filter(|value| !value.is_empty())
        .map(unescaped)
        .collect()
}

fn states_a_fact(line: &str) -> bool {
    let Some(stated) = line.strip_prefix("- ") else { return false };
    Facts::KEYS.iter().any(|key| stated.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')))
}

fn reference(text: &mut String, c: char) {
    text.push_str("&#");
    text.push_str(&u32::from(c).to_string());
    text.push(';');
}

/// Returns the character that `#10;` stands for, and the text after it.
fn referred(rest: &str) -> Option<(char, &str)> {
    let (digits, after) = rest.strip_prefix('#')?.split_once(';')?;
    let plain = (1..=7).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let c = digits.parse().ok().filter(|_| plain).and_then(char::from_u32)?;
    Some((c, after))
}

/// Whether the text after an ampersand would be read as a reference, or as an escaped one.
fn refers(mut rest: &str) -> bool {
    while let Some(after) = rest.strip_prefix("amp;") {
        rest = after;
    }
    referred(rest).is_some()
}
