//! How JSON text is laid out differently without changing any of its tokens.

/// Returns JSON without white space between its tokens.
pub(super) fn compacted(json: &str) -> String {
    let mut compact = Vec::with_capacity(json.len());
    let (mut inside, mut escaped) = (false, false);
    for byte in json.bytes() {
        if !inside && byte.is_ascii_whitespace() {
            continue;
        }
        compact.push(byte);
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            _ => {}
        }
    }
    String::from_utf8(compact).expect("only blanks were taken out of text")
}

/// Returns JSON with a line for each member and item.
pub(super) fn laid_out(json: &str) -> String {
    let compact = compacted(json);
    let mut text = String::with_capacity(compact.len() * 2);
    let (mut depth, mut inside, mut escaped, mut last) = (0_usize, false, false, ' ');
    for c in compact.chars() {
        let break_line = |text: &mut String, depth: usize| {
            text.push('\n');
            text.extend(std::iter::repeat_n("  ", depth));
        };
        if inside {
            text.push(c);
            inside = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        let closes = matches!(c, '}' | ']');
        depth -= usize::from(closes && depth > 0);
        // An empty object or list stays on its line.
        if closes != matches!(last, '{' | '[') {
            break_line(&mut text, depth);
        }
        text.push(c);
        match c {
            '{' | '[' => depth += 1,
            ',' => break_line(&mut text, depth),
            ':' => text.push(' '),
            '"' => inside = true,
            _ => {}
        }
        last = c;
    }
    text
}

/// Returns the first number of a JSON text that loses digits when a program reads it as a machine number.
pub fn inexact_number(json: &str) -> Option<&str> {
    let (mut inside, mut escaped, mut at) = (false, false, 0);
    let bytes = json.as_bytes();
    while at < bytes.len() {
        let byte = bytes[at];
        if !inside && (byte == b'-' || byte.is_ascii_digit()) {
            let of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
            let end =
                bytes[at..].iter().position(|byte| !of_number(byte)).map_or(bytes.len(), |len| at + len);
            if !is_exact(&json[at..end]) {
                return Some(&json[at..end]);
            }
            at = end;
            continue;
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            _ => {}
        }
        at += 1;
    }
    None
}

fn is_exact(number: &str) -> bool {
    let Ok(read) = serde_json::from_str::<serde_json::Value>(number) else { return false };
    digits(number) == digits(&read.to_string())
}

/// Returns the significant digits, whatever the exponent is.
fn digits(number: &str) -> String {
    let mantissa = number.split(['e', 'E']).next().unwrap_or(number);
    let plain: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    plain.trim_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_go_only_between_tokens() {
        let check = |json: &str, expected: &str| assert_eq!(compacted(json), expected);
        check(
            "{\n  \"a b\": [1, 2],\r\n\t\"c\\\" \\\\\": \" x \\\\\" }\n",
            "{\"a b\":[1,2],\"c\\\" \\\\\":\" x \\\\\"}",
        );
        check("{\"é \u{2028}\": 1e400}", "{\"é \u{2028}\":1e400}");
    }

    #[test]
    fn lines_are_broken_only_between_tokens() {
        for json in [
            r#"{"a":[1,{"b":"x{,\"]:\\"},[]],"c":{},"d":{"e":[{}]}}"#,
            r#"[]"#,
            r#""a\\""#,
            r#"{"é":[["\\\""],-1.5,null]}"#,
        ] {
            let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
            assert_eq!(laid_out(json), serde_json::to_string_pretty(&value).expect("plain data"), "{json}");
        }
        assert_eq!(laid_out("{\"n\":20261116100000000001}"), "{\n  \"n\": 20261116100000000001\n}");
    }

    #[test]
    fn numbers_that_would_be_changed() {
        for (json, expected) in [
            ("20261116100000000001", Some("20261116100000000001")),
            ("{\"a\":[1,{\"b\":0.12345678901234567891}]}", Some("0.12345678901234567891")),
            ("-9223372036854775809", Some("-9223372036854775809")),
            ("1e400", Some("1e400")),
            ("18446744073709551615", None),
            ("-9223372036854775808", None),
            ("{\"20261116100000000001\":\"\\\"20261116100000000001\"}", None),
            ("[0.1, 1.50, 6.02214076e23, 1E5, 100000, 0, -0.0, 5e-324]", None),
        ] {
            assert_eq!(inexact_number(json), expected, "{json}");
        }
    }
}
